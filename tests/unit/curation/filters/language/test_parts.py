"""Parts of lines: where they begin and end, against a slow telling of the rule, and that nothing is lost or told twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.filters.language.lines import prepare
from curation.filters.language.parts import CJK_SCRIPTS, ENOUGH, GUEST, LONGEST, WORDS, Parts, cut_parts, fold_parts
from curation.text import Script, buffers
from curation.text.characters import script_counts
from curation.text.spans import Bytes, Int64s, Spans
from curation.text.tables import CharClass
from tests.lines_oracle import kind

CASES = Path(__file__).parents[4] / "golden/cases/language.jsonl"
FROM_BLANK, FROM_ANYWHERE = LONGEST * 4 // 5, LONGEST - 4
"""Bytes of a stretch from which on a blank ends it, and from which on anything does."""


class Part(NamedTuple):
    """One part of one line: its text, script and letters, and where in the line it begins, in bytes."""

    start: int
    text: str
    script: Script
    letters: int


def packed(lines: Sequence[str]) -> tuple[Bytes, Int64s, Int64s]:
    """Lines one after the other, with a byte of another line between them: data, starts, ends."""
    raw = [line.encode() for line in lines]
    data = np.frombuffer(b"\n".join([*raw, b""]), np.uint8)
    sizes = np.array([len(line) for line in raw], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    return data, ends - sizes, ends


def cut(lines: Sequence[str], cjk: Sequence[bool] | None = None) -> tuple[Parts, list[list[Part]]]:
    """The parts as the kernel gives them, and of each line in readable form."""
    data, starts, ends = packed(lines)
    letters = script_counts(data, Spans(starts, ends, np.zeros(1, np.int64)))
    found = cut_parts(data, starts, ends, letters, np.array(cjk or [False] * len(lines), np.bool_))
    told: list[list[Part]] = [[] for _ in lines]
    for line, start, end, script, count in zip(*(column.tolist() for column in found), strict=True):
        assert starts[line] <= start < end <= ends[line], "a part leaves its line"
        text = data[start:end].tobytes().decode("utf-8")  # raises where a character is cut
        told[line].append(Part(start - int(starts[line]), text, Script(script), count))
    return found, told


def script_of(character: str) -> Script | None:
    """The script of a letter, None for anything else."""
    char_class, _, script = kind(character)
    return script if char_class == CharClass.LETTER else None


def letters_by_script(text: str) -> Counter[Script]:
    return Counter(script for character in text if (script := script_of(character)) is not None)


def most_of(letters: Mapping[Script, int]) -> Script:
    return min(letters, key=lambda script: (-letters[script], script))


def main_script(letters: Mapping[Script, int]) -> Script:
    """The script of most letters; Latin only where it has more than five times those of any other."""
    main = most_of(letters)
    hosts = {script: n for script, n in letters.items() if script != Script.LATIN}
    if main == Script.LATIN and hosts:
        host = most_of(hosts)
        return host if hosts[host] * GUEST >= letters[main] else main
    return main


# -- the rule, told slowly ---------------------------------------------------------------------------


def stretches(line: str) -> Iterator[tuple[int, str, Script]]:
    """Runs of letters of one script, with all that stands between them and before the next run: place, text, script."""
    places = [i for i, character in enumerate(line) if script_of(character) is not None]
    runs = [list(run) for _, run in groupby(places, key=lambda i: script_of(line[i]))]
    for run, after in zip(runs, [*runs[1:], [len(line)]], strict=True):
        script = script_of(line[run[0]])
        assert script is not None
        yield run[0], line[run[0] : after[0]], script


def chopped(text: str) -> Iterator[tuple[int, str]]:
    """Pieces of a long stretch, each from a letter on: from four fifths of LONGEST on the first blank ends one."""
    begin: int | None = None
    size = 0
    for i, character in enumerate(text):
        if begin is not None and (size >= FROM_ANYWHERE or (size >= FROM_BLANK and character == " ")):
            yield begin, text[begin:i]
            begin = None
        if begin is None:
            if script_of(character) is None:
                continue
            begin, size = i, 0
        size += len(character.encode())
    if begin is not None:
        yield begin, text[begin:]


def up_to_last_letter(text: str) -> str:
    """The text without what follows its last letter and the marks on it."""
    end = max(i for i, character in enumerate(text) if script_of(character) is not None) + 1
    while end < len(text) and kind(text[end])[0] == CharClass.MARK:
        end += 1
    return text[:end]


def by_the_rule(line: str, cjk: bool) -> list[Part]:
    """The parts of a line."""
    letters = letters_by_script(line)
    others = {script: count for script, count in letters.items() if script not in CJK_SCRIPTS}
    if not others:
        return []
    main = most_of(others) if cjk else main_script(others)
    if cjk and others[main] < ENOUGH:
        return []
    if not cjk and len(letters) == 1 and len(line.encode()) <= LONGEST:
        return [Part(0, line, main, others[main])]
    parts: list[Part] = []
    for place, stretch, script in stretches(line):
        for offset, piece in chopped(stretch):
            count = letters_by_script(piece)[script]
            stands_alone = count >= ENOUGH and script not in CJK_SCRIPTS and (not cjk or piece.count(" ") >= WORDS)
            if (cjk or script != main) and not stands_alone:
                continue
            text = up_to_last_letter(piece)
            start = len(line[: place + offset].encode())
            if parts and parts[-1].script == script:
                before = parts[-1]
                whole = line.encode()[before.start : start + len(text.encode())]
                if len(whole) <= LONGEST:
                    parts[-1] = Part(before.start, whole.decode(), script, before.letters + count)
                    continue
            parts.append(Part(start, text, script, count))
    return parts


PIECES = st.sampled_from(
    [
        *("mill ", "the ", "a", "Straße, ", "don't ", "река ", "мост", "на ", "漢字", "河边的小店", "かな", "カナ"),
        *("한국어 ", "ไทย", "नदी के ", "العربية ", "Ελλάδα ", "e\u0301", "\u0301", "1984 ", ". ", " ", "(", ") ", "😀"),
        *(
            "word " * 12,
            "слово " * 12,
            "x" * 1180,
            "ж" * 740,
            "ab " * 250,
            "ไ" * 420,
            "字" * 30,
            "one two three four five ",
        ),
    ]
)
lines_of_pieces = st.lists(PIECES, max_size=14).map("".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(lines_of_pieces, st.booleans()), min_size=1, max_size=4))
def test_parts_are_those_of_the_rule(drawn: list[tuple[str, bool]]) -> None:
    """Any lines are cut as the slow telling of the rule cuts them, whatever lines are beside them."""
    _, found = cut([line for line, _ in drawn], [cjk for _, cjk in drawn])
    assert found == [by_the_rule(line, cjk) for line, cjk in drawn]


def check_laws(lines: Sequence[str], cjk: Sequence[bool] | None = None) -> None:
    """What holds for the parts of any lines."""
    parts, told = cut(lines, cjk)
    assert (np.diff(parts.line) >= 0).all(), "parts are not in the order of their lines"
    for line, found in zip(lines, told, strict=True):
        for before, after in pairwise(found):
            assert before.start + len(before.text.encode()) <= after.start, "two parts overlap"
        for part in found:
            assert len(part.text.encode()) <= LONGEST
            assert letters_by_script(part.text)[part.script] == part.letters > 0
            assert part.script not in CJK_SCRIPTS
            assert line.encode()[part.start :].startswith(part.text.encode())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=80), max_size=5), st.booleans())
def test_laws_for_any_text(lines: list[str], cjk: bool) -> None:
    """Parts lie in their line, at borders of characters, apart from one another, and count their own letters."""
    check_laws(lines, [cjk] * len(lines))


def test_laws_for_golden_lines() -> None:
    """The same for lines of all golden cases, cleaned as the filter cleans them."""
    texts = [json.loads(line)["text"] for line in CASES.read_text(encoding="utf-8").splitlines()]
    lines = prepare(*buffers(pa.array(texts, pa.large_string())))
    cleaned = [
        lines.clean[start:end].tobytes().decode()
        for start, end in zip(lines.clean_starts.tolist(), lines.clean_ends.tolist(), strict=True)
    ]
    assert len(cleaned) > 200
    check_laws(cleaned)
    check_laws(cleaned, [True] * len(cleaned))


@settings(max_examples=100, deadline=None)
@given(lines_of_pieces)
def test_no_letter_of_the_main_script_is_lost(line: str) -> None:
    """In a line that is not Chinese, Japanese or Korean, each letter of its main script is in one part."""
    (found,) = cut([line])[1]
    others = {script: n for script, n in letters_by_script(line).items() if script not in CJK_SCRIPTS}
    if others:
        main = main_script(others)
        assert sum(part.letters for part in found if part.script == main) == others[main]
    else:
        assert found == []


SENTENCE = "the author walked along every line of it"


@pytest.mark.parametrize(
    ("line", "cjk", "expected", "why"),
    [
        ("The old mill is open.", False, ["The old mill is open."], "one script: the whole line"),
        ("ok", False, ["ok"], "however short"),
        ("", False, [], "nothing"),
        ("1984 ... !", False, [], "no letters"),
        ("昨天我去了旧书店", True, [], "Chinese has another judge"),
        ("请把 pull request 合并到 main branch", True, [], "terms belong to their line"),
        (f"作者写道 ({SENTENCE}) 里面还有车票", True, [SENTENCE], "a sentence of its own"),
        ("作者写道 internationalizationlocalization 了", True, [], "many letters, but one word"),
        ("作者写道 one two three four five six seven 了", True, ["one two three four five six seven"], "words enough"),
        ("Мельница (mill) открыта снова", False, ["Мельница (mill) открыта снова"], "a word of another script inside"),
        (
            f"Мельница открыта снова, {SENTENCE}",
            False,
            ["Мельница открыта снова", SENTENCE],
            "two scripts, both long: two parts",
        ),
        ("Привет Γεια", False, ["Привет"], "what is too short is no part"),
        ("mill мост mill мост", False, ["мост mill мост"], "in turn: one part, Latin words being guests"),
        ("the mill 河边 is open", False, ["the mill 河边 is open"], "a Chinese word inside an English line"),
    ],
)
def test_examples(line: str, cjk: bool, expected: list[str], why: str) -> None:
    """What a reader would call the parts of a line."""
    assert [part.text for part in cut([line], [cjk])[1][0]] == expected, why


@pytest.mark.parametrize("unit", ["word ", "ж", "ไ", "слово ", "x" * 1300 + " ", "𐐷"])
def test_long_lines_are_cut_into_pieces_of_like_size(unit: str) -> None:
    """A long line of one script: pieces of LONGEST bytes at most, four fifths of that at least but for the last."""
    line = (unit * 30_000)[:30_000].strip()
    (found,) = cut([line])[1]
    sizes = [len(part.text.encode()) for part in found]
    assert max(sizes) <= LONGEST
    assert min(sizes[:-1]) >= FROM_BLANK - len(unit.encode()) or unit.startswith("x")
    assert sum(part.letters for part in found) == letters_by_script(line).total()
    if unit.strip() != unit and len(unit) < 20:
        assert all(part.text.split()[0] == unit.strip() == part.text.split()[-1] for part in found[:-1]), (
            "a word is cut"
        )


@pytest.mark.parametrize(("line", "text"), [("नदी के किनारे (ok)", "नदी के किनारे"), ("อยู่ที่ (at)", "อยู่ที่")])
def test_a_part_keeps_the_vowel_signs_of_its_last_letter(line: str, text: str) -> None:
    """A word is not cut before its last sign."""
    assert cut([line])[1][0][0].text == text


def test_a_part_begins_with_a_letter() -> None:
    """A mark without a letter before it is outside of the part."""
    assert cut(["\u0301" + SENTENCE], [True])[1][0][0].text == SENTENCE


def test_no_lines() -> None:
    """No lines, no parts, with their types."""
    found, _ = cut([])
    assert [column.dtype for column in found] == [np.int64, np.int64, np.int64, np.uint8, np.int32]
    assert len(found.line) == 0


def test_lines_that_leave_the_data_are_refused() -> None:
    """Kernels do not check; what calls them does."""
    data, starts, ends = packed(["mill река" * 3])
    letters = script_counts(data, Spans(starts, ends, np.zeros(1, np.int64)))
    with pytest.raises(InputError, match="spans of text must rise and lie within"):
        cut_parts(data, starts, ends + 2, letters, np.zeros(1, np.bool_))
    with pytest.raises(InputError, match="spans of text must rise and lie within"):
        fold_parts(data, starts, ends + 2)


# -- folding -------------------------------------------------------------------------------------------


def folded(lines: Sequence[str]) -> list[str]:
    data, starts, ends = fold_parts(*packed(lines))
    return [data[a:b].tobytes().decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The OLD Mill, 1984!", "the old mill"),
        ("Don’t stop -- well-known", "don’t stop -- well-known"),
        ("ΜΎΛΟΣ Мельница ÄÖÜ", "μύλοσ мельница äöü"),
        ("नदी के किनारे।", "नदी के किनारे"),
        ("", ""),
        ("... 123 ...", ""),
    ],
)
def test_folding(text: str, expected: str) -> None:
    """Lower case, letters, marks, apostrophes and hyphens only, one blank between words."""
    assert folded([text]) == [expected]


def test_folded_parts_are_folded_lines() -> None:
    """A part that is a whole line is folded as `prepare` folds the line, in any order of lines."""
    texts = [json.loads(line)["text"] for line in CASES.read_text(encoding="utf-8").splitlines()]
    lines = prepare(*buffers(pa.array(texts, pa.large_string())))
    order = np.random.default_rng(4).permutation(len(lines.clean_starts))
    data, starts, ends = fold_parts(lines.clean, lines.clean_starts[order], lines.clean_ends[order])
    for row, start, end in zip(order.tolist(), starts.tolist(), ends.tolist(), strict=True):
        expected = lines.folded[lines.folded_starts[row] : lines.folded_ends[row]]
        assert data[start:end].tobytes() == expected.tobytes()
