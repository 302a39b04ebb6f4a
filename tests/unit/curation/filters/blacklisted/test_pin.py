"""Which version a run obeys: settled at its start, kept by its retries, refused where it is another one."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from curation.blacklist import Blacklist, append, compact
from curation.config import RunConfig, parse_config
from curation.errors import ConfigError
from curation.export import kept_batches
from curation.filters.blacklisted import BlacklistedConfig
from curation.filters.blacklisted.pin import pin
from curation.ids import text_id
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from tests.blacklists import FACTS, texts

DOCUMENTS = [f"Document {i} speaks of the number {i} and of nothing else at all." for i in range(8)]


def listed(*numbers: int, **columns: object) -> object:
    """Entries for some documents, without signatures."""
    import pyarrow as pa

    table = texts(numbers, **columns)
    return table.set_column(1, "key", pa.array([text_id(DOCUMENTS[i]) for i in numbers], pa.binary(16)))


def config(*overrides: str) -> RunConfig:
    return parse_config("name: t\nsteps: [blacklisted, length: {min_units: 1}]\n", overrides=overrides)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with an input and a blacklist of one version, which drops document 0."""
    lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(DOCUMENTS)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    append(tmp_path / "root" / "blacklist", listed(0), FACTS)
    return tmp_path / "root"


def start(root: Path, *overrides: str, **more: object) -> Pipeline:
    return start_run(config(*overrides), [str(root.parent / "in.jsonl")], root, **more)  # type: ignore[arg-type]


def finished(pipeline: Pipeline) -> set[int]:
    """Documents that a run drops."""
    drive(pipeline, workers=1)
    finish_run(pipeline)
    kept = [one for batch in kept_batches(pipeline, ("id",)) for one in batch.column(0).to_pylist()]
    return set(range(len(DOCUMENTS))) - {int(one) for one in kept}


def settled(pipeline: Pipeline) -> BlacklistedConfig:
    step = parse_config(pipeline.run.config_path.read_text(encoding="utf-8")).steps[0]
    assert isinstance(step.config, BlacklistedConfig)
    return step.config


def test_a_run_names_what_it_obeyed_and_is_the_same_job_until_the_list_changes(root: Path) -> None:
    """Version, time and digest stand in config.yaml; the same start finds the run; a new version makes a new one."""
    first = start(root)
    assert finished(first) == {0}
    told = settled(first)
    assert (told.version, told.digest) == (1, Blacklist.open(root / "blacklist").digest)
    assert told.path == str(root / "blacklist")
    assert start(root).run.run_id == first.run.run_id
    compact(root / "blacklist")
    assert start(root).run.run_id == first.run.run_id
    append(root / "blacklist", listed(1), FACTS)
    second = start(root)
    assert second.run.run_id != first.run.run_id
    assert finished(second) == {0, 1}
    old = start(root, "blacklisted.version=1")
    assert old.run.run_id == first.run.run_id, "the same version is the same job"
    shutil.rmtree(first.run.folder)
    assert finished(start(root, "blacklisted.version=1")) == {0}


def test_a_run_that_is_not_finished_keeps_its_version(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Though a newer one is there, by the same start or by its id, until a number is named; that is said."""
    first = start(root)
    append(root / "blacklist", listed(1), FACTS)
    with caplog.at_level(logging.WARNING):
        again = start(root)
    assert again.run.run_id == first.run.run_id
    assert "keeps it" in caplog.text
    assert finished(again) == {0}
    assert settled(start(root, run_id=first.run.run_id)).version == 1
    assert finished(start(root, "blacklisted.version=2", run_id=first.run.run_id)) == {0, 1}
    assert finished(start(root, "blacklisted.version=1", run_id=first.run.run_id)) == {0}


def test_a_retry_of_a_task_keeps_the_version_of_the_first_try(root: Path) -> None:
    """Airflow's run id is fixed; the list grows between two tries."""
    engine = {"engine": "airflow", "dag_run_id": "x"}
    start(root, run_id="fixed", engine=engine)
    append(root / "blacklist", listed(1), FACTS)
    assert finished(start(root, run_id="fixed", engine=engine)) == {0}


def test_another_history_of_the_same_number_is_refused(root: Path) -> None:
    """But a run that is done is still explained and exported without it."""
    first = start(root)
    shutil.rmtree(root / "blacklist")
    append(root / "blacklist", listed(2), FACTS)
    with pytest.raises(ConfigError, match="not the one that is meant"):
        start(root, run_id=first.run.run_id)
    other = start(root, "name=u")
    assert finished(other) == {2}
    shutil.rmtree(root / "blacklist")
    assert len(list(kept_batches(Pipeline.open(other.run.folder), ("id",))))


def test_what_may_be_missing(root: Path, tmp_path: Path) -> None:
    """The default folder before its first version, an empty one, and anything for version 0; not a mistyped path."""
    gone, empty, other = tmp_path / "gone", tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    other.mkdir()
    (other / "data.parquet").write_bytes(b"")

    def version(path: Path | None, number: int | None = None, at: Path = tmp_path) -> int | None:
        return pin(BlacklistedConfig(path=None if path is None else str(path), version=number), at, None).version

    assert version(None) == version(empty) == version(gone, 0) == version(other, 0) == 0
    assert version(None, at=root) == 1
    for path, number in ((gone, None), (gone, 1), (other, None), (empty, 1), (root / "blacklist", 2), (None, 1)):
        with pytest.raises(ConfigError):
            version(path, number)
    assert finished(start(root, f"blacklisted.path={tmp_path / 'empty'}")) == set()


def test_time_stands_still_until_an_entry_expires(root: Path) -> None:
    """`at` is the time of the version or the last expiry before now; snapshots do not change it."""
    now = datetime.now(timezone.utc)
    place = root / "blacklist"
    append(place, listed(1, expires=now - timedelta(days=2)), FACTS)
    append(place, listed(2, expires=now + timedelta(days=2)), FACTS)
    append(place, listed(3, expires=now + timedelta(days=8)), FACTS)
    append(place, listed(3), FACTS)

    def at(days: float) -> datetime:
        return Blacklist.open(place, at=now + timedelta(days=days)).settled()

    for _ in range(2):
        assert at(0.1) == at(1) < now + timedelta(days=1)
        assert at(2.1) == at(9) == now + timedelta(days=2)
        compact(place)
    assert finished(start(root)) == {0, 2, 3}


def test_a_config_alone_is_no_run(root: Path) -> None:
    """Unsettled settings never reach a verdict of a run: they have no digest."""
    with pytest.raises(ConfigError, match="settled when a run starts"):
        config().steps[0].model_checksums()


def test_a_list_that_is_gone_is_missed(root: Path) -> None:
    """At the default path a missing list is the first run of a loop, but not where a run or a re-score has known a version."""
    first = start(root)
    assert settled(first).version == 1
    assert finished(first) == {0}
    shutil.move(root / "blacklist", root / "away")
    with pytest.raises(
        ConfigError, match=f"no blacklist at .*, but run {first.run.run_id} obeyed its version 1. Put it back"
    ):
        start(root, new=True)
    assert settled(start(root, "blacklisted.version=0", new=True)).version == 0
    with pytest.raises(ConfigError, match="version 1 is asked for, but there is no folder"):
        start(root, "blacklisted.version=1", new=True)
    shutil.rmtree(root / "runs")
    assert settled(start(root, new=True)).version == 0
    threshold = root / "rescore" / "gpt" / "0000000000200000"
    threshold.mkdir(parents=True)
    (threshold / "published.json").write_text('{"version": 3}', encoding="utf-8")
    (threshold / "threshold.json").write_text('{"settings": {"blacklist": "/elsewhere"}}', encoding="utf-8")
    assert settled(start(root, new=True)).version == 0
    (threshold / "threshold.json").write_text('{"settings": {"blacklist": null}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="the re-score rescore/gpt/0000000000200000 published its version 3"):
        start(root, new=True)
