"""Near-duplicates: no two kept documents have Jaccard > t, and every dropped one names a kept one that has.

Four passes, then the verdicts:

    sign     a shard's documents -> MinHash band keys, SimHash, place in the order of priority
    bucket   a range of the hashes over all shards -> links between documents that share a band key, or
             whose SimHash differs in few bits; a bucket of k documents gives k - 1 links
    cluster  all links -> clusters of candidates, spread over the items of the next pass
    verify   the texts of some clusters -> exact sets of shingles, the greedy choice by priority

Buckets only propose: what counts is the exact Jaccard of two documents of a cluster, whichever link joined
them. Two documents are missed if no chain of links joins them, with less than 1 - `recall` of probability
at the threshold and far less above it (`minhash.choose_bands`).

The kept set is a function of the documents and the config, not of files, chunks, workers or the order of either; the
last grain of chance is in docs/decisions/0006.

Memory: `memory_mb` bounds the keys of one bucket item and the sets of one verify item. `cluster` needs up
to 24 bytes for each document, of all runs together (10 where two of five have a copy), and the run is refused
beforehand where that is too much. Disk while it runs: `sign` 64 + 10 * bands bytes a document, which stay, for
runs against this one; links 8 bytes for each document in each of its shared buckets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from curation.dedup import buckets, facts
from curation.dedup.against import earlier_parts, identity
from curation.dedup.clusters import Clusters, Forest, spread, weights_of
from curation.dedup.minhash import Bands, choose_bands
from curation.dedup.parts import Part, ShardPart, firsts
from curation.dedup.priority import Priority, missing_scores, parsed
from curation.dedup.shingles import BY_CHARACTER
from curation.dedup.sign import Signing, sign_shard
from curation.dedup.verify import FOUND_BY, Verifier
from curation.errors import ConfigError, RunError, nearest
from curation.records import PARTNER_COLUMNS, ScoreColumn
from curation.shards import alive_mask, write_table
from curation.steps import StepContext
from curation.verdicts import DataSetStep, Decision, Step, StepConfig

__all__ = ["Near", "NearConfig"]

_BYTES_PER_VALUE = 48
"""Peak memory of `verify` for each shingle held: sets as read, in order of priority, and the index of a large cluster."""
_VALUES_PER_TEXT_BYTE = 0.4
"""Shingles of a text for each of its bytes, about: one for each character of Chinese (3 bytes), one a word elsewhere."""
_VERIFY_ITEMS = (16, 256)
"""At least, so that a small corpus is verified by more than one worker; at most, since each item opens every signature
file, and each shard's verdicts every item. More texts than fit into memory are read in several batches."""
_BATCHES_PER_ITEM = 8
"""Times that one item of `verify` would fill its memory if all documents were candidates; a quarter is much."""
_BYTES_PER_MEMBER = 200
"""Memory of `verify` for each member of its largest cluster, beside its shingles: place in the order, ids, verdict."""


class NearConfig(StepConfig):
    """What counts as a near-duplicate, and which copy stays."""

    limits: ClassVar[frozenset[str]] = frozenset({"alarm_group_share", "max_dropped_share"})
    paths: ClassVar[frozenset[str]] = frozenset({"against"})

    threshold: float = Field(default=0.9, ge=0.5, lt=1)
    """Jaccard of the sets of shingles above which, strictly, two documents are near-duplicates. At most six decimals."""
    shingle: int = Field(default=5, ge=1, le=32)
    """Words, or characters of scripts written without blanks, in a shingle. Five are usual (FineWeb, text-dedup)."""
    by_character: tuple[str, ...] = BY_CHARACTER
    """Scripts that are cut by character where they are more than 30 % of a text's letters and digits; the rest by word."""
    num_perm: int = Field(default=128, ge=16, le=1024)
    """Permutations of a MinHash signature."""
    recall: float = Field(default=0.999, ge=0.5, lt=1)
    """Share of pairs at the threshold itself that must become candidates: decides bands and rows."""
    simhash_distance: int | None = Field(default=3, ge=0, le=7)
    """SimHash fingerprints that differ in at most this many of 64 bits make candidates, too. null: no SimHash."""
    keep: tuple[str, ...] = ("longest",)
    """Which copy stays: criteria in order; the next one decides where the one before does not. docs/how-to has them all."""
    sources: tuple[str, ...] = ()
    """For `source_rank`: patterns of input paths or page addresses, best first (`*` and `?` as in a shell)."""
    date_field: str = "date"
    """For `newest` and `oldest`: field of the record that holds a date (ISO 8601, or seconds or milliseconds since 1970)."""
    against: tuple[str, ...] = ()
    """Earlier runs (their folders) or exported signature indexes: what stands at their end outranks this run's documents.
    A relative path begins at the config file's folder."""
    alarm_group_share: float = Field(default=0.01, gt=0, le=1)
    """The report and the log raise an alarm where one group holds more than this share of the documents, and at least 100."""
    max_dropped_share: float = Field(default=1, gt=0, le=1)
    """The run stops for a look where a larger share of the documents is dropped."""

    @field_validator("threshold")
    @classmethod
    def _six_decimals(cls, value: float) -> float:
        if round(value, 6) != value:
            raise ValueError("at most six decimals, so that the comparison is exact")
        return value

    @field_validator("by_character")
    @classmethod
    def _scripts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in BY_CHARACTER:
                raise ValueError(
                    f"no such script {name!r}{nearest(name, BY_CHARACTER)}: expected some of {', '.join(BY_CHARACTER)}"
                )
        return tuple(sorted(set(value)))

    @field_validator("keep")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("a criterion stands twice; the second one never decides")
        return tuple(parsed(criterion) for criterion in value)

    @model_validator(mode="after")
    def _enough(self) -> NearConfig:
        if "source_rank" in self.keep and not self.sources:
            raise ValueError("keep has source_rank, which needs `sources`: patterns of paths or addresses, best first")
        try:
            choose_bands(self.threshold, self.num_perm, self.recall)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


class Near(DataSetStep):
    """Keeps one of each group of documents with nearly the same text."""

    name: ClassVar[str] = "near"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "dedup"
    summary: ClassVar[str] = "Drops documents that share more than `threshold` of their shingles with a kept one."
    needs: ClassVar[tuple[str, ...]] = ("text", "text_id", "doc_id", "source", "url", "meta")
    reasons: ClassVar[Mapping[str, str]] = {
        "near.duplicate_of_earlier": "a document that an earlier run kept has Jaccard > threshold with it",
        "near.duplicate": "another document of this run, which is kept, has Jaccard > threshold with it",
    }
    Config: ClassVar[type[StepConfig]] = NearConfig
    config: NearConfig
    passes: ClassVar[tuple[str, ...]] = ("sign", "bucket", "cluster", "verify")
    lasting: ClassVar[tuple[str, ...]] = ("sign",)

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        found_by = ScoreColumn(
            "found_by", pa.string(), "signature", "which signatures it shares with the kept document"
        )
        return (*PARTNER_COLUMNS, found_by)

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {"similarity": [self.config.threshold]}

    def model_checksums(self) -> Mapping[str, str]:
        return identity(self.config.against)

    def ready(self) -> None:
        """Open what `against` names: what was signed in another way is refused before the first input is read."""
        earlier_parts(self.config.against, self.signing)

    def misses(self, before: Sequence[Step]) -> list[str]:
        scores = {step.name: [score.name for score in step.score_columns if _is_number(score)] for step in before}
        return missing_scores(self.config.keep, scores, f"steps.{self.name}.keep")

    @cached_property
    def bands(self) -> Bands:
        """The shape of the signatures."""
        return choose_bands(self.config.threshold, self.config.num_perm, self.config.recall)

    @property
    def signing(self) -> Signing:
        return Signing(self.config.shingle, self.config.num_perm, *self.bands, self.config.by_character)

    @cached_property
    def earlier(self) -> list[Part]:
        """What earlier runs kept."""
        return earlier_parts(self.config.against, self.signing)

    def parts(self, context: StepContext) -> list[Part]:
        """This run's shards, once they are signed, and then the parts of earlier runs."""
        return [*(ShardPart(i, context, self.signing) for i in range(len(context.shards))), *self.earlier]

    def bucket_plan(self, context: StepContext) -> buckets.Plan:
        """How the hashes are cut into items. Counts documents that may have been dropped before, or have no shingle."""
        documents = sum(shard.rows for shard in context.shards) + sum(part.n for part in self.earlier)
        return buckets.plan(documents, self.bands.bands, self.config.simhash_distance, context.memory_mb)

    def max_values(self, context: StepContext) -> int:
        """Shingles that one item of `verify` may hold."""
        return context.memory_mb * 2**20 // 2 // _BYTES_PER_VALUE

    def n_items(self, pass_name: str, context: StepContext) -> int:
        if not context.shards:
            return 0
        if pass_name == "sign":
            return len(context.shards)
        if pass_name == "bucket":
            return self.bucket_plan(context).n_items
        if pass_name == "cluster":
            return 1
        values = sum(shard.text_bytes for shard in context.shards) * _VALUES_PER_TEXT_BYTE
        least, most = _VERIFY_ITEMS
        wanted = -(-int(values) // (_BATCHES_PER_ITEM * self.max_values(context)))
        return min(max(wanted, min(least, len(context.shards))), most)

    def run_item(self, pass_name: str, item: int, context: StepContext) -> None:
        work = {"sign": self._sign, "bucket": self._bucket, "cluster": self._cluster, "verify": self._verify}
        durable = pass_name in self.lasting  # the others are made anew if a crash of the machine cuts them
        write_table(context.item_path(pass_name, item), work[pass_name](item, context), durable=durable)

    def _sign(self, item: int, context: StepContext) -> pa.Table:
        shard = context.shards[item]
        config = self.config
        priority = Priority(config.keep, config.sources, config.date_field, item, shard, context.earlier)
        return sign_shard(shard, alive_mask(context.previous, shard), self.signing, priority)

    def _bucket(self, item: int, context: StepContext) -> pa.Table:
        return buckets.links_of_item(item, self.bucket_plan(context), self.parts(context), len(context.shards))

    def _cluster(self, item: int, context: StepContext) -> pa.Table:
        parts = self.parts(context)
        clusters = self._clusters(parts, context)
        self._refuse_giant(int(np.diff(clusters.starts).max(initial=0)), context)
        weights = weights_of(clusters, np.concatenate([part.column("n_shingles").to_numpy() for part in parts]))
        items = spread(clusters.starts, weights, self.n_items("verify", context))
        del weights
        return buckets.cluster_table(clusters, items)

    def _clusters(self, parts: Sequence[Part], context: StepContext) -> Clusters:
        forest = Forest(int(firsts(parts)[-1]))
        for bucket in range(self.n_items("bucket", context)):
            links = context.open_item("bucket", bucket)
            for batch in links.to_batches():
                forest.add(batch.column("a").to_numpy(), batch.column("b").to_numpy())
        return forest.clusters()

    def _refuse_giant(self, size: int, context: StepContext) -> None:
        """A cluster is verified by one item, which holds something of every member, though not its text."""
        need_mb = 2 * size * _BYTES_PER_MEMBER // 2**20
        if need_mb > context.memory_mb:
            raise RunError(
                f"near: {size:,} documents are linked into one cluster of candidates, which needs {need_mb:,} MB to verify; "
                f"memory_mb is {context.memory_mb:,}. Set memory_mb to {need_mb:,} or more, or look whether a field other "
                "than the text was read: a corpus seldom is that much alike."
            )

    def _verify(self, item: int, context: StepContext) -> pa.Table:
        table = context.open_item("cluster", 0)
        begin, end = np.searchsorted(table.column("item").to_numpy(), [item, item + 1])
        numbers = table.column("number").to_numpy()[begin:end]
        first = table.column("first").to_numpy()[begin:end]
        starts = np.append(np.flatnonzero(first), len(numbers))
        verifier = Verifier(
            parts=self.parts(context),
            n_new=len(context.shards),
            threshold_ppm=round(self.config.threshold * 10**6),
            bands=self.bands.bands,
            distance=self.config.simhash_distance,
            max_values=self.max_values(context),
        )
        return verifier.groups(numbers, starts)

    def verdicts(self, shard: int, context: StepContext) -> tuple[Decision, pa.RecordBatch]:
        """Spread the groups that touch one shard over its rows."""
        alive = alive_mask(context.previous, context.shards[shard])
        parts = []
        for item in range(self.n_items("verify", context)):
            groups = context.open_item("verify", item)
            begin, end = np.searchsorted(groups.column("part").to_numpy(), [shard, shard + 1])
            parts.append(groups.slice(begin, end - begin))
        groups = pa.concat_tables(parts).combine_chunks()
        places = (np.cumsum(alive) - 1)[groups.column("row").to_numpy()]
        dropped = ~groups.column("keep").to_numpy().astype(np.bool_)
        reason = np.full(int(alive.sum()), -1, np.int16)
        earlier = groups.column("earlier").to_numpy().astype(np.bool_)
        names = list(self.reasons)
        codes = np.where(earlier, names.index("near.duplicate_of_earlier"), names.index("near.duplicate"))
        reason[places[dropped]] = codes[dropped]
        decision = Decision(keep=reason < 0, reason=reason)
        return decision, self._scores(groups, places, reason < 0)

    def _scores(self, groups: pa.Table, places: Any, keep: Any) -> pa.RecordBatch:
        """Score columns of all living rows of a shard from its rows in `groups`."""
        source = np.full(len(keep), -1, np.int64)
        source[places] = np.arange(len(places))
        rows = pa.array(source, mask=keep)
        sizes = np.ones(len(keep), np.int32)
        sizes[places] = groups.column("group_size").to_numpy()
        names = pa.array(FOUND_BY).take(groups.column("found_by").combine_chunks())
        columns = [
            groups.column("kept_doc_id").take(rows).combine_chunks(),
            groups.column("similarity").take(rows).combine_chunks(),
            pa.array(sizes),
            names.take(rows),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def preflight(self, context: StepContext) -> dict[str, Any]:
        return facts.preflight(self, context)

    def facts(self, context: StepContext) -> dict[str, Any]:
        return facts.facts(self, context)


def _is_number(score: ScoreColumn) -> bool:
    """Whether documents can be put in order by a score."""
    return bool(pa.types.is_integer(score.type) or pa.types.is_floating(score.type) or pa.types.is_boolean(score.type))
