"""Which characters of a text are left-overs of HTML, in compiled kernels over Arrow buffers.

    data, offsets = buffers(batch.column("text"))
    counts = kind_counts(data, offsets)  # int64[n, len(Kind)]: non-blank characters of each kind

Two passes over the bytes of a text and a third that counts; no regular expressions, nothing that can
backtrack, every look ahead bounded. About 290 MB/s a core.
"""

from __future__ import annotations

from curation.markup.counts import kind_counts, kinds_of
from curation.markup.kinds import Kind

__all__ = ["Kind", "kind_counts", "kinds_of"]
