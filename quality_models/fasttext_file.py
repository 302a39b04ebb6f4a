"""Reads fastText's model files (.bin and .ftz): classifiers only, with any of their losses but `ns`.

A file holds: magic and version, the arguments of the training, the dictionary (words, then labels, each with
its count), the table of the n-grams that pruning kept, the input matrix (one row per word, then one per
n-gram bucket), and the output matrix (one row per label). Either matrix may be product-quantised: columns in
groups, each group of a row one of 256 centroids, with the row's norm quantised apart or not.

Costs: one pass over the dictionary (about 4 million entries a second); a dense matrix stays in the file, mapped
into memory, and is read where it is used; a quantised one is written out as float32 (lid.176.ftz: 3 MB).
The format is that of the fastText library, version 12: its `Args`, `Dictionary`, `DenseMatrix`, `QuantMatrix`
and `ProductQuantizer`, in that order (github.com/facebookresearch/fastText).
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["FastTextModel", "Loss", "read_fasttext"]

MAGIC = 793_712_314
VERSION = 12
LABEL_PREFIX = "__label__"
CENTROIDS = 256
MAX_NGRAM = 16
"""Longest character or word n-gram that a file may ask for: work per character grows with it. Usual are 3 to 6."""
MAX_COUNT = 10**15
"""fastText takes this number for "not yet counted" where it builds the tree of labels."""

Loss: TypeAlias = Literal["hs", "softmax", "ova"]
LOSSES: dict[int, Loss] = {1: "hs", 3: "softmax", 4: "ova"}
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised"}

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]


class FastTextModel(NamedTuple):
    """A classifier as arrays.

    labels: names without `__label__`, in the order of the file, which is by count. label_counts:
    int64[n_labels], how often each was seen in training: hs builds its tree from them.
    entries: uint8[...], the dictionary as it is in the file; the UTF-8 of entry i, words first, then labels,
    is `entries[starts[i]:ends[i]]` (int64[n_words + n_labels] each).
    min_n, max_n: lengths in characters of the n-grams of words; 0 as max_n: none. word_ngrams: 1 or less: none.
    bucket: an n-gram with hash h has number h % bucket, and the input row n_words + that number;
    unless `pruned`, then row n_words + kept_rows[i] where kept[i] is that number (int32 each), else no row.
    input: float32[n_words + n-gram rows, dim]. output: float32[n_labels, dim].
    Both may be read-only, not aligned, and memory of the file itself.
    """

    labels: list[str]
    label_counts: Ints
    entries: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints
    n_words: int
    min_n: int
    max_n: int
    word_ngrams: int
    bucket: int
    loss: Loss
    pruned: bool
    kept: npt.NDArray[np.int32]
    kept_rows: npt.NDArray[np.int32]
    input: Floats
    output: Floats


class _Cursor:
    """Reads a mapped file front to back; every read names what it reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.at = 0
        if self.size < struct.calcsize("<2i"):
            self.fail(f"expected a fastText model, found a file of {self.size} bytes")
        with path.open("rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def fail(self, problem: str, hint: str = "copy or download the model again") -> NoReturn:
        raise ValueError(f"{self.path}, byte {self.at:,}: {problem}: {hint}")

    def numbers(self, form: str, what: str) -> tuple[int, ...]:
        """Little-endian numbers as in `struct`."""
        return struct.unpack("<" + form, self.array(np.uint8, struct.calcsize("<" + form), what).tobytes())

    def number(self, form: str, what: str) -> int:
        return self.numbers(form, what)[0]

    def array(self, kind: type[np.generic], count: int, what: str) -> npt.NDArray[np.generic]:
        """`count` items, in the file's own memory."""
        n_bytes = count * np.dtype(kind).itemsize
        if count < 0 or n_bytes > self.size - self.at:
            self.fail(
                f"expected {what} of {n_bytes:,} bytes, found {self.size - self.at:,} until the end of the file; "
                "it is cut off or damaged"
            )
        found = np.frombuffer(self.memory, kind, count, self.at)
        self.at += n_bytes
        return found


class _Arguments(NamedTuple):
    dim: int
    word_ngrams: int
    loss: Loss
    bucket: int
    min_n: int
    max_n: int


class _Dictionary(NamedTuple):
    entries: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints
    counts: Ints
    n_words: int
    kept: npt.NDArray[np.int32]
    kept_rows: npt.NDArray[np.int32]
    pruned: bool


def read_fasttext(path: Path) -> FastTextModel:
    """The classifier in a fastText file.

    Raises ValueError for a file that is none (other format, other version, word vectors, trained with negative
    sampling), and for one that is cut off or inconsistent; OSError if it cannot be read. The numbers in
    a dense input matrix are not looked at: NaN in it means labels without sense, never a crash.
    """
    cursor = _Cursor(path)
    arguments = _read_arguments(cursor)
    words = _read_dictionary(cursor, arguments)
    quantised = bool(cursor.number("B", "the mark of a quantised input"))
    if words.pruned and not quantised:
        cursor.fail("expected a quantised input matrix, since the dictionary is pruned, found a dense one")
    n_ngrams = len(words.kept) if words.pruned else arguments.bucket
    source = _read_matrix(cursor, quantised, (words.n_words + n_ngrams, arguments.dim), "input matrix")
    both = bool(cursor.number("B", "the mark of a quantised output"))
    n_labels = len(words.starts) - words.n_words
    target = _read_matrix(cursor, quantised and both, (n_labels, arguments.dim), "output matrix")
    if cursor.at != cursor.size:
        cursor.fail(f"expected the end of the file, found {cursor.size - cursor.at:,} more bytes")
    if not np.isfinite(target).all():
        cursor.fail("expected finite numbers in the output matrix, found NaN or infinity")
    return FastTextModel(
        _labels(cursor, words),
        words.counts[words.n_words :],
        *words[:3],
        words.n_words,
        arguments.min_n,
        arguments.max_n,
        arguments.word_ngrams,
        arguments.bucket,
        arguments.loss,
        words.pruned,
        words.kept,
        words.kept_rows,
        source,
        target,
    )


def _read_arguments(cursor: _Cursor) -> _Arguments:
    """Magic, version and the arguments of the training that matter afterwards."""
    magic, version = cursor.numbers("2i", "magic and version")
    if magic != MAGIC:
        cursor.fail(
            f"expected a fastText model (magic number {MAGIC}), found {magic}",
            "give the path of a .bin or .ftz file, not of .vec or of a compressed one",
        )
    if version != VERSION:
        cursor.fail(
            f"expected version {VERSION} of fastText's format, found {version}",
            "load it with a fastText library that reads it and save it again",
        )
    dim, _, _, _, _, word_ngrams, loss, model, bucket, min_n, max_n, _ = cursor.numbers("12i", "arguments")
    cursor.numbers("d", "sampling threshold")
    if model != 3:
        cursor.fail(
            f"expected a classifier (model 3, supervised), found {MODELS.get(model, 'model')} {model}",
            "word vectors have no labels; train with `fasttext supervised`",
        )
    if loss not in LOSSES:
        cursor.fail(
            f"expected loss 1 (hs), 3 (softmax) or 4 (ova), found {loss}{' (ns)' if loss == 2 else ''}",
            "negative sampling gives no probabilities of labels; train with another loss",
        )
    if dim < 1 or max(min_n, max_n, word_ngrams) > MAX_NGRAM or min(min_n, max_n, word_ngrams, bucket) < 0:
        cursor.fail(
            f"expected dim >= 1, n-grams of 0 to {MAX_NGRAM}, bucket >= 0, found dim {dim}, minn {min_n}, maxn {max_n}, "
            f"wordNgrams {word_ngrams}, bucket {bucket}"
        )
    if bucket == 0 and (max_n > 0 or word_ngrams > 1):
        cursor.fail(f"expected buckets for n-grams (maxn {max_n}, wordNgrams {word_ngrams}), found 0")
    return _Arguments(dim, word_ngrams, LOSSES[loss], bucket, min_n, max_n)


def _read_dictionary(cursor: _Cursor, arguments: _Arguments) -> _Dictionary:
    """Words and labels with their counts, and which n-grams pruning kept."""
    size, n_words, n_labels, _, n_kept = cursor.numbers("3i2q", "sizes of the dictionary")
    if n_words < 0 or n_labels < 1 or size != n_words + n_labels:
        cursor.fail(f"expected words and at least one label, found {n_words} + {n_labels} of {size} entries")
    first = cursor.at
    ends = _entry_ends(cursor, size)
    entries = np.frombuffer(cursor.memory, np.uint8, cursor.at - first, first).copy()
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 10])
    counts = entries[ends[:, None] + np.arange(1, 9)].copy().view("<i8")[:, 0].astype(np.int64)
    kinds = entries[ends + 9]
    wrong = np.flatnonzero(kinds != (np.arange(size) >= n_words))
    if len(wrong):
        cursor.fail(f"expected {n_words} words, then {n_labels} labels, found kind {kinds[wrong[0]]} at {wrong[0]}")
    seen = counts[n_words:]
    if seen.min() < 0 or seen.max() >= MAX_COUNT or int(seen.astype(object).sum()) >= MAX_COUNT:
        cursor.fail(f"expected counts of labels from 0 to 10^15, found {seen.min():,} to {seen.max():,}")
    if n_kept > arguments.bucket:
        cursor.fail(f"expected at most {arguments.bucket} n-grams left by pruning, found {n_kept}")
    pairs = cursor.array(np.int32, 2 * max(n_kept, 0), "n-grams left by pruning").reshape(-1, 2).astype(np.int32)
    kept, rows = pairs[:, 0].copy(), pairs[:, 1].copy()
    if n_kept > 0 and not (
        kept.min() >= 0 and kept.max() < arguments.bucket and 0 <= rows.min() < rows.max() + 1 <= n_kept
    ):
        cursor.fail(
            f"expected n-grams left by pruning below {arguments.bucket} in rows below {n_kept}, found {kept.min()} "
            f"to {kept.max()} in rows {rows.min()} to {rows.max()}"
        )
    return _Dictionary(entries, starts, ends, counts, n_words, kept, rows, n_kept >= 0)


def _entry_ends(cursor: _Cursor, size: int) -> Ints:
    """Where the text of each entry ends, from the start of the entries; after it a 0, int64 count, int8 kind."""
    if size * 10 > cursor.size - cursor.at:
        cursor.fail(f"expected {size:,} dictionary entries, found {cursor.size - cursor.at:,} bytes; it is cut off")
    ends = np.zeros(size, np.int64)
    find, at = cursor.memory.find, cursor.at
    for index in range(size):
        end = find(b"\0", at)
        if end < 0 or end + 10 > cursor.size:
            cursor.fail(
                f"expected {size:,} dictionary entries, found {index:,} until the end of the file; it is cut off"
            )
        ends[index] = end
        at = end + 10
    ends -= cursor.at
    cursor.at = at
    return ends


def _labels(cursor: _Cursor, words: _Dictionary) -> list[str]:
    spans = zip(words.starts[words.n_words :], words.ends[words.n_words :], strict=True)
    try:
        names = [words.entries[start:end].tobytes().decode().removeprefix(LABEL_PREFIX) for start, end in spans]
    except UnicodeDecodeError as error:
        cursor.fail(f"expected labels in UTF-8, found {error.object!r}")
    return names


def _read_matrix(cursor: _Cursor, quantised: bool, shape: tuple[int, int], what: str) -> Floats:
    """float32[shape]: in the file's memory if it is dense there, else written out."""
    if quantised:
        return _read_quantised(cursor, shape, what)
    _check_shape(cursor, cursor.numbers("2q", f"shape of the {what}"), shape, what)
    values = cursor.array(np.float32, shape[0] * shape[1], what).reshape(shape)
    return values.astype("<f4", copy=False)


def _check_shape(cursor: _Cursor, found: tuple[int, ...], expected: tuple[int, int], what: str) -> None:
    if found != expected:
        cursor.fail(f"expected an {what} of {expected[0]:,} x {expected[1]:,}, found {found[0]:,} x {found[1]:,}")


def _read_quantised(cursor: _Cursor, shape: tuple[int, int], what: str) -> Floats:
    """A product-quantised matrix as float32[shape]."""
    with_norms = bool(cursor.number("B", f"mark of norms of the {what}"))
    _check_shape(cursor, cursor.numbers("2q", f"shape of the {what}"), shape, what)
    n_codes = cursor.number("i", f"size of the {what}")
    codes = cursor.array(np.uint8, n_codes, f"codes of the {what}")
    groups = _read_centroids(cursor, shape[1], f"centroids of the {what}")
    if n_codes != shape[0] * len(groups):
        cursor.fail(f"expected {shape[0]:,} x {len(groups)} codes of the {what}, found {n_codes:,}")
    by_row = codes.reshape(shape[0], len(groups))
    values = np.empty(shape, np.float32)
    first = 0
    for index, group in enumerate(groups):
        values[:, first : first + group.shape[1]] = group[by_row[:, index]]
        first += group.shape[1]
    if with_norms:
        norm_codes = cursor.array(np.uint8, shape[0], f"norms of the {what}")
        (norms,) = _read_centroids(cursor, 1, f"centroids of the norms of the {what}")
        values *= norms[norm_codes]
    return values


def _read_centroids(cursor: _Cursor, dim: int, what: str) -> list[Floats]:
    """For each group of columns float32[256, columns]; all groups but the last are equally wide."""
    found, n_groups, width, last = cursor.numbers("4i", what)
    if found != dim or width < 1 or n_groups != -(-dim // width) or last != dim - (n_groups - 1) * width:
        cursor.fail(
            f"expected {what} for {dim} columns, found {found} columns in {n_groups} groups of {width}, the last of {last}"
        )
    values = cursor.array(np.float32, dim * CENTROIDS, what).astype(np.float32)
    if not np.isfinite(values).all():
        cursor.fail(f"expected finite {what}, found NaN or infinity")
    edges = [index * width * CENTROIDS for index in range(n_groups)] + [dim * CENTROIDS]
    return [values[edges[i] : edges[i + 1]].reshape(CENTROIDS, -1) for i in range(n_groups)]
