"""Groups of copies: counted once each, wherever their kept document stands; the same whatever the shards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.groups import Groups, find_members, size_classes
from curation.report.samples import priorities
from curation.run import Run
from curation.shards import shards_of


def an_id(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


@given(st.lists(st.integers(2, 9), max_size=40), st.lists(st.integers(2, 9), max_size=40), st.integers(1, 7))
def test_every_group_is_counted_once(here: list[int], earlier: list[int], cut: int) -> None:
    """Groups around documents of this run by their kept one, the others by the k - 1 copies that each has."""
    groups = Groups(5)
    for start in range(0, len(here), cut):
        sizes = np.array(here[start : start + cut], np.int64)
        rows = np.arange(start, start + len(sizes))
        groups.add_kept(0, rows, rows.astype(np.uint64), sizes)
    copies = [(an_id(1000 + number), size) for number, size in enumerate(earlier) for _ in range(size - 1)]
    copies = copies[::2] + copies[1::2]
    for start in range(0, len(copies), cut):
        ids, sizes = zip(*copies[start : start + cut], strict=True)
        groups.add_copies_of_earlier(pa.array(ids, pa.binary(16)), np.array(sizes, np.int64))
    assert groups.sizes == Counter([*here, *earlier])
    everything = [(-size, key, (0, key)) for key, size in enumerate(here)]
    everything += [(-size, 1000 + number, None) for number, size in enumerate(earlier)]
    best = sorted(everything, key=lambda one: one[:2])[:5]
    assert list(groups.largest.items()) == [(key, (-size, place)) for size, key, place in best]
    assert groups.places == [place for _, _, place in best if place is not None]
    assert sum(n for _, n in size_classes(groups.sizes)) == len(here) + len(earlier)


@pytest.mark.parametrize("rows", [3, 1000])
def test_the_members_least_like_the_kept_one_are_found(made: Any, rows: int) -> None:
    """In whatever shards they stand, also of a group whose kept document stands in an earlier run."""
    earlier = an_id(77)
    partners = {f"copy {i} of earlier": (earlier, 0.99 - 0.001 * i, 13) for i in range(12)}
    docs = [made.doc("a text of its own", id="own"), *(made.doc(text, id=text) for text in partners)]
    run = Run(made.run(docs, [made.near(partners)], shard_rows=rows))
    (folder,) = run.steps.iterdir()
    key = int(priorities(pa.array([earlier], pa.binary(16)))[0])
    shards = shards_of(run)
    found = find_members(folder, shards, [key, 5], 3)
    assert found[5] == []
    assert [shard * rows + row for shard, row in found[key]] == [12, 11, 10]
    assert find_members(folder, shards, [], 3) == {}
    next(folder.glob("00000.arrow")).unlink()
    assert find_members(folder, shards, [key], 3)[key] == ([] if rows == 1000 else found[key])
