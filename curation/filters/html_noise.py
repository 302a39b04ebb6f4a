"""Left-overs of HTML: tags, page scripts, style sheets, entities, template marks that extraction let through.

Judged by the share of characters that they cover, never by one hit: a lesson about `<script>` stays, a page
that is made of scripts goes. Costs about 4 us for a 1 kB document (290 MB/s a core), linear in its length.

What counts is decided place by place by `curation.markup`, and evidence tells an example from a left-over:
- A tag with attributes that a server writes for a browser (class, href, data-...) is a page's; one with a
  framework's (v-if, @click, prop={...}) is somebody's source code. Unknown tags without attributes of a page
  are none: <stdio.h>, Map<String>, <your name>.
- Code that its author marked (fences, backticks), modules, listings that never call the page are code.
- Scripts are a page's if they carry type or src, call the page (`document.`, `googletag.`), or were minified.

A text that marks its code is documentation, and documentation writes HTML on purpose: it may hold more.

Thresholds: measured on the labelled crawl text of the test data (10,089 documents in 25 languages), see
`HtmlNoiseConfig`. At the defaults all 420 raw HTML left-overs are dropped, 191 of 200 half-stripped pages
(of the other nine, four are menus without any markup left, another filter's work), and 9 of 5,694 good
documents: nine translations of one home page, half of which is markup. Of 154 documents of bare code 22 are
dropped, most of them lists of HTML, style or template fragments without a fence.
On documents that thresholds were not chosen on: 46 of 31,500 (near-duplicate data: 45 are pages of two web
frameworks' sites written in HTML), and 1 of 208 main texts of news and blog pages (quality data).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curation.markup import Kind, kind_counts
from curation.records import ScoreColumn
from curation.text import buffers
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules

__all__ = ["HtmlNoise", "HtmlNoiseConfig"]

_PARTS: Mapping[str, tuple[Kind, ...]] = {
    "script": (Kind.SCRIPT,),
    "tag": (Kind.BARE_TAG, Kind.PAGE_TAG),
    "entity": (Kind.ENTITY,),
    "css": (Kind.CSS,),
    "template": (Kind.TEMPLATE,),
}
"""Parts of the noise in the order of the reasons, and the kinds of markup in each."""


class HtmlNoiseConfig(StepConfig):
    """Thresholds of html_noise; shares are of a document's non-blank characters.

    Measured on the labelled crawl text: of documents without marked code, good ones reach 0.107 (one
    encyclopedia article with table tags), and nine home pages 0.53 to 0.72; raw left-overs begin at 0.16, and
    half-stripped pages have their 10th percentile at 0.39.
    """

    max_noise_share: float = Field(default=0.12, ge=0, le=1)
    """Dropped above, where the text marks no code."""
    min_code_share: float = Field(default=0.05, ge=0, le=1)
    """From here on a text marks its code. Of raw left-overs and half-stripped pages 5 in 100 have any."""
    max_noise_share_with_code: float = Field(default=0.4, ge=0, le=1)
    """Dropped above, where it does. The highest among 467 documentation pages is 0.38."""
    min_noise_chars: int = Field(default=40, ge=0)
    """Characters: less is never a reason, so that a one-line text may hold an emoji written as `&#128514;`."""


class HtmlNoise(Filter):
    """Drops what is more page than text."""

    name: ClassVar[str] = "html_noise"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "quality"
    summary: ClassVar[str] = (
        "Drops texts of which too much is left-over HTML: tags, scripts, styles, entities, templates."
    )
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        "html_noise.script": "too much of it is markup, and most of that is page scripts, JSON or embedded data",
        "html_noise.markup": "too much of it is markup, and most of that is tags and comments",
        "html_noise.entities": "too much of it is markup, and most of that is character references such as &nbsp;",
        "html_noise.css": "too much of it is markup, and most of that is style sheets",
        "html_noise.template": "too much of it is markup, and most of that is marks of template engines and shortcodes",
    }
    Config: ClassVar[type[StepConfig]] = HtmlNoiseConfig
    config: HtmlNoiseConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("noise_share", pa.float32(), "share", "non-blank characters that are left-over markup"),
            ScoreColumn("script_share", pa.float32(), "share", "page scripts, JSON-LD, minified code, embedded data"),
            ScoreColumn("tag_share", pa.float32(), "share", "tags and comments"),
            ScoreColumn("entity_share", pa.float32(), "share", "character references such as &nbsp;"),
            ScoreColumn("css_share", pa.float32(), "share", "style sheets"),
            ScoreColumn("template_share", pa.float32(), "share", "marks of template engines, shortcodes"),
            ScoreColumn("code_share", pa.float32(), "share", "code that its author marked as such; no noise"),
            ScoreColumn("noise_chars", pa.int32(), "characters", "non-blank characters that are left-over markup"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {
            "noise_share": [self.config.max_noise_share, self.config.max_noise_share_with_code],
            "code_share": [self.config.min_code_share],
            "noise_chars": [self.config.min_noise_chars],
        }

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Shares of a text without any visible character are 0."""
        counts = kind_counts(*buffers(batch.column("text")))
        visible = np.maximum(counts.sum(axis=1), 1)
        parts = [counts[:, list(kinds)].sum(axis=1) for kinds in _PARTS.values()]
        noise = np.sum(parts, axis=0) if parts else np.zeros(len(counts), np.int64)
        shares = [noise, *parts, counts[:, Kind.CODE]]
        columns = [pa.array((share / visible).astype(np.float32)) for share in shares]
        columns.append(pa.array(np.minimum(noise, np.iinfo(np.int32).max).astype(np.int32)))
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        """The reason names the largest part of the noise; of equal ones the first."""
        noise, code = _floats(scores, "noise_share"), _floats(scores, "code_share")
        limit = np.where(
            code >= np.float32(self.config.min_code_share),
            np.float32(self.config.max_noise_share_with_code),
            np.float32(self.config.max_noise_share),
        )
        chars = scores.column("noise_chars").to_numpy(zero_copy_only=False)
        dropped = (noise > limit) & (chars >= self.config.min_noise_chars)
        parts = np.stack([_floats(scores, f"{part}_share") for part in _PARTS])
        largest = parts.argmax(axis=0)
        hits = {reason: dropped & (largest == index) for index, reason in enumerate(self.reasons)}
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)


def _floats(scores: pa.RecordBatch, name: str) -> npt.NDArray[np.float32]:
    """A score column without nulls: float32[n_rows]."""
    values: npt.NDArray[np.float32] = scores.column(name).to_numpy(zero_copy_only=False)
    return values
