"""`corpusmill sample`: its arguments, what it prints, and that the sheet's command can read what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.command_parser import Parser
from curation.config import parse_config
from curation.launch import drive, start_run
from curation.sample_command import add_sample

CONFIG = "name: t\nsteps: [exact, length]\n"


def run_command(*words: str) -> int:
    """Parse and do."""
    parser = Parser(prog="corpusmill")
    add_sample(parser.add_subparsers(dest="command", required=True, parser_class=Parser))
    arguments = parser.parse_args(["sample", *words])
    code: int = arguments.function(arguments)
    return code


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    rows = [{"id": str(n), "text": f"document number {n % 50} " + "word " * (n % 25)} for n in range(200)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pipeline = start_run(parse_config(CONFIG), [str(tmp_path / "a.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)
    return pipeline.run.folder


def test_what_is_printed(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outcomes and languages with what was drawn of how many, a word about personal data, the folder last."""
    assert run_command(str(run_folder), "--output", str(tmp_path / "sample"), "--documents", "40") == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["outcome", "drawn", "of"]
    assert {line.split()[-3] for line in lines[1:4]} == {"kept", "exact", "length"}, lines
    assert any(line.split()[-2:] == ["40", "200"] for line in lines)
    assert lines[-1] == str(tmp_path / "sample")
    assert json.loads((tmp_path / "sample" / "sample.json").read_text())["population"] == 200


def test_a_run_by_its_id(run_folder: Path, tmp_path: Path) -> None:
    """As every command that takes a run."""
    root = str(tmp_path / "root")
    assert (
        run_command(run_folder.name, "--root", root, "-o", str(tmp_path / "s"), "--documents", "40", "--seed", "3") == 0
    )
    assert (tmp_path / "s" / "sample-0000.jsonl.zst").exists()


def test_into_the_folder_where_one_is(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--output .`: the folder is filled, not put in another's place, and a second draw replaces the first."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = here.stat().st_ino

    for seed in ("0", "1"):
        assert run_command(str(run_folder), "--output", ".", "--documents", "40", "--seed", seed) == 0
        assert sorted(path.name for path in here.iterdir()) == ["sample-0000.jsonl.zst", "sample.json"]

    assert here.stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    "words", [[], ["RUN"], ["RUN", "-o", "x", "--documents", "0"], ["RUN", "-o", "x", "--seed", "a"]]
)
def test_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Two, with a word about it."""
    with pytest.raises(SystemExit) as ended:
        run_command(*words)
    assert ended.value.code == 2
    assert "corpusmill" in capsys.readouterr().err
