"""Markdown of what `bench_quality` measures: chains side by side over languages, classes of junk, and parts of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.bench.quality_gold import (
    HALVES,
    Document,
    Page,
    Part,
    Score,
    Tally,
    Verdicts,
    languages_with_enough,
    ranking,
    score,
)

__all__ = [
    "Chain",
    "chains_table",
    "classes_table",
    "head",
    "languages_table",
    "others_table",
    "pages_table",
    "parts_table",
    "rankings_table",
    "reasons_table",
    "row",
    "rules_table",
]

MOJIBAKE = "mojibake"


class Chain(NamedTuple):
    """A chain's verdicts, and the megabytes of UTF-8 that it judges in a second of one processor, where that was measured."""

    name: str
    verdicts: Verdicts
    speed: float | None = None
    version: str = ""


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def head(*names: str) -> list[str]:
    return [row(*names), f"|{' --- |' * len(names)}"]


# -- documents --------------------------------------------------------------------------------------


def chains_table(documents: Sequence[Document], chains: Sequence[Chain]) -> Iterator[str]:
    """Good kept and junk dropped by each chain, in all and in the half that nothing was tuned on."""
    enough = languages_with_enough(documents)
    yield from head(
        "chain",
        "good kept, mean of 25 languages: all (held out)",
        "good documents kept",
        f"least of {len(enough)} languages: all (held out)",
        "junk dropped: all (held out)",
        "junk dropped, mean of classes",
        "MB/s",
    )
    for chain in chains:
        whole, _, held = (score(documents, chain.verdicts, half) for half in HALVES)
        least = " (".join(f"{one.share:.3f} {name}" for name, one in (s.least_good(enough) for s in (whole, held)))
        yield row(
            f"{chain.name} ({chain.version})" if chain.version else chain.name,
            f"{whole.macro_good:.3f} ({held.macro_good:.3f})",
            whole.good_kept,
            f"{least})",
            f"{whole.junk_dropped} ({held.junk_dropped})",
            f"{whole.macro_junk:.3f}",
            f"{chain.speed:.2f}" if chain.speed is not None else "",
        )


def languages_table(documents: Sequence[Document], chains: Sequence[Chain], half: str = "all") -> Iterator[str]:
    """Share of good documents kept, by language, most documents first."""
    scores = [score(documents, chain.verdicts, half) for chain in chains]
    yield from head("language", "good documents", *(chain.name for chain in chains))
    for language in sorted(scores[0].good, key=lambda one: -scores[0].good[one].number):
        yield row(language, scores[0].good[language].number, *(one.good[language] for one in scores))


def classes_of(found: Score) -> dict[str, Tally]:
    """Junk by class, all kinds of broken encoding together after their own rows."""
    broken = [one for name, one in found.junk.items() if MOJIBAKE in name]
    together = {"mojibake, all kinds": Tally(sum(one.hits for one in broken), sum(one.number for one in broken))}
    return {**found.junk, **together} if broken else dict(found.junk)


def classes_table(documents: Sequence[Document], chains: Sequence[Chain], half: str = "all") -> Iterator[str]:
    """Share of junk dropped, by class, most documents first."""
    scores = [classes_of(score(documents, chain.verdicts, half)) for chain in chains]
    yield from head("class of junk", "documents", *(chain.name for chain in chains))
    for kind in sorted(scores[0], key=lambda one: (MOJIBAKE in one, -scores[0][one].number)):
        yield row(kind, scores[0][kind].number, *(one[kind] for one in scores))


def others_table(documents: Sequence[Document], chains: Sequence[Chain]) -> Iterator[str]:
    """What is kept of documents that are neither good nor junk."""
    scores = [score(documents, chain.verdicts) for chain in chains]
    yield from head("neither good nor junk", "documents", *(chain.name for chain in chains))
    for kind, tally in sorted(scores[0].others.items()):
        yield row(kind, tally.number, *(one.others[kind] for one in scores))


def reasons_table(documents: Sequence[Document], chain: Chain) -> Iterator[str]:
    """Of each reason how many good, junk and other documents it dropped."""
    counts: dict[str, Counter[str]] = {}
    for one in documents:
        if (reason := chain.verdicts[one.name]) is not None:
            quality = one.quality if one.quality in ("good", "junk") else "neither"
            counts.setdefault(reason, Counter())[quality] += 1
    yield from head("reason", "good", "junk", "neither")
    for reason, found in sorted(counts.items(), key=lambda one: -one[1].total()):
        yield row(f"`{reason}`", found["good"], found["junk"], found["neither"])


def rules_table(documents: Sequence[Document], hits: Mapping[str, npt.NDArray[np.bool_]]) -> Iterator[str]:
    """Of each rule how many good documents and how much junk break it, and break no other.

    hits: bool[documents] by reason.
    """
    quality = np.array([one.quality for one in documents])
    number = np.sum(list(hits.values()), axis=0)
    yield from head("rule", "good that break it", "and no other", "junk that breaks it", "and no other")
    rows: list[tuple[str, list[int]]] = []
    for reason, broken in hits.items():
        counts = [
            int((some & (quality == what)).sum())
            for what in ("good", "junk")
            for some in (broken, broken & (number == 1))
        ]
        rows.append((f"`{reason}`", counts))
    yield from (row(reason, *counts) for reason, counts in sorted(rows, key=lambda one: -one[1][2]))


# -- parts of pages ---------------------------------------------------------------------------------


def parts_table(parts: Sequence[Part], chains: Sequence[Chain]) -> Iterator[str]:
    """Share of the texts of `6_quality` that are kept, by scale and label."""
    yield from head("`6_quality`", "texts", *(f"{chain.name}: kept" for chain in chains))
    groups: dict[tuple[str, str], list[Part]] = {}
    for one in parts:
        label = "all" if one.scale.startswith("BT_") else one.label
        groups.setdefault((one.scale, label), []).append(one)
    for (scale, label), ones in sorted(groups.items()):
        yield row(f"{scale}: {label}", len(ones), *(kept_share(ones, chain) for chain in chains))


def kept_share(parts: Sequence[Part], chain: Chain) -> Tally:
    return Tally(sum(chain.verdicts[one.name] is None for one in parts), len(parts))


SHARES = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01))


def pages_table(pages: Sequence[Page], chains: Sequence[Chain]) -> Iterator[str]:
    """What is kept of pages whose lines are known: their main lines, the others, and the whole by its share of main lines.

    Verdicts are those of `NAME main`, `NAME others`, `NAME whole`.
    """
    yield from head("page lines", "texts", *(f"{chain.name}: kept" for chain in chains))
    for what in ("main", "others"):
        texts = [one for one in pages if getattr(one, what).strip()]
        yield row(
            f"{what} lines of a page", len(texts), *(_kept([f"{one.name} {what}" for one in texts], c) for c in chains)
        )
    for low, high in SHARES:
        texts = [one for one in pages if low <= one.share < high]
        cells = (_kept([f"{one.name} whole" for one in texts], chain) for chain in chains)
        yield row(f"whole page, main lines {low:.0%} to {min(high, 1):.0%} of it", len(texts), *cells)


def _kept(names: Sequence[str], chain: Chain) -> Tally:
    return Tally(sum(chain.verdicts[name] is None for name in names), len(names))


# -- rankings ---------------------------------------------------------------------------------------

Measures = Mapping[str, Callable[[Part], float]]


def rankings_table(parts: Sequence[Part], measures: Measures) -> Iterator[str]:
    """How measures order pairs of labels, in all pairs and in those of texts of nearly equal length."""
    pairs = (
        ("reading level", "advanced", "elementary"),
        ("reading level", "advanced", "intermediate"),
        ("reading level", "intermediate", "elementary"),
        ("web page part", "main content", "boilerplate"),
        ("web page part", "main content", "raw page text (main+boilerplate)"),
    )
    yield from head(
        "measure", *(f"{better} above {worse}: all pairs / of nearly equal length" for _, better, worse in pairs)
    )
    numbers: list[int] = []
    lines = []
    for name, measure in measures.items():
        cells = []
        numbers.clear()
        for scale, better, worse in pairs:
            high, low = (
                [one for one in parts if (one.scale, one.label) == (scale, label)] for label in (better, worse)
            )
            area, near, number = ranking(high, low, measure)
            cells.append(f"{area:.2f} / {near:.2f}")
            numbers.append(number)
        lines.append(row(name, *cells))
    yield row("pairs of nearly equal length", *numbers)
    yield from lines
