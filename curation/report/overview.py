"""The page's frame around the steps: what a reader should look at first, inputs, sources, scripts, pack, time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup

from curation.report.collect import Collected
from curation.report.facts import RunFacts, chain_breaks, equations
from curation.report.funnel_chart import Branch, Level, draw_funnel
from curation.report.numbers import count, duration, noun, share, short
from curation.report.step_view import StepView

__all__ = ["Alarm", "InputRow", "TimeRow", "alarms", "funnel_picture", "input_rows", "time_rows", "wall_seconds"]

MAX_INPUT_ROWS = 200


@dataclass(frozen=True)
class Alarm:
    """Something that a reader should look at."""

    level: str
    """bad: the run is not what it should be; look: it may be right, but somebody should see it."""
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class InputRow:
    """An input file."""

    name: str
    title: str
    kind: str
    n_bytes: int
    good: int
    bad: int
    kept: int | None
    damaged: bool
    remarks: str
    """Kinds of damage, quarantined lines by reason, repairs that were made."""


@dataclass(frozen=True)
class TimeRow:
    """Seconds and memory of one stage or step."""

    name: str
    anchor: str
    seconds: float
    peak_mb: float
    n_bytes: int
    slowest: str

    @property
    def rate(self) -> str:
        """MB of text a second, one worker."""
        return f"{self.n_bytes / self.seconds / 1e6:,.1f}" if self.seconds > 0.0005 and self.n_bytes else "-"


def alarms(facts: RunFacts, found: Collected, steps: Sequence[StepView]) -> list[Alarm]:
    """What to look at first, the worst on top."""
    bad = [Alarm("bad", problem) for problem in [*facts.problems, *found.problems]]
    bad += [
        Alarm("bad", f"The law is broken: {e.left[0]} is {e.left[1]:,}.", "law")
        for e in equations(facts)
        if not e.holds
    ]
    if facts.funnel["documents"] is not None and not facts.judge_all:
        bad += [Alarm("bad", text, "law") for text in chain_breaks(facts.funnel["steps"], facts.funnel["documents"])]
    bad += [Alarm("bad", text, "law") for text in recount(facts, found)]
    look = [Alarm("look", f"{step.name}: {text}", step.anchor) for step in steps for text in step.alarms]
    for step in steps:
        for reason in step.reasons:
            if reason.heavy and step.totals["docs_in"] > 1:
                part = share(reason.n, step.totals["docs_in"])
                look.append(Alarm("look", f"{reason.name} took {part} of what {step.name} looked at.", step.anchor))
        if step.marks.silent:
            names, n_in = ", ".join(step.marks.silent), step.totals["docs_in"]
            look.append(
                Alarm("look", f"Never fired although {step.name} looked at {n_in:,} documents: {names}.", step.anchor)
            )
    damaged = [PurePosixPath(row["source"]).name for row in facts.inputs if row["damaged"]]
    if damaged:
        names = ", ".join(damaged[:3]) + (f" and {len(damaged) - 3} more" if len(damaged) > 3 else "")
        look.append(
            Alarm("look", f"{noun(len(damaged), 'input file is', 'input files are')} damaged: {names}.", "inputs")
        )
    quarantined = sum(facts.funnel["quarantined"].values())
    if quarantined:
        lines = facts.funnel["inputs"]["lines"]
        look.append(
            Alarm("look", f"{noun(quarantined, 'line')} ({share(quarantined, lines)}) could not be read.", "quarantine")
        )
    if facts.finished and facts.funnel["documents"] and not facts.funnel["kept"]:
        look.insert(0, Alarm("look", "Nothing was kept.", "funnel"))
    return bad + look


def recount(facts: RunFacts, found: Collected) -> list[str]:
    """Where the verdict files, counted while the page was built, say something else than the funnel."""
    totals = {step["name"]: step for step in facts.funnel["steps"]}
    wrong = []
    for step in found.steps:
        line = totals.get(step.step.name)
        if line is None or step.n_shards < len(facts.shards):
            continue
        counted = {name: n for name, n in step.counts.items() if n}
        if (step.docs_in, step.docs_kept, counted) != (line["docs_in"], line["docs_kept"], line["dropped"]):
            wrong.append(
                f"{step.step.name}: its verdict files hold {step.docs_in:,} documents, {step.docs_kept:,} kept; "
                f"the funnel says {line['docs_in']:,} and {line['docs_kept']:,}, or other reasons."
            )
    return wrong


def funnel_picture(facts: RunFacts, steps: Sequence[StepView]) -> Markup:
    """The funnel drawn; empty if nothing was read or if the steps do not follow each other."""
    funnel = facts.funnel
    if funnel["inputs"] is None or facts.judge_all:
        return Markup("")
    lines, documents = funnel["inputs"]["lines"], funnel["documents"]
    lost = [Branch(name, n, "quarantined") for name, n in funnel["quarantined"].items()]
    levels = [Level("lines in", lines, count(lines), "inputs", lost)]
    if not steps:
        levels.append(Level("documents", documents, count(documents)))
    rest = documents
    for step in steps:
        gone = [Branch(r.name, r.n, "dropped", r.sentence) for r in step.reasons if r.n] if step.closed else []
        rest = step.totals["docs_in"] if step.closed else rest
        note = f"{count(rest)} in" if step.closed else f"{count(rest)} in, not closed"
        levels.append(Level(step.name, rest, note, step.anchor, gone))
        if not step.closed:
            break
        rest = step.totals["docs_kept"]
    kept = "kept" if funnel["kept"] is not None else "so far"
    if steps and all(step.closed for step in steps):
        levels.append(Level(kept, rest, f"{count(rest)}, {share(rest, documents)}", "sources"))
    if funnel["packed"] is not None:
        tokens = funnel["packed"]["tokens"]
        levels.append(Level("token file", rest, f"{short(tokens)} tokens", "pack"))
    summary = f"Funnel: {noun(lines, 'line')} in, {noun(documents, 'document')}, {count(rest)} {kept}."
    return draw_funnel(levels, summary)


def input_rows(facts: RunFacts, found: Collected) -> tuple[list[InputRow], int]:
    """Input files, damaged ones and those with the most quarantined lines first; and how many more there are."""
    kept = {row.label: row.n_kept for row in found.sources.rows(len(found.sources))}
    rows = []
    for entry in facts.inputs:
        bad = sorted(entry["bad"].items(), key=lambda pair: (-pair[1], pair[0]))
        lists = (
            ", ".join(entry["damaged"]),
            ", ".join(f"{reason} {n:,}" for reason, n in bad),
            ", ".join(f"{name} {n:,}" for name, n in sorted(entry["notes"].items())),
        )
        rows.append(
            InputRow(
                name=PurePosixPath(entry["source"]).name or entry["source"],
                title=entry["source"],
                kind=entry["kind"],
                n_bytes=entry["bytes"],
                good=entry["lines_good"],
                bad=entry["lines_bad"],
                kept=kept.get(entry["source"], 0) if found.steps else None,
                damaged=bool(entry["damaged"]),
                remarks="; ".join(part for part in lists if part),
            )
        )
    rows.sort(key=lambda row: (not row.damaged, -row.bad, row.title))
    return rows[:MAX_INPUT_ROWS], max(0, len(rows) - MAX_INPUT_ROWS)


def time_rows(facts: RunFacts, found: Collected, steps: Sequence[StepView]) -> list[TimeRow]:
    """Seconds (all workers together) and peak memory (of one worker) of ingest, each step, and pack."""
    rows = []
    ingest = facts.funnel["ingest"]
    if "seconds" in ingest:
        n_bytes = sum(shard.text_bytes for shard in facts.shards)
        rows.append(TimeRow("ingest", "inputs", ingest["seconds"], ingest["peak_rss_mb"], n_bytes, ""))
    for step, passed in zip(steps, found.steps, strict=True):
        slowest = max(passed.seconds, key=lambda item: (item[1], item[0]), default=None)
        many = len(passed.seconds) > 1
        note = f"of {len(passed.seconds)} shards: {slowest[0]}, {duration(slowest[1])}" if slowest and many else ""
        totals = step.totals
        rows.append(TimeRow(step.name, step.anchor, totals["seconds"], totals["peak_rss_mb"], totals["bytes_in"], note))
    if facts.pack is not None:
        n_bytes = facts.funnel["steps"][-1]["bytes_kept"] if facts.funnel["steps"] else 0
        rows.append(TimeRow("pack", "pack", facts.pack["seconds"], facts.pack["peak_rss_mb"], n_bytes, ""))
    return rows


def wall_seconds(info: dict[str, Any]) -> float | None:
    """From start to end of the run, waiting included; None while it runs."""
    if not info.get("end"):
        return None
    start, end = (datetime.fromisoformat(info[key].replace("Z", "+00:00")) for key in ("start", "end"))
    return (end - start).total_seconds()
