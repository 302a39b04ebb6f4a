"""fastText's classifiers as compiled kernels: language labels and their probabilities for spans of text.

A text is the mean of the rows of its words, of the words' character n-grams, and of the end of the line; its
labels are scored by a product with the output matrix. Labels and probabilities are those of the library's
`predict`, with two differences: a probability is never above 1 (the library's reach 1.0002), and those of
the loss `ova` use the logistic function itself and not its table of 512 steps.

Costs with lid.176.ftz on crawl text in 25 languages (lines of 91 bytes, a third of the words not in the cache): `top`
reads 45 to 59 MB/s a core, 7 to 8 times the library in the same process; 100 MB/s where words are long or Chinese,
200 where all of them are in the cache. Each call that runs at the same time has its own cache of words, which
lasts from call to call and never changes a result. Sums are in float32 and in one fixed order.

Method: Joulin et al., "Bag of Tricks for Efficient Text Classification" (arXiv:1607.01759) and "FastText.zip"
(arXiv:1612.03651); hashes, splitting and the tree of labels as in the fastText library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.exponentials import FAR, exp_row, largest_of, logistic_row
from curation.filters.language.fasttext_words import (
    CACHE_LINE,
    END_OF_LINE,
    MARKS,
    RECORD_HEAD,
    Floats,
    Tables,
    UInt32s,
    Work,
    hash_of,
    memory_of,
    read_line,
    same_bytes,
)
from curation.filters.language.float_rows import AT_ONCE, in_blocks, product, products
from curation.filters.language.ngram_hashes import MAX_CHARS, reciprocal
from curation.text import Spans, kernel
from curation.text.jit import inlined
from curation.text.memory import Int, address_of
from curation.text.spans import Bytes, Int64s, bounds
from quality_models.fasttext_file import FastTextModel

__all__ = ["FastText"]

CACHE_BYTES = 1 << 22
MOST_SLOTS = 1 << 15
FEWEST_SLOTS = 16
ROWS_AT_ONCE = 1024
EPSILON = 1e-5
"""What the library adds to a probability before it takes the logarithm, and so to every factor of a product."""
SOFTMAX, OVA, HS = range(3)
STEPS, FARTHEST = 32, 32.0
EXPONENTIALS = np.exp(-np.arange(STEPS * FARTHEST + 1) / STEPS)
KINDS = {"softmax": SOFTMAX, "ova": OVA, "hs": HS}


Int32s: TypeAlias = npt.NDArray[np.int32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]


class Scoring(NamedTuple):
    """How labels are scored.

    left, right: uint32[2 n_labels - 1], children of each node of the tree of labels: leaves, which are the labels,
    come first, the root last. slack: by how much a product can grow below a node.
    """

    kind: int
    dim: int
    n_labels: int
    left: UInt32s
    right: UInt32s
    slack: float


class Room(NamedTuple):
    """For one call at a time.

    logits: float32[...], n_labels and as many more as `products` writes. nodes: int64[n_labels]. scores:
    float64[2 n_labels].
    """

    logits: Floats
    nodes: Int64s
    scores: npt.NDArray[np.float64]


class FastText:
    """A classifier over spans of UTF-8; safe to use from several threads at once.

    `labels`: names of the labels, in the order of the columns of `probabilities`.
    """

    def __init__(self, model: FastTextModel) -> None:
        self.labels = model.labels
        kept, matrix = _ngram_rows(model)
        self._input = np.ascontiguousarray(matrix)
        self._output = np.ascontiguousarray(model.output)
        self._blocks = in_blocks(self._output)
        self._tables = _tables(model, kept)
        left, right, depth = _label_tree(model.label_counts)
        self._scoring = Scoring(
            KINDS[model.loss], self._tables.dim, len(model.labels), left, right, (1 + EPSILON) ** depth
        )
        self._idle: list[tuple[Work, Room]] = []

    def probabilities(self, data: Bytes, starts: Int64s, ends: Int64s) -> Floats:
        """Of each label for each span: float32[n, n_labels]; zeros where a span has nothing the model knows.

        data: uint8[...], the text; starts, ends: int64[n], the spans in it, in bytes. For the losses softmax and hs
        they add up to 1, as far as the library's do; for ova each label is judged by itself.

        Raises InputError for spans outside of the data.
        """
        found = np.zeros((len(starts), len(self.labels)), np.float32)
        self._run(_probabilities, data, starts, ends, found)
        return found

    def top(self, data: Bytes, starts: Int64s, ends: Int64s) -> tuple[Int32s, Floats]:
        """Index and probability of the likeliest label of each span: int32[n], float32[n].

        The first of equal ones; -1 and 0 where a span has nothing the model knows. Raises as `probabilities`.
        """
        label, probability = np.full(len(starts), -1, np.int32), np.zeros(len(starts), np.float32)
        self._run(_top, data, starts, ends, label, probability)
        return label, probability

    def _run(self, task: Callable[..., None], data: Bytes, starts: Int64s, ends: Int64s, *found: Any) -> None:
        spans = bounds(data, Spans(starts, ends, np.zeros(1, np.int64)))
        try:
            work, room = self._idle.pop()
        except IndexError:  # all are in use, by calls in other threads
            work, room = _work(self._tables), _room(len(self.labels))
        matrices = self._input.ctypes.data, self._output.ctypes.data, self._blocks.ctypes.data
        task(self._tables, work, self._scoring, room, *matrices, *spans, *found)
        self._idle.append((work, room))


def _ngram_rows(model: FastTextModel) -> tuple[UInt64s, Floats]:
    """Which n-grams have rows, as in Tables, and the input matrix with those rows in the order of the n-grams."""
    if not model.pruned:
        return np.zeros(0, np.uint64), model.input
    last_first = model.kept[::-1]  # of equal ones the last counts, as in the library
    numbers, first = np.unique(last_first, return_index=True)
    rows = np.concatenate([np.arange(model.n_words), model.n_words + model.kept_rows[::-1][first]])
    matrix = _aligned(4 * len(rows) * model.input.shape[1]).view(np.float32).reshape(len(rows), -1)
    matrix[:] = model.input[rows]
    kept = np.zeros((model.bucket // 64 + 1, 2), np.uint64)
    np.bitwise_or.at(kept[:, 0], numbers // 64, np.uint64(1) << (numbers % 64).astype(np.uint64))
    kept[:, 1] = model.n_words + np.searchsorted(numbers, np.arange(len(kept)) * 64)
    return kept.reshape(-1), matrix


def _tables(model: FastTextModel, kept: UInt64s) -> Tables:
    slots = np.zeros(1 << (2 * len(model.starts)).bit_length(), np.uint32)
    _fill_slots(model.entries, model.starts, model.ends, slots)
    lengths = model.ends - model.starts
    ends_line = [
        index
        for index in np.flatnonzero(lengths[: model.n_words] == len(END_OF_LINE)).tolist()
        if model.entries[model.starts[index] : model.ends[index]].tobytes() == END_OF_LINE
    ]
    return Tables(
        model.entries,
        model.starts,
        model.ends,
        slots,
        kept,
        MARKS,
        dim=model.input.shape[1],
        n_words=model.n_words,
        min_n=max(model.min_n, 1),
        max_n=model.max_n,
        word_ngrams=model.word_ngrams,
        bucket=model.bucket,
        reciprocal=reciprocal(max(model.bucket, 1)),
        end_row=ends_line[-1] if ends_line else -1,
    )


def _aligned(n_bytes: int) -> Bytes:
    """Zeros that begin with a cache line, so that a row of 16 floats is in one and not in two."""
    found = np.zeros(n_bytes + CACHE_LINE, np.uint8)
    first = -found.ctypes.data % CACHE_LINE
    return found[first : first + n_bytes]


def _work(t: Tables) -> Work:
    """An empty cache of words, of about 4 MiB at most."""
    size = RECORD_HEAD + 4 * t.dim
    n_slots = max(FEWEST_SLOTS, min(MOST_SLOTS, CACHE_BYTES // size))
    return Work(
        records=_aligned((n_slots + 1) * size),
        rows=np.zeros(ROWS_AT_ONCE, np.int64),
        pending=np.zeros(ROWS_AT_ONCE, np.int64),
        words=np.zeros(4 * ROWS_AT_ONCE, np.int64),
        runs=np.zeros(max(t.word_ngrams, 1), np.int64),
        hidden=np.zeros(2 * t.dim, np.float32),
        hashes=np.zeros(MAX_CHARS, np.uint32),
    )


def _room(n_labels: int) -> Room:
    length = -(-n_labels // AT_ONCE) * AT_ONCE
    return Room(np.zeros(length, np.float32), np.zeros(n_labels, np.int64), np.zeros(2 * n_labels, np.float64))


def _label_tree(counts: Int64s) -> tuple[UInt32s, UInt32s, int]:
    """Huffman's tree as fastText builds it: children of each node, uint32[2 n - 1] each, and its depth.

    Leaves are the labels, by falling count; node n + i is the i-th that joins the two lightest; the last is the root.
    """
    n = len(counts)
    left, right = np.zeros(2 * n - 1, np.uint32), np.zeros(2 * n - 1, np.uint32)
    weights = counts.tolist()
    depths = [0] * n
    leaf, joined = n - 1, n
    for node in range(n, 2 * n - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and (joined == node or weights[leaf] < weights[joined]):
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(joined)
                joined += 1
        left[node], right[node] = pair
        weights.append(weights[pair[0]] + weights[pair[1]])
        depths.append(1 + max(depths[pair[0]], depths[pair[1]]))
    return left, right, depths[-1]


@kernel
def _fill_slots(entries: Bytes, starts: Int64s, ends: Int64s, slots: UInt32s) -> None:
    """Hash table of a dictionary, by linear probing; of equal entries the last counts, as in the library."""
    at = address_of(entries)
    mask = len(slots) - 1
    for entry in range(len(starts)):
        slot = np.int64(hash_of(at + starts[entry], at + ends[entry])) & mask
        while slots[slot] > 0:
            other = np.int64(slots[slot]) - 1
            length = ends[other] - starts[other]
            if length == ends[entry] - starts[entry] and same_bytes(at + starts[other], at + starts[entry], length):
                break
            slot = (slot + 1) & mask
        slots[slot] = entry + 1


@inlined
def _logistic(x: Any) -> float:
    return 1.0 / (1.0 + math.exp(-np.float64(x)))


@inlined
def _likelier(x: Any) -> Any:
    """The larger of _logistic(x) and _logistic(-x), to 2e-8: a step of a table and four terms, no call of exp."""
    distance: Any = abs(np.float64(x))
    if np.isnan(distance):  # of a damaged model: it must not reach the table
        return distance
    distance = min(distance, FARTHEST)
    step = np.int64(distance * STEPS)
    rest = step / STEPS - distance
    small = EXPONENTIALS[step] * (1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest / 24))))
    return 1.0 / (1.0 + small)


@inlined
def _fill_logits(s: Scoring, hidden: Int, blocks: Int, logits: Floats) -> Any:
    """Products of a line with all labels, FAR behind them; the largest."""
    row = address_of(logits)
    products(row, hidden, blocks, len(logits) // AT_ONCE, s.dim)
    for label in range(s.n_labels, len(logits)):
        logits[label] = FAR
    return largest_of(row, len(logits))


@inlined
def _fill_scores(s: Scoring, room: Room, hidden: Int, blocks: Int) -> None:
    """The probability of each node of the tree of labels."""
    scores, right = room.scores, room.logits
    row = address_of(right)
    products(row, hidden, blocks, len(right) // AT_ONCE, s.dim)
    logistic_row(row, len(right))
    scores[2 * s.n_labels - 2] = 1.0
    for node in range(2 * s.n_labels - 2, s.n_labels - 1, -1):
        p = np.float64(right[node - s.n_labels])
        scores[s.left[node]] = scores[node] * (1.0 - p + EPSILON)
        scores[s.right[node]] = scores[node] * (p + EPSILON)


@inlined
def _best_leaf(s: Scoring, room: Room, hidden: Int, output: Int) -> tuple[Int, float]:
    """The likeliest label of the tree, the likelier child of each node first, and its probability; -1 with NaN."""
    nodes, scores, left, right = room.nodes, room.scores, s.left, s.right
    best, best_label = -1.0, np.int64(-1)
    nodes[0], scores[0] = 2 * s.n_labels - 2, 1.0
    n_open = 1
    while n_open > 0:
        n_open -= 1
        node, score = nodes[n_open], scores[n_open]
        while node >= s.n_labels and score * s.slack >= best:
            x = product(hidden, output + 4 * (node - s.n_labels) * s.dim, s.dim)
            p = _likelier(x)
            first, second = np.int64(left[node]), np.int64(right[node])
            if x > 0:
                first, second = second, first
            nodes[n_open], scores[n_open] = second, score * (1.0 - p + EPSILON)
            n_open += 1
            node, score = first, score * (p + EPSILON)
        if node < s.n_labels and (score > best or (score == best and node < best_label)):
            best, best_label = score, node
    return best_label, best


@kernel
def _top(
    t: Tables,
    work: Work,
    s: Scoring,
    room: Room,
    matrix: int,
    output: int,
    blocks: int,
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    labels: Int32s,
    found: Floats,
) -> None:
    at = address_of(data)
    m = memory_of(t, work, matrix)
    for line in range(len(starts)):
        if read_line(m, at + starts[line], at + ends[line]) == 0:
            continue
        if s.kind == HS:
            label, probability = _best_leaf(s, room, m.hidden, output)
        else:
            logits = room.logits
            largest = _fill_logits(s, m.hidden, blocks, logits)
            label, probability = np.int64(np.argmax(logits[: s.n_labels])), _logistic(largest)
            if s.kind == SOFTMAX:
                probability = 1.0 / np.float64(exp_row(address_of(logits), len(logits), largest, 1.0))
        if probability >= 0:  # it is not where the model holds NaN
            labels[line], found[line] = label, min(probability, 1.0)


@kernel
def _probabilities(
    t: Tables,
    work: Work,
    s: Scoring,
    room: Room,
    matrix: int,
    output: int,
    blocks: int,
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    found: Floats,
) -> None:
    at = address_of(data)
    m = memory_of(t, work, matrix)
    for line in range(len(starts)):
        if read_line(m, at + starts[line], at + ends[line]) == 0:
            continue
        if s.kind == HS:
            _fill_scores(s, room, m.hidden, blocks)
            for label in range(s.n_labels):
                found[line, label] = min(room.scores[label], 1.0)
            continue
        logits = room.logits
        row = address_of(logits)
        share = np.float32(1.0)
        largest = _fill_logits(s, m.hidden, blocks, logits)
        if s.kind == OVA:
            logistic_row(row, len(logits))
        else:
            share /= exp_row(row, len(logits), largest, 1.0)
        for label in range(s.n_labels):
            found[line, label] = logits[label] * share
