"""The header says everything that a trainer must know, and a header made by hand crashes nobody."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import CARD, SEQ_LEN, small_block, small_header
from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header, block_schema


def test_the_header_survives_the_schema() -> None:
    """What goes into the metadata comes out equal, with every character of the golden texts."""
    header = small_header(golden_texts=("a\0b", "\ud7ff漢😀", ""), golden_ids=((1, 2), (), (3,)))
    assert Header.from_schema(block_schema(header), "here") == header


def test_the_metadata_is_plain_json() -> None:
    """A reader in another language needs a JSON parser and nothing else."""
    data = json.loads(block_schema(small_header()).metadata[b"corpusmill"])
    assert (data["format"], data["dtype"], data["padding_share"], data["seq_len"]) == (2, "uint16", 0.25, 16)
    assert data["byte_order"] == "little"
    assert data["tokenizer"]["fingerprint"] == "f" * 64


@pytest.mark.parametrize(("max_id", "dtype"), [(65_535, np.uint16), (65_536, np.uint32)])
def test_the_largest_id_decides_the_width(max_id: int, dtype: type) -> None:
    """uint16 only where every id fits."""
    header = small_header(tokenizer=dataclasses.replace(CARD, max_id=max_id))
    assert header.dtype == dtype
    assert block_schema(header).field("tokens").type.value_type == pa.from_numpy_dtype(dtype)


def test_no_sequences_have_no_padding() -> None:
    """An empty file has a padding share of nothing, not a division by zero."""
    header = small_header(0)
    assert (header.padding_share, header.n_blocks) == (0.0, 0)


def _schema(**changes: object) -> pa.Schema:
    data = {**json.loads(small_header().to_json()), **changes}
    return block_schema(small_header()).with_metadata({b"corpusmill": json.dumps(data)})


def _raw(text: str | bytes) -> pa.Schema:
    return block_schema(small_header()).with_metadata({b"corpusmill": text})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("input_ids", pa.list_(pa.int32()))]), "without the metadata key 'corpusmill'"),
        (_schema(format=1), "format 1; this version of corpusmill reads 2.*Pack the run again"),
        (_schema(format="2"), "format '2'; this version"),
        (_schema(byte_order="big"), "byte order 'big'; only little-endian"),
        (_schema(surprise=1), "header is not complete"),
        (_schema(tokenizer={}), "header is not complete"),
        (_schema(dtype="uint32"), "columns are not those of the header"),
        (_schema(seq_len=15), "columns are not those of the header"),
        (_raw("{"), "header is not complete"),
        (_raw("{}"), "header is not complete"),
        (_raw("[]"), "header is not complete"),
        (_raw("2"), "header is not complete"),
        (_raw(b"\xff\xfe{"), "header is not complete"),
        (_raw("[" * 100_000), "header is not complete"),
        (_raw('{"format": ' + "9" * 5_000 + "}"), "header is not complete"),
    ],
)
def test_foreign_schemas_are_named(schema: pa.Schema, message: str) -> None:
    """Another program's file, another version, a header that does not fit the columns."""
    with pytest.raises(TokenFileError, match=message):
        Header.from_schema(schema, "here")


def test_a_batch_is_a_view_both_ways() -> None:
    """From arrays to a record batch and back without a copy."""
    header = small_header()
    block = small_block(header, 0)
    back = Block.from_batch(block.to_batch(block_schema(header)), header.seq_len)
    for name in ("tokens", "first_piece", "lengths", "rows"):
        before, after = getattr(block, name), getattr(back, name)
        assert np.shares_memory(before, after)
        assert np.array_equal(before, after)


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of a JSON document lies."""
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(inner, (*path, key))


@pytest.mark.parametrize("odd", [None, True, -1, 2**70, 1.5, float("nan"), "x", "", [], [None], {}, {"a": 1}, "\ud800"])
def test_a_header_may_hold_anything_anywhere(odd: object) -> None:
    """Any value of the JSON replaced by any other, or left out: a header that could be true, or an error with a name."""
    truth = json.loads(small_header(mix=({"name": "a", "weight": 1.0},)).to_json())
    for path in _places(truth):
        for keep in (True, False):
            data = copy.deepcopy(truth)
            owner = functools.reduce(lambda inner, key: inner[key], path[:-1], data)
            if keep:
                owner[path[-1]] = odd
            else:
                del owner[path[-1]]
            with contextlib.suppress(TokenFileError):
                assert isinstance(Header.from_schema(_raw(json.dumps(data)), "here"), Header)


def _batch(**changes: pa.Array) -> pa.RecordBatch:
    whole = small_block(small_header(), 0).to_batch(block_schema(small_header()))
    columns = {name: changes.get(name, whole.column(name)) for name in whole.schema.names}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": pa.array([None] + [[1] * 16] * 15, pa.list_(pa.uint16(), 16))}, "holds nulls"),
        ({"doc_lengths": pa.array([[5, None]] * 16, pa.list_(pa.int32()))}, "holds nulls"),
        ({"doc_rows": pa.array([None] + [[1, 2]] * 15, pa.list_(pa.int64()))}, "holds nulls"),
        ({"doc_rows": pa.array([[1]] * 16, pa.list_(pa.int64()))}, "not of the same pieces"),
    ],
)
def test_arrays_that_reach_outside_are_refused(changes: dict[str, pa.Array], message: str) -> None:
    """Nulls, borders of two kinds, and offsets beyond the values: named before a view is made of them."""
    with pytest.raises(TokenFileError, match=message):
        Block.from_batch(_batch(**changes), SEQ_LEN)


def test_borders_that_reach_outside_are_refused() -> None:
    """An offset far behind the values, as damage makes it, is named before a view is made of it."""
    offsets = np.arange(0, 33, 2, dtype=np.int32)
    values = pa.array(np.ones(32, np.int32))
    lists = pa.Array.from_buffers(pa.list_(pa.int32()), 16, [None, pa.py_buffer(offsets)], children=[values])
    batch = _batch(doc_lengths=lists)
    assert len(Block.from_batch(batch, SEQ_LEN).lengths) == 32
    offsets[-1] = 2**30
    with pytest.raises(TokenFileError, match="do not fit its bytes"):
        Block.from_batch(batch, SEQ_LEN)
