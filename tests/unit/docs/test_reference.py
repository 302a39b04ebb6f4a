"""The reference pages say what the code says, and every step and reason has its entry."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]


def load_generator() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("make_reference", REPO / "tools" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, str] = module.pages()
    return pages


@pytest.mark.parametrize("name", ["command-line.md", "configuration.md", "steps.md", "quarantine.md"])
def test_a_generated_page_is_fresh(name: str) -> None:
    """A change of the code without `make docs` fails here."""
    assert (REPO / "docs" / "reference" / name).read_text(encoding="utf-8") == load_generator()[name], "run `make docs`"


def test_every_configuration_key_is_explained() -> None:
    """No row of the tables ends in an empty meaning."""
    pages = load_generator()
    empty = [
        line
        for name in ("configuration.md", "steps.md")
        for line in pages[name].splitlines()
        if re.search(r"\|\s*\|$", line)
    ]
    assert empty == []


def test_links_between_pages_lead_somewhere() -> None:
    """Relative links in README and docs point to files that exist."""
    broken = []
    for page in [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(REPO)}: {target}")
    assert broken == []
