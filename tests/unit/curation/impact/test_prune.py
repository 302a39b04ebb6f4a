"""What is kept for the next time is bounded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from curation.impact.locks import is_free, waiting_lock
from curation.impact.prune import prune
from curation.impact.seeds import CODE_FILE


def _kept(own: Path, kind: str) -> list[str]:
    return sorted(path.name for path in (own / kind).iterdir())


def test_what_was_of_use_last_stays(tmp_path: Path) -> None:
    """Of runs by their `code.json`; what is of use now, and what another command holds, stays whatever its age."""
    for n in range(8):
        for kind in ("runs", "trees", "samples"):
            folder = tmp_path / kind / f"{n}"
            folder.mkdir(parents=True)
            (folder / CODE_FILE).write_text("")
            os.utime(folder / CODE_FILE, (1000 + n, 1000 + n))
            os.utime(folder, (1000 + n, 1000 + n))
        (tmp_path / "tokens").mkdir(exist_ok=True)
        (tmp_path / "tokens" / f"{n}.arrow").write_text("")
        os.utime(tmp_path / "tokens" / f"{n}.arrow", (1000 + n, 1000 + n))
    with waiting_lock(tmp_path, "1"):
        assert not is_free(tmp_path, "1")
        prune(tmp_path, {tmp_path / "runs" / "0", tmp_path / "trees" / "2"}, keep=3)
    assert _kept(tmp_path, "runs") == ["0", "1", "5", "6", "7"]
    assert _kept(tmp_path, "trees") == ["2", "5", "6", "7"]
    assert _kept(tmp_path, "samples") == ["5", "6", "7"]
    assert _kept(tmp_path, "tokens") == ["5.arrow", "6.arrow", "7.arrow"]
    assert is_free(tmp_path, "1")


HOLDER = """
import sys
from pathlib import Path
from curation.impact.locks import hold
for kind in ("runs", "trees", "samples"):
    hold(Path(sys.argv[1]), kind, "0")
print("held", flush=True)
sys.stdin.read()
"""


def test_what_another_process_makes_use_of_stays_until_it_ends(tmp_path: Path) -> None:
    """Whatever its age, and however the process ends."""
    kinds = ("runs", "trees", "samples")
    for kind in kinds:
        (tmp_path / kind / "0").mkdir(parents=True)
        (tmp_path / kind / "1").mkdir()
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        prune(tmp_path, (), keep=0)
        assert [_kept(tmp_path, kind) for kind in kinds] == [["0"]] * 3
        other.kill()
    prune(tmp_path, (), keep=0)
    assert [_kept(tmp_path, kind) for kind in kinds] == [[]] * 3


def test_what_a_killed_command_left_goes(tmp_path: Path) -> None:
    """Hidden names of writers that are a day old."""
    old, new = tmp_path / "trees" / ".a.1.tmp", tmp_path / "trees" / ".b.2.tmp"
    for path in (old, new):
        path.mkdir(parents=True)
    os.utime(old, (1000, 1000))
    prune(tmp_path, ())
    assert _kept(tmp_path, "trees") == [".b.2.tmp"]
    assert prune(tmp_path / "nowhere", ()) is None
