"""The configuration: YAML in, frozen and complete models out; the only reader of the environment.

    name: zhweb
    ingest: {text_column: content}
    steps:                       # this list is the pipeline, in order; left out = off
      - html_noise: {}
      - length: {min_units: 20}
      - exact: {}
    pack: {seq_len: 2048}

An unknown key is refused with the nearest known one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation.errors import ConfigError, nearest
from curation.ids import digest8
from curation.ingest.config import IngestConfig
from curation.pack import PackConfig
from curation.steps import step_class
from curation.verdicts import Step

__all__ = ["Environment", "RunConfig", "environment", "load_config", "parse_config"]

SHIPPED = Path(__file__).resolve().parent.parent / "configs"


class TopLevel(BaseModel):
    """The YAML's top level. `steps` is checked apart, since each step has its own model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(default="run", min_length=1, max_length=60)
    """Begins the run id."""
    memory_mb: int = Field(default=2000, ge=500)
    """What one worker process may use at its peak; data-set steps cut their work to fit."""
    ingest: IngestConfig = IngestConfig()
    """How inputs become documents."""
    steps: list[Any] = []
    """The pipeline, in order: each entry a step's name with its settings."""
    pack: PackConfig | None = None
    """Left out: the run ends with verdicts and the report, without a token file."""


@dataclass(frozen=True)
class RunConfig:
    """A complete configuration: top level plus step objects, in order."""

    top: TopLevel
    steps: tuple[Step, ...]

    def resolved(self) -> dict[str, Any]:
        """The whole configuration as plain data, every default filled in."""
        data = self.top.model_dump(mode="json")
        data["steps"] = [{step.name: step.config.model_dump(mode="json")} for step in self.steps]
        return data

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.resolved(), sort_keys=False, allow_unicode=True)

    def digest(self) -> str:
        """8 hex digits over the resolved configuration."""
        return digest8(self.resolved())


def load_config(source: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Load a config given as a path, or as the name of a shipped one (`web`, `zh-web`, `demo`).

    Args:
        source: path of a YAML file, or the name of a file in `configs/`.
        overrides: `a.b=c` items; a step is addressed by its name (`length.min_units=30`).

    Raises:
        ConfigError: missing file, bad YAML, unknown or wrong key.
    """
    path = Path(source)
    if not path.is_file():
        shipped = SHIPPED / f"{source}.yaml"
        if not shipped.is_file():
            known = sorted(p.stem for p in SHIPPED.glob("*.yaml"))
            raise ConfigError(
                f"no config file {source}{nearest(str(source), known)}. "
                f"Give the path of a YAML file or one of the shipped configs: {', '.join(known)}."
            )
        path = shipped
    return parse_config(path.read_text(encoding="utf-8"), str(path), overrides)


def parse_config(text: str, where: str = "config", overrides: Sequence[str] = ()) -> RunConfig:
    """Parse and check YAML text; `where` names it in errors."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not valid YAML: {error}") from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"{where}: expected a mapping with keys such as name, ingest, steps, pack; found {type(data).__name__}."
        )
    for override in overrides:
        _apply_override(data, override)
    top = _check(TopLevel, data, where, "")
    return RunConfig(top=top, steps=_steps(top.steps, where))


def _steps(entries: Sequence[Any], where: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    for position, entry in enumerate(entries, start=1):
        if isinstance(entry, str):
            entry = {entry: {}}
        if not isinstance(entry, dict) or len(entry) != 1:
            raise ConfigError(f"{where}: step {position} must be one `name: {{settings}}`, found {entry!r}.")
        name, settings = next(iter(entry.items()))
        kind = step_class(str(name))
        if any(step.name == name for step in steps):
            raise ConfigError(f"{where}: step {name!r} stands twice in steps; a step may run once.")
        config = _check(kind.Config, settings or {}, where, f"steps.{name}")
        steps.append(kind(config))
    return tuple(steps)


def _check(model: type[Any], data: Any, where: str, prefix: str) -> Any:
    """Validate, turning pydantic's errors into one sentence each with the key and the nearest known one."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = []
        for item in error.errors(include_url=False):
            key = ".".join(str(part) for part in ((prefix,) if prefix else ()) + item["loc"])
            if item["type"] == "extra_forbidden":
                known = _known_keys(model, item["loc"][:-1])
                lines.append(f"unknown key {key}{nearest(str(item['loc'][-1]), known)} (known: {', '.join(known)})")
            else:
                lines.append(f"{key or 'top level'}: {item['msg']}, found {item['input']!r:.80}")
        raise ConfigError(f"{where}: " + "; ".join(lines) + ".") from None


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        field = model.model_fields.get(str(part))
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())] if field else []
        inner = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _apply_override(data: dict[str, Any], override: str) -> None:
    """Set `a.b=c` in the plain data. The first part is a top-level key or a step's name."""
    path, equals, raw = override.partition("=")
    parts = [part for part in path.strip().split(".") if part]
    if not equals or not parts:
        raise ConfigError(f"--set {override!r}: expected key=value, such as length.min_units=30 or pack.seq_len=4096.")
    try:
        value = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override!r}: the value is not valid YAML: {error}") from error
    if parts[0] == "steps" and len(parts) > 1:
        parts = parts[1:]
    target: Any = data
    if parts[0] not in TopLevel.model_fields:
        target = _step_entry(data, parts[0], override)
        parts = parts[1:]
        if not parts:
            raise ConfigError(f"--set {override!r}: name a setting of the step, such as {path.strip()}.key=value.")
    for part in parts[:-1]:
        if target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            raise ConfigError(f"--set {override!r}: {part} is not a mapping.")
    target[parts[-1]] = value


def _step_entry(data: Mapping[str, Any], name: str, override: str) -> dict[str, Any]:
    """The mutable settings of a step in the plain data, made if it is written short."""
    entries = data.get("steps") or []
    names = []
    for position, entry in enumerate(entries):
        if isinstance(entry, str):
            entry = entries[position] = {entry: {}}
        if isinstance(entry, dict) and len(entry) == 1:
            key = next(iter(entry))
            names.append(str(key))
            if key == name:
                if entry[key] is None:
                    entry[key] = {}
                settings: dict[str, Any] = entry[key]
                return settings
    known = [*names, *TopLevel.model_fields]
    raise ConfigError(
        f"--set {override!r}: no step or key {name!r} in this config{nearest(name, known)} (known: {', '.join(known)})."
    )


@dataclass(frozen=True)
class Environment:
    """Everything that is read from the environment, in one place."""

    root: Path
    """CORPUSMILL_ROOT: where runs lie if --root is not given."""
    configs: Path | None
    """CORPUSMILL_CONFIGS: a folder of configs that the DAG's form offers beside the shipped ones."""


def environment() -> Environment:
    """Read the environment."""
    configs = os.environ.get("CORPUSMILL_CONFIGS")
    return Environment(
        root=Path(os.environ.get("CORPUSMILL_ROOT", "runs-root")),
        configs=Path(configs) if configs else None,
    )
