"""The progress ledger: what was appended is read, whatever happens to the file between."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenization import progress_file
from tokenization.progress import Attempt, Entry, ProgressError, ProgressLedger
from tokenization.progress_line import entry_of, parse_line, to_line

SEAL, FINGERPRINT = "5" * 64, "f" * 64
REPO = Path(__file__).resolve().parents[3]


def begin(ledger: ProgressLedger, run: str = "small", after: Entry | None = None) -> Attempt:
    """A new attempt, that goes on from a line's checkpoint if one is given."""
    return ledger.begin(run, tokenizer=FINGERPRINT, token_files=[SEAL], after=after)


def entry(**changes: Any) -> Entry:
    """Some line."""
    same: dict[str, Any] = {
        "run": "small",
        "attempt": "a",
        "parent": None,
        "resumed_at": 0,
        "tokens_seen": 7,
        "step": 1,
        "checkpoint": "c",
        "checkpoint_sha256": None,
        "token_files": [SEAL],
        "tokenizer": FINGERPRINT,
        "time": "2026-11-30T08:00:00+00:00",
    }
    return entry_of({**same, **changes})


def written(path: Path, *entries: Entry) -> ProgressLedger:
    """A ledger of these lines."""
    path.write_bytes(b"".join(map(to_line, entries)))
    return ProgressLedger(path)


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    """Every field, in order; the folders are made; the time is now, in UTC; the file says the same to any JSON reader."""
    ledger = ProgressLedger(tmp_path / "new/folder/progress.jsonl")
    attempt = begin(ledger)
    last = attempt.append(2_048, 1, Path("step-1.pt"), sha256="a" * 64)
    history = ledger.read()
    assert (history.problems, history.torn, len(history.entries)) == ((), None, 2)
    assert history.entries[-1] == last == history.latest() == ledger.latest()
    assert abs(datetime.now(timezone.utc) - last.time) < timedelta(minutes=1)
    assert {**json.loads(ledger.path.read_text().splitlines()[-1]), "time": "", "crc32": ""} == {
        "version": 1,
        "run": "small",
        "attempt": attempt.id,
        "parent": None,
        "resumed_at": 0,
        "tokens_seen": 2_048,
        "step": 1,
        "checkpoint": "step-1.pt",
        "checkpoint_sha256": "a" * 64,
        "token_files": [SEAL],
        "tokenizer": FINGERPRINT,
        "time": "",
        "crc32": "",
    }


def test_a_ledger_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """Reading makes nothing; a folder stands for progress.jsonl in it."""
    ledger = ProgressLedger(tmp_path)
    assert ledger.path == tmp_path / "progress.jsonl"
    assert (ledger.read().entries, ledger.latest(), list(ledger.thresholds_passed(10))) == ((), None, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens_seen": -1}, "tokens_seen: expected a whole number"),
        ({"tokens_seen": 1.5}, "tokens_seen: expected a whole number from 0 to 2.63 - 1, found 1.5"),
        ({"tokens_seen": True}, "tokens_seen"),
        ({"tokens_seen": 2**63}, "tokens_seen"),
        ({"step": "3"}, "step: expected"),
        ({"run": ""}, "run: expected"),
        ({"tokenizer": "gpt2"}, "tokenizer: expected"),
        ({"token_files": SEAL}, "token_files: expected a list of seals"),
        ({"token_files": ["x"]}, "token_files"),
        ({"step": -1}, "step"),
    ],
)
def test_what_cannot_be_is_not_written(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The message names key and value, and the file stays as it was."""
    ledger = ProgressLedger(tmp_path / "p")
    values: dict[str, Any] = {"run": "small", "tokenizer": FINGERPRINT, "token_files": [SEAL], **change}
    with pytest.raises(ProgressError, match=message):
        ledger.begin(**values)
    assert not ledger.path.exists()


@pytest.mark.parametrize(
    ("tokens", "step", "what"), [(99, 11, "tokens_seen falls from 100 to 99"), (101, 9, "step falls")]
)
def test_tokens_never_fall_within_an_attempt(tokens: int, step: int, what: str, tmp_path: Path) -> None:
    """Who goes back to a checkpoint begins a new attempt; a foreign writer's line that falls is reported."""
    attempt = begin(ProgressLedger(tmp_path / "p"))
    attempt.append(100, 10, "c")
    with pytest.raises(ProgressError, match=f"{what}.*begins a new attempt"):
        attempt.append(tokens, step)
    ledger = written(tmp_path / "q", entry(tokens_seen=100, step=10), entry(tokens_seen=tokens, step=step))
    history = ledger.read()
    assert (len(history.entries), [problem.line for problem in history.problems]) == (1, [2])
    assert what in history.problems[0].what


@pytest.mark.parametrize(
    "change", [{"run": "other"}, {"parent": "z"}, {"resumed_at": 7}], ids=["run", "parent", "resumed_at"]
)
def test_an_attempt_cannot_change_what_it_is(change: dict[str, Any], tmp_path: Path) -> None:
    """A second line of the same attempt with another origin is left out, and said."""
    history = written(tmp_path / "p", entry(), entry(**change)).read()
    assert history.entries == (entry(),)
    assert "changes within attempt a" in history.problems[0].what


def test_a_training_that_goes_back(tmp_path: Path) -> None:
    """The newest lineage is the parent's lines up to the checkpoint, then its own; the old process does not count."""
    ledger = ProgressLedger(tmp_path / "p")
    first = begin(ledger)
    kept = first.append(100, 10, "a-10")
    first.append(200, 20, "a-20")
    assert [k for k, _ in ledger.thresholds_passed(90)] == [1, 2]
    second = begin(ledger, after=kept)
    assert ledger.latest() == ledger.read().entries[-1]
    assert [k for k, _ in ledger.thresholds_passed(90)] == [1]
    first.append(900, 90, "a-90")  # a process that nobody stopped
    second.append(150, 15, "b-15")
    last = second.append(290, 29, "b-29")
    assert ledger.latest() == last
    assert [(k, e.checkpoint) for k, e in ledger.thresholds_passed(90)] == [(1, "a-10"), (2, "b-29"), (3, "b-29")]
    history = ledger.read()
    assert [e.tokens_seen for e in history.lineage()] == [0, 100, 100, 150, 290]
    assert history.latest_checkpoint() == last
    found = [history.of_checkpoint(name) for name in ("a-90", "a-10")]
    assert [(e.tokens_seen, e.attempt) for e in found if e] == [(900, first.id), (100, second.id)]
    assert history.of_checkpoint("gone") is None


def test_a_training_that_began_before_its_ledger(tmp_path: Path) -> None:
    """Its first line stands for every threshold that it had passed, once there is a checkpoint."""
    ledger = ProgressLedger(tmp_path / "p")
    attempt = ledger.begin("old", tokenizer=FINGERPRINT, token_files=[], tokens_seen=25, step=3)
    attempt.append(31, 4, "c")
    assert [(k, e.tokens_seen) for k, e in ledger.thresholds_passed(10)] == [(1, 31), (2, 31), (3, 31)]


def test_runs_in_one_ledger(tmp_path: Path) -> None:
    """Each run has its own newest lineage; a run that branches off another one keeps its past."""
    ledger = ProgressLedger(tmp_path / "p")
    first = begin(ledger, "one").append(50, 5, "one-5")
    branch = begin(ledger, "two", after=first)
    branch.append(80, 8, "two-8")
    begin(ledger, "three")
    assert [e.checkpoint for _, e in ledger.thresholds_passed(40, "two")] == ["one-5", "two-8"]
    assert [e.checkpoint for _, e in ledger.thresholds_passed(40, "one")] == ["one-5"]
    assert list(ledger.thresholds_passed(40)) == []
    assert ledger.latest("four") is None


def test_a_line_without_checkpoint_passes_no_threshold(tmp_path: Path) -> None:
    """There is nothing to score with: the next line that has one stands for it."""
    ledger = ProgressLedger(tmp_path / "p")
    attempt = begin(ledger)
    attempt.append(30, 3)
    assert ledger.read().latest_checkpoint() is None
    kept = attempt.append(35, 4, "c")
    attempt.append(38, 5)
    assert ledger.read().latest_checkpoint() == kept
    assert [(k, e.tokens_seen) for k, e in ledger.thresholds_passed(10)] == [(1, 35), (2, 35), (3, 35)]


@pytest.mark.parametrize("every", [0, -5])
def test_a_threshold_is_a_number_of_tokens(every: int, tmp_path: Path) -> None:
    """Zero or less would be passed without end."""
    with pytest.raises(ValueError, match="at least 1"):
        list(ProgressLedger(tmp_path / "p").thresholds_passed(every))


def test_attempts_that_name_each_other_end_the_walk(tmp_path: Path) -> None:
    """Also one whose parent is not there."""
    a = entry(attempt="a", parent="b", resumed_at=5)
    b = entry(attempt="b", parent="a", resumed_at=6, tokens_seen=9)
    assert written(tmp_path / "p", a, b).read().lineage() == (b,)
    assert written(tmp_path / "p", entry(parent="gone")).read().lineage() == (entry(parent="gone"),)


FOREIGN = [
    b"hello",
    b"{}",
    b"[1]",
    b"null",
    b"\xff\xfe\x00",
    b"\0" * 600,
    b'{"version":1',
    to_line(entry())[:-9],
    b"\r",
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=repr)
def test_foreign_and_damaged_lines_are_reported(foreign: bytes, tmp_path: Path) -> None:
    """With their number, and without harm to the lines around; at the end they are torn, and the next line stands alone."""
    ledger = written(tmp_path / "p", entry())
    with ledger.path.open("ab") as stream:
        stream.write(foreign)
    history = ledger.read()
    assert history.entries == (entry(),)
    assert history.problems == ()
    assert history.torn
    assert history.torn.line == 2
    later = begin(ledger).append(3, 3)
    history = ledger.read()
    assert history.latest() == later
    assert (len(history.entries), [problem.line for problem in history.problems]) == (3, [2])
    assert history.torn is None


def test_a_line_of_a_newer_version_stops_the_reader(tmp_path: Path) -> None:
    """It may say what changes the answer; unknown keys of our version are passed over, odd versions are foreign."""

    def line(**changes: Any) -> bytes:
        data = {**json.loads(to_line(entry())), **changes}
        del data["crc32"]
        covered = json.dumps(data).encode()[:-1]
        return covered + b',"crc32":"%08x"}\n' % zlib.crc32(covered)

    path = tmp_path / "p"
    path.write_bytes(line(version=2))
    with pytest.raises(ProgressError, match=r"line 1: version 2.*reads 1: update"):
        ProgressLedger(path).read()
    path.write_bytes(
        line(loss=2.5) + line(version=0) + line(version="1") + line(time="yesterday") + line(token_files=1)
    )
    history = ProgressLedger(path).read()
    assert history.entries == (entry(),)
    assert [problem.line for problem in history.problems] == [2, 3, 4, 5]


CHECKPOINTS = st.one_of(st.none(), st.text(min_size=1, max_size=20), st.just("\udcff/ä\n{}.pt"))


@given(st.lists(st.tuples(st.integers(0, 2**62), CHECKPOINTS), min_size=1, max_size=8))
def test_a_line_says_what_it_was_given(rows: list[tuple[int, str | None]]) -> None:
    """Any text comes back from a line of ASCII without a line end in it."""
    for tokens, checkpoint in rows:
        found = entry(tokens_seen=tokens, checkpoint=checkpoint)
        line = to_line(found)
        assert line.isascii()
        assert line.count(b"\n") == 1
        assert parse_line(line[:-1]) == found


LINES = [to_line(entry(tokens_seen=n, step=n, checkpoint=f"c{n}")) for n in range(4)]
WHOLE = b"".join(LINES)


@settings(max_examples=200)
@given(st.integers(0, len(WHOLE)))
def test_a_cut_costs_the_cut_line_alone(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    """Cut anywhere: the whole lines before are read; what is appended then is read too."""
    ledger = ProgressLedger(tmp_path_factory.mktemp("cut") / "p")
    ledger.path.write_bytes(WHOLE[:size])
    history = ledger.read()
    whole = WHOLE[: size + 1].count(b"\n")  # a line of which only the end is missing says all it has to say
    assert [e.tokens_seen for e in history.entries] == list(range(whole))
    assert (history.torn is None) == (WHOLE[:size] in (b"".join(LINES[:whole]), b"".join(LINES[:whole])[:-1]))
    begin(ledger).append(9, 9)
    assert [e.tokens_seen for e in ledger.read().entries] == [*range(whole), 0, 9]


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_never_believed(tmp_path_factory: pytest.TempPathFactory, place: int, flip: int) -> None:
    """Every line that counts is one that was written; all but the damaged one (two, if it was the end of one) count."""
    data = bytearray(WHOLE)
    data[place] ^= flip
    path = tmp_path_factory.mktemp("flip") / "p"
    path.write_bytes(data)
    history = ProgressLedger(path).read()
    assert {to_line(e) for e in history.entries} <= set(LINES)
    assert len(history.entries) >= (2 if WHOLE[place : place + 1] == b"\n" and place + 1 < len(WHOLE) else 3)


@st.composite
def trainings(draw: st.DrawFn) -> list[Entry]:
    """Lines of attempts that begin anew or go back to any line before, and go on writing whenever they like."""
    lines: list[Entry] = []
    last: dict[str, Entry] = {}
    for number in range(draw(st.integers(1, 14))):
        if not last or draw(st.booleans()):
            at = draw(st.sampled_from([None, *lines]))
            tokens = at.tokens_seen if at else 0
            line = entry(
                attempt=f"t{number}",
                parent=at.attempt if at else None,
                resumed_at=tokens,
                tokens_seen=tokens,
                step=tokens,
            )
        else:
            line = last[draw(st.sampled_from(sorted(last)))]
            tokens = line.tokens_seen + draw(st.integers(0, 25))
            same = {name: getattr(line, name) for name in ("attempt", "parent", "resumed_at")}
            line = entry(**same, tokens_seen=tokens, step=tokens, checkpoint=draw(st.sampled_from(["c", None])))
        last[line.attempt] = line
        lines.append(line)
    return lines


def past_of(lines: list[Entry], attempt: str, limit: int) -> list[Entry]:
    """By the definition: an attempt's own lines up to `limit`, after its parent's up to where it resumed."""
    own = [line for line in lines if line.attempt == attempt]
    parent, resumed_at = own[0].parent, own[0].resumed_at
    before = past_of(lines, parent, min(limit, resumed_at)) if parent else []
    return before + [line for line in own if line.tokens_seen <= limit]


@given(trainings(), st.integers(1, 20))
def test_thresholds_are_those_of_the_newest_lineage(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Entry], every: int
) -> None:
    """Tokens never fall along it; each multiple that it reached once, in order, with the first line that can be scored."""
    history = written(tmp_path_factory.mktemp("tree") / "p", *lines).read()
    assert history.problems == ()
    newest = list(dict.fromkeys(line.attempt for line in lines))[-1]
    expected = past_of(lines, newest, 2**63)
    lineage = list(history.lineage())
    assert lineage == expected
    assert [e.tokens_seen for e in lineage] == sorted(e.tokens_seen for e in lineage)
    usable = [e for e in lineage if e.checkpoint]
    reached = max((e.tokens_seen for e in usable), default=0) // every
    firsts = [(k, next(e for e in usable if e.tokens_seen >= k * every)) for k in range(1, reached + 1)]
    assert list(history.thresholds_passed(every)) == firsts


WRITER = """
import sys
from tokenization.progress import ProgressLedger
attempt = ProgressLedger(sys.argv[1]).begin("small", tokenizer="f" * 64, token_files=["5" * 64])
for n in range(int(sys.argv[2])):
    attempt.append(n, n, "x" * (n % 700 + 1))
"""


def test_processes_append_at_once(tmp_path: Path) -> None:
    """No line is lost, cut or mixed with another one."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "new" / "p"), "60"]
    writers = [subprocess.Popen(command, cwd=REPO) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    history = ProgressLedger(tmp_path / "new" / "p").read()
    assert (history.problems, history.torn) == ((), None)
    for attempt in {e.attempt for e in history.entries}:
        assert [e.tokens_seen for e in history.entries if e.attempt == attempt] == [0, *range(60)]


FULL = """
import resource, sys
from tokenization.progress import ProgressError, ProgressLedger
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
attempt = ProgressLedger(sys.argv[1]).begin("small", tokenizer="f" * 64, token_files=["5" * 64])
try:
    for n in range(100):
        attempt.append(n, n, "c")
except ProgressError as error:
    print(n, error)
"""


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """The write that finds no room is taken back, and the error says what to do (a limit on file size acts as the disk)."""
    path = tmp_path / "p"
    command = [sys.executable, "-c", FULL, str(path), "3000"]
    said = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True).stdout
    history = ProgressLedger(path).read()
    assert (history.problems, history.torn) == ((), None)
    assert len(history.entries) == int(said.split()[0]) + 1 > 3
    assert "could not be written" in said
    assert "Free some space, then append again." in said


def test_what_cannot_be_written_or_read(tmp_path: Path) -> None:
    """A folder, a pipe, or a file in the way of the folder: one error that names the path."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    folder = ProgressLedger(tmp_path / "folder")
    folder.path.mkdir()
    for ledger in (ProgressLedger(tmp_path / "file" / "p"), ProgressLedger(tmp_path / "pipe"), folder):
        with pytest.raises(ProgressError, match=f"{ledger.path} could not be written"):
            begin(ledger)
    with pytest.raises(ProgressError, match="cannot be read: Is a directory"):
        folder.read()


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_disk_that_does_not_keep_its_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error of fsync is an error of append, and the attempt can append again."""
    ledger = ProgressLedger(tmp_path / "p")
    attempt = begin(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(ProgressError, match="Input/output error"):
            attempt.append(10, 1, "c")
    attempt.append(10, 1, "c")
    assert ledger.latest() == ledger.read().entries[-1]


def test_a_lock_that_nobody_gives_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another process that stopped while it wrote is waited for, but not for ever."""
    ledger = ProgressLedger(tmp_path / "p")
    attempt = begin(ledger)
    monkeypatch.setattr(progress_file, "_LOCK_SECONDS", 0.05)
    with ledger.path.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(ProgressError, match="another process has held its lock"):
            attempt.append(10, 1)
    assert attempt.append(10, 1) == ledger.latest()


def test_only_the_standard_library_is_needed() -> None:
    """A trainer in any environment can write its progress."""
    code = "import sys, tokenization.progress; print(*{'numpy', 'pyarrow', 'torch', 'curation'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
