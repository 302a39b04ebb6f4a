"""Laws of the n-gram models that hold for any text."""

from __future__ import annotations

import math
import unicodedata
from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.perplexity.ngram import Scorer, prepared, score_texts
from curation.filters.perplexity.ngram_text import NORMALISATION, normal_characters
from curation.text import buffers
from curation.text.normal import FORM_BLOCKS, FORM_INDEX, POOL, SEVERAL, VALUE_AT, normalise
from quality_models.ngram_file import pack
from quality_models.ngram_training import train

CHARACTERS = st.one_of(
    st.sampled_from(" \n\tabcABC019.,'éüßñ\u0301\u0323\u00ad\x00"),
    st.sampled_from("中文日本かガｶﾞ한국각ไทยนมัสการनमस्तेعربيשלוםПривет"),
    st.characters(exclude_categories=["Cs"]),
)
ZERO_WIDTH_SPACE = 0x200B
TEXTS = st.text(CHARACTERS, max_size=60)


def normal(texts: list[str]) -> list[str]:
    codes, offsets = normal_characters(*buffers(pa.array(texts, pa.large_string())))
    whole = codes.tolist()
    return ["".join(map(chr, whole[a:b])) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def slow_normal(text: str) -> str:
    """NFKC by Python, then each character alone: folded, digits 0, blanks joined."""
    found = []
    for char in normalise(text):
        form = int(FORM_BLOCKS[int(FORM_INDEX[ord(char) >> 6]) << 6 | ord(char) & 63])
        start = form >> VALUE_AT
        parts = POOL[start : start + (form >> 16 & 0xFF)].tolist() if form & SEVERAL else [ord(char) + start]
        found += [" " if _is_blank(part) else "0" if _is_digit(part) else chr(part) for part in parts]
    return " ".join(part for part in "".join(found).split(" ") if part)


def _is_blank(code: int) -> bool:
    return chr(code).isspace() or code == ZERO_WIDTH_SPACE


def _is_digit(code: int) -> bool:
    return unicodedata.decimal(chr(code), None) is not None


@cache
def scorer(order: int) -> Scorer:
    texts = ["the quick brown fox jumps over the lazy dog", "中文文本 с русским текстом", "ไทย नमस्ते 0000"] * 5
    codes, offsets = normal_characters(*buffers(pa.array(texts, pa.large_string())))
    return prepared(pack(train(codes, offsets, order=order, most_bytes=40_000), "mis", NORMALISATION, {}))


@given(st.lists(TEXTS, max_size=4))
@settings(max_examples=300, deadline=None)
def test_normal_characters_are_those_of_a_slow_rule(texts: list[str]) -> None:
    """Whatever characters stand together, and whatever texts."""
    assert normal(texts) == [slow_normal(text) for text in texts]


def test_each_character_alone_is_normal() -> None:
    """Every code point, between letters and by itself."""
    texts = [f"a{chr(code)}b {chr(code)}" for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assigned = [text for text in texts if unicodedata.category(text[1]) not in ("Cn", "Co")]
    assert normal(assigned) == [slow_normal(text) for text in assigned]


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_normal_text_is_normal(text: str) -> None:
    """To normalise twice changes nothing, but where folding makes characters that NFKC joins."""
    once = normal([text])[0]
    if unicodedata.normalize("NFKC", once) == once:
        assert normal([once])[0] == once


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from([2, 3, 6]))
@settings(max_examples=200, deadline=None)
def test_scores_are_finite_sums_over_all_characters(texts: list[str], order: int) -> None:
    """Each normalised character is one token with a probability above 0; the batch changes nothing."""
    together = score_texts(scorer(order), *buffers(pa.array(texts, pa.large_string())))
    assert together.tokens.tolist() == [len(text) for text in normal(texts)]
    assert together.characters.tolist() == [len(text) for text in texts]
    assert together.bytes.tolist() == [len(text.encode()) for text in texts]
    assert all(math.isfinite(nats) for nats in together.nats.tolist())
    assert ((together.nats > 0) == (together.tokens > 0)).all()
    for i, text in enumerate(texts):
        alone = score_texts(scorer(order), *buffers(pa.array([text], pa.string())))
        assert [field[0] for field in alone] == [field[i] for field in together]


@given(TEXTS, TEXTS)
@settings(max_examples=150, deadline=None)
def test_what_follows_changes_nothing_of_what_came_before(first: str, second: str) -> None:
    """A text costs no more than a longer one that begins with it: each character adds to the sum."""
    texts = [first, f"{first} {second}"]
    if normal(texts)[1].startswith(normal(texts)[0]):
        nats = score_texts(scorer(4), *buffers(pa.array(texts, pa.large_string()))).nats
        assert nats[1] >= nats[0] - 1e-9


@given(st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_bytes_that_are_no_text_do_no_harm(raw: bytes) -> None:
    """Nothing is read beyond the text, and the kernel comes to an end."""
    data = np.frombuffer(raw + b"\xe4\xb8", np.uint8)
    found = score_texts(scorer(3), data, np.array([0, len(raw)], np.int64))
    assert math.isfinite(found.nats[0])
    assert found.tokens[0] <= 4 * max(len(raw), 1)
