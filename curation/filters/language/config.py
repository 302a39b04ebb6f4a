"""Settings of the filter `language`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from curation.verdicts import StepConfig
from quality_models.language_codes import LANGUAGE_SCRIPTS, to_iso639_3

__all__ = ["LanguageConfig"]

ROUTE = re.compile(r"route:[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SCRIPT = re.compile(r"[A-Za-z]{4}")
REGION = re.compile(r"[A-Za-z]{2}|[0-9]{3}|yue|wuu|cmn")
"""Regions, and languages that are members of Chinese."""
SHIPPED = ("py3langid", "corpusmill")
FORMS = {"tw": "Hant", "hk": "Hant", "mo": "Hant", "cn": "Hans", "sg": "Hans"}
"""The form of Chinese that is written in a region."""


def _policy(value: str) -> str:
    if value not in ("keep", "drop") and not ROUTE.fullmatch(value):
        raise ValueError(f"expected keep, drop or route:NAME (letters, digits, - and _, up to 64), found {value!r}")
    return value


def _language(value: str) -> str:
    """`zho`, or `zho_Hant` where a script, or for Chinese a region, is given."""
    code = to_iso639_3(value)
    if code in ("und", "zxx"):
        raise ValueError(f"{value} is no language: say what becomes of such documents with `undecided`")
    known = LANGUAGE_SCRIPTS.get(code)
    if code == "zho":
        known = ("Hans", "Hant", "Hani")
    scripts = []
    for tag in re.split("[-_]", value)[1:]:
        if SCRIPT.fullmatch(tag):
            scripts.append(tag.title())
        elif code == "zho" and tag.lower() in FORMS:
            scripts.append(FORMS[tag.lower()])
        elif not REGION.fullmatch(tag):
            raise ValueError(
                f"language {value!r}: expected a script of four letters or a region after it, found {tag!r}"
            )
    if scripts and known and scripts[0] not in known:
        raise ValueError(
            f"language {value!r}: expected a script it is written in ({', '.join(known)}), found {scripts[0]}"
        )
    return f"{code}_{scripts[0]}" if scripts else code


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
    """Dropped below: share of the characters that count in the main language."""
    min_confidence: Share = 0.5
    """Dropped below: mean probability of the main language in its parts."""
    min_confidence_of: dict[LanguageName, Share] = Field(default_factory=dict)
    """The same for single languages, in place of min_confidence."""
    voters: tuple[str, ...] = ("py3langid", "corpusmill")
    """Models that are asked about lines on which fastText and langdetect do not agree, or are not sure: py3langid,
    corpusmill (our own), or paths of models in fastText's format (GlotLID, OpenLID). Costs and gains:
    bench/results/language.md."""

    @field_validator("min_confidence_of", mode="before")
    @classmethod
    def _each_language_once(cls, value: Any) -> Any:
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            names = [_language(name) for name in value]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{', '.join(twice)} is named more than once, as {', '.join(map(repr, value))}")
        return value

    @field_validator("wanted", mode="before")
    @classmethod
    def _norwegian(cls, value: Any) -> Any:
        if isinstance(value, list | tuple) and False in value:
            raise ValueError("YAML reads no as false: write 'no' in quotes, or nob")
        return value

    @field_validator("voters")
    @classmethod
    def _each_voter_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in value if value.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} is named more than once, so it would count more than once")
        return value

    @model_validator(mode="after")
    def _known_to_a_model(self) -> LanguageConfig:
        """A model by path may know any language; those that ship know the ones in the table."""
        if set(self.voters) <= set(SHIPPED):
            for name in (*self.wanted, *self.min_confidence_of):
                if name.partition("_")[0] not in LANGUAGE_SCRIPTS:
                    raise ValueError(f"language {name!r}: none of the models knows it, so no document could match")
        return self
