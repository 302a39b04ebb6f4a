"""The language of each part: two opinions, further voters where they do not settle it, the page where the part is short.

    panel = open_panel(...)
    found = identify(panel, Labels(panel), data, offsets)

fastText and langdetect are asked about each part in a script that several languages share. If both say the
same, and are sure, that is the answer. The other parts, some one in eight of real pages, go to all voters. A part
that stays unsure, most often a short one, is judged again with the page as evidence: languages of the page's
other parts are likelier than all others together. Nothing here is random, and no answer depends on other documents.

The figures below were set by looking at pages of the labelled crawl text, not fitted; which of them have been
looked at with the sentences of the test data in sight, bench/results/language.md says.

Memory: a row of scores, 2.5 kB, for each part of one document that all voters are asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.language.cjk import BY_ITSELF, CHINESE_LABELS, CJK_LABELS, CjkLines, label_cjk
from curation.filters.language.lines import Lines, prepare
from curation.filters.language.parts import Parts, cut_parts
from curation.filters.language.scripts import DECIDED, SCRIPT_CODES, SHARED
from curation.filters.language.voters import NO_LANGUAGE, Floats, Int32s, Panel
from curation.filters.language.weighing import likeliest, soften
from curation.text import Script, Spans
from curation.text.spans import Bytes, Int64s, Where

__all__ = ["UNDETERMINED", "Found", "Labels", "identify", "pick"]

Mask = npt.NDArray[np.bool_]

SETTLED_LETTERS, SETTLED_FASTTEXT, SETTLED_LANGDETECT = 30, 0.7, 0.9
"""Letters, and probabilities of both models, from which on their agreement is an answer."""

SURE_LETTERS, SURE = 30, 0.9
"""Letters and probability from which on a voted answer needs no help from the page, and helps other parts."""

SAMPLE, MAIN = 2_000, 0.9
"""Bytes of a document, from its start, that langdetect is always shown. Of the rest it sees what fastText does not find
to be in the same language as at least so great a share of the document, or is not sure of."""

USUAL, USUAL_LETTERS = 0.7, 60
"""Share of a page's settled letters in one language, and letters, from which on other parts may borrow it."""

WORD = 12
"""Letters below which a part is no evidence against the page's language. Longer ones borrow it if either model names it."""

BORROWED = 0.9
"""Confidence in a borrowed language."""

BOTH, UNCLEAR_LETTERS = 0.15, 10
"""Japanese share of a page's Chinese and Japanese from which on it holds both; characters of a line that says too little."""

STRANGER = 0.02
"""Prior probability that a part's language is none of those of the page's other parts."""

UNSURE = 0.35
"""Probability below which no language is named."""

AT_ONCE = 16384
"""Parts whose scores are worked on at once: a row of a model's answers has hundreds of numbers."""

LARGEST = 65_536
"""Parts of one document that lend each other evidence: a list of a million words is judged in pieces, 160 MB each."""

BY_SCRIPT = 0.99
"""Confidence where the script decides."""

UNDETERMINED = "und"


class Labels:
    """All labels that can be given, numbered: those of `cjk` first, in its order, then scripts of one language, then the rest.

    names: the labels. language: int64[n], place of each one's language in the panel, numbers from there on where the
    panel does not know it; forms of Chinese are one. by_script: bool[n], whether the script gives the label.
    of: int32[len(Script), n_languages], label of a language of the panel in a script, 0 where it is not written so.
    """

    def __init__(self, panel: Panel) -> None:
        self.names = [*CJK_LABELS, *DECIDED.values()]
        by_script = len(self.names)
        self.decided = np.zeros(len(Script), np.int32)
        for script, name in DECIDED.items():
            self.decided[script] = self.names.index(name)
        self.of = np.zeros((len(Script), len(panel.languages)), np.int32)
        self.und = self.names.index(UNDETERMINED)
        for script in SHARED:
            for language in np.flatnonzero(panel.written[script]):
                if panel.languages[language] == NO_LANGUAGE:
                    self.of[script, language] = self.und
                    continue
                self.of[script, language] = len(self.names)
                self.names.append(f"{panel.languages[language]}_{SCRIPT_CODES[script]}")
        self.by_script = np.arange(len(self.names)) < by_script
        places = {code: place for place, code in enumerate(panel.languages)}
        codes = [name.partition("_")[0] for name in self.names]
        self.language = np.array([places.setdefault(code, len(places)) for code in codes], np.int64)


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
    _leave_open(cjk, labels.und, lines.spans.offsets)
    parts = cut_parts(lines.clean, lines.clean_starts, lines.clean_ends, lines.letters, cjk.label > 0)
    document = np.searchsorted(lines.spans.offsets, parts.line, side="right") - 1
    n = len(parts.line)
    label = labels.decided[parts.script]
    confidence = np.where(label > 0, BY_SCRIPT, 0).astype(np.float32)
    first, second = ((np.full(n, -1, np.int32), np.zeros(n, np.float32)) for _ in range(2))
    asked = np.flatnonzero(np.isin(parts.script, SHARED))
    for group in _groups(document[asked]):
        rows = asked[group]
        some = pick(parts, rows)
        language, confidence[rows], answers = _vote(panel, lines.clean, some, document[rows])
        for (place, probability), (told, sure) in zip((first, second), answers, strict=True):
            place[rows], probability[rows] = told, sure
        label[rows] = np.where(language >= 0, labels.of[some.script, language], 0)
    label[label == 0] = labels.und
    confidence[label == labels.und] = 0
    return Found(lines, cjk, parts, document, label, confidence, first, second)


def _leave_open(cjk: CjkLines, und: int, offsets: Int64s) -> None:
    """Take back the label of short Chinese lines that only the lines around speak for, where those are Japanese too.

    会社概要 and 特定商取引法 hold nothing that Chinese lacks: in a page of both languages nobody can tell.
    """
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    chinese, japanese = (np.bincount(document, cjk.letters[:, column], len(offsets) - 1) for column in (0, 1))
    both = japanese >= BOTH * (chinese + japanese)
    unclear = both[document] & (cjk.basis != BY_ITSELF) & (cjk.letters.sum(axis=1) <= UNCLEAR_LETTERS)
    cjk.label[unclear & np.isin(cjk.label, CHINESE_LABELS)] = und


def _groups(document: Int64s) -> Iterator[slice]:
    """Rows of whole documents, AT_ONCE of them or less, or those of one document that has more, LARGEST at a time."""
    starts = np.append(np.flatnonzero(np.diff(document, prepend=-1)), len(document))
    at = 0
    while at < len(document):
        most, least = np.searchsorted(starts, (at + AT_ONCE, at), side="right")
        end = min(int(starts[max(most - 1, least)]), at + LARGEST)
        yield slice(at, end)
        at = end


def pick(parts: Parts, rows: Int64s) -> Parts:
    """Some of the parts."""
    return Parts(parts.line[rows], parts.starts[rows], parts.ends[rows], parts.script[rows], parts.letters[rows])


Opinions = tuple[Int32s, Floats]
"""A model's answers: place in the panel's languages, -1 for none; and how sure it is."""


def _vote(
    panel: Panel, data: Bytes, parts: Parts, document: Int64s
) -> tuple[Int32s, Floats, tuple[Opinions, Opinions]]:
    """The language of each part, -1 where none is named, how sure that is, and the two models' opinions."""
    first = panel.first(data, parts)
    second = np.full(len(document), -1, np.int32), np.zeros(len(document), np.float32)
    page = _Page(document, len(panel.languages))
    word = parts.letters < WORD
    left_out = _repeats(page, parts, document, first)
    asked = np.flatnonzero(~left_out)
    while len(asked):
        told, sure = panel.second(data, pick(parts, asked))
        second[0][asked], second[1][asked] = told, sure
        agree = asked[_settled(panel, pick(parts, asked), (first[0][asked], first[1][asked]), (told, sure))]
        page.add(document[agree], first[0][agree], parts.letters[agree])
        usual = page.usual(document)
        # What the sample does not bear out is asked about after all.
        asked = np.flatnonzero(left_out & (first[0] != usual) & ~(word & (usual >= 0)))
        left_out[asked] = False
    settled = _settled(panel, parts, first, second)
    language, confidence = first[0].copy(), np.where(left_out, first[1], np.minimum(first[1], second[1]))
    borrows = ~settled & (usual >= 0) & panel.written[parts.script, usual]
    borrows &= word | (~left_out & ((first[0] == usual) | (second[0] == usual)))
    language[borrows], confidence[borrows] = usual[borrows], BORROWED
    rows = np.flatnonzero(~settled & ~left_out & ~borrows)
    if len(rows):
        language[rows], confidence[rows] = _ask_all(panel, data, pick(parts, rows), document[rows], page)
    return language, confidence, (first, second)


def _settled(panel: Panel, parts: Parts, first: Opinions, second: Opinions) -> Mask:
    """Where both models say the same, are sure, and have seen enough."""
    agree = (first[0] == second[0]) & (first[0] >= 0) & panel.written[parts.script, first[0]]
    agree &= (first[1] >= SETTLED_FASTTEXT) & (second[1] >= SETTLED_LANGDETECT)
    settled: Mask = np.asarray(agree & (parts.letters >= SETTLED_LETTERS), np.bool_)
    return settled


def _repeats(page: _Page, parts: Parts, document: Int64s, first: Opinions) -> Mask:
    """Parts about which langdetect need not be asked, if it bears out the sample: more of what the page has so far, or a word."""
    main = page.main(document, first[0], parts.letters)
    sizes = parts.ends - parts.starts
    before = np.cumsum(sizes) - sizes
    seen = before - before[np.searchsorted(document, document)]
    same = (first[0] == main) & (first[0] >= 0) & (first[1] >= SETTLED_FASTTEXT)
    repeats: Mask = np.asarray((seen >= SAMPLE) & (same | ((parts.letters < WORD) & (main >= 0))), np.bool_)
    return repeats


def _ask_all(panel: Panel, data: Bytes, parts: Parts, document: Int64s, page: _Page) -> tuple[Int32s, Floats]:
    """The language of parts that two models did not settle: -1 where none is named; and how sure that is."""
    n = len(document)
    scores = np.empty((n, len(panel.languages)), np.float32)
    best, confidence = np.empty(n, np.int32), np.empty(n, np.float32)
    for at in range(0, n, AT_ONCE):
        rows = np.arange(at, min(at + AT_ONCE, n))
        scores[rows] = panel.scores(data, pick(parts, rows))
        best[rows], confidence[rows] = _likeliest(scores[rows])
    strong = (confidence >= SURE) & (parts.letters >= SURE_LETTERS)
    page.add(document[strong], best[strong], parts.letters[strong])
    pooled, weak = _pool(document, scores), np.flatnonzero(~strong)
    for at in range(0, len(weak), AT_ONCE):
        rows = weak[at : at + AT_ONCE]
        best[rows], confidence[rows] = _likeliest(scores[rows] + page.prior(document[rows], scores[rows], pooled))
    return np.where(confidence >= UNSURE, best, -1), confidence


class _Pool(NamedTuple):
    """The scores of all parts of each document together: int64[d] documents, float32[d, n_languages], int64[d] parts."""

    document: Int64s
    scores: Floats
    parts: Int64s


def _pool(document: Int64s, scores: Floats) -> _Pool:
    known, first, parts = np.unique(document, return_index=True, return_counts=True)
    return _Pool(known, np.add.reduceat(scores, first, axis=0), parts)  # parts of a document stand side by side


def _likeliest(scores: Floats) -> tuple[Int32s, Floats]:
    return likeliest(scores, np.ones(len(scores), np.float32))


def _probabilities(scores: Floats) -> Floats:
    chances = np.array(scores, np.float32, order="C")
    soften(chances, np.ones(len(chances), np.float32))
    return chances


class _Page:
    """Letters of each language in the parts of each document that are sure of theirs."""

    def __init__(self, document: Int64s, n_languages: int) -> None:
        self._known, _ = np.unique(document, return_inverse=True)
        self._letters = np.zeros((len(self._known), n_languages), np.float32)

    def add(self, document: Int64s, language: npt.NDArray[np.integer], letters: Int32s) -> None:
        places = np.searchsorted(self._known, document) * self._letters.shape[1] + language
        self._letters += np.bincount(places, letters, self._letters.size).reshape(self._letters.shape)

    def main(self, document: Int64s, language: Int32s, letters: Int32s) -> Int64s:
        """The language that fastText finds in MAIN of the letters of each part's document, -1 where there is none: int64[n]."""
        rows = np.searchsorted(self._known, document)
        width = self._letters.shape[1]
        known = language >= 0
        places = rows[known] * width + language[known]
        counts = np.bincount(places, letters[known], self._letters.size).reshape(self._letters.shape)
        total = np.bincount(rows, letters, len(self._known))
        main = np.where(counts.max(axis=1) >= MAIN * total, counts.argmax(axis=1), -1)
        return main[rows]

    def usual(self, document: Int64s) -> Int64s:
        """The language of USUAL of the letters in each part's document, -1 where there is none or too few are known: int64[n]."""
        best, most = self._letters.argmax(axis=1), self._letters.max(axis=1)
        total = self._letters.sum(axis=1)
        usual = np.where((total >= USUAL_LETTERS) & (most >= USUAL * total), best, -1)
        return usual[np.searchsorted(self._known, document)]

    def prior(self, document: Int64s, scores: Floats, pooled: _Pool) -> Floats:
        """Log prior of each language for each weak part: float32[n, n_languages].

        From the sure parts of its document; where there are none, from the document's other weak parts together.
        """
        rows = np.searchsorted(self._known, document)
        mass = self._letters[rows]
        total = mass.sum(axis=1, keepdims=True)
        places = np.searchsorted(pooled.document, document)
        with_others = np.flatnonzero((total[:, 0] == 0) & (pooled.parts[places] > 1))
        if len(with_others):
            mass[with_others] = _probabilities(pooled.scores[places[with_others]] - scores[with_others])
            total[with_others] = 1
        share = np.divide(mass, total, out=np.full_like(mass, 1 / mass.shape[1]), where=total > 0)
        log_prior: Floats = np.log((1 - STRANGER) * share + STRANGER / mass.shape[1])
        return log_prior
