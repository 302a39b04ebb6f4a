"""Does the tokenizer fit the document? Tokens a character, unknown tokens, single bytes, characters that are lost."""

from __future__ import annotations

from curation.filters.token_fit.config import FitLimits, TokenFitConfig
from curation.filters.token_fit.step import TokenFit

__all__ = ["FitLimits", "TokenFit", "TokenFitConfig"]
