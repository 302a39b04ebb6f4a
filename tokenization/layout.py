"""What a token file holds: its header and its columns. The rules that both obey are in `tokenization.rules`.

docs/reference/token-file.md describes the same for readers in other languages. Needs pyarrow and NumPy only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.rules import header_faults

__all__ = ["FORMAT_VERSION", "Block", "Header", "TokenizerCard", "Tokens", "block_schema"]

FORMAT_VERSION = 2
METADATA_KEY = b"corpusmill"
BYTE_ORDER = "little"
BLOCK_BYTES = 16 * 2**20
"""Tokens of a block, in bytes: small enough to name damage closely, large enough to cost nothing."""

Tokens = npt.NDArray[np.unsignedinteger[Any]]
"""Token ids: uint16 or uint32, by `Header.dtype`."""


@dataclass(frozen=True, slots=True)
class TokenizerCard:
    """The tokenizer that made the ids, as a trainer needs to know it."""

    name: str
    fingerprint: str
    """SHA-256 over everything that changes ids; see `tokenizer.Tokenizer.fingerprint`."""
    vocab_size: int
    """Entries of the vocabulary with added tokens. Ids may have gaps: embeddings need max_id + 1 rows."""
    max_id: int
    eos: str
    eos_id: int
    pad: str
    pad_id: int
    """What fills the rest of a sequence; equals `eos_id` if the tokenizer has no padding token."""
    bos: str | None
    """What begins every document; None: nothing does."""
    bos_id: int | None
    library: str


@dataclass(frozen=True, slots=True)
class Header:
    """Everything that is known of a token file before its first block; stands in the schema's metadata as JSON."""

    run_id: str
    config_digest: str
    strategy: str
    split: str
    """Which documents: `all` of the run, or `train` and `holdout` where some were held out."""
    shuffle_seed: int | None
    """Seed of the order of sequences; None: they follow the order of documents."""
    mix: tuple[Mapping[str, Any], ...]
    """What was mixed: name, weight, epochs, documents and tokens of each group; empty where every document is packed once."""
    seq_len: int
    tokenizer: TokenizerCard
    golden_texts: tuple[str, ...]
    golden_ids: tuple[tuple[int, ...], ...]
    """Ids of the golden texts, without EOS."""
    documents: int
    """Rows of documents.parquet: a document that is packed twice counts twice."""
    tokens: int
    """With one EOS for each document, and its BOS where there is one; without padding."""
    sequences: int
    pieces: int
    """Documents and parts of documents; equals `documents` if none was cut."""
    unk_share: float
    """Unknown tokens / tokens."""
    block_sequences: int
    """Sequences of every block but the last."""
    lost_share: float
    """Characters that decoding does not give back / characters, over all documents."""

    @property
    def padding_share(self) -> float:
        room = self.sequences * self.seq_len
        return (room - self.tokens) / room if room else 0.0

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint16 where every id fits, counted with added tokens, else uint32."""
        return np.dtype(np.uint16 if self.tokenizer.max_id < 2**16 else np.uint32)

    @property
    def n_blocks(self) -> int:
        return -(-self.sequences // self.block_sequences)

    def rows_of_block(self, block: int) -> int:
        return min(self.block_sequences, self.sequences - block * self.block_sequences)

    def to_json(self) -> str:
        derived = {"dtype": self.dtype.name, "padding_share": self.padding_share, "byte_order": sys.byteorder}
        return json.dumps({"format": FORMAT_VERSION, **asdict(self), **derived}, separators=(",", ":"))

    @classmethod
    def from_schema(cls, schema: pa.Schema, where: str) -> Header:
        """The header in a file's schema.

        Raises:
            TokenFileError: the schema is none of ours, or of another format version.
        """
        text = (schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            raise TokenFileError(
                f"{where}: an Arrow file without the metadata key {METADATA_KEY.decode()!r}: no token file of corpusmill."
            )
        try:
            data: dict[str, Any] = json.loads(text)
            version = data.pop("format")
            if version != FORMAT_VERSION:
                raise TokenFileError(
                    f"{where}: token file format {version!r:.40}; this version of corpusmill reads {FORMAT_VERSION}. "
                    "Pack the run again, or read it with the version that wrote it."
                )
            stated = {name: data.pop(name) for name in ("dtype", "padding_share", "byte_order")}
            data["tokenizer"] = TokenizerCard(**data["tokenizer"])
            data["mix"] = tuple(data["mix"])
            data["golden_texts"] = tuple(data["golden_texts"])
            data["golden_ids"] = tuple(tuple(ids) for ids in data["golden_ids"])
            header = cls(**data)
        except TokenFileError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise TokenFileError(f"{where}: the header is not complete: {repr(error)[:200]}.") from error
        faults = header_faults(header)
        if faults:
            raise TokenFileError(f"{where}: the header cannot be true: {'; '.join(faults)[:500]}.")
        if stated["byte_order"] != BYTE_ORDER:
            raise TokenFileError(f"{where}: byte order {stated['byte_order']!r:.40}; only {BYTE_ORDER}-endian is read.")
        if stated["dtype"] != header.dtype.name or not schema.equals(block_schema(header)):
            raise TokenFileError(f"{where}: the columns are not those of the header: {schema.to_string()[:200]!r}.")
        return header


def block_schema(header: Header) -> pa.Schema:
    """Columns of the file. Nothing is ever null."""
    token = pa.field("token", pa.from_numpy_dtype(header.dtype), nullable=False)
    length = pa.field("length", pa.int32(), nullable=False)
    row = pa.field("row", pa.int64(), nullable=False)
    return pa.schema(
        [
            pa.field("tokens", pa.list_(token, header.seq_len), nullable=False),
            pa.field("doc_lengths", pa.list_(length), nullable=False),
            pa.field("doc_rows", pa.list_(row), nullable=False),
        ],
        metadata={METADATA_KEY: header.to_json()},
    )


@dataclass(frozen=True, slots=True)
class Block:
    """Some sequences, as arrays.

    tokens: uint16 or uint32 [n_sequences, seq_len]
    first_piece: int32[n_sequences + 1]   pieces of sequence i: first_piece[i] .. first_piece[i + 1]
    lengths: int32[n_pieces]   tokens of each piece, in order, padding excluded
    rows: int64[n_pieces]      the document of each piece: its row in documents.parquet
    """

    tokens: Tokens
    first_piece: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, seq_len: int) -> Block:
        """Views into a record batch; nothing is copied.

        Raises:
            TokenFileError: the arrays reach outside their memory, or hold nulls. With this checked, no value in them
                can lead a view outside the file.
        """
        try:
            batch.validate()
        except pa.ArrowInvalid as error:
            raise TokenFileError(f"the columns of a block do not fit its bytes: {error}.") from error
        tokens, lengths, rows = batch.columns
        if any(array.null_count for array in (tokens, tokens.values, lengths, lengths.values, rows, rows.values)):
            raise TokenFileError("a block holds nulls, which no token file has.")
        if not lengths.offsets.equals(rows.offsets):
            raise TokenFileError("doc_lengths and doc_rows of a block are not of the same pieces.")
        return cls(
            _view(tokens.values, tokens.type.value_type.to_pandas_dtype()).reshape(-1, seq_len),
            _view(lengths.offsets, np.int32),
            _view(lengths.values, np.int32),
            _view(rows.values, np.int64),
        )

    def to_batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """A record batch over the same memory."""
        borders = pa.array(self.first_piece)
        tokens = pa.FixedSizeListArray.from_arrays(pa.array(self.tokens.reshape(-1)), type=schema.field("tokens").type)
        lengths = pa.ListArray.from_arrays(borders, pa.array(self.lengths), type=schema.field("doc_lengths").type)
        rows = pa.ListArray.from_arrays(borders, pa.array(self.rows), type=schema.field("doc_rows").type)
        return pa.RecordBatch.from_arrays([tokens, lengths, rows], schema=schema)


def _view(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of an array without nulls, in its own memory. `Array.to_numpy` imports pandas where it is installed: a second."""
    kind = np.dtype(dtype)
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(0, kind)
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)
