"""The command line as a user meets it: what it prints, writes and refuses."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curation.cli import main
from tests.e2e.conftest import write_corpus

Corpus = tuple[Path, dict[str, int]]
DOCUMENTS = 200
FAST = ("--set", "safety_model.max_windows=1")
"""Of a long document one part: the model takes most of the time, and nothing here is about what it says."""


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def finished(capsys: pytest.CaptureFixture[str], corpus: Corpus, root: Path, *more: str) -> Path:
    code, out, err = run_cli(
        capsys, "run", "demo", "--input", str(corpus[0]), "--root", str(root), "--workers", "1", *FAST, *more
    )
    assert code == 0, err
    return Path(out.splitlines()[-1])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A folder with one file of 200 documents, and what must come out of it."""
    folder = tmp_path_factory.mktemp("corpus")
    return folder, write_corpus(folder / "docs.jsonl", DOCUMENTS, seed=2)


@pytest.fixture(scope="module")
def done(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, for tests that only read it."""
    root, out = tmp_path_factory.mktemp("done"), io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["run", "demo", "--input", str(corpus[0]), "--root", str(root), "--workers", "1", *FAST]) == 0
    return Path(out.getvalue().splitlines()[-1])


def funnel(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report" / "funnel.json").read_text(encoding="utf-8"))
    return found


def test_a_run_accounts_for_every_line(corpus: Corpus, done: Path) -> None:
    """Lines in = documents + quarantined = kept + dropped by reason + quarantined, and the copies are the planted ones."""
    numbers = funnel(done)
    expected = corpus[1]
    assert numbers["inputs"]["lines"] == expected["lines"]
    assert sum(numbers["quarantined"].values()) == expected["bad"] > 0
    steps = {step["name"]: step for step in numbers["steps"]}
    assert sum(steps["exact"]["dropped"].values()) == expected["copies"] > 0
    assert numbers["documents"] == numbers["kept"] + sum(sum(step["dropped"].values()) for step in numbers["steps"])
    assert numbers["packed"]["documents"] == numbers["kept"] > 0


def test_the_same_command_again_does_nothing_twice(
    capsys: pytest.CaptureFixture[str], corpus: Corpus, tmp_path: Path
) -> None:
    """The same job finds its run; --new begins another one with the same result."""
    first = finished(capsys, corpus, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (first / "shards").rglob("*")}
    assert finished(capsys, corpus, tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in (first / "shards").rglob("*")} == before
    other = finished(capsys, corpus, tmp_path, "--new")
    assert other != first
    assert funnel(other)["steps"][0]["dropped"] == funnel(first)["steps"][0]["dropped"]


def test_a_changed_threshold_decides_anew_beside_the_old_step(
    capsys: pytest.CaptureFixture[str], corpus: Corpus, tmp_path: Path
) -> None:
    """In the same run, only the changed step and those after it get new folders; ingest is not done again."""
    first = finished(capsys, corpus, tmp_path)
    kept = funnel(first)["kept"]
    folders = {path.name for path in (first / "steps").iterdir()}
    again = finished(capsys, corpus, tmp_path, "--run", first.name, "--set", "length.min_units=100")
    assert again == first
    added = {path.name for path in (first / "steps").iterdir()} - folders
    assert sorted(name.split("-")[1] for name in added) == [
        "length",
        "perplexity",
        "rules",
        "safety_model",
        "safety_terms",
    ]
    assert funnel(first)["kept"] < kept


def test_explain_tells_a_documents_path(capsys: pytest.CaptureFixture[str], done: Path) -> None:
    """By id, doc_id and FILE:LINE; a copy names the kept one; a bad line is found in the quarantine."""
    folder = done
    code, out, _ = run_cli(capsys, "explain", str(folder), "d0")
    assert code == 0
    assert "exact" in out
    assert "docs.jsonl, line 1, byte 0" in out
    doc_id = out.split("(doc_id ")[1][:32]
    assert run_cli(capsys, "explain", str(folder), doc_id)[1] == out
    assert run_cli(capsys, "explain", str(folder), "docs.jsonl:1")[1] == out
    quarantined = json.loads(next((folder / "quarantine").glob("*.jsonl")).read_text(encoding="utf-8").splitlines()[0])
    code, out, _ = run_cli(capsys, "explain", str(folder), f"docs.jsonl:{quarantined['line']}")
    assert code == 0
    assert f"quarantined: {quarantined['reason']}" in out
    code, _, err = run_cli(capsys, "explain", str(folder), "nosuch")
    assert code == 2
    assert "no document" in err


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.jsonl.gz", "kept.jsonl.zst", "kept.parquet"])
def test_export_writes_every_kept_document_once(
    capsys: pytest.CaptureFixture[str], done: Path, tmp_path: Path, name: str
) -> None:
    """As many documents as the funnel says, in each format, readable by this very pipeline."""
    assert run_cli(capsys, "export", str(done), "--output", str(tmp_path / name))[0] == 0
    again = (
        "run",
        "demo",
        "--input",
        str(tmp_path / name),
        "--root",
        str(tmp_path / "again"),
        "--set",
        "pack=",
        "--workers",
        "1",
        *FAST,
    )
    code, out, err = run_cli(capsys, *again)
    assert code == 0, err
    second = funnel(Path(out.splitlines()[-1]))
    assert second["documents"] == second["kept"] == funnel(done)["kept"]
    if name.endswith(".parquet"):
        assert pq.read_table(tmp_path / name).column("id").null_count == 0


def test_export_refuses_an_unknown_ending(capsys: pytest.CaptureFixture[str], done: Path) -> None:
    """The message names the endings that are known."""
    code, _, err = run_cli(capsys, "export", str(done), "--output", "kept.csv")
    assert code == 2
    assert ".jsonl.zst" in err


def test_judge_lets_every_step_judge_every_document(
    capsys: pytest.CaptureFixture[str], corpus: Corpus, tmp_path: Path
) -> None:
    """One line a document, in order; a step looks at documents that another would have dropped."""
    output = tmp_path / "judged.jsonl"
    arguments = ("judge", "demo", "--input", str(corpus[0]), "--output", str(output), "--workers", "1", *FAST)
    assert run_cli(capsys, *arguments)[0] == 0
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [f"d{n}" for n in range(DOCUMENTS)]
    for row in rows:
        steps = "exact near language html_noise length rules perplexity safety_terms safety_model"
        assert set(row["steps"]) == set(steps.split())
        assert all(step["keep"] is not None for step in row["steps"].values())
        assert row["keep"] is all(step["keep"] for step in row["steps"].values())
        assert (row["reason"] is None) is row["keep"]


@pytest.mark.parametrize(
    ("arguments", "code", "needle"),
    [
        (["run", "demo", "--input", "/nosuch/file.jsonl"], 1, "nosuch"),
        (["run", "nosuch", "--input", "x"], 2, "no config file"),
        (["run", "demo", "--input", "x", "--set", "a"], 2, "--set"),
        (["run", "demo", "--input", "x", "--new", "--run", "r"], 2, "exclude"),
        (["explain", "nosuch", "d1"], 2, "no run at"),
        (["verify", "nosuch.arrow"], 2, "no token file"),
    ],
)
def test_a_users_mistake_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, needle: str
) -> None:
    """Exit code and message; never a traceback."""
    more = ["--root", str(tmp_path)] if arguments[0] == "run" else []
    found, _, err = run_cli(capsys, *arguments, *more)
    assert found == code
    assert needle in err
    assert "Traceback" not in err


def test_a_share_of_quarantine_above_the_limit_fails_and_names_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """After everything is written, so that the quarantine can be looked at."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "good enough"}\n{"text": \n{"text": \n', encoding="utf-8")
    code, _, err = run_cli(
        capsys, "run", "demo", "--input", str(bad), "--root", str(tmp_path / "root"), "--workers", "1", *FAST
    )
    assert code == 1
    assert "bad.jsonl" in err
    assert "max_quarantine_share" in err
    assert len(list((tmp_path / "root").glob("runs/*/quarantine/*.jsonl"))) == 1
    marker = next((tmp_path / "root").glob("runs/*/shards/_items/*.json"))
    written = marker.stat().st_mtime_ns
    folder = finished(capsys, (bad, {}), tmp_path / "root", "--set", "ingest.max_quarantine_share=1")
    assert folder in marker.parents, "a raised limit goes on with the run that stopped"
    assert marker.stat().st_mtime_ns == written, "and reads nothing again"


def test_help_has_examples_and_starts_fast() -> None:
    """`--help` needs none of the heavy libraries."""
    code = """if True:
        import sys
        from curation.cli import main
        sys.argv = ["corpusmill", "run", "--help"]
        try:
            main()
        finally:
            print(sorted(sys.modules))
    """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "examples:" in told.stdout
    for heavy in ("'pyarrow'", "'numba'", "'pydantic'"):
        assert heavy not in told.stdout


def test_empty_input_ends_with_a_report_of_zeros(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An empty file, and an empty folder, are no failure: everything is written, with zeros."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.jsonl").write_bytes(b"")
    numbers = funnel(finished(capsys, (tmp_path / "in", {}), tmp_path / "root"))
    assert numbers["inputs"] == {"files": 1, "bytes": 0, "lines": 0}
    assert numbers["kept"] == numbers["packed"]["documents"] == 0


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """A random.py beside the crawl is a file like any other: no process of a run takes it for the standard library's."""
    (tmp_path / "random.py").write_text("raise RuntimeError('a module from the current folder')\n", encoding="utf-8")
    texts = (f"The old mill number {n} is open again, and {n + 7} children come in the evening." for n in range(50))
    lines = "".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts))
    (tmp_path / "in.jsonl").write_text(lines, encoding="utf-8")
    config = "name: t\nsteps: [near, length]\n"
    (tmp_path / "t.yaml").write_text(config, encoding="utf-8")
    program = Path(sys.executable).parent / "corpusmill"

    done = subprocess.run(
        [program, "run", "t.yaml", "--input", "in.jsonl", "--root", "out", "--workers", "2", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
