"""The reference page tells the truth: its examples run, and it names every class and function."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import curation.text
from curation.text import CharClass, buffers, word_spans

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "text.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\| `([^`]*)` \| ((?:`[^`]*` ?)+)\|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("text", "words"), EXAMPLES)
def test_examples_of_words(text: str, words: str) -> None:
    """Each text of the page's table has the words that stand beside it."""
    data, offsets = buffers(pa.array([text], pa.large_string()))
    spans = word_spans(data, offsets)
    found = [text.encode()[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]

    assert re.findall("`([^`]*)`", words) == found


def test_the_page_is_whole() -> None:
    """Every class has a row and every public function and constant is named."""
    assert len(EXAMPLES) >= 11
    for char_class in CharClass:
        assert f"\n| {char_class.name} | " in PAGE
    for name in set(curation.text.__all__) - {"Role"}:
        assert re.search(rf"`[^`]*\b{name}\b|@{name}\b", PAGE), name
