"""What was changed is named: settings, code, lists, steps, their order, what is read of the input; and nothing that is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.impact.facts import Comparison, SideFacts
from curation.report.impact_changes import Change, changes_of
from curation.run import read_json, write_json
from tests.impact_fake import Told, compare_runs, with_commit

BASE = {"exact": {}, "length": {"min_units": 16}}
DOCUMENTS = [Told(f"document {i} says that much") for i in range(4)]


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    return compare_runs(tmp_path, DOCUMENTS, BASE, {"length": {"min_units": 2.5}, "html_noise": {}})


def test_settings_and_steps(comparison: Comparison) -> None:
    """Settings as the command line names them, whole numbers without a point; steps that come and go."""
    assert changes_of(comparison) == [
        Change("length.min_units", "setting", "16", "2.5"),
        Change("html_noise", "new step", "-", "step 2 of 2"),
        Change("exact", "step gone", "step 1 of 2", "-"),
    ]


def test_two_sides_alike(tmp_path: Path) -> None:
    """Nothing is named."""
    assert changes_of(compare_runs(tmp_path, DOCUMENTS, BASE, BASE)) == []


def test_order(tmp_path: Path) -> None:
    """The same steps in another order."""
    (found,) = changes_of(compare_runs(tmp_path, DOCUMENTS, ["exact", "length"], ["length", "exact"]))
    assert found == Change("steps", "order", "exact, length", "length, exact")


def test_code_of_few_and_of_many_steps(tmp_path: Path) -> None:
    """Two steps by name; a shared module that changes all of them is one line."""
    few = with_commit(compare_runs(tmp_path / "few", DOCUMENTS, BASE, BASE), "1" * 40)
    assert [(one.what, one.kind) for one in changes_of(few)] == [("exact", "code"), ("length", "code")]
    steps = [*BASE, "html_noise"]
    many = with_commit(compare_runs(tmp_path / "many", DOCUMENTS, steps, steps), "1" * 40)
    (found,) = changes_of(many)
    assert (found.what, found.kind, found.before) == ("exact, length, html_noise", "code", "3 steps")


def test_versions_and_lists(tmp_path: Path) -> None:
    """A raised version, and a word list with another checksum."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    steps = (found.new.steps[0], replace(found.new.steps[1], version=7))
    card = found.new.steps[1].folder / "_step.json"
    write_json(card, {**read_json(card), "models": {"words.tsv": "abcdef" * 10}})
    told = changes_of(replace(found, new=replace(found.new, steps=steps)))
    assert told == [
        Change("length", "version", "1", "7"),
        Change("length: words.tsv", "list or model", "-", "contents abcdefabcdef"),
    ]


TREE = f"/somewhere/.impact/impact/trees/{'1a' * 20}-0badcafe"


def _with_files(tmp_path: Path, before: list[str], after: list[str], kept: str = "models") -> list[Change]:
    """Changes of a step `safety_terms` whose lists lie there, with other contents on either side."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    sides = []
    for side, files, checksum in ((found.base, before, "0" * 64), (found.new, after, "1" * 64)):
        step = replace(side.steps[1], name="safety_terms", config={"files": files})
        write_json(step.folder / "_step.json", {**read_json(step.folder / "_step.json"), kept: {"terms.tsv": checksum}})
        sides.append(replace(side, steps=(step,)))
    return changes_of(replace(found, base=sides[0], new=sides[1]))


@pytest.mark.parametrize(
    "new", ["/srv/me/repo/configs/../lists/terms.tsv", "/srv/me/repo/lists/terms.tsv", f"{TREE}/lists/terms.tsv"]
)
def test_the_same_file_of_a_repository_is_no_other_setting(tmp_path: Path, new: str) -> None:
    """Wherever it was unpacked; what stands in it differs, and that is said."""
    (told,) = _with_files(tmp_path, [f"{TREE}/lists/terms.tsv"], [new])
    assert told == Change("safety_terms: terms.tsv", "list or model", "contents 000000000000", "contents 111111111111")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([f"{TREE}/lists/a.tsv"], ["/srv/me/repo/lists/b.tsv"], ('["lists/a.tsv"]', '[".../lists/b.tsv"]')),
        (["/srv/me/old/lists/a.tsv"], ["/srv/me/new/lists/a.tsv"], ('[".../old/lists/a.tsv"]', '[".../new/lists/a.tsv"]')),
        ([f"{TREE}/lists/a.tsv"], ["/srv/me/repo/lists/a.tsv", "/srv/me/repo/lists/b.tsv"],
         ('["lists/a.tsv"]', '["lists/a.tsv", ".../lists/b.tsv"]')),
        ([], ["/a.tsv"], ("[]", '["/a.tsv"]')),
    ],
)  # fmt: skip
def test_files_are_named_without_where_they_lie(
    tmp_path: Path, before: list[str], after: list[str], told: tuple[str, str]
) -> None:
    """A sheet is passed on: of a path as much as tells it from the other."""
    found = _with_files(tmp_path, before, after, "none")
    assert [(one.what, (one.before, one.after)) for one in found] == [("safety_terms.files", told)]


def test_a_text_that_looks_like_a_path_is_left_alone(tmp_path: Path) -> None:
    """Only settings that hold paths are made short; of a step that is not known all may."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    base, new = (replace(side.steps[1], config={"note": f"/a/b/c/{name}"}) for name, side in
                 (("x", found.base), ("y", found.new)))  # fmt: skip
    (told,) = changes_of(replace(found, base=replace(found.base, steps=(base,)), new=replace(found.new, steps=(new,))))
    assert (told.before, told.after) == ("/a/b/c/x", "/a/b/c/y")
    base, new = (replace(step, name="one_day") for step in (base, new))
    (told,) = changes_of(replace(found, base=replace(found.base, steps=(base,)), new=replace(found.new, steps=(new,))))
    assert (told.before, told.after) == (".../c/x", ".../c/y")


def test_earlier_runs_are_named_by_where_they_lie_in_short(tmp_path: Path) -> None:
    """`near` calls what it was given by its path: the same path with other contents is one line."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    for side, path, digest in (
        (found.base, f"{TREE}/old/run", "2" * 64),
        (found.new, "/srv/me/repo/old/run", "3" * 64),
    ):
        card = side.steps[1].folder / "_step.json"
        write_json(card, {**read_json(card), "models": {path: digest}})
    (told,) = changes_of(found)
    assert told == Change("length: old/run", "list or model", "contents 222222222222", "contents 333333333333")


def test_many_lists_are_one_line(tmp_path: Path) -> None:
    """A step with many lists does not bury what else was changed."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    card = found.new.steps[1].folder / "_step.json"
    write_json(card, {**read_json(card), "models": {f"{i}.tsv": "0" for i in range(5)}})
    (told,) = changes_of(found)
    assert told == Change("length: 0.tsv, 1.tsv, 2.tsv, 3.tsv, 4.tsv", "list or model", "5 files", "other contents")


def test_what_is_read_of_the_input(tmp_path: Path) -> None:
    """Sections beside the steps; a config of older code may leave out what has a default."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    other = replace(found.new, config_text="name: x\nimpact: {max_kept_change: 0.1}\nmemory_mb: 7\nsteps: []\n")
    base = replace(found.base, config_text="name: y\nmemory_mb: 9\ningest: {html: fast}\nsteps: []\n")
    whole = changes_of(replace(found, new=other, base=base))
    assert [(one.what, one.kind) for one in whole] == [("memory_mb", "input"), ("ingest.html", "input")]
    older = changes_of(replace(found, new=other, base=replace(base, commit="1" * 40)))
    assert [one.what for one in older] == ["memory_mb"]


def test_scores_of_another_step(tmp_path: Path) -> None:
    """A step that only reads what another one scores is not said to have changed itself."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    steps = (found.new.steps[0], replace(found.new.steps[1], score_digest="0" * 8))
    (told,) = changes_of(replace(found, new=replace(found.new, steps=steps)))
    assert (told.what, told.kind) == ("length", "reads")


def test_long_lists_are_told_by_what_differs(tmp_path: Path) -> None:
    """Of hundreds of terms those that one side alone has, also where they stand at the end; a long text is cut."""
    found = compare_runs(tmp_path, DOCUMENTS, BASE, BASE)
    terms = [f"term{i}" for i in range(300)]

    def with_settings(side: SideFacts, **settings: Any) -> SideFacts:
        step = side.steps[1]
        return replace(side, steps=(side.steps[0], replace(step, config={**step.config, **settings})))

    base = with_settings(found.base, off=terms, note="x" * 300)
    new = with_settings(found.new, off=[*terms, "one more"], note="x" * 301)
    off, note = changes_of(replace(found, base=base, new=new))
    assert (off.before, off.after) == ("300 entries", "301 entries, here alone: one more")
    assert note.before == note.after == "x" * 160 + " ..."
