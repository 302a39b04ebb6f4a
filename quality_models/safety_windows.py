"""Cuts whole documents into overlapping windows of tokens for a classifier that reads a bounded number of them.

The first window begins at the first token, each later one `stride` tokens after the one before; the last ends with the text. A document
with more than `max_windows` is read by that many: the first, the last, and those between at even steps. Each window gets
the tokenizer's own special tokens (`[CLS] ... [SEP]`); none is read from the text.

Costs: those of the tokenizer, 1 to 3 MB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.lm_tokens import encode
from quality_models.safety_text import Places, readable
from quality_models.windows import spread

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Cuttings", "Specials", "WindowSizes", "cut", "specials_of"]

Ids: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WindowSizes:
    """Tokens of a window with its special ones; tokens from one begin to the next; windows of a document.

    Raises ValueError where windows would leave gaps.
    """

    max_tokens: int = 128
    stride: int = 96
    max_windows: int = 64

    def check(self, n_specials: int) -> None:
        """Raises ValueError for windows that hold nothing, or leave gaps."""
        if not 1 <= self.stride <= self.max_tokens - n_specials:
            raise ValueError(
                f"stride: expected 1 to {self.max_tokens - n_specials}, the tokens of a window of {self.max_tokens} without "
                f"the {n_specials} special ones, found {self.stride}; three quarters of the window are usual"
            )
        if self.max_windows < 1:
            raise ValueError(f"max_windows: expected 1 or more, found {self.max_windows}")


class Specials(NamedTuple):
    """Ids before and after a text."""

    before: Ids
    after: Ids


class Cuttings(NamedTuple):
    """The windows of some texts, text by text.

    ids: of each window, with the special ones. text: int64[n], which text. tokens: int64[n], without the special ones.
    begin, end: int64[n], bytes of the original text. read, total: int64[n_texts], tokens in any window, and all.
    """

    ids: list[Ids]
    text: Ints
    tokens: Ints
    begin: Ints
    end: Ints
    read: Ints
    total: Ints


def specials_of(tokenizer: Tokenizer) -> Specials:
    """What the tokenizer puts around a text. Raises ValueError where it does anything else to it."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a", add_special_tokens=True).ids
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return Specials(np.array(whole[:start], np.int32), np.array(whole[start + len(bare) :], np.int32))
    raise ValueError(f"tokenizer: expected special tokens around a text, found {whole} for {bare}; copy it again")


def cut(
    tokenizer: Tokenizer, specials: Specials, texts: Sequence[str], sizes: WindowSizes, *, normalised: bool
) -> Cuttings:
    """The windows of texts; none for a text without tokens.

    normalised: read `readable(text)`. Places are those of the original all the same.
    """
    room = sizes.max_tokens - len(specials.before) - len(specials.after)
    ids: list[Ids] = []
    rows: list[tuple[int, int, int, int]] = []
    read, total = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    cleaned = [readable(text) for text in texts] if normalised else list(texts)
    for number, tokens in enumerate(encode(tokenizer, cleaned, parallel=False)):
        total[number] = len(tokens.ids)
        places = Places(texts[number], cleaned[number])
        reached = 0
        for start, stop in _windows(len(tokens.ids), room, sizes):
            read[number] += stop - max(start, reached)
            reached = stop
            ids.append(np.concatenate([specials.before, tokens.ids[start:stop], specials.after]))
            begin = places.bytes_at(int(tokens.ends[start - 1]) if start else 0)
            rows.append((number, stop - start, begin, places.bytes_at(int(tokens.ends[stop - 1]))))
    text, sizes_of, begin_of, end_of = np.array(rows, np.int64).reshape(-1, 4).T
    return Cuttings(ids, text, sizes_of, begin_of, end_of, read, total)


def _windows(n_tokens: int, room: int, sizes: WindowSizes) -> list[tuple[int, int]]:
    """Where each window begins and stops."""
    if n_tokens == 0:
        return []
    count = 1 + max(0, -(-(n_tokens - room) // sizes.stride))
    starts = [index * sizes.stride for index in spread(count, sizes.max_windows)]
    return [(start, min(start + room, n_tokens)) for start in starts]
