"""Distributions of the scores of a re-score, in bins that never change, so that one re-score can be laid over another.

A row of the scores stands for as many documents as its stratum (a language in a source) has for each that was read: a
sampled crawl is weighted back. Only **judged** documents count: enough tokens were scored, and the score is finite.
Sums are rounded to six digits, so that the order of files cannot show. Costs a sort for each kind of group: 1 s for a
million documents, and some 150 bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.report.rescore_threshold import Threshold
from curation.rescore.config import ChooseConfig

__all__ = ["BINS", "KINDS", "MAX_GROUPS", "QUANTILES", "Bins", "Scored", "dense", "scored", "spreads"]

Doubles = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

QUANTILES = (5, 25, 50, 75, 95)
MAX_GROUPS = 200
"""Languages, or sources, that are told apart: the largest by documents; the others are one group."""
KINDS = ("language", "source", "run")


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of one width; what lies beyond either end counts in the outermost."""

    low: float
    width: float
    n: int

    def of(self, values: Doubles) -> Int64s:
        """The bin of each finite value: int64[n]."""
        # Divided and not compared with edges, so that the same number is in the same bin in every report.
        return np.clip(np.floor((values - self.low) / self.width), 0, self.n - 1).astype(np.int64)


BINS = {
    "bits_per_byte": Bins(0.0, 0.05, 240),
    "loss": Bins(0.0, 0.1, 200),
    "centred": Bins(-4.0, 0.05, 160),
}
"""centred: bits per byte less the median of its group, which takes the level away and leaves the shape."""


@dataclass(frozen=True)
class Scored:
    """All scores of a threshold, a row a document that was read: arrays of n."""

    bits_per_byte: Doubles
    loss: Doubles
    tokens: Doubles
    """Of the whole document, estimated where windows were chosen."""
    weight: Doubles
    """Documents that a row stands for."""
    judged: npt.NDArray[np.bool_]
    side: npt.NDArray[np.int8]
    """1: chosen as noise, -1: as boilerplate, 0: not chosen."""
    names: dict[str, list[str]]
    """For each of `KINDS` its names, in order of the alphabet."""
    codes: dict[str, Int64s]
    """For each of `KINDS` the place of a row's name."""
    documents: dict[str, Int64s]
    """Documents of each name, read or not."""


def scored(threshold: Threshold) -> Scored:
    """The scores of all runs of a threshold, with what each row stands for."""
    tables = [run.scores.select(["doc_id", "language", "source", "tokens", "loss", "bits_per_byte", "share_scored"])
              .append_column("run", pa.repeat(pa.scalar(run.run_id), run.scores.num_rows)) for run in threshold.runs]  # fmt: skip
    whole = pa.concat_tables(tables) if tables else _EMPTY.empty_table()
    tokens = pc.fill_null(whole.column("tokens"), 0).to_numpy().astype(np.float64)
    values = {name: _doubles(whole.column(name)) for name in ("bits_per_byte", "loss", "share_scored")}
    least = int(threshold.setting("choose").get("min_tokens") or ChooseConfig().min_tokens)
    judged = np.isfinite(values["bits_per_byte"]) & np.isfinite(values["loss"]) & (tokens >= least)
    share = values["share_scored"]
    names, codes = {}, {}
    for kind in KINDS:
        names[kind], codes[kind] = _coded(whole.column(kind), _planned(threshold, kind))
    weight, documents = _weights(threshold, names, codes)
    return Scored(
        bits_per_byte=values["bits_per_byte"],
        loss=values["loss"],
        tokens=tokens / np.where(np.isfinite(share) & (share > 0), share, 1.0),
        weight=weight,
        judged=judged,
        side=_sides(threshold, whole),
        names=names,
        codes=codes,
        documents=documents,
    )


_EMPTY = pa.schema(
    [(name, pa.string()) for name in KINDS]
    + [("doc_id", pa.binary(16)), ("tokens", pa.int64())]
    + [(name, pa.float64()) for name in ("bits_per_byte", "loss", "share_scored")]
)


def _doubles(column: pa.ChunkedArray) -> Doubles:
    return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy())


def _coded(column: pa.ChunkedArray, planned: set[str]) -> tuple[list[str], Int64s]:
    """All names, also those of which the plan read nothing, in order of the alphabet; and the place of each row's."""
    encoded = pc.fill_null(column.cast(pa.string()), "").combine_chunks().dictionary_encode()
    found: list[str] = encoded.dictionary.to_pylist()
    names = sorted({*found, *planned})
    where = {name: place for place, name in enumerate(names)}
    places = np.array([where[name] for name in found], np.int64)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return names, places[codes] if len(places) else np.zeros(0, np.int64)


def _planned(threshold: Threshold, kind: str) -> set[str]:
    """Names of the plans."""
    plans = [(run.run_id, run.plan) for run in threshold.runs if run.plan is not None and run.plan.num_rows]
    if kind == "run":
        return {run_id for run_id, _ in plans}
    return {name or "" for _, plan in plans for name in pc.unique(plan.column(kind)).to_pylist()}


def _sides(threshold: Threshold, whole: pa.Table) -> npt.NDArray[np.int8]:
    """What was chosen, by run and doc_id."""
    side = np.zeros(whole.num_rows, np.int8)
    for run in sorted(set(threshold.chosen.column("run_id").to_pylist())):
        mine = threshold.chosen.filter(pc.equal(threshold.chosen.column("run_id"), run))
        rows = np.flatnonzero(pc.equal(whole.column("run"), run).to_numpy(zero_copy_only=False))
        ids = whole.column("doc_id").take(pa.array(rows)).combine_chunks().cast(pa.binary())
        place = pc.index_in(ids, mine.column("doc_id").combine_chunks().cast(pa.binary()))
        found = pc.fill_null(place, -1).to_numpy(zero_copy_only=False)
        chosen = mine.column("side").to_numpy()
        side[rows[found >= 0]] = chosen[found[found >= 0]]
    return side


def _weights(
    threshold: Threshold, names: dict[str, list[str]], codes: dict[str, Int64s]
) -> tuple[Doubles, dict[str, Int64s]]:
    """Documents that each row stands for, and documents of each name.

    A stratum of which nothing was read has documents that no row stands for.
    """
    n_sources = max(1, len(names["source"]))
    n = len(codes["run"])
    pair = (codes["run"] * max(1, len(names["language"])) + codes["language"]) * n_sources + codes["source"]
    strata, of = np.unique(pair, return_inverse=True)
    read = np.bincount(of, minlength=len(strata))
    size = read.astype(np.float64)
    planned = {run.run_id: run.plan for run in threshold.runs if run.plan is not None}
    documents = {kind: np.zeros(len(names[kind]), np.int64) for kind in KINDS}
    place = {kind: {name: code for code, name in enumerate(names[kind])} for kind in KINDS}
    where = {int(code): index for index, code in enumerate(strata)}
    for run_id, plan in sorted(planned.items()):
        for row in plan.to_pylist():
            named = {"language": row["language"] or "", "source": row["source"] or "", "run": run_id}
            code = {kind: place[kind].get(named[kind], -1) for kind in KINDS}
            for kind, index in code.items():
                if index >= 0:
                    documents[kind][index] += row["documents"]
            key = (code["run"] * max(1, len(names["language"])) + code["language"]) * n_sources + code["source"]
            if min(code.values()) >= 0 and key in where:
                size[where[key]] = row["documents"]
    for kind in KINDS:
        seen = np.bincount(codes[kind], minlength=len(names[kind])).astype(np.int64)
        documents[kind] = np.maximum(documents[kind], seen)
    return (size / np.maximum(read, 1))[of] if n else np.zeros(0), documents


# -- distributions -----------------------------------------------------------------------------


def spreads(whole: Scored) -> dict[str, Any]:
    """Distributions of all documents, and by language, source and run: what facts.json holds of them."""
    rows = np.arange(len(whole.weight))
    everything = _group(whole, rows, "all", int(sum(whole.documents["run"].tolist())))
    found: dict[str, Any] = {"all": everything}
    for kind in KINDS:
        names, documents = whole.names[kind], whole.documents[kind]
        ranked = sorted(range(len(names)), key=lambda code: (-int(documents[code]), names[code]))
        order = np.argsort(whole.codes[kind], kind="stable")
        ends = np.cumsum(np.bincount(whole.codes[kind], minlength=len(names)))
        starts = ends - np.bincount(whole.codes[kind], minlength=len(names))
        groups = [
            _group(whole, order[starts[code] : ends[code]], names[code], int(documents[code]))
            for code in ranked[:MAX_GROUPS]
        ]
        others = ranked[MAX_GROUPS:]
        rest = None
        if others:
            some = np.flatnonzero(np.isin(whole.codes[kind], others))
            rest = {**_group(whole, some, "", int(documents[others].sum())), "groups": len(others)}
        found[kind] = {"groups": groups, "rest": rest}
    return found


def _group(whole: Scored, rows: Int64s, name: str, documents: int) -> dict[str, Any]:
    """One group: how many, how its scores lie, and its mean loss."""
    judged = rows[whole.judged[rows]]
    side, weight = whole.side[rows], whole.weight[judged]
    found: dict[str, Any] = {
        "name": name,
        "documents": documents,
        "read": len(rows),
        "judged": len(judged),
        "tokens": _rounded(float((whole.tokens[rows] * whole.weight[rows]).sum())),
        "chosen_high": int((side == 1).sum()),
        "chosen_low": int((side == -1).sum()),
        **_mean_loss(whole, judged[whole.side[judged] == 0]),
    }
    for score in ("bits_per_byte", "loss"):
        values = getattr(whole, score)[judged]
        quantiles = _quantiles(values, weight)
        found[score] = {"quantiles": quantiles, "counts": _counts(BINS[score], values, weight)}
        if score == "bits_per_byte":
            middle = quantiles[QUANTILES.index(50)] if quantiles else 0.0
            found[score]["centred"] = _counts(BINS["centred"], values - middle, weight)
            found[score]["chosen"] = _counts(BINS[score], values[whole.side[judged] != 0], None)
    return found


def _mean_loss(whole: Scored, rows: Int64s) -> dict[str, float | None]:
    """Loss for each token, and its standard error; of what was not chosen, for that will be gone."""
    weight = whole.weight[rows] * whole.tokens[rows]
    total = float(weight.sum())
    if not total:
        return {"mean_loss": None, "mean_loss_error": None}
    mean = float((weight * whole.loss[rows]).sum()) / total
    error = float(np.sqrt((weight**2 * (whole.loss[rows] - mean) ** 2).sum())) / total
    return {"mean_loss": _rounded(mean), "mean_loss_error": _rounded(error)}


def _quantiles(values: Doubles, weight: Doubles) -> list[float]:
    """`QUANTILES`: the smallest value that at least so many percent of the weight do not exceed; empty if there are none."""
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    # Rounded before: half of the weight must be half of it, in whatever order it was added up.
    cumulative = np.round(np.cumsum(weight[order]) / weight.sum(), 9)
    places = np.searchsorted(cumulative, np.array(QUANTILES) / 100)
    return [_rounded(float(values[order[min(int(at), len(values) - 1)]])) for at in places]


def _counts(bins: Bins, values: Doubles, weight: Doubles | None) -> dict[str, Any]:
    """Counts by bin, without the empty ones at both ends: the number of the first, and from there on."""
    found = np.bincount(bins.of(values), weight, minlength=bins.n)
    some = np.flatnonzero(found)
    if not len(some):
        return {"first": 0, "counts": []}
    return {"first": int(some[0]), "counts": [_rounded(float(one)) for one in found[some[0] : some[-1] + 1]]}


def dense(bins: Bins, counts: dict[str, Any]) -> Doubles:
    """Counts as `spreads` wrote them, of every bin: float64[bins.n]."""
    found = np.zeros(bins.n)
    part = np.array(counts["counts"], np.float64)[: max(0, bins.n - int(counts["first"]))]
    found[int(counts["first"]) : int(counts["first"]) + len(part)] = part
    return found


def _rounded(number: float) -> float:
    """Six digits; whole numbers as such."""
    found = float(f"{number:.6g}")
    return int(found) if found.is_integer() and abs(found) < 2**53 else found
