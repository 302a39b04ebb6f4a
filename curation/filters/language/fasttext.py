"""fastText's classifiers as compiled kernels: language labels and their probabilities for spans of text.

A text is the mean of the rows of its words, of the words' character n-grams, and of the end of the line; its
labels are scored by a product with the output matrix. Labels and probabilities are those of the library's
`predict`, with two differences: a probability is never above 1 (the library's reach 1.0002), and those of
the loss `ova` use the logistic function itself and not its table of 512 steps.

Costs with lid.176.ftz: SPEED. Each call that runs at the same time has its own cache of words, which lasts from call
to call and never changes a result. Sums are in float32 and in one fixed order.

Method: Joulin et al., "Bag of Tricks for Efficient Text Classification" (arXiv:1607.01759) and "FastText.zip"
(arXiv:1612.03651); hashes, splitting and the tree of labels as in the fastText library.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from curation.filters.language.fasttext_words import (
    LONGEST_CACHED,
    Cache,
    Floats,
    Int32s,
    Tables,
    hash_of,
    read_line,
)
from curation.filters.language.float_rows import product
from curation.text import Spans, kernel
from curation.text.jit import inlined
from curation.text.memory import Int, address_of
from curation.text.spans import Bytes, Int64s, bounds
from quality_models.fasttext_file import FastTextModel

__all__ = ["FastText"]

CACHE_BYTES = 1 << 22
MOST_SLOTS = 1 << 15
ROWS_AT_ONCE = 1024
EPSILON = 1e-5
"""What the library adds to a probability before it takes the logarithm, and so to every factor of a product."""
SOFTMAX, OVA, HS = range(3)
KINDS = {"softmax": SOFTMAX, "ova": OVA, "hs": HS}


class FastText:
    """A classifier over spans of UTF-8; safe to use from several threads at once.

    `labels`: names of the labels, in the order of the columns of `probabilities`.
    """

    def __init__(self, model: FastTextModel) -> None:
        self.labels = model.labels
        self._input = np.ascontiguousarray(model.input)
        self._output = np.ascontiguousarray(model.output)
        self._tables = _tables(model)
        self._idle: list[Cache] = []

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

    def _run(self, task: Any, data: Bytes, starts: Int64s, ends: Int64s, *found: Any) -> None:
        spans = bounds(data, Spans(starts, ends, np.zeros(1, np.int64)))
        try:
            cache = self._idle.pop()
        except IndexError:  # all are in use by calls in other threads
            cache = _cache(self._tables)
        task(self._tables, cache, self._input.ctypes.data, self._output.ctypes.data, *spans, *found)
        self._idle.append(cache)


def _tables(model: FastTextModel) -> Tables:
    n_labels = len(model.labels)
    slots = np.full(1 << (2 * len(model.starts)).bit_length(), -1, np.int32)
    _fill_slots(model.entries, model.starts, model.ends, slots)
    ngram_rows = np.zeros(0, np.int32)
    if model.pruned:
        ngram_rows = np.full(max(model.bucket, 1), -1, np.int32)
        ngram_rows[model.kept] = model.n_words + model.kept_rows
    left, right, depth = _label_tree(model.label_counts)
    words = [model.entries[start:end].tobytes() for start, end in zip(model.starts, model.ends, strict=True)]
    return Tables(
        entries=model.entries,
        starts=model.starts,
        ends=model.ends,
        slots=slots,
        ngram_rows=ngram_rows,
        left=left,
        right=right,
        slack=(1 + EPSILON) ** depth,
        kind=KINDS[model.loss],
        dim=model.input.shape[1],
        n_words=model.n_words,
        n_labels=n_labels,
        min_n=model.min_n,
        max_n=model.max_n,
        word_ngrams=model.word_ngrams,
        bucket=model.bucket,
        end_row=words.index(b"</s>") if b"</s>" in words[: model.n_words] else -1,
    )


def _cache(t: Tables) -> Cache:
    """An empty cache of at most 4 MiB of vectors."""
    n_slots = max(16, min(MOST_SLOTS, CACHE_BYTES // (4 * t.dim)))
    return Cache(
        keys=np.zeros(n_slots * LONGEST_CACHED, np.uint8),
        lengths=np.zeros(n_slots + 1, np.int32),
        features=np.zeros(n_slots + 1, np.int32),
        vectors=np.zeros((n_slots + 2) * t.dim, np.float32),
        rows=np.zeros(ROWS_AT_ONCE, np.int64),
        pending=np.zeros(ROWS_AT_ONCE, np.int64),
        runs=np.zeros(max(t.word_ngrams, 1), np.uint64),
        hidden=np.zeros(t.dim, np.float32),
        logits=np.zeros(t.n_labels, np.float32),
        nodes=np.zeros(t.n_labels + 1, np.int32),
        scores=np.zeros(2 * t.n_labels, np.float64),
    )


def _label_tree(counts: Int64s) -> tuple[Int32s, Int32s, int]:
    """Huffman's tree as fastText builds it: children of each node, int32[2 n - 1] each, and its depth.

    Leaves are the labels, by falling count; node n + i is the i-th that joins the two lightest; the last is the root.
    """
    n = len(counts)
    left, right = np.full(2 * n - 1, -1, np.int32), np.full(2 * n - 1, -1, np.int32)
    weights = [*counts.tolist()]
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
def _fill_slots(entries: Bytes, starts: Int64s, ends: Int64s, slots: Int32s) -> None:
    """Hash table of a dictionary, by linear probing; of equal entries the last counts, as in the library."""
    mask = len(slots) - 1
    for entry in range(len(starts)):
        slot = np.int64(hash_of(entries, starts[entry], ends[entry])) & mask
        while slots[slot] >= 0:
            other = slots[slot]
            if np.array_equal(entries[starts[other] : ends[other]], entries[starts[entry] : ends[entry]]):
                break
            slot = (slot + 1) & mask
        slots[slot] = entry


@inlined
def _logistic(x: Any) -> float:
    return 1.0 / (1.0 + math.exp(-np.float64(x)))


@inlined
def _fill_logits(t: Tables, c: Cache, output: Int) -> Any:
    """Products of a line with all labels, into `logits`; the largest."""
    hidden = address_of(c.hidden)
    largest = np.float32(-np.inf)
    for label in range(t.n_labels):
        c.logits[label] = product(hidden, output + 4 * label * t.dim, t.dim)
        largest = max(largest, c.logits[label])
    return largest


@inlined
def _go_right(t: Tables, c: Cache, output: Int, node: Int) -> float:
    """Probability of the right child of a node of the tree."""
    return _logistic(product(address_of(c.hidden), output + 4 * (node - t.n_labels) * t.dim, t.dim))


@inlined
def _best_leaf(t: Tables, c: Cache, output: Int) -> tuple[Int, float]:
    """The likeliest label of the tree, the likelier child of each node first, and its probability."""
    best, best_label = -1.0, -1
    c.nodes[0], c.scores[0] = 2 * t.n_labels - 2, 1.0
    n_open = 1
    while n_open > 0:
        n_open -= 1
        node, score = np.int64(c.nodes[n_open]), c.scores[n_open]
        while node >= t.n_labels and score * t.slack >= best:
            right = _go_right(t, c, output, node)
            likelier, other = (t.right[node], t.left[node]) if right >= 0.5 else (t.left[node], t.right[node])
            p = max(right, 1 - right)
            c.nodes[n_open], c.scores[n_open] = other, score * (1 - p + EPSILON)
            n_open += 1
            node, score = np.int64(likelier), score * (p + EPSILON)
        if node < t.n_labels and (score > best or (score == best and node < best_label)):
            best, best_label = score, node
    return best_label, best


@kernel
def _top(
    t: Tables,
    c: Cache,
    matrix: int,
    output: int,
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    labels: Int32s,
    found: Floats,
) -> None:
    at = address_of(data)
    for line in range(len(starts)):
        if read_line(t, c, matrix, at + starts[line], at + ends[line]) == 0:
            continue
        if t.kind == HS:
            label, probability = _best_leaf(t, c, output)
        else:
            largest = _fill_logits(t, c, output)
            label = np.argmax(c.logits)
            probability = _logistic(largest) if t.kind == OVA else 1.0 / np.exp(c.logits - largest).sum()
        if probability >= 0:  # it is not where the model holds NaN
            labels[line], found[line] = label, min(probability, 1.0)


@kernel
def _probabilities(
    t: Tables, c: Cache, matrix: int, output: int, data: Bytes, starts: Int64s, ends: Int64s, found: Floats
) -> None:
    at = address_of(data)
    for line in range(len(starts)):
        if read_line(t, c, matrix, at + starts[line], at + ends[line]) == 0:
            continue
        if t.kind == HS:
            scores = c.scores
            scores[2 * t.n_labels - 2] = 1.0
            for node in range(2 * t.n_labels - 2, t.n_labels - 1, -1):
                right = _go_right(t, c, output, node)
                scores[t.left[node]] = scores[node] * (1 - right + EPSILON)
                scores[t.right[node]] = scores[node] * (right + EPSILON)
            for label in range(t.n_labels):
                found[line, label] = min(scores[label], 1.0)
        else:
            largest = _fill_logits(t, c, output)
            for label in range(t.n_labels):
                x = c.logits[label]
                found[line, label] = _logistic(x) if t.kind == OVA else math.exp(x - largest)
            if t.kind == SOFTMAX:
                found[line] /= found[line].sum()
