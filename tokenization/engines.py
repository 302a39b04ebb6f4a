"""What turns texts into ids: the Hugging Face library, or a faster one that has proved itself equal to it.

The stock library (`tokenizers`) is the reference: its ids are right by definition. `fastokens` gives the same ids
for byte-level BPE at ten to fifteen times the speed, and is used where all of this holds:

- it is installed, and loads the definition;
- the definition is byte-level BPE, so that the round trip (`round_trip`) proves that no byte is lost;
- on every trial text (`trials`) its ids equal the stock library's;
- this process is the one that loaded it first: its thread pool does not survive a fork, so a forked child
  goes back to the stock library. Processes of a forkserver or spawn load their own.

While it works, a window of one text in each group, and of one text in 256, is encoded by both. A difference raises:
had it been passed over, the texts between the samples would be in doubt, in this shard and in those before.

Costs: half a second to load and try, once a process; the samples take 5 to 10 % of the encoding time; its caches
hold 130 MB at most. It is told to use one thread: worker processes are what runs in parallel here.
"""

from __future__ import annotations

import importlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

from tokenization.errors import TokenizerError
from tokenization.trials import trial_texts

__all__ = ["Engine", "FastEngine", "StockEngine", "choose_engine"]

SAMPLE_EVERY = 256
"""One text in so many is encoded by both libraries, chosen by a hash of its beginning and length."""
SAMPLE_CHARACTERS = 1_024
"""Characters of such a sample; its place in the text depends on the same hash."""

Ids = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

_home: int | None = None
"""The process in which the fast library was first used."""


class Engine(Protocol):
    """Encodes texts without special tokens; text that looks like a special token stays text."""

    @property
    def name(self) -> str:
        """Library and version, and why not the fast one where it is the other."""

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Ids of all texts, uint32 [n_tokens], and int64[n_texts] tokens of each."""

    def check(self, texts: Sequence[str]) -> None:
        """Compare a sample with the reference.

        Raises:
            TokenizerError: a sample differs.
        """


class StockEngine:
    """The Hugging Face library. `why` says why it is used and not the fast one."""

    def __init__(self, backend: Backend, why: str) -> None:
        self._backend = backend
        self.name = f"tokenizers {version('tokenizers')} ({why})"

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        parts = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        return np.concatenate([np.zeros(0, np.uint32), *parts]), np.array([len(part) for part in parts], np.int64)

    def check(self, texts: Sequence[str]) -> None:
        """The reference equals itself."""


class FastEngine:
    """fastokens, beside the stock library that it is compared with."""

    def __init__(self, fast: Any, reference: Backend, tokenizer: str) -> None:
        """
        Args:
            fast: a `fastokens.Tokenizer`.
            reference: the same tokenizer in the stock library.
            tokenizer: its name, for messages.
        """
        self._fast = fast
        self._tokenizer = tokenizer
        self._stock = StockEngine(reference, "a fork of the process that loaded fastokens")
        self._name = f"fastokens {version('fastokens')}"

    @property
    def name(self) -> str:
        return self._name if os.getpid() == _home else self._stock.name

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        if os.getpid() != _home:
            return self._stock.encode(texts)
        try:
            return self._encode_fast(texts)
        except ValueError:  # a limit of its regex engine: these texts go to the library whose ids define what is right
            return self._stock.encode(texts)

    def check(self, texts: Sequence[str]) -> None:
        if os.getpid() != _home:
            return
        try:
            difference = self.first_difference(list(_samples(texts)))
        except ValueError:  # refused, as `encode` will find: nothing to compare
            return
        if difference:
            raise TokenizerError(
                f"tokenizer {self._tokenizer}: {self._name} and tokenizers {version('tokenizers')} differ on {difference}. "
                "No id of this run can be trusted: set pack.engine to stock and run again, and please report the text."
            )

    def first_difference(self, texts: Sequence[str]) -> str:
        """Text, place and ids of the first difference from the reference; empty where all ids are equal."""
        fast, fast_lengths = self._encode_fast(texts)
        stock, stock_lengths = self._stock.encode(texts)
        if np.array_equal(fast, stock) and np.array_equal(fast_lengths, stock_lengths):
            return ""
        fast_rows, stock_rows = (
            np.split(ids, np.cumsum(lengths)[:-1]) for ids, lengths in ((fast, fast_lengths), (stock, stock_lengths))
        )
        for text, one, other in zip(texts, fast_rows, stock_rows, strict=True):
            if not np.array_equal(one, other):
                shared = min(len(one), len(other))
                place = int(np.argmax(np.append(one[:shared] != other[:shared], True)))
                return (
                    f"the text {text[:200]!r} from token {place} on: {one[place : place + 4].tolist()}, "
                    f"expected {other[place : place + 4].tolist()}"
                )
        raise AssertionError("ids differ as a whole and in no text")

    def _encode_fast(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        ids, offsets = self._fast.encode_batch_flat(list(texts), add_special_tokens=False, split_special_tokens=True)
        borders = np.frombuffer(offsets, "<u8").astype(np.int64)
        return np.frombuffer(ids, "<u4"), borders[1:] - borders[:-1]


def choose_engine(backend: Backend, tokenizer: str, *, fast: bool = True) -> Engine:
    """The fast engine where it may be used, else the stock one, with the reason in its name.

    Args:
        backend: the tokenizer, made safe (`Definition.backend`).
        tokenizer: its name, for messages.
        fast: False: the stock library whatever is installed.
    """
    global _home  # noqa: PLW0603 - one for the process, as the library's thread pool is
    if not fast:
        return StockEngine(backend, "asked for")
    data = json.loads(backend.to_str())
    if not _is_byte_level_bpe(data):
        return StockEngine(backend, "not byte-level BPE")
    if _home is not None and os.getpid() != _home:
        return StockEngine(backend, "a fork of the process that loaded fastokens")
    for name in ("RAYON_NUM_THREADS", "FASTOKENS_BPE_THREADS"):
        os.environ.setdefault(name, "1")  # read when its pools are first used
    try:
        library = importlib.import_module("fastokens")
    except ImportError:
        return StockEngine(backend, "fastokens is not installed")
    _home = os.getpid()
    try:
        engine = FastEngine(library.Tokenizer.from_json_str(json.dumps(data)), backend, tokenizer)
        texts = trial_texts([token["content"] for token in data["added_tokens"]])
        difference = engine.first_difference(texts)
    except ValueError as error:
        return StockEngine(backend, f"fastokens does not take it: {error}")
    return StockEngine(backend, f"fastokens differs on {difference}") if difference else engine


def _is_byte_level_bpe(data: Mapping[str, Any]) -> bool:
    return data["model"]["type"] == "BPE" and (data["decoder"] or {}).get("type") == "ByteLevel"


def _samples(texts: Sequence[str]) -> Iterator[str]:
    """A window of the first text, and of about one in `SAMPLE_EVERY` of the others."""
    for index, text in enumerate(texts):
        key = zlib.crc32(text[:256].encode(errors="surrogatepass"), len(text))
        if index == 0 or key % SAMPLE_EVERY == 0:
            start = key // SAMPLE_EVERY % max(1, len(text) - SAMPLE_CHARACTERS)
            yield text[start : start + SAMPLE_CHARACTERS]
