"""Figures of the safety filters: the lists alone, and lists and model as they ship.

`safety_terms`: all labelled rows, all good documents whole and by lines. `safety`: both filters, on groups of texts that the model
was never trained on, and on a draw of what must stay, so that it takes a minute. `safety_terms_own` and `safety_own`: the same two
on sentences of our own, plain and in disguise, so that they are judged wherever this repository is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tests.bench.bench_safety import own_rows
from tests.bench.safety_cascade import drawn
from tests.bench.safety_disguises import disguised_phrases, disguised_terms, strong_texts
from tests.bench.safety_gold import Row, capped, load_shared, load_suite
from tests.bench.safety_tables import Sheet
from tests.gate.documents import alone
from tests.gate.figures import NOTHING_CHANGED, Changed, Figure, Figures, counted
from tests.gate.gold import Gold, Texts
from tests.golden.safety_evasion import load_lookalikes, load_phrases
from tests.golden.safety_phrases import ADVERTS, BENIGN, adverts

__all__ = ["safety", "safety_own", "safety_terms", "safety_terms_own"]

EACH = 150
"""Rows of a group and label that both filters judge."""
DRAWN = 16
"""Good documents of each language that both filters judge."""
TERMS = 300
"""Strong terms that are disguised, chosen by hash."""
LINES = 60_000
SHORTEST = 8
SHIPPED = "as shipped"

Mask = npt.NDArray[np.bool_]


def by_terms(gold: Gold, texts: Texts, changed: Changed) -> Mask:
    """Which texts the lists drop: bool[n]."""
    return ~gold.judged(texts, "safety_terms", changed).decision.keep


def by_both(gold: Gold, texts: Texts, changed: Changed) -> Mask:
    return by_terms(gold, texts, changed) | ~gold.judged(texts, "safety_model", changed).decision.keep


# -- the lists --------------------------------------------------------------------------------------


def safety_terms(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    return {
        **alone("safety_terms")(gold, changed),
        **_labelled(gold, changed),
        **_good_lines(gold, changed),
    }


def safety_terms_own(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    return {**_disguised(gold, changed), **_own(gold, changed)}


def _labelled(gold: Gold, changed: Changed) -> Figures:
    """Of each category of unsafe rows those that are dropped; of each source's harmless rows those that are kept; of what is
    dropped in Chinese chat, what is spam."""
    texts = gold.texts("labelled", lambda: [row["text"] for row in gold.labelled])
    rows = list(zip(gold.labelled, by_terms(gold, texts, changed).tolist(), strict=True))
    found: Figures = {}
    for category in sorted({row["category"] for row in gold.labelled if row["unsafe"]}):
        hits = counted(drop for row, drop in rows if row["unsafe"] and row["category"] == category)
        found[f"safety_terms.unsafe_dropped.{category}"] = hits
    harmless = [(row["source"], not drop) for row, drop in rows if not row["unsafe"]]
    for source in sorted({source for source, _ in harmless}):
        found[f"safety_terms.harmless_kept.{source}"] = counted(kept for one, kept in harmless if one == source)
    found["safety_terms.harmless_kept.all"] = counted(kept for _, kept in harmless)
    chat = [bool(row["unsafe"]) for row, drop in rows if drop and row["source"].startswith("MarkIvory")]
    return {**found, "safety_terms.precision.Chinese chat": counted(chat)}


def _good_lines(gold: Gold, changed: Changed) -> Figures:
    """Single lines of every fourth good document, by language."""
    good = [one for one in gold.documents if one.quality == "good"][::4]
    lines = [(one.language, line) for one in good for line in one.text.split("\n") if len(line) > SHORTEST][:LINES]
    texts = gold.texts("good lines", lambda: [line for _, line in lines])
    kept = list(zip([language for language, _ in lines], (~by_terms(gold, texts, changed)).tolist(), strict=True))
    found = {"safety_terms.good_lines_kept.all": counted(hit for _, hit in kept)}
    for language in sorted({language or "none" for language, _ in kept}):
        found[f"safety_terms.good_lines_kept.{language}"] = counted(
            hit for one, hit in kept if (one or "none") == language
        )
    return found


def _disguised(gold: Gold, changed: Changed) -> Figures:
    """Strong terms of the lists in each disguise, with the context that they ask for; and those that no context helps."""
    strong, helpless = strong_texts()
    some = sorted(strong, key=lambda one: hashlib.sha256(one.encode()).digest())[:TERMS]
    written = disguised_terms({one: strong[one] for one in some})
    texts = gold.texts("disguised terms", lambda: [one.text for one in written])
    caught = list(zip(written, by_terms(gold, texts, changed).tolist(), strict=True))
    found = {"safety_terms_own.strong_terms.in plain spelling": Figure(len(strong), len(strong) + len(helpless))}
    for disguise in sorted({one.disguise for one in written}):
        found[f"safety_terms_own.disguised.{disguise}"] = counted(
            hit for one, hit in caught if one.disguise == disguise
        )
    return found


def _own(gold: Gold, changed: Changed) -> Figures:
    """Sentences of our own: adverts in words of no list, innocent look-alikes, honest texts with words of the trades."""
    found: Figures = {}
    for trade in ADVERTS:
        texts = gold.texts(f"adverts, {trade}", partial(adverts, trade))
        found[f"safety_terms_own.adverts.{trade}"] = counted(by_terms(gold, texts, changed).tolist())
    benign = gold.texts("benign", lambda: BENIGN)
    alike = gold.texts("look-alikes", lambda: [one.text for one in load_lookalikes()])
    found["safety_terms_own.innocent_kept.words of the trades"] = counted((~by_terms(gold, benign, changed)).tolist())
    found["safety_terms_own.innocent_kept.look-alikes"] = counted((~by_terms(gold, alike, changed)).tolist())
    return found


# -- both filters -----------------------------------------------------------------------------------


def safety(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    rows = _rows(gold)
    texts = gold.texts("safety groups", lambda: [one.text for one in rows])
    sheet = Sheet(rows, {SHIPPED: np.where(by_both(gold, texts, changed), 1.0, -1.0)})
    found: Figures = {}
    for group, places in sheet.mixed().items():
        tally = sheet.counts(SHIPPED, places)
        assert tally is not None
        found[f"safety.recall.{group}"] = Figure(tally.found, tally.found + tally.missed)
        found[f"safety.precision.{group}"] = Figure(tally.found, tally.found + tally.wrong)
    return {**found, **_must_stay(gold, changed)}


def safety_own(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    alike = gold.texts("look-alikes", lambda: [one.text for one in load_lookalikes()])
    kept = counted((~by_both(gold, alike, changed)).tolist())
    return {"safety_own.kept.look-alikes": kept, **_phrases(gold, changed)}


def _rows(gold: Gold) -> list[Row]:
    shared = load_shared(gold.folder("5_safety"))
    return capped([*shared, *own_rows(None), *load_suite()], EACH)


def _must_stay(gold: Gold, changed: Changed) -> Figures:
    """Harmless rows that look dangerous, a draw of good documents."""

    def hard() -> Sequence[str]:
        return [one.text for one in load_shared(gold.folder("5_safety")) if one.hard and not one.unsafe]

    def good() -> Sequence[str]:
        documents = [one for one in gold.documents if one.quality == "good"]
        return [documents[place].text for place in drawn(documents, DRAWN)]

    sets: dict[str, Callable[[], Sequence[str]]] = {"hard negatives": hard, "good documents": good}
    return {
        f"safety.kept.{name}": counted((~by_both(gold, gold.texts(name, make), changed)).tolist())
        for name, make in sets.items()
    }


def _phrases(gold: Gold, changed: Changed) -> Figures:
    """Adverts that stand on no list, plain and in all disguises."""
    written = disguised_phrases(load_phrases())
    texts = gold.texts("disguised phrases", lambda: [one.text for one in written])
    caught = list(zip(written, by_both(gold, texts, changed).tolist(), strict=True))
    found = {"safety_own.adverts_of_no_list.all": counted(hit for _, hit in caught)}
    for disguise in sorted({one.disguise for one in written}):
        found[f"safety_own.adverts_of_no_list.{disguise}"] = counted(
            hit for one, hit in caught if one.disguise == disguise
        )
    return found
