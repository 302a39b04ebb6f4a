"""facts.json of a re-score: all numbers of its report, as plain data, the same whoever computes them.

The next re-score's report lays itself over these, so the bins never change within a format. A former re-score whose
facts are missing, damaged or of another format is left out, and named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.report.rescore_drift import drift
from curation.report.rescore_later import later_runs
from curation.report.rescore_mix import suggest
from curation.report.rescore_spread import BINS, KINDS, QUANTILES, scored, spreads
from curation.report.rescore_threshold import Threshold

__all__ = [
    "FORMAT",
    "MAX_BEHIND",
    "collect_facts",
    "facts_path",
    "former_facts",
    "read_facts",
    "read_summary",
    "summary_of",
    "tokens",
]

FORMAT = 1
MAX_BEHIND = 3
"""Former re-scores that are drawn group by group, and compared with."""
_SCORED = ("documents", "left_out", "read", "judged", "unread", "not_finite", "tokens", "seconds", "peak_rss_mb")


def tokens(number: float) -> str:
    """`10 B`, `200 k`, `1.25 T`: tokens as people name them."""
    for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.4g} {letter}"
    return f"{number:.0f}"


def read_facts(folder: Path) -> dict[str, Any]:
    """facts.json of a threshold.

    Raises:
        OSError: there is none.
        ValueError: it is damaged, or of another format.
    """
    facts = _checked(facts_path(folder))
    if set(facts["distributions"]) != {"all", *KINDS}:
        raise ValueError("its distributions are not whole")
    return facts


def read_summary(folder: Path) -> dict[str, Any]:
    """summary.json of a threshold: of facts.json the few kB that a page about many re-scores needs. Raises as `read_facts`."""
    path = facts_path(folder).with_name("summary.json")
    return _checked(path) if path.exists() else summary_of(read_facts(folder))


def summary_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What summary.json holds of the facts."""
    found = {name: facts[name] for name in ("format", *_NEEDED)}
    found["guards"] = {"totals": facts["guards"]["totals"]}
    found["distributions"] = {"all": facts["distributions"]["all"]}
    return found


def _checked(path: Path) -> dict[str, Any]:
    facts = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ValueError(
            f"expected format {FORMAT}, found {facts.get('format') if isinstance(facts, dict) else None!r}"
        )
    # Half a former re-score would look like drift.
    if absent := [name for name in _NEEDED if not isinstance(facts.get(name), _NEEDED[name])]:
        raise ValueError(f"it lacks {', '.join(absent)}")
    if "all" not in facts["distributions"] or "tokens_seen" not in facts["entry"]:
        raise ValueError("its distributions or its entry are not whole")
    return facts


_NEEDED: dict[str, type] = {
    "training_run": str, "threshold": int, "entry": dict, "state": str, "guards": dict, "decision": dict, "published": dict,
    "distributions": dict,
}  # fmt: skip


def former_facts(threshold: Threshold) -> tuple[list[dict[str, Any]], list[str]]:
    """Facts of the lower thresholds of the same training, in their order; and what is missing, as sentences.

    Whole ones of the newest `MAX_BEHIND` that judged documents, of the others their summaries.
    """
    found: list[dict[str, Any]] = []
    missing: list[str] = []
    folders = sorted(path.parent for path in threshold.folder.parent.glob("*/threshold.json"))
    lower = [one for one in folders if one.name.isdigit() and one.name < threshold.folder.name]
    whole = 0
    for folder in reversed(lower):
        name = f"{tokens(int(folder.name))} tokens"
        try:
            facts = read_facts(folder) if whole < MAX_BEHIND else read_summary(folder)
            whole += bool(facts["distributions"]["all"]["judged"])
            found.append(facts)
        except FileNotFoundError:
            missing.append(
                f"The re-score at {name} has no facts.json, so it is not compared. Write its report first, then this one again."
            )
        except (OSError, ValueError) as error:
            missing.append(f"The facts.json of the re-score at {name} cannot be used, so it is not compared: {error}.")
    return found[::-1], missing[::-1]


def collect_facts(threshold: Threshold, formers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of a threshold beside those of the former ones; only re-scores that judged documents are compared with."""
    info = threshold.info
    distributions = spreads(scored(threshold))
    judged = [one for one in formers if one["distributions"]["all"]["judged"]]
    then = judged[-1] if judged else None
    before = then["distributions"] if then and distributions["all"]["judged"] else None
    source_by = str(threshold.setting("score").get("source") or "file")
    return {
        "format": FORMAT,
        "training_run": info["training_run"],
        "threshold": info["threshold"],
        "every_tokens": info.get("every_tokens"),
        "entry": {**_ENTRY, **(info.get("entry") or {})},
        "settings": info.get("settings") or {},
        "begun": info.get("begun"),
        "state": threshold.done.get("state") or _state(threshold),
        "why": threshold.done.get("why"),
        "end": threshold.done.get("end"),
        "runs": [_run(one) for one in sorted(threshold.runs, key=lambda one: (one.start, one.run_id))],
        "decision": threshold.decision,
        "published": threshold.published,
        "proposal": threshold.proposal,
        "bins": {name: {"low": one.low, "width": one.width, "n": one.n} for name, one in BINS.items()},
        "quantiles": list(QUANTILES),
        "distributions": distributions,
        "former": {"threshold": then["threshold"], "entry": then["entry"]} if then and before else None,
        "drift": drift(before, distributions) if before else None,
        "guards": _guards(threshold),
        "mix": [suggest(before, distributions, kind, source_by) for kind in ("source", "language")],
        "later_runs": later_runs(threshold.root, threshold.published.get("version")),
    }


_ENTRY = {"tokens_seen": 0, "step": None, "checkpoint": "", "checkpoint_sha256": "", "tokenizer": "", "time": ""}


def _state(threshold: Threshold) -> str:
    """How far a threshold without a done marker came."""
    rejected = threshold.decision.get("decision") == "rejected"
    if threshold.published:
        return (
            "published"
            if threshold.published.get("version") is not None
            else "rejected"
            if rejected
            else "nothing_chosen"
        )
    if threshold.decision:
        return str(threshold.decision.get("decision") or "decided")
    if threshold.proposal:
        return "chosen"
    return "scored" if threshold.runs and all(run.totals for run in threshold.runs) else "scoring"


def _run(one: Any) -> dict[str, Any]:
    return {
        "run_id": one.run_id,
        "start": one.start,
        "there": one.folder.is_dir(),
        "closed": bool(one.totals),
        **{name: one.totals.get(name) for name in _SCORED},
    }


def _guards(threshold: Threshold) -> dict[str, Any]:
    """What was chosen and what held back, in all and by language and source."""
    ends = [f"{end}_{what}" for end in ("high", "low") for what in ("candidates", "chosen", "held_back")]
    names = ("documents", "judged", *ends)
    groups = [{key: row.get(key) for key in (*_KEYS, *names)} for row in threshold.groups]
    totals = {name: sum(int(row[name] or 0) for row in groups) for name in names}
    few = [row for row in groups if row["too_few"]]
    return {
        "totals": totals,
        "too_few": {"groups": len(few), "judged": sum(int(row["judged"] or 0) for row in few)},
        "groups": sorted(
            groups,
            key=lambda row: (
                -sum(int(row[f"{end}_{what}"] or 0) for end in ("high", "low") for what in ("chosen", "held_back")),
                -int(row["documents"] or 0), str(row["language"]), str(row["source"]),
            ),
        )[:MAX_GUARD_ROWS],
        "n_groups": len(groups),
    }  # fmt: skip


MAX_GUARD_ROWS = 500
_KEYS = ("language", "source", "too_few", "median", "high_limit", "low_limit")


def facts_path(folder: Path) -> Path:
    """Where the facts of a threshold lie."""
    return folder / "report" / "facts.json"
