"""Where the head of a safety model begins that has never learned: so that each feature of the encoder is heard.

What the first token of e5 says lies close together: a large constant part and small differences, through which a head with
random weights learns for epochs. Here the pooler begins as one feature each, taken from its mean and over its spread, so
that half a standard deviation is about the middle of tanh; the classifier says nothing but how frequent each label is.
On 1,350 rows of abuse in three languages the average precision after half an epoch rose from .63
to .81, after two from .87 to .90, in part by another change between the two runs.
Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["READ_FOR_HEAD", "start_head"]

READ_FOR_HEAD = 2000
"""Texts by which mean and spread are taken."""
SLOPE = 0.5
LEAST_SPREAD = 1e-4


def start_head(model: Any, read: Callable[[], object], wanted: npt.NDArray[np.float32]) -> None:
    """Set pooler and classifier of a BertForSequenceClassification in place.

    Args:
        read: makes the model read some texts.
        wanted: float32[rows, labels], by which labels are frequent.
    """
    seen: list[Any] = []

    def keep(_: object, given: tuple[Any, ...]) -> None:
        seen.append(given[0][:, 0].detach().float().cpu())

    handle = model.bert.pooler.register_forward_pre_hook(keep)
    try:
        read()
    finally:
        handle.remove()
    features = torch.cat(seen).sort(dim=0).values  # batches come in any order: sums must not depend on it
    spread = features.std(0).clamp(min=LEAST_SPREAD)
    share = torch.from_numpy(wanted).mean(0).clamp(1e-4, 1 - 1e-4)
    dense, classifier = model.bert.pooler.dense, model.classifier
    with torch.no_grad():
        dense.weight.copy_(torch.diag(SLOPE / spread))
        dense.bias.copy_(-SLOPE * features.mean(0) / spread)
        classifier.weight.zero_()
        classifier.bias.copy_(torch.logit(share))
