"""The history of a blacklist: numbers, chain, writers that are killed or meet, files that are damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from curation.blacklist import Blacklist, append, compact, history
from curation.blacklist.files import LocalFiles, open_files
from curation.blacklist.history import damages, read_version, versions
from curation.errors import ConfigError, InputError, RunError
from tests.blacklists import FACTS, held, key, texts

REPO = Path(__file__).resolve().parents[4]
WRITER = """
import sys
from curation.blacklist import append
from tests.blacklists import texts
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for i in range(count):
    append(folder, texts([int(name) * 1000 + i]), {"who": name, "why": str(i)})
"""


def test_each_version_names_the_one_before(tmp_path: Path) -> None:
    """The digest of the last one is that of the whole history; the hint agrees; no temporary file stays."""
    assert [append(tmp_path, texts([number]), FACTS) for number in range(3)] == [1, 2, 3]
    chain = versions(open_files(tmp_path), 1, 3)
    assert [one.previous for one in chain] == ["", chain[0].digest, chain[1].digest]
    assert Blacklist.open(tmp_path).digest == chain[2].digest
    assert json.loads((tmp_path / "latest.json").read_text()) == {"version": 3, "digest": chain[2].digest}
    assert chain[0].counts == {"text": 1, "url": 0, "domain": 0, "removed": 0}
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"{number:06d}.{kind}" for number in (1, 2, 3) for kind in ("arrow", "json")),
        "latest.json",
    }


def test_nothing_that_stands_is_written_again(tmp_path: Path) -> None:
    """Appending and compacting touch no file of an earlier version."""
    append(tmp_path, texts([1]), FACTS)
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in tmp_path.glob("0*")}
    append(tmp_path, texts([1], removed=True), FACTS)
    compact(tmp_path)
    after = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in tmp_path.glob("0*")}
    assert before.items() <= after.items()


def test_a_hint_is_not_believed(tmp_path: Path) -> None:
    """`latest.json` may be old, wrong or gone."""
    append(tmp_path, texts([1]), FACTS)
    append(tmp_path, texts([2]), FACTS)
    (tmp_path / "latest.json").write_text('{"version": 1}')
    assert Blacklist.open(tmp_path).version == 2
    (tmp_path / "latest.json").unlink()
    assert append(tmp_path, texts([3]), FACTS) == 3


# ---------------------------------------------------------------- writers


def test_a_writer_killed_between_segment_and_json_loses_nothing(tmp_path: Path) -> None:
    """A reader does not see its version; the next writer completes it, with the facts of the one that was killed."""
    append(tmp_path, texts([1]), FACTS)
    code = f"""
import os, signal
from curation.blacklist import append, history
from tests.blacklists import texts
history._seal = lambda files, number: os.kill(os.getpid(), signal.SIGKILL)
append({str(tmp_path)!r}, texts([2]), {{"who": "killed", "why": "early"}})
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "000002.arrow").exists()
    assert not (tmp_path / "000002.json").exists()
    assert held(Blacklist.open(tmp_path)) == {("text", key(1))}
    assert append(tmp_path, texts([3]), FACTS) == 3
    assert read_version(open_files(tmp_path), 2).facts == {"who": "killed", "why": "early"}
    assert held(Blacklist.open(tmp_path)) == {("text", key(number)) for number in (1, 2, 3)}
    assert list(damages(tmp_path)) == []


def test_the_json_is_the_same_whoever_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow writer finds that another one has completed its version, and is content."""
    seal = history._seal

    def overtaken(files: history.Files, number: int) -> history.Version:
        monkeypatch.setattr(history, "_seal", seal)
        append(tmp_path, texts([2]), FACTS)  # completes version 1 and takes 2
        return seal(files, number)

    monkeypatch.setattr(history, "_seal", overtaken)
    assert append(tmp_path, texts([1]), FACTS) == 1
    assert Blacklist.open(tmp_path).version == 2
    assert list(damages(tmp_path)) == []


def test_the_loser_of_a_number_takes_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer appends between looking and creating."""
    complete = history._complete

    def late(files: history.Files) -> int:
        number = complete(files)
        monkeypatch.setattr(history, "_complete", complete)
        append(tmp_path, texts([2]), FACTS)
        return number

    monkeypatch.setattr(history, "_complete", late)
    assert append(tmp_path, texts([1]), FACTS) == 2
    assert len(Blacklist.open(tmp_path)) == 2


def test_processes_append_at_once(tmp_path: Path) -> None:
    """Each append of each process is one version; together they are all there."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name, "12"], cwd=REPO, env=environment)
        for name in ("1", "2")
    ]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    found = versions(open_files(tmp_path), 1, 24)
    for name in ("1", "2"):
        assert [one.facts["why"] for one in found if one.facts["who"] == name] == [str(i) for i in range(12)]
    blacklist = Blacklist.open(tmp_path)
    assert blacklist.version == 24
    assert held(blacklist) == {("text", key(1000 * name + i)) for name in (1, 2) for i in range(12)}
    assert list(damages(tmp_path)) == []


def test_temporary_files_of_killed_writers_go_after_a_day(tmp_path: Path) -> None:
    """A younger one may be in use."""
    old, young = tmp_path / ".host.1.aaaa.tmp", tmp_path / ".host.2.bbbb.tmp"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    append(tmp_path, texts([1]), FACTS)
    assert not old.exists()
    assert young.exists()


# ---------------------------------------------------------------- damage


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_all_damaged_segments_are_named(tmp_path: Path) -> None:
    """By opening, where no snapshot stands before them, and by the look at everything."""
    for number in range(1, 6):
        append(tmp_path, texts([number]), FACTS)
    _flip(tmp_path / "000002.arrow")
    _flip(tmp_path / "000004.arrow")
    with pytest.raises(RunError) as raised:
        Blacklist.open(tmp_path)
    for message in (str(raised.value), "\n".join(damages(tmp_path))):
        assert "000002.arrow is damaged" in message
        assert "000004.arrow is damaged" in message
        assert "000003" not in message
    assert Blacklist.open(tmp_path, 1).version == 1


def test_a_segment_behind_a_snapshot_is_checked_when_it_is_read(tmp_path: Path) -> None:
    """Looking up needs the snapshot alone."""
    append(tmp_path, texts([1]), FACTS)
    compact(tmp_path)
    _flip(tmp_path / "000001.arrow")
    blacklist = Blacklist.open(tmp_path)
    assert len(blacklist) == 1
    with pytest.raises(RunError, match=r"000001.arrow is damaged"):
        blacklist.entries()


@pytest.mark.parametrize("name", ["000002.json", "000002.arrow"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    """A hole in the history is no shorter history, and nobody appends behind it."""
    for number in range(3):
        append(tmp_path, texts([number]), FACTS)
    (tmp_path / name).unlink()
    for act in (lambda: Blacklist.open(tmp_path), lambda: append(tmp_path, texts([9]), FACTS)):
        with pytest.raises(RunError, match=f"damaged: {name} missing"):
            act()
    assert name in "".join(damages(tmp_path))


def test_a_changed_json_breaks_the_chain(tmp_path: Path) -> None:
    """Even where it is valid and its segment fits."""
    for number in range(3):
        append(tmp_path, texts([number]), FACTS)
    path = tmp_path / "000002.json"
    path.write_text(path.read_text().replace("a test", "a lie"))
    with pytest.raises(RunError, match=r"000002.json is not the one that 000003.json follows"):
        Blacklist.open(tmp_path)
    assert "000003.json does not follow" in "".join(damages(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is damaged"), ("{}", "is damaged"), ("[]", "is damaged"), ('{"format": 9}', "has format 9")],
)
def test_a_json_that_is_none_is_named(tmp_path: Path, text: str, message: str) -> None:
    """The message names the file."""
    append(tmp_path, texts([1]), FACTS)
    (tmp_path / "000001.json").write_text(text)
    with pytest.raises(RunError, match=rf"000001.json {message}"):
        Blacklist.open(tmp_path)


def test_a_half_written_segment_is_named_and_not_passed_over(tmp_path: Path) -> None:
    """As a store without whole puts leaves it; readers are not disturbed."""
    append(tmp_path, texts([1]), FACTS)
    (tmp_path / "000002.arrow").write_bytes((tmp_path / "000001.arrow").read_bytes()[:900])
    assert Blacklist.open(tmp_path).version == 1
    with pytest.raises(RunError, match="left half written"):
        append(tmp_path, texts([2]), FACTS)
    (tmp_path / "000002.arrow").unlink()
    assert append(tmp_path, texts([2]), FACTS) == 2


def test_a_full_disk_is_told_and_takes_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next append begins where this one did."""

    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises(RunError, match="No space left"):
            append(tmp_path, texts([1]), FACTS)
    assert list(tmp_path.iterdir()) == []
    assert append(tmp_path, texts([1]), FACTS) == 1


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """Is told by its name."""
    (tmp_path / "list").write_text("x")
    with pytest.raises(InputError, match="is no folder"):
        Blacklist.open(tmp_path / "list")
    with pytest.raises(RunError, match="could not be written"):
        append(tmp_path / "list", texts([1]), FACTS)


def nested(depth: int) -> object:
    found: object = "end"
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    "facts",
    [
        {"why": "caf\udce9"},
        {"who": "\ud800"},
        {"more": {"\udcff": 1}},
        {"more": ["\ud83d\ude00"]},
        {"more": float("nan")},
        {"more": float("inf")},
        {"more": b"bytes"},
        {"more": 10**5000},
        {"more": nested(33)},
        {"more": nested(400)},
        {"more": nested(100_000)},
        {1: "a", "b": 2},
    ],
    ids=range(12),
)
def test_facts_that_cannot_be_written_take_no_number(tmp_path: Path, facts: dict[str, object]) -> None:
    """They are refused before anything stands, and the next writer is not disturbed."""
    append(tmp_path, texts([1]), FACTS)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ConfigError, match="facts must be"):
        append(tmp_path, texts([2]), {**FACTS, **facts})
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert append(tmp_path, texts([3]), {**FACTS, "deep": nested(30), "text": "é 漢 😀 \x00\x1b"}) == 2
    assert list(damages(tmp_path)) == []


def test_a_segment_that_blocks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As earlier releases could leave it: by each writer, and by the look at everything; without it the list goes on."""
    append(tmp_path, texts([1]), FACTS)
    with monkeypatch.context() as patch:
        patch.setattr(history, "checked_told", lambda told: json.dumps(told).encode())
        with pytest.raises(RunError, match=r"000002.arrow blocks the blacklist"):
            append(tmp_path, texts([2]), {**FACTS, "why": "caf\udce9"})
    with pytest.raises(RunError, match=r"000002.arrow blocks the blacklist.*Move it away"):
        append(tmp_path, texts([3]), FACTS)
    (told,) = damages(tmp_path)
    assert "000002.arrow blocks the blacklist" in told
    assert Blacklist.open(tmp_path).version == 1
    (tmp_path / "000002.arrow").unlink()
    assert list(damages(tmp_path)) == []
    assert append(tmp_path, texts([3]), FACTS) == 2


def test_the_look_at_everything_sees_a_half_written_segment_and_lets_a_whole_one_be(tmp_path: Path) -> None:
    """A segment without its json is of a writer at work."""
    for number in (1, 2):
        append(tmp_path, texts([number]), FACTS)
    (tmp_path / "000002.json").unlink()
    assert list(damages(tmp_path)) == []
    (tmp_path / "000002.arrow").write_bytes((tmp_path / "000002.arrow").read_bytes()[:900])
    assert "left half written" in "".join(damages(tmp_path))


@pytest.mark.parametrize("name", ["000002.json", "000002.arrow", "000003.arrow", "000003.json"])
def test_a_listing_that_misses_a_file_once_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Beside writers it shows a file and not an older one, for it is not of one moment."""
    for number in range(3):
        append(tmp_path, texts([number]), FACTS)
    names, hidden = LocalFiles.names, [name]

    def listed(files: LocalFiles) -> set[str] | None:
        found = names(files)
        return found and found - {hidden.pop() if hidden else ""}

    monkeypatch.setattr(LocalFiles, "names", listed)
    for act in (
        lambda: Blacklist.open(tmp_path, 2).version == 2,
        lambda: list(damages(tmp_path)) == [],
        lambda: append(tmp_path, texts([9]), FACTS) == 4,
    ):
        hidden[:] = [name]
        assert act()
        assert not hidden


@pytest.mark.parametrize(
    "change",
    [
        {"when": "\x1b]0;owned\x07"},
        {"when": "2030-01-01T00:00:00"},
        {"when": 7},
        {"counts": {"text": "\x1b[31m1"}},
        {"counts": {"text": True}},
        {"counts": {"text": 1.5}},
        {"counts": [["text", 1]]},
        {"rows": "1"},
        {"facts": [["who", "x"]]},
        {"previous": None},
        {"segment": []},
        {"segment": {"sha256": 5}},
        {"version": "\x1b[31m1"},
    ],
    ids=str,
)
def test_a_json_of_wrong_types_is_damaged(tmp_path: Path, change: dict[str, object]) -> None:
    """Whatever reads it may rely on what it is."""
    append(tmp_path, texts([1]), FACTS)
    path = tmp_path / "000001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunError, match=r"000001.json is damaged"):
        read_version(open_files(tmp_path), 1)


def test_a_json_that_nests_without_end_is_damaged(tmp_path: Path) -> None:
    """And is no traceback."""
    append(tmp_path, texts([1]), FACTS)
    (tmp_path / "000001.json").write_text("[" * 100_000)
    assert "000001.json is damaged" in "".join(damages(tmp_path))


# ---------------------------------------------------------------- once


def put(place: str | os.PathLike[str], number: int, once: str | None) -> int:
    """Append text `number` under a name."""
    return append(place, texts([number]), FACTS, once=once)


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_what_has_a_name_is_appended_once(tmp_path: Path, kind: str) -> None:
    """The version that has the name is returned, whatever the entries are; its facts say the name."""
    place = str(tmp_path) if kind == "local" else f"memory://{tmp_path.name}-once"
    assert [put(place, 1, "gpt/10"), put(place, 2, None), put(place, 3, "gpt/20")] == [1, 2, 3]
    assert [put(place, 4, "gpt/10"), put(place, 5, "gpt/20"), put(place, 1, "gpt/10")] == [1, 3, 1]
    blacklist = Blacklist.open(place)
    assert blacklist.version == 3
    assert held(blacklist) == {("text", key(number)) for number in (1, 2, 3)}
    assert [one.facts.get("once") for one in versions(open_files(place), 1, 3)] == ["gpt/10", None, "gpt/20"]
    assert put(place, 4, "gpt/1") == 4


def test_the_loser_of_a_number_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer appends the same between looking and creating."""
    look = history._number_of

    def late(files: history.Files, once: str, latest: int) -> int:
        found = look(files, once, latest)
        monkeypatch.setattr(history, "_number_of", look)
        assert put(tmp_path, 2, once) == 1
        return found

    monkeypatch.setattr(history, "_number_of", late)
    assert put(tmp_path, 1, "name") == 1
    assert held(Blacklist.open(tmp_path)) == {("text", key(2))}


def test_a_name_whose_writer_was_killed_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between segment and json: the next one that appends it completes the version and appends nothing."""

    def killed(files: history.Files, number: int) -> NoReturn:
        raise KeyboardInterrupt

    put(tmp_path, 1, None)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(history, "_seal", killed)
        put(tmp_path, 2, "name")
    assert not (tmp_path / "000002.json").exists()
    assert put(tmp_path, 2, "name") == 2
    assert Blacklist.open(tmp_path).version == 2
    assert list(damages(tmp_path)) == []


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "x" * 1001, 7])
def test_a_name_is_a_printable_text(tmp_path: Path, name: object) -> None:
    """And stands in its own argument alone; nothing is written otherwise."""
    with pytest.raises(ConfigError, match="once: expected a printable text"):
        append(tmp_path / "a", texts([1]), FACTS, once=name)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="may not hold `once`"):
        append(tmp_path / "a", texts([1]), {**FACTS, "once": "name"})
    assert list(tmp_path.iterdir()) == []


def test_a_long_history_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`once.json` stands for all but the last versions: of those alone the json is read."""
    monkeypatch.setattr(history, "_TAIL", 5)
    assert [put(tmp_path, number, f"n{number}") for number in range(1, 14)] == list(range(1, 14))
    read: list[int] = []
    one = history.read_version

    def counted(files: history.Files, number: int) -> history.Version:
        read.append(number)
        return one(files, number)

    monkeypatch.setattr(history, "read_version", counted)
    assert [put(tmp_path, 0, f"n{number}") for number in range(1, 14)] == list(range(1, 14))
    assert len(read) <= 13 * 6
    assert min(read) > 6


@pytest.mark.parametrize("damage", ["", "[]", "{}", "null", "cut", "changed", "of another list", "of a longer list"])
def test_once_json_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """Damaged, foreign or of a history that is no longer there, it is made anew, and the answers are the same."""
    monkeypatch.setattr(history, "_TAIL", 2)
    place, other = tmp_path / "list", tmp_path / "other"
    for number in range(1, 8):
        put(place, number, f"n{number}")
    for number in range(1, 12 if damage == "of a longer list" else 7):
        put(other, number, f"o{number}")
    path = place / "once.json"
    text = path.read_text()
    changed = {"cut": text[:-9], "changed": text.replace("n2", "n9")}
    if damage.startswith("of "):
        changed[damage] = (other / "once.json").read_text()
    path.write_text(changed.get(damage, damage))
    assert [put(place, 0, f"n{number}") for number in range(1, 8)] == list(range(1, 8))
    assert put(place, 0, "n9") == 8
    assert put(place, 0, "o1") == 9
    assert "o1" not in path.read_text()
