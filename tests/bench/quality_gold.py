"""The gold of quality filtering, and how verdicts and rankings are scored against it.

Two sets of the test data: `2_text`, documents of 25 languages called good, junk, or neither (degraded, mixed, neutral, short:
told apart, never right or wrong), and `6_quality`, texts at three reading levels and the parts of web pages. Verdicts are a
mapping from a document's id to the reason for which it is dropped, None where it is kept.

Halves: thresholds were tuned on `development`, documents whose id's SHA-256 begins with an even byte; `held out` are the
others, and what is said of a chain should be said of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tests.bench.language_gold import read_rows

__all__ = [
    "ENOUGH",
    "HALVES",
    "LABEL_OF",
    "Document",
    "Page",
    "Part",
    "Score",
    "Tally",
    "Verdicts",
    "area_under_curve",
    "half_of",
    "languages_with_enough",
    "load_pages",
    "load_parts",
    "load_texts",
    "matched_area",
    "ranking",
    "score",
    "sentence_length",
]

Verdicts = Mapping[str, str | None]

HALVES = ("all", "development", "held out")

ENOUGH = 50
"""Good documents from which on a language counts by itself."""

LABEL_OF: Mapping[str, str] = {
    "ar": "ara_Arab", "ca": "cat_Latn", "cs": "ces_Latn", "da": "dan_Latn", "de": "deu_Latn", "el": "ell_Grek",
    "en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn", "hi": "hin_Deva", "id": "ind_Latn", "it": "ita_Latn",
    "ja": "jpn_Jpan", "ko": "kor_Kore", "la": "lat_Latn", "lzh": "zho_Hans", "nl": "nld_Latn", "no": "nor_Latn",
    "pl": "pol_Latn", "pt": "por_Latn", "ro": "ron_Latn", "ru": "rus_Cyrl", "sv": "swe_Latn", "th": "tha_Thai",
    "tr": "tur_Latn", "vi": "vie_Latn", "zh": "zho_Hans", "zh-Hant": "zho_Hant",
}  # fmt: skip
"""The gold's languages as the filter `language` labels them; of others it says nothing."""


# -- documents --------------------------------------------------------------------------------------


class Document(NamedTuple):
    """A text with its gold: language None where it has none, quality, and the class of junk or the kind of text."""

    name: str
    text: str
    language: str | None
    quality: str
    kind: str
    source: str = ""


def half_of(name: str) -> str:
    return HALVES[1 + hashlib.sha256(name.encode()).digest()[0] % 2]


def load_texts(folder: Path) -> list[Document]:
    """All documents of `2_text`, in the order of their files."""
    gold = {row["id"]: row for row in read_rows(folder / "gold.jsonl.zst")}
    rows = (row for path in sorted(folder.glob("crawl-*.jsonl.zst")) for row in read_rows(path))
    return [_document(row, gold[row["id"]]) for row in rows]


def _document(row: Mapping[str, Any], gold: Mapping[str, Any]) -> Document:
    language = None if gold["lang"] in (None, "und", "code") else str(gold["lang"])
    return Document(row["id"], row["text"], language, gold["quality"], gold.get("kind") or "", gold.get("source") or "")


# -- verdicts ---------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Hits among a number of documents."""

    hits: int = 0
    number: int = 0

    def add(self, hit: bool) -> None:
        self.hits += hit
        self.number += 1

    @property
    def share(self) -> float:
        """nan of none."""
        return self.hits / self.number if self.number else float("nan")

    def __str__(self) -> str:
        return f"{self.share:.3f}"


@dataclass
class Score:
    """What a chain did to documents.

    good: kept, by language. junk: dropped, by class. others: kept, by quality and class. reasons: of good documents dropped.
    """

    good: dict[str, Tally] = field(default_factory=dict)
    junk: dict[str, Tally] = field(default_factory=dict)
    others: dict[str, Tally] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def macro_good(self) -> float:
        """Mean over languages of the share of good documents kept."""
        return float(np.mean([one.share for one in self.good.values()]))

    @property
    def good_kept(self) -> Tally:
        return _sum(self.good.values())

    @property
    def junk_dropped(self) -> Tally:
        return _sum(self.junk.values())

    @property
    def macro_junk(self) -> float:
        """Mean over classes of the share of junk dropped."""
        return float(np.mean([one.share for one in self.junk.values()]))

    def least_good(self, languages: Iterable[str]) -> tuple[str, Tally]:
        """Of some languages the one that keeps least of its good documents."""
        found = [(name, self.good[name]) for name in languages if name in self.good]
        return min(found, key=lambda one: one[1].share)


def _sum(tallies: Iterable[Tally]) -> Tally:
    ones = list(tallies)
    return Tally(sum(one.hits for one in ones), sum(one.number for one in ones))


def score(documents: Iterable[Document], verdicts: Verdicts, half: str = "all") -> Score:
    """Raises KeyError for a document without a verdict."""
    found = Score()
    for one in documents:
        if half not in ("all", half_of(one.name)):
            continue
        reason = verdicts[one.name]
        if one.quality == "good":
            found.good.setdefault(one.language or "none", Tally()).add(reason is None)
            if reason is not None:
                found.reasons[reason] = found.reasons.get(reason, 0) + 1
        elif one.quality == "junk":
            found.junk.setdefault(one.kind, Tally()).add(reason is not None)
        else:
            kind = f"{one.quality}: {one.kind}" if one.quality == "degraded" else one.quality
            found.others.setdefault(kind, Tally()).add(reason is None)
    return found


def languages_with_enough(documents: Iterable[Document], least: int = ENOUGH) -> list[str]:
    """Languages of the gold with enough good documents, in all, most first."""
    counts: dict[str, int] = {}
    for one in documents:
        if one.quality == "good" and one.language is not None:
            counts[one.language] = counts.get(one.language, 0) + 1
    return sorted((name for name, number in counts.items() if number >= least), key=lambda name: -counts[name])


# -- parts of pages, reading levels -----------------------------------------------------------------


class Part(NamedTuple):
    """A row of `6_quality`: label is one of its scale's, group the page or topic that it belongs to."""

    name: str
    text: str
    label: str
    scale: str
    group: str


class Page(NamedTuple):
    """A page as main lines and the others, each joined, and the share of characters in main lines."""

    name: str
    main: str
    others: str
    whole: str
    share: float


def load_parts(folder: Path) -> list[Part]:
    rows = read_rows(folder / "labelled.jsonl.zst")
    return [
        Part(
            row["id"],
            row["text"],
            str(row["label"]),
            row["scale"].partition(" (")[0],
            row.get("page") or row.get("topic", ""),
        )
        for row in rows
    ]


def load_pages(folder: Path) -> list[Page]:
    return [_page(row) for row in read_rows(folder / "page_lines.jsonl.zst")]


def _page(row: Mapping[str, Any]) -> Page:
    main, others = (
        "\n".join(line for line, flag in zip(row["lines"], row["main"], strict=True) if bool(flag) == wanted)
        for wanted in (True, False)
    )
    return Page(row["id"], main, others, "\n".join(row["lines"]), row["main_char_share"])


# -- rankings ---------------------------------------------------------------------------------------

Doubles = npt.NDArray[np.float64]


def area_under_curve(better: Sequence[float], worse: Sequence[float]) -> float:
    """Probability that one of the better has the higher score than one of the worse; ties count half. nan of none."""
    high, low = _numbers(better), _numbers(worse)
    if not len(high) or not len(low):
        return float("nan")
    low.sort()
    below, up_to = np.searchsorted(low, high, "left"), np.searchsorted(low, high, "right")
    return float((below + up_to).mean() / 2 / len(low))


def matched_area(
    better: Sequence[float], worse: Sequence[float], sizes: tuple[Sequence[float], Sequence[float]], ratio: float = 1.1
) -> tuple[float, int]:
    """The same over pairs of nearly equal size only: the longer has at most `ratio` times the shorter's. And their number."""
    high, low = _numbers(better)[:, None], _numbers(worse)[None, :]
    long, short = (np.maximum(_numbers(one), 1) for one in sizes)
    near = np.abs(np.log(long)[:, None] - np.log(short)[None, :]) <= np.log(ratio)
    number = int(near.sum())
    if not number:
        return float("nan"), 0
    wins = (high > low) + 0.5 * (high == low)
    return float(wins[near].mean()), number


def _numbers(values: Sequence[float]) -> Doubles:
    """nan, a score that is undefined, is lower than all others."""
    found = np.array(values, np.float64)
    found[np.isnan(found)] = -np.inf
    return found


def ranking(
    better: Sequence[Part], worse: Sequence[Part], measure: Callable[[Part], float]
) -> tuple[float, float, int]:
    """Areas of a measure over all pairs and over those of nearly equal length, and the number of the latter."""
    high, low = [measure(one) for one in better], [measure(one) for one in worse]
    sizes = ([float(len(one.text)) for one in better], [float(len(one.text)) for one in worse])
    return area_under_curve(high, low), *matched_area(high, low, sizes)


_SENTENCE_END = re.compile(r"[.!?。！？]+[\"')\]”’]*\s|\n")


def sentence_length(text: str) -> float:
    """Mean number of blank-separated words of what lies between ends of sentences or lines; 0 of none."""
    lengths = [len(one.split()) for one in _SENTENCE_END.split(text)]
    lengths = [one for one in lengths if one]
    return sum(lengths) / len(lengths) if lengths else 0.0
