"""A tokenizer's files: which end-of-document token they name, and what of them makes the fingerprint."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.token_files import letter_tokenizer, save_tokenizer, small_bpe, unigram_tokenizer, word_tokenizer
from tokenization.definition import Definition
from tokenization.errors import TokenizerError
from tokenization.parity.trainers import load_trainer
from tokenization.tokenizer import DEFAULT, load_tokenizer


def test_the_end_comes_from_the_config_beside_the_file(tmp_path: Path) -> None:
    """As a string or as an added token's object; a given name goes first; special_tokens_map is read too."""
    made = unigram_tokenizer()
    for number, value in enumerate(("<s>", {"content": "<s>", "lstrip": False})):
        folder = save_tokenizer(tmp_path / str(number), made, {"eos_token": value})
        assert load_tokenizer(folder).eos == "<s>"
        assert load_tokenizer(folder / "tokenizer.json", eos="</s>").eos == "</s>"
    folder = save_tokenizer(tmp_path / "map", made, None)
    (folder / "special_tokens_map.json").write_text('{"eos_token": "</s>", "pad_token": "<s>"}', encoding="utf-8")
    loaded = load_tokenizer(folder)
    assert (loaded.eos, loaded.pad, loaded.name) == ("</s>", "<s>", "map")


def test_padding_falls_back_on_the_end(tmp_path: Path) -> None:
    """No padding token, or one that does not exist: EOS fills."""
    folder = save_tokenizer(tmp_path / "t", unigram_tokenizer(), {"eos_token": "</s>", "pad_token": "[PAD]"})
    loaded = load_tokenizer(folder)
    assert (loaded.pad, loaded.pad_id) == ("</s>", loaded.eos_id)


@pytest.mark.parametrize(
    ("config", "eos", "message"),
    [
        (None, None, r"nothing says which token ends a document.*Set eos to one of: </s>"),
        ({"eos_token": None}, None, r"nothing says which token ends a document"),
        ({"eos_token": "<|endoftext|>"}, None, r"tokenizer_config.json names '<\|endoftext\|>'.*</s>"),
        ({"eos_token": "</s>"}, "<eos>", r"eos names '<eos>' as the end.*Set eos to one of: </s>, <unk>, <s>"),
    ],
)
def test_without_an_end_the_candidates_are_named(config: Any, eos: str | None, message: str, tmp_path: Path) -> None:
    """A missing or foreign EOS is an error that names the tokens that could be meant."""
    folder = save_tokenizer(tmp_path / "t", unigram_tokenizer(), config)
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(folder, eos=eos)


def _nothing(folder: Path) -> Path:
    return folder / "gpt2"


def _nothing_in_it(folder: Path) -> Path:
    (folder / "readme.txt").write_text("x", encoding="utf-8")
    return folder


def _foreign(folder: Path) -> Path:
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "Magic"}}', encoding="utf-8")
    return folder


def _other_json(folder: Path) -> Path:
    (folder / "tokenizer.json").write_text('{"model": 5, "vocab": 6, "config": 7}', encoding="utf-8")
    return folder


def _moved(folder: Path) -> Path:
    data = json.loads(SMALL)
    data["added_tokens"].append({**data["added_tokens"][0], "id": 700, "content": "<moved>"})
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def _empty(folder: Path) -> Path:
    (folder / "tokenizer.model").write_bytes(b"\0")
    return folder


def _broken(folder: Path) -> Path:
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {', encoding="utf-8")
    return folder


def _broken_config(folder: Path) -> Path:
    save_tokenizer(folder, word_tokenizer(), None)
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    return folder


def _latin(folder: Path) -> Path:
    (folder / "tokenizer.json").write_bytes(b'{"version": "\xe9"}')
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_nothing, "no tokenizer .*gpt2.*not downloaded"),
        (_nothing_in_it, "holds no tokenizer .*found readme.txt.*expected a tokenizer.json, a SentencePiece"),
        (_empty, "tokenizer.model cannot be read as a tokenizer: it is none of a tokenizer.json, a SentencePiece"),
        (_broken, "cannot be read as a tokenizer: it is none of"),
        (_foreign, "cannot be read as a Hugging Face tokenizer.json"),
        (_other_json, "cannot be read as a tokenizer: JSON, but none of"),
        (_broken_config, "tokenizer_config.json is not valid JSON"),
        (_latin, "cannot be read as a tokenizer: it is none of"),
        (_moved, "added token '<moved>' the id 700, but the library loads it with 600"),
    ],
)
def test_what_cannot_be_loaded_is_named(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    """Each kind of wrong path or file has its own message."""
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(make(tmp_path))


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        return {key: _shuffled(inner, rng) for key, inner in items}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


SMALL = small_bpe()


def _fingerprint(folder: Path, change: Callable[[dict[str, Any]], Any], eos: str = "<|endoftext|>") -> str:
    data = json.loads(SMALL)
    changed = change(data)
    folder.mkdir(exist_ok=True)
    text = json.dumps(changed if isinstance(changed, dict) else data)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    return Definition.read(folder, eos).fingerprint()


PADDING = {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 8, "pad_id": 1}
PADDING |= {"pad_type_id": 0, "pad_token": "<|pad|>"}
POST = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
SAME: dict[str, Callable[[dict[str, Any]], Any]] = {
    "order of keys": lambda data: _shuffled(data, random.Random(5)),
    "truncation": lambda data: data.update(truncation={"max_length": 9, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}),
    "padding": lambda data: data.update(padding=PADDING),
    "post-processor": lambda data: data.update(post_processor=POST),
    "decoder": lambda data: data.update(decoder=None),
    "dropout, which is off": lambda data: data["model"].update(dropout=0.1),
    "merges as strings": lambda data: data["model"].update(merges=[" ".join(pair) for pair in data["model"]["merges"]]),
    "defaults left out": lambda data: data["model"].pop("unk_token"),
}  # fmt: skip

OTHER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "two merges changed places": lambda data: data["model"]["merges"].insert(0, data["model"]["merges"].pop()),
    "a merge left out": lambda data: data["model"]["merges"].pop(),
    "normaliser": lambda data: data.update(normalizer={"type": "NFC"}),
    "pre-tokeniser": lambda data: data["pre_tokenizer"]["pretokenizers"][1].update(add_prefix_space=True),
    "an added token": lambda data: data["added_tokens"].append({**data["added_tokens"][0], "id": 600, "content": "<x>"}),
    "an added token's flags": lambda data: data["added_tokens"][1].update(lstrip=True),
    "a token of another name": lambda data: data["model"]["vocab"].update({"unheard": data["model"]["vocab"].pop(_unmerged(data))}),
    "unknown token": lambda data: data["model"].update(unk_token="a"),
    "bytes of what is unknown": lambda data: data["model"].update(byte_fallback=True),
    "a regular expression": lambda data: data["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": r"\d+"}),
    "special flag": lambda data: data["added_tokens"][1].update(special=False),
    "merges ignored": lambda data: data["model"].update(ignore_merges=True),
}  # fmt: skip


def _unmerged(data: dict[str, Any]) -> str:
    """A token that no merge makes or needs, so that it can change its name."""
    used = {part for pair in data["model"]["merges"] for part in (*pair, "".join(pair))}
    return next(t for t in data["model"]["vocab"] if t not in used and not t.startswith("<|"))


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_id_keeps_the_fingerprint(name: str, tmp_path: Path) -> None:
    """Form and decoding are no part of it."""
    assert _fingerprint(tmp_path / "t", SAME[name]) == _fingerprint(tmp_path / "plain", lambda data: None)


@pytest.mark.parametrize("name", OTHER)
def test_what_may_change_an_id_changes_the_fingerprint(name: str, tmp_path: Path) -> None:
    """One merge is enough."""
    assert _fingerprint(tmp_path / "t", OTHER[name]) != _fingerprint(tmp_path / "plain", lambda data: None)


def test_another_end_is_another_fingerprint(tmp_path: Path) -> None:
    """The separator is part of what a trainer must know."""
    assert _fingerprint(tmp_path, lambda data: None, eos="<|pad|>") != _fingerprint(tmp_path, lambda data: None)


PLAIN = json.loads(SMALL)
MERGES = PLAIN["model"]["merges"]


def _of(folder: Path, data: dict[str, Any], eos: str = "<|endoftext|>", bos: str | None = None) -> str:
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    return Definition.read(folder / "tokenizer.json", eos, bos).fingerprint()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(MERGES) - 1), st.integers(0, len(MERGES) - 1), st.sampled_from(["swap", "remove", "move"]))
def test_any_one_merge_changes_the_fingerprint(tmp_path: Path, one: int, other: int, how: str) -> None:
    """Two changed places, one left out, one moved: each makes another tokenizer."""
    merges = [list(pair) for pair in MERGES]
    if how == "swap":
        merges[one], merges[other] = merges[other], merges[one]
    elif how == "remove":
        del merges[one]
    else:
        merges.insert(other, merges.pop(one))
    changed = _of(tmp_path, {**PLAIN, "model": {**PLAIN["model"], "merges": merges}})
    assert (changed == _of(tmp_path, PLAIN)) == (merges == MERGES)


def test_every_policy_has_its_own_fingerprint(tmp_path: Path) -> None:
    """What ends a document and what begins it, or that nothing does."""
    choices = [("<|endoftext|>", None), ("<|pad|>", None), ("<|endoftext|>", "<|pad|>"), ("<|pad|>", "<|endoftext|>")]
    assert len({_of(tmp_path, PLAIN, eos, bos) for eos, bos in choices}) == len(choices)


def test_what_begins_a_document_must_exist_and_end_none(tmp_path: Path) -> None:
    """An unknown BOS is an error that names the tokens that could be meant, and so is one that is the EOS."""
    folder = save_tokenizer(tmp_path / "t", unigram_tokenizer(), {"eos_token": "</s>", "bos_token": "<s>"})
    with pytest.raises(
        TokenizerError, match=r"bos names '<bos>'.*there is no such token. Set bos to one of: <s>, <unk>"
    ):
        load_tokenizer(folder, bos="<bos>")
    with pytest.raises(TokenizerError, match=r"bos names '</s>'.*that token ends one. Set bos to one of: <s>, <unk>\."):
        load_tokenizer(folder, bos="</s>")
    assert load_tokenizer(folder).bos is None, "what the files say of BOS must not put one"


def test_the_fingerprint_of_the_default_is_known() -> None:
    """A new default, or a library that reads it otherwise, is seen here first."""
    assert load_tokenizer().fingerprint() == "d5c7e5a5b8fc435e719a44a6eba22a6f4c4884b051d2b5104f98689b2eaa60e6"


def test_dropout_is_off(tmp_path: Path) -> None:
    """Ids with BPE dropout differ from run to run: it is meant for training, not for a corpus."""
    text = ["international organisation " * 20]
    ids = []
    for dropout in (None, 0.9):
        data = json.loads(SMALL)
        data["model"]["dropout"] = dropout
        (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
        ids.append(load_tokenizer(tmp_path, eos="<|endoftext|>").encode_batch(text)[0].tolist())
    assert ids[0] == ids[1]


def test_the_unknown_token_is_that_of_the_model(tmp_path: Path) -> None:
    """By name, by number, or none."""
    for number, (made, eos, unk_id) in enumerate(
        [(word_tokenizer(), "[SEP]", 0), (unigram_tokenizer(), "</s>", 0), (letter_tokenizer(), "</s>", None)]
    ):
        assert load_tokenizer(save_tokenizer(tmp_path / str(number), made, None), eos=eos).unk_id == unk_id


def test_the_library_is_not_changed_behind_our_back() -> None:
    """Loading leaves the file's own tokenizer as it is: only our copy treats special text as text."""
    stock = Tokenizer.from_file(str(DEFAULT / "tokenizer.json"))
    load_tokenizer()
    assert stock.encode("<|endoftext|>").ids == [0]


@pytest.mark.parametrize("largest", [2**22, 2**32 - 1])
def test_an_id_of_billions_is_refused(largest: int, tmp_path: Path) -> None:
    """At once, by the pipeline and for a trainer: the library alone would look at every id below it."""
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "[E]": 1, "a": largest}, "unk_token": "[UNK]"}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"added_tokens": [], "pre_tokenizer": None, "decoder": None, "model": model}))
    with pytest.raises(TokenizerError, match=f"3 tokens with ids up to {largest:,}: the largest id must be below"):
        Definition.read(file, "[E]")
    with pytest.raises(TokenizerError, match="the largest id must be below"):
        load_trainer(file)
