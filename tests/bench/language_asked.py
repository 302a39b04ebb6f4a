"""What was asked of language identification when it was planned, and what is reached; the gate holds the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.bench.language_answers import Answer, answers
from tests.bench.language_gold import LENGTHS, NOTHING, Known, Page, Sentence, chinese_lines, macro_f1, share
from tests.bench.language_pages import han_only_lines, line_score, mix_score, pages_wrong

__all__ = [
    "F1",
    "LINES",
    "MISNAMED",
    "MIXED",
    "NO_ANSWER",
    "PAGES",
    "RIGHT_FORM",
    "Asked",
    "main_form",
    "misnamed",
    "reached",
]

F1 = {"< 20": 0.82, "20 to 60": 0.97, ">= 60": 0.995}
MISNAMED, NO_ANSWER = 0.10, 0.01
PAGES, LINES, RIGHT_FORM, MIXED = 0.97, 0.998, 0.99, 0.99


class Asked(NamedTuple):
    """A figure that was asked for, at least or at most, and the one reached."""

    what: str
    asked: float
    reached: float
    at_most: bool = False

    @property
    def kept(self) -> bool:
        return self.reached <= self.asked if self.at_most else self.reached >= self.asked

    def row(self) -> str:
        """Of a Markdown table."""
        sign, verdict = ("<=" if self.at_most else ">="), ("yes" if self.kept else "**no**")
        return f"| {self.what} | {sign} {self.asked:g} | {self.reached:.4f} | {verdict} |"


def misnamed(gold: Sequence[Sentence], codes: Sequence[str], names: frozenset[str]) -> float:
    """Share of texts that are named as one of some languages, and wrongly."""
    return share(code in names and code != one.language for one, code in zip(gold, codes, strict=True))


def main_form(answer: Answer) -> str:
    """The form of Chinese that most of a text's Chinese letters are in; empty where it has none."""
    forms = {label: part for label, part in answer.forms.items() if label.startswith("zho")}
    return max(forms, key=lambda label: forms[label]) if forms else ""


def reached(
    sentences: Sequence[Sentence],
    ours: Sequence[Answer],
    known: Known,
    pages: Sequence[Page],
    told: Sequence[Answer],
    chinese: dict[str, list[str]],
) -> Iterator[Asked]:
    """Each figure asked for of accuracy."""
    both = list(zip(sentences, ours, strict=True))
    for length, least in F1.items():
        low, high = LENGTHS[length]
        rows = [
            (a.language, one.language) for one, a in both if one.language in known.both and low <= one.length < high
        ]
        yield Asked(f"macro F1, {length} characters", least, macro_f1(*zip(*rows, strict=True)))
    unknown = [(one, found.language) for one, found in both if one.language not in known.either]
    wrong = misnamed([one for one, _ in unknown], [code for _, code in unknown], known.either)
    yield Asked("texts in languages that neither model knows, named as one that either knows", MISNAMED, wrong, True)
    long = [found for one, found in both if one.language in known.both and one.length >= 60]
    nothing = share(found.language == NOTHING for found in long)
    yield Asked("no answer to texts of 60 characters and more in known languages", NO_ANSWER, nothing, True)
    yield from _of_pages(pages, told)
    for form, texts in chinese.items():
        forms = [form_ for form_ in map(main_form, answers(texts)) if form_]
        yield Asked(f"documents in {form}", RIGHT_FORM, share(one == form for one in forms))
        lines = answers(chinese_lines(texts))
        yield Asked(f"single lines in {form}", RIGHT_FORM, share(one.label == form for one in lines))


def _of_pages(pages: Sequence[Page], told: Sequence[Answer]) -> Iterator[Asked]:
    codes = [one.language for one in told]
    for what, pair in (("clear pages", None), ("clear pages of Chinese and Japanese", {"zho", "jpn"})):
        rows = [
            (page, code)
            for page, code in zip(pages, codes, strict=True)
            if page.clear and pair in (None, set(page.characters))
        ]
        wrong = pages_wrong([page for page, _ in rows], [code for _, code in rows])
        yield Asked(what, PAGES, 1 - len(wrong) / len(rows))
    yield Asked("characters of lines, rightly labelled", LINES, line_score(pages, [one.lines for one in told]).accuracy)
    mixes = mix_score(pages, told)
    yield Asked("mixes of languages within lines found as mixed", MIXED, mixes.inline[0] / mixes.inline[1])
    for kind in ("all Japanese", "mostly Japanese"):
        labels = han_only_lines(pages, told)[kind]
        foreign = sum(n for label, n in labels.items() if label.startswith(("zho", "kor")))
        yield Asked(
            f"lines without kana in pages {kind}, called Chinese or Korean", 0.0, foreign / labels.total(), True
        )
