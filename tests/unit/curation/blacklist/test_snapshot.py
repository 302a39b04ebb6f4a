"""Snapshots change how fast a blacklist opens, never what it says."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from curation.blacklist import Blacklist, append, compact, snapshot
from curation.errors import ConfigError, RunError
from tests.blacklists import FACTS, held, key, texts


def _history(folder: Path) -> None:
    append(folder, texts(range(20)), FACTS)
    append(folder, texts([3], removed=True), FACTS)
    append(folder, texts([3, 4, 30], reason="test.late"), FACTS)


def test_a_snapshot_spares_the_segments(tmp_path: Path) -> None:
    """Opening reads none before it: they may even be unreadable; an older version does not use a later snapshot."""
    _history(tmp_path)
    expected = held(Blacklist.open(tmp_path, 2))
    compact(tmp_path, 2)
    (tmp_path / "000001.arrow").write_bytes(b"")
    assert held_keys(Blacklist.open(tmp_path, 2)) == expected
    with pytest.raises(RunError, match=r"000001.arrow is damaged"):
        Blacklist.open(tmp_path, 1)


def held_keys(blacklist: Blacklist) -> set[tuple[str, bytes]]:
    keys = [key(number) for number in range(40)]
    rows = blacklist.lookup(pa.array(keys, pa.binary(16)))
    return {("text", one) for one, row in zip(keys, rows, strict=True) if row >= 0}


def test_a_good_snapshot_is_left_as_it_is(tmp_path: Path) -> None:
    """Compacting twice writes once; a later one is made from the former."""
    _history(tmp_path)
    path = Path(compact(tmp_path))
    assert path.name == "index-000003.arrow"
    before = path.stat().st_ino
    compact(tmp_path)
    assert path.stat().st_ino == before
    append(tmp_path, texts([50]), FACTS)
    compact(tmp_path)
    assert len(Blacklist.open(tmp_path)) == 22


@pytest.mark.parametrize("fault", ["flipped", "cut", "empty", "no json", "bad json", "foreign"])
def test_a_damaged_snapshot_is_passed_over_and_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """The history decides; a warning names the file."""
    _history(tmp_path)
    expected = held(Blacklist.open(tmp_path))
    path = Path(compact(tmp_path))
    good = path.read_bytes()
    told = path.with_suffix(".json")
    if fault == "flipped":
        path.write_bytes(good[:-500] + bytes([good[-500] ^ 1]) + good[-499:])
    elif fault == "cut":
        path.write_bytes(good[:100])
    elif fault == "empty":
        path.write_bytes(b"")
    elif fault == "no json":
        told.unlink()
    elif fault == "bad json":
        told.write_text("{")
    else:
        told.write_text(told.read_text().replace('"digest": "', '"digest": "0'))
    with caplog.at_level(logging.WARNING, "corpusmill"):
        assert held(Blacklist.open(tmp_path)) == expected
    assert ("index-000003" in caplog.text) == (fault != "no json")
    compact(tmp_path)
    caplog.clear()
    assert held(Blacklist.open(tmp_path)) == expected
    assert caplog.text == ""
    assert path.read_bytes() == good


def test_a_killed_compaction_leaves_the_list_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its json comes last."""
    _history(tmp_path)
    monkeypatch.setattr(snapshot.json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compact(tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "index-000003.arrow").exists()
    assert len(Blacklist.open(tmp_path)) == 21


def test_a_version_that_is_not_there(tmp_path: Path) -> None:
    """Is named with the latest."""
    _history(tmp_path)
    with pytest.raises(ConfigError, match="no version 4: the latest is 3"):
        compact(tmp_path, 4)
