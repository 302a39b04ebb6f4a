"""Whether two tokenizers give the same ids, where they first differ, and why they may.

`check_golden` needs nothing but NumPy: a trainer holds its own tokenizer against a token file with it.
"""

from __future__ import annotations

from tokenization.parity.golden_check import GoldenCheck, check_golden

__all__ = ["GoldenCheck", "check_golden"]
