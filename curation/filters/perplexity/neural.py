"""The engines `gpt2` and `ctranslate2`: one neural language model for every label, as `quality_models` reads with it.

Costs what `quality_models.causal_lm` and `quality_models.ctranslate_lm` say: thousands of times an n-gram model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.perplexity.config import Reading
from curation.filters.perplexity.engines import Judged
from quality_models.causal_lm import CausalLm, Dtype
from quality_models.ctranslate_lm import CtranslateLm, Quantization
from quality_models.lm_folder import find_folder, read_json
from quality_models.lm_judge import TextNats
from quality_models.windows import WindowRule

__all__ = ["LanguageModel", "NeuralEngine", "open_neural"]

NAME_DIGITS = 8
POSITIONS = ("corpusmill_positions", "max_position_embeddings", "n_positions")
"""What a model's config may call them: of a conversion of ours, of transformers, of its older models."""


class LanguageModel(Protocol):
    """What `CausalLm` and `CtranslateLm` have in common."""

    def identity(self) -> Mapping[str, str]:
        """What decides its numbers; `engine` and `weights` among it."""
        ...

    def judge(self, texts: Sequence[str]) -> TextNats:
        """Sums for each text."""
        ...


class NeuralEngine:
    """Judges every text by one model, whatever its label; the model is loaded when the first text is read."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = lm
        identity = lm.identity()
        self._identity = {f"neural {name}": value for name, value in identity.items()}
        self.name = f"{identity['engine']} {identity['weights'][:NAME_DIGITS]}"
        """Of the model, wherever its folder lies."""

    def identity(self) -> Mapping[str, str]:
        return self._identity

    def judge(self, texts: pa.LargeStringArray, labels: pa.StringArray) -> Judged:
        """Raises ConfigError where the model cannot be loaded: its files were there, but it is loaded only now."""
        try:
            read = self.lm.judge(texts.to_pylist())
        except ValueError as error:
            raise ConfigError(f"step perplexity: {error}") from error
        return Judged(np.full(len(texts), self.name, object), read.nats, read.tokens, read.characters, read.bytes)


def open_neural(reading: Reading) -> NeuralEngine:
    """The model of a config.

    Raises:
        ValueError: none is named, it is not complete, or a package is missing.
    """
    if not isinstance(reading.model, str) or not reading.model:
        raise ValueError(f"model: engine {reading.engine} needs the folder of a language model, found none")
    rule = WindowRule(reading.window, reading.stride, reading.bos, reading.max_windows)
    if reading.engine == "gpt2":
        dtype: Dtype = "float32" if reading.dtype == "float32" else "bfloat16"
        engine = NeuralEngine(CausalLm(reading.model, rule, dtype, reading.device, reading.bos_token))
        _check_window(find_folder(reading.model), rule)
        return engine
    quantization: Quantization = "float32" if reading.dtype == "float32" else "int8"
    lm = CtranslateLm(reading.model, rule, quantization, reading.bos_token)
    _check_window(lm.folder(), rule)  # which must be converted: nothing is, once a run has begun
    return NeuralEngine(lm)


def _check_window(folder: Path, rule: WindowRule) -> None:
    """Refuse a window that is longer than the model's positions, before a run begins rather than at its last step."""
    config = read_json(folder / "config.json")
    known = next((config[name] for name in POSITIONS if isinstance(config.get(name), int) and config[name] > 0), None)
    if known is not None and rule.window > known:
        raise ValueError(
            f"window: expected at most {known}, the positions that {folder} knows, found {rule.window}; "
            "lower window and stride"
        )
