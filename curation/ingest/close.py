"""Closing ingest: the markers of all parts become one, the law is checked in total, and damage is weighed.

Costs a read of the markers. `_done.json` is written only if the run may go on: a retry that finds none
closes again and fails again, instead of passing by what was wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.errors import InputError, LawError, RunError
from curation.ingest.config import IngestConfig
from curation.ingest.part import marker_path, part_digest
from curation.ingest.plan import Plan
from curation.ingest.record import HARMLESS, USUAL, printable
from curation.run import read_json, write_json

__all__ = ["close_ingest"]

_WORST = 5


def close_ingest(
    *, shards: Path, quarantine: Path, inputs_path: Path, plan: Plan, config: IngestConfig
) -> dict[str, Any]:
    """Write `inputs.json` and `shards/_done.json` from the parts' markers.

    Returns:
        What `_done.json` holds: files, bytes, lines, documents, quarantined, blank_lines, damaged_files,
        ignored_files, notes, shards, seconds (summed over the parts), peak_rss_mb, parts.

    Raises:
        RunError: parts are missing or were made from another plan or config.
        LawError: documents were lost or invented.
        InputError: more than `max_quarantine_share` of the records could not be read, or more than
            `max_damaged_share` of the bytes lie in damaged files. Everything but `_done.json` is written then.
    """
    markers = _markers(shards, plan, config)
    inputs = _inputs(markers, plan)
    write_json(inputs_path, inputs)
    bad: Counter[str] = Counter()
    for one in inputs:
        bad.update(one["bad"])
    done = {
        "files": len(inputs),
        "bytes": sum(one["bytes"] for one in inputs),
        "lines": sum(entry["records"] for marker in markers for entry in marker["inputs"]),
        "documents": sum(shard["rows"] for marker in markers for shard in marker["shards"]),
        "quarantined": dict(bad.most_common()),
        "blank_lines": sum(entry["blank_lines"] for marker in markers for entry in marker["inputs"]),
        "damaged_files": sum(bool(one["damaged"]) for one in inputs),
        "ignored_files": len(plan.ignored),
        "notes": list(plan.notes),
        "shards": [shard for marker in markers for shard in marker["shards"]],
        "seconds": round(sum(marker["seconds"] for marker in markers), 3),
        "peak_rss_mb": max((marker["peak_rss_mb"] for marker in markers), default=0.0),
        "parts": len(markers),
    }
    _check_law(done)
    _check_shares(done, inputs, quarantine, config)
    write_json(shards / "_done.json", done)
    return done


def _markers(shards: Path, plan: Plan, config: IngestConfig) -> list[dict[str, Any]]:
    """The marker of every part of the plan, in order."""
    markers, missing = [], []
    for part in plan.parts:
        path = marker_path(shards, part.index)
        marker = read_json(path) if path.exists() else None
        if marker is None or marker["digest"] != part_digest(part, config):
            missing.append(part.index)
        else:
            markers.append(marker)
    if missing:
        shown = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise RunError(
            f"ingest cannot be closed: of {len(plan.parts):,} parts, {len(missing):,} are not done ({shown}). "
            "Run the same command again: it does those only."
        )
    return markers


def _inputs(markers: Sequence[Mapping[str, Any]], plan: Plan) -> list[dict[str, Any]]:
    """What each input file held, in the order of the plan."""
    by_source: dict[str, list[Mapping[str, Any]]] = {one.source: [] for one in plan.inputs}
    for marker in markers:
        for entry in marker["inputs"]:
            by_source[entry["source"]].append(entry)
    return [
        {
            "source": one.source,
            "kind": one.kind,
            "bytes": one.size,
            "mtime": one.mtime,
            "sha256": one.sha256 or entries[0]["sha256"],
            "lines_good": sum(entry["documents"] for entry in entries),
            "lines_bad": sum(sum(entry["quarantined"].values()) for entry in entries),
            "bad": _summed(entry["quarantined"] for entry in entries),
            "damaged": list(dict.fromkeys(reason for entry in entries for reason in entry["damaged"])),
            "notes": _summed(entry["notes"] for entry in entries),
            "example": next((entry["example"] for entry in entries if entry["example"]), None),
        }
        for one, entries in ((one, by_source[one.source]) for one in plan.inputs)
    ]


def _summed(counts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(sorted(total.items()))


def _check_law(done: Mapping[str, Any]) -> None:
    bad = sum(done["quarantined"].values())
    if done["lines"] != done["documents"] + bad:
        raise LawError(
            f"{done['lines']:,} records were read, but the shards hold {done['documents']:,} documents and the quarantine "
            f"{bad:,} records. This is a fault of ingest; please report it."
        )


def _check_shares(
    done: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], quarantine: Path, config: IngestConfig
) -> None:
    """Weigh the damage by records and by bytes: of a file that broke, nobody knows how many records are gone.

    Raises:
        InputError: there is too much of one or both.
    """
    faults = [*_record_fault(done, inputs, quarantine, config), *_byte_fault(done, inputs, quarantine, config)]
    if faults:
        raise InputError("\n".join(faults))  # each line of it is printable


def _record_fault(
    done: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], quarantine: Path, config: IngestConfig
) -> Iterator[str]:
    lost = sum(map(_lost, inputs))
    bad, total = sum(_weighed(done["quarantined"]).values()) + lost, done["lines"] + lost
    if bad <= config.max_quarantine_share * total:
        return
    hidden = f", {lost:,} of them hidden by damage of their files" if lost else ""
    worst = sorted((one for one in inputs if _n_bad(one)), key=lambda one: (-_n_bad(one), one["source"]))
    yield (
        f"{bad:,} of {total:,} records ({bad / total:.1%}) could not be read{hidden}; "
        f"ingest.max_quarantine_share allows {config.max_quarantine_share:.1%}. The worst files:\n"
        + _listed(worst, _describe, quarantine)
        + f"\nEach record lies with its place and bytes in {quarantine}. Mend or leave out the files, or, if this is "
        "as expected, raise ingest.max_quarantine_share and run the same command again."
    )


def _byte_fault(
    done: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], quarantine: Path, config: IngestConfig
) -> Iterator[str]:
    broken = [one for one in inputs if _broken(one)]
    n_bytes, total = sum(one["bytes"] for one in broken), done["bytes"]
    if n_bytes <= config.max_damaged_share * total:
        return
    worst = sorted(broken, key=lambda one: (-one["bytes"], one["source"]))
    yield (
        f"{len(broken):,} damaged files hold {n_bytes:,} of {total:,} input bytes ({n_bytes / total:.1%}); "
        f"ingest.max_damaged_share allows {config.max_damaged_share:.1%}. The biggest of them:\n"
        + _listed(worst, _describe_file, quarantine)
        + f"\nWhat is wrong with each stands in {quarantine}. Fetch them anew, mend or leave them out, or, if what could "
        "be read of them is enough, raise ingest.max_damaged_share and run the same command again."
    )


def _listed(worst: Sequence[Mapping[str, Any]], describe: Callable[[Mapping[str, Any]], str], quarantine: Path) -> str:
    lines = [printable(describe(one)) for one in worst[:_WORST]]
    if len(worst) > _WORST:
        lines.append(f"  and {len(worst) - _WORST:,} more files, see {quarantine.parent / 'inputs.json'}")
    return "\n".join(lines)


def _weighed(bad: Mapping[str, int]) -> dict[str, int]:
    """The counts that speak of damage: without what every sound crawl holds."""
    return {reason: n for reason, n in bad.items() if reason not in USUAL}


def _lost(one: Mapping[str, Any]) -> int:
    """Records of a file that were never seen, where the file says how many they are."""
    return int(one["notes"].get("rows_lost", 0))


def _n_bad(one: Mapping[str, Any]) -> int:
    return sum(_weighed(one["bad"]).values()) + _lost(one)


def _broken(one: Mapping[str, Any]) -> list[str]:
    """The reasons for which a file counts as damaged: what may have cost records."""
    return [reason for reason in one["damaged"] if reason not in HARMLESS]


def _describe(one: Mapping[str, Any]) -> str:
    bad = Counter(_weighed(one["bad"]))
    lost = _lost(one)
    if lost:
        bad[_broken(one)[0]] += lost
    reason = max(bad, key=lambda name: (bad[name], name))
    total = one["lines_good"] + one["lines_bad"] + lost
    return f"  {one['source']}: {sum(bad.values()):,} of {total:,}, mostly {reason}{_example(one, bad)}"


def _describe_file(one: Mapping[str, Any]) -> str:
    reasons = _broken(one)
    records = one["lines_good"] + one["lines_bad"]
    what = f"{', '.join(reasons)}, {records:,} records were found in it"
    return f"  {one['source']}: {one['bytes']:,} bytes, {what}{_example(one, reasons)}"


def _example(one: Mapping[str, Any], reasons: Container[str]) -> str:
    example = one["example"]
    if not example or example["reason"] not in reasons:
        return ""
    line = "" if example["line"] is None else f":{example['line']}"
    return f", for example {one['source']}{line}: {example['reason']}: {example['detail']}"
