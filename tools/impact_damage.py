"""Documents of the shipped impact sample as accidents and spammers make them: wrong charsets, repetition, disguise, copies, noise.

Every maker yields documents without end, each drawn with the generator it is given. Labels as in `impact_pages`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from demo.copies import Source, exact_copies, near_copies
from tools.impact_noise import DISGUISE, NOISE, ODD
from tools.impact_pages import JUNK, label
from tools.impact_pool import Made, Pool, sentences

__all__ = ["copies", "disguises", "injected", "misread", "mixed", "noises", "oddities", "repeats"]

CHARSETS: Mapping[str, Sequence[tuple[str, str]]] = {
    "zh": (("utf-8", "latin-1"), ("utf-8", "gb18030"), ("utf-8", "gbk"), ("utf-8", "gbk"), ("gb18030", "latin-1"), ("utf-8", "cp1252")),
    "zh-Hant": (("utf-8", "latin-1"), ("big5hkscs", "gb18030"), ("big5hkscs", "latin-1")),
    "ja": (("utf-8", "latin-1"), ("utf-8", "cp932"), ("shift_jis", "latin-1"), ("euc_jp", "gb18030")),
    "ko": (("utf-8", "latin-1"), ("euc_kr", "gb18030"), ("euc_kr", "latin-1")),
    "ru": (("utf-8", "cp1251"), ("koi8-r", "cp1251"), ("cp1251", "koi8-r"), ("utf-8", "latin-1")),
    "de": (("utf-8", "latin-1"), ("utf-8", "cp1252"), ("latin-1", "utf-8")),
    "fr": (("utf-8", "latin-1"), ("utf-8", "cp1252"), ("latin-1", "utf-8")),
    "es": (("utf-8", "cp1252"), ("latin-1", "utf-8")),
    "vi": (("utf-8", "latin-1"), ("utf-8", "cp1252")),
    "th": (("utf-8", "latin-1"), ("cp874", "latin-1")),
    "ar": (("utf-8", "cp1252"), ("cp1256", "latin-1")),
    "hi": (("utf-8", "latin-1"), ("utf-8", "cp1252")),
}  # fmt: skip
"""What a text was written in, and what it is taken for."""


def misread(pool: Pool, rng: Random) -> Iterator[Made]:
    """An article read in a wrong charset, as a whole or from a place on; and one in which characters were lost."""
    while True:
        lang = pool.any_language(rng)
        if lang not in CHARSETS:
            continue
        prose = pool.passage(lang, rng)
        if rng.random() < 0.25:
            share = rng.choice((0.002, 0.004, 0.01, 0.04, 0.15))
            text = "".join("\ufffd" if rng.random() < share else sign for sign in prose)
            yield Made(
                text, lang, "lost_characters", "junk" if share >= 0.04 else "good" if "\ufffd" not in text else None
            )
            continue
        written, read = rng.choice(CHARSETS[lang])
        found = sentences(prose)
        cut = rng.choice((0, 0, 0, len(found) // 2, len(found) - 1))
        sound, broken = "".join(found[:cut]), "".join(found[cut:])
        # Some programs leave out what they cannot read, others put a mark there.
        text = sound + broken.encode(written, "replace").decode(read, rng.choice(("ignore", "ignore", "replace")))
        # A language of ASCII with few other letters stays readable.
        touched = sum(ord(sign) > 127 for sign in broken) / len(prose)
        yield Made(text, lang, f"misread_{written}_as_{read}", "junk" if touched > 0.3 else None)


def repeats(pool: Pool, rng: Random) -> Iterator[Made]:
    """A sentence or paragraph over and over; a line that comes back between others; words in a circle."""
    while True:
        lang = pool.any_language(rng)
        whole = pool.passage(lang, rng)
        found = [one.strip() for one in sentences(whole) if one.strip()]
        one, times = rng.choice(found), rng.choice((2, 3, 5, 9, 20, 40))
        kind = rng.choice(("lines", "paragraphs", "interleaved", "phrase", "whole"))
        if kind == "lines":
            text, prose = "\n".join([whole, *[one] * times]), len(whole)
        elif kind == "paragraphs":
            text, prose = "\n\n".join([whole, *[whole.split("\n\n")[0]] * min(times, 9)]), len(whole)
        elif kind == "interleaved":
            text = "\n".join(line for sentence in found for line in (sentence, one[:60]))
            prose = len("".join(found))
        elif kind == "phrase":
            words = one.split() if " " in one else [one[:6]]
            text, prose = (" " if " " in one else "").join(words[: rng.randint(2, 8)] * times * 3), 1
        else:
            text, prose = "\n\n".join([whole] * min(times, 6)), len(whole)
        yield Made(text, lang, f"repeat_{kind}", label(prose, len(text)))


def disguises(pool: Pool, rng: Random) -> Iterator[Made]:
    """Adverts, and a few articles, in capitals, letters spaced out, look-alike or full-width letters, emoji, swapped case."""
    adverts = list(pool.adverts())
    while True:
        way = rng.choice(sorted(DISGUISE))
        lang, text, quality = "", "", None
        if rng.random() < 0.7:
            row = rng.choice(adverts)
            lang, text, quality = row.lang, row.text, "junk"
        else:
            lang = rng.choice(("en", "de", "fr", "es", "ru", "zh"))
            text = pool.passage(lang, rng)
        changed = DISGUISE[way](text, rng)
        # Where there is no case and no Latin letter but in names, these change next to nothing.
        if lang not in ("zh", "zh-Hant", "ja", "ko", "th", "ar", "hi") or way not in (
            "upper",
            "swapped",
            "look_alike",
            "some_alike",
        ):
            yield Made(changed, lang, f"disguise_{way}", quality)


def injected(pool: Pool, rng: Random) -> Iterator[Made]:
    """An article into which spammers have put an advert, once or several times, as hacked pages have it."""
    by_kind: dict[str, list[Made]] = {}
    for advert in pool.adverts():
        if advert.lang in pool.articles:
            by_kind.setdefault(advert.kind, []).append(advert)
    while True:
        advert = rng.choice(by_kind[rng.choice(sorted(by_kind))])
        prose = "\n\n".join(pool.passage(advert.lang, rng) for _ in range(rng.randint(1, 5)))
        paragraphs = prose.split("\n\n")
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            paragraphs.insert(rng.randint(0, len(paragraphs)), advert.text)
        text = "\n\n".join(paragraphs)
        yield Made(text, advert.lang, "injected", "junk" if len(prose) / len(text) <= JUNK else None)


def mixed(pool: Pool, rng: Random) -> Iterator[Made]:
    """Paragraphs in two languages, from a sentence of the second to one half."""
    while True:
        one, other = rng.sample(pool.languages(), 2)
        parts = sentences(pool.article(other, rng))[: rng.choice((1, 2, 4, 12))]
        paragraphs = pool.passage(one, rng).split("\n\n")
        for part in parts:
            paragraphs.insert(rng.randint(0, len(paragraphs)), part.strip())
        yield Made("\n".join(paragraphs), one, "mixed_languages", None)


def noises(pool: Pool, rng: Random) -> Iterator[Made]:
    """What is no text: letters in random order, ruled lines, signs, addresses, single words, words in a circle."""
    while True:
        lang, way = pool.any_language(rng), rng.choice(sorted(NOISE))
        yield Made(NOISE[way](pool.passage(lang, rng), rng), lang, f"noise_{way}", "junk")


def oddities(pool: Pool, rng: Random) -> Iterator[Made]:
    """Prose in an odd form: words in a list, between blanks or brackets, with links, counters, capitals, without marks."""
    while True:
        lang, way = pool.any_language(rng), rng.choice(sorted(ODD))
        yield Made(ODD[way](pool.passage(lang, rng), rng), lang, f"odd_{way}", None)


def copies(originals: Sequence[Source], langs: Mapping[str, str], n: Sequence[int], rng: Random) -> list[Made]:
    """Exact copies, near copies, and edited ones that are no copies any more: so many of each."""
    exact = exact_copies(originals, n[0], rng)
    near, apart = near_copies([row for row in originals if len(row.text) >= 150], n[1], n[2], rng)
    made = [Made(row.text, langs[row.of], f"copy_{row.how}", "copy") for row in (*exact, *near)]
    return [*made, *(Made(row.text, langs[row.of], f"edited_{row.how}", None) for row in apart)]
