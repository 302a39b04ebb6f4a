"""Texts become exactly the ids that the library gives, whatever traps the tokenizer's files hold."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.strategies import hostile_text
from tests.token_files import letter_tokenizer, save_tokenizer, small_bpe, unigram_tokenizer, word_tokenizer
from tests.tokenizer_models import model
from tokenization import tokenizer as module
from tokenization.errors import TokenizerError
from tokenization.probes import PROBES
from tokenization.tokenizer import DEFAULT, load_tokenizer

default = load_tokenizer()
with_bos = load_tokenizer(bos="<|pad|>")
stock = Tokenizer.from_file(str(DEFAULT / "tokenizer.json"))


def test_the_default_is_small_and_complete() -> None:
    """32,768 ids without gaps, EOS and padding among them, no unknown token, ids in 16 bits."""
    assert (default.vocab_size, default.max_id, default.dtype) == (32_768, 32_767, np.uint16)
    assert (default.eos, default.eos_id, default.pad, default.pad_id) == ("<|endoftext|>", 0, "<|pad|>", 1)
    assert default.unk_id is None
    assert (DEFAULT / "tokenizer.json").stat().st_size < 3_000_000


@settings(max_examples=80, deadline=None)
@given(st.lists(hostile_text, max_size=6))
def test_the_default_loses_nothing_and_equals_the_library(texts: list[str]) -> None:
    """Ids are those of the stock library; decoding gives every text back; each document ends with one EOS."""
    encoded = default.encode_documents(texts)
    documents = np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1]) if texts else []
    for text, ids in zip(texts, documents, strict=True):
        assert ids[:-1].tolist() == stock.encode(text, add_special_tokens=False).ids
        assert ids[-1] == default.eos_id
        assert default.decode(ids[:-1]) == text
    assert int((encoded.ids == default.eos_id).sum()) == len(texts)
    assert not encoded.lost.any()


@pytest.mark.parametrize("text", ["12345", "٣٣٣", "2026-11-29"])
def test_the_default_splits_digits(text: str) -> None:
    """Every digit is a token of its own."""
    assert default.encode_batch([text])[1][0] >= sum(c.isdigit() for c in text)


SPECIAL_TEXT = [
    "a<|endoftext|>b",
    "<|endoftext|>",
    "The model card says that <|endoftext|> marks the end and <|pad|> fills.",
    "<|endoftext|><|endoftext|>\n<|pad|>",
]


@pytest.mark.parametrize("text", SPECIAL_TEXT)
def test_characters_of_special_tokens_stay_text(text: str) -> None:
    """Crawled text cannot forge a document border, and its ids are those of a library told the same."""
    plain = Tokenizer.from_file(str(DEFAULT / "tokenizer.json"))
    plain.encode_special_tokens = True
    ids, _ = default.encode_batch([text])
    assert ids.tolist() == plain.encode(text, add_special_tokens=False).ids
    assert not np.isin(ids, [default.eos_id, default.pad_id]).any()
    assert default.eos_id in stock.encode(text, add_special_tokens=False).ids
    assert default.decode(ids) == text


def test_empty_documents_keep_their_place() -> None:
    """Five documents, two of them empty: five lengths, the empty ones of EOS alone."""
    encoded = default.encode_documents(["a", "", "b", "", "c"])
    assert encoded.lengths.tolist() == [2, 1, 2, 1, 2]
    assert len(encoded.ids) == 8


@settings(max_examples=30, deadline=None)
@given(st.lists(hostile_text, max_size=6))
def test_every_document_begins_with_exactly_one_bos(texts: list[str]) -> None:
    """Where one is asked for: before each document, counted in its length, and nowhere else."""
    plain = default.encode_documents(texts)
    encoded = with_bos.encode_documents([*texts, "<|pad|>", ""])
    ends = np.cumsum(encoded.lengths)
    assert encoded.ids[ends - encoded.lengths].tolist() == [1] * (len(texts) + 2)
    assert encoded.ids[ends - 1].tolist() == [0] * (len(texts) + 2)
    assert ((encoded.ids == 1).sum(), (encoded.ids == 0).sum()) == (len(texts) + 2, len(texts) + 2)
    assert encoded.lengths[:-2].tolist() == (plain.lengths + 1).tolist()
    assert encoded.lengths[-1] == 2
    assert encoded.ids[encoded.ids != 1][: len(plain.ids)].tolist() == plain.ids.tolist()
    assert encoded.ids.dtype == np.uint16


def test_bos_stands_on_the_card() -> None:
    """The file says what begins its documents; without BOS it says that nothing does."""
    assert (with_bos.card().bos, with_bos.card().bos_id) == ("<|pad|>", 1)
    assert (default.card().bos, default.card().bos_id) == (None, None)
    assert with_bos.encode_batch(["a"])[0].tolist() == default.encode_batch(["a"])[0].tolist()


def test_what_is_saved_is_the_same_tokenizer(tmp_path: Path) -> None:
    """Of whatever kind the file was: fingerprint, ids, EOS and padding; what is hidden while it works is not saved."""
    (tmp_path / "t.model").write_bytes(model("unigram with bytes"))
    for number, loaded in enumerate((load_tokenizer(tmp_path / "t.model"), default)):
        again = load_tokenizer(loaded.save(tmp_path / str(number)))
        assert again.fingerprint() == loaded.fingerprint()
        assert again.golden_ids == loaded.golden_ids
        assert (again.eos, again.pad, again.name) == (loaded.eos, loaded.pad, str(number))
        assert again.decode(again.encode_documents(["ab c"]).ids) == f"ab c{loaded.eos}", "the end is spelled out"


def test_hidden_names_cannot_be_guessed(tmp_path: Path) -> None:
    """What special tokens are renamed to, in models of whole words, is not in the power of a page."""
    names = set()
    for number in range(2):
        loaded = load_tokenizer(save_tokenizer(tmp_path / str(number), unigram_tokenizer(), {"eos_token": "</s>"}))
        names |= {token for token in loaded._backend.get_vocab() if token.startswith("\ufdd0")}
        assert not np.isin(loaded.encode_batch(["\ufdd02\ufdd0 a"])[0], [1, 2]).any()
    assert len(names) == 6


def test_nothing_to_encode() -> None:
    """No documents give no ids, of the right type."""
    encoded = default.encode_documents([])
    assert (len(encoded.ids), len(encoded.lengths), encoded.ids.dtype) == (0, 0, np.uint16)


def test_truncation_padding_and_templates_of_the_file_are_off(tmp_path: Path) -> None:
    """A file that truncates, pads and adds BOS and EOS gives the same ids as one that does not."""
    odd = Tokenizer.from_str(small_bpe())
    odd.enable_truncation(4)
    odd.enable_padding(length=16, pad_id=1, pad_token="<|pad|>")
    names = [("<|pad|>", 1), ("<|endoftext|>", 0)]
    odd.post_processor = processors.TemplateProcessing(single="<|pad|> $A <|endoftext|>", special_tokens=names)
    loaded = load_tokenizer(save_tokenizer(tmp_path / "odd", odd, {"eos_token": "<|endoftext|>"}))
    texts = ["one two three four five six seven eight", "x"]
    plain = Tokenizer.from_str(small_bpe())
    assert loaded.encode_batch(texts)[0].tolist() == [i for text in texts for i in plain.encode(text).ids]


@pytest.mark.parametrize(
    ("make", "eos", "text"),
    [
        (word_tokenizer, "[SEP]", "a [SEP] b"),
        (word_tokenizer, "[SEP]", "[SEP]"),
        (unigram_tokenizer, "</s>", "a</s>b"),
        (unigram_tokenizer, "</s>", "</s> <s>"),
    ],
)
def test_models_of_whole_words_cannot_be_made_to_yield_a_special_token(make, eos: str, text: str, tmp_path) -> None:
    """Unigram and word models find `</s>` in their vocabulary even as text: ours do not, and no id moves."""
    made: Tokenizer = make()
    made.encode_special_tokens = True
    end = made.token_to_id(eos)
    assert end in made.encode(text, add_special_tokens=False).ids, "the trap is gone from the library"
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": eos}))
    assert loaded.eos_id == end
    ids, _ = loaded.encode_batch([text, "a b", "<tool>"])
    special = [made.token_to_id(name) for name in ("[SEP]", "<s>", "</s>") if made.token_to_id(name) is not None]
    assert not np.isin(ids, special).any()
    assert made.encode("a b", add_special_tokens=False).ids == loaded.encode_batch(["a b"])[0].tolist()
    assert made.encode("<tool>", add_special_tokens=False).ids == loaded.encode_batch(["<tool>"])[0].tolist()


def test_an_end_that_text_can_spell_is_refused(tmp_path: Path) -> None:
    """A BPE whose merges build the end-of-document token out of plain characters is no good."""
    vocabulary = {"<": 0, "e": 1, ">": 2, "<e": 3, "<e>": 4, "a": 5, "b": 6}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[("<", "e"), ("<e", ">")]))
    folder = save_tokenizer(tmp_path / "t", made, {"eos_token": "<e>"})
    with pytest.raises(TokenizerError, match="forge a border"):
        load_tokenizer(folder)


def test_an_end_that_is_not_marked_special_is_made_so(tmp_path: Path) -> None:
    """Some files forget the flag on EOS; the text of it must stay text all the same."""
    made = Tokenizer.from_str(small_bpe())
    made.add_tokens([AddedToken("<end>", special=False, normalized=False)])
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": "<end>"}))
    assert loaded.eos_id == loaded.max_id == 600
    assert loaded.eos_id not in loaded.encode_batch(["a <end> b"])[0]


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, np.uint16), (65_536, np.uint32), (100_000, np.uint32)])
def test_the_largest_id_decides_the_width(largest: int, dtype: type, tmp_path: Path) -> None:
    """The id map counts, not the vocabulary's size: ids may have gaps and added tokens lie behind them."""
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "[E]": 1, "a": 2, "b": largest}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["[E]"])
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": "[E]"}))
    ids, _ = loaded.encode_batch(["a b"])
    assert (loaded.max_id, loaded.vocab_size, loaded.dtype) == (largest, 4, dtype)
    assert ids.tolist() == [2, largest]


def test_unknown_tokens_are_counted(tmp_path: Path) -> None:
    """Of `a x b y` two are unknown; the model's own unknown token is what counts."""
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", word_tokenizer(), {"eos_token": "[SEP]"}))
    assert loaded.encode_documents(["a x b y", "a", "x"]).unknown.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("letters", "text", "lost"),
    [
        ("abcdefghijklmnopqrstuvwxyz ", "zebra 鱼🐟 ok", 2),
        ("abek o", "zebra 鱼🐟 ok", 4),
        ("ab", "abab", 0),
    ],
)
def test_characters_that_vanish_are_counted(letters: str, text: str, lost: int, tmp_path: Path) -> None:
    """Without unknown token and without bytes the ids look perfect: only decoding shows the loss."""
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", letter_tokenizer(letters), {"eos_token": "</s>"}))
    encoded = loaded.encode_documents([text, "a"])
    assert encoded.lost.tolist() == [lost, 0]
    assert not encoded.unknown.any()
    assert encoded.characters.tolist() == [len(text), 1]


def test_a_normaliser_that_changes_text_is_seen(tmp_path: Path) -> None:
    """Widths and circled digits that NFKC folds do not come back."""
    made = Tokenizer.from_str(small_bpe())
    made.normalizer = normalizers.NFKC()
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": "<|endoftext|>"}))
    assert loaded.encode_documents(["︰ ①② Ａ１ ﬁne", "plain"]).lost.tolist() == [6, 0]


def test_a_document_that_forges_an_end_stops_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a text ever yield EOS, the error names the text: no false border goes on."""
    made = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    monkeypatch.setattr(module.Tokenizer, "_refuse_forged_ends", lambda self: None)
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, None), eos="b")
    with pytest.raises(TokenizerError, match="false border: 'abba'"):
        loaded.encode_documents(["aa", "abba"])


RUNS = ("word ", "漢字", "7", "a", "。", "!", "\n", " ", "e\u0301", "😀", "<x>\n", "ไทย")
long_texts = st.lists(
    st.tuples(st.one_of(st.sampled_from(RUNS), hostile_text), st.integers(1, 900)), min_size=1, max_size=5
).map(lambda runs: "".join(text * times for text, times in runs)[:6_000])


@settings(max_examples=60, deadline=None)
@given(long_texts)
def test_long_texts_are_cut_without_changing_an_id(text: str) -> None:
    """Encoding in pieces equals encoding whole, runs of one character among the texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG_TEXT", 700)
        patch.setattr(module, "CUT_CONTEXT", 150)
        encoded = default.encode_documents([text, "x"])
    whole = stock.encode(text, add_special_tokens=False).ids
    assert encoded.ids.tolist() == [*whole, 0, *stock.encode("x", add_special_tokens=False).ids, 0]
    assert encoded.lengths.tolist() == [len(whole) + 1, 2]
    assert not encoded.lost.any()


@pytest.mark.parametrize(
    "unit", ["It was the best of times.\n", "7", "a", "漢字好学", "/+", " ", "\n", "ไทย", "e\u0301"]
)
def test_long_texts_are_really_cut(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Books, and endless digits, letters and blanks, go to the library in bounded pieces."""
    monkeypatch.setattr(module, "LONG_TEXT", 20_000)
    text = unit * (100_000 // len(unit))
    pieces = list(default._cut(text))
    assert max(map(len, pieces)) <= 20_000
    assert "".join(pieces) == text
    assert default.encode_batch([text])[0].tolist() == stock.encode(text, add_special_tokens=False).ids


def test_a_tokenizer_that_looks_at_the_whole_text_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prefix put before each text would stand before each piece: so there is one piece."""
    monkeypatch.setattr(module, "LONG_TEXT", 5_000)
    made = unigram_tokenizer()
    loaded = load_tokenizer(save_tokenizer(tmp_path / "t", made, {"eos_token": "</s>"}))
    text = "a b\nab " * 2_000
    assert list(loaded._cut(text)) == [text]
    assert loaded.encode_batch([text])[0].tolist() == made.encode(text, add_special_tokens=False).ids


def test_real_text_equals_the_library(test_data: Path) -> None:
    """On real documents in twenty languages the ids are those of the stock library, and nothing is lost."""
    with (test_data / "4_langid/sentences.jsonl.zst").open("rb") as stream:
        lines = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(stream).read().splitlines()
    texts = [json.loads(line)["text"] for line in lines[::15]]
    encoded = default.encode_documents(texts)
    expected = [e.ids for e in stock.encode_batch(texts, add_special_tokens=False)]
    assert encoded.ids.tolist() == [i for ids in expected for i in [*ids, 0]]
    assert not encoded.lost.any()


def test_golden_ids_are_those_of_the_probes() -> None:
    """One row of ids for each frozen text, and they decode to it."""
    assert len(default.golden_ids) == len(PROBES)
    for text, ids in zip(PROBES, default.golden_ids, strict=True):
        assert default.decode(ids) == text


def test_the_probes_are_frozen() -> None:
    """Another list is another format of the token file."""
    assert len(set(PROBES)) == len(PROBES) == 62
    assert hashlib.sha256(json.dumps(PROBES).encode()).hexdigest() == (
        "13d60ba5bc08f2c2e771a8ce4c36b2344e2c0985538b3eb3c30fba8c095f8af5"
    )


FORK = """
import os, sys
from tokenization.tokenizer import load_tokenizer
tokenizer = load_tokenizer()
tokenizer.encode_batch(["warm up the pool " * 50] * 200)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        ids, _ = tokenizer.encode_batch(["text of a child " * 20] * 300)
        os._exit(0 if len(ids) > 1000 else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(max(codes))
"""


def test_a_fork_after_use_neither_hangs_nor_warns() -> None:
    """Encode in the parent, fork three workers, encode there."""
    command = [sys.executable, "-W", "error", "-c", FORK]
    environment = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
