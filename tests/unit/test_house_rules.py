"""Limits of the house: module and function length, names of modules, no paths of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
MODULES = sorted(
    path
    for folder in ("curation", "tokenization", "quality_models", "dags", "tools", "demo", "examples")
    for path in (REPO / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_modules_and_functions_are_short_and_documented(path: Path) -> None:
    """Modules < 400 lines, functions < 50, and each module opens with what it is."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert len(source.splitlines()) < 400
    assert path.name == "__init__.py" or ast.get_docstring(tree), "no module docstring"
    assert path.stem not in {"utils", "util", "helpers", "common", "misc"}
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    }
    assert {name: length for name, length in long.items() if length > 50} == {}


def test_nothing_names_one_machine() -> None:
    """No absolute path of a developer's machine, and no registry host, in any tracked file."""
    files = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True).stdout.split()
    pattern = re.compile(r"(?<![\w.])/(?:work|root|home/\w+)/|pythonhosted\.org|registry\.npmjs\.org")
    found = []
    for name in files:
        path = REPO / name
        if path.suffix in {".lock", ".gz", ".zst"} or not path.is_file() or name == "tests/unit/test_house_rules.py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []
