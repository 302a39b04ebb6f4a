"""The check before packing: which documents it draws, what it writes, and when it stops the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError
from curation.pack_config import PackConfig
from curation.parity import check_before, check_parity
from curation.shards import shards_of
from tests.fakes import Watched, WatchedConfig, make_run, run_steps
from tests.language_fake import FakeLanguage
from tests.parity_variants import small, twin
from tests.token_files import letter_tokenizer, word_tokenizer
from tokenization.parity.check import check_tokenizer

TEXTS = [[f"document {i} of the first shard" for i in range(40)], [f"文件 {i} 在第二" for i in range(25)]]


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small one, which loads at once."""
    return str(small(tmp_path_factory.mktemp("ours"))[0])


def check(tmp_path: Path, texts: Sequence[Sequence[str]], **settings: Any) -> dict[str, Any]:
    """The report on a run with these texts, all of them kept."""
    run = make_run(tmp_path / "run", texts)
    return check_parity(shards_of(run), None, PackConfig(**{"engine": "stock", **settings}), tmp_path / "parity.json")


def test_equal(tmp_path: Path, tokenizer: str) -> None:
    """Every document of a small run, the report on disk, and counts that a marker can hold."""
    report = check(tmp_path, TEXTS, tokenizer=tokenizer)

    assert report["equal"] is True
    assert report["kept_documents"] == report["sampled_documents"] == 65
    assert report["documents"]["different"] == 0
    assert report["summary"].startswith("equal to tokenizers ")
    assert json.loads((tmp_path / "parity.json").read_text(encoding="utf-8")) == json.loads(json.dumps(report))


def test_the_trainers_own(tmp_path: Path) -> None:
    """A trainer's file with other ids: the run stops, the message says why, and the report stays on disk."""
    path, _ = small(tmp_path / "ours")
    trainer = twin(tmp_path, "lower_case")

    with pytest.raises(ConfigError, match=r"pack\.trainer: .*Likely cause: the trainer's tokenizer lower-cases text"):
        check(tmp_path, TEXTS, tokenizer=str(path), trainer=str(trainer))

    report = json.loads((tmp_path / "parity.json").read_text(encoding="utf-8"))
    assert report["equal"] is False
    assert report["difference"]["cause"]["name"] == "lower_case"
    assert report["summary"].startswith("differs from tokenizer.json (tokenizers ")


def test_a_document_that_differs_is_named(tmp_path: Path) -> None:
    """No probe shows it, one document does: its id, the token and both ids are in the message."""
    path, _ = small(tmp_path / "ours")
    trainer = twin(tmp_path, "added")
    texts = [["plain", "use <tool> here"]]

    with pytest.raises(
        ConfigError, match=r"document d1: .* 600, .*Likely cause: only the trainer's tokenizer has token 600"
    ):
        check(tmp_path, texts, tokenizer=str(path), trainer=str(trainer))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tokenizer": "nowhere"}, r"pack\.tokenizer: no tokenizer 'nowhere'"),
        ({"trainer": "nowhere"}, r"pack\.trainer: no tokenizer 'nowhere'"),
        ({"eos": "</s>"}, r"pack\.tokenizer: .*'</s>' as the end of a document"),
    ],
)
def test_what_cannot_be_loaded(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    """Bug B130: an EOS of another model's name, a path that is not there: an error of the config, with the key."""
    with pytest.raises(ConfigError, match=said):
        check(tmp_path, TEXTS, **settings)


def test_the_limits_of_the_pack_hold(tmp_path: Path) -> None:
    """Unknown tokens and lost characters in a sample stop the run before anything is encoded."""
    word_tokenizer().save(str(tmp_path / "words.json"))
    letter_tokenizer().save(str(tmp_path / "letters.json"))

    with pytest.raises(ConfigError, match=r"raise pack\.max_unk_share"):
        check(tmp_path, TEXTS, tokenizer=str(tmp_path / "words.json"), eos="[SEP]")
    with pytest.raises(ConfigError, match=r"raise pack\.max_lost_share"):
        check(tmp_path, TEXTS, tokenizer=str(tmp_path / "letters.json"), eos="</s>")


def test_only_kept_documents_are_drawn(tmp_path: Path, tokenizer: str) -> None:
    """What the last step dropped is not packed, and not compared."""
    run = make_run(tmp_path / "run", [["short", "x" * 50], ["y" * 60, "kept"]])
    judged = run_steps(run, [Watched(WatchedConfig())])

    report = check_parity(
        judged.shards, judged.folder("watched"), PackConfig(tokenizer=tokenizer), tmp_path / "parity.json"
    )

    assert report["kept_documents"] == report["sampled_documents"] == 2
    assert report["characters"] == len("short" + "kept")


def test_the_same_documents_however_they_are_cut(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample is a function of the documents: not of shards, nor of the sizes of batches."""
    seen: list[str] = []

    def watch(ours: Any, theirs: Any, documents: Any, **settings: Any) -> Any:
        batches = list(documents)
        seen.extend(one.text for batch in batches for one in batch)
        return check_tokenizer(ours, theirs, batches, **settings)

    monkeypatch.setattr("tokenization.parity.check.check_tokenizer", watch)
    texts = [text for shard in TEXTS for text in shard]
    drawn = []
    for number, shards in enumerate(([texts], [texts[:10], texts[10:11], [], texts[11:]])):
        seen.clear()
        check(tmp_path / str(number), shards, tokenizer=tokenizer, parity_documents=7)
        drawn.append(sorted(seen))

    assert len(drawn[0]) == 7
    assert drawn[0] == drawn[1]


def test_a_sample_is_bounded(tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In documents, in bytes of all together, and in characters of one."""
    monkeypatch.setattr("curation.parity.MOST_CHARACTERS", 100)
    monkeypatch.setattr("curation.parity.MOST_BYTES", 1_000)

    report = check(
        tmp_path,
        [["long " * 1_000] * 3, ["a" * 40 + str(i) for i in range(60)]],
        tokenizer=tokenizer,
        parity_documents=50,
    )
    none = check(tmp_path / "none", TEXTS, tokenizer=tokenizer, parity_documents=0)

    assert report["kept_documents"] == 63
    assert 0 < report["sampled_documents"] < 30
    assert report["documents"]["bytes"] <= 1_000
    assert none["sampled_documents"] == 0
    assert none["probe_texts"] > 40


def test_counts_by_language(tmp_path: Path, tokenizer: str) -> None:
    """Where a run has the step `language`, sums are by its labels; they add up to those of all."""
    texts = [["eng_Latn:0.9 a text", "no language"], ["zho_Hans:0.9 文件", "eng_Latn:0.9 another"]]
    run = make_run(tmp_path / "run", texts)
    judged = run_steps(run, [FakeLanguage(FakeLanguage.Config())])

    report = check_parity(
        judged.shards, judged.folder("language"), PackConfig(tokenizer=tokenizer), tmp_path / "parity.json"
    )

    assert {name: sums["documents"] for name, sums in report["languages"].items()} == {
        "eng_Latn": 2,
        "und": 1,
        "zho_Hans": 1,
    }
    for key in ("documents", "tokens", "characters", "bytes"):
        assert sum(sums[key] for sums in report["languages"].values()) == report["documents"][key]


def test_an_empty_run(tmp_path: Path, tokenizer: str) -> None:
    """No documents: the probes are compared all the same."""
    assert check(tmp_path, [[]], tokenizer=tokenizer)["equal"]
    assert check(tmp_path / "none", [], tokenizer=tokenizer)["sampled_documents"] == 0


def test_what_can_be_known_before_a_run_is_said_before_it(tmp_path: Path, tokenizer: str) -> None:
    """A misspelt EOS or BOS, and another tokenizer than the trainer's, need no document; equal ones pass."""
    check_before(PackConfig(tokenizer=tokenizer, trainer=tokenizer, engine="stock"))
    for wrong in ({"eos": "<nope>"}, {"bos": "<nope>"}, {"tokenizer": str(tmp_path)}):
        with pytest.raises(ConfigError, match=r"^pack\.tokenizer: "):
            check_before(PackConfig(**{"tokenizer": tokenizer, "engine": "stock", **wrong}))
    with pytest.raises(ConfigError, match=r"^pack\.trainer: .*lower-cases"):
        check_before(PackConfig(tokenizer=tokenizer, trainer=str(twin(tmp_path, "lower_case")), engine="stock"))
