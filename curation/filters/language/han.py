"""Which writing the Han characters of a line speak for: Simplified, Traditional, Japanese, and how much kana is beside.

    evidence = han_evidence(data, starts, ends)          # int32[n, len(Evidence)]
    simplified = evidence[:, Evidence.SIMPLIFIED]

One pass; each character costs one look into a table of 28 kB. The table is `han_forms.tsv`, which
tools/make_han_forms.py writes from the national character sets. A character that several standards
share (后 里 台 国 東 ...) never counts as exclusive to one. What its flags say:

simplified   Simplified Chinese writes it, Traditional does not (这 门 国 会); Japanese may (国 会).
traditional  Traditional Chinese writes it, Simplified does not (這 門 國 東); Japanese may (門 東), or did (國).
japanese     only Japanese writes it: shinjitai that neither Chinese standard uses (気 対), kokuji (働 込), 々 and 〆.
chinese      Chinese of either standard, not Japanese (这 嗎 你 檔).
kyujitai     a traditional form that Japanese knows, but writes otherwise nowadays (國 學 體): Chinese, or an old text or name.
function     function word of Chinese that compounds of kanji hardly hold (这 們 它 很).
particle     function word of Chinese that such compounds hold too (的 了 是): says something only in numbers.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from curation.text import CharClass, Script, Spans, kernel
from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, bytes_in, count_bits, load32
from curation.text.spans import Bytes, Int64s, bounds
from curation.text.tables import KIND_BLOCKS, KIND_INDEX

__all__ = ["Counts", "Evidence", "han_evidence", "han_flags", "sentence_spans"]

Counts: TypeAlias = npt.NDArray[np.int32]


class Evidence(IntEnum):
    """Columns of `han_evidence`. SIMPLIFIED to PARTICLE count Han characters with the flag of that name."""

    HAN = 0
    """Han characters, 々, 〆 and 〇 included; Bopomofo letters count here too, as TRADITIONAL and CHINESE."""
    SIMPLIFIED = 1
    TRADITIONAL = 2
    JAPANESE = 3
    CHINESE = 4
    KYUJITAI = 5
    FUNCTION = 6
    PARTICLE = 7
    HIRAGANA = 8
    KATAKANA = 9
    """Katakana of either width; ー where kana stands before it."""
    HANGUL = 10
    OTHER = 11
    """Letters of all other scripts."""


N_EVIDENCE = len(Evidence)
N_FIELDS = int(Evidence.PARTICLE) + 1
HAN_FIELD = 0

TABLE_FIRST, TABLE_END = 0x3000, 0xA000
NOTHING, HIRAGANA, KATAKANA, PROLONGED, HANGUL, OTHER, HAN = range(7)
"""Classes of the table; HAN and above are Han characters, class HAN + i those with the i-th set of flags."""

LETTER = int(CharClass.LETTER)
SCRIPT_HAN, SCRIPT_HIRAGANA, SCRIPT_KATAKANA = int(Script.HAN), int(Script.HIRAGANA), int(Script.KATAKANA)
SCRIPT_HANGUL, SCRIPT_BOPOMOFO = int(Script.HANGUL), int(Script.BOPOMOFO)
BOPOMOFO_FLAGS = frozenset({"traditional", "chinese"})

FIELD_FULL = 255
"""A field of 8 bits holds so many characters before it must be emptied."""

CUT_AFTER = frozenset("。！？｡!?|｜)）」』》〉】〕”]｝}｣\t")
CUT_BEFORE = frozenset("(（「『《〈【〔“[｛{｢")
IDEOGRAPH_LEAD, LAST_LEAD = 0xE4, 0xEC
"""First bytes of U+4000 to U+CFFF: no character there cuts, and every one has 3 bytes."""
SPLIT_NOT, SPLIT_AFTER, SPLIT_BEFORE = range(3)


def _rows() -> dict[str, frozenset[str]]:
    """Flags of each character that has any."""
    lines = (Path(__file__).resolve().parent / "han_forms.tsv").read_text("utf-8").splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        if not line.startswith("#"):
            flags, characters = line.split("\t")
            for character in characters:
                found.setdefault(character, set()).update(flags.split(" "))
    return {character: frozenset(flags) for character, flags in found.items()}


def han_flags() -> dict[str, frozenset[str]]:
    """Names of the flags (see the module) of each Han character that has any, read anew from the table."""
    return _rows()


def _class_of(code: int, numbers: dict[frozenset[str], int], flags: dict[str, frozenset[str]]) -> int:
    """Class of a code point of the table."""
    kind = int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63])
    if kind & 15 != LETTER:
        return NOTHING
    if code == 0x30FC:
        return PROLONGED
    script = kind >> 8
    if script in (SCRIPT_HAN, SCRIPT_BOPOMOFO):
        named = BOPOMOFO_FLAGS if script == SCRIPT_BOPOMOFO else flags.get(chr(code), frozenset())
        return HAN + numbers.setdefault(named, len(numbers))
    return {SCRIPT_HIRAGANA: HIRAGANA, SCRIPT_KATAKANA: KATAKANA, SCRIPT_HANGUL: HANGUL}.get(script, OTHER)


def _tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """uint8[TABLE_END - TABLE_FIRST] classes, and uint64[n_classes]: what a Han class adds to the fields."""
    flags = _rows()
    numbers: dict[frozenset[str], int] = {frozenset(): 0}
    classes = np.array([_class_of(code, numbers, flags) for code in range(TABLE_FIRST, TABLE_END)], np.uint8)
    words = np.zeros(HAN + len(numbers), np.uint64)
    for named, number in numbers.items():
        fields = [HAN_FIELD, *(int(Evidence[name.upper()]) for name in named)]
        words[HAN + number] = sum(1 << 8 * field for field in fields)
    return classes, words


CLASSES, WORDS = _tables()

SPLITS = np.zeros(0x10000, np.uint8)
for _character in CUT_AFTER | CUT_BEFORE:
    SPLITS[ord(_character)] = SPLIT_AFTER if _character in CUT_AFTER else SPLIT_BEFORE


def han_evidence(data: Bytes, starts: Int64s, ends: Int64s) -> Counts:
    """What each line holds: int32[n, len(Evidence)], characters.

    Line i is `data[starts[i]:ends[i]]`. HAN to OTHER without the flags' columns sum to its letters, but
    for a ー that no kana is before. Raises InputError where a span leaves the data.
    """
    return _han_evidence(*bounds(data, Spans(starts, ends, starts)))


def sentence_spans(data: Bytes, starts: Int64s, ends: Int64s) -> Spans:
    """The pieces of each line: cut after 。！？!?| and closing brackets or quotation marks, before opening ones.

    Returns starts, ends int64[n_pieces], offsets int64[n_lines + 1]. The pieces of a line join without a
    gap; an empty line has none. Raises InputError where a span leaves the data.
    """
    checked = bounds(data, Spans(starts, ends, starts))
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(_count_pieces(*checked), out=offsets[1:])
    pieces = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    _fill_pieces(*checked, *pieces)
    return Spans(*pieces, offsets)


@inlined
def class_of(code: Int) -> Int:
    """Class of a character: HAN and above for Han."""
    if TABLE_FIRST <= code < TABLE_END:
        return np.int64(CLASSES[np.uint64(code - TABLE_FIRST)])
    kind = kind_of(code)
    if kind & 15 != LETTER:
        return NOTHING
    script = kind >> 8
    if script == SCRIPT_HANGUL:
        return HANGUL
    if script == SCRIPT_HAN:
        return HAN
    if script == SCRIPT_KATAKANA:
        return KATAKANA
    return HIRAGANA if script == SCRIPT_HIRAGANA else OTHER


@inlined
def _empty(fields: Int, counts: Counts) -> None:
    """Add the 8 fields to the first columns."""
    for i in range(N_FIELDS):
        counts[i] += np.int64(fields >> np.uint64(8 * i) & np.uint64(255))


@inlined
def _evidence_in(p: Int, end: Int, limit: Int, counts: Counts) -> None:
    """Add what stands from address `p` to `end`; the data may be read up to `limit`."""
    fields, room, was_kana = np.uint64(0), FIELD_FULL, False
    while p < end:
        run = ascii_run(p, end, limit) if byte_at(p) < 0x80 else 0
        if run > 1:
            counts[Evidence.OTHER] += count_bits(bytes_in(p, 0x20, 0x61, 26) & low_bits(run))
            p += run
            was_kana = False
            continue
        code, length = decode(p, end)
        p += length
        kind = class_of(code)
        if kind >= HAN:
            fields += WORDS[np.uint64(kind)]
            room -= 1
            if room == 0:
                _empty(fields, counts)
                fields, room = np.uint64(0), FIELD_FULL
            was_kana = False
        elif kind in (HIRAGANA, KATAKANA) or (kind == PROLONGED and was_kana):
            counts[Evidence.HIRAGANA if kind == HIRAGANA else Evidence.KATAKANA] += 1
            was_kana = True
        else:
            if kind >= HANGUL:
                counts[Evidence.HANGUL if kind == HANGUL else Evidence.OTHER] += 1
            was_kana = False
    _empty(fields, counts)


@kernel
def _han_evidence(data: Bytes, starts: Int64s, ends: Int64s) -> Counts:
    base, limit = address_of(data), address_of(data) + len(data)
    counts = np.zeros((len(starts), N_EVIDENCE), np.int32)
    for row in range(len(starts)):
        _evidence_in(base + starts[row], base + ends[row], limit, counts[row])
    return counts


@inlined
def _next_cut(p: Int, end: Int) -> Int:
    """Address where the piece that begins at `p` < `end` ends."""
    start = p
    while p < end:
        if p + 4 <= end:
            word = load32(p)
            if word & 0xC0C0F0 == 0x8080E0 and IDEOGRAPH_LEAD <= word & 0xFF <= LAST_LEAD:
                p += 3
                continue
        code, length = byte_at(p), 1
        if code >= 0x80:
            code, length = decode(p, end)
        split = SPLITS[np.uint64(code)] if code < 0x10000 else SPLIT_NOT
        if split == SPLIT_BEFORE and p > start:
            return p
        p += length
        if split == SPLIT_AFTER:
            return p
    return end


@kernel
def _count_pieces(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    base = address_of(data)
    counts = np.zeros(len(starts), np.int64)
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        while p < end:
            p = _next_cut(p, end)
            counts[row] += 1
    return counts


@kernel
def _fill_pieces(data: Bytes, starts: Int64s, ends: Int64s, piece_starts: Int64s, piece_ends: Int64s) -> None:
    base = address_of(data)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        while p < end:
            piece_starts[n] = p - base
            p = _next_cut(p, end)
            piece_ends[n] = p - base
            n += 1
