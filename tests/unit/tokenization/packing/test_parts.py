"""Parts are read as one row of documents, however they are cut, with few files open and none trusted blindly."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import letter_tokenizer, save_tokenizer
from tokenization.errors import TokenFileError
from tokenization.packing import parts as module
from tokenization.packing.parts import WHO, Ints, Parts, PartWriter, Totals, part_schema
from tokenization.tokenizer import Encoded, Tokenizer, load_tokenizer

TEXTS = ["abc", "", "hello world", "z" * 40, "x", "the quick brown fox", "鱼 lost"]


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = save_tokenizer(tmp_path_factory.mktemp("letters"), letter_tokenizer(), {"eos_token": "</s>"})
    return load_tokenizer(folder)


SPOOLS = 4
"""Descriptors of the anonymous files of lengths and places: each has its own, and one of its map."""


def lengths_of(parts: Parts) -> Ints:
    return np.asarray(parts.lengths.read(0, len(parts)), np.int64)


def who(first: int, n: int) -> pa.RecordBatch:
    """Identities of documents first .. first + n."""
    rows = range(first, first + n)
    source = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["crawl.jsonl"]))
    columns = [
        pa.array([bytes([row] * 16) for row in rows], pa.binary(16)),
        pa.array([bytes([row + 100] * 16) for row in rows], pa.binary(16)),
        pa.array([f"d{row}" for row in rows]),
        source,
        pa.array(["en" if row % 2 else "" for row in rows]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(WHO))


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
    with Parts(write_parts(tmp_path, letters, cuts), letters.fingerprint(), letters.dtype, tmp_path) as parts:
        lengths = lengths_of(parts)
        assert lengths.tolist() == [4, 1, 12, 41, 2, 20, 6]
        assert parts.totals == Totals(tokens=86, unknown=0, characters=sum(map(len, TEXTS)), lost=1)
        for index, text in enumerate(TEXTS):
            out = np.zeros(lengths[index], letters.dtype)
            one, zero = np.array([index]), np.zeros(1, np.int64)
            parts.gather(one, zero, lengths[index : index + 1], zero, out)
            assert letters.decode(out[:-1]) == text.replace("鱼", "")
            assert out[-1] == letters.eos_id
        table = parts.who(np.arange(7))
        assert table.schema.names == list(WHO)
        assert table.column("id").to_pylist() == [f"d{i}" for i in range(7)]
        assert table.column("source").to_pylist() == ["crawl.jsonl"] * 7
        assert table.column("language").to_pylist() == ["", "en", "", "en", "", "en", ""]
        assert parts.who(np.array([2, 3]), ["doc_id"]).column("doc_id").to_pylist() == [bytes([i] * 16) for i in (2, 3)]
        assert parts.who(np.array([0, 3, 6])).column("text_id").to_pylist() == [
            bytes([i] * 16) for i in (100, 103, 106)
        ]
        assert parts.who(np.zeros(0, np.int64)).num_rows == 0
        found = [(first, batch.column("id").to_pylist()) for first, batch in parts.batches()]
        assert [id for _, ids in found for id in ids] == [f"d{i}" for i in range(7)]
        assert all(ids[:1] in ([], [f"d{first}"]) for first, ids in found)


def test_pieces_go_where_they_belong(letters: Tokenizer, tmp_path: Path) -> None:
    """Several pieces at once, some neighbours in both places, some not; the rest stays untouched."""
    with Parts(write_parts(tmp_path, letters, [[3, 4]]), letters.fingerprint(), letters.dtype, tmp_path) as parts:
        whole, lengths = [], lengths_of(parts)
        for index in range(7):
            out = np.zeros(lengths[index], letters.dtype)
            parts.gather(*(np.array([v]) for v in (index, 0, lengths[index], 0)), out)
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
    with Parts(paths, letters.fingerprint(), letters.dtype, tmp_path) as parts:
        lengths = lengths_of(parts)
        out = np.zeros(int(lengths.sum()), letters.dtype)
        ends = np.cumsum(lengths)
        for _ in range(2):
            parts.gather(np.arange(7), np.zeros(7, np.int64), lengths, ends - lengths, out)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 3 + SPOOLS
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert (out[ends - 1] == letters.eos_id).all()


def test_no_parts_and_empty_parts(letters: Tokenizer, tmp_path: Path) -> None:
    """Nothing survived: zero documents, no error."""
    for paths in ([], write_parts(tmp_path, letters, [[], []])):
        with Parts(paths, letters.fingerprint(), letters.dtype, tmp_path) as parts:
            assert (len(parts), parts.totals.tokens, parts.who(np.zeros(0, np.int64)).num_rows) == (0, 0, 0)


def test_parts_of_another_tokenizer_are_refused(letters: Tokenizer, tmp_path: Path) -> None:
    """Ids mean nothing without their tokenizer."""
    paths = write_parts(tmp_path, letters, [[7]])
    with pytest.raises(TokenFileError, match=r"was encoded by tokenizer .*, but 0000000000000000 packs it"):
        Parts(paths, "0" * 64, letters.dtype, tmp_path)


def test_parts_that_are_none_are_refused(letters: Tokenizer, tmp_path: Path) -> None:
    """Missing, empty, text, another Arrow file."""
    fingerprint = letters.fingerprint()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"text" * 100)
    with pa.ipc.new_file(str(tmp_path / "other"), pa.schema([("a", pa.int32())])):
        pass
    for name in ("missing", "empty", "text", "other"):
        with pytest.raises(TokenFileError, match=name):
            Parts([tmp_path / name], fingerprint, letters.dtype, tmp_path)


def test_a_part_that_is_cut_meanwhile_is_named(letters: Tokenizer, tmp_path: Path) -> None:
    """Ids that are not there any more are an error, not zeros."""
    (path,) = write_parts(tmp_path, letters, [[7]])
    with Parts([path], letters.fingerprint(), letters.dtype, tmp_path) as parts:
        path.write_bytes(path.read_bytes()[:600])
        out = np.zeros(6, letters.dtype)
        with pytest.raises(TokenFileError, match=r"0\.arrow was changed or replaced while"):
            parts.gather(*(np.array([v]) for v in (6, 0, 6, 0)), out)
        with pytest.raises(TokenFileError, match=r"0\.arrow was cut or replaced meanwhile"):
            parts.who(np.array([6]))


def test_a_part_that_is_cut_while_it_is_open_is_named(letters: Tokenizer, tmp_path: Path) -> None:
    """A descriptor that was fine reads less than it should."""
    (path,) = write_parts(tmp_path, letters, [[7]])
    with Parts([path], letters.fingerprint(), letters.dtype, tmp_path) as parts:
        out = np.zeros(6, letters.dtype)
        parts.gather(*(np.array([v]) for v in (6, 0, 6, 0)), out)
        os.truncate(path, 600)
        with pytest.raises(TokenFileError, match=r"0\.arrow is cut"):
            parts.gather(*(np.array([v]) for v in (6, 0, 6, 0)), out)
        with pytest.raises(TokenFileError, match=r"0\.arrow was changed"):
            parts.check_unchanged()


def test_another_try_may_put_the_same_part_in_place(letters: Tokenizer, tmp_path: Path) -> None:
    """Of a replaced part the checksum decides: the same bytes are welcome, others are named."""
    (path,) = write_parts(tmp_path, letters, [[7]])
    data, checksum = path.read_bytes(), hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(TokenFileError, match="is not the part that was written"):
        Parts([path], letters.fingerprint(), letters.dtype, tmp_path, checksums=["0" * 64])
    with Parts([path], letters.fingerprint(), letters.dtype, tmp_path, checksums=[checksum]) as parts:
        for content, same in ((data, True), (data[:-1] + b"x", False)):
            (tmp_path / "new").write_bytes(content)
            (tmp_path / "new").replace(path)
            with contextlib.nullcontext() if same else pytest.raises(TokenFileError, match="was changed or replaced"):
                parts.check_unchanged()


def test_parts_of_another_version_are_refused(letters: Tokenizer, tmp_path: Path) -> None:
    """Parts are made again, never guessed at."""
    schema = part_schema(letters.dtype, letters.fingerprint())
    card = schema.metadata[b"corpusmill.part"].replace(b'"format": 2', b'"format": 1')
    with pa.ipc.new_file(str(tmp_path / "old"), schema.with_metadata({"corpusmill.part": card})):
        pass
    with pytest.raises(TokenFileError, match="has format 1; this version packs 2"):
        Parts([tmp_path / "old"], letters.fingerprint(), letters.dtype, tmp_path)


def test_a_batch_of_too_many_tokens_is_named(letters: Tokenizer, tmp_path: Path) -> None:
    """2^31 tokens do not fit one Arrow list: refused before a byte is written. (Lengths alone: no such ids.)"""
    one = Encoded(np.zeros(0, letters.dtype), np.array([2**31 - 2]), *(np.zeros(1, np.int64) for _ in range(3)))
    with (
        PartWriter(tmp_path / "part", letters) as writer,
        pytest.raises(TokenFileError, match="2 documents of 4294967292 tokens together, the longest of 2147483646"),
    ):
        writer.write(who(0, 2), [one, one])


def test_the_schema_names_its_tokenizer(letters: Tokenizer) -> None:
    """Fingerprint and width stand in the part's metadata."""
    schema = part_schema(np.dtype(np.uint32), "abc")
    assert schema.metadata[b"corpusmill.part"] == b'{"format": 2, "fingerprint": "abc", "dtype": "uint32"}'
    assert schema.field("ids").type.value_type == pa.uint32()
