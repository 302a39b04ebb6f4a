"""Reads files of clones of public repositories: bare ones, or with a work tree, of which only what is committed is seen."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Blob", "read", "tree"]


class Blob(NamedTuple):
    """A file of the newest commit."""

    digest: str
    size: int
    path: str


def _git_folder(clone: Path) -> Path:
    for folder in (clone / ".git", clone / "repo", clone):
        if (folder / "HEAD").exists():
            return folder
    raise ValueError(f"{clone}: expected a clone, bare or not, found no HEAD: clone the repository there")


def tree(clone: Path, under: str = "") -> Iterator[Blob]:
    """Files of a clone below a folder, in order of their paths; those that a partial clone lacks are passed over."""
    command = [
        "git",
        f"--git-dir={_git_folder(clone)}",
        "ls-tree",
        "-r",
        "-z",
        "-l",
        "HEAD",
        *([under] if under else []),
    ]
    listed = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
    for entry in listed.split("\0"):
        if entry:
            meta, path = entry.split("\t", 1)
            _, _, digest, size = meta.split()
            if size.isdecimal():
                yield Blob(digest, int(size), path)


def read(clone: Path, blobs: Iterable[Blob]) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of files of a clone."""
    command = ["git", f"--git-dir={_git_folder(clone)}", "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for blob in blobs:
            process.stdin.write(blob.digest.encode() + b"\n")
            process.stdin.flush()
            head = process.stdout.readline().split()
            if len(head) == 3:
                data = process.stdout.read(int(head[2]))
                process.stdout.read(1)
                yield blob.path, data
