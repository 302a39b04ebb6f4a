"""From parts to a token file and its document table, block by block.

One plan, made in windows and kept in an anonymous file, gives the header its counts, the blocks their pieces and
the table its places. Blocks are gathered and hashed in threads and written in order, so bytes do not depend on threads.
Costs 200 MB for the window that is being planned and one block of 16 MB a thread; memory does not grow with the
documents, the anonymous files do: 30 bytes each. Output is a function of the rows in order and of the header's
words: how documents were spread over parts does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokenization.layout import BLOCK_BYTES, Block, Header
from tokenization.packing.parts import WHO, Ints, Parts
from tokenization.packing.plan import WINDOW_DOCUMENTS, Plan, Strategy, cut_window, next_lead, plan_packing
from tokenization.packing.plan_file import PlanFile, Window
from tokenization.packing.selection import Rows
from tokenization.places import sequence_order
from tokenization.probes import PROBES
from tokenization.seal import Seal
from tokenization.token_file import TokenFileWriter
from tokenization.tokenizer import Tokenizer

__all__ = ["DOCUMENTS_SCHEMA", "MAX_THREADS", "Assembly"]

ROW_GROUP = 1 << 16
"""Rows of a row group of documents.parquet, at most; a window begins a new one."""
MAX_THREADS = 4
"""More threads gather no faster than one writes."""


def _column(name: str, kind: pa.DataType, what: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"what": what})


DOCUMENTS_SCHEMA = pa.schema(
    [
        _column("row", pa.int64(), "number of the row, from 0; doc_rows of the token file point here"),
        _column("doc_id", pa.binary(16), "identity of the occurrence"),
        _column("text_id", pa.binary(16), "identity of the content"),
        _column("id", pa.string(), "the user's own id"),
        _column("source", pa.string(), "input file: absolute path or URL"),
        _column("language", pa.string(), "what the step language found; empty where it said nothing"),
        _column("epoch", pa.int32(), "number of the copy, from 0: how often the document was packed before"),
        _column("n_tokens", pa.int64(), "tokens with EOS, and BOS where there is one"),
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
    """Rows of documents in parts, and how they are to be packed.

    folder: on a disk with room for 20 bytes a row.
    threads: how many gather blocks; 1: the caller's own. `Parts` must know of as many.
    """

    parts: Parts
    rows: Rows
    tokenizer: Tokenizer
    folder: Path
    seq_len: int
    strategy: Strategy
    shuffle_seed: int | None = None
    threads: int = 1
    block_bytes: int = BLOCK_BYTES

    def plan(self) -> PlanFile:
        """Plan all rows; the caller closes what comes back.

        Raises:
            OSError: the disk is full.
        """
        planned = PlanFile(self.folder, self.seq_len, len(self.rows))
        try:
            lead = copy_before = 0
            for copy, begin, end in self.rows.windows(WINDOW_DOCUMENTS):
                # A copy begins its own sequence, so that no document meets itself in one.
                lead, copy_before = lead if copy == copy_before else 0, copy
                lengths = self._lengths(begin, end)
                for a, b in cut_window(lengths, self.seq_len):
                    plan = plan_packing(lengths[a:b], self.seq_len, self.strategy, lead)
                    lead = next_lead(plan, self.strategy)
                    planned.append(copy, begin + a, plan)
        except BaseException:
            planned.close()
            raise
        return planned

    def header(self, planned: PlanFile, run_id: str, config_digest: str) -> Header:
        """The header of the token file: all of its counts are known before it is written."""
        rows, totals = self.rows, self.rows.totals
        return Header(
            run_id=run_id,
            config_digest=config_digest,
            strategy=self.strategy,
            split=rows.split,
            shuffle_seed=self.shuffle_seed,
            mix=rows.mix,
            seq_len=self.seq_len,
            tokenizer=self.tokenizer.card(),
            golden_texts=PROBES,
            golden_ids=self.tokenizer.golden_ids,
            documents=len(rows),
            tokens=totals.tokens,
            sequences=planned.n_sequences,
            pieces=planned.n_pieces,
            block_sequences=max(1, self.block_bytes // (self.seq_len * self.tokenizer.dtype.itemsize)),
            unk_share=totals.unknown / totals.tokens if totals.tokens else 0.0,
            lost_share=totals.lost / totals.characters if totals.characters else 0.0,
        )

    def write_tokens(self, path: Path, header: Header, planned: PlanFile) -> Seal:
        """Write the token file.

        Raises:
            TokenFileError: a part was cut or replaced meanwhile.
            OSError: the disk is full.
        """
        with TokenFileWriter(path, header, threads=self.threads) as writer:
            for block in self._blocks(header, planned):
                writer.write(block)
            self.parts.check_unchanged()
        assert writer.seal is not None
        return writer.seal

    def write_documents(self, path: Path, header: Header, planned: PlanFile) -> None:
        """Write the document table: which document lies where.

        Raises:
            TokenFileError: a part was cut or replaced meanwhile.
            OSError: the disk is full.
        """
        schema = DOCUMENTS_SCHEMA.with_metadata({"run_id": header.run_id, "config_digest": header.config_digest})
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for window in planned.windows():
                places = self._places(window, planned.n_sequences)
                for begin in range(0, window.plan.n_documents, ROW_GROUP):
                    end = min(begin + ROW_GROUP, window.plan.n_documents)
                    first, last = window.first_row + begin, window.first_row + end
                    documents = self.rows.documents_of(first, last)
                    columns = [
                        pa.array(np.arange(first, last)),
                        *self.parts.who(documents, WHO).columns,
                        pa.array(np.full(end - begin, window.copy, np.int32)),
                        pa.array(self._lengths(first, last)),
                        *(pa.array(column[begin:end]) for column in places),
                    ]
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROW_GROUP)

    def _lengths(self, begin: int, end: int) -> Ints:
        """Tokens of rows begin .. end."""
        if self.rows.is_plain:
            return self.parts.lengths.read(begin, end).astype(np.int64)
        return self.parts.lengths.take(self.rows.documents_of(begin, end)).astype(np.int64)

    def _places(self, window: Window, n_sequences: int) -> tuple[Ints, ...]:
        """sequence, offset, pieces, last_sequence and last_offset of the rows of a window."""
        places = window.plan.places()
        first, last = places.sequence + window.first_sequence, places.last_sequence + window.first_sequence
        order = sequence_order(n_sequences, self.shuffle_seed)
        if order is not None:
            first, last = order.many(first), order.many(last)
        return first, places.offset, places.pieces, last, places.last_offset

    def _blocks(self, header: Header, planned: PlanFile) -> Iterator[Block]:
        """Blocks of the file in order, gathered ahead in threads."""
        numbers = range(header.n_blocks)
        if self.threads < 2:
            yield from (self._block(number, header, planned) for number in numbers)
            return
        waiting: deque[Future[Block]] = deque()
        pool = ThreadPoolExecutor(min(self.threads, MAX_THREADS), thread_name_prefix="gather")
        try:
            for number in numbers:
                waiting.append(pool.submit(self._block, number, header, planned))
                if len(waiting) > min(self.threads, MAX_THREADS):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _block(self, number: int, header: Header, planned: PlanFile) -> Block:
        """The sequences of one block."""
        begin = number * header.block_sequences
        plan = self._planned(planned, begin, begin + header.rows_of_block(number))
        tokens = np.full((plan.n_sequences, self.seq_len), header.tokenizer.pad_id, header.dtype)
        sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece))
        position = sequence * self.seq_len + plan.offsets()
        self.parts.gather(self.rows.take(plan.document), plan.start, plan.length, position, tokens)
        return Block(tokens, plan.first_piece.astype(np.int32), plan.length.astype(np.int32), plan.document)

    def _planned(self, planned: PlanFile, begin: int, end: int) -> Plan:
        """Sequences begin .. end in the order of the file."""
        order = sequence_order(planned.n_sequences, self.shuffle_seed)
        if order is None:
            return planned.sequences(begin, end)
        return planned.take(order.inverse_many(np.arange(begin, end)))
