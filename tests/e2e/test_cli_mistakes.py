"""What a user can do wrong on the command line, and what a crawl can try on his terminal."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import curation.launch
from curation.cli import main

EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066\r\x9b31m"


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Messages instead of tracebacks, and no log handler left behind."""
    monkeypatch.delenv("CORPUSMILL_DEBUG", raising=False)
    log = logging.getLogger("corpusmill")
    before = list(log.handlers)
    yield
    for handler in set(log.handlers) - set(before):
        log.removeHandler(handler)
        handler.close()


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def one_document(folder: Path, **fields: object) -> Path:
    path = folder / "one.jsonl"
    row = {"id": "d1", "text": "A sentence of some words, and more of them in a row. " * 8, **fields}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path


def clean(text: str) -> bool:
    """Nothing in it but printable characters and line breaks."""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize(
    ("option", "where"),
    [("--root", "file"), ("--root", "file/below"), ("--root", "x" * 300), ("--root", "locked/root")],
)
def test_a_root_that_cannot_be_one_is_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, where: str
) -> None:
    """A file, a folder below a file, a name too long, a folder of someone else."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "locked").mkdir(mode=0o500)
    if where.startswith("locked") and os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    source = one_document(tmp_path)
    code, _, err = run_cli(capsys, "run", "web", "--input", source, option, tmp_path / where, "--workers", "1")
    assert code in (1, 2)
    assert "Traceback" not in err
    assert where.split("/")[0] in err
    assert "fault of corpusmill" not in err


@pytest.mark.parametrize("where", ["file/kept.jsonl", "folder.jsonl"])
def test_an_output_that_cannot_be_one_is_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, where: str
) -> None:
    """An output below a file, or that is a folder; the same for export and judge."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder.jsonl").mkdir()
    source = one_document(tmp_path)
    code, out, err = run_cli(
        capsys, "run", "web", "--input", source, "--root", tmp_path, "--workers", "1", "--set", "pack="
    )
    assert code == 0, err
    for arguments in (("export", out.splitlines()[-1]), ("judge", "web", "--workers", "1", "--input", str(source))):
        code, _, err = run_cli(capsys, *arguments, "--output", tmp_path / where)
        assert code in (1, 2)
        assert "Traceback" not in err
        assert "fault of corpusmill" not in err
        assert where.split("/")[0] in err


def test_an_unforeseen_error_is_one_message_and_its_traceback_lies_in_the_runs_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type, message, notes and what to do; with CORPUSMILL_DEBUG=1 the exception itself, so that no test hides it."""

    def broken(*_: object, **__: object) -> None:
        error = ValueError(f"no such thing {EVIL}")
        error.add_note("while shard 7 was judged")
        raise error

    monkeypatch.setattr(curation.launch, "drive", broken)
    command = ("run", "web", "--input", one_document(tmp_path), "--root", tmp_path / "root", "--workers", "1")
    code, _, err = run_cli(capsys, *command)
    assert code == 1
    assert "ValueError: no such thing \\u001b]0;owned" in err
    assert "while shard 7 was judged" in err
    assert "fault of corpusmill; please report" in err
    assert "Traceback" not in err
    assert clean(err)
    (log,) = (tmp_path / "root" / "runs").glob("*/logs/run.log")
    assert str(log) in err
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert "in broken" in log.read_text(encoding="utf-8")
    monkeypatch.setenv("CORPUSMILL_DEBUG", "1")
    with pytest.raises(ValueError, match="no such thing"):
        main([str(word) for word in command])


def test_what_the_crawl_says_never_reaches_the_terminal_raw(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Id, url, file name, partner and quarantined bytes: escape sequences and marks of direction are shown, not obeyed."""
    folder = tmp_path / "in\x1b[31m\u202e"
    folder.mkdir()
    text = f"A sentence {EVIL} of some words, and more of them in a row. " * 8
    rows = [{"id": f"{n}{EVIL}", "url": f"http://x.invalid/{EVIL}", "text": text} for n in (1, 2)]
    bad = b'{"id": "3", "text": "\x1b[2J\xff\x07 \xe2\x80\xae"}\n{"' + EVIL.encode() + b'": 1}\n'
    lines = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode() + bad
    (folder / "a.jsonl").write_bytes(lines)
    code, out, err = run_cli(
        capsys, "run", "web", "--input", folder, "--root", tmp_path / "root", "--workers", "1",
        "--set", "pack=", "--set", "ingest.max_quarantine_share=1",
    )  # fmt: skip
    assert code == 0, err
    run = out.splitlines()[-1]
    for wanted in (f"1{EVIL}", f"2{EVIL}", "a.jsonl:1", "a.jsonl:2", "a.jsonl:3", "a.jsonl:4"):
        code, out, err = run_cli(capsys, "explain", run, wanted)
        assert code == 0, err
        assert "\\u001b" in out
        assert clean(out), out
    code, _, err = run_cli(capsys, "explain", run, f"nosuch{EVIL}")
    assert code == 2
    assert clean(err)
    code, _, err = run_cli(capsys, "run", "web", "--input", tmp_path / f"no{EVIL}", "--root", tmp_path / "root")
    assert code == 1
    assert clean(err)


def test_configs_lists_what_ships_and_prints_one_to_begin_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What it prints is a config as it stands."""
    code, out, _ = run_cli(capsys, "configs")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["demo", "web", "zh-web"]
    code, out, _ = run_cli(capsys, "configs", "web")
    assert code == 0
    (tmp_path / "mine.yaml").write_text(out, encoding="utf-8")
    command = ("run", tmp_path / "mine.yaml", "--input", one_document(tmp_path), "--root", tmp_path, "--workers", "1")
    assert run_cli(capsys, *command, "--set", "pack=")[0] == 0
    code, _, err = run_cli(capsys, "configs", "wep")
    assert code == 2
    assert "did you mean 'web'" in err
    assert run_cli(capsys, "configs", "../configs/web")[0] == 2


def test_a_program_that_calls_it_keeps_its_own_signals(capsys: pytest.CaptureFixture[str]) -> None:
    """Workers forked later would inherit ours: one of them, asked to end, raised KeyboardInterrupt and hung for ever."""
    before = signal.getsignal(signal.SIGTERM)
    assert run_cli(capsys, "configs")[0] == 0
    assert run_cli(capsys, "configs", "nothing-like-it")[0] == 2
    assert signal.getsignal(signal.SIGTERM) is before
