"""Small worlds for the rolling re-score: a training with a ledger and toy checkpoints, runs with planted noise, settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from curation.config import parse_config
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.rescore.checkpoints import look
from curation.rescore.settings import RescoreSettings, load_settings
from tests.lm_oracle import write_bigrams
from tokenization.progress import Attempt, ProgressLedger

PROSE = "the mill by the river turns all day and grinds the corn of the farm "
EVERY = 1000
CHOOSE = {"high": {"percentile": 95}, "low": {}, "min_documents": 20, "group": "language", "max_share": 0.2}


def texts(n: int, seed: int = 0) -> list[str]:
    """Prose of the farm; every 20th is noise."""
    return [
        " ".join(f"{(seed + 1) * n * k % 9973:x}QZ~" for k in range(1, 30))
        if n % 20 == 7
        else PROSE * 2 + f"number {seed} {n}"
        for n in range(1, n + 1)
    ]


def write_texts(path: Path, found: Sequence[str]) -> None:
    """JSON lines, moved into place whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.tmp")
    made.write_text("".join(json.dumps({"text": one}) + "\n" for one in found), encoding="utf-8")
    made.rename(path)


@dataclass
class Loop:
    """A folder with everything in it."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def training(self) -> Path:
        """Where the trainer writes."""
        return self.folder / "training"

    def settings(self, **more: Any) -> RescoreSettings:
        """Settings in a file, read again."""
        return load_settings(self.settings_file(**more))

    def settings_file(self, **more: Any) -> Path:
        said = {
            "training": {"run": "toy", "ledger": "training"},
            "every_tokens": EVERY,
            "root": "root",
            "score": {"window": 128, "dtype": "float32", "device": "cpu"},
            "choose": CHOOSE,
            "wait_seconds": 0,
            **more,
        }
        path = self.folder / "rescore.yaml"
        path.write_text(yaml.safe_dump(said), encoding="utf-8")
        return path

    def add_run(self, run_id: str, found: Sequence[str], *, pack: bool = False) -> Pipeline:
        """A run that is done; its step `length` keeps all."""
        write_texts(self.folder / "in" / f"{run_id}.jsonl", found)
        config = parse_config(yaml.safe_dump({"name": "p", "steps": [{"length": {"min_units": 3}}]}))
        pipeline = start_run(config, [str(self.folder / "in" / f"{run_id}.jsonl")], self.root, run_id=run_id)
        drive(pipeline, workers=1)
        finish_run(Pipeline.open(pipeline.run.folder))
        return Pipeline.open(pipeline.run.folder)

    def attempt(self, after: Any = None) -> Attempt:
        """A process that trains."""
        self.training.mkdir(exist_ok=True)
        return ProgressLedger(self.training).begin("toy", tokenizer="0" * 64, token_files=["1" * 64], after=after)

    def checkpoint(self, name: str, model: Path) -> str:
        """A checkpoint of the trainer's, a copy of the model; returns its checksum."""
        shutil.copytree(model, self.training / name)
        return look(self.training / name, settled_s=-1e9).sha256

    def folder_of(self, tokens: int) -> Path:
        return self.root / "rescore" / "toy" / f"{tokens:016d}"

    def done(self, tokens: int) -> dict[str, Any]:
        """The marker of a threshold."""
        found: dict[str, Any] = json.loads((self.folder_of(tokens) / "_done.json").read_text(encoding="utf-8"))
        return found


def toy_model(folder: Path) -> Path:
    """A model of byte pairs that has read the prose."""
    return write_bigrams(folder / "bigrams", PROSE * 20 + "number 0123456789 ", positions=256)
