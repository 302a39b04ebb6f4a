"""Bugs that others reported of tokenizers, and the right outcome here."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from tests.known_tokenizers import known
from tests.token_files import letter_tokenizer, save_tokenizer, small_bpe
from tests.tokenizer_models import model
from tokenization.errors import TokenizerError
from tokenization.tokenizer import Tokenizer, load_tokenizer

default = load_tokenizer()


@cache
def _known(name: str, bos: str | None = None) -> Tokenizer:
    return load_tokenizer("default" if name == "default" else known(name), bos=bos)


def _texts(folder: Path, name: str) -> list[str]:
    return [json.loads(line)["text"] for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


AROUND = [
    "<call>word",
    "a <call> word",
    "  <call>  word",
    "<call>\nx",
    "\n<call>",
    "<call><call>",
    " a",
    "a  b",
    "",
    " ",
]


def test_added_tokens_and_blanks_give_the_ids_of_the_library(tmp_path: Path) -> None:
    """B126: around an added token, with blanks before and behind it, whatever it strips, ids are those of the library."""
    for number, flags in enumerate(
        ({}, {"lstrip": True}, {"rstrip": True}, {"normalized": True}, {"single_word": True})
    ):
        made = Backend.from_str(small_bpe())
        made.add_tokens([AddedToken("<call>", special=False, **flags)])
        loaded = load_tokenizer(save_tokenizer(tmp_path / str(number), made, {"eos_token": "<|endoftext|>"}))
        expected = [index for text in AROUND for index in made.encode(text, add_special_tokens=False).ids]
        assert loaded.encode_batch(AROUND)[0].tolist() == expected


def test_one_bos_at_the_beginning_of_each_document(tmp_path: Path) -> None:
    """B128: a text that begins with the characters of BOS, and a file that adds it by itself: still exactly one."""
    (tmp_path / "tokenizer.model").write_bytes(model("bpe with bytes"))
    config = {"add_bos_token": True, "add_eos_token": True, "bos_token": "<s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    loaded = load_tokenizer(tmp_path, bos="<s>")
    texts = ["<s>a", "<s> <s>b</s>", "", "c"]
    encoded = loaded.encode_documents(texts)
    assert (encoded.ids == loaded.bos_id).sum() == (encoded.ids == loaded.eos_id).sum() == len(texts)
    starts = np.cumsum(encoded.lengths) - encoded.lengths
    assert (encoded.ids[starts] == loaded.bos_id).all()
    assert load_tokenizer(tmp_path).encode_documents(texts).lengths.tolist() == (encoded.lengths - 1).tolist()


def test_the_end_of_another_model_is_refused() -> None:
    """B130: an EOS left at the name of another model does not begin; the message names the one there is."""
    with pytest.raises(
        TokenizerError, match=r"eos names '<\|endoftext\|>'.*there is no such token. Set eos to one of: </s>"
    ):
        load_tokenizer(known("mistral_v1"), eos="<|endoftext|>")
    assert load_tokenizer(known("mistral_v1")).eos == "</s>"


def test_added_tokens_count(tmp_path: Path) -> None:
    """B131: 32,000 pieces and four added tokens: the largest id is 32,003, and text reaches it."""
    (tmp_path / "tokenizer.model").write_bytes(known("mistral_v1").read_bytes())
    added = {f"<extra_{number}>": 32_000 + number for number in range(3)}
    (tmp_path / "added_tokens.json").write_text(json.dumps(added), encoding="utf-8")
    decoder = {"32003": {"content": "<call>", "special": False, "normalized": False}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}), encoding="utf-8")
    loaded = load_tokenizer(tmp_path)
    assert (loaded.vocab_size, loaded.max_id, loaded.card().max_id) == (32_004, 32_003, 32_003)
    assert loaded.encode_batch(["x <call> y <extra_1>"])[0].max() == 32_003


KINDS = ("default", "gpt2", pytest.param("deepseek", marks=pytest.mark.slow), "mistral_v1", "mistral_v3")


@pytest.mark.parametrize("name", KINDS)
def test_special_text_is_text(name: str, bugcases: Path) -> None:
    """B133: as many EOS and BOS ids as documents, although the texts spell them; decoding gives the texts back."""
    bos = {"default": "<|pad|>", "gpt2": None, "deepseek": "<｜begin▁of▁sentence｜>"}.get(name, "<s>")
    loaded = _known(name, bos)
    texts = [*_texts(bugcases, "t_special"), loaded.eos, f"a{loaded.eos}b {bos} {loaded.pad}", f"{bos}{loaded.eos}"]
    encoded = loaded.encode_documents(texts)
    assert (encoded.ids == loaded.eos_id).sum() == len(texts)
    assert loaded.bos_id is None or (encoded.ids == loaded.bos_id).sum() == len(texts)
    assert not encoded.lost.any()


def test_what_a_normaliser_changes_is_counted(bugcases: Path, tmp_path: Path) -> None:
    """B135: a byte-level tokenizer loses nothing; one with rules reports each document that decodes to something else."""
    texts = _texts(bugcases, "t_round")
    assert not default.encode_documents(texts).lost.any()
    (tmp_path / "t.model").write_bytes(model("bpe with rules"))
    lost = load_tokenizer(tmp_path / "t.model").encode_documents(texts).lost
    assert lost[0] >= 4, "︰ ①② Ａ ﬁ are other characters now"
    assert lost[1] >= 3, "two blanks, a tab and a line are one blank each"
    assert lost[3] >= 2, "full-width blanks are blanks"


def test_characters_that_vanish_are_counted(bugcases: Path, tmp_path: Path) -> None:
    """B137: a vocabulary without these signs, without bytes and without unknown token: no unknown id, yet a loss."""
    texts = _texts(bugcases, "t_rare")
    folder = save_tokenizer(tmp_path / "t", letter_tokenizer("abek "), None)
    encoded = load_tokenizer(folder, eos="</s>").encode_documents(texts)
    assert encoded.unknown.sum() == 0
    assert (encoded.lost > 0).all()
    assert not default.encode_documents(texts).lost.any()
    for name in ("mistral_v1", "gpt2"):
        assert not _known(name).encode_documents(texts).lost.any()


FINGERPRINTS = {
    "mistral_v1": "ba16c88a30a73fe1f67b06eaaf1d30d92918d4d4a1021dfecaa5d12a5884ec15",
    "gpt2": "1b7d3515ce0afcc90859cd38d235384e067d413a4dd16a17def5f808497d3d22",
    "deepseek": "39d846db4373f42e1799e2e162be39165043ac9b5b35bc9f415a03f863fd5c48",
}
GOLDEN = {
    "default": "e0dd1a9a09ef766b3453c430b89a25ee5cd1c8153f6e350f03f72253fb44d1a2",
    "mistral_v1": "c01696ad661ae4aa38213562aa307ac096a12dafd4867342bf5834c7159136fb",
    "gpt2": "37a72d42f9b0cdc6f8c29ae1581bb740a5ace748e1fb5422f2ac775b3cab4d15",
    "deepseek": "89e53800adbc5c3dd4067fa8f159628bc3c167f898d157daec88c9cdeb2df5c2",
}
"""SHA-256 of the golden ids as JSON."""


@pytest.mark.parametrize("name", [n if n != "deepseek" else pytest.param(n, marks=pytest.mark.slow) for n in GOLDEN])
def test_ids_hold_through_upgrades(name: str) -> None:
    """B139: an upgrade of a library that changes an id, or what a file is read as, is seen here."""
    loaded = _known(name)
    assert loaded.fingerprint() == FINGERPRINTS.get(name, loaded.fingerprint())
    assert hashlib.sha256(json.dumps(loaded.golden_ids).encode()).hexdigest() == GOLDEN[name]


FORK = """
import os, sys
from tokenization.tokenizer import load_tokenizer
tokenizer = load_tokenizer(sys.argv[1])
expected = tokenizer.encode_batch(["text of a child " * 20] * 1000)[0].tolist()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        ids, _ = tokenizer.encode_batch(["text of a child " * 20] * 1000)
        os._exit(0 if ids.tolist() == expected else 1)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "mistral_v1"])
def test_forked_workers_end(name: str) -> None:
    """B141: encode in the parent, then in four forked workers: none hangs, all give the same ids."""
    command = [sys.executable, "-c", FORK, str(known(name))]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0


LONG = {
    "underscores": "_",
    "a book of one line": "The book has one line, and no end of it. ",
    "no blanks": "这是没有空格的长文本",
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
@pytest.mark.parametrize("name", ["default", "mistral_v1", "mistral_v3"])
def test_long_texts_take_linear_time(name: str, unit: str) -> None:
    """B142: four times the text takes less than ten times the time, where a square would take sixteen."""
    loaded = _known(name)
    loaded.encode_batch([unit * 10])
    seconds = []
    for size in (250_000, 1_000_000):
        text = unit * (size // len(unit))
        begun = time.process_time()
        loaded.encode_documents([text])
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 10 * max(seconds[0], 0.05)


def test_empty_documents_keep_their_row(tmp_path: Path) -> None:
    """B145: five documents, two of them empty: five rows, of EOS alone, or of BOS and EOS."""
    (tmp_path / "t.model").write_bytes(model("bpe with bytes"))
    for loaded, short in ((default, 1), (load_tokenizer(tmp_path / "t.model"), 1), (load_tokenizer(bos="<|pad|>"), 2)):
        encoded = loaded.encode_documents(["a", "", "b", "", "c"])
        assert encoded.lengths[[1, 3]].tolist() == [short, short]
        assert len(encoded.lengths) == 5
        assert encoded.lengths.sum() == len(encoded.ids)
