"""Settings of the filter `language`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from curation.verdicts import StepConfig
from quality_models.language_codes import to_iso639_3

__all__ = ["LanguageConfig"]

ROUTE = re.compile(r"route:[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SCRIPT = re.compile(r"[A-Z][a-z]{3}")


def _policy(value: str) -> str:
    if value not in ("keep", "drop") and not ROUTE.fullmatch(value):
        raise ValueError(f"expected keep, drop or route:NAME (letters, digits, - and _, up to 64), found {value!r}")
    return value


def _language(value: str) -> str:
    """`zho`, or `zho_Hant` where a script is given."""
    language, _, script = value.replace("-", "_").partition("_")
    regions = {"tw": "Hant", "hk": "Hant", "mo": "Hant", "cn": "Hans", "sg": "Hans"}
    script = regions.get(script.lower(), script) if language.lower() in ("zh", "zho") else script
    if script and not SCRIPT.fullmatch(script):
        raise ValueError(f"expected a language such as en, eng, zho_Hant or sr_Latn, found {value!r}")
    code = to_iso639_3(language)
    if code == "und":
        raise ValueError("und is no language: say what becomes of such documents with `undecided`")
    return f"{code}_{script}" if script else code


Policy = Annotated[str, AfterValidator(_policy)]
LanguageName = Annotated[str, AfterValidator(_language)]
Share = Annotated[float, Field(ge=0, le=1)]


class LanguageConfig(StepConfig):
    """Which languages are wanted, how surely, and what becomes of the rest.

    A policy is `keep`, `drop`, or `route:NAME`: dropped as `language.routed`, and written by
    `corpusmill export --route NAME`. The first that applies decides, in the order in which they stand here.
    """

    no_language: Policy = "drop"
    """Documents without letters in any line of text: numbers, signs, addresses, code only."""
    short: Policy = "keep"
    """Documents of fewer than 20 letters (5 Chinese, Japanese or Korean ones): too short to be sure of a language."""
    undecided: Policy = "drop"
    """Documents in which no language could be named."""
    wanted: tuple[LanguageName, ...] = ()
    """Languages to keep, all if empty: en, eng, zho (in any script), zho_Hant, srp_Latn. Text in characters common to both
    forms of Chinese counts as either."""
    unwanted: Policy = "drop"
    """Documents in any other language."""
    mixed: Policy = "keep"
    """Documents of which a tenth or more is in other languages than the main one."""
    min_share: Share = 0
    """Dropped below: share of letters in the main language."""
    min_confidence: Share = 0.5
    """Dropped below: mean probability of the main language in its parts."""
    min_confidence_of: dict[LanguageName, Share] = Field(default_factory=dict)
    """The same for single languages, in place of min_confidence."""
    voters: tuple[str, ...] = ("py3langid", "corpusmill")
    """Models that are asked about lines on which fastText and langdetect do not agree, or are not sure: py3langid,
    corpusmill (our own), or paths of models in fastText's format (GlotLID, OpenLID). Costs and gains:
    bench/results/language.md."""
