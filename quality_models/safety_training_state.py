"""How far a training has come, in memory and on disk, so that one that was stopped goes on to the same end.

The file is written under another name, synced, and renamed. It names a fingerprint of rows, settings and versions; another
fingerprint is refused. It is read with torch's loader for weights alone, which runs no code.
"""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import torch

__all__ = ["Checkpoint", "Progress"]


@dataclasses.dataclass
class Progress:
    """Where the training stands, and the best state so far."""

    epoch: int = 0
    step: int = 0
    """Next to do, in this epoch."""
    best: float = -1.0
    stale: int = 0
    """Judgements since the best."""
    over: bool = False
    losses: list[float] = dataclasses.field(default_factory=list)
    """Of the steps since the last judgement."""
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    weights: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Of the best state: what learns, on the CPU."""

    def note(self, score: float, done: float, learning: dict[str, Any], patience: int) -> bool:
        """Take a judgement down; returns whether it is the best. Ends the training when it gets no better."""
        loss = sum(self.losses) / max(len(self.losses), 1)
        self.losses = []
        self.history.append({"epoch": round(self.epoch + done, 3), "loss": loss, "average_precision": score})
        if score > self.best:
            self.best, self.stale = score, 0
            self.weights = {name: p.detach().to("cpu", copy=True) for name, p in learning.items()}
            return True
        self.stale += 1
        self.over = self.stale >= patience
        return False

    def restore_best(self, learning: dict[str, Any]) -> None:
        """Put the best state back into the model."""
        with torch.no_grad():
            for name, values in self.weights.items():
                learning[name].copy_(values)


class Checkpoint:
    """The file of one training."""

    def __init__(self, path: Path, fingerprint: str, minutes: float) -> None:
        self.path, self.fingerprint, self.minutes = path, fingerprint, minutes
        self.saved = time.monotonic()

    def due(self) -> bool:
        """Whether the last one is `minutes` old."""
        return time.monotonic() - self.saved >= self.minutes * 60

    def save(self, progress: Progress, learning: dict[str, Any], optimizer: Any | None = None) -> None:
        """Write the state; a crash leaves the old file or the new one. No optimizer: the training is over."""
        whole = {
            "fingerprint": self.fingerprint,
            "progress": {field.name: getattr(progress, field.name) for field in dataclasses.fields(progress)},
            "learning": {name: p.detach() for name, p in learning.items()},
            "optimizer": optimizer.state_dict() if optimizer else None,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            with beside.open("wb") as file:
                torch.save(whole, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)
        self.saved = time.monotonic()

    def load(self, learning: dict[str, Any], optimizer: Any) -> Progress | None:
        """Put a saved state back; None where there is none.

        Raises:
            ValueError: it is damaged, or of other rows, settings or versions.
        """
        for left in self.path.parent.glob(f"{self.path.name}.*.tmp"):
            left.unlink(missing_ok=True)  # of a process that was killed while it wrote
        if not self.path.exists():
            return None
        try:
            whole = torch.load(self.path, map_location="cpu", weights_only=True)
            found = whole["fingerprint"]
        except Exception as error:  # torch raises whatever the damage leads to
            raise ValueError(
                f"{self.path}: expected the state of a training, found damage ({error}); delete it"
            ) from error
        if found != self.fingerprint:
            raise ValueError(
                f"{self.path}: expected the state of a training of these rows with these settings, found that of another; "
                "give the rows and settings it was begun with, another output folder, or delete the file to begin anew"
            )
        with torch.no_grad():
            for name, values in whole["learning"].items():
                learning[name].copy_(values)
        if whole["optimizer"] is not None:
            optimizer.load_state_dict(whole["optimizer"])
        return Progress(**whole["progress"])
