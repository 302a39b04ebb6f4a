"""Do ids give their text back? Exact, and for byte-level tokenizers at a gigabyte a second.

A byte-level decoder does nothing but put the bytes of the tokens one after the other. So where the bytes of a text's
tokens, gathered from a table, are the UTF-8 of the text, decoding gives the text back; only texts for which they are
not go through the library's decoder, to count what is lost. Other decoders always take the slow way (15 MB/s).

Memory: the table, twice the vocabulary's bytes; the bytes of the texts in work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer as Backend

__all__ = ["RoundTrip", "byte_alphabet"]

LARGEST_TABLE = 1 << 22
"""Ids above which no table is made: a vocabulary with enormous gaps."""

Ints = npt.NDArray[np.int64]


class RoundTrip:
    """Compares texts with what their ids decode to."""

    def __init__(self, backend: Backend, decoder: str | None, max_id: int) -> None:
        """
        Args:
            decoder: type of the definition's decoder, `ByteLevel` for instance.
        """
        self._backend = backend
        exact = decoder == "ByteLevel" and max_id < LARGEST_TABLE
        self._table = _token_bytes(backend, max_id + 1) if exact else None

    def lost(self, texts: Sequence[str], ids: npt.NDArray[Any], lengths: Ints) -> Ints:
        """Characters of each text that decoding does not give back, int64[n_texts].

        Args:
            ids: unsigned [n_tokens], the texts' ids one after the other.
            lengths: int64[n_texts], tokens of each.
        """
        lost = np.zeros(len(texts), np.int64)
        ends = np.cumsum(lengths)
        suspects = range(len(texts)) if self._table is None else self._unequal(self._table, texts, ids, ends)
        if len(suspects):
            lists = [ids[ends[i] - lengths[i] : ends[i]].tolist() for i in suspects]
            decoded = self._backend.decode_batch(lists, skip_special_tokens=False)
            for index, back in zip(suspects, decoded, strict=True):
                if back != texts[index]:
                    lost[index] = (Counter(texts[index]) - Counter(back)).total()
        return lost

    @staticmethod
    def _unequal(table: pa.LargeBinaryArray, texts: Sequence[str], ids: npt.NDArray[Any], ends: Ints) -> Sequence[int]:
        """Indices of the texts whose UTF-8 is not the bytes of their tokens."""
        tokens = table.take(pa.array(ids))
        _, offsets, data = tokens.buffers()
        ends_of_bytes = np.concatenate([np.zeros(1, np.int64), np.frombuffer(offsets, np.int64, len(tokens) + 1)[ends]])
        made = memoryview(data if data is not None else b"").cast("B")
        raw = [text.encode() for text in texts]
        ends_of_texts = np.cumsum([0, *map(len, raw)])
        if np.array_equal(ends_of_bytes, ends_of_texts) and made[: ends_of_bytes[-1]] == b"".join(raw):
            return ()
        return [i for i, text in enumerate(raw) if made[ends_of_bytes[i] : ends_of_bytes[i + 1]] != text]


def byte_alphabet() -> dict[str, int]:
    """The character that stands for each byte in byte-level vocabularies: itself where it can be seen, else 256 and on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


def _token_bytes(backend: Backend, n: int) -> pa.LargeBinaryArray:
    """Bytes of each id; a token with a character outside the alphabet stands for its own UTF-8, an unused id for none."""
    alphabet = byte_alphabet()
    to_latin = {ord(character): chr(byte) for character, byte in alphabet.items()}
    letters = frozenset(alphabet)
    tokens = [backend.id_to_token(index) or "" for index in range(n)]
    return pa.array(
        [t.translate(to_latin).encode("latin-1") if letters.issuperset(t) else t.encode() for t in tokens],
        pa.large_binary(),
    )
