"""Words, lines, scripts and character classes: the one definition of each, compiled, over Arrow buffers.

    data, offsets = buffers(batch.column("text"))
    words = count_words(data, offsets)                         # int64[n]
    letters = script_counts(data, line_spans(data, offsets))   # int32[n_lines, len(Script)]

No kernel makes a Python object for a document, holds the GIL, or reads outside of its texts.
docs/reference/text.md has the exact definitions; bench/results has the speeds.
"""

from __future__ import annotations

from curation.text.characters import char_length, class_counts, count_chars, script_counts, unspaced_share
from curation.text.hashing import hash_spans
from curation.text.jit import kernel
from curation.text.lines import line_hashes, line_spans, paragraph_spans
from curation.text.profile import Profile, profile
from curation.text.spans import Spans, buffers
from curation.text.tables import UNICODE_VERSION, UNSPACED_SCRIPTS, CharClass, Role, Script
from curation.text.words import WordHashes, count_words, word_hashes, word_spans

__all__ = [
    "UNICODE_VERSION",
    "UNSPACED_SCRIPTS",
    "CharClass",
    "Profile",
    "Role",
    "Script",
    "Spans",
    "WordHashes",
    "buffers",
    "char_length",
    "class_counts",
    "count_chars",
    "count_words",
    "hash_spans",
    "kernel",
    "line_hashes",
    "line_spans",
    "paragraph_spans",
    "profile",
    "script_counts",
    "unspaced_share",
    "word_hashes",
    "word_spans",
]
