"""The rules of a token file: what its header may say, and what each block must keep. Needs NumPy only.

A header is read from files that anybody may have made, so nothing of it is believed: types, bounds and how the
counts go together are checked before any of it becomes a size or a shape. Checking a block costs 0.2 s a GB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tokenization.layout import Block, Header

__all__ = ["Checked", "check_block", "header_faults"]

SPLITS = ("all", "train", "holdout")
_MOST = 2**63 - 1
_MOST_VALUES = 2**31 - 1
"""Values of one Arrow list array with 32-bit offsets: what a block may hold of tokens, and so of pieces."""
_AT_ONCE = 1 << 20
_COUNTS = {
    "seq_len": (1, _MOST_VALUES),
    "block_sequences": (1, _MOST_VALUES),
    "documents": (0, _MOST),
    "tokens": (0, _MOST),
    "sequences": (0, _MOST),
    "pieces": (0, _MOST),
}
_WORDS = ("run_id", "config_digest", "strategy")
_CARD_WORDS = ("name", "fingerprint", "eos", "pad", "library")


def header_faults(header: Header) -> list[str]:
    """Everything that keeps a header from being true, whatever file it stands in; empty if nothing does."""
    faults = [*_wrong_kinds(header)]
    return faults or [*_wrong_ids(header), *_wrong_counts(header)]


def _is_count(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _wrong_kinds(header: Header) -> Iterator[str]:
    """Fields of a wrong type or outside their bounds."""
    card = header.tokenizer
    for owner, names in ((header, _WORDS), (card, _CARD_WORDS)):
        for name in names:
            if not isinstance(getattr(owner, name), str):
                yield f"{name} is {getattr(owner, name)!r:.60}, no text"
    if header.split not in SPLITS:
        yield f"split is {header.split!r:.60}, none of {', '.join(SPLITS)}"
    for name, (least, most) in _COUNTS.items():
        if not _is_count(getattr(header, name), least, most):
            yield f"{name} is {getattr(header, name)!r:.60}, no whole number from {least} to {most}"
    if header.shuffle_seed is not None and type(header.shuffle_seed) is not int:
        yield f"shuffle_seed is {header.shuffle_seed!r:.60}, no whole number"
    for name in ("unk_share", "lost_share"):
        share = getattr(header, name)
        if type(share) not in (int, float) or not math.isfinite(share) or share < 0:
            yield f"{name} is {share!r:.60}, no share"
    if not _is_count(card.vocab_size, 1, 2**32) or not _is_count(card.max_id, 0, 2**32 - 1):
        yield f"vocab_size {card.vocab_size!r:.60} and max_id {card.max_id!r:.60} are no vocabulary"
    if not all(isinstance(group, Mapping) for group in header.mix):
        yield f"mix is {header.mix!r:.60}, no list of objects"
    if not all(isinstance(text, str) for text in header.golden_texts):
        yield "golden_texts are no texts"


def _wrong_ids(header: Header) -> Iterator[str]:
    """Token ids outside the vocabulary, or special tokens that cannot be told apart."""
    card = header.tokenizer
    if (card.bos is None) != (card.bos_id is None) or not isinstance(card.bos, str | None):
        yield f"bos {card.bos!r:.60} with bos_id {card.bos_id!r:.60}"
        return
    special = (card.eos_id, card.pad_id) if card.bos_id is None else (card.eos_id, card.pad_id, card.bos_id)
    if not all(_is_count(i, 0, card.max_id) for i in special):
        yield f"special ids {special!r:.60} are not all in 0 .. {card.max_id}"
    elif card.bos_id == card.eos_id:
        yield f"BOS and EOS are one token (id {card.eos_id}): no border could be told from a beginning"
    if not all(_is_count(i, 0, card.max_id) for ids in header.golden_ids for i in ids):
        yield f"golden_ids are not all in 0 .. {card.max_id}"
    if len(header.golden_ids) != len(header.golden_texts):
        yield f"{len(header.golden_ids)} golden_ids of {len(header.golden_texts)} golden_texts"


def _wrong_counts(header: Header) -> Iterator[str]:
    """Counts that cannot all be true."""
    least = header.documents * (1 if header.tokenizer.bos_id is None else 2)
    if header.block_sequences * header.seq_len > _MOST_VALUES:
        yield f"a block of {header.block_sequences} sequences of {header.seq_len} tokens: more than {_MOST_VALUES}"
    if not header.documents <= header.pieces <= header.tokens <= header.sequences * header.seq_len:
        yield (
            f"{header.documents} documents in {header.pieces} pieces of {header.tokens} tokens in {header.sequences} "
            f"sequences of {header.seq_len}"
        )
    if header.pieces < header.sequences:
        yield f"{header.pieces} pieces in {header.sequences} sequences: some would be empty"
    if header.tokens < least:
        yield f"{header.tokens} tokens, fewer than the {least} that begin and end {header.documents} documents"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a block was found to be.

    ends: bool[n_pieces]     the piece ends a document (its last token is EOS)
    begins: bool[n_pieces]   the piece begins a document (its first token is BOS); None where there is no BOS
    """

    faults: list[str] = field(default_factory=list)
    ends: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    begins: npt.NDArray[np.bool_] | None = None


def check_block(block: Block, header: Header) -> Checked:
    """Every rule that one block can break by itself."""
    faults = _wrong_borders(block)
    if faults:
        return Checked(faults)
    n_sequences, seq_len = block.tokens.shape
    used = np.zeros(n_sequences, np.int64)
    if n_sequences:
        used = np.add.reduceat(block.lengths, block.first_piece[:-1], dtype=np.int64)
    if (used > seq_len).any():
        row = int(used.argmax())
        return Checked([f"pieces of {int(used[row])} tokens in a sequence of {seq_len} (row {row} of the block)"])
    card = header.tokenizer
    largest = int(block.tokens.max(initial=0))
    if largest > card.max_id:
        row = int((block.tokens > card.max_id).any(axis=1).argmax())
        faults.append(
            f"token id {largest} is outside the vocabulary (largest id {card.max_id}; row {row} of the block)"
        )
    if len(block.rows) and not 0 <= int(block.rows.min()) <= int(block.rows.max()) < header.documents:
        faults.append(f"a document row is outside 0 .. {header.documents - 1}")
    false_padding = _false_padding(block, used, card.pad_id)
    if false_padding >= 0:
        faults.append(
            f"something else than padding (id {card.pad_id}) behind the last piece of a sequence "
            f"(row {false_padding} of the block)"
        )
        return Checked(faults)
    return _check_marks(block, header, int(used.sum()), faults)


def _wrong_borders(block: Block) -> list[str]:
    """Whether the pieces are in order, none is empty, and each belongs to a sequence."""
    n_sequences = len(block.tokens)
    counts = np.diff(block.first_piece)
    if (
        len(counts) != n_sequences
        or (counts < 1).any()
        or block.first_piece[0]
        or len(block.lengths) != len(block.rows)
    ):
        return [f"the borders of pieces do not fit: {len(counts)} sequences of {n_sequences}, or one without a piece"]
    if block.first_piece[-1] != len(block.lengths) or (block.lengths < 1).any():
        return ["a piece without tokens, or pieces of no sequence"]
    return []


def _false_padding(block: Block, used: npt.NDArray[np.int64], pad_id: int) -> int:
    """First row of the block with something else than padding behind its last piece; -1: none."""
    seq_len = block.tokens.shape[1]
    for row in np.flatnonzero(used < seq_len).tolist():
        if (block.tokens[row, used[row] :] != pad_id).any():
            return int(row)
    return -1


def _check_marks(block: Block, header: Header, used: int, faults: list[str]) -> Checked:
    """EOS at ends of pieces and BOS at beginnings, and nowhere else; a piece without EOS runs to the end of its sequence."""
    n_sequences, seq_len = block.tokens.shape
    flat = block.tokens.reshape(-1)
    card = header.tokenizer
    padding = n_sequences * seq_len - used
    lasts = _piece_ends(block, seq_len)
    ends = flat[lasts] == card.eos_id
    if _count(flat, card.eos_id) - (padding if card.pad_id == card.eos_id else 0) != np.count_nonzero(ends):
        faults.append(f"an end-of-document token (id {card.eos_id}) inside a document")
    cut = lasts[~ends]
    if ((cut + 1) % seq_len).any():
        row = int(cut[(cut + 1) % seq_len > 0][0]) // seq_len
        faults.append(f"a piece without end-of-document token before the end of its sequence (row {row} of the block)")
    begins = None
    if card.bos_id is not None:
        begins = flat[lasts - block.lengths + 1] == card.bos_id
        if _count(flat, card.bos_id) - (padding if card.pad_id == card.bos_id else 0) != np.count_nonzero(begins):
            faults.append(f"a beginning-of-document token (id {card.bos_id}) inside a document")
    return Checked(faults, ends, begins)


def _count(flat: npt.NDArray[Any], value: int) -> int:
    """How often a value stands in an array; in parts, for the memory of a megabyte."""
    found = 0
    same = np.empty(min(len(flat), _AT_ONCE), np.bool_)
    for begin in range(0, len(flat), _AT_ONCE):
        part = flat[begin : begin + _AT_ONCE]
        found += int(np.count_nonzero(np.equal(part, value, out=same[: len(part)])))
    return found


def _piece_ends(block: Block, seq_len: int) -> npt.NDArray[np.int64]:
    """Position of the last token of each piece in the flat tokens of the block."""
    ends = np.cumsum(block.lengths, dtype=np.int64)
    counts = np.diff(block.first_piece)
    before = (ends - block.lengths)[block.first_piece[:-1]]
    shift = np.arange(len(counts)) * seq_len - before
    last: npt.NDArray[np.int64] = ends + np.repeat(shift, counts) - 1
    return last
