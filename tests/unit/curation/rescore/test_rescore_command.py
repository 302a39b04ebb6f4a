"""`corpusmill rescore` for weeks: what may fail and come back, and thresholds that a person gives up."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation import rescore_command
from curation import rescore_tasks as tasks
from curation.errors import ConfigError, RunError
from curation.rescore.threshold import Threshold
from tests.rescore_loops import Loop, texts

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

Command = Callable[..., int]


@pytest.fixture
def command(loop: Loop) -> Command:
    """`corpusmill rescore` in this process, with the settings that lie there."""
    loop.settings_file()

    def run(*words: str) -> int:
        parser = argparse.ArgumentParser()
        rescore_command.add_rescore(parser.add_subparsers())
        arguments = parser.parse_args(["rescore", str(loop.folder / "rescore.yaml"), "--quiet", *words])
        return int(arguments.function(arguments))

    return run


class Stopped(BaseException):
    """The end of a loop that has none."""


def test_the_loop_outlasts_a_ledger_and_settings_that_cannot_be_read(
    loop: Loop, command: Command, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """It says so, keeps the last good settings, and looks again; with --once they are an error as ever."""
    whole, looked = (loop.folder / "rescore.yaml").read_bytes(), []

    def due(settings: Any) -> list[int]:
        looked.append(settings.training.run)
        if len(looked) in (1, 2):
            raise [RunError("the ledger hangs"), OSError("stale file handle")][len(looked) - 1]
        return []

    def sleep(seconds: float) -> None:
        if len(looked) == 5:
            raise Stopped
        (loop.folder / "rescore.yaml").write_bytes(whole[: len(whole) // 2] if len(looked) < 4 else whole)

    monkeypatch.setattr(tasks, "due", due)
    monkeypatch.setattr(rescore_command.time, "sleep", sleep)
    with pytest.raises(Stopped):
        command()
    assert looked == ["toy"] * 5
    for words in ("the ledger hangs", "stale file handle", "those of before stay"):
        assert words in caplog.text
    looked.clear()
    with pytest.raises(RunError, match="the ledger hangs"):
        command("--once")


def test_a_fault_of_the_program_at_one_threshold_stops_no_other(
    loop: Loop, model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the exit code says that a threshold did not get on."""
    loop.add_run("a", texts(30))
    attempt = loop.attempt()
    for n in (1, 2):
        attempt.append(1000 * n + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))
    pin, tried = tasks.pin, []

    def pins(settings: Any, tokens: int, **more: Any) -> Any:
        tried.append(tokens)
        if tokens == 1000:
            raise MemoryError("no room")
        return pin(settings, tokens, **more)

    def scores(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(tasks, "pin", pins)
    monkeypatch.setattr(tasks, "score", scores)
    assert command("--once") == 1
    assert tried == [1000, 2000]
    problem = Threshold(loop.settings(), 2000).problem()
    assert problem is not None
    assert (problem["error"], problem["kind"]) == ("a fault", "ZeroDivisionError")


def test_a_threshold_that_cannot_end_is_given_up(loop: Loop, model: Path, command: Command, capsys: Any) -> None:
    """By somebody, with a reason, once; what else it would have judged goes to the next one, and its weights are let go."""
    loop.add_run("a", texts(30))
    loop.add_run("b", texts(30, 1))
    attempt = loop.attempt()
    attempt.append(1005, 1, "c1", sha256=loop.checkpoint("c1", model))
    settings = loop.settings()
    tasks.pin(settings, tasks.due(settings)[0])
    tasks.begin(settings)
    shutil.rmtree(loop.root / "runs" / "a")
    assert command("--once") == 1
    with pytest.raises(ConfigError, match="--note"):
        command("--give-up", "1000")
    with pytest.raises(ConfigError, match="no threshold 7 of training 'toy'; known: 1,000"):
        command("--give-up", "1000", "7", "--note", "x")
    assert command("--give-up", "1_000", "--note", "run a is deleted") == 0
    done = loop.done(1000)
    assert (done["state"], done["version"]) == ("given_up", None)
    assert done["why"].endswith(": run a is deleted")
    assert done["who"]
    assert [path.name for path in (loop.folder_of(1000) / "_model").iterdir()] == ["pinned.json"]
    with pytest.raises(ConfigError, match="is done: given_up"):
        command("--give-up", "1000", "--note", "again")
    assert command("--status") == 0
    assert "given_up" in (told := capsys.readouterr().out)
    assert "run a is deleted" in told
    attempt.append(2005, 2, "c2", sha256=loop.checkpoint("c2", model))
    tasks.pin(settings, tasks.due(settings)[0])
    tasks.begin(settings)
    assert Threshold(settings, 2000).info["runs"] == ["b"]


def test_what_was_decided_is_not_given_up(loop: Loop, model: Path, command: Command) -> None:
    """A version may stand in the blacklist already: the marker must name it."""
    loop.add_run("a", texts(30))
    loop.attempt().append(1005, 1, "c1", sha256=loop.checkpoint("c1", model))
    settings = loop.settings()
    tasks.due(settings)
    (loop.folder_of(1000) / "decision.json").write_text('{"decision": "approved", "who": "ada"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"1,000 was approved by ada.*--once"):
        command("--give-up", "1000", "--note", "x")
