"""What the blacklist is given of a re-score: an entry for each chosen text, signed, and for domains where asked for.

    table = entries_of(rescore, rescore.scores(), chosen, config, when)
    table = entries_of_all(rescores, choose(pa.concat_tables(scores), config), ...)      # runs of one threshold together
    version = blacklist.append(path, table, facts)

Nothing is written here. The same documents in another order give the same entries, in another order. Costs a read of the
shards that hold chosen documents, 15 us a chosen text of 2 kB for its signature, and 5 us a judged document where
domains are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.blacklist.addresses import host_of, normal_domain, parents
from curation.blacklist.entries import SCHEMA, SIGNING, address_key
from curation.blacklist.signature import sign_texts, signing_text
from curation.errors import ConfigError, RunError
from curation.rescore.choose import HIGH, LOW, REASONS, Chosen, coded
from curation.rescore.config import ChooseConfig, DomainConfig
from curation.rescore.score import Rescore
from curation.shards import batches

__all__ = ["domains_of", "entries_of", "entries_of_all"]

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ROWS_AT_ONCE = 1 << 16
"""Addresses that are Python's texts at once."""


def entries_of(rescore: Rescore, scores: pa.Table, chosen: Chosen, config: ChooseConfig, when: datetime) -> pa.Table:
    """`entries_of_all` of one run."""
    return entries_of_all([rescore], [scores], chosen, config, when)


def entries_of_all(
    rescores: Sequence[Rescore], scores: Sequence[pa.Table], chosen: Chosen, config: ChooseConfig, when: datetime
) -> pa.Table:
    """Entries with the columns of `curation.blacklist.entries.SCHEMA`, and in the metadata how they were signed.

    Args:
        rescores: of one threshold, at least one.
        scores: `scores()` of each; `chosen` speaks of all of them, one after the other.
        when: time of the entries; with a time zone.

    Raises:
        RunError: a shard is not the one that was scored.
        ConfigError: domains are asked for, but cannot come to be.
    """
    info = rescores[0].info
    expires = None if config.expires_days is None else when + timedelta(days=config.expires_days)
    same = {
        "training_run": info["training_run"],
        "tokens_seen": info["tokens_seen"],
        "model": info["checkpoint_sha256"],
        "time": when,
        "expires": expires,
        "removed": False,
        "note": f"scored in {len(rescores)} runs at {info['threshold']:,} tokens",
    }
    if len(rescores) == 1:
        same["note"] = _note(rescores[0])
    together = pa.concat_tables(scores)
    parts = [_texts(rescores, scores, together, chosen, config, same)]
    if config.domains is not None:
        if rescores[0].config.source == "domain" and config.max_share < config.domains.min_share:
            raise ConfigError(
                f"domains.min_share ({config.domains.min_share:g}) of a domain must be chosen, but a domain is a source here, "
                f"and max_share ({config.max_share:g}) chooses less. Score with another `source`, or leave `domains` out."
            )
        parts.append(_domains(together, chosen, config, config.domains, same))
    return pa.concat_tables(parts).combine_chunks().replace_schema_metadata({SIGNING: signing_text()})


def _note(rescore: Rescore) -> str:
    return f"scored in run {rescore.run.run_id} at {rescore.info['threshold']:,} tokens"


def _table(columns: dict[str, Any], same: dict[str, Any], n: int) -> pa.Table:
    arrays = [
        columns[field.name].cast(field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(same.get(field.name), field.type), n)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


# -- texts -------------------------------------------------------------------------------------


def _texts(
    rescores: Sequence[Rescore], scores: Sequence[pa.Table], together: pa.Table, chosen: Chosen, config: ChooseConfig,
    same: dict[str, Any],
) -> pa.Table:  # fmt: skip
    rows = np.flatnonzero(chosen.side)
    ids = _some(together.select(["text_id"]), rows).column(0).combine_chunks().cast(pa.binary()).dictionary_encode()
    # Copies of a text are one entry: the first.
    _, first = np.unique(ids.indices.to_numpy(zero_copy_only=False), return_index=True)
    rows = rows[np.sort(first)]
    names = ["text_id", "shard", "row", "language", "source", config.score]
    taken = _some(together.select(names), rows).combine_chunks()
    ends = np.cumsum([one.num_rows for one in scores])
    of = np.searchsorted(ends, rows, side="right")
    signatures = [
        signed
        for place, rescore in enumerate(rescores)
        for signed in _signed(rescore, taken.filter(pa.array(of == place)))
    ]
    notes = pa.array([_note(one) for one in rescores], pa.string())
    columns = {
        "kind": pa.repeat(pa.scalar("text"), len(rows)),
        "key": taken.column("text_id"),
        "shown": pa.repeat(pa.scalar(""), len(rows)),
        "signature": pa.concat_arrays([pa.array([], pa.binary()), *signatures]),
        "reason": _reasons(chosen.side[rows]),
        "score": taken.column(config.score),
        "language": taken.column("language"),
        "source": taken.column("source"),
        "note": notes.take(pa.array(of)),
    }
    return _table(columns, same, len(rows))


def _some(table: pa.Table, rows: Int64s) -> pa.Table:
    """Rows in ascending order: a mask, for `take` would put all chunks of a text column together, which 2 GiB forbid."""
    mask = np.zeros(table.num_rows, np.bool_)
    mask[rows] = True
    return table.filter(pa.array(mask))


def _reasons(side: npt.NDArray[np.int8]) -> pa.Array:
    return pa.array(np.where(side == HIGH, REASONS[HIGH], REASONS[LOW]).astype(object), pa.string())


def _signed(rescore: Rescore, taken: pa.Table) -> Iterator[pa.Array]:
    """Signatures of rows of the scores, in their order, which is that of shards and rows."""
    rows = taken.column("row").to_numpy()
    codes, names = coded(taken.column("shard"))
    # Rows stand in the order of shards: those of each are one run of the same code.
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    runs = dict(
        zip((names[code] for code in codes[starts]), zip(starts, [*starts[1:], len(rows)], strict=False), strict=True)
    )
    done = 0
    for shard in rescore.shards:
        first, end = runs.get(shard.name, (0, 0))
        mine = rows[first:end]
        if not len(mine):
            continue
        for start, batch in batches(shard, ["text_id", "text"]):
            some = mine[(mine >= start) & (mine < start + batch.num_rows)] - start
            if not len(some):
                continue
            part = batch.take(pa.array(some))
            if not part.column("text_id").equals(_binary(taken.column("text_id").slice(done, len(some)))):
                raise RunError(f"{shard.path} does not hold the documents that were scored. Score the run anew.")
            done += len(some)
            yield sign_texts(part.column("text"))
    if done != len(rows):
        raise RunError(f"run {rescore.run.run_id} has lost {len(rows) - done} of the chosen documents. Score it anew.")


def _binary(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


# -- domains -----------------------------------------------------------------------------------


def _domains(
    scores: pa.Table, chosen: Chosen, config: ChooseConfig, settings: DomainConfig, same: dict[str, Any]
) -> pa.Table:
    rows = np.flatnonzero(chosen.judged)
    side = chosen.side[rows]
    value = scores.column(config.score).to_numpy()[rows]
    hosts, of = _hosts(scores, chosen.judged)
    guarded = [coded(scores.column(name))[0][rows] for name in ("language", "source")]
    found = domains_of(hosts, of, side, guarded, settings, config.max_share)
    reasons, medians = [], []
    for below in found.values():
        mine = side[below]
        end = HIGH if (mine == HIGH).sum() >= (mine == LOW).sum() else LOW
        reasons.append(REASONS[end])
        medians.append(float(np.median(value[below][mine == end])))
    columns = {
        "kind": pa.repeat(pa.scalar("domain"), len(found)),
        "key": pa.array([address_key("domain", name) for name in found], pa.binary(16)),
        "shown": pa.array(list(found), pa.string()),
        "reason": pa.array(reasons, pa.string()),
        "score": pa.array(medians, pa.float64()),
        "evidence": pa.array([len(below) for below in found.values()], pa.int32()),
    }
    return _table(columns, same, len(found))


def _hosts(scores: pa.Table, judged: Mask) -> tuple[dict[str, int], Int64s]:
    """A code for each host that may be a domain ("": none), and those of the judged documents: int64[n_judged]."""
    codes: dict[str, int] = {}
    parts, start = [np.zeros(0, np.int64)], 0
    for batch in scores.select(["url"]).to_batches(max_chunksize=ROWS_AT_ONCE):
        urls = batch.column(0).filter(pa.array(judged[start : start + batch.num_rows])).to_pylist()
        start += batch.num_rows
        found = (_domain(url) if url else "" for url in urls)
        parts.append(np.fromiter((codes.setdefault(host, len(codes)) for host in found), np.int64, len(urls)))
    return codes, np.concatenate(parts)


def _domain(url: str) -> str:
    """The normalised domain of an address; "" where it has none."""
    host = host_of(url)
    return (normal_domain(host) or "") if host else ""


def domains_of(
    hosts: Mapping[str, int],
    of: Int64s,
    side: npt.NDArray[np.int8],
    guarded: Sequence[Int64s],
    settings: DomainConfig,
    max_share: float,
) -> dict[str, Int64s]:
    """Domains to list, those with the greatest share of chosen documents first, and the rows of the documents below each.

    A domain is a host of some document; what counts for it are the documents of all hosts that the list would drop with
    it, as `lookup_urls` does: its own, and those below it. One that would block so much, together with the chosen documents
    and the domains before it, that more than max_share of the judged documents of a language or source were gone, is left
    out.

    Args:
        hosts: normalised, each with its code; "": none.
        of: int64[n], code of the host of each judged document.
        side: int8[n], 0 where it was not chosen.
        guarded: codes int64[n] of its language, and of its source.
    """
    n = len(hosts)
    own, own_chosen = np.bincount(of, minlength=n), np.bincount(of[side != 0], minlength=n)
    judged, chosen = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for host, code in hosts.items():
        for domain in _listed_by(host, hosts):
            judged[domain] += own[code]
            chosen[domain] += own_chosen[code]
    share = chosen / np.maximum(judged, 1)
    fit = (judged >= settings.min_evidence) & (share >= settings.min_share)
    below: dict[int, list[int]] = {code: [] for code in np.flatnonzero(fit).tolist()}
    for host, code in hosts.items() if below else ():
        for domain in _listed_by(host, hosts):
            if fit[domain]:
                below[domain].append(code)
    rows = np.argsort(of, kind="stable")
    ends = np.cumsum(own)
    room = _Room(side != 0, guarded, max_share)
    names = sorted((-share[code], host) for host, code in hosts.items() if code in below)
    found = {}
    for _, host in names:
        mine = np.concatenate([rows[ends[code] - own[code] : ends[code]] for code in below[hosts[host]]])
        if room.take(mine):
            found[host] = np.sort(mine)
    return found


def _listed_by(host: str, hosts: Mapping[str, int]) -> Iterator[int]:
    """Codes of the domains whose entry drops the pages of a host."""
    return (hosts[one] for one in parents(host) if one in hosts) if host else iter(())


class _Room:
    """How many documents of each language and source may still go."""

    def __init__(self, gone: Mask, guarded: Sequence[Int64s], max_share: float) -> None:
        self.gone = gone
        self.guarded = guarded
        self.left = [
            np.floor(np.bincount(codes) * max_share)
            - np.bincount(codes[gone], minlength=int(codes.max(initial=-1)) + 1)
            for codes in guarded
        ]

    def take(self, rows: Int64s) -> bool:
        """Let the documents of some rows go, if there is room for all that are not gone yet."""
        new = rows[~self.gone[rows]]
        counts = [np.unique(codes[new], return_counts=True) for codes in self.guarded]
        if any((n > left[which]).any() for (which, n), left in zip(counts, self.left, strict=True)):
            return False
        self.gone[new] = True
        for (which, n), left in zip(counts, self.left, strict=True):
            left[which] -= n
        return True
