"""The tutorial that adds a filter, word for word: each of its blocks in a fresh clone, and what the page says is printed.

Needs git, and this checkout's installed packages; the clone's own code is what runs. Kernels that this checkout has
compiled are taken along where sources are the same, since compiling them is most of what a first run takes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

from curation.text.jit import cache_folder

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "docs/tutorial-add-a-filter.md"
SECONDS = 240
"""For one block; a machine that is busy compiles slowly."""
FIRST_SHEET = ".venv/bin/corpusmill impact mine.yaml --base web\n"
TOOLS = ("corpusmill", "python", "pytest", "ruff", "mypy")


def blocks(text: str) -> list[tuple[str, str | None]]:
    """Each block of commands with what the page says it prints; None: nothing is said."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in found} <= {"sh", "text"}
    pairs: list[tuple[str, str | None]] = []
    for kind, body in found:
        if kind == "sh":
            pairs.append((body, None))
        else:
            assert pairs, "what a command prints stands behind it"
            assert pairs[-1][1] is None, f"two outputs of one block: {pairs[-1][0]}"
            pairs[-1] = (pairs[-1][0], body)
    return pairs


def pattern_of(printed: str) -> re.Pattern[str]:
    """What the page shows as a regular expression: `...` is anything, in a line or as lines; blanks may be more or fewer."""
    lines = []
    for line in printed.splitlines():
        pieces = re.split(r"(\.\.\.(?!\")|\s+)", line.strip())
        words = [".*" if piece == "..." else r"\s+" if piece.isspace() else re.escape(piece) for piece in pieces]
        lines.append(r"(?:.*\n)*?" if line.strip() == "..." else rf"[^\S\n]*{''.join(words)}\s*\n")
    return re.compile("".join(lines) + r"\s*")


def without_numbers(text: str) -> str:
    """Those of a sheet change with any other filter, and with the sample."""
    return re.sub(r"(?:< )?\d[\d,.]*", "#", text)


def check_the_sheet(folder: Path) -> None:
    """What the page says of it in words: junk leaves, and nothing good."""
    (path,) = folder.glob("*/sheet.json")
    sheet = json.loads(path.read_text(encoding="utf-8"))
    leaves = {label["name"]: label["documents"]["leaves"]["count"] for label in sheet["figures"]["labels"]}
    assert leaves["junk"] == 2, leaves
    assert leaves["good"] == 0, leaves
    assert sheet["within_bounds"]


def take_kernels_along(clone: Path) -> None:
    """Copy what is compiled here, to where the clone will look for it; what does not fit there is compiled anew."""
    place = _CacheLocator.get_suitable_cache_subpath
    for caches in {kernels.parent for kernels in REPO.glob("[!.]*/**/__pycache__/kernels-*")}:
        folder = caches.parent
        kernels = Path(cache_folder(folder) or "")
        compiled = kernels / place(str(folder / "any.py"))
        if kernels.parent == caches and compiled.is_dir():
            there = clone / folder.relative_to(REPO)
            shutil.copytree(compiled, there / "__pycache__" / kernels.name / place(str(there / "any.py")))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a newcomer has after `git clone` and `make setup`: the files that are tracked here, as they are now."""
    if not (REPO / ".git").exists():
        pytest.skip("not a git checkout, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("clone") / "corpusmill"
    subprocess.run(["git", "clone", "--quiet", "--local", str(REPO), str(folder)], check=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        here, there = REPO / name, folder / name
        if here.is_file():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here, there)  # with its time: numba asks whether a source is older than its kernel
    take_kernels_along(folder)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "add", "--all"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "now"], cwd=folder, check=True)
    tools = folder / ".venv/bin"
    tools.mkdir(parents=True)
    for tool in TOOLS:
        where = sys.executable if tool == "python" else str(Path(sys.executable).with_name(tool))
        (tools / tool).write_text(f'#!/bin/sh\nexec {shlex.quote(where)} "$@"\n', encoding="utf-8")
        (tools / tool).chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_block_does_what_the_page_says(clone: Path) -> None:
    """From the first block to the last: no other command is needed, and what is printed is what stands there."""
    environment = {**os.environ, "PYTHONPATH": str(clone), "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("CORPUSMILL_ROOT", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    told = blocks(PAGE.read_text(encoding="utf-8"))
    assert FIRST_SHEET in [commands for commands, _ in told]

    for commands, printed in told:
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{commands}"],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if printed is None:
            assert done.returncode == 0, f"{commands}\n{done.stdout}"
            continue
        found = done.stdout
        if "corpusmill impact" in commands:
            printed, found = without_numbers(printed), without_numbers(found)
        assert pattern_of(printed).fullmatch(found), f"{commands}\nprinted\n{done.stdout}\nthe page says\n{printed}"
        if commands == FIRST_SHEET:
            check_the_sheet(clone / "runs-root/impact/sheets")
    status = subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, text=True, check=True).stdout
    assert status == "", f"the page promises that no trace stays:\n{status}"
