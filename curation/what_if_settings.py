"""Which settings a question of `corpusmill what-if` changes, and whether the saved scores of a run can answer it.

A changed threshold only decides, so scores answer it. Whatever changes documents, scores or what a data-set step finds
is refused with the command that runs it. Reads the config, the cards of the steps and checksums of models; no verdicts.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.config import RunConfig, load_config
from curation.errors import ConfigError, RunError
from curation.pipeline import Pipeline
from curation.run import read_json
from curation.steps import PlacedStep
from curation.verdicts import Filter, Step

__all__ = ["Question", "Setting", "ask", "rerun_command"]

_LIMITS_OF_INGEST = ("max_quarantine_share", "max_damaged_share")
"""At which a run gives up; they change no document."""
_SHOWN_INPUTS = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its value in the run and in the question; None where it does not stand."""

    key: str
    before: Any
    after: Any
    decides: bool = True
    """Whether it can change a verdict."""


@dataclass(frozen=True)
class Question:
    """What is asked of a run."""

    settings: tuple[Setting, ...]
    steps: Mapping[int, Filter]
    """The filters that decide with other settings, by their place in the run."""
    command: str
    """Runs what is asked, in the same run."""


def ask(pipeline: Pipeline, overrides: Sequence[str]) -> Question:
    """The question that `--set` items ask of a run whose steps are all closed.

    Args:
        overrides: `step.key=value` items, as `corpusmill run` takes them.

    Raises:
        ConfigError: a key is unknown or a value wrong, or the saved scores cannot answer.
        RunError: the run is not done, or was judged by another version of the code.
    """
    command = rerun_command(pipeline, overrides)
    new = load_config(pipeline.run.config_path, overrides)
    _check_decided(pipeline)
    old = pipeline.config
    _refuse_other_steps(old, new, command)
    _refuse_other_documents(old, new)
    changed: dict[int, Filter] = {}
    for placed, step in zip(pipeline.placed, new.steps, strict=True):
        if placed.step.config.deciding() != step.config.deciding():
            changed[placed.index] = _answerable(placed, step, command)
    decisive = {new.steps[index].name for index in changed}
    return Question(tuple(_settings(old, new, decisive)), changed, command)


def rerun_command(pipeline: Pipeline, overrides: Sequence[str]) -> str:
    """The command that decides anew in this very run, ready to be copied."""
    run = pipeline.run
    named = run.info["inputs"]
    inputs = list(named["first"]) if named["files"] <= _SHOWN_INPUTS else ["THE SAME INPUTS"]
    words = ["corpusmill", "run", str(run.config_path), "--input", *inputs, "--root", str(run.folder.parents[1])]
    words += ["--run", run.run_id]
    for override in overrides:
        words += ["--set", override]
    return shlex.join(words).replace("'THE SAME INPUTS'", "THE-SAME-INPUTS")


def _check_decided(pipeline: Pipeline) -> None:
    """Refuse a run that is not decided yet, or that the code of today would judge otherwise."""
    run = pipeline.run
    if pipeline.judge_all:
        raise RunError(f"run {run.run_id} judged each step alone: it has no funnel in which a document changes sides.")
    missing = [] if (run.shards / "_done.json").exists() else ["ingest"]
    if not missing:
        open_steps = [placed for placed in pipeline.placed if not (placed.folder / "_done.json").exists()]
        for placed in open_steps:
            _refuse_other_code(pipeline, placed)
        missing = [placed.name for placed in open_steps]
    if missing:
        raise RunError(
            f"run {run.run_id} is not done: {missing[0]} has no marker, so there is nothing to compare with "
            f"(state: {run.info.get('state')}). Run the command that began it again; it goes on where it stopped."
        )


def _refuse_other_code(pipeline: Pipeline, placed: PlacedStep) -> None:
    """A step that was closed with this very config, but by another version of itself or with other models."""
    config = placed.step.config.model_dump(mode="json")
    for path in sorted(pipeline.run.steps.glob(f"{placed.index + 1:02d}-{placed.name}-*/_step.json")):
        card = read_json(path)
        if card.get("config") != config or not (path.parent / "_done.json").exists():
            continue
        if card.get("version") != placed.step.version:
            what = f"version {card.get('version')} of the step, and this is version {placed.step.version}"
        elif card.get("models", {}) != dict(placed.models):
            both = {*card.get("models", {}), *placed.models}
            other = sorted(name for name in both if card.get("models", {}).get(name) != placed.models.get(name))
            what = f"other models or lists ({', '.join(other)})"
        elif pipeline.run.info.get("state") == "done":
            what = "other limits or lists behind the same settings"
        else:
            continue
        raise RunError(
            f"run {pipeline.run.run_id} was judged by step {placed.name} with {what}: its saved scores say nothing of "
            f"what the step of today would say. Run it anew: {rerun_command(pipeline, [])}"
        )


def _refuse_other_steps(old: RunConfig, new: RunConfig, command: str) -> None:
    names = [[step.name for step in config.steps] for config in (old, new)]
    if names[0] != names[1]:
        raise ConfigError(
            f"what-if changes settings of the run's own steps ({', '.join(names[0])}), not which steps there are "
            f"({', '.join(names[1]) or 'none'}): of another list there are no scores. To run it: {command}"
        )


def _refuse_other_documents(old: RunConfig, new: RunConfig) -> None:
    """Ingest settings make other documents."""
    excluded = set(_LIMITS_OF_INGEST)
    before, after = (config.top.ingest.model_dump(mode="json", exclude=excluded) for config in (old, new))
    other = sorted(key for key in before if before[key] != after[key])
    if other:
        raise ConfigError(
            f"ingest.{other[0]} decides what the documents are, so saved scores say nothing of it. "
            "Begin a new run with it: corpusmill run ... --new --set ..."
        )


def _answerable(placed: PlacedStep, step: Step, command: str) -> Filter:
    """The step with its new settings, if it decides from the scores that were saved.

    Raises:
        ConfigError: it needs other scores; names the setting.
    """
    if not isinstance(step, Filter):
        keys = _changed_fields(placed.step, step)
        raise ConfigError(
            f"{step.name}.{keys[0]} changes which copies step {step.name} finds: that takes a look at all documents, and "
            f"cannot be answered from saved scores. To run it: {command}"
        )
    if _same_scores(placed, step):
        _check_ready(placed, step)
        return step
    keys = [key for key in _changed_fields(placed.step, step) if _changes_scores(placed, step, key)]
    key = (keys or _changed_fields(placed.step, step))[0]
    raise ConfigError(
        f"{step.name}.{key} changes the scores of step {step.name}, not only what is decided from them, so saved scores "
        f"cannot answer. To run it: {command}"
    )


def _same_scores(placed: PlacedStep, step: Step) -> bool:
    if placed.step.score_config() != step.score_config() or placed.step.version != step.version:
        return False
    try:
        return dict(step.model_checksums()) == dict(placed.models)
    except ConfigError:
        # What is gone: the run was judged with it and can be asked as long as the new settings name the same.
        try:
            placed.step.model_checksums()
        except ConfigError:
            return True
        raise


def _check_ready(placed: PlacedStep, step: Step) -> None:
    """Refuse what a run would refuse before it reads anything, such as a calibration by other models.

    Raises:
        ConfigError: the new settings do not fit what is there; not so where the run's own would not either.
    """
    try:
        step.ready()
    except ConfigError:
        try:
            placed.step.ready()
        except ConfigError:
            return
        raise


def _changed_fields(old: Step, new: Step) -> list[str]:
    before, after = (step.config.model_dump(mode="json", exclude=set(step.config.limits)) for step in (old, new))
    return [key for key in after if before.get(key) != after[key]]


def _changes_scores(placed: PlacedStep, step: Step, key: str) -> bool:
    """Whether this setting alone would change the scores. One that is not valid alone does not say."""
    settings = {**placed.step.config.model_dump(mode="json"), key: step.config.model_dump(mode="json")[key]}
    try:
        return not _same_scores(placed, type(step)(type(step).Config.model_validate(settings)))
    except (ValueError, ConfigError):
        return False


def _settings(old: RunConfig, new: RunConfig, decisive: set[str]) -> Iterator[Setting]:
    """Every setting that differs, in the order of the config; those that decide first."""
    before, after = _flat(old), _flat(new)
    found = [
        Setting(key, before.get(key), after.get(key), key.partition(".")[0] in decisive and _decides(new, key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    yield from sorted(found, key=lambda setting: not setting.decides)


def _decides(config: RunConfig, key: str) -> bool:
    name, _, rest = key.partition(".")
    step = next(step for step in config.steps if step.name == name)
    return rest.partition(".")[0] not in step.config.limits


def _flat(config: RunConfig) -> dict[str, Any]:
    """Every setting by its dotted name; a step is addressed by its name, as in `--set`."""
    resolved = config.resolved()
    steps = resolved.pop("steps")
    found = dict(_leaves("", resolved))
    for entry in steps:
        found.update(_leaves("", entry))
    return found


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        yield prefix, json.loads(json.dumps(value))
        return
    for key, inner in value.items():
        yield from _leaves(f"{prefix}.{key}" if prefix else str(key), inner)
