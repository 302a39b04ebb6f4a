"""A batch as a model with attention inside documents needs it: ids, positions, borders, and where all came from.

No loop over documents: borders of a batch are worked out in one pass over its pieces, positions in one over its tokens.
Costs about as much again as copying the ids to int64; `fields="tokens"` leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "Fields", "Pack", "checked_type", "copy_tokens", "lay_out"]

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]
Fields = Literal["all", "tokens"]
TOKENS_AT_ONCE = 1 << 19
"""Tokens gathered before they are widened: bounds the memory between the file and the batch."""


class Batch(NamedTuple):
    """n sequences, flattened row by row into k pieces: documents, parts of documents, and paddings.

    Padding at the end of a sequence is a piece of its own, with `doc_rows` -1: it sees no document, no document sees
    it, and the pieces tile the batch. With `fields="tokens"` all from `position_ids` to `real` are None.
    """

    tokens: Array
    """int64[n, seq_len], or int32 if asked: ids, with padding. Targets are `tokens[:, 1:]`, or `tokens` shifted by
    the model; borders say where a target belongs to the next document."""
    position_ids: Array
    """[n, seq_len], of the type of `tokens`: 0, 1, 2 .. from the beginning of each piece."""
    lengths: npt.NDArray[np.int32]
    """int32[k]: tokens of each piece."""
    cu_seqlens: npt.NDArray[np.int32]
    """int32[k + 1]: where each piece begins in `tokens.reshape(-1)`, and where the last one ends: as
    `flash_attn_varlen_func` and torch's `varlen_attn` take it."""
    max_seqlen: int
    """The longest piece."""
    doc_rows: Numbers
    """int64[k]: the row of each piece in documents.parquet, -1 for padding."""
    real: npt.NDArray[np.bool_]
    """bool[n, seq_len]: True for a document's token, False for padding: a mask of the loss."""
    sequences: Numbers
    """int64[n]: the index of each sequence in its file."""
    files: Numbers
    """int64[n]: the number of the file of each sequence, 0 for all if there is one."""
    step: int
    """Step of the stream; -1 for a batch that was asked for by indices."""


class Pack(Protocol):
    """What a batch needs of a token file."""

    def read(self, rows: Numbers) -> Array:
        """[n, seq_len], in the file's own type."""

    def pieces(self, rows: Numbers) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
        """(pieces of each sequence, their lengths, their document rows), one sequence behind the other."""


def lay_out(
    packs: Sequence[Pack],
    seq_len: int,
    files: Numbers,
    rows: Numbers,
    *,
    dtype: npt.DTypeLike = np.int64,
    fields: Fields = "all",
    step: int = -1,
) -> Batch:
    """The batch of sequences `rows[i]` of `packs[files[i]]`, in this order.

    Raises:
        ValueError: another type than int64 and int32, unknown fields, or 2**31 tokens and more.
        TokenFileError: borders in a file are damaged.
    """
    kind = checked_type(dtype, fields)
    if len(rows) * seq_len >= 2**31:
        raise ValueError(
            f"{len(rows)} sequences of {seq_len} tokens: cu_seqlens counts below 2**31. Make batches smaller"
        )
    groups = _by_file(len(packs), files)
    # One allocation, not two: the C library then keeps the memory of a batch for the next one instead of giving it back
    # to the system, whose new pages cost more than all that is done here.
    room = np.empty((1 if fields == "tokens" else 2, len(rows), seq_len), kind)
    tokens = room[0]
    for number, chosen in groups:
        copy_tokens(packs[number], rows[chosen], tokens, chosen)
    if fields == "tokens":
        return Batch(tokens, *cast(tuple[Any, ...], (None,) * 6), rows, files, step)  # type: ignore[call-arg]
    ends, lengths, doc_rows = _with_paddings(*_pieces(packs, groups, rows), seq_len)
    borders = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=borders[1:])
    _count_positions(borders, lengths, ends, room[1])
    return Batch(
        tokens=tokens,
        position_ids=room[1],
        lengths=lengths,
        cu_seqlens=borders,
        max_seqlen=int(lengths.max(initial=0)),
        doc_rows=doc_rows,
        real=_without_paddings(borders, lengths, doc_rows, tokens.shape),
        sequences=rows,
        files=files,
        step=step,
    )


def checked_type(dtype: npt.DTypeLike, fields: str) -> np.dtype[Any]:
    """The type of tokens and positions.

    Raises:
        ValueError: another type than int64 and int32, or unknown fields.
    """
    kind = np.dtype(dtype)
    if kind not in (np.int64, np.int32):
        raise ValueError(f"dtype must be int64 or int32, found {kind}: no embedding takes others")
    if fields not in ("all", "tokens"):
        raise ValueError(f"fields must be 'all' or 'tokens', found {fields!r}")
    return kind


def copy_tokens(pack: Pack, rows: Numbers, out: Array, places: Numbers | slice = slice(None)) -> None:
    """Widen sequences `rows` of a file into `out[places]`, some at a time."""
    at_once = max(1, TOKENS_AT_ONCE // out.shape[1])
    if len(rows) <= at_once:
        out[places] = pack.read(rows)
        return
    for begin in range(0, len(rows), at_once):
        part = slice(begin, begin + at_once)
        out[part if isinstance(places, slice) else places[part]] = pack.read(rows[part])


def _with_paddings(
    counts: Numbers, lengths: npt.NDArray[np.int32], doc_rows: Numbers, seq_len: int
) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
    """Pieces with one more at the end of each sequence that is not full: (pieces up to each sequence, lengths, rows)."""
    ends = np.cumsum(counts)
    used = np.add.reduceat(lengths, ends - counts, dtype=np.int64) if len(counts) else counts
    loose = used < seq_len
    if loose.any():
        places = ends[loose]
        lengths = np.insert(lengths, places, seq_len - used[loose])
        doc_rows = np.insert(doc_rows, places, -1)
        ends += np.cumsum(loose)
    return ends, lengths, doc_rows


def _without_paddings(
    borders: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32], doc_rows: Numbers, shape: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """True but for paddings, whose pieces have no row; costs by the tokens of padding, not by all."""
    real = np.ones(shape, np.bool_)
    paddings = np.flatnonzero(doc_rows < 0)
    if not len(paddings):
        return real
    counts = lengths[paddings].astype(np.int64)
    skipped = borders[paddings] - (np.cumsum(counts) - counts)
    real.reshape(-1)[np.arange(int(counts.sum())) + np.repeat(skipped, counts)] = False
    return real


def _count_positions(borders: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32], ends: Numbers, out: Array) -> None:
    """0, 1, 2 .. from the beginning of each piece; `ends[i]` is the number of pieces up to sequence i."""
    seq_len = out.shape[1]
    narrow = np.uint16 if seq_len <= 2**16 else np.uint32  # a quarter or half of the bytes, until the last step
    places = np.arange(seq_len, dtype=narrow)
    at_once = max(1, TOKENS_AT_ONCE // seq_len)
    first = 0
    for begin in range(0, len(out), at_once):
        last = int(ends[min(begin + at_once, len(out)) - 1])
        starts = np.repeat((borders[first:last] % seq_len).astype(narrow), lengths[first:last]).reshape(-1, seq_len)
        out[begin : begin + at_once] = np.subtract(places, starts, out=starts)
        first = last


def _by_file(n_files: int, files: Numbers) -> list[tuple[int, Numbers | slice]]:
    """Which places of the batch come from which file."""
    if n_files == 1:
        return [(0, slice(None))]
    return [(number, np.flatnonzero(files == number)) for number in sorted(set(files.tolist()))]


def _pieces(
    packs: Sequence[Pack], groups: list[tuple[int, Numbers | slice]], rows: Numbers
) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
    """Pieces of all sequences in the order of the batch: (how many of each, lengths, document rows)."""
    if len(groups) == 1:
        return packs[groups[0][0]].pieces(rows)
    found = [(chosen, *packs[number].pieces(rows[chosen])) for number, chosen in groups]
    counts = np.zeros(len(rows), np.int64)
    for chosen, own, _, _ in found:
        counts[chosen] = own
    starts = np.cumsum(counts) - counts
    lengths = np.empty(int(counts.sum()), np.int32)
    doc_rows = np.empty(len(lengths), np.int64)
    for chosen, own, own_lengths, own_rows in found:
        places = np.arange(len(own_lengths)) + np.repeat(starts[chosen] - (np.cumsum(own) - own), own)
        lengths[places] = own_lengths
        doc_rows[places] = own_rows
    return counts, lengths, doc_rows
