"""From the labels of parts to what is said of documents: characters by language, opinions of models, labels of lines.

Characters are counted in lines of text only: code, menus, numbers and addresses may have labels, but no weight.
A document that has nothing else has no language.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.cjk import CHINESE_LABELS, CJK_LABELS
from curation.filters.language.identify import BY_SCRIPT, Found, Labels
from curation.filters.language.kinds import LineKind
from curation.filters.language.parts import Parts
from curation.filters.language.scripts import CHARACTERS_PER_LETTER
from curation.filters.language.voters import Panel
from curation.text import Spans, count_chars
from curation.text.spans import Int64s

__all__ = ["CHINESE_LABELS", "LanguageSpans", "Opinion", "Tallies", "language_spans", "opinions", "tally", "usual_form"]

Doubles: TypeAlias = npt.NDArray[np.float64]

HANI, HANS, HANT, JAPANESE, KOREAN = map(CJK_LABELS.index, ("zho_Hani", "zho_Hans", "zho_Hant", "jpn_Jpan", "kor_Kore"))

CONFIDENCE = np.array([0.6, 0.7, BY_SCRIPT])
"""Confidence in a Chinese, Japanese or Korean line, by its `basis`: the script alone, the lines around, its characters."""

INLINE = 0.15
"""Share of a line in other languages than its main one from which on it holds two."""

SAMPLE_LINES, SAMPLE_BYTES = 2, 300
"""What models are shown of a document whose language the script decides: so many first lines, so much of each."""


class Tallies(NamedTuple):
    """Characters by document and label; by document, then most characters first, text without a name counting half.

    document, label: int64[n]. characters: float64[n], of cleaned lines: the languages of a line share its blanks, marks and
    terms in other scripts by their letters. letters: float64[n]. confidence: float64[n], mean over the characters.
    inline: float64[n_documents], characters of lines that hold two languages.
    """

    document: Int64s
    label: Int64s
    characters: Doubles
    letters: Doubles
    confidence: Doubles
    inline: Doubles


def tally(found: Found, labels: Labels) -> Tallies:
    """Characters and letters of text by label, for each document that has any."""
    line, label, letters, characters, confidence = _entries(found, labels)
    document = _document(found, line)
    n_labels = len(labels.names)
    inline = _inline(line, labels.language[label], characters, found.lines.spans.offsets)
    label = np.where(label == HANI, usual_form(document, label, characters)[document], label)
    keys, where = np.unique(document * n_labels + label, return_inverse=True)
    total: Doubles = np.bincount(where, characters, len(keys)).astype(np.float64)
    bare: Doubles = np.bincount(where, letters, len(keys)).astype(np.float64)
    mean = np.bincount(where, characters * confidence, len(keys)) / np.maximum(total, 1)
    document, label = np.divmod(keys, n_labels)
    order = np.lexsort((label, -total * np.where(label == labels.und, 0.5, 1), document))
    return Tallies(document[order], label[order], total[order], bare[order], mean[order], inline)


def _inline(line: Int64s, language: Int64s, characters: Doubles, offsets: Int64s) -> Doubles:
    """Characters of each document in lines of which INLINE or more is not in their main language: float64[n_documents]."""
    n = int(offsets[-1])
    width = int(language.max(initial=0)) + 1
    keys, where = np.unique(line * width + language, return_inverse=True)
    by_language = np.bincount(where, characters, len(keys))
    most = np.zeros(n)
    np.maximum.at(most, keys // width, by_language)
    total = np.bincount(line, characters, n)
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    inline = np.bincount(document, np.where(most <= (1 - INLINE) * total, total, 0), len(offsets) - 1)
    return inline.astype(np.float64)


def _entries(found: Found, labels: Labels) -> tuple[Int64s, Int64s, Doubles, Doubles, Doubles]:
    """Line, label, letters, characters and confidence of each part, and of each language of each line with Han, kana or Hangul."""
    cjk, parts = found.cjk, found.parts
    text = found.lines.kind == LineKind.TEXT
    line, language = np.nonzero(cjk.letters * text[:, None])
    chinese = np.where(np.isin(cjk.second, CHINESE_LABELS), cjk.second, HANI)
    chinese = np.where(np.isin(cjk.label, (*CHINESE_LABELS, labels.und)), cjk.label, chinese)
    names = np.stack([chinese, np.full(len(text), JAPANESE), np.full(len(text), KOREAN)], axis=1)
    label = names[line, language]
    rows = np.flatnonzero(text[parts.line])
    lines = np.concatenate([line, parts.line[rows]])
    with_marks = parts.letters[rows] * CHARACTERS_PER_LETTER[parts.script[rows]]
    letters = np.concatenate([cjk.letters[line, language], with_marks])
    # Blanks, marks and terms in another script are characters of the line too: its languages share them.
    clean = Spans(found.lines.clean_starts, found.lines.clean_ends, found.lines.spans.offsets)
    size = count_chars(found.lines.clean, clean) / np.maximum(np.bincount(lines, letters, len(text)), 1)
    return (
        lines,
        np.concatenate([label, found.label[rows]]).astype(np.int64),
        np.concatenate([cjk.letters[line, language], parts.letters[rows]]).astype(np.float64),
        letters * size[lines],
        np.concatenate([np.where(label == labels.und, 0, CONFIDENCE[cjk.basis[line]]), found.confidence[rows]]),
    )


def _document(found: Found, line: Int64s) -> Int64s:
    return np.searchsorted(found.lines.spans.offsets, line, side="right") - 1


def usual_form(document: Int64s, label: Int64s, characters: Doubles) -> Int64s:
    """The form of Han characters that has most of them in each document, HANI where it has neither: int64[documents]."""
    n = int(document.max(initial=-1)) + 1
    simplified, traditional = (np.bincount(document, characters * (label == form), n) for form in (HANS, HANT))
    usual = np.where(simplified >= traditional, HANS, HANT)
    return np.where(simplified + traditional > 0, usual, HANI)


class Opinion(NamedTuple):
    """What one model says of n documents: int64[n], place in the panel's languages, -1 for nothing; float64[n], how surely."""

    language: Int64s
    confidence: Doubles


def opinions(panel: Panel, labels: Labels, found: Found, main: Int64s) -> list[Opinion]:
    """fastText's and langdetect's view of each document, the languages of its parts weighed by their letters.

    Where the script decides the main language, both are shown a sample of it all the same.

    Args:
        main: int64[n_documents], main label of each, 0 where there is none.
    """
    counted = (found.lines.kind == LineKind.TEXT)[found.parts.line]
    voted = ~labels.by_script[main]
    rows = np.flatnonzero(counted & voted[found.document])
    sample = _sample(found, main, voted)
    weights = np.concatenate([found.parts.letters[rows], sample.letters])
    document = np.concatenate([found.document[rows], _document(found, sample.line)])
    clean = found.lines.clean
    shown = panel.first(clean, sample), panel.second(clean, sample)
    return [
        _weigh(
            document,
            np.concatenate([told[0][rows], more[0]]),
            np.concatenate([told[1][rows], more[1]]),
            weights,
            len(main),
        )
        for told, more in zip((found.fasttext, found.langdetect), shown, strict=True)
    ]


def _sample(found: Found, main: Int64s, voted: npt.NDArray[np.bool_]) -> Parts:
    """The first lines of text of documents whose language the script decides."""
    lines = found.lines
    texts = np.flatnonzero((lines.kind == LineKind.TEXT) & (lines.clean_ends > lines.clean_starts))
    document = _document(found, texts)
    wanted = (main[document] > 0) & ~voted[document]
    texts, document = texts[wanted], document[wanted]
    nth = np.arange(len(texts)) - np.searchsorted(document, document)
    texts = texts[nth < SAMPLE_LINES]
    starts = lines.clean_starts[texts]
    ends = np.minimum(lines.clean_ends[texts], starts + SAMPLE_BYTES)
    for _ in range(3):  # back to the start of a character
        inside = ends < lines.clean_ends[texts]
        inside[inside] = lines.clean[ends[inside]] & 0xC0 == 0x80
        ends = ends - inside
    nothing = np.zeros(len(texts), np.uint8)
    return Parts(texts, starts, ends, nothing, (ends - starts).astype(np.int32))


def _weigh(document: Int64s, language: Int64s, sure: Doubles, weights: Int64s, n: int) -> Opinion:
    """The language of most letters in each document, and the mean probability of its parts, theirs only."""
    best, confidence = np.full(n, -1, np.int64), np.zeros(n)
    known = language >= 0
    document, language, sure, weights = document[known], language[known], sure[known], weights[known]
    if len(document):
        width = int(language.max()) + 1
        keys, where = np.unique(document * width + language, return_inverse=True)
        total = np.bincount(where, weights, len(keys))
        mean = np.bincount(where, weights * sure, len(keys)) / np.maximum(total, 1)
        order = np.lexsort((-keys, total))  # the largest last, so that it is what stays
        best[keys[order] // width] = keys[order] % width
        confidence[keys[order] // width] = mean[order]
    return Opinion(best, confidence)


class LanguageSpans(NamedTuple):
    """Runs of lines with one label: int64[n] each; lines first to end - 1 of the document, from 0 on. offsets: int64[n + 1]."""

    label: Int64s
    first: Int64s
    end: Int64s
    offsets: Int64s


def language_spans(found: Found, labels: Labels, usual: Int64s) -> LanguageSpans:
    """Labels of lines, as runs. A line of code or without letters goes with the one before it, at the top with the next.

    Args:
        usual: int64[n_documents], the form that lines of shared Han characters get.
    """
    offsets = found.lines.spans.offsets
    n = int(offsets[-1])
    if n == 0:
        nothing = np.zeros(0, np.int64)
        return LanguageSpans(nothing, nothing, nothing, offsets)
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    label = found.cjk.label.astype(np.int64)
    parts = found.parts
    order = np.argsort(parts.letters, kind="stable")  # the part of most letters last, so that it is what stays
    heaviest = np.zeros(n, np.int64)
    heaviest[parts.line[order]] = found.label[order]
    label = np.where(label > 0, label, heaviest)
    label = np.where(label == HANI, usual[document], label)
    label = np.where(found.lines.kind == LineKind.CODE, 0, label)
    place = np.where(label > 0, np.arange(n), -1)
    before = np.maximum.accumulate(place)
    after = np.minimum.accumulate(np.where(label > 0, np.arange(n), n)[::-1])[::-1]
    from_before = before >= offsets[:-1][document]
    from_after = ~from_before & (after < offsets[1:][document])
    source = np.where(from_before, before, np.where(from_after, after, 0))
    label = np.where(from_before | from_after, label[source], labels.und)
    starts = np.flatnonzero((np.diff(label, prepend=-1) != 0) | (np.diff(document, prepend=-1) != 0))
    ends = np.append(starts[1:], n)[: len(starts)]
    base = offsets[:-1][document[starts]]
    return LanguageSpans(
        label[starts], starts - base, ends - base, np.searchsorted(document[starts], np.arange(len(offsets)))
    )
