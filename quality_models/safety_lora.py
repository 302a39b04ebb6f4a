"""Low-rank adapters: a frozen matrix W learns as W + scale * B @ A, with A [rank, in] and B [out, rank].

Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021 (arXiv:2106.09685). The sum is made once a step, and
one product of the batch with it replaces the three of the usual form; backwards no gradient of W is made. With the
activations of 2,560 tokens the sum costs 1 % of the product. It is rounded as any weight is under autocast.
Needs torch.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import torch
from torch import nn

__all__ = ["LoraLinear", "attach", "lora_tensors", "merge", "round_to_half"]

ATTENTION = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
LINEARS = (*ATTENTION, "intermediate.dense", "output.dense")
"""Of a layer of transformers' BertModel: all that are matrices."""


class _Adapted(torch.autograd.Function):  # type: ignore[misc]
    """y = x (W + s B A)^T + bias, with gradients for x, A and B alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, a: Any, b: Any, scale: float) -> Any:
        merged = torch.addmm(weight, b, a, alpha=scale).to(x.dtype)
        ctx.save_for_backward(x, merged, a, b)
        ctx.scale = scale
        return nn.functional.linear(x, merged, bias.to(x.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        x, merged, a, b = ctx.saved_tensors
        dy = gradients[0]
        dx = dy @ merged if ctx.needs_input_grad[0] else None
        flat_x, flat_dy = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        down = flat_x @ a.to(x.dtype).t()
        up = flat_dy @ b.to(dy.dtype)
        da = (up.t() @ flat_x).to(a.dtype) * ctx.scale
        db = (flat_dy.t() @ down).to(b.dtype) * ctx.scale
        return dx, None, None, da, db, None


class LoraLinear(nn.Module):  # type: ignore[misc]
    """A linear layer whose matrix is frozen. float32 weights; the product has the type of autocast, or of its input."""

    def __init__(self, base: nn.Linear, rank: int, scale: float, seed: int) -> None:
        super().__init__()
        self.rank, self.scale = rank, scale
        self.weight = nn.Parameter(base.weight.detach().clone(), requires_grad=False)
        self.bias = nn.Parameter(base.bias.detach().clone(), requires_grad=False)
        generator = torch.Generator().manual_seed(seed)
        bound = 1 / math.sqrt(base.in_features)
        a = torch.empty(rank, base.in_features).uniform_(-bound, bound, generator=generator)
        self.lora_A = nn.Parameter(a)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Any) -> Any:
        """[..., in] -> [..., out]."""
        kind = x.device.type
        wanted = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        with torch.autocast(kind, enabled=False):
            return _Adapted.apply(x.to(wanted), self.weight, self.bias, self.lora_A, self.lora_B, self.scale)

    def merged(self) -> nn.Linear:
        """An ordinary layer that does the same."""
        out, wide = self.weight.shape
        plain = nn.Linear(wide, out)
        with torch.no_grad():
            plain.weight.copy_(torch.addmm(self.weight, self.lora_B, self.lora_A, alpha=self.scale))
            plain.bias.copy_(self.bias)
        return plain.to(self.weight.device)


def attach(model: nn.Module, layers: range, rank: int, scale: float, seed: int = 0) -> None:
    """Put adapters on all matrices of the given layers of a BertForSequenceClassification; all else of it is frozen but
    for its pooler and classifier."""
    encoder = model.get_submodule("bert")
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    for layer in layers:
        for name in LINEARS:
            path = f"encoder.layer.{layer}.{name}"
            own = int.from_bytes(hashlib.sha256(f"{seed} {path}".encode()).digest()[:4], "little")
            _put(encoder, path, LoraLinear(encoder.get_submodule(path), rank, scale, own))
    for part in (encoder.get_submodule("pooler"), model.get_submodule("classifier")):
        for parameter in part.parameters():
            parameter.requires_grad = True


def merge(model: nn.Module) -> None:
    """Replace each adapter by an ordinary layer that does the same."""
    for path, module in list(model.named_modules()):
        if isinstance(module, LoraLinear):
            _put(model, path, module.merged())


def round_to_half(model: nn.Module) -> None:
    """Round what an adapter file holds to float16, so that file and merged model are the same model."""
    with torch.no_grad():
        for tensor in lora_tensors(model).values():
            tensor.copy_(tensor.half().float())


def lora_tensors(model: nn.Module) -> dict[str, Any]:
    """What an adapter file holds, by the file's names; the tensors are the model's own.

    `encoder.layer.{i}.{linear}.lora_A` [rank, in] and `.lora_B` [out, rank], `bert.pooler.dense.*`, `classifier.*`.
    """
    found = {}
    for path, module in model.named_modules():
        if isinstance(module, LoraLinear):
            found[f"{path.removeprefix('bert.')}.lora_A"] = module.lora_A.data
            found[f"{path.removeprefix('bert.')}.lora_B"] = module.lora_B.data
    for name in ("bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"):
        found[name] = model.get_parameter(name).data
    return found


def _put(root: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)
