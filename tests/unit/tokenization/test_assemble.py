"""Windows, blocks and row groups are seams that nobody can see in the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.token_files import letter_tokenizer, save_tokenizer
from tokenization import assemble as module
from tokenization import packing
from tokenization.assemble import DOCUMENTS_SCHEMA, Assembly
from tokenization.packing import Strategy
from tokenization.parts import Parts, PartWriter
from tokenization.reader import TokenFile, verify
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
                "id": pa.array([f"d{row}" for row in rows]),
                "source": pa.array(["s"] * len(group)),
            }
            writer.write(pa.record_batch(who), [letters.encode_documents(group)])
    return path


def assembled(part: Path, letters: Tokenizer, folder: Path, strategy: Strategy, block_bytes: int) -> tuple[Path, Path]:
    """Token file and document table of the part."""
    folder.mkdir(exist_ok=True)
    tokens, documents = folder / "tokens.arrow", folder / "documents.parquet"
    with Parts([part], letters.fingerprint(), letters.dtype) as parts:
        assembly = Assembly(parts, letters, SEQ_LEN, strategy, block_bytes)
        header = assembly.header("run", "digest")
        assembly.write_tokens(tokens, header)
        assembly.write_documents(documents, header)
    return tokens, documents


def documents_of(tokens: Path, documents: Path) -> list[list[int]]:
    """Ids of every document in the order of the table, by the rule for finding its pieces."""
    file, found = TokenFile(tokens, verify="all"), []
    for row in pq.read_table(documents).to_pylist():
        ids: list[int] = []
        for piece in range(row["pieces"]):
            last = piece == row["pieces"] - 1
            sequence = row["last_sequence"] if last else row["sequence"] + piece
            offset = row["offset"] if piece == 0 else row["last_offset"] if last else 0
            pieces, borders = file.documents(sequence), file.borders(sequence)
            (here,) = np.flatnonzero((pieces.rows == row["row"]) & (borders[:-1] == offset))
            ids += file[sequence][borders[here] : borders[here + 1]].tolist()
        assert len(ids) == row["n_tokens"]
        found.append(ids)
    return found


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
@pytest.mark.parametrize(
    ("window", "block_bytes"), [(1 << 20, 1 << 24), (64, 1 << 24), (64, 320), (16, 64), (230, 64 * 7)]
)
def test_documents_come_back_whatever_the_seams(
    strategy: Strategy,
    window: int,
    block_bytes: int,
    part: Path,
    letters: Tokenizer,
    texts: list[str],
    tmp_path,
    monkeypatch,
) -> None:
    """Any window of the plan and any size of block: every document's tokens, in order, once."""
    monkeypatch.setattr(packing, "WINDOW_DOCUMENTS", window)
    monkeypatch.setattr(module, "ROW_GROUP", 16)
    tokens, documents = assembled(part, letters, tmp_path, strategy, block_bytes)
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


def test_the_same_documents_make_the_same_bytes(part: Path, letters: Tokenizer, tmp_path: Path) -> None:
    """Token file and table are functions of the documents and the header."""
    first = assembled(part, letters, tmp_path / "a", "best_fit", 320)
    second = assembled(part, letters, tmp_path / "b", "best_fit", 320)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
