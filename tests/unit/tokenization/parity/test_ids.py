"""Lists of ids beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenization.parity.ids import NO_WRAP, Wrap, common_wrap, first_difference, reads_special_tokens, spells_special

IDS = st.lists(st.integers(2, 9), max_size=8).map(tuple)


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [((), (), 0), ((1,), (), 0), ((1, 2), (1, 2), 2), ((1, 2), (1, 3), 1), ((1, 2), (1, 2, 3), 2)],
)
def test_the_first_difference(one: tuple[int, ...], other: tuple[int, ...], place: int) -> None:
    """The first place that differs; the length of the shorter list where there is none."""
    assert first_difference(one, other) == first_difference(other, one) == place


@given(st.lists(IDS, min_size=3, max_size=6), st.integers(0, 2), st.integers(0, 2))
def test_what_is_put_around_every_text_is_found(inner: list[tuple[int, ...]], before: int, behind: int) -> None:
    """Whatever stands around, as long as no text spells it: found, and taken off again."""
    wrap = Wrap((0,) * before, (1,) * behind)
    texts = [*inner, (2, 3), (4,), (5, 6, 7)]

    found = common_wrap(texts, [wrap.lead + ids + wrap.tail for ids in texts])

    assert found == wrap
    assert all(found.strip(wrap.lead + ids + wrap.tail) == ids for ids in texts)


def test_one_odd_text_is_no_rule() -> None:
    """What most texts have counts; a text that merely begins with such an id keeps it."""
    assert common_wrap([(2,), (3,), (4,)], [(1, 2), (3,), (4,)]) == NO_WRAP
    assert Wrap((1,), ()).strip((2, 1)) == (2, 1)


@pytest.mark.parametrize(
    ("nothing", "wrap"), [((1,), Wrap((1,), ())), ((0,), Wrap((), (0,))), ((1, 0), Wrap((1,), (0,)))]
)
def test_where_all_ids_differ_nothing_tells(nothing: tuple[int, ...], wrap: Wrap) -> None:
    """Another vocabulary: what stands around an empty text, on the side where every text has it."""
    inner = [(), (2, 3), (4,)]
    outer = [wrap.lead + ids + wrap.tail for ids in ((), (12, 13), (14,))]

    assert outer[0] == nothing
    assert common_wrap(inner, outer) == wrap


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((2, 3, 4, 5), (2, 0, 5), True),
        ((2, 3, 4, 5), (2, 9, 5), False),
        ((2, 3, 4, 5, 6, 3, 4, 7), (2, 0, 5, 6, 0, 7), True),
        ((2, 3, 4, 5, 6, 7, 8, 9), (2, 0, 5, 6, 7, 9), False),
        ((2, 3), (2, 3), False),
        ((7, 3, 4, 2), (0, 2), True),
        ((2, 5, 3, 4), (2, 0), True),
    ],
)
def test_special_tokens_explain_only_what_is_beside_them(
    ours: tuple[int, ...], theirs: tuple[int, ...], expected: bool
) -> None:
    """Every differing place must hold a special token (0 here): another difference in the same text is one."""
    assert reads_special_tokens(ours, theirs, lambda index: index == 0) is expected


@pytest.mark.parametrize("text", ["a<|im_end|>b", "</s>", "[SEP] x", "<｜end▁of▁sentence｜>", "<unk>"])
def test_look_alikes(text: str) -> None:
    """Every known spelling of a special token."""
    assert spells_special(text)
    assert not spells_special("a < b > c, [1], |x|")
    assert spells_special("§tool§", ["§tool§"])
