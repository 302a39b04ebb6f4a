"""What the page says of the token file: its numbers, and how long the packed documents are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup

from curation.report.charts import histogram
from curation.report.facts import RunFacts, read_fact
from curation.report.sketch import Sketch

__all__ = ["PackView", "pack_view"]


@dataclass(frozen=True)
class PackView:
    """The token file as the page shows it."""

    packed: dict[str, Any]
    files: Sequence[dict[str, Any]]
    """Every token file of the run, if there is more than one."""
    copies: int
    """Rows of the first file: a mixture packs a document several times, a holdout takes some away."""
    tokenizer: dict[str, Any]
    """Its card, from the manifest; empty if there is none."""
    engines: Sequence[str]
    mix: Sequence[dict[str, Any]]
    """Groups of the mixture, if documents were mixed."""
    weighted: float
    """Sum of the weights of all groups; 0 if the mixture is one of epochs."""
    parity: dict[str, Any]
    """What the comparison with the trainer's tokenizer found; empty if there was none."""
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
    manifest = read_fact(facts, facts.run.pack / "manifest.json") or {}
    files = packed.get("files", [])
    mix = manifest.get("mix", [])
    return PackView(
        packed=packed,
        files=files if len(files) > 1 else [],
        copies=packed.get("copies", packed["documents"]),
        tokenizer=manifest.get("tokenizer", {}),
        engines=manifest.get("engines", []),
        mix=mix,
        weighted=sum(one.get("weight") or 0.0 for one in mix),
        parity=read_fact(facts, facts.run.pack / "parity.json") or {},
        n_bytes=n_bytes,
        chart=chart,
        median=lengths.quantile(0.5),
        longest=lengths.maximum,
    )


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
