"""Perplexity by the same language models on a CPU in 8 bits, through CTranslate2.

A model in transformers' format is converted once, into a folder of conversions:

    python -m quality_models.ctranslate_lm MODEL FOLDER

prints the folder to name as `model`. One that `ct2-transformers-converter` made will do, too, with the tokenizer.json and
the tokenizer_config.json of its source copied into it. A converted model needs neither torch nor transformers. Known shapes are
those of the library: GPT-2, Llama (SmolLM2), Mistral, Qwen, Phi, Gemma ...

Weights are 8-bit integers with one scale for each row, activations are scaled anew for each token, sums are integers, and
all that is no matrix product is float32. On SmolLM2-135M a document's nats per token are up to 0.1 from float32's, its
perplexity 4 % higher in the mean (bench/results/neural-perplexity.md): limits for one are not limits for the other. A text gets the
same bits whatever is judged with it and by however many threads (`lm_batches`; each batch is one thread's).
x86 processors without 8-bit dot products (VNNI) cut sums of two products off at 16 bits, and nats come out 0.15 to 0.3 a token
higher (measured with oneDNN held to AVX2 and to AVX-512 without VNNI): there 8 bits are refused.

Costs: on one core nearly three times the tokens of a plain loop of transformers in float32 with windows of 512, two to two and
a half with windows of 1,024, where attention, in float32, costs most. CTranslate2 gives the log-probabilities of a whole batch
at once, in float32: 4 bytes for each of its tokens and each token of the vocabulary, 200 MB for 1,024 tokens of a vocabulary
of 50,000, for each thread. A model is loaded once a process and kept; in 8 bits it takes a byte a parameter.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from quality_models.causal_lm import find_bos, rule_identity, tokenizer_of
from quality_models.lm_batches import shapes
from quality_models.lm_folder import (
    TOKENIZER_FILES,
    bos_name,
    digest,
    find_folder,
    library_version,
    read_json,
    tokenizer_files,
    weight_files,
)
from quality_models.lm_judge import Rows, TextNats, judge_texts
from quality_models.lm_memory import memory_kept
from quality_models.windows import WindowRule

__all__ = ["CtranslateLm", "Quantization", "converted", "sums_are_whole"]

Quantization: TypeAlias = Literal["int8", "float32"]

BATCH_TOKENS = 512
CPU_INFO = Path("/proc/cpuinfo")
DOT_PRODUCTS = {"avx512_vnni", "avx_vnni"}
CARD = "corpusmill.json"
"""What a folder was converted from, and the checksum of its weights."""
CARD_KEYS = ("source", "tokenizer", "quantization", "bos_token", "library", "model")


@dataclass(frozen=True)
class CtranslateLm:
    """A converted language model and the rule by which it reads texts. Cheap to make: the first `judge` loads the model.

    model: folder of a converted model, or with `cache_folder` a model as `CausalLm` takes it, which is then converted.
    bos_token: as in `CausalLm`. threads: batches computed at a time, each by one thread.
    """

    model: str
    rule: WindowRule = field(default_factory=WindowRule)
    quantization: Quantization = "int8"
    bos_token: str = ""
    threads: int = 1
    cache_folder: Path | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads: expected 1 or more, found {self.threads}")

    def identity(self) -> dict[str, str]:
        """What decides its numbers. A model that is not converted yet is known by its source: nothing is converted for it.

        Raises ValueError where the model is not complete, or a package is missing.
        """
        folder = find_folder(self.model)
        if _is_converted(folder):
            card = _card(folder)
            weights = card["source"] if card else digest([folder / "model.bin"])
            stored = f"{card['quantization']} by {card['library']}" if card else "by another program"
        else:
            weights = digest(weight_files(folder))
            stored = f"{self.quantization} by {library_version('ctranslate2')}"
        name, _ = self._bos(folder)
        return {
            "engine": "ctranslate2",
            "weights": weights,
            "tokenizer": digest(tokenizer_files(folder)),
            "stored": stored,
            "dtype": self.quantization,
            "library": f"ctranslate2 {library_version('ctranslate2')}",
            **rule_identity(self.rule, name),
        }

    def judge(self, texts: Sequence[str]) -> TextNats:
        """Score texts; see `TextNats`. Raises ValueError where the model cannot be converted or loaded."""
        folder = self.folder()
        _, bos = self._bos(folder)
        lm = _load(folder, self.quantization, self.threads)
        lm.check_length(self.rule)
        with memory_kept():
            return judge_texts(
                texts, tokenizer_of(folder), self.rule, bos=bos, allowed=shapes(self.rule.window, BATCH_TOKENS), nats_of=lm.nats,
                threads=self.threads,
            )  # fmt: skip

    def _bos(self, folder: Path) -> tuple[str, int]:
        """Name and id of the token before text, as the source names it; no name and -1 where the rule wants none."""
        tokenizer, card = tokenizer_of(folder), _card(folder)
        own = card["bos_token"] if card else bos_name(folder, tokenizer.id_to_token)
        return find_bos(tokenizer, self.rule, self.bos_token or own, where=folder)

    def folder(self) -> Path:
        """The folder of the converted model; it is converted where that is still to be done. Raises ValueError."""
        folder = find_folder(self.model)
        if _is_converted(folder):
            return folder
        if self.cache_folder is None:
            raise ValueError(
                f"{folder}: expected a model converted for CTranslate2 (model.bin), found none; convert it with "
                "`python -m quality_models.ctranslate_lm MODEL FOLDER`, and name the folder that it prints"
            )
        return converted(folder, self.cache_folder, self.quantization)


def _is_converted(folder: Path) -> bool:
    return (folder / "model.bin").is_file()


def _card(folder: Path) -> dict[str, Any] | None:
    """What `converted` wrote into a folder; None for one that another program made. Raises ValueError if it is damaged."""
    if not (folder / CARD).is_file():
        return None
    card = read_json(folder / CARD)
    if lost := [name for name in CARD_KEYS if not isinstance(card.get(name), str)]:
        raise ValueError(f"{folder / CARD}: expected {', '.join(lost)} in it, found none; convert the model again")
    return card


def converted(source: Path, cache_folder: Path, quantization: Quantization = "int8") -> Path:
    """The conversion of a model in transformers' format, made in `cache_folder` if it is not there.

    Its name holds the source's checksum, so another model is another folder. It appears complete or not at all: it is made
    under a hidden name and renamed. One whose model.bin does not match its checksum any more is made anew.
    Raises ValueError where the model is incomplete, of a shape that CTranslate2 does not know, or packages are missing.
    """
    weights, tokenizer = digest(weight_files(source)), digest(tokenizer_files(source))
    library = library_version("ctranslate2")
    target = cache_folder / f"ctranslate2-{quantization}-{library}-{weights[:12]}{tokenizer[:4]}"
    if _is_intact(target):
        return target
    cache_folder.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-{os.getpid()}-", suffix=".tmp", dir=cache_folder))
    try:
        _convert(source, made / "model", quantization)
        card = {
            "source": weights,
            "tokenizer": tokenizer,
            "quantization": quantization,
            "bos_token": bos_name(source, tokenizer_of(source).id_to_token),
            "library": library,
            "model": digest([made / "model" / "model.bin"]),
        }
        (made / "model" / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        for path in (made / "model").iterdir():
            _sync(path)
        if target.exists() and not _is_intact(target):
            target.rename(made / "damaged")
        try:
            (made / "model").rename(target)
        except OSError:
            # Another process was faster; what it made is as good.
            if not _is_intact(target):
                raise
        _sync(cache_folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def _is_intact(folder: Path) -> bool:
    """Whether a conversion is there, and its weights are those that were written."""
    try:
        card = _card(folder)
    except ValueError:
        return False
    return card is not None and _is_converted(folder) and card["model"] == digest([folder / "model.bin"])


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _convert(source: Path, target: Path, quantization: Quantization) -> None:
    """Write a converted model, with its tokenizer and what names its BOS. Raises ValueError."""
    for package in ("torch", "transformers"):
        library_version(package)
    from ctranslate2.converters import TransformersConverter

    from quality_models.causal_lm import quiet, read_model

    model = read_model(source, "float32")  # for its checks: the converter fills missing weights with random ones
    for name, values in model.named_parameters():
        if not bool(values.isfinite().all()):  # 8 bits would hide it
            raise ValueError(f"{source}: expected finite weights, found nan or infinity in {name}; they are damaged")
    del model
    present = [name for name in TOKENIZER_FILES if (source / name).is_file()]
    with quiet():
        try:
            converter = TransformersConverter(str(source), copy_files=present, low_cpu_mem_usage=True)
            converter.convert(str(target), quantization=None if quantization == "float32" else quantization)
        except (ValueError, NotImplementedError, OSError, KeyError, RuntimeError, AttributeError) as error:
            what = " ".join(str(error).split())[:300]
            raise ValueError(
                f"{source}: expected a model of a shape that CTranslate2 knows, found {type(error).__name__}: {what}; "
                "judge with the engine gpt2"
            ) from error
    if not (target / "tokenizer.json").is_file():
        tokenizer_of(source).save(str(target / "tokenizer.json"))
    known = read_json(source / "config.json")
    config = read_json(target / "config.json")
    # The library refuses a config without these, which it needs for text as strings; it is given ids here.
    config |= {name: "" for name in ("bos_token", "eos_token", "unk_token") if config.get(name) is None}
    config["corpusmill_positions"] = known.get("max_position_embeddings") or known.get("n_positions") or 0
    (target / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


@cache
def _load(folder: Path, quantization: Quantization, threads: int) -> _LoadedGenerator:
    """Raises ValueError for a damaged model, or a tokenizer that is not its own."""
    library_version("ctranslate2")
    import ctranslate2

    if quantization == "int8" and not sums_are_whole():
        raise ValueError(
            "dtype: expected a processor with 8-bit dot products (VNNI) for int8, found one without: its numbers would be "
            "those of no other machine; set float32, or the engine gpt2"
        )
    card = _card(folder)
    if card and not _is_intact(folder):
        raise ValueError(
            f"{folder}: expected the model.bin that {CARD} describes, found another; convert the model again"
        )
    compute = "int8_float32" if quantization == "int8" else "float32"
    try:
        # Each batch is computed by one thread: its bits do not depend on their number.
        generator = ctranslate2.Generator(
            str(folder), device="cpu", compute_type=compute, inter_threads=threads, intra_threads=1
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"{folder}: expected a language model converted for CTranslate2, found {error}; convert it again"
        ) from error
    return _LoadedGenerator(folder, generator)


def sums_are_whole() -> bool:
    """Whether this processor sums 8-bit products without cutting them off. Where nothing says so, as beside Linux, it is believed."""
    if not CPU_INFO.is_file():
        return True
    flags = [line.split() for line in CPU_INFO.read_text(encoding="utf-8").splitlines() if line.startswith("flags")]
    return all(DOT_PRODUCTS & set(line) for line in flags)  # other processors than x86 have no such line


class _LoadedGenerator:
    """A model in memory, known to speak the language of the tokenizer beside it."""

    def __init__(self, folder: Path, generator: Any) -> None:
        self.folder = folder
        self.generator = generator
        self.positions = int(read_json(folder / "config.json").get("corpusmill_positions") or 0)
        self._check_vocabulary()
        probe = self._log_probs(np.arange(8, dtype=np.int32)[None])
        if not np.isfinite(probe).all():
            raise ValueError(
                f"{folder}: expected finite log-probabilities, found nan or infinity; convert the model again"
            )

    def check_length(self, rule: WindowRule) -> None:
        """Raises ValueError if the model knows fewer positions than a window has."""
        if self.positions and rule.window > self.positions:
            raise ValueError(
                f"window: expected at most {self.positions}, the positions that {self.folder} knows, "
                f"found {rule.window}; lower window and stride"
            )

    def nats(self, rows: Rows) -> npt.NDArray[np.float64]:
        """float64[rows]: sum of -ln p over the scored positions of each row."""
        found = np.zeros(len(rows.ids))
        if (rows.first >= rows.stop).all():
            return found
        log_probs = self._log_probs(rows.ids)
        for row, (first, stop) in enumerate(zip(rows.first, rows.stop, strict=True)):
            place = np.arange(first, stop)
            found[row] = -log_probs[row, place - 1, rows.ids[row, place]].sum(dtype=np.float64)
        return found

    def _log_probs(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
        """float32[rows, length, vocabulary]."""
        import ctranslate2

        lengths = ctranslate2.StorageView.from_array(np.full(len(ids), ids.shape[1], np.int32))
        view = ctranslate2.StorageView.from_array(np.ascontiguousarray(ids))
        return np.asarray(self.generator.forward_batch(view, lengths, return_log_probs=True))

    def _check_vocabulary(self) -> None:
        """Each token must have the id in the model that it has in the tokenizer. Raises ValueError."""
        path = self.folder / "vocabulary.json"
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path}: expected the vocabulary of the model, found {error}; convert it again"
            ) from error
        known = tokenizer_of(self.folder).get_vocab(with_added_tokens=True)
        for token, number in known.items():
            if number >= len(words) or words[number] != token:
                other = repr(words[number]) if number < len(words) else f"only {len(words):,} tokens"
                raise ValueError(
                    f"{self.folder}: expected token {number:,} to be {token!r} as in its tokenizer.json, found {other} in "
                    "vocabulary.json; the tokenizer is another model's"
                )


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert a model; prints where it lies. Returns 1, with one message, where it cannot be converted."""
    parser = argparse.ArgumentParser(
        prog="python -m quality_models.ctranslate_lm", description="Convert a causal language model for CTranslate2."
    )
    parser.add_argument("model", help="folder in transformers' format, or name on the Hugging Face hub")
    parser.add_argument("folder", type=Path, help="folder of conversions: one is made in it")
    parser.add_argument("--quantization", choices=get_args(Quantization), default="int8")
    asked = parser.parse_args(arguments)
    try:
        print(converted(find_folder(asked.model), asked.folder, asked.quantization))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
