"""A step that stands in for `language`: its score columns and reasons, and a judgement that a test can read from the text.

A line `jpn_Jpan:0.9 ...` is in that language, so sure; any other line is `und`. Languages weigh by lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from curation.records import ScoreColumn
from curation.steps import STEPS, step_class
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules

SHARES = pa.list_(pa.struct([("language", pa.string()), ("share", pa.float32())]))
SPANS = pa.list_(pa.struct([("language", pa.string()), ("first", pa.int32()), ("end", pa.int32())]))
_LINE = re.compile(r"([a-z]{3}_[A-Z][a-z]{3}):([0-9.]+)")


class FakeLanguageConfig(StepConfig):
    """As the settings that the real step has for what it does with a class."""

    wanted: tuple[str, ...] = ()
    mixed: str = "keep"
    no_language: str = "keep"
    min_confidence: float = 0.0


class FakeLanguage(Filter):
    """Main language by lines; two languages are mixed."""

    name: ClassVar[str] = "language"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "language"
    summary: ClassVar[str] = "Says which language a document is in."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        "language.no_language": "no line is in a language",
        "language.unwanted": "its language is not wanted",
        "language.mixed": "it is in several languages",
        "language.low_confidence": "the confidence is below min_confidence",
        "language.routed": "it is set aside for a named output",
    }
    Config: ClassVar[type[StepConfig]] = FakeLanguageConfig
    config: FakeLanguageConfig
    scored: ClassVar[list[str]] = []
    """Every text that any of them was asked to score."""

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("language", pa.string(), "language", "language of most lines"),
            ScoreColumn("confidence", pa.float32(), "share", "how sure that is"),
            ScoreColumn("class", pa.string(), "class", "how it was found"),
            ScoreColumn("fasttext", pa.string(), "language", "what fastText says"),
            ScoreColumn("fasttext_confidence", pa.float32(), "share", "how sure fastText is"),
            ScoreColumn("letters", pa.int32(), "letters", "letters that counted"),
            ScoreColumn("shares", SHARES, "share", "share of each language, largest first"),
            ScoreColumn("spans", SPANS, "lines", "runs of lines in one language"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {"confidence": [self.config.min_confidence]} if self.config.min_confidence else {}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        texts = batch.column("text").to_pylist()
        FakeLanguage.scored += texts
        rows = [_scores_of(text) for text in texts]
        columns = [pa.array([row[one.name] for row in rows], one.type) for one in self.score_columns]
        return pa.RecordBatch.from_arrays(columns, names=[one.name for one in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        found = np.array([name or "und" for name in scores.column("language").to_pylist()], object)
        kind = np.array(scores.column("class").to_pylist(), object)
        sure = scores.column("confidence").fill_null(0).to_numpy(zero_copy_only=False)
        wanted = self.config.wanted
        what_to_do = {"no-language": self.config.no_language, "mixed": self.config.mixed}
        doing = np.array([what_to_do.get(one, "keep") for one in kind], object)
        hits = {
            "language.no_language": (kind == "no-language") & (doing == "drop"),
            "language.mixed": (kind == "mixed") & (doing == "drop"),
            "language.unwanted": np.array(
                [bool(wanted) and one not in wanted and one != "und" for one in found], np.bool_
            ),
            "language.low_confidence": (sure < self.config.min_confidence) & (kind != "no-language"),
            "language.routed": np.array([one.startswith("route:") for one in doing], np.bool_),
        }
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def route_of(self, scores: pa.RecordBatch) -> list[str | None]:
        what_to_do = {"no-language": self.config.no_language, "mixed": self.config.mixed}
        doing = [what_to_do.get(one, "keep") for one in scores.column("class").to_pylist()]
        return [one.removeprefix("route:") if one.startswith("route:") else None for one in doing]


def _scores_of(text: str) -> dict[str, Any]:
    lines = [(m[1], float(m[2])) if (m := _LINE.match(line)) else ("und", 0.0) for line in text.split("\n")]
    counts = Counter(name for name, _ in lines if name != "und")
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    main = ranked[0][0] if ranked else "und"
    confidence = max((sure for name, sure in lines if name == main), default=0.0) if ranked else None
    spans: list[dict[str, Any]] = []
    for number, (name, _) in enumerate(lines):
        if spans and spans[-1]["language"] == name:
            spans[-1]["end"] = number + 1
        else:
            spans.append({"language": name, "first": number, "end": number + 1})
    return {
        "language": main,
        "confidence": confidence,
        "class": "no-language" if not ranked else "mixed" if len(ranked) > 1 else "agree",
        "fasttext": main if ranked else None,
        "fasttext_confidence": confidence,
        "letters": sum(c.isalpha() for c in text),
        "shares": [{"language": name, "share": n / counts.total()} for name, n in ranked],
        "spans": spans,
    }


@pytest.fixture
def fake_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeLanguage]]:
    """The stand-in is what a config means by `language`, in this process."""
    monkeypatch.setitem(STEPS, "language", "tests.language_fake:FakeLanguage")
    step_class.cache_clear()
    FakeLanguage.scored.clear()
    yield FakeLanguage
    step_class.cache_clear()
