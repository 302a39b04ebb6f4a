"""Ways to reach a seller: handles, invitation links, accounts of messengers.

    contacts  contacts in 100 English words; undefined where there is no word, and from 1,000 on

A contact is one of: a handle (@ and five or more ASCII letters, digits or _, not after one of those, a dot or a hyphen, as in mail
addresses, nor in quotes or brackets, as in code and in notes that thank by handle); an address of a messenger or shortener
(t.me/, telegram.me/, wa.me/, line.me/, discord.gg/, bit.ly/ and what ends like them); beside a Han letter, or after a full-width
sign, an account: letters and digits mixed, 6 to 20 of them with five digits or more, or 8 to 12 digits. An advertisement is
little else; a page that names its author once is not. From 1,000 words on nothing is said: a manual may show many handles.

Source: ours. Costs 1 ns a byte of the texts that it looks at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Parts
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn(
        "contacts", pa.float32(), "per 100 English words", "handles, invitations, accounts; null from 1,000 words on"
    ),
)

MOST_UNITS = 1000.0
HANDLE, MIXED, DIGITS, FEWEST_NUMBER, LONGEST, LONGEST_NUMBER = 5, 6, 5, 8, 20, 12
AT, SLASH = 0x40, 0x2F


def measure(parts: Parts) -> Measures:
    """The column of each document: float32[n], masked where undefined."""
    n = len(parts.offsets) - 1
    counts = np.zeros(n, np.int64)
    wanted = (parts.units < MOST_UNITS) & (parts.units > 0)
    _visit(parts.data, parts.offsets, wanted, counts)
    return {"contacts": share(100 * counts, np.where(wanted, parts.units, 0))}


@inlined
def _is_name(byte: Int) -> Int:
    """Whether a byte is an ASCII letter, a digit or _."""
    return 0x61 <= byte | 0x20 <= 0x7A or 0x30 <= byte <= 0x39 or byte == 0x5F


@inlined
def _is_handle(p: Int, begin: Int, end: Int) -> Int:
    """Whether the @ at an address begins a handle."""
    if p > begin:
        before = byte_at(p - 1)
        if _is_name(before) or before in (0x2E, 0x2D, 0x22, 0x27, 0x28, 0x3C, 0x5B, 0x60):
            return False
    q = p + 1
    while q < end and _is_name(byte_at(q)):
        q += 1
    return q - p > HANDLE and (q == end or byte_at(q) not in (0x2F, 0x28, 0x2E, 0x3A, 0x22, 0x27, 0x60))


@inlined
def _is_invitation(p: Int, begin: Int) -> Int:
    """Whether the / at an address ends the name of a messenger or of a shortener of addresses."""
    if p < begin + 4:
        return False
    tail = byte_at(p - 4) << 24 | byte_at(p - 3) << 16 | byte_at(p - 2) << 8 | byte_at(p - 1)
    tail |= 0x20202020
    return tail in (
        0x742E6D65,
        0x612E6D65,
        0x6D2E6D65,
        0x652E6D65,
        0x642E6767,
        0x742E6C79,
    )  # t.me a.me m.me e.me d.gg t.ly


@inlined
def _is_account(p: Int, q: Int, letters: Int, digits: Int) -> Int:
    """Whether a run of ASCII letters and digits is as long and as mixed as an account."""
    if letters > 0:
        return MIXED <= q - p <= LONGEST and digits >= DIGITS
    return FEWEST_NUMBER <= digits <= LONGEST_NUMBER


@kernel
def _visit(data: Bytes, offsets: Int64s, wanted: npt.NDArray[np.bool_], counts: Int64s) -> None:
    base = address_of(data)
    for row in range(len(offsets) - 1):
        if not wanted[row]:
            continue
        begin, end = base + offsets[row], base + offsets[row + 1]
        p, after_han = begin, False
        while p < end:
            byte = byte_at(p)
            if _is_name(byte):
                q, letters, digits = p, 0, 0
                while q < end and _is_name(byte_at(q)):
                    is_digit = 0x30 <= byte_at(q) <= 0x39
                    digits += is_digit
                    letters += not is_digit
                    q += 1
                before_han = q + 2 < end and 0xE4 <= byte_at(q) <= 0xE9
                counts[row] += (after_han or before_han) and _is_account(p, q, letters, digits)
                p, after_han = q, False
                continue
            counts[row] += byte == AT and _is_handle(p, begin, end)
            counts[row] += byte == SLASH and _is_invitation(p, begin)
            if byte < 0x80:
                after_han = after_han and byte in (0x20, 0x3A, 0x2B)
                p += 1
                continue
            _, size = decode(p, end)
            # Full-width signs too, as in "V：": they begin with EF BC. A selector of emoji begins with EF B8.
            after_han = 0xE4 <= byte <= 0xE9 or (byte == 0xEF and size == 3 and byte_at(p + 1) >= 0xBC)
            p += size
