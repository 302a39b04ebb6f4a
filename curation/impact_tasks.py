"""What a question about a change is, and how it is answered: what `corpusmill impact` and the tasks of the DAG `filter_impact` share.

    begin -> judge (new) -> judge (base) -> write -> hold

Nothing travels between tasks but the name of the sheet's folder. Each asks anew which sides are meant and finds what was
judged before by its content, so it may be done twice; and `write` judges whatever has changed meanwhile, so that a sheet is
always about two sides as they stood at one moment.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.config import SHIPPED, load_config
from curation.errors import ConfigError, CorpusmillError, RunError
from curation.ids import digest8
from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import BrokenBound, broken_bounds, unchecked_bounds
from curation.impact.counting.bounds_before import bound_changes, bounds_of_base, loosened_words
from curation.impact.counting.corpus import corpus_of
from curation.impact.counting.figures import figures
from curation.impact.run import Change, change_of
from curation.launch import Progress
from curation.run import read_json, utc_now, write_json
from curation.tasks import root_of, run_id_for

if TYPE_CHECKING:
    from curation.impact.counting.figure_types import Figures
    from curation.impact.facts import Comparison

__all__ = ["Answer", "Question", "answer", "begin", "hold", "judge", "write"]

log = logging.getLogger("corpusmill")

ASKED = "asked.json"
"""In the folder of a sheet that a DAG run writes: the question, and whose it is."""
PAGE, DATA = "sheet.html", "sheet.json"


@dataclass(frozen=True)
class Question:
    """What is compared, and on which documents."""

    config: str
    """The new side: a YAML file, or the name of a config that ships."""
    base: str
    """The same, or a git revision."""
    overrides: tuple[str, ...] = ()
    """`a.b=c`, of the new side alone."""
    sample: tuple[str, ...] = ()
    """Files or folders; none: the sample that ships."""
    corpus: str | None = None
    """Size of a corpus in words, such as `3Bdocuments`."""

    def bounds(self) -> ImpactConfig | None:
        """What the new side's config allows.

        Raises:
            ConfigError: the config is wrong.
        """
        return load_config(self.config, self.overrides).top.impact

    def command(self) -> str:
        """The command that asks it."""
        words = ["corpusmill", "impact", self.config, "--base", self.base]
        words += ["--sample", *self.sample] if self.sample else []
        for override in self.overrides:
            words += ["--set", override]
        return shlex.join([*words, "--corpus", self.corpus] if self.corpus is not None else words)

    def change(self, root: Path) -> Change:
        """What is meant by it, found out anew: see `curation.impact.run.change_of`."""
        return change_of(self.config, self.base, list(self.sample) or None, root, self.overrides)


@dataclass(frozen=True)
class Answer:
    """A change, judged and written down."""

    comparison: Comparison
    figures: Figures
    bounds: ImpactConfig | None
    broken: Sequence[BrokenBound]
    folder: Path
    """Of the sheet."""
    loosened: Sequence[str] = ()
    """A sentence for each bound of the base that the change itself raises or drops."""

    @property
    def page(self) -> Path:
        return self.folder / PAGE

    @property
    def data(self) -> Path:
        """All of it for programs."""
        return self.folder / DATA


def answer(
    question: Question, root: Path, folder: Path | None = None, *, workers: int = 1, progress: Progress | None = None
) -> Answer:
    """Judge both sides, unless that was done before, compare them and write the sheet.

    Args:
        root: folder of all runs; what the sides need lies in its folder `impact`.
        folder: of the sheet; None: one below the root, the same for the same question about the same two sides.

    Raises:
        CorpusmillError: the question, the sample or a side will not do.
    """
    from curation.impact.shown.documents import choose_documents
    from curation.report.impact_page import write_sheet

    if folder is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(
            f"{folder} is a file: the sheet is several files, which need a folder. Give another --output."
        )
    corpus = None if question.corpus is None else corpus_of(question.corpus)
    bounds = question.bounds()
    change = question.change(root)
    new = change.judge_new(workers, progress)
    comparison = change.compare(change.judge_base(workers, progress), new)
    told = figures(comparison, corpus)
    before, notes = _bounds_before(question, bounds)
    notes = [*comparison.notes, *notes, *unchecked_bounds(told, bounds)]
    comparison = replace(comparison, notes=tuple(notes))
    broken = broken_bounds(told, bounds)
    changes = bound_changes(before, bounds)
    loosened = loosened_words(changes, broken_bounds(told, before))
    if folder is None:
        sides = (comparison.base, comparison.new)
        asked = [[side.label, side.run_folder.name] for side in sides]
        name = f"{comparison.new.run_folder.name.rpartition('-')[0]}-{digest8([asked, question.corpus])}"
        folder = root.resolve() / "impact" / "sheets" / name
    documents = choose_documents(comparison)
    write_sheet(
        comparison, told, broken, documents, folder,
        bounds=bounds, bound_changes=changes, loosened=loosened, command=question.command(),
    )  # fmt: skip
    return Answer(comparison, told, bounds, broken, folder, loosened)


def _bounds_before(question: Question, bounds: ImpactConfig | None) -> tuple[ImpactConfig | None, list[str]]:
    """Bounds of the base, with a note instead where this version cannot read them: no reason to compare nothing."""
    try:
        return bounds_of_base(question.config, question.base), []
    except ConfigError as error:
        return bounds, [f"Whether the change loosens its own bounds is not known: {error}"]


# -- tasks of the DAG --------------------------------------------------------------------------


def begin(params: Mapping[str, Any], *, dag_id: str, dag_run_id: str, run_after: datetime) -> dict[str, str]:
    """Check the question and note it in the folder of its sheet.

    Returns:
        `sheet` (folder, relative to the root), `base` and `new` (what the sides are called).

    Raises:
        ConfigError, InputError: it cannot be asked; trying again would not help.
    """
    root = root_of(params)
    question = _question(params)
    if question.corpus is not None:
        corpus_of(question.corpus)
    config = load_config(question.config, question.overrides)
    sides = question.change(root).sides
    folder = root / "impact" / "sheets" / run_id_for(dag_id, dag_run_id, f"impact-{config.top.name}", run_after)
    engine = {"engine": "airflow", "dag_id": dag_id, "dag_run_id": dag_run_id}
    asked = {
        "config": question.config,
        "base": question.base,
        "overrides": list(question.overrides),
        "sample": list(question.sample),
        "corpus": question.corpus,
    }
    write_json(folder / ASKED, {**asked, "engine": engine, "when": utc_now()})
    return {"sheet": str(folder.relative_to(root)), "base": sides.base.label, "new": sides.new.label}


def _question(params: Mapping[str, Any]) -> Question:
    """Raises ConfigError: a path is relative; each worker has its own current folder."""
    config, base, sample = str(params["config"]), str(params["base"]), params.get("sample")
    relative = [("sample", sample)] if sample and "://" not in sample and not Path(sample).is_absolute() else []
    for what, given in (("config", config), ("base", base)):
        is_file = given.endswith((".yaml", ".yml")) or (what == "config" and not (SHIPPED / f"{given}.yaml").is_file())
        if is_file and not Path(given).is_absolute():
            relative.append((what, given))
    for what, given in relative:
        raise ConfigError(f"{what} {given!r}: expected an absolute path; each worker has its own folder.")
    return Question(
        config=config,
        base=base,
        overrides=tuple(params.get("overrides") or ()),
        sample=(sample,) if sample else (),
        corpus=params.get("corpus") or None,
    )


def _asked(folder: Path) -> Question:
    told = read_json(folder / ASKED)
    return Question(
        config=told["config"],
        base=told["base"],
        overrides=tuple(told["overrides"]),
        sample=tuple(told["sample"]),
        corpus=told["corpus"],
    )


def _root(folder: Path) -> Path:
    """Of all runs: a sheet lies in `impact/sheets` below it."""
    return folder.parents[2]


def judge(folder: Path, which: str) -> dict[str, int]:
    """Let one side judge the sample, unless an earlier run has judged it alike.

    Args:
        which: `new` or `base`.

    Returns:
        `documents`, and how many of them are `kept`.
    """
    change = _asked(folder).change(_root(folder))
    run = change.judge_new() if which == "new" else change.judge_base()
    log.info("%s judged: %s", which, run)
    funnel = read_json(run / "report" / "funnel.json")
    return {"documents": funnel["documents"], "kept": funnel["kept"]}


def write(folder: Path) -> dict[str, Any]:
    """Compare the sides and write the sheet.

    Returns:
        How many documents are kept `before`, `leave`, `come_in`, and are kept `after`; how many bounds are `broken`.
    """
    found = answer(_asked(folder), _root(folder), folder)
    moves = found.figures.totals.documents
    log.info("sheet: %s", found.page)
    return {
        "before": moves.before.count,
        "leave": moves.leaves.count,
        "come_in": moves.comes_in.count,
        "after": moves.after.count,
        "broken": len(found.broken),
    }


def hold(folder: Path) -> dict[str, Any]:
    """Hold the sheet against the bounds of the new side's config.

    Raises:
        CorpusmillError: the change breaks a bound; the message has a line for each.
        RunError: there is no sheet.
    """
    if not (folder / DATA).is_file():
        raise RunError(f"{folder / DATA} is missing: the sheet is not written. Clear the task `sheet`.")
    broken = read_json(folder / DATA)["broken"]
    if broken:
        raise CorpusmillError("\n".join(one["text"] for one in broken))
    return {"broken": 0}
