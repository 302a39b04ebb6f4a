"""What the page of a re-score shows: its facts put into rows, drawings and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup

from curation.report.masking import mask
from curation.report.numbers import count, noun, share, value
from curation.report.overview import Alarm
from curation.report.rescore_charts import Axis, Layer, axis_row, bands, common_axis, ridge_row, ridges, shares
from curation.report.rescore_drift import MODERATE, STRONG
from curation.report.rescore_facts import MAX_BEHIND, tokens
from curation.report.rescore_spread import BINS, dense

__all__ = ["DriftTable", "MixTable", "SpreadTable", "View", "view_of"]

MAX_ROWS = 12
MAX_MORE = 88
"""Rows of a table that are folded away; the rest is one row."""
MAX_RIDGES = 8
_UNITS = {"bits_per_byte": "bits per byte", "loss": "nats a token"}
_HEADS = {"language": "language", "source": "source", "run": "run"}


@dataclass(frozen=True)
class SpreadRow:
    """A group: its numbers and its two drawings."""

    name: str
    title: str
    note: str
    documents: int
    judged: int
    bits: Markup
    median: str
    change: str
    loss: Markup
    median_loss: str
    chosen: int


@dataclass(frozen=True)
class SpreadTable:
    """Distributions of one kind of group."""

    kind: str
    caption: str
    bits_axis: Markup
    loss_axis: Markup
    rows: Sequence[SpreadRow]
    more: Sequence[SpreadRow]


@dataclass(frozen=True)
class DriftRow:
    """A group, then and now."""

    name: str
    title: str
    then: str
    now: str
    picture: Markup
    own_shift: str
    shape: str
    verdict: str


@dataclass(frozen=True)
class DriftTable:
    """Drift of one kind of group."""

    kind: str
    caption: str
    sentence: str
    rows: Sequence[DriftRow]
    more: Sequence[DriftRow]
    left_out: int


@dataclass(frozen=True)
class MixRow:
    """A group with the share that it has and the one suggested."""

    name: str
    title: str
    before: str
    suggested: str
    factor: str
    fell: str
    picture: Markup


@dataclass(frozen=True)
class MixTable:
    """Suggested shares of one kind of group."""

    kind: str
    why_not: str
    rows: Sequence[MixRow]
    more: Sequence[MixRow]
    yaml: str
    yaml_why_not: str


@dataclass(frozen=True)
class View:
    """Everything that the template needs beside the facts."""

    alarms: Sequence[Alarm]
    ridges: Markup
    bands: Markup
    median: str
    change: str
    spreads: Sequence[SpreadTable]
    drifts: Sequence[DriftTable]
    mixes: Sequence[MixTable]
    guards: Sequence[Mapping[str, Any]]
    """Rows of the facts, with `short`: the source's short name and its whole one."""
    formers: Sequence[str]


def view_of(
    facts: Mapping[str, Any], formers: Sequence[Mapping[str, Any]], problems: Sequence[str], missing: Sequence[str]
) -> View:
    """The view of a re-score.

    Args:
        formers: facts of the former re-scores, in their order.
        problems: what is damaged.
        missing: what cannot be compared.
    """
    drawn = [one for one in formers if one["distributions"]["all"]["judged"]]
    everything = facts["distributions"]["all"]
    own = everything["bits_per_byte"]["quantiles"]
    drifts = [_drift_table(facts, kind) for kind in ("language", "source")] if facts["drift"] else []
    change = ""
    if drawn and own:
        change = _signed(own[2] - drawn[-1]["distributions"]["all"]["bits_per_byte"]["quantiles"][2])
    return View(
        alarms=_alarms(facts, problems, missing),
        ridges=_ridges(facts, drawn),
        bands=_bands(facts, drawn),
        median=value(own[2]) if own else "-",
        change=change,
        spreads=[_spread_table(facts, drawn, kind) for kind in ("language", "source", "run")],
        drifts=drifts,
        mixes=[_mix_table(one) for one in facts["mix"]],
        guards=[
            {**row, "short": _name("source", row["source"] or "")}
            for row in facts["guards"]["groups"][: MAX_ROWS + MAX_MORE]
        ],
        formers=[tokens(one["threshold"]) for one in drawn],
    )


def _signed(number: float) -> str:
    text = f"{abs(number):.2f}"
    return "±0.00" if text == "0.00" else ("+" if number > 0 else "\N{MINUS SIGN}") + text


def _name(kind: str, name: str) -> tuple[str, str]:
    """A group's short name, masked, and its whole one. A run's id is our own, and its digits are no card number."""
    whole = name if kind == "run" else mask(name)
    if not name:
        return {"source": "no address", "language": "no language"}.get(kind, "-"), ""
    short = PurePosixPath(whole).name if kind == "source" and "/" in whole else whole
    return (short or whole)[:80], whole[:400]


# -- distributions -----------------------------------------------------------------------------


def _layer(group: Mapping[str, Any], score: str, name: str) -> Layer:
    found = group[score]
    return Layer(name, dense(BINS[score], found["counts"]), found["quantiles"], group["judged"])


def _at(facts: Mapping[str, Any]) -> str:
    return f"at {tokens(facts['threshold'])} tokens"


def _ridges(facts: Mapping[str, Any], formers: Sequence[Mapping[str, Any]]) -> Markup:
    every = [*formers, facts]
    # The first one stays in sight: it is where the training came from.
    some = every if len(every) <= MAX_RIDGES else [every[0], *every[-MAX_RIDGES + 1 :]]
    layers = [_layer(one["distributions"]["all"], "bits_per_byte", tokens(one["threshold"])) for one in some]
    if not any(layer.counts.sum() for layer in layers):
        return Markup("")
    return ridges(common_axis(BINS["bits_per_byte"], layers), layers, _UNITS["bits_per_byte"])


def _bands(facts: Mapping[str, Any], formers: Sequence[Mapping[str, Any]]) -> Markup:
    points = [
        (float(one["threshold"]), tokens(one["threshold"]), one["distributions"]["all"]["bits_per_byte"]["quantiles"])
        for one in [*formers, facts]
        if one["distributions"]["all"]["bits_per_byte"]["quantiles"]
    ]
    return bands(points, _UNITS["bits_per_byte"]) if len(points) > 1 else Markup("")


def _spread_table(facts: Mapping[str, Any], formers: Sequence[Mapping[str, Any]], kind: str) -> SpreadTable:
    found = facts["distributions"][kind]
    groups = found["groups"]
    started = {one["run_id"]: one["start"] for one in facts["runs"]}
    if kind == "run":  # what was crawled first stands first
        groups = sorted(groups, key=lambda one: (started.get(one["name"], ""), one["name"]))
    behind = [] if kind == "run" else formers[-MAX_BEHIND:]
    before = [({one["name"]: one for one in former["distributions"][kind]["groups"]}, _at(former)) for former in behind]
    shown = groups[: MAX_ROWS + MAX_MORE]
    axes = {}
    for score in ("bits_per_byte", "loss"):
        layers = [_layer(one, score, "") for one in shown[:MAX_ROWS]]
        layers += [_layer(one[g["name"]], score, "") for one, _ in before for g in shown[:MAX_ROWS] if g["name"] in one]
        axes[score] = common_axis(BINS[score], layers)
    rows = [
        _spread_row(facts, group, kind, before, axes, started.get(group["name"], "") if kind == "run" else "")
        for group in shown
    ]
    more = rows[MAX_ROWS:]
    left = groups[MAX_ROWS + MAX_MORE :]
    n = len(groups) + (found["rest"]["groups"] if found["rest"] else 0)
    rest = len(left) + (found["rest"]["groups"] if found["rest"] else 0)
    if rest:
        documents = sum(one["documents"] for one in left) + (found["rest"]["documents"] if found["rest"] else 0)
        judged = sum(one["judged"] for one in left) + (found["rest"]["judged"] if found["rest"] else 0)
        more = [*more, SpreadRow(f"{rest:,} more", "", "", documents, judged, Markup(""), "", "", Markup(""), "", 0)]
    caption = f"{noun(n, _HEADS[kind])}, {'by begin' if kind == 'run' else 'the largest first'}"
    return SpreadTable(kind, caption, axis_row(axes["bits_per_byte"]), axis_row(axes["loss"]), rows[:MAX_ROWS], more)


def _spread_row(
    facts: Mapping[str, Any], group: Mapping[str, Any], kind: str, before: Sequence[tuple[Mapping[str, Any], str]],
    axes: Mapping[str, Axis], note: str,
) -> SpreadRow:  # fmt: skip
    name, title = _name(kind, group["name"])
    formers = [(one[group["name"]], at) for one, at in before if group["name"] in one]
    pictures = {}
    for score, unit in _UNITS.items():
        layers = [_layer(one, score, at) for one, at in formers]
        chosen = dense(BINS[score], group[score]["chosen"]) if "chosen" in group[score] else None
        pictures[score] = ridge_row(
            axes[score], _layer(group, score, _at(facts)), layers, chosen, f"{name}, {unit}", unit
        )
    own, last = group["bits_per_byte"]["quantiles"], formers[-1][0]["bits_per_byte"]["quantiles"] if formers else []
    return SpreadRow(
        name=name,
        title=title,
        note=note,
        documents=group["documents"],
        judged=group["judged"],
        bits=pictures["bits_per_byte"],
        median=f"{own[2]:.2f}" if own else "-",
        change=_signed(own[2] - last[2]) if own and last else "",
        loss=pictures["loss"],
        median_loss=f"{group['loss']['quantiles'][2]:.2f}" if own else "-",
        chosen=group["chosen_high"] + group["chosen_low"],
    )


# -- drift and mixture -------------------------------------------------------------------------


def _drift_table(facts: Mapping[str, Any], kind: str) -> DriftTable:
    found = facts["drift"][kind]
    index = found["shares"]
    largest = max((max(row["share_then"] or 0, row["share_now"] or 0) for row in found["groups"]), default=0)
    rows = []
    for row in found["groups"][: MAX_ROWS + MAX_MORE]:
        name, title = _name(kind, row["name"])
        rows.append(
            DriftRow(
                name, title, _percent(row["share_then"]), _percent(row["share_now"]),
                shares(row["share_then"], row["share_now"], largest, ("then", "now")),
                "" if row["own_shift"] is None else _signed(row["own_shift"]),
                "" if row["shape"] is None else f"{row['shape']:.2f}", row["verdict"],
            )
        )  # fmt: skip
    word = "" if index is None else "steady" if index < MODERATE else "moderate" if index < STRONG else "strong"
    sentence = "" if index is None else f"Shares of {kind}s: index {index:.2f}, {word}."
    return DriftTable(
        kind, f"by {kind}", sentence, rows[:MAX_ROWS], rows[MAX_ROWS:], max(0, len(found["groups"]) - len(rows))
    )


def _percent(part: float | None) -> str:
    return "?" if part is None else share(part, 1)


def _mix_table(found: Mapping[str, Any]) -> MixTable:
    kind = found["kind"]
    largest = max((max(row["share"], row["suggested"] or 0) for row in found["groups"]), default=0)
    rows = []
    ranked = sorted(found["groups"], key=lambda row: (-(row["suggested"] or row["share"]), row["name"]))
    for row in ranked[: MAX_ROWS + MAX_MORE]:
        name, title = _name(kind, row["name"])
        fell = (
            "" if row["fell"] is None else f"{row['fell']:+.3f} ± {2 * row['error']:.3f}".replace("-", "\N{MINUS SIGN}")
        )
        factor = "" if not row["suggested"] or not row["share"] else f"× {row['suggested'] / row['share']:.2f}"
        rows.append(MixRow(name, title, _percent(row["share"]), _percent(row["suggested"]), factor, fell,
                           shares(row["share"], row["suggested"], largest, ("before", "suggested"))))  # fmt: skip
    if found["rest"] and found["rest"]["suggested"] is not None:
        rest = found["rest"]
        rows.append(MixRow(f"{rest['groups']:,} more", "", _percent(rest["share"]), _percent(rest["suggested"]),
                           f"× {rest['suggested'] / rest['share']:.2f}", "", Markup("")))  # fmt: skip
    return MixTable(kind, found["why_not"], rows[:MAX_ROWS], rows[MAX_ROWS:], found["yaml"], found["yaml_why_not"])


# -- what to look at first ---------------------------------------------------------------------


def _alarms(facts: Mapping[str, Any], problems: Sequence[str], missing: Sequence[str]) -> list[Alarm]:
    bad = [Alarm("bad", text) for text in problems]
    look = [Alarm("look", text) for text in missing]
    look += [
        Alarm(
            "look",
            f"{noun(one['not_finite'], 'document')} of run {one['run_id']} had a score that is not finite: is the checkpoint sound?",
        )
        for one in facts["runs"]
        if one["not_finite"]
    ]
    look += [
        Alarm("look", f"Run {one['run_id']} is gone: its scores stay, its texts cannot be shown.")
        for one in facts["runs"]
        if not one["there"]
    ]
    totals = facts["guards"]["totals"]
    held, candidates = (sum(totals[f"{end}_{what}"] for end in ("high", "low")) for what in ("held_back", "candidates"))
    if held:
        look.append(
            Alarm("look", f"The guard max_share held back {count(held)} of {noun(candidates, 'candidate')}.", "guards")
        )
    everything = facts["distributions"]["all"]
    if everything["read"] and not everything["judged"]:
        look.append(Alarm("look", "No document could be judged: every score is missing, or of too few tokens."))
    if facts["drift"]:
        for kind in ("language", "source"):
            found = facts["drift"][kind]
            strong = [_name(kind, row["name"])[0] for row in found["groups"] if row["verdict"] == "strong"]
            if strong:
                more = f" and {len(strong) - 3} more" if len(strong) > 3 else ""
                look.append(
                    Alarm(
                        "look", f"The shape of the scores changed strongly in {', '.join(strong[:3])}{more}.", "drift"
                    )
                )
            if found["shares"] is not None and found["shares"] >= STRONG:
                look.append(
                    Alarm(
                        "look",
                        f"The shares of {kind}s are not those of the former crawl (index {found['shares']:.2f}).",
                        "drift",
                    )
                )
    return bad + look


def when(text: Any) -> str:
    """A time as people read it: `2026-05-20 14:23 UTC`; whatever else it is, as it stands."""
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return str(text or "")
    return found.strftime("%Y-%m-%d %H:%M") + (
        " UTC" if found.utcoffset() is not None and not found.utcoffset() else ""
    )
