"""Counting, choosing and smoothing of n-grams, against slow code that follows the definitions."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from quality_models.ngram_counts import UNKNOWN, Counted, count_ngrams
from quality_models.ngram_smoothing import Estimated, chosen, discounts, estimate, fitting, weights


def documents(seed: int = 1, n: int = 40) -> list[str]:
    """Texts of few letters, so that n-grams repeat."""
    chance = random.Random(seed)
    words = ["ab", "abc", "cab", "bad", "da", "cd", "e", "face"]
    return [" ".join(chance.choice(words) for _ in range(chance.randint(1, 30))) for _ in range(n)]


def encoded(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    codes = np.array([ord(char) for text in texts for char in text], np.uint32)
    return codes, np.concatenate([np.zeros(1, np.int64), np.cumsum([len(text) for text in texts])])


def names(counted: Counted, n: int) -> list[tuple[int, ...]]:
    """The n-grams of order n, spelt out as numbers."""
    level = counted.levels[n - 1]
    if n == 1:
        return [(last,) for last in level.last.tolist()]
    below = names(counted, n - 1)
    return [(*below[prefix], last) for prefix, last in zip(level.prefix.tolist(), level.last.tolist(), strict=True)]


def slow_counts(texts: list[str], n: int, numbers: dict[str, int]) -> Counter[tuple[int, ...]]:
    """N-grams of texts with a blank before each; the blank itself is never the last of one."""
    found: Counter[tuple[int, ...]] = Counter()
    for text in texts:
        ids = [numbers.get(char, UNKNOWN) for char in f" {text}"]
        found.update(tuple(ids[i : i + n]) for i in range(len(ids) - n + 1) if i + n > 1)
    return found


@pytest.mark.parametrize("least", [1, 2, 5])
def test_counts_are_those_of_a_slow_count(least: int) -> None:
    """Every n-gram that occurs `least` times is listed with its count, its prefix, its suffix; of the others their sum."""
    texts = documents()
    counted = count_ngrams(*encoded(texts), 4, least=least, least_character=1)
    numbers = {chr(code): i for i, code in enumerate(counted.characters.tolist(), 1)}
    for n in range(1, 5):
        slow = slow_counts(texts, n, numbers)
        kept = {gram: count for gram, count in slow.items() if count >= (least if n > 2 else 1)}
        level = counted.levels[n - 1]
        listed = dict(zip(names(counted, n), level.counts.tolist(), strict=True))
        assert {gram: count for gram, count in listed.items() if count} == kept
        assert level.rare == sum(slow.values()) - sum(kept.values())
        if n > 1:
            below = names(counted, n - 1)
            assert [below[row] for row in level.suffix] == [gram[1:] for gram in names(counted, n)]
            followed: Counter[tuple[int, ...]] = Counter()
            for gram, count in slow.items():
                followed[gram[:-1]] += count
            assert level.followed.tolist() == [followed[gram] for gram in below]


def test_rare_characters_are_one_unknown_character() -> None:
    """A character that occurs less often than asked has no number; a blank always has one."""
    codes, offsets = encoded(["aaaa", "aab", "xay"])
    counted = count_ngrams(codes, offsets, 2, least=1, least_character=2)
    assert counted.characters.tolist() == [ord(" "), ord("a")]
    assert counted.levels[0].counts.tolist() == [3, 0, 7]


def test_no_text_is_no_model() -> None:
    """Nothing can be counted in nothing."""
    with pytest.raises(ValueError, match="expected text"):
        count_ngrams(np.zeros(0, np.uint32), np.zeros(2, np.int64), 3)


def kneser_ney(counted: Counted, kept: list[np.ndarray]) -> dict[int, dict[tuple[int, ...], float]]:
    """p of each kept n-gram by order, by the formulas alone."""
    orders = range(1, len(counted.levels) + 1)
    raw = {n: dict(zip(names(counted, n), counted.levels[n - 1].counts.tolist(), strict=True)) for n in orders}
    listed = {n: [g for g, k in zip(names(counted, n), kept[n - 1].tolist(), strict=True) if k] for n in orders}
    found: dict[int, dict[tuple[int, ...], float]] = {0: defaultdict(lambda: 1 / len(raw[1]))}
    for n in orders:
        counts = dict(raw[n])
        for longer in listed.get(n + 1, []):
            counts[longer[1:]] -= raw[n + 1][longer] - 1
        off = (0.0, *discounts(np.array(list(counts.values())), counted.levels[n - 1].rare))
        whole: Counter[tuple[int, ...]] = Counter()
        taken: dict[tuple[int, ...], float] = defaultdict(float)
        for gram, count in counts.items():
            whole[gram[:-1]] += count
        for gram in listed[n]:
            taken[gram[:-1]] += max(counts[gram] - off[min(counts[gram], 3)], 0) / whole[gram[:-1]]
        found[n] = {
            gram: max(counts[gram] - off[min(counts[gram], 3)], 0) / whole[gram[:-1]]
            + (1 - taken[gram[:-1]]) * found[n - 1][gram[1:]]
            for gram in listed[n]
        }
    return found


def spelt(model: Estimated, n: int) -> list[tuple[int, ...]]:
    grams = model.grams[n - 1]
    if n == 1:
        return [(last,) for last in grams.last.tolist()]
    below = spelt(model, n - 1)
    return [(*below[prefix], last) for prefix, last in zip(grams.prefix.tolist(), grams.last.tolist(), strict=True)]


@pytest.mark.parametrize("room", [10_000.0, 400.0, 150.0])
def test_probabilities_follow_the_formulas(room: float) -> None:
    """Whole or pruned, p of each n-gram is that of the definition, worked out slowly."""
    counted = count_ngrams(*encoded(documents()), 4, least=1, least_character=1)
    kept = fitting(counted.levels, [0.0, 1.0, 1.0, 1.0], room)
    model = estimate(counted, kept)
    slow = kneser_ney(counted, kept)
    for n in range(1, 5):
        assert np.exp(model.grams[n - 1].log_p) == pytest.approx([slow[n][gram] for gram in spelt(model, n)])


@pytest.mark.parametrize("room", [10_000.0, 300.0, 100.0, 0.0])
def test_probabilities_after_any_context_sum_to_one(room: float) -> None:
    """After every kept context the probabilities of all characters, listed or backed off to, sum to 1."""
    counted = count_ngrams(*encoded(documents(2)), 4, least=1, least_character=3)
    model = estimate(counted, fitting(counted.levels, [0.0, 1.0, 1.0, 1.0], room))
    p = [dict(zip(spelt(model, n), model.grams[n - 1].log_p.tolist(), strict=True)) for n in range(1, 5)]
    backoff = [dict(zip(spelt(model, n), model.grams[n - 1].log_backoff.tolist(), strict=True)) for n in range(1, 5)]

    def log_p(context: tuple[int, ...], last: int) -> float:
        n = len(context) + 1
        if (*context, last) in p[n - 1]:
            return p[n - 1][*context, last]
        return backoff[n - 2].get(context, 0.0) + log_p(context[1:], last)

    contexts = [(), *(gram for n in (1, 2, 3) for gram in spelt(model, n)), (1, 0, 1)]
    for context in contexts:
        assert sum(np.exp(log_p(context, last)) for last in range(len(model.grams[0].last))) == pytest.approx(1)


@pytest.mark.parametrize("room", [500.0, 200.0, 60.0])
def test_what_is_kept_fits_and_is_closed(room: float) -> None:
    """The n-grams fit the room; what a kept one begins and ends with is kept; a little more room keeps no less."""
    counted = count_ngrams(*encoded(documents(3)), 4, least=1, least_character=1)
    kept = fitting(counted.levels, [0.0, 1.0, 1.0, 1.0], room)
    assert sum(int(which.sum()) for which in kept[1:]) <= room
    for n in range(1, 4):
        level = counted.levels[n]
        assert kept[n - 1][level.prefix[kept[n]]].all()
        assert kept[n - 1][level.suffix[kept[n]]].all()
    more = fitting(counted.levels, [0.0, 1.0, 1.0, 1.0], room * 1.5)
    assert all((b | ~a).all() for a, b in zip(kept, more, strict=True))


def test_weights_choose_what_its_suffix_does_not_say() -> None:
    """An n-gram that is as likely after its context as without it weighs nothing; a surprising one does."""
    counted = count_ngrams(*encoded(["abababab" * 20 + "aabb" * 40]), 2, least=1, least_character=1)
    said = weights(counted.levels)
    assert chosen(counted.levels, said, np.inf)[1].sum() == 0
    assert said[1].argmax() in [i for i, gram in enumerate(names(counted, 2)) if gram[0] != gram[1]]


@pytest.mark.parametrize(
    ("counts", "rare", "expected"),
    [
        ([1] * 8 + [2] * 4 + [3] * 2 + [4], 0, (0.5, 1.25, 2.0)),
        ([2] * 4 + [3] * 2 + [4], 8, (0.5, 1.25, 2.0)),
        ([5, 6, 7], 0, (0.5, 1.0, 1.5)),
        ([], 0, (0.5, 1.0, 1.5)),
        ([1] * 8 + [2] * 4 + [3] * 100 + [4], 0, (0.5, 1.0, 1.5)),
    ],
)
def test_discounts_are_those_of_chen_and_goodman(counts: list[int], rare: int, expected: tuple[float, ...]) -> None:
    """From how many n-grams occur once to four times; fixed ones where that cannot be."""
    assert discounts(np.array(counts, np.int64), rare) == pytest.approx(expected)
