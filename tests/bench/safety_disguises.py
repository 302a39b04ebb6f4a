"""How safety filters fare against disguises: every strong term of the lists, adverts that stand on no list, innocent look-alikes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.safety_terms.tables import files_of
from curation.filters.safety_terms.terms import Term, read_terms
from tests.bench.quality_tables import head, row
from tests.bench.safety_judges import said_by_terms
from tests.golden.safety_evasion import DISGUISES, Case, load_lookalikes, load_phrases, script_of, variants

__all__ = ["Written", "disguised_phrases", "disguises_report", "strong_texts"]

Doubles = npt.NDArray[np.float64]
Judges = Mapping[str, Callable[[Sequence[str]], Doubles]]
STRONG = 4
MOST_CONTEXTS = 24
FEW = 300
"""Strong terms, chosen by hash, that are put to slow systems too."""


class Written(NamedTuple):
    """A text in a disguise; `plain` names what is in it."""

    plain: str
    disguise: str
    text: str


def strong_texts() -> tuple[dict[str, str], list[str]]:
    """Spellings of strong terms, each with the context after it with which it drops a text; and those that no context helps."""
    found: dict[str, str] = {}
    left: dict[str, list[str]] = {}
    for path in files_of((), shipped=True):
        for term in read_terms(path).terms:
            if term.weight >= STRONG and term.mode != "regex":
                for spelling in term.spellings:
                    left.setdefault(spelling, []).extend(_contexts(term))
    for number in range(MOST_CONTEXTS):
        asked = [(spelling, words[number]) for spelling, words in left.items() if number < len(words)]
        reasons = said_by_terms([f"{spelling} {word}".strip() for spelling, word in asked]).reasons
        for (spelling, word), reason in zip(asked, reasons, strict=True):
            if reason is not None:
                found[spelling] = word
                del left[spelling]
    return found, sorted(left)


def _contexts(term: Term) -> list[str]:
    words = [word.word for word in term.near if word.word not in term.spellings]
    return words[:MOST_CONTEXTS] if words else [""]


def disguised_terms(strong: Mapping[str, str]) -> list[Written]:
    return [
        Written(spelling, name, f"{text} {context}".strip())
        for spelling, context in strong.items()
        for name, text in variants(spelling.lower())
    ]


def disguised_phrases(phrases: Sequence[Case]) -> list[Written]:
    """Plain ones, too."""
    plain = [Written(one.text, "plain", one.text) for one in phrases]
    return plain + [Written(one.text, name, text) for one in phrases for name, text in variants(one.text)]


def disguises_report(judges: Judges) -> Iterator[str]:
    """judges: of the first, the terms, every variant is asked; of the others a part of the terms and all phrases."""
    strong, helpless = strong_texts()
    terms = disguised_terms(strong)
    few = set(sorted(strong, key=lambda one: hashlib.sha256(one.encode()).digest())[:FEW])
    names = list(judges)
    dropped = _dropped(judges[names[0]], [one.text for one in terms])
    yield f"### Strong terms: {len(strong):,} spellings, {len(terms):,} variants\n"
    if helpless:
        yield f"Not dropped in plain spelling either, and left out: {len(helpless)} ({', '.join(helpless[:20])}).\n"
    sample = [one for one in terms if one.plain in few]
    shares = {name: _dropped(judges[name], [one.text for one in sample]) for name in names}
    yield from head(
        "disguise",
        "variants",
        f"{names[0]}: caught",
        *(f"{name}, of {FEW} terms: caught" for name in names),
        "missed by terms",
    )
    for disguise in (*DISGUISES, None):
        places = [i for i, one in enumerate(terms) if disguise in (None, one.disguise)]
        if not places:
            continue
        some = [i for i, one in enumerate(sample) if disguise in (None, one.disguise)]
        missed = [terms[i].text for i in places if not dropped[i]]
        cells = [f"{shares[name][some].mean():.3f}" if some else "" for name in names]
        yield row(
            disguise or "all", len(places), f"{dropped[places].mean():.3f}", *cells, _few(missed if disguise else [])
        )
    yield "\n"
    yield from _scripts_table(terms, dropped)
    yield from _phrases_tables(judges)
    yield from _lookalikes_table(judges)


def _dropped(judge: Callable[[Sequence[str]], Doubles], texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.bool_] = judge(texts) >= 0
    return found


def _few(texts: Sequence[str]) -> str:
    return ", ".join(f"`{one}`" for one in texts[:4]).replace("|", "\\|")


def _scripts_table(terms: Sequence[Written], dropped: npt.NDArray[np.bool_]) -> Iterator[str]:
    scripts = [script_of(one.plain) for one in terms]
    yield from head("script of the term", "variants", "terms: caught")
    for script in sorted(set(scripts), key=lambda one: -scripts.count(one)):
        places = [i for i, one in enumerate(scripts) if one == script]
        yield row(script, len(places), f"{dropped[places].mean():.3f}")


def _phrases_tables(judges: Judges) -> Iterator[str]:
    phrases = load_phrases()
    written = disguised_phrases(phrases)
    shares = {name: _dropped(judge, [one.text for one in written]) for name, judge in judges.items()}
    yield f"\n### Adverts that stand on no list: {len(phrases)} phrases, {len(written):,} variants\n"
    yield from head("disguise", "variants", *(f"{name}: caught" for name in judges))
    for disguise in ("plain", *DISGUISES, None):
        places = [i for i, one in enumerate(written) if disguise in (None, one.disguise)]
        if places:
            yield row(disguise or "all", len(places), *(f"{shares[name][places].mean():.3f}" for name in judges))
    of = {one.text: one for one in phrases}
    for what, values in (
        ("language", [of[one.plain].lang for one in written]),
        ("category", [of[one.plain].kind for one in written]),
    ):
        yield "\n"
        yield from head(what, "variants", *(f"{name}: caught" for name in judges))
        for value in sorted(set(values), key=lambda one, all_of=values: -all_of.count(one)):  # type: ignore[misc]
            places = [i for i, one in enumerate(values) if one == value]
            yield row(value, len(places), *(f"{shares[name][places].mean():.3f}" for name in judges))


def _lookalikes_table(judges: Judges) -> Iterator[str]:
    cases = load_lookalikes()
    yield f"\n### Innocent look-alikes: {len(cases)} sentences\n"
    yield from head("system", "dropped", "which")
    for name, judge in judges.items():
        dropped = _dropped(judge, [one.text for one in cases])
        which = [one.text.replace("\n", " ")[:40] for one, drop in zip(cases, dropped, strict=True) if drop]
        yield row(name, len(which), "; ".join(which[:16]).replace("|", "\\|"))
