"""What was changed between the two sides: steps, settings, code, word lists and models, what is read of the input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from curation.impact.facts import Comparison, StepFacts
from curation.report.impact_paths import holds_paths, relative_paths
from curation.run import read_json

__all__ = ["Change", "changes_of"]

_TOLD_APART = frozenset({"name", "steps", "pack", "export", "impact"})
"""Sections of a config that are told elsewhere, or change no verdict."""
MOST_LISTS = 3
"""Lists of one step that are named one by one."""
_VALUE_CHARS = 160
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the sides."""

    what: str
    """A setting as the command line names it (`length.min_units`), or a step."""
    kind: str
    """setting, code, version, list or model, new step, step gone, place, input."""
    before: str
    after: str


def changes_of(comparison: Comparison) -> list[Change]:
    """All differences, in the order of the new side's steps.

    Raises:
        RunError: a step's card is missing or damaged.
    """
    found = list(_input_changes(comparison))
    other_documents = bool(found)
    base, new = comparison.base, comparison.new
    for step in new.steps:
        old = base.step(step.name)
        if old is None:
            found.append(Change(step.name, "new step", "-", f"step {step.place + 1} of {len(new.steps)}"))
        else:
            own = list(_step_changes(old, step))
            if not own and not other_documents and old.score_digest != step.score_digest:
                own = [Change(step.name, "reads", "-", "scores of a step before it that differ")]
            found += own
    for step in base.steps:
        if new.step(step.name) is None:
            found.append(Change(step.name, "step gone", f"step {step.place + 1} of {len(base.steps)}", "-"))
    both = {step.name for step in new.steps} & {step.name for step in base.steps}
    orders = [[step.name for step in side.steps if step.name in both] for side in (base, new)]
    if orders[0] != orders[1]:
        found.append(Change("steps", "order", ", ".join(orders[0]), ", ".join(orders[1])))
    return _code_together(found)


def _step_changes(old: StepFacts, new: StepFacts) -> Iterator[Change]:
    settings = [dict(_flat(step.config)) for step in (old, new)]
    for key in dict.fromkeys([*settings[0], *settings[1]]):
        before, after = (one.get(key, _MISSING) for one in settings)
        if holds_paths(new.name, key):  # what the file holds is told with lists and models
            before, after = relative_paths(before, after)
        if before != after:
            yield Change(f"{new.name}.{key}", "setting", *_words(before, after))
    if old.version != new.version:
        yield Change(new.name, "version", str(old.version), str(new.version))
    if old.code != new.code:
        yield Change(new.name, "code", old.code[:8], new.code[:8])
    yield from _model_changes(old, new)


def _model_changes(old: StepFacts, new: StepFacts) -> Iterator[Change]:
    """Word lists and models with other contents; many of one step in one line."""
    cards = [read_json(step.folder / "_step.json").get("models", {}) for step in (old, new)]
    named = relative_paths(list(cards[0]), list(cards[1]))
    models = [dict(zip(own, card.values(), strict=True)) for own, card in zip(named, cards, strict=True)]
    names = [name for name in sorted({*models[0], *models[1]}) if models[0].get(name) != models[1].get(name)]
    if len(names) > MOST_LISTS:
        yield Change(f"{new.name}: {', '.join(names)}", "list or model", f"{len(names)} files", "other contents")
        return
    for name in names:
        yield Change(f"{new.name}: {name}", "list or model", *(_contents(one.get(name)) for one in models))


def _contents(checksum: Any) -> str:
    return "-" if checksum is None else f"contents {str(checksum)[:12]}"


def _input_changes(comparison: Comparison) -> Iterator[Change]:
    """Sections beside the steps: what is read of the input. A config of older code may leave out what has a default."""
    base, new = (dict(_flat(_sections(side.config_text))) for side in (comparison.base, comparison.new))
    is_whole = comparison.base.commit is None
    for key in dict.fromkeys([*base, *new]):
        values = [one.get(key, _MISSING) for one in (base, new)]
        if values[0] != values[1] and (is_whole or _MISSING not in values):
            yield Change(key, "input", *_words(*values))


def _sections(text: str) -> Mapping[str, Any]:
    found = yaml.safe_load(text)
    return {key: value for key, value in found.items() if key not in _TOLD_APART} if isinstance(found, Mapping) else {}


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings as `a.b` and their values."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _words(before: Any, after: Any) -> tuple[str, str]:
    """Two values in words; of long lists what only one of them holds."""
    texts = _text(before), _text(after)
    if isinstance(before, list) and isinstance(after, list) and max(map(len, texts)) > _VALUE_CHARS:
        texts = _own(before, after), _own(after, before)
    first, second = (text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]} ..." for text in texts)
    return first, second


def _own(mine: list[Any], other: list[Any]) -> str:
    own = [_text(one) for one in mine if one not in other]
    return f"{len(mine):,} entries" + (f", here alone: {', '.join(own)}" if own else "")


def _text(value: Any) -> str:
    if value is _MISSING:
        return "-"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _code_together(found: list[Change]) -> list[Change]:
    """Steps of which nothing but the code differs in one line where they are many: a shared module changes all of them."""
    code = [one for one in found if one.kind == "code"]
    if len(code) <= 2:
        return found
    names = ", ".join(one.what for one in code)
    return [
        *(one for one in found if one.kind != "code"),
        Change(names, "code", f"{len(code)} steps", "another state of the sources"),
    ]
