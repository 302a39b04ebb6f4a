"""A hole that was made on purpose is found, a fault that a case stands at is noticed, and every judge says who saw it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.filters import FILTERS
from tests.gate.figures import Figure
from tests.gate.floors import Floor, Floors
from tests.mutation import others, survey
from tests.mutation.__main__ import main
from tests.mutation.check import mutants_of, try_mutants
from tests.mutation.data_set import DataSetGolden
from tests.mutation.golden import Golden, load
from tests.mutation.harmless import HARMLESS, why_harmless
from tests.mutation.mutant import Mutant
from tests.mutation.others import FloorsJudge, SampleJudge, UnitTests, pinned
from tests.mutation.reasons import reason_mutants
from tests.mutation.report import Survey, page, told
from tests.mutation.settings import setting_mutants

PLAIN = [
    {"id": "far-below", "text": "two words", "keep": False, "reason": "length.too_short"},
    {"id": "far-above", "text": "many words " * 50, "keep": True, "reason": None},
    {"id": "none", "text": "...", "keep": False, "reason": "length.no_words"},
]
"""Cases of `length` with a hole: none stands near min_units, and none is too long."""
NEAR = [
    {"id": "below", "text": "one word " * 7 + "more", "keep": False, "reason": "length.too_short"},
    {"id": "at", "text": "one word " * 8, "keep": True, "reason": None},
]
"""15 and 16 words."""


def survivors(cases: Sequence[dict[str, Any]]) -> set[str]:
    golden = Golden("length", cases)
    results = try_mutants(mutants_of(golden), lambda mutant: golden.noticed(score=mutant.scores))
    return {one.mutant.name for one in results if one.survived}


def test_a_planted_hole_is_found() -> None:
    """Without cases near a limit its moves survive, and so does a reason that no case reaches."""
    found = survivors(PLAIN)

    assert {"min_units 16 -> 19", "min_units 16 -> 13", "length.too_long never fires"} <= found
    assert any("< -> <=" in name for name in found)
    assert "length.no_words never fires" not in found


def test_cases_on_both_sides_close_it() -> None:
    """A case just below and one just at the limit notice its moves and its equality."""
    found = survivors([*PLAIN, *NEAR])

    assert not {"min_units 16 -> 19", "min_units 16 -> 13"} & found
    assert not any("self.config.min_units" in name for name in found)
    assert "length.too_long never fires" in found


def test_the_cases_that_ship_notice_every_fault_of_length() -> None:
    """The whole file leaves nothing."""
    assert survivors(load("length")) == set()


def test_a_reason_that_never_fires_lets_the_next_one() -> None:
    """What is empty is too short as well, so the case sees the other name."""
    golden = Golden("length", PLAIN)
    mutant = next(one for one in reason_mutants("length") if one.name == "length.no_words never fires")

    with mutant.apply():
        assert golden.noticed() == ["none"]
    assert golden.noticed() == []


def test_a_data_set_step_that_keeps_copies_is_noticed() -> None:
    """Its cases are small runs."""
    golden = DataSetGolden("exact", load("exact")[:4])
    mutant = next(iter(reason_mutants("exact")))

    with mutant.apply():
        assert golden.noticed(most=9) == ["twice", "first-stays", "short-copy"]
    assert golden.noticed() == []


def sample(folder: Path, texts: Sequence[str]) -> SampleJudge:
    config = folder / "config.yaml"
    config.write_text(
        "steps: [{exact: {}}, {language: {}}, {length: {}}]\n"
        "impact: {max_kept_change: 0.1, max_language_change: 0.3, least_documents: 5}\n",
        encoding="utf-8",
    )
    lines = [json.dumps({"id": str(i), "text": text}, ensure_ascii=False) for i, text in enumerate(texts)]
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    judge = SampleJudge(folder, config)
    judge.prepare()
    return judge


def test_the_sample_notices_what_moves_more_than_the_bounds(tmp_path: Path) -> None:
    """Documents that change sides, of all and of a language, against `impact` of the config; copies do not count."""
    english = [f"The old mill by the river is open again, and {n} children come in the evening." for n in range(8)]
    german = [f"Die alte Mühle am Fluss ist wieder offen, und sonntags kommen {n} Kinder." * 3 for n in range(8)]
    judge = sample(tmp_path, [*english, english[0], *german])
    up, down = (one for one in setting_mutants("length") if one.name.startswith("min_units"))

    with up.apply():
        assert judge.noticed(up) == ["sample: 50.0% of all documents move", "sample: 8 of 8 eng_Latn documents move"]
    with down.apply():
        assert judge.noticed(down) == []


def test_the_floors_notice_a_figure_below_its_floor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The families of the step are asked with the step as it is now."""

    class Family:
        @staticmethod
        def figures(gold: Any, changed: Any) -> dict[str, Figure]:
            return {"length.kept": Figure(16, int(changed["length"].config.min_units))}

    monkeypatch.setattr(others, "families_of", lambda step: [Family])
    monkeypatch.setattr(others, "read", lambda path: Floors(floors={"length.kept": Floor(1.0, 0.05, 16, 1.0)}))
    judge = FloorsJudge(tmp_path)
    mutant = next(one for one in setting_mutants("length") if one.name == "min_units 16 -> 19")

    judge.prepare("length")
    with mutant.apply():
        assert judge.noticed(mutant) == ["floor: length.kept"]


def test_unit_tests_are_run_where_the_mutant_is(tmp_path: Path) -> None:
    """The file of the step, in this process, up to the first failure."""
    file = tmp_path / "tests/unit/curation/filters/test_length.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from curation.filters.length import LengthConfig\n"
        "def test_it():\n    assert LengthConfig().min_units == 16\n"
        "def test_other():\n    assert LengthConfig().max_units > 1\n"
    )
    mutant = next(one for one in setting_mutants("length") if one.name == "min_units 16 -> 19")
    judge = UnitTests(tmp_path)

    assert judge.noticed(mutant) == []
    with mutant.apply():
        assert judge.noticed(mutant) == ["unit test: test_length.py::test_it"]


def test_a_number_of_a_pinned_table_is_noticed_by_its_digest() -> None:
    """And no other."""
    name = "curation/filters/rules/limits.tsv"

    assert pinned(Mutant("rules", "table", "a", lambda: None, table=name)) == [f"pinned: {name}"]  # type: ignore[arg-type,return-value]
    assert pinned(Mutant("rules", "table", "a", lambda: None)) == []  # type: ignore[arg-type,return-value]


def test_later_judges_are_asked_about_survivors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who noticed first is who is named; what nobody noticed stays."""
    asked: list[str] = []

    class Judges(survey.Judges):
        def of(self, step: str, left: Any) -> Any:
            return [("unit test", lambda mutant: asked.append(mutant.name) or ["x"] * mutant.name.startswith("max"))]

    monkeypatch.setattr(survey, "Golden", lambda step: Golden(step, [*PLAIN, *NEAR]))

    results = {one.mutant.name: one for one in survey.survey("length", Judges())}

    assert results["min_units 16 -> 19"].judge == "golden case"
    assert results["max_units 1e+06 -> 800000"].judge == "unit test"
    assert results["length.too_long never fires"].survived
    assert "min_units 16 -> 19" not in asked


def test_a_page_tells_every_survivor() -> None:
    """Why it is harmless, or that it is open; a survey goes through JSON unchanged."""
    names = [("perplexity", "window 1024 -> 1229"), ("length", "min_units 16 -> 19")]
    one = Survey("length", {"threshold": {"golden case": 3, "nobody": 2}}, names, 1.0)

    assert Survey.of(json.loads(json.dumps(one.plain()))) == one
    text = page([one])

    assert "| length | 5 | 3 | 0 | 0 | 0 | 3 | 0 | 2 |" in text
    assert "3 of 5 faults are noticed by what they do, 2 by nobody." in text
    assert "- **length**: min_units 16 -> 19. **Open.**" in text
    assert "window 1024 -> 1229. Harmless: only neural models" in text
    assert "OPEN" in told(one)


def test_a_digest_of_a_table_notices_nothing() -> None:
    """What only a digest sees is in no sum of what is noticed, of a step, of a class and of all."""
    one = Survey("rules", {"table": {"golden case": 3, "unit test": 1, "pinned table": 95, "nobody": 1}}, [], 1.0)

    text = page([one])

    for name in ("rules", "table", "all"):
        assert f"| {name} | 100 | 3 | 0 | 0 | 1 | 4 | 95 | 1 |" in text
    assert "4 of 100 faults are noticed by what they do, 1 by nobody. Of the other 95 only a digest says" in text


def test_the_command_writes_the_page_whole() -> None:
    """The page that is kept has no line below its tables that the next run would lose."""
    kept = (Path(__file__).resolve().parents[3] / "bench/results/mutation.md").read_text(encoding="utf-8")
    made = page([])

    for part in (made[: made.index("| step |")], made[made.index("## How this was run") :]):
        assert part in kept
    assert kept.endswith(made[made.index("## How this was run") :])


def test_the_command_fails_where_somebody_must_look(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """0 if all is noticed or harmless, and the page is written; results are kept and taken again."""
    kept, report = tmp_path / "results", tmp_path / "page.md"

    assert main(["--cases", "--filter", "length", "--results", str(kept), "--report", str(report)]) == 0
    assert "survivors 0" in capsys.readouterr().out
    assert "| length |" in report.read_text(encoding="utf-8")

    plain = json.loads((kept / "length.json").read_text(encoding="utf-8"))
    (kept / "length.json").write_text(json.dumps({**plain, "survivors": [["length", "something else"]]}))
    assert main(["--cases", "--filter", "length", "--results", str(kept)]) == 1


def test_what_is_called_harmless_is_one_fault_of_a_step() -> None:
    """By its whole name, in code that is there; another fault of the same place is not excused with it."""
    for name, why in HARMLESS.items():
        step, place, *rest = name.split(": ")
        assert step in (*FILTERS, "exact", "near")
        assert "*" not in place
        assert len(why) > 20
        if place.endswith(".py"):
            assert f"def {rest[0].rpartition('.')[2]}(" in (others.ROOT / place).read_text(encoding="utf-8")
    assert why_harmless("length", "min_units 16 -> 19") is None
    assert why_harmless("near", "num_perm 128 -> 154")
    assert why_harmless("near", "num_perm 128 -> 155") is None


@pytest.mark.parametrize("step", ["perplexity", "near"])
def test_settings_that_are_called_harmless_to_move_are_moved(step: str) -> None:
    """A name of a mutant that is made no more excuses nothing."""
    made = {f"{step}: {one.name}" for one in setting_mutants(step)}
    named = {name for name in HARMLESS if name.startswith(f"{step}: ") and ".py" not in name}
    assert named <= made
