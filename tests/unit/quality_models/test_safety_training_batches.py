"""Batches: every text once, within the budget; and places that put it together again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quality_models.safety_training_batches import MULTIPLE, batches, encoded, join, padded_places


@given(st.lists(st.integers(0, 70), max_size=60), st.sampled_from([1, 64, 500]), st.sampled_from([None, 1, 2]))
@settings(max_examples=80, deadline=None)
def test_every_text_is_in_one_batch_within_the_budget(lengths: list[int], budget: int, seed: int | None) -> None:
    """Padded tokens of a batch stay within the budget, but for a single text that is longer."""
    parts = batches(np.array(lengths, np.int64), budget, seed)
    assert sorted(at for part in parts for at in part.tolist()) == list(range(len(lengths)))
    for part in parts:
        width = -(-max(1, *(lengths[at] for at in part)) // MULTIPLE) * MULTIPLE
        assert len(part) == 1 or width * len(part) <= budget


def test_a_seed_draws_the_order() -> None:
    """The same seed, the same batches; another, others."""
    lengths = np.arange(1, 200) % 40
    first, again, other = ([part.tolist() for part in batches(lengths, 256, seed)] for seed in (1, 1, 2))
    assert first == again
    assert first != other


@given(st.lists(st.lists(st.integers(5, 99), min_size=1, max_size=20), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_places_put_texts_together(texts: list[list[int]]) -> None:
    """What lies end to end comes back text by text, and padding is told from tokens."""
    whole = encoded([np.array(text, np.int32) for text in texts])
    rows = np.arange(len(texts))[::-1].copy()
    places, real = padded_places(whole.offsets, rows)
    assert places.shape[1] % MULTIPLE == 0
    assert [whole.ids[line[there]].tolist() for line, there in zip(places, real, strict=True)] == texts[::-1]


def test_join_keeps_order() -> None:
    """The second part follows the first."""
    first, second = (
        encoded([np.array([1, 2], np.int32)]),
        encoded([np.array([3], np.int32), np.array([4, 5], np.int32)]),
    )
    both = join(first, second)
    assert (both.ids.tolist(), both.offsets.tolist()) == ([1, 2, 3, 4, 5], [0, 2, 3, 5])
    assert len(encoded([]).lengths) == 0
