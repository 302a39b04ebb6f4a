"""The pipeline's tokenizer against the trainer's: what is a difference, why, and what else must hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parity_variants import EOS, PAD, save, small, twin
from tests.token_files import letter_tokenizer, small_bpe, unigram_tokenizer, word_tokenizer
from tokenization.errors import TokenizerError
from tokenization.parity.check import ParityReport, check_tokenizer
from tokenization.parity.limits import Limits
from tokenization.parity.tally import Text
from tokenization.parity.trainers import load_stock
from tokenization.tokenizer import Tokenizer, load_tokenizer

DOCUMENTS = [
    [Text("document a", "Hello World! " * 30, "eng_Latn"), Text("document b", "Ａ１ ﬁne cafe\u0301  x", None)],
    [Text("document c", f"says {EOS} in the text", "eng_Latn")],
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tokenizer]:
    return small(tmp_path_factory.mktemp("ours"))


@pytest.fixture(autouse=True)
def _short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frozen probes alone: the other texts are for libraries, and these tests are about causes."""
    from tokenization.probes import PROBES

    monkeypatch.setattr("tokenization.parity.check.trial_texts", lambda names: list(PROBES))


def against(
    pair: tuple[Path, Tokenizer], path: Path, *, asked: bool = True, ours: Tokenizer | None = None
) -> ParityReport:
    """The small tokenizer against another file, as the trainer's or as the library's reading of our own."""
    own, tokenizer = pair
    trainer = path if asked else None
    return check_tokenizer(ours or tokenizer, load_stock(path), DOCUMENTS, trainer=trainer, own=own)


@pytest.mark.parametrize("name", ["padding", "eos"])
def test_equal(pair: tuple[Path, Tokenizer], tmp_path: Path, name: str) -> None:
    """Padding depends on the batch; an EOS behind every text is what the pack puts there too."""
    report = against(pair, twin(tmp_path, name))

    assert report.equal, report.message()
    report.raise_if_different()
    assert report.documents["documents"] == 3
    assert report.documents["different"] == 0
    assert report.probes["special_text"] > 0, "text that spells special tokens is read as such by the trainer's"
    assert json.loads(json.dumps(report.to_json()))["equal"] is True


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lower_case", "the trainer's tokenizer lower-cases text"),
        ("nfc", "composes characters (NFC)"),
        ("nfkc", "folds widths and ligatures (NFKC)"),
        ("strip", "drops blanks at both ends"),
        ("prefix_space", "puts a blank before every text (add_prefix_space"),
        ("truncation", "cuts every text after 40 tokens"),
        ("merges", "other merges: merge 40 is 'Ġ o' here and 'i on' with the trainer"),
        ("shifted", "ids moved by +3"),
        ("renumbered", "'st' is 301 here and 302 with the trainer"),
    ],
)
def test_a_cause_is_named(pair: tuple[Path, Tokenizer], tmp_path: Path, name: str, said: str) -> None:
    """What differs in the trainer's file is what the message says, with the text, the token and both ids."""
    report = against(pair, twin(tmp_path, name))

    assert not report.equal
    assert report.problems[0].check == "ids"
    message = report.message()
    assert said in message
    assert report.difference is not None
    assert f"token {report.difference.token} is" in message
    assert message.isprintable()
    with pytest.raises(TokenizerError, match="Likely cause"):
        report.raise_if_different()


@pytest.mark.parametrize("name", ["lower_case", "nfkc", "prefix_space"])
def test_the_other_way_round(pair: tuple[Path, Tokenizer], tmp_path: Path, name: str) -> None:
    """The pipeline has it and the trainer has not: said so."""
    ours = load_tokenizer(twin(tmp_path, name), fast=False)

    message = against(pair, pair[0], ours=ours).message()

    assert "the pipeline's tokenizer" in message
    assert "the trainer's does not" in message


def test_an_added_token_is_a_difference(pair: tuple[Path, Tokenizer], tmp_path: Path) -> None:
    """An added token that only one side has, in text: no special token, so it is one token there and several here."""
    theirs = load_stock(twin(tmp_path, "added"))
    documents = [[Text("document d", "use <tool>word here", None)]]

    report = check_tokenizer(pair[1], theirs, documents, trainer=tmp_path, own=pair[0])

    assert not report.equal
    assert "document d" in report.message()


@pytest.mark.parametrize(
    ("name", "check", "said"),
    [
        ("bos", "bos", f"Set pack.bos to '{PAD}'"),
        ("double_bos", "bos", "puts its BOS 2 times before every text (ids [1, 1])"),
        ("double_eos", "eos", "ends every text with"),
    ],
)
def test_what_is_put_around_texts(
    pair: tuple[Path, Tokenizer], tmp_path: Path, name: str, check: str, said: str
) -> None:
    """No id of the text differs, and the documents would begin or end otherwise: the trainer's is a problem, named."""
    report = against(pair, twin(tmp_path, name))

    assert [problem.check for problem in report.problems] == [check]
    assert said in report.message()


@pytest.mark.parametrize("name", ["bos", "double_bos", "double_eos", "truncation"])
def test_our_own_file_may_say_what_we_switch_off(pair: tuple[Path, Tokenizer], tmp_path: Path, name: str) -> None:
    """Without a trainer's tokenizer, what the file itself puts around texts or cuts off is said, and is no difference."""
    report = against(pair, twin(tmp_path, name), asked=False)

    assert report.equal, report.message()
    assert any("the tokenizer's own file" in note for note in report.notes)


def test_one_bos_for_each_document(tmp_path: Path) -> None:
    """Bug B128: the pack puts a BOS and the trainer's tokenizer the same one: equal, and each document has one."""
    path = twin(tmp_path, "bos")
    ours = load_tokenizer(path, bos=PAD, fast=False)
    documents = [[Text("document a", f"{PAD} begins it, {PAD}", None), Text("document b", "plain", None)]]

    report = check_tokenizer(ours, load_stock(path), documents, trainer=path, own=path)

    assert report.equal, report.message()
    assert report.documents["tokens"] == len(ours.encode_documents([one.text for one in documents[0]]).ids)


def test_the_trainers_end_of_text(pair: tuple[Path, Tokenizer], tmp_path: Path) -> None:
    """Bug B130: the trainer ends a text with another token."""
    path = save(tmp_path / "other", json.loads(small_bpe()), {"eos_token": PAD})

    report = against(pair, path)

    assert [problem.check for problem in report.problems] == ["eos"]
    assert "the trainer's end of text is id 1" in report.message()


def test_ids_outside_the_embedding(pair: tuple[Path, Tokenizer], tmp_path: Path) -> None:
    """Bug B131: added tokens count; the limit is the embedding's rows, given or as config.json says."""
    path = twin(tmp_path, "added")
    ours = load_tokenizer(path, fast=False)
    theirs = load_stock(path)

    equal = check_tokenizer(ours, theirs, trainer=path, own=path, limits=Limits(embedding_rows=601))
    small_embedding = check_tokenizer(ours, theirs, trainer=path, own=path, limits=Limits(embedding_rows=600))
    (path.parent / "config.json").write_text('{"vocab_size": 600}', encoding="utf-8")
    from tokenization.parity.trainers import load_trainer

    by_config = check_tokenizer(ours, load_trainer(path), trainer=path, own=path)

    assert equal.equal, equal.message()
    for report in (small_embedding, by_config):
        assert [problem.check for problem in report.problems] == ["embedding"]
        assert "at least 601 rows" in report.message()


def test_ids_that_the_trainer_does_not_know(pair: tuple[Path, Tokenizer], tmp_path: Path) -> None:
    """An added token that occurs in a document, and that the trainer's vocabulary lacks."""
    ours = load_tokenizer(twin(tmp_path, "added"), fast=False)
    documents = [[Text("document d", "use <tool>", None)]]

    report = check_tokenizer(ours, load_stock(pair[0]), documents, trainer=pair[0], own=pair[0])

    assert {problem.check for problem in report.problems} == {"ids", "vocabulary"}
    assert "id 600 occurs, and the trainer's largest is 599" in report.message()


def test_unknown_tokens(tmp_path: Path) -> None:
    """Their share over all documents has a limit; the worst document and each language are named."""
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path, eos="[SEP]", fast=False)
    documents = [[Text("document a", "a b " * 50, "eng_Latn"), Text("document b", "z " * 9 + "a", "deu_Latn")]]

    report = check_tokenizer(ours, load_stock(tmp_path), documents, own=tmp_path)
    wide = Limits(max_unk_share=0.5, max_lost_share=0.5)
    allowed = check_tokenizer(ours, load_stock(tmp_path), documents, own=tmp_path, limits=wide)

    assert [problem.check for problem in report.problems] == ["unknown", "lost"]
    assert "most of all document b" in report.message()
    assert report.documents["unknown"] == 9
    assert report.languages["deu_Latn"]["unk_share"] == pytest.approx(9 / 11)
    assert report.languages["eng_Latn"]["unknown"] == 0
    assert allowed.equal, allowed.message()
    assert any("deu_Latn 81.82%" in note for note in allowed.notes), allowed.notes


def test_words_of_special_tokens_stay_text(tmp_path: Path) -> None:
    """Models that look up whole words find [SEP] whatever they are told: ours hide it, and that is no difference."""
    for name, tokenizer, eos in (("w", word_tokenizer(), "[SEP]"), ("u", unigram_tokenizer(), "</s>")):
        (tmp_path / name).mkdir()
        tokenizer.save(str(tmp_path / name / "tokenizer.json"))
        ours = load_tokenizer(tmp_path / name, eos=eos, fast=False)
        documents = [[Text("document a", f"a b {eos} a", None)]]

        report = check_tokenizer(
            ours, load_stock(tmp_path / name), documents, own=tmp_path / name, limits=Limits(1.0, 1.0)
        )

        assert report.equal, report.message()


def test_lost_characters(tmp_path: Path) -> None:
    """Bug B137: a BPE without unknown token drops what it has no letter for, and no share of unknown tokens sees it."""
    letter_tokenizer().save(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path, eos="</s>", fast=False)

    report = check_tokenizer(ours, load_stock(tmp_path), [[Text("document a", "zebra 鱼🐟 ok", None)]], own=tmp_path)

    assert [problem.check for problem in report.problems] == ["lost"]
    assert report.documents["unk_share"] == 0
    assert report.documents["lost"] == 2
    assert report.documents["not_given_back"][0]["decoded"] == "zebra  ok"


def test_a_wrong_engine_is_named(pair: tuple[Path, Tokenizer], tmp_path: Path) -> None:
    """Ours differs and its stock library does not: the fast library is at fault."""
    path, ours = pair
    report = check_tokenizer(
        load_tokenizer(twin(tmp_path, "renumbered"), fast=False),
        load_stock(path),
        trainer=path,
        own=path,
        stock=lambda: ours,
    )

    assert "Set pack.engine to stock" in report.message()


def test_without_any_library(pair: tuple[Path, Tokenizer]) -> None:
    """Nothing to compare with: said, and everything else is checked all the same."""
    report = check_tokenizer(pair[1], None, DOCUMENTS, own=pair[0])

    assert report.equal
    assert report.reference is None
    assert report.documents["documents"] == 3
    assert "no library" in report.notes[0]


def test_borders_are_counted(pair: tuple[Path, Tokenizer], monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that does not end with its EOS is a problem of its own."""
    ours = pair[1]
    right = ours.encode_documents

    def wrong(texts: list[str]) -> object:
        found = right(texts)
        return replace(found, ids=found.ids[::-1].copy())

    monkeypatch.setattr(ours, "encode_documents", wrong)

    report = check_tokenizer(ours, None, DOCUMENTS, own=pair[0])

    assert "borders" in {problem.check for problem in report.problems}
