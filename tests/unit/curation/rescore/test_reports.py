"""What trainers say by events: which reports become lines, which stand, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from curation.errors import InputError, RunError
from curation.rescore.reports import record
from tokenization.progress import ProgressLedger

REPO = Path(__file__).resolve().parents[4]
FINGERPRINT = "f" * 64


def report(tokens: int, **more: Any) -> dict[str, Any]:
    """A report of a checkpoint that is named by its tokens; `minute`: its time."""
    if "minute" in more:
        more["time"] = f"2026-05-20T14:{more.pop('minute'):02d}:00Z"
    return {"training_run": "gpt", "tokens_seen": tokens, "step": tokens // 10, "checkpoint": f"c{tokens}", **more}


def deep() -> Any:
    """Lists in lists, more than Python can print."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def passed(path: Path, every: int = 100) -> list[tuple[int, int, str | None]]:
    """Threshold, tokens and checkpoint."""
    return [(k, e.tokens_seen, e.checkpoint) for k, e in ProgressLedger(path).thresholds_passed(every, "gpt")]


def test_a_report_becomes_a_line_once(tmp_path: Path) -> None:
    """The line says all that the report says; what is told again, even after others, is known."""
    path = tmp_path / "new" / "progress.jsonl"
    full = report(
        100, checkpoint_sha256="a" * 64, tokenizer=FINGERPRINT, token_files=["5" * 64], attempt=3, minute=7, other=[1]
    )
    line = record(path, full)
    assert line is not None
    assert (line.run, line.tokens_seen, line.step, line.checkpoint) == ("gpt", 100, 10, "c100")
    assert (line.checkpoint_sha256, line.tokenizer, line.token_files) == ("a" * 64, FINGERPRINT, ("5" * 64,))
    assert line.time == datetime(2026, 5, 20, 14, 7, tzinfo=timezone.utc)
    assert record(path, report(200)) is not None
    assert [record(path, full), record(path, report(200)), record(path, dict(full))] == [None] * 3
    history = ProgressLedger(path).read()
    assert (history.entries[0], len(history.entries), history.problems) == (line, 2, ())


def test_a_report_without_checkpoint_is_a_sign_of_life(tmp_path: Path) -> None:
    """It passes no threshold; the next one with a checkpoint stands for it."""
    record(tmp_path / "p", report(100, checkpoint=None))
    assert passed(tmp_path / "p") == []
    record(tmp_path / "p", report(130))
    assert passed(tmp_path / "p") == [(1, 130, "c130")]


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report(200), report(100)], [(1, 100, "c100"), (2, 200, "c200")]),
        ([report(200, minute=2), report(100, minute=1)], [(1, 100, "c100"), (2, 200, "c200")]),
        ([report(200, minute=1), report(100, minute=2)], [(1, 100, "c100")]),
        ([report(200, minute=1), report(150, minute=2), report(210, minute=3)], [(1, 150, "c150"), (2, 210, "c210")]),
        ([report(200, attempt=1), report(100, attempt=1)], [(1, 100, "c100"), (2, 200, "c200")]),
        ([report(200, attempt=1), report(100, attempt=2)], [(1, 100, "c100")]),
        ([report(100, attempt=2), report(200, attempt=1)], [(1, 100, "c100")]),
        ([report(200, attempt=1, minute=2), report(100, attempt=2, minute=1)], [(1, 100, "c100")]),
        ([report(200, attempt=1, minute=1), report(100, minute=2)], [(1, 100, "c100")]),
        ([report(200, attempt=1), report(100, minute=2)], [(1, 100, "c100"), (2, 200, "c200")]),
        ([report(200), report(100, minute=2)], [(1, 100, "c100"), (2, 200, "c200")]),
        ([report(200, minute=1), report(100, minute=1)], [(1, 100, "c100"), (2, 200, "c200")]),
    ],
)
def test_late_is_not_back(
    tmp_path: Path, reports: list[dict[str, Any]], expected: list[tuple[int, int, str | None]]
) -> None:
    """Time or attempt say that a training went back; in either order of arrival; without them a report is late."""
    for name, order in (("a", reports), ("b", reports[::-1]), ("c", [*reports, *reports])):
        for one in order:
            record(tmp_path / name, one)
        assert passed(tmp_path / name) == expected, name


def test_what_the_trainer_wrote_itself_is_known(tmp_path: Path) -> None:
    """Also by its absolute path, before or after; reports take back no line of an attempt, attempts take back older reports."""
    path = tmp_path / "progress.jsonl"
    ledger = ProgressLedger(path)
    record(path, report(200))  # came before the line
    first = ledger.begin("gpt", tokenizer=FINGERPRINT, token_files=[])
    kept = first.append(100, 10, "c100", sha256="a" * 64)
    first.append(200, 20, "c200")
    assert record(path, report(100)) is None
    assert record(path, report(100, checkpoint=str(tmp_path / "x" / ".." / "c100"), minute=1)) is None
    assert record(path, report(100, checkpoint_sha256="b" * 64)) is not None, "another checkpoint of this name"
    now = datetime.now(timezone.utc)
    record(path, report(300, time=(now - timedelta(minutes=1)).isoformat()))
    ledger.begin("gpt", tokenizer=FINGERPRINT, token_files=[], after=kept)
    assert passed(path) == [(1, 100, "c100")], "200 and 300 lie on the branch that was left"
    record(path, report(310, time=(now + timedelta(minutes=1)).isoformat()))
    record(path, report(50, time=(now + timedelta(minutes=2)).isoformat()))
    assert passed(path) == [(1, 100, "c100")], "310 was taken back by 50; the line of 100 was not"


def test_an_attempt_that_goes_on_from_a_report(tmp_path: Path) -> None:
    """Keeps the lines before it."""
    path = tmp_path / "p"
    ledger = ProgressLedger(path)
    ledger.begin("gpt", tokenizer=FINGERPRINT, token_files=[]).append(100, 10, "c100")
    record(path, report(200))
    resumed = ledger.begin("gpt", tokenizer=FINGERPRINT, token_files=[], after=ledger.read().latest_checkpoint("gpt"))
    resumed.append(300, 30, "c300")
    assert passed(path) == [(1, 100, "c100"), (2, 200, "c200"), (3, 300, "c300")]


def test_a_tokenizer_that_others_said(tmp_path: Path) -> None:
    """A report without one has that of the other lines of its training, where these agree."""
    path = tmp_path / "p"
    record(path, report(100))
    line = ProgressLedger(path).latest("gpt")
    assert line is not None
    assert line.tokenizer is None
    record(path, report(200, tokenizer=FINGERPRINT))
    record(path, {**report(300, tokenizer="e" * 64), "training_run": "other"})
    assert {e.tokenizer for e in ProgressLedger(path).read().lineage("gpt")} == {FINGERPRINT}
    record(path, report(300, tokenizer="d" * 64))
    assert [e.tokenizer for e in ProgressLedger(path).read().lineage("gpt")] == [None, FINGERPRINT, "d" * 64]


def test_trainings_in_one_ledger(tmp_path: Path) -> None:
    """Do not disturb each other; without a name the one counts that began last."""
    path = tmp_path / "p"
    record(path, report(300, minute=1))
    record(path, {**report(100, minute=2), "training_run": "other"})
    record(path, report(200, minute=0))
    assert passed(path) == [(1, 200, "c200"), (2, 200, "c200"), (3, 300, "c300")]
    latest = ProgressLedger(path).latest()
    assert latest is not None
    assert latest.run == "other"


def test_what_airflow_masks_is_not_said(tmp_path: Path) -> None:
    """Its REST API shows `***` for a tokenizer; that is no reason to lose the report."""
    line = record(tmp_path / "p", report(100, tokenizer="***", token_files="***"))
    assert line is not None
    assert (line.tokenizer, line.token_files, line.tokens_seen) == (None, (), 100)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1], "expected an object"),
        (None, "expected an object"),
        ({}, "training_run, tokens_seen, step: not there"),
        ({"training_run": "gpt", "tokens_sen": 3, "step": 1}, "tokens_seen: not there .did you mean 'tokens_sen'"),
        (report(1, step=None), "step: not there"),
        (report(1, training_run=7), "run: expected a text"),
        (report(1, training_run=""), "run: expected a text"),
        (report(1, training_run="a\x1b[2J"), "training_run: expected a printable text"),
        (report(1, training_run="x" * 201), "run: expected a text"),
        (report(1, checkpoint="a\nb"), "checkpoint: expected a printable text"),
        (report(1, checkpoint="\ud800"), "checkpoint: expected a printable text"),
        (report(1, checkpoint="x" * 5000), "checkpoint: expected a text"),
        (report(1, checkpoint=["c"]), "checkpoint: expected a text"),
        (report(1, tokens_seen=1.5), "tokens_seen: expected a whole number"),
        (report(1, tokens_seen="12"), "tokens_seen: expected a whole number"),
        (report(1, tokens_seen=True), "tokens_seen: expected a whole number"),
        (report(1, tokens_seen=-1), "tokens_seen: expected a whole number"),
        (report(1, tokens_seen=10**16), r"tokens_seen: expected at most 1e\+15"),
        (report(1, tokens_seen=10**5000), "tokens_seen: expected a whole number .* found one of 16610 bits"),
        (report(1, tokens_seen=deep()), "progress report: "),
        (report(1, step=2**63), "step: expected a whole number"),
        (report(1, checkpoint_sha256="abc"), "checkpoint_sha256: expected"),
        (report(1, tokenizer="gpt2"), "tokenizer: expected"),
        (report(1, token_files="5" * 64), "token_files: expected a list"),
        (report(1, token_files=[5]), "token_files: expected a text"),
        (report(1, attempt="2"), "attempt: expected a whole number"),
        (report(1, attempt=-2), "attempt: expected a whole number"),
        (report(1, time="2026-05-20T14:23:22"), "time: expected a moment as .*with its zone"),
        (report(1, time="0001-01-01T00:00:00+14:00"), "time: expected a moment"),
        (report(1, time=1_790_000_000), "time: expected a moment"),
        (report(1, time="yesterday"), "time: expected a moment"),
        (report(1, time="9999-12-31T00:00:00Z"), "time: expected none in the future"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, wrong: Any, message: str) -> None:
    """The message names what, on one line; nothing is written, no file made."""
    with pytest.raises(InputError, match=message) as raised:
        record(tmp_path / "p", wrong)
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500
    assert not (tmp_path / "p").exists()


def test_a_ledger_that_cannot_be_written_is_no_fault_of_the_report(tmp_path: Path) -> None:
    """A RunError: worth trying again. A later version's ledger is not appended to."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="could not be written"):
        record(tmp_path / "file" / "p", report(1))


def test_a_foreign_line_cannot_pose_as_reports(tmp_path: Path) -> None:
    """The name of their attempt is theirs alone."""
    record(tmp_path / "p", report(100))
    line = (tmp_path / "p").read_text()
    assert json.loads(line)["reported"] == {"attempt": None, "time": None}
    other = ProgressLedger(tmp_path / "q").begin("a", tokenizer=FINGERPRINT, token_files=[]).append(1, 1)
    with pytest.raises(ValueError, match="expected a line that was reported"):
        ProgressLedger(tmp_path / "p").add(other)


WRITER = """
import sys
from curation.rescore.reports import record
for n in range(0, 120, 10):
    record(sys.argv[1], {"training_run": "gpt", "tokens_seen": n, "step": n, "checkpoint": f"c{n}"})
"""


def test_the_same_reports_by_processes_at_once(tmp_path: Path) -> None:
    """One line each."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", WRITER, str(tmp_path / "p")]
    started = [subprocess.Popen(command, cwd=REPO, env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    assert sorted(e.tokens_seen for e in ProgressLedger(tmp_path / "p").read().entries) == list(range(0, 120, 10))
