"""Documents of the shipped impact sample that are no text or no longer one: each way to spoil a passage, by name.

A way takes a passage of prose and a generator and gives the spoilt text. `NOISE` leaves nothing that is worth reading; `ODD` may
leave prose whose form is odd, so those have no label; `DISGUISE` is what spammers do to an advert.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from random import Random

from tools.impact_pool import sentences

__all__ = ["DISGUISE", "NOISE", "ODD", "Way"]

Way = Callable[[str, Random], str]

_LOOK_ALIKE = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_SIGNS = "★☆♪♥→■□▲▼◆◇※|/\\~^+*=<>{}[]()"


def words(text: str) -> list[str]:
    """Words between blanks; of a script without blanks, pieces of two to four letters."""
    if " " in text:
        return text.split()
    bare = "".join(sign for sign in text if sign.isalpha())
    return [bare[start : start + 3] for start in range(0, len(bare), 3)]


# -- no text ----------------------------------------------------------------------------------------


def _shuffled(text: str, rng: Random) -> str:
    letters = list(text)
    rng.shuffle(letters)
    return "".join(letters)


def _random_letters(text: str, rng: Random) -> str:
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(60))


def _ruled(text: str, rng: Random) -> str:
    return f"{' '.join(words(text)[:24])} {rng.choice('-=_.*#') * rng.randint(60, 900)}"


def _signs(text: str, rng: Random) -> str:
    kept = " ".join(words(text)[: rng.choice((0, 0, 20))])
    return kept + "".join(rng.choices(_SIGNS, k=rng.randint(40, 400)))


def _addresses(text: str, rng: Random) -> str:
    pages = [
        f"https://www.example.org/{rng.randint(1, 9999)}/{rng.choice(string.ascii_lowercase)}.html"
        for _ in range(rng.randint(5, 40))
    ]
    return "\n".join(pages)


def _hash_tags(text: str, rng: Random) -> str:
    return " ".join(f"#{word.strip('.,;:!?，。、')}" for word in words(text)[:60])


def _one_word(text: str, rng: Random) -> str:
    return (text.split() or [""])[0][:12]


def _few_words(text: str, rng: Random) -> str:
    few = rng.sample(words(text), min(7, len(words(text))))
    return " ".join(rng.choice(few) for _ in range(rng.randint(150, 400)))


def _numbered(text: str, rng: Random) -> str:
    return " ".join(f"{word} {rng.randint(10_000, 9_999_999)}" for word in words(text)[:80])


def _glued(text: str, rng: Random) -> str:
    found = words(text)
    return " ".join("".join(found[start : start + 5]) for start in range(0, len(found), 5))


def _cut_short(text: str, rng: Random) -> str:
    return " ".join(word[: rng.choice((1, 2, 2))] for word in words(text))


def _handles(text: str, rng: Random) -> str:
    names = [
        f"@demo_{rng.choice(('shop', 'bot', 'chat', 'deal'))}{rng.randint(1, 99)}" for _ in range(rng.randint(2, 5))
    ]
    return f"{sentences(text)[0].strip()} {', '.join(names)}, t.me/demo{rng.randint(100, 999)}"


NOISE: Mapping[str, Way] = {
    "shuffled": _shuffled,
    "random": _random_letters,
    "ruled": _ruled,
    "signs": _signs,
    "addresses": _addresses,
    "hashtags": _hash_tags,
    "one_word": _one_word,
    "few_words": _few_words,
    "numbered": _numbered,
    "glued": _glued,
    "cut_short": _cut_short,
    "handles": _handles,
}


# -- odd text ---------------------------------------------------------------------------------------


def _ellipses(text: str, rng: Random) -> str:
    return (
        "... ".join(words(text)[: rng.choice((20, 60))])
        if rng.random() < 0.5
        else "\n".join(f"{one.strip()[:25]}..." for one in sentences(text))
    )


def _list(text: str, rng: Random) -> str:
    return "\n".join(f"- {word}" for word in words(text)[:50])


def _blanks(text: str, rng: Random) -> str:
    return (" " * rng.choice((4, 9, 15))).join(words(text))


def _brackets(text: str, rng: Random) -> str:
    return " ".join(f"(({word}))" if rng.random() < 0.8 else word for word in words(text))


def _links(text: str, rng: Random) -> str:
    size = rng.choice((40, 300))
    pages = ["".join(rng.choices(string.ascii_lowercase, k=size)) for _ in sentences(text)]
    return " ".join(
        f"{one.strip()} https://www.example.org/{page}" for one, page in zip(sentences(text), pages, strict=True)
    )


def _long_string(text: str, rng: Random) -> str:
    return f"{text}\n{''.join(rng.choices(string.ascii_lowercase, k=rng.choice((300, 1100, 1500))))}"


def _counters(text: str, rng: Random) -> str:
    lines = [
        f"{rng.randint(2, 99)} {rng.choice(('COMMENTS', 'likes', 'VIEWS', 'shares'))}"
        for _ in range(rng.choice((2, 5, 12)))
    ]
    return "\n".join(line for pair in zip(sentences(text), lines, strict=False) for line in pair)


def _ticked(text: str, rng: Random) -> str:
    return " ".join(f"{word} {rng.choice('+*/=>')}" for word in words(text))


def _capital_lines(text: str, rng: Random) -> str:
    return "\n".join(one.upper() if rng.random() < 0.5 else one for one in sentences(text))


def _no_marks(text: str, rng: Random) -> str:
    return "\n".join(one.strip().rstrip("。！？.!?।") for one in sentences(text))


def _counted(text: str, rng: Random) -> str:
    return " ".join(f"{word} {rng.randint(1, 9)}" for word in words(text))


def _column(text: str, rng: Random) -> str:
    return "\n".join(words(text)[:120])


ODD: Mapping[str, Way] = {
    "ellipses": _ellipses,
    "list": _list,
    "blanks": _blanks,
    "brackets": _brackets,
    "links": _links,
    "long_string": _long_string,
    "counters": _counters,
    "ticked": _ticked,
    "capital_lines": _capital_lines,
    "no_marks": _no_marks,
    "counted": _counted,
    "column": _column,
}


# -- disguise ---------------------------------------------------------------------------------------


def _some_alike(text: str, rng: Random) -> str:
    return " ".join(word.translate(_LOOK_ALIKE) if rng.random() < 0.3 else word for word in text.split(" "))


DISGUISE: Mapping[str, Way] = {
    "upper": lambda text, rng: text.upper(),
    "spaced": lambda text, rng: " ".join(text[:400]),
    "look_alike": lambda text, rng: text.translate(_LOOK_ALIKE),
    "some_alike": _some_alike,
    "wide": lambda text, rng: text.translate(_WIDE),
    "swapped": lambda text, rng: text.swapcase(),
    "emoji": lambda text, rng: "".join(
        sign + (rng.choice("🔥🎁💰👉✨") if rng.random() < 0.05 else "") for sign in text
    ),
    "dotted": lambda text, rng: "".join(sign + rng.choice("★＊.-") for sign in text[:300]),
}
