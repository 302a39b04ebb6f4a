"""Terms are found however they are spelled, at the bytes where they stand; words that only look like them are not."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pyarrow as pa
import pytest

from curation.filters.safety_terms import SafetyTerms
from tests.safety_terms_list import step_of, write_list

LATIN = ("porn", "pornhub", "casino", "roulette", "cocaine", "escorts")
HAN = ("赌博", "博彩", "赌场开户")
LOOK_ALIKE = str.maketrans("aceopxyis", "асеорхуіѕ")
ONE_LEET = {"porn": "p0rn", "pornhub": "p0rnhub", "casino": "c@s1no", "roulette": "r0ul3tte", "cocaine": "c0ca1ne"}


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> SafetyTerms:
    return step_of(write_list(tmp_path_factory.mktemp("terms")))


def spans(step: SafetyTerms, text: str) -> list[str]:
    """The matched parts of a text."""
    (matched,) = step.score(pa.RecordBatch.from_arrays([pa.array([text], pa.large_string())], names=["text"]))[
        "matched"
    ]
    found = json.loads(matched.as_py() or "[]")
    return [text.encode()[start:end].decode() for _, _, start, end, _ in found]


def wide(term: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in term)


def bold(term: str) -> str:
    return "".join(chr(0x1D41A + ord(c) - ord("a")) for c in term)


def circled(term: str) -> str:
    return "".join(chr(0x24D0 + ord(c) - ord("a")) for c in term)


def flags(term: str) -> str:
    return "".join(chr(0x1F1E6 + ord(c) - ord("a")) for c in term)


LATIN_WAYS: Mapping[str, object] = {
    "capitals": str.upper,
    "full width": wide,
    "zero width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "word joiner and variation selector": "\u2060\ufe0f".join,
    "crossed out": lambda term: "".join(c + "\u0336" for c in term),
    "spaced": " ".join,
    "dotted": ".".join,
    "starred": "★".join,
    "dashed": " - ".join,
    "emoji": "🔥".join,
    "look-alikes": lambda term: term.translate(LOOK_ALIKE),
    "half look-alikes": lambda term: term[:2] + term[2:].translate(LOOK_ALIKE),
    "bold": bold,
    "circled": circled,
    "flags": flags,
    "repeated": lambda term: term[0] + term[1] * 4 + term[2:],
}


@pytest.mark.parametrize("way", LATIN_WAYS)
@pytest.mark.parametrize("term", LATIN)
def test_latin_terms(step: SafetyTerms, term: str, way: str) -> None:
    """The whole disguised word is the span, within a sentence."""
    spelled = LATIN_WAYS[way](term)  # type: ignore[operator]
    found = spans(step, f"Then, {spelled}! 好 they")
    assert [one.strip("\u0336") for one in found] == [spelled.strip("\u0336")]


@pytest.mark.parametrize(("term", "spelled"), [*ONE_LEET.items(), ("cocaine", "сос@іnе"), ("casino", "c a s 1 n o")])
def test_stand_ins(step: SafetyTerms, term: str, spelled: str) -> None:
    """Digits and signs stand for letters."""
    assert spans(step, f"best {spelled} here"), term
    assert spans(step, f"best {spelled} here")[0] == spelled


@pytest.mark.parametrize("between", ["-", " ", "￥", ".", "★", "\u200b", "・", "  ", "/", "🀄"])
@pytest.mark.parametrize("term", HAN)
def test_signs_between_han(step: SafetyTerms, term: str, between: str) -> None:
    """Any sign that ends no sentence may stand between characters."""
    assert spans(step, f"来{between.join(term)}吧") == [between.join(term)]


@pytest.mark.parametrize(
    "spelled", ["賭博", "賭場開戶", "線上賭場", "线上赌场", "赌赌赌博", "赌，场，开，户", "赌\n场\n开\n户"]
)
def test_han_forms(step: SafetyTerms, spelled: str) -> None:
    """Traditional and Simplified, repeated, cut by commas or lines throughout."""
    assert spans(step, f"来{spelled}吧") == [spelled]


@pytest.mark.parametrize(
    "spelled",
    ["online casino", "ONLINE-CASINO", "onlinecasino", "online\ncasino", "online  ·  casino", "казино", "КАЗИНО", "kазинo",
     "к а з и н о", "카지노에서", "카.지.노", "카 지 노", "bet365", "trạng", "tra\u0323ng", "COÑO", "con\u0303o"],
)  # fmt: skip
def test_other_spellings(step: SafetyTerms, spelled: str) -> None:
    """Terms of several words, of other scripts, with accents however encoded."""
    found = spans(step, f"( {spelled} )")
    assert found, spelled
    assert spelled.startswith(found[0][:3])


@pytest.mark.parametrize(
    "text",
    ["Essex, Middlesex and Sussex", "Scunthorpe has a class of its own", "the assassin in the cockpit", "a therapist read Dickens",
     "my pen is red", "the same as sex ed".replace("sex ed", "six"), "as sore as ever", "an alley", "an al fresco lunch", "canal analysis",
     "e s s e x", "U S A S S R", "地铁到站后请先下后上车", "班车上车点见下表，加群询问", "布艺沙发床和楼主", "选购沙发前先量好客厅",
     "战时电报的暗号保存在博物馆", "他下赌。博物馆在左边", "不要赌\n博物馆", "이마 약속", "1365 days, 36 5", "porno graphy 0rn",
     "cono de helado", "ррр рот нос", "a55 b37 0x455", "s", "casinò", "passing through", "pornhubs"],
)  # fmt: skip
def test_harmless_words(step: SafetyTerms, text: str) -> None:
    """Words that contain, touch or resemble terms are none."""
    assert spans(step, text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("加群上车", ["上车"]),
        ("上车，" + "天地" * 19 + "老司机", ["上车"]),
        ("上车，" + "天地" * 20 + "老司机", []),
        ("老司机上车，公交", []),
        ("楼主 沙发 顶", ["沙发", "顶"]),
        ("联系vx ab1234xyz谢谢", ["vx ab1234xyz"]),
        ("联系 vx 谢谢", []),
    ],
)
def test_context(step: SafetyTerms, text: str, found: list[str]) -> None:
    """Near words within 40 letters, unless words, and expressions around their literals."""
    assert spans(step, text) == found


def test_one_hit_for_one_place(step: SafetyTerms) -> None:
    """A term inside of a longer one of its category is not counted again; two categories are."""
    assert spans(step, "buy cocaine now") == ["buy cocaine"]
    assert spans(step, "online casino") == ["online casino"]


def test_offsets_are_bytes_of_the_original(step: SafetyTerms) -> None:
    """Bytes of the document itself, also after characters that vanish or become several, and in a slice."""
    assert spans(step, "\ufeff㎏…\u200b½ ﷺ ｃ\u200bａsino") == ["ｃ\u200bａsino"]
    texts = pa.array(["first", "é porn", "last"], pa.large_string()).slice(1, 1)
    (matched,) = step.score(pa.RecordBatch.from_arrays([texts], names=["text"]))["matched"].to_pylist()
    assert json.loads(matched)[0][2:4] == [3, 7]


@pytest.mark.parametrize(
    "piece", [" ", "a", "赌", "s5", "$", "\u0301", "加vx a1 ", "赌-", "1", "上车 ", "\u200b", "ﷺ", "porn"]
)
def test_linear_time(step: SafetyTerms, piece: str) -> None:
    """A megabyte of anything, on one line, takes no longer than that of anything else."""
    text = piece * (1_000_000 // len(piece.encode()))
    batch = pa.RecordBatch.from_arrays([pa.array([text], pa.large_string())], names=["text"])
    begin = time.process_time()
    step.score(batch)
    assert time.process_time() - begin < 5
