"""Documentation and licence texts that the installed packages carry: real English text that is on every machine.

What is there depends on the versions installed, so counts are taken when the input is made. Only packages that
requirements.lock names are read, so that installing something else later (torch for the tests) changes nothing.
Costs about 1 s, most of it reading source files; doc strings are found by their quotes, since parsing 10 MB of
source would take ten times as long and a missed doc string does no harm here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["PackageText", "descriptions_and_licences", "distributions", "modules", "topics"]

LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"

DOCUMENTED = (
    "numpy pyarrow pydantic sqlalchemy rich celery kombu alembic click jinja2 fsspec urllib3 anyio packaging tornado "
    "psutil fastapi typer lxml trafilatura cryptography redis prompt-toolkit apache-airflow-core "
    "apache-airflow-task-sdk pendulum attrs httpx huggingface-hub babel websockets"
).split()
"""Packages with good doc strings among those that the `curate` and `airflow` extras bring."""

MODULES_PER_PACKAGE = 150
MIN_ENTRY, MIN_MODULE = 120, 500
"""Characters below which a doc string, or a module's doc strings together, are left out."""

_OWNER = re.compile(r"^[ \t]*(?:async[ ]+)?(?:def|class)[ ]+(\w+)", re.MULTILINE)
_LEGAL = re.compile(r"licen[cs]e|notice|copying", re.IGNORECASE)
_BINARY_OR_CODE = {".py", ".pyc", ".json", ".so"}


@dataclass(frozen=True, slots=True)
class PackageText:
    """A text found in an installed package."""

    name: str
    """Unique: package, then file, module or entry."""
    title: str
    text: str
    entries: tuple[tuple[str, str], ...] = ()
    """For a module: names and doc strings of its functions and classes."""


def distributions() -> dict[str, metadata.Distribution]:
    """The installed distributions that requirements.lock names, by name."""
    found = {}
    for name in sorted(set(re.findall(r"^([A-Za-z0-9_.-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))):
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # it belongs to an extra that is not installed
    return found


def _files(distribution: metadata.Distribution) -> list[metadata.PackagePath]:
    return sorted(distribution.files or [], key=str)


def _read(file: metadata.PackagePath) -> str | None:
    """A file's text, or None where it is gone or not UTF-8: then it is no documentation for us."""
    try:
        return Path(str(file.locate())).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def descriptions_and_licences(found: dict[str, metadata.Distribution]) -> Iterator[PackageText]:
    """The long description and the licence files of each distribution."""
    for name, distribution in found.items():
        meta: Any = distribution.metadata  # an email.message.Message, which its type does not say
        description = (meta.get_payload() or meta.get("Description") or "").strip()
        if len(description) >= MIN_ENTRY:
            yield PackageText(f"{name}/README", f"{name}: {meta.get('Summary', '')}", description)
        for file in _files(distribution):
            its_own = file.parts[0].endswith(".dist-info")  # not those of packages that it brings along
            legal = its_own and _LEGAL.search(file.name) and file.suffix not in _BINARY_OR_CODE
            text = _read(file) if legal else None
            if text and text.strip():
                inside = str(file).partition(".dist-info/")[2]
                yield PackageText(f"{name}/{inside}", f"{name}: {file.name}", text)


def modules(found: dict[str, metadata.Distribution]) -> Iterator[PackageText]:
    """Modules of the documented packages, with the doc strings of their functions and classes."""
    for name in DOCUMENTED:
        n_modules = 0
        for file in _files(found[name]) if name in found else []:
            path = str(file)
            if n_modules == MODULES_PER_PACKAGE:
                break
            if file.suffix != ".py" or re.search(r"/(?:_?tests?|_vendor|testing)/|\.\.", path):
                continue
            source = _read(file)
            entries = _doc_strings(source) if source else ()
            if sum(len(text) for _, text in entries) >= MIN_MODULE:
                n_modules += 1
                module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                yield PackageText(f"{name}/{module}", module, _first_paragraphs(source or ""), entries)


def _doc_strings(source: str) -> tuple[tuple[str, str], ...]:
    """Names and doc strings of functions and classes: a string in triple quotes behind `def NAME(...):`."""
    found = []
    pieces = source.split('"""')
    for code, text in zip(pieces[::2], pieces[1::2], strict=False):
        owners = (
            _OWNER.findall(code[-1500:]) if code.rstrip(" \trRuU\n").endswith(":") and len(text) >= MIN_ENTRY else []
        )
        if owners and len(text := inspect.cleandoc(text)) >= MIN_ENTRY:
            found.append((owners[-1], text))
    return tuple(found)


def _first_paragraphs(source: str) -> str:
    match = re.match(r'\s*(?:#[^\n]*\n\s*)*[rRuU]?"""(.*?)"""', source, re.DOTALL)
    return inspect.cleandoc(match[1]) if match else ""


def topics() -> Iterator[PackageText]:
    """Chapters of the Python reference that `help()` shows; none where the interpreter came without them."""
    try:
        from pydoc_data.topics import topics as chapters
    except ImportError:
        return
    for name in sorted(chapters):
        yield PackageText(f"python/{name}", f"Python reference: {name}", chapters[name].strip())
