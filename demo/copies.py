"""Exact copies and near copies of documents, each with what was done to it and how similar it still is.

Similarity is the Jaccard index of sets of shingles, taken in two ways: five characters, and five words, where each
character of a script without spaces counts as a word. Copies are kept only where both agree that the pair is near
(>= 0.93) or apart (<= 0.80), so that no sensible definition of a shingle puts a pair on the other side of 0.9.
Costs about 1 ms a copy.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["APART", "NEAR", "Copy", "Source", "exact_copies", "jaccards", "near_copies"]

NEAR, APART = 0.93, 0.80

_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_]+")


@dataclass(frozen=True, slots=True)
class Source:
    """A document that may be copied."""

    id: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A planted copy."""

    id: str
    url: str
    text: str
    of: str
    how: str
    jaccard_characters: float
    jaccard_words: float


def jaccards(one: str, other: str) -> tuple[float, float]:
    """Jaccard index of two texts by shingles of five characters and of five words."""
    return _jaccard(_characters(one), _characters(other)), _jaccard(_words(one), _words(other))


def _jaccard(one: set[object], other: set[object]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 1.0


def _characters(text: str) -> set[object]:
    text = " ".join(text.split())
    return {text[start : start + 5] for start in range(max(len(text) - 4, 1))}


def _words(text: str) -> set[object]:
    words = _WORD.findall(text.lower())
    return {tuple(words[start : start + 5]) for start in range(max(len(words) - 4, 1))}


# -- exact copies ----------------------------------------------------------------------------------

EXACT: dict[str, Callable[[str], str]] = {
    "bytes": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "blanks": lambda text: f"\n  {text}\u3000\n\n",
    "all": lambda text: "\t" + unicodedata.normalize("NFD", text).replace("\n", "\r\n") + " \r\n",
}
"""Ways of writing the same text: all of them have the text_id of the original."""


def exact_copies(sources: Sequence[Source], n_copies: int, rng: Random) -> list[Copy]:
    """Copies that are the same text after normalisation; a source may be copied several times."""
    made = []
    for number in range(n_copies):
        source = rng.choice(sources)
        possible = [how for how, change in EXACT.items() if how == "bytes" or change(source.text) != source.text]
        how = rng.choices(possible, [6 if how == "nfd" else 1 for how in possible])[0]  # few texts have an NFD form
        text = EXACT[how](source.text)
        made.append(Copy(f"{source.id}.{how}{number}", _mirror(source.url, number), text, source.id, how, 1.0, 1.0))
    return made


def _mirror(url: str, number: int) -> str:
    return f"https://mirror{number % 7}.example.org/{number}?from={url.removeprefix('https://')}"


# -- near copies -----------------------------------------------------------------------------------


def _reposted(text: str, rng: Random) -> str:
    return f"{rng.choice(('Reposted', '转载', '転載', 'FWD'))}\n{text}"


def _signed(text: str, rng: Random) -> str:
    return f"{text}\n{rng.choice(('(end)', '（完）', '以上', '###'))}"


def _letters_changed(text: str, rng: Random) -> str:
    characters = list(text)
    letters = [place for place, character in enumerate(characters) if character.isalpha()]
    for place in rng.sample(letters, max(1, len(letters) // 1500)):
        characters[place] = characters[rng.choice(letters)]
    return "".join(characters)


def _number_changed(text: str, rng: Random) -> str:
    return re.sub(r"\d", lambda match: str((int(match[0]) + rng.randint(1, 8)) % 10), text, count=2)


def _sentence_lost(text: str, rng: Random) -> str:
    sentences = re.split(r"(?<=[。！？.!?।])(?=\s|[^\s.])", text)
    return (
        "".join(sentences[:-1]) if len(sentences) < 3 else "".join(_without(sentences, rng.randrange(len(sentences))))
    )


def _without(parts: Sequence[str], place: int) -> list[str]:
    return [*parts[:place], *parts[place + 1 :]]


def _third_lost(text: str, rng: Random) -> str:
    cut = len(text) // 3
    start = rng.randrange(len(text) - cut)
    return text[:start] + text[start + cut :]


NEAR_EDITS: dict[str, Callable[[str, Random], str]] = {
    "reposted": _reposted,
    "signed": _signed,
    "letters": _letters_changed,
    "number": _number_changed,
    "sentence": _sentence_lost,
    "third": _third_lost,
}
"""Edits as people and machines make them; whether the result is still near depends on the length of the text."""


def near_copies(sources: Sequence[Source], n_near: int, n_apart: int, rng: Random) -> tuple[list[Copy], list[Copy]]:
    """Edited copies of different sources: `n_near` of at least NEAR, `n_apart` of at most APART but above 0.3.

    Args:
        sources: texts of 150 characters or more, more of them than copies are wanted.
    """
    wanted = {"near": n_near, "apart": n_apart}
    made: dict[str, list[Copy]] = {"near": [], "apart": []}
    for number, source in enumerate(rng.sample(sources, len(sources))):
        how = rng.choice(list(NEAR_EDITS))
        text = NEAR_EDITS[how](source.text, rng)
        characters, words = jaccards(source.text, text)
        if min(characters, words) >= NEAR and text.strip() != source.text.strip():
            group = "near"
        elif 0.3 < max(characters, words) <= APART:
            group = "apart"
        else:
            continue
        if len(made[group]) < wanted[group]:
            id_ = f"{source.id}.{how}{number}"
            url = _mirror(source.url, number)
            made[group].append(Copy(id_, url, text, source.id, how, round(characters, 4), round(words, 4)))
        if all(len(made[group]) == wanted[group] for group in wanted):
            return made["near"], made["apart"]
    raise ValueError(
        f"{len(sources)} sources gave only {len(made['near'])} near and {len(made['apart'])} distant copies"
    )
