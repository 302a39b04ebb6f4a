"""Mixing weights suggested from the losses of two re-scores: never applied, and no more than the data can bear.

One step of the exponentiated gradient that DoReMi takes (Xie et al. 2023, arXiv 2305.10429): a share is multiplied by
exp(x - mean of x). There x is the loss beyond that of a reference model. There is none here; its place takes how far the
group's loss fell since the former re-score, its learning speed, by which Adaptive Data Optimization chooses (Jiang et al.
2024, arXiv 2410.11820): what is being learned gets more, what is learned already or is noise gets less. Losses are nats a
token, of documents that were not put on the blacklist. A difference within two standard errors counts as none; no share is
more than doubled or halved.

What it cannot know: the two re-scores read different documents, so a crawl that became easier looks like learning; whether
learning one group helps another; what a downstream task needs; how often a text may be repeated.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from curation.report.rescore_drift import MIN_JUDGED

__all__ = ["MOST", "bounded", "paste", "suggest"]

MOST = 2.0
"""No share grows or shrinks by more than this factor."""
MAX_NAMED = 40
"""Groups that the pasted text names; the others are its last pattern."""
_HALVINGS = 200


def bounded(shares: Sequence[float], factors: Sequence[float]) -> list[float]:
    """Shares times factors, all scaled alike so that they add up to what they did; none beyond `MOST` either way."""
    total = math.fsum(shares)

    def at(scale: float) -> list[float]:
        return [s * min(max(scale * f, 1 / MOST), MOST) for s, f in zip(shares, factors, strict=True)]

    # At the low end every share is halved, at the high end doubled: the total lies between.
    low, high = 1 / MOST / max(factors), MOST / min(factors)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if math.fsum(at(middle)) < total else (low, middle)
    return at(high)


def suggest(then: Mapping[str, Any] | None, now: Mapping[str, Any], kind: str, source_by: str) -> dict[str, Any]:
    """Shares of tokens, and those suggested.

    Args:
        then, now: `distributions` of the former re-score (None: there is none) and this one.
        kind: language or source.
        source_by: what a source is, by the settings: file, folder or domain.

    Returns:
        why_not: why nothing is suggested, or ""; groups: name, share, suggested, fell (nats; null: not known), error; rest:
        share and suggested of all groups that are not told apart, or null; yaml: text to paste, or "".
    """
    named = [group for group in now[kind]["groups"] if group["tokens"] > 0]
    rest = now[kind]["rest"]
    total = math.fsum([*(group["tokens"] for group in named), rest["tokens"] if rest else 0.0])
    before = {group["name"]: group for group in then[kind]["groups"]} if then else {}
    rows = [_row(group, before.get(group["name"]), total) for group in named]
    known = [row for row in rows if row["fell"] is not None]
    found: dict[str, Any] = {"kind": kind, "why_not": "", "groups": rows, "rest": None, "yaml": "", "yaml_why_not": ""}
    if rest and rest["tokens"] > 0:
        found["rest"] = {"groups": rest["groups"], "share": round(rest["tokens"] / total, 8), "suggested": None}
    found["why_not"] = _why_not(then, kind, len(rows) + (found["rest"] is not None), len(known))
    if found["why_not"]:
        return found
    mean = math.fsum(r["share"] * r["fell"] for r in known) / math.fsum(r["share"] for r in known)
    everyone = [*rows, *([found["rest"]] if found["rest"] else [])]
    factors = [_factor(row, mean) for row in everyone]
    for row, share in zip(everyone, bounded([row["share"] for row in everyone], factors), strict=True):
        row["suggested"] = round(share, 6)
    if all(factor == 1.0 for factor in factors):
        found["yaml_why_not"] = "No difference is larger than twice its standard error: the shares stay as they are."
    else:
        found["yaml"], found["yaml_why_not"] = paste(found, source_by)
    return found


def _why_not(then: Mapping[str, Any] | None, kind: str, n: int, known: int) -> str:
    if then is None:
        return "There is no former re-score, so nobody knows yet how fast anything is learned."
    if n < 2:
        return f"There is only one {kind}: nothing to mix." if n else "Nothing was judged."
    if known < 2:
        few = f"Of {n} {kind}s, {known or 'none'} had {MIN_JUDGED} judged documents both then and now"
        return f"{few}: no learning speeds to compare."
    return ""


def _row(group: Mapping[str, Any], former: Mapping[str, Any] | None, total: float) -> dict[str, Any]:
    fell = error = None
    if (
        former is not None
        and min(former["judged"], group["judged"]) >= MIN_JUDGED
        and former["mean_loss"] is not None
        and group["mean_loss"] is not None
    ):
        fell = round(former["mean_loss"] - group["mean_loss"], 6)
        error = round(math.hypot(former["mean_loss_error"], group["mean_loss_error"]), 6)
    share = round(group["tokens"] / total, 8)
    return {"name": group["name"], "share": share, "suggested": None, "fell": fell, "error": error}


def _factor(row: Mapping[str, Any], mean: float) -> float:
    fell = row.get("fell")
    if fell is None or abs(fell - mean) <= 2 * row["error"]:
        return 1.0
    # Beyond e^7 the bounds decide anyway, and a hostile loss must not overflow.
    return math.exp(min(max(fell - mean, -7.0), 7.0))


def paste(found: Mapping[str, Any], source_by: str) -> tuple[str, str]:
    """`pack.mix` of a config with the suggested shares; or nothing, and why."""
    kind = found["kind"]
    if kind == "source" and source_by == "domain":
        return "", "`pack.mix` knows input files and languages, no domains: nothing to paste."
    ranked = sorted(found["groups"], key=lambda row: (-row["suggested"], row["name"]))
    if kind == "language":
        # A text without a language is named by its script here; `pack` calls it "".
        named = [row for row in ranked if row["name"].partition("_")[0] != "und"]
    else:
        named = [row for row in ranked if row["name"]]
    named = [row for row in named[:MAX_NAMED] if row["suggested"] > 0]
    names = {row["name"] for row in named}
    others = [row["suggested"] for row in ranked if row["name"] not in names]
    others += [found["rest"]["suggested"]] if found["rest"] else []
    if kind == "source" and source_by == "folder":
        # The first pattern that fits counts, and a folder's pattern fits those within it.
        named.sort(key=lambda row: (-len(row["name"]), row["name"]))
        weights = {f"{glob.escape(row['name'])}/*": row["suggested"] for row in named}
    else:
        weights = {glob.escape(row["name"]): row["suggested"] for row in named}
    if others:
        weights["*"] = max(round(math.fsum(others), 6), 1e-6)
    mix = {"pack": {"mix": {"by": kind, "weights": weights}}}
    text: str = yaml.safe_dump(mix, sort_keys=False, width=1_000_000, allow_unicode=False)
    return text, ""
