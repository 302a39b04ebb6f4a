"""Perplexity through CTranslate2: conversion, the numbers, and what is refused."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from quality_models import ctranslate_lm, lm_folder
from quality_models.causal_lm import CausalLm
from quality_models.ctranslate_lm import CARD, CtranslateLm, converted, main, sums_are_whole
from quality_models.lm_judge import TextNats
from quality_models.lm_tokens import read_tokenizer
from quality_models.windows import BosRule, WindowRule
from tests.lm_oracle import Gpt2Oracle, write_gpt2, write_llama

pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: `make setup`")
pytest.importorskip("torch", reason="torch is not installed: `make torch`")

RULE = WindowRule(32, 20)
eight_bits = pytest.mark.skipif(not sums_are_whole(), reason="this processor has no 8-bit dot products (VNNI)")
ENGLISH = "The ferry leaves the harbour at seven and crosses the strait in forty minutes. " * 5
TEXTS = ["", "a", "。", "Seven gulls.", "渡轮早上七点离开港口，四十分钟后到达对岸。", ENGLISH]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models and a cache of their conversions."""
    folder = tmp_path_factory.mktemp("ct2")
    write_gpt2(folder / "gpt2")
    write_llama(folder / "llama")
    return folder


@pytest.mark.parametrize("bos", ["every_window", "none"])
def test_nats_in_float32_are_those_of_the_formulas(models: Path, bos: BosRule) -> None:
    """Without 8-bit weights the same windows give the same sums as float64, one token at a time, to 1e-5."""
    rule = WindowRule(32, 20, bos)
    lm = CtranslateLm(str(models / "gpt2"), rule, quantization="float32", cache_folder=models / "cache")
    found = lm.judge(TEXTS)
    oracle, tokenizer = Gpt2Oracle(models / "gpt2"), read_tokenizer(models / "gpt2" / "tokenizer.json")
    for text, nats in zip(TEXTS, found.nats, strict=True):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert nats == pytest.approx(oracle.nats(ids, rule), rel=1e-5, abs=1e-9)


@eight_bits
@pytest.mark.parametrize("shape", ["gpt2", "llama"])
def test_eight_bits_say_nearly_the_same(shape: str, models: Path) -> None:
    """Tokens, characters and bytes are those of the other engine; nats per token of a text differ by less than 3 %."""
    source = str(models / shape)
    expected = CausalLm(source, RULE, dtype="float32").judge(TEXTS)
    found = CtranslateLm(source, RULE, cache_folder=models / "cache").judge(TEXTS)
    for mine, its in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(mine, its)
    assert found.nats == pytest.approx(expected.nats, rel=0.03)


@eight_bits
@pytest.mark.parametrize("shape", ["gpt2", "llama"])
def test_numbers_do_not_depend_on_neighbours(shape: str, models: Path) -> None:
    """The same bits alone, together, in another order, and with 2 threads."""
    source, cache = str(models / shape), models / "cache"
    one = CtranslateLm(source, RULE, cache_folder=cache)
    texts = TEXTS + [ENGLISH[start:] for start in range(0, 300, 37)]
    whole = one.judge(texts)
    alone = TextNats(*map(np.concatenate, zip(*(one.judge([text]) for text in texts), strict=True)))
    threaded = CtranslateLm(source, RULE, cache_folder=cache, threads=2).judge(texts)
    turned = TextNats(*(column[::-1] for column in one.judge(texts[::-1])))
    for other in (alone, threaded, turned):
        for mine, its in zip(whole, other, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_a_conversion_is_made_once_and_whole(models: Path, tmp_path: Path) -> None:
    """It is kept, it leaves nothing half made, and a damaged one is made anew."""
    cache = tmp_path / "cache"
    first = converted(models / "gpt2", cache)
    stamp = (first / "model.bin").stat().st_mtime_ns
    assert converted(models / "gpt2", cache) == first
    assert (first / "model.bin").stat().st_mtime_ns == stamp
    assert [path.name for path in cache.iterdir()] == [first.name]
    card = json.loads((first / CARD).read_text(encoding="utf-8"))
    assert card["quantization"] == "int8"
    whole = (first / "model.bin").read_bytes()
    (first / "model.bin").write_bytes(whole[:-100])
    assert converted(models / "gpt2", cache) == first
    assert len((first / "model.bin").read_bytes()) == len(whole)
    assert [path.name for path in cache.iterdir()] == [first.name]
    assert converted(models / "gpt2", cache, "float32") != first


@eight_bits
def test_a_ready_conversion_needs_neither_source_nor_cache(models: Path, tmp_path: Path) -> None:
    """The converted folder alone gives the same numbers and the same identity; so does one without our card."""
    made = converted(models / "llama", models / "cache")
    ready = tmp_path / "ready"
    shutil.copytree(made, ready)
    by_source = CtranslateLm(str(models / "llama"), RULE, cache_folder=models / "cache")
    by_folder = CtranslateLm(str(ready), RULE)
    assert by_folder.identity() == by_source.identity()
    np.testing.assert_array_equal(by_folder.judge(TEXTS).nats, by_source.judge(TEXTS).nats)
    (ready / CARD).unlink()
    foreign = CtranslateLm(str(ready), RULE)
    assert foreign.identity()["weights"] != by_source.identity()["weights"]
    np.testing.assert_array_equal(foreign.judge(TEXTS).nats, by_source.judge(TEXTS).nats)


def test_identity_names_what_decides_the_numbers(models: Path) -> None:
    """Model, rule and quantisation; not threads, nor the place of the cache."""
    source = str(models / "gpt2")
    base = CtranslateLm(source, RULE)
    same = CtranslateLm(source, RULE, threads=2, cache_folder=models / "elsewhere")
    others = [
        CtranslateLm(str(models / "llama"), RULE),
        CtranslateLm(source, WindowRule(32, 21)),
        CtranslateLm(source, RULE, quantization="float32"),
        CtranslateLm(source, RULE, bos_token="<|pad|>"),
    ]
    assert same.identity() == base.identity()
    identities = [json.dumps(one.identity()) for one in [base, *others]]
    assert len(set(identities)) == len(identities)
    assert base.identity()["engine"] == "ctranslate2"


def test_how_weights_are_stored_is_part_of_the_identity(models: Path) -> None:
    """8-bit weights give other numbers than whole ones, even where both compute in float32."""
    rounded, whole = (converted(models / "gpt2", models / "cache", kind) for kind in ("int8", "float32"))
    one, other = (CtranslateLm(str(folder), RULE, quantization="float32") for folder in (rounded, whole))
    assert one.judge([ENGLISH]).nats != other.judge([ENGLISH]).nats
    assert one.identity() != other.identity()


def test_the_tokenizer_that_is_used_is_the_one_that_is_named(models: Path, tmp_path: Path) -> None:
    """A tokenizer.json that was changed after the conversion is another one, whatever the card says."""
    ready = converted(models / "gpt2", models / "cache", "float32")
    shutil.copytree(ready, tmp_path / "changed")
    path = tmp_path / "changed" / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"normalizer": {"type": "Lowercase"}}), "utf-8")
    before, after = (CtranslateLm(str(one), RULE, quantization="float32") for one in (ready, tmp_path / "changed"))
    assert before.identity() != after.identity()


def _damaged_weights(folder: Path) -> None:
    (folder / CARD).unlink()
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:5000])


def _other_weights(folder: Path) -> None:
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes() + b"x")


def _other_vocabulary(folder: Path) -> None:
    words = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    words[300], words[301] = words[301], words[300]
    (folder / "vocabulary.json").write_text(json.dumps(words), encoding="utf-8")


def _damaged_card(folder: Path) -> None:
    (folder / CARD).write_text('{"model": 1}', encoding="utf-8")


def _without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*.json"):
        path.unlink()


@eight_bits
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_damaged_weights, "expected a language model converted for CTranslate2, found"),
        (_other_weights, "expected the model.bin that corpusmill.json describes, found another"),
        (_damaged_card, "corpusmill.json: expected source, tokenizer, .* in it, found none"),
        (_other_vocabulary, "expected token 30[01] to be .* as in its tokenizer.json"),
        (_without_tokenizer, "tokenizer.json: expected a tokenizer beside the model, found nothing"),
    ],
)
def test_damaged_conversions_are_refused(damage: object, message: str, models: Path, tmp_path: Path) -> None:
    """Each fault is a ValueError that says what was expected where."""
    folder = tmp_path / "model"
    shutil.copytree(converted(models / "gpt2", models / "cache"), folder)
    damage(folder)  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        CtranslateLm(str(folder), RULE).judge(["Seven gulls."])


def test_what_cannot_be_converted_is_refused(models: Path, tmp_path: Path) -> None:
    """A source without a place for its conversion, and one that lacks a weight: CTranslate2 would make one up."""
    from safetensors.numpy import load_file, save_file

    with pytest.raises(ValueError, match=r"expected a model converted for CTranslate2 \(model.bin\), found none"):
        CtranslateLm(str(models / "gpt2"), RULE).judge(["a"])
    broken = tmp_path / "broken"
    shutil.copytree(models / "gpt2", broken)
    weights = load_file(broken / "model.safetensors")
    del weights["transformer.h.1.ln_1.weight"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="expected every weight of the model, found 1 missing"):
        CtranslateLm(str(broken), RULE, cache_folder=tmp_path / "cache").judge(["a"])
    assert list((tmp_path / "cache").iterdir()) == []


@eight_bits
def test_settings_that_the_model_cannot_follow_are_refused(models: Path) -> None:
    """More positions than it has, no threads."""
    with pytest.raises(ValueError, match="window: expected at most 64, the positions"):
        CtranslateLm(str(models / "gpt2"), WindowRule(65, 32), cache_folder=models / "cache").judge(["a"])
    with pytest.raises(ValueError, match="threads: expected 1 or more, found 0"):
        CtranslateLm(str(models / "gpt2"), RULE, threads=0)


def test_missing_packages_name_what_to_install(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CTranslate2 the message says which extra brings it."""

    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(lm_folder, "version", version)
    with pytest.raises(ValueError, match=r"package ctranslate2: expected it .* pip install 'corpusmill\[torch\]'"):
        CtranslateLm(str(models / "gpt2"), RULE).identity()


@eight_bits
def test_the_command_prints_the_folder(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints can be named as a model; a mistake is one message and exit code 1."""
    assert main([str(models / "gpt2"), str(models / "cache")]) == 0
    printed = capsys.readouterr().out.strip()
    assert CtranslateLm(printed, RULE).judge(["Seven gulls."]).tokens.tolist() == [6]
    assert main([str(tmp_path / "nowhere"), str(tmp_path)]) == 1
    assert "expected the folder of a language model, found nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_vnni\nbugs\t: none\n" * 2, True),
        ("flags\t\t: fpu avx2 avx_vnni\n", True),
        ("flags\t\t: fpu avx2 avx512f\n", False),
        ("Features\t: fp asimd asimddp\n", True),
    ],
)
def test_eight_bits_are_refused_where_sums_are_cut_off(
    flags: str, whole: bool, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor without VNNI gives other numbers, 15 to 30 % off in perplexity: refused, not written into a run."""
    (tmp_path / "cpuinfo").write_text(flags, encoding="utf-8")
    made = shutil.copytree(converted(models / "gpt2", models / "cache"), tmp_path / "model")
    monkeypatch.setattr(ctranslate_lm, "CPU_INFO", tmp_path / "cpuinfo")
    assert sums_are_whole() == whole
    if not whole:
        with pytest.raises(ValueError, match="expected a processor with 8-bit dot products"):
            CtranslateLm(str(made), RULE).judge(["Seven gulls."])
