"""Repeated runs of words."""

from __future__ import annotations

import pytest

from curation.filters.rules import repetition
from tests.rules_measures import measures

SEVEN = "one two three four five six seven"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("word", {}),
        ("every word once only here", {}),
        ("a b x a b y", {"top_word": 2 / 6, "top_2gram": 4 / 6}),
        ("A b, x; a B. y", {"top_word": 2 / 6, "top_2gram": 4 / 6}),
        ("plumber in town, plumber near me, best Plumber", {"top_word": 21 / 37}),
        # two 2-grams occur twice: the one that covers more counts
        ("a b x a b long er y long er", {"top_word": 8 / 18, "top_2gram": 12 / 18}),
        # the most frequent one, not the longest
        ("a b x a b y a b long er z long er", {"top_word": 3 / 21, "top_2gram": 6 / 21}),
        # occurrences that overlap count each character once
        ("a a a a", {"top_word": 1, "top_2gram": 1, "top_3gram": 1}),
        ("哈哈哈哈", {"top_word": 1, "top_2gram": 1, "top_3gram": 1}),
        (
            "x " * 12,
            {"top_word": 1, "top_2gram": 1, "top_3gram": 1, "top_4gram": 1}
            | {f"duplicate_{n}gram": 11 / 12 for n in range(5, 11)},
        ),
        (
            f"{SEVEN} between {SEVEN}",
            {"top_word": 10 / 61, "top_2gram": 18 / 61, "top_3gram": 26 / 61, "top_4gram": 32 / 61}
            | {f"duplicate_{n}gram": 27 / 61 for n in (5, 6, 7)},
        ),
    ],
)
def test_repetition(text: str, expected: dict[str, float]) -> None:
    """Shares of the words' characters; what is not named is 0."""
    found = measures([text], [repetition])[0]
    wanted = {column.name: expected.get(column.name, 0) for column in repetition.COLUMNS}
    assert found == {name: pytest.approx(value) for name, value in wanted.items()}


def test_lines_do_not_stop_a_run() -> None:
    """A phrase repeats however its lines are broken."""
    one, other = measures(["a b c\nd e f a b c d e f", "a b c d e f\na b c d\ne f"], [repetition])
    assert one == other
    assert one["duplicate_5gram"] == 0.5


@pytest.mark.parametrize("n_words", [3, 300, 30_000])
def test_tallies_that_are_shared_or_full_change_nothing(n_words: int) -> None:
    """The most frequent 2-gram is found however many others there are, and however often it occurs."""
    text = " ".join(f"w{i} x y" for i in range(n_words))
    found = measures([text], [repetition])[0]
    total = sum(len(f"w{i}") + 2 for i in range(n_words))
    assert found["top_2gram"] == pytest.approx(2 * n_words / total)
    assert found["top_3gram"] == 0
