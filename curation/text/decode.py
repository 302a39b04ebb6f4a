"""UTF-8 to code points and their kinds, one character at a time: functions that other kernels inline.

Valid UTF-8 is expected, since Arrow strings are. Invalid bytes are read as U+FFFD, one for each
maximal subpart as `bytes.decode("utf-8", "replace")` does it, and never make a kernel read beyond
`end` or stand still: every step is 1 to 4 bytes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from curation.text.jit import inlined
from curation.text.spans import Bytes
from curation.text.tables import KIND_BLOCKS, KIND_INDEX

__all__ = ["Int", "decode", "kind_of"]

Int: TypeAlias = Any
"""An int64 in compiled code, for which Python's type checker has no one name."""

REPLACEMENT = 0xFFFD


@inlined
def _continues(data: Bytes, i: Int, end: Int) -> Int:
    return i < end and (data[i] & 0xC0) == 0x80


@inlined
def decode(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """Code point and length in bytes of the character at `i` < `end`."""
    lead = np.int64(data[i])
    if lead < 0x80:
        return lead, 1
    if lead < 0xC2 or not _continues(data, i + 1, end):
        return REPLACEMENT, 1
    second = np.int64(data[i + 1])
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (second & 0x3F), 2
    code = (lead & 0x0F) << 6 | (second & 0x3F)
    if lead < 0xF0:
        # overlong below U+0800, surrogates U+D800 to U+DFFF
        if code < 0x20 or 0x360 <= code < 0x380:
            return REPLACEMENT, 1
        if not _continues(data, i + 2, end):
            return REPLACEMENT, 2
        return code << 6 | (np.int64(data[i + 2]) & 0x3F), 3
    # overlong below U+10000, beyond U+10FFFF
    if lead > 0xF4 or code < 0x10 or code >= 0x110:
        return REPLACEMENT, 1
    if not _continues(data, i + 2, end):
        return REPLACEMENT, 2
    if not _continues(data, i + 3, end):
        return REPLACEMENT, 3
    return (code << 6 | (np.int64(data[i + 2]) & 0x3F)) << 6 | (np.int64(data[i + 3]) & 0x3F), 4


@inlined
def kind_of(code: Int) -> Int:
    """class | role << 4 | script << 8 of a code point."""
    return np.int64(KIND_BLOCKS[(np.int64(KIND_INDEX[code >> 6]) << 6) | (code & 63)])
