"""The header says everything that a trainer must know, and each rule of a block is checked."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import CARD, small_block, small_header
from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header, block_schema, check_block


def test_the_header_survives_the_schema() -> None:
    """What goes into the metadata comes out equal, with every character of the golden texts."""
    header = small_header(golden_texts=("a\0b", "\ud7ff漢😀", ""), golden_ids=((1, 2), (), (3,)))
    assert Header.from_schema(block_schema(header), "here") == header


def test_the_metadata_is_plain_json() -> None:
    """A reader in another language needs a JSON parser and nothing else."""
    data = json.loads(block_schema(small_header()).metadata[b"corpusmill"])
    assert (data["format"], data["dtype"], data["padding_share"], data["seq_len"]) == (1, "uint16", 0.25, 16)
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


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("input_ids", pa.list_(pa.int32()))]), "without the metadata key 'corpusmill'"),
        (_schema(format=2), "format 2; this version of corpusmill reads 1"),
        (_schema(surprise=1), "header is not complete"),
        (_schema(tokenizer={}), "header is not complete"),
        (_schema(dtype="uint32"), "columns are not those of the header"),
        (_schema(seq_len=17), "columns are not those of the header"),
        (block_schema(small_header()).with_metadata({b"corpusmill": "{"}), "header is not complete"),
        (block_schema(small_header()).with_metadata({b"corpusmill": "{}"}), "header is not complete"),
    ],
)
def test_foreign_schemas_are_named(schema: pa.Schema, message: str) -> None:
    """Another program's file, another version, a header that does not fit the columns."""
    with pytest.raises(TokenFileError, match=message):
        Header.from_schema(schema, "here")


def _set(name: str, index: int | tuple[int, int], value: int) -> Callable[[Block], None]:
    def change(block: Block) -> None:
        getattr(block, name)[index] = value

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_set("tokens", (3, 2), 100), "token id 100 is outside the vocabulary"),
        (_set("tokens", (3, 2), 0), "end-of-document token .* inside a document"),
        (_set("tokens", (3, 13), 7), "something else than padding"),
        (_set("rows", 4, 80), "a document row is outside"),
        (_set("rows", 4, -1), "a document row is outside"),
        (_set("lengths", 4, 0), "a piece without tokens"),
        (_set("lengths", 4, -5), "a piece without tokens"),
        (_set("lengths", 4, 10), "pieces of 17 tokens in a sequence of 16"),
        (_set("lengths", 4, 2**31 - 1), "pieces of 2147483654 tokens"),
        (_set("first_piece", 0, 1), "borders of pieces do not fit"),
        (_set("first_piece", 5, 8), "borders of pieces do not fit"),
        (_set("first_piece", 5, 100), "borders of pieces do not fit"),
        (_set("first_piece", -1, 31), "a piece without tokens, or pieces of no sequence"),
    ],
)
def test_each_rule_of_a_block(change: Callable[[Block], None], fault: str) -> None:
    """A good block has no fault; each single change is named."""
    header = small_header()
    block = small_block(header, 0)
    assert check_block(block, header) == ([], 32)
    change(block)
    faults, _ = check_block(block, header)
    assert len(faults) == 1
    assert re.search(fault, faults[0])


def test_padding_may_be_the_end_token() -> None:
    """Where EOS fills, the EOS behind the last piece are no documents."""
    header = small_header(tokenizer=dataclasses.replace(CARD, pad_id=0))
    assert check_block(small_block(header, 0), header) == ([], 32)


def test_a_batch_is_a_view_both_ways() -> None:
    """From arrays to a record batch and back without a copy."""
    header = small_header()
    block = small_block(header, 0)
    back = Block.from_batch(block.to_batch(block_schema(header)), header.seq_len)
    for name in ("tokens", "first_piece", "lengths", "rows"):
        before, after = getattr(block, name), getattr(back, name)
        assert np.shares_memory(before, after)
        assert np.array_equal(before, after)
