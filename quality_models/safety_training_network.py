"""The forward pass of a BERT classifier for training: in two parts, so that what does not learn is worked out once.

Dropout: one mask for all tokens of a text (Gal and Ghahramani, A Theoretically Grounded Application of Dropout in Recurrent
Neural Networks, 2016), on what each attention and feed-forward block adds. A mask for each number costs as much as the
matrices do on a CPU; this one costs nothing. Attention weights are not dropped.
Needs torch.
"""

from __future__ import annotations

import copy
import threading
from typing import Any

import torch
from torch import nn

__all__ = ["SharedDropout", "forward_from", "forward_to", "layers_below", "seed_dropout", "with_dropout"]


_thread = threading.local()


def seed_dropout(seed: int, device: Any) -> None:
    """What this thread's dropout draws from, from now on."""
    _thread.generator = torch.Generator(device).manual_seed(seed)


class SharedDropout(nn.Module):  # type: ignore[misc]
    """Dropout with one mask a text: the same features are missing at all of its places. See seed_dropout."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Any) -> Any:
        """[texts, tokens, features] or [texts, features], same shape back."""
        if not self.training or self.share == 0:
            return x
        shape = (x.shape[0], *([1] * (x.dim() - 2)), x.shape[-1])
        kept = torch.rand(shape, device=x.device, generator=_thread.generator) >= self.share
        return x * (kept / (1 - self.share)).to(x.dtype)


def with_dropout(model: nn.Module, share: float, first: int) -> None:
    """Drop in the layers from `first` on and before the classifier; nowhere else."""
    layers = model.get_submodule("bert.encoder.layer")
    for at, layer in enumerate(layers.children()):
        for block in ("attention.output", "output"):
            layer.get_submodule(block).dropout = SharedDropout(share if at >= first else 0.0)
    model.dropout = SharedDropout(share)


def layers_below(model: nn.Module, first: int, half: bool) -> list[Any]:
    """The layers under `first`; with `half`, copies in bfloat16: they do not learn, and are multiplied as such anyway."""
    layers = list(model.get_submodule("bert.encoder.layer").children())[:first]
    return [copy.deepcopy(layer).bfloat16() for layer in layers] if half else layers


def forward_to(model: Any, below: list[Any], ids: Any, mask: Any) -> Any:
    """Hidden states [texts, tokens, width] that come out of the layers `below`. `mask` is bool[texts, tokens]."""
    return _layers(below, model.bert.embeddings(input_ids=ids), mask)


def forward_from(model: Any, hidden: Any, mask: Any, first: int) -> Any:
    """Logits float32[texts, labels] from the hidden states that go into layer `first`."""
    layers = list(model.bert.encoder.layer)[first:]
    hidden = _layers(layers[:-1], hidden, mask)
    if layers:
        hidden = _first_token(layers[-1], hidden, mask)
    return model.classifier(model.dropout(model.bert.pooler(hidden))).float()


def _first_token(layer: Any, hidden: Any, mask: Any) -> Any:
    """What a layer says of the first token alone, [texts, 1, width]: of the last layer nothing else is read."""
    attention, first = layer.attention.self, hidden[:, :1]

    def heads(x: Any) -> Any:
        return x.unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)

    scores = heads(attention.query(first)) @ heads(attention.key(hidden)).transpose(2, 3) * attention.scaling
    scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
    context = (scores.softmax(-1) @ heads(attention.value(hidden)).to(scores.dtype)).transpose(1, 2).flatten(2)
    seen = layer.attention.output(context, first)
    return layer.output(layer.intermediate(seen), seen)


def _layers(layers: list[Any], hidden: Any, mask: Any) -> Any:
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden = hidden.to(torch.get_autocast_dtype(kind))
    wide = None  # the kernel without a mask is faster
    if not bool(mask.all()):
        wide = torch.zeros(mask.shape, dtype=hidden.dtype, device=hidden.device)
        wide = wide.masked_fill(~mask, torch.finfo(hidden.dtype).min)[:, None, None, :]
    for layer in layers:
        hidden = layer(hidden, wide)
    return hidden
