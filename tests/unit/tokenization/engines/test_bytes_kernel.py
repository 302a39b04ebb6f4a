"""Texts are told from the bytes of their tokens exactly, whatever lies beside them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenization.engines.bytes_kernel import token_bytes, unequal
from tokenization.engines.kernels import SLACK

TOKENS = [
    b"",
    b" ",
    b"a",
    b"ab",
    b"  ",
    b"12345678",
    b"123456789",
    b"12345678\0",
    b"\0",
    b"\xff" * 8,
    b" 234567890123456789",
]
TABLE = token_bytes(TOKENS)


def test_the_table_holds_the_bytes() -> None:
    """First words, masks, and all bytes by id."""
    for i, token in enumerate(TOKENS):
        head = token[:8]
        assert int(TABLE.words[i]) == int.from_bytes(head, "little")
        assert int(TABLE.masks[i]) == 256 ** len(head) - 1
        assert TABLE.data[TABLE.starts[i] : TABLE.starts[i + 1]].tobytes() == token


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, len(TOKENS) - 1), max_size=5), st.integers(0, 5)), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_a_text_is_bad_if_it_is_not_its_tokens(rows: list[tuple[list[int], int]], drops: bool) -> None:
    """Right texts, texts with a byte more, less or changed, with and without the blank that does not count."""
    raw, right = [], []
    for ids, change in rows:
        made = b"".join(TOKENS[i] for i in ids)
        expected = made[1:] if drops and made.startswith(b" ") else made
        text = [expected, made, expected + b" ", expected[:-1], b"x" + expected[1:], expected[1:]][change]
        raw.append(text)
        right.append(text != expected)
    flat = np.array([i for ids, _ in rows for i in ids], np.uint32)
    ends = np.cumsum([len(ids) for ids, _ in rows])
    data = np.frombuffer(b" ".join([b"", *raw, bytes(SLACK)]), np.uint8)
    bad = np.zeros(len(rows), np.bool_)
    unequal(TABLE, flat, ends, data, np.cumsum([1, *(len(text) + 1 for text in raw)]), drops, bad)
    assert bad.tolist() == right
