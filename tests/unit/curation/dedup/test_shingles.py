"""What a shingle is: words, characters, forms that are the same, and values that stay the same."""

from __future__ import annotations

import time
import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from curation.dedup.sets import Shingles, distinct
from curation.dedup.shingles import BY_CHARACTER, _run, shingles, shingles_at
from curation.errors import ConfigError, InputError
from curation.text import buffers
from curation.text.spans import bounds
from tests.guard_page import run_between_guard_pages

PADDING = "x" * 80
"""A further document, so that the others do not lie at the end of the data, where kernels read by byte."""


def values(text: str, size: int = 5) -> list[int]:
    """Shingles of one text."""
    found = shingles(pa.array([text, PADDING], pa.large_string()), size)
    return found.values[: found.offsets[1]].tolist()


def is_settled(text: str) -> bool:
    """Whether a text needs no Python."""
    places = bounds(*buffers(pa.array([text, PADDING], pa.large_string())))
    return not _run(*places, 5, np.uint64(0), True, None)[1].size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n\t\0", 0),
        ("?! … 😀👍🏽 ❤️ $+<> \u200b", 0),
        ("\u0301\u0301 \u0e31 \ufe0f", 0),  # marks without a word
        ("\u3164\u115f", 0),  # Hangul fillers are letters that nobody sees
        ("one", 1),
        ("one two three four", 1),
        ("one two three four five", 1),
        ("one two three four five six", 2),
        ("don't stop me now", 1),  # don, t, stop, me, now
        ("don't stop me now, please", 2),
        ("snake_case is_one word_each __ 3.14", 2),
        ("字", 1),
        ("中文字符", 1),
        ("中文，字符！啊呀", 2),
        ("한국어 텍스트", 2),
        ("ที่นี่อีก", 1),  # 5 letters with their marks
        ("हिन्दी में", 1),  # हि, न्, दी, में: a vowel sign ends a word, and belongs to it
        ("हिन्दी में लिखा", 2),
        ("a\0b\0c\0d\0e\0f", 2),
    ],
)
def test_how_many(text: str, count: int) -> None:
    """Five units in a row; fewer make one shingle together; without a word character there is none."""
    assert len(values(text)) == count


SAME = [
    ("The QUICK Brown Fox jumps", "the quick brown fox jumps"),
    ("one, two; three. four - five!", "one two\nthree  four\tfive"),
    ("tiếng Việt có dấu thanh", unicodedata.normalize("NFD", "tiếng Việt có dấu thanh")),
    ("ｆｕｌｌ　ＷＩＤＴＨ　ｌａｔｉｎ　１２３　ｘ", "full width latin 123 x"),
    ("ｶﾞｷﾞｸﾞﾊﾟﾋﾟｱｲｳ", "ガギグパピアイウ"),
    (unicodedata.normalize("NFD", "한국어 텍스트입니다"), "한국어 텍스트입니다"),
    ("ﻣﺮﺣﺒﺎ ﺑﻜﻢ ﻓﻲ ﻫﺬﺍ ﺍﻟﻤﻮﻗﻊ", "مرحبا بكم في هذا الموقع"),
    ("ﷺ", "صلى الله عليه وسلم"),
    ("ﬁne oﬃce ﬂow ĳ ﬆ", "fine office flow ij st"),
    ("① ② ③ Ⓐ ⅷ", "1 2 3 a viii"),
    ("½ cup ¼ spoon", "1⁄2 cup 1⁄4 spoon"),
    ("ΣΟΦΟΣ ΛΟΓΟΣ Α Β Γ", "σοφος λογος α β γ"),
    ("σοφός ἄνθρωπος α β γ", "σοφόσ ἄνθρωποσ α β γ"),  # the final sigma is a sigma
    ("STRAẞE K Å Ω ſ", "straße k å ω s"),
    ("நகரம் கொடு போ", unicodedata.normalize("NFD", "நகரம் கொடு போ")),
    ("葛\U000e0100城市の市長さん", "葛城市の市長さん"),  # a variation selector vanishes
    ("a\u0301\u0316 b c d e", "a\u0316\u0301 b c d e"),
    ("漢字、仮名；交じり文", "漢 字 仮 名 交 じ り 文"),  # by character, what stands between does not count
    ("กำลัง", "ก\u0e4dาลัง"),
    ("Wasser\u00admühle am Fluss mit altem Rad", "Wassermühle am Fluss mit altem Rad"),  # a soft hyphen
    ("\ufeffשלום\u200f עולם\u200e", "שלום עולם"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one: str, other: str) -> None:
    """Texts that differ only in form, case and what stands between words."""
    assert values(one)
    assert values(one) == values(other)
    assert values(f"{one} " * 9) == values(f"{other} " * 9)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("one two three four five", "one two three five four"),
        ("one two three four", "one two three four four"),
        ("ab c", "a bc"),
        ("naïve", "naive"),
        ("İstanbul", "istanbul"),  # simple folding has no dotted capital I
        ("maße", "masse"),
        ("word 1", "word 2"),
        ("कमल", "कमाल"),  # a vowel sign counts
        ("वह घोड़ा मेरा है", "वह घोड़ी मेरी है"),  # horse and mare
        ("ปี", "ปู"),
        ("เขา", "เข้า"),
        ("a", "aa"),
        ("abcdefgh", "abcdefghi"),
        ("word", "word word"),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    """Order, borders of words, accents, numbers and vowel signs count."""
    assert not set(values(one)) & set(values(other))


def test_the_border_of_thirty_percent() -> None:
    """Of the letters and numbers, marks aside, more than 30 % must be of a script that is cut by character."""
    assert len(values("漢字仮 abcdefg")) == 1  # 3 of 10: two words
    assert len(values("漢字仮 abcdef")) == 5  # 3 of 9: nine characters
    assert len(values("漢字仮 a\u0308b\u0308c\u0308d\u0308e\u0308f\u0308 _")) == 2  # 3 of 10: six words
    assert len(values("2024年7月1日 12:30")) == 1  # 3 of 13: three words


def test_scripts_can_be_chosen() -> None:
    """A script that is not among those cut by character is cut at blanks."""
    thai, han = pa.array(["ภาษา ไทย"] * 2), pa.array(["中文字符测试"] * 2)

    assert len(shingles(thai).values) > 2
    assert len(shingles(thai, by_character=["han", "hangul"]).values) == 2
    assert len(shingles(han, by_character=["thai"]).values) == 2
    assert shingles(han, by_character=["han"]).values.tolist() == shingles(han).values.tolist()


def test_words_and_characters_never_match() -> None:
    """The same string as words of one letter and as characters has other values."""
    as_characters, as_words = (
        values("漢 字 仮 名 文"),
        values("漢 字 仮 名 文 " + "and some more words of english text"),
    )
    assert len(as_characters) == 1
    assert not set(as_characters) & set(as_words)


@pytest.mark.parametrize(
    "text",
    [
        "தமிழ்நாடு அரசு பாடல் சாலை தாய்மொழி",  # the AA sign joins only E and EE signs
        "½ cup of sugar, ¼ of salt, №5, ™, … and ﬁsh ①",
        "naïve café, Ελληνικά, русский, العربية, עִבְרִית, हिन्दी, ไทย กำลัง",
        "日本語、ＡＢＣ、ｶﾀｶﾅ、한국어",
        "tiếng Việt có dấu thanh",
    ],
)
def test_ordinary_text_needs_no_python(text: str) -> None:
    """Where nothing is to be joined or put in order, one look at each character is enough."""
    assert is_settled(text)


def test_what_needs_python() -> None:
    """Letters and marks that become one, marks out of order, forms with more letters than bytes."""
    assert not any(map(is_settled, ("e\u0301", "ｶﾞ", "கெ\u0bbe", "\u1100\u1161", "م\u0651\u064e", "ﷺ", "㌀")))


def test_texts_that_need_python_stand_in_their_place() -> None:
    """Rows with and without it, in every order."""
    texts = ["e\u0301 1", "plain text", "", "e\u0301 2", "ｶﾞ", "", "漢字", "ﷺ"]
    found = shingles(pa.array(texts, pa.string()))

    parts = np.split(found.values, found.offsets[1:-1])
    assert [part.tolist() for part in parts] == [values(text) for text in texts]


def test_values_stay() -> None:
    """Signatures of these values are kept on disk: a change of them needs a new version of the step."""
    assert values("The quick brown fox jumps over") == [0xBDCBEB7171459F19, 0xFD7597D77F14C663]
    assert values("敏捷的棕色狐狸") == [0xE13752CEE5F1D70D, 0xEF30206B897ADEE2, 0xB13405E68E98CF66]
    assert values("naïve café") == [0xE02B968BC08D4485]


def test_all_bits_are_mixed() -> None:
    """Each bit is one in half of the values, and the low and high 32 bits alone tell values apart."""
    numbers, ideographs = " ".join(map(str, range(60_000))), "".join(map(chr, range(0x4E00, 0x9FA5)))
    found = distinct(shingles(pa.array([numbers, ideographs])))
    for part in np.split(found.values, found.offsets[1:-1]):
        shares = [(part >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(64)]
        assert max(abs(share - 0.5) for share in shares) < 0.02
        for half in (part & np.uint64(0xFFFFFFFF), part >> np.uint64(32)):
            assert len(part) - len(np.unique(half)) <= 8


def test_sizes() -> None:
    """Any size of 1 or more; other sizes are a mistake that is told."""
    assert len(values("a b c d e f", 1)) == 6
    assert len(values("a b c d e f", 6)) == 1
    assert values("a b c", 10**9) == values("a b c", 3)
    with pytest.raises(ConfigError, match="not 0: set the shingle size"):
        shingles(pa.array(["a"]), 0)


def test_what_is_no_text() -> None:
    """Nulls and other types are refused."""
    with pytest.raises(InputError, match="no nulls"):
        shingles(pa.array(["a", None]))
    with pytest.raises(InputError, match="large_string or string"):
        shingles(pa.array([b"a"]))


def test_given_room_changes_nothing() -> None:
    """Values come to lie in the room that is given, if it is long enough."""
    places = bounds(
        *buffers(pa.array(["one two three four five six", "", "e\u0301", "漢字仮名文字"], pa.large_string()))
    )
    fresh = shingles_at(*places, 5, BY_CHARACTER)
    for length in (0, 3, 1000):
        found = shingles_at(*places, 5, BY_CHARACTER, np.empty(length, np.uint64))
        assert found.values.tolist() == fresh.values.tolist()
        assert found.offsets.tolist() == fresh.offsets.tolist()


def test_no_document_and_no_text() -> None:
    """Empty arrays and empty texts."""
    for texts in ([], [""], ["", ""]):
        found = shingles(pa.array(texts, pa.large_string()))
        for part in (found, distinct(found)):
            assert part.values.tolist() == []
            assert part.offsets.tolist() == [0] * (len(texts) + 1)


@pytest.mark.parametrize(
    ("text", "n_all", "n_distinct"),
    [
        ("x" * 1_000_000, 1, 1),
        ("é" * 1_000_000, 1, 1),
        ("word " * 400_000, 399_996, 1),
        ("漢" * 600_000, 599_996, 1),
        ("a b c d e f g " * 100_000, 699_996, 7),
        ("½" * 500_000, 499_997, 3),
        ("a" + "\u0301\u0316" * 60_000, 1, 1),
        ("\ufdfa" * 50_000, 149_997, 5),
    ],
)
def test_hostile_sizes(text: str, n_all: int, n_distinct: int) -> None:
    """2 MB of one thing take a moment, whatever it is."""
    begin = time.process_time()
    found = shingles(pa.array([text], pa.large_string()))
    sets = distinct(found)

    assert (len(found.values), len(sets.values)) == (n_all, n_distinct)
    assert time.process_time() - begin < 10  # most of it is compilation


def test_crowded_values_are_sorted_too() -> None:
    """Values that are no hashes, all in one bucket, in falling order."""
    many = np.arange(100_000, dtype=np.uint64)[::-1].copy()
    found = distinct(Shingles(np.concatenate([many, many]), np.array([0, 200_000])))

    assert found.values.tolist() == list(range(100_000))


PROGRAM = """
from curation.dedup.sets import distinct
from curation.dedup.shingles import _run

def visit(raw, where):
    data = put(raw, where)
    for checked in (True, False):
        borders = np.array([0, len(raw) // 2, len(raw)])
        distinct(_run(data, borders[:-1], borders[1:], 5, np.uint64(2**40 - 2), checked, None)[0])

pieces = ["a", "B" * 70, "é", "中" * 9, "👍", " ", "e\\u0301", "it's 1.5 ", "\\u3000", "½", "กำ"]
ends = [b"", b"\\xe4", b"\\xe4\\xb8", b"\\xf0\\x9f\\x91", b"\\xc3", b"\\xff"]
for first in pieces:
    for second in pieces:
        for end in ends:
            for where in ("start", "end"):
                visit((first + second).encode() + end, where)
for size in range(1, 200):
    visit(b"w" * size, "end")
    visit(b"w " * size, "end")
print("visited")
"""


def test_nothing_is_read_beyond_the_data() -> None:
    """With the pages before and behind the data unreadable, a stray read would kill the process."""
    run_between_guard_pages(PROGRAM)
