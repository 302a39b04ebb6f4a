"""How probable a text is to a character n-gram model: a compiled kernel over Arrow bytes.

A text is normalised as `ngram_text` says and read from left to right; each character has the probability that the
model gives it after the order - 1 characters before it. Its n-gram is looked up from short to long, until one is
missing: then the probability is that of the longest, times the back-off weights of the longer contexts.

- **Begin:** a text begins as if a blank stood before it. There is no end mark: a cut text is as good as a whole one.
- **Line breaks** are blanks. **Unknown characters** share what the model leaves to them evenly, with all of Unicode
  that it does not list: some 14 to 20 nats each, never infinite.
- **Foreign scripts:** letters of a script that makes less than 1 in 1,000 letters of what the model was trained on
  are not scored, only counted off: what is after them begins as a text does. A quotation in Japanese says nothing of
  how good an English page is, and the model nothing of Japanese.
- **Long texts:** of more than 64 KiB, eight windows of 8 KiB at even distances are read, each as a text of its own.
  Where they lie depends on the number of bytes only.

Results do not depend on what else is in the batch. On one core of an EPYC that others use too, it reads 17 MB/s of English
and 33 of Chinese, 60 ns a character: see bench/results/ngram.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.perplexity.ngram_text import BLANK, BLOCK, NORMALISATION, Codes, next_symbols, normal_bytes
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, load32
from curation.text.spans import Bytes, Int64s, Spans, bounds
from curation.text.tables import KIND_BLOCKS, KIND_INDEX, N_CODE_POINTS, Script, two_level
from quality_models.ngram_file import BACKOFF_BITS, INNER_BITS, P_BITS, TOP_BITS, UNICODE, NgramModel, read_ngram
from quality_models.ngram_models import installed_ngrams
from quality_models.ngram_table import FIRST, MULTIPLIER, PILOT, SLOT

__all__ = ["MOST_WINDOWS", "RULES", "WINDOW_BYTES", "Scorer", "Scores", "load_model", "load_models", "score_texts"]

WINDOW_BYTES = 8 << 10
MOST_WINDOWS = 8
RULES = f"normalisation {NORMALISATION}, a blank before the text, {MOST_WINDOWS} windows of {WINDOW_BYTES} bytes"
"""What besides the model decides the numbers."""

HASH_MULTIPLIER, HASH_FIRST = np.uint64(MULTIPLIER), np.uint64(FIRST)
HASH_PILOT, HASH_SLOT = np.uint64(PILOT), np.uint64(SLOT)
HALF, SHIFT, ONE = np.uint64(32), np.uint64(29), np.uint64(1)
VALUE = (1 << P_BITS) - 1
INNER_FINGERPRINT, TOP_FINGERPRINT = np.uint64((1 << INNER_BITS) - 1), np.uint64((1 << TOP_BITS) - 1)
INNER_AT = P_BITS + BACKOFF_BITS
MOST_ORDERS = 16
KNOWN_SHARE = 0.001
"""Share of the letters it was trained on that a script has, at least, if it is not foreign to a model."""
FOREIGN = 0xFFFF
"""In the place of a number: a letter that is not scored."""

Floats: TypeAlias = npt.NDArray[np.float32]
Sums: TypeAlias = npt.NDArray[np.float64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]


class Tables(NamedTuple):
    """A model as the kernel takes it.

    chart, blocks: number of each code point, in two levels. sizes: int64[3], order, slots of inner, slots of top.
    others: float64[1], ln of how many characters number 0 stands for.
    """

    chart: npt.NDArray[np.uint16]
    blocks: npt.NDArray[np.uint16]
    single: Floats
    levels: Floats
    inner: npt.NDArray[np.uint8]
    inner_pilots: npt.NDArray[np.uint16]
    top: npt.NDArray[np.uint16]
    top_pilots: npt.NDArray[np.uint16]
    sizes: Int64s
    others: Sums


class Scorer(NamedTuple):
    """A model, ready to score."""

    model: NgramModel
    tables: Tables

    @property
    def identity(self) -> str:
        """What decides its numbers."""
        return f"{self.model.language} {self.model.checksum} {RULES}"


class Scores(NamedTuple):
    """Of n texts. nats: float64[n], sum of -ln p over tokens. tokens: int64[n], normalised characters that were scored.

    characters: int64[n], of the text as it stands, in what was read: all of it but for long texts. bytes: int64[n],
    of what was read, without letters of foreign scripts; one for each token at least, as far as the text has so many.
    """

    nats: Sums
    tokens: Int64s
    characters: Int64s
    bytes: Int64s


def prepared(model: NgramModel) -> Scorer:
    """A model with what the kernel needs. Raises ValueError for one that was trained on other normalised text."""
    if model.normalisation != NORMALISATION:
        raise ValueError(
            f"n-gram model of {model.language}: expected normalisation {NORMALISATION}, found {model.normalisation}: "
            "train it again with this version of Corpusmill"
        )
    numbers = np.zeros(N_CODE_POINTS, np.int64)
    numbers[model.characters] = np.arange(1, len(model.characters) + 1)
    numbers[_foreign(model)] = FOREIGN
    chart, blocks = two_level(numbers)
    sizes = np.array([model.order, model.n_inner, len(model.top)], np.int64)
    others = np.array([np.log(UNICODE - len(model.characters))])
    arrays = (model.single, model.levels, model.inner, model.inner_pilots, model.top, model.top_pilots)
    frozen = [_frozen(array) for array in (chart, blocks.astype(np.uint16), *arrays, sizes, others)]
    return Scorer(model, Tables(*frozen))


def _foreign(model: NgramModel) -> npt.NDArray[np.bool_]:
    """bool[code points]: whether each belongs to a script that the model hardly knows; none where it does not say."""
    scripts = (KIND_BLOCKS.reshape(-1, 64)[KIND_INDEX].reshape(-1) >> 8).astype(np.int64)
    shares = model.facts.get("scripts")
    foreign = np.zeros(int(scripts.max()) + 1, np.bool_)
    if isinstance(shares, dict):
        known = {name for name, share in shares.items() if share >= KNOWN_SHARE}
        foreign[[script for script in Script if script and script.name.lower() not in known]] = True
    found: npt.NDArray[np.bool_] = foreign[scripts]
    return found


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view: the kernel is compiled for these."""
    view = array.view()
    view.flags.writeable = False
    return view


@cache
def load_model(path: Path) -> Scorer:
    """The model in a file, once a process. Raises what `read_ngram` and `prepared` do."""
    return prepared(read_ngram(path))


def load_models() -> Mapping[str, Scorer]:
    """The models that come with Corpusmill, by language: `eng`, `zho`, `jpn`, ..., `mul` for all others."""
    return {language: load_model(path) for language, path in installed_ngrams().items()}


def windows(data: Bytes, starts: Int64s, ends: Int64s) -> Spans:
    """What is scored of texts: all of one, or MOST_WINDOWS windows, from the start of a character to that of another."""
    sizes = ends - starts
    is_long = sizes > MOST_WINDOWS * WINDOW_BYTES
    if not is_long.any():
        return Spans(starts, ends, np.arange(len(starts) + 1))
    counts = np.where(is_long, MOST_WINDOWS, 1)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    rows = np.repeat(np.arange(len(starts)), counts)
    number = np.arange(len(rows)) - offsets[rows]
    first = starts[rows] + number * (sizes[rows] - WINDOW_BYTES) // (MOST_WINDOWS - 1)
    first = np.where(is_long[rows], first, starts[rows])
    last = np.where(is_long[rows], first + WINDOW_BYTES, ends[rows])
    return Spans(_next_start(data, first, ends[rows]), _next_start(data, last, ends[rows]), offsets)


def _next_start(data: Bytes, places: Int64s, ends: Int64s) -> Int64s:
    """The first place from each on where a character starts, or the end of the text; three bytes on at most."""
    places = places.copy()
    for _ in range(3):
        inside = np.flatnonzero(places < ends)
        within = data[places[inside]] & 0xC0 == 0x80
        places[inside[within]] += 1
    return places


def score_texts(scorer: Scorer, data: Bytes, offsets: Int64s, rows: Int64s | None = None) -> Scores:
    """Scores of the texts `rows` (int64[n]; None: all) of an Arrow array (`curation.text.buffers`).

    An empty text has 0 nats, tokens, characters and bytes; one of blanks has characters and no tokens.
    """
    data, starts, ends = bounds(data, offsets)
    if rows is not None:
        starts, ends = starts[rows], ends[rows]
    spans = windows(data, starts, ends)
    n = len(spans.starts)
    nats, counts = np.zeros(n), np.zeros((3, n), np.int64)
    _score(*bounds(data, spans), True, scorer.tables, nats, counts)
    for row in np.flatnonzero(counts[0] < 0):
        raw = data[spans.starts[row] : spans.ends[row]]
        nats[row], tokens, left_out = _score_normalised(scorer, raw.tobytes())
        counts[:, row] = tokens, np.count_nonzero(raw & 0xC0 != 0x80), left_out
    sizes = spans.ends - spans.starts
    # Letters are counted off as they are normalised; where one was a sign for many, these may be more bytes than there are.
    n_bytes = np.maximum(sizes - counts[2], np.minimum(counts[0], sizes))
    per_span = (nats, counts[0], counts[1], n_bytes)
    if len(starts) == n:
        return Scores(*per_span)
    return Scores(*(np.add.reduceat(values, spans.offsets[:-1]) for values in per_span))


def _score_normalised(scorer: Scorer, raw: bytes) -> tuple[float, int, int]:
    """Nats, tokens and bytes left out of a text that Python has to normalise."""
    nats, counts = np.zeros(1), np.zeros((3, 1), np.int64)
    _score(*normal_bytes(raw), False, scorer.tables, nats, counts)
    return float(nats[0]), int(counts[0, 0]), int(counts[2, 0])


@inlined
def _mixed(x: Int) -> Int:
    x = (x ^ x >> HALF) * HASH_FIRST
    return x ^ x >> SHIFT


@inlined
def _slot(key: Int, pilots: npt.NDArray[np.uint16], n_slots: Int) -> Int:
    """The slot in which a mixed key lies, if it lies in any."""
    bucket = (key >> HALF) * np.uint64(len(pilots)) >> HALF
    turn = np.uint64(pilots[bucket]) * HASH_PILOT
    return np.int64(((key ^ turn) * HASH_SLOT >> HALF) * np.uint64(n_slots) >> HALF)


@inlined
def _size(code: Int) -> Int:
    """Bytes of a character in UTF-8."""
    return 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)


@inlined
def _read(
    block: Codes, n: Int, held: Int, now: Int, tables: Tables, hashes: UInt64s, weights: Sums
) -> tuple[float, Int, Int, Int, Int]:
    """Nats and tokens of the next n characters, bytes left out, and new held and now.

    held: length of the longest known context before them. hashes: of the contexts, by length. weights: the back-off
    weights of the contexts from `weights[now + 1]` on; the other half is for what was before.
    One function for a block of characters, and none for each: a call costs more than its look-ups.
    """
    inner_at = address_of(tables.inner)
    order, others = tables.sizes[0], tables.others[0]
    blank = np.int64(tables.blocks[np.uint64(np.int64(tables.chart[0]) << 6 | BLANK)])
    total, tokens = 0.0, 0
    left_out: Int = 0
    for i in range(n):
        code = np.int64(block[i])
        number = np.int64(tables.blocks[np.uint64(np.int64(tables.chart[np.uint64(code >> 6)]) << 6 | code & 63)])
        if number == FOREIGN:
            left_out += 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
            held, hashes[1], weights[now + 1] = 1, np.uint64(blank + 1), np.float64(tables.single[blank, 1])
            continue
        then, now = now, MOST_ORDERS - now
        new, shorter, found = np.uint64(number + 1), hashes[1], 1
        hashes[1] = new
        log_p = np.float64(tables.single[np.uint64(number), 0]) - (others if number == 0 else 0.0)
        weights[now + 1] = np.float64(tables.single[np.uint64(number), 1])
        for length in range(2, min(held + 1, order) + 1):
            whole = shorter * HASH_MULTIPLIER + new
            shorter, hashes[length] = hashes[length], whole
            key = _mixed(whole)
            if length < order:
                value = load32(inner_at + 3 * _slot(key, tables.inner_pilots, tables.sizes[1])) & 0xFFFFFF
                if np.uint64(value >> INNER_AT) != key & INNER_FINGERPRINT:
                    break
                weights[now + length] = np.float64(tables.levels[length, 1, value >> P_BITS & VALUE])
            else:
                value = np.int64(tables.top[np.uint64(_slot(key, tables.top_pilots, tables.sizes[2]))])
                if np.uint64(value >> P_BITS) != key & TOP_FINGERPRINT:
                    break
            found = length
            log_p = np.float64(tables.levels[length, 0, value & VALUE]) - (others if number == 0 else 0.0)
        for length in range(found, held + 1):
            log_p += weights[then + length]
        held = min(found, order - 1)
        total -= log_p
        tokens += 1
    return total, tokens, left_out, held, now


@kernel
def _score(
    data: Bytes, starts: Int64s, ends: Int64s, checked: bool, tables: Tables, nats: Sums, counts: Int64s
) -> None:
    """Fills nats: float64[n] and counts: int64[3, n]: tokens (-1: to be normalised before), characters, bytes left out."""
    base = address_of(data)
    block = np.empty(BLOCK, np.uint32)
    hashes, weights = np.zeros(MOST_ORDERS, np.uint64), np.zeros(2 * MOST_ORDERS, np.float64)
    blank = np.int64(tables.blocks[np.uint64(np.int64(tables.chart[0]) << 6 | BLANK)])
    for row in range(len(starts)):
        p, end, last, class_ = base + starts[row], base + ends[row], 0, 0
        held, now = 1, 0
        hashes[1], weights[1] = np.uint64(blank + 1), np.float64(tables.single[blank, 1])
        nats[row] = 0.0
        counts[:, row] = 0
        while p < end:
            n, read, p, last, class_ = next_symbols(p, end, last, class_, checked, block)
            if n < 0:
                counts[0, row] = -1
                break
            total, tokens, left_out, held, now = _read(block, n, held, now, tables, hashes, weights)
            nats[row] += total
            counts[0, row] += tokens
            counts[1, row] += read
            counts[2, row] += left_out
