"""`corpusmill what-if` as a user meets it: what it promises is what the run with these settings then keeps."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from curation.cli import main

Corpus = tuple[Path, dict[str, int]]


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_what_is_promised_is_what_is_kept(capsys: pytest.CaptureFixture[str], corpus: Corpus, tmp_path: Path) -> None:
    """The command that the answer ends with decides in the same run, and keeps as many documents as were told."""
    code, out, err = run_cli(
        capsys, "run", "demo", "--input", str(corpus[0]), "--root", str(tmp_path), "--workers", "1"
    )
    assert code == 0, err
    folder = Path(out.splitlines()[-1])
    asked = ("--set", "length.min_units=60", "--set", "html_noise.max_noise_share=0.5")

    code, out, _ = run_cli(capsys, "what-if", str(folder), *asked, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["leave"] > 0
    code, out, _ = run_cli(capsys, "what-if", folder.name, "--root", str(tmp_path), *asked)
    assert code == 0
    command = out.rstrip().splitlines()[-1].removeprefix("to run it: corpusmill ")

    code, _, err = run_cli(capsys, *shlex.split(command), "--workers", "1", "--quiet")
    assert code == 0, err
    kept = json.loads((folder / "report" / "funnel.json").read_text(encoding="utf-8"))["kept"]
    assert told["kept_after"] <= kept <= told["kept_after"] + told["not_judged_yet"]


@pytest.mark.parametrize(
    ("setting", "says"),
    [("length.min_unts=3", "did you mean 'min_units'"), ("near.threshold=0.8", "cannot be answered from saved scores")],
)
def test_a_question_that_cannot_be_answered_is_wrong_use(
    capsys: pytest.CaptureFixture[str], corpus: Corpus, tmp_path: Path, setting: str, says: str
) -> None:
    """One message, exit code 2."""
    code, out, err = run_cli(
        capsys, "run", "demo", "--input", str(corpus[0]), "--root", str(tmp_path), "--workers", "1"
    )
    assert code == 0, err
    code, out, err = run_cli(capsys, "what-if", out.splitlines()[-1], "--set", setting)
    assert (code, out) == (2, "")
    assert says in err
