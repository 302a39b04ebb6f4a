"""What went wrong in other tools' safety filters, from the public bug log: one test a number, over both filters as they ship.

The cases lie beside the test data; what is right stands in their `cases.jsonl`. A case that must be dropped is dropped by
terms or by the model, as a run does it; one that must stay is kept by both. That terms alone judge them rightly, too,
`test_safety_terms_gold` holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bench.quality_chain import named_languages
from tests.bench.safety_judges import Kept, model_filter, said_by_model, said_by_terms
from tests.golden.safety_shipped import needs_the_shipped_model

pytestmark = [pytest.mark.slow, needs_the_shipped_model]

BUGS = ("B108", "B109", "B111", "B112", "B114", "B116", "B117", "B121")


def case(folder: Path, bug: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Texts of a case by id, and what is expected of them."""
    described = [json.loads(line) for line in (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    found = next(one for one in described if one["id"] == bug)
    lines = (folder / found["input_file"]).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["text"] for row in map(json.loads, lines)}, found["expect"]


def reasons(texts: Sequence[str], scope: str) -> list[str | None]:
    """Why each text is dropped, by terms, else by the model; None where both keep it."""
    terms = said_by_terms(texts)
    hits = terms.scores.column("hits").to_pylist()
    model = said_by_model(model_filter(scope=scope), texts, named_languages(texts), hits, Kept())
    return [one or other for one, other in zip(terms.reasons, model.reasons, strict=True)]


@pytest.mark.parametrize("scope", ["cascade", "all"])
@pytest.mark.parametrize("bug", BUGS)
def test_cases_with_files(bugcases: Path, bug: str, scope: str) -> None:
    """What must be dropped is, what must stay does, whichever documents the model reads."""
    texts, expected = case(bugcases, bug)

    found = dict(zip(texts, reasons(list(texts.values()), scope), strict=True))

    assert [name for name in expected.get("dropped", []) if found[name] is None] == []
    assert {name: found[name] for name in expected.get("kept", []) if found[name] is not None} == {}
