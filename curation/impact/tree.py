"""What git knows: the commit that a revision names, and files as they stand at a commit, unpacked once and kept.

Trees lie under `<root>/impact/trees`, named by commit; each is published whole, by one rename. Nothing of the repository
is changed: no checkout, no worktree, no index. Unpacking this project costs about 0.5 s and 45 MB of disk.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from curation.errors import ConfigError, RunError, nearest
from curation.impact.code import HERE, PACKAGES
from curation.impact.locks import hold

__all__ = ["Repository", "code_tree", "package_repository", "repository_of", "unpacked"]

_GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Set in a hook, they would make git look into the repository of the hook."""


@dataclass(frozen=True)
class Repository:
    """A git checkout."""

    folder: Path
    """Its top folder."""

    def knows(self, revision: str) -> bool:
        """Whether a commit is called so here."""
        return not self._commit(revision).returncode

    def _commit(self, revision: str) -> subprocess.CompletedProcess[bytes]:
        return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", check=False)

    def commit(self, revision: str) -> str:
        """The full id of the commit that a branch, tag, id or other name of a revision means.

        Raises:
            ConfigError: there is no such revision here; the message names the nearest, and says so if the clone is shallow.
        """
        found = self._commit(revision)
        if found.returncode == 0:
            return found.stdout.decode().strip()
        names = (
            self.git("for-each-ref", "--format=%(refname:short)", check=False).stdout.decode(errors="replace").split()
        )
        raise ConfigError(f"no revision {revision!r} in {self.folder}{nearest(revision, names)}.{self._shallow(names)}")

    def _shallow(self, names: Sequence[str]) -> str:
        if self.git("rev-parse", "--is-shallow-repository", check=False).stdout.strip() == b"true":
            return (
                " The clone is shallow, so older commits are missing: fetch them with `git fetch --unshallow`, or "
                "let the CI service clone the whole history (GitHub: `fetch-depth: 0`, GitLab: `GIT_DEPTH: 0`)."
            )
        shown = f" Branches and tags here: {', '.join(names[:10])}." if names else ""
        return f"{shown} Give a commit, branch or tag, a YAML file, or the name of a shipped config."

    def text(self, commit: str, path: str) -> str | None:
        """A UTF-8 file as it stands at a commit; None if it is not there.

        Raises:
            ConfigError: it is no UTF-8.
        """
        found = self.git("cat-file", "blob", f"{commit}:{path}", check=False)
        if found.returncode != 0:
            return None
        try:
            return found.stdout.decode("utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"{path} at {commit[:7]} is not in UTF-8. Choose another revision.") from None

    def names(self, commit: str, folder: str) -> list[str]:
        """Paths of all files below a folder at a commit, from the top of the repository."""
        found = self.git(
            "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", *([folder] if folder else [])
        )
        return [name.decode("utf-8", "surrogateescape") for name in found.stdout.split(b"\0") if name]

    def unchanged(self, commit: str, paths: Sequence[str]) -> bool:
        """Whether files and folders are in the working tree what they are at a commit, and nothing new lies there."""
        same = self.git("diff", "--quiet", commit, "--", *paths, check=False).returncode == 0
        return same and not self.git("ls-files", "--others", "--exclude-standard", "--", *paths).stdout.strip()

    def git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run git here.

        Raises:
            ConfigError: there is no git, or it fails and `check` is set.
        """
        return _git(self.folder, *arguments, check=check)


def _git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _GIT_VARIABLES}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, check=False)
    except FileNotFoundError:
        raise ConfigError("git is not installed: without it only configs can be compared. Install git.") from None
    if check and done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip()
        raise ConfigError(f"git {arguments[0]} failed in {folder}: {told}")
    return done


def repository_of(folder: Path) -> Repository | None:
    """The git checkout that a folder lies in; None if it lies in none.

    Raises:
        ConfigError: there is no git, or it refuses to look (a checkout that belongs to somebody else).
    """
    found = _git(folder, "rev-parse", "--show-toplevel", check=False)
    if found.returncode == 0 and found.stdout.strip():
        return Repository(Path(os.fsdecode(found.stdout.rstrip(b"\n"))))
    told = found.stderr.decode(errors="replace").strip()
    if "dubious ownership" in told:
        raise ConfigError(f"git refuses to read {folder}: {told}")
    return None


@cache
def package_repository() -> tuple[Repository, str] | None:
    """The checkout that tracks this very package, and the folder in it (`` or `sub/`); None for an installed copy."""
    try:
        found = repository_of(HERE)
    except ConfigError:
        return None
    if found is None:
        return None
    prefix = HERE.resolve().relative_to(found.folder.resolve()).as_posix()
    prefix = "" if prefix == "." else f"{prefix}/"
    tracked = _git(HERE, "ls-files", "--error-unmatch", "curation/__init__.py", check=False)
    return (found, prefix) if tracked.returncode == 0 else None


def unpacked(repository: Repository, commit: str, paths: Sequence[str], folder: Path) -> Path:
    """Some paths of a commit in a folder of their own: made if it is not there yet, as a whole.

    It was of use just now, and nobody deletes it before this process ends.

    Args:
        paths: from the top of the repository; those that the commit does not have are left out.
        folder: where they shall lie: in the folder `trees` of all that `impact` keeps.

    Raises:
        ConfigError: git cannot give them.
        RunError: the folder cannot be written.
    """
    hold(folder.parents[1], folder.parent.name, folder.name)
    if folder.is_dir():
        with contextlib.suppress(OSError):  # of somebody else: then it is deleted a little earlier
            os.utime(folder)
        return folder
    there = [
        path for path in paths if repository.git("cat-file", "-e", f"{commit}:{path}", check=False).returncode == 0
    ]
    archive = repository.git("archive", "--format=tar", commit, "--", *there).stdout if there else b""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.mkdir(parents=True)
        if archive:
            with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
                opened.extractall(temporary, filter="data")
        temporary.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another command was faster, and its tree is the same
            raise RunError(
                f"{folder} cannot be written: {error.strerror or error}. Free some space, or choose --root."
            ) from error
    except tarfile.TarError as error:
        raise RunError(f"the files of {commit[:7]} cannot be unpacked: {error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def code_tree(commit: str, root: Path) -> Path:
    """This package's sources at a commit of its checkout: a folder that holds `curation` and what it needs.

    Raises:
        ConfigError: the commit does not hold the package.
    """
    found = package_repository()
    assert found is not None, "asked for the code of a revision of a package that no checkout holds"
    repository, prefix = found
    paths = [f"{prefix}{name}" for name in (*PACKAGES, "pyproject.toml")]
    folder = unpacked(repository, commit, paths, root / "trees" / commit)
    if not (folder / prefix / "curation" / "cli.py").is_file():
        raise ConfigError(f"revision {commit[:7]} holds no curation/cli.py: it is no version of this program.")
    return folder / prefix
