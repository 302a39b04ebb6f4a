"""Figures of documents called good or junk: the quality chain, its presets, and each of its filters by itself.

A chain's figures hide what one filter loses and another catches, so each filter is judged alone as well, and each rule of
`rules`: how much junk breaks it, and how many good documents do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from curation.filters.rules import Rules
from tests.bench.bench_quality import our_chains
from tests.bench.quality_chain import PRESETS
from tests.bench.quality_gold import ENOUGH, HALVES, Document, half_of
from tests.gate.figures import NOTHING_CHANGED, Changed, Figures, counted, mean_of
from tests.gate.gold import Gold, Texts

__all__ = ["WHOLE", "alone", "by_rule", "quality"]

WHOLE = "`massive` + perplexity"
"""The chain that ships, after the benchmark's name."""

Reasons = Sequence[str | None]
Steps = Iterable[tuple[str, Mapping[str, Any]]]


def documents_of(gold: Gold) -> Texts:
    return gold.texts("documents", lambda: [one.text for one in gold.documents])


def chain(gold: Gold, texts: Texts, steps: Steps, changed: Changed) -> Reasons:
    """The first reason of several steps in their order."""
    found: list[str | None] = [None] * len(texts.texts)
    for name, config in steps:
        said = gold.judged(texts, name, changed, config).reasons
        found = [one or other for one, other in zip(found, said, strict=True)]
    return found


# -- the chain --------------------------------------------------------------------------------------


def quality(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """The shipped chain: good by language, junk by class, the held-out half; each preset; parts of web pages."""
    chains, texts = our_chains(), documents_of(gold)
    reasons = chain(gold, texts, chains[WHOLE], changed)
    found = {
        **good_kept("quality.good_kept", gold.documents, reasons),
        **junk_dropped("quality.junk_dropped", gold.documents, reasons),
        **precision("quality", gold.documents, reasons),
    }
    held = [half_of(one.name) == HALVES[2] for one in gold.documents]
    some = [one for one, is_held in zip(gold.documents, held, strict=True) if is_held]
    found |= means("quality.held_out", some, [one for one, is_held in zip(reasons, held, strict=True) if is_held])
    found |= means("quality.whole", gold.documents, reasons)
    for preset in PRESETS:
        found |= means(f"quality.{preset}", gold.documents, chain(gold, texts, chains[f"`{preset}`"], changed))
    return {**found, **_of_parts(gold, changed)}


def good_kept(name: str, documents: Sequence[Document], reasons: Reasons) -> Figures:
    """By language; those with fewer than ENOUGH good documents together."""
    kept: dict[str, list[bool]] = {}
    for one, reason in zip(documents, reasons, strict=True):
        if one.quality == "good":
            kept.setdefault(one.language or "none", []).append(reason is None)
    few = [hit for hits in kept.values() if len(hits) < ENOUGH for hit in hits]
    found = {f"{name}.{language}": counted(hits) for language, hits in kept.items() if len(hits) >= ENOUGH}
    return {**found, f"{name}.others": counted(few)}


def junk_dropped(
    name: str, documents: Sequence[Document], reasons: Reasons, wanted: Callable[[str], bool] = lambda kind: True
) -> Figures:
    """By class of junk, and over all classes that are wanted."""
    dropped: dict[str, list[bool]] = {}
    for one, reason in zip(documents, reasons, strict=True):
        if one.quality == "junk" and wanted(one.kind):
            dropped.setdefault(one.kind, []).append(reason is not None)
    found = {f"{name}.{kind}": counted(hits) for kind, hits in dropped.items()}
    return {**found, f"{name}.all": counted(hit for hits in dropped.values() for hit in hits)}


def precision(name: str, documents: Sequence[Document], reasons: Reasons) -> Figures:
    """Of good and junk documents that are dropped, those that are junk."""
    dropped = [one.quality == "junk" for one, why in zip(documents, reasons, strict=True) if why and is_either(one)]
    return {f"{name}.precision.all": counted(dropped)}


def is_either(document: Document) -> bool:
    return document.quality in ("good", "junk")


def means(name: str, documents: Sequence[Document], reasons: Reasons) -> Figures:
    """Good kept, the mean of languages, each counting the same; junk dropped over all classes."""
    kept: dict[str, list[bool]] = {}
    for one, reason in zip(documents, reasons, strict=True):
        if one.quality == "good":
            kept.setdefault(one.language or "none", []).append(reason is None)
    junk = counted(why is not None for one, why in zip(documents, reasons, strict=True) if one.quality == "junk")
    return {f"{name}.good_kept_mean": mean_of(map(counted, kept.values())), f"{name}.junk_dropped": junk}


def _of_parts(gold: Gold, changed: Changed) -> Figures:
    """Main text of web pages kept, boilerplate dropped."""
    texts = gold.texts("parts", lambda: [one.text for one in gold.parts])
    reasons = chain(gold, texts, our_chains()[WHOLE], changed)
    said = [(one.label, reason is None) for one, reason in zip(gold.parts, reasons, strict=True)]
    return {
        "quality.parts.main content kept": counted(kept for label, kept in said if label == "main content"),
        "quality.parts.boilerplate dropped": counted(not kept for label, kept in said if label == "boilerplate"),
    }


# -- filters by themselves --------------------------------------------------------------------------

FOR: Mapping[str, tuple[str, ...]] = {
    "html_noise": ("raw HTML left-over", "half-stripped HTML"),
    "length": ("very short",),
    "language": ("gibberish",),
}
"""Classes of junk that a filter is there for; of the others it says little, and its figure is that of all junk."""


def alone(name: str) -> Callable[[Gold, Changed], Figures]:
    """Figures of one filter by itself, with default settings."""

    def figures(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
        reasons = gold.judged(documents_of(gold), name, changed).reasons
        junk = junk_dropped(f"{name}.junk_dropped", gold.documents, reasons)
        told = {f"{name}.junk_dropped.{kind}" for kind in ("all", *FOR.get(name, ()))}
        return {
            **good_kept(f"{name}.good_kept", gold.documents, reasons),
            **{figure: found for figure, found in junk.items() if figure in told},
            **by_reason(name, gold, changed),
        }

    return figures


def by_reason(name: str, gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """Of each reason of a filter: of the documents, good and junk, for which it names it, those that are junk; and how many are."""
    judged = gold.judged(documents_of(gold), name, changed)
    found: Figures = {}
    junk = [
        (one.quality == "junk", why) for one, why in zip(gold.documents, judged.reasons, strict=True) if is_either(one)
    ]
    for reason in judged.step.reasons:
        short = reason.removeprefix(f"{name}.")
        found[f"{name}.junk_for.{short}"] = counted(why == reason for is_junk, why in junk if is_junk)
        found[f"{name}.good_spared.{short}"] = counted(why != reason for is_junk, why in junk if not is_junk)
    return found


def by_rule(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """Of each rule that the default preset has on: junk that breaks it, and good documents that do not."""
    judged = gold.judged(documents_of(gold), "rules", changed)
    assert isinstance(judged.step, Rules)
    found: Figures = {}
    for reason, hits in judged.step.hits(judged.scores).items():
        said = list(zip(gold.documents, hits.tolist(), strict=True))
        found[f"rules.junk_hit.{reason.removeprefix('rules.')}"] = counted(
            h for one, h in said if one.quality == "junk"
        )
        spared = counted(not hit for one, hit in said if one.quality == "good")
        found[f"rules.good_spared.{reason.removeprefix('rules.')}"] = spared
    return found


def rules(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """The rules by themselves, together and each."""
    reasons = gold.judged(documents_of(gold), "rules", changed).reasons
    junk = junk_dropped("rules.junk_dropped", gold.documents, reasons)
    return {**good_kept("rules.good_kept", gold.documents, reasons), **junk, **by_rule(gold, changed)}
