"""Texts on which a fast tokenizer library must equal the reference before it is used.

The frozen probes, every kind of text on which tokenizers were seen to differ, mixtures of them, the look-alikes of
the tokenizer's own added tokens, and characters on both sides of every border between Unicode categories: pre-tokenisers
are regular expressions over categories, and libraries carry different versions of Unicode.

Always the same texts. About 400 kB; the stock library needs 150 ms for them.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from tokenization.probes import PROBES

__all__ = ["trial_texts"]

PIECES = (
    *("word", "Word", "WORDS ", " the", "don't", "DON'T ", "'s", "'LL", "’ll", "naïve ", "3.14", "12345", "1", " 0x7F"),
    *("\n", "\n\n", "\r\n", "\r", "\t", " ", "  ", "     ", "\u3000", "\u00a0", "\u2003", "\u2028", "\u2029", "\x85"),
    *("\0", "\0\0", "\x1b[0m", "\x7f", "\ufeff", "\u200b", "\u200d", "\u202e", "\u00ad", "\ufffd", "\uffff"),
    *(
        "漢字",
        "好。",
        "「",
        "》",
        "かな",
        "カナー",
        "한국어",
        "ᄒ",
        "ไทย",
        "မြန်မာ",
        "हिन्दी",
        "العربية",
        "עִבְרִית",
        "ქართ",
    ),
    *("e\u0301", "\u0301", "\u0301\u0302\u0303", "\u0e31", "\u20e3", "ＡＢ１２", "ｱｲﾊﾟ", "①½²", "٣३三Ⅻ", "ǅßİſK"),
    *("😀", "👩‍👩‍👧", "👋🏽", "🇯🇵", "❤️", "𠀀", "𝔘", "𓂀", "\U0010ffff", "\ue000"),
    *("...", "!?", "--", "====", "__", "://", "</p>", "{}", "$x^2$", "#", "@", "&amp;", "\\n", "\u2026", "«", "№"),
    *("<|endoftext|>", "<|im_start|>", "</s>", "<s>", "[CLS]", "<unk>", "<0x0A>", "Ġ", "▁", "Ċ", "##", "@@"),
)
MIXTURES = 400
RUNS = (
    "7",
    "漢",
    "ア",
    " ",
    "\n",
    "\r\n",
    "\t",
    "_",
    "=",
    "!",
    "\u0301",
    "😀",
    "\0",
    "ไ",
    "don't",
    "a ",
    "A1",
    "\u3000",
)


def trial_texts(added: Sequence[str]) -> list[str]:
    """All trial texts for a tokenizer with these added tokens (the first 100 of them are imitated)."""
    return [*PROBES, *_mixtures(), *_long_runs(), *_characters(), *_imitations(added[:100])]


@cache
def _mixtures() -> tuple[str, ...]:
    dice = random.Random(20_261_129)
    return tuple("".join(dice.choices(PIECES, k=dice.randint(1, 24))) for _ in range(MIXTURES))


def _long_runs() -> Iterator[str]:
    """5,000 equal letters, and runs of lengths on both sides of 64 and of 1,024, alone and inside a text."""
    yield "a" * 5_000
    for unit in RUNS:
        yield from (unit * 63, unit * 64, unit * 65, f"x{unit * 130}y", unit * 1_025)


@cache
def _characters() -> tuple[str, ...]:
    """Both sides of every border between categories in planes 0 to 2, each between letters, blanks and digits."""
    texts: list[str] = []
    before = ""
    for point in range(0x30000):
        if 0xD800 <= point < 0xE000:
            continue
        category = unicodedata.category(chr(point))
        if category != before and point:
            borders = [chr(p) for p in (point - 1, point) if not 0xD800 <= p < 0xE000]
            texts.append("".join(f"a{c}b {c}1{c}{c}\n" for c in borders))
        before = category
    return tuple("".join(texts[i : i + 16]) for i in range(0, len(texts), 16))


def _imitations(added: Sequence[str]) -> Iterator[str]:
    """Text that spells an added token, whole, doubled, cut, in other cases, beside other things."""
    for name in added:
        yield from (
            name,
            f"a{name}b",
            f" {name} ",
            f"{name}{name}",
            f"\n{name}\n",
            name[:-1],
            name.upper(),
            f"漢{name}1",
        )
