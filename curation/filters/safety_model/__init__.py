"""What a text means rather than which words it has: a BERT-type classifier that reads whole documents, or those that need it.

The cascade reads a document where a term of `safety_terms` was found, where a fast linear model finds it suspicious, and a random
sample of the others, which says how much the cascade misses.
"""

from __future__ import annotations

from curation.filters.safety_model.config import SafetyModelConfig
from curation.filters.safety_model.step import SafetyModel

__all__ = ["SafetyModel", "SafetyModelConfig"]
