"""Which documents look unsafe at first sight: a linear classifier over n-grams of characters, compiled.

It stands before the large model, which is a thousand times slower, and says which documents that one should read. The
logit of a label is a bias and the mean of the weights of all n-grams, of 1 to 4 characters, in a window of the text
(Joulin et al., Bag of Tricks for Efficient Text Classification, 2016, without the hidden layer). Windows are two
neighbouring segments of `SEGMENT` characters, so that an advert in a long page is seen; a document is as suspicious as
its worst window. The shipped model's biases are moved so that one half is what few ordinary documents reach, of each label as
many (tools/train_safety_linear.py): what is called a probability here says that, and no more.

Characters are those of `curation.text.normal` (NFKC, case folded); marks and what is never seen vanish, each digit is a
0, what is between words is one blank, and a blank between letters of scripts without blanks is none.

Costs about 20 ns a character.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.text import buffers
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of
from curation.text.normal import BREAK, KIND, MARK, POOL, SEVERAL, UNSPACED, folded, form_of, parts
from curation.text.spans import Bytes, Int64s
from quality_models.safety_linear import LinearModel

__all__ = ["ORDERS", "SEGMENT", "feature_ids", "label_probabilities", "suspicion"]

SEGMENT = 48
"""Characters of half a window."""
ORDERS = 4
BLANK = 0x20
PADDED = 16
"""Labels are padded to this many, so that a row of weights is one vector."""

FACTORS = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0xD6E8FEB86659FD93),
)
ONE, TWO, THREE, FOUR = FACTORS
SYMBOLS_FROM = 0x2190
"""Arrows, signs and emoji stand for themselves; punctuation below is a blank."""


class Weights(NamedTuple):
    """A model as the kernel takes it."""

    weights: npt.NDArray[np.int8]
    """int8[n_buckets * PADDED]"""
    shift: int


class State(NamedTuple):
    """The last three characters."""

    first: Int
    second: Int
    third: Int


def _padded(model: LinearModel) -> Weights:
    rows, labels = model.weights.shape
    padded = np.zeros((rows, PADDED), np.int8)
    padded[:, :labels] = model.weights
    return Weights(padded.reshape(-1), 64 - (rows.bit_length() - 1))


_KNOWN: dict[str, Weights] = {}


def _weights_of(model: LinearModel) -> Weights:
    if model.identity not in _KNOWN:
        _KNOWN[model.identity] = _padded(model)
    return _KNOWN[model.identity]


def label_probabilities(texts: pa.Array, model: LinearModel) -> npt.NDArray[np.float32]:
    """For each text and label the probability in its worst window: float32[n, n_labels]; 0 for a text without letters."""
    weights, shift = _weights_of(model)
    data, offsets = buffers(texts)
    labels = len(model.labels)
    scales, bias = np.zeros(PADDED, np.float32), np.full(PADDED, -30, np.float32)
    scales[:labels], bias[:labels] = model.scales, model.bias
    logits = np.full((len(texts), PADDED), -30, np.float32)
    _score(data, offsets, weights, shift, scales, bias, logits)
    found: npt.NDArray[np.float32] = (1 / (1 + np.exp(-logits[:, :labels]))).astype(np.float32)
    return found


def suspicion(texts: pa.Array, model: LinearModel) -> npt.NDArray[np.float32]:
    """The greatest probability of any label: float32[n]."""
    found: npt.NDArray[np.float32] = label_probabilities(texts, model).max(axis=1, initial=0)
    return found


def feature_ids(texts: pa.Array, n_buckets: int) -> tuple[npt.NDArray[np.uint32], Int64s]:
    """The n-grams of each text as rows of the weights, for training.

    Returns:
        ids uint32[total], ORDERS of them a character, and offsets int64[n + 1].
    """
    data, offsets = buffers(texts)
    ids = np.empty((len(data) + len(texts)) * ORDERS, np.uint32)
    ends = np.zeros(len(texts) + 1, np.int64)
    n = _ids(data, offsets, 64 - (n_buckets.bit_length() - 1), ids, ends)
    return ids[:n].copy(), ends


@inlined
def _next(p: Int, end: Int, at: Int, last: Int) -> tuple[Int, Int, Int]:
    """The next character that counts, 0 for none; where to go on; and the place in a form of several characters.

    `at` is the place in POOL plus one of the form that is being read, 0 for none.
    """
    while p < end:
        code, size = decode(p, end)
        form = form_of(code)
        if form & SEVERAL:
            start, stop = parts(form)
            place = start if at == 0 else at - 1
            if place >= stop:
                p, at = p + size, np.int64(0)
                continue
            code = POOL[place]
            form = form_of(code)
            at = place + 2
        else:
            p += size
        kind = form & KIND
        if kind == MARK:
            continue
        if kind != BREAK:
            code = folded(code, form)
            return np.int64(0x30) if 0x30 <= code <= 0x39 else code, p, at
        if code >= SYMBOLS_FROM and not 0x3000 <= code <= 0x303F and not 0xFF00 <= code <= 0xFF65:
            return code, p, at
        if last != BLANK:
            return np.int64(BLANK), p, at
    return np.int64(0), p, np.int64(0)


@inlined
def _bucket(hashed: Int, shift: Int) -> Int:
    return np.int64((hashed ^ hashed >> np.uint64(29)) * TWO >> np.uint64(shift))


@inlined
def _hashes(code: Int, state: State) -> tuple[Int, Int, Int, Int]:
    """Hashes of the 1 to 4 last characters."""
    one = np.uint64(code) * ONE
    two = (one ^ np.uint64(state.first)) * TWO
    three = (two ^ np.uint64(state.second)) * THREE
    return one, two, three, (three ^ np.uint64(state.third)) * FOUR


@inlined
def _joins(code: Int, state: State) -> Int:
    """Whether the blank before this character stands between letters of scripts without blanks."""
    if state.first != BLANK:
        return False
    return form_of(code) & KIND == UNSPACED and form_of(state.second) & KIND == UNSPACED


@kernel
def _ids(data: Bytes, offsets: Int64s, shift: int, ids: npt.NDArray[np.uint32], ends: Int64s) -> int:
    base, n = address_of(data), 0
    for row in range(len(offsets) - 1):
        p, end, at = base + offsets[row], base + offsets[row + 1], np.int64(0)
        state = State(np.int64(BLANK), np.int64(BLANK), np.int64(BLANK))
        while True:
            code, p, at = _next(p, end, at, state.first)
            if code == 0 or n + ORDERS > len(ids):
                break
            if _joins(code, state):
                state = State(state.second, state.third, np.int64(BLANK))
            for hashed in _hashes(code, state):
                ids[n] = _bucket(hashed, shift)
                n += 1
            state = State(code, state.first, state.second)
        ends[row + 1] = n
    return n


@inlined
def _add(sums: npt.NDArray[np.int32], weights: npt.NDArray[np.int8], bucket: Int) -> None:
    at = np.uint64(bucket * PADDED)
    for k in range(PADDED):
        sums[k] += weights[at + np.uint64(k)]


@inlined
def _judge(
    before: npt.NDArray[np.int32],
    sums: npt.NDArray[np.int32],
    count: Int,
    scales: npt.NDArray[np.float32],
    bias: npt.NDArray[np.float32],
    best: npt.NDArray[np.float32],
) -> None:
    for k in range(PADDED):
        logit = bias[k] + scales[k] * np.float32(before[k] + sums[k]) / np.float32(count)
        best[k] = max(best[k], logit)


@kernel
def _score(
    data: Bytes,
    offsets: Int64s,
    weights: npt.NDArray[np.int8],
    shift: int,
    scales: npt.NDArray[np.float32],
    bias: npt.NDArray[np.float32],
    logits: npt.NDArray[np.float32],
) -> None:
    base = address_of(data)
    before, sums = np.zeros(PADDED, np.int32), np.zeros(PADDED, np.int32)
    for row in range(len(offsets) - 1):
        p, end, at = base + offsets[row], base + offsets[row + 1], np.int64(0)
        state = State(np.int64(BLANK), np.int64(BLANK), np.int64(BLANK))
        before[:] = 0
        sums[:] = 0
        held, count = np.int64(0), np.int64(0)
        while True:
            code, p, at = _next(p, end, at, state.first)
            if code == 0:
                break
            if count == SEGMENT:
                if held > 0:
                    _judge(before, sums, (held + count) * ORDERS, scales, bias, logits[row])
                before[:] = sums
                sums[:] = 0
                held, count = count, np.int64(0)
            if _joins(code, state):
                state = State(state.second, state.third, np.int64(BLANK))
            for hashed in _hashes(code, state):
                _add(sums, weights, _bucket(hashed, shift))
            count += 1
            state = State(code, state.first, state.second)
        if held + count > 0:
            _judge(before, sums, (held + count) * ORDERS, scales, bias, logits[row])
