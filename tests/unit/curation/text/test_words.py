"""Words in every script: what is one, what splits, what joins."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.text import buffers, count_words, word_hashes, word_spans

WORDS = [
    # spaced scripts: runs of letters, marks and digits
    ("The quick brown fox.", "The|quick|brown|fox"),
    ("naïve café e\u0301te\u0301", "naïve|café|e\u0301te\u0301"),
    ("Öl, ελληνικά; русский", "Öl|ελληνικά|русский"),
    ("H2O m² No.5 B52s", "H2O|m²|No|5|B52s"),
    ("안녕하세요 세계", "안녕하세요|세계"),
    ("हिन्दी में, தமிழ் மொழி", "हिन्दी|में|தமிழ்|மொழி"),
    ("العَرَبِيَّة لغة", "العَرَبِيَّة|لغة"),
    ("Ինչպե՞ս ես։", "Ինչպե՞ս|ես"),
    # single joiners between letters or digits
    ("don't rock'n'roll l’eau O‘zbek paral·lel", "don't|rock'n'roll|l’eau|O‘zbek|paral·lel"),
    ("'quoted' 'tis dogs' it''s", "quoted|tis|dogs|it|s"),
    ("snake_case _under_ dunder__init", "snake_case|under|dunder|init"),
    ('צה"ל ג׳ירפה "שלום" a"b', 'צה"ל|ג׳ירפה|שלום|a|b'),
    # hyphens, dots and other signs split letters
    ("well-known e.g. a.b@c.de x/y", "well|known|e|g|a|b|c|de|x|y"),
    # numbers
    ("1,234.5 3.14 1'000 .5 5. 1,,2 1.a", "1,234.5|3.14|1'000|5|5|1|2|1|a"),
    ("١٬٢٣٤٫٥ १२३ ๑๒ ２，０００", "١٬٢٣٤٫٥|१२३|๑๒|２，０００"),
    # unspaced scripts: each character with its marks
    ("中文mixed字", "中|文|mixed|字"),
    ("コーヒーは、葛\U000e0100", "コ|ー|ヒ|ー|は|葛"),
    ("か\u3099ｶﾞ", "か\u3099|ｶ|ﾞ"),
    ("ที่นี่", "ที่|นี่"),
    ("ខ្មែរ မြန်မာ", "ខ្|មែ|រ|မြ|န်|မာ"),
    ("ㄅㄆ ꆈꌠ 𠀀𪚥", "ㄅ|ㄆ|ꆈ|ꌠ|𠀀|𪚥"),
    ("3月4日 第1.5版", "3|月|4|日|第|1.5|版"),
    # characters to ignore do not split, and are not part of a word's end
    ("می‌روم soft\u00adhyphen bom\ufeffmed end\u200d ", "می‌روم|soft\u00adhyphen|bom\ufeffmed|end"),
    ("zero\u200bwidth\u2028line", "zero|width|line"),
    # no words
    ("👍🏽 👨‍👩‍👧 🇩🇪 ❤️ — … ★ $ © \u0301 \x00", ""),
    ("a👍b x\x00y", "a|b|x|y"),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
@pytest.mark.parametrize("indent", [0, 61, 64])
def test_words(text: str, words: str, indent: int) -> None:
    """The words of a text, wherever the 64 bytes that are read at once happen to end."""
    data, offsets = buffers(pa.array(["." * indent + text + "." * 80], pa.large_string()))
    spans = word_spans(data, offsets)
    raw = data.tobytes()

    expected = words.split("|") if words else []
    assert expected == [raw[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]
    assert len(spans.starts) == count_words(data, offsets)[0] == spans.offsets[1]


def test_more_words_than_a_handful() -> None:
    """A document of many words is found in handfuls, and none is lost or doubled between them."""
    text = "字 a b1 " * 5000 + "x" * 10_000
    data, offsets = buffers(pa.array([text, "", text], pa.large_string()))
    spans = word_spans(data, offsets)

    assert spans.offsets.tolist() == [0, 15_001, 15_001, 30_002]
    assert text.split() == [
        text.encode()[a:b].decode() for a, b in zip(spans.starts[:15_001], spans.ends, strict=False)
    ]


FOLDED = [
    ("The", "the"),
    ("STRASSE", "strasse"),
    ("ẞtraße", "ßtraße"),
    ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
    ("ПРИВЕТ", "привет"),
    ("K", "k"),
    ("Ⱥ", "ⱥ"),
    ("Ａｂ", "ａｂ"),
    ("𐐀", "𐐨"),
    ("DON'T", "don't"),
    ("A" * 100, "a" * 100),
    ("É" * 100, "é" * 100),
]


@pytest.mark.parametrize(("word", "folded"), FOLDED)
def test_folded_hashes(word: str, folded: str) -> None:
    """Words that differ in case only have one folded hash, that of the folded word, and two plain ones."""
    data, offsets = buffers(pa.array([word, folded], pa.large_string()))
    plain = word_hashes(data, offsets).values
    values = word_hashes(data, offsets, folded=True).values

    assert plain[0] != plain[1] == values[0] == values[1]


def test_only_case_is_folded() -> None:
    """Accents, compatibility forms and full foldings stay apart: a normalisation step does that."""
    words = ["e", "é", "e\u0301", "ß", "ss", "ﬁ", "fi", "ｅ"]
    data, offsets = buffers(pa.array(words, pa.large_string()))

    assert len(words) == len(set(word_hashes(data, offsets, folded=True).values.tolist()))


def test_seeds_differ() -> None:
    """Another seed is another hash."""
    data, offsets = buffers(pa.array(["word"], pa.large_string()))

    assert word_hashes(data, offsets, seed=1).values != word_hashes(data, offsets, seed=2).values
