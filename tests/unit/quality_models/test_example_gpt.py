"""The example trainer's checkpoint in transformers' format: the same logits, and what is refused."""

from __future__ import annotations

import io
import zipfile
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from quality_models.example_gpt import damage_in, write_folder
from tests.example_trainer import load_example

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")


@pytest.fixture(scope="module")
def gpt() -> ModuleType:
    """The example as a module."""
    return load_example()


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
        ({"model": {7: 1, "x": 2}}, "other names: "),
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


TINY = {
    "embedding.weight": (7, 4),
    "norm.weight": (4,),
    **{f"blocks.0.norm{n}.weight": (4,) for n in (1, 2)},
    "blocks.0.qkv.weight": (12, 4),
    "blocks.0.out.weight": (4, 4),
    "blocks.0.up.weight": (8, 4),
    "blocks.0.down.weight": (4, 8),
}


def tiny(path: Path, **changes: Any) -> Path:
    """A checkpoint of 7 token types and 4 numbers a position; `changes` are weights by number of their name."""
    weights: dict[str, Any] = {name: torch.arange(8.0 * 12)[: prod(size)].view(size) for name, size in TINY.items()}
    weights |= {list(TINY)[int(number[1:])]: value for number, value in changes.items()}
    torch.save({"model": weights, "settings": {"heads": 2, "positions": 8}}, path)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"_0": 1}, "expected embedding.weight to be a dense tensor of floating point numbers, found int"),
        ({"_4": {"a": 1}}, "qkv.weight to be .* found dict"),
        ({"_1": "x"}, "expected norm.weight to be .* found str"),
        ({"_5": torch.zeros(4, 4, dtype=torch.int32)}, "out.weight to be .* found a tensor of torch.int32"),
        ({"_5": torch.eye(4).to_sparse()}, "out.weight to be a dense tensor"),
        ({"_0": torch.zeros(1).expand(1 << 30, 4)}, "embedding.weight to be a dense tensor"),
        ({"_0": torch.zeros(4)}, "two dimensions"),
        ({"_6": torch.zeros(())}, "two dimensions"),
        ({"_4": torch.zeros(11, 4)}, r"qkv.weight of shape \(12, 4\), found \(11, 4\)"),
        ({"_3": torch.zeros(5)}, r"norm2.weight of shape \(4,\)"),
        ({"_7": torch.zeros(4, 9)}, r"down.weight of shape \(4, 8\)"),
    ],
)
def test_weights_of_another_kind_or_shape_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    """Each weight is a tensor of the size that the others ask for; else the message names it, and nothing is written."""
    (tmp_path / "model").mkdir()
    with pytest.raises(ValueError, match=words):
        write_folder(tiny(tmp_path / "step.pt", **changes), tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_any_flipped_byte_is_damage_or_changes_nothing(tmp_path: Path) -> None:
    """Of a tiny checkpoint every 3rd byte of the table of contents and every 13th elsewhere: told as damage in a few words;
    else it is refused in one message, or all weights are read as they were written."""
    from safetensors.torch import load_file

    path, model = tiny(tmp_path / "step.pt"), tmp_path / "model"
    model.mkdir()
    write_folder(path, model)
    written = load_file(model / "model.safetensors")
    whole, told = path.read_bytes(), 0
    table = whole.index(b"PK\x01\x02")
    for place in [*range(0, table, 13), *range(table, len(whole), 3)]:
        flipped = whole[place] ^ (0xFF if place % 2 else 1 << place % 8)
        path.write_bytes(whole[:place] + bytes([flipped]) + whole[place + 1 :])
        if why := damage_in(path):
            told += 1
            assert len(why) < 120
        elif not refused(path, model):  # bytes that nothing reads
            found = load_file(model / "model.safetensors")
            assert all(torch.equal(found[name], weight) for name, weight in written.items())
    assert told > 300


def refused(path: Path, folder: Path) -> str:
    """The message of write_folder; empty where it writes."""
    try:
        write_folder(path, folder)
    except ValueError as error:
        return str(error)
    return ""


def test_a_damaged_pickle_in_a_whole_zip_is_one_message(tmp_path: Path) -> None:
    """What another program wrote, with right checksums: whatever the pickle says, a ValueError; never a traceback."""
    path = tiny(tmp_path / "step.pt")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in parts if name.endswith("data.pkl"))
    (tmp_path / "model").mkdir()
    messages = []
    for place in range(0, len(parts[pickled]), 5):
        data = bytearray(parts[pickled])
        data[place] ^= 0xFF if place % 2 else 1
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, bytes(data) if name == pickled else part)
        assert damage_in(path) == ""
        messages.append(refused(path, tmp_path / "model"))
    assert sum(str(path) in one for one in messages) > len(messages) * 0.5


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packed_part_is_foreign(tmp_path: Path, kind: int) -> None:
    """torch.save packs nothing: a packed part is told as damaged, and not unpacked."""
    with zipfile.ZipFile(tmp_path / "step.pt", "w", kind) as archive:
        archive.writestr("archive/data.pkl", bytes(1000))
    assert damage_in(tmp_path / "step.pt") == "'archive/data.pkl' in it is damaged"
    with pytest.raises(FileNotFoundError):
        damage_in(tmp_path / "none.pt")


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
