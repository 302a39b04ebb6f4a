"""Arrow schemas of everything that lies on disk, with the unit of each column in its metadata.

Row i of a verdict file speaks about row i of the shard of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["EARLIER_SUFFIX", "PARTNER_COLUMNS", "SHARD_SCHEMA", "ScoreColumn", "reason_type", "verdict_schema"]


def _field(name: str, kind: pa.DataType, what: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"what": what})


SOURCE_TYPE = pa.dictionary(pa.int32(), pa.string())

SHARD_SCHEMA = pa.schema(
    [
        _field("doc_id", pa.binary(16), "identity of the occurrence (ids.doc_id)"),
        _field("text_id", pa.binary(16), "identity of the content (ids.text_id)"),
        _field("id", pa.string(), "the user's own id; doc_id in hex where the input has none"),
        _field("source", SOURCE_TYPE, "input file: absolute path or URL"),
        _field("url", pa.string(), "address of the page, where known", nullable=True),
        _field("line", pa.int64(), "1-based line, row or WARC record in the input"),
        _field(
            "byte_offset",
            pa.int64(),
            "bytes from the start of the (decompressed) input; null where rows have no offset",
            nullable=True,
        ),
        _field("text", pa.large_string(), "the document, valid UTF-8, never changed after ingest"),
        _field("meta", pa.string(), "other fields of the record as one JSON object", nullable=True),
    ]
)


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A score that a step stores: its name, Arrow type, unit (`share`, `characters` ...) and meaning."""

    name: str
    type: pa.DataType
    unit: str
    what: str


PARTNER_COLUMNS = (
    ScoreColumn("kept_doc_id", pa.binary(16), "doc_id", "the kept document this one duplicates"),
    ScoreColumn("similarity", pa.float32(), "share", "Jaccard with the kept document; 1 for exact copies"),
    ScoreColumn("group_size", pa.int32(), "documents", "documents that share this one's kept document"),
)
"""What a data-set step stores beside its verdicts."""

EARLIER_SUFFIX = "_of_earlier"
"""Ends the reasons of documents whose kept partner stands in an earlier run: no shard of this one holds it."""


def reason_type() -> pa.DataType:
    """Reasons are a dictionary built from the step's declared list, never from the data."""
    return pa.dictionary(pa.int16(), pa.string())


def verdict_schema(scores: Sequence[ScoreColumn], metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """Schema of a verdict file: keep, reason, then the step's scores.

    `keep` is null for a document that an earlier step had dropped (not looked at), and then so is
    every score. `reason` is null exactly when `keep` is not false.
    """
    fields = [
        _field("keep", pa.bool_(), "true kept, false dropped, null not looked at", nullable=True),
        _field("reason", reason_type(), "why it was dropped: step.why", nullable=True),
    ]
    for score in scores:
        field = pa.field(score.name, score.type, nullable=True)
        fields.append(field.with_metadata({"unit": score.unit, "what": score.what}))
    return pa.schema(fields, metadata=dict(metadata or {}))
