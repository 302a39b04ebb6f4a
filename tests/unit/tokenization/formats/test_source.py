"""A tokenizer is found by what its files hold, and what is said beside them counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from tests.token_files import small_bpe
from tests.tokenizer_models import RANKS, RECIPE, model, write_ranks
from tokenization.errors import TokenizerError
from tokenization.formats import source as formats
from tokenization.formats.source import read_source
from tokenization.parity.trainers import load_trainer
from tokenization.tokenizer import load_tokenizer

SMALL = json.loads(small_bpe())


def _json(folder: Path, name: str, data: Any) -> Path:
    (folder / name).write_text(json.dumps(data), encoding="utf-8")
    return folder / name


def _gpt2(folder: Path, vocabulary: str = "vocab.json", merges: str = "merges.txt", **config: Any) -> Path:
    """GPT-2's two files with the small vocabulary of ours."""
    folder.mkdir(exist_ok=True)
    _json(folder, vocabulary, SMALL["model"]["vocab"])
    lines = "".join(f"{left} {right}\n" for left, right in SMALL["model"]["merges"])
    (folder / merges).write_text("#version: 0.2\n" + lines, encoding="utf-8")
    if config:
        _json(folder, "tokenizer_config.json", config)
    return folder


def test_the_first_kind_in_a_folder_is_taken(tmp_path: Path) -> None:
    """tokenizer.json, SentencePiece, GPT-2's files, tiktoken, tekken: each is found when those before it are gone."""
    _json(tmp_path, "tokenizer.json", SMALL)
    (tmp_path / "tokenizer.model").write_bytes(model("bpe with bytes"))
    _gpt2(tmp_path, tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>")
    write_ranks(tmp_path / "t.tiktoken", RANKS)
    found = []
    for name in ("tokenizer.json", "tokenizer.model", "vocab.json", "t.tiktoken"):
        source = read_source(tmp_path)
        assert source.file.name == name
        found.append(source.kind)
        (tmp_path / name).unlink()
    assert found == ["tokenizer.json", "SentencePiece", "vocab.json", "tiktoken"]


def test_kinds_are_told_by_content(tmp_path: Path) -> None:
    """Llama 3's tokenizer.model holds ranks; a model may have any name."""
    assert read_source(write_ranks(tmp_path / "tokenizer.model", RANKS)).kind == "tiktoken"
    (tmp_path / "weights.v3").write_bytes(model("bpe with bytes"))
    assert read_source(tmp_path / "weights.v3").kind == "SentencePiece"
    assert load_tokenizer(tmp_path / "tokenizer.model").name == tmp_path.name


def test_several_of_a_kind_are_ambiguous(tmp_path: Path) -> None:
    """Which one is meant must be said."""
    for name in ("a.model", "b.model"):
        (tmp_path / name).write_bytes(model("bpe with bytes"))
    with pytest.raises(TokenizerError, match=r"holds several tokenizers \(a.model, b.model\): give the path of one"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_two_files_equal_one(names: tuple[str, str], tmp_path: Path) -> None:
    """Vocabulary and merges, read as the class beside them does, give the ids of the tokenizer.json."""
    folder = _gpt2(tmp_path, *names, tokenizer_class="GPT2TokenizerFast", eos_token="<|endoftext|>")
    one = {
        **SMALL,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    }
    whole = Tokenizer.from_str(json.dumps(one))
    texts = ["Don't stop: 2026\n\n  ok", "漢字 and <|endoftext|>", ""]
    whole.encode_special_tokens = True
    expected = [index for text in texts for index in whole.encode(text).ids]
    for path in (folder, folder / names[0]):
        loaded = load_tokenizer(path)
        assert loaded.encode_batch(texts)[0].tolist() == expected
        assert loaded.eos_id == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "nothing in tokenizer_config.json says how text is split.*Name one of GPT2Tokenizer"),
        ({"tokenizer_class": "MagicTokenizer"}, "tokenizer_class 'MagicTokenizer' in tokenizer_config.json says how"),
    ],
)
def test_two_files_do_not_say_how_text_is_split(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Qwen's look like GPT-2's: without a class that is known, nothing is guessed."""
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(_gpt2(tmp_path, **config))


def test_wrong_merges_are_named(tmp_path: Path) -> None:
    """A merge of what are no tokens, or a vocabulary without bytes."""
    folder = _gpt2(tmp_path, tokenizer_class="GPT2Tokenizer")
    (folder / "merges.txt").write_text("a nothing\n", encoding="utf-8")
    with pytest.raises(TokenizerError, match="the merge 'a nothing' beside it is not two tokens that make a token"):
        load_tokenizer(folder)
    (folder / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(TokenizerError, match="the merges beside it are not UTF-8"):
        load_tokenizer(folder)
    (folder / "merges.txt").write_text("", encoding="utf-8")
    _json(folder, "vocab.json", {"a": 0})
    with pytest.raises(TokenizerError, match="without a token for 255 of 256 bytes"):
        load_tokenizer(folder)


def test_tokens_that_were_added_later_count(tmp_path: Path) -> None:
    """added_tokens.json and added_tokens_decoder beside a model: the largest id counts them, and text finds the plain ones."""
    (tmp_path / "tokenizer.model").write_bytes(model("bpe with bytes"))
    size = load_tokenizer(tmp_path).vocab_size
    _json(tmp_path, "added_tokens.json", {"<pad>": size, "</s>": 2})
    decoder = {str(size + 1): {"content": "<call>", "special": False, "normalized": False}}
    _json(tmp_path, "tokenizer_config.json", {"added_tokens_decoder": decoder, "pad_token": "<pad>"})
    loaded = load_tokenizer(tmp_path)
    assert (loaded.vocab_size, loaded.max_id, loaded.pad_id) == (size + 2, size + 1, size)
    ids = loaded.encode_batch(["a <call> b <pad>"])[0]
    assert (ids == size + 1).sum() == 1
    assert not (ids == size).any()


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({"</s>": 7}, "token '</s>' has id 2, but the files beside it say 7"),
        ({"<new>": 7}, "give the id of one of its tokens to an added one"),
        ({"<new>": 5_000}, "the library loads it with"),
    ],
)
def test_added_tokens_of_another_tokenizer_are_refused(added: dict[str, int], message: str, tmp_path: Path) -> None:
    """Ids that do not fit are a sign of mixed-up files."""
    (tmp_path / "tokenizer.model").write_bytes(model("bpe with bytes"))
    _json(tmp_path, "added_tokens.json", added)
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(tmp_path)


def test_a_tokenizer_json_alone_decides_its_tokens(tmp_path: Path) -> None:
    """What lies beside a tokenizer.json names special tokens, and adds none."""
    _json(tmp_path, "tokenizer.json", SMALL)
    _json(tmp_path, "added_tokens.json", {"<new>": 600})
    _json(tmp_path, "special_tokens_map.json", {"eos_token": "<|pad|>", "pad_token": {"content": "<|endoftext|>"}})
    loaded = load_tokenizer(tmp_path)
    assert (loaded.eos, loaded.pad, loaded.max_id) == ("<|pad|>", "<|endoftext|>", 599)


def test_a_conversion_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is kept, and made anew when the file has another content."""
    calls = []
    own = formats._sentencepiece
    monkeypatch.setattr(
        formats, "_sentencepiece", lambda raw, none, where: calls.append(len(raw)) or own(raw, none, where)
    )
    (tmp_path / "t.model").write_bytes(model("bpe with bytes"))
    assert load_tokenizer(tmp_path).fingerprint() == load_tokenizer(tmp_path).fingerprint()
    assert len(calls) == 1
    (tmp_path / "t.model").write_bytes(model("bpe without bytes"))
    load_tokenizer(tmp_path)
    assert len(calls) == 2


def test_a_model_and_its_tokenizer_json_are_one(tmp_path: Path) -> None:
    """The definition that a model is read as, saved and loaded, has the same fingerprint and the same ids."""
    for number, name in enumerate(("bpe with symbols", "unigram with bytes", "unigram with rules")):
        (tmp_path / f"{number}.model").write_bytes(model(name))
        (tmp_path / str(number)).mkdir()
        source = read_source(tmp_path / f"{number}.model")
        (tmp_path / str(number) / "tokenizer.json").write_text(source.text, encoding="utf-8")
        one, other = load_tokenizer(source.file), load_tokenizer(tmp_path / str(number), eos="</s>")
        assert one.fingerprint() == other.fingerprint()
        assert one.golden_ids == other.golden_ids


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(SMALL).encode("utf-16"),
        *(json.dumps({**SMALL, "added_tokens": added}).encode() for added in (5, [5], ["content"], [{"content": "x"}])),
    ],
)
def test_a_damaged_tokenizer_json_is_refused(raw: bytes, tmp_path: Path) -> None:
    """Whatever stands in it, the answer is an error of ours that names the file."""
    file = tmp_path / "tokenizer.json"
    file.write_bytes(raw)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json cannot be read as a"):
        load_tokenizer(file, eos="<|endoftext|>")


@pytest.mark.parametrize("key", ["like", "eos", "bos", "pad"])
def test_names_beside_ranks_are_texts(key: str, tmp_path: Path) -> None:
    """A list where a name must stand is named, by whoever reads the file."""
    file = write_ranks(tmp_path / "t.tiktoken", RANKS, {**RECIPE, key: ["x"]})
    for load in (load_tokenizer, load_trainer):
        with pytest.raises(TokenizerError, match=f"{key} must be a name, found"):
            load(file)


def test_ids_of_added_tokens_are_digits(tmp_path: Path) -> None:
    """A superscript two is a digit to Python, and no number."""
    file = write_ranks(tmp_path / "t.tiktoken", RANKS, RECIPE)
    _json(tmp_path, "tokenizer_config.json", {"added_tokens_decoder": {"\u00b2": {"content": "<x>"}}})
    assert "<x>" not in load_tokenizer(file).decode(range(len(RANKS)))
