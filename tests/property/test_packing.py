"""Every kept document's tokens, in order, equal direct encoding, whatever the shards, lengths and strategy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.pack import PackConfig, assemble, encode_shard
from tests.fakes import shard_table
from tests.strategies import hostile_text
from tokenization.packing import Strategy
from tokenization.reader import TokenFile, verify
from tokenization.tokenizer import load_tokenizer

tokenizer = load_tokenizer()
documents = st.lists(st.tuples(hostile_text, st.booleans(), st.integers(1, 6)), max_size=12)


def packed(texts: list[str], keep: list[bool], cuts: list[int], config: PackConfig, folder: Path) -> Path:
    """Pack the kept texts, cut into shards; returns the folder of the result."""
    parts = []
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(texts)], strict=True)):
        shard, part = folder / f"{number}.arrow", folder / f"part-{number}.arrow"
        table = shard_table(texts[a:b], a)
        with pa.ipc.new_file(str(shard), table.schema) as writer:
            writer.write_table(table)
        encode_shard(shard, np.array(keep[a:b], np.bool_), part, config)
        parts.append(part)
    assemble(parts, pack_folder=folder / "pack", config=config, run_id="run", config_digest="digest")
    return folder / "pack"


def tokens_of(pack: Path) -> dict[str, list[int]]:
    """Ids of each document by its id, gathered from the sequences alone, in the order of the pieces."""
    file = TokenFile(pack / "tokens.arrow", verify="all")
    table = pq.read_table(pack / "documents.parquet").to_pylist()
    pieces: dict[int, list[tuple[int, list[int]]]] = {row["row"]: [] for row in table}
    for sequence in range(len(file)):
        borders, rows = file.borders(sequence), file.documents(sequence).rows
        for row, a, b in zip(rows.tolist(), borders[:-1], borders[1:], strict=True):
            pieces[row].append((sequence, file[sequence][a:b].tolist()))
        assert (file[sequence][borders[-1] :] == file.metadata.tokenizer.pad_id).all()
    found = {}
    for row in table:
        # Whole pieces lie in order from `sequence` on; the last piece may lie in an earlier sequence.
        mine = sorted(pieces[row["row"]], key=lambda piece: (piece[0] == row["last_sequence"], piece[0]))
        found[row["id"]] = [token for _, ids in mine for token in ids]
        assert len(mine) == row["pieces"]
    return found


@settings(max_examples=60, deadline=None)
@given(documents, st.data(), st.sampled_from([2, 3, 16, 64, 512]), st.sampled_from(["best_fit", "concat"]))
def test_packing_keeps_every_token(
    items: list[tuple[str, bool, int]], data: st.DataObject, seq_len: int, strategy: Strategy
) -> None:
    """Any texts, any verdicts, any shards: what comes out is what direct encoding gives, in the same bytes."""
    texts, keep = [text * times for text, _, times in items], [keep for _, keep, _ in items]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    config = PackConfig(seq_len=seq_len, strategy=strategy)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as cut:
        one = packed(texts, keep, [], config, Path(whole))
        many = packed(texts, keep, cuts, config, Path(cut))
        for name in ("tokens.arrow", "documents.parquet", "manifest.json"):
            assert (one / name).read_bytes() == (many / name).read_bytes()
        expected = {
            f"d{row}": [*tokenizer.encode_batch([text])[0].tolist(), tokenizer.eos_id]
            for row, (text, k) in enumerate(zip(texts, keep, strict=True))
            if k
        }
        assert tokens_of(one) == expected
        assert verify(one / "tokens.arrow").ok
