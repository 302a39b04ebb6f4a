"""How much a figure may come out lower without anything being worse: so many texts, and why.

Everything that is judged is pinned and nothing is drawn at random, so noise is not that of chance. It is what machines do
differently (sums of a model in another order, other instructions of another processor), and what no one would call a loss: one text
of hundreds that stands right at a limit. Floors that have none say so: there each text counts.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ["NOISES", "Noise", "noise_of"]


class Noise(NamedTuple):
    """For figures of a pattern, so many texts."""

    pattern: str
    texts: int
    why: str


NOISES = (
    Noise("near.*", 0, "similarity is exact"),
    Noise("rescore.*", 0, "counted in whole numbers"),
    Noise("quality.junk_dropped.*", 0, "junk of known classes is easy: each document of it counts"),
    Noise("*.junk_hit.*", 0, "each document of junk that a rule reaches"),
    Noise("*.junk_for.*", 0, "each document of junk that a reason names"),
    Noise("*.innocent_kept.*", 0, "each sentence was written to be kept"),
    Noise("safety_terms.*", 1, "one text at a limit"),
    Noise("safety_terms_own.*", 1, "one text at a limit"),
    Noise("safety_own.kept.*", 1, "one text at a limit"),
    Noise("safety_own.*", 2, "as of `safety`"),
    Noise("safety.kept.*", 1, "one text at a limit"),
    Noise("safety.*", 2, "the model's sums differ between processors, and texts at its thresholds with them"),
    Noise("language.line_characters.*", 60, "a line of two"),
    Noise("language.form.* lines", 3, "lines at a limit, of thousands"),
    Noise("language.found *", 2, "single words that two languages share change sides with any model"),
    Noise("language.precision.*", 2, "single words that two languages share change sides with any model"),
    Noise("language.macro_f1.*", 2, "some texts"),
    Noise("*_mean", 2, "a mean of languages, in which one text of a small one counts as many"),
    Noise("*", 1, "one text at a limit"),
)
"""The first that fits a figure is its noise."""
DIGITS = 1e6


def noise_of(figure: str, n: int) -> float:
    """As a share of n texts, rounded up to six digits."""
    texts = next(noise.texts for noise in NOISES if fnmatchcase(figure, noise.pattern))
    return min(1.0, math.ceil(texts / n * DIGITS) / DIGITS) if n else 0.0
