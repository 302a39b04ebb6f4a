"""What the tasks of the DAG `filter_impact` do: check the question, judge each side once, write the sheet, hold it to its bounds."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from curation import impact_tasks
from curation.errors import ConfigError, CorpusmillError, InputError, RunError
from curation.impact_summary import summary_lines
from curation.impact_tasks import Question, answer, begin, hold, judge, write
from curation.run import read_json
from tests.impact_question import CONFIG, make_root, write_question
from tests.impact_repository import commit, make_repository

MOMENT = datetime(2026, 5, 20, 14, 23, 22, tzinfo=timezone.utc)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two configs and a sample of 40 texts of 1 to 40 words."""
    write_question(tmp_path)
    make_root(tmp_path / "root")
    return tmp_path


def form(folder: Path, **over: Any) -> dict[str, Any]:
    """The DAG's parameters."""
    asked = {
        "config": str(folder / "mine.yaml"), "base": str(folder / "old.yaml"), "overrides": [],
        "sample": str(folder / "sample"), "corpus": None, "root": str(folder / "root"),
    }  # fmt: skip
    return {**asked, **over}


def begun(folder: Path, **over: Any) -> Path:
    """Begin as the DAG run `mine`; returns the folder of its sheet."""
    told = begin(form(folder, **over), dag_id="filter_impact", dag_run_id="mine", run_after=MOMENT)
    return folder / "root" / told["sheet"]


def test_the_tasks_one_after_the_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side is judged once; the bounds turn it red, and it stays."""
    sheet = begun(folder)
    assert sheet == folder / "root" / "impact" / "sheets" / "mine"
    assert judge(sheet, "new") == {"documents": 40, "kept": 39}
    assert judge(sheet, "base") == {"documents": 40, "kept": 32}
    monkeypatch.setattr("curation.impact.judge_side.drive", None)  # nothing is judged from here on
    assert write(sheet) == {"before": 32, "leave": 0, "come_in": 7, "after": 39, "broken": 1}
    assert {path.name for path in sheet.iterdir()} >= {
        "asked.json",
        "sheet.html",
        "sheet.md",
        "sheet.json",
        "pull-request.md",
    }
    with pytest.raises(CorpusmillError, match=r"21\.88 % .* impact\.max_kept_change allows 10 %"):
        hold(sheet)
    assert write(sheet)["broken"] == 1


def test_within_bounds_the_run_is_green(folder: Path) -> None:
    """A setting of the form is of the new side alone."""
    sheet = begun(folder, overrides=["length.min_units=10"])
    assert judge(sheet, "new") == judge(sheet, "base")
    assert write(sheet)["come_in"] == 0
    assert hold(sheet) == {"broken": 0}


def test_a_second_try_takes_the_same_folder_and_tells_of_it(folder: Path) -> None:
    """Begun twice is begun once; Airflow's own ids become names of ours."""
    assert begun(folder) == begun(folder)
    told = begin(form(folder), dag_id="filter_impact", dag_run_id="manual__2026-05-20T14:23:22+00:00", run_after=MOMENT)
    assert told["sheet"].startswith("impact/sheets/impact-mine-20260520-142322-")
    assert (told["base"], told["new"]) == (str(folder / "old.yaml"), str(folder / "mine.yaml"))
    engine = read_json(folder / "root" / told["sheet"] / "asked.json")["engine"]
    assert engine == {"engine": "airflow", "dag_id": "filter_impact", "dag_run_id": "manual__2026-05-20T14:23:22+00:00"}


@pytest.mark.parametrize(
    ("over", "error", "told"),
    [
        ({"config": "mine.yaml"}, ConfigError, "config 'mine.yaml': expected an absolute path"),
        ({"config": "configs/mine"}, ConfigError, "config 'configs/mine': expected an absolute path"),
        ({"base": "old.yaml"}, ConfigError, "base 'old.yaml': expected an absolute path"),
        ({"sample": "sample"}, ConfigError, "sample 'sample': expected an absolute path"),
        ({"root": "root"}, ConfigError, "expected an absolute path"),
        ({"corpus": "large"}, ConfigError, "corpus size 'large'"),
        ({"overrides": ["length.min_wordz=3"]}, ConfigError, "min_wordz"),
        ({"sample": "/nosuch/sample"}, InputError, "nosuch"),
        ({"base": "no-such-revision"}, ConfigError, "no-such-revision"),
    ],
)
def test_what_cannot_be_asked_fails_at_once(
    folder: Path, over: dict[str, Any], error: type[CorpusmillError], told: str
) -> None:
    """Nothing is left behind that the tab would find; another try would not help."""
    with pytest.raises(error, match=told):
        begun(folder, **over)
    assert list((folder / "root").glob("impact/sheets/*")) == []


def test_without_a_sheet_the_bounds_are_not_held(folder: Path) -> None:
    """It says which task to clear."""
    with pytest.raises(RunError, match="Clear the task `sheet`"):
        hold(begun(folder))


def test_the_same_question_has_the_same_folder(folder: Path) -> None:
    """Another question, or another size of the corpus, has its own."""
    asked = Question(str(folder / "mine.yaml"), str(folder / "old.yaml"), sample=(str(folder / "sample"),))
    first = answer(asked, folder / "root")
    assert first.folder == answer(asked, folder / "root").folder
    assert first.folder.parent == (folder / "root" / "impact" / "sheets").resolve()
    assert first.folder.name.startswith("mine-")
    sized = Question(asked.config, asked.base, sample=asked.sample, corpus="3Bdocuments")
    assert answer(sized, folder / "root").folder != first.folder
    assert answer(asked, folder / "root", folder / "here").page == folder / "here" / "sheet.html"


def test_a_bound_that_the_sample_cannot_check_is_a_note(folder: Path) -> None:
    """On the sheet, since it would be believed otherwise."""
    config = folder / "mine.yaml"
    config.write_text(CONFIG.replace("0.1}", "0.9, languages: {tha_Thai: 0.1}}"), encoding="utf-8")
    found = answer(Question(str(config), str(folder / "old.yaml"), sample=(str(folder / "sample"),)), folder / "root")
    assert any("impact.languages.tha_Thai bounds nothing" in note for note in found.comparison.notes)
    assert "impact.languages.tha_Thai bounds nothing" in found.page.read_text(encoding="utf-8")
    assert found.broken == []


@pytest.mark.parametrize(
    ("section", "verdict"),
    [("", "The change removes its bounds"), ("impact: {max_kept_change: 0.9}", "Within bounds that the change itself")],
)
def test_a_change_that_loosens_its_own_bounds_is_seen(folder: Path, section: str, verdict: str) -> None:
    """It ends within bounds, for that is how one is signed; but whoever reads it is told, in each file."""
    repository = make_repository(folder / "own")
    commit(repository, {"mine.yaml": CONFIG.replace("min_units: 3", "min_units: 10")})
    config = repository / "mine.yaml"
    config.write_text(f"name: mine\nsteps: [length: {{min_units: 3}}]\n{section}\n", encoding="utf-8")
    found = answer(Question(str(config), "HEAD", sample=(str(folder / "sample"),)), folder / "root")
    assert found.broken == []
    (told,) = found.loosened
    assert told.startswith("impact.max_kept_change is loosened by the change itself: the base has 10 %, now ")
    assert told.endswith("By that of the base the change would fail: 21.88 % moves.")
    page, short = found.page.read_text(encoding="utf-8"), (found.folder / "pull-request.md").read_text(encoding="utf-8")
    assert verdict in page
    assert verdict.lower() in short
    assert told in page
    assert "**loosened**: impact.max\\_kept\\_change" in short or "**loosened**: impact.max_kept_change" in short
    sheet = read_json(found.data)
    assert sheet["loosened"] == [told]
    (change,) = [one for one in sheet["changes"] if one["what"] == "impact.max_kept_change"]
    assert (change["kind"], change["before"]) == ("bound raised" if section else "bound removed", "10 %")
    printed = " ".join(" ".join(line.plain for line in summary_lines(found)).split())
    assert "bound loosened: impact.max_kept_change" in printed


def test_bounds_of_the_base_that_cannot_be_read_are_a_note(folder: Path) -> None:
    """The comparison does not fail for it."""
    repository = make_repository(folder / "own")
    commit(repository, {"mine.yaml": CONFIG.replace("max_kept_change", "max_change")})
    config = repository / "mine.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    found = answer(Question(str(config), "HEAD", sample=(str(folder / "sample"),)), folder / "root")
    assert any("loosens its own bounds is not known" in note for note in found.comparison.notes)


def test_the_module_names_what_lies_in_the_folder() -> None:
    """The plugin knows the same names, without importing this module."""
    plugin = Path(impact_tasks.__file__).parent / "report" / "airflow_plugin.py"
    source = plugin.read_text(encoding="utf-8")
    assert f'"{impact_tasks.ASKED}"' in source
    assert f'"{impact_tasks.PAGE}"' in source
