"""From labels of parts to documents: letters by language, runs of lines, and what models are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.filters.language.cjk import BY_CONTEXT, BY_ITSELF, CHINESE_LABELS, CJK_LABELS, NO_EVIDENCE, CjkLines
from curation.filters.language.document import (
    CONFIDENCE,
    INLINE,
    SAMPLE_BYTES,
    SAMPLE_LINES,
    language_spans,
    opinions,
    tally,
    usual_form,
)
from curation.filters.language.identify import Found, Labels
from curation.filters.language.kinds import LineKind
from curation.filters.language.lines import Lines
from curation.filters.language.parts import Parts
from curation.filters.language.scripts import CHARACTERS_PER_LETTER, SHARED
from curation.filters.language.voters import Panel
from curation.text import Script
from curation.text.spans import Bytes, Int64s, Spans

LANGUAGES = ["ara", "deu", "eng", "hin", "rus", "srp", "zho"]
HANI, HANS, HANT = CHINESE_LABELS


class FakePanel:
    """Seven languages, each in the scripts it is written in; remembers what it is shown, and says what it is told to."""

    def __init__(self, answer: Sequence[str] = ("eng", "eng")) -> None:
        self.languages = LANGUAGES
        self.written = np.zeros((len(Script), len(LANGUAGES)), np.bool_)
        for script, names in {
            Script.LATIN: ("deu", "eng", "srp"),
            Script.CYRILLIC: ("rus", "srp"),
            Script.ARABIC: ("ara",),
            Script.DEVANAGARI: ("hin",),
        }.items():
            self.written[script, [LANGUAGES.index(name) for name in names]] = True
        self.answer = answer
        self.shown: list[tuple[bytes, Parts]] = []

    def first(self, data: Bytes, parts: Parts) -> tuple[Any, Any]:
        self.shown.append((data.tobytes(), parts))
        return self._say(0, len(parts.line))

    def second(self, data: Bytes, parts: Parts) -> tuple[Any, Any]:
        return self._say(1, len(parts.line))

    def _say(self, model: int, n: int) -> tuple[Any, Any]:
        name = self.answer[model]
        place = LANGUAGES.index(name) if name else -1
        return np.full(n, place, np.int32), np.full(n, 0.8, np.float32)


PANEL = cast(Panel, FakePanel())
LABELS = Labels(PANEL)


def number(name: str) -> int:
    return LABELS.names.index(name)


class Piece(NamedTuple):
    """A part: label, letters, and what the two models say of it."""

    label: str
    letters: int
    confidence: float = 0.9
    fasttext: str = ""
    langdetect: str = ""


class Line(NamedTuple):
    """A line: its parts; or its label among Chinese, Japanese and Korean, with letters of these; its kind."""

    parts: tuple[Piece, ...] = ()
    cjk: str = ""
    letters: tuple[int, int, int] = (0, 0, 0)
    kind: LineKind = LineKind.TEXT
    second: str = ""
    basis: int = BY_ITSELF
    text: str = ""


BLANK = Line(kind=LineKind.BLANK)


def line(label: str, letters: int = 30, **more: Any) -> Line:
    """A line in one language."""
    if label in CJK_LABELS:
        place = 0 if label.startswith(("zho", "und")) else 1 if label == "jpn_Jpan" else 2
        counts = [letters if i == place else 0 for i in range(3)]
        return Line(cjk=label, letters=(counts[0], counts[1], counts[2]), **more)
    return Line((Piece(label, letters),), **more)


def script_of(label: str) -> Script:
    scripts = {"Latn": Script.LATIN, "Cyrl": Script.CYRILLIC, "Arab": Script.ARABIC, "Deva": Script.DEVANAGARI}
    return scripts.get(label.partition("_")[2], Script.GEORGIAN if label == "kat_Geor" else Script.COMMON)


def characters(one: Line) -> int:
    """Characters of a line that is nothing but its letters, with their vowel signs."""
    signs = sum(piece.letters * CHARACTERS_PER_LETTER[script_of(piece.label)] for piece in one.parts)
    return round(float(signs)) + sum(one.letters)


def found(*documents: Sequence[Line]) -> Found:
    """What `identify` would say of such documents."""
    lines = [one for document in documents for one in document]
    pieces = [(row, piece) for row, one in enumerate(lines) for piece in one.parts]
    raw = [(one.text or "x" * characters(one)).encode() for one in lines]
    sizes = np.array([len(text) for text in raw], np.int64)
    ends = np.cumsum(sizes)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    rows = np.array([row for row, _ in pieces], np.int64)
    letters = np.array([piece.letters for _, piece in pieces], np.int32)
    kinds = np.array([one.kind for one in lines], np.uint8)
    scripts = np.array([script_of(piece.label) for _, piece in pieces], np.uint8)
    clean = np.frombuffer(b"".join(raw), np.uint8)
    nothing = np.zeros(len(lines), np.int64)
    prepared = {
        "spans": Spans(nothing, nothing, offsets),
        "clean": clean,
        "clean_starts": ends - sizes,
        "clean_ends": ends,
        "letters": np.zeros((len(lines), len(Script)), np.int32),
        "kind": kinds,
    }
    fields = {name: prepared.get(name, nothing) for name in Lines._fields}
    return Found(
        Lines(**cast(Any, fields)),
        CjkLines(
            np.array([CJK_LABELS.index(one.cjk) for one in lines], np.uint8),
            np.array([CJK_LABELS.index(one.second) for one in lines], np.uint8),
            np.array([one.basis for one in lines], np.uint8),
            np.array([one.letters for one in lines], np.int32).reshape(-1, 3),
        ),
        Parts(rows, np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), scripts, letters),
        np.searchsorted(offsets, rows, side="right") - 1,
        np.array([number(piece.label) for _, piece in pieces], np.int32),
        np.array([piece.confidence for _, piece in pieces], np.float32),
        _views([piece.fasttext for _, piece in pieces]),
        _views([piece.langdetect for _, piece in pieces]),
    )


def _views(names: Sequence[str]) -> tuple[Any, Any]:
    places = [LANGUAGES.index(name) if name else -1 for name in names]
    return np.array(places, np.int32), np.where(np.array(places, np.int32) < 0, 0, 0.7).astype(np.float32)


# -- letters by language -----------------------------------------------------------------------------------


def counted(*documents: Sequence[Line]) -> list[list[tuple[str, float]]]:
    """Letters by label of each document, in the order of the tally."""
    tallies = tally(found(*documents), LABELS)
    rows: list[list[tuple[str, float]]] = [[] for _ in documents]
    for document, label, letters in zip(
        tallies.document.tolist(), tallies.label.tolist(), tallies.characters.tolist(), strict=True
    ):
        rows[document].append((LABELS.names[label], letters))
    return rows


@pytest.mark.parametrize(
    ("lines", "expected", "why"),
    [
        ([], [], "nothing"),
        ([BLANK, BLANK], [], "nothing but blank lines"),
        (
            [line("deu_Latn", 30), line("eng_Latn", 20), line("deu_Latn", 5)],
            [("deu_Latn", 35), ("eng_Latn", 20)],
            "sums",
        ),
        ([line("eng_Latn", 20), line("deu_Latn", 30)], [("deu_Latn", 30), ("eng_Latn", 20)], "most letters first"),
        ([line("eng_Latn", 9), line("eng_Latn", 50, kind=LineKind.CODE)], [("eng_Latn", 9)], "code has no weight"),
        ([line("eng_Latn", 9), line("deu_Latn", 50, kind=LineKind.NAVIGATION)], [("eng_Latn", 9)], "nor have menus"),
        ([line("zho_Hans", 9, kind=LineKind.NAVIGATION)], [], "nor Chinese menus"),
        ([line("hin_Deva", 100)], [("hin_Deva", 161)], "letters with their vowel signs, as measured for the script"),
        ([line("zho_Hans", 40), line("zho_Hani", 9)], [("zho_Hans", 49)], "shared characters go with the usual form"),
        (
            [line("zho_Hant", 40), line("zho_Hans", 9), line("zho_Hani", 9)],
            [("zho_Hant", 49), ("zho_Hans", 9)],
            "the form with more letters is the usual one",
        ),
        ([line("zho_Hani", 9)], [("zho_Hani", 9)], "without any form they stay what they are"),
        ([line("jpn_Jpan", 30), line("zho_Hani", 9)], [("jpn_Jpan", 30), ("zho_Hani", 9)], "no form of Japanese"),
        (
            [Line(cjk="zho_Hans", letters=(30, 6, 2), second="jpn_Jpan")],
            [("zho_Hans", 30), ("jpn_Jpan", 6), ("kor_Kore", 2)],
            "a line's other languages count for themselves",
        ),
        (
            [Line(cjk="jpn_Jpan", letters=(8, 30, 0), second="zho_Hant")],
            [("jpn_Jpan", 30), ("zho_Hant", 8)],
            "Chinese quoted in Japanese, in the form it has",
        ),
        (
            [Line((Piece("eng_Latn", 60),), letters=(4, 0, 0))],
            [("eng_Latn", 60), ("zho_Hani", 4)],
            "Chinese quoted in an English line",
        ),
        ([line("und", 5), line("eng_Latn", 3)], [("eng_Latn", 3), ("und", 5)], "text without a name counts half"),
        ([line("und", 7), line("eng_Latn", 3)], [("und", 7), ("eng_Latn", 3)], "but still counts"),
        ([line("eng_Latn", 5), line("deu_Latn", 5)], [("deu_Latn", 5), ("eng_Latn", 5)], "a tie goes by label, always"),
    ],
)
def test_letters_are_summed_by_label(lines: list[Line], expected: list[tuple[str, float]], why: str) -> None:
    """Letters of lines of text, by label, most first."""
    assert counted(lines) == [expected], why
    assert counted([line("rus_Cyrl")], lines, [BLANK])[1] == expected, "beside other documents"


def test_order_is_by_number_of_the_label_in_ties() -> None:
    """The order of lines does not decide a tie."""
    one, other = line("eng_Latn", 5), line("rus_Cyrl", 5)
    assert counted([one, other]) == counted([other, one])


def test_confidence_is_a_mean_over_letters() -> None:
    """Of the parts in a language, weighed by their letters; of Chinese, Japanese and Korean lines by what they rest on."""
    lines = [
        Line((Piece("eng_Latn", 30, 0.9),)),
        Line((Piece("eng_Latn", 10, 0.5),)),
        Line((Piece("deu_Latn", 5, 0.1),)),
    ]
    tallies = tally(found(lines), LABELS)
    assert tallies.confidence == pytest.approx([0.8, 0.1])
    rests = [BY_ITSELF, BY_CONTEXT, NO_EVIDENCE]
    tallies = tally(found(*([line("zho_Hans", 9, basis=basis)] for basis in rests)), LABELS)
    assert tallies.confidence == pytest.approx([CONFIDENCE[basis] for basis in rests])
    assert (np.diff(tallies.confidence) < 0).all()
    assert tally(found([line("und", 9)]), LABELS).confidence.tolist() == [0]


@pytest.mark.parametrize(
    ("parts", "inline"),
    [
        ([("eng_Latn", 100)], 0),
        ([("eng_Latn", 86), ("rus_Cyrl", 14)], 0),
        ([("eng_Latn", 85), ("rus_Cyrl", 15)], 100),
        ([("eng_Latn", 50), ("rus_Cyrl", 50)], 100),
        ([("srp_Latn", 50), ("srp_Cyrl", 50)], 0),
        ([("eng_Latn", 60), ("eng_Latn", 40)], 0),
    ],
)
def test_lines_of_two_languages(parts: list[tuple[str, int]], inline: int) -> None:
    """A line of which INLINE or more is not in its main language counts whole; two scripts of one language are one."""
    assert pytest.approx(0.15) == INLINE
    lines = [Line(tuple(Piece(label, letters) for label, letters in parts)), line("eng_Latn", 1000)]
    assert tally(found([BLANK], lines, lines[1:]), LABELS).inline.tolist() == [0, inline, 0]


names = st.sampled_from(
    ["eng_Latn", "deu_Latn", "rus_Cyrl", "hin_Deva", "zho_Hans", "zho_Hant", "zho_Hani", "jpn_Jpan"]
)
any_line = st.builds(line, names, st.integers(1, 40), kind=st.sampled_from([LineKind.TEXT, LineKind.CODE])) | st.just(
    BLANK
)
documents_of_lines = st.lists(st.lists(any_line, max_size=8), max_size=5)


@settings(max_examples=150, deadline=None)
@given(documents_of_lines)
def test_tallies_are_those_of_a_counter(documents: list[list[Line]]) -> None:
    """The same as counting line by line: nothing lost, nothing counted in another document."""
    for lines, rows in zip(documents, counted(*documents), strict=True):
        counts: Counter[str] = Counter()
        for one in lines:
            if one.kind == LineKind.TEXT:
                for name in (one.cjk, *(piece.label for piece in one.parts)):
                    counts[name] += characters(one) if name else 0
        forms = counts["zho_Hans"], counts["zho_Hant"]
        if counts["zho_Hani"] and max(forms):
            counts["zho_Hans" if forms[0] >= forms[1] else "zho_Hant"] += counts.pop("zho_Hani")
        expected = {name: count for name, count in counts.items() if count}
        assert dict(rows) == pytest.approx(expected)
        assert [count for _, count in rows] == sorted((count for _, count in rows), reverse=True)


def test_usual_form() -> None:
    """The form of Han characters with most letters, Simplified in a tie, shared ones where there is neither."""
    document = np.array([0, 0, 1, 1, 2, 4])
    label = np.array([HANS, HANT, HANS, HANT, HANI, HANT])
    letters = np.array([5.0, 6, 5, 5, 9, 1])
    assert usual_form(document, label, letters).tolist() == [HANT, HANS, HANI, HANI, HANT]
    nothing: Int64s = np.zeros(0, np.int64)
    assert usual_form(nothing, nothing, np.zeros(0)).tolist() == []


# -- runs of lines -------------------------------------------------------------------------------------------


def runs(*documents: Sequence[Line], usual: int = HANI) -> list[list[tuple[str, int, int]]]:
    """Label, first line and end of each run of each document."""
    told = language_spans(found(*documents), LABELS, np.full(len(documents), usual))
    rows = [
        (LABELS.names[label], first, end)
        for label, first, end in zip(told.label.tolist(), told.first.tolist(), told.end.tolist(), strict=True)
    ]
    marks = told.offsets.tolist()
    assert marks[0] == 0
    assert marks[-1] == len(rows)
    return [rows[a:b] for a, b in pairwise(marks)]


DEU, ENG, JPN = line("deu_Latn"), line("eng_Latn"), line("jpn_Jpan")
CODE, MENU = line("eng_Latn", kind=LineKind.CODE), line("rus_Cyrl", kind=LineKind.NAVIGATION)


@pytest.mark.parametrize(
    ("lines", "expected", "why"),
    [
        ([], [], "no lines"),
        ([DEU], [("deu_Latn", 0, 1)], "one line"),
        ([DEU, DEU, ENG], [("deu_Latn", 0, 2), ("eng_Latn", 2, 3)], "two runs"),
        ([DEU, BLANK, ENG, BLANK], [("deu_Latn", 0, 2), ("eng_Latn", 2, 4)], "a blank line goes with the one before"),
        ([BLANK, BLANK, ENG, DEU], [("eng_Latn", 0, 3), ("deu_Latn", 3, 4)], "at the top with the one after"),
        ([BLANK, BLANK], [("und", 0, 2)], "with none at all"),
        ([DEU, CODE, DEU], [("deu_Latn", 0, 3)], "code cuts no run"),
        ([CODE, CODE, DEU], [("deu_Latn", 0, 3)], "nor at the top"),
        ([CODE, BLANK], [("und", 0, 2)], "code alone has no language"),
        ([ENG, MENU, DEU], [("eng_Latn", 0, 1), ("rus_Cyrl", 1, 2), ("deu_Latn", 2, 3)], "a menu has a language"),
        ([DEU, BLANK, DEU], [("deu_Latn", 0, 3)], "a blank line cuts no run"),
        ([line("zho_Hani")], [("zho_Hani", 0, 1)], "shared characters without a usual form"),
        ([JPN, line("zho_Hani")], [("jpn_Jpan", 0, 1), ("zho_Hani", 1, 2)], "that no line around decides"),
        (
            [Line((Piece("eng_Latn", 10), Piece("rus_Cyrl", 30)))],
            [("rus_Cyrl", 0, 1)],
            "a line of two parts is in the language of the longer one",
        ),
        (
            [Line((Piece("eng_Latn", 60),), cjk="zho_Hans", letters=(20, 0, 0))],
            [("zho_Hans", 0, 1)],
            "a Chinese line with an English sentence is Chinese",
        ),
        ([line("und"), BLANK, DEU], [("und", 0, 2), ("deu_Latn", 2, 3)], "text without a name is a run of its own"),
    ],
)
def test_runs_of_lines(lines: list[Line], expected: list[tuple[str, int, int]], why: str) -> None:
    """Half-open runs that cover all lines in order."""
    assert runs(lines) == [expected], why
    assert runs([ENG], lines, [BLANK, DEU], [])[1] == expected, "beside other documents"


def test_shared_characters_get_the_usual_form() -> None:
    """A line of characters common to both forms is of the form of its document."""
    lines = [line("zho_Hant"), line("zho_Hani"), line("zho_Hant")]
    assert runs(lines, usual=HANT) == [[("zho_Hant", 0, 3)]]


@settings(max_examples=150, deadline=None)
@given(documents_of_lines)
def test_runs_are_those_of_a_slow_telling(documents: list[list[Line]]) -> None:
    """The same as going down the lines of each document one by one."""
    for lines, rows in zip(documents, runs(*documents, usual=HANS), strict=True):
        labels = [one.cjk or (one.parts[0].label if one.parts else "") for one in lines]
        labels = ["" if one.kind == LineKind.CODE else label for one, label in zip(lines, labels, strict=True)]
        labels = ["zho_Hans" if label == "zho_Hani" else label for label in labels]
        current = next((label for label in labels if label), "und")
        expected: list[tuple[str, int, int]] = []
        for place, label in enumerate(labels):
            current = label or current
            if expected and expected[-1][0] == current:
                expected[-1] = (current, expected[-1][1], place + 1)
            else:
                expected.append((current, place, place + 1))
        assert rows == expected


# -- what models say of documents ------------------------------------------------------------------------------


def views(*documents: Sequence[Line], main: Sequence[str], panel: FakePanel | None = None) -> list[list[Any]]:
    """Language (None for nothing) and confidence of each document, as fastText and as langdetect see it."""
    numbers = np.array([number(name) if name else 0 for name in main], np.int64)
    told = opinions(cast(Panel, panel or FakePanel()), LABELS, found(*documents), numbers)
    return [
        [(LANGUAGES[place] if place >= 0 else None, round(sure, 4)) for place, sure in zip(*view, strict=True)]
        for view in told
    ]


def test_opinions_are_weighed_by_letters() -> None:
    """The language that most letters are in, for each model; its confidence is the mean over the parts that it names so."""
    lines = [
        Line((Piece("deu_Latn", 30, fasttext="deu", langdetect="eng"),)),
        Line((Piece("deu_Latn", 20, fasttext="eng", langdetect="eng"),)),
        Line((Piece("eng_Latn", 90, fasttext="eng", langdetect="deu"),), kind=LineKind.NAVIGATION),
    ]
    assert views(lines, [], [BLANK], main=["deu_Latn", "", ""]) == [
        [("deu", 0.7), (None, 0), (None, 0)],
        [("eng", 0.7), (None, 0), (None, 0)],
    ]


def test_models_that_know_nothing_say_nothing() -> None:
    """-1 is no language, however many letters it has."""
    lines = [Line((Piece("deu_Latn", 90),)), Line((Piece("deu_Latn", 2, fasttext="deu"),))]
    assert views(lines, main=["deu_Latn"]) == [[("deu", 0.7)], [(None, 0)]]


def test_a_sample_is_shown_where_the_script_decides() -> None:
    """The first lines of text, cut at a character; nothing of menus, of other documents, or where models have voted."""
    panel = FakePanel(answer=("rus", ""))
    long = "ქ" * 150
    georgian = [
        line("kat_Geor", 5, kind=LineKind.NAVIGATION, text="მენიუ"),
        line("kat_Geor", 9, text="მოკლე"),
        BLANK,
        line("kat_Geor", 150, text=long),
        line("kat_Geor", 9, text="მესამე"),
    ]
    voted = [Line((Piece("deu_Latn", 30, fasttext="deu", langdetect="deu"),), text="Die Mühle")]

    told = views(voted, georgian, [BLANK], voted, main=["deu_Latn", "kat_Geor", "", "deu_Latn"], panel=panel)

    assert told[0] == [("deu", 0.7), ("rus", 0.8), (None, 0), ("deu", 0.7)]
    assert told[1] == [("deu", 0.7), (None, 0), (None, 0), ("deu", 0.7)]
    ((data, parts),) = panel.shown
    texts = [data[a:b].decode("utf-8") for a, b in zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)]
    assert texts == ["მოკლე", long[: SAMPLE_BYTES // 3]]
    assert len(texts) == SAMPLE_LINES


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=200), min_size=1, max_size=4
    )
)
@example(["a" + "𐐷" * 100, "ab" + "𐐷" * 100, "é" * 200])
def test_samples_are_cut_at_characters(texts: list[str]) -> None:
    """Whatever the text, what a model is shown is whole characters, SAMPLE_BYTES at most, from the line's start."""
    panel = FakePanel()
    views([line("kat_Geor", 9, text=text * 3) for text in texts], main=["kat_Geor"], panel=panel)
    ((data, parts),) = panel.shown
    for text, start, end in zip(texts, parts.starts.tolist(), parts.ends.tolist(), strict=False):
        shown = data[start:end].decode("utf-8")
        assert (text * 3).startswith(shown)
        assert len(shown.encode()) <= SAMPLE_BYTES
        assert len((text * 3).encode()) <= SAMPLE_BYTES or len(shown.encode()) > SAMPLE_BYTES - 4


def test_the_fake_speaks_of_shared_scripts_only() -> None:
    """What these tests stand on: languages of the fake are written in scripts that models are asked about."""
    assert set(np.flatnonzero(FakePanel().written.any(axis=1)).tolist()) <= {int(script) for script in SHARED}
