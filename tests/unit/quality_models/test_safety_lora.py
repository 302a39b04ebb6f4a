"""Adapters: merged or not, on disk or in memory, they are the same model; and what is frozen does not move."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")

from quality_models.safety_lora import LINEARS, LoraLinear, attach, lora_tensors, merge, round_to_half  # noqa: E402


def linear(rank: int = 4) -> LoraLinear:
    torch.manual_seed(1)
    layer = LoraLinear(torch.nn.Linear(12, 20), rank, 2.0, seed=5)
    with torch.no_grad():
        layer.lora_B.normal_(0, 0.3)
    return layer


def small_bert() -> torch.nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24, num_labels=2
    )
    return BertForSequenceClassification(config).eval()


def test_forward_is_that_of_the_sum() -> None:
    """y = x (W + s B A)^T + b, for any leading shape."""
    layer, x = linear(), torch.randn(3, 5, 12)
    whole = layer.weight + 2.0 * layer.lora_B @ layer.lora_A
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, whole, layer.bias))
    torch.testing.assert_close(layer.merged()(x), layer(x))


def test_gradients_are_those_of_autograd() -> None:
    """The backward pass that is written by hand equals the one that torch derives."""
    layer, x = linear(), torch.randn(7, 12, requires_grad=True)
    wanted_of = (x, layer.lora_A, layer.lora_B)
    plain = torch.nn.functional.linear(x, layer.weight + 2.0 * layer.lora_B @ layer.lora_A, layer.bias)
    pull = torch.randn(7, 20)
    for mine, theirs in zip(
        torch.autograd.grad(layer(x), wanted_of, pull), torch.autograd.grad(plain, wanted_of, pull), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_new_adapter_changes_nothing() -> None:
    """B begins with zeros, and A does not depend on what was drawn before."""
    base = torch.nn.Linear(6, 6)
    first, second = (LoraLinear(base, 2, 1.0, seed=9) for _ in range(2))
    x = torch.randn(2, 6)
    torch.testing.assert_close(first(x), base(x))
    assert torch.equal(first.lora_A, second.lora_A)


def test_attach_and_merge_give_back_a_plain_model() -> None:
    """Every matrix of the chosen layers, and no other, has an adapter; merged, names and answers are the plain model's."""
    model, ids = small_bert(), torch.arange(20).reshape(2, 10)
    names = set(model.state_dict())
    attach(model, range(1, 3), 4, 2.0)
    adapted = {path for path, module in model.named_modules() if isinstance(module, LoraLinear)}
    assert adapted == {f"bert.encoder.layer.{layer}.{name}" for layer in (1, 2) for name in LINEARS}
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all("lora" in name or "pooler" in name or name.startswith("classifier") for name in learning)
    tensors = lora_tensors(model)
    assert tensors["encoder.layer.2.intermediate.dense.lora_A"].shape == (4, 16)
    assert tensors["encoder.layer.2.intermediate.dense.lora_B"].shape == (24, 4)
    with torch.no_grad():
        for name, tensor in tensors.items():
            if name.endswith("lora_B"):
                tensor.normal_(0, 0.2)
        round_to_half(model)
        assert all(torch.equal(tensor, tensor.half().float()) for tensor in lora_tensors(model).values())
        before = model(input_ids=ids).logits
        merge(model)
        torch.testing.assert_close(model(input_ids=ids).logits, before, rtol=1e-4, atol=1e-5)
    assert set(model.state_dict()) == names
