"""What a data-set step leaves for later runs: lost or cut it is made anew, changed it is found; and two closers at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from curation import pipeline as pipeline_module
from curation.check import damaged_files, verify_run
from curation.close import is_closed, keep_passes
from curation.errors import ConfigError, RunError
from curation.pipeline import Pipeline
from curation.run import read_json
from tests.near_runs import begun, finish, near_run

SHARDS = [["one two three four five six", "one two three four five seven"], [], ["eight nine ten"]]


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs need not survive a power cut."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def done(tmp_path: Path) -> Pipeline:
    return near_run(tmp_path, "old", SHARDS)


def contents(pipeline: Pipeline) -> dict[str, bytes]:
    """Arrow files of the steps; markers say how long it took."""
    return {str(path): path.read_bytes() for path in pipeline.run.steps.rglob("*.arrow")}


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()  # it may be mapped
    path.write_bytes(data[:-9])


def flip(path: Path) -> None:
    """One bit: of a marker one of its checksum, since nothing hangs on how long something took."""
    data = bytearray(path.read_bytes())
    data[data.index(b'"sha256": "') + 12 if path.suffix == ".json" else len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


FILES = ["sign/00000.arrow", "sign/_items/00002.json"]


def test_the_marker_names_what_lasts(done: Pipeline) -> None:
    """Each file with its size; of a step without such passes none."""
    folder = done.placed[0].folder
    told = read_json(folder / "_done.json")["lasting"]

    found = {str(path.relative_to(folder)) for path in (folder / "sign").rglob("*") if path.is_file()}
    assert told == {name: (folder / name).stat().st_size for name in found}
    assert len(told) == 6


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [delete, cut])
def test_the_same_command_makes_it_anew(done: Pipeline, name: str, damage: Any) -> None:
    """Byte for byte, without another verdict; a later run can be compared with it again."""
    before = contents(done)
    path = done.placed[0].folder / name
    damage(path)
    lines, whole = verify_run(done.run.folder)
    assert not whole
    assert str(path) in lines[0]

    assert not is_closed(done.placed[0].folder)
    finish(Pipeline.open(done.run.folder))

    assert contents(done) == before
    assert verify_run(done.run.folder)[1]
    assert list(done.run.folder.rglob("*.tmp")) == []


def test_all_of_it_gone_is_made_anew(done: Pipeline) -> None:
    """The whole folder."""
    before = contents(done)
    shutil.rmtree(done.placed[0].folder / "sign")

    finish(Pipeline.open(done.run.folder))

    assert contents(done) == before


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_and_mended_as_the_message_says(done: Pipeline, name: str) -> None:
    """`verify` names the file; without it the same command makes it anew. A size that is right tells nothing."""
    before = contents(done)
    path = done.placed[0].folder / name
    flip(path)
    assert is_closed(done.placed[0].folder)

    lines, whole = verify_run(done.run.folder)
    assert not whole
    assert "Delete them and run the same command again" in lines[-1]
    for damaged, _ in damaged_files(done):
        damaged.unlink()
    finish(Pipeline.open(done.run.folder))

    assert contents(done) == before
    assert verify_run(done.run.folder)[1]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [delete, cut, flip])
def test_what_a_later_run_says_of_it_helps(done: Pipeline, tmp_path: Path, name: str, damage: Any) -> None:
    """The file that it says to delete, if any, and the earlier run's command: then it goes on."""
    path = done.placed[0].folder / name
    damage(path)
    later = begun(tmp_path, "new", [["one two three four five six"]], against=[done.run.folder])
    with pytest.raises(ConfigError) as caught:
        finish(later)
    message = str(caught.value)
    assert f"the command of the earlier run {done.run.folder} again" in message

    if damage is flip:
        arrow = done.placed[0].folder / "sign" / f"{path.stem}.arrow"
        assert f"Delete {arrow} and run" in message
        arrow.unlink()
    finish(Pipeline.open(done.run.folder))
    finish(Pipeline.open(later.run.folder))


def passed(root: Path) -> Pipeline:
    """A run that only waits for its step to be closed."""
    pipeline = begun(root, "two", SHARDS)
    for work in pipeline.passes("dedup"):
        for item in range(work.n_items):
            pipeline.run_item(work.name, item)
    return pipeline


@pytest.mark.parametrize("moment", ["facts", "used", "keep"])
def test_the_slower_of_two_closers_finds_the_step_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whenever the other one deletes the files of the passes under its hands: no error, the same marker."""
    slow, fast = passed(tmp_path), Pipeline.open(tmp_path / "runs" / "two")
    placed = slow.placed[0]

    def first_the_other(function: Any) -> Any:
        def wrapped(*arguments: Any) -> Any:
            monkeypatch.undo()
            monkeypatch.setattr("os.fsync", lambda descriptor: None)
            fast.close("dedup")
            return function(*arguments)

        return wrapped

    if moment == "facts":
        monkeypatch.setattr(placed.step, "facts", first_the_other(placed.step.facts))  # type: ignore[attr-defined]
    elif moment == "used":
        monkeypatch.setattr(slow, "_passes_used", first_the_other(slow._passes_used))
    else:
        monkeypatch.setattr(pipeline_module, "keep_passes", first_the_other(keep_passes))
    slow.close("dedup")

    assert is_closed(placed.folder)
    assert [path for path, _ in damaged_files(slow)] == []


def test_a_file_that_goes_between_two_looks_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was listed, then deleted by the one that closed: linked it is not, and nothing that was kept is lost."""
    slow, fast = passed(tmp_path), Pipeline.open(tmp_path / "runs" / "two")
    link = os.link
    calls: list[Any] = []

    def slow_link(source: Any, target: Any) -> None:
        calls.append(source)
        if len(calls) == 2:
            fast.close("dedup")
        link(source, target)

    monkeypatch.setattr("os.link", slow_link)
    slow.close("dedup")

    assert len(calls) > 2
    assert is_closed(slow.placed[0].folder)
    assert verify_run(slow.run.folder)[1]
    assert list(slow.run.folder.rglob("*.tmp")) == []


def test_without_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Pipeline) -> None:
    """The same bytes, also by a second closer, and where files of a close before lie."""

    def no_links(source: Any, target: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", no_links)
    copied = passed(tmp_path)
    keep_passes(next(copied.run.work.glob("*mb")), ["sign"], copied.placed[0].folder)
    copied.close("dedup")

    assert verify_run(copied.run.folder)[1]
    delete(copied.placed[0].folder / "sign" / "00000.arrow")
    finish(Pipeline.open(copied.run.folder))
    assert verify_run(copied.run.folder)[1]


def test_a_lost_file_of_a_pass_is_an_error_where_nobody_closed(tmp_path: Path) -> None:
    """Nothing is hidden: the step stays open, and the same command does what is missing."""
    pipeline = passed(tmp_path)
    delete(next(pipeline.run.work.glob("*mb/verify/00000.arrow")))
    with pytest.raises(RunError, match=r"verify/00000.arrow is missing"):
        pipeline.close("dedup")
    finish(Pipeline.open(pipeline.run.folder))
    assert verify_run(pipeline.run.folder)[1]
