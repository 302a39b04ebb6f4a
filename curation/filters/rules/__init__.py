"""Rules of quality: measures of words, lines, signs and repetition, and the limits that presets set for them.

`rule` is the table of the rules, `presets` and `limits` say where their limits come from, `step` is the filter.
Measures share `parts`, and lie in a module for each family. docs/how-to/tune-the-quality-rules.md is for users,
docs/decisions/0008-quality-rules.md says why it is so.
"""

from __future__ import annotations

from curation.filters.rules.config import RulesConfig
from curation.filters.rules.step import Rules

__all__ = ["Rules", "RulesConfig"]
