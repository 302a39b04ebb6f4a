"""What code a step's verdicts depend on, as a digest: honest where somebody changed a module and forgot to raise `version`.

The sources are read, never imported, so the digest can be taken of any version of this package that lies in a folder. From
the step's module and the shard runner on, every import of this project is followed, also those inside functions; of the
packages reached, files that are no Python (tables, lists, weights) count too. Comments, blank lines and docstrings do not.
What only names the steps (the registries) is left out, since each new filter changes it.

Costs 2 s for all steps, nearly all of it for parsing; with a memo file, which holds what was read of each source by its
content, 0.15 s, half of it for hashing 40 MB of weights.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from curation.errors import RunError
from curation.run import write_json

__all__ = ["HERE", "Code", "Sources", "code_of", "environment_digest"]

HERE = Path(__file__).resolve().parents[2]
"""The folder in which this very package lies."""
PACKAGES = ("curation", "tokenization", "quality_models")
REGISTRIES = {"curation.filters": "FILTERS", "curation.dedup": "DATA_SET_STEPS"}
"""Packages whose `__init__` lists steps, and the name of the list."""
RUNNER = "curation.judge"
ENGINE = ("curation.pipeline", "curation.config")
"""What drives all steps alike. A step that reads an earlier run uses them, and they would bring every module along."""
DRIVERS = (*ENGINE, "curation.launch", "curation.passes", "curation.close")
"""What decides which documents a step is asked about. Each counts by itself: what they import are steps, or reports."""
INGEST = ("curation.ingest.plan", "curation.ingest.part", "curation.ingest.close")

_STEP_SCORE = r"\w+\.\w+"
_MEMO_FORMAT = [2, platform.python_version()]


@dataclass(frozen=True)
class Code:
    """Digests of the code that a side consists of."""

    ingest: str
    """Of what makes documents of the sample."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """By name, of the steps that the side's config has."""
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By name, the steps whose scores a step reads."""
    engine: str = ""
    """Of what drives all steps alike."""


@dataclass(frozen=True)
class _Module:
    """What a source file says."""

    digest: str
    """Of its text without what does not count."""
    imports: tuple[str, ...]
    """Modules of this project that it may mean; a relative import begins with as many dots as it is written with."""
    words: tuple[str, ...]
    """What stands before the dot in strings such as `language.language`."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """By name, the same of what the module assigns to a name, for others that import it."""


class Sources:
    """This project's modules in a folder, of whatever version."""

    def __init__(self, folder: Path, memo: Path | None = None) -> None:
        """Read nothing yet.

        Args:
            memo: a file in which what was read of each source is kept by its content; made by `remember`.
        """
        self.folder = folder
        self._memo_file = memo
        self._memo = _read_memo(memo)
        self._known = len(self._memo)
        self._paths: dict[str, Path | None] = {}
        self._modules: dict[str, _Module] = {}
        self._data: dict[Path, bytes] = {}

    def remember(self) -> None:
        """Write the memo file, if there is something new."""
        if self._memo_file is not None and len(self._memo) > self._known:
            told = {key: [one.digest, one.imports, one.words, one.constants] for key, one in self._memo.items()}
            write_json(self._memo_file, {"format": _MEMO_FORMAT, "modules": told}, durable=False)
            self._known = len(self._memo)

    @cached_property
    def steps(self) -> dict[str, str]:
        """Every step by name: the import path of its class. Empty for a version that lists them otherwise."""
        found: dict[str, str] = {}
        for package, name in REGISTRIES.items():
            path = self.path(package)
            if path is not None:
                found.update(_literal(path, name))
        return found

    def step(self, name: str) -> str | None:
        """Digest of all that the verdicts of a step depend on; None if there is no such step."""
        place = self.steps.get(name)
        return None if place is None else self.digest([place.partition(":")[0], RUNNER])

    def ingest(self) -> str:
        """Digest of all that makes documents of inputs."""
        return self.digest(INGEST)

    def engine(self) -> str:
        """Digest of what drives all steps alike, by these modules alone."""
        there = [name for name in DRIVERS if self.path(name) is not None]
        told = "".join(f"{name}\0{self._module(name).digest}\n" for name in there)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def reads(self, name: str) -> list[str]:
        """The steps whose scores a step may read: what stands before the dot in the strings of its package.

        A string that another module gave a name counts where that name is imported.
        """
        place = self.steps.get(name)
        path = None if place is None else self.path(place.partition(":")[0])
        if path is None:
            return []
        files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
        words = {word for file in files for word in (*self._read(file).words, *self._imported_words(file))}
        return sorted((set(self.steps) - {name}) & words)

    def _imported_words(self, file: Path) -> Iterator[str]:
        """What stands before the dot in strings that a source file imports by name from another module."""
        parts = file.relative_to(self.folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for imported in self._module(name).imports:
            module, _, constant = imported.rpartition(".")
            if module and self.path(module) is not None:
                word = self._module(module).constants.get(constant)
                if word is not None:
                    yield word

    def digest(self, modules: Iterable[str]) -> str:
        """Digest of modules, of all that they import of this project, and of the data beside those: 16 hex digits."""
        total = hashlib.sha256()
        reached = self.closure(modules)
        for name in reached:
            total.update(f"{name}\0{self._module(name).digest}".encode())
        for folder in sorted({self._path(name).parent for name in reached}):
            total.update(str(folder.relative_to(self.folder)).encode() + b"\0" + self._data_digest(folder))
        return total.hexdigest()[:16]

    def closure(self, modules: Iterable[str]) -> list[str]:
        """Modules and all that they import of this project, directly or not, sorted; registries and ENGINE are left out."""
        waiting, reached = list(modules), set[str]()
        while waiting:
            name = waiting.pop()
            if name in reached or name in REGISTRIES or name in ENGINE or self.path(name) is None:
                continue
            reached.add(name)
            parent = name.rpartition(".")[0]
            waiting += [*self._module(name).imports, *([parent] if parent else [])]
        return sorted(reached)

    def path(self, module: str) -> Path | None:
        """The source file of a module of this project; None if there is none in this folder."""
        if module not in self._paths:
            base = self.folder.joinpath(*module.split("."))
            there = (one for one in (base.with_suffix(".py"), base / "__init__.py") if one.is_file())
            self._paths[module] = next(there, None) if module.partition(".")[0] in PACKAGES else None
        return self._paths[module]

    def _path(self, module: str) -> Path:
        path = self.path(module)
        assert path is not None
        return path

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            path = self._path(name)
            read = self._read(path)
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            self._modules[name] = replace(read, imports=tuple(_absolute(one, package) for one in read.imports))
        return self._modules[name]

    def _read(self, path: Path) -> _Module:
        content = path.read_bytes()
        key = hashlib.sha256(content).hexdigest()
        if key not in self._memo:
            self._memo[key] = _read_module(content, path)
        return self._memo[key]

    def _data_digest(self, folder: Path) -> bytes:
        """Of the files beside the modules of a package that are no Python, and of its folders that are no packages."""
        if folder not in self._data:
            total = hashlib.sha256()
            for path in _data_files(folder) if folder != self.folder / "curation" else ():
                content = hashlib.sha256(path.read_bytes()).digest()
                total.update(str(path.relative_to(folder)).encode("utf-8", "surrogateescape") + b"\0" + content)
            self._data[folder] = total.digest()
        return self._data[folder]


def code_of(sources: Sources, steps: Iterable[str]) -> Code:
    """The digests of ingest, of the engine and of some steps; steps that this version does not know are left out."""
    digests = {name: digest for name in steps if (digest := sources.step(name)) is not None}
    return Code(sources.ingest(), digests, {name: sources.reads(name) for name in digests}, sources.engine())


@cache
def environment_digest() -> str:
    """Digest of the versions of Python and of every package that this project requires: 16 hex digits."""
    try:
        required = importlib.metadata.requires("corpusmill") or []
    except importlib.metadata.PackageNotFoundError:
        required = []
    names = sorted({re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() for one in required if "test" not in one})
    told = [f"python {platform.python_version()} {platform.machine()}", *(f"{name} {_version(name)}" for name in names)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _read_memo(path: Path | None) -> dict[str, _Module]:
    """What an earlier process has read of sources; nothing, if the file is not there, broken, or of another version."""
    if path is None:
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        modules = told["modules"] if told["format"] == _MEMO_FORMAT else {}
        return {key: _Module(one[0], tuple(one[1]), tuple(one[2]), dict(one[3])) for key, one in modules.items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}


def _read_module(content: bytes, path: Path) -> _Module:
    tree = _parsed(content, path)
    imports = tuple(sorted(set(_imports(tree))))
    words = tuple(sorted(set(_words_before_dots(tree))))
    constants = dict(_constants(tree))
    text = _text(tree).encode("utf-8", "surrogatepass")
    return _Module(hashlib.sha256(text).hexdigest(), imports, words, constants)


def _parsed(content: bytes, path: Path) -> ast.Module:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise RunError(f"{path} is no Python that can be read: {error}. Mend it, or choose another revision.") from None


def _text(tree: ast.Module) -> str:
    """The module as one text in which comments, layout and docstrings are gone. The tree is changed."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # An expression statement that is a constant does nothing: docstrings, and those of attributes.
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined]
    return ast.dump(tree, annotate_fields=False)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imports(tree: ast.Module) -> Iterator[str]:
    """Every module of this project that may be meant by an import; what is there for type checkers alone is not."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in PACKAGES)
        elif isinstance(node, ast.ImportFrom) and (node.level or str(node.module).partition(".")[0] in PACKAGES):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}{'.' if node.module else ''}{alias.name}" for alias in node.names)


def _absolute(name: str, package: str) -> str:
    """The full name of an imported module, as it is meant in a package."""
    level = len(name) - len(name.lstrip("."))
    if level == 0:
        return name
    above = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*above, name[level:]]).rstrip(".")


def _literal(path: Path, name: str) -> dict[str, str]:
    """A mapping of texts that a module assigns to a name."""
    for node in _parsed(path.read_bytes(), path).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if not any(isinstance(one, ast.Name) and one.id == name for one in targets):
            continue
        value = getattr(node, "value", None)
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            return {
                str(key.value): str(place.value)
                for key, place in pairs
                if isinstance(key, ast.Constant) and isinstance(place, ast.Constant)
            }
    return {}


def _words_before_dots(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(_STEP_SCORE, node.value):
            yield node.value.partition(".")[0]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a module assigns, and each word before a dot that is assigned to it."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and re.fullmatch(_STEP_SCORE, value.value):
            yield from ((one.id, value.value.partition(".")[0]) for one in targets if isinstance(one, ast.Name))


def _data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name != "__pycache__" and not (path / "__init__.py").exists():
                yield from _data_files(path)
        elif path.suffix not in (".py", ".pyc", ".pyi") and not path.name.startswith("."):
            yield path
