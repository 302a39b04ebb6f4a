"""Write the three .tsv files of curation/text from the running Python's unicodedata.

    python tools/make_unicode_tables.py            write the files
    python tools/make_unicode_tables.py --check    exit 1 where a file differs from what would be written

Python has no Script, Emoji or Default_Ignorable property, so these come from character names and
from the short lists below; tests compare the result with the `regex` package's property tables,
character by character. Takes about four seconds. docs/reference/text.md says what the columns of
characters.tsv and case_folding.tsv mean, curation/text/normal.py what those of normal_forms.tsv mean.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "curation" / "text"
N_CODE_POINTS = 0x110000

NAMED_SCRIPTS = (
    "Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Syriac", "Thaana", "Nko", "Devanagari", "Bengali",
    "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan",
    "Myanmar", "Georgian", "Hangul", "Ethiopic", "Cherokee", "Khmer", "Mongolian", "Tai_Le", "New_Tai_Lue", "Tai_Tham",
    "Tai_Viet", "Balinese", "Javanese", "Sundanese", "Cham", "Ol_Chiki", "Tifinagh", "Vai", "Meetei_Mayek", "Adlam",
    "Lisu", "Chakma", "Bopomofo", "Hiragana", "Katakana",
)  # fmt: skip
"""Scripts whose characters' names begin with the script's own name."""

PREFIXES = {name.replace("_", " ").upper(): name for name in NAMED_SCRIPTS} | {
    "FULLWIDTH LATIN": "Latin",
    "ANGSTROM SIGN": "Latin",
    "KELVIN SIGN": "Latin",
    "FEMININE ORDINAL INDICATOR": "Latin",
    "MASCULINE ORDINAL INDICATOR": "Latin",
    "TURNED CAPITAL F": "Latin",
    "TURNED SMALL F": "Latin",
    "SUPERSCRIPT LATIN": "Latin",
    "OHM SIGN": "Greek",
    "HALFWIDTH HANGUL": "Hangul",
    "CANADIAN SYLLABICS": "Canadian_Aboriginal",
    "YI SYLLABLE": "Yi",
    "HENTAIGANA": "Hiragana",
    "HALFWIDTH KATAKANA": "Katakana",
    "VERTICAL KANA REPEAT": "Katakana",
    "CJK UNIFIED IDEOGRAPH": "Han",
    "CJK COMPATIBILITY IDEOGRAPH": "Han",
    "IDEOGRAPHIC ITERATION MARK": "Han",
    "VERTICAL IDEOGRAPHIC ITERATION MARK": "Han",
    "OLD CHINESE ITERATION MARK": "Han",
    "IDEOGRAPHIC CLOSING MARK": "Han",
    "MASU MARK": "Han",
}
"""First words of a character's name -> script of a letter; the longest match wins."""

EXCEPTIONS = {
    0x02B0: (0x02B8, "Latin"),
    0x02E0: (0x02E4, "Latin"),
    0x0374: (0x0374, "Common"),  # normalises to U+02B9
    0x10FC: (0x10FC, "Georgian"),
    0x1D2C: (0x1D5C, "Latin"),
    0x1D5D: (0x1D61, "Greek"),
    0x1D78: (0x1D78, "Cyrillic"),
    0x1D9B: (0x1DBE, "Latin"),
    0x1DBF: (0x1DBF, "Greek"),
    0x2183: (0x2183, "Latin"),
    0x2C7D: (0x2C7D, "Latin"),
    0xA69C: (0xA69D, "Cyrillic"),
    0xA770: (0xA770, "Latin"),
    0xA7F2: (0xA7F4, "Latin"),
    0xA7F8: (0xA7F9, "Latin"),
    0xAB5C: (0xAB5F, "Latin"),
    0xAB69: (0xAB69, "Latin"),
    0x10780: (0x107BA, "Latin"),
}
"""Letters, mostly modifiers, whose names do not tell their script: first -> (last, script)."""

COMMON_LETTERS = (
    (0x00B5, 0x00B5), (0x02B9, 0x02EE), (0x1CE9, 0x1CFA), (0x2102, 0x2149), (0x2E2F, 0x2E2F), (0xA717, 0xA71F),
    (0xA788, 0xA788), (0x1D400, 0x1D7FF),
)  # fmt: skip
"""Letters of no one script: micro sign, tone letters, letterlike symbols, mathematical alphabets."""

UNSPACED_SCRIPTS = (
    "Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tai_Le", "New_Tai_Lue",
    "Tai_Tham", "Tai_Viet", "Javanese", "Balinese",
)  # fmt: skip
"""Scripts written without a blank between words."""

UNSPACED_NAMES = ("TANGUT", "NUSHU", "KHITAN SMALL SCRIPT", "AHOM")
"""The same for scripts that the table knows only as Other."""

TANGUT_IDEOGRAPH = "TANGUT IDEOGRAPH"
"""unicodedata gives these letters, and only these, no name."""

IDEOGRAPHIC_ZERO = 0x3007
"""A number by its category, but written and read as one more ideograph."""

RESERVED_FOR_HAN = ((0x20000, 0x2FFFD), (0x30000, 0x3FFFD))
"""Unassigned code points here will be ideographs, if anything."""

DEFAULT_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200C, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Unicode's Default_Ignorable_Code_Point without U+200B, which separates words."""

ZERO_WIDTH_JOINERS = (0x200C, 0x200D)
"""They are not seen themselves, but what is beside them looks otherwise for them."""

UNSEEN = ("Cf", "Mn", "Mc")

BLANKS = (0x09, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029, 0x200B)
"""Blanks whose category is not Zs."""

PICTOGRAPHS = (
    (0x231A, 0x231B), (0x23E9, 0x23F3), (0x23F8, 0x23FA), (0x25FD, 0x25FE), (0x2600, 0x27BF), (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50), (0x2B55, 0x2B55), (0x1F000, 0x1FAFF),
)  # fmt: skip
"""Where symbols are emoji or pictographs; unassigned code points of the last block count too."""

VISIBLE_FORMAT = (*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD)
"""Signs that enclose or precede digits: category Cf, yet printed."""

JOINERS = {
    "joiner": (0x27, 0x5F, 0xB7, 0x0387, 0x05F3, 0x05F4, 0x2018, 0x2019, 0x2027, 0xFF07),
    "number_joiner": (0x2C, 0x2E, 0x066B, 0x066C, 0xFF0C, 0xFF0E),
    "hebrew_joiner": (0x22,),
    # Armenian emphasis, exclamation and question marks stand over a vowel; the nirugu lengthens a Mongolian stem.
    "mark": (0x055B, 0x055C, 0x055E, 0x180A),
}
JOINER_ROLES = {code: role for role, codes in JOINERS.items() for code in codes}


def members(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(code for first, last in ranges for code in range(first, last + 1))


IGNORABLE_CODES, PICTOGRAPH_CODES, COMMON_CODES = map(members, (DEFAULT_IGNORABLE, PICTOGRAPHS, COMMON_LETTERS))
EXCEPTION_CODES = {code: name for first, (last, name) in EXCEPTIONS.items() for code in range(first, last + 1)}


def is_reserved_for_han(code: int) -> bool:
    return any(first <= code <= last for first, last in RESERVED_FOR_HAN)


def character_class(code: int) -> str:
    category = unicodedata.category(chr(code))
    if code == 0x0A:
        return "newline"
    if category == "Zs" or code in BLANKS:
        return "space"
    if code in IGNORABLE_CODES or category == "Cc":
        return "control"
    if code == 0xFFFD:
        return "other"
    if category[0] == "L" or code == IDEOGRAPHIC_ZERO or (category == "Cn" and is_reserved_for_han(code)):
        return "letter"
    if category[0] == "S" and code in PICTOGRAPH_CODES:
        return "emoji"
    if category == "Cn" and code in range(PICTOGRAPHS[-1][0], PICTOGRAPHS[-1][1] + 1):
        return "emoji"
    if category == "Cf":
        return "symbol" if code in VISIBLE_FORMAT else "control"
    return {"M": "mark", "N": "number", "P": "punctuation", "S": "symbol"}.get(category[0], "other")


def script(code: int) -> str:
    """Script of a letter."""
    if code in EXCEPTION_CODES:
        return EXCEPTION_CODES[code]
    if is_reserved_for_han(code) or code == IDEOGRAPHIC_ZERO:
        return "Han"
    words = unicodedata.name(chr(code), TANGUT_IDEOGRAPH).replace("-", " ").split(" ")
    for n in range(min(len(words), 4), 0, -1):
        if (prefix := " ".join(words[:n])) in PREFIXES:
            return PREFIXES[prefix]
    return "Common" if code in COMMON_CODES else "Other"


def role(code: int, kind: str, script_name: str) -> str:
    """What the character does in a word."""
    if code in JOINER_ROLES:
        return JOINER_ROLES[code]
    if kind == "letter":
        unspaced = script_name in UNSPACED_SCRIPTS or (
            script_name == "Other" and unicodedata.name(chr(code), TANGUT_IDEOGRAPH).startswith(UNSPACED_NAMES)
        )
        return "unspaced" if unspaced else "letter"
    if kind == "control" and code in IGNORABLE_CODES:
        return "ignorable"
    return {"mark": "mark", "number": "digit"}.get(kind, "break")


def describe(code: int) -> tuple[str, str, str]:
    kind = character_class(code)
    script_name = script(code) if kind == "letter" else "Common"
    return kind, script_name, role(code, kind, script_name)


def character_rows() -> Iterator[str]:
    """Maximal ranges of equal description; code points in no range are other, Common, break."""
    first, current = 0, describe(0)
    for code in range(1, N_CODE_POINTS + 1):
        described = describe(code) if code < N_CODE_POINTS else None
        if described != current:
            if current != ("other", "Common", "break"):
                yield "\t".join((f"{first:04X}", f"{code - 1:04X}", *current))
            assert described is not None or code == N_CODE_POINTS
            first, current = code, described or current


def simple_fold(character: str) -> str:
    """Unicode's simple case folding: one character to one character (CaseFolding.txt, status C and S)."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


def folding_rows() -> Iterator[str]:
    """Maximal ranges of code points with a common distance and step to what they fold to."""
    pairs = [(code, ord(simple_fold(chr(code))) - code) for code in range(N_CODE_POINTS) if not 0xD800 <= code < 0xE000]
    pairs = [(code, delta) for code, delta in pairs if delta]
    start = 0
    while start < len(pairs):
        first, delta = pairs[start]
        step = pairs[start + 1][0] - first if start + 1 < len(pairs) else 1
        step = step if step <= 2 else 1
        stop = start + 1
        while stop < len(pairs) and pairs[stop] == (pairs[stop - 1][0] + step, delta):
            stop += 1
        yield f"{first:04X}\t{pairs[stop - 1][0]:04X}\t{step}\t{delta}"
        start = stop


def nfkc(code: int) -> list[int]:
    """What NFKC makes of one character; nothing of one that is never seen, such as a soft hyphen or a variation selector."""
    form = [ord(character) for character in unicodedata.normalize("NFKC", chr(code))]
    unseen = IGNORABLE_CODES.difference(ZERO_WIDTH_JOINERS)
    return [c for c in form if c not in unseen or unicodedata.category(chr(c)) not in UNSEEN]


def pairs() -> Iterator[tuple[int, int]]:
    """Every two characters that NFC makes one of, Hangul's aside."""
    for code in range(N_CODE_POINTS):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", chr(code)) == chr(code):
            yield int(parts[0], 16), int(parts[1], 16)


def composition() -> tuple[frozenset[int], frozenset[int]]:
    """Characters that may be the first of two that become one, and those that may be the second.

    A character that NFC keeps whole may be a first one when any of its parts may: what follows can go between.
    """
    found = list(pairs())
    firsts = {first for first, _ in found} | {*range(0x1100, 0x1113), *range(0xAC00, 0xD7A4, 28)}
    seconds = {second for _, second in found} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    for code in range(N_CODE_POINTS):
        parts = unicodedata.decomposition(chr(code))
        if parts and parts[0] != "<" and firsts & set(map(ord, unicodedata.normalize("NFD", chr(code)))):
            firsts.add(code)
    return frozenset(firsts), frozenset(seconds)


def facts_of_forms() -> Iterator[tuple[int, str, str]]:
    """All that is to be known for NFKC: code point, what, value."""
    firsts, seconds = composition()
    for code in (code for code in range(N_CODE_POINTS) if not 0xD800 <= code < 0xE000):
        form = nfkc(code)
        if len(form) == 1 and form[0] != code:
            yield code, "shift", str(form[0] - code)
        elif form != [code]:
            yield code, "form", " ".join(f"{c:04X}" for c in form)
        if order := unicodedata.combining(chr(code)):
            yield code, "order", str(order)
        if code in firsts:
            yield code, "first", ""
        if code in seconds:
            yield code, "second", ""


def form_rows() -> Iterator[str]:
    """Maximal ranges of code points, at a common step, of which the same is to be known."""
    facts: dict[tuple[str, str], list[int]] = {}
    for code, what, value in facts_of_forms():
        facts.setdefault((what, value), []).append(code)
    rows = []
    for (what, value), codes in facts.items():
        start = 0
        while start < len(codes):
            step = codes[start + 1] - codes[start] if start + 1 < len(codes) else 1
            step = step if step in (1, 2, 28) else 1
            stop = start + 1
            while stop < len(codes) and codes[stop] == codes[stop - 1] + step:
                stop += 1
            rows.append((codes[start], codes[stop - 1], step, what, value))
            start = stop
    return (f"{first:04X}\t{last:04X}\t{step}\t{what}\t{value}" for first, last, step, what, value in sorted(rows))


def files() -> dict[Path, str]:
    """What the files should hold."""
    written = f"# Unicode {unicodedata.unidata_version}. Written by tools/make_unicode_tables.py; "
    head, head_of_forms = (f"{written}{where} explains it.\n" for where in ("docs/reference/text.md", "normal.py"))
    return {
        FOLDER / "characters.tsv": f"{head}# first\tlast\tclass\tscript\trole\n" + "\n".join(character_rows()) + "\n",
        FOLDER / "case_folding.tsv": f"{head}# first\tlast\tstep\tdelta\n" + "\n".join(folding_rows()) + "\n",
        FOLDER / "normal_forms.tsv": f"{head_of_forms}# first\tlast\tstep\twhat\tvalue\n"
        + "\n".join(form_rows())
        + "\n",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    check = parser.parse_args().check
    stale = 0
    for path, content in files().items():
        if check and (not path.exists() or path.read_text("utf-8") != content):
            print(f"{path.name} is stale: run python tools/make_unicode_tables.py", file=sys.stderr)
            stale = 1
        elif not check:
            path.write_text(content, "utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
