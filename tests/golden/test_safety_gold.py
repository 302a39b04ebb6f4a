"""Both safety filters as they ship, on groups of texts that the model was never trained on: floors a little under what they reach.

What they reach on all rows, and beside other systems in one run, stands in bench/results/safety.md; here a part of each group
is judged, so that it takes minutes. Where they fall short of what was asked for, that is an expected failure with the figure of
the day. Terms alone: `test_safety_terms_gold`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.bench.bench_safety import own_rows
from tests.bench.quality_chain import named_languages
from tests.bench.quality_gold import load_texts
from tests.bench.safety_cascade import drawn
from tests.bench.safety_disguises import disguised_phrases, disguised_terms, strong_texts
from tests.bench.safety_gold import Row, capped, counts, load_shared, load_suite
from tests.bench.safety_judges import Doubles, Kept, either, model_filter, said_by_model, said_by_terms
from tests.bench.safety_tables import Sheet
from tests.golden.safety_evasion import DISGUISES, load_lookalikes, load_phrases
from tests.golden.safety_shipped import needs_the_shipped_model

EACH = 150
"""Rows of a group and label."""
SHIPPED = "as shipped"
DISGUISED_TERMS, FALSE_ALARMS, GOOD = 0.95, 0.02, 0.003
"""Asked for: disguised strong terms caught; of hard negatives and of good documents dropped at most."""


def folder(test_data: Path, name: str) -> Path:
    if not (test_data / name).is_dir():
        pytest.skip(f"no {name} in the test data at {test_data}: set CORPUSMILL_TEST_DATA to a folder that has it")
    return test_data / name


def margins(texts: Sequence[str]) -> Doubles:
    """Of both filters with default settings: 0 and more is dropped."""
    terms = said_by_terms(texts)
    hits = terms.scores.column("hits").to_pylist()
    model = said_by_model(model_filter(scope="cascade"), texts, named_languages(texts), hits, Kept())
    return either(terms.margins, model.margins)


def dropped(texts: Sequence[str]) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray(margins(texts) >= 0)


# -- terms, quickly ---------------------------------------------------------------------------------


def test_terms_alone_see_through_disguises() -> None:
    """95 % of the variants of strong terms are dropped, in each disguise: a draw of the terms."""
    strong, helpless = strong_texts()
    some = sorted(strong, key=lambda one: hashlib.sha256(one.encode()).digest())[:300]
    written = disguised_terms({one: strong[one] for one in some})
    caught = said_by_terms([one.text for one in written]).margins >= 0
    shares = {
        name: float(caught[[i for i, one in enumerate(written) if one.disguise == name]].mean()) for name in DISGUISES
    }
    print({name: f"{share:.3f}" for name, share in shares.items()}, f"{len(helpless)} not dropped in plain spelling")
    assert {name: share for name, share in shares.items() if share < DISGUISED_TERMS} == {}
    assert len(helpless) <= 0.01 * len(strong)


def test_terms_alone_drop_no_lookalike() -> None:
    """No innocent sentence is dropped for letters that it shares with an advert."""
    cases = load_lookalikes()
    reasons = said_by_terms([one.text for one in cases]).reasons
    assert {one.text: reason for one, reason in zip(cases, reasons, strict=True) if reason is not None} == {}


# -- both filters -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sheet(test_data: Path) -> Sheet:
    rows = capped([*load_shared(folder(test_data, "5_safety")), *own_rows(None), *load_suite()], EACH)
    return Sheet(rows, {SHIPPED: margins([one.text for one in rows])})


FLOORS: dict[str, tuple[float, float]] = {
    "by hand, adverts": (0.97, 0.97),
    "by hand, euphemism": (0.95, 0.97),
    "by hand, filler": (0.93, 0.97),
    "tg-spam zh": (0.60, 0.72),
    "umputun en": (0.50, 0.85),
    "umputun ru": (0.62, 0.86),
    "COLD region": (0.19, 0.86),
    "own zh": (0.14, 0.90),
    "own en": (0.07, 0.90),
    "own en, usual words": (0.56, 0.93),
    "own ja, usual words": (0.25, 0.85),
    "suite zh": (0.88, 0.90),
    "suite zh-Hant": (0.55, 0.90),
    "suite en": (0.93, 0.84),
    "suite ja": (0.80, 0.93),
    "suite of other languages": (0.54, 0.93),
}
"""Recall and precision by group. `own` without usual words are riddles. Abuse (COLD region): what a threshold that spares nearly all
hard negatives leaves."""


@pytest.mark.slow
@needs_the_shipped_model
@pytest.mark.parametrize("group", FLOORS)
def test_groups_that_were_never_trained_on(sheet: Sheet, group: str) -> None:
    """Recall and precision of each group are at least what they were when the model was shipped, but for a few rows."""
    found = sheet.counts(SHIPPED, sheet.mixed()[group])
    assert found is not None
    print(f"{group}: recall {found.recall:.3f}, precision {found.precision:.3f}")
    recall, precision = FLOORS[group]
    assert found.recall >= recall
    assert found.precision >= precision


ASKED = 0.90
"""Asked for: recall and precision of adverts in Chinese and English."""
ADVERTS = (
    "by hand, adverts",
    "suite zh",
    "suite en",
    pytest.param("own en, usual words", marks=pytest.mark.xfail(reason="recall .69, the cascade reads too little")),
    pytest.param("own zh", marks=pytest.mark.xfail(reason="riddles: recall .22, and .51 if the model reads all")),
)


@pytest.mark.slow
@needs_the_shipped_model
@pytest.mark.parametrize("group", ADVERTS)
def test_adverts_in_chinese_and_english(sheet: Sheet, group: str) -> None:
    """90 % of adverts are dropped, and of what is dropped 90 % are such."""
    found = sheet.counts(SHIPPED, sheet.mixed()[group])
    assert found is not None
    print(f"{group}: recall {found.recall:.3f}, precision {found.precision:.3f}")
    assert found.recall >= ASKED
    assert found.precision >= ASKED


@pytest.mark.slow
@needs_the_shipped_model
def test_hard_negatives_are_kept(test_data: Path) -> None:
    """Fewer than 2 % of the harmless rows of the labelled set that hold what looks dangerous are dropped."""
    rows: list[Row] = [one for one in load_shared(folder(test_data, "5_safety")) if one.hard and not one.unsafe]
    found = counts([False] * len(rows), margins([one.text for one in rows]))
    print(f"hard negatives: {found.wrong} of {len(rows)} dropped")
    assert found.false_alarms < FALSE_ALARMS


@pytest.mark.slow
@needs_the_shipped_model
def test_good_documents_are_kept(test_data: Path) -> None:
    """Fewer than 0.3 % of good documents are dropped: a draw of every language."""
    documents = [one for one in load_texts(folder(test_data, "2_text")) if one.quality == "good"]
    some = [documents[i] for i in drawn(documents, 16)]
    wrong = [one.name for one, drop in zip(some, dropped([one.text for one in some]), strict=True) if drop]
    print(f"good documents: {len(wrong)} of {len(some)} dropped: {wrong}")
    assert len(wrong) < max(2, GOOD * len(some))


@pytest.mark.slow
@needs_the_shipped_model
def test_no_lookalike_is_dropped() -> None:
    """Nor by the model, as the cascade has it read them. (Asked about all, it drops 3: a chess move, a hoe, a shell script.)"""
    cases = load_lookalikes()
    wrong = dropped([one.text for one in cases])
    assert [one.text for one, drop in zip(cases, wrong, strict=True) if drop] == []


@pytest.fixture(scope="module")
def phrases() -> float:
    """Share of the variants of adverts that stand on no list, plain and in all disguises, that is dropped."""
    written = disguised_phrases(load_phrases())
    caught = dropped([one.text for one in written])
    print(f"adverts of no list: {caught.mean():.3f} of {len(caught)} variants")
    return float(caught.mean())


@pytest.mark.slow
@needs_the_shipped_model
def test_adverts_of_no_list_are_dropped_in_disguise(phrases: float) -> None:
    """Most of them."""
    assert phrases >= 0.82


@pytest.mark.slow
@needs_the_shipped_model
@pytest.mark.xfail(reason=".85; .94 if the model reads all")
def test_as_many_of_them_as_of_terms(phrases: float) -> None:
    """95 %, as asked for."""
    assert phrases >= DISGUISED_TERMS
