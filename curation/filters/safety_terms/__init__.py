"""The filter `safety_terms`: adverts for gambling, drugs and the like, hate and filler, by lists of terms that resist evasion.

`terms` has the form of the lists, `characters` and `walk` what evasion they withstand, `tests/safety_terms_oracle.py` all of
it in words and plain Python.
"""

from __future__ import annotations

from curation.filters.safety_terms.config import CategoryLimits, SafetyTermsConfig
from curation.filters.safety_terms.step import SafetyTerms

__all__ = ["CategoryLimits", "SafetyTerms", "SafetyTermsConfig"]
