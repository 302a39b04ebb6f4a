"""Masks of a stream: where they begin, what a state says of them, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.token_files import small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.mask import Mask
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    return TokenFile(write_small_file(tmp_path_factory.mktemp("skip") / "tokens.arrow"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    return TokenFile(write_small_file(tmp_path_factory.mktemp("other") / "tokens.arrow", small_header(25)))


def stream_of(files: Any, *skip: Any, **changes: Any) -> TokenStream:
    return TokenStream(files, **{"batch_size": 6, "seed": 1, "epochs": None, "skip": skip, **changes})


def rows_of(stream: TokenStream, *steps: int) -> list[int]:
    return [row for step in steps for row in stream.places(step)[1].tolist()]


def test_an_epoch_reads_the_rest_once(file: TokenFile) -> None:
    """10 of 40 left out: 30 sequences in five full batches, then the next epoch; the end comes earlier."""
    stream = stream_of(file, Mask.of(file, range(10)), epochs=2)
    assert len(stream) == 10
    for epoch in (range(5), range(5, 10)):
        assert sorted(rows_of(stream, *epoch)) == list(range(10, 40))
    stream.seek(5)
    assert stream.epoch == 1
    assert [len(batch.tokens) for batch in stream] == [6] * 5


def test_a_mask_may_be_alone_or_a_path(file: TokenFile, tmp_path: Path) -> None:
    """One mask, or its path, stands for a list of one."""
    mask = Mask.of(file, [1, 2])
    mask.write(tmp_path / "m.arrow")
    states = [
        TokenStream(file, batch_size=6, seed=1, skip=skip).state_dict()
        for skip in (mask, tmp_path / "m.arrow", str(tmp_path / "m.arrow"), [mask], [(0, mask)])
    ]
    assert all(state == states[0] for state in states)
    assert states[0]["skip"] == [{"step": 0, "sequences": 0, "mask": mask.digest}]


def test_a_new_mask_begins_where_the_state_stands(file: TokenFile) -> None:
    """A trainer that is stopped and goes on with one more mask names no step; later it gives both, in any order."""
    one, two = Mask.of(file, [3, 4]), Mask.of(file, [5, 6, 7])
    first = stream_of(file, one)
    state = json.loads(json.dumps(first.state_dict(after=3)))
    second = stream_of(file, one, two)
    second.load_state_dict(state)
    assert rows_of(second, 0, 1, 2, 3) == rows_of(first, 0, 1, 2, 3)
    assert not {3, 4, 5, 6, 7} & set(rows_of(second, *range(4, 30)))
    told = second.state_dict()["skip"]
    assert [(entry["step"], entry["sequences"]) for entry in told] == [(0, 0), (4, 24)]
    for skip in ([two, one], [(4, two), (0, one)]):
        third = stream_of(file, *skip)
        third.load_state_dict(json.loads(json.dumps(second.state_dict(after=7))))
        assert (third.step, rows_of(third, *range(30))) == (8, rows_of(second, *range(30)))
    rolled_back = stream_of(file, one, two)
    rolled_back.load_state_dict(first.state_dict(after=1))
    assert [entry["step"] for entry in rolled_back.state_dict()["skip"]] == [0, 2]


def test_a_mask_of_a_later_step(file: TokenFile) -> None:
    """It is part of the state before it begins, also where the batch size changes in between."""
    mask = Mask.of(file, range(20))
    stream = stream_of(file, (10, mask))
    assert rows_of(stream, *range(10)) == rows_of(stream_of(file), *range(10))
    larger = stream_of(file, (10, mask), batch_size=9)
    larger.load_state_dict(stream.state_dict(after=3), changed=["batch_size"])
    assert larger.state_dict()["skip"] == [{"step": 10, "sequences": 24 + 6 * 9, "mask": mask.digest}]
    assert min(rows_of(larger, *range(10, 20))) >= 20
    again = stream_of(file, mask, batch_size=9)
    again.load_state_dict(larger.state_dict(after=14))
    assert rows_of(again, *range(15, 40)) == rows_of(larger, *range(15, 40))


def test_a_list_that_the_state_does_not_know_is_refused(file: TokenFile) -> None:
    """A mask that is missing, or one that should have begun before; taken if told that it changed."""
    one, two = Mask.of(file, [3, 4]), Mask.of(file, [5])
    state = stream_of(file, one).state_dict(after=5)
    with pytest.raises(ValueError, match=rf"masks that this stream does not skip: {one.digest[:16]} from step 0 on"):
        stream_of(file, two).load_state_dict(state)
    with pytest.raises(ValueError, match="mask 1 begins at step 5, but the state was saved at step 6"):
        stream_of(file, one, (5, two)).load_state_dict(state)
    with pytest.raises(ValueError, match="does not skip"):
        stream_of(file, (1, one)).load_state_dict({**state, "step": 0, "sequences": 0})
    stream = stream_of(file, (5, two))
    stream.load_state_dict(state, changed=["skip"])
    assert rows_of(stream, *range(9)) == rows_of(stream_of(file, (5, two)), *range(9))
    plain = stream_of(file)
    plain.load_state_dict(state, changed=["skip"])
    assert "skip" not in plain.state_dict()
    for wrong in ([{"step": 0}], [{"step": -1, "sequences": 0, "mask": ""}], 7):
        with pytest.raises(ValueError, match=r"no state of a TokenStream|expected 0 or more"):
            stream_of(file, one).load_state_dict({**state, "skip": wrong})


def test_states_without_masks_stay_what_they_were(file: TokenFile) -> None:
    """Version 1; with masks 2, which a reader that knows none refuses."""
    assert (stream_of(file).state_dict()["version"], stream_of(file, Mask.of(file, [1])).state_dict()["version"]) == (
        1,
        2,
    )
    old = stream_of(file).state_dict(after=2)
    stream = stream_of(file, Mask.of(file, [1]))
    stream.load_state_dict(old)
    assert stream.state_dict()["skip"][0]["step"] == 3


def test_what_cannot_be_skipped(file: TokenFile, other: TokenFile) -> None:
    """Another file's mask, a step below 0, and all that there is: with weights of one file, without of all."""
    everything = Mask.of(other, range(25))
    with pytest.raises(TokenFileError, match=r"of another token file .*25 sequences"):
        stream_of(file, everything)
    with pytest.raises(ValueError, match="step -1 on"):
        stream_of(file, (-1, Mask.of(file, [1])))
    with pytest.raises(ValueError, match="leave nothing of"):
        stream_of([file, other], everything, weights=[1, 1])
    with pytest.raises(ValueError, match="leave nothing of"):
        stream_of(other, Mask.of(other, range(13)), (9, Mask.of(other, range(12, 25))))
    assert set(stream_of([file, other], everything).places(3)[0].tolist()) == {0}


def test_ranks_workers_and_copies(file: TokenFile, other: TokenFile) -> None:
    """Each rank's slice, a pickled stream, any step at once: of the one order."""
    skip = [(2, Mask.of(file, range(0, 40, 3))), (4, Mask.of(other, [0, 1]))]
    whole = stream_of([file, other], *skip, weights=[2, 1])
    ranks = [
        pickle.loads(pickle.dumps(stream_of([file, other], *skip, weights=[2, 1], rank=r, world=4))) for r in range(4)
    ]
    for step, parts in zip(range(20), zip(*ranks, strict=True), strict=False):
        assert np.array_equal(np.concatenate([part.tokens for part in parts]), whole[step].tokens)
        assert parts[0].step == step
