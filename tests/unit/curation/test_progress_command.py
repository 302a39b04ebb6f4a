"""`corpusmill progress`: what it shows, what a report becomes, and whom it tells."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from curation.command_parser import Parser
from curation.errors import ConfigError, InputError, RunError
from curation.progress_command import _count, add_progress
from curation.rescore.reports import record
from tokenization.progress import ProgressLedger

REPO = Path(__file__).resolve().parents[3]
FINGERPRINT = "f" * 64


def progress(*words: str | Path) -> int:
    """The command with these words."""
    parser = Parser(prog="corpusmill")
    add_progress(parser.add_subparsers(dest="command", required=True, parser_class=Parser))
    arguments = parser.parse_args(["progress", *map(str, words)])
    code: int = arguments.function(arguments)
    return code


def report(place: Path, tokens: int, *more: str | Path, run: str = "gpt") -> None:
    """Report a number of tokens; a step has ten."""
    assert progress(place, "--report", "--run", run, "--tokens", f"{tokens}", "--step", f"{tokens // 10}", *more) == 0


def model(folder: Path, size: int = 4) -> Path:
    """A folder that is whole, as far as its files say."""
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}}).encode()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4 * size)
    return folder


# ---------------------------------------------------------------- report


def test_a_report_is_a_line_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Told again it is known, whatever came between; a checkpoint in the ledger's folder is named relative to it."""
    saved = model(tmp_path / "step-10")
    for _ in range(2):
        report(tmp_path, 100, "--checkpoint", saved, "--sha256", "auto", "--tokenizer", FINGERPRINT)
        report(tmp_path, 130)
    entries = ProgressLedger(tmp_path).read().entries
    assert [(e.tokens_seen, e.step, e.checkpoint) for e in entries] == [(100, 10, "step-10"), (130, 13, None)]
    assert len(str(entries[0].checkpoint_sha256)) == 64
    assert {e.tokenizer for e in entries} == {FINGERPRINT}, "the second has it from the line before"
    assert len({e.attempt for e in entries}) == 1
    assert capsys.readouterr().out.splitlines() == [
        "reported: gpt at 100 tokens, step 10",
        "reported: gpt at 130 tokens, step 13",
        "known already: gpt at 100 tokens, step 10",
        "known already: gpt at 130 tokens, step 13",
    ]


def test_fewer_tokens_are_a_training_that_went_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the last line before; what it did beyond does not count, even if it comes to the same number again."""
    for tokens in (100, 200, 300):
        report(tmp_path, tokens, "--checkpoint", f"s3://b/a-{tokens}", "--tokenizer", FINGERPRINT)
    for tokens in (150, 200):
        report(tmp_path, tokens, "--checkpoint", f"s3://b/b-{tokens}")
    report(tmp_path, 200, "--checkpoint", "s3://b/a-200")
    history = ProgressLedger(tmp_path).read()
    assert [e.checkpoint for e in history.lineage("gpt")] == [
        f"s3://b/{n}" for n in ("a-100", "b-150", "b-200", "a-200")
    ]
    assert [k for k, _ in history.thresholds_passed(100, "gpt")] == [1, 2]
    assert [line for line in capsys.readouterr().out.splitlines() if "back" in line] == [
        "reported: gpt at 150 tokens, step 15, after going back to 100"
    ]
    report(tmp_path, 50, "--checkpoint", "s3://b/c-50")
    assert [e.tokens_seen for e in ProgressLedger(tmp_path).read().lineage("gpt")] == [50]


def test_reports_beside_a_process_begin_an_attempt_of_their_own(tmp_path: Path) -> None:
    """They go on from its last line; its attempt is not written to, since it may live."""
    ledger = ProgressLedger(tmp_path)
    first = ledger.begin("gpt", tokenizer=FINGERPRINT, token_files=["5" * 64])
    first.append(100, 10, "s3://a")
    report(tmp_path, 100, "--checkpoint", "s3://a")
    report(tmp_path, 200, "--checkpoint", "s3://b")
    first.append(150, 15, "s3://c")
    lineage = ProgressLedger(tmp_path).read().lineage("gpt")
    assert [e.tokens_seen for e in lineage] == [0, 100, 200]
    assert (lineage[-1].parent, lineage[-1].resumed_at, lineage[-1].token_files) == (first.id, 100, ("5" * 64,))
    record(ledger.path, {"training_run": "gpt", "tokens_seen": 250, "step": 25, "checkpoint": "s3://d"})
    report(tmp_path, 300, "--checkpoint", "s3://e")
    assert [e.tokens_seen for e in ProgressLedger(tmp_path).read().lineage("gpt")] == [0, 100, 200, 250, 300]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["--run", "gpt"], ConfigError, "--report needs --tokens, --step, too"),
        (["--run", "gpt", "--tokens", "2000T", "--step", "1"], ConfigError, "at most 1,000,000,000,000,000"),
        (["--run", "a\tb", "--tokens", "1", "--step", "1"], ConfigError, "printable name"),
        (["--run", "", "--tokens", "1", "--step", "1"], RunError, "run: expected a text"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--checkpoint", "none"], InputError, "none: nothing is there"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--checkpoint", "a\nb"], ConfigError, "printable path"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--sha256", "abc"], ConfigError, "64 hex digits"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--sha256", "auto"], ConfigError, "needs a --checkpoint"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--tokenizer", "no/such"], InputError, "no/such"),
        (["--run", "g", "--tokens", "1", "--step", "1", "--token-file", "no.arrow"], InputError, "no.arrow"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: list[str], error: type[Exception], message: str) -> None:
    """And no ledger is made."""
    with pytest.raises(error, match=message):
        progress(tmp_path / "p", "--report", *words)
    assert not (tmp_path / "p").exists()


def test_a_checkpoint_that_is_not_whole_is_not_reported(tmp_path: Path) -> None:
    """With `auto`, which looks."""
    saved = model(tmp_path / "step-1")
    with (saved / "model.safetensors").open("ab") as stream:
        stream.truncate(70)
    with pytest.raises(RunError, match="not whole"):
        report(tmp_path, 10, "--checkpoint", saved, "--sha256", "auto")
    assert ProgressLedger(tmp_path).read().entries == ()


def test_a_training_has_one_tokenizer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By name or fingerprint; none is warned of; another one than before is refused."""
    report(tmp_path, 10)
    assert "no tokenizer is known" in caplog.text
    report(tmp_path, 20, "--tokenizer", "default")
    known = {e.tokenizer for e in ProgressLedger(tmp_path).read().lineage("gpt")}
    assert len(known) == 1
    assert not known & {None, FINGERPRINT}
    with pytest.raises(RunError, match="another tokenizer is another training"):
        report(tmp_path, 30, "--tokenizer", FINGERPRINT)
    report(tmp_path, 30, "--tokenizer", FINGERPRINT, run="other")


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("20_480_000", 20_480_000), ("20,480,000", 20_480_000), ("10B", 10**10), ("5k", 5000)]
)
def test_counts_are_easy_to_write(text: str, count: int) -> None:
    """With signs between, or a unit."""
    assert _count(text) == count


@pytest.mark.parametrize("text", ["", "-1", "1.5B", "10b", "ten", "_1", "1" * 40, "١"])
def test_what_is_no_count(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Is wrong use."""
    with pytest.raises(SystemExit) as stopped:
        progress(tmp_path, f"--every={text}")
    assert stopped.value.code == 2
    assert "expected a whole number" in capsys.readouterr().err


WRITER = """
import sys
from curation.command_parser import Parser
from curation.progress_command import add_progress
parser = Parser()
add_progress(parser.add_subparsers())
for tokens in range(0, 150, 10):
    words = ["progress", sys.argv[1], "--report", "--run", "gpt", "--tokens", str(tokens), "--step", "1"]
    arguments = parser.parse_args([*words, "--checkpoint", f"s3://{tokens}"])
    try:
        arguments.function(arguments)
    except Exception as error:
        sys.exit(str(error))
"""


def test_the_same_report_by_two_at_once(tmp_path: Path) -> None:
    """One line: who looks and who appends holds the same lock."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", WRITER, str(tmp_path / "p")]
    started = [subprocess.Popen(command, cwd=REPO, env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    history = ProgressLedger(tmp_path / "p").read()
    assert [e.tokens_seen for e in history.lineage("gpt")] == list(range(0, 150, 10))


# ---------------------------------------------------------------- look


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """What the command prints."""
    capsys.readouterr()
    assert progress(*words) == 0
    return capsys.readouterr().out


def test_the_state_of_a_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens, step, checkpoint, thresholds, other trainings; what the crawl of names holds cannot move the cursor."""
    report(tmp_path, 100, run="other")
    report(tmp_path, 1000, "--checkpoint", model(tmp_path / "a", 5), "--sha256", "auto", "--tokenizer", FINGERPRINT)
    report(tmp_path, 2500, "--checkpoint", model(tmp_path / "b", 6))
    record(tmp_path, {"training_run": "gpt", "tokens_seen": 3100, "step": 310, "checkpoint": "s3://bucket/c"})
    with (tmp_path / "progress.jsonl").open("ab") as stream:
        stream.write(b"\x1b[2J garbage\n{")
    text = shown(capsys, tmp_path, "--every", "1k", "--run", "gpt")
    for expected in (
        "training gpt: 3 lines, 1 attempt and 1 report by events; 3 count\n",
        "tokens seen  3,100 at step 310\n",
        "checkpoint   s3://bucket/c at 3,100 tokens: an id, not looked at\n",
        f"tokenizer    {FINGERPRINT[:16]}...\n",
        "thresholds of 1,000 tokens passed: 3\n",
        "     1               1,000  a at 1,000, step 100\n",
        "     2               2,000  b at 2,500, step 250\n",
        "     3               3,000  s3://bucket/c at 3,100, step 310\n",
        "other trainings here: other; show one with --run\n",
        "damaged lines, which do not count: 1\n  line 5: ",
        "line 6 is not whole",
    ):
        assert expected in text
    assert "\x1b" not in text
    assert "thresholds of 10,000,000,000 tokens passed: 0" in shown(capsys, tmp_path)
    with pytest.raises(InputError, match="no training 'gtp': it knows other, gpt"):
        progress(tmp_path, "--run", "gtp")


def test_the_last_checkpoint_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole, not whole, another one, or gone; the same is seen of those that passed thresholds, if they are gone."""
    saved = model(tmp_path / "a")
    report(tmp_path, 100, "--checkpoint", saved, "--tokenizer", FINGERPRINT)
    assert "whole, as far as is seen without a checksum" in shown(capsys, tmp_path)
    report(tmp_path, 100, "--checkpoint", saved, "--sha256", "auto")
    assert "whole, its SHA-256 fits" in shown(capsys, tmp_path)
    (saved / "config.json").write_text('{"a": 1}')
    assert "NOT WHOLE: checkpoint" in shown(capsys, tmp_path)
    with (saved / "model.safetensors").open("ab") as stream:
        stream.write(b"x")
    assert "NOT WHOLE: checkpoint" in shown(capsys, tmp_path)
    shutil.rmtree(saved)
    assert "MISSING, nothing is at" in shown(capsys, tmp_path)
    assert "step 10  MISSING" in shown(capsys, tmp_path, "--every", "50")


def test_many_thresholds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last ones are shown; beyond measure they are refused."""
    report(tmp_path, 10**9, "--checkpoint", "s3://c", "--tokenizer", FINGERPRINT)
    text = shown(capsys, tmp_path, "--every", "1M")
    assert "passed: 1,000\n  ... 960 before these\n   961" in text
    with pytest.raises(ConfigError, match="give a greater number"):
        progress(tmp_path, "--every", "1")
    with pytest.raises(ConfigError, match="at least 1 token"):
        progress(tmp_path, "--every", "0")


def test_a_ledger_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, empty, of a later version; options of a report without one."""
    with pytest.raises(InputError, match="no progress ledger at"):
        progress(tmp_path)
    with pytest.raises(ConfigError, match="--tokens belongs to a report: add --report"):
        progress(tmp_path, "--tokens", "0")
    (tmp_path / "progress.jsonl").touch()
    assert "has no lines yet" in shown(capsys, tmp_path)


# ---------------------------------------------------------------- notify


class Airflow(BaseHTTPRequestHandler):
    """Answers as Airflow does, and keeps what it was told."""

    told: list[dict[str, Any]]
    answers: dict[str, tuple[int, Any]]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        self.told.append(
            {"do": f"{self.command} {path}", "body": json.loads(body or b"null"), "by": self.headers["Authorization"]}
        )
        code, content = self.answers.get(path, (404, {}))
        self.send_response(code)
        if code == 302:
            self.send_header("Location", content)
        self.end_headers()
        self.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[Airflow]]]:
    """Address and what it was told."""
    names = {"assets": [{"id": 3, "name": "corpusmill_progress_old"}, {"id": 7, "name": "corpusmill_progress"}]}
    answers = {
        "/auth/token": (201, {"access_token": "secret"}),
        "/api/v2/assets": (200, names),
        "/api/v2/assets/events": (200, {}),
    }
    kind = type("Kind", (Airflow,), {"told": [], "answers": answers})
    monkeypatch.setattr(socket, "getfqdn", lambda name="": name)  # which may ask a name server for seconds
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", kind
        server.shutdown()
        thread.join()


def test_airflow_is_told(
    tmp_path: Path,
    airflow: tuple[str, type[Airflow]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the login of the environment: the event's extra is a report that the ledger knows, and the same each time."""
    url, server = airflow
    monkeypatch.setenv("CORPUSMILL_AIRFLOW_LOGIN", "ann:p:w")
    saved = model(tmp_path / "a")
    for _ in range(2):
        report(tmp_path, 100, "--checkpoint", saved, "--sha256", "auto", "--tokenizer", FINGERPRINT, "--notify", url)
    assert caplog.records == []
    assert [one["do"] for one in server.told[:3]] == [
        "POST /auth/token",
        "GET /api/v2/assets",
        "POST /api/v2/assets/events",
    ]
    assert server.told[0]["body"] == {"username": "ann", "password": "p:w"}
    assert [one["by"] for one in server.told[:3]] == [None, "Bearer secret", "Bearer secret"]
    first, second = (one["body"] for one in server.told if "events" in one["do"])
    assert first == second
    assert first["asset_id"] == 7
    assert {name: first["extra"][name] for name in ("training_run", "tokens_seen", "step", "checkpoint")} == {
        "training_run": "gpt",
        "tokens_seen": 100,
        "step": 10,
        "checkpoint": str(saved),
    }
    assert record(tmp_path, first["extra"]) is None
    line = record(tmp_path / "elsewhere.jsonl", first["extra"])
    assert line is not None
    assert line.tokenizer == FINGERPRINT


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("/auth/token", (401, {}), "it answers 401 Unauthorized to /auth/token: set CORPUSMILL_AIRFLOW_LOGIN"),
        ("/auth/token", (302, "http://127.0.0.1:1/steal"), "it answers 302 Found"),
        ("/auth/token", (201, b"<html>"), "Expecting value"),
        ("/auth/token", (201, []), "TypeError"),
        ("/auth/token", (201, {}), "KeyError: 'access_token'"),
        ("/auth/token", (201, {"access_token": "a\nb"}), "Invalid header value"),
        ("/api/v2/assets", (200, {"assets": [{"id": 3, "name": "corpusmill_progress_old"}]}), "knows no asset"),
        ("/api/v2/assets/events", (500, {}), "it answers 500"),
    ],
)
def test_a_failure_to_tell_is_a_warning(
    tmp_path: Path,
    airflow: tuple[str, type[Airflow]],
    caplog: pytest.LogCaptureFixture,
    path: str,
    answer: tuple[int, Any],
    said: str,
) -> None:
    """The report is written and the command succeeds; the warning says what and that nothing is lost."""
    url, server = airflow
    server.answers[path] = answer
    report(tmp_path, 100, "--tokenizer", FINGERPRINT, "--notify", url)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert said in caplog.text
    assert "reads the ledger by itself" in caplog.text
    assert len(ProgressLedger(tmp_path).read().entries) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/passwd", "nonsense", "http://[", "http://a b/", ""])
def test_an_address_where_nobody_is(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Is a warning, too, or nothing was asked for."""
    report(tmp_path, 100, "--tokenizer", FINGERPRINT, "--notify", url)
    assert ("was not told" in caplog.text) == bool(url)
