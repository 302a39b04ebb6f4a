"""The gold of near-duplicates counted anew by the step's own definition of words: what is a fault, and what a definition?

The gold cuts texts of han, kana and hangul by character, and all others by word. The step does so with other scripts that
are written without blanks too, unless `by_character` says otherwise: in Thai Python's `\\w` ends a word at each tone mark.
This module holds the step's definition in plain Python, from its description and without its tables and kernels, and finds
all pairs by it, exactly: texts that both definitions cut alike keep their pairs, the others are compared with all texts
through an index of their shingles. Takes about 15 s and 500 MB for the 31,500 documents of the gold.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from dataclasses import replace

from tests.bench.near_gold import SHINGLE, Gold, shingles

__all__ = ["own_jaccard", "own_shingles", "recounted"]

HANGUL_FILLERS = "\u115f\u1160\u3164\uffa0"
INVISIBLE_MARKS = "\u034f\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors, and a few like them."""
GOLD_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
UNSPACED_NAMES = tuple(
    """CJK|IDEOGRAPHIC|HIRAGANA|KATAKANA|HALFWIDTH KATAKANA|HANGUL|BOPOMOFO|YI |THAI|LAO|KHMER|MYANMAR|TAI |NEW TAI
|JAVANESE|BALINESE""".replace("\n", "").split("|")
)
"""How the names of characters begin whose scripts are written without blanks, or are compared like those."""

_WORD = re.compile(f"[^\\W{HANGUL_FILLERS}]+")
_VANISHING = re.compile(f"[{INVISIBLE_MARKS}]")
_ODD = re.compile(f"[{INVISIBLE_MARKS}{HANGUL_FILLERS}]")


@functools.cache
def _folded(character: str) -> str:
    """Simple case folding: one character for one."""
    return next((c for c in (character.casefold(), character.lower()) if len(c) == 1), character)


@functools.cache
def _is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(UNSPACED_NAMES)


def own_shingles(text: str) -> tuple[str, frozenset[str]]:
    """Kind (`word5`, `char5`, `none`) and set of shingles, by the step's definition.

    NFKC without invisible marks, simple case folding; a word is a run of letters, numbers and `_`. With more than 30 %
    of those in unspaced scripts: 5 characters of all words joined.
    """
    normal = _VANISHING.sub("", unicodedata.normalize("NFKC", text))
    words = _WORD.findall("".join(map(_folded, normal)))
    if not words:
        return "none", frozenset()
    joined = "".join(words)
    if 100 * sum(map(_is_unspaced, joined)) > 30 * len(joined):
        return "char5", frozenset(joined[i : i + SHINGLE] for i in range(max(1, len(joined) - SHINGLE + 1)))
    return "word5", frozenset(" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1)))


def own_jaccard(one: str, other: str) -> float:
    """Jaccard of two texts by the step's definition; 0 if their shingles are of different kinds, or there are none."""
    (kind, left), (other_kind, right) = own_shingles(one), own_shingles(other)
    shared = len(left & right) if kind == other_kind else 0
    return shared / (len(left) + len(right) - shared) if shared else 0.0


def _cut_alike(text: str) -> bool:
    """Whether the step cuts a text as the gold does. May say no where it does."""
    normal = unicodedata.normalize("NFKC", text)
    if not _WORD.search(normal) or _ODD.search(normal):
        return False
    if any(_is_unspaced(c) and not GOLD_UNSPACED.match(c) for c in set(normal)):
        return False
    return normal.lower() == "".join(map(_folded, normal))


def recounted(gold: Gold, least: float = 0.5) -> Gold:
    """The gold by the step's definition: all pairs with a Jaccard >= `least`; of a gold of planted copies only those.

    Pairs of texts that are cut alike keep the gold's Jaccard, rounded as it is.
    """
    changed = {name for name, text in gold.texts.items() if not _cut_alike(text)}
    pairs = {pair: similarity for pair, similarity in gold.pairs.items() if changed.isdisjoint(pair)}
    if gold.complete:
        pairs |= _pairs_of(changed, gold, least)
    else:
        others = gold.pairs.keys() - pairs.keys()
        pairs |= {(one, other): own_jaccard(gold.texts[one], gold.texts[other]) for one, other in others}
    return replace(gold, pairs=pairs, similarity=own_jaccard)


def _pairs_of(changed: set[str], gold: Gold, least: float) -> dict[tuple[str, str], float]:
    """Pairs of these documents with any, by an index of their shingles."""
    sets = {name: own_shingles(gold.texts[name]) for name in changed}
    postings: dict[tuple[str, str], list[str]] = {}
    for name, (kind, found) in sets.items():
        for shingle in found:
            postings.setdefault((kind, shingle), []).append(name)
    pairs: dict[tuple[str, str], float] = {}
    for name, text in gold.texts.items():
        kind, found = sets.get(name) or shingles(text)
        shared: Counter[str] = Counter()
        for shingle in found:
            shared.update(postings.get((kind, shingle), ()))
        for other, n in shared.items():
            similarity = n / (len(found) + len(sets[other][1]) - n)
            if other != name and similarity >= least:
                pairs[min(name, other), max(name, other)] = similarity
    return pairs
