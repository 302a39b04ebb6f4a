"""Settings of the filter `blacklisted`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import ClassVar

from pydantic import Field, field_validator

from curation.verdicts import StepConfig

__all__ = ["BlacklistedConfig"]


class BlacklistedConfig(StepConfig):
    """Which blacklist, at which version and time, and how sure it must be.

    The threshold was chosen on the near-duplicates of the test data, whose exact Jaccard is known (13,930 pairs): of pairs above
    0.9 it finds 99.4 %, of those from 0.5 to 0.8 it drops 0.4 %, and none of 12,266 documents without such a pair. At 0.9 it
    would find 94 %, since the estimate is as often too low as too high; at 0.84 drop 1.4 %.
    """

    paths: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str | None = Field(default=None, min_length=1)
    """Folder of the blacklist, or a URL that fsspec knows. null: `blacklist` in the root that holds the runs, which may not
    be there yet. A path that is given must be there, unless `version` is 0."""
    version: int | None = Field(default=None, ge=0)
    """Version to obey; 0 holds nothing. null: the latest when the run starts, which its config.yaml then names."""
    at: datetime | None = None
    """Time that decides which entries have expired; UTC if it names no zone. null: when the run starts, put as the last moment
    at which this version or what has expired of it changed, so that the same start means the same job."""
    digest: str | None = Field(default=None, pattern="^([0-9a-f]{64})?$", examples=["0" * 64])
    """Digest of the version: a list with another history is refused. null: what is found when the run starts."""
    near: bool = True
    """Drop near copies of blacklisted texts, too. Costs 15 us for a text of 2 kB."""
    threshold: float = Field(default=0.86, ge=0.8, le=1)
    """Near copies: dropped from this share of agreeing places of both signatures on, which estimates the Jaccard."""
    min_evidence: int = Field(default=1, ge=1)
    """URLs and domains: judged documents that an entry must rest on. One without a count was made by hand, and always counts."""

    @field_validator("at")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
