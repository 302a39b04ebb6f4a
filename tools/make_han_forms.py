"""Write curation/filters/language/han_forms.tsv: which standards of writing have each Han character.

    python tools/make_han_forms.py            write the file
    python tools/make_han_forms.py --check    exit 1 where the file differs from what would be written

The source are the national character sets, as the codecs of Python's standard library hold them
(PSF licence): GB 2312 for Simplified Chinese, Big5 for Traditional Chinese, JIS X 0208 for Japanese,
the Hong Kong supplement of Big5 for forms that only some Traditional texts use. A character that the
set of a standard lacks is one that its texts hardly ever hold: counted on 2.8 million Han characters
of Simplified, 0.1 million of Traditional Chinese and 0.9 million of Japanese, no flag that speaks for
one of them stood on more than 1 in 3,000 of another's characters. The sets hold a few characters
that nobody writes there, or lack a few that they should have; the lists below, found by that count, mend
them. Takes half a second. curation/filters/language/han.py says what the flags mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "curation" / "filters" / "language" / "han_forms.tsv"
FIRST, LAST = 0x4E00, 0x9FFF
ROW = 0x100
"""Code points a row of the file tells of at most."""

BIG5_COMMON = b"\xc6\x7e"
"""The last character of Big5's first level, those in common use."""

JIS_COMMON = b"\x98\x72"
"""The last character, in Shift JIS, of JIS X 0208's first level."""

ALSO_SIMPLIFIED = frozenset("与么优体儿凄听圣坏宁岭并庄忏怀怜惊扑扰昵晒构栖洁洒灶炖痒离篱虮虱蚕赶")
"""Simplified forms that Big5's second level has as other, rare characters."""

NOT_SIMPLIFIED = frozenset("着")
"""Missing in Big5, yet the usual form in Hong Kong."""

ALSO_TRADITIONAL = frozenset("後")
"""In GB 2312 for a surname's sake; anywhere else Simplified texts write 后."""

NOT_JAPANESE = frozenset("爲啓裏僞峯衆粧畠")
"""Missing in GB 2312 and Big5, yet written in Traditional texts, or in names in Chinese ones."""

ITERATION_MARKS = "\u3005\u3006"
"""The marks of Japanese that Unicode counts as Han."""

FUNCTION = frozenset("它个于从很跟找们們这這沒么麼吗嗎呢吧啊嘛你您她怎哪")
"""Function words of Chinese that no Japanese compound of kanji alone holds, or hardly one."""

PARTICLES = frozenset("的了是也但我他在到被已且把就都不和有些没什那於從")
"""Function words of Chinese that are parts of Japanese compounds too: one of them says nothing."""

FLAGS = ("simplified", "traditional", "japanese", "chinese", "kyujitai", "function", "particle")


def encoded(character: str, codec: str) -> bytes:
    """The character's bytes, or none where the set does not have it."""
    try:
        return character.encode(codec)
    except UnicodeEncodeError:
        return b""


def flags(character: str) -> tuple[str, ...]:
    """Names of the flags of a Han character, in the order of FLAGS."""
    gb, big5, jis = (encoded(character, codec) for codec in ("gb2312", "big5", "shift_jis"))
    common_in_taiwan = bool(big5) and big5 <= BIG5_COMMON
    common_in_japan = bool(jis) and jis <= JIS_COMMON
    simplified = bool(gb) and (not big5 or character in ALSO_SIMPLIFIED) and character not in NOT_SIMPLIFIED
    traditional = bool(big5) and (not gb or character in ALSO_TRADITIONAL)
    only_jis = bool(jis) and not gb and not big5 and character not in NOT_JAPANESE
    found = {
        "simplified": simplified,
        "traditional": traditional,
        "japanese": character in ITERATION_MARKS
        or (only_jis and (common_in_japan or not encoded(character, "big5hkscs"))),
        "chinese": bool(gb or big5) and not jis,
        "kyujitai": common_in_taiwan and not gb and bool(jis) and not common_in_japan,
        "function": character in FUNCTION,
        "particle": character in PARTICLES,
    }
    return tuple(name for name in FLAGS if found[name])


def rows() -> Iterator[str]:
    """One row for all characters of equal flags in ROW code points; characters without a flag have none."""
    marks = {flags(mark): mark for mark in ITERATION_MARKS}
    yield from (f"{' '.join(named)}\t{ITERATION_MARKS}" for named in marks)
    for first in range(FIRST, LAST + 1, ROW):
        groups: dict[tuple[str, ...], str] = {}
        for character in map(chr, range(first, first + ROW)):
            if named := flags(character):
                groups[named] = groups.get(named, "") + character
        yield from (f"{' '.join(named)}\t{characters}" for named, characters in sorted(groups.items()))


def content() -> str:
    """What the file should hold."""
    head = (
        "# Written by tools/make_han_forms.py from the codecs gb2312, big5, big5hkscs and shift_jis of Python's standard\n"
        "# library (PSF licence); curation/filters/language/han.py explains it.\n"
        "# flags\tcharacters\n"
    )
    return head + "\n".join(rows()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the file is stale")
    check = parser.parse_args().check
    if not check:
        FILE.write_text(content(), "utf-8")
        return 0
    if FILE.exists() and FILE.read_text("utf-8") == content():
        return 0
    print(f"{FILE.name} is stale: run python tools/make_han_forms.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
