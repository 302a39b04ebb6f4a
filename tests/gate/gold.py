"""The gold corpora of the gate, read once, and the scores that filters give to their texts, computed once.

Scores know no threshold, so a filter with other thresholds, or with another `decide`, is judged on those that are kept. They are
kept in memory, and, if a folder is named, as Arrow files there: for several processes that try many changes of `decide`. Their
names hold digests of the texts, of the step with its models, and of all code and tables of the three packages, so that scores of
other code are never taken.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from curation.ids import canonical_json
from curation.shards import write_table
from curation.steps import earlier_score, step_class
from curation.verdicts import Decision, Filter
from tests.bench.language_answers import Answer, answer_of
from tests.bench.language_gold import Page, Sentence, chinese_texts, load_pages, load_sentences, read_rows
from tests.bench.near_gold import Gold as NearGold
from tests.bench.near_gold import load_gold
from tests.bench.quality_gold import Document, Part, load_parts, load_texts
from tests.gate.figures import NOTHING_CHANGED, Changed

__all__ = ["DATA", "REPO", "Gold", "Judged", "MissingDataError", "Texts", "default_filter"]

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
PACKAGES = ("curation", "quality_models", "tokenization")
BATCH_ROWS = 512

Read = TypeVar("Read")


class MissingDataError(Exception):
    """Gold that is not on this machine."""


def default_filter(name: str, config: Mapping[str, Any] | None = None) -> Filter:
    """A filter with default settings, or with those that a YAML file could hold."""
    kind = step_class(name)
    made = kind(kind.Config.model_validate(dict(config or {})))
    assert isinstance(made, Filter)
    return made


@dataclass(frozen=True)
class Judged:
    """What a filter says of some texts."""

    step: Filter
    scores: pa.RecordBatch

    @cached_property
    def decision(self) -> Decision:
        return self.step.decide(self.scores)

    @cached_property
    def reasons(self) -> list[str | None]:
        """Why each text is dropped; None where it is kept."""
        found: list[str | None] = self.decision.reason_array(list(self.step.reasons)).to_pylist()
        return found


@dataclass
class Texts:
    """Texts that filters are asked about, under a name."""

    name: str
    texts: Sequence[str]
    scores: dict[str, pa.RecordBatch] = field(default_factory=dict)

    @cached_property
    def column(self) -> pa.Array:
        return pa.array(self.texts, pa.large_string())

    @cached_property
    def digest(self) -> str:
        """Of the texts in their order."""
        found = hashlib.sha256()
        for text in self.texts:
            found.update(hashlib.sha256(text.encode()).digest())
        return found.hexdigest()


class Gold:
    """All gold of a folder of test data; each set is read when it is first asked for.

    Args:
        data: the folder; the default is that of CORPUSMILL_TEST_DATA.
        kept: a folder for scores that outlive this object. None: none do.
    """

    def __init__(self, data: Path = DATA, kept: Path | None = None) -> None:
        self.data = data
        self._kept = kept
        self._texts: dict[str, Texts] = {}
        self._fresh: dict[str, dict[str, pa.RecordBatch]] = {}

    # -- sets ---------------------------------------------------------------------------------------

    def folder(self, name: str) -> Path:
        """Raises MissingDataError where the test data have no such folder."""
        if not (self.data / name).is_dir():
            raise MissingDataError(f"no {name} at {self.data}: set CORPUSMILL_TEST_DATA to a folder that has it")
        return self.data / name

    @cached_property
    def documents(self) -> list[Document]:
        """Of `2_text`."""
        return load_texts(self.folder("2_text"))

    @cached_property
    def parts(self) -> list[Part]:
        """Parts of web pages of `6_quality`."""
        return [one for one in load_parts(self.folder("6_quality")) if one.scale == "web page part"]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Of `4_langid`."""
        return load_sentences(self.folder("4_langid"))

    @cached_property
    def pages(self) -> list[Page]:
        """Mixed pages of `4_langid`."""
        return load_pages(self.folder("4_langid"))

    @cached_property
    def chinese(self) -> dict[str, list[str]]:
        """Chinese documents of `2_text` and `3_neardup` by form."""
        self.folder("2_text")
        self.folder("3_neardup")
        return chinese_texts(self.data)

    @cached_property
    def near(self) -> NearGold:
        """Of `3_neardup`."""
        return load_gold(self.folder("3_neardup"))

    @cached_property
    def labelled(self) -> list[dict[str, Any]]:
        """All rows of `5_safety`."""
        return read_rows(self.folder("5_safety") / "labelled.jsonl.zst")

    # -- scores -------------------------------------------------------------------------------------

    def texts(self, name: str, make: Callable[[], Sequence[str]]) -> Texts:
        """Texts by name, made when they are first asked for."""
        if name not in self._texts:
            self._texts[name] = Texts(name, list(make()))
        return self._texts[name]

    def judged(
        self, texts: Texts, name: str, changed: Changed = NOTHING_CHANGED, config: Mapping[str, Any] | None = None
    ) -> Judged:
        """What a filter says of all texts.

        Args:
            changed: filters in place of the default ones. With a config, the class of one is used, with that config.
            config: settings other than the defaults.
        """
        step: Any = changed.get(name)
        if step is None or config:
            kind = type(step) if step is not None else step_class(name)
            step = kind(kind.Config.model_validate(dict(config or {})))
        assert isinstance(step, Filter)
        return Judged(step, self._scores(texts, step))

    def answers(self, texts: Texts, changed: Changed = NOTHING_CHANGED) -> list[Answer]:
        """What the filter `language` says of texts, as its benchmark tells it."""
        return [answer_of(row) for row in self.judged(texts, "language", changed).scores.to_pylist()]

    @contextmanager
    def rescoring(self, *names: str) -> Iterator[None]:
        """Within, scores of these filters, and of those that read them, are computed anew, and forgotten at the end."""
        before = dict(self._fresh)
        self._fresh = {**before, **{name: {} for name in names}}
        try:
            yield
        finally:
            self._fresh = before

    def _scores(self, texts: Texts, step: Filter) -> pa.RecordBatch:
        told = {"name": step.name, "config": dict(step.score_config()), "models": dict(step.model_checksums())}
        key = f"{texts.name} {canonical_json(told)!r}"
        known = self._memory(texts, step)
        if key not in known:
            path = self._path(texts, key) if known is texts.scores else None
            if path is not None and path.exists():
                known[key] = _read(path)
            else:
                known[key] = self._computed(texts, step)
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_table(path, known[key])
        return known[key]

    def _memory(self, texts: Texts, step: Filter) -> dict[str, pa.RecordBatch]:
        """Where its scores are kept: those that are to be computed anew, and what reads them, apart."""
        needed = {need.partition(".")[0] for need in step.needs if "." in need}
        for name in (step.name, *sorted(needed)):
            if name in self._fresh:
                return self._fresh[name]
        return texts.scores

    def _path(self, texts: Texts, key: str) -> Path | None:
        if self._kept is None:
            return None
        return self._kept / f"{hashlib.sha256(f'{key} {texts.digest} {_code()}'.encode()).hexdigest()[:24]}.arrow"

    def _computed(self, texts: Texts, step: Filter) -> pa.RecordBatch:
        columns = {need: self._column(texts, need) for need in step.needs}
        schema = pa.schema([(column.name, column.type) for column in step.score_columns])
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        parts = [step.score(batch.slice(at, BATCH_ROWS)) for at in range(0, batch.num_rows, BATCH_ROWS)]
        return _one([part.select(schema.names) for part in parts], schema)

    def _column(self, texts: Texts, need: str) -> pa.Array:
        """What a filter reads: the text, and what default filters before it said, as in the shipped configs."""
        if need == "text":
            return texts.column
        asked = earlier_score(need)
        if asked is None:
            raise AssertionError(f"gold texts have no column {need!r}, which a filter reads")
        earlier = default_filter(asked[0])
        return self._scores(texts, earlier).column(need.partition(".")[2])


def _one(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.concat_arrays([pa.array([], f.type), *(part.column(f.name) for part in parts)]) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    return _one(table.to_batches(), table.schema)


@cache
def _code() -> str:
    """Digest of all that the packages hold but compiled code."""
    found = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((REPO / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(str(path.relative_to(REPO)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
