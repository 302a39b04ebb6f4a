"""Windows over a document's tokens, batches of fixed shapes, and the text that tokens say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quality_models.lm_batches import batches, shapes
from quality_models.windows import WindowRule, character_ends, spread, windows_of

ALL = 10**9


@st.composite
def rules(draw: st.DrawFn) -> WindowRule:
    window = draw(st.integers(2, 40))
    bos = draw(st.sampled_from(["every_window", "document", "none"]))
    return WindowRule(window, draw(st.integers(1, window - 1)), bos, ALL)


@given(rule=rules(), n_tokens=st.integers(0, 300))
def test_every_token_is_scored_once_with_enough_context(rule: WindowRule, n_tokens: int) -> None:
    """Scored parts follow each other without gap; no window is longer than the rule; context is what the rule promises."""
    windows = windows_of(n_tokens, rule)
    scored = [place for window in windows for place in range(window.first, window.stop)]
    assert scored == list(range(0 if rule.bos != "none" else 1, n_tokens))
    for index, window in enumerate(windows):
        assert 0 <= window.start <= window.first < window.stop <= n_tokens
        assert window.length <= rule.window
        assert window.bos == (rule.bos == "every_window" or (rule.bos == "document" and index == 0))
        assert window.first - window.start + window.bos >= (1 if index == 0 else rule.window - rule.stride)


@pytest.mark.parametrize(
    ("n_tokens", "expected"),
    [
        (0, []),
        (1, [(0, 0, 1)]),
        (1023, [(0, 0, 1023)]),
        (1024, [(0, 0, 1023), (512, 1023, 1024)]),
        (1025, [(0, 0, 1023), (512, 1023, 1025)]),
        (2049, [(0, 0, 1023), (512, 1023, 1535), (1024, 1535, 2047), (1536, 2047, 2049)]),
    ],
)
def test_windows_of_1024_with_stride_512(n_tokens: int, expected: list[tuple[int, int, int]]) -> None:
    """The lengths of bug B094, written out: start, first scored, stop."""
    assert [tuple(window[:3]) for window in windows_of(n_tokens, WindowRule(1024, 512))] == expected


@given(rule=rules(), n_tokens=st.integers(1, 2000), most=st.integers(1, 9))
def test_long_documents_get_some_of_the_same_windows(rule: WindowRule, n_tokens: int, most: int) -> None:
    """`max_windows` takes some of the windows as they are, the first always, the last from two on, evenly spread."""
    whole = windows_of(n_tokens, rule)
    few = windows_of(n_tokens, WindowRule(rule.window, rule.stride, rule.bos, most))
    assert len(few) == min(most, len(whole))
    places = [whole.index(window) for window in few]
    assert places[:1] == [0][: len(whole)]
    if len(few) > 1:
        assert places[-1] == len(whole) - 1
        steps = np.diff(places)
        assert steps.min() >= 1
        assert steps.max() - steps.min() <= 1


def test_spread_is_even_and_fixed() -> None:
    """The very places, since a saved score must be the same after any change of code."""
    assert spread(100, 8) == [0, 14, 28, 42, 57, 71, 85, 99]
    assert spread(3, 8) == [0, 1, 2]
    assert spread(5, 1) == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 1, "stride": 1}, "window: expected 2 tokens or more, found 1"),
        ({"window": 8, "stride": 8}, "stride: expected 1 to 7, less than the window of 8 tokens, found 8"),
        ({"window": 8, "stride": 0}, "found 0"),
        ({"max_windows": 0}, "max_windows: expected 1 or more, found 0"),
        ({"bos": "always"}, "bos: expected one of every_window, document, none, found 'always'"),
    ],
)
def test_impossible_rules_are_refused(settings: dict[str, object], message: str) -> None:
    """A rule that no window can follow is a ValueError that names the setting."""
    with pytest.raises(ValueError, match=message):
        WindowRule(**settings)  # type: ignore[arg-type]


def test_characters_belong_to_the_first_token_that_reaches_them() -> None:
    """A character of two tokens counts once, blanks left out by the tokenizer count, and the last token ends the text."""
    assert character_ends([2, 5, 5, 9], 11).tolist() == [2, 5, 5, 11]
    assert character_ends([], 3).tolist() == []
    assert character_ends([4, 3], 4).tolist() == [4, 4]


@given(lengths=st.lists(st.integers(1, 100), max_size=60), tokens=st.integers(1, 700))
def test_each_window_is_in_one_batch_of_a_known_shape(lengths: list[int], tokens: int) -> None:
    """Every window once, in the shortest shape that holds it, in order within a shape."""
    allowed = shapes(100, tokens)
    planned = list(batches(lengths, allowed))
    assert sorted(number for batch in planned for number in batch.windows) == list(range(len(lengths)))
    for batch in planned:
        assert batch.shape in allowed
        assert 1 <= len(batch.windows) <= batch.shape.rows
        assert batch.windows == sorted(batch.windows)
        shorter = [shape.length for shape in allowed if shape.length < batch.shape.length]
        assert all(max(shorter, default=0) < lengths[number] <= batch.shape.length for number in batch.windows)


@given(st.integers(2, 5000), st.integers(1, 20_000))
def test_shapes_hold_every_window_with_little_padding(window: int, tokens: int) -> None:
    """Lengths grow to the window; a row of more than 32 tokens is padded by less than a third of itself."""
    lengths = [shape.length for shape in shapes(window, tokens)]
    assert lengths == sorted(set(lengths))
    assert lengths[-1] == window
    for shorter, longer in pairwise(lengths):
        assert longer - (shorter + 1) < longer / 3
    assert all(shape.rows * shape.length <= max(tokens, shape.length) for shape in shapes(window, tokens))
