"""Loads a tokenizer of any kind (`formats`) and turns texts into ids, exactly and without surprises.

What other tools leave to chance is fixed here: no truncation, no padding, no EOS but one at the end of each document and
no BOS but one at its beginning where it is asked for, whatever the tokenizer's own file says; text that looks like a
special token stays text; the end-of-document token must exist; the largest id counts added tokens; threads are off, so
that a fork is safe.

Costs, for byte-level BPE: 40 to 50 MB/s a core for the ids where a faster library may give them (`engines`), 25 MB/s
with EOS and the proof that every text comes back from its ids; 2 to 3 MB/s with the stock library. Memory: 50 bytes a
token of the texts in work with the fast library, 200 with the stock one, a quarter of a million characters at a time;
only a tokenizer without pre-tokeniser, or an endless word, has to take a long text whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokenization.definition import Definition
from tokenization.engines.choose import Engine, choose_engine
from tokenization.engines.round_trip import RoundTrip
from tokenization.errors import TokenizerError
from tokenization.layout import TokenizerCard, Tokens
from tokenization.probes import PROBES

__all__ = ["DEFAULT", "Encoded", "Tokenizer", "load_tokenizer"]

DEFAULT = Path(__file__).parent / "data" / "default"
LONG_TEXT = 1 << 18
"""Characters above which a text is cut where that changes no id: bounds memory."""
CUT_CONTEXT = 1_000
"""Characters on both sides of such a cut that must have the same ids with it and without."""
_BORDER = re.compile(r"(?<=\n)(?=\S)|(?<=\S)(?= \S)")
"""Where pre-tokenisers always cut, and fall into step again whatever came before: a line, a word."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of some documents, one after the other, each with its EOS, and its BOS where one is put.

    ids: uint16 or uint32 [n_tokens]
    lengths: int64[n_documents]    tokens of each document with its EOS and BOS, at least 1
    unknown: int64[n_documents]    unknown tokens in each
    characters: int64[n_documents]
    lost: int64[n_documents]       characters that decoding does not give back
    """

    ids: Tokens
    lengths: npt.NDArray[np.int64]
    unknown: npt.NDArray[np.int64]
    characters: npt.NDArray[np.int64]
    lost: npt.NDArray[np.int64]


class Tokenizer:
    """A tokenizer with a known end-of-document token. Made by `load_tokenizer`."""

    def __init__(self, name: str, definition: Definition, *, fast: bool = True) -> None:
        self.name = name
        self._fast = fast
        self.eos, self.eos_id = definition.eos, definition.eos_id
        self.bos, self.bos_id = definition.bos, definition.bos_id
        """What begins every document; None: nothing does."""
        self.pad, self.pad_id = definition.pad, definition.pad_id
        self.unk_id = definition.unk_id
        """None where the model knows no unknown token: then characters may vanish instead, see `Encoded.lost`."""
        self.vocab_size, self.max_id = definition.vocab_size, definition.max_id
        self.dtype = np.dtype(np.uint16 if self.max_id < 2**16 else np.uint32)
        self._definition = definition
        self._backend = definition.backend()
        self._refuse_forged_ends()

    @property
    def engine(self) -> str:
        """Library and version that gives the ids, and why not the fast one where it is the stock one.

        No id depends on it, so it is part of no fingerprint, card or token file.
        """
        return self._engine.name

    @property
    def added_tokens(self) -> frozenset[str]:
        """Names of the tokens that are looked for before the model sees a text."""
        return frozenset(str(token["content"]) for token in self._definition.data["added_tokens"])

    @cached_property
    def _engine(self) -> Engine:
        return choose_engine(self._backend, self.name, fast=self._fast)

    @cached_property
    def _round_trip(self) -> RoundTrip:
        return RoundTrip(self._backend, (self._definition.data["decoder"] or {}).get("type"), self.max_id)

    def encode_batch(self, texts: Sequence[str]) -> tuple[Tokens, npt.NDArray[np.int64]]:
        """Ids of texts, without EOS.

        Returns:
            ids: uint16 or uint32 [n_tokens], one text after the other.
            lengths: int64[n_texts].

        Raises:
            TokenizerError: the fast library and the stock one differ on a sample of the texts.
        """
        return self._encode(texts, None)

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """Ids of documents, each with its EOS and, where one is put, its BOS; and what was lost on the way.

        Raises:
            TokenizerError: a text yields EOS or BOS by itself, or two libraries differ on a sample.
        """
        lost = np.zeros(len(texts), np.int64)
        ids, lengths = self._encode(texts, lost)
        ends = np.cumsum(lengths)
        for name, index in self._borders():
            forged = np.flatnonzero(ids == index)
            if len(forged):
                text = texts[int(np.searchsorted(ends, forged[0], side="right"))]
                raise TokenizerError(
                    f"tokenizer {self.name}: the text of a document yields the token {name!r} (id {index}) that ends or "
                    f"begins documents, a false border: {text[:200]!r}. Choose another one, or another tokenizer."
                )
        document = np.repeat(np.arange(len(texts)), lengths)
        unknown = np.zeros(len(texts), np.int64)
        if self.unk_id is not None:
            unknown = np.bincount(document[ids == self.unk_id], minlength=len(texts))
        ids, lengths = self._with_borders(ids, lengths)
        return Encoded(
            ids=ids,
            lengths=lengths,
            unknown=unknown,
            characters=np.array([len(text) for text in texts], np.int64),
            lost=lost,
        )

    def _borders(self) -> list[tuple[str, int]]:
        """Name and id of what begins and ends documents."""
        begin = [] if self.bos is None or self.bos_id is None else [(self.bos, self.bos_id)]
        return [*begin, (self.eos, self.eos_id)]

    def _with_borders(self, ids: Tokens, lengths: npt.NDArray[np.int64]) -> tuple[Tokens, npt.NDArray[np.int64]]:
        """Each document between its BOS, if one is put, and its EOS."""
        ends = np.cumsum(lengths)
        if self.bos_id is None:
            return np.insert(ids, ends, self.eos_id).astype(self.dtype, copy=False), lengths + 1
        places = np.stack([ends - lengths, ends], axis=1).reshape(-1)
        # Equal places keep this order: the EOS of one document, then the BOS of the next, then that one's ids.
        return np.insert(ids, places, np.tile([self.bos_id, self.eos_id], len(lengths))).astype(
            self.dtype, copy=False
        ), lengths + 2

    def decode(self, ids: Sequence[int] | Tokens) -> str:
        """The text of some ids, special tokens spelled out."""
        return str(self._definition.library.decode([int(i) for i in ids], skip_special_tokens=False))

    def fingerprint(self) -> str:
        """SHA-256 in hex over everything that changes ids, whatever the order of keys in the file."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return self._definition.fingerprint()

    @cached_property
    def golden_ids(self) -> tuple[tuple[int, ...], ...]:
        """Ids of the frozen probe texts (`probes.PROBES`)."""
        encodings = self._backend.encode_batch_fast(list(PROBES), add_special_tokens=False)
        return tuple(tuple(encoding.ids) for encoding in encodings)

    def card(self) -> TokenizerCard:
        """What the token file says about this tokenizer."""
        return TokenizerCard(
            name=self.name,
            fingerprint=self.fingerprint(),
            vocab_size=self.vocab_size,
            max_id=self.max_id,
            eos=self.eos,
            eos_id=self.eos_id,
            pad=self.pad,
            pad_id=self.pad_id,
            bos=self.bos,
            bos_id=self.bos_id,
            library=f"tokenizers {version('tokenizers')}",
        )

    def save(self, folder: Path) -> Path:
        """Write what the file was read as, for a trainer whose own library reads the file otherwise.

        Args:
            folder: gets tokenizer.json and tokenizer_config.json, as transformers' AutoTokenizer reads them.

        Returns:
            The tokenizer.json; `load_tokenizer` gives it the same fingerprint.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = {"eos_token": self.eos, "bos_token": self.bos, "pad_token": self.pad}
        stated = {key: name for key, name in names.items() if name is not None}
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **stated, "clean_up_tokenization_spaces": False}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        file = folder / "tokenizer.json"
        file.write_text(json.dumps(self._definition.data, ensure_ascii=False) + "\n", encoding="utf-8")
        return file

    def _encode(self, texts: Sequence[str], lost: npt.NDArray[np.int64] | None) -> tuple[Tokens, npt.NDArray[np.int64]]:
        """Ids and lengths; `lost` is given the characters of each text that its ids do not give back."""
        lengths = np.zeros(len(texts), np.int64)
        chunks: list[Tokens] = [np.zeros(0, self.dtype)]
        for group in self._groups(texts):
            owners, pieces = [text for text, _ in group], [piece for _, piece in group]
            self._engine.check(pieces)
            ids, tokens = self._engine.encode(pieces)
            chunks.append(ids.astype(self.dtype))
            np.add.at(lengths, owners, tokens)
            if lost is not None:
                np.add.at(lost, owners, self._round_trip.lost(pieces, ids, tokens))
        return np.concatenate(chunks), lengths

    def _groups(self, texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
        """Texts, long ones in pieces, in groups of bounded size, each with the index of its text."""
        group: list[tuple[int, str]] = []
        size = 0
        for index, text in enumerate(texts):
            for piece in self._cut(text):
                if group and size + len(piece) > LONG_TEXT:
                    yield group
                    group, size = [], 0
                group.append((index, piece))
                size += len(piece)
        if group:
            yield group

    def _cut(self, text: str) -> Iterator[str]:
        """Cut a long text only where the ids on both sides are the same with and without the cut."""
        start = 0
        while len(text) - start > LONG_TEXT:
            cut = next((place for place, left in self._places(text, start) if self._harmless(text, left, place)), None)
            if cut is None:
                break
            yield text[start:cut]
            start = cut
        yield text[start:]

    def _places(self, text: str, start: int) -> Iterator[tuple[int, int]]:
        """Where a piece from `start` might end, the best first, each with the beginning of a context before it."""
        end = start + LONG_TEXT
        borders = [match.start() for match in _BORDER.finditer(text, end - 4 * CUT_CONTEXT, end - CUT_CONTEXT)]
        for place in borders[:-9:-1]:
            # A border inside the context: from there on the ids do not depend on what came before it.
            if _BORDER.search(text, place - CUT_CONTEXT, place - 1):
                yield place, place - CUT_CONTEXT
        splitter = self._backend.pre_tokenizer
        if splitter is None:
            return
        # A text without lines or blanks: ask the pre-tokeniser itself. What it cut before the last context stands.
        ends = np.array([span[1] for _, span in splitter.pre_tokenize_str(text[start:end])]) + start
        for place in ends[ends <= end - CUT_CONTEXT][:-9:-1].tolist():
            yield place, int(ends[max(0, np.searchsorted(ends, place - CUT_CONTEXT, side="right") - 1)])

    def _harmless(self, text: str, left: int, place: int) -> bool:
        before, after = text[left:place], text[place : place + CUT_CONTEXT]
        ids, lengths = self._engine.encode([before + after, before, after])
        whole, parts = ids[: lengths[0]], ids[lengths[0] :]
        if not np.array_equal(whole, parts):
            return False
        lists = [whole.tolist(), parts[: lengths[1]].tolist(), parts[lengths[1] :].tolist()]
        both, first, second = self._backend.decode_batch(lists, skip_special_tokens=False)
        return bool(both == first + second)

    def _refuse_forged_ends(self) -> None:
        """The characters of EOS and BOS in a document must stay characters."""
        for name, index in self._borders():
            forgeries = [name, f"a{name}b", f"a {name} b", f"\n{name}\n"]
            encodings = self._backend.encode_batch_fast(forgeries, add_special_tokens=False)
            if any(index in encoding.ids for encoding in encodings):
                raise TokenizerError(
                    f"tokenizer {self.name} turns the characters {name!r} into the token of that name even as "
                    "ordinary text, so any crawled page could forge a border. Choose another one, or another tokenizer."
                )


def load_tokenizer(
    name_or_path: str | Path = "default", *, eos: str | None = None, bos: str | None = None, fast: bool = True
) -> Tokenizer:
    """Load a tokenizer.

    Args:
        name_or_path: `default` (ours, 32,768 tokens); a tokenizer.json, a SentencePiece model, a tiktoken file, a
            tekken.json; or a folder that holds one of these, or GPT-2's two files (`formats`).
        eos: the end-of-document token; left out, what tokenizer_config.json beside it or the file itself says.
        bos: the token that begins every document, exactly once; left out, none is put, whatever the files say.
        fast: use a faster library where it gives the same ids (`engines`); False: the stock library, always.

    Raises:
        TokenizerError: it is missing, unreadable, or has no such token; the message names the candidates.
    """
    path = DEFAULT if str(name_or_path) == "default" else Path(name_or_path)
    name = "default" if str(name_or_path) == "default" else path.resolve().name
    if name in ("tokenizer.json", "tokenizer.model"):
        name = path.resolve().parent.name
    return Tokenizer(name, Definition.read(path, eos, bos), fast=fast)
