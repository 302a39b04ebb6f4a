"""How much a text surprises a language model: n-grams that ship, or a neural model, or the second only where the first is unsure.

Perplexity depends on the model, its tokens, its windows and its language, so a number means something only beside
others of the same reading: limits are by language, come from data, and belong to the models that made them. What is
stored besides perplexity are bits per character and per byte, by which models and languages can be compared.
See docs/how-to/judge-by-perplexity.md and docs/decisions/0009-perplexity.md.
"""

from __future__ import annotations

from curation.filters.perplexity.config import PerplexityConfig
from curation.filters.perplexity.step import Perplexity

__all__ = ["Perplexity", "PerplexityConfig"]
