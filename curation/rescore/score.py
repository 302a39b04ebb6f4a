"""A re-score: what one checkpoint says of the documents of one run, shard by shard.

    <root>/rescore/<training_run>/<threshold>/
      _model/           the checkpoint, held (`checkpoints.pin`)
      <run_id>/
        rescore.json    what was asked: checkpoint, settings, the state of the run; never changed
        counts/         documents by language and source, a file a shard
        plan.arrow      of each stratum: documents, and the share that is read
        scores/         a row a document that was read, a file a shard
        _items/         markers, written last      _done.json

Two passes, `rescore.count` and `rescore.score`; the plan lies between them and is a function of the counts. An item may
run twice, on any worker, or not at all if its marker stands and fits. Costs what the model costs (see
`quality_models.causal_lm`); a worker holds the weights, some megabytes of text, and 150 bytes for each document it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, LawError, RunError
from curation.filters.perplexity.config import Reading
from curation.filters.perplexity.engines import Engine, Judged, open_engine
from curation.ids import canonical_json, digest8
from curation.passes import Pass, used
from curation.pipeline import Pipeline
from curation.rescore.checkpoints import Pinned
from curation.rescore.config import ScoreConfig
from curation.rescore.documents import Documents, State, state_of
from curation.rescore.sample import drawn, rates
from curation.run import RUN_ID, Run, file_sha256, peak_memory, read_json, utc_now, write_json
from curation.shards import Shard, open_table, shards_of, write_table

__all__ = ["SCORE_SCHEMA", "Order", "Rescore", "threshold_folder"]

SCORE_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.binary(16)),
        pa.field("text_id", pa.binary(16)),
        pa.field("shard", pa.string()),
        pa.field("row", pa.int64()),  # in its shard
        pa.field("language", pa.string()),  # a label: eng_Latn, und_Hani, und
        pa.field("source", pa.string()),
        pa.field("url", pa.string()),
        pa.field("tokens", pa.int64()),  # scored; 0: none could be
        pa.field("loss", pa.float64()),  # nats for each token; null: nothing was scored, or it is not finite
        pa.field("bits_per_byte", pa.float64()),  # of UTF-8; null likewise
        pa.field("share_scored", pa.float32()),  # of its bytes; less than 1 where windows were chosen
    ]
)
PIECE_BYTES = 4 << 20
"""Text that the engine is given at once."""
WINDOW = 1024
"""Of the filter `perplexity`, where neither the settings nor the model say less."""


@dataclass(frozen=True, slots=True)
class Order:
    """Whose checkpoint judges, and for which threshold."""

    training_run: str
    threshold: int
    """Tokens: the multiple of `every_tokens` that was passed."""
    tokens_seen: int
    """By the checkpoint."""


def threshold_folder(root: Path, training_run: str, threshold: int) -> Path:
    """Where everything about one threshold of one training lies. Any name of a training is safe in it."""
    name = training_run if RUN_ID.fullmatch(training_run) else f"training-{digest8(training_run)}"
    return root.resolve() / "rescore" / name / f"{threshold:016d}"


class Rescore:
    """One re-score on disk; `create` begins it or finds it, `open` finds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info: dict[str, Any] = read_json(folder / "rescore.json")
        self.config = ScoreConfig.model_validate(self.info["config"])
        self.run = Run(folder.parents[3] / "runs" / self.info["run_id"])
        if (now := _shards_digest(self.run)) != self.info["shards"]:
            raise RunError(
                f"run {self.run.run_id} has other shards ({now}) than when {folder} was begun ({self.info['shards']}). "
                "Delete that folder to score them anew."
            )

    @classmethod
    def create(cls, root: Path, pipeline: Pipeline, order: Order, model: Pinned, config: ScoreConfig) -> Rescore:
        """Begin the re-score of a run, or open it where it was begun with the same order.

        Args:
            root: folder of all runs; the run's own.
            model: pinned into `threshold_folder(...) / "_model"`.

        Raises:
            ConfigError: it was begun with other settings or another checkpoint; the model cannot be read; or see `state_of`.
            RunError: ingest of the run is not closed.
        """
        folder = threshold_folder(root, order.training_run, order.threshold) / pipeline.run.run_id
        expected = threshold_folder(root, order.training_run, order.threshold) / "_model"
        if model.folder.resolve() != expected:
            raise ConfigError(f"the checkpoint lies in {model.folder}; expected it pinned into {expected}.")
        reading = _reading(config, model)
        asked = {
            **asdict(order),
            "run_id": pipeline.run.run_id,
            "shards": _shards_digest(pipeline.run),
            "checkpoint_sha256": model.sha256,
            "config": config.model_dump(mode="json"),
            "reading": reading.model_dump(mode="json", exclude={"model"}),
        }
        if not (folder / "rescore.json").exists():
            state = asdict(state_of(pipeline, config.documents))
            engine = dict(open_engine(reading).identity())
            begun = {**asked, "state": state, "engine": engine}
            write_json(folder / "rescore.json", {**begun, "identity": digest8(begun), "start": utc_now()})
        found = cls(folder)
        if differing := sorted(name for name, value in asked.items() if found.info[name] != value):
            raise ConfigError(
                f"{folder} was begun with another {differing[0]}: {canonical_json(found.info[differing[0]])}, not "
                f"{canonical_json(asked[differing[0]])}. Give the same, or delete the folder to score anew."
            )
        return found

    @classmethod
    def open(cls, folder: Path) -> Rescore:
        """The re-score in a folder. Raises RunError if it is none, or its run has changed."""
        return cls(folder.resolve())

    # -- what there is to do -------------------------------------------------------------------

    @cached_property
    def shards(self) -> list[Shard]:
        return shards_of(self.run)

    @property
    def identity(self) -> str:
        """Digest of all that decides the scores."""
        return str(self.info["identity"])

    def is_done(self) -> bool:
        """Whether it is closed."""
        return (self.folder / "_done.json").exists()

    def passes(self) -> list[Pass]:
        """Empty if it is closed. Items weigh as the shards' `text_bytes`."""
        if self.is_done():
            return []
        n = len(self.shards)
        return [Pass("rescore", "rescore.count", n, "shard"), Pass("rescore", "rescore.score", n, "shard")]

    def run_item(self, pass_name: str, item: int) -> dict[str, Any]:
        """Do one item, or nothing if its marker stands: a few counts, less than 1 kB.

        Raises:
            RunError: a file is missing, damaged or foreign; or a document is scored before all are counted.
            ConfigError: the model cannot be loaded.
        """
        shard = self.shards[item]
        kind = pass_name.removeprefix("rescore.")
        if self._marker(kind, shard) is not None:
            return {"item": shard.name, "reused": True}
        with peak_memory() as cost:
            table, counts = self._count(shard) if kind == "count" else self._score(shard)
            path = self._path(kind, shard)
            write_table(path, table)
        marker = {"identity": self.identity, "sha256": file_sha256(path), "rows": table.num_rows, **counts, **cost}
        write_json(self._marker_path(kind, shard), marker)
        return {"item": shard.name, "reused": False, **counts}

    def close(self) -> dict[str, Any]:
        """Check that every document was read, or left out by the plan, and write the marker.

        Returns:
            Totals: documents, left_out, read; of those read judged, unread, not_finite; tokens; seconds, peak_rss_mb.

        Raises:
            LawError: documents were lost or invented.
            RunError: an item is not done.
        """
        done = self.folder / "_done.json"
        if done.exists():
            found: dict[str, Any] = read_json(done)
            return found
        markers, counted = [], 0
        for shard in self.shards:
            marker, count = self._marker("score", shard), self._marker("count", shard)
            if marker is None or count is None:
                raise RunError(f"{self.folder}: shard {shard.name} is not scored yet. Run the same command again.")
            markers.append(marker)
            counted += count["documents"]
        names = ("documents", "left_out", "read", "judged", "unread", "not_finite", "tokens")
        totals = {name: sum(marker[name] for marker in markers) for name in names}
        rows = sum(batch.num_rows for batch in self._batches())
        if not counted == totals["documents"] == rows + totals["left_out"] or rows != totals["read"]:
            raise LawError(
                f"{self.folder}: {counted} documents were counted and {totals['documents']} seen, of which {rows} lie in "
                f"scores/ and {totals['left_out']} were left out by the plan: they do not add up."
            )
        write_json(done, {"identity": self.identity, **totals, **used(markers), "end": utc_now()})
        return read_json(done)  # type: ignore[no-any-return]

    def scores(self) -> pa.Table:
        """All scores, in the order of documents: SCORE_SCHEMA, memory-mapped. Raises RunError unless it is closed."""
        if not self.is_done():
            raise RunError(f"{self.folder} is not finished. Run the same command again.")
        return pa.Table.from_batches(list(self._batches()), schema=SCORE_SCHEMA)

    # -- doing it ------------------------------------------------------------------------------

    def _documents(self) -> Documents:
        return Documents(self.run.steps, State(**self.info["state"]), self.config.source)

    def _count(self, shard: Shard) -> tuple[pa.Table, dict[str, Any]]:
        """Documents of each stratum."""
        names = ["language", "source"]
        parts = [pa.table({name: batch.column(name) for name in names}) for _, batch in self._documents().of(shard)]
        schema = pa.schema([(name, pa.string()) for name in names])
        whole = pa.concat_tables([schema.empty_table(), *parts])
        return _summed(whole.append_column("documents", _ones(whole.num_rows))), {"documents": whole.num_rows}

    @cached_property
    def plan(self) -> pa.Table:
        """Of each stratum, in order of names: language, source, documents, and `rate`, the share that is read.

        Raises:
            RunError: not all shards are counted.
        """
        tables = []
        for shard in self.shards:
            marker = self._marker("count", shard)
            if marker is None:
                raise RunError(f"{self.folder}: the documents of shard {shard.name} are not counted yet. Run it again.")
            tables.append(open_table(self._path("count", shard), marker["sha256"]).read_all())
        strata = _summed(pa.concat_tables(tables)) if tables else _summed(_NO_STRATA.empty_table())
        sample = self.config.sample
        share = rates(strata.column("documents").to_numpy(), sample.max_documents, sample.stratum_documents)
        found = strata.append_column("rate", pa.array(share))
        write_table(self.folder / "plan.arrow", found)
        return found

    def _score(self, shard: Shard) -> tuple[pa.Table, dict[str, Any]]:
        strata, rate = _keys(self.plan), self.plan.column("rate").to_numpy()
        engine = self._engine()
        parts, documents = [], 0
        for rows, batch in self._documents().of(shard):
            documents += len(rows)
            of = pc.index_in(_keys(batch), strata).to_numpy(zero_copy_only=False)
            chosen = np.flatnonzero(drawn(batch.column("doc_id"), rate[of], self.config.sample.seed))
            for some in _pieces(batch.column("text"), chosen):
                part = batch.take(pa.array(some))
                judged = engine.judge(part.column("text"), part.column("language"))
                parts.append(_score_table(shard.name, rows[some], part, judged))
        table = pa.concat_tables([SCORE_SCHEMA.empty_table(), *parts]).combine_chunks()
        read, tokens = table.num_rows, table.column("tokens").to_numpy()
        judged_rows = read - table.column("loss").null_count
        unread = int((tokens == 0).sum())
        return table, {
            "documents": documents,
            "left_out": documents - read,
            "read": read,
            "judged": judged_rows,
            "unread": unread,
            "not_finite": read - judged_rows - unread,
            "tokens": int(tokens.sum()),
        }

    def _engine(self) -> Engine:
        """The engine on the held checkpoint. Raises RunError if it is no longer the one that was pinned."""
        model = self.folder.parent / "_model"
        engine = open_engine(Reading(**{**self.info["reading"], "model": str(model)}))
        identity = engine.identity()
        for name in ("neural weights", "neural tokenizer"):
            if identity[name] != self.info["engine"][name]:
                raise RunError(f"{model} is not the checkpoint that {self.folder} was begun with: it was overwritten.")
        return engine

    # -- files ---------------------------------------------------------------------------------

    def _path(self, kind: str, shard: Shard) -> Path:
        return self.folder / f"{kind}s" / f"{shard.name}.arrow"

    def _marker_path(self, kind: str, shard: Shard) -> Path:
        return self.folder / "_items" / f"{kind}-{shard.name}.json"

    def _marker(self, kind: str, shard: Shard) -> dict[str, Any] | None:
        """The marker of an item, if it is of this re-score and its file is what it says."""
        path = self._marker_path(kind, shard)
        if not path.exists():
            return None
        try:
            marker: dict[str, Any] = read_json(path)
            if marker.get("identity") != self.identity:
                return None
            open_table(self._path(kind, shard), marker["sha256"], marker["rows"])
        except RunError:
            return None
        return marker

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for shard in self.shards:
            marker = read_json(self._marker_path("score", shard))
            reader = open_table(self._path("score", shard), marker["sha256"], marker["rows"])
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)


_NO_STRATA = pa.schema([("language", pa.string()), ("source", pa.string()), ("documents", pa.int64())])


def _reading(config: ScoreConfig, model: Pinned) -> Reading:
    """How the engine reads with a checkpoint.

    Raises:
        ConfigError: the window is longer than what the model knows.
    """
    window = config.window or min(WINDOW, model.positions or WINDOW)
    if model.positions is not None and window > model.positions:
        raise ConfigError(
            f"window: expected at most {model.positions}, the positions of the checkpoint, found {window}."
        )
    return Reading(
        engine="gpt2",
        model=str(model.folder),
        window=window,
        stride=config.stride or max(1, window * 3 // 4),
        bos=config.bos or model.bos,
        max_windows=config.max_windows,
        dtype=config.dtype,
        device=config.device,
    )


def _shards_digest(run: Run) -> str:
    return digest8([[shard["name"], shard["sha256"]] for shard in run.ingested()["shards"]])


def _ones(n: int) -> pa.Array:
    return pa.array(np.ones(n, np.int64))


def _summed(table: pa.Table) -> pa.Table:
    """`documents` of each language and source, in order of names."""
    grouped = table.group_by(["language", "source"]).aggregate([("documents", "sum")])
    named = grouped.select(["language", "source", "documents_sum"]).rename_columns(_NO_STRATA.names)
    return named.sort_by([("language", "ascending"), ("source", "ascending")]).cast(_NO_STRATA).combine_chunks()


def _keys(table: pa.Table | pa.RecordBatch) -> pa.Array:
    """One text for each language and source: no label holds a NUL."""
    found = pc.binary_join_element_wise(table.column("language"), table.column("source"), "\0")
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _pieces(texts: pa.Array, chosen: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The chosen rows in groups of some megabytes of text."""
    sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)[chosen]
    if len(chosen):
        groups = (np.cumsum(sizes) - sizes) // PIECE_BYTES
        yield from np.split(chosen, np.flatnonzero(np.diff(groups)) + 1)


def _score_table(shard: str, rows: npt.NDArray[np.int64], batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    sizes = pc.binary_length(batch.column("text")).to_numpy(zero_copy_only=False)
    known = (judged.tokens > 0) & np.isfinite(judged.nats)
    loss = np.divide(judged.nats, judged.tokens, out=np.zeros(len(rows)), where=known)
    some = known & (judged.bytes > 0)
    bits = np.divide(judged.nats / np.log(2), judged.bytes, out=np.zeros(len(rows)), where=some)
    values = {
        **{name: batch.column(name) for name in ("doc_id", "text_id", "language", "source", "url")},
        "shard": pa.array([shard] * len(rows), pa.string()),
        "row": pa.array(rows),
        "tokens": pa.array(judged.tokens),
        "loss": pa.array(loss, mask=~known),
        "bits_per_byte": pa.array(bits, mask=~some),
        "share_scored": pa.array(np.minimum(judged.bytes / np.maximum(sizes, 1), 1).astype(np.float32)),
    }
    return pa.table([values[name] for name in SCORE_SCHEMA.names], schema=SCORE_SCHEMA)
