"""What turns texts into ids: the Hugging Face library, or a faster engine that has proved itself equal to it.

The stock library (`tokenizers`) is the reference: its ids are right by definition. A fast engine is used where it takes
the definition, and where on every trial text (`trials`) its ids equal the stock library's:

- `fastokens`: byte-level BPE (GPT-2, Llama 3, Qwen, DeepSeek, tekken, ours) at 15 to 50 times the speed;
- `merges`: SentencePiece's BPE (Llama 2, Mistral), compiled here, at 12 to 18 times the speed (bench/results/tokenize.md).

While it works, a window of one text in each group, and of one text in 256, is encoded by both. A difference raises:
had it been passed over, the texts between the samples would be in doubt, in this shard and in those before.

Costs: half a second to load and try, once a process; the samples take 5 to 10 % of the encoding time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

from tokenization.engines.fastokens import load_fastokens
from tokenization.errors import TokenizerError
from tokenization.trials import trial_texts

__all__ = ["Engine", "FastEngine", "StockEngine", "choose_engine"]

SAMPLE_EVERY = 256
"""One text in so many is encoded by both libraries, chosen by a hash of its beginning and length."""
SAMPLE_CHARACTERS = 1_024
"""Characters of such a sample; its place in the text depends on the same hash."""

Ids = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]


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


class Fast(Protocol):
    """A faster engine: what `FastEngine` checks against the stock library."""

    name: str
    elsewhere: str
    """Why it cannot be used where `here` says no."""

    def here(self) -> bool:
        """Whether it can be used in this process."""

    def takes(self, text: str) -> bool:
        """Whether it can be asked for the ids of this text."""

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Ids and lengths of texts that it takes, as `Engine.encode`; ValueError where it does not after all."""


class FastEngine:
    """A fast engine beside the stock library, that it is compared with, and that has the texts which it does not take."""

    def __init__(self, fast: Fast, reference: Backend, tokenizer: str) -> None:
        """
        Args:
            reference: the same tokenizer in the stock library.
            tokenizer: its name, for messages.
        """
        self._fast = fast
        self._tokenizer = tokenizer
        self._stock = StockEngine(reference, fast.elsewhere)

    @property
    def name(self) -> str:
        return self._fast.name if self._fast.here() else self._stock.name

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        if not self._fast.here():
            return self._stock.encode(texts)
        taken = [self._fast.takes(text) for text in texts]
        if not all(taken):
            return self._encode_both(texts, taken)
        try:
            return self._fast.encode(texts)
        except ValueError:  # a limit of its own: these texts go to the library whose ids define what is right
            return self._stock.encode(texts)

    def check(self, texts: Sequence[str]) -> None:
        if not self._fast.here():
            return
        try:
            difference = self.first_difference(list(_samples(texts)))
        except ValueError:  # refused, as `encode` will find: nothing to compare
            return
        if difference:
            raise TokenizerError(
                f"tokenizer {self._tokenizer}: {self._fast.name} and tokenizers {version('tokenizers')} differ on "
                f"{difference}. No id of this run can be trusted: set pack.engine to stock and run again, and please "
                "report the text."
            )

    def first_difference(self, texts: Sequence[str]) -> str:
        """Text, place and ids of the first difference from the reference; empty where all ids are equal."""
        texts = [text for text in texts if self._fast.takes(text)]
        fast, fast_lengths = self._fast.encode(texts)
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

    def _encode_both(self, texts: Sequence[str], taken: Sequence[bool]) -> tuple[Ids, Ints]:
        """Each text by the engine that takes it, in their order."""
        rows: list[Ids] = [np.zeros(0, np.uint32)] * len(texts)
        for fast in (True, False):
            places = [place for place, one in enumerate(taken) if one is fast]
            some = [texts[place] for place in places]
            ids, lengths = self.encode(some) if fast else self._stock.encode(some)
            for place, row in zip(places, np.split(ids, np.cumsum(lengths)[:-1]), strict=False):
                rows[place] = row
        return np.concatenate(rows), np.array([len(row) for row in rows], np.int64)


def choose_engine(backend: Backend, tokenizer: str, *, fast: bool = True) -> Engine:
    """The fast engine where one may be used, else the stock one, with the reason in its name.

    Args:
        backend: the tokenizer, made safe (`Definition.backend`).
        tokenizer: its name, for messages.
        fast: False: the stock library whatever is installed.
    """
    if not fast:
        return StockEngine(backend, "asked for")
    data = json.loads(backend.to_str())
    try:
        engine = FastEngine(_load(data), backend, tokenizer)
        difference = engine.first_difference(trial_texts([token["content"] for token in data["added_tokens"]]))
    except ValueError as error:
        return StockEngine(backend, str(error))
    return StockEngine(backend, f"{engine.name} differs on {difference}") if difference else engine


def _load(data: Mapping[str, Any]) -> Fast:
    """The fast engine for a definition; ValueError where there is none."""
    if (data["decoder"] or {}).get("type") == "ByteLevel":
        return load_fastokens(data)
    from tokenization.engines.merges import read_merges  # numba takes half a second to import

    return read_merges(data)


def _samples(texts: Sequence[str]) -> Iterator[str]:
    """A window of the first text, and of about one in `SAMPLE_EVERY` of the others."""
    for index, text in enumerate(texts):
        key = zlib.crc32(text[:256].encode(errors="surrogatepass"), len(text))
        if index == 0 or key % SAMPLE_EVERY == 0:
            start = key // SAMPLE_EVERY % max(1, len(text) - SAMPLE_CHARACTERS)
            yield text[start : start + SAMPLE_CHARACTERS]
