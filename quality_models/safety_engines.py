"""What computes a safety classifier: onnxruntime in 8 bits on a CPU, or torch in float32 on a GPU or CPU; one contract.

`logits(rows)` of windows (token ids with special ones): float32[n, labels], in order; what a window gets does not depend on the
windows beside it. onnxruntime reads windows of equal length together, without padding, and each token has its own scale, so the
numbers are the same to the last bit. torch reads batches of fixed shapes with padding behind a mask (`lm_batches`): the same
bits on one machine; against windows without padding logits differ by some 1e-5.

Costs: bench/results says how many windows a second. A model is loaded once a process.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from quality_models.lm_batches import batches, shapes
from quality_models.safety_encoder import Encoder
from quality_models.safety_export import SOURCE

__all__ = ["Engine", "OnnxEngine", "TorchEngine", "has_gpu", "torch_from_encoder", "torch_from_folder"]

Ids = npt.NDArray[np.int32]
Logits = npt.NDArray[np.float32]

ONNX_TOKENS = 512
"""Of a batch: more brings nothing, since activations of 512 tokens still fit a core's cache."""
TORCH_TOKENS = {"cpu": 1024, "cuda": 32_768}


class Engine(Protocol):
    """A loaded classifier."""

    def logits(self, rows: Sequence[Ids]) -> Logits:
        """float32[n, labels], nan where the model's numbers are."""
        ...


class OnnxEngine:
    """Computes a file of `safety_export`. threads: of the session, one a worker."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Raises ValueError where the file cannot be read, or package onnxruntime is missing."""
        try:
            import onnxruntime  # type: ignore[import-untyped]
        except ModuleNotFoundError:
            raise ValueError(
                "engine onnx: expected the package onnxruntime, found it missing; pip install 'corpusmill[curate]'"
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # of one shape; here each length is another
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own classes have no public base
            raise ValueError(
                f"{path}: expected a model for onnxruntime, found {_short(error)}; export it again"
            ) from error
        self.source = self.session.get_modelmeta().custom_metadata_map.get(SOURCE, "")

    def logits(self, rows: Sequence[Ids]) -> Logits:
        found: Logits | None = None
        for members in _equal_lengths(rows):
            part = self._run(np.stack([rows[number] for number in members]).astype(np.int64))
            if found is None:
                found = np.empty((len(rows), part.shape[1]), np.float32)
            found[members] = part
        return np.empty((0, self.session.get_outputs()[0].shape[1]), np.float32) if found is None else found

    def _run(self, ids: npt.NDArray[np.int64]) -> Logits:
        found: Logits = self.session.run(None, {self.session.get_inputs()[0].name: ids})[0]
        return found


def _equal_lengths(rows: Sequence[Ids]) -> Iterator[list[int]]:
    """Numbers of rows of one length, in batches, longest first."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, ids in enumerate(rows):
        by_length[len(ids)].append(number)
    for length in sorted(by_length, reverse=True):
        members, most = by_length[length], max(1, ONNX_TOKENS // length)
        for start in range(0, len(members), most):
            yield members[start : start + most]


class TorchEngine:
    """Computes a transformers model. device: cpu or cuda; window: tokens of the longest row."""

    def __init__(self, model: Any, device: str, window: int, pad: int, threads: int = 1) -> None:
        self.model = model.to(device).eval()
        self.device, self.pad, self.threads = device, pad, threads
        self.shapes = shapes(window, TORCH_TOKENS[device])

    def logits(self, rows: Sequence[Ids]) -> Logits:
        import torch

        found = np.empty((len(rows), self.model.config.num_labels), np.float32)
        with _threads(self.threads), torch.inference_mode():
            for batch in batches([len(ids) for ids in rows], self.shapes):
                ids = np.full(batch.shape, self.pad, np.int64)
                mask = np.zeros(batch.shape, np.int64)
                mask[len(batch.windows) :, 0] = 1  # a row that looks at nothing has no numbers
                for place, number in enumerate(batch.windows):
                    ids[place, : len(rows[number])] = rows[number]
                    mask[place, : len(rows[number])] = 1
                inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
                said = self.model(**{name: values.to(self.device) for name, values in inputs.items()}).logits
                found[batch.windows] = said[: len(batch.windows)].float().cpu().numpy()
        return found


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_from_folder(folder: Path) -> Any:
    """Any sequence classifier of transformers, in float32, with every weight from its files. Raises ValueError."""
    from quality_models.causal_lm import quiet

    with _needed(), quiet():
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForSequenceClassification

        try:
            model, info = AutoModelForSequenceClassification.from_pretrained(
                folder, dtype=torch.float32, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
        except (SafetensorError, ValueError, OSError, KeyError, RuntimeError, ImportError) as error:
            raise ValueError(
                f"{folder}: expected a sequence classifier that transformers can load, found {_short(error)}; "
                "save it with save_pretrained"
            ) from error
    if lost := [*info["missing_keys"], *info["mismatched_keys"]]:
        raise ValueError(
            f"{folder}: expected every weight of the classifier, found {len(lost)} missing or of another shape "
            f"({lost[0]} ...); copy the model again, or check that it is a sequence classifier"
        )
    return model


def torch_from_encoder(encoder: Encoder) -> Any:
    """transformers' BertForSequenceClassification with these weights. Raises ValueError where packages are missing."""
    with _needed():
        import torch
        from transformers import BertForSequenceClassification

    model = BertForSequenceClassification(_bert_config(encoder))
    heads = {"head.dense": "bert.pooler.dense", "head.out": "classifier"}
    state = {}
    for name, values in encoder.weights.items():
        before, _, last = name.rpartition(".")
        state[f"{heads[before]}.{last}" if before in heads else f"bert.{name}"] = torch.from_numpy(
            np.array(values, np.float32)
        )
    model.load_state_dict(state)
    return model


def _bert_config(encoder: Encoder) -> Any:
    from transformers import BertConfig

    shape, weights = encoder
    return BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.positions,
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=shape.eps,
        num_labels=len(weights["head.out.bias"]),
    )


@contextlib.contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ValueError(
            f"engine torch: expected the package {error.name}, found it missing; pip install 'corpusmill[torch]'"
        ) from None


def has_gpu() -> bool:
    """Whether torch is there with a GPU. torch is imported only where it is installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None or not _has_driver():
        return False
    import torch

    return bool(torch.cuda.is_available())


def _has_driver() -> bool:
    """Whether a driver may be there: without one torch finds no GPU, and takes more than a second to be imported for that."""
    if sys.platform != "linux" or Path("/dev/kfd").exists():  # AMD's driver has no library that torch does not bring
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
