"""What the blacklist is given of a re-score: an entry for each chosen text, signed, and for domains where asked for.

    table = entries_of(rescore, rescore.scores(), chosen, config, when)
    table = entries_of_all(rescores, choose(pa.concat_tables(scores), config), ...)      # runs of one threshold together
    version = blacklist.append(path, table, facts)

Nothing is written here. The same documents in another order give the same entries, in another order. Costs a read of the
shards that hold chosen documents, 15 us a chosen text of 2 kB for its signature, and 5 us a judged document where
domains are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.blacklist.addresses import host_of, normal_domain
from curation.blacklist.entries import SCHEMA, SIGNING, address_key
from curation.blacklist.signature import sign_texts, signing_text
from curation.errors import ConfigError, RunError
from curation.rescore.choose import HIGH, LOW, REASONS, Chosen
from curation.rescore.config import ChooseConfig, DomainConfig
from curation.rescore.score import Rescore
from curation.shards import batches

__all__ = ["domains_of", "entries_of", "entries_of_all"]

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
    ids = together.column("text_id").take(pa.array(rows)).combine_chunks().cast(pa.binary()).dictionary_encode()
    # Copies of a text are one entry: the first.
    _, first = np.unique(ids.indices.to_numpy(zero_copy_only=False), return_index=True)
    rows = rows[np.sort(first)]
    taken = together.take(pa.array(rows)).combine_chunks()
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


def _reasons(side: npt.NDArray[np.int8]) -> pa.Array:
    return pa.array(np.where(side == HIGH, REASONS[HIGH], REASONS[LOW]).astype(object), pa.string())


def _signed(rescore: Rescore, taken: pa.Table) -> Iterator[pa.Array]:
    """Signatures of rows of the scores, in their order, which is that of shards and rows."""
    wanted = taken.column("shard").to_numpy()
    rows = taken.column("row").to_numpy()
    done = 0
    for shard in rescore.shards:
        mine = rows[wanted == shard.name]
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
    urls = scores.column("url").take(pa.array(rows)).to_pylist()
    hosts = np.array([_domain(url) if url else "" for url in urls], object)
    found = domains_of(
        hosts,
        chosen.side[rows],
        [_codes(scores.column(name).take(pa.array(rows))) for name in ("language", "source")],
        settings,
        config.max_share,
    )
    value = scores.column(config.score).to_numpy()[rows]
    names, reasons, medians, evidence = [], [], [], []
    for name in found:
        side = chosen.side[rows][hosts == name]
        end = HIGH if (side == HIGH).sum() >= (side == LOW).sum() else LOW
        names.append(name)
        reasons.append(REASONS[end])
        medians.append(float(np.median(value[hosts == name][side == end])))
        evidence.append(len(side))
    columns = {
        "kind": pa.repeat(pa.scalar("domain"), len(names)),
        "key": pa.array([address_key("domain", name) for name in names], pa.binary(16)),
        "shown": pa.array(names, pa.string()),
        "reason": pa.array(reasons, pa.string()),
        "score": pa.array(medians, pa.float64()),
        "evidence": pa.array(evidence, pa.int32()),
    }
    return _table(columns, same, len(names))


def _domain(url: str) -> str:
    """The normalised domain of an address; "" where it has none."""
    host = host_of(url)
    return (normal_domain(host) or "") if host else ""


def _codes(column: pa.ChunkedArray) -> Int64s:
    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    codes: Int64s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def domains_of(
    hosts: npt.NDArray[np.object_],
    side: npt.NDArray[np.int8],
    guarded: list[Int64s],
    settings: DomainConfig,
    max_share: float,
) -> list[str]:
    """Domains to list, those with the greatest share of chosen documents first.

    One that would block so much, together with the chosen documents and the domains before it, that more than max_share of
    the judged documents of a language or source were gone is left out.

    Args:
        hosts: object[n] of str, of each judged document; "": none.
        side: int8[n], 0 where it was not chosen.
        guarded: codes int64[n] of its language, and of its source.
    """
    names, of = np.unique(hosts.astype(str), return_inverse=True)
    judged = np.bincount(of, minlength=len(names))
    share = np.bincount(of[side != 0], minlength=len(names)) / np.maximum(judged, 1)
    fit = (names != "") & (judged >= settings.min_evidence) & (share >= settings.min_share)
    ranked = np.flatnonzero(fit)[np.argsort(-share[fit], kind="stable")]
    gone: Mask = side != 0
    most = [np.floor(np.bincount(codes) * max_share) for codes in guarded]
    found = []
    for place in ranked.tolist():
        would = gone | (of == place)
        if all(
            (np.bincount(codes[would], minlength=len(m)) <= m).all() for codes, m in zip(guarded, most, strict=True)
        ):
            gone = would
            found.append(str(names[place]))
    return found
