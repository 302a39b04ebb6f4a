"""The filter `language`: from the labels of lines to scores and verdicts of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.language.cjk import CJK_LABELS
from curation.filters.language.config import LanguageConfig
from curation.filters.language.document import (
    CHINESE_LABELS,
    LanguageSpans,
    Opinion,
    Tallies,
    language_spans,
    opinions,
    tally,
    usual_form,
)
from curation.filters.language.identify import UNDETERMINED, Labels, identify
from curation.filters.language.voters import Panel, open_panel
from curation.records import ScoreColumn
from curation.text import buffers
from curation.text.spans import Int64s
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.language_models import CORPUSMILL, checksum, installed, lid176

__all__ = ["Language"]

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]

CLASSES = ("agree", "resolved-by-script", "disagree", "mixed", "too-short", "no-language")
AGREE, RESOLVED, DISAGREE, MIXED, SHORT, NONE = range(len(CLASSES))

MIXED_SHARE = 0.1
"""Share of characters in other languages than the main one, or in lines that hold two, from which on a document is mixed."""

QUOTED_SHARE = 0.05
"""Share of characters in other languages below which lines that hold two are lines that quote: no mixed document."""

SHORT_LETTERS = 20
"""Letters below which a document is too short; one of Chinese, Japanese or Korean counts four times."""
CJK_WEIGHT = 4

CJK_LABEL_NUMBERS = np.arange(2, len(CJK_LABELS))

NEED_A_LANGUAGE = 3
"""Rules from this one on need a language: a document that an earlier one keeps is kept."""

SHARE = pa.struct([("language", pa.string()), ("share", pa.float32())])
SPELL = pa.struct([("language", pa.string()), ("first", pa.int32()), ("end", pa.int32())])


@cache
def _panel(voters: tuple[str, ...]) -> tuple[Panel, Labels]:
    """The models, loaded once in a process: 2 s."""
    panel = open_panel(CORPUSMILL, voters, lid176())
    return panel, Labels(panel)


class Language(Filter):
    """Names the language of each document and of each of its lines, and keeps those that are wanted."""

    name: ClassVar[str] = "language"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "language"
    summary: ClassVar[str] = (
        "Names the language of each document and line by two models and the script; keeps those wanted."
    )
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        "language.routed": "it is set aside for a named output, as the policies for such documents say",
        "language.no_language": "no line of text in it has a letter",
        "language.too_short": "it is too short to be sure of its language",
        "language.undecided": "no language could be named for most of it",
        "language.unwanted": "its main language is none of those wanted",
        "language.mixed": "a tenth of it or more is in other languages than the main one",
        "language.low_share": "less of it than min_share is in its main language",
        "language.low_confidence": "its main language is less sure than min_confidence",
    }
    Config: ClassVar[type[StepConfig]] = LanguageConfig
    config: LanguageConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("language", pa.string(), "label", "main language: ISO 639-3 code and ISO 15924 script, or und"),
            ScoreColumn("confidence", pa.float32(), "probability", "mean over the parts in the main language"),
            ScoreColumn("class", pa.string(), "class", f"how it was found: {', '.join(CLASSES)}"),
            ScoreColumn("share", pa.float32(), "share", "characters in the main language, of those that count"),
            ScoreColumn("fasttext", pa.string(), "code", "what fastText says, ISO 639-3; null: nothing"),
            ScoreColumn("fasttext_confidence", pa.float32(), "probability", "of fastText's answers, mean"),
            ScoreColumn("langdetect", pa.string(), "code", "what langdetect says, ISO 639-3; null: nothing"),
            ScoreColumn("langdetect_confidence", pa.float32(), "probability", "of langdetect's answers, mean"),
            ScoreColumn(
                "characters", pa.int32(), "characters", "characters that count: those of lines of text, cleaned"
            ),
            ScoreColumn(
                "shares",
                pa.list_(SHARE),
                "share",
                "characters by language, largest first; und counts half in that order",
            ),
            ScoreColumn(
                "spans", pa.list_(SPELL), "lines", "runs of lines by language: lines first to end - 1, from 0 on"
            ),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        least = {self.config.min_confidence, *self.config.min_confidence_of.values()}
        return {"confidence": sorted(least), "share": [self.config.min_share]}

    def score_config(self) -> Mapping[str, Any]:
        return {"voters": list(self.config.voters)}

    def off_reasons(self) -> set[str]:
        """Reasons that these settings never give: that they are silent says nothing."""
        settings = self.config
        policies = {
            "no_language": settings.no_language,
            "too_short": settings.short,
            "undecided": settings.undecided,
            "unwanted": settings.unwanted if settings.wanted else "keep",
            "mixed": settings.mixed,
        }
        off = {f"language.{why}" for why, policy in policies.items() if policy != "drop"}
        if not settings.min_share:
            off.add("language.low_share")
        if not any([settings.min_confidence, *settings.min_confidence_of.values()]):
            off.add("language.low_confidence")
        return off

    def model_checksums(self) -> Mapping[str, str]:
        try:
            paths = {"lid.176.ftz": lid176(), "langdetect": installed("langdetect", "profiles")}
            for voter in self.config.voters:
                paths[voter] = _file_of(voter)
            return {name: checksum(path) for name, path in paths.items()}
        except FileNotFoundError as error:
            raise ConfigError(f"step language: {error}") from error

    def ready(self) -> None:
        self.model_checksums()
        try:
            _panel(self.config.voters)
        except ValueError as error:
            raise ConfigError(f"step language: {error}") from error

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        panel, labels = _panel(self.config.voters)
        data, offsets = buffers(batch.column("text"))
        found = identify(panel, labels, data, offsets)
        n = batch.num_rows
        counted = tally(found, labels)
        first = np.searchsorted(counted.document, np.arange(n))
        has = np.zeros(n, np.bool_)
        has[counted.document] = True
        main = np.where(has, np.append(counted.label, 0)[first], 0)
        characters: Doubles = np.bincount(counted.document, counted.characters, n).astype(np.float64)
        share = np.append(counted.characters, 0)[first] * has / np.maximum(characters, 1)
        views = opinions(panel, labels, found, main)
        kinds = _classes(labels, counted, main, characters, views)
        usual = np.full(n, CHINESE_LABELS[0])
        forms = usual_form(counted.document, counted.label, counted.characters)
        usual[: len(forms)] = forms
        names = np.array(labels.names, object)
        names[0] = UNDETERMINED
        codes = np.array([*panel.languages, None], object)
        columns = [
            pa.array(names[main], pa.string()),
            pa.array(np.append(counted.confidence, 0)[first] * has, pa.float32()),
            pa.array(np.array(CLASSES, object)[kinds], pa.string()),
            pa.array(share, pa.float32()),
            *(column for view in views for column in _opinion(view, codes)),
            pa.array(np.rint(characters).astype(np.int32)),
            _shares(counted, characters, names, n),
            _spans(language_spans(found, labels, usual), names),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        rules, decisive = self._decisive(scores)
        hits = {reason: np.zeros(scores.num_rows, np.bool_) for reason in self.reasons}
        for place, (reason, policy, _) in enumerate(rules):
            if policy != "keep":
                hits[reason if policy == "drop" else "language.routed"] |= decisive == place
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def route_of(self, scores: pa.RecordBatch) -> list[str | None]:
        rules, decisive = self._decisive(scores)
        names = [policy.removeprefix("route:") if policy.startswith("route:") else None for _, policy, _ in rules]
        return [names[place] if place >= 0 else None for place in decisive]

    def _decisive(self, scores: pa.RecordBatch) -> tuple[list[tuple[str, str, Mask]], npt.NDArray[np.int64]]:
        """The rules (reason, policy, to which rows it applies), and which of them decides each row: int64[n], -1 for none.

        The first that applies does; one that keeps decides too, where what follows needs a language.
        """
        settings = self.config
        language, kind = (scores.column(name).to_numpy(zero_copy_only=False) for name in ("language", "class"))
        confidence, share = (scores.column(name).to_numpy(zero_copy_only=False) for name in ("confidence", "share"))
        names, place = np.unique(language.astype(str), return_inverse=True)
        least = np.array([self._least_confidence(name) for name in names], np.float32)
        rules: list[tuple[str, str, Mask]] = [
            ("language.no_language", settings.no_language, kind == CLASSES[NONE]),
            ("language.too_short", settings.short, kind == CLASSES[SHORT]),
            ("language.undecided", settings.undecided, language == UNDETERMINED),
            (
                "language.unwanted",
                settings.unwanted,
                ~np.array([self._wanted(name) for name in names], np.bool_)[place],
            ),
            ("language.mixed", settings.mixed, kind == CLASSES[MIXED]),
            ("language.low_share", "drop", share < np.float32(settings.min_share)),
            ("language.low_confidence", "drop", confidence < least[place]),
        ]
        decisive = np.full(scores.num_rows, -1)
        for number, (_, policy, applies) in enumerate(rules):
            if policy != "keep" or number < NEED_A_LANGUAGE:
                decisive[applies & (decisive < 0)] = number
        return rules, decisive

    def _wanted(self, name: str) -> bool:
        """Whether a label is one of those wanted, by language or by language and script."""
        code = name.partition("_")[0]
        wanted = self.config.wanted
        if not wanted or name in wanted or code in wanted:
            return True
        return name == "zho_Hani" and any(one.startswith("zho") for one in wanted)

    def _least_confidence(self, name: str) -> float:
        of = self.config.min_confidence_of
        return of.get(name, of.get(name.partition("_")[0], self.config.min_confidence))


def _file_of(voter: str) -> Path:
    if voter == "py3langid":
        return installed("py3langid", "data/model.npz.xz")
    if voter == "corpusmill":
        return CORPUSMILL
    if not Path(voter).is_file():
        raise FileNotFoundError(
            f"voter {voter!r}: expected py3langid, corpusmill or the path of a model in fastText's format, found no such file"
        )
    return Path(voter)


def _classes(labels: Labels, counted: Tallies, main: Int64s, characters: Doubles, views: Sequence[Opinion]) -> Int64s:
    """The class of each document: int64[n], place in CLASSES."""
    n, language = len(main), labels.language
    # Text without a name is in no other language; the forms of Chinese are one.
    named = (counted.label != labels.und) & (language[counted.label] != language[main[counted.document]])
    others = np.bincount(counted.document, counted.characters * named, n)
    inline = np.where(others >= QUOTED_SHARE * characters, counted.inline, 0)
    others = np.maximum(others, inline)
    weight = np.where(np.isin(counted.label, CJK_LABEL_NUMBERS), CJK_WEIGHT, 1)
    size = np.bincount(counted.document, counted.letters * weight, n)
    agreed = (views[0].language == language[main]) & (views[1].language == language[main])
    kinds = np.where(agreed, AGREE, np.where(labels.by_script[main] & (main != labels.und), RESOLVED, DISAGREE))
    kinds = np.where(others >= MIXED_SHARE * np.maximum(characters, 1), MIXED, kinds)
    kinds = np.where(size < SHORT_LETTERS, SHORT, kinds)
    return np.where(size == 0, NONE, kinds)


def _opinion(view: Opinion, codes: npt.NDArray[np.object_]) -> tuple[pa.Array, pa.Array]:
    nothing = view.language < 0
    return (
        pa.array(codes[view.language], pa.string()),
        pa.array(view.confidence.astype(np.float32), pa.float32(), mask=nothing),
    )


def _shares(counted: Tallies, characters: Doubles, names: npt.NDArray[np.object_], n: int) -> pa.Array:
    share = counted.characters / characters[counted.document]
    values = [pa.array(names[counted.label], pa.string()), pa.array(share.astype(np.float32))]
    offsets = np.searchsorted(counted.document, np.arange(n + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(values, fields=list(SHARE)))


def _spans(runs: LanguageSpans, names: npt.NDArray[np.object_]) -> pa.Array:
    values = [
        pa.array(names[runs.label], pa.string()),
        pa.array(runs.first.astype(np.int32)),
        pa.array(runs.end.astype(np.int32)),
    ]
    return pa.ListArray.from_arrays(
        pa.array(runs.offsets.astype(np.int32)), pa.StructArray.from_arrays(values, fields=list(SPELL))
    )
