"""What `near` says about itself: an estimate before it runs, and what it found when it is done."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.dedup.minhash import candidate_probability, signatures
from curation.dedup.priority import LAST
from curation.dedup.verify import FOUND_BY
from curation.errors import RunError
from curation.shards import alive_mask, batches
from curation.steps import StepContext

if TYPE_CHECKING:
    from curation.dedup.near import Near

__all__ = ["CLUSTER_BYTES", "facts", "preflight"]

CLUSTER_BYTES = 24
"""Peak memory of the pass `cluster` for each document, where all stand in pairs: members, borders, items, the table."""
_LINK_BYTES = 16
"""Links and clusters of each document where few are copies; where all are, ten times as much."""
_BASE_MB = 250
"""Of a worker before it holds anything: interpreter, Arrow, kernels."""
_SAMPLED_SHARDS = 3
_SAMPLED_BYTES = 2**18
_ALARM_AT_LEAST = 100
"""Documents below which no group is worth an alarm, whatever its share."""
_SAYS_NOTHING = {
    "newest": "date_field: it must name a field of the records",
    "oldest": "date_field: it must name a field of the records",
    "source_rank": "sources: its patterns must fit whole paths or addresses, as */news/* does",
}
_CURVE_AT = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def preflight(step: Near, context: StepContext) -> dict[str, Any]:
    """Disk, memory and time that the passes will need, from the size of the corpus and a sample of its texts.

    Raises:
        RunError: the memory or the disk will not do; the message says how much is needed.
    """
    documents = sum(shard.rows for shard in context.shards)
    everything = documents + sum(part.n for part in step.earlier)
    disk = documents * (64 + 10 * step.bands.bands) + everything * _LINK_BYTES
    need_mb = _BASE_MB + everything * CLUSTER_BYTES // 2**20
    if need_mb > context.memory_mb:
        raise RunError(
            f"near: {everything:,} documents need {need_mb:,} MB for the pass `cluster`, and memory_mb is "
            f"{context.memory_mb:,}. Set memory_mb to {need_mb:,} or more (the same run goes on), or run the inputs in "
            "several runs, each with `against` the ones before."
        )
    context.folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(context.folder).free
    if disk > free:
        raise RunError(
            f"near: its files need about {disk // 2**20:,} MB in {context.folder}, where {free // 2**20:,} MB are free. "
            "Free some space, or put the root on another disk, then run the same command again."
        )
    seconds = _seconds_to_sign(step, context)
    return {
        "summary": f"{everything:,} documents, about {disk / 2**20:,.0f} MB of disk while it runs, {need_mb:,} MB or more of "
        f"memory a worker, {seconds:,.0f} s of one core to sign and about as much again for the rest",
        "documents": documents,
        "earlier_documents": everything - documents,
        "disk_mb": round(disk / 2**20, 1),
        "memory_mb": need_mb,
        "sign_seconds": round(seconds, 1),
    }


def _seconds_to_sign(step: Near, context: StepContext) -> float:
    """Seconds of one worker for the pass `sign`, by the speed of a sample; the other passes take about as long again."""
    signing = step.signing
    sampled = seconds = 0.0
    every = max(1, len(context.shards) // _SAMPLED_SHARDS)
    for shard in context.shards[::every][:_SAMPLED_SHARDS]:
        _, batch = next(batches(shard, ["text"]), (0, None))
        if batch is None or batch.num_rows == 0:
            continue
        texts = batch.column(0)
        texts = texts.slice(0, max(1, len(texts) * _SAMPLED_BYTES // max(texts.nbytes, 1)))
        # The first call loads the kernels, also those for what must be normalised by Python.
        signatures(signing.shingles(pa.array(["e\u0301"], pa.large_string())), signing.num_perm)
        begun = time.perf_counter()
        signatures(signing.shingles(texts), signing.num_perm)
        seconds += time.perf_counter() - begun
        sampled += pc.sum(pc.binary_length(texts)).as_py() or 0
    return seconds * sum(shard.text_bytes for shard in context.shards) / sampled if sampled else 0.0


def facts(step: Near, context: StepContext) -> dict[str, Any]:
    """What was found, from the files of the passes.

    Raises:
        RunError: more than `max_dropped_share` of the documents were dropped.
    """
    documents = sum(int(alive_mask(context.previous, shard).sum()) for shard in context.shards)
    signed = sum(context.open_item("sign", i).num_rows for i in range(len(context.shards)))
    links: Counter[str] = Counter()
    for item in range(step.n_items("bucket", context)):
        table = context.open_item("bucket", item)
        links[(table.schema.metadata or {})[b"kind"].decode()] += table.num_rows
    found_by, largest, dropped = _groups(step, context)
    if dropped > step.config.max_dropped_share * documents:
        raise RunError(
            f"near would drop {dropped:,} of {documents:,} documents, which is more than max_dropped_share "
            f"({step.config.max_dropped_share:g}). Look at its verdicts (corpusmill explain, report); raise the limit to go on."
        )
    clusters = context.open_item("cluster", 0).column("first") if context.shards else None
    starts = np.flatnonzero(clusters.to_numpy()) if clusters is not None else np.zeros(0, np.int64)
    sizes = np.diff(np.append(starts, len(clusters) if clusters is not None else 0))
    return {
        "threshold": step.config.threshold,
        "shingle": step.config.shingle,
        "by_character": list(step.config.by_character),
        "keep": list(step.config.keep),
        "num_perm": step.config.num_perm,
        "bands": step.bands.bands,
        "rows": step.bands.rows,
        "simhash_distance": step.config.simhash_distance,
        "curve": [
            [at, float(candidate_probability(at, *step.bands))] for at in sorted({*_CURVE_AT, step.config.threshold})
        ],
        "documents": documents,
        "without_shingles": documents - signed,
        "earlier_documents": sum(part.n if part.kept is None else int(part.kept.sum()) for part in step.earlier),
        "links": dict(sorted(links.items())),
        "clusters": len(sizes),
        "largest_cluster": int(sizes.max(initial=0)),
        "found_by": found_by,
        "largest_group": largest,
        "alarms": [*_giant_group(step, largest, documents), *_silent_criteria(step, context, signed)],
    }


def _groups(step: Near, context: StepContext) -> tuple[dict[str, int], dict[str, Any] | None, int]:
    """Dropped documents by the signature that found them, the largest group, and how many were dropped."""
    found: Counter[str] = Counter()
    largest: dict[str, Any] | None = None
    for item in range(step.n_items("verify", context)):
        groups = context.open_item("verify", item)
        dropped = groups.filter(pc.invert(groups.column("keep")))
        counts = np.bincount(dropped.column("found_by").to_numpy(), minlength=len(FOUND_BY))
        found.update({name: int(count) for name, count in zip(FOUND_BY, counts, strict=True)})
        if groups.num_rows:
            sizes = groups.column("group_size").to_numpy()
            ids = groups.column("kept_doc_id").take(np.flatnonzero(sizes == sizes.max())).to_pylist()
            one = {"size": int(sizes.max()), "kept_doc_id": min(ids).hex()}
            if largest is None or (-one["size"], one["kept_doc_id"]) < (-largest["size"], largest["kept_doc_id"]):
                largest = one
    return dict(found), largest, sum(found.values())


def _silent_criteria(step: Near, context: StepContext, signed: int) -> list[str]:
    """A sentence for each criterion of `keep` that says nothing about any document: a wrong name, as a rule."""
    silent = np.ones(len(step.config.keep), np.bool_)
    for i in range(len(context.shards)):
        places = context.open_item("sign", i).column("priority").combine_chunks().flatten().to_numpy()
        silent &= (places.reshape(-1, max(1, len(silent)))[:, : len(silent)] == LAST).all(axis=0)
    return [
        f"keep has {criterion!r}, which says nothing about any of {signed:,} documents: it decided nowhere. "
        f"Look at {_SAYS_NOTHING.get(criterion, 'the scores of that step')}."
        for criterion, nothing in zip(step.config.keep, silent, strict=True)
        if nothing and signed
    ]


def _giant_group(step: Near, largest: dict[str, Any] | None, documents: int) -> list[str]:
    if largest is None or largest["size"] < max(_ALARM_AT_LEAST, step.config.alarm_group_share * documents):
        return []
    sentence = (
        f"one group of near-duplicates holds {largest['size']:,} of {documents:,} documents "
        f"({largest['size'] / documents:.1%}); its kept document is {largest['kept_doc_id']}. Look whether they are "
        "copies indeed: a template, an error page or a wrong field can look like this."
    )
    return [sentence]
