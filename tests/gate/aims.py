"""What was asked for when the filters were planned, beside what they reach: aims, which do not move.

A floor says what must not be lost; an aim says what is wanted. An aim that is missed is named here with the figure of the day, so
that reaching it, or missing another, shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from tests.bench.language_asked import F1, LINES, MISNAMED, MIXED, NO_ANSWER, PAGES, RIGHT_FORM
from tests.gate.figures import Figures
from tests.gate.floors import SAME, family_of

__all__ = ["AIMS", "MISSED", "aims_broken"]

DISGUISED = 0.95
LARGE = "zh en ja de lzh fr es ru ko el ro pt vi th it ca nl id da sv"
"""Languages with 50 good documents and more."""

AIMS: Mapping[str, float] = {
    **{f"language.macro_f1.{length}": asked for length, asked in F1.items()},
    "language.answered.>= 60": 1 - NO_ANSWER,
    "language.not_misnamed.*": 1 - MISNAMED,
    "language.not_misnamed_unknown_to_all.*": 1 - MISNAMED,
    "language.pages.*": PAGES,
    "language.pages.lines of one language, 80% in one": 1.0,
    "language.line_characters.all": LINES,
    "language.mixes_found.*": MIXED,
    "language.not_mixed.one language": 0.98,
    "language.not_mixed.one language, or with English": 1.0,
    "language.lines_without_kana.*": 1.0,
    "language.form.*": RIGHT_FORM,
    **{f"quality.good_kept.{language}": 0.97 for language in LARGE.split()},
    "quality.whole.junk_dropped": 0.90,
    "quality.held_out.good_kept_mean": 0.97,
    "quality.held_out.junk_dropped": 0.90,
    "quality.parts.main content kept": 0.95,
    "near.recall.0.9": 0.999,
    "near.recall.0.8": 0.999,
    "near.precision.0.9": 0.999,
    "near.precision.0.8": 0.999,
    "safety_terms.harmless_kept.all": 0.995,
    "safety_terms.precision.Chinese chat": 0.98,
    "safety_terms_own.strong_terms.in plain spelling": 0.99,
    "safety_terms_own.disguised.*": DISGUISED,
    "safety_terms_own.adverts.*": 0.95,
    "safety_terms_own.innocent_kept.*": 1.0,
    **{
        f"safety.{what}.{group}": 0.90
        for group in ("by hand, adverts", "suite zh", "suite en", "own en, usual words", "own zh")
        for what in ("recall", "precision")
    },
    "safety.kept.hard negatives": 0.98,
    "safety.kept.good documents": 0.997,
    "safety_own.kept.look-alikes": 1.0,
    "safety_own.adverts_of_no_list.all": DISGUISED,
    "rescore.chosen_is_junk.*": 0.6,
    "rescore.good_spared_at_worst.*": 0.96,
}
"""Figure, or pattern of figures -> share that was asked for."""

MISSED: Mapping[str, str] = {
    "language.macro_f1.>= 60": "0.9935 on 2026-11-30",
    "language.not_misnamed_unknown_to_all.>= 0": "0.862 on 2026-11-30",
    "language.pages.kor + zho": "57 of 59 on 2026-11-30: in two pages of inline mixes, code in the Korean half counts in the gold",
    "safety.recall.own en, usual words": ".71 on 2026-11-30: the cascade reads too little",
    "safety.recall.own zh": ".30 on 2026-11-30: riddles; .51 if the model reads all",
    "safety_own.adverts_of_no_list.all": ".83 on 2026-11-30; .94 if the model reads all",
}
"""Aims that are missed, and why."""


def aims_broken(
    figures: Figures, families: Collection[str], aims: Mapping[str, float] = AIMS, missed: Mapping[str, str] = MISSED
) -> list[str]:
    """A sentence for each aim that is missed and not known to be, is reached and said to be missed, or is about no figure.

    Args:
        families: that were judged; aims of others are not looked at.
    """
    said: list[str] = []
    for pattern, asked in aims.items():
        if family_of(pattern) not in families:
            continue
        mine = {name: figure for name, figure in figures.items() if fnmatchcase(name, pattern)}
        if not mine:
            said.append(f"{pattern}: {asked:g} was asked for, and there is no such figure")
        for name, figure in mine.items():
            reached = figure.share >= asked - SAME
            if not reached and name not in missed:
                said.append(f"{name}: {figure.share:.4f} ({figure.hits:g} of {figure.n}), and {asked:g} was asked for")
            if reached and name in missed and _strictest(name, aims) == asked:
                said.append(
                    f"{name}: {figure.share:.4f} reaches what was asked for ({asked:g}): strike it out of MISSED"
                )
    return said


def _strictest(name: str, aims: Mapping[str, float]) -> float:
    return max(asked for pattern, asked in aims.items() if fnmatchcase(name, pattern))
