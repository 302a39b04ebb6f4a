"""Revisions of a git checkout, and files as they stand there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.impact.prune import prune
from curation.impact.tree import Repository, code_tree, package_repository, repository_of, unpacked
from tests.impact_repository import commit, git, make_repository


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with two commits and a tag."""
    made = make_repository(tmp_path / "repo")
    commit(made, {"a.yaml": "name: a\n", "lists/x.tsv": "1\n"})
    git(made, "tag", "v1")
    commit(made, {"a.yaml": "name: b\n", "b.yaml": "é"})
    return made


def test_a_revision_is_a_commit_whatever_it_is_called(folder: Path) -> None:
    """Branch, tag, short id, relative name."""
    repository = Repository(folder)
    head, first = git(folder, "rev-parse", "HEAD"), git(folder, "rev-parse", "v1")
    assert [repository.commit(name) for name in ("main", "HEAD", head, head[:8])] == [head] * 4
    assert [repository.commit(name) for name in ("v1", "HEAD~1", "main^")] == [first] * 3


@pytest.mark.parametrize("name", ["mian", "--help", "v9", "HEAD~7", ""])
def test_an_unknown_revision_is_refused_with_those_there_are(folder: Path, name: str) -> None:
    """An option is no revision either."""
    with pytest.raises(ConfigError, match="no revision") as caught:
        Repository(folder).commit(name)
    assert "main" in str(caught.value)


def test_of_a_shallow_clone_the_message_says_so(folder: Path, tmp_path: Path) -> None:
    """With what to do in CI."""
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder}", "shallow")
    with pytest.raises(ConfigError, match=r"shallow.*fetch-depth: 0"):
        Repository(tmp_path / "shallow").commit("HEAD~1")


def test_a_file_at_a_commit_is_its_text_or_none(folder: Path) -> None:
    """The working tree does not count."""
    repository = Repository(folder)
    (folder / "a.yaml").write_text("name: c\n")
    assert repository.text(repository.commit("v1"), "a.yaml") == "name: a\n"
    assert repository.text(repository.commit("v1"), "b.yaml") is None
    assert repository.text(repository.commit("main"), "b.yaml") == "é"


def test_unchanged_looks_at_the_working_tree(folder: Path) -> None:
    """At what is edited, and at what is new and not ignored."""
    repository = Repository(folder)
    head = repository.commit("HEAD")
    assert repository.unchanged(head, ["lists"])
    (folder / "lists/y.tsv").write_text("2\n")
    assert not repository.unchanged(head, ["lists"])
    (folder / "lists/y.tsv").unlink()
    (folder / "lists/x.tsv").write_text("2\n")
    assert not repository.unchanged(head, ["lists"])
    assert repository.unchanged(head, ["a.yaml"])


def test_a_tree_is_unpacked_once_and_whole(folder: Path, tmp_path: Path) -> None:
    """Paths that a commit lacks are left out; a tree that is there is not touched."""
    repository = Repository(folder)
    first = repository.commit("v1")
    there = unpacked(repository, first, ["lists", "b.yaml"], tmp_path / "trees" / first)
    assert sorted(path.name for path in there.rglob("*")) == ["lists", "x.tsv"]
    (there / "mark").write_text("")
    assert unpacked(repository, first, ["lists"], there) == there
    assert (there / "mark").exists()
    assert [path.name for path in there.parent.iterdir()] == [first]


def test_a_tree_that_is_used_again_is_of_use_now_and_stays(folder: Path, tmp_path: Path) -> None:
    """However old it is: its files are read as long as this process lives."""
    repository = Repository(folder)
    first = repository.commit("v1")
    there = unpacked(repository, first, ["lists"], tmp_path / "trees" / first)
    os.utime(there, (1000, 1000))
    unpacked(repository, first, ["lists"], there)
    assert there.stat().st_mtime > 1000
    prune(tmp_path, (), keep=0)
    assert (there / "lists" / "x.tsv").exists()


def test_a_hook_does_not_lead_git_elsewhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIT_DIR of a hook is another repository."""
    other = make_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    found = repository_of(folder / "lists")
    assert found is not None
    assert found.folder.resolve() == folder.resolve()


def test_a_folder_without_git_is_in_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And without the program `git` there is a message."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert repository_of(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="git is not installed"):
        repository_of(tmp_path)


@pytest.mark.skipif(shutil.which("git") is None or package_repository() is None, reason="the package is in no checkout")
def test_the_code_of_a_revision_is_a_package(tmp_path: Path) -> None:
    """With its sources, weights and tables, and nothing else."""
    found = package_repository()
    assert found is not None
    repository, _ = found
    tree = code_tree(repository.commit("HEAD"), tmp_path)
    assert (tree / "curation" / "cli.py").is_file()
    assert (tree / "quality_models" / "weights").is_dir()
    assert not (tree / "tests").exists()
