"""The shipped lists of `safety_terms` on bug cases, and on adverts that try not to be found.

On labelled and good texts of the test data: tests/gate/safety.py, with floors in tests/golden/floors.json. Half of the adverts
there that are our own were read while the lists were made; `MarkIvory2973/tg-spam` too. Sentences of `safety_phrases` were written
for these tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig
from curation.filters.safety_terms.tables import SHIPPED
from curation.filters.safety_terms.terms import Term, read_terms
from tests.fakes import batch_for
from tests.golden.safety_phrases import ADVERTS, BENIGN, adverts

STRONG = 4
EVASIONS = (
    "plain",
    "full-width",
    "zero-width",
    "spaced",
    "symbols",
    "homoglyph",
    "mixed script",
    "leet",
    "Traditional",
    "repeats",
)
LOOKS = dict(zip("aceopxyi", "асеорхуі", strict=True))
LEET = dict(zip("oieast", "013457", strict=True))


@cache
def step() -> SafetyTerms:
    return SafetyTerms(SafetyTermsConfig())


def judge(texts: Sequence[str]) -> list[str | None]:
    """The reason of each text, None where it is kept."""
    found: list[str | None] = []
    for start in range(0, len(texts), 1000):
        scores = step().score(batch_for(step(), texts[start : start + 1000]))
        found += step().decide(scores).reason_array(list(step().reasons)).to_pylist()
    return found


def kept(texts: Sequence[str]) -> list[str]:
    return [text for text, reason in zip(texts, judge(texts), strict=True) if reason is None]


# -- texts written for this ------------------------------------------------------------------------


def test_honest_near_words_are_kept() -> None:
    """Texts with words that look like those of the lists, or that speak of the matter, stay."""
    assert len(BENIGN) >= 100
    reasons = judge(BENIGN)
    assert [(text, reason) for text, reason in zip(BENIGN, reasons, strict=True) if reason] == []


# -- bug cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", ["B108", "B109", "B111", "B112", "B114", "B116", "B117", "B121"])
def test_bug_cases(bugcases: Path, bug: str) -> None:
    """What other tools' lists got wrong is right."""
    described = [json.loads(line) for line in (bugcases / "cases.jsonl").read_text("utf-8").splitlines()]
    found = next(one for one in described if one["id"] == bug)
    cases = [json.loads(line) for line in (bugcases / found["input_file"]).read_text("utf-8").splitlines()]
    reasons = dict(zip([row["id"] for row in cases], judge([row["text"] for row in cases]), strict=True))
    expect = found["expect"]
    for one in [*expect.get("flagged", ()), *expect.get("dropped", ())]:
        assert reasons[one] is not None, one
    for one in [*expect.get("kept", ()), *expect.get("must_keep", ())]:
        assert reasons[one] is None, one


# -- evasion ---------------------------------------------------------------------------------------


def strong_terms() -> list[Term]:
    """Rows of words that are enough by themselves, or with their context."""
    lists = [read_terms(path) for path in sorted(SHIPPED.glob("*.tsv"))]
    return [term for one in lists for term in one.terms if term.weight >= STRONG and term.mode != "regex"]


def is_spaced(text: str) -> bool:
    """Whether a term is of a script with blanks between words only."""
    return re.search(r"[\u0e00-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0900-\u0dff]", text) is None


def framed(text: str, term: Term) -> str:
    """A sentence with the term, in an evasive writing, and the context that it asks for."""
    near = term.near[0].word if term.near else ""
    return f"{near} {text}." if is_spaced(text) else f"{near}，{text}。" if near else f"{text}。"


def disguised(term: str, evasion: str) -> str | None:
    """A term as an evader writes it; None where that writing does not fit."""
    latin = re.fullmatch(r"[a-z0-9 ']+", term) is not None
    letters = [character for character in term if character != " "]
    if evasion == "plain":
        return term
    if evasion == "full-width":
        wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in term)
        return wide if wide != term else None
    if evasion == "zero-width":
        return " ".join("\u200b".join(word) for word in term.split(" "))
    if evasion in ("spaced", "symbols"):
        return (
            (" " if evasion == "spaced" else "★").join(letters)
            if len(letters) > (2 if is_spaced(term) else 1)
            else None
        )
    if evasion == "homoglyph":
        changed = "".join(LOOKS.get(c, c) for c in term)
        return changed if latin and changed != term and re.search("[a-z]", changed) else None
    if evasion == "mixed script":
        bold = "".join(chr(0x1D41A + ord(c) - 97) if i % 2 and "a" <= c <= "z" else c for i, c in enumerate(term))
        return bold if bold != term else None
    if evasion == "leet":
        places = [i for i, c in enumerate(term) if c in LEET]
        places = places[: len(letters) // 2] if sum(c.isdigit() for c in letters) == 0 else []
        return "".join(LEET[c] if i in places else c for i, c in enumerate(term)) if latin and places else None
    if evasion == "Traditional":
        return traditional(term)
    return f"{letters[0] * 4}{term[1:]}" if letters[0].isalpha() and letters[0] not in letters[1:2] else None


def traditional(term: str) -> str | None:
    from opencc import OpenCC

    if re.search(r"[\u3400-\u9fff]", term) is None or re.search(r"[\u3040-\u30ff]", term):
        return None
    changed: str = converter(OpenCC).convert(term)
    return changed if changed != term else None


@cache
def converter(kind: Any) -> Any:
    return kind("s2t")


@pytest.mark.parametrize("evasion", EVASIONS)
def test_strong_terms_are_found_in_disguise(evasion: str) -> None:
    """Of all strong terms at least 95 % are dropped in each evasive writing; as written, 99 %."""
    texts = []
    for term in strong_terms():
        for spelling in term.spellings:
            written = disguised(spelling, evasion)
            if written is not None:
                texts.append(framed(written, term))
    assert len(texts) >= 100
    missed = kept(texts)
    assert len(missed) <= (0.01 if evasion == "plain" else 0.05) * len(texts), missed[:40]


@pytest.mark.parametrize("trade", ADVERTS)
def test_adverts_in_words_of_no_list_are_dropped(trade: str) -> None:
    """A new sentence of a known trade is dropped, though no list has it."""
    texts = adverts(trade)
    missed = kept(texts)
    assert len(missed) <= 0.05 * len(texts), missed


def test_there_are_enough_adverts() -> None:
    """The share says something: hundreds of adverts, none of which is a term."""
    texts = [text for trade in ADVERTS for text in adverts(trade)]
    spellings = {
        spelling for path in SHIPPED.glob("*.tsv") for term in read_terms(path).terms for spelling in term.spellings
    }
    assert len(texts) >= 300
    assert not spellings & set(texts)
