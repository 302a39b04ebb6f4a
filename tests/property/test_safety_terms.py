"""The search for terms equals a slow reading of its definition, on any text, however it is cut into batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.filters.safety_terms import SafetyTerms
from curation.filters.safety_terms.terms import TermList, read_terms
from tests.safety_terms_list import step_of, write_list
from tests.safety_terms_oracle import scores
from tests.strategies import hostile_text

PIECES = (
    *"赌賭博場场开开户线上车加暗号沙发顶楼主床点公交群s e x p o r n a n a l u b t c i l y 마약카지노бляоеск",
    *"010357$@!|+€£¥ -.·★,。，\n\t/…_",
    "porn", "ass", "pussy", "casino", "online", "buy", "cocaine", "sex", "365", "bet", "微信", "加", "vx", "ab12", "сосаіnе",
    "\u200b", "\u00ad", "\u2060", "\u0301", "\u0308", "\u0323", "\u0336", "é", "ё", "ạ", "n\u0303", "ñ", "ＳＥＸ", "🇸", "🅴", "ⓧ",
    "ＰＯ", "ｒｎ", "𝐩𝐨", "ʀɴ", "ο", "α", "ϲ", "\u1106", "\u1161", "\u11a8", "카", "ｶﾞ", "㎏", "½", "①", "\r\n", "３", "ss",
    "sss", "赌赌赌", "\ufdfa",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[SafetyTerms, list[TermList]]:
    path = write_list(tmp_path_factory.mktemp("terms"))
    return step_of(path), [read_terms(path)]


def scored(step: SafetyTerms, documents: Sequence[str]) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_arrays([pa.array(documents, pa.large_string())], names=["text"])
    rows: list[dict[str, Any]] = step.score(batch).to_pylist()
    return rows


def assert_as_defined(pair: tuple[SafetyTerms, list[TermList]], documents: Sequence[str]) -> None:
    step, lists = pair
    for text, found in zip(documents, scored(step, documents), strict=True):
        wanted = {
            name: float(np.float32(value)) if isinstance(value, float) else value
            for name, value in scores(text, lists).items()
        }
        assert found == wanted, repr(text)


@settings(max_examples=150, deadline=None)
@given(st.lists(texts | hostile_text, max_size=8))
@example(["@sss", "asss  ★", "p@rn p.o.r.n a$$", "se\u0301x", "赌赌赌博", "x 赌，博 赌\n场\n开\n户"])
def test_as_defined(pair: tuple[SafetyTerms, list[TermList]], documents: list[str]) -> None:
    """All score columns and the matched spans equal the oracle's."""
    assert_as_defined(pair, documents)


@pytest.mark.parametrize("seed", range(2))
def test_texts_longer_than_a_piece(pair: tuple[SafetyTerms, list[TermList]], seed: int) -> None:
    """A text of several pieces is searched as one: matches and contexts across their borders count."""
    rng = random.Random(seed)
    text = "".join(rng.choices(PIECES, k=24_000))
    assert_as_defined(pair, [text])


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.data())
def test_batches_do_not_matter(
    pair: tuple[SafetyTerms, list[TermList]], documents: list[str], data: st.DataObject
) -> None:
    """Any cut into batches gives the same scores."""
    cut = data.draw(st.integers(0, len(documents)))
    step, _ = pair
    assert scored(step, documents[:cut]) + scored(step, documents[cut:]) == scored(step, documents)
