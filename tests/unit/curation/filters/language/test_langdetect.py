"""langdetect's sums: equal to those of langdetect's own code, and its answers."""

from __future__ import annotations

import itertools
import json
import pickle
import types
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.language.langdetect import Langdetect, posterior
from quality_models.langdetect_profiles import FLOOR, read_profiles
from tests.guard_page import run_between_guard_pages
from tests.strategies import PIECES

STRANGE = [
    *"|a|A|ab|AB|abC|AbC|ABc|a b|A B| a|a | |\0|a\0b|a\u200bb|1,234.5|a\u2014b|«a»|a\u00a0b|a\u00b7b|½a|¿qué?".split(
        "|"
    ),
    *"NATO and UNESCO|NATOs|McDONALD|iPHONE|DNA-replikation|Été ÉTÉ|ΛΌΓΟΣ λόγος|МОСКВА Москва|ẞTRASSE".split("|"),
    *"İSTANBUL|İİ|ĲSSEL|ǅ ǄA|ȘTEFAN ștefan țară|CHÚNG TÔI chúng tôi|ỆỆ|ªº|ſſ ΑςΒ|𝐀𝐁c A𝐁|ỶY".split("|"),
    *"a\u0300n|A\u0300N|Vie\u0323\u0302t|e\u0301\u0300|\u0301a|o\u0321|Y\u0309Y|\u01a0\u0300|x\u0300|a\u0300".split(
        "|"
    ),
    *"こんにちは世界|カタカナ|ㄅㄆㄇ|ㆠ|한국어 문장|简体字和繁體字。|図書館、國家|\u3000全角\u3000|𠀀𠀁".split("|"),
    *"สวัสดีชาวโลก|नमस्ते दुनिया|سلام دنیا|مرحبا بالعالم|שלום עולם|Ελλάδα|Українська|বাংলা".split("|"),
    *("x" * 24, "x" * 25, "é" * 12, "é" * 13, "Donaudampfschifffahrtsgesellschaft " * 3),
]
"""Lines in which something could go wrong."""

ACCURACY = 1 / 8192
"""Half a step of a log probability: how far one sequence may be off."""


@cache
def ours() -> Langdetect:
    return Langdetect(read_profiles())


def spans(lines: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes, starts and ends of some lines, one after the other."""
    raw = [line.encode() for line in lines]
    offsets = np.cumsum([0, *map(len, raw)])
    return np.frombuffer(b"".join(raw), np.uint8), offsets[:-1], offsets[1:]


def sentences(folder: Path) -> Iterator[dict[str, str]]:
    path = folder / "4_langid" / "sentences.jsonl.zst"
    if not path.is_file():
        pytest.skip(f"no sentences at {path}")
    raw = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(path.read_bytes()).read()
    return (json.loads(line) for line in raw.decode().splitlines())


def small(word: str) -> str:
    """A word as the kernel reads it: small letters throughout if two capitals are side by side."""
    capital = [oracle().normalize(char).isupper() for char in word]
    if not any(map(all, itertools.pairwise(capital))):
        return word
    return "".join(
        char.lower() if is_capital and len(char.lower()) == 1 else char
        for char, is_capital in zip(word, capital, strict=True)
    )


class Oracle:
    """The sums, by langdetect's own code, which here skips no capitals."""

    def __init__(self) -> None:
        from langdetect import detector
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

        class Attentive(detector.NGram):  # type: ignore[misc]
            capitalword = property(lambda self: False, lambda self, value: None)

        self.extract = types.FunctionType(
            detector.Detector._extract_ngrams.__code__, {**vars(detector), "NGram": Attentive}
        )
        self.normalize, self.normalize_vi = Attentive.normalize, Attentive.normalize_vi
        self.factory = DetectorFactory()
        self.factory.load_profile(PROFILES_DIRECTORY)
        self.columns = [self.factory.langlist.index(label) for label in ours().labels]

    def sums(self, line: str) -> tuple[np.ndarray, int]:
        text, words, blank = self.normalize_vi(line), [""], True
        for char in text:  # words in the sense of langdetect, and what is between them
            was_blank, blank = blank, self.normalize(char) == " "
            if was_blank == blank:
                words[-1] += char
            else:
                words.append(char)
        detector = self.factory.create()
        detector.text = "".join(map(small, words))
        grams = self.extract(detector)
        table = np.array([self.factory.word_lang_prob_map[gram] for gram in grams]).reshape(-1, len(self.columns))
        return np.log(table + FLOOR).sum(axis=0)[self.columns], len(grams)


@cache
def oracle() -> Oracle:
    return Oracle()


def check(lines: list[str]) -> None:
    sums, counts = ours().log_likelihoods(*spans(lines))
    assert sums.dtype == np.float32
    for line, found, count in zip(lines, sums, counts, strict=True):
        expected, n = oracle().sums(line)
        assert count == n, line
        assert np.abs(found - expected).max() <= n * ACCURACY + 1e-6 * np.abs(expected).max(), line


def test_strange_lines_sum_as_langdetect_sums_them() -> None:
    """Capitals, combining marks, controls, every kind of script, words as long as the cache takes and longer."""
    check(STRANGE)


def test_real_lines_of_every_language_sum_as_langdetect_sums_them(test_data: Path) -> None:
    """The sum and the number of sequences of real lines of 75 languages, capitals in small letters."""
    lines: dict[str, list[str]] = {}
    for row in sentences(test_data):
        lines.setdefault(row["lang"], []).append(row["text"])
    assert len(lines) == 75
    check([text for texts in lines.values() for text in texts[:10]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join), max_size=6))
def test_any_lines_sum_as_langdetect_sums_them(lines: list[str]) -> None:
    """Whatever stands in a line."""
    check(lines)


def test_the_cache_changes_nothing() -> None:
    """A line has the same sums, bit for bit, whatever lines were read before it, and as a part of a larger text."""
    words = [f"{a}{b}{c}" for a in "bcdfgklmnprstv" for b in ("ai", "é", "oo", "ий") for c in ("n", "nts", "ство", "")]
    lines = [" ".join(words[i : i + 9]) for i in range(0, 3 * len(words), 7)] * 40
    together = ours().log_likelihoods(*spans(lines))
    for i in range(0, len(lines), 97):
        alone = ours().log_likelihoods(*spans([lines[i]]))
        assert (alone[0][0] == together[0][i]).all()
        assert alone[1][0] == together[1][i]


def test_threads_share_one_model() -> None:
    """Calls at the same time do not see each other's words, and a copy for another process answers the same."""
    lines = [f"{word} und {word}s sagen {i} mal слово {word[::-1]}" for i, word in enumerate(STRANGE * 20)]
    parts = [spans(lines[first : first + 50]) for first in range(0, len(lines), 50)]
    fresh = Langdetect(read_profiles())
    alone = [fresh.log_likelihoods(*part)[0] for part in parts]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda part: ours().log_likelihoods(*part)[0], parts))
    other = pickle.loads(pickle.dumps(fresh))
    for part, found, expected in zip(parts, at_once, alone, strict=True):
        assert np.array_equal(found, expected)
        assert np.array_equal(other.log_likelihoods(*part)[0], expected)


@pytest.mark.parametrize("text", ["汉字的文章", "word ", "ตัวอักษรไทย"])
def test_long_lines_do_not_overflow(text: str) -> None:
    """Twice as long is twice as likely to be each language, also in lines of a megabyte."""
    n = 300_000 // len(text)
    (short, long), counts = ours().log_likelihoods(*spans([text * n, text * 2 * n]))
    assert counts[0] > 200_000
    np.testing.assert_allclose(long, 2 * short, rtol=1e-4)


def test_invalid_utf8_is_read_as_replacement_characters() -> None:
    """Bytes that are no UTF-8 raise nothing, and their neighbours keep their meaning."""
    data = np.frombuffer(b"abc \xff\xfe def \xe4\xb8", np.uint8)
    sums, counts = ours().log_likelihoods(data, np.array([0]), np.array([len(data)]))
    expected, n = oracle().sums("abc \ufffd\ufffd def \ufffd")
    assert counts[0] == n
    np.testing.assert_allclose(sums[0], expected, rtol=1e-4)


def test_top_names_the_likeliest_or_none() -> None:
    """The column of the largest sum and its posterior; -1 and 0 where nothing is known."""
    lines = ["This is an English sentence about nothing.", "Это предложение на русском языке", "12345 !!", ""]
    best, share = ours().top(*spans(lines))
    assert [ours().labels[i] if i >= 0 else "-" for i in best] == ["en", "ru", "-", "-"]
    assert (best.dtype, share.dtype) == (np.int32, np.float32)
    assert (share[:2] > 0.9).all()
    assert (share[2:] == 0).all()
    sums, counts = ours().log_likelihoods(*spans(lines))
    np.testing.assert_allclose(posterior(sums, counts).sum(axis=1), [1, 1, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(posterior(sums, counts).max(axis=1), share, rtol=1e-6)


def test_no_byte_outside_of_the_texts_is_read() -> None:
    """At the start and the end of the memory that may be read."""
    run_between_guard_pages("""
from curation.filters.language.langdetect import Langdetect
from curation.filters.language.langid import Py3langid
from quality_models.langdetect_profiles import read_profiles
from quality_models.py3langid_file import read_py3langid
ours = Langdetect(read_profiles()).log_likelihoods, Py3langid(read_py3langid()).scores
texts = ["a", "word", "WORD", "two words", "é", "дом", "a\\u0300", "漢字", "한", "x" * 70, "É" * 40, "word " * 30]
for raw in [*(text.encode() for text in texts), b"\\xf0", b"abc\\xe4\\xb8", b"a\\xcc"]:
    for where in ("start", "end"):
        data = put(raw, where)
        for sums in ours:
            sums(data, np.array([0]), np.array([len(raw)]))
print("visited")
""")


def test_no_lines() -> None:
    """No line is no row."""
    sums, counts = ours().log_likelihoods(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert sums.shape == (0, 55)
    assert counts.shape == (0,)
    assert ours().top(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))[0].shape == (0,)


def test_it_answers_as_langdetect_answers(test_data: Path) -> None:
    """On sentences of 60 characters and more in langdetect's languages: the same language for 99 of 100."""
    from langdetect import DetectorFactory, detect

    known = {label.partition("-")[0] for label in ours().labels}
    lines = [
        unicodedata.normalize("NFC", row["text"])
        for row in sentences(test_data)
        if row["lang"] in known and len(row["text"]) >= 60
    ][::12]
    DetectorFactory.seed = 0
    theirs = [detect(line) for line in lines]
    answers = [ours().labels[i] for i in ours().top(*spans(lines))[0]]
    same = [a == b for a, b in zip(answers, theirs, strict=True)]
    assert len(lines) > 100
    assert np.mean(same) >= 0.99
