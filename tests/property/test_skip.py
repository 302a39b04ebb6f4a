"""Masks against a slow oracle: the endless order, walked through one by one, with the masked ones passed over."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.property.test_stream import files, settings_of_streams
from tokenization.mask import Mask
from tokenization.order import Ahead, Order
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream

Place = tuple[int, int]


def walked(whole: Order, masks: Sequence[tuple[int, set[Place]]]) -> Iterator[tuple[Place, int]]:
    """File and row at each place of an order with masks from some places on, and which place of its line it is: one by one."""
    weighted = whole.weights is not None
    lines: dict[int, Iterator[tuple[int, Place]]] = {}
    masked: set[Place] = set()
    for place, (file, _) in enumerate(own_order(whole, -1)):
        masked = masked.union(*(some for first, some in masks if first == place))
        line = file if weighted else -1
        if line not in lines:
            lines[line] = enumerate(own_order(whole, line))
        at, found = next((at, one) for at, one in lines[line] if one not in masked)
        yield found, at


def own_order(whole: Order, line: int) -> Iterator[Place]:
    """The order without masks, of one file with a weight, or of all (-1)."""
    for first in itertools.count(step=40):  # of a file of one sequence each place is an epoch of its own: few at once
        if line < 0:
            found, rows = (one.tolist() for one in whole.places(first, first + 40))
        else:
            rows = whole._permuted(line, np.arange(first, first + 40)).tolist()
            found = [line] * len(rows)
        yield from zip(found, rows, strict=True)


def places_masked(masks: Sequence[Mask], numbers: Sequence[TokenFile]) -> list[set[Place]]:
    return [
        {(i, row) for i, file in enumerate(numbers) if file.seal == mask.seal for row in mask.rows.tolist()}
        for mask in masks
    ]


@st.composite
def masks_of(draw: st.DrawFn, chosen: Sequence[TokenFile], most: int = 3) -> list[Mask]:
    """Masks of some of the files, empty ones too."""
    return [
        Mask.of(file, sorted(draw(st.sets(st.integers(0, len(file) - 1)))))
        for file in draw(st.lists(st.sampled_from(chosen), max_size=most))
    ]


def leaves_something(arguments: dict[str, Any], masks: Sequence[Mask]) -> bool:
    """Of each file that has a weight, or of all."""
    gone = set().union(*places_masked(masks, arguments["files"]))
    left = [sum((i, row) not in gone for row in range(len(file))) for i, file in enumerate(arguments["files"])]
    return all(left) if arguments["weights"] is not None else any(left)


def read_of(stream: TokenStream, steps: range) -> list[Place]:
    places = [stream.places(step) for step in steps]
    return [one for found, rows in places for one in zip(found.tolist(), rows.tolist(), strict=True)]


@settings(max_examples=25, deadline=None)
@given(settings_of_streams(), st.data())
def test_the_rest_keeps_its_order(arguments: dict[str, Any], data: st.DataObject) -> None:
    """Several masks from several steps on: what is read, how much there is of it, and every way to ask for it."""
    masks = data.draw(masks_of(arguments["files"]), label="masks")
    assume(leaves_something(arguments, masks))
    steps = [data.draw(st.integers(0, 20), label="step") for _ in masks]
    skip = list(zip(steps, masks, strict=True))
    plain_stream = TokenStream(**arguments)
    size, whole = plain_stream.batch_size, plain_stream._order
    endless = TokenStream(**{**arguments, "epochs": None}, skip=skip)
    masked = places_masked(masks, endless.files)
    starts = [(step * size, some) for step, some in zip(steps, masked, strict=True)]
    expected = list(itertools.islice(walked(whole, starts), 30 * size))
    assert read_of(endless, range(30)) == [one for one, _ in expected]
    first = min(steps, default=30)
    assert read_of(endless, range(first)) == read_of(TokenStream(**{**arguments, "epochs": None}), range(first))

    ends = whole._own(arguments["epochs"] * whole.total)
    left = sum(at < ends[one[0] if whole.weights else 0] for one, at in expected)
    if left < len(expected) and any(at >= ends[0] for _, at in expected[-1:]) and not whole.weights:
        counted = left // size if arguments["drop_last"] else -(-left // size)
        if counted:
            stream = TokenStream(**arguments, skip=skip)
            assert len(stream) == counted
            assert read_of(stream, range(counted)) == [one for one, _ in expected[: min(left, counted * size)]]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**70),
    st.integers(1, 4),
    st.data(),
)
def test_how_many_are_left(
    sizes: list[int], weighted: bool, shuffle: bool, seed: int, epochs: int, data: st.DataObject
) -> None:
    """Of the places that some epochs would have: those whose own place of their line lies before the line's end."""
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes))) if weighted else None
    whole = Order(sizes, seed=seed, shuffle=shuffle, weights=weights)
    masks: list[tuple[int, list[np.ndarray[Any, Any]]]] = []
    for first in sorted(data.draw(st.lists(st.integers(0, epochs * whole.total + 9), max_size=3))):
        rows = [sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))) for n in sizes]
        masks.append((first, [np.array(one, np.int64) for one in rows]))
    gone = [{row for _, rows in masks for row in rows[i].tolist()} for i in range(len(sizes))]
    assume(all(len(some) < n for some, n in zip(gone, sizes, strict=True)))
    order = whole.without(masks)
    starts = [(first, {(i, row) for i in range(len(sizes)) for row in rows[i].tolist()}) for first, rows in masks]
    ends = whole._own(epochs * whole.total)
    walk, read, left = walked(whole, starts), [], 0
    while not all(is_behind(order, line, len(read), end) for line, end in enumerate(ends)):
        one, at = next(walk)
        left += at < ends[one[0] if weighted else 0]
        read.append(one)
    assert order.left_of(epochs * whole.total) == left
    assert order.left_of(0) == 0
    found, rows = order.places(0, len(read))
    assert list(zip(found.tolist(), rows.tolist(), strict=True)) == read
    ahead = Ahead(order)
    for place in range(0, len(read), 7):
        found, rows = ahead.places(place, place + 7)
        assert list(zip(found.tolist(), rows.tolist(), strict=True))[: len(read) - place] == read[place : place + 7]


def is_behind(order: Order, line: int, place: int, end: int) -> bool:
    """Whether all that comes of a line from a place on lies behind its end."""
    thinned, own = order._thinned[line], order._own(place)[line]
    return (own if thinned is None else thinned.whole(np.array([own], np.int64)).item()) >= end


@settings(max_examples=25, deadline=None)
@given(settings_of_streams(), st.data())
def test_a_training_that_is_given_masks_now_and_then(arguments: dict[str, Any], data: st.DataObject) -> None:
    """Sessions with other worlds, batch sizes and new masks, resumed from JSON: what all of them read is one order, cut
    where each mask came, and a session that is done again reads the same."""
    arguments = {**arguments, "epochs": None}
    whole = TokenStream(**arguments)._order
    masks = data.draw(masks_of(arguments["files"], 4), label="masks")
    assume(leaves_something(arguments, masks))
    read: list[Place] = []
    starts: list[tuple[int, set[Place]]] = []
    state: dict[str, Any] | None = None
    for session in range(len(masks) + 1):
        size = data.draw(st.sampled_from((arguments["batch_size"], 1, 5)), label="batch_size")
        world = data.draw(st.integers(1, min(size, 3)), label="world")
        known = data.draw(st.permutations(masks[:session]), label="order of the masks")
        ranks = [
            TokenStream(**{**arguments, "batch_size": size}, rank=rank, world=world, skip=known)
            for rank in range(world)
        ]
        for rank in ranks if state is not None else ():
            rank.load_state_dict(state, changed=["batch_size"])
        if session:
            starts.append((len(read), places_masked(masks[session - 1 : session], ranks[0].files)[0]))
        reading = [iter(rank) for rank in ranks]
        for _ in range(data.draw(st.integers(0, 4), label="steps")):
            parts = [next(one) for one in reading]
            for part in parts:
                read += zip(part.files.tolist(), part.sequences.tolist(), strict=True)
            step = ranks[0].step - 1
            assert read_of(ranks[0], range(step, step + 1)) == read[-size:]
        states = [json.loads(json.dumps(rank.state_dict())) for rank in ranks]
        assert all(one["skip"] == states[0]["skip"] for one in states) if session else "skip" not in states[0]
        state = states[0]
    assert read == [one for one, _ in itertools.islice(walked(whole, starts), len(read))]


def test_the_files_differ() -> None:
    """A mask is of a file by its seal: of each size there is one."""
    assert len({file.seal for file in files()}) == len(files()) // 2
