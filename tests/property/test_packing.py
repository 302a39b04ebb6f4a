"""Every kept document's tokens, in order, equal direct encoding, whatever the shards, lengths, order and mixture."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curation.pack import PackConfig, assemble, encode_shard
from tests.fakes import shard_table
from tests.strategies import hostile_text
from tokenization.places import piece_sequences
from tokenization.reader import TokenFile
from tokenization.tokenizer import load_tokenizer

tokenizer = load_tokenizer()
documents = st.lists(st.tuples(hostile_text, st.booleans(), st.integers(1, 6)), max_size=12)


patterns = st.sampled_from(["in/a*", "b.jsonl", "*.jsonl", "c*"])
mixtures = st.one_of(
    st.none(),
    st.dictionaries(patterns, st.floats(0, 3), min_size=1, max_size=3).map(lambda epochs: {"epochs": epochs}),
    st.dictionaries(patterns, st.floats(0, 2), max_size=2).map(lambda e: {"by": "language", "epochs": {**e, "*": 1.5}}),
    st.floats(0.1, 9).map(lambda weight: {"weights": {"in/a*": weight, "*": 1}}),
)
configs = st.builds(
    PackConfig,
    seq_len=st.lists(st.sampled_from([2, 3, 16, 64, 512]), min_size=1, max_size=2, unique=True).map(tuple),
    strategy=st.sampled_from(["best_fit", "concat"]),
    shuffle_seed=st.none() | st.integers(0, 9),
    holdout_share=st.sampled_from([0, 0.3]),
    mix=mixtures,
    bos=st.sampled_from([None, "<|pad|>"]),
)


def packed(
    texts: list[str], keep: list[bool], cuts: list[int], config: PackConfig, folder: Path, threads: int = 1
) -> dict[str, Any]:
    """Pack the kept texts, cut into shards; what `assemble` returns."""
    parts = []
    for number, (a, b) in enumerate(pairwise([0, *cuts, len(texts)])):
        shard, part = folder / f"{number}.arrow", folder / f"part-{number}.arrow"
        table = shard_table(texts[a:b], a)
        sources = pa.array([f"in/{'abc'[row % 3]}.jsonl" for row in range(a, b)], pa.string()).dictionary_encode()
        table = table.set_column(table.schema.get_field_index("source"), "source", sources)
        with pa.ipc.new_file(str(shard), table.schema) as writer:
            writer.write_table(table)
        languages = pa.array([("en", None)[row % 2] for row in range(a, b)], pa.string())
        encode_shard(shard, np.array(keep[a:b], np.bool_), part, config, languages)
        parts.append(part)
    return assemble(
        parts, pack_folder=folder / "pack", config=config, run_id="run", config_digest="digest", threads=threads
    )


def tokens_of(pack: Path) -> list[tuple[str, int, list[int]]]:
    """Id, epoch and token ids of each row of the table, gathered from the sequences alone, in the table's order."""
    file = TokenFile(pack / "tokens.arrow", verify="all")
    header, found = file.metadata, []
    pieces: dict[tuple[int, int], tuple[int, list[int]]] = {}
    for sequence in range(len(file)):
        borders, rows = file.borders(sequence), file.documents(sequence).rows
        for row, a, b in zip(rows.tolist(), borders[:-1], borders[1:], strict=True):
            assert (row, sequence) not in pieces, "two pieces of a document in one sequence"
            pieces[row, sequence] = (int(a), file[sequence][a:b].tolist())
        assert (file[sequence][borders[-1] :] == header.tokenizer.pad_id).all()
    for row in pq.read_table(pack / "documents.parquet").to_pylist():
        where = piece_sequences(
            *(row[name] for name in ("sequence", "pieces", "last_sequence")),
            sequences=header.sequences,
            shuffle_seed=header.shuffle_seed,
        )
        ids: list[int] = []
        for sequence in where.tolist():
            offset, piece = pieces.pop((row["row"], sequence))
            assert offset == (
                row["last_offset"] if sequence == row["last_sequence"] else row["offset"] if not ids else 0
            )
            ids += piece
        assert len(ids) == row["n_tokens"]
        found.append((row["id"], row["epoch"], ids))
    assert not pieces, "pieces that no row of the table knows"
    return found


@settings(max_examples=15, deadline=None)
@given(documents, st.data(), configs)
def test_packing_keeps_every_token(items: list[tuple[str, bool, int]], data: st.DataObject, config: PackConfig) -> None:
    """Any texts, verdicts, shards, lengths, order, holdout and mixture: direct encoding comes out, in the same bytes."""
    texts, keep = [text * times for text, _, times in items], [keep for _, keep, _ in items]
    if config.mix is not None and config.mix.weights:  # a group that weighs something must have documents
        assume(any(keep[::3]) and any(keep[1::3] + keep[2::3]))
        config = config.model_copy(update={"holdout_share": 0})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    with (
        tempfile.TemporaryDirectory() as whole,
        tempfile.TemporaryDirectory() as cut,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("os.fsync", lambda _: None)  # half of the time, for files that live a moment
        result = packed(texts, keep, [], config, Path(whole))
        assert packed(texts, keep, cuts, config, Path(cut), threads=3) == result
        kept = {f"d{row}" for row, k in enumerate(keep) if k}
        assert result["documents"] + result["left_out"] == len(kept)
        chosen: dict[str, set[str]] = {}
        rows: dict[str, list[tuple[str, int, list[int]]]] = {}
        for file in result["files"]:
            one, other = (Path(folder) / "pack" / Path(file["path"]).parent for folder in (whole, cut))
            for name in ("tokens.arrow", "documents.parquet", "manifest.json"):
                assert (one / name).read_bytes() == (other / name).read_bytes()
            found = tokens_of(one)
            for name, _, ids in found:
                assert ids == encoded(texts[int(name[1:])], config)
            assert file["documents"] == len(found)
            assert file["tokens"] == sum(len(ids) for _, _, ids in found)
            assert rows.setdefault(file["split"], found) == found, "the same rows in a file of any length"
            chosen[file["split"]] = {name for name, _, _ in found}
        assert set().union(*chosen.values()) <= kept
        assert len(set().union(*chosen.values())) == result["documents"]
        assert sum(map(len, chosen.values())) == result["documents"], "a document lies on one side"
        assert len(result["files"]) == len(config.seq_lens) * len(chosen)
        order = [(epoch, int(name[1:])) for name, epoch, _ in next(iter(rows.values()))]
        assert order == sorted(order), "the input's order, copy by copy"


def encoded(text: str, config: PackConfig) -> list[int]:
    """What direct encoding gives."""
    begin = [] if config.bos is None else [tokenizer.pad_id]
    return [*begin, *tokenizer.encode_batch([text])[0].tolist(), tokenizer.eos_id]
