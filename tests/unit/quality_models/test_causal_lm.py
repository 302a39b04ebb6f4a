"""Perplexity by a causal language model: the numbers, their independence of the batch, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from quality_models import lm_folder, lm_memory
from quality_models.causal_lm import CausalLm
from quality_models.lm_judge import TextNats
from quality_models.lm_tokens import read_tokenizer
from quality_models.windows import BosRule, WindowRule
from tests.lm_oracle import (
    VOCABULARY,
    Gpt2Oracle,
    write_bigrams,
    write_byte_tokenizer,
    write_gpt2,
    write_llama,
    write_model,
)

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

RULE = WindowRule(32, 20)
ENGLISH = (
    "The ferry leaves the harbour at seven and crosses the strait in forty minutes. On calm days the captain lets children "
    "hold the wheel, while their parents drink tea on the upper deck and watch the gulls. In winter the boat carries mail, "
    "bread and the doctor, who visits the island every second week and stays for lunch at the school."
)
CHINESE = (
    "渡轮早上七点离开港口，四十分钟后到达对岸。天气好的时候，船长会让孩子们握一握舵轮，"
    "大人们在甲板上喝茶看海鸥。冬天，船上运的是信件、面包和医生。"
)
TEXTS = [
    "",
    "a",
    "。",
    "Seven gulls.",
    CHINESE[:30],
    ENGLISH[:90],
    "😀 mixed\u0301 text\n\n第二行",
    ENGLISH,
    CHINESE,
    ENGLISH + CHINESE,
]


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gpt2(tmp_path_factory.mktemp("lm") / "gpt2")


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("lm") / "llama")


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bigrams(tmp_path_factory.mktemp("lm") / "bigrams", ENGLISH + "\n" + CHINESE + "\n")


def ids_of(folder: Path, text: str) -> list[int]:
    return list(read_tokenizer(folder / "tokenizer.json").encode(text, add_special_tokens=False).ids)


def per_token(found: TextNats) -> Sequence[float]:
    return list(found.nats / found.tokens)


@pytest.mark.parametrize("bos", ["every_window", "document", "none"])
def test_nats_are_those_of_the_formulas(gpt2: Path, bos: BosRule) -> None:
    """Each token with its window's context, one by one in float64, gives the same sum to 1e-5."""
    rule = WindowRule(32, 20, bos, 99)
    texts = TEXTS[:8]
    found = CausalLm(str(gpt2), rule, dtype="float32").judge(texts)
    oracle = Gpt2Oracle(gpt2)
    for text, nats, tokens in zip(texts, found.nats, found.tokens, strict=True):
        ids = ids_of(gpt2, text)
        assert tokens == max(0, len(ids) - (bos == "none"))
        assert nats == pytest.approx(oracle.nats(ids, rule), rel=1e-5, abs=1e-9)


def test_perplexities_of_known_texts(gpt2: Path) -> None:
    """Fixed numbers: a change of rule, tokenizer or arithmetic shows here. They are those of the oracle."""
    found = CausalLm(str(gpt2), RULE, dtype="float32").judge([ENGLISH, CHINESE, "Seven gulls."])
    assert found.tokens.tolist() == [88, 67, 6]
    assert np.exp(found.nats / found.tokens) == pytest.approx([2161973.16, 2082452.90, 3259101.28], rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", ["gpt2", "llama"])
def test_numbers_do_not_depend_on_neighbours(shape: str, dtype: str, request: pytest.FixtureRequest) -> None:
    """The same bits alone, together, in another order, with 2 threads, and again: a retry writes the same file."""
    folder = str(request.getfixturevalue(shape))
    one = CausalLm(folder, RULE, dtype=dtype)  # type: ignore[arg-type]
    texts = TEXTS + [ENGLISH[start:] for start in range(0, 300, 37)]
    whole = one.judge(texts)
    shuffled = random.Random(4).sample(range(len(texts)), len(texts))
    for other in (
        one.judge(texts),
        CausalLm(folder, RULE, dtype=dtype, threads=2).judge(texts),  # type: ignore[arg-type]
        TextNats(*map(np.concatenate, zip(*(one.judge([text]) for text in texts), strict=True))),
    ):
        for mine, its in zip(whole, other, strict=True):
            np.testing.assert_array_equal(mine, its)
    for mine, its in zip(whole, one.judge([texts[index] for index in shuffled]), strict=True):
        np.testing.assert_array_equal(mine[shuffled], its)


@pytest.mark.parametrize("shape", ["gpt2", "llama"])
def test_equal_to_a_plain_loop_of_transformers(shape: str, request: pytest.FixtureRequest) -> None:
    """One document at a time through the library's own model and loss gives the same to 1e-5; bfloat16 to 1 %."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = request.getfixturevalue(shape)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = [text for text in TEXTS if 0 < len(ids_of(folder, text)) < 60]
    rule = WindowRule(64, 32)
    expected = []
    for text in texts:
        ids = torch.tensor([[0, *ids_of(folder, text)]])
        with torch.inference_mode():
            expected.append(float(model(input_ids=ids, labels=ids).loss))
    assert per_token(CausalLm(str(folder), rule, dtype="float32").judge(texts)) == pytest.approx(expected, rel=1e-5)
    assert per_token(CausalLm(str(folder), rule).judge(texts)) == pytest.approx(expected, rel=1e-2)


def test_logits_beyond_the_output_layer_are_the_models_own(tmp_path: Path) -> None:
    """A model that caps its logits is scored on the capped ones: body and output layer alone would say something else."""
    import torch
    from transformers import Gemma2Config, Gemma2ForCausalLM

    torch.manual_seed(5)
    config = Gemma2Config(
        vocab_size=257, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        head_dim=16, final_logit_softcapping=0.05, initializer_range=0.5, bos_token_id=256, eos_token_id=256, pad_token_id=0,
    )  # fmt: skip
    model = Gemma2ForCausalLM(config).eval()
    model.save_pretrained(tmp_path / "gemma")
    write_byte_tokenizer(tmp_path / "gemma")
    ids = torch.tensor([[256, *ids_of(tmp_path / "gemma", "Seven gulls.")]])
    with torch.inference_mode():
        expected = float(model(input_ids=ids, labels=ids).loss)
    found = CausalLm(str(tmp_path / "gemma"), RULE, dtype="float32").judge(["Seven gulls."])
    assert per_token(found) == pytest.approx([expected], rel=1e-5)


def test_text_of_no_or_one_token_is_defined(gpt2: Path) -> None:
    """Bug B091: nothing to score is 0 tokens and 0 nats, never nan; one token is scored after the BOS, if there is one."""
    found = CausalLm(str(gpt2), RULE).judge(["", "a", "。"])
    assert found.tokens.tolist() == [0, 1, 1]
    assert found.nats[0] == 0
    assert np.isfinite(found.nats).all()
    alone = CausalLm(str(gpt2), WindowRule(32, 20, "none")).judge(["", "a", "ab ab"])
    assert alone.tokens.tolist() == [0, 0, 1]
    assert alone.nats[:2].tolist() == [0, 0]
    assert CausalLm(str(gpt2), RULE).judge([]).nats.tolist() == []


def test_text_over_the_window_is_scored_whole(learned: Path) -> None:
    """Bug B093: a fluent beginning does not hide a tail of random letters, and every token of both counts."""
    fluent = (ENGLISH * 4)[:1200]
    letters = "".join(random.Random(6).choices("abcdefghijklmnopqrstuvwxyz ", k=3000))
    found = CausalLm(str(learned), WindowRule(1024, 768)).judge([fluent, fluent + letters])
    clean, tailed = per_token(found)
    assert tailed > clean + 1
    assert found.tokens.tolist() == [1200, 4200]


def test_perplexity_does_not_depend_on_the_cut(learned: Path, gpt2: Path) -> None:
    """Bug B094: a token more than a window, or two windows and one, change perplexity by less than 3 %; none counts twice."""
    paragraph = (ENGLISH + "\n") * 8
    for stride in (512, 768):
        found = CausalLm(str(learned), WindowRule(1024, stride)).judge([paragraph[:n] for n in (1024, 1025, 2049)])
        assert found.tokens.tolist() == [1024, 1025, 2049]
        first, second, third = np.exp(per_token(found))
        assert second == pytest.approx(first, rel=0.03)
        assert third == pytest.approx(first, rel=0.03)
    tokens = ids_of(gpt2, paragraph)
    tokenizer = read_tokenizer(gpt2 / "tokenizer.json")
    texts = [tokenizer.decode(tokens[:length]) for length in (64, 65, 129)]
    found = CausalLm(str(gpt2), WindowRule(64, 32), dtype="float32").judge(texts)
    assert found.tokens.tolist() == [64, 65, 129]
    assert np.exp(per_token(found))[1] == pytest.approx(np.exp(per_token(found))[0], rel=0.03)


def test_clean_text_of_both_languages_beats_random_signs(learned: Path) -> None:
    """Bug B096: bits per byte of clean English and Chinese lie close together, those of random signs of each far above."""
    draw = random.Random(7)
    texts = [
        ENGLISH[5:250],
        CHINESE[4:60],
        "".join(draw.sample(ENGLISH, 245)),
        "".join(draw.choice("的一是不了人我在有他这中大来上国到说们为") for _ in range(56)),
    ]
    found = CausalLm(str(learned), WindowRule(1024, 768)).judge(texts)
    clean_en, clean_zh, random_en, random_zh = found.nats / np.log(2) / found.bytes
    assert min(random_en, random_zh) > 1.8 * max(clean_en, clean_zh)
    assert found.bytes.tolist() == [len(text.encode()) for text in texts]


def test_characters_and_bytes_are_those_of_the_scored_tokens(gpt2: Path) -> None:
    """All of a text that is scored whole; of a long one only what the chosen windows score, each character once."""
    found = CausalLm(str(gpt2), WindowRule(32, 20, max_windows=99)).judge(TEXTS)
    assert found.characters.tolist() == [len(text) for text in TEXTS]
    assert found.bytes.tolist() == [len(text.encode()) for text in TEXTS]
    long = CHINESE * 20
    some = CausalLm(str(gpt2), WindowRule(32, 20, max_windows=3)).judge([long])
    assert some.tokens[0] <= 31 + 2 * 20
    assert 0 < some.characters[0] < len(long) / 4
    assert some.bytes[0] == pytest.approx(3 * some.characters[0], rel=0.05)


def test_names_of_special_tokens_in_a_text_are_text(gpt2: Path) -> None:
    """A page about language models cannot end its own document."""
    found = CausalLm(str(gpt2), RULE).judge(["<|endoftext|>"])
    assert found.tokens[0] > 3


def test_numbers_that_are_not_finite_are_told_for_their_document(tmp_path: Path) -> None:
    """nan in one document's logits makes its nats nan, its tokens stay, and no other document changes."""
    from safetensors.numpy import load_file, save_file

    whole = write_gpt2(tmp_path / "whole")
    broken = write_gpt2(tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["transformer.wpe.weight"][40:] = np.inf
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    texts = ["Seven gulls.", ENGLISH, CHINESE[:10]]
    rule = WindowRule(64, 32)
    expected = CausalLm(str(whole), rule, dtype="float32").judge(texts)
    found = CausalLm(str(broken), rule, dtype="float32").judge(texts)
    assert np.isnan(found.nats).tolist() == [False, True, False]
    np.testing.assert_array_equal(found.nats[[0, 2]], expected.nats[[0, 2]])
    np.testing.assert_array_equal(found.tokens, expected.tokens)


def _without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _damaged_config(folder: Path) -> None:
    (folder / "config.json").write_text("{", encoding="utf-8")


def _unknown_kind(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "abacus"}), encoding="utf-8")


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut_off(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def _lost_weight(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _not_finite(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["transformer.ln_f.weight"][3] = np.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def _damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {}}', encoding="utf-8")


def _small_tokenizer(folder: Path) -> None:
    write_byte_tokenizer(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without_config, "config.json: expected it in the folder of a language model, found nothing"),
        (_damaged_config, "config.json: expected JSON"),
        (_unknown_kind, "expected a causal language model that transformers can load"),
        (_pickled, r"expected weights as \*.safetensors, found pytorch_model.bin"),
        (_cut_off, "expected a causal language model that transformers can load, found SafetensorError"),
        (_lost_weight, r"expected every weight of the model, found 1 missing .*h.1.mlp.c_fc.weight"),
        (_not_finite, "expected finite logits, found nan or infinity"),
        (_without_tokenizer, "tokenizer.json: expected a tokenizer beside the model, found nothing"),
        (_damaged_tokenizer, "tokenizer.json: expected a tokenizer.json"),
        (_small_tokenizer, "expected a tokenizer of about 32,768 tokens, the model's vocabulary, found one of 257"),
    ],
)
def test_damaged_models_are_refused(damage: object, message: str, gpt2: Path, tmp_path: Path) -> None:
    """Each fault is a ValueError that says what was expected where; above all, no missing weight is made up."""
    folder = tmp_path / "model"
    shutil.copytree(gpt2, folder)
    damage(folder)  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        CausalLm(str(folder), RULE).judge(["Seven gulls."])


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path: Path) -> None:
    """Its ids would be read beyond the embeddings."""
    from safetensors.numpy import load_file

    full = write_gpt2(tmp_path / "full")
    weights = load_file(full / "model.safetensors")
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][:30_000]
    config = json.loads((full / "config.json").read_text(encoding="utf-8")) | {"vocab_size": 30_000}
    small = write_model(tmp_path / "small", config, weights)
    with pytest.raises(ValueError, match=f"below the model's vocabulary of 30,000, found {VOCABULARY - 1:,}"):
        CausalLm(str(small), RULE).judge(["Seven gulls."])


def test_settings_that_the_model_cannot_follow_are_refused(gpt2: Path) -> None:
    """More positions than it has, a BOS that it does not know, a GPU that is not there."""
    import torch

    with pytest.raises(ValueError, match="window: expected at most 64, the positions"):
        CausalLm(str(gpt2), WindowRule(65, 32)).judge(["a"])
    with pytest.raises(ValueError, match=r"expected the token '<s>' in its vocabulary"):
        CausalLm(str(gpt2), RULE, bos_token="<s>").identity()
    with pytest.raises(ValueError, match="threads: expected 1 or more, found 0"):
        CausalLm(str(gpt2), RULE, threads=0)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="expected a GPU"):
            CausalLm(str(gpt2), RULE, device="cuda").judge(["a"])


def test_missing_packages_name_what_to_install(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch the message says which extra brings it, before anything is loaded."""

    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(lm_folder, "version", version)
    with pytest.raises(ValueError, match=r"package torch: expected it .* pip install 'corpusmill\[torch\]'"):
        CausalLm(str(gpt2), RULE).identity()


def test_models_are_found_by_folder_or_name(monkeypatch: pytest.MonkeyPatch, gpt2: Path, tmp_path: Path) -> None:
    """A folder is taken as it is; another name is asked from the hub; what is neither is a ValueError."""
    import huggingface_hub

    asked = []

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append(name)
        if name == "ours/known":
            return str(gpt2)
        raise OSError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    by_name = CausalLm("ours/known", RULE).identity()
    assert by_name == CausalLm(str(gpt2), RULE).identity()
    with pytest.raises(ValueError, match=r"ours/unknown: expected a folder, or the name of a model .* no connection"):
        CausalLm("ours/unknown", RULE).judge(["a"])
    with pytest.raises(ValueError, match="expected the folder of a language model, found nothing"):
        CausalLm(str(tmp_path / "nowhere"), RULE).judge(["a"])
    assert asked == ["ours/known", "ours/unknown"]


def test_identity_names_what_decides_the_numbers(gpt2: Path, tmp_path: Path) -> None:
    """Another weight, tokenizer or rule is another identity; another number of threads is not."""
    base = CausalLm(str(gpt2), RULE)
    assert base.identity()["bos_token"] == "<|endoftext|>"
    assert base.identity() == CausalLm(str(gpt2), RULE, threads=2).identity()
    others = [
        CausalLm(str(gpt2), WindowRule(32, 21)),
        CausalLm(str(gpt2), WindowRule(31, 20)),
        CausalLm(str(gpt2), WindowRule(32, 20, "document")),
        CausalLm(str(gpt2), WindowRule(32, 20, max_windows=9)),
        CausalLm(str(gpt2), RULE, dtype="float32"),
        CausalLm(str(gpt2), RULE, bos_token="<|pad|>"),
        CausalLm(str(write_gpt2(tmp_path / "seed", seed=9)), RULE),
    ]
    changed = tmp_path / "changed"
    shutil.copytree(gpt2, changed)
    (changed / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|endoftext|>"}), encoding="utf-8")
    identities = [json.dumps(one.identity()) for one in [base, *others, CausalLm(str(changed), RULE)]]
    assert len(set(identities)) == len(identities)
    assert all(type(value) is str for value in base.identity().values())


def test_identity_loads_no_heavy_library(gpt2: Path) -> None:
    """A scheduler names a step without torch: importing the module and asking the identity imports neither library."""
    code = (
        "import sys; from quality_models.causal_lm import CausalLm; from quality_models.ctranslate_lm import CtranslateLm;"
        f"CausalLm({str(gpt2)!r}).identity(); CtranslateLm({str(gpt2)!r}).identity();"
        "sys.exit(bool({'torch', 'transformers', 'ctranslate2'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert done.returncode == 0, done.stderr


def test_memory_is_kept_only_while_texts_are_judged(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library's settings come back even after an error; another C library is left alone."""
    calls: list[tuple[int, int]] = []

    class Glibc:
        gnu_get_libc_version = None

        def mallopt(self, name: int, value: int) -> int:
            calls.append((name, value))
            return 1

        def malloc_trim(self, pad: int) -> int:
            calls.append((0, pad))
            return 1

    monkeypatch.setattr(lm_memory.ctypes, "CDLL", lambda name: Glibc())
    with pytest.raises(KeyError), lm_memory.memory_kept():
        raise KeyError
    assert [name for name, _ in calls] == [-4, -1, -4, -1, 0]
    assert calls[2:] == [(-4, 65_536), (-1, 64 << 20), (0, 0)]
    monkeypatch.setattr(lm_memory.ctypes, "CDLL", lambda name: object())
    with lm_memory.memory_kept():
        assert CausalLm(str(gpt2), RULE).judge(["Seven gulls."]).tokens.tolist() == [6]
    assert len(calls) == 5
