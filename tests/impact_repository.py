"""A small git repository on disk, for tests of what looks at revisions."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["commit", "git", "make_repository"]

_WHO = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder; returns what it prints."""
    done = subprocess.run(["git", *_WHO, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """An empty repository with the branch `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, files: dict[str, str], message: str = "change") -> str:
    """Write files and commit everything; returns the commit's id."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
