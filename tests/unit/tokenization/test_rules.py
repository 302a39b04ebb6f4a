"""Each rule of a header and of a block is checked, and the message says which was broken."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.token_files import CARD, bos_block, bos_header, small_block, small_header
from tokenization.layout import Block
from tokenization.rules import check_block, header_faults


def _card(**changes: Any) -> dict[str, Any]:
    return {"tokenizer": dataclasses.replace(CARD, **changes)}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"run_id": 3}, "run_id is 3, no text"),
        ({"split": "test"}, "split is 'test', none of all, train, holdout"),
        ({"seq_len": 0}, "seq_len is 0, no whole number from 1"),
        ({"seq_len": 16.0}, "seq_len is 16.0, no whole number"),
        ({"seq_len": "16"}, "seq_len is '16'"),
        ({"block_sequences": 2**31 - 1}, "a block of 2147483647 sequences of 16 tokens: more than"),
        ({"documents": -1}, "documents is -1"),
        ({"documents": True}, "documents is True"),
        ({"tokens": 2**63}, "tokens is 9223372036854775808"),
        ({"tokens": 641}, "80 documents in 80 pieces of 641 tokens in 40 sequences of 16"),
        ({"pieces": 79}, "80 documents in 79 pieces"),
        ({"documents": 1, "pieces": 39, "tokens": 480}, "39 pieces in 40 sequences"),
        ({"shuffle_seed": 0.5}, "shuffle_seed is 0.5"),
        ({"unk_share": float("nan")}, "unk_share is nan"),
        ({"lost_share": "0"}, "lost_share is '0'"),
        ({"mix": (3,)}, "mix is .*no list of objects"),
        ({"golden_texts": (None,)}, "golden_texts are no texts"),
        ({"golden_ids": ((100,),)}, r"golden_ids are not all in 0 .. 99"),
        ({"golden_ids": (("2",),)}, r"golden_ids are not all in 0 .. 99"),
        ({"golden_ids": ()}, "0 golden_ids of 1 golden_texts"),
        (_card(fingerprint=None), "fingerprint is None, no text"),
        (_card(max_id=2**32), "max_id 4294967296 are no vocabulary"),
        (_card(vocab_size=0), "vocab_size 0"),
        (_card(eos_id=100), r"special ids \(100, 1\) are not all in 0 .. 99"),
        (_card(pad_id=-1), r"special ids \(0, -1\)"),
        (_card(bos="<b>"), "bos '<b>' with bos_id None"),
        (_card(bos_id=3), "bos None with bos_id 3"),
        (_card(bos="<b>", bos_id=200), r"special ids \(0, 1, 200\)"),
        (_card(bos="<e>", bos_id=0), "BOS and EOS are one token"),
        (
            {**_card(bos="<b>", bos_id=2), "tokens": 159},
            "159 tokens, fewer than the 160 that begin and end 80 documents",
        ),
    ],
)
def test_each_rule_of_a_header(changes: dict[str, Any], fault: str) -> None:
    """A good header has no fault; each change that cannot be true is named."""
    assert header_faults(small_header()) == []
    assert any(re.search(fault, found) for found in header_faults(small_header(**changes)))


def _set(name: str, index: int | tuple[int, int], value: int) -> Callable[[Block], None]:
    def change(block: Block) -> None:
        getattr(block, name)[index] = value

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_set("tokens", (3, 2), 100), "token id 100 is outside the vocabulary"),
        (_set("tokens", (3, 2), 0), "end-of-document token .* inside a document"),
        (_set("tokens", (3, 4), 7), "without end-of-document token before the end of its sequence .row 3"),
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
    good = check_block(block, header)
    assert (good.faults, good.ends.tolist(), good.begins) == ([], [True] * 32, None)
    change(block)
    faults = check_block(block, header).faults
    assert len(faults) == 1
    assert re.search(fault, faults[0])


def test_padding_may_be_the_end_token() -> None:
    """Where EOS fills, the EOS behind the last piece are no documents."""
    header = small_header(tokenizer=dataclasses.replace(CARD, pad_id=0))
    checked = check_block(small_block(header, 0), header)
    assert (checked.faults, checked.ends.sum()) == ([], 32)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_set("tokens", (3, 2), 2), "a beginning-of-document token .* inside a document"),
        (_set("tokens", (3, 14), 2), "something else than padding"),
        (_set("tokens", (3, 7), 7), "without end-of-document token before the end of its sequence .row 3"),
    ],
)
def test_each_rule_of_documents_that_begin_with_a_token(change: Callable[[Block], None], fault: str) -> None:
    """BOS stands at beginnings of pieces only; a piece that goes on with a document has none, and is no fault."""
    header = bos_header()
    block = bos_block(header, 0)
    good = check_block(block, header)
    assert good.faults == []
    assert good.begins is not None
    # The second document is cut: its second piece lies in the next sequence.
    assert good.begins.tolist()[:4] == [True, True, False, True]
    assert good.ends.tolist()[:4] == [True, False, True, True]
    change(block)
    assert [bool(re.search(fault, found)) for found in check_block(block, header).faults] == [True]
