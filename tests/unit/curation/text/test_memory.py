"""No kernel reads a byte beyond its data: the page behind them is taken away."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import ctypes, mmap
import numpy as np
from curation.text import *

PAGE = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * PAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
for page in (0, 2):
    assert libc.mprotect(ctypes.c_void_p(address + page * PAGE), PAGE, 0) == 0
page = np.frombuffer(memory, np.uint8)[PAGE : 2 * PAGE]

def visit(raw, where):
    data = page[:len(raw)] if where == "start" else page[PAGE - len(raw):]
    data[:] = np.frombuffer(raw, np.uint8)
    offsets = np.array([0, len(raw) // 2, len(raw)])
    for kernel in (count_chars, class_counts, script_counts, count_words, word_spans, word_hashes, hash_spans,
                   line_spans, paragraph_spans, profile):
        kernel(data, offsets)
    word_hashes(data, offsets, folded=True)

pieces = ["a", "B" * 70, "é", "中", "👍", "\\n", " ", "e\\u0301", "it's 1.5 ", "\\u3000"]
ends = [b"", b"\\xe4", b"\\xe4\\xb8", b"\\xf0\\x9f\\x91", b"\\xc3", b"\\xff"]
for first in pieces:
    for second in pieces:
        for end in ends:
            for where in ("start", "end"):
                visit((first + second).encode() + end, where)
for size in range(140):
    visit(b"w" * size, "end")
print("visited")
"""


def test_nothing_is_read_beyond_the_data() -> None:
    """With the pages before and behind the data unreadable, a stray read would kill the process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "visited\n"), done.stderr
