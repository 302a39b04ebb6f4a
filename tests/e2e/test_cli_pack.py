"""Several lengths, a holdout and a mixture by the command line: run, verify, parity, cat, and every command that reads a run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.e2e.conftest import write_corpus
from tests.parity_variants import small, twin

CONFIG = """
name: p
ingest: {{max_quarantine_share: 0.2}}
steps: [exact, length]
pack: {{tokenizer: {tokenizer}, engine: stock}}
"""
SETTINGS = (
    "pack.seq_len=[128, 512]", "pack.holdout_share=0.2", "pack.shuffle_seed=3", "pack.mix={epochs: {b.jsonl: 0.5}}"
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 150 documents and one more, a small tokenizer, faulty twins of it, and a config."""
    folder = tmp_path_factory.mktemp("pack")
    (folder / "in").mkdir()
    for seed, name in enumerate(("a.jsonl", "b.jsonl")):
        write_corpus(folder / "in" / name, 150, seed=seed)
    text = "She may use <tool> for that, and goes on with the work of the day until the evening comes. " * 3
    (folder / "in" / "c.jsonl").write_text(json.dumps({"id": "tool", "text": text}) + "\n", encoding="utf-8")
    tokenizer, _ = small(folder / "ours")
    for name in ("lower_case", "added"):
        twin(folder, name)
    (folder / "p.yaml").write_text(CONFIG.format(tokenizer=tokenizer), encoding="utf-8")
    return folder


def command(place: Path, *more: str) -> list[str]:
    settings = [word for one in SETTINGS for word in ("--set", one)]
    given = ["--input", str(place / "in"), "--root", str(place / "root"), "--workers", "1", "--quiet"]
    return ["run", str(place / "p.yaml"), *given, *settings, *more]


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    assert main(command(place)) == 0
    (folder,) = (place / "root" / "runs").iterdir()
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "fault of corpusmill" not in captured.err
    return code, captured.out, captured.err


def test_verify_names_every_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line and its numbers for each of four token files, then the run; each file alone too."""
    code, out, _ = said(capsys, "verify", run)
    assert code == 0
    named = re.findall(r"^(.*tokens\.arrow): OK$", out, re.MULTILINE)
    assert named == [f"{run}/pack/{one}tokens.arrow" for one in ("", "holdout/", "512/", "512/holdout/")]
    for path in named:
        assert said(capsys, "verify", path)[0] == 0


def test_the_funnel_and_the_page_tell_where_documents_are(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed by `report`; the numbers are those of funnel.json."""
    packed: dict[str, Any] = json.loads((run / "report" / "funnel.json").read_text(encoding="utf-8"))["packed"]
    assert min(packed["left_out"], packed["holdout_documents"]) > 0
    code, out, _ = said(capsys, "report", run)
    assert code == 0
    assert f"{packed['holdout_documents']} documents held out; pack.mix left out {packed['left_out']}" in " ".join(
        out.split()
    )
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    for needle in ("pack/512/holdout/tokens.arrow", "left out by the mixture", "equal to tokenizers", "b.jsonl"):
        assert needle in page


@pytest.mark.parametrize("file", ["", "pack/holdout/tokens.arrow", "pack/512", "pack/512/holdout"])
def test_cat_reads_each_file_of_the_run(run: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    """With the run's own tokenizer, found by its config, also from a folder below pack/."""
    code, out, err = said(capsys, "cat", run / file, "--row", "0")
    assert code == 0, err
    assert "| " in out
    assert ".jsonl" in out


def test_parity_of_the_runs_file(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal with its own tokenizer: 0. With another: 1, and the reason."""
    ours, theirs, file = place / "ours/tokenizer.json", place / "lower_case/tokenizer.json", run / "pack/tokens.arrow"
    assert said(capsys, "parity", ours, file)[0] == 0
    code, out, err = said(capsys, "parity", ours, file, "--trainer", theirs)
    assert code == 1
    assert "lower-cases" in out + err
    assert said(capsys, "parity", theirs, file)[0] == 1
    assert said(capsys, "parity", place / "nosuch", file)[0] == 2


def test_the_other_commands_read_such_a_run(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """what-if, export and explain look at verdicts, whatever was packed how often."""
    funnel = json.loads((run / "report" / "funnel.json").read_text(encoding="utf-8"))
    code, out, err = said(capsys, "what-if", run, "--set", "length.min_units=100")
    assert code == 0, err
    assert "length" in out
    assert said(capsys, "export", run, "--output", place / "kept.jsonl")[0] == 0
    assert len((place / "kept.jsonl").read_text(encoding="utf-8").splitlines()) == funnel["kept"]
    code, out, err = said(capsys, "explain", run, "a.jsonl:1")
    assert code == 0, err
    assert "exact" in out


def test_a_damaged_file_is_named_and_made_anew(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """verify: 1 and the path; deleted, the same command mends it; then 0."""
    path = run / "pack/512/tokens.arrow"
    data = bytearray(path.read_bytes())
    path.unlink()
    path.write_bytes(data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    code, out, _ = said(capsys, "verify", run)
    assert code == 1
    assert f"{path}: " in out
    assert "holdout" not in out
    path.unlink()
    assert said(capsys, *command(place))[0] == 0
    assert path.read_bytes() == data
    assert said(capsys, "verify", run)[0] == 0


def test_another_length_in_the_same_run(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--run with other settings: the other files go, those of this config come; the first command brings them back."""
    before = {path for path in (run / "pack").rglob("*") if path.is_file()}
    assert said(capsys, *command(place, "--run", run.name, "--set", "pack.seq_len=256"))[0] == 0
    assert not (run / "pack/512").exists()
    assert said(capsys, "verify", run)[0] == 0
    assert said(capsys, *command(place, "--run", run.name))[0] == 0
    assert {path for path in (run / "pack").rglob("*") if path.is_file()} == before


def test_a_tokenizer_that_differs_stops_the_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, which document differs and why, before anything is encoded; the funnel's table is not printed."""
    more = ("--new", "--root", str(place / "other"), "--set", f"pack.trainer={place / 'added/tokenizer.json'}")
    code, out, err = said(capsys, *command(place, *more))
    assert code == 2
    assert "pack.trainer: " in err
    assert "document tool: " in err
    assert "Likely cause: only the trainer's tokenizer has token 600" in err
    assert out == ""
    (folder,) = (place / "other" / "runs").iterdir()
    assert [path.name for path in (folder / "pack").iterdir()] == ["parity.json"]
    assert said(capsys, "report", folder)[0] == 0
    assert "document tool: " in (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert said(capsys, "verify", folder)[0] == 1
    assert said(capsys, "cat", folder)[0] == 2
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("setting", "needle"),
    [
        ("pack.seq_len=[128, 128]", "expected lengths that differ"),
        ("pack.seq_len=many", "pack.seq_len"),
        ("pack.mix={by: language, epochs: {zho*: 2}}", "no step `language`"),
        ("pack.mix={weights: {'a*': 1}}", "pack.mix"),
        ("pack.holdout_share=2", "pack.holdout_share"),
        ("pack.trainer=nosuch", "pack.trainer: there is no tokenizer at"),
        ("pack.shuffle=1", "shuffle_seed"),
    ],
)
def test_a_wrong_setting_is_one_message(
    place: Path, capsys: pytest.CaptureFixture[str], setting: str, needle: str
) -> None:
    """Exit code 2 with the key; weights that leave a document without a group are noticed when all are known."""
    code, _, err = said(capsys, *command(place, "--root", str(place / "wrong"), "--set", setting))
    assert code == 2
    assert needle in err
