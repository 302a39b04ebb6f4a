"""What stands beside the weights of a safety classifier, and what is refused of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quality_models.safety_settings import read_settings

WHOLE = {
    "format": 1,
    "labels": ["hate", "spam"],
    "thresholds": {"default": {"hate": 0.5}, "long": {"hate": 0.9}, "languages": {"zho": {"spam": 0.4}}},
    "temperature": {"spam": [1.5, 0.1]},
    "max_tokens": 64,
    "normalised": True,
}


def test_it_is_read_whole() -> None:
    """Every entry; the stride is three quarters of the window where it does not stand there."""
    found = read_settings(WHOLE, {}, "safety.json")

    assert (found.labels, found.multi, found.normalised) == (("hate", "spam"), True, True)
    assert (found.default, found.long, found.languages) == ({"hate": 0.5}, {"hate": 0.9}, {"zho": {"spam": 0.4}})
    assert (found.slopes, found.max_tokens, found.stride) == ({"spam": (1.5, 0.1)}, 64, 48)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"labels": []},
        {"labels": ["a", "a"]},
        {"labels": None},
        {"thresholds": {"default": {"hate": 2}}},
        {"thresholds": {"default": {"drugs": 0.5}}},
        {"thresholds": []},
        {"temperature": {"hate": [1]}},
        {"temperature": {"hate": [float("nan"), 0]}},
        {"max_tokens": "many"},
    ],
)
def test_what_is_wrong_is_refused(change: dict[str, Any]) -> None:
    """Naming the file."""
    with pytest.raises(ValueError, match=r"a/safety\.json: expected what safety_settings describes, found"):
        read_settings(WHOLE | change, {}, "a/safety.json")


@pytest.mark.parametrize(
    ("config", "labels", "multi"),
    [
        ({"id2label": {"1": "b", "0": "a"}}, ("a", "b"), False),
        ({"id2label": {"0": "toxic"}}, ("toxic",), True),
        ({"id2label": {"0": "a", "1": "b"}, "problem_type": "multi_label_classification"}, ("a", "b"), True),
        ({}, ("LABEL_0", "LABEL_1"), False),
    ],
)
def test_without_a_file(config: dict[str, Any], labels: tuple[str, ...], multi: bool) -> None:
    """As transformers' pipeline reads config.json."""
    found = read_settings(None, config, "")

    assert (found.labels, found.multi) == (labels, multi)


def test_probabilities_of_extreme_logits() -> None:
    """No overflow, no nan; no texts, no rows."""
    for multi in ("multi_label_classification", "single_label_classification"):
        found = read_settings(None, {"id2label": {"0": "a", "1": "b"}, "problem_type": multi}, "")
        assert found.probabilities(np.array([[1e4, -1e4]], np.float32)).tolist() == [[1, 0]]
        assert found.probabilities(np.empty((0, 2), np.float32)).shape == (0, 2)
