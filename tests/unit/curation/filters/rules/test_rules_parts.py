"""The parts that measures share: words, lines, hashes, kinds, and what lies in which line."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError, InputError
from curation.filters.length import Length, LengthConfig
from curation.filters.rules.parts import Line, Parts, WordKind, hashes_of, parts_of
from curation.text import buffers, count_chars, line_spans, script_counts, word_hashes, word_spans
from tests.guard_page import run_between_guard_pages

TEXTS = (
    "The fox can't jump 32.3 feet.\n\n  中文mixed字 3月 \nコーヒーを ที่นี่ 안녕 세계 हिन्दी १२३",
    "",
    "ΣΟΦΟΣ σοφος Straße e\u0301 É x \U00017000 ㄅ",
    "a\r\nb\n\n\n" + "supercalifragilistic_expialidocious " * 3,
)


def parts(*texts: str) -> Parts:
    return parts_of(pa.array(texts, pa.large_string()))


def test_words_and_lines_are_those_of_curation_text() -> None:
    """Spans, characters and letters by script equal those of the kernels for one of them."""
    found = parts(*TEXTS)
    data, offsets = buffers(pa.array(TEXTS, pa.large_string()))
    words, lines = word_spans(data, offsets), line_spans(data, offsets)
    for mine, theirs in ((found.words, words), (found.lines, lines)):
        assert all((a == b).all() for a, b in zip(mine, theirs, strict=True))
    assert (found.word_chars == count_chars(data, words)).all()
    assert (found.line_chars == count_chars(data, lines)).all()
    assert (found.letters == script_counts(data, offsets)).all()


def test_equal_words_and_no_others_have_one_hash() -> None:
    """The hash parts words exactly as XXH64 of the folded word does."""
    data, offsets = buffers(pa.array(TEXTS, pa.large_string()))
    theirs = word_hashes(data, offsets, folded=True).values
    pairs = set(zip(parts(*TEXTS).hashes.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The", "tHE"),
        ("k", "\u212a"),
        ("wiſe", "WISE"),
        ("kilometreſ", "\u212aILOMETRES"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("Ёж", "ёж"),
    ],
)
def test_hashes_are_of_folded_words(one: str, other: str) -> None:
    """Simple case folding, even where it makes ASCII of what is not."""
    assert len(set(hashes_of((one, other)).tolist())) == 1


@pytest.mark.parametrize("word", ["", "two words", "well-known", "中文", "—"])
def test_lists_hold_single_words(word: str) -> None:
    """What is not one word can never be found, so a list that has it is refused."""
    with pytest.raises(ConfigError, match="split or drop it"):
        hashes_of(("good", word))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("word", WordKind.WORD),
        ("don't", WordKind.WORD),
        ("x2", WordKind.WORD),
        ("안녕", WordKind.WORD),
        ("x", WordKind.LETTER),
        ("É", WordKind.LETTER),
        ("e\u0301", WordKind.LETTER),
        ("в", WordKind.LETTER),
        ("में", WordKind.WORD),
        ("를", WordKind.LETTER),
        ("32.3", WordKind.NUMBER),
        ("१२३", WordKind.NUMBER),
        ("7", WordKind.NUMBER),
        ("字", WordKind.HAN),
        ("ꀀ", WordKind.HAN),
        ("カ", WordKind.KANA),
        ("ㄅ", WordKind.KANA),
        ("ที่", WordKind.THAI),
        ("က", WordKind.THAI),
        ("\U00017000", WordKind.OTHER),
    ],
)
def test_kinds_of_words(word: str, kind: WordKind) -> None:
    """Numbers, letters and words of spaced scripts, and letters of unspaced scripts by what they say."""
    assert parts(word).word_kinds.tolist() == [kind]


def test_units_are_those_of_length() -> None:
    """One definition of how much a text says."""
    batch = pa.record_batch({"text": pa.array(TEXTS, pa.large_string())})
    units = Length(LengthConfig()).score(batch).column("units").to_numpy()
    assert parts(*TEXTS).units.astype(np.float32).tolist() == pytest.approx(units.tolist(), rel=1e-6)


def test_words_lie_in_lines() -> None:
    """`line_words` gives each word to the line that it stands in, blank lines having none."""
    found = parts("one two\n\n  three\n", "", "four\nfive six")
    assert np.diff(found.line_words).tolist() == [2, 0, 1, 1, 2]
    assert found.lines.offsets.tolist() == [0, 3, 3, 5]


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("He left.", Line.ENDED),
        ("他走了。」", Line.ENDED),
        ("He said “no.”)", Line.ENDED),
        ("वह गया।", Line.ENDED),
        ("هل ذهب؟", Line.ENDED),
        ("እሱ ሄደ።", Line.ENDED),
        ("**Done!**", Line.ENDED),
        ("Read more...", Line.ENDED | Line.ELLIPSIS),
        ("他说……", Line.ENDED | Line.ELLIPSIS),
        ("そして。。。", Line.ENDED | Line.ELLIPSIS),
        ("それ・・・", Line.ELLIPSIS),
        ("Mr..", Line.ENDED),
        ("no mark, a comma,", Line(0)),
        (")))", Line(0)),
        ("- item", Line.BULLET),
        ("-5 degrees", Line(0)),
        ("•item", Line.BULLET),
        ("— Non, dit-il", Line(0)),
        ("・項目", Line.BULLET),
        ("CLICK HERE now", Line.UPPER),
        ("ПРИВЕТ всем", Line.UPPER),
        ("A b", Line(0)),
    ],
)
def test_kinds_of_lines(line: str, flags: Line) -> None:
    """Ends in any script, ellipses, bullets, capitals; all of these lines are short."""
    assert Line(int(parts(line).line_flags[0])) == flags | Line.SHORT


@pytest.mark.parametrize(
    ("line", "is_short"),
    [
        ("x" * 30, True),
        ("x" * 31, False),
        ("字" * 8, True),
        ("字" * 9, False),
        ("ก" * 22, True),
        ("ก" * 23, False),
        ("あ" * 16, True),
        ("あ" * 17, False),
        ("e\u0301" * 30, True),
        ("я" * 31, False),
    ],
)
def test_short_lines_say_as_much_in_every_script(line: str, is_short: bool) -> None:
    """30 characters of English, or the letters of another script that say the same; marks say nothing."""
    assert bool(parts(line).line_flags[0] & Line.SHORT) == is_short


def test_foreign_arrays_are_refused() -> None:
    """Nulls and other types are an error of the caller."""
    with pytest.raises(InputError, match="no nulls"):
        parts_of(pa.array(["a", None], pa.large_string()))


PROGRAM = """
from curation.filters.rules import line_shapes, repeated_lines, repetition, signs, words
from curation.filters.rules.parts import parts_in

def visit(raw, where):
    parts = parts_in(put(raw, where), np.array([0, len(raw) // 2, len(raw)]))
    for module in (words, signs, line_shapes, repeated_lines, repetition):
        module.measure(parts)

pieces = ["a", "B" * 70, "é", "中", "👍", "\\n", "it's 1.5 ", "... ", "www.a://。）{#}"]
ends = [b"", b"\\xe4", b"\\xe4\\xb8", b"\\xf0\\x9f\\x91", b"\\xc3", b"\\xff"]
for first in pieces:
    for second in pieces:
        for end in ends:
            for where in ("start", "end"):
                visit((first + second).encode() + end, where)
for size in range(0, 140, 3):
    for piece in (b"w", b".", b":", b"="):
        visit(piece * size, "end")
        visit(piece * size, "start")
print("visited")
"""


def test_nothing_outside_of_the_data_is_read() -> None:
    """Texts at the very start and end of a page, whole and cut within a character: no kernel touches the next page."""
    run_between_guard_pages(PROGRAM)
