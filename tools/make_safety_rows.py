"""Make the training and test rows of the safety model from sentence patterns written by hand.

    python tools/make_safety_rows.py --out rows.jsonl [--per-pattern 8] [--split train|test]

The patterns stand in tools/safety_rows/*.txt (UTF-8, written for this project, CC0), one a line. What a line may be:

    # a comment; blank lines are skipped
    @ zh train gambling,spam        section: language, split, labels. No labels: harmless. Holds for the lines below
    $site = 金沙 | 永利{n}          slot of this file: values between bars. A value may name other slots
    {site}注册送{#18-88}元，\\n加{~微信}{handle|客服}{！|}     a pattern, one line; \\n is a line break

In a pattern and in the values of slots:

    {name}          a value of slot `name` (letters, digits, _): of this file, else of PREFIX_slots.txt, where PREFIX is
                    what stands before the first _ of the file's name (zh, hant, ja, en, other ...)
    {a|b|}          one of the alternatives, written in place; may be empty, may hold slots
    {#18-88}        a whole number of the range, with as many digits as the first number has ({#000-999}: 007)
    {~赌博|博彩}    the word as it stands (1 of 2), or disguised: separators between the letters, look-alikes, blanks
    \\{ \\} \\| \\\\   these characters themselves; so does \\# \\@ \\$ at the start of a pattern

A pattern's id is its file and 8 digits of the hash of its text, so it is stable while the text is; `split` and labels are
not part of it. Of each pattern up to `--per-pattern` different rows are drawn, with hashes as the only source of chance:
the same files make the same rows under every Python. The row: {"text", "lang", "labels", "pattern", "split"}.

Refused, with file and line: unknown slots, labels and splits, slots that hold themselves, the same pattern or id twice,
a pattern that stands in both splits with only blanks, digits, signs or emoji changed, and one text with two sets of
labels. Rows of the train split that come out equal to a row of the test split are left out.
Costs: some 15,000 rows a second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curation.errors import ConfigError, CorpusmillError, InputError, nearest
from quality_models.safety_labels import CATEGORY_NAMES

FOLDER = Path(__file__).resolve().parent / "safety_rows"
SPLITS = ("train", "test")
DEPTH = 12  # of slots within slots; deeper is taken for a slot that holds itself
NAME = re.compile(r"[A-Za-z0-9_]+\Z")
RANGE = re.compile(r"#(\d+)-(\d+)\Z")
SEPARATORS = ("-", " ", ".", "·", "*", "_", "~", "/", "★", "+", "丨", "、", "  ", "°", "\u200b", "|")
LOOK_ALIKES = str.maketrans("oieasOIEASl", "013@50134$1")


@dataclass(frozen=True)
class Pattern:
    """One line of a file."""

    id: str
    lang: str
    split: str
    labels: tuple[str, ...]
    text: str
    where: str  # file:line
    slots: dict[str, list[str]] = field(repr=False, compare=False)


@dataclass
class Draws:
    """Numbers that only depend on `seed` and on how many were drawn before."""

    seed: str
    drawn: int = 0

    def below(self, limit: int) -> int:
        """0 .. limit - 1."""
        self.drawn += 1
        digest = hashlib.sha256(f"{self.seed}/{self.drawn}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit


def alternatives(text: str) -> list[str]:
    """The parts of `text` between bars that stand in no inner braces."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in "{}":
            depth += 1 if text[at] == "{" else -1
        elif text[at] == "|" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]


def pieces(text: str, where: str) -> Iterator[tuple[str, bool]]:
    """(piece, whether it stood in braces), in order; escapes are resolved outside of braces.

    Raises:
        ConfigError: braces that do not match.
    """
    plain, depth, start, at = "", 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            if depth == 0:
                plain += "\n" if text[at + 1] == "n" else text[at + 1]
            at += 1
        elif char == "{":
            if depth == 0:
                yield plain, False
                plain, start = "", at + 1
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise ConfigError(f"{where}: expected matching braces, found a closing one too many in {text!r}")
            if depth == 0:
                yield text[start:at], True
        elif depth == 0:
            plain += char
        at += 1
    if depth:
        raise ConfigError(f"{where}: expected matching braces, found an opening one too many in {text!r}")
    yield plain, False


def names_in(text: str, where: str) -> Iterator[str]:
    """The slots that `text` names; malformed ranges are refused here.

    Raises:
        ConfigError: braces that do not match, or hold nothing that is understood.
    """
    for piece, braced in pieces(text, where):
        if not braced:
            continue
        if piece.startswith("#"):
            found = RANGE.match(piece)
            if not found or int(found[1]) > int(found[2]):
                raise ConfigError(f"{where}: expected a range such as {{#18-88}}, found {{{piece}}}")
        elif piece.startswith("~"):
            yield from names_in(piece[1:], where)
        elif len(parts := alternatives(piece)) > 1:
            for part in parts:
                if re.match(r"~\w", part):
                    raise ConfigError(f"{where}: expected {{~word}} as an alternative, found {part!r}; add braces")
                yield from names_in(part, where)
        elif NAME.match(piece):
            yield piece
        else:
            raise ConfigError(
                f"{where}: expected {{slot}}, {{a|b}}, {{#1-9}} or {{~word}}, found {{{piece}}}; write \\{{ for a brace"
            )


def disguised(word: str, draws: Draws) -> str:
    """`word` as it stands in half of the draws; else with separators, digits or wide letters."""
    way = draws.below(8)
    if way < 4:
        return word
    if way == 4 and word.isascii():
        return word.translate(LOOK_ALIKES)
    if way == 5 and word.isascii():
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word)
    sign = SEPARATORS[draws.below(len(SEPARATORS))]
    if way == 6 and len(word) > 2:
        cut = 1 + draws.below(len(word) - 1)
        return word[:cut] + sign + word[cut:]
    return sign.join(word)


def drawn(text: str, slots: dict[str, list[str]], draws: Draws, where: str) -> str:
    """`text` with a value in place of all that stands in braces."""
    made = []
    for piece, braced in pieces(text, where):
        if not braced:
            made.append(piece)
        elif found := RANGE.match(piece):
            number = int(found[1]) + draws.below(int(found[2]) - int(found[1]) + 1)
            made.append(str(number).zfill(len(found[1])))
        elif piece.startswith("~"):
            words = alternatives(piece[1:])
            made.append(disguised(drawn(words[draws.below(len(words))], slots, draws, where), draws))
        else:
            parts = alternatives(piece)
            values = slots[piece] if len(parts) == 1 else parts
            made.append(drawn(values[draws.below(len(values))], slots, draws, where))
    return "".join(made)


def check_slots(slots: dict[str, list[str]], where: dict[str, str]) -> None:
    """Refuse slots that name unknown ones or hold themselves.

    Raises:
        ConfigError: either.
    """

    def deep(name: str, level: int) -> None:
        if level > DEPTH:
            raise ConfigError(f"{where[name]}: slot {name!r} holds itself, by itself or through others; cut the circle")
        for value in slots[name]:
            for inner in names_in(value, where[name]):
                check_known(inner, slots, where[name])
                deep(inner, level + 1)

    for name in slots:
        deep(name, 0)


def check_known(name: str, slots: dict[str, list[str]], where: str) -> None:
    """Refuse a name that no slot has."""
    if name not in slots:
        raise ConfigError(
            f"{where}: expected a slot of this file or of PREFIX_slots.txt, found {name!r}" + nearest(name, slots)
        )


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """(line without blanks around it, "file:line") of all lines that say something."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a readable UTF-8 file, found {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if (line := line.strip()) and not line.startswith("#"):
            yield line, f"{path.name}:{number}"


def slots_of(path: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Slots that a file defines: name -> values, and name -> where.

    Raises:
        ConfigError: a slot without values, a bad name, or a name used twice.
    """
    slots: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for line, where in lines_of(path):
        if not line.startswith("$"):
            continue
        name, equals, values = line[1:].partition("=")
        name = name.strip()
        if not equals or not NAME.match(name) or not values.strip():
            raise ConfigError(f"{where}: expected `$name = value | value`, found {line!r}")
        if name in slots:
            raise ConfigError(f"{where}: slot {name!r} stands at {places[name]} already; name it otherwise")
        slots[name] = [value.strip() for value in alternatives(values)]
        places[name] = where
    return slots, places


def section_of(line: str, where: str) -> tuple[str, str, tuple[str, ...]]:
    """Language, split and labels of a section line.

    Raises:
        ConfigError: anything else than `@ LANG train|test [LABEL,LABEL]`.
    """
    words = line[1:].replace(",", " ").split()
    if len(words) < 2 or words[1] not in SPLITS:
        raise ConfigError(f"{where}: expected `@ LANG train|test LABEL,LABEL`, found {line!r}")
    for label in words[2:]:
        if label not in CATEGORY_NAMES:
            known = ", ".join(CATEGORY_NAMES)
            raise ConfigError(f"{where}: expected labels of {known}, found {label!r}{nearest(label, CATEGORY_NAMES)}")
    return words[0], words[1], tuple(sorted(set(words[2:]), key=CATEGORY_NAMES.index))


def patterns_of(path: Path) -> list[Pattern]:
    """The patterns of one file.

    Raises:
        ConfigError: bad sections, slots or braces, or a pattern above the first section.
    """
    shared_file = path.with_name(f"{path.name.split('_')[0]}_slots.txt")
    shared, shared_places = slots_of(shared_file) if shared_file.exists() and shared_file != path else ({}, {})
    own, places = slots_of(path)
    slots = shared | own
    check_slots(slots, shared_places | places)
    section, made = None, []
    for line, where in lines_of(path):
        if line.startswith("$"):
            continue
        if line.startswith("@"):
            section = section_of(line, where)
            continue
        if section is None:
            raise ConfigError(f"{where}: expected a section line `@ LANG SPLIT LABELS` above the first pattern")
        for name in names_in(line, where):
            check_known(name, slots, where)
        digest = hashlib.sha256(line.encode()).hexdigest()[:8]
        made.append(Pattern(f"{path.stem}:{digest}", *section, line, where, slots))
    return made


def bare(text: str) -> str:
    """Letters of `text` alone, for telling whether two patterns say the same."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalpha())


def read_patterns(folder: Path = FOLDER) -> list[Pattern]:
    """All patterns of a folder, in the order of file names and lines.

    Raises:
        ConfigError: a file that breaks the form, or a pattern that stands twice.
        InputError: no file at all.
    """
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise InputError(f"{folder}: expected files *.txt with patterns, found none")
    made = [pattern for path in files for pattern in patterns_of(path)]
    texts: dict[str, Pattern] = {}
    letters: dict[str, Pattern] = {}
    for pattern in made:
        if other := texts.get(pattern.text) or texts.get(pattern.id):
            raise ConfigError(
                f"{pattern.where}: the same pattern stands at {other.where} already; delete one: {pattern.text!r}"
            )
        texts[pattern.text] = texts[pattern.id] = pattern
        other = letters.setdefault(bare(pattern.text) or pattern.text, pattern)
        if other.split != pattern.split:
            raise ConfigError(
                f"{pattern.where}: {pattern.text!r} is {pattern.split}, and the same but for signs is {other.split} "
                f"at {other.where}; a pattern belongs to one split: write it otherwise"
            )
    return made


def rows_of(pattern: Pattern, count: int) -> Iterator[dict[str, Any]]:
    """Up to `count` different rows of a pattern; fewer where it has fewer values."""
    seen = set()
    for variant in range(4 * count):
        text = drawn(pattern.text, pattern.slots, Draws(f"{pattern.id}/{variant}"), pattern.where).strip()
        if text and text not in seen:
            seen.add(text)
            labels = list(pattern.labels)
            yield {"text": text, "lang": pattern.lang, "labels": labels, "pattern": pattern.id, "split": pattern.split}
        if len(seen) == count:
            return


def make_rows(patterns: list[Pattern], count: int) -> list[dict[str, Any]]:
    """The rows of all patterns: no text twice, none of the train split that is in the test split.

    Raises:
        ConfigError: a text that comes out with two sets of labels.
    """
    kept: dict[str, dict[str, Any]] = {}
    for pattern in sorted(patterns, key=lambda p: SPLITS.index(p.split), reverse=True):
        for row in rows_of(pattern, count):
            other = kept.setdefault(row["text"], row)
            if other["labels"] != row["labels"]:
                raise ConfigError(
                    f"{pattern.where}: {row['text']!r} comes out as {row['labels'] or 'harmless'}, and as "
                    f"{other['labels'] or 'harmless'} from {other['pattern']}; give both the same labels"
                )
    return list(kept.values())


def counts_of(rows: list[dict[str, Any]]) -> str:
    """A table: rows and patterns by language, split and label."""
    rows_by: Counter[tuple[str, str, str]] = Counter()
    patterns_by: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        for label in row["labels"] or ["harmless"]:
            key = row["lang"], row["split"], label
            rows_by[key] += 1
            patterns_by.setdefault(key, set()).add(row["pattern"])
    order = ("harmless", *CATEGORY_NAMES)
    keys = sorted(rows_by, key=lambda key: (key[0], key[1], order.index(key[2])))
    return "\n".join(
        f"{a:8} {b:6} {c:10} {rows_by[a, b, c]:7} rows {len(patterns_by[a, b, c]):6} patterns" for a, b, c in keys
    )


def main(arguments: list[str] | None = None) -> int:
    """Read all, write one file, say what is in it."""
    parser = argparse.ArgumentParser(description="Make rows for the safety model from patterns.")
    parser.add_argument("--out", type=Path, required=True, help="the file to write, JSON lines")
    parser.add_argument("--per-pattern", type=int, default=8, help="most rows of one pattern (8)")
    parser.add_argument("--split", choices=SPLITS, help="only this one (both)")
    args = parser.parse_args(arguments)
    try:
        rows = make_rows(read_patterns(), args.per_pattern)
    except CorpusmillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    rows = [row for row in rows if args.split in (None, row["split"])]
    with args.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(counts_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
