"""The bodies of the DAG's tasks: ids, chunks, slots, and that any grouping gives what the command line gives."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from curation import tasks
from curation.config import load_config
from curation.errors import ConfigError, RunError
from curation.export import export_kept
from curation.launch import drive, finish_run, start_run
from curation.pipeline import ALL_STAGES, Pipeline
from tests.e2e.conftest import write_corpus
from tests.parity_variants import small, twin

RUN_AFTER = datetime(2026, 5, 20, 14, 23, 22, tzinfo=timezone.utc)
# The safety model takes most of the time: of a long document one part is enough where nothing is about what it says.
SMALL = ["ingest.slice_mb=1", "ingest.shard_mb=1", "safety_model.max_windows=1"]
NO_PACK = [*SMALL, "pack="]


def begin(root_folder: Path, inputs: Path, dag_run_id: str = "mine", **more: Any) -> dict[str, Any]:
    params = {"input": [str(inputs)], "config": "demo", "overrides": NO_PACK, "root": str(root_folder), "name": None}
    params |= more
    return tasks.begin(params, dag_id="curate", dag_run_id=dag_run_id, run_after=RUN_AFTER)


def run_like_the_dag(folder: Path, chunk_mb: float, n_slots: int) -> list[str]:
    """Every task in the order of the DAG, mapped ones backwards; returns what was done."""
    done: list[str] = []
    for stage in ALL_STAGES:
        if stage == "pack" and tasks.parity(folder) is not None:
            done.append("pack.parity")
        slots = {"ingest": 1, "pack": 3}.get(stage, n_slots)
        for slot in range(2, 3) if stage == "pack" else range(1, slots + 1):
            may_be_whole = stage not in ("ingest", "pack")
            planned = tasks.plan(folder, stage, slot, slots, chunk_mb=chunk_mb, may_be_whole=may_be_whole)
            if planned is None:
                break
            if planned.whole:
                tasks.whole(folder, stage, chunk_mb=chunk_mb)
                done.append(f"{stage}.whole")
                break
            if may_be_whole:
                assert tasks.whole(folder, stage, chunk_mb=chunk_mb) == {"items": 0, "reused": 0}
            for chunk in reversed(planned.chunks):
                tasks.work(folder, stage, planned.passes, chunk)
                done.append(f"{'+'.join(planned.passes)} {chunk}")
        if stage == "pack":
            tasks.assemble(folder)
        if stage in Pipeline.open(folder).stages():
            tasks.check(folder, stage)
    tasks.report(folder, [])
    return done


def kept(folder: Path) -> list[str]:
    out = folder / "kept.jsonl"
    export_kept(Pipeline.open(folder), out)
    return sorted(out.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("dag_run_id", "expected"),
    [
        ("zhweb-20260520-142322-8c4a", "zhweb-20260520-142322-8c4a"),
        ("my.run_7", "my.run_7"),
        ("manual__2026-05-20T14:23:22.123456+00:00_ab", None),
        ("manual__x", None),
        ("scheduled__2026-05-20T00:00:00+00:00", None),
        ("backfill__7", None),
        ("../../etc", None),
        ("a/b", None),
        (".hidden", None),
        ("", None),
        ("x" * 121, None),
        ("日本語", None),
    ],
)
def test_a_chosen_id_is_kept_and_any_other_becomes_a_safe_one(dag_run_id: str, expected: str | None) -> None:
    """The same at every retry, different for different DAG runs, and never a path."""
    found = tasks.run_id_for("curate", dag_run_id, "Zh Web!", RUN_AFTER)
    assert found == tasks.run_id_for("curate", dag_run_id, "Zh Web!", RUN_AFTER)
    if expected is not None:
        assert found == expected
    else:
        assert found.startswith("zh-web-20260520-142322-")
        assert found != tasks.run_id_for("curate", dag_run_id + "2", "Zh Web!", RUN_AFTER)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for number in range(4):
        write_corpus(folder / f"{number}.jsonl", 300, seed=number)
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that only need a run which is through."""
    folder = tmp_path_factory.mktemp("few")
    write_corpus(folder / "few.jsonl", 40)
    return folder


@pytest.fixture(scope="module")
def by_command_line(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pipeline = start_run(load_config("demo", SMALL), [str(inputs)], tmp_path_factory.mktemp("root"))
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return pipeline.run.folder


@pytest.mark.parametrize(("chunk_mb", "n_slots"), [(3, 8), (0.4, 8), (0.4, 2), (0.001, 1)])
def test_any_grouping_keeps_what_the_command_line_keeps(
    inputs: Path, by_command_line: Path, tmp_path: Path, chunk_mb: float, n_slots: int
) -> None:
    """Whole stages, chunks, more passes than slots: the same documents, the same numbers."""
    overrides = SMALL if n_slots == 2 else NO_PACK
    begun = begin(tmp_path, inputs, overrides=overrides)
    folder = tmp_path / begun["run"]
    done = run_like_the_dag(folder, chunk_mb, n_slots)
    assert kept(folder) == kept(by_command_line)
    left, right = (json.loads((f / "report" / "funnel.json").read_text()) for f in (folder, by_command_line))
    assert [step["dropped"] for step in left["steps"]] == [step["dropped"] for step in right["steps"]]
    assert left["packed"] == (right["packed"] if overrides == SMALL else None)
    assert tasks.gate(folder, [])["kept"] == left["kept"]
    if chunk_mb == 3:  # all text is less than one chunk, all passes together read more
        assert "dedup.whole" in done
        assert begin(tmp_path, inputs, overrides=overrides) == begun
        whole = ["dedup.whole", "language.whole", "quality.whole", "safety.whole"]
        assert run_like_the_dag(folder, chunk_mb, n_slots) == whole
    if (chunk_mb, n_slots) == (0.4, 8):
        assert len([what for what in done if what.startswith("exact ")]) > 1
    if n_slots == 2:
        assert "exact.resolve+exact+near.sign+near.bucket+near.cluster+near.verify+near all" in done


def test_an_item_of_a_closed_stage_is_left_alone(few: Path, tmp_path: Path) -> None:
    """A task that someone clears after its stage was closed has nothing to do, and breaks nothing."""
    folder = tmp_path / begin(tmp_path, few)["run"]
    run_like_the_dag(folder, 256, 8)
    assert tasks.work(folder, "dedup", ["exact.scatter"], "0-1") == {"items": 0, "reused": 0}
    assert tasks.work(folder, "ingest", ["ingest.read"], "0-0") == {"items": 0, "reused": 0}
    tasks.gate(folder, [])


def test_unused_stages_are_named_with_the_stage_before_them(inputs: Path, tmp_path: Path) -> None:
    """Each unused stage is skipped by the last used one before it, so none is forgotten."""
    folder = tmp_path / begin(tmp_path, inputs, overrides=NO_PACK)["run"]
    used = ("ingest", "dedup", "language", "quality")
    assert [tasks.unused_after(folder, stage) for stage in used] == [[], [], [], []]
    assert tasks.unused_after(folder, "safety") == ["tokens", "pack"]
    assert tasks.plan(folder, "tokens", 1, 4) is None


def test_an_unused_stage_between_used_ones_is_skipped_by_the_one_before_it(inputs: Path, tmp_path: Path) -> None:
    """A config without any step on languages."""
    config = tmp_path / "mine.yaml"
    config.write_text("steps: [exact, length]\n", encoding="utf-8")
    folder = tmp_path / begin(tmp_path, inputs, config=str(config), overrides=[])["run"]
    assert tasks.unused_after(folder, "ingest") == []
    assert tasks.unused_after(folder, "dedup") == ["language"]
    assert tasks.unused_after(folder, "quality") == ["safety", "tokens", "pack"]
    assert tasks.plan(folder, "language", 1, 4) is None


@pytest.mark.parametrize(
    ("params", "needle"),
    [
        ({"root": "runs"}, "absolute"),
        ({"input": ["data/x.jsonl"]}, "absolute"),
        ({"config": "configs/mine.yaml"}, "absolute"),
        ({"config": "demmo"}, "demo"),
        ({"overrides": ["length.min_wordz=3"]}, "min_wordz"),
        ({"name": "x" * 61}, "name"),
    ],
)
def test_a_wrong_parameter_is_one_message(inputs: Path, tmp_path: Path, params: dict[str, Any], needle: str) -> None:
    """A ConfigError, which the DAG does not try again."""
    with pytest.raises(ConfigError, match=needle):
        begin(tmp_path, inputs, **params)


def test_the_name_begins_the_run_id_whatever_it_looks_like(inputs: Path, tmp_path: Path) -> None:
    """A name that YAML would read as a number stays a name."""
    begun = begin(tmp_path, inputs, dag_run_id="manual__1", name="2026")
    assert begun["run"].startswith("runs/2026-20260520-")
    assert Pipeline.open(tmp_path / begun["run"]).run.info["engine"]["dag_run_id"] == "manual__1"


def test_a_failed_run_gets_its_report_and_its_reason(inputs: Path, tmp_path: Path) -> None:
    """run.json and the gate name the task, the chunk and the message that it left behind."""
    folder = tmp_path / begin(tmp_path, inputs)["run"]
    name = tasks.TaskName("ingest.read", 3, 1, "ingest.read 6-7")
    with pytest.raises(RunError), tasks.recorded(folder, name):
        raise RunError("the disk is full")
    assert tasks.report(folder, ["ingest.read_3"]) == {"failed": 1}
    assert (folder / "report" / "report.html").is_file()
    info = Pipeline.open(folder).run.info
    assert info["state"] == "failed"
    assert info["error"] == "ingest.read_3 (ingest.read 6-7): the disk is full"
    with pytest.raises(RunError, match="the disk is full"):
        tasks.gate(folder, ["ingest.read_3"])


def test_the_gate_is_red_without_proof(few: Path, tmp_path: Path) -> None:
    """No failed task is not enough: without closed stages or without a report the run is not green."""
    folder = tmp_path / begin(tmp_path, few, overrides=SMALL)["run"]
    with pytest.raises(RunError):
        tasks.gate(folder, [])
    with pytest.raises(RunError, match="start"):
        tasks.gate(None, ["start"])
    run_like_the_dag(folder, 256, 1)
    assert tasks.gate(folder, [])["kept"] > 0
    Pipeline.open(folder).run.update(state="running")
    with pytest.raises(RunError, match="not finished"):
        tasks.gate(folder, [])
    assert tasks.assemble(folder) == {"reused": True}
    assert tasks.token_file_facts(folder)["path"] == f"runs/{folder.name}/pack/tokens.arrow"


def test_parity_is_a_task_of_its_own(tmp_path: Path) -> None:
    """None where nothing is packed; a difference is a ConfigError before anything is encoded; once the file stands there
    is nothing to compare any more."""
    config, given = tmp_path / "mine.yaml", tmp_path / "a.jsonl"
    write_corpus(given, 60)
    with given.open("a", encoding="utf-8") as out:
        out.write(
            json.dumps({"id": "tool", "text": "She may use <tool> for that until the evening comes. " * 5}) + "\n"
        )
    ours, theirs = small(tmp_path / "ours")[0], twin(tmp_path / "theirs", "added")
    pack = f"pack: {{tokenizer: {ours}, engine: stock, seq_len: [128, 256], holdout_share: 0.2}}\n"
    config.write_text(f"steps: [length]\n{pack}", encoding="utf-8")

    def begun(dag_run_id: str, *overrides: str) -> Path:
        params = {"config": str(config), "overrides": ["ingest.max_quarantine_share=0.2", *overrides]}
        return tmp_path / begin(tmp_path, given, dag_run_id, **params)["run"]

    def until_pack(folder: Path) -> None:
        for stage in ("ingest", "quality"):
            tasks.work(folder, stage, [one.name for one in Pipeline.open(folder).passes(stage)], "all")
            tasks.check(folder, stage)

    assert tasks.parity(begun("none", "pack=")) is None
    wrong = begun("wrong", f"pack.trainer={theirs}")
    until_pack(wrong)
    with pytest.raises(ConfigError, match=r"pack\.trainer: .*document tool: "):
        tasks.parity(wrong)
    assert not (wrong / "work").exists()
    right = begun("right", f"pack.trainer={ours}")
    until_pack(right)
    counts = tasks.parity(right)
    assert counts is not None
    assert (counts["equal"], counts["sampled_documents"]) == (True, counts["kept_documents"])
    planned = tasks.plan(right, "pack", 2, 3, may_be_whole=False)
    assert planned is not None
    assert planned.passes == ["pack.encode"]
    tasks.work(right, "pack", planned.passes, planned.chunks[0])
    tasks.assemble(right)
    tasks.check(right, "pack")
    assert tasks.parity(right) == {"reused": True}
    assert tasks.plan(right, "pack", 2, 3, may_be_whole=False) == tasks.Planned([], [])
    facts = tasks.token_file_facts(right)
    assert (right.parents[1] / facts["path"]).is_file()


def test_configs_of_the_form_are_the_shipped_ones_and_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of shipped configs, paths of those in CORPUSMILL_CONFIGS."""
    (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    monkeypatch.setenv("CORPUSMILL_CONFIGS", str(tmp_path))
    assert {"demo", "web", str(tmp_path / "mine.yaml")} <= set(tasks.known_configs())
