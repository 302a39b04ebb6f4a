"""Configuration of ingest: which fields are read, which limits hold."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["LIMITS", "IngestConfig"]

LIMITS = ("max_quarantine_share", "max_damaged_share")
"""Fields at which a run gives up: they decide nothing about the documents, so a run goes on when they are raised."""


class IngestConfig(BaseModel):
    """How inputs become shards. Every field but the limits `max_*_share` decides what the documents are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    format: Literal["auto", "jsonl", "parquet", "arrow", "warc"] = "auto"
    """`auto` goes by magic bytes first, then by the file's name."""
    text_column: str = "text"
    """Field or column that holds the document."""
    id_column: str = "id"
    """A number is written as its digits; a record without it is given its doc_id in hex."""
    url_column: str = "url"
    """Field or column that holds the page's address, where there is one."""
    max_record_mb: float = Field(default=32, gt=0, le=1024)
    """A longer record goes to the quarantine with its first bytes; bounds memory whatever the line."""
    max_quarantine_share: float = Field(default=0.05, ge=0, le=1)
    """Above this share of quarantined records the run fails and names the worst files. Rows that a damaged block or a
    missing text column hides count like them, where the file says how many. What every sound crawl holds (HTTP errors
    and redirects, images, pages without a main text) is quarantined and counted, but not weighed here."""
    max_damaged_share: float = Field(default=0.05, ge=0, le=1)
    """Above this share of the input's bytes in damaged files (cut or corrupt streams, lost row groups, files that are not
    what they seem) the run fails and names the worst. Counts whole files, since nobody knows how many records are gone;
    a file with mere garbage behind its last stream does not count, nor does an empty one."""
    lone_surrogates: Literal["quarantine", "replace"] = "quarantine"
    """`replace` puts U+FFFD in their place and counts them."""
    quarantine_raw_kb: int = Field(default=1024, ge=1)
    """Of a longer damaged record only the first bytes are stored; its length and place are kept."""
    html: Literal["fast", "quality"] = "fast"
    """Main-text extraction: fast = resiliparse and line rules (F1 .94, 490 pages/s), quality = trafilatura (F1 .95,
    75 pages/s), both measured on 223 pages with gold text, per core."""
    html_timeout_s: float = Field(default=10, gt=0)
    """CPU seconds, so that a busy machine changes no result; a page that takes longer goes to the quarantine."""
    slice_mb: int = Field(default=64, ge=1)
    """Big plain files are read in slices of this size, small files together up to it."""
    shard_mb: int = Field(default=64, ge=1, le=1024)
    """Text bytes of a shard at most; bounds the memory of every later step."""
