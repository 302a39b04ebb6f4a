"""Any documents, packed in any way: verify agrees with file and table, and with no table that says anything else."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.token_files import BOS_CARD, CARD, small_header
from tokenization.layout import Block
from tokenization.packing.plan import Plan, plan_packing
from tokenization.reader import TokenFile, verify
from tokenization.shuffle import Permutation
from tokenization.token_file import TokenFileWriter

Strategy = Literal["best_fit", "concat"]
PLACES = ("sequence", "offset", "pieces", "last_sequence", "last_offset")


def _documents(lengths: list[int], bos: bool) -> list[np.ndarray]:
    """BOS or not, the number of the document over and over, EOS."""
    documents = [np.full(n, 3 + i % 90) for i, n in enumerate(lengths)]
    for document in documents:
        document[0] = BOS_CARD.bos_id if bos else document[0]
        document[-1] = CARD.eos_id
    return documents


def _whole_block(plan: Plan, documents: list[np.ndarray], order: np.ndarray) -> Block:
    """All sequences of a plan, in the order of the file."""
    tokens = np.full((plan.n_sequences, plan.seq_len), CARD.pad_id, np.uint16)
    offsets = plan.offsets()
    sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece))
    for row, start, length, number, offset in zip(
        plan.document, plan.start, plan.length, sequence, offsets, strict=True
    ):
        tokens[number, offset : offset + length] = documents[row][start : start + length]
    pieces = [np.arange(plan.first_piece[i], plan.first_piece[i + 1]) for i in order]
    chosen = np.concatenate([np.zeros(0, np.int64), *pieces])
    borders = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
    return Block(tokens[order], borders, plan.length[chosen].astype(np.int32), plan.document[chosen])


def _write(
    folder: Path, lengths: list[int], seq_len: int, strategy: Strategy, seed: int | None, per: int, bos: bool
) -> Any:
    plan = plan_packing(lengths, seq_len, strategy)
    n = plan.n_sequences
    places = dataclasses.asdict(plan.places())
    order = np.arange(n) if seed is None else Permutation(n, seed).inverse_many(np.arange(n))
    where = np.argsort(order)
    places["sequence"], places["last_sequence"] = where[places["sequence"]], where[places["last_sequence"]]
    counts = {"documents": len(lengths), "pieces": len(plan.length), "tokens": sum(lengths)}
    card = BOS_CARD if bos else CARD
    header = small_header(n, seq_len=seq_len, shuffle_seed=seed, block_sequences=per, tokenizer=card, **counts)
    block = _whole_block(plan, _documents(lengths, bos), order)
    with TokenFileWriter(folder / "tokens.arrow", header) as writer:
        for begin in range(0, n, per):
            end = min(begin + per, n)
            a, b = block.first_piece[begin], block.first_piece[end]
            borders = block.first_piece[begin : end + 1] - a
            writer.write(Block(block.tokens[begin:end], borders, block.lengths[a:b], block.rows[a:b]))
    columns = {"row": np.arange(len(lengths)), "n_tokens": np.array(lengths, np.int64), **places}
    pq.write_table(pa.table(columns), folder / "documents.parquet")
    return columns


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 70), max_size=40),
    seq_len=st.integers(2, 24),
    strategy=st.sampled_from(["best_fit", "concat"]),
    seed=st.none() | st.integers(0, 5),
    per=st.integers(1, 9),
    bos=st.booleans(),
    data=st.data(),
)
def test_file_and_table_are_one(
    lengths: list[int], seq_len: int, strategy: Strategy, seed: int | None, per: int, bos: bool, data: st.DataObject
) -> None:
    """Verify passes, the reader gives every token once, and any other number in the table is found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = _write(folder, lengths, seq_len, strategy, seed, per, bos)
        report = verify(folder / "tokens.arrow", threads=1)
        assert report.ok, report
        assert report.documents_checked
        with TokenFile(folder / "tokens.arrow", verify="lazy") as file:
            assert sum(int(file.documents(i).lengths.sum()) for i in range(len(file))) == sum(lengths)
        if not lengths:
            return
        column = data.draw(st.sampled_from(["row", "n_tokens", *PLACES]))
        row = data.draw(st.integers(0, len(lengths) - 1))
        columns[column] = columns[column].copy()
        columns[column][row] += data.draw(st.sampled_from([-1, 1, 2, 2**40]))
        pq.write_table(pa.table(columns), folder / "documents.parquet")
        assert [p.where for p in verify(folder / "tokens.arrow", threads=1).problems] == ["documents.parquet"]
