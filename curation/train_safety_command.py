"""`corpusmill train-safety`: a BERT for the filter `safety_model`, from labelled rows of one's own.

Fine-tunes multilingual-e5-small, or any BERT in transformers' format, on a CPU or a GPU. 60,000 rows of 40 tokens, three
times, take about half an hour on two cores with adapters on six layers.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from curation.errors import ConfigError, InputError

__all__ = ["add_train_safety"]

log = logging.getLogger("corpusmill")

SETTINGS = (
    ("base", str, "NAME", "e5 (multilingual-e5-small, from installed packages), a folder, or a name on the hub (e5)"),
    ("layers", int, "N", "keep the first N layers of the base only"),
    ("freeze", int, "M", "embeddings and the first M layers do not learn; what they say is worked out once"),
    ("adapter", int, "R", "train adapters (LoRA) of rank R, and write them as a file of their own; 0: all weights (0)"),
    ("max-tokens", int, "N", "tokens of a text that are read (128)"),
    ("epochs", int, "N", "how often each row is learned, at most (3)"),
    ("batch-tokens", int, "N", "tokens of a batch, with padding (4096)"),
    ("learning-rate", float, "X", "top of it, for the encoder (0.001 with adapters, else 0.0001)"),
    ("dropout", float, "X", "share of features that are left out in training (0.1)"),
    ("weight-decay", float, "X", "of AdamW (0.01)"),
    ("warm-up", float, "X", "share of all steps (0.06)"),
    ("patience", int, "N", "end after so many judgements that were no better; two an epoch (4)"),
    ("development", float, "X", "share of rows to judge by, where rows do not say themselves (0.1)"),
    ("seed", int, "N", "of all chance (1)"),
    ("cache-mb", int, "MB", "memory for what the frozen layers say (6000)"),
)


def add_train_safety(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "fine-tune a BERT on labelled rows, for the filter safety_model"
    parser = commands.add_parser(
        "train-safety",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n"
        "  corpusmill train-safety --input rows.jsonl --output model --layers 6 --adapter 16\n"
        "  corpusmill train-safety --input a.jsonl b.jsonl.zst --output model --freeze 6 --adapter 16 --augment\n"
        "  corpusmill train-safety ...        the same again: goes on where it was stopped",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--input", nargs="+", type=Path, required=True, metavar="FILE", help="JSON lines (.gz, .zst) of text and labels"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the model")
    parser.add_argument("--labels", metavar="A,B", help="labels of the model (the categories of safety filters)")
    for name, kind, shown, what in SETTINGS:
        parser.add_argument(f"--{name}", type=kind, metavar=shown, help=what)
    parser.add_argument(
        "--good", nargs="+", type=Path, default=[], metavar="FILE", help="JSON lines of harmless documents"
    )
    parser.add_argument(
        "--precision", type=float, metavar="X", help="that thresholds reach on the development part (0.95)"
    )
    parser.add_argument(
        "--max-false-alarms", type=float, metavar="X", help="share of harmless windows and documents (0.001)"
    )
    parser.add_argument("--card-notes", type=Path, metavar="FILE", help="Markdown: known failures, for the model card")
    parser.add_argument("--no-onnx", action="store_true", help="write no 8-bit model for CPUs")
    parser.add_argument("--augment", action="store_true", help="learn evasive spellings and adverts hidden in text too")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to train (auto)")
    parser.add_argument("--checkpoint-minutes", type=float, default=5.0, metavar="N", help="how often to save (5)")
    parser.set_defaults(function=_train_safety)


def _train_safety(arguments: argparse.Namespace) -> int:
    from quality_models.safety_training_settings import CalibrationSettings, TrainingSettings

    try:
        names = [name.replace("-", "_") for name, *_ in SETTINGS]
        settings = TrainingSettings(**_given(arguments, names), augment=arguments.augment, device=arguments.device)
        calibration = CalibrationSettings(**_given(arguments, ["precision", "max_false_alarms"]))
    except ValueError as error:
        raise ConfigError(f"train-safety: {error}") from error
    labels = [label.strip() for label in arguments.labels.split(",")] if arguments.labels is not None else []
    if not all(labels) or len(set(labels)) < len(labels):
        raise ConfigError(
            f"--labels {arguments.labels}: expected different names between commas, found an empty or a double"
        )
    for path in (*arguments.input, *arguments.good):
        if not path.is_file():
            raise InputError(
                f"{path}: expected a file of JSON lines, found {'a folder' if path.is_dir() else 'nothing'}"
            )
    if arguments.output.exists() and not arguments.output.is_dir():
        raise ConfigError(f"{arguments.output}: expected a folder for the model, found a file; give another name")
    _needs_torch()
    from quality_models.safety_training_run import train_safety

    try:
        facts = train_safety(
            arguments.input,
            arguments.output,
            settings,
            calibration,
            labels=labels,
            good=arguments.good,
            card_notes=arguments.card_notes.read_text(encoding="utf-8") if arguments.card_notes else "",
            onnx=not arguments.no_onnx,
            checkpoint_minutes=arguments.checkpoint_minutes,
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    score = facts["metrics"]["development"]["average_precision"]
    log.info(
        "%s: %d labels, average precision on the development part %.4f", arguments.output, len(facts["labels"]), score
    )
    return 0


def _given(arguments: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """What was given of the options; the rest has defaults elsewhere."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _needs_torch() -> None:
    from importlib.util import find_spec

    for package in ("torch", "transformers", "tokenizers", "safetensors"):
        if find_spec(package) is None:
            raise ConfigError(
                f"train-safety: expected the package {package}, found it missing; `make torch`, or pip install 'corpusmill[torch]'"
            )
