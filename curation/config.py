"""The configuration: YAML in, frozen and complete models out.

    name: zhweb
    ingest: {text_column: content}
    steps:                       # this list is the pipeline, in order; left out = off
      - html_noise: {}
      - length: {min_units: 20}
      - exact: {}
    pack: {seq_len: 2048}

An unknown key is refused with the nearest known one, a key that stands twice with both lines.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation.errors import ConfigError, nearest
from curation.export_config import ExportConfig
from curation.ids import digest8
from curation.impact.config import ImpactConfig
from curation.ingest.config import IngestConfig
from curation.pack_config import PackConfig
from curation.steps import STEPS, step_class
from curation.verdicts import Step

__all__ = [
    "SHIPPED",
    "RunConfig",
    "checked_model",
    "load_config",
    "parse_config",
    "place_paths",
    "shipped_config",
    "yaml_mapping",
]

_TOKENIZER_FILES = ("tokenizer.json", "*.model", "*.tiktoken", "tekken*.json", "vocab.*", "encoder.json")
"""What a tokenizer's folder holds at least one of; `tokenization` says more when it reads it."""
SHIPPED = Path(__file__).resolve().parent / "configs"
"""Folder of the configs that ship: part of the package, so that an installed one has them too."""


class TopLevel(BaseModel):
    """The YAML's top level. `steps` is checked apart, since each step has its own model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(default="run", min_length=1, max_length=60)
    """Begins the run id."""
    memory_mb: int = Field(default=2000, ge=500)
    """What a worker of a data-set step may use: it cuts its work into hash ranges that fit. The other passes are bounded by
    ingest.shard_mb and ingest.max_record_mb (about 450 MB at the defaults); the assembly of the token file needs 330 MB."""
    ingest: IngestConfig = IngestConfig()
    """How inputs become documents."""
    steps: list[Any] = []
    """The pipeline, in order: each entry a step's name with its settings."""
    pack: PackConfig | None = None
    """Left out: the run ends with verdicts and the report, without a token file."""
    export: ExportConfig | None = None
    """Left out: texts are exported by `corpusmill export` alone. Needs the step `language`."""
    impact: ImpactConfig | None = None
    """How much a change of this config or of the code may move, see `corpusmill impact`. Decides nothing in a run."""


@dataclass(frozen=True)
class RunConfig:
    """A complete configuration: top level plus step objects, in order."""

    top: TopLevel
    steps: tuple[Step, ...]

    def resolved(self) -> dict[str, Any]:
        """The whole configuration of a run as plain data, every default filled in: without `impact`, which no run reads."""
        data = self.top.model_dump(mode="json", exclude={"impact"})
        data["steps"] = [{step.name: step.config.model_dump(mode="json")} for step in self.steps]
        return data

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.resolved(), sort_keys=False, allow_unicode=True)

    def digest(self) -> str:
        """8 hex digits over the resolved configuration."""
        return digest8(self.resolved())


def shipped_config(name: str) -> Path:
    """Path of a config that ships.

    Raises:
        ConfigError: there is none of that name.
    """
    known = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
    if name not in known:
        raise ConfigError(
            f"no config file {name}{nearest(name, known)}. "
            f"Give the path of a YAML file or one of the shipped configs: {', '.join(known)}."
        )
    return SHIPPED / f"{name}.yaml"


def load_config(source: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Load a config given as a path, or as the name of a shipped one (`web`, `zh-web`, `demo`).

    A relative path (`pack.tokenizer`, an entry of `against`) begins at the config file's folder, or at the current folder
    in an override; it is made absolute, since workers elsewhere have other current folders.

    Args:
        source: path of a YAML file, or the name of a file in `SHIPPED`.
        overrides: `a.b=c` items; a step is addressed by its name (`length.min_units=30`).

    Raises:
        ConfigError: missing or unreadable file, bad YAML, unknown or wrong key, missing tokenizer.
    """
    path, text = _read(source)
    data = yaml_mapping(text, str(path))
    place_paths(data, path.absolute().parent)
    for override in overrides:
        _apply_override(data, override)
    place_paths(data, Path.cwd())
    config = _complete(data, str(path))
    if config.top.pack is not None:
        _check_tokenizers(config.top.pack)
    return config


def parse_config(text: str, where: str = "config", overrides: Sequence[str] = ()) -> RunConfig:
    """Parse and check YAML text; `where` names it in errors. Paths in it are left as they are."""
    data = yaml_mapping(text, where)
    for override in overrides:
        _apply_override(data, override)
    return _complete(data, where)


def _read(source: str | Path) -> tuple[Path, str]:
    """Path and text of a config file or of a shipped config."""
    path = Path(source)
    try:
        if not path.is_file():
            # A folder or a FIFO may be called as a shipped config is; reading it would fail, or wait for ever.
            if path.exists() and not (SHIPPED / f"{source}.yaml").is_file():
                kind = "a folder" if path.is_dir() else "no regular file"
                raise ConfigError(f"config {source} is {kind}. Give the path of a YAML file.")
            path = shipped_config(str(source))
        return path, path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"config {path} is not in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}. Save it as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigError(f"config {source} cannot be read: {error.strerror or error}.") from error


class _DuplicateKeyError(yaml.YAMLError):
    """A key stands twice in one mapping."""


class _Loader(yaml.SafeLoader):
    """YAML's safe loader that refuses a key that stands twice; PyYAML lets the last one win and says nothing."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line, name = key.start_mark.line + 1, (key.tag, key.value)
                if name in lines:
                    raise _DuplicateKeyError(
                        f"key {key.value!r} stands twice in one mapping, in line {lines[name]} and in line {line}"
                    )
                lines[name] = line
        return node


def _from_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # a safe loader, stricter
    except _DuplicateKeyError as error:
        raise ConfigError(f"{where}: {error}. Which one counts? Leave one of them out.") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: PyYAML's own, for a date such as 2024-13-45 or a number such as 0x_.
        raise ConfigError(f"{where} is not valid YAML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{where} is not usable: its lists and mappings are nested too deep.") from None


def yaml_mapping(text: str, where: str, keys: str = "name, ingest, steps, pack") -> dict[str, Any]:
    """A YAML text whose top level is a mapping; empty for no text. Raises ConfigError: it is none, or a key stands twice."""
    data = _from_yaml(text, where)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a mapping with keys such as {keys}; found {type(data).__name__}.")
    return data


def _complete(data: dict[str, Any], where: str) -> RunConfig:
    top = checked_model(TopLevel, data, where, "")
    steps = _steps(top.steps, where)
    by_language = {
        "export": top.export is not None,
        "pack.mix.by": bool(top.pack and top.pack.mix and top.pack.mix.by == "language"),
    }
    for key in (key for key, asked in by_language.items() if asked):
        if not any(step.name == "language" for step in steps):
            raise ConfigError(
                f"{where}: `{key}` tells documents apart by language, but there is no step `language` in steps."
            )
    return RunConfig(top=top, steps=steps)


def place_paths(data: Mapping[str, Any], folder: Path) -> None:
    """Make the relative paths of tokenizers and in settings of steps absolute, in the plain data."""
    pack = data.get("pack")
    for key in ("tokenizer", "trainer"):
        given = pack.get(key) if isinstance(pack, dict) else None
        if isinstance(pack, dict) and isinstance(given, str) and given not in ("default", ""):
            pack[key] = str(folder / given)
    entries = data.get("steps")
    for entry in entries if isinstance(entries, list) else []:
        for name, settings in entry.items() if isinstance(entry, dict) else []:
            if str(name) not in STEPS:
                continue  # refused with its name later
            config = step_class(str(name)).Config
            for key in sorted(config.paths | config.names_or_paths):
                _place(settings, key.split("."), folder, only_there=key in config.names_or_paths)


def _place(settings: Any, keys: Sequence[str], folder: Path, *, only_there: bool) -> None:
    """Make the relative paths under a key absolute, whatever else stands there.

    Args:
        only_there: leave what is no file or folder below `folder` as it is: it may be a name.
    """
    if not isinstance(settings, dict) or keys[0] not in settings:
        return
    if len(keys) > 1:
        _place(settings[keys[0]], keys[1:], folder, only_there=only_there)
        return

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(one) for one in value]
        if isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
            return {key: placed(one) for key, one in value.items()}  # of any other mapping: a file's content, no paths
        if not isinstance(value, str) or not value or "://" in value or (only_there and not (folder / value).exists()):
            return value
        return str(folder / value)

    settings[keys[0]] = placed(settings[keys[0]])


def _check_tokenizers(pack: PackConfig) -> None:
    """Refuse a tokenizer that is not there now, instead of after all the work before packing."""
    for key, given in (("tokenizer", pack.tokenizer), ("trainer", pack.trainer)):
        if given is None or given == "default":
            continue
        try:
            there = Path(given).is_file() or any(next(Path(given).glob(one), None) for one in _TOKENIZER_FILES)
        except OSError:  # a name that no file can have
            there = False
        if not there:
            raise ConfigError(
                f"pack.{key}: there is no tokenizer at {given}. Expected `default`, or the path of a tokenizer.json, of a "
                "SentencePiece .model, of a tiktoken file or a tekken.json, or of a folder that holds one; a relative path "
                "begins at the config file's folder, with --set at the current one."
            )


def _steps(entries: Sequence[Any], where: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    for position, entry in enumerate(entries, start=1):
        if isinstance(entry, str):
            entry = {entry: {}}
        if not isinstance(entry, dict) or len(entry) != 1:
            raise ConfigError(
                f"{where}: step {position} must be one `name: {{settings}}`, found {reprlib.repr(entry)}."
            )
        name, settings = next(iter(entry.items()))
        kind = step_class(str(name))
        if any(step.name == name for step in steps):
            raise ConfigError(f"{where}: step {name!r} stands twice in steps; a step may run once.")
        config = checked_model(kind.Config, {} if settings is None else settings, where, f"steps.{name}")
        step = kind(config)
        if missing := step.misses(steps):
            raise ConfigError(f"{where}: " + " ".join(missing))
        steps.append(step)
    return tuple(steps)


def checked_model(model: type[Any], data: Any, where: str, prefix: str) -> Any:
    """Plain data as a model. Raises ConfigError: a sentence for each of pydantic's errors, with the key and the nearest known one.

    Args:
        where: the file, in messages.
        prefix: of the keys, in messages.
    """
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
                expected = _expected(item)
                found = "" if ", found " in expected else f", found {reprlib.repr(item['input'])}"
                lines.append(f"{key or 'top level'}: {expected}{found}")
        raise ConfigError(f"{where}: " + "; ".join(lines) + ".") from None


def _expected(item: Mapping[str, Any]) -> str:
    """What pydantic's error says was expected, in words of YAML."""
    value = item["input"]
    if item["type"] in ("tuple_type", "list_type"):
        if not isinstance(value, str) or len(value) > 60:
            return "expected a list"
        # The most frequent case is one entry without its brackets; what has to be quoted in YAML is.
        listed = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=1000).strip()
        return f"expected a list, such as {listed}"
    if item["type"] == "model_type":
        return "expected a mapping of settings, such as {key: value}"
    return str(item["msg"]).removeprefix("Value error, ")


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
    value = _from_yaml(raw, f"--set {override!r}: the value")
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
            raise ConfigError(f"--set {override!r}: {part} is not a mapping in this config.")
    target[parts[-1]] = value


def _step_entry(data: Mapping[str, Any], name: str, override: str) -> dict[str, Any]:
    """The mutable settings of a step in the plain data, made if it is written short."""
    entries = data.get("steps") or []
    if not isinstance(entries, list):
        raise ConfigError(f"--set {override!r}: steps is not a list in this config.")
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
                settings = entry[key]
                if not isinstance(settings, dict):
                    raise ConfigError(f"--set {override!r}: {name} is not a mapping in this config.")
                return settings
    known = [*names, *TopLevel.model_fields]
    raise ConfigError(
        f"--set {override!r}: no step or key {name!r} in this config{nearest(name, known)} (known: {', '.join(known)})."
    )
