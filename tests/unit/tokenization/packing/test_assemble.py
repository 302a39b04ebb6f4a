"""Windows, blocks and row groups are seams that nobody can see in the result."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.token_files import letter_tokenizer, save_tokenizer
from tokenization.errors import TokenFileError
from tokenization.packing import assemble as module
from tokenization.packing import plan as packing
from tokenization.packing.assemble import DOCUMENTS_SCHEMA, Assembly
from tokenization.packing.mix import Mix
from tokenization.packing.parts import Parts, PartWriter
from tokenization.packing.plan import Strategy
from tokenization.packing.selection import Selection
from tokenization.places import piece_sequences
from tokenization.reader import TokenFile, verify
from tokenization.shuffle import Permutation
from tokenization.tokenizer import Tokenizer, load_tokenizer

N_DOCUMENTS, SEQ_LEN = 230, 32


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = save_tokenizer(tmp_path_factory.mktemp("letters"), letter_tokenizer(), {"eos_token": "</s>"})
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Documents of 0 to 100 letters; one in five is longer than a sequence."""
    rng = np.random.default_rng(9)
    return ["".join(rng.choice(list("abcdefgh "), size=n)) for n in (rng.random(N_DOCUMENTS) ** 2 * 100).astype(int)]


@pytest.fixture(scope="module")
def part(letters: Tokenizer, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("part") / "0.arrow"
    with PartWriter(path, letters) as writer:
        for first in range(0, N_DOCUMENTS, 50):
            group = texts[first : first + 50]
            rows = range(first, first + len(group))
            who = {
                "doc_id": pa.array([row.to_bytes(16, "big") for row in rows], pa.binary(16)),
                "text_id": pa.array([hashlib.sha256(text.encode()).digest()[:16] for text in group], pa.binary(16)),
                "id": pa.array([f"d{row}" for row in rows]),
                "source": pa.array([f"in/{'ab'[row % 2]}.jsonl" for row in rows]),
                "language": pa.array(["en" if row % 3 else "" for row in rows]),
            }
            writer.write(pa.record_batch(who), [letters.encode_documents(group)])
    return path


def assembled(
    part: Path, letters: Tokenizer, folder: Path, strategy: Strategy, block_bytes: int = 1 << 24, **how: Any
) -> tuple[Path, Path]:
    """Token file and document table of the part: of its first side, where `holdout_share` makes two.

    Args:
        how: settings of `Selection` and of `Assembly`.
    """
    folder.mkdir(exist_ok=True)
    tokens, documents = folder / "tokens.arrow", folder / "documents.parquet"
    chosen = {name: how.pop(name) for name in ("mix", "holdout_share") if name in how}
    threads = how.get("threads", 1)
    with (
        Parts([part], letters.fingerprint(), letters.dtype, folder, threads=threads) as parts,
        Selection(parts, folder, **chosen) as selection,
    ):
        rows = selection.sides[0]
        assembly = Assembly(parts, rows, letters, folder, SEQ_LEN, strategy, block_bytes=block_bytes, **how)
        with assembly.plan() as planned:
            header = assembly.header(planned, "run", "digest")
            assembly.write_tokens(tokens, header, planned)
            assembly.write_documents(documents, header, planned)
    return tokens, documents


def documents_of(tokens: Path, documents: Path) -> list[list[int]]:
    """Ids of every document in the order of the table, by the rule for finding its pieces."""
    file, found = TokenFile(tokens, verify="all"), []
    for row in pq.read_table(documents).to_pylist():
        ids: list[int] = []
        header = file.metadata
        where = piece_sequences(
            *(row[name] for name in ("sequence", "pieces", "last_sequence")),
            sequences=header.sequences,
            shuffle_seed=header.shuffle_seed,
        )
        for piece, sequence in enumerate(where.tolist()):
            last = piece == row["pieces"] - 1
            offset = row["offset"] if piece == 0 else row["last_offset"] if last else 0
            pieces, borders = file.documents(sequence), file.borders(sequence)
            (here,) = np.flatnonzero((pieces.rows == row["row"]) & (borders[:-1] == offset))
            ids += file[sequence][borders[here] : borders[here + 1]].tolist()
        assert len(ids) == row["n_tokens"]
        found.append(ids)
    return found


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize(
    ("window", "block_bytes"), [(1 << 20, 1 << 24), (64, 1 << 24), (64, 320), (16, 64), (230, 64 * 7)]
)
def test_documents_come_back_whatever_the_seams(
    strategy: Strategy,
    seed: int | None,
    window: int,
    block_bytes: int,
    part: Path,
    letters: Tokenizer,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any window of the plan, any size of block and any order: every document's tokens, in order, once."""
    monkeypatch.setattr(module, "WINDOW_DOCUMENTS", window)
    monkeypatch.setattr(packing, "WINDOW_PIECES", 1 + window // 2)
    monkeypatch.setattr(module, "ROW_GROUP", 16)
    tokens, documents = assembled(part, letters, tmp_path, strategy, block_bytes, shuffle_seed=seed)
    expected = [[*letters.encode_batch([text])[0].tolist(), letters.eos_id] for text in texts]
    assert documents_of(tokens, documents) == expected
    header = TokenFile(tokens).metadata
    assert (header.documents, header.tokens) == (N_DOCUMENTS, sum(map(len, expected)))
    assert header.block_sequences == max(1, block_bytes // 64)
    assert verify(tokens).ok


def test_best_fit_cuts_only_what_is_too_long(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """Pieces in the table: one for each document that fits."""
    table = pq.read_table(assembled(part, letters, tmp_path, "best_fit", 1 << 24)[1])
    lengths = table.column("n_tokens").to_numpy()
    assert table.column("pieces").to_pylist() == (-(-lengths // SEQ_LEN)).tolist()
    assert (lengths > SEQ_LEN).any()


def test_the_table_says_who_everyone_is(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """Rows in order, identities as given, fixed columns with their meaning, row groups of one size."""
    path = assembled(part, letters, tmp_path, "best_fit", 1 << 24)[1]
    table = pq.read_table(path)
    assert table.schema.names == DOCUMENTS_SCHEMA.names
    assert table.column("row").to_pylist() == list(range(N_DOCUMENTS))
    assert table.column("doc_id").to_pylist() == [row.to_bytes(16, "big") for row in range(N_DOCUMENTS)]
    assert table.column("id")[17].as_py() == "d17"
    assert pq.read_metadata(path).metadata[b"run_id"] == b"run"
    assert table.schema.field("last_offset").metadata[b"what"]


@pytest.mark.parametrize(
    "how", [{}, {"shuffle_seed": 9}, {"mix": Mix("source", epochs=(("b*", 2.5),)), "shuffle_seed": 9}]
)
def test_threads_leave_no_trace(how: dict[str, Any], part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """Token file and table are functions of the documents and the header: one thread or several, once or twice."""
    first = assembled(part, letters, tmp_path / "a", "best_fit", 320, **how)
    for threads in (1, 2, 4, 9):
        again = assembled(part, letters, tmp_path / "b", "best_fit", 320, threads=threads, **how)
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_a_shuffle_is_over_the_whole_file(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """The same sequences in another order for each seed, far from where they were."""
    files = [
        TokenFile(assembled(part, letters, tmp_path / str(seed), "best_fit", 320, shuffle_seed=seed)[0])
        for seed in (None, 0, 1)
    ]
    sequences = [[file[i].tobytes() for i in range(len(file))] for file in files]
    assert sorted(sequences[0]) == sorted(sequences[1]) == sorted(sequences[2])
    assert sequences[1] != sequences[2]
    moved = [abs(sequences[0].index(sequence) - i) for i, sequence in enumerate(sequences[1])]
    assert np.mean(moved) == pytest.approx(len(moved) / 3, rel=0.25), "as far as by chance"


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
def test_copies_never_meet(
    strategy: Strategy, part: Path, letters: Tokenizer, texts: list[str], tmp_path: Path
) -> None:
    """Copy k follows copy k - 1, each has all its tokens, and no sequence holds a document twice."""
    mix = Mix("source", epochs=(("a.jsonl", 3), ("in/b*", 1.5)))
    tokens, documents = assembled(part, letters, tmp_path, strategy, mix=mix)
    table = pq.read_table(documents)
    epochs, ids = table.column("epoch").to_numpy(), table.column("id").to_pylist()
    assert epochs.tolist() == sorted(epochs.tolist())
    assert [id for id, epoch in zip(ids, epochs, strict=True) if epoch == 0] == [f"d{i}" for i in range(N_DOCUMENTS)]
    assert (epochs == 2).sum() == N_DOCUMENTS // 2
    expected = [[*letters.encode_batch([texts[int(id[1:])]])[0].tolist(), letters.eos_id] for id in ids]
    assert documents_of(tokens, documents) == expected
    file = TokenFile(tokens)
    for sequence in range(len(file)):
        inside = [ids[row] for row in set(file.documents(sequence).rows.tolist())]
        assert len(inside) == len(set(inside))
    groups = file.metadata.mix
    assert [group["name"] for group in groups] == ["a.jsonl", "in/b*", "*"]
    assert sum(group["documents"] for group in groups) == file.metadata.documents == len(ids)
    assert sum(group["tokens"] for group in groups) == file.metadata.tokens
    assert verify(tokens).ok


def test_a_part_that_changes_meanwhile_is_refused(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """Written over in place, replaced, or cut, between the plan and the last block: named, and never sealed."""

    def over(path: Path, data: bytes) -> None:
        path.write_bytes(data[:-400] + bytes(400))

    def replaced(path: Path, data: bytes) -> None:
        (path.parent / "new").write_bytes(data)
        (path.parent / "new").replace(path)

    def cut(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])

    for change in (over, replaced, cut):
        mine = tmp_path / f"{change.__name__}.arrow"
        mine.write_bytes(part.read_bytes())
        with (
            Parts([mine], letters.fingerprint(), letters.dtype, tmp_path) as parts,
            Selection(parts, tmp_path) as chosen,
        ):
            assembly = Assembly(parts, chosen.sides[0], letters, tmp_path, SEQ_LEN, "best_fit")
            with assembly.plan() as planned:
                header = assembly.header(planned, "run", "digest")
                change(mine, mine.read_bytes())
                with pytest.raises(TokenFileError, match=mine.name):
                    assembly.write_tokens(tmp_path / "tokens.arrow", header, planned)


def test_threads_stop_when_a_block_fails(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """An error in a thread is the error of the assembly, and leaves no thread behind."""
    with (
        Parts([part], letters.fingerprint(), letters.dtype, tmp_path, threads=3) as parts,
        Selection(parts, tmp_path) as chosen,
    ):
        assembly = Assembly(parts, chosen.sides[0], letters, tmp_path, SEQ_LEN, "best_fit", threads=3, block_bytes=64)
        with assembly.plan() as planned:
            header = assembly.header(planned, "run", "digest")
            parts._places.close()
            before = threading.active_count()
            with pytest.raises(ValueError, match="closed"):
                assembly.write_tokens(tmp_path / "tokens.arrow", header, planned)
            assert threading.active_count() == before


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=40), st.integers(1, 40), st.integers(0, 9), st.booleans())
def test_pieces_are_found_from_the_table(lengths: list[int], seq_len: int, seed: int, shuffled: bool) -> None:
    """The sequence of every piece follows from a row of the table and the header."""
    plan = packing.plan_packing(lengths, seq_len)
    places, order = plan.places(), Permutation(plan.n_sequences, seed)
    moved = order.many(np.arange(plan.n_sequences)) if shuffled else np.arange(plan.n_sequences)
    sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece))
    for document in range(len(lengths)):
        mine = np.flatnonzero(plan.document == document)
        mine = mine[np.argsort(plan.start[mine])]
        found = piece_sequences(
            int(moved[places.sequence[document]]),
            int(places.pieces[document]),
            int(moved[places.last_sequence[document]]),
            sequences=plan.n_sequences,
            shuffle_seed=seed if shuffled else None,
        )
        assert found.tolist() == moved[sequence[mine]].tolist()
