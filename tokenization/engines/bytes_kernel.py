"""Are the bytes of a text's tokens the text? Compiled: one load and one comparison for most tokens.

Costs: 0.3 to 1 GB/s on one core; 17 bytes of memory for each id, and the bytes of all tokens. Where the machine code
is kept, and why a fork is safe: as in `merge_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenization.engines.kernels import Int, at, inlined, kernel, load64

__all__ = ["TokenBytes", "token_bytes", "unequal"]

WORD = 8


class TokenBytes(NamedTuple):
    """Bytes of every id.

    words: uint64[n_ids]       the first 8 bytes, little-endian, zero where there are fewer
    masks: uint64[n_ids]       ones where these are
    starts: int64[n_ids + 1]   where each token's bytes lie in data
    data: uint8[n_bytes]
    """

    words: npt.NDArray[np.uint64]
    masks: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]


def token_bytes(tokens: Sequence[bytes]) -> TokenBytes:
    """The table of some tokens: that of id i is tokens[i]."""
    lengths = np.array([len(token) for token in tokens], np.int64)
    heads = b"".join(token[:WORD].ljust(WORD, b"\0") for token in tokens)
    ones = b"".join(min(len(token), WORD) * b"\xff" + max(0, WORD - len(token)) * b"\0" for token in tokens)
    return TokenBytes(
        words=np.frombuffer(heads, "<u8"),
        masks=np.frombuffer(ones, "<u8"),
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        data=np.frombuffer(b"".join(tokens), np.uint8),
    )


@inlined
def _token(table: TokenBytes, token: Int, data: Any, p: Int, end: Int) -> Int:
    """Where the bytes of a token end in data[p:end], -1 if they do not lie there."""
    length = at(table.starts, token + 1) - at(table.starts, token)
    if p + length > end or (load64(data, p) & at(table.masks, token)) != at(table.words, token):
        return -1
    start = at(table.starts, token)
    for place in range(WORD, length):
        if at(data, p + place) != at(table.data, start + place):
            return -1
    return p + length


@kernel
def unequal(table: TokenBytes, ids: Any, ends: Any, data: Any, begins: Any, drops: Any, bad: Any) -> None:
    """Compare texts with the bytes of their tokens.

    Args:
        ids: uint32[n_tokens], each inside of the table.
        ends: int64[n_texts], where the ids of each text end.
        data: uint8[n_bytes + SLACK], the texts' UTF-8, a blank before each and one after the last.
        begins: int64[n_texts + 1], where each text begins; the last one as if another text came.
        drops: whether a blank that the first bytes of the tokens begin with does not count.
        bad: bool[n_texts], is given whether they differ.
    """
    i = 0
    for text in range(len(ends)):
        p, end = begins[text], begins[text + 1] - 1
        first = drops
        while p >= 0 and i < ends[text]:
            token = np.int64(at(ids, i))
            if first and at(table.masks, token) != 0:
                first = False
                p -= (at(table.words, token) & np.uint64(0xFF)) == 0x20
            p = _token(table, token, data, p, end)
            i += 1
        bad[text] = p != end
        i = ends[text]
