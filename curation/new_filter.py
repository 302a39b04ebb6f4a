"""A new filter's first files, as texts: what a checkout must hold so that the law test can say what is still missing.

Nothing is written here, and nothing is guessed: each change of a file that is there already (the list of filters, a
config) is read back and must say what it said before, and the new filter beside it. Files are made of the templates in
`curation/filter_templates`, which hold `FILL IN` wherever only a person knows what to say; the law test finds those.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import yaml

from curation.config import TopLevel, parse_config, yaml_mapping
from curation.errors import ConfigError
from curation.steps import STEPS, step_class
from curation.verdicts import STAGES

__all__ = ["FILL_IN", "STAGE", "NewFilter", "checked_name", "new_filter", "with_filter", "with_step"]

FILL_IN = "FILL IN"
"""Stands in templates where a person must write; no filter may keep it."""
STAGE = "quality"
"""Of a new filter, so also its place in a config."""
MOST_LETTERS = 30
_HERE = Path(__file__).resolve().parent
_TEMPLATES = _HERE / "filter_templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True)
class NewFilter:
    """The files of a new filter, by their paths in a checkout."""

    name: str
    files: Mapping[str, str]

    @property
    def entry(self) -> str:
        """Its line in a config's list of steps."""
        return f"- {self.name}: {{}}"


def checked_name(name: str) -> str:
    """The name, if a filter may be called so.

    Raises:
        ConfigError: it may not; the message says why and, where that can be told, how else.
    """
    if not _NAME.fullmatch(name):
        words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
        better = "_".join(words).lstrip("0123456789_")
        hint = f" (how about {better!r}?)" if better and _NAME.fullmatch(better) else ""
        raise ConfigError(
            f"a filter cannot be called {name!r}{hint}: expected small letters a to z, digits and single _ between them, "
            "beginning with a letter, since the name is its module, its key in YAML, its folder and the first part of its reasons."
        )
    if len(name) > MOST_LETTERS:
        raise ConfigError(
            f"the name {name!r} has {len(name)} letters: reports and folders have room for {MOST_LETTERS}."
        )
    if keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a word of Python's own, so no module can be called so. Choose another.")
    if name in STEPS:
        raise ConfigError(f"there is a step {name!r} already: {STEPS[name].partition(':')[0]}. Choose another name.")
    if name in TopLevel.model_fields:
        raise ConfigError(f"{name!r} is a key of every config, so `--set {name}.x=1` would mean two things.")
    if find_spec(name) is not None or (_HERE / name).exists() or (_HERE / f"{name}.py").exists():
        raise ConfigError(
            f"{name!r} is the name of another module, so a reader would take one for the other. Choose another."
        )
    return name


def class_name(name: str) -> str:
    """`html_noise` -> `HtmlNoise`"""
    return "".join(word.capitalize() for word in name.split("_"))


def new_filter(name: str) -> NewFilter:
    """All new files of a filter of this name.

    Raises:
        ConfigError: no filter may be called so.
    """
    words = {"name": checked_name(name), "Class": class_name(name)}
    module = Template(_template("module.py.txt")).substitute(words)
    taken = {
        alias.name for node in ast.walk(ast.parse(module)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if words["Class"] in taken or hasattr(builtins, words["Class"]):
        raise ConfigError(f"a filter {name!r} would be a class {words['Class']}, and its module has one of that name.")
    return NewFilter(
        name,
        {
            f"curation/filters/{name}.py": module,
            f"tests/golden/cases/{name}.jsonl": _template("cases.jsonl"),
            f"tests/unit/curation/filters/test_{name}.py": Template(_template("test.py.txt")).substitute(words),
        },
    )


def _template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def with_filter(source: str, name: str) -> str:
    """The source of `curation/filters/__init__.py` with a line for the filter, in the order of the alphabet.

    Raises:
        ConfigError: it holds no list that could be read, or the filter stands in it.
    """
    found = _list_of_filters(source)
    before = ast.literal_eval(found) if found else {}
    value = f"curation.filters.{name}:{class_name(name)}"
    lines = source.splitlines(keepends=True)
    if found:
        later = [key.lineno - 1 for key in found.keys if isinstance(key, ast.Constant) and str(key.value) > name]
        lines.insert(min(later, default=(found.end_lineno or 1) - 1), f'    "{name}": "{value}",\n')
    changed = "".join(lines)
    after = _list_of_filters(changed)
    if name in before or after is None or ast.literal_eval(after) != {**before, name: value}:
        raise ConfigError(
            f"curation/filters/__init__.py has no list FILTERS to which {name!r} could be added: expected a line for each "
            "filter, with its name and import path. See what was changed in it: `git diff curation/filters/__init__.py`."
        )
    return changed


def _list_of_filters(source: str) -> ast.Dict | None:
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "FILTERS":
            return node.value if isinstance(node.value, ast.Dict) else None
    return None


def with_step(text: str, name: str, where: str) -> tuple[str, str | None]:
    """The text of a config with a step behind those that belong before it; comments and everything else stay as they are.

    Returns:
        The text, and the name of the step that it stands behind; None: it is the first.

    Raises:
        ConfigError: the config is wrong, has the step, or is written such that a line cannot be added.
    """
    config = parse_config(text, where)
    if any(step.name == name for step in config.steps):
        raise ConfigError(f"{where} has a step {name!r} already.")
    steps = _steps_node(text)
    by_hand = (
        f"{where}: there is no place for a line. Write `{name}: {{}}` into its steps by hand, and leave out --config."
    )
    if steps is None or steps.flow_style or not steps.value:
        raise ConfigError(f"{by_hand} Expected `steps:` and below it a line for each step, such as `  - exact: {{}}`.")
    early = STAGES[: STAGES.index(STAGE) + 1]
    place = max((i for i, step in enumerate(config.steps, 1) if step_class(step.name).stage in early), default=0)
    at = _last_line(steps.value[place - 1]) + 1 if place else steps.value[0].start_mark.line
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if text.count("\r\n") > text.count("\n") / 2 else "\n"
    if at == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += ending
    first = lines[steps.value[0].start_mark.line]
    lines.insert(at, f"{first[: len(first) - len(first.lstrip(' '))]}- {name}: {{}}{ending}")
    changed = "".join(lines)
    expected: dict[str, Any] = yaml_mapping(text, where)
    expected["steps"] = [*expected["steps"][:place], {name: {}}, *expected["steps"][place:]]
    try:
        same = yaml_mapping(changed, where) == expected
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(by_hand)
    return changed, config.steps[place - 1].name if place else None


def _steps_node(text: str) -> yaml.SequenceNode | None:
    top = yaml.compose(text, yaml.SafeLoader)
    for key, value in top.value if isinstance(top, yaml.MappingNode) else ():
        if key.value == "steps" and isinstance(value, yaml.SequenceNode):
            return value
    return None


def _last_line(node: yaml.Node) -> int:
    """0-based line in which a node ends; a block's own end mark stands behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.line
    return end - 1 if node.end_mark.column == 0 and end > node.start_mark.line else end
