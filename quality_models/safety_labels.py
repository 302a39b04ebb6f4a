"""What safety filters look for: the categories that terms, models and training rows share.

A document may be of several. `spam` and `filler` harm nobody: they are what a trainer does not want, and what stands around
the rest, so that the same filters find them.
"""

from __future__ import annotations

__all__ = ["CATEGORIES", "CATEGORY_NAMES"]

CATEGORIES: dict[str, str] = {
    "gambling": "adverts and offers of betting, casinos, lotteries",
    "sexual": "pornography, sexual services and adverts for them",
    "violence": "threats, calls to violence, praise of it",
    "drugs": "offers of illegal drugs and of medicines without prescription",
    "weapons": "offers of firearms, ammunition, explosives",
    "fraud": "fraud, forged papers and money, trade in accounts, bank cards and private data, loans for everyone, laundering",
    "self_harm": "calls to suicide, self-injury or starving, praise of it",
    "hate": "hate, slurs and abuse against people or groups",
    "spam": "other unsolicited adverts, recruiting in code words, hooks to private contacts",
    "filler": "lines of forums that say nothing: first!, bump, thanks for sharing",
}
"""Name -> what belongs to it. Closed, in the order in which reports list them."""

CATEGORY_NAMES = tuple(CATEGORIES)
