"""One training of a safety model from files to a folder: rows, split, training, what is written. Needs torch."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quality_models.safety_labels import CATEGORY_NAMES
from quality_models.safety_training import Trainer
from quality_models.safety_training_base import load_base
from quality_models.safety_training_output import (
    ADAPTER,
    FACTS,
    adapter_tensors,
    plain_model,
    versions,
    write_adapter,
    write_json,
    write_model,
)
from quality_models.safety_training_rows import Row, file_sha256, labels_in, read_rows, split_rows
from quality_models.safety_training_settings import TrainingSettings
from quality_models.safety_training_state import Checkpoint

__all__ = ["train_safety"]

log = logging.getLogger("corpusmill")

STATE = "training.state"


def train_safety(
    inputs: Sequence[Path],
    output: Path,
    settings: TrainingSettings,
    *,
    labels: Sequence[str] = (),
    checkpoint_minutes: float = 5.0,
) -> dict[str, Any]:
    """Train, and write the model's folder; returns what safety.json holds.

    Raises:
        ValueError: rows, settings or base cannot be used; says which and why.
        OSError: a file is not there.
    """
    rows = read_rows(inputs, labels or CATEGORY_NAMES)
    parts = {
        name: [rows[at] for at in places]
        for name, places in split_rows(rows, settings.development, settings.seed).items()
    }
    used = _labels(parts, labels)
    base = load_base(settings.base, used, settings.layers, settings.seed)
    data = [{"file": path.name, "sha256": file_sha256(path)} for path in inputs]
    fingerprint = _fingerprint(data, used, base.facts, settings)
    output.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(output / STATE, fingerprint, checkpoint_minutes)
    counts = {name: len(part) for name, part in parts.items()}
    log.info("rows: %s; labels: %s", ", ".join(f"{n:,} {name}" for name, n in counts.items()), ", ".join(used))
    trainer = Trainer(base, parts["train"], parts["dev"], used, settings)
    progress = trainer.train(checkpoint)
    tensors = adapter_tensors(base.model) if settings.adapter else {}
    plain_model(base)
    facts: dict[str, Any] = {
        "format": 1,
        "labels": list(used),
        "thresholds": {"default": dict.fromkeys(used, 0.5), "long": dict.fromkeys(used, 0.5), "languages": {}},
        "temperature": {label: [1.0, 0.0] for label in used},
        "max_tokens": settings.max_tokens,
        "normalised": True,
        "base": base.facts,
        "data": {"files": data, "rows": counts},
        "metrics": {"development": {"average_precision": progress.best}, "history": progress.history},
    }
    write_model(base, output)
    if settings.adapter:
        write_adapter(tensors, output / ADAPTER, base, settings, facts)
    write_json(facts, output / FACTS)
    checkpoint.remove()
    return facts


def _labels(parts: dict[str, list[Row]], wanted: Sequence[str]) -> tuple[str, ...]:
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
    missing = [label for label in CATEGORY_NAMES if label not in there]
    if missing and not wanted:
        log.info("no rows, so not learned: %s", ", ".join(missing))
    return tuple(wanted) or there


def _fingerprint(
    data: list[dict[str, str]], labels: Sequence[str], base: dict[str, Any], settings: TrainingSettings
) -> str:
    """Of all that decides how the model comes out."""
    whole = [data, list(labels), base, dataclasses.asdict(settings), versions()]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
