"""How often the rules of a filter fire, and who can say what is usual: earlier runs, or the shares that ship.

Earlier runs count if they are done, lie under the same root, began before over other inputs, and their step has the same
version, models and settings. Where settings differ only in what single rules are called by, all other rules still count.
"""

from __future__ import annotations

import csv
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from curation.errors import CorpusmillError
from curation.ids import digest8
from curation.pipeline import Pipeline
from curation.report.numbers import noun
from curation.routes import ROUTED_SUFFIX, known_routes
from curation.run import read_json
from curation.steps import PlacedStep, step_class
from curation.verdicts import Step

__all__ = [
    "LEAST_KNOWN",
    "TABLE",
    "Fired",
    "Known",
    "earlier_runs",
    "fired",
    "hits_of",
    "identity",
    "known_shares",
    "off_by_settings",
    "off_reasons",
    "table_rows",
]

log = logging.getLogger("corpusmill")

TABLE = Path(__file__).resolve().parent / "usual_shares.tsv"
LEAST_KNOWN = 1000
"""Documents of earlier runs from which on these say what is usual, and not the table."""
MAX_RUNS = 30
"""Earlier runs that are looked at, newest first."""
_OFF = ("keep", "off")


@dataclass(frozen=True, slots=True)
class Fired:
    """How often each rule of a step fired."""

    documents: int
    """That the step looked at."""
    counts: Mapping[str, int]
    """By reason; of a step that counts every rule that a document breaks (`hits` in its facts), those."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is usual of one rule, and who says it."""

    fired: int
    documents: int
    source: str


def known_shares(placed: PlacedStep, earlier: Sequence[Path]) -> dict[str, Known]:
    """What is usual of the rules of a step, by reason; of rules that nobody knows of, nothing.

    Args:
        earlier: folders of runs, see `earlier_runs`.
    """
    return {**_from_table(placed), **_from_runs(placed, earlier)}


def fired(marker: Mapping[str, Any]) -> Fired:
    """How often the rules of a closed step fired, from its `_done.json`."""
    hits = hits_of(marker["name"], marker.get("facts", {}))
    return Fired(marker["docs_in"], {**marker["dropped"], **(hits or {})})


def hits_of(step: str, facts: Mapping[str, Any]) -> dict[str, int] | None:
    """Documents that break each rule that is on, whatever other rules say, by reason: `hits` of a step's facts.

    None of a step that does not count them.
    """
    hits = facts.get("hits")
    if not isinstance(hits, Mapping):
        return None
    return {rule if rule.startswith(f"{step}.") else f"{step}.{rule}": int(n) for rule, n in hits.items()}


def off_reasons(step: Step, marker: Mapping[str, Any]) -> set[str]:
    """Reasons that a step cannot give with its settings: their silence says nothing.

    A step says so itself (`off_reasons()`), or by the rules that it counts (`hits` in its facts). Of any other: what is
    set aside without an output, and reasons called as a setting that is `keep`, `route:NAME`, `off` or null.
    """
    off = set()
    if not known_routes(step):
        off.add(f"{step.name}{ROUTED_SUFFIX}")
    own = step.off_reasons()
    if own is not None:
        return off | set(own)
    hits = hits_of(step.name, marker.get("facts", {}))
    return off | off_by_settings(step.config.model_dump(mode="json"), step.reasons, hits)


def off_by_settings(
    settings: Mapping[str, Any], reasons: Iterable[str], hits: Mapping[str, int] | None = None
) -> set[str]:
    """Those of a step's reasons that its settings alone show to be off, whatever version of it ran; see `off_reasons`.

    Args:
        hits: as `hits_of` gives them; a step that counts its rules counts those that are on.
    """
    if hits is not None:
        return {reason for reason in reasons if reason not in hits}
    off = set()
    for reason in reasons:
        words = reason.partition(".")[2].split("_")
        names = {"_".join(words), words[-1]}
        if any(_is_off(settings[name]) for name in names if name in settings):
            off.add(reason)
    return off


def _is_off(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str) and (value in _OFF or value.startswith("route:")))


def identity(step: Step, models: Mapping[str, str]) -> str:
    """Digest of what decides how often the rules of a step fire: settings, version, models."""
    return digest8({"version": step.version, "deciding": step.config.deciding(), "models": dict(models)})


def _open_settings(step: Step) -> dict[str, Any]:
    """The settings that differ from the step's defaults, and that decide."""
    left_out = set(step.config.limits)
    return step.config.model_dump(mode="json", exclude_defaults=True, exclude=left_out)


def _from_table(placed: PlacedStep) -> dict[str, Known]:
    """Shares that were counted with the shipped config, of the entry that has most rules in common."""
    best: dict[str, Known] = {}
    for (name, settings, digest), rows in _table().items():
        if name != placed.name:
            continue
        step = _as_counted(name, settings, digest, placed.models)
        if step is None:
            continue
        other = _other_reasons(_settings(step), _settings(placed.step), placed.step.reasons)
        if other is None:
            continue
        found = {
            reason: Known(n, documents, f"{noun(documents, 'document')} of the crawl that the shipped shares are of")
            for reason, (n, documents) in rows.items()
            if reason not in other
        }
        best = max(best, found, key=len)
    return best


def _as_counted(name: str, settings: str, digest: str, models: Mapping[str, str]) -> Step | None:
    """The step that an entry of the table is of; None if it was counted with another version, models or defaults."""
    try:
        step = step_class(name)(step_class(name).Config.model_validate(json.loads(settings)))
    except ValueError:
        return None  # a setting that is no more
    return step if identity(step, models) == digest else None


@cache
def _table() -> Mapping[tuple[str, str, str], Mapping[str, tuple[int, int]]]:
    """Documents that each rule took, and that were looked at, by step, settings and their digest."""
    found: dict[tuple[str, str, str], dict[str, tuple[int, int]]] = defaultdict(dict)
    with TABLE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            entry = found[row["step"], row["settings"], row["digest"]]
            entry[row["reason"]] = (int(row["fired"]), int(row["documents"]))
    return found


def _from_runs(placed: PlacedStep, earlier: Sequence[Path]) -> dict[str, Known]:
    """Shares in earlier runs with these settings, where they looked at enough documents."""
    counts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for folder in earlier:
        try:
            theirs, reasons = _of_run(placed, folder)
        except (CorpusmillError, KeyError, TypeError) as error:
            log.warning("left out while looking for what is usual of %s: %s: %s", placed.name, folder.name, error)
            continue
        for reason in reasons:
            counts[reason].append((theirs.counts.get(reason, 0), theirs.documents))
    found = {}
    for reason, parts in counts.items():
        n, documents = sum(part[0] for part in parts), sum(part[1] for part in parts)
        if documents >= LEAST_KNOWN:
            runs = noun(len(parts), "earlier run")
            found[reason] = Known(n, documents, f"{noun(documents, 'document')} of {runs} with these settings")
    return found


def _of_run(placed: PlacedStep, folder: Path) -> tuple[Fired, set[str]]:
    """How often the rules of the same step fired in another run, and of which of them that can be compared."""
    for line in read_json(folder / "report" / "funnel.json")["steps"]:
        if line["name"] != placed.name:
            continue
        for path in sorted((folder / "steps").glob(f"*-{placed.name}-{line['digest']}/_done.json")):
            other = _other_than_card(placed, read_json(path.parent / "_step.json"))
            if other is not None:
                return fired(read_json(path)), set(placed.step.reasons) - other
    return Fired(0, {}), set()


def _other_than_card(placed: PlacedStep, card: Mapping[str, Any]) -> set[str] | None:
    """Reasons for which an earlier run's step decided otherwise; None: for all, or nobody can say."""
    if card["version"] != placed.step.version or card.get("models", {}) != dict(placed.models):
        return None
    mine = _settings(placed.step)
    theirs = {key: value for key, value in card["config"].items() if key not in placed.step.config.limits}
    thresholds = {name: list(limits) for name, limits in placed.step.thresholds().items()}
    if theirs == mine and card.get("thresholds") != thresholds:
        return None  # the same words, such as a preset, meant other limits
    return _other_reasons(theirs, mine, placed.step.reasons)


def _settings(step: Step) -> dict[str, Any]:
    return step.config.model_dump(mode="json", exclude=set(step.config.limits))


def _other_reasons(theirs: Mapping[str, Any], mine: Mapping[str, Any], reasons: Collection[str]) -> set[str] | None:
    """Reasons that settings which differ are about: those called as them, or named inside of them. None: any may be."""
    rules = {reason.partition(".")[2]: reason for reason in reasons}
    other: set[str] = set()
    for key in {*theirs, *mine}:
        if theirs.get(key) == mine.get(key):
            continue
        named = {rules[name] for name in (key, *_keys(theirs.get(key)), *_keys(mine.get(key))) if name in rules}
        if not named:
            return None
        other |= named
    return other


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)


def earlier_runs(pipeline: Pipeline) -> Iterator[Path]:
    """Folders of runs under the same root that began before this one over other inputs, and are done; newest first."""
    mine = pipeline.run.info
    found = []
    for path in pipeline.run.folder.parent.glob("*/run.json"):
        try:
            info = read_json(path)
            is_other = info["inputs"] != mine["inputs"] and info["run_id"] != mine["run_id"]
            if is_other and info["state"] == "done" and info["start"] < mine["start"] and not info.get("judge_all"):
                found.append((info["start"], path.parent))
        except (CorpusmillError, KeyError, TypeError) as error:
            log.warning("left out while looking for what is usual: %s: %s", path.parent.name, error)
    return islice(_with_funnel(folder for _, folder in sorted(found, reverse=True)), MAX_RUNS)


def _with_funnel(folders: Iterable[Path]) -> Iterator[Path]:
    """The folders of runs whose funnel can be read, which is looked at only as far as runs are asked for."""
    for folder in folders:
        try:
            read_json(folder / "report" / "funnel.json")
        except CorpusmillError as error:
            log.warning("left out while looking for what is usual: %s: %s", folder.name, error)
        else:
            yield folder


def table_rows(entries: Iterable[tuple[Step, Mapping[str, str], Mapping[str, Any]]]) -> Iterator[list[str]]:
    """Rows of `usual_shares.tsv`, the head first.

    Args:
        entries: step, checksums of its models, and its `_done.json`.
    """
    yield ["step", "settings", "digest", "reason", "fired", "documents", "share"]
    for step, models, marker in entries:
        off, found = off_reasons(step, marker), fired(marker)
        settings = json.dumps(_open_settings(step), sort_keys=True)
        for reason in step.reasons:
            if reason not in off and found.documents:
                n = found.counts.get(reason, 0)
                numbers = [str(n), str(found.documents), f"{n / found.documents:.6f}"]
                yield [step.name, settings, identity(step, models), reason, *numbers]
