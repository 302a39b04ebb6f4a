"""Files of the passes of `near`: cut, changed, gone, on a full disk, by workers that are killed or two at once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curation import run as run_module
from curation.dedup.near import Near
from curation.errors import CorpusmillError, LawError, RunError
from curation.pipeline import Pipeline
from curation.steps import StepContext, context_of
from tests.near_runs import begun, corpus, finish, near_run, verdicts_of

PASSES = ("sign", "bucket", "cluster", "verify")
NEXT = {"sign": "near.bucket", "bucket": "near.cluster", "cluster": "near.verify", "verify": "near"}
"""The pass that reads the files of each."""
TEXTS = corpus(7, 60)
SHARDS = [TEXTS[:25], TEXTS[25:26], TEXTS[26:]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def contents(folder: Path, pattern: str = "*.arrow") -> dict[str, str]:
    """Checksums of the files below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob(pattern)
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a run that nothing disturbs leaves in its step's folder: verdicts and signatures."""
    return contents(near_run(tmp_path_factory.mktemp("clean"), "r", SHARDS).run.steps)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each pass the root of a run that is done up to it."""
    found = {}
    pipeline = begun(tmp_path_factory.mktemp("passes"), "r", SHARDS)
    for name in PASSES:
        do(pipeline, f"near.{name}")
        found[name] = pipeline.run.folder.parents[1].with_name(f"up-to-{name}")
        shutil.copytree(pipeline.run.folder.parents[1], found[name])
    return found


def copy_of(root: Path, tmp_path: Path) -> Pipeline:
    """A run of one's own."""
    shutil.copytree(root, tmp_path / "root")
    return Pipeline.open(tmp_path / "root" / "runs" / "r")


def do(pipeline: Pipeline, name: str) -> list[bool]:
    """Do a pass; for each item, whether it was done before."""
    work = next(one for one in pipeline.passes("dedup") if one.name == name)
    return [bool(pipeline.run_item(name, item).get("reused")) for item in range(work.n_items)]


def context(pipeline: Pipeline) -> StepContext:
    return context_of(pipeline.run, pipeline.placed[0], pipeline.shards, pipeline.config.top.memory_mb)


# -- damage -----------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "the last 5 bytes are gone": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "half of it is gone": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "it is empty": lambda path: path.write_bytes(b""),
    "one bit is another": flip,
    "it is gone": lambda path: path.unlink(),
    "there is more at its end": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "its marker is gone": lambda path: marker_of(path).unlink(),
    "its marker is cut": lambda path: marker_of(path).write_bytes(marker_of(path).read_bytes()[:-9]),
    "its marker is empty": lambda path: marker_of(path).write_bytes(b""),
}


def marker_of(path: Path) -> Path:
    return path.parent / "_items" / f"{path.stem}.json"


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_at_once_and_made_anew(
    tmp_path: Path, signed: dict[str, Path], clean: dict[str, str], name: str, damage: str
) -> None:
    """The pass that reads it stops with its name; the same command again does this one item, and ends as ever."""
    pipeline = copy_of(signed[name], tmp_path)
    path = context(pipeline).item_path(name, 0)
    whole = path.read_bytes()
    DAMAGES[damage](path)
    with pytest.raises(RunError, match=rf"{name}/(_items/)?00000\.(arrow|json)"):
        do(pipeline, NEXT[name])
    again = Pipeline.open(pipeline.run.folder)
    reused = do(again, f"near.{name}")
    assert reused == [False] + [True] * (len(reused) - 1)
    assert path.read_bytes() == whole
    finish(again)
    assert contents(again.run.steps) == clean


@pytest.mark.parametrize("name", PASSES)
def test_work_may_be_deleted_at_any_time(
    tmp_path: Path, signed: dict[str, Path], clean: dict[str, str], name: str
) -> None:
    """All files of the passes may go between two commands."""
    pipeline = copy_of(signed[name], tmp_path)
    shutil.rmtree(pipeline.run.work)
    finish(Pipeline.open(pipeline.run.folder))
    assert contents(pipeline.run.steps) == clean


@pytest.mark.parametrize("change", [b"x", b" ", b"\xff"], ids=["as many shingles", "fewer shingles", "no UTF-8"])
def test_a_text_that_changes_between_two_passes(tmp_path: Path, change: bytes) -> None:
    """A shard that is not the one that was signed stops the run before anything is decided by it.

    Put back, the run ends as ever: nothing stays of what was read meanwhile.
    """
    words = [f"word{number}" for number in range(100)]
    pipeline = begun(tmp_path, "r", [[" ".join(words), " ".join([*words, "tail"])]])
    for name in PASSES[:3]:
        do(pipeline, f"near.{name}")
    shard = pipeline.shards[0].path
    whole = shard.read_bytes()
    changed = whole
    for word in words[5:95:6]:  # of the first text: too few shingles are left for a copy
        changed = changed.replace(word.encode() + b" ", change * len(word) + b" ", 1)
    shard.write_bytes(changed)
    with pytest.raises(RunError, match=r"00000\.arrow does not hold the texts that were signed"):
        do(pipeline, "near.verify")
    assert contents(context(pipeline).folder / "verify") == {}
    shard.write_bytes(whole)
    again = Pipeline.open(pipeline.run.folder)
    finish(again)
    assert [row["keep"] for row in verdicts_of(again)] == [False, True]


def test_signatures_that_last_are_checked_when_they_are_used(tmp_path: Path) -> None:
    """A cut signature file of an earlier run is named, with that run."""
    earlier = near_run(tmp_path, "earlier", SHARDS)
    path = earlier.placed[0].folder / "sign" / "00002.arrow"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorpusmillError, match=r"runs/earlier.*sign/00002\.arrow"):
        near_run(tmp_path, "later", [["some text"]], against=[earlier.run.folder])


# -- a full disk ------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's device that is always full")
@pytest.mark.parametrize("name", PASSES)
def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, signed: dict[str, Path], clean: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing fails with one message; nothing half stays; with room again the run goes on and ends as ever."""
    before = PASSES[PASSES.index(name) - 1] if name != "sign" else None
    pipeline = copy_of(signed[before], tmp_path) if before else begun(tmp_path / "root", "r", SHARDS)
    path = context(pipeline).item_path(name, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patched:
        patched.setattr("secrets.token_hex", lambda n: "full")
        temporary = path.with_name(f".{path.name}.{run_module._host()}.{os.getpid()}.full.tmp")
        temporary.symlink_to("/dev/full")
        with pytest.raises(RunError, match=r"disk is full: .*00000\.arrow"):
            pipeline.run_item(f"near.{name}", 0)
    assert list(path.parent.iterdir()) == []
    finish(pipeline)
    assert contents(pipeline.run.steps) == clean


# -- closing ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a run that is done but for closing its stage."""
    root = tmp_path_factory.mktemp("judged") / "root"
    pipeline = begun(root, "r", SHARDS)
    for work in pipeline.passes("dedup"):
        do(pipeline, work.name)
    return root


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_close_that_ends_early_can_be_tried_again(
    tmp_path: Path, judged: Path, clean: dict[str, str], links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nothing away before its marker stands, so the next try needs no pass again; also without hard links."""

    def refuse(*arguments: Any) -> None:
        raise PermissionError("the file system has no links")

    pipeline = copy_of(judged, tmp_path)
    if not links:
        monkeypatch.setattr("os.link", refuse)
    with monkeypatch.context() as patched:
        patched.setattr(
            "curation.pipeline.close_step", lambda *arguments, **named: (_ for _ in ()).throw(LawError("x"))
        )
        with pytest.raises(LawError):
            pipeline.close("dedup")
    Pipeline.open(pipeline.run.folder).close("dedup")
    assert contents(pipeline.run.steps) == clean
    assert list(pipeline.run.work.iterdir()) == []


def test_two_that_close_at_once(tmp_path: Path, judged: Path, clean: dict[str, str]) -> None:
    """One of them succeeds at least, and no signature is lost."""
    pipeline = copy_of(judged, tmp_path)
    gate, opened = os.pipe()

    def close() -> None:
        os.read(gate, 1)
        Pipeline.open(pipeline.run.folder).close("dedup")

    children = [in_child(close) for _ in range(3)]
    os.write(opened, b"xxx")
    assert 0 in [ended(child) for child in children]
    os.close(gate)
    os.close(opened)
    assert contents(pipeline.run.steps) == clean
    assert not context(pipeline).folder.exists()


# -- killed, and two at once ------------------------------------------------------------------------


def in_child(work: Callable[[], object]) -> int:
    """Fork, do the work in the child; returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    """Exit code of a child, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _killed(*arguments: Any, **named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    "moment", ["pyarrow.ipc.RecordBatchFileWriter.write", "pathlib.Path.replace", "curation.pipeline.write_json"]
)
def test_a_worker_that_is_killed(tmp_path: Path, clean: dict[str, str], name: str, moment: str) -> None:
    """kill -9 with the file half published, not yet renamed, or without its marker; then the same again ends as ever."""
    pipeline = begun(tmp_path, "r", SHARDS)
    for before in PASSES[: PASSES.index(name)]:
        do(pipeline, f"near.{before}")
    pipeline.passes("dedup")  # writes what preflight found

    def die() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(moment, _killed)
            do(pipeline, f"near.{name}")

    assert ended(in_child(die)) == -signal.SIGKILL
    assert list(context(pipeline).folder.glob(f"{name}/_items/*.json")) == []
    assert bool(list(tmp_path.rglob("*.tmp"))) is (moment != "curation.pipeline.write_json")
    finish(Pipeline.open(pipeline.run.folder))
    pipeline.run.sweep()
    assert contents(pipeline.run.steps) == clean
    assert list(tmp_path.rglob("*.tmp")) == []


def test_two_workers_at_the_same_items(tmp_path: Path, signed: dict[str, Path], clean: dict[str, str]) -> None:
    """Two processes that do the same items at the same time both succeed, and leave the bytes that one leaves."""
    expected = contents(context(Pipeline.open(signed["verify"] / "runs" / "r")).folder)
    pipeline = begun(tmp_path, "r", SHARDS)
    step, its_context = pipeline.placed[0].step, context(pipeline)
    assert isinstance(step, Near)

    def work(name: str, gate: int) -> None:
        os.read(gate, 1)
        for _ in range(3):
            for item in range(step.n_items(name, its_context)):
                step.run_item(name, item, its_context)
        do(pipeline, f"near.{name}")

    for name in PASSES:
        gate, opened = os.pipe()
        children = [in_child(partial(work, name, gate)) for _ in range(2)]
        os.write(opened, b"xx")
        assert [ended(child) for child in children] == [0, 0]
        os.close(gate)
        os.close(opened)
    assert contents(its_context.folder) == expected
    for marker in its_context.folder.rglob("_items/*.json"):
        file = marker.parents[1] / f"{marker.stem}.arrow"
        told = json.loads(marker.read_text(encoding="utf-8"))["sha256"]
        assert told == hashlib.sha256(file.read_bytes()).hexdigest()
    finish(pipeline)
    assert contents(pipeline.run.steps) == clean
