"""Han characters: the table of forms, the counts of a line, and the pieces it is cut into."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.filters.language.han import (
    CUT_AFTER,
    CUT_BEFORE,
    FIELD_FULL,
    Evidence,
    han_evidence,
    han_flags,
    sentence_spans,
)
from curation.text import Script, buffers, script_counts
from tests.guard_page import run_between_guard_pages

GENERATOR = Path(__file__).resolve().parents[5] / "tools" / "make_han_forms.py"
FLAGS = han_flags()
FLAG_COLUMNS = [e for e in Evidence if Evidence.SIMPLIFIED <= e <= Evidence.PARTICLE]

TEXTS = st.text(
    st.one_of(
        st.sampled_from(
            "这个门国會學東気込々〆的了后里一ぁのカーｶﾞㄅ한ᄀ中\u3400\U00020000豈aéЖ １!。「」（）、・\ufffd"
        ),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)


@cache
def generator() -> ModuleType:
    """The module that writes the table."""
    spec = importlib.util.spec_from_file_location("make_han_forms", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evidence_of(*texts: str) -> np.ndarray:
    """Evidence of texts, one row each."""
    data, offsets = buffers(pa.array(texts, pa.large_string()))
    return han_evidence(data, offsets[:-1], offsets[1:])


def counted(text: str) -> dict[str, int]:
    """The columns of a text that are not 0, by name."""
    return {e.name: int(n) for e, n in zip(Evidence, evidence_of(text)[0], strict=True) if n}


def test_committed_table_is_what_the_generator_writes() -> None:
    """Run python tools/make_han_forms.py after a change of it."""
    assert generator().content() == generator().FILE.read_text("utf-8")


@pytest.mark.parametrize(
    ("characters", "flags", "why"),
    [
        ("后里面干发台只云支票提示", None, "B052: characters common to both standards must not decide"),
        ("门书关设计", {"simplified", "chinese"}, "simplified forms that Japanese does not know"),
        ("国会学来体当与", {"simplified"}, "simplified forms that Japanese shares"),
        ("東時車門問", {"traditional"}, "traditional forms that Japanese shares"),
        ("國學體會", {"traditional", "kyujitai"}, "traditional forms that Japanese once wrote"),
        ("檔說內", {"traditional", "chinese"}, "traditional forms that Japanese never wrote"),
        ("働込畑峠気対発権売々〆", {"japanese"}, "kokuji, shinjitai, iteration mark"),
        ("你", {"chinese", "function"}, "a word of both Chinese standards"),
        ("的了是", {"particle"}, "目的, 終了, 是正: parts of Japanese compounds too"),
        ("着", set(), "missing in Big5, yet the form of Hong Kong"),
        ("後", {"traditional"}, "in GB 2312 for a surname only"),
        ("爲裏", set(), "missing in Big5, yet written in Traditional texts"),
    ],
)
def test_flags(characters: str, flags: set[str] | None, why: str) -> None:
    """What each kind of character speaks for; None: for neither Simplified nor Traditional."""
    for character in characters:
        found = FLAGS.get(character, frozenset())
        if flags is None:
            assert not found & {"simplified"} or not found & {"traditional"}, character
            assert "traditional" not in found, (character, why)
        else:
            assert found == flags, (character, why)


def test_no_character_speaks_for_two() -> None:
    """Nothing is exclusive to two standards, and old forms are traditional."""
    for character, flags in FLAGS.items():
        assert not flags >= {"simplified", "traditional"}, character
        assert "japanese" not in flags or flags == {"japanese"}, character
        assert "kyujitai" not in flags or (flags >= {"traditional"} and "chinese" not in flags), character


@pytest.mark.parametrize(
    ("text", "expected", "why"),
    [
        ("", {}, "an empty line holds nothing"),
        ("12, 😀!", {}, "digits, signs and emoji are no letters"),
        ("ラーメン", {"KATAKANA": 4}, "ー belongs to the kana before it"),
        ("ーー好", {"HAN": 1, "CHINESE": 0}, "ー by itself is a dash of Chinese chat"),
        ("ひとカタｶﾅ", {"HIRAGANA": 2, "KATAKANA": 4}, "a run may change from one kana to the other"),
        ("の的の", {"HIRAGANA": 2, "HAN": 1, "PARTICLE": 1}, "Han ends a run"),
        ("人々", {"HAN": 2, "JAPANESE": 1}, "the iteration mark is Han, and Japanese"),
        ("ㄅㄆ", {"HAN": 2, "TRADITIONAL": 2, "CHINESE": 2}, "Bopomofo is written in Taiwan"),
        ("한國", {"HANGUL": 1, "HAN": 1, "TRADITIONAL": 1, "KYUJITAI": 1}, "hanja counts as what it is"),
        ("abc Жé", {"OTHER": 5}, "letters of all other scripts"),
        ("𠀀\uf900", {"HAN": 2}, "ideographs outside of the table"),
    ],
)
def test_evidence(text: str, expected: dict[str, int], why: str) -> None:
    """Every column of a line, counted by hand."""
    assert counted(text) == {name: n for name, n in expected.items() if n}, why


def test_a_full_field_is_emptied() -> None:
    """Counts are right beyond what the packed fields hold."""
    for n in (FIELD_FULL - 1, FIELD_FULL, FIELD_FULL + 1, 3 * FIELD_FULL + 7):
        assert counted("这" * n) == {"HAN": n, "SIMPLIFIED": n, "CHINESE": n, "FUNCTION": n}


def slow_evidence(text: str) -> list[int]:
    """The same, one character at a time, scripts from `script_counts`."""
    counts = dict.fromkeys(Evidence, 0)
    was_kana = False
    for character in text:
        data, offsets = buffers(pa.array([character], pa.large_string()))
        row = script_counts(data, offsets)[0]
        script = Script(int(row.argmax())) if row.any() else None
        column = {
            None: None,
            Script.HAN: Evidence.HAN,
            Script.BOPOMOFO: Evidence.HAN,
            Script.HIRAGANA: Evidence.HIRAGANA,
            Script.KATAKANA: Evidence.KATAKANA,
            Script.HANGUL: Evidence.HANGUL,
        }.get(script, Evidence.OTHER)
        if character == "ー" and not was_kana:
            column = None
        is_kana = column in (Evidence.HIRAGANA, Evidence.KATAKANA)
        was_kana = is_kana
        if column is not None:
            counts[column] += 1
        flags = {"traditional", "chinese"} if script == Script.BOPOMOFO and ord(character) < 0xA000 else set()
        for name in flags | set(FLAGS.get(character, ())):
            counts[Evidence[name.upper()]] += 1
    return list(counts.values())


@settings(deadline=None)  # the first call may compile kernels
@given(st.lists(TEXTS, max_size=4))
def test_evidence_is_what_a_slow_count_finds(texts: list[str]) -> None:
    """Any text, and any texts beside it."""
    assert evidence_of(*texts).tolist() == [slow_evidence(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "pieces", "why"),
    [
        ("", [], "nothing to cut"),
        ("他说。我听！", ["他说。", "我听！"], "ends of sentences go with what they end"),
        ("书名是「みどりの本」，好", ["书名是", "「みどりの本」", "，好"], "a quotation stands alone"),
        ("当年（著作権法）", ["当年", "（著作権法）"], "so does what is in brackets"),
        ("a|b", ["a|", "b"], "cells of a table"),
        ("「「好", ["「", "「好"], "brackets in a row"),
    ],
)
def test_pieces(text: str, pieces: list[str], why: str) -> None:
    """Where a line is cut."""
    data, offsets = buffers(pa.array([text], pa.large_string()))
    spans = sentence_spans(data, offsets[:-1], offsets[1:])
    found = [text.encode()[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]
    assert found == pieces, why


@settings(deadline=None)  # the first call may compile kernels
@given(st.lists(TEXTS, max_size=4))
def test_pieces_join(texts: list[str]) -> None:
    """The pieces of a line cover it in order, none is empty, and no cut sign stands within one."""
    data, offsets = buffers(pa.array(texts, pa.large_string()))
    spans = sentence_spans(data, offsets[:-1], offsets[1:])
    raw = data.tobytes()
    for row, text in enumerate(texts):
        of_line = range(spans.offsets[row], spans.offsets[row + 1])
        pieces = [raw[spans.starts[i] : spans.ends[i]].decode() for i in of_line]
        assert "".join(pieces) == text
        assert all(pieces)
        for piece in pieces:
            assert not set(piece[:-1]) & CUT_AFTER
            assert not set(piece[1:]) & CUT_BEFORE


def test_the_splitting_of_lines_adds_up() -> None:
    """Counts of the pieces of a line sum to the line's."""
    text = "彼は「ひと」と（東京）言った。这是中文！ok?"
    data, offsets = buffers(pa.array([text], pa.large_string()))
    pieces = sentence_spans(data, offsets[:-1], offsets[1:])
    total = han_evidence(data, pieces.starts, pieces.ends).sum(axis=0)
    assert total.tolist() == evidence_of(text)[0].tolist()


def test_spans_outside_of_the_data_are_refused() -> None:
    """A kernel would read foreign memory."""
    data = np.zeros(4, np.uint8)
    for function in (han_evidence, sentence_spans):
        with pytest.raises(InputError, match="must rise and lie within"):
            function(data, np.array([0]), np.array([5]))


PROGRAM = """
from curation.filters.language.han import han_evidence, sentence_spans
from curation.filters.language.cjk import label_cjk
from curation.text import line_spans

def visit(raw, where):
    data = put(raw, where)
    offsets = np.array([0, len(raw) // 2, len(raw)])
    han_evidence(data, offsets[:-1], offsets[1:])
    sentence_spans(data, offsets[:-1], offsets[1:])
    label_cjk(data, line_spans(data, offsets))

pieces = ["a", "B" * 70, "é", "中", "の", "𠀀", "\\n", "。", "「"]
ends = [b"", b"\\xe4", b"\\xe4\\xb8", b"\\xf0\\x9f\\x91", b"\\xe4\\xb8\\x28\\x29", b"\\xff"]
for first in pieces:
    for second in pieces:
        for end in ends:
            for where in ("start", "end"):
                visit((first + second).encode() + end, where)
print("visited")
"""


def test_nothing_is_read_beyond_the_data() -> None:
    """With the pages before and behind the data unreadable, a stray read would kill the process."""
    run_between_guard_pages(PROGRAM)
