"""Letters that were read in the wrong encoding, or lost when they were.

    mojibake                characters that are UTF-8 read as Latin-1, Windows-1252 or Windows-1251, or double-byte text
                            read as Latin-1 / characters that are not blank
    misread_han             Han letters that UTF-8 shows when it is read as Shift_JIS or GB 18030 / Han letters
    inverted_case           Cyrillic words of three letters or more that begin small and go on in capitals (KOI8-R read as
                            Windows-1251) / such words
    misread_signs           "¡" before another sign of Latin-1 (as in "¡°word¡±"), in the whole text
    replacement_characters  U+FFFD, C1 controls, private code points of the first plane / characters that are not blank

UTF-8 that was read one byte a character is still UTF-8: where neighbours, taken back to the bytes they stood for, are one
valid sequence, they count ("Ã©", "â€™"). Ordinary text has such neighbours, too. "Úž" in Czech does not count, since
misread text seldom shows one of its vowels before š or ž. "Він" is Ukrainian, so sequences of Windows-1251 count only where
at least half of the characters that could take part in one do.
Double-byte text read as Latin-1 shows as runs of its upper half: from four neighbours on, three of them letters, all count.
A reader of Shift_JIS or GB 18030 takes the first two bytes of a character of U+3000 to U+9FFF for one letter, and those are few
(縺 繧 繝 荳; 鐨 涓 锛 鍥): 953 letters, made here from the encodings themselves, most of them rare.

Of an English page with Korean or Chinese quotation marks only these are misread, as "¡" and a sign, which no language
writes: "¡" stands before letters, "¿" and quotation marks.

misread_han is undefined where there are fewer than 20 Han letters, inverted_case where there are fewer than 10 such words.
Sources: ftfy (Speer 2019) turns text back and looks whether it makes sense; this looks for what can be turned back. The
sets of Han letters and the test for case are ours. Costs 1.1 ns a byte on mixed text.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Parts
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn
from curation.text.decode import ascii_run, decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s
from curation.text.tables import Script

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn("mojibake", pa.float32(), "share", "characters read in the wrong encoding"),
    ScoreColumn("misread_han", pa.float32(), "share", "Han letters that UTF-8 shows in an East Asian encoding"),
    ScoreColumn("inverted_case", pa.float32(), "share", "Cyrillic words that begin small and go on in capitals"),
    ScoreColumn("misread_signs", pa.int32(), "places", "¡ before a sign: East Asian punctuation read as Latin-1"),
    ScoreColumn("replacement_characters", pa.float32(), "share", "U+FFFD, C1 controls, private code points"),
)

TABLE = 0x2200
"""Code points below are looked up; no character of the two code pages lies above."""
Table = npt.NDArray[np.uint8]


def _bytes_of(*encodings: str) -> Table:
    """uint8[TABLE]: the byte from 0x80 on that shows as each code point; 0 for none. The first encoding wins."""
    table = np.zeros(TABLE, np.uint8)
    for encoding in reversed(encodings):
        for byte in range(0x80, 0x100):
            shown = bytes([byte]).decode(encoding, "ignore")
            if shown:
                table[ord(shown)] = byte
    return table


def _misread() -> Table:
    """uint8[0x5200]: 1 for U+4E00 + i that Shift_JIS or GB 18030 shows for the first bytes of U+3000 to U+9FFF, or of U+F000 to
    U+FFFF (full-width signs), in UTF-8."""
    table = np.zeros(0x5200, np.uint8)
    leads = (*range(0xE3, 0xEA), 0xEF)
    for encoding in ("cp932", "gbk"):
        for pair in ((lead, second) for lead in leads for second in range(0x80, 0xC0)):
            shown = bytes(pair).decode(encoding, "ignore")
            if len(shown) == 1 and 0x4E00 <= ord(shown) < 0xA000:
                table[ord(shown) - 0x4E00] = 1
    return table


LATIN, CYRILLIC, MISREAD = _bytes_of("latin-1", "cp1252"), _bytes_of("cp1251"), _misread()
HITS, CYRILLIC_HITS, CYRILLIC_ALL, MISREAD_HAN, REPLACED, SIGNS = range(6)
DENSE, DENSE_LETTERS = 4, 3
FEWEST_HAN, FEWEST_WORDS = 20, 10


def measure(parts: Parts) -> Measures:
    """The columns of each document: float32[n], masked where undefined."""
    n = len(parts.offsets) - 1
    counts, words = np.zeros((n, 6), np.int64), np.zeros((n, 2), np.int64)
    _visit(parts.data, parts.offsets, LATIN, CYRILLIC, MISREAD, counts)
    _visit_words(parts.data, parts.words.starts, parts.word_chars, parts.words.offsets, words)
    whole = 2 * counts[:, CYRILLIC_HITS] >= counts[:, CYRILLIC_ALL]
    hits = counts[:, HITS] + np.where(whole, counts[:, CYRILLIC_HITS], 0)
    han = parts.letters[:, Script.HAN].astype(np.int64)
    return {
        "mojibake": share(np.minimum(hits, parts.characters), parts.characters),
        "misread_han": share(counts[:, MISREAD_HAN], np.where(han < FEWEST_HAN, 0, han)),
        "inverted_case": share(words[:, 0], np.where(words[:, 1] < FEWEST_WORDS, 0, words[:, 1])),
        "misread_signs": np.minimum(counts[:, SIGNS], np.iinfo(np.int32).max).astype(np.int32),
        "replacement_characters": share(np.minimum(counts[:, REPLACED], parts.characters), parts.characters),
    }


@inlined
def _follows(byte: Int, need: Int) -> tuple[Int, Int]:
    """After a byte: the bytes still missing of a sequence of UTF-8, and whether one has just ended."""
    if need > 0 and 0x80 <= byte < 0xC0:
        return need - 1, need == 1
    if 0xC2 <= byte <= 0xF4:
        return (1 if byte < 0xE0 else 2 if byte < 0xF0 else 3), False
    return 0, False


@inlined
def _is_czech(before: Int, code: Int) -> Int:
    """Whether two neighbours are a vowel and š or ž, of either case, as in "Úžasný": both could be bytes of UTF-8."""
    return code in (0x160, 0x161, 0x17D, 0x17E) and before in (0xC9, 0xCD, 0xD3, 0xD4, 0xDA, 0xDD)


@inlined
def _is_lost(code: Int) -> Int:
    """Whether a code point says that a character was lost: C1 controls but NEL, private use, U+FFFD."""
    return (0x80 <= code < 0xA0 and code != 0x85) or 0xE000 <= code < 0xF900 or code == 0xFFFD


@kernel
def _visit(data: Bytes, offsets: Int64s, latin: Table, cyrillic: Table, misread: Table, counts: Int64s) -> None:
    base, limit = address_of(data), address_of(data) + len(data)
    for row in range(len(offsets) - 1):
        p, end = base + offsets[row], base + offsets[row + 1]
        need, length, of_run, run, letters, before, earlier = 0, 0, 0, 0, 0, 0, 0
        need_c, length_c = 0, 0
        of_row = counts[row]
        while p < end:
            if byte_at(p) < 0x80:
                of_row[HITS] += max(of_run, run if run >= DENSE and letters >= DENSE_LETTERS else 0)
                need, of_run, run, letters, before, need_c = 0, 0, 0, 0, 0, 0
                p += max(ascii_run(p, end, limit), 1)
                continue
            code, size = decode(p, end)
            p += size
            of_row[REPLACED] += _is_lost(code)
            if code >= TABLE:
                if 0x4E00 <= code < 0xA000:
                    of_row[MISREAD_HAN] += misread[np.uint64(code - 0x4E00)]
                if run > 0:
                    of_row[HITS] += max(of_run, run if run >= DENSE and letters >= DENSE_LETTERS else 0)
                    need, of_run, run, letters, before = 0, 0, 0, 0, 0
                need_c = 0
                continue
            byte = np.int64(latin[np.uint64(code)])
            if byte == 0:
                of_row[HITS] += max(of_run, run if run >= DENSE and letters >= DENSE_LETTERS else 0)
                need, of_run, run, letters, before = 0, 0, 0, 0, 0
            else:
                length = length + 1 if need > 0 else 1
                need, ended = _follows(byte, 0 if _is_czech(before, code) else need)
                if need > 0 and 0xC2 <= byte <= 0xF4:
                    length = 1
                of_run += length if ended else 0
                run += code != before
                of_row[SIGNS] += before == 0xA1 and 0xA2 <= code < 0xC0 and code not in (0xAB, 0xBB, 0xBF)
                of_row[SIGNS] -= earlier == 0xA1 and before == 0xA2 and code == 0xA3  # a table of Latin-1
                letters += code >= 0xC0 or code < 0xA0
                earlier, before = before, code
            byte = np.int64(cyrillic[np.uint64(code)])
            if byte == 0:
                need_c = 0
                continue
            of_row[CYRILLIC_ALL] += 1
            length_c = length_c + 1 if need_c > 0 else 1
            need_c, ended = _follows(byte, need_c)
            if need_c > 0 and 0xC2 <= byte <= 0xF4:
                length_c = 1
            of_row[CYRILLIC_HITS] += length_c if ended else 0
        of_row[HITS] += max(of_run, run if run >= DENSE and letters >= DENSE_LETTERS else 0)


@inlined
def _is_capital(p: Int) -> Int:
    """Whether the two bytes at an address are a capital of Cyrillic, U+0400 to U+042F."""
    return byte_at(p) == 0xD0 and 0x80 <= byte_at(p + 1) < 0xB0


@inlined
def _is_small(p: Int) -> Int:
    """Whether the two bytes at an address are a small letter of Cyrillic, U+0430 to U+045F."""
    return (byte_at(p) == 0xD0 and byte_at(p + 1) >= 0xB0) or (byte_at(p) == 0xD1 and byte_at(p + 1) < 0xA0)


@kernel
def _visit_words(
    data: Bytes, starts: Int64s, chars: npt.NDArray[np.int32], offsets: Int64s, counts: npt.NDArray[np.int64]
) -> None:
    base = address_of(data)
    for row in range(len(offsets) - 1):
        for word in range(offsets[row], offsets[row + 1]):
            p = base + starts[word]
            if chars[word] >= 3 and byte_at(p) & 0xFE == 0xD0:
                counts[row, 1] += 1
                counts[row, 0] += _is_small(p) and _is_capital(p + 2) and _is_capital(p + 4)
