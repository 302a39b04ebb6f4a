"""Law of the runner of peers: a driver's output stands, with the processor seconds of its stages after it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.bench.near_peers import RUN_PEER

COMMON = """
class Clock:
    def __init__(self):
        self.stages = {}
    def lap(self, name):
        self.stages[name] = 1.0
"""
DRIVER = """
import subprocess, sys, time
from _common import Clock
if __name__ == "__main__":
    clock = Clock()
    time.sleep(0.3)
    clock.lap("sleep")
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    clock.lap("work")
    busy = "import time\\nend = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    clock.lap("child")
    print(*sys.argv[1:], clock.stages)
"""


def test_stages_are_counted_in_processor_seconds(tmp_path: Path) -> None:
    """Sleep costs nothing; work counts, and so does that of a finished child. Arguments reach the driver."""
    (tmp_path / "_common.py").write_text(COMMON, encoding="utf-8")
    (tmp_path / "driver.py").write_text(DRIVER, encoding="utf-8")
    command = [sys.executable, str(RUN_PEER), str(tmp_path / "driver.py"), "in", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, cpu_line = done.stdout.splitlines()
    assert said == "in --workers 1 {'sleep': 1.0, 'work': 1.0, 'child': 1.0}"
    cpu = json.loads(cpu_line)["cpu"]
    assert list(cpu) == ["sleep", "work", "child"]
    assert cpu["sleep"] < 0.1
    assert cpu["work"] > 0.25
    assert cpu["child"] > 0.25
