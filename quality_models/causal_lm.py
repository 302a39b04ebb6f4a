"""Perplexity by any causal language model in transformers' format: a folder, or a name on the Hugging Face hub.

How a batch is computed: the body of the model gives hidden states; the output layer is applied to the scored positions
alone, a slice at a time, and each slice's logits are summed to log-probabilities in float32 and thrown away. So logits
of [rows, window, vocabulary] are never there at once; a slice takes at most 64 MiB. A model whose logits are more than
its output layer times its hidden states (Gemma 2 caps them, Cohere scales them) is asked for its own logits instead, a
batch at a time; which of the two it is, a probe finds when the model is loaded.

Costs, measured with SmolLM2-135M on one core with AVX-512 BF16: about 350 tokens a second in bfloat16, twice as many as a
plain loop of transformers in float32 (bench/results/neural-perplexity.md). Memory: the weights once (2 bytes each in
bfloat16, 4 in float32), and for each thread the activations of a batch. A model is loaded once a process and kept.

How equal numbers are: on one kind of processor, with one version of torch, a text gets the same bits whatever is judged
with it, in whatever order and by however many threads (see `lm_batches`; on CPU each batch is computed by one thread).
Between AVX-512 and AVX2 the nats per token of a document differed by up to 6e-7 in float32 and 5e-3 in bfloat16, so a
text that close to a limit may change sides where a step is computed again on another kind of machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.lm_batches import shapes
from quality_models.lm_folder import (
    bos_name,
    digest,
    find_folder,
    library_version,
    tokenizer_files,
    weight_files,
)
from quality_models.lm_judge import Rows, TextNats, judge_texts
from quality_models.lm_memory import memory_kept
from quality_models.lm_tokens import bos_id, check_vocabulary, read_tokenizer, unguarded
from quality_models.windows import WindowRule

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["CausalLm", "Device", "Dtype", "find_bos", "quiet", "read_model", "rule_identity", "tokenizer_of"]

Dtype: TypeAlias = Literal["bfloat16", "float32"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]

SLICE_BYTES = 64 << 20
"""Of float32 logits at once, at most."""
SLICE_ROWS: Mapping[str, int] = {"cpu": 128, "cuda": 1024}
"""Tokens of a slice, at most: less work for slices that are not full, and on a CPU not slower than larger ones."""
BATCH_TOKENS: Mapping[str, int] = {"cpu": 512, "cuda": 16_384}
"""Tokens of a batch. On a CPU more brings nothing: activations of 512 tokens still fit its cache."""
PROBE = (1, 8)
"""Shape of the batch that a new model is tried with."""


@dataclass(frozen=True)
class CausalLm:
    """A language model and the rule by which it reads texts. Cheap to make: the model is loaded by the first `judge`.

    model: folder, or name on the hub. bos_token: the token before text; empty: the tokenizer's own BOS, else EOS.
    device: `auto` takes a GPU if there is one. threads: batches computed at a time on a CPU, each by one thread.
    """

    model: str
    rule: WindowRule = field(default_factory=WindowRule)
    dtype: Dtype = "bfloat16"
    device: Device = "auto"
    bos_token: str = ""
    threads: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads: expected 1 or more, found {self.threads}")

    def identity(self) -> dict[str, str]:
        """What decides its numbers; the model is not loaded for it.

        Raises ValueError where the model is not complete, or a package is missing.
        """
        folder = find_folder(self.model)
        name, _ = self._bos(folder)
        return {
            "engine": "gpt2",
            "weights": digest(weight_files(folder)),
            "tokenizer": digest(tokenizer_files(folder)),
            "dtype": self.dtype,
            "device": self.device,
            "library": f"torch {library_version('torch')}, transformers {library_version('transformers')}",
            **rule_identity(self.rule, name),
        }

    def judge(self, texts: Sequence[str]) -> TextNats:
        """Score texts; see `TextNats`. Raises ValueError where the model cannot be loaded."""
        folder = find_folder(self.model)
        _, bos = self._bos(folder)
        device, lm = _load(folder, self.dtype, self.device)
        _check_length(folder, lm.config, self.rule)
        allowed = shapes(self.rule.window, BATCH_TOKENS[device])
        threads = self.threads if device == "cpu" else 1
        with _one_thread_each(), memory_kept():
            return judge_texts(
                texts, tokenizer_of(folder), self.rule, bos=bos, allowed=allowed, nats_of=lm.nats, threads=threads
            )

    def _bos(self, folder: Path) -> tuple[str, int]:
        """Name and id of the token before text; no name and -1 where the rule wants none."""
        tokenizer = tokenizer_of(folder)
        return find_bos(tokenizer, self.rule, self.bos_token or bos_name(folder, tokenizer.id_to_token), where=folder)


def find_bos(tokenizer: Tokenizer, rule: WindowRule, name: str, *, where: Path) -> tuple[str, int]:
    """Name and id of the token before text; no name and -1 where the rule wants none. Raises ValueError."""
    return ("", -1) if rule.bos == "none" else (name, bos_id(tokenizer, name, where=str(where)))


def rule_identity(rule: WindowRule, bos: str) -> dict[str, str]:
    """The rule's share of an engine's identity."""
    return {
        "window": str(rule.window),
        "stride": str(rule.stride),
        "bos": rule.bos,
        "bos_token": bos,
        "max_windows": str(rule.max_windows),
    }


@cache
def tokenizer_of(folder: Path) -> Tokenizer:
    """The tokenizer in a model's folder: its tokenizer.json as it is, else what transformers makes of the other files.

    Raises ValueError where there is none.
    """
    if (folder / "tokenizer.json").is_file() or not tokenizer_files(folder):
        return read_tokenizer(folder / "tokenizer.json")
    library_version("transformers")
    from transformers import AutoTokenizer

    try:
        made = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise ValueError(f"{folder}: expected a tokenizer, found {error}; save it as tokenizer.json") from error
    if not made.is_fast:
        raise ValueError(f"{folder}: expected a tokenizer that can be a tokenizer.json, found {type(made).__name__}")
    return unguarded(made.backend_tokenizer)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """torch's own threads are switched off: each batch is one thread's, so its bits do not depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def _load(folder: Path, dtype: Dtype, device: Device) -> tuple[str, _LoadedLm]:
    """The device that is used, and the model on it. Raises ValueError."""
    library_version("torch")
    library_version("transformers")
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected a GPU (cuda), found none that torch can use; set it to cpu or auto")
    used = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    weight_files(folder)
    lm = _LoadedLm(folder, read_model(folder, dtype).to(used))
    check_vocabulary(tokenizer_of(folder), lm.n_embeddings, where=str(folder))
    return used, lm


def read_model(folder: Path, dtype: Dtype) -> Any:
    """The model with every weight from its files. Raises ValueError."""
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    with quiet():
        try:
            model, info = AutoModelForCausalLM.from_pretrained(
                folder, dtype=getattr(torch, dtype), use_safetensors=True, local_files_only=True,
                output_loading_info=True,
            )  # fmt: skip
        except (SafetensorError, ValueError, OSError, KeyError, RuntimeError, ImportError) as error:
            what = " ".join(str(error).split())[:300]
            raise ValueError(
                f"{folder}: expected a causal language model that transformers can load, found {type(error).__name__}: "
                f"{what}; copy the model again, or save it with save_pretrained"
            ) from error
    lost = [*info["missing_keys"], *info["mismatched_keys"]]
    if lost:
        raise ValueError(
            f"{folder}: expected every weight of the model, found {len(lost)} missing or of another shape "
            f"({lost[0]} ...); copy the model again, or check that it is a causal language model"
        )
    return model.eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' progress bars and remarks on standard error: what is wrong is said by our own checks."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _check_length(folder: Path, config: Any, rule: WindowRule) -> None:
    """Raises ValueError if the model knows fewer positions than a window has."""
    known = getattr(config, "max_position_embeddings", None)
    if known is not None and rule.window > known:
        raise ValueError(
            f"window: expected at most {known}, the positions that {folder} knows, found {rule.window}; lower window and stride"
        )


class _LoadedLm:
    """A model in memory, with its output layer apart where that gives the model's own logits."""

    def __init__(self, folder: Path, model: Any) -> None:
        self.model = model
        self.config = model.config
        self.device = model.device
        self.head = model.get_output_embeddings()
        self.n_embeddings = int(model.get_input_embeddings().weight.shape[0])
        fitting = SLICE_BYTES // (4 * int(self.head.weight.shape[0]))
        self.slice = max(1, min(SLICE_ROWS[self.device.type], fitting))
        self.body: Any = model.base_model
        self._probe(folder)

    def nats(self, rows: Rows) -> npt.NDArray[np.float64]:
        """float64[rows]: sum of -ln p over the scored positions of each row."""
        import torch

        if self.device.type == "cpu":
            torch.set_num_threads(1)  # counted for each thread of Python, so said in each
        found = np.zeros(len(rows.ids))
        asked = [(row, place) for row in range(len(rows.ids)) for place in range(rows.first[row], rows.stop[row])]
        if not asked:
            return found
        # Slices have a fixed shape, too, filled up with the first place.
        at = np.array(asked + asked[:1] * (-len(asked) % self.slice))
        with torch.inference_mode():
            ids = torch.from_numpy(rows.ids).to(self.device).long()
            row, place = torch.from_numpy(at.T.copy()).to(self.device)
            # What stands before a place says what is expected there.
            states = self._states(ids)[row, place - 1]
            nats = torch.empty(len(at), dtype=torch.float32, device=self.device)
            for start in range(0, len(at), self.slice):
                part = slice(start, start + self.slice)
                logits = self._logits(states[part]).float()
                chosen = logits.gather(1, ids[row[part], place[part]][:, None])[:, 0]
                nats[part] = torch.logsumexp(logits, 1) - chosen
            np.add.at(found, at[: len(asked), 0], nats[: len(asked)].cpu().numpy().astype(np.float64))
        return found

    def _states(self, ids: Any) -> Any:
        """[rows, length, width] hidden states; or the logits themselves, of a model that does more with them."""
        if self.body is None:
            return self.model(input_ids=ids, use_cache=False).logits
        return self.body(input_ids=ids, use_cache=False).last_hidden_state

    def _logits(self, states: Any) -> Any:
        return states if self.body is None else self.head(states)

    def _probe(self, folder: Path) -> None:
        """Finds out whether body and output layer are the whole model. Raises ValueError if its numbers are not finite."""
        import torch

        ids = torch.arange(int(np.prod(PROBE)), device=self.device).reshape(PROBE) % self.n_embeddings
        with torch.inference_mode():
            whole = self.model(input_ids=ids, use_cache=False).logits.float()
            if not torch.isfinite(whole).all():
                raise ValueError(f"{folder}: expected finite logits, found nan or infinity; its weights are damaged")
            split = self._logits(self._states(ids)).float()
            if split.shape != whole.shape or not torch.allclose(split, whole, rtol=1e-2, atol=1e-2):
                self.body = None
