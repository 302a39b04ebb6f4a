"""Text to the token ids of a language model, with the characters that each token says.

No special token is added, and none is read from text: a page that writes `<|endoftext|>` is scored on these
characters, not on an end of document that it could so pretend. Truncation and padding that a tokenizer.json asks
for are switched off.

Costs: 2 to 3 MB of text a second for a core. Texts are encoded in pieces of at most 262,144 characters, cut after a line
where there is one, so that memory is bounded (about 100 bytes for each token of the pieces at hand); tokens do not
reach over such a cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quality_models.windows import character_ends

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Tokens", "bos_id", "check_vocabulary", "encode", "read_tokenizer", "unguarded"]

PIECE = 1 << 18
"""Characters encoded at once: a tokenizer's answer takes some 100 bytes a token."""
GROUP = 1 << 20
"""Characters of the pieces that one call of the tokenizer gets."""
LEAST_SHARE = 0.9
"""Of a model's vocabulary, at least this share must be known to the tokenizer. Vocabularies are padded, by 3 % at most in
the models looked at; a tokenizer that knows less is another model's."""


class Tokens(NamedTuple):
    """ids: int32[n_tokens]. ends: int64[n_tokens], up to which character each says the text."""

    ids: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a tokenizer.json, without anything but text to ids.

    Raises ValueError where it is missing or damaged.
    """
    from tokenizers import Tokenizer

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected a tokenizer beside the model, found nothing; "
            "save it there with transformers' AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        ) from None
    try:
        return unguarded(Tokenizer.from_str(text))
    except Exception as error:  # tokenizers raises plain Exception for any fault of the file
        if type(error) is not Exception:
            raise
        raise ValueError(f"{path}: expected a tokenizer.json, found {error}; copy it again") from error


def unguarded(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that cuts off nothing, adds nothing, and takes names of special tokens in a text for text."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def bos_id(tokenizer: Tokenizer, name: str, *, where: str) -> int:
    """The id of the token that stands before text. Raises ValueError if the tokenizer has none of that name."""
    if not name:
        raise ValueError(
            f"{where}: expected a token for the beginning or the end of text, found none; name one as bos_token, "
            "or set bos to none"
        )
    found = tokenizer.token_to_id(name)
    if found is None:
        raise ValueError(
            f"{where}: expected the token {name!r} in its vocabulary, found none of that name; see bos_token"
        )
    return int(found)


def check_vocabulary(tokenizer: Tokenizer, n_embeddings: int, *, where: str) -> None:
    """Raises ValueError if a tokenizer cannot be that of a model with `n_embeddings` tokens."""
    highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if highest >= n_embeddings:
        raise ValueError(
            f"{where}: expected token ids below the model's vocabulary of {n_embeddings:,}, found {highest:,} in its "
            "tokenizer; the tokenizer is another model's"
        )
    if highest + 1 < LEAST_SHARE * n_embeddings:
        raise ValueError(
            f"{where}: expected a tokenizer of about {n_embeddings:,} tokens, the model's vocabulary, found one of "
            f"{highest + 1:,}; the tokenizer is another model's"
        )


def encode(tokenizer: Tokenizer, texts: Sequence[str], *, parallel: bool) -> Iterator[Tokens]:
    """The tokens of each text, in order. parallel: on all cores."""
    ids: list[npt.NDArray[np.int32]] = []
    stops: list[npt.NDArray[np.int64]] = []
    for group in _groups(_pieces(texts)):
        parts = [texts[piece.text][piece.start : piece.stop] for piece in group]
        if parallel:
            encodings: Sequence[Any] = tokenizer.encode_batch(parts, add_special_tokens=False)
        else:
            encodings = [tokenizer.encode(part, add_special_tokens=False) for part in parts]
        for piece, encoding in zip(group, encodings, strict=True):
            ids.append(np.array(encoding.ids, np.int32))
            stops.append(np.array(encoding.offsets, np.int64).reshape(-1, 2)[:, 1] + piece.start)
            if piece.stop == len(texts[piece.text]):
                yield Tokens(np.concatenate(ids), character_ends(np.concatenate(stops), piece.stop))
                ids, stops = [], []


class _Piece(NamedTuple):
    """Characters `start` to `stop` of a text, which is given by its number."""

    text: int
    start: int
    stop: int


def _pieces(texts: Sequence[str]) -> Iterator[_Piece]:
    """The pieces of each text; one, and empty, for an empty text."""
    for number, text in enumerate(texts):
        start = 0
        while len(text) - start > PIECE:
            middle, end = start + PIECE // 2, start + PIECE
            cut = text.rfind("\n", middle, end) + 1 or max(text.rfind(" ", middle, end), 0) or end
            yield _Piece(number, start, cut)
            start = cut
        yield _Piece(number, start, len(text))


def _groups(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces in groups of about GROUP characters."""
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += piece.stop - piece.start
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group
