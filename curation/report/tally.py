"""Counting documents by a label that the crawl chose (host, source, language): exact while memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Row", "Tally", "TallyTable", "hosts"]

MAX_LABELS = 200_000
"""Distinct labels held at once: about 40 MB. Beyond it the rarest half is forgotten, and the report says so."""

_HOST = r"^[A-Za-z][A-Za-z0-9+.\-]*://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]+)"


@dataclass(frozen=True, slots=True)
class Row:
    """A label with its documents."""

    label: str
    n_in: int
    n_kept: int


@dataclass(frozen=True, slots=True)
class TallyTable:
    """The most frequent labels, as the page shows them."""

    caption: str
    head: str
    rows: list[Row]
    remark: str
    total: int


class Tally:
    """Documents in and kept by label."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self.n_in = 0
        self.n_kept = 0
        self.unlabelled = 0
        """Documents without a label (null)."""
        self.forgotten = 0
        """Labels that were rare when memory ran short; their documents are in the totals only."""

    def add(self, labels: pa.Array, kept: npt.NDArray[np.bool_]) -> None:
        """Count labels (strings or a dictionary of strings, nulls allowed) of n documents; kept: bool[n]."""
        encoded = labels if pa.types.is_dictionary(labels.type) else labels.dictionary_encode()
        valid = encoded.is_valid().to_numpy(zero_copy_only=False).astype(np.bool_)
        codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        names = encoded.dictionary.to_pylist()
        n_in = np.bincount(codes[valid], minlength=len(names))
        n_kept = np.bincount(codes[valid & kept], minlength=len(names))
        self.n_in += len(labels)
        self.n_kept += int(kept.sum())
        self.unlabelled += int((~valid).sum())
        for i in np.flatnonzero(n_in).tolist():
            cell = self._counts.setdefault(names[i], [0, 0])
            cell[0] += int(n_in[i])
            cell[1] += int(n_kept[i])
        if len(self._counts) > MAX_LABELS:
            self._forget()

    def add_items(self, labels: pa.Array, documents: pa.Array, kept: npt.NDArray[np.bool_]) -> None:
        """Count labels of which a document may have several, each once.

        Args:
            labels: one for each item of each document, in order.
            documents: int[items], the place of each item's document in `kept`, ascending.
            kept: bool[n].
        """
        owners = documents.to_numpy(zero_copy_only=False).astype(np.int64)
        self.add(labels, kept[owners])
        # The totals are of documents, not of items.
        with_any = np.zeros(len(kept), np.bool_)
        with_any[owners] = True
        self.n_in += len(kept) - len(owners)
        self.n_kept += int(kept.sum()) - int(kept[owners].sum())
        self.unlabelled += int((~with_any).sum())

    def _forget(self) -> None:
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1][0], item[0]))
        self.forgotten += len(ranked) - MAX_LABELS // 2
        self._counts = dict(ranked[: MAX_LABELS // 2])

    def __len__(self) -> int:
        return len(self._counts)

    def table(self, caption: str, head: str, limit: int, without: str = "without one") -> TallyTable:
        """The first `limit` rows with a remark on what is not in them."""
        n_more = max(0, len(self) - limit) + self.forgotten
        remarks = [f"{n_more:,}{' or more' if self.forgotten else ''} others are not shown."] if n_more else []
        if self.unlabelled:
            remarks.append(f"{self.unlabelled:,} documents {without}.")
        return TallyTable(caption, head, list(self.rows(limit)), " ".join(remarks), self.n_in)

    def rows(self, limit: int) -> Iterator[Row]:
        """The labels with the most documents, then in alphabetical order."""
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1][0], item[0]))
        for label, (n_in, n_kept) in ranked[:limit]:
            yield Row(label, n_in, n_kept)


def hosts(urls: pa.Array) -> pa.Array:
    """The host of each address in lower case; null where there is none."""
    return pc.utf8_lower(pc.struct_field(pc.extract_regex(urls, _HOST), "host"))
