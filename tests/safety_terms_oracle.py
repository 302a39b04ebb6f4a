"""What `curation.filters.safety_terms` should find, in plain Python: slow, and as one would explain it.

**View.** A text becomes a list of solids: letters, digits, and the signs that may stand for letters (see `characters` of the
filter for how). A letter that stands three times or more in a row is one solid that stands for any number of itself. Between
two solids lies a gap: how many separators, and whether a blank, a line break, a sentence sign (, ; : ! ? and the like, not the
full stop) is among them.

**Match.** The letters of a term stand one after another. Signs that may stand for letters are either all read as letters or all as
separators. A digit or sign may stand for a Latin letter (0 for o) where at most half of the term's characters are written so.

* Where the term has a blank or sign itself, the text has up to 6 separators or none, line breaks too.
* Elsewhere it has up to 3. In scripts with blanks between words either nowhere, or in every place (of four places or more, all
  but one), and never in a term of two letters. In Korean this holds for gaps with a blank. A term that holds a character of
  another script without blanks (Han, kana, Thai) may have gaps anywhere.
* A gap with a sentence sign or, where the term has no blank, a line break, is allowed only if all gaps of a term of three
  characters or more have one.
* Of letters that look like Latin ones, at least one must be of a script of the term's, so that an all-Russian word is no English
  one; not asked if the term holds characters of scripts without blanks.
* It spans at most 128 solids.
* Mode word: no letter right before or after it, no digit right before or after a digit; and of a term with gaps, no single letter
  beside it (s e x in e s s e x). Where it begins or ends with Han, kana, Thai or Hangul nothing is asked at that side.

Of matches of one row with one beginning only the shortest counts.

**Context.** Groups stand in the list itself or, for all lists, in `groups.tsv` (see `terms`).

`near`: a match of one of the words ends or begins at most 40 solids before or after the match, without
overlap. `unless`: none does, and none overlaps it: so the word that contains the term is one more such word.

**Hits.** Matches with their context are valid. One that lies inside of a valid match of another row of its category is
no hit if that weighs as much or more (for the same span: if it weighs more, or as much and comes first). Of the rest the hits
of one row do not overlap: the first is taken.

**Regex.** The literals are matched as mode sub, with context. From 160 bytes before each to 320 bytes after (whole characters,
overlapping pieces joined) the piece's view is written as a text: solids, a blank for a gap, a line break for one with a line
break or sentence sign. Each match of the expression there that overlaps a literal is a hit.

**Scores.** A Han, kana or Hangul character is one unit, another letter or digit a third. The n-th hit of a row weighs its weight
/ 2^(n-1). `peak` is the greatest weight of hits that begin within 200 units, counted anew in each such stretch.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from curation.filters.safety_terms.characters import (
    JOINING_MARKS,
    NOT_SEEN,
    SENTENCE_SIGNS,
    STAND_INS,
    UNSPACED_MARKS,
    composites,
    homoglyphs,
    simplified,
)
from curation.filters.safety_terms.terms import ContextWord, Term, TermList
from curation.text.tables import KIND_BLOCKS, KIND_INDEX, CharClass, Role, Script
from quality_models.safety_labels import CATEGORY_NAMES

NEAR, SPAN, PEAK, DENSE = 40, 128, 200, 200
BEFORE, AFTER = 160, 320
MOST_HALVINGS = 30
WIDE_SCRIPTS = (Script.HAN, Script.HIRAGANA, Script.KATAKANA, Script.HANGUL, Script.BOPOMOFO)
SCRIPTS = {Script.LATIN: "L", Script.CYRILLIC: "C", Script.GREEK: "G", Script.ARMENIAN: "O", Script.CHEROKEE: "O"}


class Char(NamedTuple):
    """A character of the view. kind: letter, unspaced, digit, sign, blank, newline, other, mark, jamo."""

    text: str
    kind: str
    scripts: frozenset[str] = frozenset()
    wide: bool = False


class Gap(NamedTuple):
    """What stands between two solids."""

    signs: int = 0
    blank: bool = False
    newline: bool = False
    sentence: bool = False

    def and_then(self, other: Gap) -> Gap:
        return Gap(self.signs + other.signs, *(a or b for a, b in zip(self[1:], other[1:], strict=True)))


class Solid(NamedTuple):
    """A letter, digit or sign, where it stands (bytes), and the gap before it."""

    char: Char
    start: int
    end: int
    gap: Gap
    many: bool
    units: int
    """Thirds of a unit of the text before it."""


class Hit(NamedTuple):
    """A hit. start, end: bytes; units: thirds of a unit before it; row: place among all rows of all lists."""

    category: str
    term: str
    start: int
    end: int
    units: int
    row: int
    rule: str


# -- view ------------------------------------------------------------------------------------------


def _kind(char: str) -> tuple[CharClass, Script, bool]:
    """Class and script, and whether it is a letter of a script without blanks between words, or Hangul."""
    code = ord(char)
    kind = int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63])
    script = Script(kind >> 8)
    return CharClass(kind & 15), script, Role(kind >> 4 & 15) == Role.UNSPACED or script == Script.HANGUL


def _fold(char: str) -> str:
    """Simple case folding: full folding where that is one character."""
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char


def _within(code: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


@cache
def _joins() -> dict[tuple[str, str], str]:
    """Folded character and mark -> folded character."""
    return {(_fold(chr(a)), chr(b)): _fold(chr(c)) for (a, b), c in composites().items()}


@cache
def _alike() -> dict[str, tuple[str, bool]]:
    return {_fold(chr(code)): (chr(latin), any_script) for code, (latin, any_script) in homoglyphs().items()}


@cache
def _decomposed() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for (a, b), c in sorted(composites().items(), key=lambda item: item[1]):
        found[_fold(chr(c))] = (_fold(chr(a)), chr(b))
    return found


@cache
def skeleton(folded: str) -> str:
    if folded in _alike():
        return _alike()[folded][0]
    if ord(folded) in simplified():
        return chr(simplified()[ord(folded)])
    if folded in _decomposed():
        base, mark = _decomposed()[folded]
        plain = skeleton(base)
        return folded if plain == base else _joins().get((plain, mark), plain)
    return folded


@cache
def view_of(char: str) -> tuple[Char, ...]:
    """What a character becomes."""
    code = ord(char)
    hidden = _within(code, [(0xFE00, 0xFE0F), (0xE0000, 0xE0FFF)]) or code in NOT_SEEN
    if hidden or unicodedata.category(char) == "Cf":
        return ()
    return tuple(found for one in unicodedata.normalize("NFKC", char) for found in _folded_view(_fold(one)))


def _folded_view(folded: str) -> tuple[Char, ...]:
    code = ord(folded)
    char_class, script, unspaced = _kind(folded)
    if char_class == CharClass.CONTROL or _within(code, [(0xFE00, 0xFE0F)]) or unicodedata.category(folded) == "Cf":
        return ()
    if folded in STAND_INS and not folded.isdigit():
        return (Char(folded, "sign"),)
    if char_class == CharClass.MARK and _within(code, JOINING_MARKS):
        return (Char(folded, "mark"),)
    if _within(code, [(0x1161, 0x1175), (0x11A8, 0x11C2)]):
        return (Char(folded, "jamo", wide=True),)
    if folded in _alike():
        latin, any_script = _alike()[folded]
        own = frozenset(filter(None, [SCRIPTS.get(script)]))
        return (Char(latin, "letter", frozenset("LCGO") if any_script or not own else own),)
    if char_class == CharClass.LETTER:
        scripts = frozenset(filter(None, [SCRIPTS.get(script)]))
        return (Char(skeleton(folded), "unspaced" if unspaced else "letter", scripts, script in WIDE_SCRIPTS),)
    if char_class == CharClass.MARK:
        return (Char(folded, "unspaced" if _within(code, UNSPACED_MARKS) else "letter"),)
    if char_class == CharClass.NUMBER:
        return (Char(folded, "digit"),)
    if char_class == CharClass.NEWLINE:
        return (Char(folded, "newline"),)
    return (Char(folded, "blank" if char_class == CharClass.SPACE else "other"),)


def _join(before: Char, mark: Char) -> Char | None:
    """The character that a mark or jamo makes with the one before it."""
    if mark.kind == "jamo":
        both = unicodedata.normalize("NFC", before.text + mark.text)
        return before._replace(text=both) if len(both) == 1 and before.wide else None
    joined = _view_joins().get((before.text, mark.text))
    return None if joined is None else joined._replace(scripts=before.scripts)


@cache
def _view_joins() -> dict[tuple[str, str], Char]:
    found: dict[tuple[str, str], Char] = {}
    for (a, b), c in composites().items():
        base, joined = view_of(chr(a)), view_of(chr(c))
        if len(base) == len(joined) == 1 and {base[0].kind, joined[0].kind} <= {"letter", "unspaced", "digit", "sign"}:
            found.setdefault((base[0].text, chr(b)), joined[0])
    return found


def _gap_of(char: Char) -> Gap:
    sentence = char.text in SENTENCE_SIGNS
    return Gap(1, char.kind in ("blank", "newline"), char.kind == "newline", sentence)


def solids_of(text: str) -> list[Solid]:
    """The view of a text."""
    single: list[Solid] = []
    at, gap = 0, Gap()
    for character in text:
        start, at = at, at + len(character.encode())
        for char in view_of(character):
            if char.kind in ("mark", "jamo"):
                joined = _join(single[-1].char, char) if single and gap.signs == 0 else None
                if joined is not None:
                    single[-1] = single[-1]._replace(char=joined, end=at)
                    continue
                if char.kind == "mark":
                    continue
                char = char._replace(kind="unspaced")
            if char.kind in ("letter", "unspaced", "digit", "sign"):
                single.append(Solid(char, start, at, gap, False, 0))
                gap = Gap()
            else:
                gap = gap.and_then(_gap_of(char))
    return _runs_joined(single)


def _runs_joined(single: list[Solid]) -> list[Solid]:
    solids: list[Solid] = []
    units = place = 0
    while place < len(single):
        first, last = single[place], place + 1
        while last < len(single) and single[last].char.text == first.char.text and single[last].gap.signs == 0:
            last += 1
        many = last - place >= 3 and first.char.kind in ("letter", "unspaced")
        last = last if many else place + 1
        scripts = frozenset().union(*(one.char.scripts for one in single[place:last]))
        char = first.char._replace(scripts=scripts)
        solids.append(Solid(char, first.start, single[last - 1].end, first.gap, many, units))
        for one in single[place:last]:
            units += 0 if one.char.kind == "sign" else 3 if one.char.wide else 1
        place = last
    return solids


def units_of(text: str) -> int:
    """Thirds of a unit."""
    solids = solids_of(text + "\na")
    return solids[-1].units


class Letter(NamedTuple):
    """A letter or digit of a term."""

    char: Char
    free: bool


@cache
def letters_of(term: str) -> tuple[Letter, ...]:
    """A term's view. Its own repeated letters are not joined. Of a context word that is @ the sign itself."""
    if term == "@":
        return (Letter(Char("@", "sign"), False),)
    found: list[Letter] = []
    gap = False
    for character in term:
        for char in view_of(character):
            joined = _join(found[-1].char, char) if char.kind in ("mark", "jamo") and found and not gap else None
            if joined is not None:
                found[-1] = found[-1]._replace(char=joined)
            elif char.kind == "jamo":
                found.append(Letter(char._replace(kind="unspaced"), gap and bool(found)))
                gap = False
            elif char.kind in ("letter", "unspaced", "digit"):
                found.append(Letter(char, gap and bool(found)))
                gap = False
            elif char.kind != "mark":
                gap = True
    return tuple(found)


# -- matches ---------------------------------------------------------------------------------------


class Walk(NamedTuple):
    """How far a match has come."""

    letter: int
    """Letters of the term that are matched."""
    solid: int
    """The last solid used."""
    stand_ins: int = 0
    places: int = 0
    """All places between solids; those where gaps must be everywhere or nowhere; and of these, how many have one."""
    strict: int = 0
    gaps: int = 0
    cut: int = 0
    """Places with a sentence sign or line break, and whether one of them must be justified."""
    is_cut: bool = False


def _is(solid: Solid, letter: Letter) -> int:
    """1 if the solid is the letter, 2 if it stands for it, 0 else."""
    if solid.char.text == letter.char.text and (solid.char.kind != "sign" or letter.char.kind == "sign"):
        return 1
    return 2 if letter.char.kind == "letter" and letter.char.text in STAND_INS.get(solid.char.text, "") else 0


def _ends(solids: Sequence[Solid], term: str, mode: str, start: int) -> Iterator[int]:
    """The last solid of each match of a term that begins with solid `start`."""
    letters = letters_of(term)
    for signs_are_letters in (True, False):
        first = _is(solids[start], letters[0])
        if not first or (solids[start].char.kind == "sign" and not signs_are_letters):
            continue
        open_walks = [Walk(1, start, first - 1)]
        while open_walks:
            walk = open_walks.pop()
            if walk.letter == len(letters):
                if _is_whole(solids, letters, mode, start, walk):
                    yield walk.solid
                continue
            letter = letters[walk.letter]
            if solids[walk.solid].many and not letter.free and solids[walk.solid].char.text == letter.char.text:
                open_walks.append(walk._replace(letter=walk.letter + 1))
            open_walks += _next(solids, letters, walk, start, signs_are_letters)


def _next(
    solids: Sequence[Solid], letters: Sequence[Letter], walk: Walk, start: int, signs_are_letters: bool
) -> Iterator[Walk]:
    """The walk with one more solid, if that matches."""
    gap, place = Gap(), walk.solid + 1
    while place < len(solids):
        solid = solids[place]
        gap = gap.and_then(solid.gap)
        if signs_are_letters or solid.char.kind != "sign":
            break
        gap = gap.and_then(_gap_of(solid.char))
        place += 1
    letter, before = letters[walk.letter], letters[walk.letter - 1]
    if place >= len(solids) or place - start >= SPAN or gap.signs > (6 if letter.free else 3):
        return
    found = _is(solids[place], letter)
    if not found:
        return
    no_blanks = any(one.char.kind == "unspaced" and not _is_hangul(one) for one in letters)
    strict = not letter.free and not no_blanks
    korean = _is_hangul(letter) or _is_hangul(before)
    yield Walk(
        walk.letter + 1,
        place,
        walk.stand_ins + found - 1,
        walk.places + 1,
        walk.strict + strict,
        walk.gaps + (strict and (gap.blank if korean else gap.signs > 0)),
        walk.cut + (gap.sentence or gap.newline),
        walk.is_cut or gap.sentence or (gap.newline and not letter.free),
    )


def _is_hangul(letter: Letter) -> bool:
    return "\uac00" <= letter.char.text <= "\ud7a3"


def _is_whole(solids: Sequence[Solid], letters: Sequence[Letter], mode: str, start: int, walk: Walk) -> bool:
    """Whether a match of all letters counts."""
    if 2 * walk.stand_ins > len(letters):
        return False
    everywhere = walk.gaps == walk.strict or (walk.strict >= 4 and walk.gaps >= walk.strict - 1)
    if walk.gaps and not (walk.strict >= 2 and everywhere):
        return False
    if walk.is_cut and (len(letters) < 3 or walk.cut < walk.places):
        return False
    scripts = frozenset().union(*(one.char.scripts for one in letters))
    if scripts and all(one.char.kind != "unspaced" for one in letters):
        used = frozenset().union(*(one.char.scripts for one in solids[start : walk.solid + 1]))
        if not used & scripts:
            return False
    return mode != "word" or _is_word(solids, letters, start, walk)


def _is_word(solids: Sequence[Solid], letters: Sequence[Letter], start: int, walk: Walk) -> bool:
    end = walk.solid
    if letters[0].char.kind != "unspaced" and start > 0 and solids[start].gap.signs == 0:
        before = solids[start - 1].char.kind
        if before == "letter" and letters[0].char.kind == "letter":
            return False
        if before == "digit" and solids[start].char.kind == "digit":
            return False
    if letters[-1].char.kind != "unspaced" and end + 1 < len(solids) and solids[end + 1].gap.signs == 0:
        after = solids[end + 1].char.kind
        if after == "letter" and letters[-1].char.kind == "letter":
            return False
        if after == "digit" and solids[end].char.kind == "digit":
            return False
    if not walk.gaps:
        return True
    return not (
        (start > 0 and _is_near(solids[start].gap) and _is_single(solids, start - 1))
        or (end + 1 < len(solids) and _is_near(solids[end + 1].gap) and _is_single(solids, end + 1))
    )


def _is_near(gap: Gap) -> bool:
    return 1 <= gap.signs <= 3 and not gap.sentence and not gap.newline


def _is_single(solids: Sequence[Solid], place: int) -> bool:
    """Whether a solid is a letter by itself."""
    here = solids[place]
    alone_before = place == 0 or here.gap.signs > 0
    alone_after = place + 1 == len(solids) or solids[place + 1].gap.signs > 0
    return here.char.kind == "letter" and not here.many and alone_before and alone_after


def _matches(solids: Sequence[Solid], spellings: Sequence[str], mode: str) -> list[tuple[int, int, str]]:
    """Of one row: first and last solid and spelling, of each beginning the shortest, of these the first spelling."""
    where: dict[str, list[int]] = {}
    for place, solid in enumerate(solids):
        for text in {solid.char.text, *STAND_INS.get(solid.char.text, "")}:
            where.setdefault(text, []).append(place)
    best: dict[int, tuple[int, int, str]] = {}
    for number, spelling in enumerate(spellings):
        for start in where.get(letters_of(spelling)[0].char.text, ()):
            for end in _ends(solids, spelling, mode, start):
                best[start] = min(best.get(start, (end, number, spelling)), (end, number, spelling))
    return sorted((start, end, spelling) for start, (end, _, spelling) in best.items())


# -- hits ------------------------------------------------------------------------------------------


class _Document:
    """A text with the matches that were asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.solids = solids_of(text)
        self.written = "".join(solid.char.text for solid in self.solids)
        self.known: dict[tuple[tuple[str, ...], str], list[tuple[int, int, str]]] = {}

    def matches(self, spellings: tuple[str, ...], mode: str) -> list[tuple[int, int, str]]:
        key = spellings, mode
        if key not in self.known:
            self.known[key] = _matches(self.solids, spellings, mode)
        return self.known[key]

    def is_valid(self, term: Term, start: int, end: int) -> bool:
        def near(word: ContextWord) -> bool:
            return any(
                0 < start - last <= NEAR or 0 < first - end <= NEAR
                for first, last, _ in self.matches((word.word,), word.mode)
            )

        def against(word: ContextWord) -> bool:
            return any(
                start - last <= NEAR and first - end <= NEAR for first, last, _ in self.matches((word.word,), word.mode)
            )

        return (not term.near or any(map(near, term.near))) and not any(map(against, term.unless))


def hits(text: str, lists: Sequence[TermList]) -> list[Hit]:
    """All hits, in the order in which they weigh."""
    document = _Document(text)
    terms = [term for one in lists for term in one.terms]
    valid: list[tuple[int, int, int, str]] = []
    found: list[Hit] = []
    for row, term in enumerate(terms):
        mode = "sub" if term.mode == "regex" else term.mode
        matches = [
            (row, *span) for span in document.matches(term.spellings, mode) if document.is_valid(term, *span[:2])
        ]
        if term.mode == "regex":
            found += _regex_hits(document, term, row, [span[1:] for span in matches])
        else:
            valid += matches
    last_end: dict[int, int] = {}
    for row, start, end, spelling in sorted(valid, key=lambda one: (one[1], one[2], one[0])):
        term = terms[row]
        if start > last_end.get(row, -1) and not any(_covers(terms, other[:3], (row, start, end)) for other in valid):
            last_end[row] = end
            first, last = document.solids[start], document.solids[end]
            found.append(Hit(term.category, spelling, first.start, last.end, first.units, row, term.rule))
    return sorted(found, key=lambda hit: (hit.units, hit.start, hit.end, hit.row))


def _covers(terms: Sequence[Term], other: tuple[int, int, int], one: tuple[int, int, int]) -> bool:
    mine, theirs = terms[one[0]], terms[other[0]]
    if other[0] == one[0] or theirs.category != mine.category or theirs.weight < mine.weight:
        return False
    if other[1:] == one[1:]:
        return theirs.weight > mine.weight or other[0] < one[0]
    return other[1] <= one[1] and one[2] <= other[2]


def _regex_hits(document: _Document, term: Term, row: int, literals: list[tuple[int, int, str]]) -> list[Hit]:
    import re2

    data = document.text.encode()
    anchors = [
        (document.solids[a].start, document.solids[b].end, document.solids[a].units, spelling)
        for a, b, spelling in literals
    ]
    pieces: list[list[int]] = []
    for start, end, _, _ in anchors:
        first, last = max(0, start - BEFORE), min(len(data), end + AFTER)
        while first > 0 and data[first] & 0xC0 == 0x80:
            first -= 1
        while last < len(data) and data[last] & 0xC0 == 0x80:
            last += 1
        if pieces and first <= pieces[-1][1]:
            pieces[-1][1] = max(pieces[-1][1], last)
        else:
            pieces.append([first, last])
    found = []
    for first, last in pieces:
        written, where = written_view(data[first:last].decode())
        for match in re2.finditer(term.regex, written):
            inside = [place for place in where[slice(*match.span())] if place is not None]
            if not inside:
                continue
            start, end = first + inside[0][0], first + inside[-1][1]
            over = [(units, spelling) for a, b, units, spelling in anchors if a < end and start < b]
            if over:
                found.append(Hit(term.category, over[0][1], start, end, over[0][0], row, term.rule))
    return found


def written_view(text: str) -> tuple[str, list[tuple[int, int] | None]]:
    """The view as a text, and for each of its characters the bytes where it stands (None for gaps)."""
    written: list[str] = []
    where: list[tuple[int, int] | None] = []
    for place, solid in enumerate(solids_of(text)):
        if solid.gap.signs and place:
            written.append("\n" if solid.gap.newline or solid.gap.sentence else " ")
            where.append(None)
        written.append(solid.char.text)
        where.append((solid.start, solid.end))
    return "".join(written), where


# -- scores ----------------------------------------------------------------------------------------


def _weight(rows: Sequence[int], terms: Sequence[Term]) -> float:
    """Weight of hits, of each row the second half of the first, and so on."""
    total = 0.0
    seen: dict[int, int] = {}
    for row in rows:
        total += terms[row].weight / 2.0 ** seen.get(row, 0) if seen.get(row, 0) < MOST_HALVINGS else 0.0
        seen[row] = seen.get(row, 0) + 1
    return total


def scores(text: str, lists: Sequence[TermList]) -> dict[str, Any]:
    """All score columns of a text."""
    terms = [term for one in lists for term in one.terms]
    found = hits(text, lists)
    thirds = units_of(text)
    values: dict[str, Any] = {}
    for category in CATEGORY_NAMES:
        mine = [hit for hit in found if hit.category == category]
        weight = _weight([hit.row for hit in mine], terms)
        peaks = [
            _weight([hit.row for hit in mine[i:] if hit.units - first.units < 3 * PEAK], terms)
            for i, first in enumerate(mine)
        ]
        values[f"{category}_hits"] = len(mine)
        values[f"{category}_weight"] = weight
        values[f"{category}_density"] = 3 * DENSE * weight / thirds if thirds else 0.0
        values[f"{category}_peak"] = max(peaks, default=0.0)
    values["hits"] = len(found)
    values["units"] = -(-thirds // 3)
    ranked: list[tuple[float, int, list[Any]]] = []
    seen: dict[int, int] = {}
    for hit in found:
        weight = terms[hit.row].weight / 2.0 ** min(seen.get(hit.row, 0), MOST_HALVINGS)
        seen[hit.row] = seen.get(hit.row, 0) + 1
        ranked.append((-weight, len(ranked), [hit.category, hit.term, hit.start, hit.end, hit.rule]))
    shown = [one for *_, one in sorted(ranked)[:32]]
    values["matched"] = json.dumps(shown, ensure_ascii=False, separators=(",", ":")) if shown else None
    return values
