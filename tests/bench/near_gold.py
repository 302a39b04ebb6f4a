"""Scores near-duplicate removal against gold: pairs found, documents rightly dropped, groups lost whole, chains.

The gold of the test data's `3_neardup` names every pair of documents with a Jaccard similarity of 0.5 or more, so any
threshold t >= 0.5 can be scored exactly. A pair is near if its Jaccard is greater than t, not equal to it. The gold is
rounded to four digits: where that leaves open on which side of t a pair lies, it is counted anew by an oracle in plain
Python, written from the data's description and not from this project's kernels. Loading takes about 1 s and 250 MB.

`load_planted` reads the labels of a generated corpus instead: the copies that were planted, each with the document it was
made from. Those are not all near pairs, so they tell what was missed, and nothing about what was dropped wrongly.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

__all__ = ["Gold", "Score", "jaccard", "load_gold", "load_planted", "read_documents", "score", "shingles"]

SHINGLE = 5
"""Words, or characters where a text is mostly Chinese, Japanese or Korean, in one shingle."""
ROUNDING = 0.5e-4
"""The gold's Jaccard has four digits."""
LONG_WINDOW = 2**27
"""The data are compressed with windows larger than zstd's default."""

_WORD = re.compile(r"\w+")
_HAN_KANA_HANGUL = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


# -- the oracle -------------------------------------------------------------------------------------


def shingles(text: str) -> tuple[str, frozenset[str]]:
    """Kind (`word5` or `char5`) and set of shingles of a text, as the gold defines them.

    Tokens are the maximal runs of `\\w` in the lower-cased NFKC text. With more than 30 % han, kana or hangul among
    their characters the shingles are runs of 5 characters of all tokens joined, else of 5 tokens. A text too short for
    one is a single shingle.
    """
    tokens = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    joined = "".join(tokens)
    if joined and len(_HAN_KANA_HANGUL.findall(joined)) / len(joined) > 0.3:
        return "char5", frozenset(joined[i : i + SHINGLE] for i in range(max(1, len(joined) - SHINGLE + 1)))
    places = range(max(1, len(tokens) - SHINGLE + 1))
    return "word5", frozenset(" ".join(tokens[i : i + SHINGLE]) for i in places)


def jaccard(one: str, other: str) -> float:
    """Shared shingles by all shingles of two texts; 0 if their shingles are of different kinds."""
    (kind, left), (other_kind, right) = shingles(one), shingles(other)
    if kind != other_kind:
        return 0.0
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


# -- the gold ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gold:
    """Documents and their similar pairs.

    `pairs` maps (a, b) with a < b to their Jaccard. `complete`: every pair of at least 0.5 is there.
    """

    texts: Mapping[str, str]
    languages: Mapping[str, str]
    pairs: Mapping[tuple[str, str], float]
    complete: bool = True
    similarity: Callable[[str, str], float] = jaccard
    """Of two texts: what the pairs were counted by."""

    def near(self, threshold: float) -> dict[tuple[str, str], float]:
        """Pairs with a Jaccard > threshold, exact where rounding matters.

        Raises:
            ValueError: the gold does not reach down to this threshold.
        """
        if not 0.5 <= threshold <= 1:
            raise ValueError(f"the gold has pairs from 0.5 on: expected a threshold from 0.5 to 1, found {threshold}")
        found: dict[tuple[str, str], float] = {}
        for pair, rounded in self.pairs.items():
            if rounded < threshold - ROUNDING:
                continue
            exact = rounded if rounded > threshold + ROUNDING else self.exact(*pair)
            if exact > threshold:
                found[pair] = exact
        return found

    def exact(self, one: str, other: str) -> float:
        """Jaccard of two documents, counted anew."""
        return self.similarity(self.texts[one], self.texts[other])


def read_documents(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Rows of JSON lines files, plain or .zst, in order."""
    for path in paths:
        with path.open("rb") as file:
            stream: Any = file
            if path.suffix == ".zst":
                stream = zstandard.ZstdDecompressor(max_window_size=LONG_WINDOW).stream_reader(file)
            for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"):
                yield json.loads(line)


def load_gold(folder: Path) -> Gold:
    """The gold of `3_neardup`: all documents, in order, and all pairs with a Jaccard of at least 0.5."""
    texts: dict[str, str] = {}
    languages: dict[str, str] = {}
    for row in read_documents(sorted(folder.glob("docs-*.jsonl.zst"))):
        texts[row["id"]] = row["text"]
        languages[row["id"]] = row["lang"]
    pairs: dict[tuple[str, str], float] = {}
    with gzip.open(folder / "gold_pairs.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)  # names of the columns
        for line in file:
            one, other, similarity = line.split("\t")[:3]
            pairs[_ordered(one, other)] = float(similarity)
    return Gold(texts, languages, pairs)


def load_planted(corpus: Path) -> Gold:
    """The planted copies of a generated corpus: `corpus/*.jsonl` with labels in `corpus/gold/*.jsonl.zst`."""
    texts = {row["id"]: row["text"] for row in read_documents(sorted(corpus.glob("*.jsonl")))}
    languages: dict[str, str] = {}
    pairs: dict[tuple[str, str], float] = {}
    for row in read_documents(sorted((corpus / "gold").glob("*.jsonl.zst"))):
        languages[row["id"]] = row.get("lang") or "?"
        if "dup_of" in row:
            pairs[_ordered(row["id"], row["dup_of"])] = row["jaccard"]
    return Gold(texts, languages, pairs, complete=False)


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


# -- the score --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrong:
    """A pair or document that was judged wrongly, to be looked at: ids, their Jaccard, the first one's language."""

    one: str
    other: str | None
    """None: there is no similar document in the gold."""
    similarity: float | None
    """None: below 0.5, and not known."""
    language: str

    def __str__(self) -> str:
        similarity = "< 0.5" if self.similarity is None else f"{self.similarity:.4f}"
        return f"{self.one} {self.other or '-'} {similarity} {self.language}"


@dataclass
class Score:
    """What one run of near-duplicate removal did, against the gold."""

    threshold: float
    pairs: int = 0
    """Near pairs of the gold."""
    removed: int = 0
    """Documents that are not kept."""
    groups: int = 0
    """Connected components of the near pairs, of two documents and more."""
    missed: list[Wrong] = field(default_factory=list)
    """Near pairs of which both are kept."""
    wrongly_removed: list[Wrong] = field(default_factory=list)
    """Removed documents without a near document among the kept ones, with the most similar kept one."""
    orphaned: int = 0
    """Of those, the ones that do have a near document, which is not kept either: the end of a chain, or a lost group."""
    lost: list[tuple[str, ...]] = field(default_factory=list)
    """Groups of which nothing is kept."""
    chained: list[Wrong] = field(default_factory=list)
    """Removed documents whose named partner is not near."""
    partner_removed: list[Wrong] = field(default_factory=list)
    """Removed documents whose named partner is not kept."""

    @property
    def recall(self) -> float:
        """Share of the near pairs of which not both are kept; 1 where there are none."""
        return 1 - len(self.missed) / self.pairs if self.pairs else 1.0

    @property
    def precision(self) -> float:
        """Share of the removed documents that are near a kept one; 1 where nothing was removed."""
        return 1 - len(self.wrongly_removed) / self.removed if self.removed else 1.0


def score(gold: Gold, kept: Iterable[str], threshold: float, partners: Mapping[str, str] | None = None) -> Score:
    """Score what was kept.

    Args:
        kept: ids of the documents that were kept.
        threshold: two documents are near if their Jaccard is greater.
        partners: for each removed document the one it was said to duplicate, from a tool that says so.

    Raises:
        ValueError: ids that the gold does not know, a removed document without a partner, or a kept one with one.
    """
    kept = _checked(gold, set(kept), partners)
    near = gold.near(threshold)
    removed = [name for name in gold.texts if name not in kept]
    found = Score(threshold, pairs=len(near), removed=len(removed))
    found.missed = [
        Wrong(one, other, similarity, gold.languages[one])
        for (one, other), similarity in near.items()
        if one in kept and other in kept
    ]
    groups = _components(near)
    found.groups = len(groups)
    found.lost = [group for group in groups if kept.isdisjoint(group)]
    if gold.complete:
        _score_removed(found, gold, kept, removed, near)
    if partners is not None:
        _score_partners(found, gold, kept, partners, near)
    return found


def _checked(gold: Gold, kept: set[str], partners: Mapping[str, str] | None) -> set[str]:
    named = set() if partners is None else {*partners, *partners.values()}
    if unknown := sorted((kept | named) - gold.texts.keys()):
        raise ValueError(f"{len(unknown)} ids are not in the gold, such as {unknown[0]!r}: this is another corpus")
    if partners is not None and (odd := sorted(gold.texts.keys() - kept ^ partners.keys())):
        raise ValueError(
            f"{len(odd)} documents, such as {odd[0]!r}, are removed without a partner or kept with one: "
            "expected a partner for every document that is not kept, and for no other"
        )
    return kept


def _score_removed(
    found: Score, gold: Gold, kept: set[str], removed: list[str], near: Mapping[tuple[str, str], float]
) -> None:
    """Documents that nothing kept is near to. Similarities are the gold's: good enough to name the best."""
    has_near_kept: set[str] = set()
    has_near: set[str] = set()
    for one, other in near:
        has_near |= {one, other}
        has_near_kept |= {name for name, partner in ((one, other), (other, one)) if partner in kept}
    wrong = [name for name in removed if name not in has_near_kept]
    best: dict[str, tuple[float, str]] = {}
    for (one, other), similarity in gold.pairs.items():
        for name, partner in ((one, other), (other, one)):
            if partner in kept:
                best[name] = max(best.get(name, (0.0, "")), (similarity, partner))
    for name in wrong:
        closest = best.get(name)
        found.wrongly_removed.append(Wrong(name, closest and closest[1], closest and closest[0], gold.languages[name]))
    found.orphaned = sum(name in has_near for name in wrong)


def _score_partners(
    found: Score, gold: Gold, kept: set[str], partners: Mapping[str, str], near: Mapping[tuple[str, str], float]
) -> None:
    for name, partner in partners.items():
        pair = _ordered(name, partner)
        similarity = near.get(pair, gold.pairs.get(pair))
        if pair not in near and not gold.complete:  # the planted copies are not all pairs there are
            similarity = gold.exact(*pair)
        wrong = Wrong(name, partner, similarity, gold.languages[name])
        if similarity is None or (pair not in near and not similarity > found.threshold):
            found.chained.append(wrong)
        if partner not in kept:
            found.partner_removed.append(wrong)


def _components(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Groups of documents that are connected by pairs, each sorted, in order of their first."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one, other in pairs:
        parent[root(one)] = root(other)
    groups: dict[str, list[str]] = {}
    for name in sorted(parent):
        groups.setdefault(root(name), []).append(name)
    return [tuple(group) for group in groups.values()]
