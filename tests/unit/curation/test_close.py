"""Closing a step: the conservation law, counted anew from the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from curation.close import close_step, is_closed
from curation.errors import LawError, RunError
from curation.run import file_sha256, read_json, write_json
from curation.shards import open_table, write_table
from curation.steps import PlacedStep
from curation.verdicts import StepConfig
from tests.fakes import BeginsWithK, Judged, Watched, WatchedConfig, make_run, run_steps

TEXTS = [["kept", "k" * 30, ""], ["another", "kk" * 20, "kite"]]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """Two steps over two shards, with all verdicts written and nothing closed but the first step."""
    done = run_steps(make_run(tmp_path, TEXTS), [BeginsWithK(StepConfig()), Watched(WatchedConfig())], close=False)
    close_step(done.placed[0], done.shards)
    return done


def rewrite(placed: PlacedStep, change: Callable[[pa.Table], pa.Table]) -> None:
    """Forge the verdicts of the first shard, and its marker's checksum with them."""
    path = placed.folder / "00000.arrow"
    write_table(path, change(open_table(path).read_all()).combine_chunks())
    marker = placed.folder / "_items/00000.json"
    write_json(marker, {**read_json(marker), "verdict_sha256": file_sha256(path)})


def with_column(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))


def test_a_closed_step_says_what_it_did(judged: Judged) -> None:
    """The marker is the step's line of the funnel: documents in, kept, dropped by reason, bytes, time, memory."""
    marker = close_step(judged.placed[1], judged.shards)

    assert is_closed(judged.placed[1].folder)
    assert {key: marker[key] for key in ("name", "docs_in", "docs_kept", "dropped", "bytes_in", "bytes_kept")} == {
        "name": "watched",
        "docs_in": 4,
        "docs_kept": 2,
        "dropped": {"watched.too_long": 2},
        "bytes_in": 78,
        "bytes_kept": 8,
    }
    assert [(item["name"], item["rows"], item["kept"]) for item in marker["shards"]] == [
        ("00000", 3, 1),
        ("00001", 3, 1),
    ]


def test_closing_twice_changes_nothing(judged: Judged) -> None:
    """The second call returns the marker that stands."""
    first = close_step(judged.placed[1], judged.shards)
    stood = (judged.placed[1].folder / "_done.json").stat().st_mtime_ns

    assert close_step(judged.placed[1], judged.shards) == first
    assert (judged.placed[1].folder / "_done.json").stat().st_mtime_ns == stood


@pytest.mark.parametrize("damage", ["delete", "cut"])
def test_a_lost_or_cut_verdict_file_opens_the_step_again(judged: Judged, damage: str) -> None:
    """So the same command repairs it, as the error of whoever missed the file says."""
    close_step(judged.placed[1], judged.shards)
    path = judged.placed[1].folder / "00000.arrow"
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])

    assert not is_closed(judged.placed[1].folder)
    assert not (judged.placed[1].folder / "_done.json").exists()


def test_an_unfinished_step_cannot_be_closed(judged: Judged) -> None:
    """A shard without verdicts is an error that names the missing marker; nothing is closed."""
    (judged.placed[1].folder / "_items/00001.json").unlink()

    with pytest.raises(RunError, match=r"00001\.json is missing"):
        close_step(judged.placed[1], judged.shards)
    assert not is_closed(judged.placed[1].folder)


def test_a_damaged_verdict_file_cannot_be_closed(judged: Judged) -> None:
    """An edited verdict file is not the one that was written."""
    path = judged.placed[1].folder / "00000.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))

    with pytest.raises(RunError, match=r"00000\.arrow is not the file that was written"):
        close_step(judged.placed[1], judged.shards)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: with_column(t, "keep", [True, None, None]),
            r"step watched, shard 00000: the step before kept 2 documents, but 1 were judged \(1 rows differ\)",
        ),
        (
            lambda t: with_column(t, "keep", [True, False, True]),
            r"the step before kept 2 documents, but 3 were judged",
        ),
        (
            lambda t: with_column(t, "reason", [None, None, None]),
            r"1 documents are dropped without a reason or kept with one",
        ),
        (
            lambda t: with_column(t, "reason", ["watched.too_long", "watched.too_long", None]),
            r"1 documents are dropped without a reason or kept with one",
        ),
        (
            lambda t: with_column(with_column(t, "keep", [True, True, None]), "reason", [None, None, None]),
            r"the verdict file drops \{\}, its marker says \{'watched\.too_long': 1\}",
        ),
    ],
    ids=["lost", "invented", "no-reason", "kept-with-reason", "other-count"],
)
def test_a_forged_verdict_file_breaks_the_law(
    judged: Judged, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    """Even with a matching checksum, lost, invented and unexplained documents are found, and nothing is closed."""
    rewrite(judged.placed[1], change)

    with pytest.raises(LawError, match=message):
        close_step(judged.placed[1], judged.shards)
    assert not is_closed(judged.placed[1].folder)


@pytest.mark.parametrize("key", ["docs_in", "kept"])
def test_a_marker_that_miscounts_breaks_the_law(judged: Judged, key: str) -> None:
    """What a worker wrote into its marker must be what lies in its file."""
    marker = judged.placed[1].folder / "_items/00001.json"
    write_json(marker, {**read_json(marker), key: 7})

    with pytest.raises(LawError, match=r"step watched, shard 00001"):
        close_step(judged.placed[1], judged.shards)
