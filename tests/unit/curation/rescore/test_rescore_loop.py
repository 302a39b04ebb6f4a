"""Thresholds from the ledger to the marker, step by step, with toy checkpoints: which are due, what each judges, how it ends."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation import rescore_tasks as tasks
from curation.blacklist import Blacklist
from curation.blacklist.files import open_files
from curation.blacklist.history import latest_number, read_version
from curation.errors import ConfigError, LawError, RunError
from curation.rescore import publish as ending
from curation.rescore.propose import read_proposed
from curation.rescore.settings import RescoreSettings, load_settings, settings_path
from curation.rescore.threshold import Threshold
from curation.rescore_command import add_rescore
from curation.run import Run, read_json, write_json
from tests.rescore_loops import EVERY, Loop, texts, write_texts

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

Command = Callable[..., int]
Add = Callable[..., Run]


@pytest.fixture
def command(loop: Loop) -> Command:
    """`corpusmill rescore` in this process."""

    def run(*words: str, **settings: Any) -> int:
        parser = argparse.ArgumentParser()
        add_rescore(parser.add_subparsers())
        arguments = parser.parse_args(["rescore", str(loop.settings_file(**settings)), "--quiet", *words])
        return int(arguments.function(arguments))

    return run


@pytest.fixture(scope="module")
def add(tmp_path_factory: pytest.TempPathFactory) -> Add:
    """Puts a run that is done into a loop: made once, then copied."""
    made = Loop(tmp_path_factory.mktemp("made"))

    def put(loop: Loop, run_id: str, n: int, seed: int = 0) -> Run:
        name = f"{run_id}-{n}-{seed}"
        source = Loop(made.folder / name)
        if not source.root.exists():
            source.add_run(run_id, texts(n, seed))
        return Run(shutil.copytree(source.root / "runs" / run_id, loop.root / "runs" / run_id))

    return put


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is not written: a second each, of which nothing is asserted."""
    monkeypatch.setattr("curation.report.rescore_report.write_rescore_report", lambda folder: folder)


def passed(loop: Loop, model: Path, *numbers: int) -> Any:
    """A training with a checkpoint a little behind each of these multiples."""
    attempt = loop.attempt()
    for n in numbers:
        attempt.append(n * EVERY + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))
    return attempt


def stamps(loop: Loop) -> dict[Path, int]:
    """When each file of the root was changed."""
    return {path: path.stat().st_mtime_ns for path in loop.root.rglob("*") if path.is_file() and path.name != ".lock"}


# -- which are due -----------------------------------------------------------------------------


def test_each_multiple_is_due_with_the_first_checkpoint_behind_it(loop: Loop, model: Path) -> None:
    """Two passed by one line share it; the second is held back, for it will have nothing of its own to judge."""
    attempt = passed(loop, model, 1)
    attempt.append(3100, 3, "c3", sha256=loop.checkpoint("c3", model))
    settings = loop.settings()
    assert tasks.due(settings) == [1000, 2000]
    entries = [Threshold(settings, n).info["entry"]["checkpoint"] for n in (1000, 2000, 3000)]
    assert entries == ["c1", "c3", "c3"]


def test_a_roll_back_changes_nothing_of_what_was_seen(loop: Loop, model: Path) -> None:
    """The entry of a threshold stays the one it was first seen with; one that is no longer passed is due all the same."""
    passed(loop, model, 1, 2)
    settings = loop.settings()
    assert tasks.due(settings) == [1000, 2000]
    again = loop.attempt()
    again.append(1500, 9, "d1", sha256=loop.checkpoint("d1", model))
    assert tasks.due(settings) == [1000, 2000]
    assert Threshold(settings, 1000).info["entry"]["checkpoint"] == "c1"


def test_an_empty_ledger_and_another_training_are_told(loop: Loop, model: Path, caplog: Any) -> None:
    """Nothing is due, and a log line says why that may be a mistake."""
    assert tasks.due(loop.settings()) == []
    assert "holds nothing yet" in caplog.text
    passed(loop, model, 1)
    settings = loop.settings(training={"run": "other", "ledger": "training"})
    assert tasks.due(settings) == []
    assert "knows no training 'other', only toy" in caplog.text


# -- how they end ------------------------------------------------------------------------------


def test_runs_of_a_threshold_are_chosen_together_and_published_once(
    loop: Loop, add: Add, model: Path, command: Command, capsys: Any
) -> None:
    """One version for two runs; percentiles over both; again nothing is done; the facts say which training and checkpoint."""
    add(loop, "a", 100)
    add(loop, "b", 60, 1)
    passed(loop, model, 1)
    assert command("--once") == 0
    done = loop.done(1000)
    assert (done["state"], done["version"], done["counts"]["judged"]) == ("published", 1, 160)
    entries = Blacklist.open(str(loop.root / "blacklist")).entries()
    assert len(entries) == done["counts"]["entries"] == 8
    assert set(entries.column("note").to_pylist()) == {f"scored in run {one} at 1,000 tokens" for one in "ab"}
    facts = read_version(open_files(loop.root / "blacklist"), 1).facts
    assert (facts["once"], facts["tokens_seen"], facts["decision"]) == ("toy/1000", 1005, "not_asked")
    threshold = Threshold(loop.settings(), 1000)
    chosen = read_proposed(threshold, "chosen")
    assert set(chosen.column("run_id").to_pylist()) == {"a", "b"}
    assert sum(row["high_chosen"] for row in read_proposed(threshold, "groups").to_pylist()) == chosen.num_rows == 8
    before, settings = stamps(loop), threshold.settings
    assert (tasks.due(settings), tasks.begin(settings), tasks.plan(settings, "count")) == ([], [], [])
    assert (tasks.publish(settings), tasks.report(settings), tasks.gate(settings)) == ({}, {}, {"waiting": 0})
    assert command("--status") == 0
    assert "published" in capsys.readouterr().out
    assert stamps(loop) == before


@pytest.mark.usefixtures("no_report")
def test_what_was_judged_is_not_judged_again(loop: Loop, add: Add, model: Path, command: Command) -> None:
    """A later threshold takes new runs only; packed and unfinished ones are left; without new ones it ends at once."""
    add(loop, "a", 60)
    passed(loop, model, 1, 2, 3)
    assert command("--once", crawl={"runs": ["a"]}) == 0
    assert [loop.done(n)["state"] for n in (1000, 2000, 3000)] == ["published", "no_documents", "no_documents"]
    packed = add(loop, "packed", 60, 1)
    write_json(packed.pack / "_done.json", {})
    running = add(loop, "running", 60, 2)
    running.update(state="running")
    add(loop, "new", 60, 3)
    attempt = loop.attempt()
    attempt.append(4005, 4, "c4", sha256=loop.checkpoint("c4", model))
    assert command("--once") == 0
    assert Threshold(loop.settings(), 4000).info["runs"] == ["new"]


@pytest.mark.usefixtures("no_report")
def test_a_checkpoint_that_is_gone_is_superseded_by_a_later_one(
    loop: Loop, add: Add, model: Path, command: Command
) -> None:
    """Not before a later one is there; then the documents go to the later one."""
    add(loop, "a", 60)
    attempt = passed(loop, model, 1)
    shutil.rmtree(loop.training / "c1")
    assert command("--once") == 1
    assert Threshold(loop.settings(), 1000).done is None
    attempt.append(2005, 2, "c2", sha256=loop.checkpoint("c2", model))
    assert command("--once") == 0
    assert [loop.done(n)["state"] for n in (1000, 2000)] == ["superseded", "published"]


def test_superseded_says_why(loop: Loop, add: Add, model: Path) -> None:
    """The marker names both checkpoints; an overwritten one counts as gone; a damaged one does not."""
    add(loop, "a", 60)
    passed(loop, model, 1, 2)
    settings = loop.settings()
    assert tasks.due(settings) == [1000, 2000]
    (loop.training / "c1" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(RunError, match="not whole"):
        tasks.pin(settings, 1000)
    shutil.rmtree(loop.training / "c1")
    waiting = loop.settings(wait_seconds=1000)
    with pytest.raises(RunError, match="found nothing"):
        tasks.pin(waiting, 1000, wait=False)
    assert tasks.pin(settings, 1000)["state"] == "superseded"
    assert "c1 is gone; that of 2,005 tokens (c2) is there" in loop.done(1000)["why"]


@pytest.mark.usefixtures("no_report")
def test_a_held_checkpoint_may_go(loop: Loop, add: Add, model: Path, command: Command) -> None:
    """What is held judges, whatever becomes of the trainer's own; it is let go when the threshold is done."""
    add(loop, "a", 60)
    passed(loop, model, 1)
    settings = loop.settings()
    tasks.due(settings)
    tasks.pin(settings, 1000)
    shutil.rmtree(loop.training / "c1")
    assert command("--once") == 0
    assert loop.done(1000)["state"] == "published"
    assert [path.name for path in (loop.folder_of(1000) / "_model").iterdir()] == ["pinned.json"]


@pytest.mark.usefixtures("no_report")
def test_nothing_is_chosen_of_too_few(loop: Loop, add: Add, model: Path, command: Command) -> None:
    """No version, no question, a report and a marker."""
    add(loop, "a", 10)
    passed(loop, model, 1)
    assert command("--once", approval=True) == 0
    assert (loop.done(1000)["state"], loop.done(1000)["version"]) == ("nothing_chosen", None)
    assert not (loop.root / "blacklist").exists()


@pytest.mark.usefixtures("no_report")
def test_a_person_decides_once(loop: Loop, add: Add, model: Path, command: Command, capsys: Any) -> None:
    """Nothing is published before; the first word counts; a threshold that is not there cannot be decided about."""
    add(loop, "a", 100)
    passed(loop, model, 1)
    assert command("--once", approval=True) == 0
    assert command("--status", approval=True) == 0
    assert "needs approval" in capsys.readouterr().out
    assert not (loop.root / "blacklist").exists()
    with pytest.raises(ConfigError, match="no threshold 7 of training 'toy'; known: 1,000"):
        command("--approve", "7")
    assert command("--reject", "1_000", "--note", "too much") == 0
    assert loop.done(1000)["state"] == "rejected"
    assert read_json(loop.folder_of(1000) / "decision.json")["note"] == "too much"
    with pytest.raises(ConfigError, match=r"was rejected by .*first word counts"):
        command("--approve", "1000")


@pytest.mark.usefixtures("no_report")
def test_death_between_append_and_marker_appends_once(
    loop: Loop, add: Add, model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try finds the version in the history."""
    add(loop, "a", 100)
    passed(loop, model, 1)

    class Killed(BaseException):
        pass

    def dies(*args: Any, **more: Any) -> None:
        raise Killed

    monkeypatch.setattr(ending, "read_version", dies)
    with pytest.raises(Killed):
        command("--once")
    monkeypatch.undo()
    assert latest_number(open_files(loop.root / "blacklist")) == 1
    assert command("--once") == 0
    assert (loop.done(1000)["version"], latest_number(open_files(loop.root / "blacklist"))) == (1, 1)


@pytest.mark.usefixtures("no_report")
def test_files_of_crawl_go_to_one_threshold_each(loop: Loop, model: Path, command: Command) -> None:
    """A file that changed is new; the run is the threshold's own, and no other training takes it."""
    (loop.folder / "crawl.yaml").write_text("steps: [{length: {min_units: 3}}]\n", encoding="utf-8")
    crawl = {"runs": ["*"], "input": ["new"], "config": "crawl.yaml"}
    write_texts(loop.folder / "new" / "1.jsonl", texts(40))
    attempt = passed(loop, model, 1)
    assert command("--once", crawl=crawl) == 0
    write_texts(loop.folder / "new" / "2.jsonl", texts(30, 1))
    attempt.append(2005, 2, "c2", sha256=loop.checkpoint("c2", model))
    assert command("--once", crawl=crawl) == 0
    assert [loop.done(n)["counts"]["documents"] for n in (1000, 2000)] == [40, 30]


# -- the pieces of the DAG ---------------------------------------------------------------------


def test_chunks_cover_every_shard_of_every_run_once(loop: Loop, add: Add, model: Path) -> None:
    """Whatever their size; a threshold that cannot be planned stands in no chunk, and leaves a word."""
    for name in "abc":
        add(loop, name, 30, ord(name))
    passed(loop, model, 1)
    settings = loop.settings()
    tasks.due(settings)
    tasks.pin(settings, 1000)
    assert tasks.begin(settings) == []
    assert tasks.plan(settings, "count") == ["1000/a 0-0; 1000/b 0-0; 1000/c 0-0"]
    assert tasks.plan(settings, "count", chunk_mb=1e-4) == ["1000/a 0-0", "1000/b 0-0", "1000/c 0-0"]
    assert tasks.plan(settings, "score") == []
    with pytest.raises(RunError, match="not counted yet"):
        tasks.gate(settings)
    for chunk in tasks.plan(settings, "count"):
        assert tasks.work(settings, "count", chunk) == {"items": 3, "reused": 0}
        assert tasks.work(settings, "count", chunk) == {"items": 3, "reused": 3}
    assert len(tasks.plan(settings, "score")) == 1


def test_what_is_left_without_documents_ends_when_another_begins(loop: Loop, add: Add, model: Path) -> None:
    """Three passed by one line: the first judges all, the others end in the same round, without a copy of the checkpoint."""
    add(loop, "a", 30)
    loop.attempt().append(3005, 3, "c3", sha256=loop.checkpoint("c3", model))
    settings = loop.settings()
    assert tasks.due(settings) == [1000]
    assert tasks.pin(settings, 1000)["state"] == "pinned"
    tasks.begin(settings)
    assert [loop.done(n)["state"] for n in (2000, 3000)] == ["no_documents"] * 2
    assert not (loop.folder_of(2000) / "_model").exists()
    assert Threshold(settings, 1000).info["runs"] == ["a"]


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([ConfigError("a")], ConfigError),
        ([ConfigError("a"), ConfigError("b")], ConfigError),
        ([LawError("a"), RunError("b")], RunError),
        ([RunError("a"), ZeroDivisionError("b")], ZeroDivisionError),
    ],
)
def test_errors_of_several_thresholds_are_one(errors: list[Exception], kind: type[Exception]) -> None:
    """Tried again unless no try can help; a fault of the program is not hidden."""
    assert type(tasks._together(errors)) is kind


def test_events_come_into_the_ledger_once(loop: Loop) -> None:
    """Wrong ones are counted, logged and not looked at again; those of other trainings are left alone."""
    right = {"training_run": "toy", "tokens_seen": 5, "step": 1}
    events = [None, 7, {"training_run": "other"}, {"training_run": "toy", "step": "x"}, right, right]
    settings = loop.settings()
    assert tasks.take_reports(settings, events) == {"reports": 6, "recorded": 1, "known": 1, "wrong": 3, "others": 1}
    assert tasks.take_reports(settings, events) == {"reports": 6, "recorded": 0, "known": 5, "wrong": 0, "others": 1}
    (loop.root / "rescore" / "toy" / "reports.json").unlink()
    assert tasks.take_reports(settings, events)["recorded"] == 0


# -- settings ----------------------------------------------------------------------------------


def test_paths_begin_at_the_file(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in it are made absolute; URLs and names of shipped configs stay."""
    monkeypatch.chdir("/")
    settings = loop.settings(crawl={"input": ["new", "s3://b/c"], "config": "web"}, blacklist="memory://b")
    assert settings.training.ledger == loop.training
    assert settings.runs_root == loop.root
    assert settings.crawl.input == (str(loop.folder / "new"), "s3://b/c")
    assert (settings.crawl.config, settings.blacklist_path) == ("web", "memory://b")
    assert RescoreSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"every_token": 1}, r"unknown key every_token \(did you mean 'every_tokens'\?\)"),
        ({"choose": {"max_shares": 1}}, "did you mean 'max_share'"),
        ({"training": {"run": "x"}}, "training.ledger"),
        ({"every_tokens": 0}, "every_tokens"),
        ({"training": {"run": "a\nb", "ledger": "x"}}, r"expected a printable name, found 'a\\nb'"),
        ({"crawl": {"runs": []}}, "neither `runs` nor `input`"),
        ({"crawl": {"input": ["x"], "config": "wep"}}, "no config file"),
        ({"score": {"source": "domain"}, "choose": {"domains": {}}}, "a domain is a source"),
    ],
)
def test_settings_that_cannot_be(loop: Loop, settings: dict[str, Any], words: str) -> None:
    """Are refused with the name of the key."""
    with pytest.raises(ConfigError, match=words):
        loop.settings(**settings)


def test_a_settings_file_that_is_no_mapping(tmp_path: Path) -> None:
    """The keys that the message names are those of such a file."""
    (tmp_path / "a.yaml").write_text("- training\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"keys such as training, root, crawl.*found list"):
        load_settings(tmp_path / "a.yaml")


def test_where_the_dag_finds_its_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The form before the environment; neither: none; relative ones are refused."""
    monkeypatch.delenv("CORPUSMILL_RESCORE", raising=False)
    assert settings_path(None) is None
    monkeypatch.setenv("CORPUSMILL_RESCORE", "/a.yaml")
    assert settings_path(None) == Path("/a.yaml")
    assert settings_path("/b.yaml") == Path("/b.yaml")
    with pytest.raises(ConfigError, match="absolute path"):
        settings_path("b.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path / "none.yaml")
