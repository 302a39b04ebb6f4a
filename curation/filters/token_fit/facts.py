"""What the filter `token_fit` says of a whole run: how the tokenizer fits each language, and which scripts it does not know."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from curation.verdicts import Filter

__all__ = ["facts_of"]

MOST_LANGUAGES = 60
"""Languages of which a line is written, most documents first."""
ALARM_FROM = 20
"""Documents of a script that the tokenizer does not know, from which on a reader must see it."""
MOST_NAMED = 5


def facts_of(step: Filter, tables: Iterator[pa.Table], tokenizer: str) -> dict[str, Any]:
    """Plain data for the report.

    Args:
        tables: the step's verdict files, each as one table; rows that it did not look at are left out here.
        tokenizer: its name.
    """
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    names = ["keep", *(score.name for score in step.score_columns)]
    for table in tables:
        for batch in table.filter(table.column("keep").is_valid()).select(names).combine_chunks().to_batches():
            _add(sums, batch)
    lines = [_line(label, counts) for label, counts in sums.items()]
    lines.sort(key=lambda line: (-line["documents"], line["language"]))
    found: dict[str, Any] = {"tokenizer": tokenizer, "languages": lines[:MOST_LANGUAGES]}
    unknown = [line for line in lines if not line["script_known"] and line["language"] != "und"]
    documents = sum(line["documents"] for line in unknown)
    if documents >= ALARM_FROM:
        shown = ", ".join(
            f"{line['language']} ({line['documents']:,}, {line['tokens_per_character']:.1f} tokens a character)"
            for line in unknown[:MOST_NAMED]
        )
        kept = sum(line["kept"] for line in unknown)
        alarm = (
            f"{documents:,} documents are in scripts of which tokenizer {tokenizer!r} has hardly any letter: {shown}. "
        )
        alarm += f"{kept:,} of them are kept: if they should not be, give by_language a limit, or set unknown_script to drop."
        found["alarms"] = [alarm]
    return found


def _add(sums: dict[str, Counter[str]], batch: pa.RecordBatch) -> None:
    labels = batch.column("language").to_numpy(zero_copy_only=False).astype(str)
    tokens, lost = _numbers(batch, "tokens"), _numbers(batch, "lost")
    columns = {
        "documents": np.ones(len(labels)),
        "kept": _numbers(batch, "keep"),
        "script_known": _numbers(batch, "script_known"),
        "tokens": tokens,
        "characters": _whole(tokens, _numbers(batch, "tokens_per_character")),
        "bytes": _whole(tokens, _numbers(batch, "tokens_per_byte")),
        "unknown": tokens * _numbers(batch, "unknown_share"),
        "parts": tokens * _numbers(batch, "byte_share"),
        "lost": lost,
    }
    for label in np.unique(labels):
        mine = labels == label
        sums[str(label)].update({name: round(float(values[mine].sum())) for name, values in columns.items()})


def _numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = (
        pc.fill_null(batch.column(name), pa.scalar(0).cast(batch.column(name).type))
        .to_numpy(zero_copy_only=False)
        .astype(np.float64)
    )
    return found


def _whole(part: npt.NDArray[np.float64], ratio: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(ratio > 0, part / np.where(ratio > 0, ratio, 1), 0)


def _line(label: str, counts: Counter[str]) -> dict[str, Any]:
    tokens = max(counts["tokens"], 1)
    return {
        "language": label,
        "documents": counts["documents"],
        "kept": counts["kept"],
        "script_known": counts["script_known"] > 0,
        "tokens": counts["tokens"],
        "tokens_per_character": round(counts["tokens"] / max(counts["characters"], 1), 4),
        "tokens_per_byte": round(counts["tokens"] / max(counts["bytes"], 1), 4),
        "unknown_share": round(counts["unknown"] / tokens, 6),
        "byte_share": round(counts["parts"] / tokens, 6),
        "lost": counts["lost"],
    }
