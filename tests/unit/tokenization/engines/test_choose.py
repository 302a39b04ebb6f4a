"""The fast engine gives the stock library's ids, or is not used: whatever is missing, different or damaged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, normalizers

from tests.known_tokenizers import KNOWN, known
from tests.strategies import hostile_text, markup_text
from tests.token_files import save_tokenizer, small_bpe, unigram_tokenizer
from tokenization import tokenizer as module
from tokenization.engines import choose as engines
from tokenization.engines.fastokens import load_fastokens
from tokenization.errors import TokenizerError
from tokenization.tokenizer import load_tokenizer
from tokenization.trials import PIECES, trial_texts

fastokens = pytest.importorskip("fastokens", reason="extra `curate` is not installed")
fast, stock = load_tokenizer(), load_tokenizer(fast=False)


def equal(texts: Sequence[str]) -> None:
    """Ids, lengths and losses of both engines are the same."""
    ours, theirs = fast.encode_documents(texts), stock.encode_documents(texts)
    for name in ("ids", "lengths", "unknown", "characters", "lost"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.ids.dtype == theirs.ids.dtype


def test_the_default_is_encoded_by_the_fast_engine_unless_asked() -> None:
    """The engine's name says which library, and why it is the stock one."""
    assert fast.engine.startswith("fastokens 0.")
    assert stock.engine.endswith("(asked for)")
    assert stock.engine.startswith("tokenizers 0.")


def test_no_id_file_or_fingerprint_knows_the_engine() -> None:
    """Fingerprint, card and golden ids are the same with both."""
    assert fast.fingerprint() == stock.fingerprint()
    assert fast.card() == stock.card()
    assert fast.golden_ids == stock.golden_ids


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(hostile_text, markup_text, st.lists(st.sampled_from(PIECES)).map("".join)), max_size=8))
def test_hostile_texts_have_the_ids_of_the_stock_library(texts: list[str]) -> None:
    """Look-alikes of special tokens, NULs, lone marks, emoji, mixed scripts: nothing differs."""
    equal(texts)


@pytest.mark.parametrize("first", [0, 0x800, 0x3000, 0xA000, 0xE000, 0x10000, 0x1F000, 0x20000, 0x30000, 0xE0000])
def test_single_characters_have_the_ids_of_the_stock_library(first: int) -> None:
    """A thousand code points from each of these on, between letters, blanks and digits."""
    characters = [chr(point) for point in range(first, first + 0x400)]
    equal([f"a{c}b {c}{c} 1{c}!{c}\n{c} '{c}" for c in characters])


@pytest.mark.parametrize(
    "unit", ["7", "a", "漢字好学", "/+Ab9", " ", "\n", "\r\n", "ไทย", "\u0301", "😀", "\0", "don't"]
)
@pytest.mark.parametrize("length", [5_000, 80_000])
def test_endless_texts_have_the_ids_of_the_stock_library(unit: str, length: int) -> None:
    """Also above the 64 kB from which the fast library would use several threads."""
    equal([unit * (length // len(unit)), "x"])


def test_real_sentences_have_the_ids_of_the_stock_library(test_data: Path) -> None:
    """Sentences in twenty languages."""
    equal([json.loads(line)["text"] for line in _lines(test_data / "4_langid/sentences.jsonl.zst")][7::15])


def test_crawled_pages_have_the_ids_of_the_stock_library(test_data: Path) -> None:
    """The first 150 documents of the crawl."""
    lines = _lines(test_data / "2_text/crawl-00.jsonl.zst")
    equal([json.loads(next(lines))["text"] for _ in range(150)])


def _lines(path: Path) -> Iterator[str]:
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        yield from file


def test_without_the_fast_library_the_stock_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed: the same ids, and the name says why."""
    monkeypatch.setitem(sys.modules, "fastokens", None)
    loaded = load_tokenizer()
    assert loaded.engine.endswith("(fastokens is not installed)")
    assert np.array_equal(loaded.encode_batch(["Hello 漢字"])[0], stock.encode_batch(["Hello 漢字"])[0])


def test_a_definition_that_no_fast_engine_takes_stays_with_the_stock_library(tmp_path: Path) -> None:
    """The reference encodes, and its name says why."""
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", unigram_tokenizer(), {"eos_token": "</s>"}))
    assert loaded.engine.endswith("(Unigram, not BPE)")
    with pytest.raises(ValueError, match="not byte-level BPE"):
        load_fastokens(json.loads(unigram_tokenizer().to_str()))


def test_a_definition_that_the_fast_library_refuses_stays_with_the_stock_library(tmp_path: Path) -> None:
    """Its complaint, or the text on which it differs, is kept in the engine's name."""
    made = Tokenizer.from_str(small_bpe())
    made.normalizer = normalizers.Sequence([normalizers.StripAccents(), normalizers.Lowercase()])
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": "<|endoftext|>"}))
    assert loaded.engine.startswith("tokenizers")
    assert re.search(r"\(fastokens( [0-9.]+)? (differs on|does not take)", loaded.engine)


Load = Callable[["Changed"], module.Tokenizer]


class Changed:
    """A fastokens whose ids are changed for texts that hold a certain string."""

    def __init__(self, trap: str, refuse: bool = False) -> None:
        self.trap, self.refuse = trap, refuse
        self.real: Any = None

    def from_json_str(self, text: str) -> Changed:
        self.real = fastokens.Tokenizer.from_json_str(text)
        return self

    def encode_batch_flat(self, inputs: list[str], **options: bool) -> tuple[bytes, bytes]:
        hit = [i for i, text in enumerate(inputs) if self.trap in text]
        if hit and self.refuse:
            raise ValueError("pre-tokenizer error: PCRE2: match limit exceeded")
        ids, borders = (bytearray(part) for part in self.real.encode_batch_flat(inputs, **options))
        for index in hit:
            place = int(np.frombuffer(borders, "<u8")[index]) * 4
            ids[place : place + 4] = (9).to_bytes(4, "little")
        return bytes(ids), bytes(borders)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default tokenizer with its first 600 tokens."""
    folder = tmp_path_factory.mktemp("small") / "t"
    return save_tokenizer(folder, Tokenizer.from_str(small_bpe()), {"eos_token": "<|endoftext|>"})


@pytest.fixture
def load_with(small: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Changed], module.Tokenizer]:
    """Load the small tokenizer with this in the place of fastokens."""

    def load(library: Changed) -> module.Tokenizer:
        monkeypatch.setitem(sys.modules, "fastokens", SimpleNamespace(Tokenizer=library))
        return load_tokenizer(small)

    return load


def ids_of(folder: Path, texts: Sequence[str]) -> list[int]:
    """What the stock library gives for these."""
    ids: list[int] = load_tokenizer(folder, fast=False).encode_batch(texts)[0].tolist()
    return ids


@pytest.mark.parametrize(
    "trap", ["a" * 300, "\0", "<|pad|>", "👩‍👩‍👧", "\u2028", "\u0301\u0302", "ＡＢ", "\r\n", "漢" * 1_025]
)
def test_a_library_that_differs_on_a_trial_text_is_not_used(trap: str, small: Path, load_with: Load) -> None:
    """One wrong id on one trial text is enough; the text stands in the engine's name, and all ids are right."""
    loaded = load_with(Changed(trap))
    assert f"(fastokens {version('fastokens')} differs on the text " in loaded.engine
    assert "expected [" in loaded.engine
    assert loaded.encode_batch([f"x{trap}y"])[0].tolist() == ids_of(small, [f"x{trap}y"])


def test_a_difference_in_a_sample_stops_the_run(load_with: Load) -> None:
    """The first text of a group is always a sample: the error names it and the first token that differs."""
    loaded = load_with(Changed("zebra crossing"))
    assert loaded.engine.startswith("fastokens")
    assert len(loaded.encode_batch(["an ox"])[0])
    with pytest.raises(TokenizerError, match=r"'a zebra crossing' from token 0 on: \[9, .*expected .*pack.engine"):
        loaded.encode_documents(["a zebra crossing", "x"])


def test_samples_are_taken_among_the_others_too(load_with: Load) -> None:
    """A fault in most texts but never the first of a group is found: one in 256 is compared, always the same ones."""
    loaded = load_with(Changed("zebra"))
    texts = ["an ox", *(f"zebra number {i}" for i in range(3_000))]
    found = []
    for _ in range(2):
        with pytest.raises(TokenizerError, match="zebra number") as caught:
            loaded.encode_batch(texts)
        found.append(str(caught.value))
    assert found[0] == found[1]
    samples = list(engines._samples(texts))
    assert 5 <= len(samples) - 1 <= 25


def test_samples_are_bounded_and_of_any_place() -> None:
    """At most 1,024 characters of a text, and not always its beginning."""
    texts = [f"{i}" + "".join(map(chr, range(0x4E00, 0x7E00))) for i in range(40)]
    windows = [next(engines._samples([text])) for text in texts]
    assert {len(window) for window in windows} == {engines.SAMPLE_CHARACTERS}
    assert len({window[1] for window in windows}) > 30


def test_texts_that_the_library_refuses_are_encoded_by_the_stock_one(small: Path, load_with: Load) -> None:
    """A limit of its regex engine costs time, not ids."""
    loaded = load_with(Changed("zebra", refuse=True))
    texts = ["a zebra", "and 漢字"]
    assert loaded.engine.startswith("fastokens")
    assert loaded.encode_batch(texts)[0].tolist() == ids_of(small, texts)


def test_an_added_token_that_is_not_special_is_found_in_text_as_before(tmp_path: Path) -> None:
    """`<tool>` stays one token, the end of a document stays text, as the stock library has it."""
    made = Tokenizer.from_str(small_bpe())
    made.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    folder = save_tokenizer(tmp_path / "t", made, {"eos_token": "<|endoftext|>"})
    ours, theirs = load_tokenizer(folder), load_tokenizer(folder, fast=False)
    assert ours.engine.startswith("fastokens")
    texts = ["a <tool> b", "<tool><tool>", "<|endoftext|><tool>", "<TOOL> <tool"]
    assert np.array_equal(ours.encode_batch(texts)[0], theirs.encode_batch(texts)[0])


def test_trial_texts_hold_every_known_trap() -> None:
    """Always the same texts, and among them the look-alikes of the tokenizer's own added tokens."""
    texts = trial_texts(["<x>"])
    assert texts == trial_texts(["<x>"])
    assert {"a" * 5_000, "a<x>b", "<x><x>"} <= set(texts)
    assert 300 < len(texts) < 2_000
    assert sum(len(text.encode()) for text in texts) < 500_000


@pytest.mark.parametrize("unit", ["a", "_", "漢", "qwertyuiopasdfghjklzxcvbnm"])
@pytest.mark.parametrize(("engine", "size"), [(fast, 400_000), (stock, 30_000)], ids=["fast", "stock"])
def test_endless_texts_take_time_in_proportion(engine: module.Tokenizer, size: int, unit: str) -> None:
    """Twice the characters without a border, twice the time, also where no text is cut; none is remembered."""

    def seconds(n: int) -> float:
        best = 9.0
        for turn in range(3):
            text = (unit * (n // len(unit) + 3))[turn : n + turn]
            begin = time.process_time()
            engine._engine.encode([text])
            best = min(best, time.process_time() - begin)
        return best

    half, whole = seconds(size), seconds(2 * size)
    assert whole < max(2.6 * half, 0.05)


FORK = """
import os, signal, sys
from tokenization.tokenizer import load_tokenizer
tasks = lambda: len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
loaded = load_tokenizer()
before = tasks()
long = "The quick brown fox. " * 4_000
ids, _ = loaded.encode_batch([long])
assert loaded.engine.startswith("fastokens"), loaded.engine
print(tasks() - before, flush=True)
child = os.fork()
if child == 0:
    signal.alarm(30)
    again = load_tokenizer()
    same = all((tokenizer.encode_batch([long])[0] == ids).all() for tokenizer in (loaded, again))
    named = all("a fork of the process" in tokenizer.engine for tokenizer in (loaded, again))
    os._exit(0 if same and named else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_encodes_with_the_stock_library_and_one_thread_is_used() -> None:
    """The thread pool of the fast library is dead in a fork: there nothing hangs, and the ids are the same."""
    chosen = ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS", "FASTOKENS_BPE_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    command = [sys.executable, "-W", "error", "-c", FORK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) <= 1, "one worker, for which the caller waits"


def test_importing_the_package_imports_no_fast_library() -> None:
    """It is imported with the first text that is encoded."""
    code = "import sys, tokenization.tokenizer as t; t.load_tokenizer().card(); sys.exit('fastokens' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("llama4", "tekken_240718", "mistral_v7")])
def test_known_tokenizers_have_a_fast_engine_with_the_ids_of_the_stock_library(name: str, test_data: Path) -> None:
    """GPT-2, Llama 3, Qwen, DeepSeek, tekken, and Mistral's SentencePiece: on pages in Chinese, Japanese and English."""
    loaded = load_tokenizer(known(name), eos=KNOWN[name][1])
    assert not loaded.engine.startswith("tokenizers")
    pages = [json.loads(line)["text"] for line in _lines(test_data / "4_langid/mixed_pages.jsonl.zst")][5::60]
    right = loaded._backend.encode_batch(pages, add_special_tokens=False)
    ids, lengths = loaded.encode_batch(pages)
    assert lengths.tolist() == [len(one.ids) for one in right]
    assert ids.tolist() == [i for one in right for i in one.ids]
    assert not loaded.encode_documents(pages).lost.any()
