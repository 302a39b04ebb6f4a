"""`corpusmill train-safety` from files to a folder that the filter reads; mistakes end in one message."""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: `make torch`")

from curation.errors import ConfigError, InputError
from curation.train_safety_command import add_train_safety
from quality_models.safety_encoder import LINEARS, read_encoder
from quality_models.safety_settings import read_settings
from quality_models.safety_tensors import read_tensors
from quality_models.safety_training_judge import evaluate
from quality_models.safety_training_rows import Row, read_rows
from tests.safety_toy import LABELS, toy_base, toy_rows, write_rows

TOY = "--epochs 8 --batch-tokens 256 --learning-rate 0.01 --max-tokens 32 --precision 0.9 --seed 1".split()


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_train_safety(parser.add_subparsers())
    parsed = parser.parse_args(["train-safety", *map(str, arguments)])
    return int(parsed.function(parsed))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("train")


@pytest.fixture(scope="module")
def rows(folder: Path) -> Path:
    return write_rows(toy_rows(240), folder / "rows.jsonl")


@pytest.fixture(scope="module")
def base(folder: Path) -> Path:
    return toy_base(folder / "base")


@pytest.fixture(scope="module")
def trained(folder: Path, rows: Path, base: Path) -> Path:
    good = folder / "good.jsonl"
    texts = [" ".join(row.text for row in toy_rows(40, seed=at) if not row.labels) for at in range(2, 12)]
    good.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    notes = folder / "notes.md"
    notes.write_text("It knows few words.")
    command = [
        "--input",
        rows,
        "--base",
        base,
        "--adapter",
        "8",
        "--freeze",
        "1",
        "--good",
        good,
        "--card-notes",
        notes,
    ]
    assert run(*command, "--output", folder / "model", *TOY) == 0
    return folder / "model"


def test_the_folder_is_whole(trained: Path) -> None:
    """Everything that is promised is there, and reads as what it is."""
    names = {path.name for path in trained.iterdir()}
    wanted = "config.json model.safetensors tokenizer.json safety.json adapter.safetensors README.md metrics.json training.state"
    assert names == {*wanted.split(), *(["model.int8.onnx"] if importlib.util.find_spec("onnx") else [])}
    facts = json.loads((trained / "safety.json").read_text())
    settings = read_settings(facts, json.loads((trained / "config.json").read_text()), "safety.json")
    assert settings.labels == LABELS
    assert (settings.max_tokens, settings.stride, settings.normalised, settings.multi) == (32, 24, True, True)
    assert all(settings.default[label] <= settings.long[label] for label in LABELS)
    assert facts["calibration"]["good_windows"] > facts["calibration"]["good_documents"] == 10
    assert facts["metrics"]["development"]["average_precision"] > 0.9
    assert "It knows few words." in (trained / "README.md").read_text()


def test_the_model_tells_labels_apart(trained: Path) -> None:
    """On rows that it has not seen; an advert at a long text's end counts too."""
    found = evaluate(trained, rows := toy_rows(120, seed=9))
    right = np.mean([[label in row.labels for label in LABELS] for row in rows] == (found >= 0.5))
    assert right > 0.9
    plain = "the cat sits on a mat " * 20
    last, none = evaluate(trained, [Row(plain + "casino bet jackpot casino"), Row(plain)])
    assert last[0] > none[0] + 0.1


def test_harmless_documents_are_left_alone(trained: Path, folder: Path) -> None:
    """Of the documents of `--good` no more are flagged than was asked for."""
    settings = read_settings(json.loads((trained / "safety.json").read_text()), {}, "safety.json")
    good = read_rows([folder / "good.jsonl"], harmless=True)
    limits = np.array([settings.long[label] for label in LABELS], np.float32)
    assert (evaluate(trained, good) >= limits).any(axis=1).mean() <= 0.3


def test_adapter_on_base_is_the_model(trained: Path, base: Path) -> None:
    """W + scale * B @ A of the base's weights are the weights of the folder."""
    whole, tensors = read_encoder(trained).weights, read_tensors(trained / "adapter.safetensors")
    bare = read_tensors(base / "model.safetensors").values
    scale = float(tensors.metadata["scale"])
    assert json.loads(tensors.metadata["safety"]) == json.loads((trained / "safety.json").read_text())
    for layer, name in ((layer, name) for layer in range(2) for name in LINEARS):
        path = f"encoder.layer.{layer}.{name}"
        change = 0.0
        if layer == 1:
            change = scale * tensors.values[f"{path}.lora_B"] @ tensors.values[f"{path}.lora_A"]
        np.testing.assert_allclose(whole[f"{path}.weight"], bare[f"{path}.weight"] + change, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(whole["head.out.weight"], tensors.values["classifier.weight"])


def test_other_thresholds_need_no_training(
    trained: Path, rows: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command with another precision decides anew from the saved state; other rows are refused."""
    monkeypatch.delattr("quality_models.safety_training.Trainer._step")
    before = json.loads((trained / "safety.json").read_text())
    same = ["--base", base, "--adapter", "8", "--freeze", "1", "--output", trained, "--no-onnx", *TOY]
    assert run("--input", rows, *same, "--precision", "0.5") == 0
    after = json.loads((trained / "safety.json").read_text())
    assert after["temperature"] == before["temperature"]
    assert after["thresholds"]["default"]["gambling"] <= before["thresholds"]["default"]["gambling"]
    other = write_rows(toy_rows(60, seed=4), rows.with_name("other.jsonl"))
    with pytest.raises(InputError, match="found that of another"):
        run("--input", other, *same)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layers", "9"], "expected 1 to 2"),
        (["--base", "no-such-folder/x/y"], "no-such-folder"),
        (["--labels", "gambling,hate,drugs"], "'drugs'"),
        (["--labels", "gambling,hat"], "did you mean 'hat'"),
    ],
)
def test_mistakes_in_rows_and_base(folder: Path, rows: Path, base: Path, arguments: list[str], said: str) -> None:
    """One message that names what is wrong."""
    with pytest.raises(InputError, match=said):
        run("--input", rows, "--base", base, "--output", folder / "none", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--labels", "gambling,,hate"], "--labels"),
        (["--labels", "hate,hate"], "--labels"),
        (["--epochs", "0"], "--epochs 0"),
        (["--learning-rate", "3"], "--learning-rate"),
        (["--precision", "1.5"], "--precision"),
        (["--max-false-alarms", "-1"], "--max-false-alarms"),
    ],
)
def test_mistakes_in_settings(folder: Path, rows: Path, arguments: list[str], said: str) -> None:
    """Refused before anything is read."""
    with pytest.raises(ConfigError, match=said):
        run("--input", rows, "--output", folder / "none", *arguments)


def test_files_that_are_not_there(folder: Path, rows: Path) -> None:
    """Inputs must be files, the output no file."""
    with pytest.raises(InputError, match="found nothing"):
        run("--input", folder / "gone.jsonl", "--output", folder / "none")
    with pytest.raises(ConfigError, match="found a file"):
        run("--input", rows, "--output", rows)


@pytest.mark.parametrize("keep", [True, False])
def test_one_class_teaches_nothing(folder: Path, base: Path, keep: bool) -> None:
    """Only harmless rows, or none, are refused."""
    some = [row for row in toy_rows(90) if bool(row.labels) == keep]
    path = write_rows(some, folder / f"one-{keep}.jsonl")
    with pytest.raises(InputError, match="found no harmless row" if keep else "found no labelled row"):
        run("--input", path, "--base", base, "--output", folder / "none")


def test_without_torch_it_says_what_to_install(folder: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package and the command that brings it."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    with pytest.raises(ConfigError, match="make torch"):
        run("--input", rows, "--output", folder / "none")
