"""Programs whose data lie between two pages that cannot be read: a stray read kills the process."""

from __future__ import annotations

import subprocess
import sys

PRELUDE = """
import ctypes, mmap
import numpy as np

PAGE = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * PAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
for unreadable in (0, 2):
    assert libc.mprotect(ctypes.c_void_p(address + unreadable * PAGE), PAGE, 0) == 0
page = np.frombuffer(memory, np.uint8)[PAGE : 2 * PAGE]

def put(raw, where):
    data = page[:len(raw)] if where == "start" else page[PAGE - len(raw):]
    data[:] = np.frombuffer(raw, np.uint8)
    return data
"""
"""`put(raw, where)` lays bytes at the start or the end of the one page that can be read."""


def run_between_guard_pages(program: str) -> None:
    """Run a program after PRELUDE; it has to print `visited` at its end."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "visited\n"), done.stderr
