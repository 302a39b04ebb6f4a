"""Reads a definition of SentencePiece's BPE into the tables of the compiled merges, and encodes texts with them.

Taken are definitions of which all of this holds; of any other, `read_merges` says what does not:

- BPE over characters, no whole word looked up at once, every byte a token and none of these in a merge;
- blanks become `▁`, and one is put before a text, by a normaliser (`Prepend`, `Replace`) or by the pre-tokeniser
  `Metaspace`; nothing else is changed or cut;
- few added tokens are found in ordinary text. Texts that hold a part of one go to the stock library.

That the ids are right is not taken from this, but from the trial and the samples (`engines`).

Costs: 0.2 s to read 59,000 merges; 21 MB of memory a tokenizer; its kernels see to it that a fork is safe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tokenization.engines.kernels import SLACK
from tokenization.engines.merge_kernel import NO_PAIR, Tables, encode, fill

__all__ = ["Merges", "read_merges"]

MARK = "▁"
"""What stands for a blank."""
JOIN_WORDS = 1 << 15
"""Words of the bit field of letters that stand side by side: 256 kB."""
ENTRIES = 1 << 18
"""Pieces that are remembered: 16 MB, of which as much is touched as there are different pieces."""
PART = 6
"""Characters of an added token that are looked for in a text."""
MOST_PARTS = 32


class Blanks(NamedTuple):
    """What becomes of blanks before the merges."""

    replaced: bool = False
    """Blanks become `▁`."""
    prepended: bool = False
    """`▁` is put before a text that is not empty .."""
    doubled: bool = False
    """.. also before one that begins with a blank or `▁`."""
    split: bool = False
    """No token goes on past the next `▁`."""


class Merges:
    """SentencePiece's BPE in compiled merges; made by `read_merges`."""

    name = f"compiled merges (numba {numba.__version__})"
    elsewhere = ""

    def __init__(self, tables: Tables, blanks: Blanks, split_at: int, parts: Sequence[str]) -> None:
        """
        Args:
            split_at: letter before which text is always cut, 0 for none.
            parts: strings of which each added token that is found in ordinary text holds one.
        """
        self._tables = tables
        self._blanks = blanks
        self._split_at = split_at
        self._parts = tuple(parts)
        self._prefix = b" " if blanks.replaced else MARK.encode()

    def here(self) -> bool:
        """Forks and threads do it no harm."""
        return True

    def takes(self, text: str) -> bool:
        """Whether no added token can be found in the text."""
        return not any(part in text for part in self._parts)

    def encode(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Ids of texts, uint32 [n_tokens], and int64[n_texts] tokens of each.

        Raises:
            ValueError: a text is no valid Unicode.
        """
        raw = [text.encode() for text in texts]
        if self._blanks.prepended:
            marks = () if self._blanks.doubled else (b" ", MARK.encode())
            raw = [self._prefix + one if one and not one.startswith(marks) else one for one in raw]
        borders = np.cumsum([0, *map(len, raw)])
        data = np.frombuffer(b"".join((*raw, bytes(SLACK))), np.uint8)
        ids, lengths = np.empty(len(data), np.uint32), np.empty(len(raw), np.int64)
        n = encode(data, borders, self._tables, self._split_at, ids, lengths)
        return ids[:n], lengths


def read_merges(data: Mapping[str, Any]) -> Merges:
    """The engine of a definition.

    Args:
        data: a tokenizer.json, as the library writes it.

    Raises:
        ValueError: it is none that the compiled merges can take; the message says why.
    """
    model, vocabulary = data["model"], data["model"].get("vocab")
    _refuse_other_models(model)
    blanks = _blanks(data["normalizer"], data["pre_tokenizer"], data["added_tokens"])
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    if not model.get("byte_fallback") or not vocabulary.keys() >= set(byte_tokens):
        raise ValueError("not every byte is a token")
    merges = [_merge(merge) for merge in model["merges"]]
    if not {token for merge in merges for token in merge}.isdisjoint(byte_tokens):
        raise ValueError("a byte is merged with something")
    characters = [token for token in vocabulary if len(token) == 1]
    if len(characters) >= 1 << 16:
        raise ValueError(f"{len(characters):,} characters are tokens")
    numbers = {character: number for number, character in enumerate(characters, 1)}
    letters = np.zeros(0x110000, np.uint16)
    letters[[ord(character) for character in characters]] = list(numbers.values())
    if blanks.replaced:
        letters[ord(" ")] = numbers.get(MARK, 0)
        if MARK not in numbers:
            raise ValueError(f"{MARK} is no token")
    words = max(16, 1 << (4 * len(merges) + 2).bit_length())  # 16: `mergeable` has a word for each, of no merges too
    tables = Tables(
        letters=letters,
        letter_ids=np.array([0, *(vocabulary[character] for character in characters)], np.uint32),
        byte_ids=np.array([vocabulary[token] for token in byte_tokens], np.uint32),
        joins=np.zeros(JOIN_WORDS, np.uint64),
        pairs=np.full(words, NO_PAIR, np.uint64),
        mergeable=np.zeros(words >> 4, np.uint64),
        seen=_aligned(8 * ENTRIES),
    )
    fill(tables, _neighbours(merges, numbers), *_pairs(merges, vocabulary))
    return Merges(tables, blanks, numbers.get(MARK, 0) if blanks.split else 0, _parts(data["added_tokens"]))


def _aligned(n: int) -> npt.NDArray[np.uint64]:
    """n zeros that begin with a pair of cache lines: an entry that lay across two would be read at half the speed."""
    zeros = np.zeros(n + 16, np.uint64)
    return zeros[-zeros.ctypes.data // 8 % 16 :][:n]


def _merge(written: str | Sequence[str]) -> tuple[str, str]:
    """A merge as older and newer files write it: `a b`, or the two in a list."""
    parts = written.split(" ", 1) if isinstance(written, str) else list(written)
    return parts[0], parts[1]


def _refuse_other_models(model: Mapping[str, Any]) -> None:
    if model["type"] != "BPE":
        raise ValueError(f"{model['type']}, not BPE")
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        if model.get(key):
            raise ValueError(f"the model has {key}")


def _blanks(
    normalizer: Mapping[str, Any] | None, splitter: Mapping[str, Any] | None, added: Sequence[Mapping[str, Any]]
) -> Blanks:
    blanks = Blanks()
    steps = [normalizer] if normalizer else []
    if normalizer and normalizer["type"] == "Sequence":
        steps = normalizer["normalizers"]
    # As `formats.sentencepiece` writes it: but for a text that is nothing but an added token, which is not taken anyway.
    names = "|".join(re.escape(token["content"]) for token in added if not token["special"])
    sparing = {"type": "Replace", "pattern": {"Regex": rf"\A(?!(?:{names})\z)"}, "content": MARK}
    for step in steps:
        if step in ({"type": "Prepend", "prepend": MARK}, sparing) and not blanks.prepended:
            blanks = blanks._replace(prepended=True, doubled=True)
        elif step == {"type": "Replace", "pattern": {"String": " "}, "content": MARK}:
            blanks = blanks._replace(replaced=True)
        else:
            raise ValueError(f"the normaliser {step['type']} changes more than blanks")
    if splitter is None:
        return blanks
    if splitter["type"] != "Metaspace" or splitter["replacement"] != MARK:
        raise ValueError(f"the pre-tokeniser is {splitter['type']}")
    blanks = blanks._replace(replaced=True, split=bool(splitter["split"]))
    return blanks if splitter["prepend_scheme"] == "never" else blanks._replace(prepended=True)


def _neighbours(merges: Sequence[tuple[str, str]], numbers: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Letters that stand side by side in a token that is made by a merge: int64[n, 2]."""
    tokens = {left + right for left, right in merges}
    pairs = {(token[i], token[i + 1]) for token in tokens for i in range(len(token) - 1)}
    known = [(numbers[left], numbers[right]) for left, right in pairs if left in numbers and right in numbers]
    return np.array(sorted(known), np.int64).reshape(-1, 2)


def _pairs(
    merges: Sequence[tuple[str, str]], vocabulary: Mapping[str, int]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Keys and values of the merges, as the kernel wants them; the last of two equal ones counts."""
    values = {
        vocabulary[left] << 32 | vocabulary[right]: rank << 32 | vocabulary[left + right]
        for rank, (left, right) in enumerate(merges)
    }
    return np.array(list(values), np.uint64), np.array(list(values.values()), np.int64)


def _parts(added: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short string of each added token that is not special, without blanks, which a normaliser might change."""
    parts = set()
    for token in added:
        if not token["special"]:
            longest = max(re.split(f"[ {MARK}]", token["content"]), key=len)
            if not longest:
                raise ValueError(f"the added token {token['content']!r} is nothing but blanks")
            parts.add(longest[:PART])
    if len(parts) > MOST_PARTS:
        raise ValueError(f"{len(parts):,} added tokens may be found in ordinary text")
    return sorted(parts)
