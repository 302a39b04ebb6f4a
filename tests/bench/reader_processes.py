"""The other end of reader_worker.py: starts a process for each format, asks it, and says which interpreter has a tool."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bench.reader_interface import Format

__all__ = ["MeasureError", "Worker", "find_interpreter"]

REPO = Path(__file__).resolve().parents[2]
TIMEOUT = 60.0
"""Seconds after which a tool is said to hang, by default."""


class MeasureError(Exception):
    """A format could not be measured: the reason."""


def find_interpreter(one: Format, pythons: Sequence[str]) -> str | None:
    """The interpreter that has the tool: ours for what is ours, else the first of `pythons`, or ours."""
    if one.distribution in ("numpy", "pyarrow"):
        return sys.executable
    for python in (*pythons, sys.executable):
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({one.package!r}) is None)"
        if subprocess.run([python, "-c", look], check=False).returncode == 0:
            return python
    return None


class Worker:
    """A process that measures one format. A context manager: ends the process."""

    def __init__(self, name: str, python: str, folder: Path, seq_len: int, scratch: Path) -> None:
        settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(scratch / "hf"), "DO_NOT_TRACK": "1", "PYTHONPATH": str(REPO)}
        command = [python, "-m", "tests.bench.reader_worker", name, str(folder), str(seq_len)]
        self.name = name
        self._log = (scratch / "stderr").open("w+b")
        self._process = subprocess.Popen(
            command,
            cwd=scratch,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, by force if it does not go."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def ask(self, do: str, *, timeout: float = TIMEOUT, **arguments: Any) -> dict[str, Any]:
        """The answer to a command.

        Raises:
            MeasureError: the tool raised an error, died, or hangs; the process is of no more use then if it died.
        """
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise MeasureError(self._last_words()) from None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                self._process.kill()
                raise MeasureError(f"no answer in {timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise MeasureError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise MeasureError(answer["error"])
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"died with code {code}: {lines[-1][:300] if lines else 'no message'}"
