"""Parts are read as one row of documents, however they are cut, with few files open and none trusted blindly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import letter_tokenizer, save_tokenizer
from tokenization import parts as module
from tokenization.errors import TokenFileError
from tokenization.parts import Parts, PartWriter, part_schema
from tokenization.tokenizer import Tokenizer, load_tokenizer

TEXTS = ["abc", "", "hello world", "z" * 40, "x", "the quick brown fox", "鱼 lost"]


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = save_tokenizer(tmp_path_factory.mktemp("letters"), letter_tokenizer(), {"eos_token": "</s>"})
    return load_tokenizer(folder)


def who(first: int, n: int) -> pa.RecordBatch:
    """Identities of documents first .. first + n."""
    rows = range(first, first + n)
    source = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["crawl.jsonl"]))
    columns = [
        pa.array([bytes([row] * 16) for row in rows], pa.binary(16)),
        pa.array([f"d{row}" for row in rows]),
        source,
    ]
    return pa.RecordBatch.from_arrays(columns, names=["doc_id", "id", "source"])


def write_parts(folder: Path, tokenizer: Tokenizer, cuts: Sequence[Sequence[int]]) -> list[Path]:
    """One part for each list of batch sizes, over TEXTS in order."""
    paths, first = [], 0
    for number, sizes in enumerate(cuts):
        paths.append(folder / f"{number}.arrow")
        with PartWriter(paths[-1], tokenizer) as writer:
            for size in sizes:
                texts = TEXTS[first : first + size]
                # Two groups in one batch, as encode_shard makes them.
                encoded = [tokenizer.encode_documents(texts[:1]), tokenizer.encode_documents(texts[1:])]
                writer.write(who(first, size), encoded)
                first += size
        assert writer.documents == sum(sizes)
    return paths


@pytest.mark.parametrize("cuts", [[[7]], [[1, 1], [], [5]], [[3, 4]], [[1]] * 7, [[], [2, 5], []]])
def test_any_cut_is_the_same_row_of_documents(cuts: list[list[int]], letters: Tokenizer, tmp_path: Path) -> None:
    """Lengths, ids, identities and losses do not depend on parts and batches."""
    with Parts(write_parts(tmp_path, letters, cuts), letters.fingerprint(), letters.dtype) as parts:
        assert parts.lengths.tolist() == [4, 1, 12, 41, 2, 20, 6]
        assert (parts.unknown, parts.lost, parts.characters) == (0, 1, sum(map(len, TEXTS)))
        for index, text in enumerate(TEXTS):
            out = np.zeros(parts.lengths[index], letters.dtype)
            one, zero = np.array([index]), np.zeros(1, np.int64)
            parts.gather(one, zero, parts.lengths[index : index + 1], zero, out)
            assert letters.decode(out[:-1]) == text.replace("鱼", "")
            assert out[-1] == letters.eos_id
        table = parts.rows(0, 7)
        assert table.column("id").to_pylist() == [f"d{i}" for i in range(7)]
        assert parts.rows(2, 4).column("doc_id").to_pylist() == [bytes([i] * 16) for i in (2, 3)]
        assert table.column("source").to_pylist() == ["crawl.jsonl"] * 7


def test_pieces_go_where_they_belong(letters: Tokenizer, tmp_path: Path) -> None:
    """Several pieces at once, some neighbours in both places, some not; the rest stays untouched."""
    with Parts(write_parts(tmp_path, letters, [[3, 4]]), letters.fingerprint(), letters.dtype) as parts:
        whole = []
        for index in range(7):
            out = np.zeros(parts.lengths[index], letters.dtype)
            parts.gather(*(np.array([v]) for v in (index, 0, parts.lengths[index], 0)), out)
            whole.append(out)
        out = np.full((3, 20), 77, letters.dtype)
        document, start, length, position = (
            np.array([2, 2, 0, 1, 3, 3, 5]),
            np.array([0, 5, 0, 0, 10, 30, 3]),
            np.array([5, 7, 4, 1, 20, 11, 5]),
            np.array([0, 5, 12, 16, 20, 40, 54]),
        )
        parts.gather(document, start, length, position, out)
    expected = np.full(60, 77, letters.dtype)
    for d, s, n, p in zip(document, start, length, position, strict=True):
        expected[p : p + n] = whole[d][s : s + n]
    assert np.array_equal(out.reshape(-1), expected)


def test_few_files_are_open(letters: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of parts must not need thousands of descriptors; all are closed at the end."""
    monkeypatch.setattr(module, "_OPEN_FILES", 3)
    paths = write_parts(tmp_path, letters, [[1]] * 7)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Parts(paths, letters.fingerprint(), letters.dtype) as parts:
        out = np.zeros(int(parts.lengths.sum()), letters.dtype)
        ends = np.cumsum(parts.lengths)
        for _ in range(2):
            parts.gather(np.arange(7), np.zeros(7, np.int64), parts.lengths, ends - parts.lengths, out)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 3
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert (out[ends - 1] == letters.eos_id).all()


def test_no_parts_and_empty_parts(letters: Tokenizer, tmp_path: Path) -> None:
    """Nothing survived: zero documents, no error."""
    for paths in ([], write_parts(tmp_path, letters, [[], []])):
        with Parts(paths, letters.fingerprint(), letters.dtype) as parts:
            assert (len(parts), parts.lengths.dtype) == (0, np.int64)


def test_parts_of_another_tokenizer_are_refused(letters: Tokenizer, tmp_path: Path) -> None:
    """Ids mean nothing without their tokenizer."""
    paths = write_parts(tmp_path, letters, [[7]])
    with pytest.raises(TokenFileError, match=r"was encoded by tokenizer .*, but 0000000000000000 packs it"):
        Parts(paths, "0" * 64, letters.dtype)


def test_parts_that_are_none_are_refused(letters: Tokenizer, tmp_path: Path) -> None:
    """Missing, empty, text, another Arrow file."""
    fingerprint = letters.fingerprint()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"text" * 100)
    with pa.ipc.new_file(str(tmp_path / "other"), pa.schema([("a", pa.int32())])):
        pass
    for name in ("missing", "empty", "text", "other"):
        with pytest.raises(TokenFileError, match=name):
            Parts([tmp_path / name], fingerprint, letters.dtype)


def test_a_part_that_is_cut_meanwhile_is_named(letters: Tokenizer, tmp_path: Path) -> None:
    """Ids that are not there any more are an error, not zeros."""
    (path,) = write_parts(tmp_path, letters, [[7]])
    with Parts([path], letters.fingerprint(), letters.dtype) as parts:
        path.write_bytes(path.read_bytes()[:600])
        out = np.zeros(6, letters.dtype)
        with pytest.raises(TokenFileError, match="is cut"):
            parts.gather(*(np.array([v]) for v in (6, 0, 6, 0)), out)


def test_the_schema_names_its_tokenizer(letters: Tokenizer) -> None:
    """Fingerprint and width stand in the part's metadata."""
    schema = part_schema(np.dtype(np.uint32), "abc")
    assert schema.metadata[b"corpusmill.part"] == b'{"format": 1, "fingerprint": "abc", "dtype": "uint32"}'
    assert schema.field("ids").type.value_type == pa.uint32()
