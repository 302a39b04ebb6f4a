"""Do ids give their text back? Exact, and at hundreds of megabytes a second for the decoders of known models.

The decoders of byte-level BPE and of SentencePiece do nothing but put the bytes of the tokens one after the other, where
a blank stands for `▁` and the first blank may be dropped. So where the bytes of a text's tokens, gathered from a table,
are the UTF-8 of the text, decoding gives the text back; only texts for which they are not go through the library's
decoder, to count what is lost. Other decoders always take that way (15 MB/s).

Memory: the table, twice the vocabulary's bytes; the bytes of the texts in work.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

__all__ = ["RoundTrip", "byte_alphabet"]

BYTE_TOKEN = re.compile(r"<0x(\+[0-9A-Fa-f]|[0-9A-Fa-f]{2})>")
"""As the library reads it: Rust takes a plus sign before a hexadecimal digit."""
SLACK = 32
"""Bytes that the kernel may read after the last one."""

Ints = npt.NDArray[np.int64]


class RoundTrip:
    """Compares texts with what their ids decode to."""

    def __init__(self, backend: Backend, decoder: str | None, max_id: int) -> None:
        """
        Args:
            decoder: type of the definition's decoder, `ByteLevel` or `Sequence` for instance; None: decode every text.
        """
        self._backend = backend
        self._drops_blank = False
        """Of the bytes of the tokens, a blank at the beginning."""
        tokens = [backend.id_to_token(index) or "" for index in range(max_id + 1)]
        table: list[bytes] = []
        if decoder == "ByteLevel":
            table = _byte_level(tokens)
        elif decoder == "Sequence" and (dropped := _sentencepiece(backend)) is not None:
            table, self._drops_blank = _marked(tokens), dropped > 0
        self._compare = Comparison(table) if table else None

    def lost(self, texts: Sequence[str], ids: npt.NDArray[Any], lengths: Ints) -> Ints:
        """Characters of each text that decoding does not give back, int64[n_texts].

        Args:
            ids: unsigned [n_tokens], the texts' ids one after the other.
            lengths: int64[n_texts], tokens of each.
        """
        lost = np.zeros(len(texts), np.int64)
        ends = np.cumsum(lengths)
        suspects = np.arange(len(texts))
        if self._compare is not None:
            suspects = self._compare(texts, ids, ends, self._drops_blank)
        if len(suspects):
            lists = [ids[ends[i] - lengths[i] : ends[i]].tolist() for i in suspects]
            decoded = self._backend.decode_batch(lists, skip_special_tokens=False)
            for index, back in zip(suspects.tolist(), decoded, strict=True):
                if back != texts[index]:
                    lost[index] = (Counter(texts[index]) - Counter(back)).total()
        return lost


class Comparison:
    """Texts beside the bytes of their tokens."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        """
        Args:
            tokens: bytes of each id.
        """
        from tokenization.engines import bytes_kernel  # numba takes half a second to import

        self._kernel = bytes_kernel
        self._table = bytes_kernel.token_bytes(tokens)

    def __call__(self, texts: Sequence[str], ids: npt.NDArray[Any], ends: Ints, drops_blank: bool) -> Ints:
        """Indices of the texts whose UTF-8 is not the bytes of their tokens.

        Args:
            ends: int64[n_texts], where the ids of each end.
            drops_blank: a blank that the bytes begin with does not count.
        """
        if len(ids) and int(ids.max()) >= len(self._table.words):
            return np.arange(len(texts))
        raw = [text.encode() for text in texts]
        begins = np.cumsum([1, *(len(text) + 1 for text in raw)])
        data = np.frombuffer(b" ".join((b"", *raw, bytes(SLACK))), np.uint8)
        bad = np.zeros(len(texts), np.bool_)
        self._kernel.unequal(self._table, ids.astype(np.uint32, copy=False), ends, data, begins, drops_blank, bad)
        return np.flatnonzero(bad)


def byte_alphabet() -> dict[str, int]:
    """The character that stands for each byte in byte-level vocabularies: itself where it can be seen, else 256 and on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


def _byte_level(tokens: Iterable[str]) -> list[bytes]:
    """Bytes of each token; one with a character outside the alphabet stands for its own UTF-8."""
    alphabet = byte_alphabet()
    to_latin = {ord(character): chr(byte) for character, byte in alphabet.items()}
    letters = frozenset(alphabet)
    return [t.translate(to_latin).encode("latin-1") if letters.issuperset(t) else t.encode() for t in tokens]


def _marked(tokens: Iterable[str]) -> list[bytes]:
    """Bytes of each token: one for `<0x0A>`, else its UTF-8 with blanks for `▁`."""
    return [bytes([int(t[3:5], 16)]) if BYTE_TOKEN.fullmatch(t) else t.replace("▁", " ").encode() for t in tokens]


def _sentencepiece(backend: Backend) -> int | None:
    """Blanks that the decoder drops at the beginning, where it is SentencePiece's; None for any other.

    Its byte tokens are decoded run by run, and a run that is no valid UTF-8 becomes \ufffd. Between whole characters
    each run of a valid text is valid itself, so where all bytes together are the text, so is what it makes of them.
    """
    steps = json.loads(backend.decoder.__getstate__())["decoders"]
    if steps[:3] != [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]:
        return None
    match steps[3:]:
        case []:
            return 0
        case [{"type": "Strip", "content": " ", "start": (0 | 1) as start, "stop": 0}]:
            return int(start)
    return None
