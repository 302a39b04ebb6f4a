"""Settings of the re-score: how documents are sampled and read, and which scores are too high or too low."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from curation.filters.labels import each_language_once, lookup_keys
from curation.filters.perplexity.config import LimitKey
from curation.verdicts import StepConfig
from quality_models.windows import BosRule, WindowRule

__all__ = ["ChooseConfig", "DomainConfig", "SampleConfig", "ScoreConfig", "SourceBy", "Tail", "Tails"]

SourceBy: TypeAlias = Literal["file", "folder", "domain"]
Share = Annotated[float, Field(gt=0, le=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class SampleConfig(StepConfig):
    """Which documents of a large crawl are read. A document's own hash decides, so every worker and retry agrees."""

    max_documents: int | None = Field(default=None, ge=1)
    """Documents that are read, about; null: all. A language of one source is a stratum; each is sampled at a rate of its own."""
    stratum_documents: int = Field(default=1_000, ge=1)
    """Documents that a small stratum gets before the others share the rest. Ours: 1,000 put ten beyond a 1st percentile."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Another seed, another sample."""


class ScoreConfig(StepConfig):
    """Which documents of a run a checkpoint reads, and how. Windows are the perplexity filter's."""

    documents: Literal["kept", "all"] = "kept"
    """kept: those that the run has kept so far, by its last closed step; all: every document of its shards."""
    source: SourceBy = "file"
    """What a source is: the input file, its folder, or the host of the page's address (`domain`)."""
    sample: SampleConfig = SampleConfig()
    """Which of them are read."""
    window: int | None = Field(default=None, ge=2, le=1_000_000)
    """Tokens that the model is given at once; null: 1,024 as in the filter `perplexity`, or fewer where the model learned fewer."""
    stride: int | None = Field(default=None, ge=1)
    """Tokens that each window but the first scores; null: three quarters of the window, as in the filter."""
    max_windows: int = Field(default=8, ge=1)
    """Windows by which a long text is judged, at even steps; as in the filter."""
    bos: BosRule | None = None
    """Where the token before text stands; null: as the model was trained, `none` where its documents began with nothing."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Numbers to compute in; auto: bfloat16."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: on a GPU if there is one."""

    @model_validator(mode="after")
    def _reads(self) -> ScoreConfig:
        if self.window is not None:
            WindowRule(self.window, self.stride or max(1, self.window * 3 // 4), self.bos or "none", self.max_windows)
        elif self.stride is not None:
            raise ValueError("stride needs `window`: it must be less")
        return self


class Tail(StepConfig):
    """One end of the scores. A document must be beyond all that is set; where nothing is, nothing is chosen."""

    percentile: float | None = Field(default=None, ge=0, le=100)
    """Of the judged documents of its group."""
    limit: Finite | None = None
    """A fixed score."""
    spreads: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Interquartile ranges of its group away from the group's median."""

    @property
    def is_set(self) -> bool:
        """Whether it chooses anything."""
        return any(one is not None for one in (self.percentile, self.limit, self.spreads))


class Tails(StepConfig):
    """Both ends. What lies on an end's limit is not beyond it."""

    high: Tail = Tail(percentile=95, spreads=3)
    """Noise: chosen above, as `rescore.high_loss`. Ours, from real pages with planted junk judged by a checkpoint of 640,000
    tokens (bench/results/rescore.md): three spreads are far out, so a crawl without noise loses next to nothing to them, and the
    wider percentile lets them take noise where there is some: 29 of junk and 5 good documents in 3,012 of which 5 % were junk,
    where the 99th percentile and one spread took 18 and 8."""
    low: Tail = Tail(percentile=1, spreads=3)
    """Boilerplate, or memorised: chosen below, as `rescore.low_loss`. At three spreads (Tukey's far out, 1977, counts them from the
    quartiles) that checkpoint found nothing; at two, good text only, for easy text is good."""

    @model_validator(mode="after")
    def _apart(self) -> Tails:
        for name in ("percentile", "limit"):
            low, high = getattr(self.low, name), getattr(self.high, name)
            if low is not None and high is not None and low > high:
                raise ValueError(f"low.{name} ({low:g}) must not be more than high.{name} ({high:g})")
        return self


class DomainConfig(StepConfig):
    """When a whole domain goes on the list, beside its documents."""

    min_evidence: int = Field(default=50, ge=1)
    """Judged documents of the domain. Ours: with 50 of which 80 % are low, the true share is above 66 % (Wilson, 95 %)."""
    min_share: Share = 0.8
    """Share of them that were chosen, as documents."""


class ChooseConfig(Tails):
    """Which documents go on the blacklist, and what holds it back."""

    score: Literal["bits_per_byte", "loss"] = "bits_per_byte"
    """bits_per_byte: comparable between texts of which the tokenizer makes more and fewer tokens; loss: nats per token."""
    group: Literal["language", "language_and_source"] = "language"
    """Among whom percentiles and spreads are taken. A source that is all junk is normal among its own: where each source was a
    group, 3 of junk and 2 good documents were chosen of 3,012 with 5 % junk, among their language 14 and 5
    (bench/results/rescore.md). language_and_source suits few large sources that differ by nature, as code and prose."""
    min_tokens: int = Field(default=50, ge=1)
    """Scored tokens from which on a document counts as judged; as in the filter `perplexity`."""
    min_documents: int = Field(default=100, ge=2)
    """Judged documents of a group below which nothing of it is chosen. As `min_calibrated` of the filter `perplexity`."""
    max_share: Share = 0.05
    """Of the judged documents of a source, and of a language, at most this share is chosen: the farthest out. Ours: what the high
    percentile takes of one group at most, so it holds where a fixed limit, a wider percentile or a bad checkpoint would take much."""
    languages: dict[LimitKey, Tails] = Field(default_factory=dict, examples=[{"zho": {"high": {"limit": 4.5}}}])
    """Both ends for single languages or scripts, in place of those for all."""
    domains: DomainConfig | None = None
    """Domains on the list; null: none."""
    expires_days: int | None = Field(default=None, ge=1)
    """After how many days an entry no longer holds; null: never."""

    _each_language_once = field_validator("languages", mode="wrap")(each_language_once)

    def tails(self, label: str) -> Tails:
        """Both ends for a label: what is said of the label, its language, its script, or of all."""
        return next((self.languages[key] for key in lookup_keys(label) if key in self.languages), self)
