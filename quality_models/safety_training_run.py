"""One training of a safety model from files to a folder: rows, split, training, calibration, what is written. Needs torch."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quality_models.language_codes import to_iso639_3
from quality_models.safety_calibration import fit_platt, measures, thresholds_of
from quality_models.safety_card import model_card, row_counts
from quality_models.safety_labels import CATEGORY_NAMES
from quality_models.safety_settings import FORMAT, MAX_TOKENS, STRIDE, SafetySettings
from quality_models.safety_training import Trainer, label_matrix, pick_device
from quality_models.safety_training_base import Base, load_base
from quality_models.safety_training_judge import Judge
from quality_models.safety_training_output import (
    ADAPTER,
    CARD,
    FACTS,
    METRICS,
    adapter_tensors,
    export_onnx,
    plain_model,
    versions,
    write_adapter,
    write_json,
    write_model,
    write_text,
)
from quality_models.safety_training_rows import Row, file_sha256, labels_in, read_rows, split_rows
from quality_models.safety_training_settings import CalibrationSettings, TrainingSettings
from quality_models.safety_training_state import Checkpoint

__all__ = ["train_safety"]

log = logging.getLogger("corpusmill")

STATE = "training.state"
NO_LANGUAGES = {"und", "mul", "mis", "zxx"}
Parts = dict[str, list[Row]]


def train_safety(
    inputs: Sequence[Path],
    output: Path,
    settings: TrainingSettings,
    calibration: CalibrationSettings | None = None,
    *,
    labels: Sequence[str] = (),
    good: Sequence[Path] = (),
    card_notes: str = "",
    onnx: bool = True,
    checkpoint_minutes: float = 5.0,
) -> dict[str, Any]:
    """Train, calibrate, and write the model's folder; returns what safety.json holds.

    Raises:
        ValueError: rows, settings or base cannot be used; says which and why.
        OSError: a file is not there.
    """
    calibration = calibration or CalibrationSettings()
    rows = read_rows(inputs, labels or CATEGORY_NAMES)
    harmless = read_rows(good, harmless=True)
    places = split_rows(rows, settings.development, settings.seed)
    parts = {name: [rows[at] for at in part] for name, part in places.items()}
    used = _labels(parts, labels)
    counts = {name: len(part) for name, part in parts.items()}
    log.info("rows: %s; labels: %s", ", ".join(f"{n:,} {name}" for name, n in counts.items()), ", ".join(used))
    base = load_base(settings.base, used, settings.layers, settings.seed)
    data = [{"file": path.name, "sha256": file_sha256(path)} for path in inputs]
    output.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(output / STATE, _fingerprint(data, used, base.facts, settings), checkpoint_minutes)
    with Trainer(base, parts["train"], parts["dev"], used, settings) as trainer:
        progress = trainer.train(checkpoint)
    tensors = adapter_tensors(base.model) if settings.adapter else {}
    plain_model(base)
    facts = _origins(used, base, settings) | {"data": {"files": data, "rows": counts, "counts": row_counts(parts)}}
    facts |= _calibrated(base, used, parts, harmless, settings, calibration)
    facts["metrics"]["history"] = progress.history
    _write(base, output, settings, facts, tensors, card_notes)
    if onnx:
        export_onnx(output)
    return facts


def _origins(labels: Sequence[str], base: Base, settings: TrainingSettings) -> dict[str, Any]:
    """What is known before the model is measured."""
    return {
        "format": FORMAT,
        "labels": list(labels),
        "max_tokens": settings.max_tokens,
        "stride": _stride(settings.max_tokens),
        "normalised": True,
        "base": base.facts,
        "settings": dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        "versions": versions(),
    }


def _stride(max_tokens: int) -> int:
    return max(1, max_tokens * STRIDE // MAX_TOKENS)


def _labels(parts: Parts, wanted: Sequence[str]) -> tuple[str, ...]:
    """The labels that the model gets. Raises ValueError where there is nothing to tell apart."""
    there = labels_in(parts["train"], wanted or CATEGORY_NAMES)
    for name in ("train", "dev"):
        part = parts[name]
        if not any(row.labels for row in part) or all(row.labels for row in part):
            kind = "harmless" if any(row.labels for row in part) else "labelled"
            raise ValueError(
                f"the {name} part: expected rows with labels and harmless ones, found no {kind} row among {len(part):,}; "
                "a model needs both, and more than one group of each"
            )
    for label in wanted:
        if label not in there:
            raise ValueError(f"--labels: expected rows of {label!r} in the training part, found none; leave it out")
    for name in ("dev", "test"):
        for label in labels_in(parts[name]):
            if label not in there:
                raise ValueError(f"{label!r}: expected rows of it in the training part too, found some in {name} only")
    missing = [label for label in CATEGORY_NAMES if label not in there]
    if missing and not wanted:
        log.info("no rows, so not learned: %s", ", ".join(missing))
    return tuple(wanted) or there


def _fingerprint(
    data: list[dict[str, str]], labels: Sequence[str], base: dict[str, Any], settings: TrainingSettings
) -> str:
    """Of all that decides how the model comes out."""
    files = [one["sha256"] for one in data]
    whole = [files, list(labels), base, dataclasses.asdict(settings), versions()]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _calibrated(
    base: Base,
    labels: tuple[str, ...],
    parts: Parts,
    harmless: Sequence[Row],
    settings: TrainingSettings,
    calibration: CalibrationSettings,
) -> dict[str, Any]:
    """Platt's scaling, thresholds and metrics, as safety.json holds them."""
    model = base.model.to(pick_device(settings.device))
    with Judge(model, base.tokenizer, settings.max_tokens, _stride(settings.max_tokens)) as judge:
        judged = judge.judge([row.text for row in parts["dev"]])
        wanted = label_matrix(parts["dev"], labels)
        per_window = wanted[judged.owner]
        slopes = {label: fit_platt(judged.logits[:, at], per_window[:, at]) for at, label in enumerate(labels)}
        scaling = SafetySettings(labels, slopes=slopes)
        probabilities = judged.greatest(scaling.probabilities(judged.logits), len(wanted))
        good = judge.judge([row.text for row in harmless])
        windows = scaling.probabilities(good.logits)
        many = _of_many_windows(good.owner, len(harmless))
        documents = good.greatest(windows, len(harmless))[many]
        found = thresholds_of(
            labels, probabilities, wanted, [_language(row.lang) for row in parts["dev"]],
            precision=calibration.precision, share=calibration.max_false_alarms, windows=windows, documents=documents,
        )  # fmt: skip
        for note in found.notes:
            log.warning("%s", note)
        metrics = {"development": _metrics(labels, probabilities, parts["dev"], found.default)}
        if parts["test"]:
            tested = judge.judge([row.text for row in parts["test"]])
            of_test = tested.greatest(scaling.probabilities(tested.logits), len(parts["test"]))
            metrics["test"] = _metrics(labels, of_test, parts["test"], found.default)
    model.cpu()
    return {
        "thresholds": {"default": found.default, "long": found.long, "languages": found.languages},
        "temperature": {label: list(pair) for label, pair in slopes.items()},
        "calibration": dataclasses.asdict(calibration)
        | {"good_documents": len(harmless), "good_long": int(many.sum()), "good_windows": len(windows), "notes": found.notes},
        "metrics": metrics,
    }  # fmt: skip


def _language(label: str) -> str:
    """ISO 639-3, as the filter names languages; empty for what names none."""
    try:
        code = to_iso639_3(label)
    except ValueError:
        return ""
    return "" if code in NO_LANGUAGES else code


def _of_many_windows(owner: Any, documents: int) -> Any:
    """bool[documents]: whether a document has more windows than one."""
    import numpy as np

    return np.bincount(owner, minlength=documents) > 1


def _metrics(
    labels: Sequence[str], probabilities: Any, rows: Sequence[Row], limits: Mapping[str, float]
) -> dict[str, Any]:
    """By language and label, and the mean of the labels; undefined numbers are null."""
    found = measures(labels, probabilities, label_matrix(rows, labels), [row.lang for row in rows], limits)
    each = [one.average_precision for one in found.get("all", {}).values()]
    harmless = [at for at, row in enumerate(rows) if not row.labels]
    limit = [limits[label] for label in labels]
    flagged = (probabilities[harmless] >= limit).any(axis=1).mean() if harmless else math.nan
    return {
        "average_precision": sum(each) / len(each) if each else None,
        "harmless_flagged": None if math.isnan(flagged) else float(flagged),
        "by_language": {
            language: {
                label: {key: None if math.isnan(value) else value for key, value in one._asdict().items()}
                for label, one in of.items()
            }
            for language, of in found.items()
        },
    }


def _write(
    base: Base,
    output: Path,
    settings: TrainingSettings,
    facts: dict[str, Any],
    tensors: dict[str, Any],
    card_notes: str,
) -> None:
    """safety.json last: it says that the folder is complete."""
    (output / FACTS).unlink(missing_ok=True)
    write_model(base, output)
    if settings.adapter:
        write_adapter(tensors, output / ADAPTER, base, settings, facts)
    write_json(facts["metrics"], output / METRICS)
    write_text(model_card(facts, output.resolve().name, card_notes), output / CARD)
    write_json(facts, output / FACTS)
