"""No kernel reads a byte beyond its data: the page behind them is taken away."""

from __future__ import annotations

from tests.guard_page import run_between_guard_pages

PROGRAM = """
from curation.text import *

def visit(raw, where):
    data = put(raw, where)
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
    run_between_guard_pages(PROGRAM)
