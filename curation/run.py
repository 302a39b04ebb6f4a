"""A run on disk: its folders, atomic writes, markers and checksums. The only home of paths.

    <root>/runs/<run_id>/
      run.json config.yaml inputs.json
      shards/       text once, one file a shard, plus plan.json and _done.json
      quarantine/   what could not be read, with its place and its raw bytes
      steps/NN-name-digest8/   verdict files named as the shards, _items/ markers, _done.json
      work/         intermediate files of data-set steps; may be deleted at any time
      pack/ report/ logs/

Everything is published by temporary name, fsync, rename; a marker is written last. So a killed
process leaves either a whole file or none, and two workers that do the same item both succeed:
an item is a function of its input, and the second rename puts the same bytes in place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from curation.errors import ConfigError, RunError
from curation.ids import digest8

__all__ = [
    "RUN_ID",
    "Run",
    "checked_run_id",
    "file_sha256",
    "fsync_folder",
    "new_run_id",
    "publish",
    "read_json",
    "run_lock",
    "write_json",
]

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
FORMAT_VERSION = 1


def new_run_id(name: str, digest: str, begun: datetime | None = None) -> str:
    """Name, UTC time and a short digest, safe in a path: `zhweb-20260520-142322-8c4a`."""
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "run"
    stamp = (begun or datetime.now(timezone.utc)).astimezone(timezone.utc).strftime("%Y%m%d-%H%M%S")
    return f"{safe[:40]}-{stamp}-{digest[:4]}"


def checked_run_id(run_id: str) -> str:
    """The run id, if it is safe in a path.

    Raises:
        ConfigError: it is not.
    """
    if not RUN_ID.fullmatch(run_id):
        raise ConfigError(
            f"run id {run_id!r}: expected letters, digits, '.', '_' and '-', at most 120, not starting with a sign."
        )
    return run_id


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hex, streamed."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def publish(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path`; on success it is fsynced and renamed to `path`.

    On any error the temporary file is removed and `path` is untouched.

    Args:
        durable: false leaves out the fsync. The file is whole after a killed process all the same, but may not be
            after a crash of the machine: only for files with a checksum elsewhere that are made anew if it does not fit.

    Raises:
        RunError: the disk is full, the file too large, or the folder cannot be written.
        ConfigError: there is something at `path` that is no regular file: a folder, a device.
    """
    temporary = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(
                f"{path} is no regular file, and writing there would replace it. Give the name of a file."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        if durable:
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
        temporary.replace(path)
        if durable:
            fsync_folder(path.parent)
    except OSError as error:
        _remove_if_there(temporary)
        raise _not_written(path, error) from error
    except BaseException:
        _remove_if_there(temporary)
        raise


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", platform.node()) or "host"


def _remove_if_there(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _not_written(path: Path, error: OSError) -> RunError:
    """What to tell about a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(path.parent).free // 2**20
        return RunError(
            f"the disk is full: {path} could not be written ({free} MB free). "
            "Free some space, then run the same command again: it goes on where it stopped."
        )
    if error.errno == errno.EFBIG:
        return RunError(
            f"{path} could not be written: it would exceed a limit on file size (`ulimit -f` shows it; else the file "
            "system has one). Raise the limit, then run the same command again: it goes on where it stopped."
        )
    why = error.strerror or str(error)
    return RunError(f"{path} could not be written: {why}. Check that its folder is one, and may be written to.")


def fsync_folder(folder: Path) -> None:
    """Make the names of the files in a folder outlast a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Write JSON atomically, indented, keys in the given order. `durable`: see `publish`."""
    with publish(path, durable=durable) as temporary:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file of a run.

    Raises:
        RunError: it is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is missing: the run is incomplete or not a run. Run the same command again.") from None
    except ValueError as error:
        raise RunError(
            f"{path} is not valid JSON ({error}): the file is damaged. Delete it and run the same command again."
        ) from error


class Run:
    """One run: its folder, its identity, its resolved config as plain data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info: dict[str, Any] = read_json(folder / "run.json")
        if self.info.get("format") != FORMAT_VERSION:
            raise RunError(
                f"{folder} was written in run format {self.info.get('format')!r}; this version reads {FORMAT_VERSION}."
            )

    # -- making and finding -------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        root: Path,
        *,
        run_id: str,
        config_text: str,
        config_digest: str,
        inputs: list[str],
        extra: Mapping[str, Any] | None = None,
    ) -> Run:
        """Make the folder of a new run, or open it if it exists with the same inputs.

        Raises:
            ConfigError: the run id is not safe in a path, or the run exists with other inputs.
        """
        folder = root.resolve() / "runs" / checked_run_id(run_id)
        named = {"files": len(inputs), "digest": digest8(inputs), "first": inputs[:3]}
        if not (folder / "run.json").exists():
            info = {
                "format": FORMAT_VERSION,
                "run_id": run_id,
                "inputs": named,
                "config_digest": config_digest,
                "code_version": code_version(),
                "host": platform.node(),
                "start": utc_now(),
                "end": None,
                "state": "running",
                **(extra or {}),
            }
            write_json(folder / "run.json", info)
        run = cls(folder)
        if run.info["inputs"] != named:
            first = ", ".join(run.info["inputs"]["first"])
            raise ConfigError(f"run {run_id} exists in {root} with other inputs ({first} ...): choose another run id.")
        if not run.config_path.exists() or run.config_path.read_text(encoding="utf-8") != config_text:
            with publish(run.config_path) as temporary:
                temporary.write_text(config_text, encoding="utf-8")
            run.update(config_digest=config_digest)
        return run

    @classmethod
    def find(cls, run: str | Path, root: Path | None = None) -> Run:
        """Open a run given as folder, or as run id under `root`.

        Raises:
            ConfigError: there is no such run; the message names the nearest ones.
        """
        candidates = [Path(run)] + ([root / "runs" / str(run)] if root else [])
        for folder in candidates:
            if (folder / "run.json").is_file():
                return cls(folder.resolve())
        where = (root or Path(run).parent) / ("runs" if root else "")
        known = sorted(p.parent.name for p in where.glob("*/run.json"))[-5:] if where.is_dir() else []
        raise ConfigError(
            f"no run at {run}" + (f"; runs there: {', '.join(known)}" if known else "") + ". Give the run's folder."
        )

    def update(self, **changes: Any) -> None:
        """Change entries of run.json."""
        self.info = {**read_json(self.folder / "run.json"), **changes}
        write_json(self.folder / "run.json", self.info)

    def sweep(self) -> None:
        """Remove temporary files of writers that are dead: of ended processes on this host, or a day old."""
        for path in self.folder.rglob(".*.tmp"):
            *_, host, pid, _, _ = path.name.rsplit(".", 4)
            with contextlib.suppress(FileNotFoundError):
                here = host == _host() and pid.isdigit()
                if (here and not Path(f"/proc/{pid}").exists()) or time.time() - path.stat().st_mtime > 86_400:
                    path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; see `run_lock`."""
        with run_lock(self.folder):
            yield

    # -- paths --------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return str(self.info["run_id"])

    @property
    def config_path(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    @property
    def quarantine(self) -> Path:
        return self.folder / "quarantine"

    @property
    def steps(self) -> Path:
        return self.folder / "steps"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def pack(self) -> Path:
        return self.folder / "pack"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    def shard_names(self) -> list[str]:
        """Names of all shards in document order, from the marker of ingest."""
        return [shard["name"] for shard in self.ingested()["shards"]]

    def shard_path(self, name: str) -> Path:
        return self.shards / f"{name}.arrow"

    def ingested(self) -> dict[str, Any]:
        """The marker of ingest: totals, quarantine, and for each shard name, rows, bytes, sha256."""
        marker: dict[str, Any] = read_json(self.shards / "_done.json")
        return marker


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the run in `folder` for this process; the lock goes with the process, even when it is killed.

    Items are safe to run twice at once; the lock keeps two people from changing a run under each other's hands.

    Raises:
        RunError: another process on this machine holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / ".lock").open("w")
    except OSError as error:
        raise _not_written(folder, error) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"run {folder.name} is in work by another process. Wait for it to end, or begin another run with --new."
            ) from None
        yield


def utc_now() -> str:
    """Now, in UTC, to the second, ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def code_version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("corpusmill")
    except PackageNotFoundError:
        return "unknown"


@contextlib.contextmanager
def peak_memory() -> Iterator[dict[str, float]]:
    """Measures seconds, processor seconds of all threads, and the peak resident memory (MB) of this process inside the block.

    Linux lets a process reset its own high-water mark; elsewhere the peak since start is given.
    """
    measured = {"seconds": 0.0, "cpu_seconds": 0.0, "peak_rss_mb": 0.0}
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start, at_work = time.perf_counter(), time.process_time()
    try:
        yield measured
    finally:
        measured["seconds"] = time.perf_counter() - start
        measured["cpu_seconds"] = time.process_time() - at_work
        measured["peak_rss_mb"] = _high_water_mb()


def _high_water_mb() -> float:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
