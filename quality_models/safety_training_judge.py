"""What a trained classifier says of texts, and of whole documents by overlapping windows. For calibration and the model card.

    evaluate(Path("model"), rows)      # float32[rows, labels], calibrated

The windows are those of the filter. Products in bfloat16. Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch

from quality_models.lm_folder import read_json
from quality_models.lm_tokens import read_tokenizer
from quality_models.safety_settings import MAX_TOKENS, STRIDE, SafetySettings, read_settings
from quality_models.safety_training_base import read_weights
from quality_models.safety_training_batches import Encoded, batches, encoded, padded_places
from quality_models.safety_training_network import forward_from, forward_to
from quality_models.safety_training_rows import Row
from quality_models.safety_training_workers import Workers
from quality_models.safety_windows import WindowSizes, cut, specials_of

__all__ = ["Judge", "Judged", "evaluate"]

BATCH_TOKENS = 4096


class Judged(NamedTuple):
    """Logits float32[windows, labels], and which text each window is of, int64[windows]."""

    logits: npt.NDArray[np.float32]
    owner: npt.NDArray[np.int64]

    def greatest(self, probabilities: npt.NDArray[np.float32], texts: int) -> npt.NDArray[np.float32]:
        """float32[texts, labels]: the greatest of each text's windows."""
        found = np.zeros((texts, probabilities.shape[1]), np.float32)
        np.maximum.at(found, self.owner, probabilities)
        return found


class Judge:
    """A BertForSequenceClassification with its tokenizer, on a device."""

    def __init__(self, model: Any, tokenizer: Path, max_tokens: int = MAX_TOKENS, stride: int = STRIDE) -> None:
        self.model = model.eval()
        if model.device.type == "cpu":
            model.config._attn_implementation = "eager"
        self.device = next(model.parameters()).device
        self.workers = Workers(self.device)
        self.tokenizer = read_tokenizer(tokenizer)
        self.specials = specials_of(self.tokenizer)
        self.sizes = WindowSizes(max_tokens, stride)
        self.sizes.check(len(self.specials.before) + len(self.specials.after))
        self.pad = int(model.config.pad_token_id or 0)
        self.labels = len(model.config.id2label)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()

    def judge(self, texts: Sequence[str]) -> Judged:
        """All windows of all texts; none of a text without tokens."""
        windows = cut(self.tokenizer, self.specials, texts, self.sizes, normalised=True)
        whole = encoded(windows.ids)
        parts = batches(whole.lengths, BATCH_TOKENS)
        found = np.empty((len(windows.ids), self.labels), np.float32)
        for part, logits in zip(parts, self.workers.map(lambda part: self._logits(whole, part), parts), strict=True):
            found[part] = logits
        return Judged(found, windows.text)

    def _logits(self, encoded: Encoded, part: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        places, real = padded_places(encoded.offsets, part)
        ids = torch.from_numpy(np.where(real, encoded.ids[places], self.pad).astype(np.int64)).to(self.device)
        mask = torch.from_numpy(real).to(self.device)
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16):
            hidden = forward_to(self.model, [], ids, mask)
            return cast(npt.NDArray[np.float32], forward_from(self.model, hidden, mask, 0).cpu().numpy())


def evaluate(
    model: Path | Judge, rows: Sequence[Row], settings: SafetySettings | None = None
) -> npt.NDArray[np.float32]:
    """Probabilities float32[rows, labels]; of a text of several windows the greatest.

    Settings are those of the model's folder where a folder is given; without any, logits are not calibrated.

    Raises:
        ValueError: the folder holds no such classifier.
    """
    if isinstance(model, Path):
        config = read_json(model / "config.json")
        facts = model / "safety.json"
        settings = settings or read_settings(read_json(facts) if facts.is_file() else None, config, str(facts))
        with Judge(_load(model), model / "tokenizer.json", settings.max_tokens, settings.stride) as judge:
            return evaluate(judge, rows, settings)
    settings = settings or SafetySettings(tuple(str(at) for at in range(model.labels)))
    judged = model.judge([row.text for row in rows])
    return judged.greatest(settings.probabilities(judged.logits), len(rows))


def _load(folder: Path) -> Any:
    return read_weights(folder, str(folder)).to("cuda" if torch.cuda.is_available() else "cpu")
