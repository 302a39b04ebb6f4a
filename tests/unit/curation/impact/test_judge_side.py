"""One side judges the sample: once, from what is there already, and by whatever code."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError, RunError
from curation.impact import seeds
from curation.impact.code import Code
from curation.impact.inputs import Sample, take_sample
from curation.impact.judge_side import judge_side, run_id_of
from curation.impact.seeds import Made, is_finished, own_steps, step_folder, steps_with_scores
from curation.impact.sides import Side, sides_of
from curation.run import read_json

CONFIG = "name: mine\nsteps:\n  - exact: {}\n  - length: {min_units: 3}\n"
TERMS = "# language: en\n# licence: CC0-1.0\n# source: a test\n# version: 1\n\nfraud\t4\tword\tzzyzx casino\n"
LINES = [{"id": f"d{n}", "text": " ".join(["word"] * n)} for n in range(1, 13)] + [{"id": "copy", "text": "word word"}]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Thirteen documents of 1 to 12 words, one of them twice; and a line that cannot be read."""
    folder = tmp_path / "sample"
    folder.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in LINES) + "{broken\n"
    (folder / "a.jsonl").write_text(text)
    return take_sample(folder, tmp_path / "root" / "impact")


@pytest.fixture
def side(tmp_path: Path) -> Side:
    """The config, judged by this code."""
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return _side(tmp_path)


def _side(tmp_path: Path, *overrides: str) -> Side:
    name = str(tmp_path / "mine.yaml")
    return sides_of(name, name, overrides, tmp_path / "root").new


def _steps(folder: Path) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in own_steps(folder)}


def _scored(folder: Path, name: str) -> int:
    items = step_folder(folder, _steps(folder)[name]) / "_items"
    return sum(read_json(path)["scored"] for path in items.glob("*.json"))


def test_a_side_is_judged_once(tmp_path: Path, sample: Sample, side: Side) -> None:
    """The second time nothing is written; broken lines are no reason to stop."""
    root = tmp_path / "root"
    folder = judge_side(side, sample, root)
    assert _steps(folder)["length"]["docs_kept"] == 10
    assert sum(read_json(folder / "shards" / "_done.json")["quarantined"].values()) == 1
    before = {
        path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != "code.json"
    }
    assert judge_side(side, sample, root, workers=2) == folder
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_moved_threshold_scores_nothing(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Closed steps before it are linked, scores are taken over."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    second = judge_side(_side(tmp_path, "length.min_units=6"), sample, root)
    assert second != first
    assert _steps(second)["length"]["docs_kept"] == 7
    assert (_scored(first, "length"), _scored(second, "length")) == (12, 0)
    names = [step_folder(one, _steps(one)["exact"]) / "_done.json" for one in (first, second)]
    assert names[0].samefile(names[1])
    assert steps_with_scores(second) == {"length"}


def test_other_code_of_a_step_takes_nothing_of_it_over(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Even if no version says that it changed; what stands before it is linked all the same."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    steps = {**side.code.steps, "length": "0" * 16}
    other = replace(side, code=replace(side.code, steps=steps))
    second = judge_side(other, sample, root)
    assert run_id_of(other, sample) != run_id_of(side, sample)
    assert _scored(second, "length") == 12
    assert _steps(second)["length"]["digest"] == _steps(first)["length"]["digest"]
    assert not steps_with_scores(second)
    names = [step_folder(one, _steps(one)["exact"]) / "_done.json" for one in (first, second)]
    assert names[0].samefile(names[1])


def test_other_code_before_a_step_opens_it_but_keeps_its_scores(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Whom a step looks at depends on all before it; what it says of a document does not."""
    root = tmp_path / "root"
    judge_side(side, sample, root)
    steps = {**side.code.steps, "exact": "0" * 16}
    second = judge_side(replace(side, code=replace(side.code, steps=steps)), sample, root)
    assert _scored(second, "length") == 0
    assert steps_with_scores(second) == {"length"}
    assert not (step_folder(second, _steps(second)["length"]) / "_done.json").samefile(
        next(
            path
            for path in (root / "impact" / "runs").glob("*/steps/02-length-*/_done.json")
            if second not in path.parents
        )
    )


def test_other_code_of_a_step_whose_scores_are_read_takes_nothing_over(
    tmp_path: Path, sample: Sample, side: Side
) -> None:
    """The scores rest on its scores."""
    root = tmp_path / "root"
    reads = {**side.code.reads, "length": ["exact"]}
    judge_side(replace(side, code=replace(side.code, reads=reads)), sample, root)
    steps = {**side.code.steps, "exact": "0" * 16}
    second = judge_side(replace(side, code=replace(side.code, steps=steps, reads=reads)), sample, root)
    assert _scored(second, "length") == 12


def test_another_engine_takes_scores_over_and_no_verdicts(tmp_path: Path, sample: Sample, side: Side) -> None:
    """What a step says of a document is its own; whom it is asked about is not."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    second = judge_side(replace(side, code=replace(side.code, engine="0" * 16)), sample, root)
    assert second != first
    assert _scored(second, "length") == 0
    for name in ("exact", "length"):
        files = [step_folder(one, _steps(one)[name]) / "_done.json" for one in (first, second)]
        assert not files[0].samefile(files[1])


def test_other_ingest_reads_the_sample_anew(tmp_path: Path, sample: Sample, side: Side) -> None:
    """By its code, and by its settings; then nothing at all is taken over."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    other = replace(side, code=replace(side.code, ingest="0" * 16))
    for changed in (other, _side(tmp_path, "ingest.slice_mb=3")):
        second = judge_side(changed, sample, root)
        assert not (second / "shards/00000-00000.arrow").exists() or not (second / "shards/00000-00000.arrow").samefile(
            first / "shards/00000-00000.arrow"
        )
        assert _scored(second, "length") == 12


def test_another_sample_takes_nothing_over(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Nor does another environment."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    (tmp_path / "sample" / "a.jsonl").write_text('{"text": "one two three four"}\n')
    other = take_sample(tmp_path / "sample", root / "impact")
    second = judge_side(side, other, root)
    assert second != first
    assert _steps(second)["length"]["docs_in"] == 1


@pytest.mark.parametrize(
    "lost", ["run.json", "report/funnel.json", "shards/*.arrow", "steps/02-*/*.arrow", "steps/01-*/_done.json"]
)
def test_what_is_lost_is_made_anew(tmp_path: Path, sample: Sample, side: Side, lost: str) -> None:
    """A file that is gone opens what it belongs to."""
    root = tmp_path / "root"
    folder = judge_side(side, sample, root)
    for path in folder.glob(lost):
        path.unlink()
    assert not is_finished(folder)
    assert judge_side(side, sample, root) == folder
    assert is_finished(folder)
    assert _steps(folder)["length"]["docs_kept"] == 10


@pytest.mark.parametrize("broken", ["run.json", "steps/02-*/_done.json", "code.json"])
def test_what_is_damaged_is_made_anew(tmp_path: Path, sample: Sample, side: Side, broken: str) -> None:
    """What `impact` keeps is its own to delete."""
    root = tmp_path / "root"
    folder = judge_side(side, sample, root)
    for path in folder.glob(broken):
        path.unlink()  # a link of another run's file must not be written into
        path.write_text("{broken")
    assert judge_side(side, sample, root) == folder
    assert _steps(folder)["length"]["docs_kept"] == 10


def test_a_run_that_is_deleted_while_it_is_linked_is_not_made_use_of(
    tmp_path: Path, sample: Sample, side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By another command, to make room: the sample is judged all the same, without a word of damage or a full disk."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)

    def delete_then_link(source: Path, target: Path) -> None:
        shutil.rmtree(first, ignore_errors=True)
        link(source, target)

    link = seeds._link
    monkeypatch.setattr(seeds, "_link", delete_then_link)
    second = judge_side(_side(tmp_path, "length.min_units=6"), sample, root)
    assert _steps(second)["length"]["docs_kept"] == 7
    assert not first.exists()
    assert "is judged anew" not in caplog.text


def test_a_half_seeded_run_goes_on(tmp_path: Path, sample: Sample, side: Side) -> None:
    """A command that was killed while it linked leaves files without their markers."""
    root = tmp_path / "root"
    first = judge_side(side, sample, root)
    other = _side(tmp_path, "length.min_units=6")
    folder = root / "impact" / "runs" / run_id_of(other, sample)
    for path in ("shards/plan.json", "shards/_items/00000.json"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        os.link(first / path, folder / path)
    source = step_folder(first, _steps(first)["exact"])
    (folder / "steps" / source.name / "_items").mkdir(parents=True)
    item = next((source / "_items").iterdir())
    os.link(item, folder / "steps" / source.name / "_items" / item.name)
    assert _steps(judge_side(other, sample, root))["length"]["docs_kept"] == 7


def _tree(folder: Path, main: str) -> Path:
    (folder / "curation").mkdir(parents=True)
    (folder / "curation" / "__init__.py").write_text("")
    (folder / "curation" / "cli.py").write_text(f"import sys\ndef main(arguments):\n    {main}\n")
    return folder


@pytest.mark.parametrize(
    ("main", "error", "told"),
    [
        ("raise ValueError('the filter is broken')", RunError, "ValueError: the filter is broken"),
        ("print('config: unknown key'); return 2", ConfigError, "config: unknown key"),
        ("import os; os.kill(os.getpid(), 9)", RunError, "exit status -9"),
        ("return 0", RunError, "is not whole"),
    ],
)
def test_other_code_that_fails_is_quoted(
    tmp_path: Path, sample: Sample, side: Side, main: str, error: type[Exception], told: str
) -> None:
    """With its last lines, and the file that holds all of them."""
    tree = _tree(tmp_path / "tree", main)
    other = replace(side, label="v1 (1234567)", config=None, tree=tree, commit="1" * 40)
    with pytest.raises(error, match=told) as caught:
        judge_side(other, sample, tmp_path / "root")
    assert "v1 (1234567)" in str(caught.value)


def test_other_code_is_that_of_its_tree(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Neither the installed package nor what lies in the current folder."""
    tree = _tree(tmp_path / "tree", "print(__file__, arguments[0]); return 1")
    with pytest.raises(RunError, match=str(tree / "curation" / "cli.py")):
        judge_side(replace(side, config=None, tree=tree), sample, tmp_path / "root")


def test_made_is_read_as_it_was_written(tmp_path: Path) -> None:
    """And nothing of a file of another form."""
    made = Made("s", "i", "e", Code("c", {"a": "1"}, {"a": ["b"]}, "d"), {"a": {"list": "1"}})
    made.write(tmp_path)
    assert Made.read(tmp_path) == made
    for text in ("[]", "{}", '{"format": 1}', "{"):
        (tmp_path / "code.json").write_text(text)
        assert Made.read(tmp_path) is None


def _listed(tmp_path: Path, terms: str) -> Side:
    """A side whose config names a list of terms at one and the same path."""
    (tmp_path / "terms.tsv").write_text(terms)
    (tmp_path / "listed.yaml").write_text(
        "name: listed\nsteps:\n  - length: {min_units: 1}\n  - safety_terms: {files: [terms.tsv], shipped: false}\n"
    )
    return sides_of(str(tmp_path / "listed.yaml"), str(tmp_path / "listed.yaml"), [], tmp_path / "root").new


def test_the_same_path_with_another_content_is_another_side(tmp_path: Path, sample: Sample) -> None:
    """Nothing of the settings differs; what does not read the list is linked, and the list as it was is known again."""
    root = tmp_path / "root"
    first = judge_side(_listed(tmp_path, TERMS), sample, root)
    second = judge_side(_listed(tmp_path, TERMS.replace("zzyzx casino", "word word word")), sample, root)
    assert first != second
    assert _steps(first)["safety_terms"]["docs_kept"] == 13
    assert _steps(second)["safety_terms"]["docs_kept"] < 13
    assert (_scored(second, "length"), _scored(second, "safety_terms")) == (_scored(first, "length"), 13)
    assert judge_side(_listed(tmp_path, TERMS), sample, root) == first


@pytest.mark.parametrize("terms", ["no terms at all\n", TERMS.replace("zzyzx casino", "the"), None])
def test_a_list_that_is_refused_is_refused_where_an_older_run_is_done(
    tmp_path: Path, sample: Sample, terms: str | None
) -> None:
    """It is broken, absurd, or gone: the command's error, not the answer of yesterday."""
    root = tmp_path / "root"
    side = _listed(tmp_path, TERMS)
    judge_side(side, sample, root)
    if terms is None:
        (tmp_path / "terms.tsv").unlink()
    else:
        side = _listed(tmp_path, terms)
    with pytest.raises(ConfigError, match=r"terms\.tsv"):
        judge_side(side, sample, root)


def test_what_lies_in_the_files_of_other_code_counts(tmp_path: Path, sample: Sample, side: Side) -> None:
    """Files, and all files of a folder, whatever step names them; what is no path is none."""
    (tmp_path / "model").mkdir()
    for name in ("list.txt", "model/weights"):
        (tmp_path / name).write_text("old")
    text = f"steps:\n  - gone: {{a: [{tmp_path}/list.txt], b: {{c: {tmp_path}/model}}, d: /, e: {tmp_path}/none}}\n"
    other = replace(side, config=None, tree=tmp_path / "tree", text=text)
    ids = [run_id_of(other, sample)]
    assert run_id_of(other, sample) == ids[0]
    for name in ("list.txt", "model/weights", "none"):
        (tmp_path / name).write_text("new")
        ids.append(run_id_of(other, sample))
    assert len(set(ids)) == 4


def test_what_changes_while_it_is_in_use_names_no_run(
    tmp_path: Path, sample: Sample, side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts by one list must not be kept under the name of another."""
    found = iter([{"length": {"a": "1"}}, {"length": {"a": "2"}}])
    monkeypatch.setattr("curation.impact.judge_side.contents_of", lambda side: next(found))
    with pytest.raises(ConfigError, match="was changed while it was in use"):
        judge_side(side, sample, tmp_path / "root")
    assert not list((tmp_path / "root" / "impact" / "runs").iterdir())
