"""A crawl with planted junk, and how what was chosen of it is scored against gold.

Gold is the test data's `2_text`. Parts are drawn by the SHA-256 of a document's id: a quarter of the good ones trains, a quarter
is for tuning settings, half is judged; junk trains nothing: half of it is for tuning, half is judged. What is neither good nor
junk takes no part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.rescore.choose import HIGH, LOW, Chosen, choose
from curation.rescore.config import ChooseConfig
from tests.bench.quality_gold import Document

__all__ = ["Gold", "Line", "Rows", "choose_among", "lines", "part_of", "place_of", "planted", "table_of", "total"]

Rows = npt.NDArray[np.int64]
CRAWL = "crawl.jsonl"
"""Name of the one source where all documents are taken as one file."""
ENOUGH = 10
"""Junk documents of a language from which on good ones are left out to reach a share."""


class Gold(NamedTuple):
    """Of n scored documents, in the order of the scores: what they are."""

    documents: list[Document]
    junk: npt.NDArray[np.bool_]
    part: npt.NDArray[np.str_]
    kept: npt.NDArray[np.bool_]
    """By the steps of the run."""
    draw: npt.NDArray[np.float64]
    """0 to 1, by a hash of the id: who is planted first."""


def place_of(name: str, salt: str) -> float:
    """0 to 1, uniform."""
    return int.from_bytes(hashlib.sha256(f"{salt} {name}".encode()).digest()[:4], "big") / 2**32


def part_of(document: Document) -> str:
    """train, tuning or judged; empty for what is neither good nor junk."""
    if document.quality not in ("good", "junk"):
        return ""
    place = hashlib.sha256(b"rescore " + document.name.encode()).digest()[0] / 256
    if document.quality == "good" and place < 1 / 4:
        return "train"
    return "tuning" if place < 1 / 2 else "judged"


def planted(language: npt.NDArray[np.str_], gold: Gold, part: str, share: float, *, kept: bool = False) -> Rows:
    """Rows of a crawl of which a share is junk, in each language that has junk enough.

    Of a language with more junk than that, junk is left out; with less, good documents are, where there are ENOUGH of junk;
    else it stays as it is.

    Args:
        kept: only what the run's steps have kept.
    """
    rows: list[int] = []
    mine = (gold.part == part) & (gold.kept if kept else True)
    for label in np.unique(language):
        here = np.flatnonzero((language == label) & mine)
        here = here[np.argsort(gold.draw[here], kind="stable")]
        good, junk = here[~gold.junk[here]], here[gold.junk[here]]
        wanted = round(len(good) * share / (1 - share))
        if wanted <= len(junk):
            junk = junk[:wanted]
        elif len(junk) >= ENOUGH:
            good = good[: round(len(junk) * (1 - share) / share)]
        rows += [*good.tolist(), *junk.tolist()]
    return np.array(sorted(rows), np.int64)


def choose_among(scores: pa.Table, rows: Rows, config: ChooseConfig, *, one_source: bool) -> Chosen:
    """What is chosen of some of the documents, as if they were all there are."""
    table = scores.take(pa.array(rows)).combine_chunks()
    if one_source:
        at = table.column_names.index("source")
        table = table.set_column(at, "source", pa.repeat(pa.scalar(CRAWL), table.num_rows))
    return choose(table, config)


# -- counts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """What was chosen among some documents."""

    documents: int = 0
    judged: int = 0
    junk: int = 0
    """Of the judged."""
    high_junk: int = 0
    high_good: int = 0
    low_junk: int = 0
    low_good: int = 0
    held_back: int = 0
    """By `max_share`."""
    too_few: int = 0
    """Junk in groups below `min_documents`."""

    def plus(self, other: Line) -> Line:
        return Line(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def base(self) -> float:
        return self.junk / self.judged if self.judged else float("nan")

    @property
    def hits(self) -> int:
        return self.high_junk + self.low_junk

    @property
    def wrong(self) -> int:
        return self.high_good + self.low_good

    @property
    def precision(self) -> float:
        return self.hits / (self.hits + self.wrong) if self.hits + self.wrong else float("nan")

    @property
    def recall(self) -> float:
        return self.hits / self.junk if self.junk else float("nan")

    @property
    def good_lost(self) -> float:
        good = self.judged - self.junk
        return self.wrong / good if good else float("nan")


def total(ones: Iterable[Line]) -> Line:
    found = Line()
    for one in ones:
        found = found.plus(one)
    return found


def lines(scores: pa.Table, gold: Gold, rows: Rows, config: ChooseConfig, *, one_source: bool) -> dict[str, Line]:
    """By language."""
    chosen = choose_among(scores, rows, config, one_source=one_source)
    junk = gold.junk[rows]
    language = np.array(scores.column("language").to_pylist())[rows]
    source = np.array(scores.column("source").to_pylist())[rows]
    held: dict[str, int] = {}
    few: set[tuple[str, str]] = set()
    for group in chosen.groups.to_pylist():
        name = group["language"]
        held[name] = held.get(name, 0) + group["high_held_back"] + group["low_held_back"]
        if group["too_few"]:
            few.add((name, group["source"]))
    small = np.array([(a, CRAWL if one_source else b) in few for a, b in zip(language, source, strict=True)], np.bool_)
    found = {}
    for label in np.unique(language).tolist():
        here = language == label
        judged = here & chosen.judged
        counts = [
            int((here & (junk == is_junk) & (chosen.side == end)).sum())
            for end in (HIGH, LOW)
            for is_junk in (True, False)
        ]
        of = [int(here.sum()), int(judged.sum()), int((judged & junk).sum())]
        found[label] = Line(*[*of, *counts, held.get(label, 0), int((judged & junk & small).sum())])
    return found


# -- tables ------------------------------------------------------------------------------------

NAMES = (
    "language", "documents", "judged", "of them junk", "base rate", "high: junk + good", "low: junk + good",
    "junk among the chosen", "junk found", "good lost", "held back", "junk in too small groups",
)  # fmt: skip


def percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.1f} %"


def row_of(name: str, line: Line) -> str:
    cells = [
        name, f"{line.documents:,}", f"{line.judged:,}", f"{line.junk:,}", percent(line.base),
        f"{line.high_junk} + {line.high_good}", f"{line.low_junk} + {line.low_good}", percent(line.precision),
        percent(line.recall), percent(line.good_lost), f"{line.held_back}", f"{line.too_few}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def table_of(found: dict[str, Line], least: int) -> list[str]:
    """A row for each language with at least so many judged documents, one for the others together, and one for all."""
    large = {name: line for name, line in found.items() if line.judged >= least}
    small = [line for name, line in found.items() if name not in large]
    rows = [row_of(name, line) for name, line in sorted(large.items(), key=lambda one: -one[1].judged)]
    others = [row_of(f"{len(small)} others, each below {least}", total(small))] if small else []
    head = [f"| {' | '.join(NAMES)} |", "| --- " + "| ---: " * (len(NAMES) - 1) + "|"]
    return [*head, *rows, *others, row_of("**all**", total(found.values()))]
