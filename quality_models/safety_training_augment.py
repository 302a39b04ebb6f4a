"""Rows as spammers and bystanders might have written them: other spellings, and company of an innocent sentence.

Half of the rows, unsafe and harmless alike, get one or two changes of spelling: else the model would learn that odd
spelling is unsafe. A third of the rows is put before or after a harmless text of the same language, and keeps its labels.
All chance comes from seed, epoch and the row's place.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from quality_models.safety_training_rows import Row

__all__ = ["augmented"]

SPELLED, JOINED = 0.5, 0.33
LONGEST_COMPANY = 120
"""Characters of a harmless text that may stand beside a row: an advert must stay within what the model reads."""

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
SEPARATORS = " .-_*·~|/★、丨"
EMOJI = "🔥💰✅👉❤😍🎁⭐💯🚀👇📣😊🌸"
LOOK_ALIKES = str.maketrans(
    {
        **dict(zip("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ", strict=True)),
        **dict(zip("αοερ", "aoep", strict=True)),
        **dict(zip("асеорху", "aceopxy", strict=True)),
    }
)
LEET = str.maketrans("oieastOIEAST", "013@5+013@5+")
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}
Change = Callable[[str, random.Random], str]


def _full_width(text: str, draw: random.Random) -> str:
    return text.translate(FULL_WIDTH)


def _invisible(text: str, draw: random.Random) -> str:
    return _spread(text, draw, INVISIBLE, 0.3)


def _separated(text: str, draw: random.Random) -> str:
    """One separator within a stretch of up to 12 characters."""
    if len(text) < 3:
        return text
    start = draw.randrange(len(text) - 2)
    end = min(len(text), start + draw.randint(3, 12))
    mark = draw.choice(SEPARATORS)
    return text[:start] + mark.join(text[start:end]) + text[end:]


def _look_alikes(text: str, draw: random.Random) -> str:
    return "".join(c.translate(LOOK_ALIKES) if draw.random() < 0.4 else c for c in text)


def _leet(text: str, draw: random.Random) -> str:
    return "".join(c.translate(LEET) if draw.random() < 0.3 else c for c in text)


def _case(text: str, draw: random.Random) -> str:
    kind = draw.randrange(3)
    if kind == 0:
        return text.upper()
    return text.lower() if kind == 1 else "".join(c.upper() if draw.random() < 0.5 else c.lower() for c in text)


def _repeated(text: str, draw: random.Random) -> str:
    return "".join(c * draw.randint(2, 4) if c.isalpha() and draw.random() < 0.06 else c for c in text)


def _emoji(text: str, draw: random.Random) -> str:
    return _spread(text, draw, EMOJI, 0.08)


def _spread(text: str, draw: random.Random, marks: str, share: float) -> str:
    return "".join(c + draw.choice(marks) if draw.random() < share else c for c in text)


CHANGES: tuple[Change, ...] = (
    _full_width, _invisible, _separated, _look_alikes, _leet, _case, _repeated, _emoji,
)  # fmt: skip


def augmented(rows: Sequence[Row], seed: int, epoch: int) -> list[Row]:
    """As many rows in the same order, each perhaps changed."""
    company: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if not row.labels and len(row.text) <= LONGEST_COMPANY:
            company[row.lang].append(row.text)
    return [
        row._replace(text=_changed(row, company.get(row.lang, []), random.Random(f"{seed} {epoch} {at}")))
        for at, row in enumerate(rows)
    ]


def _changed(row: Row, company: Sequence[str], draw: random.Random) -> str:
    text = row.text
    if draw.random() < SPELLED:
        for change in draw.sample(CHANGES, draw.choice((1, 1, 2))):
            text = change(text, draw)
    if company and draw.random() < JOINED:
        beside = draw.choice(company)
        gap = draw.choice((" ", "\n", "\n\n", "。" if row.lang.startswith(("zh", "ja")) else ". "))
        text = f"{beside}{gap}{text}" if draw.random() < 0.5 else f"{text}{gap}{beside}"
    return text if text.strip() else row.text
