"""The gold of near-duplicates counted anew by the step's own definition of words: what is a fault, and what a definition?

The gold cuts texts of han, kana and hangul by character, and all others by Python's `\\w`. The step cuts other scripts
that are written without blanks by character too, unless `by_character` says otherwise, and keeps the marks that end a word in
`\\w`, such as vowels of Hindi, as the end of it. This module holds that definition in plain Python, from its description and
without the step's tables and kernels, and finds all pairs by it, exactly: texts that both definitions cut alike keep their
pairs, the others are compared with all texts through an index of their shingles. Takes about 15 s and 500 MB for the gold.
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
UNSEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
"""Signs that are never seen: soft hyphens, marks of direction, variation selectors, tags. The joiners of letters are seen."""
GOLD_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
UNSPACED_NAMES = tuple(
    """CJK|IDEOGRAPHIC|HIRAGANA|KATAKANA|HALFWIDTH KATAKANA|HANGUL|BOPOMOFO|YI |THAI|LAO|KHMER|MYANMAR|TAI |NEW TAI
|JAVANESE|BALINESE""".replace("\n", "").split("|")
)
"""How the names of characters begin whose scripts are written without blanks, or are compared like those."""

_WORD = re.compile(f"[^\\W{HANGUL_FILLERS}]+")
_VANISHING = re.compile(f"[{UNSEEN}]")
_ODD = re.compile(f"[{UNSEEN}{HANGUL_FILLERS}]")


@functools.cache
def _folded(character: str) -> str:
    """Simple case folding: one character for one."""
    return next((c for c in (character.casefold(), character.lower()) if len(c) == 1), character)


@functools.cache
def _is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(UNSPACED_NAMES)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _words(text: str) -> list[list[str]]:
    """Words of a folded text, each as its letters, numbers and `_`; the last of them has the marks that follow it."""
    words = []
    for match in _WORD.finditer(text):
        end = match.end()
        while end < len(text) and _is_mark(text[end]):
            end += 1
        words.append([*match[0][:-1], match[0][-1] + text[match.end() : end]])
    return words


def own_shingles(text: str) -> tuple[str, frozenset[str]]:
    """Kind (`word5`, `char5`, `none`) and set of shingles, by the step's definition.

    NFKC without what is never seen, simple case folding; a word is a run of letters, numbers and `_`, with the marks behind
    it. With more than 30 % of those in unspaced scripts, 5 of them in a row, each with its marks, whatever is between.
    """
    normal = _VANISHING.sub("", unicodedata.normalize("NFKC", text))
    words = _words("".join(map(_folded, normal)))
    if not words:
        return "none", frozenset()
    letters = [letter for word in words for letter in word]
    by_character = 100 * sum(_is_unspaced(letter[0]) for letter in letters) > 30 * len(letters)
    units, between = (letters, "") if by_character else (["".join(word) for word in words], " ")
    places = range(max(1, len(units) - SHINGLE + 1))
    return "char5" if by_character else "word5", frozenset(between.join(units[i : i + SHINGLE]) for i in places)


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
    if any(_is_mark(c) or (_is_unspaced(c) and not GOLD_UNSPACED.match(c)) for c in set(normal)):
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
