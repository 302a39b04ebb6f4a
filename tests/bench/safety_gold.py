"""The gold of safety filtering: rows in groups that no model was trained on, and how verdicts and margins are scored.

Of `5_safety` only what differs from all training rows by source or topic: chat adverts of tg-spam, rows written by hand, Telegram
spam of umputun, Korean comments, one topic of COLD, news headlines, laws. With the rows that tools/make_safety_public.py
writes also the templates of HateCheck and its translations that it holds out, the rest of that topic, and surge-ai's comments; with
those of tools/make_safety_rows.py our own sentences, written apart from the training rows: most are riddles that avoid the usual
words, some (`usual words`) are not. `suite`: the plain adverts and look-alikes of tests/golden/safety_evasion.py.

A system says a margin of each row: how far it is above its own threshold, so that 0 and more means drop; nan where it was not asked.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tests.bench.language_gold import read_rows
from tests.bench.quality_gold import area_under_curve
from tests.golden.safety_evasion import load_lookalikes, load_phrases

__all__ = [
    "Counts",
    "Row",
    "average_precision",
    "best_f1",
    "capped",
    "counts",
    "load_own",
    "load_public",
    "load_shared",
    "load_suite",
    "ranks",
    "recall_at",
]

Doubles = npt.NDArray[np.float64]


class Row(NamedTuple):
    """A text with its gold. group: a set with its source and language; part: what kind within it.

    hard: harmless, but with a word or the form of what is dropped.
    """

    name: str
    text: str
    lang: str
    unsafe: bool
    labels: tuple[str, ...]
    group: str
    part: str
    hard: bool = False


# -- rows -------------------------------------------------------------------------------------------

BY_HAND: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gambling ad": ("adverts", ("gambling",)),
    "porn ad": ("adverts", ("sexual",)),
    "euphemism:recruit (上车)": ("euphemism", ("spam",)),
    "literal 上车/暗号/沙发/顶/开车": ("euphemism", ()),
    "forum filler line": ("filler", ("filler",)),
    "forum filler thread": ("filler", ("filler",)),
}
"""Parts of the rows written by hand: group and labels. Others are harmless texts of all three."""


def load_shared(folder: Path) -> list[Row]:
    """Rows of `5_safety` whose source or topic was never trained on."""
    found = (_shared(row) for row in read_rows(folder / "labelled.jsonl.zst"))
    return [row for row in found if row is not None]


def _shared(row: Mapping[str, Any]) -> Row | None:
    source, category, unsafe = row["source"].split(":")[0], row["category"], bool(row["unsafe"])
    labels: tuple[str, ...] = ("hate",) if unsafe else ()
    group, part = "", category
    if source == "handmade":
        kind, labels = BY_HAND.get(category, ("", ()))
        group, part = f"by hand, {kind or 'harmless'}", category
    elif source == "MarkIvory2973/tg-spam":
        group, labels = "tg-spam zh", ("spam",) if unsafe else ()
    elif source == "umputun/tg-spam":
        group, labels = f"umputun {row['lang']}", ("spam",) if unsafe else ()
    elif source == "kocohub/korean-hate-speech":
        group = "Korean comments"
    elif source == "thu-coai/COLDataset" and category == "offensive:region":
        group = "COLD region"
    elif source.endswith("Chinese-Text-Classification-Pytorch"):
        group, part = "headlines", "headline with trigger" if row.get("hard_negative") else "headline"
    elif source in ("LawRefBook/Laws", "google-deepmind/xquad", "ymcui/cmrc2018"):
        group, part = "laws and encyclopedia", "literal use"
    else:
        return None
    return Row(row["id"], row["text"], row["lang"], unsafe, labels, group, part, bool(row.get("hard_negative")))


def load_public(path: Path) -> list[Row]:
    """Held-out rows of a file of tools/make_safety_public.py."""
    found = []
    for number, row in enumerate(_rows_of(path, "test")):
        source, labels = row["source"], tuple(row["labels"])
        hard = False
        if source == "thu-coai/COLDataset":
            group = "COLD region"
        elif source == "surge-ai/toxicity":
            group = "surge-ai en"
        else:
            group = "HateCheck en" if row["lang"] == "en" else "HateCheck translations"
            hard = not labels
        found.append(
            Row(
                f"public{number}", row["text"], row["lang"], bool(labels), labels, group, f"{group} {row['lang']}", hard
            )
        )
    return found


def load_own(path: Path) -> list[Row]:
    """Test rows of a file of tools/make_safety_rows.py."""
    found = []
    for number, row in enumerate(_rows_of(path, "test")):
        labels, lang = tuple(row["labels"]), row["lang"]
        part = labels[0] if labels else "harmless"
        group = f"own {lang}, usual words" if "usual" in row["pattern"] else f"own {lang}"
        found.append(Row(f"own{number}", row["text"], lang, bool(labels), labels, group, part, not labels))
    return found


def load_suite() -> list[Row]:
    """The plain adverts and the innocent look-alikes of the evasion suite."""
    found = []
    for number, one in enumerate(load_phrases()):
        found.append(Row(f"advert{number}", one.text, one.lang, True, (one.kind,), _suite(one.lang), one.kind))
    for number, one in enumerate(load_lookalikes()):
        found.append(Row(f"innocent{number}", one.text, one.lang, False, (), _suite(one.lang), "look-alike", True))
    return found


def _suite(lang: str) -> str:
    return f"suite {lang if lang in ('zh', 'zh-Hant', 'en', 'ja') else 'of other languages'}"


def _rows_of(path: Path, split: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("split") == split:
                yield row


def capped(rows: Iterable[Row], most: int) -> list[Row]:
    """Each text once, and at most so many of a group and label and language, chosen by hash."""
    seen: set[str] = set()
    taken: dict[tuple[str, str, bool], int] = {}
    found = []
    for row in sorted(rows, key=lambda one: hashlib.sha256(one.text.encode()).digest()):
        key = (row.group, row.lang, row.unsafe)
        if row.text in seen or taken.get(key, 0) >= most:
            continue
        seen.add(row.text)
        taken[key] = taken.get(key, 0) + 1
        found.append(row)
    return sorted(found, key=lambda one: (one.group, one.lang, one.part, one.name))


# -- scores -----------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """Unsafe rows found and missed, harmless ones dropped and kept."""

    found: int
    missed: int
    wrong: int
    kept: int

    @property
    def precision(self) -> float:
        """nan where nothing was dropped."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else math.nan

    @property
    def recall(self) -> float:
        """nan without unsafe rows."""
        return self.found / (self.found + self.missed) if self.found + self.missed else math.nan

    @property
    def f1(self) -> float:
        """0 where nothing was found; nan without unsafe rows."""
        if not self.found + self.missed:
            return math.nan
        return 2 * self.found / (2 * self.found + self.missed + self.wrong)

    @property
    def false_alarms(self) -> float:
        """nan without harmless rows."""
        return self.wrong / (self.wrong + self.kept) if self.wrong + self.kept else math.nan


def counts(unsafe: Sequence[bool], margins: Doubles, threshold: float = 0.0) -> Counts:
    """What a system does to rows; nan keeps."""
    truth = np.asarray(unsafe, bool)
    with np.errstate(invalid="ignore"):
        dropped = margins >= threshold
    return Counts(
        *(int((a & b).sum()) for a, b in ((truth, dropped), (truth, ~dropped), (~truth, dropped), (~truth, ~dropped)))
    )


def best_f1(unsafe: Sequence[bool], margins: Doubles) -> tuple[float, float]:
    """The greatest F1 of any threshold, and that threshold: what a system could reach were it set for this group."""
    truth, values = np.asarray(unsafe, bool), np.where(np.isnan(margins), -np.inf, margins)
    if not truth.any():
        return math.nan, math.nan
    order = np.argsort(-values, kind="stable")
    found = np.cumsum(truth[order])
    f1 = 2 * found / (np.arange(1, len(order) + 1) + truth.sum())
    last = np.append(values[order][1:] != values[order][:-1], True)  # equal values fall together
    place = int(np.argmax(np.where(last, f1, -1.0)))
    return float(f1[place]), float(values[order][place])


def average_precision(unsafe: Sequence[bool], margins: Doubles) -> float:
    """Mean precision at each step of recall; equal margins are one step. nan without unsafe rows."""
    truth, values = np.asarray(unsafe, bool), np.where(np.isnan(margins), -np.inf, margins)
    if not truth.any():
        return math.nan
    order = np.argsort(-values, kind="stable")
    last = np.flatnonzero(np.append(values[order][1:] != values[order][:-1], True))
    found = np.cumsum(truth[order])[last]
    return float(np.sum(np.diff(found, prepend=0) * found / (last + 1)) / truth.sum())


def ranks(unsafe: Sequence[bool], margins: Doubles) -> float:
    """Area under the curve: how often an unsafe row has the greater margin; ties count half."""
    truth = np.asarray(unsafe, bool)
    return area_under_curve(margins[truth].tolist(), margins[~truth].tolist())


def recall_at(unsafe: Sequence[bool], margins: Doubles, precision: float = 0.9) -> float:
    """The greatest recall of a threshold whose precision is at least this were both classes as many; 0 of none.

    Groups differ in how many of their rows are unsafe; so weighed, they compare. nan without rows of both classes.
    """
    truth, values = np.asarray(unsafe, bool), np.where(np.isnan(margins), -np.inf, margins)
    if not truth.any() or truth.all():
        return math.nan
    order = np.argsort(-values, kind="stable")
    last = np.append(values[order][1:] != values[order][:-1], True) & (values[order] > -np.inf)
    found = np.cumsum(truth[order]) / truth.sum()
    wrong = np.cumsum(~truth[order]) / (~truth).sum()
    fine = last & (found >= precision * (found + wrong)) & (found > 0)
    return float(found[fine].max()) if fine.any() else 0.0
