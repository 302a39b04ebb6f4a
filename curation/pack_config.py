"""How kept documents become sequences: the settings of `pack`. Nothing heavy is imported here.

Sources: best-fit packing, arXiv 2404.10830; up to four epochs of one text cost little against new text,
arXiv 2305.16264; groups and their shares as in the trainers that take weights (Megatron-LM, LLM Foundry).
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = ["MAX_SEQ_LEN", "MIN_SEQ_LEN", "MixConfig", "PackConfig"]

MIN_SEQ_LEN, MAX_SEQ_LEN = 2, 2**24
"""Tokens. One sequence of the longest fills four blocks of the token file with 32-bit ids, or two with 16-bit ones."""


class MixConfig(BaseModel):
    """How often the documents of each group are packed. Give `epochs` or `weights`, not both."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    by: Literal["source", "language"] = "source"
    """What a group is. source: the input file, known to a pattern by its whole path or URL and by its file name;
    language: the label that the step `language` gave (`eng_Latn`, `zho_Hant`); empty where it gave none."""
    epochs: dict[str, Annotated[float, Field(ge=0, le=1000)]] = Field(default_factory=dict)
    """Pattern -> how often each document is packed. Patterns are those of a shell (`wiki*`, `*.parquet`); the first that
    fits counts, in the order given; what none fits is packed once. 0 leaves a group out; the fraction of 2.25 packs a
    quarter of its documents a third time, chosen by a hash of doc_id, so the choice is the same in every run."""
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Pattern -> share of all tokens wanted; the sum need not be 1. Every document must fit a pattern. Epochs follow:
    as many tokens as pack every document at least once while the shares hold; fewer where a group would be packed more
    than `max_epochs` times. Held-out documents do not count."""
    max_epochs: float = Field(default=4, ge=1, le=1000)
    """With `weights`: how often a document is packed at most. Up to 4 epochs teach nearly as much as new text
    (arXiv 2305.16264, figure 1)."""

    @field_validator("epochs", "weights")
    @classmethod
    def _finite(cls, values: dict[str, float]) -> dict[str, float]:
        for pattern, value in values.items():
            if not math.isfinite(value):
                raise ValueError(f"{pattern!r}: expected a finite number, found {value}")
        return values

    @model_validator(mode="after")
    def _one_way(self) -> MixConfig:
        if self.epochs and self.weights:
            raise ValueError("epochs and weights exclude each other: give one of them")
        if not self.epochs and not self.weights:
            raise ValueError("give epochs (pattern -> times) or weights (pattern -> share); or leave pack.mix out")
        return self


class PackConfig(BaseModel):
    """How kept documents become sequences."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    tokenizer: str = "default"
    """`default` (ours, 32,768 tokens), or the path of a Hugging Face tokenizer.json, of a folder that holds one, of a
    SentencePiece .model, of a tiktoken file, or of a tekken.json."""
    eos: str | None = None
    """The end-of-document token. None: what tokenizer_config.json beside the tokenizer says."""
    bos: str | None = None
    """The token that every document begins with, exactly once. None: nothing is put there."""
    engine: Literal["auto", "stock"] = "auto"
    """auto: a faster library where it proves at load time and by samples that its ids are the stock tokenizer's;
    stock: Hugging Face tokenizers alone. The ids are the same; set it if a sample is reported to differ."""
    seq_len: int | tuple[int, ...] = 2048
    """Tokens of a sequence, 2 to 2^24. A list makes a file of each length from the same ids: the first lies in `pack/`,
    the others in folders named by their length."""
    strategy: Literal["best_fit", "concat"] = "best_fit"
    """best_fit cuts no document that fits into a sequence, with less than 0.1 % padding (arXiv 2404.10830);
    concat cuts wherever a sequence is full, a quarter to a half of all documents."""
    shuffle_seed: int | None = Field(default=None, ge=0, lt=2**63)
    """Seed of a shuffle of all sequences over the whole file. None: they follow the order of the input, and the
    reader shuffles."""
    holdout_share: float = Field(default=0, ge=0, le=0.5)
    """Share of texts kept apart for validation, chosen by hash of text_id: the same text is on the same side in every
    run, and a larger share holds out what a smaller one did. 0: none."""
    mix: MixConfig | None = None
    """How often each source or language is packed. None: every document once."""
    max_unk_share: float = Field(default=0.001, ge=0, le=1)
    """Unknown tokens / tokens above which the run fails: a tokenizer that does not know the text."""
    max_lost_share: float = Field(default=0.001, ge=0, le=1)
    """Characters that decoding does not give back / characters: a tokenizer that drops or changes them.
    Tokenizers that lower-case or fold widths need a higher limit, set on purpose."""
    trainer: str | None = None
    """The tokenizer as the trainer loads it: a path as `tokenizer`, or a folder that transformers reads. Given, its ids
    must equal ours before anything is packed."""
    parity_documents: int = Field(default=2000, ge=0, le=1_000_000)
    """Documents of the run on which the two are compared, spread over all shards."""

    @field_validator("seq_len")
    @classmethod
    def _lengths(cls, value: int | tuple[int, ...]) -> int | tuple[int, ...]:
        lengths = value if isinstance(value, tuple) else (value,)
        if not lengths:
            raise ValueError("expected at least one length, found an empty list")
        if len(set(lengths)) < len(lengths):
            raise ValueError(f"expected lengths that differ, found {list(lengths)}")
        for length in lengths:
            if not MIN_SEQ_LEN <= length <= MAX_SEQ_LEN:
                raise ValueError(f"expected {MIN_SEQ_LEN} to {MAX_SEQ_LEN:,} tokens, found {length}")
        return lengths if len(lengths) > 1 else lengths[0]

    @property
    def seq_lens(self) -> tuple[int, ...]:
        """All sequence lengths, the first one first."""
        return self.seq_len if isinstance(self.seq_len, tuple) else (self.seq_len,)
