"""Export by language and by output: every chosen document in one file, in run order; all files or none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard

import curation.export_split
from curation.cli import main
from curation.config import parse_config
from curation.errors import ConfigError, RunError
from curation.export import export_selected, selection
from curation.export_split import MANIFEST, export_by_language
from curation.pipeline import Pipeline
from tests.fakes import make_run, run_steps
from tests.language_fake import FakeLanguage, fake_language

__all__ = ["fake_language"]

LANGUAGES = ["eng_Latn", "zho_Hans", "jpn_Jpan", "deu_Latn", "tha_Thai"]
CONFIG = "name: t\nsteps: [{language: {mixed: 'route:mixed', no_language: 'route:none', wanted: [%s]}}, length]\n"


def texts(n: int) -> list[str]:
    """Language by number; every 11th is mixed, every 13th is in none."""
    found = []
    for i in range(n):
        name = LANGUAGES[min(i % 7, i % 5)]
        line = f"{name}:0.9 " + f"number {i} of some words in a sentence " * (4 + i % 3)
        if i % 13 == 12:
            line = "12345 " * 40
        elif i % 11 == 10:
            line += f"\nkor_Hang:0.9 {i}"
        found.append(line)
    return found


def run_of(folder: Path, config: str, n: int = 200) -> Pipeline:
    """A finished run in shards of 60 documents and batches of 7."""
    found = texts(n)
    shards = [found[i : i + 60] for i in range(0, n, 60)]
    run = make_run(folder / "root", [*shards, []], batch_rows=7)
    run.config_path.write_text(config, encoding="utf-8")
    run_steps(run, parse_config(config).steps)
    return Pipeline.open(run.folder)


@pytest.fixture
def pipeline(tmp_path: Path, fake_language: type[FakeLanguage]) -> Pipeline:
    return run_of(tmp_path, CONFIG % "")


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of an exported file."""
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=False).read()
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".parquet"])
@pytest.mark.parametrize("max_open", [1, 2, 32])
def test_the_files_are_the_kept_documents_told_apart(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, max_open: int
) -> None:
    """Each document once, in run order, whatever the number of files that are open at once."""
    monkeypatch.setattr(curation.export_split, "MAX_OPEN", max_open)
    export_selected(pipeline, tmp_path / f"all{ending}", selection(pipeline))
    portions = export_by_language(pipeline, tmp_path / f"by/{{language}}{ending}", selection(pipeline), {})
    expected: dict[str, list[Any]] = {}
    for row in read(tmp_path / f"all{ending}"):
        expected.setdefault(row["text"][:8], []).append(row)
    assert {path.name for path in (tmp_path / "by").iterdir()} == {f"{name}{ending}" for name in expected} | {MANIFEST}
    for name, rows in expected.items():
        assert read(tmp_path / f"by/{name}{ending}") == rows
    assert {one.language: one.documents for one in portions} == {name: len(rows) for name, rows in expected.items()}
    assert {one.language: one.text_bytes for one in portions} == {
        name: sum(len(row["text"].encode()) for row in rows) for name, rows in expected.items()
    }
    assert [one.documents for one in portions] == sorted((one.documents for one in portions), reverse=True)
    manifest = json.loads((tmp_path / "by" / MANIFEST).read_text(encoding="utf-8"))
    assert [one["language"] for one in manifest["files"]] == [one.language for one in portions]
    for one in portions:
        assert (tmp_path / "by" / one.name).stat().st_size == one.bytes


def test_a_document_without_a_language_is_in_und(tmp_path: Path, fake_language: type[FakeLanguage]) -> None:
    """Where the step keeps it."""
    pipeline = run_of(tmp_path, "name: t\nsteps: [language]\n", n=30)
    export_by_language(pipeline, tmp_path / "by/{language}.jsonl", selection(pipeline), {})
    assert {row["id"] for row in read(tmp_path / "by/und.jsonl")} == {"d12", "d25"}


def test_what_is_set_aside_is_exported_by_its_name(pipeline: Pipeline, tmp_path: Path) -> None:
    """Those documents and no others; they can be told apart by language, too."""
    export_selected(pipeline, tmp_path / "mixed.jsonl", selection(pipeline, "mixed"))
    mixed = read(tmp_path / "mixed.jsonl")
    assert [row["id"] for row in mixed] == [f"d{i}" for i in range(200) if i % 11 == 10 and i % 13 != 12]
    portions = export_by_language(pipeline, tmp_path / "m/{language}.jsonl", selection(pipeline, "mixed"), {})
    assert sum(one.documents for one in portions) == len(mixed)
    assert export_selected(pipeline, tmp_path / "none.jsonl", selection(pipeline, "none")) == 200 // 13


def test_a_broken_export_leaves_nothing(pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither files nor hidden folders; and what an earlier export wrote stays whole."""
    output = tmp_path / "out/by/{language}.jsonl"
    real = curation.export_split.write_json

    def broken(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("killed at the last moment")

    monkeypatch.setattr(curation.export_split, "write_json", broken)
    with pytest.raises(RuntimeError):
        export_by_language(pipeline, output, selection(pipeline), {})
    assert list((tmp_path / "out").iterdir()) == []
    monkeypatch.setattr(curation.export_split, "write_json", real)
    export_by_language(pipeline, output, selection(pipeline), {})
    before = {path.name: path.read_bytes() for path in output.parent.iterdir()}
    monkeypatch.setattr(curation.export_split, "write_json", broken)
    with pytest.raises(RuntimeError):
        export_by_language(pipeline, output, selection(pipeline, "mixed"), {})
    assert {path.name: path.read_bytes() for path in output.parent.iterdir()} == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["by"]


def test_an_earlier_export_is_replaced_as_a_whole(pipeline: Pipeline, tmp_path: Path) -> None:
    """No file of it is left among the new ones; what a killed export of this machine left beside it is swept."""
    output = tmp_path / "out/by/{language}.jsonl"
    export_by_language(pipeline, output, selection(pipeline), {})
    left = next(tmp_path.glob("out/by"))
    host = curation.export_split.re.sub(r"[^A-Za-z0-9]+", "-", os.uname().nodename)
    (left.parent / f".by.{host}.4194305.abcd.partial").mkdir()
    (left.parent / f".by.{host}.{os.getpid()}.abcd.partial").mkdir()
    export_by_language(pipeline, output.with_name("x-{language}.parquet"), selection(pipeline, "none"), {})
    assert {path.name for path in output.parent.iterdir()} == {"x-und.parquet", MANIFEST}
    assert {path.name for path in left.parent.iterdir()} == {"by", f".by.{host}.{os.getpid()}.abcd.partial"}


@pytest.mark.parametrize("where", ["other", "file/x", "other/below/../"])
def test_a_folder_with_something_else_is_refused(
    pipeline: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """Nothing of it is touched, and nothing is written."""
    (tmp_path / "other/below").mkdir(parents=True)
    (tmp_path / "other/mine.txt").write_text("x", encoding="utf-8")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    code = main(["export", str(pipeline.run.folder), "-o", str(tmp_path / where / "{language}.jsonl")])
    err = capsys.readouterr().err
    assert code in (1, 2)
    assert "fault of corpusmill" not in err
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["below", "mine.txt"]
    assert not list(tmp_path.rglob("*.jsonl*"))


def test_a_manifest_of_another_program_is_something_else(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its folder is refused, whatever is in it."""
    for number, text in enumerate(("{}", "[]", '{"files": [1]}', '{"files": 3}')):
        folder = tmp_path / f"other{number}"
        folder.mkdir()
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="which no export has written"):
            export_by_language(pipeline, folder / "{language}.jsonl", selection(pipeline), {})
        assert (folder / MANIFEST).read_text(encoding="utf-8") == text


def test_an_earlier_export_comes_back_where_the_new_one_cannot_take_its_place(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "by/{language}.jsonl"
    export_by_language(pipeline, output, selection(pipeline), {})
    before = {path.name: path.read_bytes() for path in output.parent.iterdir()}
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if target == output.parent and ".old." not in self.name:
            raise OSError("no room")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(RunError, match="could not be written"):
        export_by_language(pipeline, output, selection(pipeline), {})
    assert {path.name: path.read_bytes() for path in output.parent.iterdir()} == before
    assert not list(tmp_path.glob(".by.*"))


def run_cli(capsys: pytest.CaptureFixture[str], pipeline: Pipeline, *arguments: object) -> tuple[int, str, str]:
    code = main(["export", str(pipeline.run.folder), *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_shows_documents_and_bytes(
    pipeline: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line a language and their sum; names of outputs with their documents."""
    code, out, _ = run_cli(capsys, pipeline, "-o", tmp_path / "by/{language}.jsonl.zst")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["language", "documents", "share", "text", "file"]
    assert lines[1][0] == "eng_Latn"
    assert lines[-1][:3] == ["5", "in", "all"]
    assert sum(int(line[1]) for line in lines[1:-1]) == int(lines[-1][3])
    code, out, _ = run_cli(capsys, pipeline, "--route")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [["output", "documents"], ["mixed", "17"], ["none", "15"]]
    assert run_cli(capsys, pipeline, "--route", "none", "-o", tmp_path / "none.jsonl")[0] == 0
    assert len(read(tmp_path / "none.jsonl")) == 15


Mistake = Callable[[Path], list[object]]

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "an output that is not there": (
        lambda p: ["--route", "mixt", "-o", p / "a.jsonl"],
        "did you mean 'mixed'?). Known: mixed, none",
    ),
    "no name": (lambda p: ["--route", "-o", p / "a.jsonl"], "--route needs a NAME"),
    "nothing said": (lambda p: [], "--output FILE or --signatures FILE"),
    "signatures of a route": (lambda p: ["--route", "mixed", "--signatures", p / "a"], "has no signatures"),
    "another word": (lambda p: ["-o", p / "{lang}.jsonl"], "{lang} is not known (did you mean '{language}'?)"),
    "a folder's name": (lambda p: ["-o", p / "{language}/a.jsonl"], "in the name of the file"),
    "twice": (lambda p: ["-o", p / "{language}-{language}.jsonl"], "in the name of the file"),
    "no ending": (lambda p: ["-o", p / "by/{language}.csv"], ".jsonl.zst"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message(
    pipeline: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    """Exit code 2, what was expected, and nothing written."""
    arguments, message = MISTAKES[mistake]
    code, out, err = run_cli(capsys, pipeline, *arguments(tmp_path))
    assert (code, out) == (2, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_run_without_the_step_says_what_to_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The key and where it goes; the same for an output."""
    pipeline = run_of(tmp_path, "name: t\nsteps: [length]\n", n=5)
    code, _, err = run_cli(capsys, pipeline, "-o", tmp_path / "by/{language}.jsonl")
    assert code == 2
    assert "no step `language`" in err
    assert "Add `- language: {}` to `steps`" in err
    code, _, err = run_cli(capsys, pipeline, "--route", "mixed", "-o", tmp_path / "a.jsonl")
    assert code == 2
    assert "sets no document aside" in err
    assert not (tmp_path / "by").exists()


def test_the_current_folder_is_not_replaced(
    pipeline: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is empty: who stands in it would stand nowhere."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, _, err = run_cli(capsys, pipeline, "-o", "{language}.jsonl")
    assert code == 2
    assert "a folder of their own" in err
