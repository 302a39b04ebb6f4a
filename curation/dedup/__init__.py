"""Data-set steps that find copies: they judge by looking at all documents."""

from __future__ import annotations

DATA_SET_STEPS: dict[str, str] = {
    "exact": "curation.dedup.exact:Exact",
    "near": "curation.dedup.near:Near",
}
