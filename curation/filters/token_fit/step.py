"""The filter `token_fit`: how well the tokenizer of the pack fits each document.

A byte-level tokenizer has no unknown token, and fits Chinese or Khmer as badly as it likes: then tokens are parts of
characters, three to a character. That is counted here, beside unknown tokens and characters that are lost without any
being unknown (a BPE without bytes drops what it does not know; a normaliser changes it).

Costs what encoding costs: 30 MB/s a core with the tokenizer that ships, 2 to 3 MB/s with the stock library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.filters.labels import LANGUAGE_COLUMN, lookup_keys, working_labels
from curation.filters.token_fit.config import FitLimits, TokenFitConfig
from curation.filters.token_fit.facts import facts_of
from curation.filters.token_fit.vocabulary import Opened, open_tokenizer
from curation.records import ScoreColumn
from curation.shards import groups_by_bytes
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from tokenization.errors import TokenizerError

__all__ = ["TokenFit"]

Doubles = npt.NDArray[np.float64]

GROUP_BYTES = 1 << 20
"""Text that is encoded at a time: 50 to 200 bytes of memory for each of its tokens."""
LIMITS: Mapping[str, str] = {
    "lost_share": "max_lost_share",
    "unknown_share": "max_unknown_share",
    "byte_share": "max_byte_share",
    "tokens_per_character": "max_tokens_per_character",
}
"""Score -> its limit, in the order of the reasons."""
OF_SCRIPT = ("byte_share", "tokens_per_character")
"""Scores that are high for all text of a script that the tokenizer does not know."""


class TokenFit(Filter):
    """Drops what the tokenizer cannot say, or says in bytes."""

    name: ClassVar[str] = "token_fit"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "tokens"
    summary: ClassVar[str] = (
        "Drops texts that the tokenizer does not fit: unknown or lost characters, bytes, too many tokens."
    )
    needs: ClassVar[tuple[str, ...]] = ("text", LANGUAGE_COLUMN)
    reasons: ClassVar[Mapping[str, str]] = {
        "token_fit.lost": "more than max_lost_share of its characters do not come back from its tokens",
        "token_fit.unknown": "more than max_unknown_share of its tokens are unknown ones",
        "token_fit.bytes": "more than max_byte_share of its tokens are parts of characters",
        "token_fit.many_tokens": "it has more than max_tokens_per_character tokens a character",
    }
    Config: ClassVar[type[StepConfig]] = TokenFitConfig
    config: TokenFitConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("language", pa.string(), "label", "by which limits are chosen: language and script"),
            ScoreColumn("script_known", pa.bool_(), "yes or no", "the tokenizer has letters of that script"),
            ScoreColumn("tokens", pa.int64(), "tokens", "without those that begin and end a document"),
            ScoreColumn("tokens_per_character", pa.float32(), "tokens", "for each code point"),
            ScoreColumn("tokens_per_byte", pa.float32(), "tokens", "for each byte of UTF-8"),
            ScoreColumn(
                "unknown_share", pa.float32(), "share", "tokens that stand for what the tokenizer does not know"
            ),
            ScoreColumn("byte_share", pa.float32(), "share", "tokens that are a part of a character"),
            ScoreColumn("lost", pa.int64(), "characters", "that decoding does not give back"),
            ScoreColumn("lost_share", pa.float32(), "share", "of the characters"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        found: dict[str, list[float]] = {}
        for score, key in LIMITS.items():
            said = [getattr(limits, key) for limits in (self.config, *self.config.by_language.values())]
            numbers = sorted({float(value) for value in said if isinstance(value, int | float)})
            if numbers:
                found[score] = numbers
        return found | {"tokens": [float(self.config.min_tokens)]}

    def off_reasons(self) -> set[str]:
        """Limits that are switched off for every language."""
        found = self.thresholds()
        return {reason for score, reason in zip(LIMITS, self.reasons, strict=True) if score not in found}

    def score_of(self, reason: str) -> str | None:
        return dict(zip(self.reasons, LIMITS, strict=True))[reason]

    def score_config(self) -> Mapping[str, Any]:
        """Which file it is, the checksum says, wherever it lies."""
        return {"shipped": self.config.tokenizer == "default", "eos": self.config.eos}

    def model_checksums(self) -> Mapping[str, str]:
        return {"tokenizer": self._opened().tokenizer.fingerprint()}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        opened, n = self._opened(), batch.num_rows
        labels = working_labels(batch)
        names = labels.dictionary_encode()
        known = np.array([opened.knows(name) for name in names.dictionary.to_pylist()], np.bool_)
        tokens, unknown, parts, characters, lost = (np.zeros(n, np.int64) for _ in range(5))
        texts = batch.column("text")
        for begin, end in groups_by_bytes(texts, GROUP_BYTES):
            rows = slice(begin, end)
            counted = self._count(opened, texts.slice(begin, end - begin).to_pylist())
            for column, values in zip((tokens, unknown, parts, characters, lost), counted, strict=True):
                column[rows] = values
        n_bytes = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
        columns = [
            labels,
            pa.array(known[names.indices.to_numpy(zero_copy_only=False)] if n else np.zeros(0, np.bool_)),
            pa.array(tokens),
            _ratio(tokens, characters),
            _ratio(tokens, n_bytes),
            _ratio(unknown, tokens),
            _ratio(parts, tokens),
            pa.array(lost),
            _ratio(lost, characters),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        """What has no tokens is kept: there is nothing to judge. So is what has few."""
        enough = scores.column("tokens").to_numpy(zero_copy_only=False) >= self.config.min_tokens
        # A text that vanishes as a whole has no tokens left, and lost every character.
        vanished = (scores.column("lost").to_numpy(zero_copy_only=False) >= self.config.min_tokens) & ~enough
        limits = self.limits_of(scores)
        hits = {}
        for score, reason in zip(LIMITS, self.reasons, strict=True):
            values = scores.column(score).to_numpy(zero_copy_only=False).astype(np.float32)
            with np.errstate(invalid="ignore"):  # what has no value, or no limit, is not greater
                over = values > limits[score].astype(np.float32)
            hits[reason] = over & (enough | vanished if score == "lost_share" else enough)
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def limits_of(self, scores: pa.RecordBatch) -> Mapping[str, Doubles]:
        """The limit of each document and score; nan where none is."""
        encoded = scores.column("language").dictionary_encode()
        rows = encoded.indices.to_numpy(zero_copy_only=False)
        names: list[str] = encoded.dictionary.to_pylist()
        known = scores.column("script_known").to_numpy(zero_copy_only=False)
        found = {}
        for score, key in LIMITS.items():
            pairs = np.array([self._limit(key, name) for name in names], np.float64).reshape(-1, 2)
            strict, usual = pairs[rows].T if len(names) else (np.zeros(0), np.zeros(0))
            exempt = score in OF_SCRIPT and self.config.unknown_script == "keep"
            found[score] = np.where(known, usual, strict) if exempt else usual
        return found

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """What the report says of it; see `facts.facts_of`."""
        return facts_of(self, tables, self._opened().tokenizer.name)

    def _limit(self, key: str, label: str) -> tuple[float, float]:
        """What is said of a label or its script by name, and with what is said of all; nan where nothing is."""
        places = [self.config.by_language[one] for one in lookup_keys(label) if one in self.config.by_language]
        named = next((value for value in (getattr(one, key) for one in places) if value is not None), None)
        usual = getattr(self.config, key) if named is None else named
        return _number(named), _number(usual)

    def _opened(self) -> Opened:
        return open_tokenizer(self.config.tokenizer, self.config.eos)

    @staticmethod
    def _count(opened: Opened, texts: list[str]) -> tuple[npt.NDArray[np.int64], ...]:
        """Tokens, unknown ones, parts of characters, characters and lost ones of each text: int64[n_texts] each."""
        try:
            found = opened.tokenizer.encode_documents(texts)
        except TokenizerError as error:
            raise ConfigError(f"step token_fit: {error}") from error
        document = np.repeat(np.arange(len(texts)), found.lengths)
        parts = np.bincount(document[opened.is_part[found.ids]], minlength=len(texts)).astype(np.int64)
        return found.lengths - 1, found.unknown, parts, found.characters, found.lost


def _number(limit: FitLimits | float | str | None) -> float:
    return float(limit) if isinstance(limit, int | float) else float("nan")


def _ratio(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> pa.Array:
    """float32[n]; null where there is nothing to divide by."""
    return pa.array((part / np.maximum(whole, 1)).astype(np.float32), mask=whole == 0)
