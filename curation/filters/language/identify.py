"""The language of each part: two opinions, further voters where they do not settle it, the page where the part is short.

    panel = open_panel(...)
    found = identify(panel, data, offsets)

fastText and langdetect are asked about each part in a script that several languages share. If both say the
same, and are sure, that is the answer. The other parts, some one in eight of real pages, go to all voters. A part
that stays unsure, most often a short one, is judged again with the page as evidence: languages of the page's
other parts are likelier than all others together. Nothing here is random, and no answer depends on other documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.language.cjk import CJK_LABELS, CjkLines, label_cjk
from curation.filters.language.lines import Lines, prepare
from curation.filters.language.parts import Parts, cut_parts
from curation.filters.language.scripts import DECIDED, SCRIPT_CODES, SHARED
from curation.filters.language.voters import IMPOSSIBLE, Floats, Int32s, Panel
from curation.text import Script, Spans
from curation.text.spans import Bytes, Int64s, Where

__all__ = ["UNDETERMINED", "Found", "Labels", "identify"]

Mask = npt.NDArray[np.bool_]

SETTLED_LETTERS, SETTLED_FASTTEXT, SETTLED_LANGDETECT = 30, 0.7, 0.9
"""Letters, and probabilities of both models, from which on their agreement is an answer."""

SURE_LETTERS, SURE = 30, 0.9
"""Letters and probability from which on a voted answer needs no help from the page, and helps other parts."""

STRANGER = 0.02
"""Prior probability that a part's language is none of those of the page's other parts."""

UNSURE = 0.5
"""Probability below which no language is named."""

BY_SCRIPT = 0.99
"""Confidence where the script decides."""

UNDETERMINED = "und"


class Labels:
    """All labels that can be given, numbered: those of `cjk` first, in its order, then scripts of one language, then the rest.

    names: the labels. language: for each its ISO 639-3 code. by_script: bool[n], whether the script gives it.
    of: int32[len(Script), n_languages], label of a language of the panel in a script, 0 where it is not written so.
    """

    def __init__(self, panel: Panel) -> None:
        self.names = [*CJK_LABELS, *DECIDED.values()]
        self.by_script_count = len(self.names)
        self.decided = np.zeros(len(Script), np.int32)
        for script, name in DECIDED.items():
            self.decided[script] = self.names.index(name)
        self.of = np.zeros((len(Script), len(panel.languages)), np.int32)
        for script in SHARED:
            for language in np.flatnonzero(panel.written[script]):
                self.of[script, language] = len(self.names)
                self.names.append(f"{panel.languages[language]}_{SCRIPT_CODES[script]}")
        self.und = self.names.index(UNDETERMINED)

    @property
    def by_script(self) -> Mask:
        return np.arange(len(self.names)) < self.by_script_count


class Found(NamedTuple):
    """What is known of the parts of n documents; see `Lines`, `CjkLines` and `Parts` for theirs.

    label: int32[n_parts], a number of `Labels`. confidence: float32[n_parts], probability of the label.
    fasttext, langdetect: int32[n_parts], place in the panel's languages of each model's answer, -1 where it was not
    asked or knew nothing; and float32[n_parts], its probability.
    """

    lines: Lines
    cjk: CjkLines
    parts: Parts
    document: Int64s
    label: Int32s
    confidence: Floats
    fasttext: tuple[Int32s, Floats]
    langdetect: tuple[Int32s, Floats]


def identify(panel: Panel, labels: Labels, data: Bytes, where: Where) -> Found:
    """Labels of all parts of all documents.

    Raises InputError where `where` does not lie within `data`.
    """
    lines = prepare(data, where)
    cjk = label_cjk(lines.clean, Spans(lines.clean_starts, lines.clean_ends, lines.spans.offsets))
    parts = cut_parts(lines.clean, lines.clean_starts, lines.clean_ends, lines.letters, cjk.label > 0)
    document = np.searchsorted(lines.spans.offsets, parts.line, side="right") - 1
    n = len(parts.line)
    label = labels.decided[parts.script]
    confidence = np.where(label > 0, BY_SCRIPT, 0).astype(np.float32)
    opinions = tuple((np.full(n, -1, np.int32), np.zeros(n, np.float32)) for _ in range(2))
    asked = np.flatnonzero(np.isin(parts.script, SHARED))
    if len(asked):
        some = pick(parts, asked)
        answers = panel.opinions(lines.clean, some)
        for (place, probability), (told, sure) in zip(opinions, answers, strict=True):
            place[asked], probability[asked] = told, sure
        language, confidence[asked] = _vote(panel, lines.clean, some, document[asked], *answers)
        label[asked] = np.where(language >= 0, labels.of[some.script, language], 0)
    label[label == 0] = labels.und
    return Found(lines, cjk, parts, document, label, confidence, *opinions)


def pick(parts: Parts, rows: Int64s) -> Parts:
    """Some of the parts."""
    return Parts(parts.line[rows], parts.starts[rows], parts.ends[rows], parts.script[rows], parts.letters[rows])


def _vote(
    panel: Panel,
    data: Bytes,
    parts: Parts,
    document: Int64s,
    first: tuple[Int32s, Floats],
    second: tuple[Int32s, Floats],
) -> tuple[Int32s, Floats]:
    """The language of each part, -1 where none is named, and how sure that is."""
    language, confidence = first[0].copy(), np.minimum(first[1], second[1])
    settled = (first[0] == second[0]) & (first[0] >= 0) & panel.written[parts.script, first[0]]
    settled &= (first[1] >= SETTLED_FASTTEXT) & (second[1] >= SETTLED_LANGDETECT) & (parts.letters >= SETTLED_LETTERS)
    open_rows = np.flatnonzero(~settled)
    if len(open_rows) == 0:
        return language, confidence
    scores = panel.scores(data, pick(parts, open_rows))
    page = _Page(document, len(panel.languages))
    page.add(document[settled], language[settled], parts.letters[settled])
    sure = _probabilities(scores)
    strong = (sure.max(axis=1) >= SURE) & (parts.letters[open_rows] >= SURE_LETTERS)
    rows = open_rows[strong]
    page.add(document[rows], sure[strong].argmax(axis=1), parts.letters[rows])
    weak = np.flatnonzero(~strong)
    scores[weak] += page.prior(document[open_rows[weak]], scores[weak])
    sure[weak] = _probabilities(scores[weak])
    best = sure.argmax(axis=1).astype(np.int32)
    confidence[open_rows] = sure.max(axis=1)
    language[open_rows] = np.where(confidence[open_rows] >= UNSURE, best, -1)
    return language, confidence


def _probabilities(scores: Floats) -> Floats:
    chances: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


class _Page:
    """Letters of each language in the parts of each document that are sure of theirs."""

    def __init__(self, document: Int64s, n_languages: int) -> None:
        self._known, _ = np.unique(document, return_inverse=True)
        self._letters = np.zeros((len(self._known), n_languages), np.float32)

    def add(self, document: Int64s, language: npt.NDArray[np.integer], letters: Int32s) -> None:
        np.add.at(self._letters, (np.searchsorted(self._known, document), language), letters)

    def prior(self, document: Int64s, scores: Floats) -> Floats:
        """Log prior of each language for each weak part: float32[n, n_languages].

        From the sure parts of its document; where there are none, from the document's other weak parts together.
        """
        rows = np.searchsorted(self._known, document)
        mass = self._letters[rows]
        total = mass.sum(axis=1, keepdims=True)
        alone = np.flatnonzero(total[:, 0] == 0)
        if len(alone):
            pooled = np.zeros_like(self._letters)
            np.add.at(pooled, rows[alone], np.maximum(scores[alone], IMPOSSIBLE))
            others = np.bincount(rows[alone], minlength=len(self._known))[rows[alone]] > 1
            with_others = alone[others]
            mass[with_others] = _probabilities(pooled[rows[with_others]] - scores[with_others])
            total[with_others] = 1
        share = np.divide(mass, total, out=np.full_like(mass, 1 / mass.shape[1]), where=total > 0)
        log_prior: Floats = np.log((1 - STRANGER) * share + STRANGER / mass.shape[1])
        return log_prior
