"""Tokenizers as a trainer loads them: by the library for their kind, with all that their files switch on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.known_tokenizers import KNOWN, known
from tests.parity_variants import EOS, PAD, save, small, twin
from tests.token_files import small_bpe
from tokenization.errors import TokenizerError
from tokenization.parity.check import ParityReport, check_tokenizer
from tokenization.parity.tally import Text
from tokenization.parity.trainers import MissingLibraryError, load_stock, load_trainer
from tokenization.tokenizer import load_tokenizer

LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def test_the_file_keeps_its_settings(tmp_path: Path) -> None:
    """What is put around a text and what is cut off stays for `loaded`, and never is in `plain`."""
    tokenizer = load_stock(twin(tmp_path, "double_bos"))
    cut = load_stock(twin(tmp_path, "truncation"))

    assert tokenizer.loaded(["a"])[0][:2] == (1, 1)
    assert tokenizer.plain(["a"])[0] == tokenizer.loaded(["a"])[0][2:]
    assert len(cut.loaded(["word " * 99])[0]) == 40
    assert len(cut.plain(["word " * 99])[0]) > 40
    assert tokenizer.eos_id == 0


def test_special_tokens_are_read_as_a_trainer_does(tmp_path: Path) -> None:
    """`loaded` finds them in text, `plain` does not."""
    tokenizer = load_stock(small(tmp_path)[0])

    assert 0 in tokenizer.loaded([f"a{EOS}b"])[0]
    assert not tokenizer.special_ids.intersection(tokenizer.plain([f"a{EOS}b"])[0])
    assert set(tokenizer.special_names) == {EOS, PAD}


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "no tokenizer"), ({}, "expected tokenizer.json"), ({"tokenizer.json": "{"}, "JSON")],
)
def test_what_is_no_tokenizer(tmp_path: Path, content: dict[str, str] | None, expected: str) -> None:
    """Nothing there, an empty folder, a damaged file: one message, that says what was expected."""
    folder = tmp_path / "folder"
    if content is not None:
        folder.mkdir()
        for name, text in content.items():
            (folder / name).write_text(text, encoding="utf-8")

    with pytest.raises(TokenizerError, match=expected):
        load_stock(folder)


def test_a_library_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of its own: without a trainer's tokenizer it is no reason to stop."""
    monkeypatch.setattr("tokenization.parity.trainers.find_spec", lambda name: None)
    (tmp_path / "tokenizer.model").write_bytes(b"\x0a\x0e\x0a\x05<unk>")

    with pytest.raises(MissingLibraryError, match="sentencepiece"):
        load_stock(tmp_path)


def test_a_damaged_sentencepiece_model(tmp_path: Path) -> None:
    """Bytes that are no model."""
    (tmp_path / "tokenizer.model").write_bytes(b"\xff\xfe\x00 no model")

    with pytest.raises(TokenizerError, match="cannot be read as a SentencePiece model"):
        load_stock(tmp_path / "tokenizer.model")


def test_embedding_rows(tmp_path: Path) -> None:
    """config.json beside the tokenizer, also where the text model's part says it."""
    path = save(tmp_path, json.loads(small_bpe()))
    for config in ({"vocab_size": 608}, {"text_config": {"vocab_size": 608}}):
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert load_trainer(path).embedding_rows == 608


# -- transformers and known models: seconds each ---------------------------------------------------


@pytest.mark.slow
def test_transformers_gives_the_same(tmp_path: Path) -> None:
    """AutoTokenizer of our own folder, with what it reads in text as special tokens; and a folder it cannot load."""
    path, ours = small(tmp_path / "small")
    theirs = load_trainer(path.parent)

    assert theirs.how.startswith("transformers")
    assert check_tokenizer(ours, theirs, trainer=path.parent, own=path).equal
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"transformers .* cannot load it"):
        load_trainer(tmp_path / "bad")


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_known_tokenizers(name: str) -> None:
    """The pipeline's reading of each file has the ids of the library that the file is for."""
    path = known(name)

    report = check_tokenizer(load_tokenizer(path, eos=KNOWN[name][1]), load_trainer(path), trainer=path, own=path)

    assert report.equal, report.message()


@pytest.mark.slow
def test_a_document_that_is_nothing_but_a_symbol_of_its_model_is_named() -> None:
    """The one thing in which a SentencePiece model cannot be taken over: its blank before an added token that is all of a text."""
    path = known("mistral_v3")

    documents = [[Text("document d", text, None) for text in ("[REFERENCE_DOC_19] says so", "[REFERENCE_DOC_19]")]]
    report = check_tokenizer(load_tokenizer(path), load_trainer(path), documents, trainer=path, own=path)

    assert report.difference is not None
    assert report.difference.cause is not None
    assert report.difference.cause.name == "leading_token"


def as_llama(folder: Path, bos: str | None, **config: object) -> ParityReport:
    """Mistral's SentencePiece model in a folder that says it is a LlamaTokenizer."""
    model = known("mistral_v1")
    folder.mkdir(exist_ok=True)
    shutil.copyfile(model, folder / "tokenizer.model")
    (folder / "tokenizer_config.json").write_text(json.dumps({**LLAMA, **config}), encoding="utf-8")
    ours = load_tokenizer(model, eos="</s>", bos=bos)
    return check_tokenizer(ours, load_trainer(folder), trainer=folder, own=model)


@pytest.mark.slow
def test_slow_against_fast(tmp_path: Path) -> None:
    """Bug B126: transformers' class and the library of the file give the same folder other ids; that is named."""
    message = as_llama(tmp_path, "<s>", add_bos_token=True).message()

    assert "its tokenizer.model alone by sentencepiece" in message


@pytest.mark.slow
def test_a_bos_from_the_config(tmp_path: Path) -> None:
    """add_bos_token of tokenizer_config.json, and a pack without BOS."""
    checks = [problem.check for problem in as_llama(tmp_path, None, add_bos_token=True).problems]

    assert checks == ["ids", "bos"]


def test_a_blank_line_before_json(tmp_path: Path) -> None:
    """The pipeline reads it as a tokenizer.json, and so does what it is held against."""
    file = tmp_path / "tokenizer.json"
    file.write_text("\n  " + small_bpe(), encoding="utf-8")
    assert load_stock(file).how.startswith("tokenizers ")
