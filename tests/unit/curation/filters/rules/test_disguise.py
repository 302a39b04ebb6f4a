"""Disguised letters: alphabets mixed within a word, styled letters, letters crossed out; not languages side by side."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules.disguise import measure
from curation.filters.rules.parts import parts_of


def disguised(text: str) -> float | None:
    """The measure of one text."""
    column = measure(parts_of(pa.array([text], pa.large_string())))["disguised_letters"]
    return None if np.ma.getmaskarray(column)[0] else float(column[0])


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("зapaботок", 1.0),  # a, p, a are Latin
        ("зapaботок всем", 9 / 13),
        ("𝐅𝐫𝐞𝐞 money", 4 / 9),
        ("飞͇机͇号码", 2 / 4),
        ("Web-сервер и SQL-запрос", 0.0),
        ("Сервер Apache работает", 0.0),
        ("παράδειγμα example", 0.0),
        ("µm α-x 5µ", 0.0),  # two characters are a unit or a formula
        ("naïve façade Ångström", 0.0),
        ("Tiếng Việt có dấu", 0.0),
        ("हिन्दी में लिखा", 0.0),
        ("漢字とカタカナとABC", 0.0),
        ("हिन्दीabc ไทยabc", 0.0),
    ],
)
def test_share_of_letters(text: str, share: float) -> None:
    """Letters in disguise over all letters."""
    assert disguised(text) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("text", ["", "123 !?", "\u0301\u0301"])
def test_without_letters_it_is_undefined(text: str) -> None:
    """No letters: null, not 0."""
    assert disguised(text) is None
