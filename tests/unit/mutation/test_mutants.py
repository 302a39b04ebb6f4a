"""Faults are put in and taken out again: sources, functions, settings and rules are what they were."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any

import pytest

from curation.filters.length import Length, LengthConfig
from curation.filters.rules.rule import BY_NAME
from curation.steps import step_class
from tests.mutation.check import mutants_of, try_mutants
from tests.mutation.code import Reached, _changes, code_mutants, reached
from tests.mutation.golden import Golden
from tests.mutation.mutant import replaced
from tests.mutation.reasons import side_mutants
from tests.mutation.settings import moved, setting_mutants, table_mutants

REPO = Path(__file__).resolve().parents[3]


def sources() -> str:
    """Digest of all sources and tables of the filters."""
    digest = hashlib.sha256()
    for path in sorted((REPO / "curation/filters").rglob("*")):
        if path.suffix in (".py", ".tsv"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize(
    ("value", "share", "expected"),
    [
        (0.5, True, [0.6, 0.4]),
        (0.9, True, [0.95, 0.72]),
        (0.9, False, [1.08, 0.72]),
        (1.0, True, [0.8]),
        (16, False, [19, 13]),
        (1, False, [2, 0]),
        (0, False, [1]),
    ],
)
def test_a_threshold_moves_by_a_fifth(value: float, share: bool, expected: list[float]) -> None:
    """Up and down; whole numbers by 1 at least; a share never leaves 1."""
    assert moved(value, share=share) == pytest.approx(expected)


def test_everything_is_as_before_when_all_mutants_were_tried() -> None:
    """No file is written; functions, defaults and rules are the same objects; cases hold."""
    golden = Golden("length")
    before = sources(), Length.decide.__code__, LengthConfig.model_fields["min_units"].default, dict(BY_NAME)

    results = list(try_mutants(mutants_of(golden), lambda mutant: golden.noticed(score=mutant.scores)))

    assert len(results) >= 12
    assert (sources(), Length.decide.__code__, LengthConfig.model_fields["min_units"].default, dict(BY_NAME)) == before
    assert LengthConfig() == LengthConfig(min_units=16, max_units=1_000_000)
    assert golden.noticed(score=True) == []


def test_a_mutant_is_taken_out_when_its_judge_fails() -> None:
    """An error of a judge counts as noticed, and the fault is gone afterwards."""
    before = Length.decide.__code__
    mutants = [one for one in mutants_of(Golden("length")) if one.of == "comparison"]

    def broken(_: Any) -> list[str]:
        assert Length.decide.__code__ is not before or "decide_by_rules" in mutants[0].name
        raise ValueError("this judge is ill")

    [result] = try_mutants(mutants[:1], broken)

    assert result.noticed_by == ("ValueError: this judge is ill",)
    assert Length.decide.__code__ is before


def test_a_default_is_other_while_its_mutant_is_in() -> None:
    """Whoever makes the settings meanwhile gets the moved number, and only that one is moved."""
    mutant = next(one for one in setting_mutants("length") if one.name == "min_units 16 -> 19")

    with mutant.apply():
        assert LengthConfig() == LengthConfig(min_units=19, max_units=1_000_000)
    assert LengthConfig().min_units == 16


def test_a_setting_within_a_setting_is_moved() -> None:
    """`cascade.suspicious` is a number as any other."""
    names = [one.name for one in setting_mutants("safety_model")]

    assert "cascade.suspicious 0.5 -> 0.6" in names
    assert "cascade.audit_share 0.005 -> 0.004" in names


def test_each_limit_of_a_table_is_moved_alone() -> None:
    """A mutant of `limits.tsv` changes one number of one preset, and says in which file it stands."""
    from curation.filters.rules.config import RulesConfig, limits_of
    from curation.filters.rules.limits import limit_for

    mutant = next(one for one in table_mutants("rules") if one.name == "massive: loose_lines [und_Hani] 0.15 -> 0.18")
    usual = limits_of(RulesConfig())

    with mutant.apply():
        other = limits_of(RulesConfig())

    assert mutant.table == "curation/filters/rules/limits.tsv"
    assert limit_for(other["loose_lines"], "zho_Hans") == pytest.approx(0.18)
    assert limit_for(other["loose_lines"], "eng_Latn") == limit_for(usual["loose_lines"], "eng_Latn")
    assert {name: other[name] for name in other if name != "loose_lines"} == {
        name: usual[name] for name in usual if name != "loose_lines"
    }
    assert mutant.concerns({})
    assert not mutant.concerns({"preset": "gopher"})


def test_a_rule_looks_at_its_other_side() -> None:
    """Side mutants exchange one rule, for `rules` alone."""
    mutant = next(one for one in side_mutants("rules") if one.name == "digits: max -> min")

    with mutant.apply():
        assert BY_NAME["digits"].side == "min"
    assert BY_NAME["digits"].side == "max"
    assert list(side_mutants("length")) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b", {"`a < b`: < -> >=", "`a < b`: < -> <="}),
        ("a == b", {"`a == b`: == -> !="}),
        ("a & b", {"`a & b`: & -> |"}),
        ("a and b", {"`a and b`: and -> or"}),
        ("~a", {"`~a`: without it"}),
        ("pc.is_null(a)", {"`pc.is_null(a)`: is_null -> is_valid"}),
        ("a * 2.0", {"`a * 2.0`: * -> /", "`2.0` -> 2.4"}),
        ("3", {"`3` -> 4", "`3` -> 2"}),
        ("a[0]", set()),
    ],
)
def test_faults_of_one_expression(code: str, expected: set[str]) -> None:
    """Each kind of node has its faults, and they are told by what was there."""
    [function] = ast.parse(f"def f():\n    return {code}").body
    assert isinstance(function, ast.FunctionDef)

    assert {change.told for change in _changes(function)} == expected


def test_what_is_raised_or_asserted_is_no_decision() -> None:
    """Messages of errors and checks of programmers are left alone."""
    [function] = ast.parse("def f(a):\n    assert a > 1\n    if a:\n        raise ValueError(a + 1)").body
    assert isinstance(function, ast.FunctionDef)

    assert [change.told for change in _changes(function)] == ["`if a`: not"]


def test_functions_are_found_by_watching() -> None:
    """What runs is found, by file and line; what does not run is not."""
    golden = Golden("length", [{"id": "a", "text": "one two", "keep": False, "reason": "length.too_short"}])
    [group] = golden.groups

    found = reached(lambda: golden.filter({}).decide(group.scores), ("curation/filters",))

    assert "Length.decide" in {one.name for one in found}
    assert "Length.score" not in {one.name for one in found}


def test_a_file_that_was_changed_since_it_was_loaded_is_told() -> None:
    """A function that stands elsewhere now must not be taken for another."""
    one = Reached(REPO / "curation/filters/length.py", "Length.decide", 1)

    with pytest.raises(LookupError, match="was the file changed"):
        list(code_mutants("length", [one], kinds={"comparison"}))


def test_replaced_puts_back_after_an_error() -> None:
    """Attributes and entries."""
    holder = {"a": 1}

    with pytest.raises(KeyError), replaced(holder, "a", 2):
        assert holder["a"] == 2
        raise KeyError

    assert holder == {"a": 1}
    assert step_class("length") is Length
