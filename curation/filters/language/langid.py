"""py3langid's naive Bayes over byte sequences, as a kernel.

An automaton walks over the bytes of a line once and says which of 100,053 features (byte sequences that tell
languages apart) end at each. The score of a class is the log of its prior plus, for each feature seen c times,
log(1 + c) times the feature's log probability. 7 times as fast as the package; what costs is to fetch rows of a
table of 39 MB (a third) and of weights, 28 MB, so it is asked only about lines on which others disagree.

The model's float16 weights are exact multiples of 1/2048 below 16, so they are kept as int16, which halves what
has to be fetched, and summed in whole numbers and float64 in the order in which features were found: the same
on any machine.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.int_rows import LANES, add_shorts
from curation.text.decode import ascii_run, decode, low_bits
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, load32
from curation.text.spans import Bytes, Int64s, Spans, bounds
from curation.text.tables import N_CODE_POINTS, two_level
from quality_models.py3langid_file import Py3langidModel

__all__ = ["Py3langid"]

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Shorts: TypeAlias = npt.NDArray[np.int16]
Int32s: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = tuple[Int, Int]
"""Addresses of moves and states: of what numba need not count references to."""

STEPS = 2048
"""Weights are whole numbers of 1 / STEPS."""

LOG_2 = float(np.log(2))

MANY = 1 << 16
"""Weights that an int32 can add up: the largest is 2^15."""

NO_FEATURE = np.finfo(np.float32).min
"""Every score of a line without features, as in py3langid."""

CAPITAL, SMALL = 1, 2
BEYOND_CASE = 0x20000
"""No code point from here on has case."""


class Tables(NamedTuple):
    """What the kernel reads.

    moves: uint32[n_rows * 256], next state. states: int32[2 * n_states]: where its row begins, and 1 + the
    feature found on arriving, or 0. weights: int16[n_features * width] in steps of 1 / STEPS, zeros up to a width
    that LANES divides. priors: float64[n_classes]. columns: int64[n_classes], column of the class's label.
    """

    moves: npt.NDArray[np.uint32]
    states: Int32s
    weights: Shorts
    priors: Doubles
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
        states = np.stack([model.rows.astype(np.int32) * 256, model.features + 1], axis=1)
        self._tables = Tables(
            model.moves.reshape(-1),
            states.reshape(-1),
            np.pad(weights, ((0, 0), (0, -weights.shape[1] % LANES))).reshape(-1),
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


@inlined
def _found(p: Int, end: Int, places: Places, counts: Int32s, found: Int32s) -> Int:
    """Walk from address `p` to `end`: how many features were found, which, and how often each."""
    moves, states = places
    row, n = np.int64(load32(states)), 0
    while p < end:
        state = load32(moves + 4 * (row + byte_at(p)))
        row, feature = np.int64(load32(states + 8 * state)), load32(states + 8 * state + 4) - 1
        if feature >= 0:
            if counts[np.uint64(feature)] == 0:
                found[np.uint64(n)] = feature
                n += 1
            counts[np.uint64(feature)] += 1
        p += 1
    return n


@inlined
def _sum_features(n: Int, found: Int32s, counts: Int32s, weights: Shorts, once: Int32s, sums: Doubles) -> None:
    """Add up log(1 + count) times the weights of `n` features, in steps of 1 / STEPS; makes their counts 0."""
    sums[:] = 0
    once[:] = 0
    n_once = 0
    for i in range(n):
        feature = np.int64(found[i])
        count = counts[feature]
        counts[feature] = 0
        if count == 1:  # nearly all: whole numbers, whose common factor comes last
            row = address_of(weights) + 2 * len(once) * feature
            for j in range(0, len(once), LANES):
                add_shorts(address_of(once) + 4 * j, row + 2 * j)
            n_once += 1
        else:
            factor = np.log1p(np.float64(count))
            for j in range(len(sums)):
                sums[j] += factor * weights[len(once) * feature + j]
        if n_once == MANY or i == n - 1:
            for j in range(len(sums)):
                sums[j] += LOG_2 * once[j]
            once[:] = 0
            n_once = 0


@kernel
def _scores(data: Bytes, starts: Int64s, ends: Int64s, tables: Tables, n_labels: int) -> Floats:
    base = address_of(data)
    moves, states, weights, priors, columns = tables
    places = (address_of(moves), address_of(states))
    width = (len(priors) + LANES - 1) // LANES * LANES
    n_features = len(weights) // width
    counts, found = np.zeros(n_features, np.int32), np.empty(n_features, np.int32)
    scores = np.full((len(starts), n_labels), NO_FEATURE, np.float32)
    sums, once = np.empty(len(priors), np.float64), np.empty(width, np.int32)
    for line in range(len(starts)):
        n = _found(base + starts[line], base + ends[line], places, counts, found)
        if n:
            _sum_features(n, found, counts, weights, once, sums)
            for j in range(len(sums)):
                score = np.float32(sums[j] * (1 / STEPS) + priors[j])
                scores[line, columns[j]] = max(scores[line, columns[j]], score)
    return scores
