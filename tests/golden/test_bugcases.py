"""Cases made from the public bug log of other tools, for the steps that exist: skipped where they are absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.dedup.exact import Exact, ExactConfig
from curation.filters.html_noise import HtmlNoise, HtmlNoiseConfig
from curation.filters.length import Length, LengthConfig
from curation.verdicts import Step
from tests.fakes import make_run, run_steps


def documents(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


HTML, LENGTH, EXACT = HtmlNoise(HtmlNoiseConfig()), Length(LengthConfig()), Exact(ExactConfig())


@pytest.mark.parametrize(
    ("bug", "name", "step", "kept"),
    [
        ("B103: a lesson about <script> is no leaked script", "q_script", HTML, ["t0"]),
        ("B101: empty texts divide by zero", "q_empty", LENGTH, ["z0"]),
        ("B098: a Chinese page is one word", "q_cjk", LENGTH, ["z0", "z1"]),
        ("B098: a Chinese page is no markup", "q_cjk", HTML, ["z0", "z1"]),
        ("B053: Chinese texts are not all alike", "d_zh", EXACT, ["z0", "z1", "z2", "z3"]),
        ("B055: short texts are not all alike", "d_short", EXACT, ["r0", "r1", "r3"]),
        ("B068: a group is not wiped out", "d_wipe", EXACT, ["w0", "w3", "w4"]),
        ("B090: NFD is a copy", "d_nfd", EXACT, ["n0"]),
        ("B086: near copies are another step's work", "d_keep", EXACT, ["a0", "a1"]),
    ],
)
def test_what_stays(bugcases: Path, tmp_path: Path, bug: str, name: str, step: Step, kept: list[str]) -> None:
    """The step keeps what the case says."""
    cases = documents(bugcases / f"{name}.jsonl")

    judged = run_steps(make_run(tmp_path, [[case["text"] for case in cases]]), [step])

    assert [cases[place]["id"] for place in judged.kept(step.name)] == kept, bug


@pytest.mark.parametrize("step", [HTML, LENGTH, EXACT], ids=lambda step: step.name)
@pytest.mark.parametrize("name", ["q_redos", "q_empty", "d_symbols", "d_mixed", "d_repeat", "l_nofeat", "s_zw"])
def test_nothing_breaks(bugcases: Path, tmp_path: Path, name: str, step: Step) -> None:
    """B105, B058, B059, B037, B070: hostile, empty and symbol-only texts get verdicts from every step."""
    cases = documents(bugcases / f"{name}.jsonl")

    judged = run_steps(make_run(tmp_path, [[case["text"] for case in cases]]), [step])

    assert len(judged.verdicts(step.name)) == len(cases)
