"""The filter `blacklisted`: drops what stands on a version of the blacklist.

Put it first: a document that is dropped later may meanwhile have outlived its copies in `exact` and `near`, and the good
variants of a blacklisted text would be gone with it.

Costs 1 us a document for its text_id, 8 us for its URL where the list has URLs or domains, and for near copies what signing
costs: 15 us for a text of 2 kB, and 5 to 20 us to look for it among a million. Opening: see `curation.blacklist`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.blacklisted.config import BlacklistedConfig
from curation.filters.blacklisted.pin import Opened, check_history, opened, pin, told_of_others
from curation.ids import digest8
from curation.records import ScoreColumn
from curation.shards import groups_by_bytes
from curation.verdicts import Decision, Filter, Step, StepConfig, decide_by_rules

if TYPE_CHECKING:
    from curation.blacklist import Blacklist

__all__ = ["Blacklisted"]

GROUP_BYTES = 8 << 20
"""Text that is signed at a time: its shingles take up to three times as much memory."""
_KINDS = ("text", "near", "url", "domain")
_MATCH = pa.list_(pa.struct([(name, pa.string()) for name in ("kind", "entry", "reason", "score", "what")]))
_ALWAYS = 2**31
"""Evidence of an entry that was made by hand, when entries are compared."""
Int64s = npt.NDArray[np.int64]


class Blacklisted(Filter):
    """Drops blacklisted texts, their near copies, and pages of blacklisted URLs and domains."""

    name: ClassVar[str] = "blacklisted"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "dedup"
    summary: ClassVar[str] = "Drops texts that are blacklisted, their near copies, and blacklisted URLs and domains."
    needs: ClassVar[tuple[str, ...]] = ("text", "text_id", "url")
    reasons: ClassVar[Mapping[str, str]] = {
        "blacklisted.text": "this very text is on the blacklist",
        "blacklisted.near": "its signature agrees with that of a blacklisted text by at least the threshold",
        "blacklisted.url": "its URL is on the blacklist, with at least min_evidence",
        "blacklisted.domain": "its domain, or one above it, is on the blacklist, with at least min_evidence",
    }
    Config: ClassVar[type[StepConfig]] = BlacklistedConfig
    config: BlacklistedConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("text_listed", pa.bool_(), "yes or no", "this very text is on the blacklist"),
            ScoreColumn(
                "agreement", pa.float32(), "share", "of its signature with the nearest blacklisted text, from 0.8"
            ),
            ScoreColumn("url_listed", pa.bool_(), "yes or no", "its URL is on the blacklist"),
            ScoreColumn("url_evidence", pa.int32(), "documents", "that this rests on; none where it was made by hand"),
            ScoreColumn("domain_listed", pa.bool_(), "yes or no", "its domain or one above is on the blacklist"),
            ScoreColumn(
                "domain_evidence", pa.int32(), "documents", "that this rests on; none where it was made by hand"
            ),
            ScoreColumn("matches", _MATCH, "entries", "that speak of it: version/row, reason, score, and of what"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        evidence = [float(self.config.min_evidence)]
        near = {"agreement": [self.config.threshold]} if self.config.near else {}
        return {**near, "url_evidence": evidence, "domain_evidence": evidence}

    def off_reasons(self) -> set[str]:
        """Near copies, where they are not asked for."""
        return set() if self.config.near else {"blacklisted.near"}

    def score_of(self, reason: str) -> str | None:
        scores = ("text_listed", "agreement", "url_evidence", "domain_evidence")
        return dict(zip(self.reasons, scores, strict=True))[reason]

    def score_config(self) -> Mapping[str, Any]:
        """Which list it is, the digest says, wherever it lies."""
        told = self.config.model_dump(mode="json")
        return {name: told[name] for name in ("version", "at", "digest", "near")}

    def pinned(self, root: Path, former: StepConfig | None) -> Step:
        """The step with the version that is the latest now, or with which the run was begun."""
        return Blacklisted(pin(self.config, root, former if isinstance(former, BlacklistedConfig) else None))

    def model_checksums(self) -> Mapping[str, str]:
        """What the settings say: the list itself is looked at by `ready`, so that a run can be explained without it.

        Raises:
            ConfigError: no run has settled the settings.
        """
        if self.config.version is None or self.config.digest is None or self.config.at is None:
            raise ConfigError(
                "blacklisted: path, version, time and digest are settled when a run starts; these are of none. "
                "Start it with `corpusmill run`, or give all four."
            )
        checksums = {"blacklist": self.config.digest}
        if self.config.near and self.config.version:
            from curation.blacklist.signature import signing_text

            checksums["signing"] = digest8(signing_text().decode())
        return checksums

    def ready(self) -> None:
        """Open the list, and write its near index if it is large and has none."""
        self.model_checksums()
        check_history(self.config)
        opened(self.config)

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A step that no run has settled holds nothing; `model_checksums` keeps it out of runs."""
        n = batch.num_rows
        found = {kind: np.full(n, -1, np.int64) for kind in _KINDS}
        agreement = np.full(n, np.nan)
        lists = opened(self.config)
        entries: dict[int, dict[str, Any]] = {}
        if lists is not None:
            agreement = self._look(lists, batch, found)
            entries = _entries(lists.blacklist, np.concatenate(list(found.values())))
            domains = _strongest(lists.blacklist, batch.column("url"), entries)
            found["domain"][list(domains)] = list(domains.values())
        columns: list[pa.Array] = [
            pa.array(found["text"] >= 0),
            pa.array(agreement, pa.float32(), mask=np.isnan(agreement)),
        ]
        for kind in ("url", "domain"):
            rows = found[kind].tolist()
            columns.append(pa.array(found[kind] >= 0))
            columns.append(pa.array([entries[row]["evidence"] if row >= 0 else None for row in rows], pa.int32()))
        columns.append(_matches(found, entries, n))
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def _look(self, lists: Opened, batch: pa.RecordBatch, found: dict[str, Int64s]) -> npt.NDArray[np.float64]:
        """Fill in the rows of entries by text, near copy and URL; returns the agreement of near copies, else nan."""
        agreement = np.full(batch.num_rows, np.nan)
        found["text"][:] = lists.blacklist.lookup(batch.column("text_id"))
        found["url"][:] = lists.blacklist.lookup_pages(batch.column("url"))
        if lists.near is None or not len(lists.near):
            return agreement
        from curation.blacklist.signature import sign_rows

        others = np.flatnonzero(found["text"] < 0)
        texts = batch.column("text").take(pa.array(others))
        for begin, end in groups_by_bytes(texts, GROUP_BYTES):
            ids, share = lists.near.closest(*sign_rows(texts.slice(begin, end - begin)))
            some = ~np.isnan(share)
            places = others[begin:end][some]
            agreement[places] = share[some]
            found["near"][places] = lists.blacklist.lookup(ids[some])
        return agreement

    def decide(self, scores: pa.RecordBatch) -> Decision:
        agreement = scores.column("agreement").to_numpy(zero_copy_only=False).astype(np.float32)
        with np.errstate(invalid="ignore"):  # what has none agrees with nothing
            near = agreement >= np.float32(self.config.threshold)
        hits = {
            "blacklisted.text": scores.column("text_listed").to_numpy(zero_copy_only=False),
            "blacklisted.near": near & self.config.near,
            "blacklisted.url": self._enough(scores, "url"),
            "blacklisted.domain": self._enough(scores, "domain"),
        }
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def _enough(self, scores: pa.RecordBatch, kind: str) -> npt.NDArray[np.bool_]:
        listed = scores.column(f"{kind}_listed").to_numpy(zero_copy_only=False)
        evidence = scores.column(f"{kind}_evidence").fill_null(_ALWAYS - 1).to_numpy(zero_copy_only=False)
        enough: npt.NDArray[np.bool_] = listed & (evidence >= self.config.min_evidence)
        return enough

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """Which version was obeyed, and the reasons of the entries that dropped documents, by what they spoke of."""
        counts: Counter[tuple[str, str]] = Counter()
        for table in tables:
            dropped = table.filter(table.column("reason").is_valid())
            for reason, matches in zip(
                dropped.column("reason").to_pylist(), dropped.column("matches").to_pylist(), strict=True
            ):
                kind = reason.partition(".")[2]
                counts.update((kind, match["reason"]) for match in matches if match["kind"] == kind)
        told = self.config.model_dump(mode="json")
        found: dict[str, Any] = {name: told[name] for name in ("path", "version", "at", "digest")}
        found["dropped_by"] = [
            {"kind": kind, "reason": reason, "documents": n} for (kind, reason), n in sorted(counts.items())
        ]
        lists = opened(self.config)
        if lists is not None and lists.near is not None and lists.near.others:
            found["alarms"] = [told_of_others(lists.near.others)]
        return found


# ---------------------------------------------------------------- entries


def _entries(blacklist: Blacklist, rows: Int64s) -> dict[int, dict[str, Any]]:
    """What the entries of some rows say, by row; -1 is none."""
    some = np.unique(rows[rows >= 0])
    if not len(some):
        return {}
    table = blacklist.take(some, ["kind", "key", "shown", "reason", "score", "evidence"])
    numbers = blacklist.entry_numbers(some).tolist()
    told = table.to_pylist()
    for entry, number in zip(told, numbers, strict=True):
        entry["entry"] = f"{number >> 32}/{number & 0xFFFFFFFF}"
        entry["what"] = entry["shown"] or entry["key"].hex()
    return dict(zip(some.tolist(), told, strict=True))


def _strongest(blacklist: Blacklist, urls: pa.Array, entries: dict[int, dict[str, Any]]) -> dict[int, int]:
    """For each page the entry of its domains that rests on most, the closest of equals: place -> row; adds to `entries`.

    Which one it is must not depend on min_evidence: if any has enough, the one with most has.
    """
    places, rows = blacklist.lookup_domains(urls)
    entries.update(_entries(blacklist, rows))
    best: dict[int, int] = {}
    weight = {row: entries[row]["evidence"] for row in np.unique(rows).tolist()}
    for place, row in zip(places.tolist(), rows.tolist(), strict=True):
        here, before = weight[row], best.get(place)
        if before is None or (_ALWAYS if here is None else here) > (
            _ALWAYS if weight[before] is None else weight[before]
        ):
            best[place] = row
    return best


def _matches(found: Mapping[str, Int64s], entries: Mapping[int, dict[str, Any]], n: int) -> pa.Array:
    """Of each document the entries that speak of it."""
    matches: list[list[dict[str, Any]]] = [[] for _ in range(n)]
    for kind in _KINDS:
        for place in np.flatnonzero(found[kind] >= 0).tolist():
            entry = entries[int(found[kind][place])]
            score = None if entry["score"] is None else repr(entry["score"])
            matches[place].append({**entry, "kind": kind, "score": score})
    return pa.array(matches, _MATCH)
