"""Settings of the filter `token_fit`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator

from curation.filters.labels import each_language_once
from curation.filters.perplexity.config import LimitKey
from curation.verdicts import StepConfig

__all__ = ["OFF", "FitLimits", "TokenFitConfig"]

OFF: Literal["off"] = "off"
"""In place of a number: no such limit."""


def _off(value: object) -> object:
    """YAML reads a bare `off` as false: it would be the limit 0, which drops everything."""
    if value is True:
        raise ValueError("expected a number, or 'off'; found true")
    return OFF if value is False else value


ShareLimit: TypeAlias = Annotated[Annotated[float, Field(ge=0, le=1)] | Literal["off"] | None, BeforeValidator(_off)]
NumberLimit: TypeAlias = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["off"] | None, BeforeValidator(_off)
]


class FitLimits(StepConfig):
    """Limits for one language or script. null: what holds for all; off: none."""

    max_unknown_share: ShareLimit = None
    """Dropped above: unknown tokens, of all tokens."""
    max_lost_share: ShareLimit = None
    """Dropped above: characters that decoding does not give back, of all characters."""
    max_byte_share: ShareLimit = None
    """Dropped above: tokens that are a part of a character, of all tokens."""
    max_tokens_per_character: NumberLimit = None
    """Dropped above."""


class TokenFitConfig(FitLimits):
    """Which tokenizer, and how badly it may fit a document.

    The defaults lie above every good document, whatever the tokenizer, so they take what is no text. Measured on the
    labelled crawl text: with the tokenizer that ships, which gives all text back and knows every byte, none of 5,694 good
    documents has more than 0.46 of its tokens as parts of characters (classical poems), or more than 1.18 tokens a
    character; nor have any five sentences of 75 languages more than 0.58 (Bengali) and 1.00 (Korean). Chinese mojibake lies
    at 0.84 and above, Chinese gibberish at 0.94. With that of multilingual-e5, which has an unknown token and changes widths
    and line ends, 864 good documents have at most 0.045 unknown tokens, gibberish 0.38; and they lose up to 0.42 of
    their characters, gibberish 0.62.
    """

    names_or_paths: ClassVar[frozenset[str]] = frozenset({"tokenizer"})

    tokenizer: str = Field(default="default", min_length=1)
    """As `pack.tokenizer`, which a filter cannot see: say the same here and there."""
    eos: str | None = None
    """As `pack.eos`."""
    max_unknown_share: ShareLimit = 0.05
    """Dropped above: unknown tokens, of all tokens."""
    max_lost_share: ShareLimit = 0.5
    """Dropped above: characters that decoding does not give back, of all characters."""
    max_byte_share: ShareLimit = 0.75
    """Dropped above: tokens that are a part of a character, of all tokens."""
    max_tokens_per_character: NumberLimit = 1.5
    """Dropped above."""
    by_language: dict[LimitKey, FitLimits] = Field(
        default_factory=dict, examples=[{"eng": {"max_tokens_per_character": 0.7}}]
    )
    """Limits for single languages or scripts, in place of those for all: `{zho: {max_byte_share: 0.4}, und_Latn: ...}`."""
    unknown_script: Literal["keep", "drop"] = "keep"
    """Documents in a script of which the tokenizer has hardly any letter. keep: such a script is reported, not dropped: the
    last two limits hold for it only where `by_language` names it or its language. drop: they hold for all."""
    min_tokens: int = Field(default=50, ge=1)
    """Documents with fewer tokens are kept: a few emoji or signs are most of them."""

    _each_language_once = field_validator("by_language", mode="wrap")(each_language_once)
