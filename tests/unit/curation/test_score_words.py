"""Scores in words: what a person reads of lists, labels and numbers, whatever a verdict file holds."""

from __future__ import annotations

from typing import Any

import pytest

from curation.score_words import list_words, score_lines

LISTS: list[tuple[list[Any], str]] = [
    ([], "none"),
    (
        [{"language": "jpn_Jpan", "share": 0.71}, {"language": "zho_Hans", "share": 0.29}],
        "jpn_Jpan 71 %, zho_Hans 29 %",
    ),
    ([{"language": "jpn_Jpan", "share": None}], "jpn_Jpan none"),
    (
        [{"language": "a", "first": 0, "end": 12}, {"language": "b", "first": 12, "end": 13}],
        "lines 0-11 a, 12 b",
    ),
    ([{"language": "a", "first": 3, "end": 3}], "lines none at 3 a"),
    ([{"first": None, "end": None, "language": "a"}], "lines a"),
    (list(range(14)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"),
    ([None, 0.5, "x", True], "none, 0.5, x, True"),
]


@pytest.mark.parametrize(("items", "words"), LISTS)
def test_a_list_is_one_line(items: list[Any], words: str) -> None:
    """Shares in percent, ranges as people name them, the rest as it is; long ones are cut."""
    assert list_words(items).replace("\u00a0", " ") == words


SCORES: list[tuple[dict[str, Any], list[str]]] = [
    ({"language": "jpn_Jpan", "confidence": 0.98, "class": "agree"}, ["language jpn_Jpan 0.98 (agree)"]),
    ({"language": "und", "class": "no-language"}, ["language und (no-language)"]),
    ({"language": "und"}, ["language = und  (main language)"]),
    ({"fasttext": "ja", "fasttext_confidence": 0.5}, ["fasttext ja 0.5"]),
    ({"confidence": 0.98, "class": "agree"}, ["confidence = 0.98  (threshold 0.6)", "class = agree"]),
    ({"n_words": 3, "share": 0.25}, ["n_words = 3", "share = 0.25"]),
    ({"shares": [{"language": "eng_Latn", "share": 1.0}]}, ["shares eng_Latn 100 %"]),
]


@pytest.mark.parametrize(("scores", "lines"), SCORES)
def test_a_label_takes_its_confidence_and_class_along(scores: dict[str, Any], lines: list[str]) -> None:
    """Each score is said once, also where one of them is undefined."""
    limits = {"confidence": [0.6]} if "language" not in scores else {}
    assert list(score_lines(scores, limits, {"language": "main language"})) == lines
