"""Weights by any of the names that transformers gave them, and how they are rounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from quality_models.safety_encoder import read_encoder
from quality_models.safety_graph import quantised_rows
from tests.safety_tiny import encoder_weights, head_weights, write_classifier


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "camembert"])
def test_names_are_one_set(tmp_path: Path, kind: str) -> None:
    """Of BERT and RoBERTa, and of checkpoints from before LayerNorm's gamma was its weight."""
    folder = write_classifier(tmp_path / "m", kind)
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = load_file(folder / "model.safetensors")
    for new, before in old.items():
        tensors = {name.replace(new, before): values for name, values in tensors.items()}
    save_file(tensors, folder / "model.safetensors")

    found = read_encoder(folder)

    expected = encoder_weights() | {f"head.{name}": values for name, values in head_weights().items()}
    assert found.weights.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found.weights[name], values)
    assert (found.shape.offset, found.shape.longest) == ((0, 40) if kind == "bert" else (2, 38))


def test_a_weight_of_another_shape_is_named(tmp_path: Path) -> None:
    """With both shapes."""
    folder = write_classifier(tmp_path / "m", intermediate_size=64)

    with pytest.raises(ValueError, match=r"intermediate\.dense\.weight of the shape \(64, 32\), found \(48, 32\)"):
        read_encoder(folder)


def test_rounding() -> None:
    """Half a step at most, by row; rows of zeros stay zeros; two products of 8 and 7 bits fit in 16."""
    matrix = np.random.default_rng(1).standard_normal((6, 50)).astype(np.float32) * np.float32(
        [[1e-3], [1], [50], [0], [1e-20], [3]]
    )

    whole, scales = quantised_rows(matrix, 63)

    assert np.abs(whole).max() == 63
    assert not whole[3].any()
    assert (np.abs(whole * scales[:, None] - matrix) <= scales[:, None] * 0.5001).all()
    assert 255 * 63 * 2 < 2**15
