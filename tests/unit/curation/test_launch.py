"""Starting and driving a run: found again, guarded against others, repaired."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from curation.check import damaged_files
from curation.config import RunConfig, parse_config
from curation.errors import ConfigError, InputError, RunError
from curation.export import kept_batches
from curation.filters.length import Length
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import read_json, run_lock
from tests.e2e.conftest import write_corpus

CONFIG = "name: t\ningest: {max_quarantine_share: 0.2}\nsteps: [exact, length]\npack: {seq_len: 256}\n"


def config(*overrides: str) -> RunConfig:
    return parse_config(CONFIG, overrides=overrides)


@pytest.fixture
def done(tmp_path: Path) -> Pipeline:
    """A finished run over 60 documents."""
    write_corpus(tmp_path / "a.jsonl", 60)
    pipeline = start_run(config(), [str(tmp_path / "a.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return pipeline


def again(pipeline: Pipeline, tmp_path: Path, *overrides: str, run_id: str | None = None) -> Pipeline:
    return start_run(config(*overrides), [str(tmp_path / "a.jsonl")], tmp_path / "root", run_id=run_id)


def kept(pipeline: Pipeline) -> list[str]:
    return [doc_id for batch in kept_batches(pipeline, ("id",)) for doc_id in batch.column(0).to_pylist()]


def test_a_finished_run_is_left_alone(done: Pipeline, tmp_path: Path) -> None:
    """The same job again changes no file, not even a time in run.json."""
    before = {path: path.read_bytes() for path in done.run.folder.rglob("*") if path.is_file()}
    second = again(done, tmp_path)
    drive(second, workers=1)
    finish_run(second)
    assert {path: path.read_bytes() for path in done.run.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "lost", ["shards/*.arrow", "steps/*/00000-000.arrow", "pack/tokens.arrow", "pack/documents.parquet"]
)
@pytest.mark.parametrize("damage", ["delete", "cut"])
def test_the_same_job_repairs_what_was_lost(done: Pipeline, tmp_path: Path, lost: str, damage: str) -> None:
    """A deleted or cut file of a finished run is made anew, byte for byte, as the errors promise."""
    for path in list(done.run.folder.glob(lost)):
        whole = path.read_bytes()
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(whole[: len(whole) // 2])
        second = again(done, tmp_path)
        drive(second, workers=1)
        finish_run(second)
        assert path.read_bytes() == whole


def test_another_process_that_holds_the_run_changes_nothing(done: Pipeline, tmp_path: Path) -> None:
    """Neither its config nor its state, whatever was asked for."""
    before = (done.run.config_path.read_bytes(), (done.run.folder / "run.json").read_bytes())
    with run_lock(done.run.folder):
        with pytest.raises(RunError, match="in work by another process"):
            again(done, tmp_path, "length.min_units=90", run_id=done.run.run_id)
        with pytest.raises(RunError, match="in work by another process"):
            drive(done, workers=1)
    assert (done.run.config_path.read_bytes(), (done.run.folder / "run.json").read_bytes()) == before


def test_a_run_that_an_engine_drives_is_not_taken_up(done: Pipeline, tmp_path: Path) -> None:
    """An engine holds no lock between its tasks: the same job begins a run of its own, and --run is refused."""
    done.run.update(state="running", engine={"engine": "airflow", "dag_run_id": "x"})
    assert again(done, tmp_path).run.run_id != done.run.run_id
    with pytest.raises(RunError, match="driven by"):
        again(done, tmp_path, run_id=done.run.run_id)


def test_a_damaged_run_json_does_not_block_others(done: Pipeline, tmp_path: Path) -> None:
    """It is left out with a warning."""
    (tmp_path / "root/runs/broken").mkdir()
    (tmp_path / "root/runs/broken/run.json").write_text("{")
    assert again(done, tmp_path).run.run_id == done.run.run_id


def test_changed_inputs_and_other_ingest_settings_are_refused(done: Pipeline, tmp_path: Path) -> None:
    """A run's documents never change under its verdicts."""
    with pytest.raises(ConfigError, match="other ingest settings"):
        again(done, tmp_path, "ingest.id_column=name", run_id=done.run.run_id)
    os.utime(tmp_path / "a.jsonl", (1, 1))
    with pytest.raises(InputError, match=r"1 inputs changed since run .*a\.jsonl"):
        again(done, tmp_path, run_id=done.run.run_id)
    assert again(done, tmp_path).run.run_id != done.run.run_id


def test_other_memory_after_a_stop_between_passes_keeps_the_same_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of hash ranges follows the memory; files of another number are never mixed in."""
    monkeypatch.setattr("curation.dedup.exact._BYTES_PER_DOCUMENT", 500_000)
    write_corpus(tmp_path / "a.jsonl", 3000)
    whole = start_run(config("pack=", "memory_mb=900"), [str(tmp_path / "a.jsonl")], tmp_path / "whole")
    drive(whole, workers=1)

    stopped = start_run(config("pack=", "memory_mb=500"), [str(tmp_path / "a.jsonl")], tmp_path / "root", run_id="r")
    stopped.run_item("ingest.read", 0)
    stopped.close("ingest")
    scatter, resolve, _ = stopped.passes("dedup")
    assert resolve.n_items > 3
    for item in range(scatter.n_items):
        stopped.run_item("exact.scatter", item)
    for item in range(2):
        stopped.run_item("exact.resolve", item)
    second = start_run(config("pack=", "memory_mb=900"), [str(tmp_path / "a.jsonl")], tmp_path / "root", run_id="r")
    drive(second, workers=1)
    assert kept(second) == kept(whole)


def test_a_failure_is_written_down_with_its_message(tmp_path: Path) -> None:
    """run.json says failed and why; the next call goes on."""
    (tmp_path / "a.jsonl").write_text("no json\n" * 9 + '{"text": "x"}\n')
    pipeline = start_run(config(), [str(tmp_path / "a.jsonl")], tmp_path / "root")
    with pytest.raises(InputError):
        drive(pipeline, workers=1)
    info = json.loads((pipeline.run.folder / "run.json").read_text())
    assert info["state"] == "failed"
    assert "could not be read" in info["error"]


def test_a_raised_limit_after_encoding_encodes_nothing_again(tmp_path: Path) -> None:
    """What the error advises must not cost the whole encoding: parts depend on verdicts and tokenizer alone."""
    write_corpus(tmp_path / "a.jsonl", 60)
    pipeline = start_run(config(), [str(tmp_path / "a.jsonl")], tmp_path / "root", run_id="r")
    for stage in ("ingest", "dedup", "quality"):
        for work in pipeline.passes(stage):
            for item in range(work.n_items):
                pipeline.run_item(work.name, item)
        pipeline.close(stage)
    pipeline.run_item("pack.encode", 0)
    second = start_run(
        config("pack.max_unk_share=0.5", "pack.seq_len=512"), [str(tmp_path / "a.jsonl")], tmp_path / "root", run_id="r"
    )
    assert second.run_item("pack.encode", 0)["reused"] is True
    assert second.pack.digest() != pipeline.pack.digest()


def near_config(*against: Path, **settings: object) -> RunConfig:
    near = {"threshold": 0.9, **settings, "against": [str(path) for path in against]}
    return parse_config(yaml.safe_dump({"name": "n", "steps": ["exact", {"near": near}]}))


def test_what_lies_outside_is_looked_at_before_anything_is_read(tmp_path: Path) -> None:
    """An earlier run that is missing, not done, damaged or signed in another way: nothing is made, no input is opened."""
    source = tmp_path / "a.jsonl"
    write_corpus(source, 60)
    first = start_run(near_config(), [str(source)], tmp_path / "root", run_id="first")
    root = tmp_path / "other"

    def refused(message: str, *against: Path, **settings: object) -> None:
        with pytest.raises(ConfigError, match=message):
            start_run(near_config(*against, **settings), [str(source)], root)
        assert not root.exists()

    refused("nothing at", tmp_path / "none.index")
    refused("first is not finished: its step ingest is not done", first.run.folder)
    drive(first, workers=1)
    finish_run(first)
    refused("was signed with .* this run needs", first.run.folder, threshold=0.8)
    refused("has other shingles", first.run.folder, shingle=3)
    sign = next(first.run.steps.glob("*-near-*/sign/*.arrow"))
    sign.rename(tmp_path / "gone")
    refused(r"sign/.*\.arrow is missing or cut", first.run.folder)
    drive(start_run(near_config(), [str(source)], tmp_path / "root", run_id="first"), workers=1)
    assert start_run(near_config(first.run.folder), [str(source)], root).run.info["state"] == "running"


def test_a_run_that_is_done_is_taken_up_without_the_earlier_ones(tmp_path: Path) -> None:
    """A closed step needs nothing any more; one that is decided anew does, and says so at once."""
    source = tmp_path / "a.jsonl"
    write_corpus(source, 60)
    runs = []
    for against in ([], [tmp_path / "root/runs/r0"]):
        runs.append(start_run(near_config(*against), [str(source)], tmp_path / "root", run_id=f"r{len(runs)}"))
        drive(runs[-1], workers=1)
        finish_run(runs[-1])
    (tmp_path / "root/runs/r0").rename(tmp_path / "gone")

    again = start_run(near_config(tmp_path / "root/runs/r0"), [str(source)], tmp_path / "root", run_id="r1")
    drive(again, workers=1)
    with pytest.raises(ConfigError, match=r"nothing at .*r0"):
        changed = near_config(tmp_path / "root/runs/r0", threshold=0.95)
        start_run(changed, [str(source)], tmp_path / "root", run_id="r1")
    assert Pipeline.open(again.run.folder).config.digest() == again.config.digest()


def test_runs_are_not_read_as_input(done: Pipeline, tmp_path: Path) -> None:
    """A root inside the input folder is refused before it is read, and so is an empty name."""
    with pytest.raises(InputError, match="lies inside an input folder"):
        start_run(config(), [str(tmp_path)], tmp_path / "root")
    with pytest.raises(ConfigError, match="empty name"):
        start_run(config(), [""], tmp_path / "root")


@pytest.mark.parametrize(
    "name", ["shards/*.arrow", "steps/*-length-*/*.arrow", "pack/tokens.arrow", "pack/documents.parquet"]
)
def test_verifying_a_run_names_a_flipped_byte(done: Pipeline, name: str) -> None:
    """Also where the size is right and no marker is gone."""
    assert list(damaged_files(done)) == []
    path = next(done.run.folder.glob(name))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert path in [found for found, _ in damaged_files(done)]


def test_an_input_that_is_replaced_while_the_run_reads_stops_it(tmp_path: Path) -> None:
    """Even by a file of the same size: a mixture of two files is no corpus, and its checksum would be a lie."""
    path = tmp_path / "a.jsonl"
    write_corpus(path, 3000)
    pipeline = start_run(config("pack=", "ingest.slice_mb=1"), [str(path)], tmp_path / "root")
    assert pipeline.passes("ingest")[0].n_items > 1
    pipeline.run_item("ingest.read", 0)
    path.write_bytes(b"\n".join(reversed(path.read_bytes().splitlines())) + b"\n")
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="was changed while the run was reading it"):
        drive(pipeline, workers=1)
    assert len(list(pipeline.run.shards.glob("_items/*.json"))) == 1


def test_a_filter_says_what_the_report_should_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its facts are asked for when all verdicts stand, with every row of them; alarms are logged; the marker keeps them."""

    def facts(self: Length, tables: Iterator[pa.Table]) -> dict[str, Any]:
        rows = sum(table.num_rows for table in tables)
        return {"rows": rows, "alarms": [f"{rows} rows is a lot"]}

    monkeypatch.setattr(Length, "facts", facts)
    write_corpus(tmp_path / "a.jsonl", 60)
    pipeline = start_run(config(), [str(tmp_path / "a.jsonl")], tmp_path / "root")

    drive(pipeline, workers=1)

    marker = read_json(pipeline.placed[1].folder / "_done.json")
    n_documents = sum(shard.rows for shard in pipeline.shards)
    assert marker["facts"]["rows"] == n_documents
    assert f"length: {n_documents} rows is a lot" in caplog.text
