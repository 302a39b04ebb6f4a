"""The run store: whole files or none, foreign and damaged files refused, runs found by name."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError, RunError
from curation.run import Run, new_run_id, peak_memory, publish, read_json, write_json


def make(root: Path, run_id: str = "r1", inputs: list[str] | None = None) -> Run:
    return Run.create(root, run_id=run_id, config_text="name: x\n", config_digest="d", inputs=inputs or ["a"])


def test_publish_leaves_the_old_file_and_no_temporary_one_when_the_writer_fails(tmp_path: Path) -> None:
    """An error inside the block changes nothing on disk."""
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(ValueError, match="boom"), publish(target) as temporary:
        temporary.write_text("half")
        raise ValueError("boom")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("number", "needle"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EFBIG, r"file could not be written: .* limit on file size \(`ulimit -f`"),
        (errno.EROFS, "Check that its folder"),
    ],
)
def test_a_full_or_forbidden_disk_is_told_as_such(tmp_path: Path, number: int, needle: str) -> None:
    """ENOSPC and its kin become one message that says what to do, and leave nothing behind."""
    with pytest.raises(RunError, match=needle), publish(tmp_path / "file"):
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_or_a_device_is_never_replaced(tmp_path: Path) -> None:
    """`--output` may name /dev/null by mistake, and a rename would replace it."""
    for target in (tmp_path, Path(os.devnull)):
        with pytest.raises(ConfigError, match="no regular file"), publish(target) as temporary:
            temporary.write_text("x")
    assert not Path(os.devnull).is_file()


def test_a_root_below_a_file_is_told_as_such(tmp_path: Path) -> None:
    """`--root file.txt` is a user's mistake: one message."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="could not be written"):
        make(tmp_path / "file")


def test_sweep_removes_what_the_dead_left_and_nothing_of_the_living(tmp_path: Path) -> None:
    """A temporary file names its host and process."""
    run = make(tmp_path)
    with publish(run.folder / "a") as alive:
        alive.write_text("x")
        dead = alive.with_name(alive.name.replace(f".{os.getpid()}.", ".999999999."))
        dead.write_text("x")
        elsewhere = alive.with_name(".a.elsewhere.1.abcd.tmp")
        elsewhere.write_text("x")
        run.sweep()
        assert (alive.exists(), dead.exists(), elsewhere.exists()) == (True, False, True)
        os.utime(elsewhere, (0, 0))
        run.sweep()
        assert not elsewhere.exists()


def test_a_killed_writer_leaves_no_file_under_the_final_name(tmp_path: Path) -> None:
    """SIGKILL in the middle of a write: the final name never appears."""
    code = f"""
        import time, pathlib
        from curation.run import publish
        with publish(pathlib.Path({str(tmp_path)!r}) / "file") as temporary:
            temporary.write_text("half")
            print("writing", flush=True)
            time.sleep(60)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert not (tmp_path / "file").exists()


def test_two_writers_of_the_same_file_both_succeed(tmp_path: Path) -> None:
    """The second rename puts the same bytes in place."""
    with publish(tmp_path / "f") as one, publish(tmp_path / "f") as two:
        assert one != two
        one.write_text("same")
        two.write_text("same")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_run_is_created_once_and_opened_again(tmp_path: Path) -> None:
    """The same id with the same inputs is the same run; with others it is refused."""
    run = make(tmp_path)
    assert make(tmp_path).info["start"] == run.info["start"]
    with pytest.raises(ConfigError, match="other inputs"):
        make(tmp_path, inputs=["b"])


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "-x", ".x", "a b", "ä", "x" * 121])
def test_a_run_id_that_is_not_safe_in_a_path_is_refused(tmp_path: Path, bad: str) -> None:
    """A run id comes from outside (Airflow's API): it must not leave its folder."""
    with pytest.raises(ConfigError, match="run id"):
        make(tmp_path, bad)


def test_find_takes_a_folder_or_an_id_and_names_known_runs(tmp_path: Path) -> None:
    """A wrong name is answered with the runs that are there."""
    run = make(tmp_path)
    assert Run.find(run.folder).run_id == Run.find("r1", tmp_path).run_id == "r1"
    with pytest.raises(ConfigError, match="runs there: r1"):
        Run.find("r2", tmp_path)


def test_a_damaged_or_missing_json_is_named(tmp_path: Path) -> None:
    """Not a traceback of the JSON parser: the file and what to do."""
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(RunError, match=r"x\.json is not valid JSON"):
        read_json(tmp_path / "x.json")
    with pytest.raises(RunError, match="missing"):
        read_json(tmp_path / "y.json")


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    """A run of an unknown format is not read as if it were ours."""
    run = make(tmp_path)
    info: dict[str, Any] = dict(run.info)
    write_json(run.folder / "run.json", info | {"format": 99})
    with pytest.raises(RunError, match="format 99"):
        Run(run.folder)


def test_a_run_in_work_is_refused_to_a_second_process_and_free_after_the_first(tmp_path: Path) -> None:
    """The lock is held by the open file, so it goes with the process."""
    run = make(tmp_path)
    with run.locked(), pytest.raises(RunError, match="in work by another process"), Run(run.folder).locked():
        pass
    with run.locked():
        pass


def test_run_ids_are_safe_and_carry_name_time_and_digest() -> None:
    """`zhweb-20260520-142322-8c4a`; any name becomes safe."""
    assert new_run_id("Zh Web/ü", "8c4adeadbeef").startswith("zh-web-")
    assert new_run_id("中文", "8c4a").startswith("run-")
    assert new_run_id("x", "8c4adead").endswith("-8c4a")


def test_peak_memory_sees_what_the_block_used_and_not_what_was_before() -> None:
    """The high-water mark is reset at the start of the block."""
    big = bytearray(300 * 2**20)
    del big
    with peak_memory() as small:
        time.sleep(0.01)
    with peak_memory() as large:
        big = bytearray(200 * 2**20)
        big[::4096] = b"x" * len(big[::4096])
        del big
    assert small["seconds"] >= 0.01 > small["cpu_seconds"]
    assert large["cpu_seconds"] > 0
    assert large["peak_rss_mb"] > small["peak_rss_mb"] + 150
