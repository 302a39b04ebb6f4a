"""Figures of the filter `language`: texts of 75 languages, pages of two languages, forms of Chinese.

What it names are scores, so a changed threshold moves only what is dropped: `language.kept` here, and the documents' own figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from tests.bench.bench_language import left_out
from tests.bench.language_answers import Answer
from tests.bench.language_asked import main_form
from tests.bench.language_gold import LENGTHS, NOTHING, Known, Page, Sentence, chinese_lines, known_languages, macro_f1
from tests.bench.language_pages import han_only_lines, line_score, mix_score
from tests.gate.documents import alone
from tests.gate.figures import NOTHING_CHANGED, Changed, Figure, Figures, counted
from tests.gate.gold import Gold

__all__ = ["language", "pages", "sentences"]

Told = Sequence[tuple[Sentence, Answer]]
JAPANESE = ("jpn", "und")
"""What a line of Han characters in a Japanese page may be called."""
SHARES = ((0.0, 0.2), (0.2, 0.3), (0.3, 0.4), (0.4, 0.45))
"""Of the other language, on pages of Chinese and Japanese: from the first to below the second."""


def language(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    return {
        **sentences(gold, changed),
        **pages(gold, changed),
        **forms(gold, changed),
        **alone("language")(gold, changed),
    }


# -- texts of one language --------------------------------------------------------------------------


def sentences(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """By length: each language found, macro F1; each language named rightly; what no model knows; what is kept."""
    texts = gold.texts("sentences", lambda: [one.text for one in gold.sentences])
    known = known_languages()
    told = list(zip(gold.sentences, gold.answers(texts, changed), strict=True))
    of_both = [(one, found) for one, found in told if one.language in known.both]
    found: Figures = {}
    for length, (low, high) in LENGTHS.items():
        some = [(one, answer) for one, answer in of_both if low <= one.length < high]
        found |= _of_length(length, some)
    long = [answer for one, answer in of_both if one.length >= LENGTHS["20 to 60"][1]]
    found["language.answered.>= 60"] = counted(answer.language != NOTHING for answer in long)
    found |= _grouped(
        "language.precision",
        ((answer.language, one.language == answer.language) for one, answer in of_both),
        known.both,
    )
    reasons = gold.judged(texts, "language", changed).reasons
    kept = [(one, why is None) for (one, _), why in zip(told, reasons, strict=True) if one.language in known.both]
    for length, (low, high) in LENGTHS.items():
        found[f"language.kept.{length}"] = counted(hit for one, hit in kept if low <= one.length < high)
    return {**found, **_unknown(told, known)}


def _of_length(length: str, told: Told) -> Figures:
    answers, truth = [answer.language for _, answer in told], [one.language for one, _ in told]
    right = [(one, answer == one) for answer, one in zip(answers, truth, strict=True)]
    return {
        f"language.macro_f1.{length}": Figure(macro_f1(answers, truth) * len(told), len(told)),
        f"language.found {length}.all": counted(hit for _, hit in right),
        **_grouped(f"language.found {length}", right),
    }


def _grouped(name: str, said: Iterable[tuple[str, bool]], wanted: Iterable[str] | None = None) -> Figures:
    """Hits by group, in alphabetical order. wanted: no other groups, and each of them."""
    groups: dict[str, list[bool]] = {one: [] for one in sorted(wanted or ())}
    for group, hit in said:
        if wanted is None or group in groups:
            groups.setdefault(group, []).append(hit)
    return {f"{name}.{group}": counted(groups[group]) for group in sorted(groups)}


def _unknown(told: Told, known: Known) -> Figures:
    """Texts in languages that neither fastText nor langdetect knows, not named as one that either knows; the same where no other
    voter knows them either: each language is taken out of these in turn."""
    mine = [(one, answer.language) for one, answer in told if one.language not in known.either]
    gold = [one for one, _ in mine]
    alone = left_out(gold, [frozenset({code}) for code in sorted({one.language for one in gold})])
    found: Figures = {}
    for name, codes in (("not_misnamed", [code for _, code in mine]), ("not_misnamed_unknown_to_all", alone)):
        for least in (0, 60):
            said = [(code in known.either) for one, code in zip(gold, codes, strict=True) if one.length >= least]
            found[f"language.{name}.>= {least}"] = counted(not named for named in said)
    return found


# -- mixed pages ------------------------------------------------------------------------------------


def pages(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """Pages, their lines, and mixes."""
    texts = gold.texts("pages", lambda: [one.text for one in gold.pages])
    told = gold.answers(texts, changed)
    reached = line_score(gold.pages, [one.lines for one in told])
    mixes = mix_score(gold.pages, told)
    return {
        **_clear(gold.pages, told),
        "language.line_characters.all": Figure(reached.right.total(), reached.all.total()),
        **{
            f"language.line_characters.{code}": Figure(reached.right[code], n)
            for code, n in sorted(reached.all.items())
        },
        "language.mixes_found.pages": Figure(*mixes.mixed),
        "language.mixes_found.within lines": Figure(*mixes.inline),
        "language.mixes_found.both seen": Figure(*mixes.seen),
        "language.not_mixed.little of another": Figure(mixes.spared[1] - mixes.spared[0], mixes.spared[1]),
        **_of_one(gold.pages, told),
        **_han_only(gold.pages, told),
    }


def _clear(gold: Sequence[Page], told: Sequence[Answer]) -> Figures:
    """Pages whose shares differ by more than 10 points, and that are named as the language of most characters."""
    rows = [(page, one.language == page.majority) for page, one in zip(gold, told, strict=True) if page.clear]
    return _grouped("language.pages", ((group, hit) for page, hit in rows for group in _groups(page)))


def _groups(page: Page) -> Iterator[str]:
    """What a page is counted among: the pair names the language of most characters first."""
    yield "all"
    if len(page.characters) == 2:
        yield page.pair
    if set(page.characters) == {"zho", "jpn"}:
        yield from (
            f"Chinese and Japanese, {a:.0%} to {b:.0%} of the other" for a, b in SHARES if a <= page.other_share < b
        )
    if page.other_share <= 0.2 and not any("+" in language for _, language in page.lines):
        yield "lines of one language, 80% in one"


def _of_one(gold: Sequence[Page], told: Sequence[Answer]) -> Figures:
    """Pages of one language, not called mixed: but for a few that quote English."""
    alone = [one for page, one in zip(gold, told, strict=True) if len(page.characters) == 1]
    return {
        "language.not_mixed.one language": counted(one.kind != "mixed" for one in alone),
        "language.not_mixed.one language, or with English": counted(
            one.kind != "mixed" or "eng" in one.shares for one in alone
        ),
    }


def _han_only(gold: Sequence[Page], told: Sequence[Answer]) -> Figures:
    """Lines of Han characters only, in pages all or mostly Japanese: called Japanese or nothing."""
    found: Figures = {}
    for kind, labels in han_only_lines(gold, told).items():
        if kind != "other":
            codes = Counter({label: n for label, n in labels.items() if label.partition("_")[0] in JAPANESE})
            found[f"language.lines_without_kana.{kind}"] = Figure(codes.total(), labels.total())
    return found


# -- forms of Chinese -------------------------------------------------------------------------------


def forms(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """Simplified and Traditional, of documents and of lines of 20 characters by themselves."""
    found: Figures = {}
    for form, ones in gold.chinese.items():
        documents = gold.texts(f"documents in {form}", ones.copy)
        lines = gold.texts(f"lines in {form}", partial(chinese_lines, ones))
        of_documents = [label for label in map(main_form, gold.answers(documents, changed)) if label]
        found[f"language.form.{form} documents"] = counted(label == form for label in of_documents)
        found[f"language.form.{form} lines"] = counted(one.label == form for one in gold.answers(lines, changed))
    return found
