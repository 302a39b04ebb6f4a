"""Steps of the DAG, one after the other: what a threshold that does not get on leaves behind, and whom it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation import rescore_tasks as tasks
from curation.errors import RunError
from curation.rescore import crawl
from curation.rescore.score import Rescore
from curation.rescore.settings import RescoreSettings
from curation.rescore.threshold import Threshold
from tests.rescore_loops import Loop, texts, write_texts

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")


def passed(loop: Loop, model: Path, *tokens: int) -> None:
    """A training with a checkpoint a little behind each of these."""
    attempt = loop.attempt()
    for n in tokens:
        attempt.append(n + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))


def round_of(settings: RescoreSettings) -> dict[str, str]:
    """The tasks of one DAG run in their order; what each of those that are red said."""
    red: dict[str, str] = {}

    def step(name: str, function: Any, *args: Any) -> Any:
        try:
            return function(settings, *args)
        except Exception as error:
            red[name] = str(error)
            return []

    for tokens in step("due", tasks.due):
        step("pin", tasks.pin, tokens)
    for tokens in step("begin", tasks.begin):
        step("ingest", tasks.ingest, tokens)
    for kind in ("count", "score"):
        for chunk in step(f"plan {kind}", tasks.plan, kind):
            step(kind, tasks.work, kind, chunk)
    for name in ("propose", "approvals", "publish", "report"):
        step(name, getattr(tasks, name))
    step("gate", tasks.gate, [name for name in red if name != "gate"])
    return red


def test_a_window_that_is_too_long_turns_the_gate_red_alone(loop: Loop, model: Path) -> None:
    """The gate and the word on disk name the cause, in every round; the mended settings count from the next one on."""
    loop.add_run("a", texts(30))
    passed(loop, model, 1000)
    wrong = loop.settings(score={"window": 512, "device": "cpu", "dtype": "float32"})
    for _ in range(2):
        red = round_of(wrong)
        assert list(red) == ["gate"]
        assert "plan score: window: expected at most 256" in red["gate"]
        assert "rescore.json" not in red["gate"]
    assert round_of(loop.settings()) == {}
    assert loop.done(1000)["state"] == "published"


def test_a_crawl_that_cannot_be_read_is_the_word_that_stands(loop: Loop, model: Path) -> None:
    """Its plan has nothing to say but that it is not read; so has nothing that comes after it."""
    (loop.folder / "crawl.yaml").write_text("steps: [{length: {min_units: 3}}]\n", encoding="utf-8")
    write_texts(loop.folder / "new" / "1.jsonl", texts(30))
    passed(loop, model, 1000)
    settings = loop.settings(crawl={"runs": [], "input": ["new"], "config": "crawl.yaml"})
    due = tasks.due(settings)
    tasks.pin(settings, due[0])
    tasks.begin(settings)
    (loop.folder / "new" / "1.jsonl").unlink()
    red = round_of(settings)
    assert list(red) == ["ingest", "gate"]
    assert f"{loop.folder}/new/1.jsonl" in red["gate"]
    assert "ingest: " in red["gate"]


def test_a_piece_that_fails_stops_no_other_and_its_word_stands(
    loop: Loop, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where memory ran out; pieces done after it, and steps that wait for it, do not hide it."""
    for name in "abc":
        loop.add_run(name, texts(30, ord(name)))
    passed(loop, model, 1000)
    settings = loop.settings()
    run_item = Rescore.run_item

    def short_of_memory(self: Rescore, pass_name: str, item: int) -> dict[str, Any]:
        if (pass_name, self.run.run_id) == ("rescore.count", "a"):
            raise MemoryError("no room for a")
        return run_item(self, pass_name, item)

    monkeypatch.setattr(Rescore, "run_item", short_of_memory)
    red = round_of(settings)
    assert list(red) == ["count", "gate"]
    assert "count a 0-0: no room for a" in red["gate"]
    assert [len(list((loop.folder_of(1000) / name / "counts").glob("*.arrow"))) for name in "abc"] == [0, 1, 1]
    monkeypatch.undo()
    assert round_of(settings) == {}


def test_a_threshold_that_no_task_has_scored_is_told(loop: Loop, model: Path) -> None:
    """A worker that was lost leaves no word: the gate is red all the same."""
    loop.add_run("a", texts(30))
    passed(loop, model, 1000)
    settings = loop.settings()
    tasks.pin(settings, tasks.due(settings)[0])
    tasks.begin(settings)
    tasks.plan(settings, "count")
    assert tasks.propose(settings) == {}
    with pytest.raises(RunError, match=r"1,000, propose: .*not scored yet"):
        tasks.gate(settings)


def test_settings_are_mended_until_scoring_begins_and_never_while_it_does(
    loop: Loop, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one process begins to score, another one leaves the settings as they are; and when it has, for ever."""
    loop.add_run("a", texts(30))
    passed(loop, model, 1000)
    old = loop.settings()
    tasks.pin(old, tasks.due(old)[0])
    tasks.begin(old)
    first = Threshold(old, 1000).info
    tasks.begin(old)
    assert Threshold(old, 1000).info == first
    mended = loop.settings(keep_model=True)
    tasks.begin(mended)
    assert Threshold(old, 1000).begun_with == mended
    assert Threshold(old, 1000).info["begun"] == first["begun"], "the moment when it began is the first one"
    create = Rescore.create

    def while_it_is_begun(*args: Any) -> Rescore:
        assert crawl.begin(Threshold(old, 1000))
        assert Threshold(old, 1000).begun_with == mended
        return create(*args)

    monkeypatch.setattr(Rescore, "create", while_it_is_begun)
    tasks.plan(mended, "count")
    assert tasks.begin(old) == []
    assert Threshold(old, 1000).begun_with == mended
