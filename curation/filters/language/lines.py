"""Lines of documents, made ready for language models: what has no language is gone, and noise is named.

    data, offsets = buffers(batch.column("text"))
    lines = prepare(data, offsets)

One visit of the text writes each line twice: `clean` for models that read case and punctuation, `folded`
for those that read letters only. See `clean` and `tokens` for what goes, `folding` for the folded form,
`kinds` for what is called code or navigation.

Where a line has soft hyphens, marks of direction or other invisible characters between others, or characters that
are not in NFC, it is first rid of the former and brought to NFC by Python, at about 1 us a line.
Symbols that NFC replaces are dropped before, and lines with over 256 marks in a row stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.language.blocks import SLACK
from curation.filters.language.clean import clean_line
from curation.filters.language.folding import fold_line
from curation.filters.language.kinds import N_FACTS, LineKind, line_kinds
from curation.filters.language.tokens import UNFIT
from curation.text.characters import Counts
from curation.text.decode import decode
from curation.text.jit import kernel
from curation.text.lines import line_spans
from curation.text.memory import address_of
from curation.text.normal import form_of, order_of
from curation.text.spans import Bytes, Int64s, Spans, Where, bounds
from curation.text.tables import KIND_BLOCKS, KIND_INDEX, CharClass, Role, Script

__all__ = ["LineKind", "Lines", "prepare"]

N_SCRIPTS = len(Script)
MOST_MARKS = 256
"""Marks in a row that NFC is asked for: to put n of them in order takes n * n steps."""
IGNORABLE = int(CharClass.CONTROL) | int(Role.IGNORABLE) << 4


class Lines(NamedTuple):
    """All lines of n documents, blank ones too."""

    spans: Spans
    """Where the lines are in the text: starts, ends int64[n_lines], offsets int64[n + 1]."""
    clean: Bytes
    """uint8[...]: the lines without what has no language, one after the other in no special order."""
    clean_starts: Int64s
    clean_ends: Int64s
    """int64[n_lines], into `clean`."""
    folded: Bytes
    """uint8[...]: the same in lower case, with letters, marks, `'`, `’`, `-` and single blanks only."""
    folded_starts: Int64s
    folded_ends: Int64s
    """int64[n_lines], into `folded`."""
    letters: Counts
    """int32[n_lines, len(Script)]: letters of each script in `clean`."""
    kind: npt.NDArray[np.uint8]
    """uint8[n_lines]: a `LineKind` each."""


def prepare(data: Bytes, where: Where) -> Lines:
    """Cleaned and folded lines, letters by script, and the kind of each line.

    Raises InputError where `where` does not lie within `data`.
    """
    data = bounds(data, where)[0]
    spans = line_spans(data, where)
    n = len(spans.starts)
    facts, letters = np.zeros((n, N_FACTS), np.int64), np.zeros((n, N_SCRIPTS), np.int32)
    places = np.zeros((4, n), np.int64)
    clean, folded, unfit = _prepare(data, spans.starts, spans.ends, np.arange(n), False, 0, 0, places, letters, facts)
    if len(unfit):
        more, starts = _settled(data, spans, unfit)
        extra = _prepare(more, starts[:-1], starts[1:], unfit, True, len(clean), len(folded), places, letters, facts)
        clean, folded = np.concatenate([clean, extra[0]]), np.concatenate([folded, extra[1]])
    for array in (clean, folded, places):
        array.flags.writeable = False
    kind = line_kinds(data, spans, clean, folded, places, letters, facts)
    return Lines(spans, clean, places[0], places[1], folded, places[2], places[3], letters, kind)


@kernel
def _prepare(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    rows: Int64s,
    settled: bool,
    clean_base: int,
    folded_base: int,
    places: npt.NDArray[np.int64],
    letters: Counts,
    facts: npt.NDArray[np.int64],
) -> tuple[Bytes, Bytes, Int64s]:
    """Clean and fold lines; `rows` says where their results go. Returns the bytes, and rows that are unfit.

    `places`: int64[4, n_lines], filled with clean starts and ends, folded starts and ends, counted from the bases.
    """
    base, limit = address_of(data), address_of(data) + len(data)
    total = 0
    for i in range(len(starts)):
        total += ends[i] - starts[i]
    room = total + total // 2 + SLACK  # see `careful`, and `fold_line` for the second step
    clean = np.empty(room, np.uint8)
    folded = np.empty(room + room // 2 + SLACK, np.uint8)
    clean_at, folded_at = address_of(clean), address_of(folded)
    clean_limit = clean_at + room
    unfit = np.empty(len(starts), np.int64)
    n_unfit = 0
    o, f = clean_at, folded_at
    for i in range(len(starts)):
        row = rows[i]
        if starts[i] == ends[i]:
            continue
        after = clean_line(base + starts[i], base + ends[i], limit, o, settled, facts[row])
        folded_end = after
        if after != UNFIT:
            folded_end = fold_line(o, after, clean_limit, f, settled, letters[row], facts[row])
        if folded_end == UNFIT:
            facts[row, :] = 0
            letters[row, :] = 0
            unfit[n_unfit] = row
            n_unfit += 1
            continue
        places[0, row], places[1, row] = o - clean_at + clean_base, after - clean_at + clean_base
        places[2, row], places[3, row] = f - folded_at + folded_base, folded_end - folded_at + folded_base
        o, f = after, folded_end
    return clean[: o - clean_at], folded[: f - folded_at], unfit[:n_unfit].copy()


def _ignorables() -> re.Pattern[str]:
    """Invisible characters, but for the joiners that words may need."""
    kinds = KIND_BLOCKS.reshape(-1, 64)[KIND_INDEX].reshape(-1)
    codes = np.flatnonzero(kinds & 0xFF == IGNORABLE)
    codes = codes[(codes != 0x200C) & (codes != 0x200D)]
    breaks = np.flatnonzero(np.diff(codes) != 1) + 1
    ranges = (f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in np.split(codes, breaks))
    return re.compile(f"[{''.join(ranges)}]+")


IGNORABLES = _ignorables()


def _settled(data: Bytes, spans: Spans, rows: Int64s) -> tuple[Bytes, Int64s]:
    """The lines `rows` without invisible characters, in NFC: uint8[...], int64[len(rows) + 1]."""
    parts = []
    for row in rows.tolist():
        raw = data[spans.starts[row] : spans.ends[row]].tobytes()
        text = IGNORABLES.sub("", raw.decode("utf-8", "replace"))
        stripped = text.encode()
        if _marks_in_row(np.frombuffer(stripped, np.uint8)) <= MOST_MARKS:
            stripped = unicodedata.normalize("NFC", text).encode()
        parts.append(stripped)
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


@kernel
def _marks_in_row(data: Bytes) -> int:
    """The longest run of characters that could have to be put in order."""
    p, end = address_of(data), address_of(data) + len(data)
    longest, run = 0, 0
    while p < end:
        code, length = decode(p, end)
        run = run + 1 if order_of(form_of(code)) != 0 else 0
        longest = max(longest, run)
        p += length
    return longest
