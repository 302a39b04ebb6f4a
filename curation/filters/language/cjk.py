"""Chinese, Japanese or Korean: a label for each line whose letters are mostly Han, kana or Hangul.

    lines = line_spans(data, offsets)
    labels = label_cjk(data, lines)
    [CJK_LABELS[code] for code in labels.label]           # "", "und", "zho_Hans", "jpn_Jpan", ...

No model is asked. A line is cut at the ends of sentences and at brackets and quotation marks
(`han.sentence_spans`); each piece speaks by what it holds (`han.han_evidence`): hiragana and Japanese
forms for Japanese, forms and function words that Japanese lacks for Chinese, Hangul for Korean. So a
Chinese line that quotes Japanese stays Chinese, and the quotation is seen as its second language. A
piece of characters that all share goes with the line, a line of such pieces with the lines around it.
Speed: that of `han_evidence` and one more pass over the bytes for the cuts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.language.han import Counts, Evidence, han_evidence, sentence_spans
from curation.text import Spans, kernel
from curation.text.jit import inlined
from curation.text.memory import Int
from curation.text.spans import Bytes, Int64s

__all__ = [
    "BY_CONTEXT",
    "BY_ITSELF",
    "CHINESE_LABELS",
    "CJK_LABELS",
    "NO_EVIDENCE",
    "CjkLines",
    "cjk_labels",
    "label_cjk",
]

CJK_LABELS = ("", "und", "zho_Hani", "zho_Hans", "zho_Hant", "jpn_Jpan", "kor_Kore")
"""Label of each code; the empty one stands for lines that are not mostly Han, kana or Hangul."""

NOT_CJK, UND, HANI, HANS, HANT, JPAN, KORE = range(len(CJK_LABELS))
CHINESE_LABELS = (HANI, HANS, HANT)

NO_EVIDENCE, BY_CONTEXT, BY_ITSELF = range(3)
"""What a label rests on: on nothing but the script, on the lines around, on the line's own characters."""

ZH, JA, KO = range(3)
NEUTRAL, SHARED_SIMPLIFIED, SHARED_TRADITIONAL, OLD = range(3, 7)
"""Pieces without a language of their own: Han characters that all share; that only Traditional lacks (国 会); that only
Simplified lacks (東 時); that old Japanese shares with Traditional (國 學)."""
N_UNSURE = 4
AROUND_HANS, AROUND_HANT, AROUND_JA, AROUND_KO = range(4)

HAN, SIMPLIFIED, TRADITIONAL, JAPANESE, CHINESE, KYUJITAI, FUNCTION, PARTICLE, HIRAGANA, KATAKANA, HANGUL, OTHER = map(
    int, Evidence
)

WORTH = 6
"""Letters of an alphabet that one character is worth, where lines are asked what most of their letters are: a word each, so
that a Chinese sentence full of English terms is Chinese (B039), and an English one that quotes a Chinese word English."""

HANGUL_SHARE = 4
"""A piece is Korean from one Hangul in so many letters on: Korean with hanja; less is a word quoted in Chinese."""

SENTENCE = 10
"""Han characters from which on a piece without kana is hardly Japanese: old forms beside a particle decide for Chinese."""

FADE = 0.5
"""Weight of a line's neighbour as context, against the next nearer one's."""

CONTEXT_LETTERS = 100
"""Letters of a line that count as context, at most: one long line must not outweigh all nearer ones."""


class CjkLines(NamedTuple):
    """What is known of n lines.

    label, second: uint8[n], codes of CJK_LABELS; second is 0 where there is none. basis:
    uint8[n], NO_EVIDENCE, BY_CONTEXT or BY_ITSELF. letters: int32[n, 3], Han, kana and Hangul letters in Chinese,
    Japanese and Korean pieces; filled in lines without a label too.
    """

    label: npt.NDArray[np.uint8]
    second: npt.NDArray[np.uint8]
    basis: npt.NDArray[np.uint8]
    letters: Counts


def label_cjk(data: Bytes, lines: Spans) -> CjkLines:
    """Labels of the lines of documents: row i is line i of `lines`, document d rows offsets[d]:offsets[d + 1].

    Raises InputError where a span leaves the data.
    """
    whole = han_evidence(data, lines.starts, lines.ends)
    speaks = whole[:, [HAN, HIRAGANA, KATAKANA, HANGUL]].any(axis=1)
    pieces = sentence_spans(data, lines.starts, np.where(speaks, lines.ends, lines.starts))
    return cjk_labels(han_evidence(data, pieces.starts, pieces.ends), pieces.offsets, lines.offsets)


def cjk_labels(evidence: Counts, piece_offsets: Int64s, doc_offsets: Int64s) -> CjkLines:
    """Labels from the evidence of pieces: int32[n_pieces, len(Evidence)].

    The pieces of line i are rows `piece_offsets[i]:piece_offsets[i + 1]`, the lines of document d are
    `doc_offsets[d]:doc_offsets[d + 1]`. What a line is called depends on its own document only.
    """
    n = len(piece_offsets) - 1
    label, second, basis = (np.zeros(n, np.uint8) for _ in range(3))
    lines = CjkLines(label, second, basis, np.zeros((n, 3), np.int32))
    unsure, forms = np.zeros((n, N_UNSURE), np.int32), np.zeros((n, 2), np.int32)
    mostly = np.zeros(n, np.bool_)
    _weigh_lines(evidence, piece_offsets, lines.letters, unsure, forms, mostly)
    _label_documents(doc_offsets, unsure, forms, mostly, lines)
    return lines


@inlined
def _piece_language(e: Counts) -> Int:
    """ZH, JA, KO, or one of NEUTRAL to OLD where nothing in a piece is exclusive to one of them."""
    kana = e[HIRAGANA] + e[KATAKANA]
    if e[HANGUL] and e[HANGUL] * HANGUL_SHARE >= e[HAN] + kana + e[HANGUL]:
        return KO
    strong = e[CHINESE] + e[FUNCTION]
    if kana + e[JAPANESE] == 0 and e[HAN] >= SENTENCE and e[KYUJITAI] >= 2 and e[PARTICLE]:
        strong += 1
    chinese = 4 * strong + 2 * e[KYUJITAI] + 2 * max(e[PARTICLE] - 1, 0)
    japanese = 2 * e[HIRAGANA] + e[KATAKANA] + 4 * e[JAPANESE]
    if strong == 0 and e[KYUJITAI] == 0:
        # Japanese alone writes 国 beside 東: the one is not Traditional, the other not Simplified.
        japanese += 4 * min(e[SIMPLIFIED], e[TRADITIONAL])
    if japanese > chinese:
        return JA
    if strong and chinese > japanese:
        return ZH
    if e[SIMPLIFIED] == e[TRADITIONAL]:
        return NEUTRAL
    if e[SIMPLIFIED] > e[TRADITIONAL]:
        return SHARED_SIMPLIFIED
    return OLD if e[KYUJITAI] else SHARED_TRADITIONAL


@kernel
def _weigh_lines(
    evidence: Counts, offsets: Int64s, letters: Counts, unsure: Counts, forms: Counts, mostly: npt.NDArray[np.bool_]
) -> None:
    """Fill in for each line its letters by language, those of unsure pieces by kind, and the forms of Chinese ones."""
    for line in range(len(offsets) - 1):
        worth, other = 0, 0
        for piece in range(offsets[line], offsets[line + 1]):
            e = evidence[piece]
            kana = e[HIRAGANA] + e[KATAKANA]
            n = e[HAN] + kana + e[HANGUL]
            language = _piece_language(e)
            worth += WORTH * n
            other += e[OTHER]
            if language == ZH:
                letters[line, ZH] += e[HAN]
                letters[line, JA] += kana
                letters[line, KO] += e[HANGUL]
                forms[line, 0] += e[SIMPLIFIED]
                forms[line, 1] += e[TRADITIONAL]
            elif language >= NEUTRAL:
                unsure[line, language - NEUTRAL] += n
            else:
                letters[line, language] += n
        mostly[line] = worth > 0 and worth >= other


@inlined
def _form(simplified: Int, traditional: Int, usual: Int) -> Int:
    """Label of Chinese with so many forms of either kind: `usual` where there are as many of both."""
    if simplified == traditional:
        return usual
    return HANS if simplified > traditional else HANT


@inlined
def _usual_form(first: Int, end: Int, forms: Counts, unsure: Counts) -> Int:
    """HANS or HANT, whichever most forms of a document's Chinese pieces are, or else of its unsure ones; HANI for none."""
    simplified, traditional, shared_simplified, shared_traditional = 0, 0, 0, 0
    for line in range(first, end):
        simplified += forms[line, 0]
        traditional += forms[line, 1]
        shared_simplified += unsure[line, 1]
        shared_traditional += unsure[line, 2] + unsure[line, 3]
    return _form(simplified, traditional, _form(shared_simplified, shared_traditional, HANI))


@inlined
def _context(first: Int, end: Int, letters: Counts, forms: Counts, mostly: Int) -> Int:
    """What stands before and behind each of lines first to end, fading with distance: float64[end - first, 4]."""
    context = np.zeros((end - first, 4), np.float64)
    for backwards in (False, True):
        running = np.zeros(4, np.float64)
        for i in range(end - first):
            line = end - 1 - i if backwards else first + i
            context[line - first] += running
            total = letters[line].sum()
            if total and mostly[line]:
                weight = min(total, CONTEXT_LETTERS) / total
                running *= FADE
                if forms[line, 0] >= forms[line, 1]:
                    running[AROUND_HANS] += weight * letters[line, ZH]
                if forms[line, 0] <= forms[line, 1]:
                    running[AROUND_HANT] += weight * letters[line, ZH]
                running[AROUND_JA] += weight * letters[line, JA]
                running[AROUND_KO] += weight * letters[line, KO]
    return context


@inlined
def _by_context(kind: Int, around: Int) -> Int:
    """ZH or JA for an unsure piece among such lines, or `kind` itself where they cannot tell."""
    chinese = around[AROUND_HANS] + around[AROUND_HANT]
    if kind == SHARED_SIMPLIFIED:
        chinese = around[AROUND_HANS]
    elif kind == SHARED_TRADITIONAL:
        chinese = around[AROUND_HANT]
    if chinese + around[AROUND_JA] == 0:
        return kind
    return JA if around[AROUND_JA] > chinese else ZH


@inlined
def _largest(values: Int) -> Int:
    """Index of the largest of three; the first of equal ones."""
    if values[ZH] >= values[JA] and values[ZH] >= values[KO]:
        return ZH
    return JA if values[JA] >= values[KO] else KO


@inlined
def _give_to_own(own: Counts, unsure: Counts, forms: Counts, around: Int) -> Int:
    """Give a line's unsure pieces to the languages of its others; returns its main language."""
    main = _largest(own)
    own[main] += unsure[0] + unsure[3]
    for kind in (SHARED_SIMPLIFIED, SHARED_TRADITIONAL):
        # Forms that the Chinese of this line would write otherwise are quoted: from Japanese, if any is near.
        foreign = main == ZH and (forms[0] > forms[1] if kind == SHARED_TRADITIONAL else forms[0] < forms[1])
        own[JA if foreign and around[AROUND_JA] > 0 else main] += unsure[kind - NEUTRAL]
    return _largest(own)


@inlined
def _unsure_line(unsure: Counts, around: Int, contrast: Int) -> tuple[Int, Int]:
    """Language and basis of a line without a piece that has one; NEUTRAL to OLD where it stays unsure."""
    if unsure[1] and unsure[2] and not unsure[3]:
        return JA, BY_ITSELF
    kind = NEUTRAL
    for i in range(1, N_UNSURE):
        if unsure[i] and (kind == NEUTRAL or unsure[i] > unsure[kind - NEUTRAL]):
            kind = NEUTRAL + i
    language = _by_context(kind, around)
    if language < NEUTRAL:
        return language, BY_CONTEXT
    if contrast:
        return JA, BY_CONTEXT
    return language, NO_EVIDENCE


@inlined
def _label_of(language: Int, forms: Counts, unsure: Counts, usual: Int) -> Int:
    """Code of the label of a language."""
    if language == JA:
        return JPAN
    if language == KO:
        return KORE
    return _form(forms[0], forms[1], _form(unsure[1], unsure[2] + unsure[3], usual))


@inlined
def _stands_alone(kind: Int, around: Int) -> Int:
    """Whether lines are around, and none that could hold a piece of this kind."""
    if kind == OLD:
        return False
    return around.sum() > 0


@kernel
def _label_documents(
    offsets: Int64s, unsure: Counts, forms: Counts, mostly: npt.NDArray[np.bool_], lines: CjkLines
) -> None:
    """Fill in all but the letters, and give the unsure letters of each line to its language."""
    for row in range(len(offsets) - 1):
        first, end = offsets[row], offsets[row + 1]
        usual = _usual_form(first, end, forms, unsure)
        context = _context(first, end, lines.letters, forms, mostly)
        shared = unsure[first:end].sum(axis=0)
        # A page of headings, some not Traditional, some not Simplified, and none Chinese: Japanese.
        contrast = lines.letters[first:end].sum() == 0 and shared[1] > 0 and shared[2] > 0 and shared[3] == 0
        for line in range(first, end):
            own, pending, around = lines.letters[line], unsure[line], context[line - first]
            if own.sum() + pending.sum() == 0:
                continue
            if own.sum():
                language, basis = _give_to_own(own, pending, forms[line], around), BY_ITSELF
            else:
                language, basis = _unsure_line(pending, around, contrast)
                own[JA if language == JA else ZH] += pending.sum()
            if mostly[line]:
                lines.basis[line] = basis
                undecided = basis == NO_EVIDENCE and _stands_alone(language, around)
                lines.label[line] = UND if undecided else _label_of(language, forms[line], pending, usual)
                rest = own.copy()
                rest[language if language < NEUTRAL else ZH] = 0
                other = _largest(rest)
                if rest[other]:
                    lines.second[line] = _label_of(other, forms[line], pending, usual)
