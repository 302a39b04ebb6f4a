"""Judges beside the golden cases: the bounds of impact on the shipped sample, the gate's floors, the digests of tables, unit tests.

They are asked about what the golden cases let pass. All work in this process, where the mutant is in; scores of the sample and of
the gold are computed once, before, and only `decide` is asked again, unless the mutant changes scores.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import yaml

from curation.filters import FILTERS
from curation.impact.config import ImpactConfig
from curation.steps import earlier_score, step_class
from curation.verdicts import Filter
from tests.fakes import make_run, run_steps, shard_table
from tests.gate.families import families_of
from tests.gate.figures import Figures
from tests.gate.floors import FLOORS, broken, read
from tests.gate.gold import DATA, Gold
from tests.mutation.mutant import Mutant

__all__ = ["ROOT", "FloorsJudge", "SampleJudge", "UnitTests", "pinned"]

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "curation" / "impact" / "sample"
CONFIG = ROOT / "curation" / "configs" / "web.yaml"
PINS = ROOT / "tests" / "golden" / "tables.json"
BATCH_ROWS = 512

Mask = npt.NDArray[np.bool_]


def pinned(mutant: Mutant) -> list[str]:
    """The digest by which tests/golden/test_tables.py would see that the mutant's table is another."""
    pins = json.loads(PINS.read_text(encoding="utf-8"))
    return [f"pinned: {mutant.table}"] if mutant.table in pins else []


class SampleJudge:
    """`corpusmill impact` on the shipped sample with the config `web`, as far as its bounds go: which documents change sides.

    Steps are asked one by one about all documents, on scores that are kept; a document is kept that all of them keep.
    """

    def __init__(self, samples: Path = SAMPLE, config: Path = CONFIG) -> None:
        settings = yaml.safe_load(config.read_text(encoding="utf-8"))
        self.steps: list[tuple[str, dict[str, Any]]] = [
            (name, dict(own or {})) for entry in settings["steps"] for name, own in entry.items()
        ]
        self.bounds = ImpactConfig.model_validate(settings["impact"])
        files = sorted(samples.glob("*.jsonl"))
        lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]
        self.texts = [json.loads(line)["text"] for line in lines]

    def filter(self, name: str) -> Filter:
        kind = step_class(name)
        made = kind(kind.Config.model_validate(dict(self.steps)[name]))
        assert isinstance(made, Filter)
        return made

    @cached_property
    def alive(self) -> Mask:
        """Which documents the data-set steps keep: bool[n]."""
        kinds = [(step_class(name), own) for name, own in self.steps]
        first = [kind(kind.Config.model_validate(own)) for kind, own in kinds if not issubclass(kind, Filter)]
        found = np.zeros(len(self.texts), np.bool_)
        with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
            judged = run_steps(make_run(Path(folder), [self.texts]), first)
            kept = [row["keep"] for row in judged.verdicts(first[-1].name)]
        found[:] = [bool(keep) for keep in kept]
        return found

    @cached_property
    def scores(self) -> dict[str, pa.RecordBatch]:
        """Of each filter for all documents, by what the filters before it said."""
        found: dict[str, pa.RecordBatch] = {}
        table = shard_table(self.texts).combine_chunks()
        for name, _ in self.steps:
            if issubclass(step_class(name), Filter):
                found[name] = self.scored(self.filter(name), table, found)
        return found

    def scored(self, step: Filter, table: pa.Table, before: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
        columns: list[pa.Array] = []
        for need in step.needs:
            asked = earlier_score(need)
            if asked is None:
                columns.append(table.column(need).chunk(0))
            elif asked[0] in before:
                columns.append(before[asked[0]].column(need.partition(".")[2]))
            else:
                columns.append(pa.nulls(table.num_rows, asked[1]))
        batch = pa.RecordBatch.from_arrays(columns, list(step.needs))
        parts = [step.score(batch.slice(at, BATCH_ROWS)) for at in range(0, batch.num_rows, BATCH_ROWS)]
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    @cached_property
    def kept(self) -> dict[str, Mask]:
        """Which documents each filter keeps as it is now: bool[n]."""
        return {name: self.filter(name).decide(scores).keep for name, scores in self.scores.items()}

    def prepare(self) -> None:
        """Compute all that is kept: before the first mutant."""
        assert self.alive.any()
        assert self.kept

    def noticed(self, mutant: Mutant) -> list[str]:
        """The bounds that the mutant breaks. Nothing is said of one that changes scores, or of no filter of the config."""
        if mutant.scores or mutant.step not in self.kept or not mutant.concerns(dict(self.steps)[mutant.step]):
            return []
        keep = self.filter(mutant.step).decide(self.scores[mutant.step]).keep
        others = self.alive.copy()
        for name, one in self.kept.items():
            if name != mutant.step:
                others &= one
        before, after = others & self.kept[mutant.step], others & keep
        moved = before ^ after
        found = []
        limit = self.bounds.max_kept_change
        if limit is not None and moved.sum() > limit * before.sum():
            found.append(f"sample: {moved.sum() / before.sum():.1%} of all documents move")
        labels = np.array(self.scores["language"].column("language").to_pylist(), object)
        either = before | after
        for language, n in Counter(labels[either].tolist()).items():
            own = labels == language
            limit = self.bounds.languages.get(language, self.bounds.max_language_change)
            enough = n >= self.bounds.least_documents or language in self.bounds.languages
            if limit is not None and enough and moved[own].sum() > limit * before[own].sum():
                found.append(f"sample: {int(moved[own].sum())} of {int(before[own].sum())} {language} documents move")
        return found


class FloorsJudge:
    """The floors of the gate, for the families in which a filter has a part."""

    def __init__(self, data: Path = DATA) -> None:
        self.gold = Gold(data)
        self.floors = read(FLOORS)

    def prepare(self, step: str) -> None:
        """Compute the scores, and see that all floors hold without any mutant."""
        below = self._below(step)
        assert not below, f"{step}: floors are broken without any mutant: {below}"

    def noticed(self, mutant: Mutant) -> list[str]:
        """The figures that fall below their floor."""
        if mutant.scores:
            with self.gold.rescoring(mutant.step):
                return self._below(mutant.step)
        return self._below(mutant.step)

    def _below(self, step: str) -> list[str]:
        kind = step_class(step)
        figures: Figures = {}
        for family in families_of(step):
            figures |= family.figures(self.gold, {step: kind(kind.Config())})
        return [f"floor: {name}" for name in broken(self.floors, figures)]


class UnitTests:
    """The fast tests of a step, run in a copy of this process, where the mutant is in, up to the first that fails."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    def files(self, step: str) -> list[str]:
        unit = self.root / "tests" / "unit" / "curation"
        filters = unit / "filters"
        places = [
            filters / step,
            filters / f"test_{step}.py",
            *([filters / "test_labels.py"] if step in FILTERS else []),
        ]
        dedup = {
            "exact": ("test_exact.py",),
            "near": ("test_priority.py", "test_choose.py", "test_against.py", "test_near.py"),
        }
        places += [unit / "dedup" / name for name in dedup.get(step, ())]
        return [str(place) for place in places if place.exists()]

    def noticed(self, mutant: Mutant) -> list[str]:
        files = self.files(mutant.step)
        if not files:
            return []
        arguments = [*files, "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not airflow", "--no-header"]
        names = in_child(lambda: _failing([*arguments, "--rootdir", str(self.root)]))
        return [f"unit test: {name}" for name in names]


def in_child(work: Callable[[], list[str]]) -> list[str]:
    """What some work gives in a copy of this process; a mutant may write where it should not, and end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as pipe:
            said = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        return [f"the process ended with {os.waitstatus_to_exitcode(status)}"]
    found: list[str] = json.loads(said)
    return found


def _failing(arguments: list[str]) -> list[str]:
    failed = _Failed()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(arguments, plugins=[failed])
    return failed.names


class _Failed:
    """A plugin of pytest that remembers what failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid.rpartition("/")[2])
