"""Engines: which n-gram model reads what, that a text's sums are its own, and what is said of models that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.filters.perplexity.config import PerplexityConfig
from curation.filters.perplexity.engines import Judged, identity_in, identity_of, open_engine
from curation.filters.perplexity.neural import NeuralEngine
from curation.filters.perplexity.ngrams import NgramEngine
from curation.filters.perplexity.step import Perplexity
from quality_models.lm_judge import TextNats
from tests.lm_oracle import write_gpt2
from tests.ngram_models import write_tiny

MANY = ("Der Fluss fliesst hinter der Mühle.", "Река течёт за мельницей.", "Le moulin est au bord de la rivière.")
CHINESE = ("河边的小店上个月换了新的屋顶。", "孩子们晚上常常到桥上来看船。")


def reading(model: Any = None) -> PerplexityConfig:
    return PerplexityConfig(model=model)


def judge(engine: Any, texts: list[str], labels: list[str]) -> Judged:
    found: Judged = engine.judge(pa.array(texts, pa.large_string()), pa.array(labels, pa.string()))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of English, Chinese and many languages."""
    path = tmp_path_factory.mktemp("models")
    write_tiny(path / "any-name.bin")
    write_tiny(path / "b.bin", CHINESE, "zho")
    write_tiny(path / "c.bin", MANY, "mul", {"labels": ["deu_Latn", "rus_Cyrl", "fra_Latn"]})
    return path


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("eng_Latn", "eng"),
        ("zho_Hans", "zho"),
        ("zho_Hant", "zho"),
        ("und_Hani", "zho"),
        ("lzh_Hani", None),
        ("jpn_Jpan", None),
        ("und_Jpan", None),
        ("deu_Latn", "mul"),
        ("swa_Latn", "mul"),
        ("und_Latn", "mul"),
        ("und_Cyrl", "mul"),
        ("tha_Thai", None),
        ("und_Thai", None),
        ("und", None),
    ],
)
def test_the_model_of_a_label(folder: Path, label: str, model: str | None) -> None:
    """Its language's own; else that of many languages, if it knows the script; never one that has not seen the script."""
    engine = open_engine(reading(str(folder)))
    assert isinstance(engine, NgramEngine)
    assert engine.model_of(label) == model
    judged = judge(engine, ["The river and the mill."], [label])
    assert judged.model.tolist() == [model]
    assert (judged.tokens[0] > 0) == (model is not None)


def test_a_model_of_many_that_does_not_say_what_it_knows_reads_everything(tmp_path: Path) -> None:
    """But text without a letter."""
    engine = open_engine(reading(str(write_tiny(tmp_path / "m.bin", MANY, "mul"))))
    assert isinstance(engine, NgramEngine)
    assert [engine.model_of(label) for label in ("tha_Thai", "eng_Latn", "und")] == ["mul", "mul", None]


def test_a_file_for_each_language(folder: Path) -> None:
    """Under the name that the config gives it, whatever the file says; labels may have their own."""
    files = {"en": str(folder / "c.bin"), "zho_Hant": str(folder / "b.bin")}
    engine = open_engine(reading(files))
    assert isinstance(engine, NgramEngine)
    found = {label: engine.model_of(label) for label in ("eng_Latn", "zho_Hant", "zho_Hans", "deu_Latn")}
    assert found == {"eng_Latn": "eng", "zho_Hant": "zho_Hant", "zho_Hans": None, "deu_Latn": None}


def test_sums_are_those_of_the_text_alone(folder: Path) -> None:
    """Whatever stands beside it, in whatever order, in a slice or not; and each character is one token."""
    engine = open_engine(reading(str(folder)))
    texts = [
        "The mill is closed.",
        "",
        "河边的小店。",
        "Die Mühle steht am Fluss.",
        " \n ",
        "The mill is closed.",
        "x" * 500,
    ]
    labels = ["eng_Latn", "eng_Latn", "zho_Hans", "deu_Latn", "eng_Latn", "und", "eng_Latn"]
    together = judge(engine, texts, labels)
    assert together.tokens.tolist() == [19, 0, 6, 25, 0, 0, 500]
    assert together.bytes.tolist() == [19, 0, 18, 26, 3, 0, 500]
    for place in range(len(texts)):
        alone = judge(engine, texts[place : place + 1], labels[place : place + 1])
        for name in ("model", "nats", "tokens", "characters", "bytes"):
            assert getattr(alone, name)[0] == getattr(together, name)[place], (place, name)
    whole = pa.array(texts, pa.large_string())
    part = engine.judge(whole.slice(2, 3), pa.array(labels, pa.string()).slice(2, 3))
    np.testing.assert_array_equal(part.nats, together.nats[2:5])


def test_blanks_and_case_change_nothing(folder: Path) -> None:
    """A text padded with blanks is no less surprising for each character."""
    engine = open_engine(reading(str(folder)))
    plain, padded = "The river runs behind the mill.", "THE   river\n\n\truns behind" + " " * 500 + "the mill. \n"
    found = judge(engine, [plain, padded], ["eng_Latn"] * 2)
    assert found.nats[0] == found.nats[1]
    assert found.tokens[0] == found.tokens[1] == found.characters[1]


def test_fluent_text_surprises_less_than_shuffled(folder: Path) -> None:
    """By its own language's model; by another's both surprise."""
    engine = open_engine(reading(str(folder)))
    fluent = "The children come down to the river in the evening."
    shuffled = fluent[::-1]
    found = judge(engine, [fluent, shuffled], ["eng_Latn"] * 2)
    assert found.nats[0] < 0.7 * found.nats[1]


def test_the_identity_names_every_model_by_its_content(folder: Path, tmp_path: Path) -> None:
    """The same content elsewhere is the same model; other content is another."""
    mine = identity_of(reading(str(folder)))
    assert sorted(mine) == ["ngram eng", "ngram mul", "ngram zho"]
    again = {name: str(folder / file) for name, file in {"eng": "any-name.bin", "zho": "b.bin", "mul": "c.bin"}.items()}
    assert identity_of(reading(again)) == mine
    other = identity_of(reading(str(write_tiny(tmp_path / "x.bin", ["Something else."]))))
    assert other["ngram eng"] != mine["ngram eng"]


def test_the_first_model_s_identity_is_told_from_a_step_s_checksums(folder: Path) -> None:
    """Without the limits that ship and without a second model's."""
    config = reading(str(folder))
    checksums = Perplexity(config).model_checksums()
    assert identity_in({**checksums, "second model: x": "1", "perplexity_limits.tsv": "2"}) == identity_of(config)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "nothing", "nothing"),
        (lambda folder: folder, r"expected files \*\.bin"),
        (lambda folder: _written(folder / "text.bin", b"no model at all, only text"), "expected an n-gram model"),
        (lambda folder: _written(folder / "empty.bin", b""), "expected an n-gram model"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_is_read(tmp_path: Path, make: Any, message: str) -> None:
    """With what was expected and where, as a mistake of the config."""
    config = reading(str(make(tmp_path)))
    with pytest.raises(ConfigError, match=message):
        Perplexity(config).ready()
    with pytest.raises(ConfigError, match=r"perplexity[.:].*" + message):
        Perplexity(config).model_checksums()


def test_two_models_of_one_language_are_refused(tmp_path: Path) -> None:
    """Which one counts?"""
    write_tiny(tmp_path / "a.bin")
    write_tiny(tmp_path / "b.bin")
    with pytest.raises(ConfigError, match="one model for each language, found two for eng"):
        Perplexity(reading(str(tmp_path))).ready()


def test_a_model_is_opened_once_a_process(folder: Path) -> None:
    """By every step of the same config, for identity and for reading."""
    assert open_engine(reading(str(folder))) is open_engine(PerplexityConfig(model=str(folder), max_perplexity=9))


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@dataclass(frozen=True)
class FakeLm:
    """In the place of a neural model: a token a character, a nat a token."""

    broken: str = ""

    def identity(self) -> dict[str, str]:
        return {"engine": "gpt2", "weights": "0123456789abcdef", "window": "1024"}

    def judge(self, texts: list[str]) -> TextNats:
        if self.broken:
            raise ValueError(self.broken)
        sizes = np.array([len(text) for text in texts], np.int64)
        return TextNats(
            sizes.astype(np.float64), sizes, sizes, np.array([len(text.encode()) for text in texts], np.int64)
        )


def test_a_neural_engine_reads_every_label_by_one_model() -> None:
    """Under a name that says which weights they are, wherever they lie; a null token count is 0."""
    engine = NeuralEngine(FakeLm())
    found = judge(engine, ["río", "", "川"], ["spa_Latn", "und", "jpn_Jpan"])
    assert found.model.tolist() == ["gpt2 01234567"] * 3
    assert found.tokens.tolist() == [3, 0, 1]
    assert found.bytes.tolist() == [4, 0, 3]
    assert engine.identity() == {"neural engine": "gpt2", "neural weights": "0123456789abcdef", "neural window": "1024"}


def test_a_neural_model_that_cannot_be_loaded_is_a_mistake_of_the_config() -> None:
    """It is found when the first text is read: loading takes long, and memory."""
    with pytest.raises(ConfigError, match=r"step perplexity: weights are damaged"):
        judge(NeuralEngine(FakeLm("weights are damaged")), ["x"], ["eng_Latn"])


@pytest.mark.parametrize("engine", ["gpt2", "ctranslate2"])
@pytest.mark.parametrize("model", [None, "nothing/here/at/all"])
def test_a_neural_engine_without_a_model_is_refused(engine: Any, model: str | None) -> None:
    """Before anything is read, as one without a folder is."""
    with pytest.raises(ConfigError, match=r"step perplexity: .*expected the folder|needs the folder"):
        Perplexity(PerplexityConfig(engine=engine, model=model)).ready()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "gpt2"}, "window: expected at most 64, the positions .* found 1024"),
        ({"engine": "ctranslate2", "window": 64, "stride": 32}, "expected a model converted for CTranslate2"),
    ],
)
def test_what_a_neural_model_cannot_do_is_refused_before_a_run_begins(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """It is the last step of quality: hours later is too late."""
    for package in ("torch", "transformers", "ctranslate2"):
        pytest.importorskip(package, reason=f"{package} is not installed: `make torch`")
    model = write_gpt2(tmp_path / "gpt2")
    with pytest.raises(ConfigError, match=message):
        Perplexity(PerplexityConfig(model=str(model), **settings)).ready()
    Perplexity(PerplexityConfig(engine="gpt2", model=str(model), window=64, stride=32)).ready()
