"""Checkpoints: half-written ones are refused and waited for, and a held one stays what it was."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from curation.errors import ConfigError, RunError
from curation.rescore.checkpoints import GivenTokenizer, age, look, pin, wait_for
from tests.lm_oracle import write_gpt2
from tests.token_files import save_tokenizer, small_bpe
from tokenization.tokenizer import load_tokenizer

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gpt2(tmp_path_factory.mktemp("lm") / "gpt2", width=8, layers=1)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A checkpoint of its own, written long ago."""
    shutil.copytree(made, tmp_path / "step-10")
    for path in (tmp_path / "step-10").iterdir():
        os.utime(path, (1e9, 1e9))
    return tmp_path / "step-10"


def example(path: Path) -> Path:
    """A checkpoint of the example trainer, of another size: 32,768 tokens of 8 numbers, one block."""
    torch.manual_seed(1)
    shapes = {
        "embedding.weight": (32_768, 8), "norm.weight": (8,),
        "blocks.0.norm1.weight": (8,), "blocks.0.norm2.weight": (8,), "blocks.0.qkv.weight": (24, 8),
        "blocks.0.out.weight": (8, 8), "blocks.0.up.weight": (32, 8), "blocks.0.down.weight": (8, 32),
    }  # fmt: skip
    weights = {name: torch.randn(shape) for name, shape in shapes.items()}
    torch.save({"model": weights, "settings": {"heads": 2, "positions": 64}}, path)
    os.utime(path, (1e9, 1e9))
    return path


def test_a_whole_checkpoint_has_one_checksum(folder: Path, tmp_path: Path) -> None:
    """The same files elsewhere have the same checksum; another weight, another."""
    found = look(folder)
    assert found.kind == "transformers"
    shutil.copytree(folder, tmp_path / "copy")
    assert look(tmp_path / "copy", found.sha256).sha256 == found.sha256
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(RunError, match="not the one that was reported"):
        look(folder, found.sha256)


@pytest.mark.parametrize("cut", [0, 5, 300, -1])
def test_half_written_weights_are_refused(folder: Path, cut: int) -> None:
    """Weights that end early are no checkpoint, and no checksum is needed to see it."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(RunError, match=r"not whole: model\.safetensors"):
        look(folder, settled_s=0)


def test_missing_parts_are_refused(folder: Path) -> None:
    """Of weights in several files, those that the names or the index tell of must be there."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    with pytest.raises(RunError, match=r"model-00002-of-00002\.safetensors is missing"):
        look(folder, settled_s=0)
    (folder / "model-00001-of-00002.safetensors").rename(folder / "a.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(RunError, match=r"b\.safetensors is missing"):
        look(folder, settled_s=0)


def test_config_that_is_not_whole_is_refused(folder: Path) -> None:
    """So is a folder whose config.json is cut or missing."""
    config = (folder / "config.json").read_text(encoding="utf-8")
    (folder / "config.json").write_text(config[:-9], encoding="utf-8")
    with pytest.raises(RunError, match=r"not whole: .*expected JSON"):
        look(folder, settled_s=0)
    (folder / "config.json").unlink()
    with pytest.raises(RunError, match=r"not whole: .*found nothing"):
        look(folder, settled_s=0)


def test_pickled_weights_will_never_do(folder: Path) -> None:
    """That is a wrong kind, not a matter of waiting."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="a pickle"):
        look(folder, settled_s=0)


def test_another_kind_of_file_will_never_do(folder: Path, tmp_path: Path) -> None:
    """A file that is no zip file from its first byte on is refused at once; an empty one, or one of zeros, may become one."""
    with pytest.raises(ConfigError, match="another kind of file"):
        look(folder / "model.safetensors", settled_s=0)
    for begin in (b"", b"\0" * 100, b"PK"):
        (tmp_path / "step.pt").write_bytes(begin)
        with pytest.raises(RunError, match="not whole"):
            look(tmp_path / "step.pt", settled_s=-1e9)


def test_without_a_checksum_it_must_have_come_to_rest(folder: Path) -> None:
    """A file touched just now may grow; with the trainer's checksum there is nothing to wait for."""
    sha256 = look(folder).sha256
    os.utime(folder / "model.safetensors")
    with pytest.raises(RunError, match="expected 10 s of rest"):
        look(folder)
    assert look(folder, sha256).sha256 == sha256


def test_the_age_of_a_checkpoint_is_that_of_its_youngest_file(folder: Path, tmp_path: Path) -> None:
    """A folder without any was made a while ago, not at the beginning of time: its writer is about to begin."""
    assert age(folder) > 1e8
    os.utime(folder / "config.json")
    assert age(folder) < 60
    (tmp_path / "empty").mkdir()
    assert age(tmp_path / "empty") < 60


def test_waiting_ends_when_the_writer_does(tmp_path: Path) -> None:
    """It is looked at every 5 s, and taken once it is whole; after the time given, the last look's words are told."""
    path = tmp_path / "step.pt"
    whole = example(tmp_path / "made.pt").read_bytes()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        path.write_bytes(whole[: int(len(whole) * now[0] / 20)])

    found = wait_for(path, seconds=60, settled_s=-1e9, sleep=sleep, clock=lambda: now[0])
    assert (now[0], found.kind) == (20.0, "example")
    now[0] = 0.0
    path.unlink()
    with pytest.raises(RunError, match=r"not whole: no whole zip file.*waited for 12 s"):
        wait_for(path, seconds=12, settled_s=-1e9, sleep=sleep, clock=lambda: now[0])
    assert now[0] == 12.0


def test_a_held_checkpoint_outlasts_the_trainers(folder: Path, tmp_path: Path) -> None:
    """Its folder is deleted, and the held one judges on; holding it again is nothing."""
    found = look(folder)
    held = pin(found, tmp_path / "_model")
    assert (held.bos, held.positions, held.sha256) == ("every_window", 64, found.sha256)
    shutil.rmtree(folder)
    assert pin(found, tmp_path / "_model") == held
    assert not list(tmp_path.glob(".*.tmp"))


def test_overwriting_a_held_checkpoint_is_seen(folder: Path, tmp_path: Path) -> None:
    """A trainer that writes into the same file changes the linked one: it is refused, as is another checkpoint there."""
    found = look(folder)
    pin(found, tmp_path / "_model")
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"\x7f")
    with pytest.raises(RunError, match="overwritten its checkpoint in place"):
        pin(found, tmp_path / "_model")
    with pytest.raises(RunError, match="holds another checkpoint: its sha256"):
        pin(look(folder, settled_s=0), tmp_path / "_model")
    with pytest.raises(RunError, match="changed since it was looked at"):
        pin(found, tmp_path / "_other")
    assert not (tmp_path / "_other").exists()


def test_where_no_link_can_be_files_are_copied(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another file system."""

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    held = pin(look(folder), tmp_path / "_model")
    assert (held.folder / "model.safetensors").stat().st_nlink == 1


def test_an_example_checkpoint_needs_the_tokenizer_of_its_token_file(tmp_path: Path) -> None:
    """None, or one with another fingerprint, is refused; with it the folder is whole, and documents begin with nothing."""
    own = tmp_path / "tokenizer"
    own.mkdir()
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    save_tokenizer(own, Tokenizer.from_str(small_bpe()), settings)
    given = GivenTokenizer(str(own), "<|endoftext|>")
    found = look(example(tmp_path / "step.pt"))
    with pytest.raises(ConfigError, match="brings no tokenizer"):
        pin(found, tmp_path / "_model")
    with pytest.raises(ConfigError, match="its ids mean other tokens"):
        pin(found, tmp_path / "_model", tokenizer=given, fingerprint="0" * 64)
    fingerprint = load_tokenizer(given.name, eos=given.eos).fingerprint()
    held = pin(found, tmp_path / "_model", tokenizer=given, fingerprint=fingerprint)
    assert (held.bos, held.positions) == ("none", 64)
    assert look(held.folder, settled_s=0).kind == "transformers"
