"""Settings of the training of a safety model, with their defaults and bounds. Needs no torch."""

from __future__ import annotations

import dataclasses

__all__ = ["CalibrationSettings", "TrainingSettings"]

ADAPTER_RATE, FULL_RATE, HEAD_RATE = 1e-3, 1e-4, 1e-3
"""For encoders a few hundred numbers wide; larger ones want less."""

BOUNDS = {
    "layers": (1, 100),
    "freeze": (0, 100),
    "adapter": (0, 1024),
    "max_tokens": (8, 512),
    "epochs": (1, 1000),
    "batch_tokens": (64, 1 << 20),
    "dropout": (0.0, 0.9),
    "warm_up": (0.0, 0.9),
    "patience": (1, 10_000),
    "development": (0.01, 0.5),
}


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """What decides how a model comes out, apart from the rows."""

    base: str = "e5"
    layers: int | None = None
    freeze: int | None = None
    """Embeddings and the first so many layers do not learn; None: all learn."""
    adapter: int = 0
    """Rank; 0: the matrices themselves learn."""
    max_tokens: int = 128
    epochs: int = 3
    batch_tokens: int = 4096
    learning_rate: float | None = None
    dropout: float = 0.1
    weight_decay: float = 0.01
    warm_up: float = 0.06
    """Share of all steps."""
    patience: int = 4
    """Judgements in a row that are no better; two an epoch."""
    development: float = 0.1
    """Share of the rows, where they do not say themselves."""
    augment: bool = False
    seed: int = 1
    device: str = "auto"
    cache_mb: int = 6000

    def __post_init__(self) -> None:
        """Raises ValueError for a setting out of bounds."""
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} {value}: expected a number from {least} to {most}")
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            raise ValueError(f"--learning-rate {self.learning_rate}: expected a number over 0 and under 1")

    @property
    def rate(self) -> float:
        """Top learning rate of the encoder."""
        return self.learning_rate or (ADAPTER_RATE if self.adapter else FULL_RATE)

    @property
    def head_rate(self) -> float:
        """Top learning rate of pooler and classifier, which start from nothing."""
        return max(self.rate, HEAD_RATE)

    @property
    def scale(self) -> float:
        """By which the product of an adapter's matrices is multiplied."""
        return 2.0


@dataclasses.dataclass(frozen=True)
class CalibrationSettings:
    """What the thresholds promise."""

    precision: float = 0.95
    """Share of right ones among the rows of the development part that a label flags."""
    max_false_alarms: float = 0.001
    """Share of harmless windows, and of harmless documents of several windows, that any label flags."""

    def __post_init__(self) -> None:
        """Raises ValueError for a setting out of bounds."""
        if not 0 < self.precision <= 1:
            raise ValueError(f"--precision {self.precision}: expected a share over 0 and up to 1")
        if not 0 <= self.max_false_alarms <= 1:
            raise ValueError(f"--max-false-alarms {self.max_false_alarms}: expected a share from 0 to 1")
