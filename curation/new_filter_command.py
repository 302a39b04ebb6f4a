"""`corpusmill new-filter`: everything that a new filter begins with, in one command, so that none of it is forgotten.

It writes into the checkout that this package runs from: a filter is code, and its golden cases and tests lie beside it.
Either all of it is written or nothing. What only a person can say is left as `FILL IN`; the law test lists it.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from curation.command_parser import Commands, command
from curation.errors import ConfigError, RunError
from curation.terminal import printable

if TYPE_CHECKING:
    from curation.new_filter import NewFilter

__all__ = ["add_new_filter", "begin_filter"]

log = logging.getLogger("corpusmill")
CHECKOUT = Path(__file__).resolve().parents[1]
_LIST = "curation/filters/__init__.py"
_PARTS = ("pyproject.toml", _LIST, "tests/golden/cases", "tests/unit/curation/filters", "tools/make_reference.py")
"""What a checkout has and an installed package has not."""


def add_new_filter(commands: Commands) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "begin a filter: module, entry in the list, golden cases, test, page of steps, place in a config"
    examples = """
corpusmill new-filter shouting
corpusmill new-filter shouting --config mine.yaml          put it into a config, too; its comments stay"""
    parser = command(commands, "new-filter", summary, examples)
    parser.add_argument("name", metavar="NAME", help="as it will stand in configs: small letters, digits and _")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a YAML config that gets the step (default: its line is printed)"
    )
    parser.set_defaults(function=_new_filter)


def _new_filter(arguments: argparse.Namespace) -> int:
    for line in begin_filter(arguments.name, arguments.config, CHECKOUT):
        print(line)
    return 0


def begin_filter(name: str, config: Path | None, checkout: Path) -> list[str]:
    """Write all that a filter begins with; returns what was done and what is to be done, a line each.

    Args:
        config: the YAML file that gets the step; None: no file does.
        checkout: the folder with `curation`, `tests` and `tools`.

    Raises:
        ConfigError: the name cannot be one, is taken, there is no checkout, or the config cannot get the step. Nothing is written.
        RunError: a file could not be written. What was written before it is taken back.
    """
    from curation.new_filter import new_filter, with_filter, with_step

    missing = [part for part in _PARTS if not (checkout / part).exists()]
    if missing:
        raise ConfigError(
            f"{checkout} is not a checkout of Corpusmill (there is no {missing[0]}), and a filter is written into one, with "
            "its golden cases and tests. Clone the repository, run `make setup` in it, and use its .venv/bin/corpusmill."
        )
    made = new_filter(name)
    for path in made.files:
        if (checkout / path).exists():
            raise ConfigError(f"{path} is there already. Choose another name, or move it away.")
    changes = {checkout / _LIST: with_filter(_read(checkout / _LIST), name)}
    told = [f"{'new':<8} {path}" for path in made.files] + [f"{'changed':<8} {_LIST}"]
    if config is not None:
        config = config.resolve()
        changes[config], behind = with_step(_read(config), name, str(config))
        told.append(
            f"{'changed':<8} {printable(_shown(config))}: {made.entry} stands {f'behind {behind}' if behind else 'first'}"
        )
    _write(checkout, made, changes)
    if _make_reference(checkout):
        told.append(f"{'changed':<8} docs/reference/steps.md")
    return [*told, *_advice(made, config)]


def _shown(path: Path) -> str:
    """Relative to the current folder, if it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _read(path: Path) -> str:
    """As it is: line ends stay.

    Raises:
        ConfigError: it is missing, no regular file, or not in UTF-8.
    """
    if not path.is_file():
        raise ConfigError(
            f"there is no file {path}. `corpusmill configs web > mine.yaml` gives a config to begin with."
        )
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}.") from None


def _write(checkout: Path, made: NewFilter, changes: dict[Path, str]) -> None:
    """All or nothing."""
    from curation.run import publish

    before = {path: path.read_bytes() for path in changes}
    written: list[Path] = []
    try:
        for name, text in made.files.items():
            path = checkout / name
            with path.open("x", encoding="utf-8", newline="") as stream:
                written.append(path)
                stream.write(text)
        for path, text in changes.items():
            with publish(path) as temporary:
                temporary.write_bytes(text.encode())
                shutil.copymode(path, temporary)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        for path, content in before.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
        if isinstance(error, FileExistsError):
            raise ConfigError(f"{error.filename} is there already: somebody else makes this filter just now.") from None
        if isinstance(error, OSError):
            raise RunError(f"{error.filename} could not be written: {error.strerror}. Nothing was changed.") from error
        raise


def _make_reference(checkout: Path) -> bool:
    """Write the generated pages anew, in a process of its own that sees the new filter; false: it failed, and that was said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "tools/make_reference.py"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        log.warning("docs/reference could not be written anew (%s): run `make docs` later", printable(last))
    return done.returncode == 0


def _advice(made: NewFilter, config: Path | None) -> list[str]:
    from curation.new_filter import STAGE

    name = made.name
    lines = [
        "",
        "It judges already, by an example of a rule. What it still lacks, the law of filters says:",
        f"    .venv/bin/pytest --tb=short tests/contract tests/golden/test_golden.py tests/unit/curation/filters/test_{name}.py -k {name}",
    ]
    if config is None:
        lines += [
            "",
            f"It stands in no config yet. Its line, behind the other steps of stage {STAGE}:",
            f"    {made.entry}",
        ]
    return lines
