"""Faults of other tokenizer chains (bug log, tokenize), and what becomes of the same inputs here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError
from curation.filters.token_fit import TokenFit, TokenFitConfig
from curation.pack_config import PackConfig
from curation.parity import check_parity
from curation.shards import shards_of
from tests.fakes import batch_for, make_run
from tests.known_tokenizers import known
from tests.parity_variants import EOS, PAD, save, small, twin
from tests.token_files import letter_tokenizer, small_bpe, small_header
from tokenization.parity import check_golden
from tokenization.parity.check import check_tokenizer
from tokenization.parity.limits import Limits
from tokenization.parity.tally import Text
from tokenization.parity.trainers import load_stock
from tokenization.probes import PROBES
from tokenization.tokenizer import load_tokenizer


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def texts_of(bugcases: Path, name: str) -> list[str]:
    """The texts of a file of cases."""
    return [json.loads(line)["text"] for line in (bugcases / name).read_text(encoding="utf-8").splitlines()]


def check(folder: Path, texts: Sequence[str], **settings: Any) -> dict[str, Any]:
    """The check before packing, on a run of these documents."""
    run = make_run(folder / "run", [texts])
    return check_parity(shards_of(run), None, PackConfig(**{"engine": "stock", **settings}), folder / "parity.json")


@pytest.mark.parametrize("name", ["prefix_space", "strip", "added", "nfc"])
def test_b126_another_reading_of_the_same_file(tmp_path: Path, name: str) -> None:
    """Added tokens before a word, blanks before and behind, line ends after them: any difference stops the run."""
    path, _ = small(tmp_path / "ours")
    texts = [
        "<tool>word",
        "<tool> word",
        " <tool>\nword",
        "  two  blanks ",
        f"{EOS}word",
        f"{EOS} \nword",
        "cafe\u0301",
    ]

    with pytest.raises(ConfigError, match="Likely cause"):
        check(tmp_path, texts, tokenizer=str(path), trainer=str(twin(tmp_path, name)))


def test_b128_one_bos_for_each_document(tmp_path: Path) -> None:
    """Text that begins with the BOS string, a tokenizer that adds BOS, and one that adds it twice."""
    texts = [f"{PAD} and more", f"{PAD}{PAD}", "plain"]
    path = twin(tmp_path, "bos")
    ours = load_tokenizer(path, bos=PAD, fast=False)
    ids = ours.encode_documents(texts).ids.tolist()

    assert ids.count(1) == len(texts)
    assert check(tmp_path, texts, tokenizer=str(path), bos=PAD, trainer=str(path))["equal"]
    with pytest.raises(ConfigError, match=r"puts its BOS 2 times before every text \(ids \[1, 1\]\)"):
        check(tmp_path / "double", texts, tokenizer=str(path), bos=PAD, trainer=str(twin(tmp_path, "double_bos")))
    with pytest.raises(ConfigError, match=r"Set pack\.bos to"):
        check(tmp_path / "none", texts, tokenizer=str(path), trainer=str(path))


def test_b130_the_end_of_another_model(tmp_path: Path) -> None:
    """EOS must be in the vocabulary, and the trainer's."""
    path, _ = small(tmp_path / "ours")

    with pytest.raises(ConfigError, match=r"'</s>' as the end of a document, but there is no such token"):
        check(tmp_path / "a", ["text"], tokenizer=str(path), eos="</s>")
    with pytest.raises(ConfigError, match=r"the trainer's end of text is id 0 .*Set pack\.eos to that token"):
        check(tmp_path / "b", ["text"], tokenizer=str(path), eos=PAD, trainer=str(path))


def test_b131_added_tokens_count(tmp_path: Path) -> None:
    """Text that uses the last added token, and an embedding with as many rows as the vocabulary without it."""
    path = twin(tmp_path, "added")
    ours = load_tokenizer(path, fast=False)
    documents = [[Text("document a", "use <tool>", None)]]

    report = check_tokenizer(
        ours, load_stock(path), documents, trainer=path, own=path, limits=Limits(embedding_rows=600)
    )

    assert ours.max_id == 600
    assert ours.vocab_size == 601
    assert "600" in report.message()
    assert "Give it at least 601 rows" in report.message()


def test_b135_what_does_not_come_back_is_counted_and_shown(tmp_path: Path, bugcases: Path) -> None:
    """Widths, circled digits, blanks: with a normaliser documents are counted and shown; with bytes alone none is."""
    texts = texts_of(bugcases, "t_round.jsonl")

    exact = check(tmp_path / "exact", texts)
    allowed = check(tmp_path / "nfkc", texts, tokenizer=str(twin(tmp_path, "nfkc")), max_lost_share=0.5)

    assert exact["documents"]["documents_with_loss"] == 0
    assert allowed["documents"]["documents_with_loss"] >= 2
    shown = allowed["documents"]["not_given_back"]
    assert shown[0]["text"] != shown[0]["decoded"]
    assert any("do not come back" in note for note in allowed["notes"])
    with pytest.raises(ConfigError, match=r"raise pack\.max_lost_share"):
        check(tmp_path / "refused", texts, tokenizer=str(twin(tmp_path, "nfkc")))


def test_b137_characters_that_vanish(tmp_path: Path, bugcases: Path) -> None:
    """No token is unknown, and letters are gone: the check before packing fails, and the filter names the document."""
    texts = texts_of(bugcases, "t_rare.jsonl")
    letter_tokenizer("abcdefghijklmnopqstuvwxy ").save(str(tmp_path / "letters.json"))
    settings = {"tokenizer": str(tmp_path / "letters.json"), "eos": "</s>"}

    with pytest.raises(ConfigError, match=r"raise pack\.max_lost_share"):
        check(tmp_path, texts, **settings)
    report = json.loads((tmp_path / "parity.json").read_text(encoding="utf-8"))
    assert report["documents"]["unk_share"] == 0
    assert report["documents"]["lost"] >= len("zr鱼🐟") + len(texts[1].replace(" ", ""))

    step = TokenFit(TokenFitConfig(**settings, min_tokens=1))
    scores = step.score(batch_for(step, texts))
    assert scores.column("lost").to_pylist()[:2] == [4, 7]
    assert scores.column("unknown_share").to_pylist()[0] == 0
    assert step.decide(scores).reason_array(list(step.reasons)).to_pylist()[1] == "token_fit.lost"


def test_b138_bytes_for_chinese(tmp_path: Path, bugcases: Path) -> None:
    """GPT-2 on Chinese: nothing is unknown, every character is two or three tokens, and a limit by language sees it."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    source = known("gpt2")
    shutil.copyfile(source / "encoder.json", folder / "encoder.json")
    shutil.copyfile(source / "vocab.bpe", folder / "vocab.bpe")
    text = "今天天气很好，我们去公园散步，孩子们在湖边放风筝，大人们坐在长椅上聊天。" * 3
    strict = TokenFit(TokenFitConfig(tokenizer=str(folder), eos=EOS, by_language={"zho": {"max_byte_share": 0.5}}))
    usual = TokenFit(TokenFitConfig(tokenizer=str(folder), eos=EOS))
    batch = batch_for(strict, [text, "plain English text for the same tokenizer " * 3], ["zho_Hans", "eng_Latn"])
    scores = strict.score(batch)

    assert scores.column("unknown_share").to_pylist() == [0, 0]
    assert scores.column("tokens_per_character").to_pylist()[0] > 1.8
    assert strict.decide(scores).reason_array(list(strict.reasons)).to_pylist() == ["token_fit.bytes", None]
    assert usual.decide(scores).keep.tolist() == [True, True], "a script that the vocabulary lacks is reported"
    assert scores.column("script_known").to_pylist() == [False, True]


def test_b139_a_library_that_gives_other_ids(tmp_path: Path) -> None:
    """The file names library, fingerprint and golden ids; another version that changes one of them is found and named."""
    path, ours = small(tmp_path)
    header = replace(small_header(), tokenizer=ours.card(), golden_texts=PROBES, golden_ids=ours.golden_ids)
    old = dict(zip(PROBES, ours.golden_ids, strict=True))
    numbers = PROBES[9]

    def upgraded(text: str) -> tuple[int, ...]:
        return (*old[text][:-1], 7) if text == numbers else old.get(text, (3,))

    assert header.tokenizer.library.startswith("tokenizers ")
    assert len(header.tokenizer.fingerprint) == 64
    assert check_golden(lambda text: load_stock(path).plain([text])[0], header).equal
    message = check_golden(upgraded, header, library="tokenizers 99.0").message()
    assert "golden text 9" in message
    assert f"made with {header.tokenizer.library}, this is tokenizers 99.0" in message


def test_b133_special_text_stays_text(tmp_path: Path, bugcases: Path) -> None:
    """The trainer's reads special tokens in such text, the pack does not: said, and no difference."""
    texts = texts_of(bugcases, "t_special.jsonl")
    path = save(tmp_path / "ours", json.loads(small_bpe()))

    report = check(tmp_path, texts, tokenizer=str(path), trainer=str(path))

    assert report["documents"]["special_text"] == 2
    assert load_tokenizer(path, fast=False).encode_documents(texts).ids.tolist().count(0) == len(texts)
