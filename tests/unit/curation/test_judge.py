"""The shard runner: what it writes, what it takes over, what it refuses."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import RunError
from curation.filters.length import Length, LengthConfig
from curation.judge import done_item, judge_shard
from curation.records import ScoreColumn
from curation.run import Run, read_json, write_json
from curation.shards import shards_of, write_table
from curation.steps import PlacedStep, place_steps
from curation.verdicts import Decision, StepConfig, decide_by_rules
from tests.fakes import BeginsWithK, Second, Watched, WatchedConfig, make_run, run_steps

TEXTS = [["kept", "k" * 30, ""], [], ["another", "kk" * 20, "漢字", "kite"]]


def watched(**settings: int) -> Watched:
    return Watched(WatchedConfig(**settings))


def judge(run: Run, step: Watched, shard: int = 0) -> PlacedStep:
    """Judge one shard with one step."""
    placed = place_steps(run, [step])[0]
    judge_shard(run, [placed], shard, shards_of(run), 500)
    return placed


def test_verdicts_stand_beside_their_documents(tmp_path: Path) -> None:
    """Row i of the verdict file speaks about row i of the shard: keep, the named reason, the scores."""
    judged = run_steps(make_run(tmp_path, TEXTS), [watched()])

    rows = judged.verdicts("watched")

    assert [row["keep"] for row in rows] == [True, False, False, True, False, True, True]
    assert [row["reason"] for row in rows if row["reason"]] == [
        "watched.too_long",
        "watched.too_short",
        "watched.too_long",
    ]
    assert [row["length"] for row in rows] == [4, 30, 0, 7, 40, 2, 4]


def test_a_step_sees_only_what_the_step_before_kept(tmp_path: Path) -> None:
    """What an earlier step dropped is not looked at: no verdict, no reason, no score, no work."""
    first, second = BeginsWithK(StepConfig()), watched()

    judged = run_steps(make_run(tmp_path, TEXTS), [first, second])

    rows = judged.verdicts("watched")
    assert [row["keep"] for row in rows] == [True, False, None, None, False, None, True]
    assert all(row["reason"] is None and row["length"] is None for row in rows if row["keep"] is None)
    assert second.calls.scored == ["kept", "k" * 30, "kk" * 20, "kite"]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 1000])
def test_batches_do_not_matter(tmp_path: Path, batch_rows: int) -> None:
    """However a shard file is cut into batches, the verdict file is the same, byte for byte."""
    runs = [make_run(tmp_path / str(n), TEXTS, batch_rows=n) for n in (1000, batch_rows)]
    whole, cut = (run_steps(run, [BeginsWithK(StepConfig()), watched()]) for run in runs)

    assert cut.verdicts("watched") == whole.verdicts("watched")


def test_a_changed_threshold_only_decides(tmp_path: Path) -> None:
    """Scores of an earlier config are taken over where only thresholds differ: nothing is scored again."""
    run = make_run(tmp_path, TEXTS)
    run_steps(run, [watched()])
    strict = watched(max_chars=5)

    judged = run_steps(run, [strict])

    assert strict.calls.scored == []
    assert strict.calls.decided == len(TEXTS)
    fresh = run_steps(make_run(tmp_path / "fresh", TEXTS), [watched(max_chars=5)])
    assert judged.verdicts("watched") == fresh.verdicts("watched")


def test_another_score_config_scores_again(tmp_path: Path) -> None:
    """A setting that changes scores never takes over the old ones."""
    run = make_run(tmp_path, TEXTS)
    run_steps(run, [watched()])
    scaled = watched(factor=10)

    judged = run_steps(run, [scaled])

    assert len(scaled.calls.scored) == 7
    assert [row["length"] for row in judged.verdicts("watched")] == [40, 300, 0, 70, 400, 20, 40]


def test_rows_without_an_earlier_score_are_scored(tmp_path: Path) -> None:
    """Where the step before now keeps more, only the rows that have no score yet are scored, each in its place."""
    run = make_run(tmp_path, TEXTS)
    run_steps(run, [BeginsWithK(StepConfig()), watched()])
    alone = watched(max_chars=25)

    judged = run_steps(run, [alone])

    assert alone.calls.scored == ["", "another", "漢字"]
    assert [row["length"] for row in judged.verdicts("watched")] == [4, 30, 0, 7, 40, 2, 4]


def test_damaged_earlier_scores_are_not_taken_over(tmp_path: Path) -> None:
    """An earlier verdict file that is not what its marker says is passed over, and the scores are made anew."""
    run = make_run(tmp_path, TEXTS)
    before = run_steps(run, [watched()])
    path = before.folder("watched") / "00000.arrow"
    path.write_bytes(path.read_bytes()[:-7])
    strict = watched(max_chars=5)

    judged = run_steps(run, [strict])

    assert strict.calls.scored == TEXTS[0]
    assert [row["length"] for row in judged.verdicts("watched")] == [4, 30, 0, 7, 40, 2, 4]


def test_a_done_item_is_skipped(tmp_path: Path) -> None:
    """The second call does nothing and says so."""
    run = make_run(tmp_path, TEXTS)
    judge(run, watched())
    again = watched()
    placed = place_steps(run, [again])[0]

    result = judge_shard(run, [placed], 0, shards_of(run), 500)

    assert result == {"item": "00000", "steps": {"watched": 1}, "reused": True}
    assert again.calls.decided == 0


def test_a_rerun_writes_the_same_bytes(tmp_path: Path) -> None:
    """Judged again from nothing, a verdict file is the same byte for byte."""
    run = make_run(tmp_path, TEXTS)
    path = judge(run, watched()).folder / "00000.arrow"
    first = path.read_bytes()
    path.unlink()

    judge(run, watched())

    assert path.read_bytes() == first


def test_killed_between_verdicts_and_marker(tmp_path: Path) -> None:
    """Without its marker a verdict file does not count: it is made again, and the marker follows."""
    run = make_run(tmp_path, TEXTS)
    placed = judge(run, watched())
    (placed.folder / "_items/00000.json").unlink()
    (placed.folder / "00000.arrow").write_bytes(b"half a file")
    again = watched()

    judge(run, again)

    assert again.calls.scored == TEXTS[0]
    assert done_item(placed.folder, shards_of(run)[0]) is not None


@pytest.mark.parametrize("damage", [b"", b"ARROW1 no table", None])
def test_a_damaged_verdict_file_is_made_anew(tmp_path: Path, damage: bytes | None) -> None:
    """A verdict file that its marker does not know (emptied, foreign, deleted) is not done."""
    run = make_run(tmp_path, TEXTS)
    path = judge(run, watched()).folder / "00000.arrow"
    good = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)

    judge(run, watched())

    assert path.read_bytes() == good


def test_a_marker_that_is_no_json_names_itself(tmp_path: Path) -> None:
    """A marker cut short is an error that names the file and what to do."""
    run = make_run(tmp_path, TEXTS)
    marker = judge(run, watched()).folder / "_items/00000.json"
    marker.write_text("{", encoding="utf-8")

    with pytest.raises(RunError, match=r"00000\.json is not valid JSON.*Delete it"):
        judge(run, watched())


def test_the_step_before_must_be_whole(tmp_path: Path) -> None:
    """A step refuses verdicts before it that are missing, damaged or of another shard, and names the file."""
    run = make_run(tmp_path, TEXTS)
    first, second = place_steps(run, [watched(), Second(WatchedConfig())])
    shards = shards_of(run)
    with pytest.raises(RunError, match=r"01-watched-.*00000\.json is missing"):
        judge_shard(run, [second], 0, shards, 500)
    judge_shard(run, [first], 0, shards, 500)
    path = first.folder / "00000.arrow"
    good = path.read_bytes()

    path.write_bytes(good[:-1] + b"X")
    with pytest.raises(RunError, match=r"01-watched-.*00000\.arrow is not the file that was written"):
        judge_shard(run, [second], 0, shards, 500)

    path.write_bytes(good)
    marker = read_json(first.folder / "_items/00000.json")
    write_json(first.folder / "_items/00000.json", {**marker, "shard_sha256": "0" * 64})
    with pytest.raises(RunError, match=r"another version of shard 00000"):
        judge_shard(run, [second], 0, shards, 500)


def test_verdicts_of_another_length_are_refused(tmp_path: Path) -> None:
    """A verdict file with the right checksum but another number of rows belongs to another run."""
    run = make_run(tmp_path, TEXTS)
    first, second = place_steps(run, [watched(), Second(WatchedConfig())])
    shards = shards_of(run)
    for index in (0, 2):
        judge_shard(run, [first], index, shards, 500)
    long_marker = read_json(first.folder / "_items/00002.json")
    (first.folder / "00000.arrow").write_bytes((first.folder / "00002.arrow").read_bytes())
    write_json(first.folder / "_items/00000.json", {**long_marker, "shard_sha256": shards[0].sha256})

    with pytest.raises(RunError, match=r"holds 4 rows where 3 were expected"):
        judge_shard(run, [second], 0, shards, 500)


def test_a_changed_shard_is_refused(tmp_path: Path) -> None:
    """A shard that is not what ingest wrote stops the step, and the message names it."""
    run = make_run(tmp_path, TEXTS)
    shards = shards_of(run)
    data = bytearray(shards[0].path.read_bytes())
    data[len(data) // 2] ^= 1
    shards[0].path.write_bytes(bytes(data))

    with pytest.raises(RunError, match=r"00000\.arrow is not the file that was written"):
        judge(run, watched())


class TooFew(Watched):
    """Returns a score less than it was given."""

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return super().score(batch).slice(1)


class TooFewVerdicts(Watched):
    """Decides on fewer documents than it scored."""

    def decide(self, scores: pa.RecordBatch) -> Decision:
        return Decision(np.ones(1, np.bool_), np.full(1, -1, np.int16))


class OtherScores(Watched):
    """Returns a column of another name."""

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return super().score(batch).rename_columns(["size"])


class Fails(Watched):
    """Cannot judge."""

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ZeroDivisionError("no words")


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (TooFew, AssertionError, "step watched returned 2 score rows for 3 documents"),
        (TooFewVerdicts, AssertionError, "step watched returned 1 verdicts and 3 scores for 3 documents"),
        (OtherScores, KeyError, "length"),
        (Fails, ZeroDivisionError, "no words"),
    ],
)
def test_a_filter_that_breaks_the_contract_is_caught(
    tmp_path: Path, kind: type[Watched], error: type[Exception], message: str
) -> None:
    """Wrong row counts, wrong columns and crashes stop the item before anything is published."""
    run = make_run(tmp_path, TEXTS)
    placed = place_steps(run, [kind(WatchedConfig())])[0]

    with pytest.raises(error, match=message):
        judge_shard(run, [placed], 0, shards_of(run), 500)

    assert not (placed.folder / "00000.arrow").exists()
    assert not (placed.folder / "_items").exists()


def test_a_crash_says_where_it_happened(tmp_path: Path) -> None:
    """An unexpected error carries the step, the shard and the run."""
    run = make_run(tmp_path, TEXTS)
    placed = place_steps(run, [Fails(WatchedConfig())])[0]

    with pytest.raises(ZeroDivisionError) as caught:
        judge_shard(run, [placed], 2, shards_of(run), 500)

    assert caught.value.__notes__ == ["while step watched judged shard 00002 of run test-run"]


def test_an_empty_shard_is_judged(tmp_path: Path) -> None:
    """A shard without rows, and one in which nothing is alive, get verdict files of their length."""
    judged = run_steps(make_run(tmp_path, [[], ["dropped", "also"]]), [BeginsWithK(StepConfig()), watched()])

    assert [row["keep"] for row in judged.verdicts("watched")] == [None, None]
    assert read_json(judged.folder("watched") / "_items/00000.json")["docs_in"] == 0


def test_the_marker_counts_documents_and_bytes(tmp_path: Path) -> None:
    """A marker holds what its shard adds to the funnel, in documents and in bytes of UTF-8."""
    judged = run_steps(make_run(tmp_path, [["漢字", "k" * 30, ""]]), [watched()])

    marker = read_json(judged.folder("watched") / "_items/00000.json")

    counted = {key: marker[key] for key in ("rows", "docs_in", "kept", "dropped", "bytes_in", "bytes_kept")}
    assert counted == {
        "rows": 3,
        "docs_in": 3,
        "kept": 1,
        "dropped": {"watched.too_short": 1, "watched.too_long": 1},
        "bytes_in": 36,
        "bytes_kept": 6,
    }
    assert marker["seconds"] > 0
    assert marker["peak_rss_mb"] > 0


def _judge_all_shards(folder: str, barrier: object) -> None:
    """One worker: waits for the other, then judges every shard."""
    run = Run(Path(folder))
    placed = place_steps(run, [Length(LengthConfig(min_units=1))])
    shards = shards_of(run)
    barrier.wait(30)  # type: ignore[attr-defined]
    for index in range(len(shards)):
        judge_shard(run, placed, index, shards, 500)


def test_two_workers_may_do_the_same_item_at_once(tmp_path: Path) -> None:
    """After a lost heartbeat two tries run together: both succeed, and the files are as from one."""
    shards = [[f"document {n} of shard {s}" for n in range(50)] for s in range(4)]
    run = make_run(tmp_path / "two", shards)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    workers = [context.Process(target=_judge_all_shards, args=(str(run.folder), barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert [worker.exitcode for worker in workers] == [0, 0]
    alone = run_steps(make_run(tmp_path / "one", shards), [Length(LengthConfig(min_units=1))])
    both = run_steps(run, [Length(LengthConfig(min_units=1))])
    assert _bytes_of(both.folder("length")) == _bytes_of(alone.folder("length"))
    assert list(both.folder("length").glob(".*")) == []


def _bytes_of(folder: Path) -> Sequence[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.arrow"))]


def test_foreign_files_in_the_folder_do_not_matter(tmp_path: Path) -> None:
    """Left-over temporary files and files of other names are not taken for verdicts."""
    run = make_run(tmp_path, TEXTS)
    placed = place_steps(run, [watched()])[0]
    write_table(placed.folder / "00009.arrow", pa.table({"keep": [True]}))
    (placed.folder / ".00000.arrow.1.abcd.tmp").write_bytes(b"half")

    judged = run_steps(run, [watched()])

    assert judged.kept("watched") == [0, 3, 5, 6]


class Reads(Watched):
    """Drops what the step `watched` found long, by the score that it stored."""

    name = "reads"
    needs = ("text", "watched.length")
    reasons: ClassVar[Mapping[str, str]] = {"reads.long": "the earlier step found it long"}

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (ScoreColumn("seen", pa.int64(), "characters", "what the earlier step found"),)

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.calls.scored += batch.column("text").to_pylist()
        return pa.RecordBatch.from_arrays([batch.column("watched.length").cast(pa.int64())], ["seen"])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        long = scores.column("seen").fill_null(0).to_numpy() > 6
        return decide_by_rules(scores.num_rows, list(self.reasons), {"reads.long": long})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """A filter that reads a score of the step `watched`, which the registry knows."""
    known = {"watched": Watched, "reads": Reads}
    monkeypatch.setattr("curation.steps.step_class", lambda name: known[name])
    return Reads(WatchedConfig())


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_a_filter_reads_scores_of_an_earlier_step(tmp_path: Path, reads: Reads, batch_rows: int) -> None:
    """Each row carries the earlier step's score of this very document, however shards and batches are cut."""
    run = make_run(tmp_path, TEXTS, batch_rows=batch_rows)

    judged = run_steps(run, [BeginsWithK(StepConfig()), watched(max_chars=35), reads])

    rows = judged.verdicts("reads")
    assert [row["seen"] for row in rows] == [4, 30, None, None, None, None, 4]
    assert [row["keep"] for row in rows] == [True, False, None, None, None, None, True]


def test_a_score_that_no_step_has_made_is_null(tmp_path: Path, reads: Reads) -> None:
    """Without the earlier step, or with it behind, the column is there and null."""
    for number, steps in enumerate(([reads], [reads, watched()])):
        judged = run_steps(make_run(tmp_path / str(number), TEXTS), steps)

        assert [row["seen"] for row in judged.verdicts("reads")] == [None] * 7


def test_scores_follow_those_that_they_were_made_of(tmp_path: Path, reads: Reads) -> None:
    """A changed threshold of the earlier step changes no score here; changed scores of it do."""
    run = make_run(tmp_path, TEXTS)
    plain = run_steps(run, [watched(), reads]).placed[1]
    strict = run_steps(run, [watched(max_chars=35), reads]).placed[1]
    scaled = run_steps(run, [watched(factor=10), reads]).placed[1]

    assert plain.score_digest == strict.score_digest
    assert plain.digest != strict.digest
    assert scaled.score_digest != plain.score_digest
    first = next(iter(run_steps(run, [watched(factor=10, max_chars=99), reads]).verdicts("reads")))
    assert first["seen"] == 40


def test_an_earlier_score_of_another_run_is_refused(tmp_path: Path, reads: Reads) -> None:
    """A verdict file whose marker speaks about another shard file is not read."""
    run = make_run(tmp_path, TEXTS)
    first, second = place_steps(run, [watched(max_chars=1000), reads])
    judge_shard(run, [first], 0, shards_of(run), 500)
    marker = first.folder / "_items" / "00000.json"
    write_json(marker, {**read_json(marker), "shard_sha256": "0" * 64})
    object.__setattr__(second, "previous", None)

    with pytest.raises(RunError, match="another version of shard 00000"):
        judge_shard(run, [second], 0, shards_of(run), 500)
