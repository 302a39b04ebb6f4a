"""The forward pass in parts is transformers' own, also where only the first token is worked out."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")

from quality_models.safety_training_network import (  # noqa: E402
    SharedDropout,
    forward_from,
    forward_to,
    layers_below,
    seed_dropout,
    with_dropout,
)


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24, num_labels=3,
        initializer_range=0.3,
    )  # fmt: skip
    return BertForSequenceClassification(config).eval()


@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_two_parts_are_the_whole(model: torch.nn.Module, first: int, attention: str) -> None:
    """Wherever it is cut, with padding or without, logits are those of the model's own forward pass."""
    model.config._attn_implementation = attention
    ids = torch.randint(0, 50, (4, 9), generator=torch.Generator().manual_seed(1))
    for lengths in ([9, 9, 9, 9], [9, 1, 4, 8]):
        mask = torch.arange(9)[None, :] < torch.tensor(lengths)[:, None]
        with torch.no_grad():
            wanted = model(input_ids=ids, attention_mask=mask.long()).logits
            hidden = forward_to(model, layers_below(model, first, half=False), ids, mask)
            torch.testing.assert_close(forward_from(model, hidden, mask, first), wanted, rtol=1e-4, atol=1e-5)


def test_layers_in_half_are_copies(model: torch.nn.Module) -> None:
    """The model keeps its own in float32: what is written later has lost nothing."""
    below = layers_below(model, 2, half=True)
    assert {p.dtype for layer in below for p in layer.parameters()} == {torch.bfloat16}
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_dropout_is_one_mask_a_text_and_drawn_from_its_seed() -> None:
    """All tokens of a text lose the same features; a seed gives the same mask; judging drops none."""
    drop, x = SharedDropout(0.5), torch.ones(6, 5, 64)
    seed_dropout(3, x.device)
    first = drop(x)
    seed_dropout(3, x.device)
    assert torch.equal(first, drop(x))
    assert not torch.equal(first, drop(x))
    assert (first == first[:, :1]).all()
    assert set(first.unique().tolist()) == {0.0, 2.0}
    assert first.mean().item() == pytest.approx(1, abs=0.15)
    assert torch.equal(drop.eval()(x), x)


def test_nothing_is_dropped_below_what_learns(model: torch.nn.Module) -> None:
    """Frozen layers say the same each time, or they could not be kept."""
    import copy

    changed = copy.deepcopy(model)
    with_dropout(changed, 0.4, 2)
    shares = [layer.output.dropout.share for layer in changed.bert.encoder.layer]
    assert shares == [0.0, 0.0, 0.4]
    assert changed.dropout.share == 0.4
