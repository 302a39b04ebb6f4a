"""Runs a peer's driver, and tells the CPU seconds of its stages beside the wall seconds that it prints itself.

    PYTHON tests/bench/run_peer.py DRIVER.py [ARGUMENT...]

On a machine that others use, too, a tool's wall time tells of them as much as of the tool. Each driver keeps its time by one
class, `_common.Clock`, whose laps are counted here once more: processor time of the process and of its finished children.
Run by the interpreter of the peer, which need not have this project's packages. The last line printed is {"cpu": {stage: s}}.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def processor_seconds() -> float:
    """Of this process and its finished children, in user and system mode."""
    return sum(os.times()[:4])


def count_laps(clock: Any) -> dict[str, float]:
    """Make a class of clocks count processor time; returns what will hold it, by stage."""
    seconds: dict[str, float] = {}
    last = [0.0]
    begin, lap = clock.__init__, clock.lap

    def counted_begin(self: Any) -> None:
        begin(self)
        last[0] = processor_seconds()

    def counted_lap(self: Any, name: str) -> None:
        lap(self, name)
        now = processor_seconds()
        seconds[name], last[0] = now - last[0], now

    clock.__init__, clock.lap = counted_begin, counted_lap
    return seconds


def main() -> None:
    driver = Path(sys.argv[1])
    sys.path.insert(0, str(driver.parent))
    sys.argv = sys.argv[1:]
    seconds = count_laps(importlib.import_module("_common").Clock)
    atexit.register(lambda: print(json.dumps({"cpu": seconds})))
    runpy.run_path(str(driver), run_name="__main__")


if __name__ == "__main__":
    main()
