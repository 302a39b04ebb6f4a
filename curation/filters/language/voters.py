"""The models that are asked for the language of a part, and how their answers become one.

Every model answers with a probability for each language that it knows. The answers are put together as a
weighted sum of their logarithms, over the languages that are written in the part's script:

    score(language) = sum over models of weight * log(probability + floor), or weight * unknown

where `unknown` stands for what a model says about a language that it does not know: nothing, but it then
spreads its probability over others. A model's weight grows with the letters of the part. The figures of
each model are below; they were chosen on held-out rows of what our own model is trained on (see its card).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.exponentials import padded
from curation.filters.language.fasttext import FastText
from curation.filters.language.langdetect import Langdetect, posterior
from curation.filters.language.langid import NO_FEATURE, Py3langid
from curation.filters.language.parts import Parts, fold_parts
from curation.filters.language.scripts import SCRIPT_CODES, SHARED
from curation.filters.language.weighing import add_votes, soften, written_only
from curation.text import Script
from curation.text.spans import Bytes, Int64s
from quality_models.fasttext_file import read_fasttext
from quality_models.langdetect_profiles import read_profiles
from quality_models.language_codes import LANGUAGE_SCRIPTS, to_iso639_3
from quality_models.py3langid_file import read_py3langid

__all__ = ["IMPOSSIBLE", "NO_LANGUAGE", "Answers", "Panel", "Voter", "Weights", "open_panel"]

Floats: TypeAlias = npt.NDArray[np.float32]
Int32s: TypeAlias = npt.NDArray[np.int32]
Answers: TypeAlias = Callable[[Bytes, Parts], Floats]

LETTERS = 20
"""Letters of a part at which `Weights.at_20` holds."""


class Weights(NamedTuple):
    """How much a model's answer counts.

    at_20: weight for a part of 20 letters; doubling: what is added for each doubling of them. floor: added to
    probabilities. unknown: log probability of a language that the model does not know.
    """

    at_20: float
    doubling: float
    floor: float
    unknown: float


FASTTEXT = Weights(0.4, 0.03, 2e-4, -5.5)
LANGDETECT = Weights(0.13, 0.03, 5e-3, -5.0)
PY3LANGID = Weights(0.4, 0.03, 3e-4, -6.5)
OTHER = Weights(0.85, 0.1, 2e-5, -6.0)
"""Of our own model, and of any other in fastText's format."""

LEAST = 0.05
"""The least weight of a model, for parts of few letters."""

PY3LANGID_EXPONENT = 0.17
"""py3langid's scores are divided by bytes ** this before they become probabilities."""


IMPOSSIBLE = np.float32(-1e4)
"""Score of a language that is not written in the part's script; finite, so that scores can be added."""


NO_LANGUAGE = "zxx"
"""ISO 639-3 for text without linguistic content: what py3langid and our own model call letters that say nothing."""


class Voter(NamedTuple):
    """A model: what it is called, its labels, how much it counts, and float32[n, n_labels] probabilities of parts."""

    name: str
    labels: Sequence[str]
    weights: Weights
    answers: Answers


class Panel:
    """All models that are asked, over one list of languages.

    voters: fastText, langdetect, then the others. languages: ISO 639-3 codes, sorted. written: bool[len(Script),
    n_languages], whether a language is written in a script; none is in scripts that are not in `SHARED`.
    """

    def __init__(self, fasttext: FastText, langdetect: Langdetect, others: Sequence[Voter]) -> None:
        self._fasttext, self._langdetect = fasttext, langdetect
        first = [
            Voter(
                "fasttext", fasttext.labels, FASTTEXT, lambda data, p: fasttext.probabilities(data, p.starts, p.ends)
            ),
            Voter("langdetect", langdetect.labels, LANGDETECT, lambda data, p: _langdetect(langdetect, data, p)),
        ]
        self.voters = [*first, *others]
        codes = {voter.name: [to_iso639_3(label) for label in voter.labels] for voter in self.voters}
        self.languages = sorted({code for known in codes.values() for code in known})
        place = {code: at for at, code in enumerate(self.languages)}
        self._columns = [np.array([place[code] for code in codes[voter.name]], np.int64) for voter in self.voters]
        self._starts = [
            _start(voter.weights, columns, len(self.languages))
            for voter, columns in zip(self.voters, self._columns, strict=True)
        ]
        self.written = _written(self.languages)

    def first(self, data: Bytes, parts: Parts) -> tuple[Int32s, Floats]:
        """fastText's answers: place in `languages`, int32[n], -1 for none; and their probability, float32[n]."""
        return self._placed(*self._fasttext.top(data, parts.starts, parts.ends), 0)

    def second(self, data: Bytes, parts: Parts) -> tuple[Int32s, Floats]:
        """langdetect's answers, as `first`."""
        return self._placed(*self._langdetect.top(data, parts.starts, parts.ends), 1)

    def _placed(self, label: Int32s, probability: Floats, voter: int) -> tuple[Int32s, Floats]:
        return np.where(label >= 0, self._columns[voter][label], -1).astype(np.int32), probability

    def scores(self, data: Bytes, parts: Parts) -> Floats:
        """What all models say together: float32[n, n_languages], log scores; IMPOSSIBLE for languages of other scripts."""
        sizes = np.log2(np.maximum(parts.letters, 1) / LETTERS)
        totals = np.zeros((len(parts.line), padded(len(self.languages))), np.float32)
        for voter, columns, start in zip(self.voters, self._columns, self._starts, strict=True):
            weights = np.maximum(voter.weights.at_20 + voter.weights.doubling * sizes, LEAST).astype(np.float32)
            add_votes(totals, voter.answers(data, parts), columns, start, weights)
        return written_only(totals, self.written, parts.script, IMPOSSIBLE)


def _start(weights: Weights, columns: Int64s, n_languages: int) -> Floats:
    """What a model's probabilities are added to: its floor, and all it has for languages that it does not know."""
    start = np.ones(padded(n_languages), np.float32)
    start[:n_languages] = np.exp(weights.unknown)
    start[columns] = weights.floor
    return start


def _written(languages: Sequence[str]) -> npt.NDArray[np.bool_]:
    """bool[len(Script), n_languages]: whether a language is written in a script; one of unknown scripts may be in any."""
    written = np.zeros((len(Script), len(languages)), np.bool_)
    for script in SHARED:
        code = SCRIPT_CODES[script]
        written[script] = [
            language == NO_LANGUAGE or code in LANGUAGE_SCRIPTS.get(language, (code,)) for language in languages
        ]
    return written


def _langdetect(model: Langdetect, data: Bytes, parts: Parts) -> Floats:
    sums, counts = model.log_likelihoods(data, parts.starts, parts.ends)
    return posterior(sums, counts)


def _py3langid(model: Py3langid, data: Bytes, parts: Parts) -> Floats:
    scores = model.scores(data, parts.starts, parts.ends)
    sizes = np.maximum(parts.ends - parts.starts, 1).astype(np.float32)
    soften(scores, np.where(scores[:, 0] == NO_FEATURE, 0, sizes**PY3LANGID_EXPONENT).astype(np.float32))
    return scores


UNTOLD = (("bos", "hrv", "srp"), ("nob", "nno"))
"""Groups of languages that our own model does not tell apart: of bos and nno it has seen a hundredth of the others' text, and
would always name the others. It answers for each with what it gives to the whole group, so the other models decide."""


def _folded(model: FastText, untold: Sequence[Int64s], data: Bytes, parts: Parts) -> Floats:
    """Answers of our own model, which is trained on lower case without punctuation."""
    answers = model.probabilities(*fold_parts(data, parts.starts, parts.ends))
    for columns in untold:
        answers[:, columns] = answers[:, columns].sum(axis=1, keepdims=True)
    return answers


def _untold(model: FastText) -> list[Int64s]:
    """Columns of the languages of each group of UNTOLD."""
    codes = [to_iso639_3(label) for label in model.labels]
    return [np.array([place for place, code in enumerate(codes) if code in group], np.int64) for group in UNTOLD]


def open_panel(own: Path, others: Sequence[str], lid: Path) -> Panel:
    """Load the models.

    Args:
        own: our own model. others: `py3langid`, `corpusmill`, or paths of models in fastText's format.
        lid: lid.176.ftz.

    Raises FileNotFoundError or ValueError where a model is missing or damaged.
    """
    voters = [_voter(name, own) for name in others]
    return Panel(FastText(read_fasttext(lid)), Langdetect(read_profiles()), voters)


def _voter(name: str, own: Path) -> Voter:
    if name == "py3langid":
        naive = Py3langid(read_py3langid())
        return Voter(name, naive.labels, PY3LANGID, lambda data, parts: _py3langid(naive, data, parts))
    if name == "corpusmill":
        folded = FastText(read_fasttext(own))
        untold = _untold(folded)
        return Voter(name, folded.labels, OTHER, lambda data, parts: _folded(folded, untold, data, parts))
    other = FastText(read_fasttext(Path(name)))
    for label in other.labels:
        try:
            to_iso639_3(label)
        except ValueError as error:
            raise ValueError(f"{name}: a voter's labels must name languages: {error}") from error
    return Voter(name, other.labels, OTHER, lambda data, p: other.probabilities(data, p.starts, p.ends))
