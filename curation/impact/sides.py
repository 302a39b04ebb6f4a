"""The two sides of a change: which code, which config.

`base` is a config (a YAML file, or the name of one that ships), judged by this very code; or else a git revision: the config
as it stands there, judged by the code as it stands there, if this package lies in the same checkout and its code differs.
A user's repository may hold configs alone: then both sides are judged by the installed code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from curation.config import SHIPPED, RunConfig, load_config, parse_config, place_paths, yaml_mapping
from curation.errors import ConfigError, nearest
from curation.ids import digest8
from curation.impact.code import HERE, PACKAGES, Code, Sources, code_of
from curation.impact.tree import Repository, code_tree, package_repository, repository_of, unpacked
from curation.steps import STEPS, step_class

__all__ = ["Side", "Sides", "sides_of", "step_names"]

OF_CODE = "corpusmill:"
"""Before a revision: of this package's code, whatever repository the config lies in."""

_NOT_JUDGED = ("pack", "export", "impact")
"""Sections of a config that change no verdict; tokens are counted apart."""
_ANY_SHARE = {"max_quarantine_share": 1.0, "max_damaged_share": 1.0}
"""Lines of the sample that cannot be read are told, no reason to stop."""


@dataclass(frozen=True)
class Side:
    """What judges the sample."""

    label: str
    code: Code
    config: RunConfig | None
    """What this code judges by; None of a side with other code."""
    text: str
    """The config as YAML: resolved of this code; of other code as it stands there, with what it refers to in place."""
    tree: Path | None = None
    """Folder of the other code."""
    commit: str | None = None
    """Of the other code."""


@dataclass(frozen=True)
class Sides:
    """Both sides."""

    base: Side
    new: Side
    notes: tuple[str, ...] = ()


def sides_of(config: str, base: str, overrides: Sequence[str], root: Path) -> Sides:
    """Find out what is compared with what.

    Args:
        config: a YAML file, or the name of a config that ships: the new side.
        base: the same, or a git revision.
        overrides: `a.b=c` items for the new side alone.
        root: folder of all runs: blacklists lie there, and what `impact` keeps in its folder `impact`.

    Raises:
        ConfigError: a config is wrong; there is no such revision, or it holds no such config.
    """
    here = Sources(HERE, root / "impact" / "sources.json")
    changed = f" with {', '.join(overrides)}" if overrides else ""
    try:
        if _names_config(base):
            return Sides(
                _side(base, load_config(base, ["pack="]), here, root),
                _new(config, overrides, f"{config}{changed}", here, root),
            )
        new = _new(config, overrides, f"working tree{changed}", here, root)
        found, notes = _revision(config, base, here, root)
        return Sides(found, new, tuple(notes))
    finally:
        here.remember()


def _names_config(base: str) -> bool:
    """Whether the text names a config; a branch that is called as one that ships can be given as `refs/heads/NAME`."""
    return Path(base).is_file() or (SHIPPED / f"{base}.yaml").is_file() or base.endswith((".yaml", ".yml"))


def _new(config: str, overrides: Sequence[str], label: str, here: Sources, root: Path) -> Side:
    return _side(label, load_config(config, [*overrides, "pack="]), here, root)


def _side(label: str, config: RunConfig, here: Sources, root: Path) -> Side:
    """A side of this code: what the config leaves open until a run starts is settled with the root of all runs."""
    ingest = config.top.ingest.model_copy(update=_ANY_SHARE)
    top = config.top.model_copy(update={**dict.fromkeys(_NOT_JUDGED), "ingest": ingest})
    config = replace(config, top=top, steps=tuple(step.pinned(root.resolve(), None) for step in config.steps))
    return Side(label, code_of(here, [step.name for step in config.steps]), config, config.to_yaml())


def _revision(config: str, revision: str, here: Sources, root: Path) -> tuple[Side, list[str]]:
    """The side of a git revision."""
    if (alone := _of_code_alone(config, revision)) is not None:
        repository, commit, prefix = alone
        file = Path(config) if Path(config).is_file() else SHIPPED / f"{config}.yaml"
        label, where = f"Corpusmill {_label(revision.removeprefix(OF_CODE), commit)}", str(file)
        data = yaml_mapping(file.read_text(encoding="utf-8"), where)
        place_paths(data, file.resolve().parent)
        is_ours = True
    else:
        repository, path, is_ours, prefix = _place(config, revision)
        commit = repository.commit(revision)
        text = repository.text(commit, path)
        if text is None:
            raise ConfigError(_not_there(repository, commit, revision, path))
        label = _label(revision, commit)
        where = f"{path} at {label}"
        data = yaml_mapping(text, where)
        _place_references(data, repository, commit, path, root)
    if not is_ours or repository.unchanged(commit, [f"{prefix}{name}" for name in PACKAGES]):
        return _side(label, _parsed(data, where), here, root), []
    tree = code_tree(commit, root / "impact")
    there = Sources(tree, root / "impact" / "sources.json")
    names = step_names(data)
    code = code_of(there, names)
    there.remember()
    if code == code_of(here, names) and len(code.steps) == len(names):
        try:
            return _side(label, _parsed(data, where), here, root), []
        except ConfigError:  # something else in it that only the other version knows
            pass
    return Side(label, code, None, _other_text(data, tree), tree, commit), _requirements(tree, label)


def _of_code_alone(config: str, base: str) -> tuple[Repository, str, str] | None:
    """For `corpusmill:REV`: the checkout of this package, the commit, and the package's folder in it; None for any other base.

    So an upgrade is seen: the config as it is now, judged by either version of the code. It must be asked for in words: a
    `main` that is missing in a shallow clone of configs must not be answered by that of this package.

    Raises:
        ConfigError: the package lies in no checkout, or there is no such revision in it.
    """
    if not base.startswith(OF_CODE):
        return None
    ours = package_repository()
    if ours is None:
        raise ConfigError(
            f"base {base!r}: this program is installed without its git checkout, so that its code has no revisions."
        )
    return ours[0], ours[0].commit(base.removeprefix(OF_CODE)), ours[1]


def _place(config: str, revision: str) -> tuple[Repository, str, bool, str]:
    """The checkout in which to look a revision up, the config's path in it, whether it is this package's, and its folder there."""
    ours = package_repository()
    if Path(config).is_file():
        file = Path(config).resolve()
        repository = repository_of(file.parent)
        if repository is None:
            raise ConfigError(
                f"{config} lies in no git checkout, so that it has no revision {revision!r}, and no config is called so. "
                "Give --base the path of another YAML file, or the name of a shipped config."
            )
        path = file.relative_to(repository.folder.resolve()).as_posix()
        is_ours = ours is not None and ours[0].folder.resolve() == repository.folder.resolve()
        return repository, path, is_ours, ours[1] if ours is not None and is_ours else ""
    if ours is None:
        known = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
        raise ConfigError(
            f"base {revision!r}: this program is installed without its git checkout, so that {config} has no revisions, and "
            f"no config is called so{nearest(revision, known)}. Give --base a YAML file or a shipped config: {', '.join(known)}."
        )
    return ours[0], f"{ours[1]}curation/configs/{config}.yaml", True, ours[1]


def _label(revision: str, commit: str) -> str:
    return commit[:7] if commit.startswith(revision) else f"{revision} ({commit[:7]})"


def _not_there(repository: Repository, commit: str, revision: str, path: str) -> str:
    folder = str(PurePosixPath(path).parent)
    known = [name for name in repository.names(commit, "") if name.endswith((".yaml", ".yml"))]
    beside = [name for name in known if str(PurePosixPath(name).parent) == folder] or known
    there = f"Configs there: {', '.join(beside[:5])}" if beside else "It holds no YAML file"
    return (
        f"{path} is not part of {_label(revision, commit)}{nearest(path, beside)}. {there}. Commit the config first, choose "
        "another revision, or give --base a config."
    )


def _parsed(data: Mapping[str, Any], where: str) -> RunConfig:
    judged = {key: value for key, value in data.items() if key not in _NOT_JUDGED}
    return parse_config(yaml.safe_dump(judged, sort_keys=False, allow_unicode=True), where)


def step_names(data: Mapping[str, Any]) -> list[str]:
    """Names of the steps in a config as plain data, in order."""
    entries = data.get("steps")
    named = (
        [next(iter(one), None) if isinstance(one, dict) else one for one in entries]
        if isinstance(entries, list)
        else []
    )
    return [str(name) for name in named]


def _other_text(data: Mapping[str, Any], tree: Path) -> str:
    """A config for other code: without what is not judged; settings that the code does not know are not added."""
    told = {key: value for key, value in data.items() if key not in _NOT_JUDGED}
    settings = tree / "curation" / "ingest" / "config.py"
    known = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    ingest = told.get("ingest")
    if isinstance(ingest, dict) or ingest is None:
        told["ingest"] = {**(ingest or {}), **{key: value for key, value in _ANY_SHARE.items() if f"{key}:" in known}}
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True)


def _place_references(data: dict[str, Any], repository: Repository, commit: str, path: str, root: Path) -> None:
    """Make the relative paths in a config of a revision absolute: files that differ there are unpacked, as they were.

    What the config names and the revision holds is what it meant; all else (models that git does not know) lies where the
    config lies now.
    """
    folder = PurePosixPath(path).parent
    words = set(_words(data))
    names = set(repository.names(commit, "")) if words else set()
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    meant: dict[str, str] = {}
    for word in words:
        place = _joined(folder, word)
        if (
            place is not None
            and place != "."
            and (place in names or place in folders)
            and not repository.unchanged(commit, [place])
        ):
            meant[word] = place
    if meant:
        kept = sorted(meant.values())
        there = unpacked(repository, commit, kept, root.resolve() / "impact" / "trees" / f"{commit}-{digest8(kept)}")
        _replace(data, {word: str(there / place) for word, place in meant.items()})
    place_paths(data, repository.folder / folder)


def _words(data: Mapping[str, Any]) -> Iterator[str]:
    """Texts in the settings of steps that may be relative paths: those that a step says are; of an unknown step, by their look."""
    entries = data.get("steps")
    for entry in entries if isinstance(entries, list) else []:
        for name, settings in entry.items() if isinstance(entry, dict) else []:
            if str(name) not in STEPS:
                yield from (word for word in _texts(settings) if "/" in word or "." in word)
            elif isinstance(settings, dict):
                kind = step_class(str(name)).Config
                keys = {key.partition(".")[0] for key in kind.paths | kind.names_or_paths}
                yield from _texts([value for key, value in settings.items() if key in keys])


def _texts(value: Any) -> Iterator[str]:
    """Texts in nested lists and mappings that are no URL, no absolute path and no content of a file."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and 0 < len(one) < 1000 and "://" not in one and one[0] != "/" and "\n" not in one:
            yield one


def _joined(folder: PurePosixPath, word: str) -> str | None:
    """A path from the top of the repository; None if it leads out of it."""
    parts: list[str] = []
    for part in (folder / word).parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts) or "."


def _replace(value: Any, places: Mapping[str, str]) -> None:
    """Put other texts into lists and mappings, in place; the names of steps that stand alone stay."""
    steps = value.get("steps")
    waiting: list[Any] = [one for one in steps if isinstance(one, dict)] if isinstance(steps, list) else []
    while waiting:
        one = waiting.pop()
        for key, item in one.items() if isinstance(one, dict) else enumerate(one):
            if isinstance(item, str) and item in places:
                one[key] = places[item]
            elif isinstance(item, dict | list):
                waiting.append(item)


def _requirements(tree: Path, label: str) -> list[str]:
    """A note if the other code asks for other packages: both sides use those that are installed."""
    there, here = _required(tree), _required(HERE)
    if there is None or here is None or there == here:
        return []
    only = sorted(there - here)
    what = f" It asks for {', '.join(only[:5])}{' ...' if len(only) > 5 else ''}." if only else ""
    return [
        f"{label} requires other packages than this code; both sides are judged with those that are installed.{what}"
    ]


def _required(folder: Path) -> set[str] | None:
    import tomllib

    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = project.get("optional-dependencies", {})
        return {*project.get("dependencies", []), *extras.get("curate", []), *extras.get("torch", [])}
    except (OSError, ValueError, KeyError):
        return None
