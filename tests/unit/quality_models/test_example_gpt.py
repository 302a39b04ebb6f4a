"""The example trainer's checkpoint in transformers' format: the same logits, and what is refused."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from quality_models.example_gpt import damage_in, write_folder

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "train_gpt.py"


@pytest.fixture(scope="module")
def gpt() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("train_gpt_here", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_gpt_here"] = module
    spec.loader.exec_module(module)
    return module


def saved(gpt: ModuleType, path: Path, **changes: Any) -> Any:
    """A checkpoint as the example writes it, of a model whose weights are all of some size."""
    torch.manual_seed(3)
    model = gpt.GPT(600)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, mean=1.0 if weight.dim() == 1 else 0.0, std=0.2)
    state = {"model": model.state_dict(), "settings": {"heads": gpt.HEADS, "positions": 64}, **changes}
    torch.save({name: value for name, value in state.items() if value is not None}, path)
    return model


def test_transformers_gives_the_same_logits(gpt: ModuleType, tmp_path: Path) -> None:
    """Every logit of 40 tokens, of a model in which each weight matters, is equal to 1e-4."""
    from quality_models.causal_lm import read_model

    model = saved(gpt, tmp_path / "step.pt")
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "step.pt", tmp_path / "model")
    ids = torch.arange(40)[None] * 7 % 600
    positions = torch.arange(40)[None]
    rows = gpt.Rows(ids, positions, ids, torch.ones(1, 1, 40, 40, dtype=torch.bool).tril(), torch.tensor([0, 40]), 40)
    with torch.inference_mode():
        ours = model(rows)
        theirs = read_model(tmp_path / "model", "float32")(input_ids=ids, use_cache=False).logits
    assert ours.std() > 1
    assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": None}, "'settings', found none"),
        ({"settings": {"heads": 5, "positions": 64}}, "heads that divide"),
        ({"settings": {"heads": 4}}, "settings.positions"),
        ({"model": {"wte": 1}}, "other names: "),
        ({"model": {}}, "other names: "),
    ],
)
def test_what_is_no_such_checkpoint_is_refused(
    gpt: ModuleType, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """Without what the weights do not tell, or with other weights, nothing is written."""
    saved(gpt, tmp_path / "step.pt", **changes)
    (tmp_path / "model").mkdir()
    with pytest.raises(ValueError, match=words):
        write_folder(tmp_path / "step.pt", tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    """A checkpoint that would call a function is refused before it does."""

    class Harm:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "harm",))

    torch.save({"model": Harm()}, tmp_path / "step.pt")
    with pytest.raises(ValueError, match="expected a checkpoint"):
        write_folder(tmp_path / "step.pt", tmp_path)
    assert not (tmp_path / "harm").exists()


def test_every_cut_and_every_flipped_block_is_damage(tmp_path: Path) -> None:
    """A file that ends early, or in which bytes are zero, is not whole."""
    stream = io.BytesIO()
    torch.save({"model": {"a": torch.arange(4000, dtype=torch.float32)}}, stream)
    whole = stream.getvalue()
    path = tmp_path / "step.pt"
    path.write_bytes(whole)
    assert damage_in(path) == ""
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert damage_in(path)
    path.write_bytes(whole[:8000] + bytes(1000) + whole[9000:])
    assert "damaged" in damage_in(path)
