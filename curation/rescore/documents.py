"""The documents of a run that a checkpoint may read: which are kept so far, their language, and their source.

Costs a look at verdicts and doc_ids; where no language step has judged, one visit of the text that counts letters by
script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.close import lost_files
from curation.errors import ConfigError, RunError
from curation.filters.labels import LANGUAGE_COLUMN, working_labels
from curation.pipeline import Pipeline
from curation.report.tally import hosts
from curation.rescore.config import SourceBy
from curation.shards import Shard, alive_mask, batches, item_marker, open_table

__all__ = ["COLUMNS", "Documents", "State", "state_of"]

COLUMNS = ("doc_id", "text_id", "source", "url", "text")


@dataclass(frozen=True, slots=True)
class State:
    """How far a run has come, as names of folders below its `steps/`; empty: no such step."""

    last: str
    """Whose verdicts say what is kept."""
    language: str
    """Whose verdicts name languages."""


def state_of(pipeline: Pipeline, documents: str) -> State:
    """What a re-score reads of a run now; it is written down, so that a retry reads the same when the run has gone on.

    Raises:
        ConfigError: `kept` of a run in which each step judges alone.
        RunError: ingest is not closed.
    """
    closed: list[str] = []
    language = ""
    for placed in pipeline.placed:
        if not (placed.folder / "_done.json").exists() or lost_files(placed.folder):
            break
        closed.append(placed.folder.name)
        if placed.name == "language":
            language = placed.folder.name
    if documents == "all":
        return State("", language)
    if pipeline.judge_all:
        raise ConfigError(
            f"run {pipeline.run.run_id}: its steps judged every document as if each stood alone, so none is kept by all "
            "before it. Score documents: all, or give a run that was made by `run`."
        )
    return State(closed[-1] if closed else "", language)


@dataclass(frozen=True)
class Documents:
    """The documents of a run in one state of it."""

    steps: Path
    """The run's folder of steps."""
    state: State
    source: SourceBy

    def of(self, shard: Shard) -> Iterator[tuple[npt.NDArray[np.int64], pa.RecordBatch]]:
        """Living documents, with their rows in the shard: COLUMNS, `source` as it was asked for, and `language`.

        Raises:
            RunError: the shard or a verdict is missing, damaged or foreign.
        """
        alive = alive_mask(self.steps / self.state.last if self.state.last else None, shard)
        languages = self._languages(shard)
        for start, batch in batches(shard, COLUMNS):
            rows = np.flatnonzero(alive[start : start + batch.num_rows])
            named = languages.slice(start, batch.num_rows)
            if len(rows) < batch.num_rows:
                batch, named = batch.take(pa.array(rows)), named.take(pa.array(rows))
            labels = working_labels(batch.append_column(LANGUAGE_COLUMN, named))
            sources = sources_of(batch, self.source)
            columns = [sources if name == "source" else batch.column(name) for name in COLUMNS]
            yield rows + start, pa.RecordBatch.from_arrays([*columns, labels], names=[*COLUMNS, "language"])

    def _languages(self, shard: Shard) -> pa.Array:
        """What the step `language` says: string[rows], null where it did not look."""
        if not self.state.language:
            return pa.nulls(shard.rows, pa.string())
        folder = self.steps / self.state.language
        marker = item_marker(folder, shard.name)
        if marker["shard_sha256"] != shard.sha256:
            raise RunError(f"{folder / shard.name}.arrow speaks about another version of the shard: delete {folder}.")
        table = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
        return table.column("language").combine_chunks().cast(pa.string())


def sources_of(batch: pa.RecordBatch, by: SourceBy) -> pa.Array:
    """The source of each document: string[n], no nulls; "" where it has no address."""
    if by == "domain":
        named = pc.fill_null(hosts(batch.column("url")), "")
        return pc.replace_substring_regex(named, r"^www\.", "")
    files: pa.DictionaryArray = batch.column("source")
    names: Sequence[str] = files.dictionary.to_pylist()
    if by == "folder":
        names = [name.rpartition("/")[0] for name in names]
    return pa.array(names, pa.string()).take(files.indices)
