"""py3langid's scores: equal to those of the package."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid.langid import LanguageIdentifier

from curation.filters.language.langid import NO_FEATURE, Py3langid
from quality_models.py3langid_file import read_py3langid
from tests.strategies import PIECES

STRANGE = [
    *"|a|A| |\0|12345|aB|NATO UND EU|NATO und EU|ΛΌΓΟΣ|МОСКВА 2020|МОСКВа|ǅ|ǅ A|ªA|ĸ A|İSTANBUL|J̌ J̌|STRASSE ẞ|Ⅷ|Ⓐ".split(
        "|"
    ),
    *"𝐀𝐁|ᏣᎳᎩ|ꭰ|中文|中文 ABC|中文 abc|日本語のテキスト|한국어|ไทย|हिन्दी|\u0301|e\u0301|ÉÀÜ|É|é|\ufffd|😀|𠀀".split("|"),
    *("the " * 1000, "THE " * 1000, "z", "x" * 70, "X" * 70, "X" * 63 + "é", "X" * 64 + "É"),
]


@cache
def theirs() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file("data/model.npz.xz", norm_probs=False)


@cache
def ours() -> Py3langid:
    return Py3langid(read_py3langid())


def check(lines: list[str]) -> None:
    """Lines are NFC, as the kernel expects them."""
    lines = [unicodedata.normalize("NFC", line) for line in lines]
    raw = [line.encode() for line in lines]
    offsets = np.cumsum([0, *map(len, raw)])
    scores = ours().scores(np.frombuffer(b"".join(raw), np.uint8), offsets[:-1], offsets[1:])
    assert scores.dtype == np.float32
    for line, found in zip(lines, scores, strict=True):
        expected = dict(theirs().rank(line))
        assert list(expected) == [] or set(expected) == set(ours().labels)
        np.testing.assert_allclose(
            found, [expected[label] for label in ours().labels], rtol=1e-5, atol=1e-4, err_msg=line
        )


def test_labels_are_those_of_the_package() -> None:
    """Each once: Serbian and Uzbek have two classes each."""
    assert list(ours().labels) == theirs().labels
    assert len(ours().labels) < len(theirs().nb_classes)


def test_strange_lines_score_as_in_the_package() -> None:
    """Capitals only, with and without characters that have no case; repeated features; no features."""
    check(STRANGE)


def test_real_lines_score_as_in_the_package(test_data: Path) -> None:
    """Lines of all 75 languages; headings in capitals among them."""
    path = test_data / "4_langid" / "sentences.jsonl.zst"
    if not path.is_file():
        pytest.skip(f"no sentences at {path}")
    raw = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(path.read_bytes()).read()
    rows = [json.loads(line) for line in raw.decode().splitlines()]
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(row["lang"], []).append(row["text"])
    assert len(lines) == 75
    check([text for texts in lines.values() for text in texts[:8]] + [texts[0].upper() for texts in lines.values()])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join), max_size=6))
def test_any_lines_score_as_in_the_package(lines: list[str]) -> None:
    """Whatever stands in a line."""
    check(lines)


def test_bytes_that_are_no_utf8_raise_nothing() -> None:
    """They are walked over like any others."""
    data = np.frombuffer(b"abc \xff\xfe def \xe4\xb8 ABC \xf0\x90", np.uint8)
    scores = ours().scores(data, np.array([0, 16, 19]), np.array([len(data), 20, 19]))
    assert np.isfinite(scores).all()
    assert (scores[2] == NO_FEATURE).all()


def test_no_lines() -> None:
    """No line is no row."""
    assert ours().scores(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)).shape[0] == 0
