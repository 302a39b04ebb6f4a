"""From parts to the token file and its document table, in blocks: memory grows by 28 bytes a document, not by its text.

Costs 28 bytes a document for the index of the parts, 200 MB for the plan of a window of a million documents,
and one block of 16 MB. Output is a function of the documents in order and of the header's words: how they
were spread over parts does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokenization.layout import BLOCK_BYTES, Block, Header
from tokenization.packing import WINDOW_DOCUMENTS, Plan, Strategy, plan_windows
from tokenization.parts import Parts
from tokenization.probes import PROBES
from tokenization.seal import Seal
from tokenization.token_file import TokenFileWriter
from tokenization.tokenizer import Tokenizer

__all__ = ["DOCUMENTS_SCHEMA", "Assembly"]

ROW_GROUP = 1 << 16
"""Documents of a row group of documents.parquet; divides the window of the plan."""


def _column(name: str, kind: pa.DataType, what: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"what": what})


DOCUMENTS_SCHEMA = pa.schema(
    [
        _column("row", pa.int64(), "number of the document, from 0; doc_rows of the token file point here"),
        _column("doc_id", pa.binary(16), "identity of the occurrence"),
        _column("id", pa.string(), "the user's own id"),
        _column("source", pa.string(), "input file: absolute path or URL"),
        _column("n_tokens", pa.int64(), "tokens with EOS"),
        _column("sequence", pa.int64(), "sequence of the first piece"),
        _column("offset", pa.int64(), "position of the first piece in it"),
        _column("pieces", pa.int64(), "1 if the document was not cut"),
        _column(
            "last_sequence", pa.int64(), "sequence of the last piece; those between lie from sequence + 1 on, at 0"
        ),
        _column("last_offset", pa.int64(), "position of the last piece in it"),
    ]
)


@dataclass(frozen=True)
class Assembly:
    """Documents in parts, and how they are to be packed."""

    parts: Parts
    tokenizer: Tokenizer
    seq_len: int
    strategy: Strategy
    block_bytes: int = BLOCK_BYTES

    def windows(self) -> Iterator[tuple[int, Plan]]:
        """Plans of consecutive documents. Planning is cheap enough to be done again for each use."""
        return plan_windows(self.parts.lengths, self.seq_len, self.strategy)

    def header(self, run_id: str, config_digest: str) -> Header:
        """The header of the token file: all of its counts are known before it is written."""
        sequences = pieces = 0
        for _, plan in self.windows():
            sequences += plan.n_sequences
            pieces += len(plan.length)
        tokens = int(self.parts.lengths.sum())
        return Header(
            run_id=run_id,
            config_digest=config_digest,
            strategy=self.strategy,
            split="all",
            shuffle_seed=None,
            mix=(),
            seq_len=self.seq_len,
            tokenizer=self.tokenizer.card(),
            golden_texts=PROBES,
            golden_ids=self.tokenizer.golden_ids,
            documents=len(self.parts),
            tokens=tokens,
            sequences=sequences,
            pieces=pieces,
            block_sequences=max(1, self.block_bytes // (self.seq_len * self.tokenizer.dtype.itemsize)),
            unk_share=self.parts.unknown / tokens if tokens else 0.0,
            lost_share=self.parts.lost / self.parts.characters if self.parts.characters else 0.0,
        )

    def write_tokens(self, path: Path, header: Header) -> Seal:
        """Write the token file."""
        with TokenFileWriter(path, header) as writer:
            for plan in _blocks(self.windows(), header.block_sequences, self.seq_len):
                writer.write(self._block(plan, header))
        assert writer.seal is not None
        return writer.seal

    def write_documents(self, path: Path, header: Header) -> None:
        """Write the document table: which document lies where."""
        schema = DOCUMENTS_SCHEMA.with_metadata({"run_id": header.run_id, "config_digest": header.config_digest})
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            sequences = 0
            for first, plan in self.windows():
                places = plan.places()
                for begin in range(0, plan.n_documents, ROW_GROUP):
                    end = min(begin + ROW_GROUP, plan.n_documents)
                    here = slice(begin, end)
                    where = (
                        self.parts.lengths[first + begin : first + end],
                        places.sequence[here] + sequences,
                        places.offset[here],
                        places.pieces[here],
                        places.last_sequence[here] + sequences,
                        places.last_offset[here],
                    )
                    columns = [
                        pa.array(np.arange(first + begin, first + end)),
                        *self.parts.rows(first + begin, first + end).columns,
                        *(pa.array(column) for column in where),
                    ]
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROW_GROUP)
                sequences += plan.n_sequences

    def _block(self, plan: Plan, header: Header) -> Block:
        """Tokens of the sequences of a plan whose documents are rows of all parts."""
        tokens = np.full((plan.n_sequences, self.seq_len), header.tokenizer.pad_id, header.dtype)
        sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece))
        self.parts.gather(plan.document, plan.start, plan.length, sequence * self.seq_len + plan.offsets(), tokens)
        return Block(tokens, plan.first_piece.astype(np.int32), plan.length.astype(np.int32), plan.document)


def _blocks(windows: Iterator[tuple[int, Plan]], per_block: int, seq_len: int) -> Iterator[Plan]:
    """Cut the plans of windows into plans of `per_block` sequences each; their documents are counted over all."""
    rest = _join([], seq_len)
    for first, plan in windows:
        moved = Plan(seq_len, plan.n_documents, plan.document + first, plan.start, plan.length, plan.first_piece)
        plan = _join([rest, moved], seq_len)
        whole = plan.n_sequences - plan.n_sequences % per_block
        for begin in range(0, whole, per_block):
            yield _part_of(plan, begin, begin + per_block)
        rest = _part_of(plan, whole, plan.n_sequences)
    if rest.n_sequences:
        yield rest


def _part_of(plan: Plan, begin: int, end: int) -> Plan:
    """Sequences begin .. end of a plan."""
    a, b = plan.first_piece[begin], plan.first_piece[end]
    borders = plan.first_piece[begin : end + 1] - a
    return Plan(plan.seq_len, plan.n_documents, plan.document[a:b], plan.start[a:b], plan.length[a:b], borders)


def _join(plans: Sequence[Plan], seq_len: int) -> Plan:
    """Sequences of several plans, one after the other."""
    nothing = np.zeros(0, np.int64)
    pieces = np.concatenate([nothing, *(np.diff(plan.first_piece) for plan in plans)])
    return Plan(
        seq_len,
        sum(plan.n_documents for plan in plans),
        np.concatenate([nothing, *(plan.document for plan in plans)]),
        np.concatenate([nothing, *(plan.start for plan in plans)]),
        np.concatenate([nothing, *(plan.length for plan in plans)]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(pieces)]),
    )


assert WINDOW_DOCUMENTS % ROW_GROUP == 0, "row groups must not depend on windows"
