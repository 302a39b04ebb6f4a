"""What the page says of the token file: its numbers, and how long the packed documents are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup

from curation.report.charts import histogram
from curation.report.facts import RunFacts
from curation.report.sketch import Sketch

__all__ = ["PackView", "pack_view"]


@dataclass(frozen=True)
class PackView:
    """The token file as the page shows it."""

    packed: dict[str, Any]
    n_bytes: int | None
    chart: Markup
    median: float
    longest: float


def pack_view(facts: RunFacts) -> PackView | None:
    """None if the run packed nothing."""
    packed = facts.funnel["packed"] or (facts.pack or {}).get("packed")
    if packed is None:
        return None
    lengths = _lengths(facts)
    chart = histogram(lengths, "document length", "tokens", [packed["seq_len"]]) if lengths.total else Markup("")
    n_bytes = facts.pack["bytes"] if facts.pack else None
    return PackView(packed, n_bytes, chart, lengths.quantile(0.5), lengths.maximum)


def _lengths(facts: RunFacts) -> Sketch:
    """Tokens of each packed document, streamed from the table of documents."""
    sketch = Sketch()
    path = facts.run.pack / "documents.parquet"
    if not path.exists():
        return sketch
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=65_536, columns=["n_tokens"]):
            values = batch.column(0).cast(pa.float64()).to_numpy(zero_copy_only=False)
            sketch.add(values, np.ones(len(values), np.bool_))
    except (pa.ArrowInvalid, OSError) as error:
        facts.problems.append(f"{path} cannot be read: {error}")
    return sketch
