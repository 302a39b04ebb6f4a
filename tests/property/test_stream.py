"""Whatever the files, sizes, weights, worlds and stops: one order, every sequence in its turn, every restart exact."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.token_files import small_header, write_small_file
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream

SIZES = (1, 2, 15, 16, 17, 40)


@cache
def files() -> tuple[TokenFile, ...]:
    """One open file of each size: they stay readable when their folder is gone."""
    with TemporaryDirectory() as folder:
        return tuple(
            TokenFile(write_small_file(Path(folder) / f"{size}.arrow", small_header(size)), read=read)
            for size in SIZES
            for read in ("map", "copy")
        )


@st.composite
def settings_of_streams(draw: st.DrawFn) -> dict[str, object]:
    chosen = draw(st.lists(st.sampled_from(files()), min_size=1, max_size=5))
    weighted = draw(st.booleans())
    weights = draw(st.lists(st.floats(0.001, 1000), min_size=len(chosen), max_size=len(chosen))) if weighted else None
    batch_size, epochs = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    return {
        "files": chosen,
        "weights": weights,
        "batch_size": batch_size,
        "seed": draw(st.integers(-5, 2**70)),
        "shuffle": draw(st.booleans()),
        "epochs": epochs,
        # A stream without a step is refused.
        "drop_last": batch_size <= epochs * sum(map(len, chosen)) and draw(st.booleans()),
    }


@settings(max_examples=40, deadline=None)
@given(settings_of_streams(), st.data())
def test_one_order_for_any_world_and_any_stop(arguments: dict[str, object], data: st.DataObject) -> None:
    """Stopped anywhere, resumed in another world from JSON: the ranks together read what was never interrupted."""
    whole = TokenStream(**arguments)  # type: ignore[arg-type]
    expected = [whole[step] for step in range(len(whole))]
    stop = data.draw(st.integers(0, len(whole)), label="stop")
    world = data.draw(st.integers(1, whole.batch_size), label="world")
    state = json.loads(json.dumps(whole.state_dict(after=stop - 1)))
    ranks = [TokenStream(**arguments, rank=rank, world=world) for rank in range(world)]  # type: ignore[arg-type]
    for rank in ranks:
        rank.load_state_dict(state)
    steps = stop
    for parts in zip(*ranks, strict=True):
        for field in ("tokens", "position_ids", "lengths", "doc_rows", "real", "sequences", "files"):
            joined = np.concatenate([getattr(part, field) for part in parts])
            assert np.array_equal(joined, getattr(expected[steps], field)), field
        assert {part.step for part in parts} == {steps}
        steps += 1
    assert steps == len(whole)


@settings(max_examples=80, deadline=None)
@given(settings_of_streams())
def test_every_sequence_in_its_turn(arguments: dict[str, object]) -> None:
    """Without weights each epoch reads all once; with weights no file's sequence is read again before all of it was."""
    stream = TokenStream(**{**arguments, "drop_last": False})  # type: ignore[arg-type]
    places = [stream.places(step) for step in range(len(stream))]
    numbers, rows = (np.concatenate([place[side] for place in places]) for side in (0, 1))
    assert len(rows) == int(arguments["epochs"]) * sum(map(len, stream.files))  # type: ignore[call-overload]
    if arguments["weights"] is None:
        total = sum(map(len, stream.files))
        everything = {(i, row) for i, file in enumerate(stream.files) for row in range(len(file))}
        for begin in range(0, len(rows), total):
            epoch = slice(begin, begin + total)
            assert set(zip(numbers[epoch].tolist(), rows[epoch].tolist(), strict=True)) == everything
    for number, file in enumerate(stream.files):
        own = rows[numbers == number]
        if arguments["weights"] is not None:
            for begin in range(0, len(own), len(file)):
                part = own[begin : begin + len(file)]
                assert len(set(part.tolist())) == len(part)


@settings(max_examples=80, deadline=None)
@given(settings_of_streams(), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.data())
def test_batch_sizes_may_change(arguments: dict[str, object], sizes: list[int], data: st.DataObject) -> None:
    """A training whose batch size changes a few times reads the same sequences, in the same order, none twice."""
    endless = {**arguments, "epochs": None}
    order = TokenStream(**{**endless, "batch_size": 1})  # type: ignore[arg-type]
    read: list[tuple[int, int]] = []
    state = None
    for size in sizes:
        stream = TokenStream(**{**endless, "batch_size": size})  # type: ignore[arg-type]
        if state is not None:
            stream.load_state_dict(state, changed=["batch_size"])
        for _, batch in zip(range(data.draw(st.integers(0, 3))), stream, strict=False):
            read += zip(batch.files.tolist(), batch.sequences.tolist(), strict=True)
        state = stream.state_dict()
    expected = [(int(f[0]), int(r[0])) for f, r in (order.places(step) for step in range(len(read)))]
    assert read == expected
