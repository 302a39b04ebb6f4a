"""Words, lines, scripts and character classes: the one definition of each, compiled, over Arrow buffers.

    data, offsets = buffers(batch.column("text"))
    words = count_words(data, offsets)  # int64[n]

No kernel makes a Python object for a document, holds the GIL, or reads outside of its texts.
docs/reference/text.md has the exact definitions; bench/results has the speeds.
"""

from __future__ import annotations

from curation.text.characters import char_length, class_counts, count_chars, script_counts
from curation.text.jit import kernel
from curation.text.spans import Spans, buffers
from curation.text.tables import UNICODE_VERSION, CharClass, Role, Script
from curation.text.words import count_words

__all__ = [
    "UNICODE_VERSION",
    "CharClass",
    "Role",
    "Script",
    "Spans",
    "buffers",
    "char_length",
    "class_counts",
    "count_chars",
    "count_words",
    "kernel",
    "script_counts",
]
