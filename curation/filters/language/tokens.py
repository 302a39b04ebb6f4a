"""Tokens that may hold what has no language: addresses, file names, numbers, code; and what is left of them.

A token is cut into groups, runs of letters, digits and the signs that join names (`. / : @ _ = -`). A group
goes as a whole where one of these stands in it:

| what | example |
| --- | --- |
| a scheme, or a word that begins with `www.` | https://a.example/b, www.example.org |
| `@` beside a letter or digit | mail@example.org, @handle |
| `.` after two letters or digits, or after a `/`, and before a small letter | config.yaml, a/b.py (but not e.g., z.B.) |
| `_` between letters or digits | pip_install |
| `/` at its start and once more, or three of them | /usr/lib/x, a/b/c/d (but not and/or) |
| `\\` before a letter | C:\\x, \\alpha |
| `::` or `=` after a letter or digit | std::vector, a=b |
| `$` before a letter | $HOME |
| a capital after a small letter, twice in one word | getElementById (but not McDonald, isiZulu) |
| `()` after it | main() |

Of any other group the runs of ASCII letters and digits with a digit go (x86, 12,345.67), and all signs but
punctuation. A hashtag keeps its words: `#BlackLivesMatter2020` is Black Lives Matter. All rules look at
neighbours only, so that what is left of a token would be left again. Every step is linear in the token.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.text.decode import decode
from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, store_byte
from curation.text.spans import Int64s
from curation.text.tables import CharClass, Role, Script

__all__ = [
    "CODED",
    "LETTERS",
    "LOWER",
    "MARKS",
    "PLAIN",
    "SEPARATORS",
    "STOPS",
    "UNFIT",
    "UNSPACED",
    "UPPER",
    "ascii_kind",
    "careful",
    "is_token_letter",
    "mark_weight",
]

LOWER, UPPER, DIGIT, KEPT, PLAIN, GROUP, SOFT_MARK, HARD_MARK, SEPARATOR, OTHER = (1 << i for i in range(10))
WORD = LOWER | UPPER | DIGIT
MARKS, CODED, SEPARATORS, LETTERS, UNSPACED, STOPS = range(6)
"""Columns of a line's facts: marks of code (see `mark_weight`), dropped code tokens, signs that separate links of a menu;
letters of the cleaned line, those of scripts without blanks, and whether punctuation ends or divides a sentence."""
UNFIT = -1
"""What kernels return instead of an address for a line that has to be settled first: see `lines`."""
LETTER, LETTER_ROLE, HANGUL = int(CharClass.LETTER), int(Role.LETTER), int(Script.HANGUL)
KEEP, DROP, CODE, HASHTAG = range(4)


def _ascii_kinds() -> npt.NDArray[np.int64]:
    """int64[256]: bits of each ASCII character; 0 for blanks, controls and `<`, at which tokens end, and other bytes."""
    kinds = np.zeros(256, np.int64)
    sets = {
        LOWER: "abcdefghijklmnopqrstuvwxyz",
        UPPER: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        DIGIT: "0123456789",
        KEPT: "!\"'(),-.:;?",
        GROUP: "_./\\@:=-",
        SOFT_MARK: "()[];/&$",
        HARD_MARK: "{}=\\",
        SEPARATOR: "|>",
    }
    for bit, characters in sets.items():
        for character in characters:
            kinds[ord(character)] |= bit
    kinds[kinds & WORD != 0] |= GROUP
    kinds[kinds & (LOWER | UPPER | KEPT) != 0] |= PLAIN
    kinds[0x21:0x7F] |= OTHER
    kinds[ord("<")] = 0
    return kinds


ASCII_KINDS = _ascii_kinds()


@inlined
def ascii_kind(byte: Int) -> Int:
    """Bits of an ASCII character."""
    return np.int64(ASCII_KINDS[np.uint64(byte)])


@inlined
def mark_weight(kind: Int) -> Int:
    """What a sign says for code: 3 for what prose has none of, 1 for what it has some of, 0 for the rest."""
    return np.int64(kind & SOFT_MARK != 0) + 3 * np.int64(kind & HARD_MARK != 0)


@inlined
def is_token_letter(kind: Int) -> bool:
    """A letter of a script that is written with blanks between words, hangul apart."""
    return bool(kind & 0xFF == LETTER | LETTER_ROLE << 4 and kind >> 8 != HANGUL)


@inlined
def _kind_at(p: Int, stop: Int) -> Int:
    """Bits of the character at address `p`; GROUP and LOWER | UPPER for one outside of ASCII, 0 at the token's end."""
    if p >= stop:
        return np.int64(0)
    byte = byte_at(p)
    return ascii_kind(byte) if byte < 0x80 else np.int64(LOWER | UPPER | GROUP)


@inlined
def _ends_address(byte: Int) -> bool:
    """`"` `>` `` ` `` `{` `}` `|` `\\` `^` `[` `]` `)`, none of which ends in an address unescaped."""
    return byte in (0x22, 0x3E, 0x60, 0x7B, 0x7D, 0x7C, 0x5C, 0x5E, 0x5B, 0x5D, 0x29)


@inlined
def _address_end(p: Int, stop: Int) -> Int:
    while p < stop and not _ends_address(byte_at(p)):
        p += 1
    return p


@inlined
def _is_www(p: Int, stop: Int) -> bool:
    if p + 4 >= stop or byte_at(p + 3) != 0x2E or _kind_at(p + 4, stop) & WORD == 0:
        return False
    return bool(byte_at(p) | 32 == 0x77 and byte_at(p + 1) | 32 == 0x77 and byte_at(p + 2) | 32 == 0x77)


@inlined
def _is_scheme(p: Int, stop: Int) -> bool:
    """Whether `://` stands at address `p`."""
    return bool(p + 2 < stop and byte_at(p) == 0x3A and byte_at(p + 1) == 0x2F and byte_at(p + 2) == 0x2F)


@inlined
def _sign_verdict(p: Int, stop: Int, byte: Int, before: Int, name: bool, hashtag: bool) -> Int:
    """What the sign at address `p` says of its group. `before`: bits of what stands before; `name`: see `_judge`."""
    after = _kind_at(p + 1, stop)
    if byte == 0x2E:
        return CODE if name and after & WORD == LOWER else KEEP
    if byte == 0x3A and after and byte_at(p + 1) == 0x3A:
        return CODE if before & WORD and _kind_at(p + 2, stop) & WORD else KEEP
    if byte == 0x40:
        return DROP if (before | after) & WORD else KEEP
    if byte == 0x5F:
        return CODE if before & WORD and after & WORD and not hashtag else KEEP
    if byte == 0x5C:
        return CODE if after & (LOWER | UPPER) else KEEP
    if byte == 0x3D:
        return CODE if before & WORD and after else KEEP
    return np.int64(KEEP)


@inlined
def _judge(p: Int, stop: Int) -> tuple[Int, Int]:
    """KEEP, DROP, CODE or HASHTAG, and the end of the group at address `p`.

    `name` below: what stands right before could be the name of a file or host, two or more ASCII letters
    or digits (one after a `/`), not all digits, and no other letter before them.
    """
    hashtag = byte_at(p) == 0x23  # the caller found it, or `$`, before a letter
    verdict = KEEP if byte_at(p) != 0x24 else CODE
    p += hashtag or verdict == CODE
    before, length, letters, camels, slashes, rooted, foreign = 0, 0, 0, 0, 0, False, False
    while p < stop:
        byte = byte_at(p)
        if byte >= 0x80:
            before, length, letters, camels, foreign = LOWER | UPPER, 0, 0, 0, True
            p += decode(p, stop)[1]
            continue
        kind = ascii_kind(byte)
        if kind & GROUP == 0:
            break
        if kind & WORD:
            camel = bool(kind & UPPER and before & WORD == LOWER)
            begins = before & WORD == 0 or (hashtag and (camel or before & WORD == DIGIT))
            if begins and _is_www(p, stop):
                return np.int64(DROP), _address_end(p, stop)
            camels += camel
            if hashtag and camel:
                length, letters, foreign = 0, 0, False
            elif camels > 1 and not hashtag and verdict != DROP:
                verdict = CODE
            if kind & DIGIT:
                foreign, camels = False, 0
            letters += kind & DIGIT == 0
            length += 1
        else:
            if letters and _is_scheme(p, stop):
                return np.int64(DROP), _address_end(p, stop)
            slashes += byte == 0x2F
            rooted |= byte == 0x2F and before & WORD == 0 and _kind_at(p + 1, stop) & WORD != 0
            name = letters > 0 and not foreign and (length > 1 or slashes > 0)
            said = _sign_verdict(p, stop, byte, before, name, hashtag)
            said = CODE if slashes > 2 or (rooted and slashes > 1) else said
            verdict = said if said != KEEP and verdict != DROP else verdict
            length, letters, camels, foreign = 0, 0, 0, False
        before = kind
        p += 1
    if before & WORD and p + 1 < stop and byte_at(p) == 0x28 and byte_at(p + 1) == 0x29:
        verdict = CODE
    return np.int64(HASHTAG if verdict == KEEP and hashtag else verdict), p


@inlined
def _entity_end(p: Int, stop: Int) -> Int:
    """Address after the HTML entity that begins with the `&` at address `p`, or `p` if it is none."""
    at = p + 1
    if at < stop and byte_at(at) == 0x23:
        at += 1
    first = at
    while at < stop and at < p + 12 and byte_at(at) < 0x80 and ascii_kind(byte_at(at)) & WORD:
        at += 1
    return at + 1 if at > first and at < stop and byte_at(at) == 0x3B else p


@inlined
def _link_end(p: Int, stop: Int) -> Int:
    """Address after the target `](address)` of a Markdown link that begins at address `p`, or `p` if it is none."""
    if byte_at(p) != 0x5D or p + 1 >= stop or byte_at(p + 1) != 0x28:
        return p
    end = _address_end(p + 2, stop)
    return end + 1 if end < stop and byte_at(end) == 0x29 else p


@inlined
def _run_end(p: Int, stop: Int) -> tuple[Int, bool]:
    """Where the ASCII letters and digits at address `p` end, and whether a digit is among them."""
    digits = 0
    while p < stop and byte_at(p) < 0x80:
        kind = ascii_kind(byte_at(p))
        if kind & WORD == 0:
            break
        digits |= kind & DIGIT
        p += 1
    return p, digits != 0


@inlined
def _starts_group(p: Int, stop: Int, byte: Int, kind: Int) -> bool:
    if byte == 0x23 or byte == 0x24:
        return bool(_kind_at(p + 1, stop) & (LOWER | UPPER))
    return bool(kind & GROUP)


@inlined
def _put(o: Int, out: Int, gap: bool, byte: Int) -> Int:
    if gap and o > out:
        store_byte(o, 0x20)
        o += 1
    store_byte(o, byte)
    return o + 1


@inlined
def _put_all(p: Int, end: Int, out: Int, o: Int, gap: bool) -> Int:
    o = _put(o, out, gap, byte_at(p))
    for at in range(p + 1, end):
        store_byte(o, byte_at(at))
        o += 1
    return o


@inlined
def _hashtag(p: Int, end: Int, out: Int, o: Int, gap: bool) -> tuple[Int, bool]:
    """Write the words in the ASCII letters and digits of a hashtag."""
    before = 0
    while p < end:
        byte = byte_at(p)
        kind = ascii_kind(byte)
        if kind & DIGIT:
            gap = True
        else:
            o = _put(o, out, gap or (kind & UPPER != 0 and before & LOWER != 0), byte)
            gap = False
        before = kind
        p += 1
    return o, gap


@inlined
def careful(p: Int, stop: Int, out: Int, o: Int, gap: bool, facts: Int64s) -> tuple[Int, bool]:
    """Write what is language of the token from address `p` to `stop` to address `o` of a line that begins at `out`.

    `gap`: a blank is owed before it. Returns the new `o` and `gap`. A sign that goes leaves a gap;
    punctuation after one stays with the word before, or goes. A hashtag may get one blank for two
    bytes, so at most 3 bytes are written for 2. A token without any letter leaves nothing.
    """
    first, removed, lettered, tag, group_end = o, False, False, False, p
    while p < stop:
        byte = byte_at(p)
        kind = _kind_at(p, stop)
        if p >= group_end:
            verdict, group_end = _judge(p, stop) if _starts_group(p, stop, byte, kind) else (np.int64(KEEP), p)
            if verdict in (DROP, CODE):
                facts[CODED] += verdict == CODE
                p, gap, removed = group_end, True, True
                continue
            tag = verdict == HASHTAG
        if byte >= 0x80:
            end = p + decode(p, stop)[1]
            o, gap, lettered = _put_all(p, end, out, o, gap), False, True
            p = end
        elif kind & WORD:
            end, digits = _run_end(p, stop)
            was = o
            if tag:
                o, gap = _hashtag(p, end, out, o, gap)
            elif digits:
                gap = True
            else:
                o, gap = _put_all(p, end, out, o, gap), False
            p, removed, lettered = end, removed or digits, lettered or o > was
        elif kind & KEPT:
            facts[MARKS] += mark_weight(kind)
            if not (gap and removed):
                o, gap = _put(o, out, gap, byte), False
            elif lettered and (byte in (0x21, 0x2C, 0x2E, 0x3A, 0x3B, 0x3F)):
                store_byte(o, byte)
                o += 1
            p += 1
        else:
            after = _entity_end(p, stop) if byte == 0x26 else _link_end(p, stop)
            if after == p:
                facts[MARKS] += mark_weight(kind)
            facts[SEPARATORS] += kind & SEPARATOR != 0
            p, gap, removed = max(after, p + 1), True, True
    if removed and not lettered:
        return first, True
    return o, gap
