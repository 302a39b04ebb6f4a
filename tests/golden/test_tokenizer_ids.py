"""Ids of real documents are those of the tokenizers' own libraries, for every known tokenizer and for ours.

    python -m tests.golden.test_tokenizer_ids [--stock] [NAME ..]

does all documents, not a sample: half a minute to two minutes a tokenizer. With --stock, what ours are compared with is the
Hugging Face library on the definition that the file is read as, not the file's own library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.known_tokenizers import KNOWN, known
from tests.tokenizer_oracles import LLAMA3, oracle, real_texts
from tokenization.formats.source import read_source
from tokenization.tokenizer import Tokenizer, load_tokenizer

NAMES = ("default", "gpt2", "llama3", "llama4", "qwen", "deepseek", "mistral_v1", "mistral_v3", "mistral_v7", "tekken")
SAMPLE = 41
"""One document in so many is compared in the tests."""


def _load(name: str, *, fast: bool = True) -> Tokenizer:
    return (
        load_tokenizer(fast=fast) if name == "default" else load_tokenizer(known(name), eos=KNOWN[name][1], fast=fast)
    )


def _groups(texts: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(texts)
    while group := list(islice(rest, 256)):
        yield group


def _stock(name: str) -> Callable[[str], list[int]]:
    tokenizer = _load(name, fast=False)
    return lambda text: list(map(int, tokenizer.encode_batch([text])[0]))


def _compare(
    name: str, texts: Iterable[tuple[str, str]], own: Callable[[str], Callable[[str], list[int]]] = oracle
) -> tuple[Counter[str], Counter[str], list[str]]:
    """Documents and tokens of each file, and the documents whose ids differ."""
    ours, theirs = _load(name), own(name)
    documents: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    other = []
    for group in _groups(texts):
        ids, lengths = ours.encode_batch([text for _, text in group])
        for (file, text), row in zip(group, np.split(ids, np.cumsum(lengths)[:-1]), strict=True):
            expected = theirs(text)
            documents[file] += 1
            tokens[file] += len(expected)
            if row.tolist() != expected:
                other.append(text)
    return documents, tokens, other


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_real_documents_have_the_ids_of_the_tokenizers_own_library(name: str, test_data: Path) -> None:
    """Every 41st document, in dozens of languages: not one id differs."""
    sample = [pair for number, pair in enumerate(real_texts(test_data)) if number % SAMPLE == 0]
    documents, tokens, other = _compare(name, sample)
    assert documents.total() > 500
    assert tokens.total() > 100_000
    assert other == []


@pytest.mark.slow
def test_a_list_of_ranks_is_read_as_transformers_reads_it() -> None:
    """Llama 3: the same vocabulary, merges in the same order, pre-tokeniser and decoder, so the same fingerprint."""
    from transformers.convert_slow_tokenizer import TikTokenConverter

    theirs = json.loads(TikTokenConverter(vocab_file=str(known("llama3")), pattern=LLAMA3).converted().to_str())
    ours = json.loads(read_source(known("llama3")).text)
    assert ours["model"]["vocab"] == theirs["model"]["vocab"]
    assert ours["model"]["merges"] == theirs["model"]["merges"]
    assert ours["model"]["ignore_merges"] == theirs["model"]["ignore_merges"]
    assert ours["pre_tokenizer"] == theirs["pre_tokenizer"]
    assert ours["normalizer"] == theirs["normalizer"]


def main() -> None:
    """Compare everything, print the counts, exit 1 if an id differs."""
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    if not (data / "2_text").is_dir():
        sys.exit(f"no test data at {data}: set CORPUSMILL_TEST_DATA to the folder that holds 2_text and 4_langid")
    unknown = [name for name in sys.argv[1:] if name not in (*NAMES, "--stock")]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}. Expected --stock, or some of {', '.join(NAMES)}")
    failed = False
    stock = "--stock" in sys.argv
    for name in [name for name in sys.argv[1:] if name != "--stock"] or NAMES:
        begun = time.process_time()
        documents, tokens, other = _compare(name, real_texts(data), _stock if stock else oracle)
        failed |= bool(other)
        counts = ", ".join(f"{file} {n:,}/{tokens[file]:,}" for file, n in documents.items())
        print(f"{name}: {documents.total():,} documents, {tokens.total():,} tokens, {len(other)} differ", end="")
        print(f" ({time.process_time() - begun:.0f} s, {_load(name).engine}): {counts}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
