"""The filters: one file each, named as the step. `FILTERS` is written by hand; nothing registers itself.

Values are import paths, so that listing the filters loads none of them.
"""

from __future__ import annotations

FILTERS: dict[str, str] = {
    "blacklisted": "curation.filters.blacklisted:Blacklisted",
    "html_noise": "curation.filters.html_noise:HtmlNoise",
    "language": "curation.filters.language:Language",
    "length": "curation.filters.length:Length",
    "perplexity": "curation.filters.perplexity:Perplexity",
    "rules": "curation.filters.rules:Rules",
    "safety_model": "curation.filters.safety_model:SafetyModel",
    "safety_terms": "curation.filters.safety_terms:SafetyTerms",
    "token_fit": "curation.filters.token_fit:TokenFit",
}
