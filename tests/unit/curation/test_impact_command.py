"""`corpusmill impact` as a user types it: what it prints, where the sheet lies, and what the exit code says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.cli import main
from curation.errors import RunError
from tests.impact_question import make_root, write_question


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a config and a sample of 40 texts of 1 to 40 words."""
    write_question(tmp_path)
    make_root(tmp_path / "runs-root")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPUSMILL_ROOT", raising=False)
    return tmp_path


def asked(*more: str) -> int:
    return main(
        ["impact", "mine.yaml", "--base", "mine.yaml", "--sample", "sample", "--workers", "1", "--quiet", *more]
    )


def test_within_bounds_it_ends_well(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0; the last line is the path of a sheet below the root."""
    assert asked("--set", "length.min_units=5") == 0
    text = capsys.readouterr().out
    assert "within the bounds of the config" in text
    sheet = Path(text.splitlines()[-1])
    assert sheet.is_relative_to(here / "runs-root" / "impact" / "sheets")
    assert sheet.is_file()


def test_a_broken_bound_is_an_exit_code_and_the_sheet_stands(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1, in the folder that was asked for, with a text for a pull request and all of it for programs."""
    assert asked("--set", "length.min_units=15", "--output", "out", "--corpus", "2.5Ttokens") == 1
    text = capsys.readouterr().out
    assert "impact.max_kept_change" in text
    assert "2.5T tokens kept before" in text
    assert text.splitlines()[-1] == "out/sheet.html"
    assert {path.name for path in (here / "out").iterdir()} == {
        "sheet.html", "sheet.md", "sheet.json", "pull-request.md"
    }  # fmt: skip
    assert json.loads((here / "out" / "sheet.json").read_text(encoding="utf-8"))["within_bounds"] is False


def test_json_is_the_whole_sheet(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else, so that a program can read it."""
    assert asked("--set", "length.min_units=15", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["figures"]["totals"]["documents"]["leaves"]["count"] == 12
    assert told["broken"][0]["key"] == "impact.max_kept_change"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--base", "no-such-base"], "no-such-base"),
        (["--corpus", "large"], "corpus size 'large'"),
        (["--set", "length.min_unitz=3"], "min_units"),
        (["--output", "mine.yaml"], "mine.yaml is a file"),
        (["--output", "."], "holds other files"),
    ],
)
def test_wrong_use_is_told_apart_from_a_broken_bound(
    here: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    """2, with what to mend, and no sheet."""
    assert asked(*more) == 2
    assert told in capsys.readouterr().err
    assert not (here / "runs-root" / "impact" / "sheets").exists()


def test_a_base_must_be_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2; the rest has defaults."""
    with pytest.raises(SystemExit) as ended:
        main(["impact"])
    assert ended.value.code == 2
    assert "--base" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            SyntaxError("invalid syntax", ("curation/filters/length.py", 7, 1, "def (", 7, 2)),
            "length.py, line 7, is no Python",
        ),
        (PermissionError(13, "Permission denied", "out"), "out cannot be used: Permission denied"),
        (RunError("a shard is gone"), "a shard is gone"),
    ],
)
def test_what_cannot_be_judged_is_told_apart_from_a_broken_bound(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    """3, and one message: CI must not take it for a sheet that says no."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("curation.impact_tasks.answer", fail)
    assert asked() == 3
    assert told in capsys.readouterr().err
