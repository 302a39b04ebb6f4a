"""What ids give back: the table of bytes says the same as the library's decoder, for right ids and for wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tests.strategies import hostile_text
from tests.token_files import letter_tokenizer, small_bpe
from tokenization.engines.round_trip import RoundTrip, byte_alphabet

library = Tokenizer.from_str(small_bpe())
library.add_tokens([AddedToken("<tool é漢>", normalized=False), AddedToken("Ġodd", normalized=False)])
library.encode_special_tokens = True
MAX_ID = max(library.get_vocab().values())
exact = RoundTrip(library, "ByteLevel", MAX_ID)
slow = RoundTrip(library, None, MAX_ID)


def ids_of(texts: Sequence[str]) -> list[list[int]]:
    return [encoding.ids for encoding in library.encode_batch(texts, add_special_tokens=False)]


def both(texts: Sequence[str], lists: Sequence[Sequence[int]]) -> list[int]:
    """Losses by the table, which must be those by the decoder."""
    ids = np.array([i for ids in lists for i in ids], np.uint32)
    lengths = np.array([len(ids) for ids in lists], np.int64)
    lost = exact.lost(texts, ids, lengths).tolist()
    assert lost == slow.lost(texts, ids, lengths).tolist()
    for text, row, n in zip(texts, lists, lost, strict=True):
        assert n == (Counter(text) - Counter(library.decode(list(row), skip_special_tokens=False))).total()
    return list(lost)


def test_the_alphabet_is_the_library_s() -> None:
    """256 characters, one a byte, and each byte's character is the one that the library writes."""
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert set(alphabet) == set(pre_tokenizers.ByteLevel.alphabet())
    decoder = decoders.ByteLevel()
    assert all(decoder.decode([c]) == bytes([b]).decode(errors="replace") for c, b in alphabet.items())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(hostile_text, st.just("a<tool é漢>b"), st.just("Ġodd"), st.just("\ufffd")), max_size=6))
def test_right_ids_lose_nothing(texts: list[str]) -> None:
    """Texts that come back are found so, empty ones and added tokens among them."""
    assert not any(both(texts, ids_of(texts))) or any("Ġodd" in text for text in texts)


@settings(max_examples=100, deadline=None)
@given(st.lists(hostile_text, min_size=1, max_size=6), st.data())
def test_wrong_ids_are_found(texts: list[str], data: st.DataObject) -> None:
    """A changed, dropped or moved id loses as many characters by the table as by the decoder."""
    lists = ids_of(texts)
    for row in lists:
        kind = data.draw(st.sampled_from(("keep", "drop", "change", "more")))
        if row and kind == "drop":
            row.pop(data.draw(st.integers(0, len(row) - 1)))
        elif row and kind == "change":
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, MAX_ID))
        elif kind == "more":
            row.append(data.draw(st.integers(0, MAX_ID)))
    both(texts, lists)


@pytest.mark.parametrize(
    ("texts", "swapped"), [(["ab", "c"], ["a", "bc"]), (["a", ""], ["", "a"]), (["é", "x"], ["x", "é"])]
)
def test_bytes_that_fit_only_as_a_whole_do_not_pass(texts: list[str], swapped: list[str]) -> None:
    """The borders of the texts count: a byte that moved to the neighbour is a loss."""
    assert sum(both(texts, ids_of(swapped))) > 0


def test_no_texts_and_no_ids() -> None:
    """Nothing in, nothing lost; empty texts lose nothing."""
    assert both([], []) == []
    assert both(["", ""], [[], []]) == [0, 0]


def test_a_decoder_that_is_not_byte_level_takes_the_slow_way() -> None:
    """Letters outside the vocabulary vanish and are counted."""
    letters = letter_tokenizer("ab")
    ids = np.array(letters.encode("a漢b").ids, np.uint32)
    lost = RoundTrip(letters, "Fuse", 2).lost(["a漢b"], ids, np.array([len(ids)]))
    assert lost.tolist() == [1]


def test_ids_beyond_the_table_are_left_to_the_decoder() -> None:
    """Nothing is read outside of the table; the library's decoder passes such ids over."""
    ids = np.array([*ids_of(["ab"])[0], MAX_ID + 1, 2**32 - 1], np.uint32)
    lengths = np.array([len(ids)])
    assert exact.lost(["ab"], ids, lengths).tolist() == [0]
    assert exact.lost(["abc"], ids, lengths).tolist() == [1]


PLAIN = [
    *"▁abé漢",
    "▁▁",
    "▁a",
    "ab",
    "▁" * 9,
    "<s>",
    "a▁b",
    "longer than eight",
    "漢漢漢漢",
    "",
    "<0x+F>",
    "<0x1>",
    "<0xG0>",
]
MARKED = [*(f"<0x{byte:02X}>" for byte in range(256)), "<0xab>", *PLAIN]
"""A vocabulary of SentencePiece's kind, with what looks like a byte and is none, or is one in Rust's eyes."""
STEPS = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]


def marked(steps: Sequence[decoders.Decoder]) -> Tokenizer:
    made = Tokenizer(models.BPE({token: index for index, token in enumerate(MARKED)}, []))
    made.decoder = decoders.Sequence(list(steps))
    return made


MARKED_WAYS = {
    "Llama": marked([*STEPS, decoders.Strip(" ", 1, 0)]),
    "Gemma": marked(STEPS),
    "strips two": marked([*STEPS, decoders.Strip(" ", 2, 0)]),
    "strips behind": marked([*STEPS, decoders.Strip(" ", 1, 1)]),
    "strips in each token": marked([*STEPS[:2], decoders.Strip(" ", 1, 0)]),
    "replaces otherwise": marked([decoders.Replace("▁", "_"), *STEPS[1:]]),
}


@pytest.mark.parametrize("way", MARKED_WAYS)
def test_which_decoders_are_read_from_a_table(way: str) -> None:
    """Only those that put bytes one after the other and drop at most one blank before them."""
    made = RoundTrip(MARKED_WAYS[way], "Sequence", len(MARKED) - 1)
    assert (made._compare is not None) == (way in ("Llama", "Gemma"))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(set(MARKED_WAYS) - {"strips behind"})),  # the library panics there over an empty text
    st.lists(st.lists(st.integers(0, len(MARKED) - 1), max_size=8), min_size=1, max_size=5),
    st.data(),
)
def test_sentencepiece_ids_lose_what_its_decoder_loses(way: str, lists: list[list[int]], data: st.DataObject) -> None:
    """Any ids at all, beside the text they decode to, that text with a blank more or less, and another text."""
    made = MARKED_WAYS[way]
    table, decoder = (RoundTrip(made, kind, len(MARKED) - 1) for kind in ("Sequence", None))
    texts = []
    for ids in lists:
        text = made.decode(ids, skip_special_tokens=False)
        changes = (text, f" {text}", text[1:], f"{text} ", f"{text}漢", text[:-1], " ", "")
        texts.append(data.draw(st.sampled_from(changes)))
    flat, lengths = np.array([i for ids in lists for i in ids], np.uint32), np.array([len(ids) for ids in lists])
    assert table.lost(texts, flat, lengths).tolist() == decoder.lost(texts, flat, lengths).tolist()
    if table._compare is not None:
        backs = made.decode_batch(lists, skip_special_tokens=False)
        suspects = table._compare(texts, flat, np.cumsum(lengths), table._drops_blank).tolist()
        assert {i for i, (a, b) in enumerate(zip(texts, backs, strict=True)) if a != b} <= set(suspects)


def test_known_texts_need_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back is found so from the table alone."""
    made = MARKED_WAYS["Llama"]
    table = RoundTrip(made, "Sequence", len(MARKED) - 1)
    monkeypatch.setattr(table, "_backend", None)
    rows = [["▁", "a"], ["▁a", "▁", "longer than eight"], ["ab"], ["<0xE6>", "<0xBC>", "<0xA2>", "漢漢漢漢"], []]
    ids = [made.token_to_id(token) for row in rows for token in row]
    lengths = np.array([len(row) for row in rows])
    texts = ["a", "a longer than eight", "ab", "漢漢漢漢漢", ""]
    assert table.lost(texts, np.array(ids, np.uint32), lengths).tolist() == [0] * 5
