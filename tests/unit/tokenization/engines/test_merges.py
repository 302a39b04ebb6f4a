"""The compiled merges give the stock library's ids, for any vocabulary, on any text, or do not take the definition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tests.known_tokenizers import KNOWN, known
from tests.strategies import hostile_text, markup_text
from tests.token_files import save_tokenizer
from tokenization.engines import merge_kernel
from tokenization.engines.merge_kernel import HANDFUL, KEY_BYTES, MOST_IDS, SHORT
from tokenization.engines.merges import ENTRIES, Merges, read_merges
from tokenization.tokenizer import load_tokenizer
from tokenization.trials import PIECES, trial_texts

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LETTERS = "▁abé漢😀"
HALVES = [
    *(("▁", "a"), ("a", "b"), ("b", "a"), ("a", "a"), ("aa", "aa"), ("aa", "a"), ("ab", "ab"), ("▁a", "b"), ("▁", "▁")),
    *(
        ("▁▁", "▁"),
        ("é", "漢"),
        ("漢", "漢"),
        ("漢漢", "é"),
        ("😀", "😀"),
        ("b", "▁"),
        ("abab", "a"),
        ("a", "é"),
        ("▁a", "aa"),
    ),
]
"""Merges of a small model, in the order of their ranks."""


def small_model(halves: Sequence[tuple[str, str]] = HALVES, letters: str = LETTERS) -> Tokenizer:
    """SentencePiece's BPE of a few letters."""
    merges = list(dict.fromkeys(halves))
    tokens = dict.fromkeys(["<unk>", "<s>", "</s>", *BYTES, *letters, *(left + right for left, right in merges)])
    vocabulary = {token: index for index, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.encode_special_tokens = True
    return made


def engine_of(library: Tokenizer) -> Merges:
    return read_merges(json.loads(library.to_str()))


def equal(engine: Merges, library: Tokenizer, texts: Sequence[str]) -> None:
    """Ids of both, for the texts that the engine takes."""
    texts = [text for text in texts if engine.takes(text)]
    ids, lengths = engine.encode(texts)
    assert lengths.sum() == len(ids)
    rows = np.split(ids, np.cumsum(lengths)[:-1]) if texts else []
    for text, row, right in zip(texts, rows, library.encode_batch(texts, add_special_tokens=False), strict=True):
        assert row.tolist() == right.ids, text[:200]


@st.composite
def some_halves(draw: st.DrawFn, letters: str = LETTERS) -> list[tuple[str, str]]:
    """Merges of what the letters and the merges before have made, in a random order of ranks."""
    tokens, halves = list(letters), []
    for _ in range(draw(st.integers(0, 30))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if len(left + right) <= 6 and left + right not in tokens:
            tokens.append(left + right)
        halves.append((left, right))
    ranked = draw(st.permutations(halves)) if draw(st.booleans()) else halves
    return [half for half in ranked if half[0] + half[1] in tokens]


some_text = st.text(st.sampled_from([*LETTERS, *"ab▁ ", "x", "\0", "é", "\U0010ffff"]), max_size=90)


@pytest.mark.parametrize("n_merges", range(6))
def test_vocabularies_of_hardly_any_merges(n_merges: int) -> None:
    """A table of no words was read and written beyond its end: the process crashed now and then."""
    library = small_model(HALVES[:n_merges])
    engine = engine_of(library)
    assert min(len(table) for table in engine._tables) > 0
    equal(engine, library, ["", "a", "ab aab", LETTERS * 40, "x😀"])


@settings(max_examples=40, deadline=None)
@given(some_halves(), st.lists(some_text, min_size=1, max_size=5), st.booleans())
def test_any_merges_give_the_ids_of_the_stock_library(
    halves: list[tuple[str, str]], texts: list[str], blanks_cut: bool
) -> None:
    """Made-up vocabularies, in which every kind of overlap happens, cut at blanks or not."""
    library = small_model(halves)
    library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=blanks_cut)
    equal(engine_of(library), library, texts)


@settings(max_examples=150, deadline=None)
@given(some_halves("abc"), st.text(st.sampled_from("abc"), min_size=2, max_size=40))
@example([("b", "c"), ("a", "b"), ("bc", "a"), ("a", "bc")], "abca")  # the pair a b is gone when its turn comes
def test_the_heap_merges_what_the_search_would(halves: list[tuple[str, str]], text: str) -> None:
    """Long texts' way of merging on short ones, and without cutting them: the stock library's ids."""
    library = small_model(halves, "abc▁")
    library.pre_tokenizer = None
    ids = np.array([library.token_to_id(letter) for letter in text])
    n = merge_kernel._merge_long(ids, len(ids), engine_of(library)._tables)
    assert ids[:n].tolist() == library.encode(text, add_special_tokens=False).ids


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_long_texts_have_the_ids_of_short_ones_way_of_merging(seed: int) -> None:
    """With the heap as without: lengths on both sides of every limit of the kernel, more pieces than are cut at once."""
    dice = np.random.default_rng(seed)
    lengths = [n + d for n in (HANDFUL, SHORT, KEY_BYTES, MOST_IDS, 300) for d in (-1, 0, 1)]
    texts = ["".join(dice.choice(list("ab é漢"), n)) for n in lengths]
    equal(small, library_of_small, [*texts, *("ab" * n for n in lengths), *("x" * n for n in lengths)])


library_of_small = small_model()
small = engine_of(library_of_small)

BLANKS: Mapping[str, tuple[Any, Any]] = {
    "none": (None, None),
    "replaced": (normalizers.Replace(" ", "▁"), None),
    "prepended": (normalizers.Prepend("▁"), None),
    "Llama 2": (normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None),
    "the other order": (normalizers.Sequence([normalizers.Replace(" ", "▁"), normalizers.Prepend("▁")]), None),
    "first": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "always, split": (None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True)),
    "never": (None, pre_tokenizers.Metaspace(prepend_scheme="never", split=False)),
    "both": (normalizers.Prepend("▁"), pre_tokenizers.Metaspace(prepend_scheme="always", split=True)),
}


@pytest.mark.parametrize("case", BLANKS)
def test_blanks_become_what_the_stock_library_makes_of_them(case: str) -> None:
    """One before the text or none, where it begins with a blank, with the mark itself, or is empty."""
    library = small_model()
    library.normalizer, library.pre_tokenizer = BLANKS[case]
    texts = ["", " ", "  ", "▁", "▁▁ ▁", "a", " a", "  a", "▁a", "a b", "a  b", "a   b ", "\n a", "ab ", "é 漢", "b▁b"]
    equal(engine_of(library), library, texts)


OTHERS: Mapping[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "unigram": ("Unigram, not BPE", lambda data: data["model"].update(type="Unigram")),
    "dropout": ("has dropout", lambda data: data["model"].update(dropout=0.1)),
    "suffix": ("has end_of_word_suffix", lambda data: data["model"].update(end_of_word_suffix="</w>")),
    "prefix": ("has continuing_subword_prefix", lambda data: data["model"].update(continuing_subword_prefix="##")),
    "words": ("has ignore_merges", lambda data: data["model"].update(ignore_merges=True)),
    "no bytes": ("not every byte", lambda data: data["model"].update(byte_fallback=False)),
    "a byte less": ("not every byte", lambda data: data["model"]["vocab"].pop("<0x7F>")),
    "bytes merge": ("a byte is merged", lambda data: data["model"]["merges"].append(["<0x41>", "a"])),
    "no mark": ("▁ is no token", lambda data: data["model"]["vocab"].pop("▁")),
    "NFC": ("the normaliser NFC", lambda data: data.update(normalizer={"type": "NFC"})),
    "two blanks": (
        "the normaliser Prepend",
        lambda data: data.update(
            normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}] * 2}
        ),
    ),
    "another splitter": ("pre-tokeniser is Digits", lambda data: data.update(pre_tokenizer={"type": "Digits"})),
    "another mark": ("pre-tokeniser is Metaspace", lambda data: data["pre_tokenizer"].update(replacement="_")),
    "blank tokens": (
        "nothing but blanks",
        lambda data: data["added_tokens"].append({"content": "▁▁", "special": False}),
    ),
    "many tokens": (
        "40 added tokens",
        lambda data: data["added_tokens"].extend({"content": f"{i}x", "special": False} for i in range(40)),
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_definitions_are_not_taken(case: str) -> None:
    """Whatever changes more than blanks, cuts or joins otherwise is left to the stock library, and the reason said."""
    reason, change = OTHERS[case]
    data = json.loads(library_of_small.to_str())
    change(data)
    with pytest.raises(ValueError, match=reason):
        read_merges(data)


def test_merges_written_as_one_string_are_those_in_two() -> None:
    """Older files say `a b`."""
    data = json.loads(library_of_small.to_str())
    data["model"]["merges"] = [" ".join(merge) for merge in data["model"]["merges"]]
    assert read_merges(data).encode(["abab aa"])[0].tolist() == small.encode(["abab aa"])[0].tolist()


def test_texts_that_spell_an_added_token_are_encoded_by_the_stock_library(tmp_path: Path) -> None:
    """Also `▁<tool>`, found only after blanks are replaced; the texts around them are ours, and the order stays."""
    library = small_model()
    library.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("a▁<maker>", normalized=True)])
    folder = save_tokenizer(tmp_path / "t", library, {"eos_token": "</s>"})
    ours, theirs = load_tokenizer(folder), load_tokenizer(folder, fast=False)
    assert ours.engine.startswith("compiled merges")
    texts = ["ab", "a<tool>b", "", "ba ba", "a <maker>", "<tool>", "<TOOL>", "<s>", "</s>ab", "ab"]
    ids, lengths = ours.encode_batch(texts)
    right, their_lengths = theirs.encode_batch(texts)
    assert ids.tolist() == right.tolist()
    assert lengths.tolist() == their_lengths.tolist()


def test_the_pieces_seen_before_are_compared_byte_by_byte() -> None:
    """With two entries for all hashes, each piece drives another one out, and none takes another's ids."""
    library = small_model()
    engine = engine_of(library)
    engine._tables = engine._tables._replace(seen=np.zeros(16, np.uint64))
    dice = np.random.default_rng(1)
    texts = [" ".join("".join(dice.choice(list("ab漢"), dice.integers(1, 16))) for _ in range(60)) for _ in range(20)]
    equal(engine, library, [*texts, *texts])
    assert small._tables.seen.size == 8 * ENTRIES


def test_no_texts_and_texts_that_are_no_unicode() -> None:
    """Nothing in, nothing out; a lone surrogate is refused, as the caller expects."""
    assert [part.tolist() for part in small.encode([])] == [[], []]
    assert [part.tolist() for part in small.encode(["", ""])] == [[], [0, 0]]
    with pytest.raises(ValueError, match="surrogates"):
        small.encode(["a\ud800"])


@pytest.fixture(scope="module", params=["mistral_v1", "mistral_v3"])
def mistral(request: pytest.FixtureRequest) -> tuple[Merges, Tokenizer]:
    """The compiled merges and the stock library of a SentencePiece model."""
    path = known(request.param)
    library = load_tokenizer(path, eos=KNOWN[request.param][1])._backend
    return engine_of(library), library


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(hostile_text, markup_text, st.lists(st.sampled_from(PIECES)).map("".join)), max_size=8))
def test_hostile_texts_have_the_ids_of_the_stock_library(mistral: tuple[Merges, Tokenizer], texts: list[str]) -> None:
    """Real vocabularies on what hurts."""
    equal(*mistral, texts)


def test_trials_and_real_texts_have_the_ids_of_the_stock_library(
    mistral: tuple[Merges, Tokenizer], test_data: Path
) -> None:
    """All trial texts; sentences in 75 languages; the first 30 documents of the crawl."""
    texts = trial_texts([])
    with zstandard.open(test_data / "4_langid/sentences.jsonl.zst", "rt", encoding="utf-8") as file:
        texts += [json.loads(line)["text"] for line in file][3::30]
    with zstandard.open(test_data / "2_text/crawl-00.jsonl.zst", "rt", encoding="utf-8") as file:
        texts += [json.loads(next(file))["text"] for _ in range(30)]
    equal(*mistral, texts)


@pytest.mark.parametrize("unit", ["7", "a", "漢字好学", "/+Ab9", " ", "\n", "_", "ไทย", "😀", "\0"])
def test_endless_texts_take_time_in_proportion(mistral: tuple[Merges, Tokenizer], unit: str) -> None:
    """One character or one word repeated to 200 and 400 kB; the ids of 10,000 characters are those of the stock library."""
    engine, library = mistral
    equal(engine, library, [unit * (10_000 // len(unit)), "x"])
    engine.encode([unit])

    def seconds(n: int) -> float:
        text, best = unit * (n // len(unit.encode())), 9.0
        for _ in range(3):
            begin = time.process_time()
            engine.encode([text])
            best = min(best, time.process_time() - begin)
        return best

    half, whole = seconds(200_000), seconds(400_000)
    assert whole < max(2.6 * half, 0.02)


FORK = """
import os, signal, sys
import numpy as np
from tests.unit.tokenization.engines.test_merges import small
right = small.encode(["abab aa"] * 50)[0]
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(0 if small.here() and np.array_equal(small.encode(["abab aa"] * 50)[0], right) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_goes_on() -> None:
    """No thread is lost in a fork, so the child works as its parent does."""
    repo = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=90, cwd=repo)
    assert (done.returncode, done.stderr) == (0, "")


def test_kernels_hold_the_interpreter_s_lock() -> None:
    """Two threads must not write the pieces seen before at once."""
    assert not merge_kernel.encode.targetoptions.get("nogil", False)  # type: ignore[attr-defined]


def test_a_spawned_process_encodes_as_this_one(tmp_path: Path) -> None:
    """Another process, with the machine code from the cache, gives the same ids."""
    folder = save_tokenizer(tmp_path / "t", small_model(), {"eos_token": "</s>"})
    code = (
        "import sys; from tokenization.tokenizer import load_tokenizer; t = load_tokenizer(sys.argv[1]); "
        "print(t.engine.split()[0], *t.encode_batch(['abab aa 漢漢é'])[0])"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=90, env={**os.environ})
    ids = small_model().encode("abab aa 漢漢é", add_special_tokens=False).ids
    assert done.stdout.split() == ["compiled", *map(str, ids)]


def test_the_decoder_of_sentencepiece_proves_what_the_merges_made(tmp_path: Path) -> None:
    """End to end: a text that begins with a blank loses it in the decoder, and nothing else is lost."""
    library = small_model()
    library.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", library, {"eos_token": "</s>"}))
    texts = ["ab", " ab", "  ab", "漢x\0", "", "a▁b", "\u0301"]
    encoded = loaded.encode_documents(texts)
    assert encoded.lost.tolist() == [0, 1, 1, 0, 0, 1, 0]
    assert encoded.unknown.tolist() == [0] * len(texts)
