"""Exclusive creation on any store: by link, by the store's own means, or by claims."""

from __future__ import annotations

import errno
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import fsspec
import pytest

from curation.blacklist import Blacklist, append, compact, files
from curation.blacklist.files import StoredFiles, open_files
from curation.blacklist.history import damages
from curation.errors import InputError, RunError
from tests.blacklists import FACTS, held, key, texts


@pytest.fixture
def store() -> Iterator[str]:
    """A folder in memory, which has no exclusive creation."""
    name = f"/{secrets.token_hex(4)}/list"
    yield f"memory:/{name}"
    memory = fsspec.filesystem("memory")
    if memory.exists(name):
        memory.rm(name, recursive=True)


def test_a_store_without_links_holds_the_same(store: str, tmp_path: Path) -> None:
    """Append, compact, open; the same files lie there, and no claim stays."""
    for place in (store, str(tmp_path)):
        append(place, texts([1, 2]), FACTS)
        append(place, texts([1], removed=True), FACTS)
        compact(place)
        append(place, texts([3]), FACTS)
        assert held(Blacklist.open(place)) == {("text", key(2)), ("text", key(3))}
        assert list(damages(place)) == []
    near = {"near-000002.bin", "near-000002.json"}  # only on disks: elsewhere each machine would fetch it whole
    assert open_files(store).names() == (open_files(tmp_path).names() or set()) - near


@pytest.mark.parametrize("kind", ["memory", "local without links"])
def test_writers_by_claims_do_not_overwrite_each_other(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Threads that all append: as many versions as appends, all entries there."""

    def refused(*_: object) -> NoReturn:
        raise OSError(errno.EPERM, "no links here")

    if kind != "memory":
        monkeypatch.setattr(os, "link", refused)
    place = store if kind == "memory" else str(tmp_path)
    faults: list[BaseException] = []

    def write(name: int) -> None:
        try:
            for number in range(3):
                append(place, texts([10 * name + number]), FACTS)
        except BaseException as error:
            faults.append(error)
            raise

    threads = [threading.Thread(target=write, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    blacklist = Blacklist.open(place)
    assert blacklist.version == 9
    assert held(blacklist) == {("text", key(10 * name + number)) for name in range(3) for number in range(3)}
    assert not [name for name in open_files(place).names() or () if "claim" in name]


def test_a_claim_that_stays_is_named(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer may be dead or slow: only a person can tell."""
    monkeypatch.setattr(files, "_CLAIM_SECONDS", 0.05)
    append(store, texts([1]), FACTS)
    open_files(store).replace_text("000002.arrow.claim-dead", "host 1\n")
    with pytest.raises(RunError, match=r"000002.arrow.claim-dead.*delete the claim"):
        append(store, texts([2]), FACTS)
    assert Blacklist.open(store).version == 1
    assert {name for name in open_files(store).names() or () if "claim" in name} == {"000002.arrow.claim-dead"}


def test_an_exclusive_store_is_asked_for_it(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mode="create"`, no claim; a name that is taken is taken."""
    monkeypatch.setattr(files, "_EXCLUSIVE", frozenset({"memory"}))
    assert append(store, texts([1]), FACTS) == 1
    opened = open_files(store)
    assert isinstance(opened, StoredFiles)
    before = opened.buffer("000001.json").to_pybytes()
    assert not opened.create_text("000001.json", "other")
    assert opened.buffer("000001.json").to_pybytes() == before


def test_a_put_that_met_itself_has_won(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that sends a request twice says that the name is taken, by its own content; an older fsspec is not trusted."""
    monkeypatch.setattr(files, "_EXCLUSIVE", frozenset({"memory"}))
    kind = type(fsspec.filesystem("memory"))
    put = kind.pipe_file

    def twice(self: object, path: str, value: bytes, mode: str = "overwrite") -> None:
        put(self, path, value, mode=mode)
        if mode == "create":
            raise OSError(errno.EINVAL, "precondition failed")

    monkeypatch.setattr(kind, "pipe_file", twice)
    assert [append(store, texts([number]), FACTS) for number in range(2)] == [1, 2]
    assert list(damages(store)) == []

    def older(self: object, path: str, value: bytes, **passed_over: object) -> None:
        put(self, path, value)

    monkeypatch.setattr(kind, "pipe_file", older)
    opened = open_files(store)
    assert not opened.create_text("000001.json", "other")


def test_an_error_of_an_exclusive_store_is_no_loss(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed and left nothing is told, not taken for another writer."""
    monkeypatch.setattr(files, "_EXCLUSIVE", frozenset({"memory"}))

    def broken(self: object, path: str, value: bytes, mode: str = "overwrite") -> None:
        raise OSError(errno.EIO, "no connection")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "pipe_file", broken)
    with pytest.raises(InputError, match="no connection"):
        append(store, texts([1]), FACTS)


def test_an_unknown_store_is_told() -> None:
    """With what to install or mend."""
    with pytest.raises(InputError, match="nosuch://x cannot be used"):
        open_files("nosuch://x")


def test_a_missing_file_of_a_store_is_named(store: str) -> None:
    """As a local one is."""
    append(store, texts([1]), FACTS)
    with pytest.raises(RunError, match=r"000009.arrow is missing"):
        open_files(store).buffer("000009.arrow")
