"""Which judged documents go on the blacklist: those at both ends of the scores, and never too many.

Pure and vectorised over the scores; the answer does not depend on their order. A document is **judged** if enough of its
tokens were scored and its score is finite; nothing else is ever chosen. Percentiles are taken within a group: a
language, or a language in a source. What lies beyond all that is set for an end is a **candidate**; then the guards hold
back:

- a group with fewer than `min_documents` judged documents gives none (a percentile of few says nothing);
- of a language, and of a source, at most `max_share` of its judged documents are chosen, in whole documents: those
  farthest beyond their limit, in interquartile ranges of their group, so that groups can be compared; ties by doc_id.

An entry names a text, so it drops all its copies: what is chosen is a text, as far out as the farthest of its documents
is, with every judged document that has it, of any language, source and group. There must be room for all of them.

A percentile as the perplexity filter's: the smallest score that at least so many percent do not exceed; for the low end
the largest that at least so many percent do not fall below. Documents on it are not beyond it, so equal scores give none.

Costs sorting: 0.5 s for a million documents on an idle core, and some 100 bytes each; and 2 us a candidate.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.rescore.config import ChooseConfig, Tails

__all__ = ["HIGH", "LOW", "REASONS", "Chosen", "choose", "coded"]

Doubles = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LOW, HIGH = -1, 1
REASONS = {HIGH: "rescore.high_loss", LOW: "rescore.low_loss"}
SCALE_FLOOR = 1e-12
"""Spread of a group whose middle half has one score: distances then only order its documents."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen of n documents."""

    side: npt.NDArray[np.int8]
    """int8[n]: HIGH, LOW, or 0."""
    judged: Mask
    """bool[n]"""
    groups: pa.Table
    """Of each language and source, in order of names: language, source, documents, judged, too_few (its group is below
    min_documents), median; for high and low: limit (null: none), candidates (with copies), chosen, held_back."""

    def counts(self) -> dict[str, int]:
        """Totals of `groups`."""
        names = ("documents", "judged", *(f"{end}_{name}" for end in ("high", "low") for name in _COUNTS))
        return {name: int(pc.sum(self.groups.column(name)).as_py() or 0) for name in names}


_COUNTS = ("candidates", "chosen", "held_back")


@dataclass(frozen=True)
class _Group:
    """Limits of the groups within which percentiles are taken; float64[n_groups] each, inf and -inf where there is none."""

    high: Doubles
    low: Doubles
    median: Doubles
    spread: Doubles
    judged: Int64s


def choose(scores: pa.Table, config: ChooseConfig) -> Chosen:
    """Choose among documents.

    Args:
        scores: with the columns doc_id, text_id, language, source, tokens, and the one that `config.score` names;
            a row a document.
    """
    value = scores.column(config.score).to_numpy().astype(np.float64)
    tokens = pc.fill_null(scores.column("tokens"), 0).to_numpy()
    judged = np.isfinite(value) & (tokens >= config.min_tokens)
    language, languages = coded(scores.column("language"))
    source, sources = coded(scores.column("source"))
    pair = language * max(1, len(sources)) + source
    pairs, pair = np.unique(pair, return_inverse=True)
    if config.group == "language":
        group, of_group = language, np.arange(len(languages))
    else:
        group, of_group = pair, pairs // max(1, len(sources))
    limits = _limits(value, judged, group, [config.tails(languages[code]) for code in of_group])
    enough = judged & (limits.judged[group] >= config.min_documents)
    candidate = np.zeros(len(value), np.int8)
    candidate[enough & (value > limits.high[group])] = HIGH
    candidate[enough & (value < limits.low[group])] = LOW
    order = _order(scores.column("doc_id"), value, limits, group, candidate)
    rows, text, firsts = _with_copies(scores.column("text_id"), order, judged)
    candidate[rows] = candidate[firsts[text]]
    guards = [
        (code[rows], np.floor(np.bincount(code[judged], minlength=n) * config.max_share).astype(np.int64))
        for code, n in ((language, len(languages)), (source, len(sources)))
    ]
    side = np.zeros(len(value), np.int8)
    taken = rows[_fitting(text, guards)]
    side[taken] = candidate[taken]
    group_of_pair = np.zeros(len(pairs), np.int64)
    group_of_pair[pair] = group
    names = {
        "language": pa.array([languages[code] for code in pairs // max(1, len(sources))], pa.string()),
        "source": pa.array([sources[code] for code in pairs % max(1, len(sources))], pa.string()),
    }
    table = _table(names, pair, limits, group_of_pair, judged, candidate, side, config.min_documents)
    return Chosen(side, judged, table)


def coded(column: pa.ChunkedArray) -> tuple[Int64s, list[str]]:
    """Codes of texts in the order of the alphabet: int64[n], and the texts. A null is an empty text."""
    # First the codes, then one chunk: the texts themselves may be more than the 2 GiB that one array holds.
    encoded = pc.fill_null(column.cast(pa.string()), "").dictionary_encode().combine_chunks()
    names: list[str] = encoded.dictionary.to_pylist()
    place = np.argsort(np.argsort(np.array(names, object), kind="stable"), kind="stable")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return (place[codes] if len(names) else np.zeros(0, np.int64)).astype(np.int64), sorted(names)


def _limits(value: Doubles, judged: Mask, group: Int64s, tails: list[Tails]) -> _Group:
    """Limits of each group from its judged documents."""
    n = len(tails)
    rows = np.flatnonzero(judged)
    rows = rows[np.lexsort((value[rows], group[rows]))]
    ordered = value[rows]
    counts = np.bincount(group[rows], minlength=n).astype(np.int64)
    starts = np.cumsum(counts) - counts

    def at(percent: Doubles, *, from_above: bool = False) -> Doubles:
        """float64[n]; nan for a group of none."""
        # Rounded before: 99 % of 100 must be 99, whatever binary numbers make of it.
        ranks = np.ceil(np.round((100 - percent if from_above else percent) / 100 * counts, 6)).astype(np.int64)
        ranks = np.clip(ranks, 1, np.maximum(counts, 1)) - 1
        places = starts + (counts - 1 - ranks if from_above else ranks)
        return (
            np.where(counts > 0, ordered[np.clip(places, 0, max(0, len(ordered) - 1))], np.nan)
            if len(rows)
            else np.full(n, np.nan)
        )

    middle = [at(np.full(n, percent)) for percent in (25.0, 50.0, 75.0)]
    median, spread = np.nan_to_num(middle[1]), np.nan_to_num(middle[2] - middle[0])

    def edge(name: str, none: float) -> Doubles:
        """The farthest of what is set for an end."""
        percent, fixed, spreads = (_set(tails, name, setting) for setting in ("percentile", "limit", "spreads"))
        found = np.where(np.isnan(percent), np.nan, at(np.nan_to_num(percent), from_above=name == "low"))
        away = median + spreads * spread * (1 if name == "high" else -1)
        farther = np.fmax if name == "high" else np.fmin
        farthest = farther(farther(found, fixed), away)
        return np.where(np.isnan(farthest), none, farthest)

    return _Group(edge("high", np.inf), edge("low", -np.inf), median, np.maximum(spread, SCALE_FLOOR), counts)


def _set(tails: list[Tails], end: str, setting: str) -> Doubles:
    """One setting of an end, of each group: float64[n_groups], nan where it is left out."""
    found = [getattr(getattr(one, end), setting) for one in tails]
    return np.array([np.nan if one is None else one for one in found], np.float64)


def _order(
    doc_ids: pa.ChunkedArray, value: Doubles, limits: _Group, group: Int64s, candidate: npt.NDArray[np.int8]
) -> Int64s:
    """Rows of the candidates, the farthest out first, those equally far by doc_id."""
    rows = np.flatnonzero(candidate)
    of, high = group[rows], candidate[rows] == HIGH
    # Beyond the limit, not from the median: of a source that is all noise, its own median says nothing.
    distance = np.abs(value[rows] - np.where(high, limits.high[of], limits.low[of])) / limits.spread[of]
    table = pa.table({"distance": distance, "doc_id": doc_ids.take(pa.array(rows)).cast(pa.binary())})
    places = pc.sort_indices(table, sort_keys=[("distance", "descending"), ("doc_id", "ascending")])
    found: Int64s = rows[places.to_numpy().astype(np.int64)]
    return found


def _with_copies(text_ids: pa.ChunkedArray, order: Int64s, judged: Mask) -> tuple[Int64s, Int64s, Int64s]:
    """The texts of the candidates, numbered from the farthest out on, with all that have them.

    Returns:
        Rows of the judged documents, by text; the text of each; and of each text the row of its farthest document.
    """
    ids = text_ids.cast(pa.binary())
    of_order = ids.take(pa.array(order)).combine_chunks().dictionary_encode()  # codes in order of appearance
    _, first = np.unique(of_order.indices.to_numpy(zero_copy_only=False), return_index=True)
    found = pc.fill_null(pc.index_in(ids, of_order.dictionary), -1).to_numpy().astype(np.int64)
    rows = np.flatnonzero(judged & (found >= 0))
    rows = rows[np.argsort(found[rows], kind="stable")]
    return rows, found[rows], order[first]


def _fitting(text: Int64s, guards: list[tuple[Int64s, Int64s]]) -> Mask:
    """Whether each document's text is taken: in turn, each for all documents of which there is room: bool[n].

    Args:
        text: int64[n], ascending: documents of one text stand together.
        guards: codes int64[n], and how many documents of each code may be taken.
    """
    fits = np.zeros(len(text), np.bool_)
    left = [most.tolist() for _, most in guards]
    borders = [0, *(np.flatnonzero(np.diff(text)) + 1).tolist(), len(text)] if len(text) else [0]
    codes = [memoryview(code.tobytes()).cast("q") for code, _ in guards]  # half the time of numpy's own look-ups
    for start, end in itertools.pairwise(borders):
        for row in range(start, end):
            for of, room in zip(codes, left, strict=True):
                room[of[row]] -= 1
        if all(room[of[row]] >= 0 for row in range(start, end) for of, room in zip(codes, left, strict=True)):
            fits[start:end] = True
            continue
        for row in range(start, end):
            for of, room in zip(codes, left, strict=True):
                room[of[row]] += 1
    return fits


def _table(
    names: dict[str, pa.Array], pair: Int64s, limits: _Group, group: Int64s, judged: Mask,
    candidate: npt.NDArray[np.int8], side: npt.NDArray[np.int8], min_documents: int,
) -> pa.Table:  # fmt: skip
    """`Chosen.groups`. group: int64[n_pairs], of each language and source."""
    n = len(group)
    some = limits.judged[group] > 0
    columns: dict[str, Any] = {
        **names,
        "documents": np.bincount(pair, minlength=n),
        "judged": np.bincount(pair[judged], minlength=n),
        "too_few": limits.judged[group] < min_documents,
        "median": pa.array(limits.median[group], mask=~some),
    }
    for name, end, edge in (("high", HIGH, limits.high), ("low", LOW, limits.low)):
        candidates = np.bincount(pair[candidate == end], minlength=n)
        chosen = np.bincount(pair[side == end], minlength=n)
        columns |= {
            f"{name}_limit": pa.array(edge[group], mask=~np.isfinite(edge[group])),
            f"{name}_candidates": candidates,
            f"{name}_chosen": chosen,
            f"{name}_held_back": candidates - chosen,
        }
    return pa.table(columns)
