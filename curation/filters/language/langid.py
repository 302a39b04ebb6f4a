"""py3langid's naive Bayes over byte sequences, as a kernel.

An automaton walks over the bytes of a line once and says which of 100,053 features (byte sequences that tell
languages apart) end at each. The score of a class is the log of its prior plus, for each feature seen c times,
log(1 + c) times the feature's log probability. The walk costs some 5 ns a byte and each feature that is new in
the line some 40 ns, for 142 classes: about 30 times less than the package's own Python.

The model's float16 weights are exact multiples of 1/2048 below 16, so they are kept as int16, which halves what
has to be fetched, and summed in float64 in the order in which features were found: the same on any machine.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.text.decode import ascii_run, decode, low_bits
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in
from curation.text.spans import Bytes, Int64s, Spans, bounds
from curation.text.tables import N_CODE_POINTS, two_level
from quality_models.py3langid_file import Py3langidModel

__all__ = ["Py3langid"]

Floats: TypeAlias = npt.NDArray[np.float32]
Bools: TypeAlias = npt.NDArray[np.bool_]

STEPS = 2048
"""Weights are whole numbers of 1 / STEPS."""

NO_FEATURE = np.finfo(np.float32).min
"""Every score of a line without features, as in py3langid."""

CAPITAL, SMALL = 1, 2
BEYOND_CASE = 0x20000
"""No code point from here on has case."""


class Tables(NamedTuple):
    """What the kernel reads.

    moves: uint32[n_rows * 256], next state. states: int32[n_states, 2]: where its row begins, and the feature
    found on arriving, or -1. weights: int16[n_features, n_classes] in steps of 1 / STEPS. priors:
    float64[n_classes]. columns: int64[n_classes], column of the class's label.
    """

    moves: npt.NDArray[np.uint32]
    states: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int16]
    priors: npt.NDArray[np.float64]
    columns: Int64s


class Py3langid:
    """py3langid's model. labels: its names of the languages, each once, in the order of the columns."""

    def __init__(self, model: Py3langidModel) -> None:
        """Raises ValueError for weights that int16 cannot hold exactly."""
        self.labels = tuple(dict.fromkeys(model.classes))
        scaled = model.weights.astype(np.float32) * STEPS
        weights = scaled.astype(np.int16)
        if not (weights == scaled).all():
            raise ValueError(
                f"weights of a py3langid model: expected multiples of 1/{STEPS} below {2**15 // STEPS}, found up to "
                f"{np.abs(model.weights).max()} and some that are not: it was trained in another precision"
            )
        self._tables = Tables(
            model.moves.reshape(-1),
            np.stack([model.rows.astype(np.int32) * 256, model.features], axis=1),
            weights,
            model.priors.astype(np.float64),
            np.array([self.labels.index(name) for name in model.classes], np.int64),
        )
        self._case = two_level(_case())

    def scores(self, data: Bytes, starts: Int64s, ends: Int64s) -> Floats:
        """Naive Bayes log scores: float32[n, n_labels]; the largest of a label's classes counts.

        `data[starts[i]:ends[i]]` is UTF-8, NFC, of one line. One that has capitals and no small letters is read
        in small letters. NO_FEATURE in all columns where no feature is found.
        """
        checked = bounds(data, Spans(starts, ends, starts))
        scores: Floats = _scores(*checked, self._tables, len(self.labels))
        loud = np.flatnonzero(_are_loud(*checked, *self._case))
        if len(loud):
            lines = [_in_small_letters(data[starts[i] : ends[i]].tobytes()) for i in loud]
            offsets = np.cumsum([0, *map(len, lines)])
            small = bounds(np.frombuffer(b"".join(lines), np.uint8), offsets)
            scores[loud] = _scores(*small, self._tables, len(self.labels))
        return scores


def _case() -> npt.NDArray[np.int32]:
    """int32[0x110000]: CAPITAL or SMALL, as str.isupper takes them; 0 for what has no case."""
    case = np.zeros(N_CODE_POINTS, np.int32)
    chars = [chr(code) for code in range(BEYOND_CASE)]
    case[[i for i, char in enumerate(chars) if char.islower() or char.istitle()]] = SMALL
    case[[i for i, char in enumerate(chars) if char.isupper()]] = CAPITAL
    return case


def _in_small_letters(line: bytes) -> bytes:
    """As py3langid does it."""
    return unicodedata.normalize("NFC", line.decode("utf-8", "replace").lower()).encode()


@inlined
def _is_loud(p: Int, end: Int, limit: Int, index: npt.NDArray[np.uint16], case: npt.NDArray[np.int32]) -> bool:
    """Whether there are capitals, and no small letters, from `p` to `end`."""
    capital = False
    while p < end:
        run = ascii_run(p, end, limit)
        if run > 1:
            mask = low_bits(run)
            if bytes_in(p, 0, 0x61, 26) & mask:
                return False
            capital |= bytes_in(p, 0, 0x41, 26) & mask != 0
            p += run
        else:
            code, length = decode(p, end)
            kind = case[np.int64(index[code >> 6]) << 6 | code & 63]
            if kind == SMALL:
                return False
            capital |= kind == CAPITAL
            p += length
    return capital


@kernel
def _are_loud(
    data: Bytes, starts: Int64s, ends: Int64s, index: npt.NDArray[np.uint16], case: npt.NDArray[np.int32]
) -> Bools:
    base, limit = address_of(data), address_of(data) + len(data)
    loud = np.empty(len(starts), np.bool_)
    for line in range(len(starts)):
        loud[line] = _is_loud(base + starts[line], base + ends[line], limit, index, case)
    return loud


@kernel
def _scores(data: Bytes, starts: Int64s, ends: Int64s, tables: Tables, n_labels: int) -> Floats:
    base = address_of(data)
    moves, states, weights, priors, columns = tables
    counts, found = np.zeros(len(weights), np.int32), np.empty(len(weights), np.int32)
    scores = np.full((len(starts), n_labels), NO_FEATURE, np.float32)
    sums = np.empty(len(priors), np.float64)
    for line in range(len(starts)):
        state, n = np.int64(0), 0
        for p in range(base + starts[line], base + ends[line]):
            state = np.int64(moves[np.uint64(states[state, 0] + byte_at(p))])
            feature = np.int64(states[state, 1])
            if feature >= 0:
                if counts[feature] == 0:
                    found[n] = feature
                    n += 1
                counts[feature] += 1
        if n == 0:
            continue
        sums[:] = 0
        for i in range(n):
            feature = np.int64(found[i])
            factor = np.log1p(np.float64(counts[feature]))
            counts[feature] = 0
            row = weights[feature]
            for j in range(len(sums)):
                sums[j] += factor * row[j]
        for j in range(len(sums)):
            score = np.float32(sums[j] * (1 / STEPS) + priors[j])
            scores[line, columns[j]] = max(scores[line, columns[j]], score)
    return scores
