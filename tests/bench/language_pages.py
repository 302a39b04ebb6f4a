"""Scores of mixed pages: the language of the page and of its lines, and whether a mix was found.

What others say of a page is one code; what the filter says is an `Answer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.language_answers import Answer
from tests.bench.language_gold import NOTHING, Page

__all__ = [
    "LineScore",
    "MixScore",
    "agreed",
    "by_share",
    "han_only_lines",
    "line_score",
    "mix_score",
    "pages_wrong",
    "vote",
]

FOUND_FROM, SPARED_BELOW = 0.12, 0.08
"""Share of the other language from which on a mix must be found, and below which it must not: the filter's limit is a
tenth of the letters, and the gold counts characters."""


def vote(lines: Sequence[str], labels: Sequence[str]) -> str:
    """The language of most characters."""
    counts: Counter[str] = Counter()
    for text, label in zip(lines, labels, strict=True):
        counts[label] += len(text)
    counts.pop(NOTHING, None)
    return max(counts, key=lambda one: (counts[one], one)) if counts else NOTHING


def agreed(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """What two say alike, and nothing where they do not."""
    return [one if one == other else NOTHING for one, other in zip(first, second, strict=True)]


def pages_wrong(pages: Sequence[Page], told: Sequence[str]) -> list[tuple[Page, str]]:
    """Pages whose shares differ by more than 10 points and whose majority is not what was said, with that."""
    return [(page, one) for page, one in zip(pages, told, strict=True) if page.clear and one != page.majority]


def by_share(pages: Sequence[Page]) -> dict[str, list[int]]:
    """Places of pages by the other language's share of characters, in tenths; 40 to 50 is split at what counts as clear."""
    groups: dict[str, list[int]] = {}
    names = ["none", "below 10", "10 to 20", "20 to 30", "30 to 40", "40 to 45", "45 to 50"]
    for place, page in enumerate(pages):
        tenth = 0 if page.other_share == 0 else 1 + min(4, int(page.other_share * 10))
        groups.setdefault(names[tenth + (tenth == 5 and not page.clear)], []).append(place)
    return {name: groups[name] for name in names if name in groups}


@dataclass
class LineScore:
    """Lines of one language, weighed by characters.

    right, all: characters by the gold's language. confused: characters by the gold's language and what was said.
    """

    right: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    """Gold, what was said, the line."""

    @property
    def accuracy(self) -> float:
        return self.right.total() / max(1, self.all.total())


def line_score(pages: Sequence[Page], told: Iterable[Sequence[str]]) -> LineScore:
    """Labels of lines against the gold: codes, with or without a script. Lines that hold two languages are left out."""
    found = LineScore()
    for page, labels in zip(pages, told, strict=True):
        for (text, gold), label in zip(page.lines, labels, strict=True):
            if "+" in gold:
                continue
            language = label.partition("_")[0]
            found.all[gold] += len(text)
            if language == gold:
                found.right[gold] += len(text)
            else:
                found.confused[gold, language] += len(text)
                found.wrong.append((gold, label, text))
    return found


@dataclass(frozen=True)
class MixScore:
    """Pages that are mixed, or not, and how many were called so; pages of lines of two languages apart.

    Each value: (called mixed, all).
    """

    mixed: tuple[int, int]
    inline: tuple[int, int]
    spared: tuple[int, int]
    """Pages of one language, or with less of another than counts."""
    seen: tuple[int, int]
    """Pages with lines of two languages, whatever their share, in whose shares both languages appear."""
    missed: tuple[str, ...]
    """Names of inline pages that were not called mixed."""


def mix_score(pages: Sequence[Page], told: Sequence[Answer]) -> MixScore:
    """Whether mixes are found as the class `mixed`."""
    both = list(zip(pages, told, strict=True))
    must = [(page, one) for page, one in both if page.other_share >= FOUND_FROM]
    lines_of_two = [(page, one) for page, one in both if any("+" in gold for _, gold in page.lines)]
    inline = [(page, one) for page, one in lines_of_two if page.other_share >= FOUND_FROM]
    spared = [one for page, one in both if page.other_share < SPARED_BELOW]
    return MixScore(
        (sum(one.kind == "mixed" for _, one in must), len(must)),
        (sum(one.kind == "mixed" for _, one in inline), len(inline)),
        (sum(one.kind == "mixed" for one in spared), len(spared)),
        (sum(set(page.characters) <= set(one.shares) for page, one in lines_of_two), len(lines_of_two)),
        tuple(page.name for page, one in inline if one.kind != "mixed"),
    )


def han_only_lines(pages: Sequence[Page], told: Sequence[Answer]) -> Mapping[str, Counter[str]]:
    """Labels of Japanese lines without kana: in pages all Japanese, mostly Japanese, and others."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("all Japanese", "mostly Japanese", "other")}
    for page, one in zip(pages, told, strict=True):
        kind = "other" if page.majority != "jpn" else "mostly Japanese" if page.other_share else "all Japanese"
        counts[kind].update(one.lines[place] for place in page.han_only())
    return counts
