"""Near copies by the index: the same as by comparing with everything, whatever lies where; damage, cuts and other signings."""

from __future__ import annotations

import os
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.blacklist import Blacklist, append, compact, near
from curation.blacklist.entries import SIGNING
from curation.blacklist.files import Files, LocalFiles, open_files
from curation.blacklist.near import LEAST, MOST_A_BAND, NearCopies
from curation.blacklist.signature import signing_text
from curation.errors import RunError
from tests.blacklists import FACTS, key, texts

Signatures = npt.NDArray[np.uint32]
NOW = datetime.now(timezone.utc)


def signatures(n: int, seed: int = 0) -> Signatures:
    return np.random.default_rng(seed).integers(0, 2**32, (n, 128), dtype=np.uint32)


def changed(found: Signatures, places: int, seed: int = 1) -> Signatures:
    """Signatures that differ from others in so many places."""
    made = found.copy()
    rng = np.random.default_rng(seed)
    for row in made:
        row[rng.choice(128, places, replace=False)] ^= 1
    return made


def signed(numbers: list[int], rows: Signatures, signing: bytes | None = None, **columns: Any) -> pa.Table:
    column = pa.array([row.astype("<u4").tobytes() for row in rows], pa.binary())
    table = texts(numbers, **columns).append_column("signature", column)
    return table.replace_schema_metadata({SIGNING: signing or signing_text()})


def ask(place: Path, asked: Signatures, at_once: int = 1000) -> list[tuple[bytes, float] | None]:
    copies = NearCopies.open(Blacklist.open(place))
    found: list[tuple[bytes, float] | None] = []
    for start in range(0, len(asked), at_once):
        part = asked[start : start + at_once]
        ids, share = copies.closest(part, np.ones(len(part), np.bool_))
        found += [None if np.isnan(s) else (i.tobytes(), float(s)) for i, s in zip(ids, share, strict=True)]
    return found


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**30), st.sampled_from([None, 1, 2, 3]), st.sampled_from([1, 7, 1000]))
def test_it_finds_what_comparing_with_all_finds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, snapshot: int | None, at_once: int
) -> None:
    """Taken back, said again and expired entries included, with and without an index, in any cut into batches."""
    place = tmp_path_factory.mktemp("list")
    rng = np.random.default_rng(seed)
    known = signatures(60, seed)
    known[40:] = changed(known[:20], 6, seed)
    expires = [NOW - timedelta(days=1) if x else None for x in rng.random(30) < 0.2]
    append(place, signed(list(range(30)), known[:30], expires=expires), FACTS)
    append(place, signed(list(range(20, 60)), known[20:]), FACTS)
    gone = sorted(rng.choice(60, 10, replace=False).tolist())
    append(place, texts(gone, removed=True), FACTS)
    if snapshot:
        compact(place, snapshot)
    holds = [i for i in range(60) if i not in gone and (i >= 20 or expires[i] is None)]
    asked = np.concatenate([changed(known, int(rng.integers(0, 20)), seed), signatures(5, seed + 1)])
    found = ask(place, asked, at_once)
    for row, one in zip(asked, found, strict=True):
        alike = (known[holds] == row).sum(axis=1)
        most = int(alike.max(initial=0))
        expected = None if most < LEAST * 128 else most / 128
        assert (one and one[1]) == expected
        if one:
            assert one[0] in {key(holds[i]) for i in np.flatnonzero(alike == most).tolist()}


def test_thousands_of_copies_are_not_all_looked_at(tmp_path: Path) -> None:
    """The first that hold decide, with or without an index, and a copy is found however many there are."""
    row = signatures(1)
    numbers = list(range(3 * MOST_A_BAND))
    append(tmp_path, signed(numbers, np.repeat(row, len(numbers), axis=0)), FACTS)
    append(tmp_path, texts(range(2 * MOST_A_BAND), removed=True), FACTS)
    append(tmp_path, signed([9000], row), FACTS)
    plain = ask(tmp_path, row)
    assert plain == [(key(2 * MOST_A_BAND), 1.0)]
    compact(tmp_path, 1)
    assert ask(tmp_path, row) == plain


def test_damage_is_seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In what is read at once the index is passed over; in a signature it is refused when that is looked at."""
    rows = signatures(300)
    append(tmp_path, signed(list(range(300)), rows), FACTS)
    compact(tmp_path)
    whole = (tmp_path / "near-000001.bin").read_bytes()
    for place in (0, len(whole) // 5):
        (tmp_path / "near-000001.bin").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert ask(tmp_path, rows[:3]) == [(key(i), 1.0) for i in range(3)]
        assert "damaged" in caplog.text
        caplog.clear()
    (tmp_path / "near-000001.bin").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert ask(tmp_path, rows[:3]) == [(key(i), 1.0) for i in range(3)]
    with pytest.raises(RunError, match="damaged"):
        ask(tmp_path, rows[299:])
    compact(tmp_path)  # says nothing of signatures
    (tmp_path / "near-000001.bin").unlink()
    compact(tmp_path)
    assert (tmp_path / "near-000001.bin").read_bytes() == whole


def test_other_signings_are_counted(tmp_path: Path) -> None:
    """They cannot be compared, and it is told how many."""
    rows = signatures(4)
    append(tmp_path, signed([0, 1], rows[:2], b'{"shingle":7}'), FACTS)
    append(tmp_path, signed([2, 3], rows[2:]), FACTS)
    for _ in range(2):
        copies = NearCopies.open(Blacklist.open(tmp_path))
        assert (copies.others, len(copies)) == (2, 2)
        assert ask(tmp_path, rows) == [None, None, (key(2), 1.0), (key(3), 1.0)]
        compact(tmp_path)


def test_a_large_list_without_an_index_gets_one_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Written once for a version, outside of the list; used again."""
    monkeypatch.setattr(near, "IN_MEMORY", 10)
    monkeypatch.setattr(near, "cache_folders", lambda files: [tmp_path / "cache"])
    rows = signatures(50)
    append(tmp_path / "list", signed(list(range(50)), rows), FACTS)
    for times in (1, 0):
        caplog.clear()
        assert ask(tmp_path / "list", rows[:2]) == [(key(0), 1.0), (key(1), 1.0)]
        assert caplog.text.count("compact") == times
    assert not list((tmp_path / "list").glob("near*"))


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose account has no home directory: its temporary folder."""

    def none() -> NoReturn:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(near, "IN_MEMORY", 10)
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def cached(files: Files) -> list[Path]:
    return list(near.cache_folders(files))


def test_each_list_has_a_folder_of_its_own(tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its name, and from wherever it is named; the same list has the same one."""
    places = [tmp_path / one / ("x" * 80) / "blacklist" for one in "ab"]
    for place in places:
        place.mkdir(parents=True)
    urls = [open_files(f"memory://{one}/{'x' * 80}/blacklist") for one in ("a", "b", "a-b", "a/b")]
    found = [cached(files)[0] for files in (*map(LocalFiles, places), *urls)]
    assert len(set(found)) == 6
    assert all(len(one.name) <= 80 for one in found)
    for place, folder in zip(places, found, strict=False):
        monkeypatch.chdir(place.parent)
        assert cached(LocalFiles(Path("blacklist"))) == [folder]


def test_the_home_directory_comes_first(tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder is asked where it cannot be written."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(Path, "home", lambda: home)
    rows = signatures(20)
    append(tmp_path / "list", signed(list(range(20)), rows), FACTS)
    (home / ".cache").write_text("no folder")
    assert ask(tmp_path / "list", rows[:1]) == [(key(0), 1.0)]
    assert list(homeless.glob("corpusmill-*/blacklist/*/near-000001.bin"))
    (home / ".cache").unlink()
    append(tmp_path / "list", signed(list(range(20, 40)), signatures(20, 5)), FACTS)
    assert ask(tmp_path / "list", rows[:1]) == [(key(0), 1.0)]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fault", ["others may write", "a link", "of another user", "no folder"])
def test_an_index_that_another_user_can_have_put_there_is_not_read(
    tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch, level: int, fault: str
) -> None:
    """In the temporary folder anybody can make the folder first, with an index and the checksum that fits."""
    rows = signatures(20)
    append(tmp_path / "list", signed(list(range(20)), rows), FACTS)
    assert ask(tmp_path / "list", rows[:1]) == [(key(0), 1.0)]
    (folder,) = cached(LocalFiles(tmp_path / "list"))
    assert (folder / "near-000001.bin").exists()
    assert {one.stat().st_mode & 0o777 for one in (folder, *folder.parents[:2])} == {0o700}
    bad = [folder.parents[1], folder.parent, folder][level]
    if fault == "others may write":
        bad.chmod(0o777)
    elif fault == "of another user":
        if os.getuid():
            pytest.skip("only root can give a folder away")
        os.chown(bad, 12345, 12345)
    else:
        bad.rename(tmp_path / "moved")
        if fault == "a link":
            bad.symlink_to(tmp_path / "moved")
        else:
            bad.touch()
    with pytest.raises(RunError, match="cannot be written on this machine"):
        ask(tmp_path / "list", rows[:1])


def test_a_folder_that_is_taken_while_it_is_made_is_refused(
    tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user makes it between looking and making."""
    append(tmp_path / "list", signed(list(range(20)), signatures(20)), FACTS)
    mkdir = Path.mkdir

    def faster(folder: Path, *arguments: Any, **more: Any) -> None:
        mkdir(folder, *arguments, **more)
        if folder.parent == homeless:
            folder.chmod(0o777)

    monkeypatch.setattr(Path, "mkdir", faster)
    with pytest.raises(RunError, match="belongs to somebody else"):
        ask(tmp_path / "list", signatures(1))


def test_an_empty_list_and_texts_without_shingles(tmp_path: Path) -> None:
    """Nothing is near."""
    append(tmp_path, texts([1, 2]), FACTS)
    assert ask(tmp_path, signatures(2)) == [None, None]
    compact(tmp_path)
    assert ask(tmp_path, signatures(0)) == []
    append(tmp_path, signed([5], signatures(1)), FACTS)
    ids, share = NearCopies.open(Blacklist.open(tmp_path)).closest(signatures(1), np.zeros(1, np.bool_))
    assert np.isnan(share).all()
    assert not ids.any()
