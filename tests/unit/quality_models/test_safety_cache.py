"""A folder of the cache is there whole or not at all."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from quality_models.safety_cache import cache_folder, made_once


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path))
    return tmp_path


def write(folder: Path, content: str = "x") -> None:
    (folder / "file").write_text(content)


def slowly(folder: Path) -> None:
    """Tells in the cache that it was called."""
    time.sleep(0.3)
    (folder.parents[1] / f"made by {os.getpid()}").touch()
    write(folder)


def make_slowly(_: int) -> str:
    return (made_once("name", slowly) / "file").read_text()


def test_it_is_made_once(cache: Path) -> None:
    """A second call finds it; a file that was changed is made anew."""
    folder = made_once("name", write)

    assert folder == cache / "name"
    assert made_once("name", lambda new: pytest.fail("made twice")) == folder
    (folder / "file").write_text("damaged")
    made_once("name", write)
    assert (folder / "file").read_text() == "x"
    assert [path.name for path in cache.iterdir() if not path.name.endswith(".lock")] == ["name"]


def test_two_processes_at_once(cache: Path) -> None:
    """One makes it, the other waits, both have it."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(make_slowly, range(2)) == ["x", "x"]

    assert len(list(cache.glob("made by *"))) == 1


def test_a_failure_leaves_nothing(cache: Path) -> None:
    """A full disk is a message that says what to do; a killed process's leavings are deleted once they are old."""

    def full(folder: Path) -> None:
        write(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(
        ValueError, match="No space left on device; make room, or name another folder in CORPUSMILL_CACHE"
    ):
        made_once("name", full)
    assert not list(cache.glob("*name*/*"))

    dead, young = cache / ".name-1-a.tmp", cache / ".name-2-b.tmp"
    dead.mkdir()
    young.mkdir()
    os.utime(dead, (1, 1))
    made_once("name", write)
    assert (dead.exists(), young.exists()) == (False, True)


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the checkout, where the package runs from one and nothing else is said."""
    assert cache_folder() == tmp_path
    monkeypatch.delenv("CORPUSMILL_CACHE")
    assert cache_folder().parts[-2:] == (".cache", "corpusmill")
