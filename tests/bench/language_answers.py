"""What the filter `language` says of texts; also where none of its models has ever heard of a language.

Accuracy is asked of `Language.score` itself, in batches as a run has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa

from curation.filters.language import Language, LanguageConfig, step
from curation.filters.language.fasttext import FastText
from curation.filters.language.identify import Labels
from curation.filters.language.langdetect import Langdetect
from curation.filters.language.voters import Answers, Panel, Voter, open_panel
from quality_models.fasttext_file import read_fasttext
from quality_models.langdetect_profiles import read_profiles
from quality_models.language_codes import to_iso639_3
from quality_models.language_models import CORPUSMILL, lid176

__all__ = ["Answer", "answer_of", "answers", "batches", "without", "without_languages"]

BATCH_ROWS = 512


class Answer(NamedTuple):
    """What the filter says of a text.

    label: ISO 639-3 code and script. language: the code alone. lines: the label of each line. shares: of letters, by
    code, the forms of Chinese together. forms: of letters, by label.
    """

    label: str
    language: str
    confidence: float
    kind: str
    lines: tuple[str, ...]
    shares: dict[str, float]
    forms: dict[str, float]


def batches(texts: Sequence[str], rows: int = BATCH_ROWS) -> list[pa.RecordBatch]:
    """Texts as the filter gets them."""
    starts = range(0, len(texts), rows)
    return [pa.record_batch({"text": pa.array(texts[at : at + rows], pa.large_string())}) for at in starts]


def answers(texts: Sequence[str], voters: Sequence[str] | None = None) -> list[Answer]:
    """What the filter says of texts, with its default voters or others."""
    config = LanguageConfig() if voters is None else LanguageConfig(voters=tuple(voters))
    made = Language(config)
    return [answer_of(row) for batch in batches(texts) for row in made.score(batch).to_pylist()]


def answer_of(row: dict[str, Any]) -> Answer:
    """An answer from a row of scores."""
    lines = [span["language"] for span in row["spans"] for _ in range(span["first"], span["end"])]
    shares: dict[str, float] = {}
    for one in row["shares"]:
        code = _code(one["language"])
        shares[code] = shares.get(code, 0.0) + one["share"]
    forms = {one["language"]: one["share"] for one in row["shares"]}
    return Answer(row["language"], _code(row["language"]), row["confidence"], row["class"], tuple(lines), shares, forms)


def _code(label: str) -> str:
    return label.partition("_")[0]


@contextmanager
def without_languages(unknown: frozenset[str]) -> Iterator[None]:
    """Within, no model of the filter knows some languages."""
    fasttext, langdetect, others = _models()
    panel = Panel(fasttext, langdetect, [without(voter, unknown) for voter in others])
    if found := unknown.intersection(panel.languages):
        raise ValueError(f"languages {sorted(found)}: expected that neither fastText nor langdetect knows them")
    models = panel, Labels(panel)
    with mock.patch.object(step, "_panel", return_value=models):
        yield


@cache
def _models() -> tuple[FastText, Langdetect, list[Voter]]:
    """What a panel is made of: the first two models, and the further voters."""
    voters = open_panel(CORPUSMILL, LanguageConfig().voters, lid176()).voters
    return FastText(read_fasttext(lid176())), Langdetect(read_profiles()), voters[2:]


def without(voter: Voter, unknown: frozenset[str]) -> Voter:
    """A voter that does not know some languages: what it would give them goes to the others, in proportion."""
    known = np.array([to_iso639_3(label) not in unknown for label in voter.labels])

    def given(ask: Answers) -> Answers:
        def cut(data: Any, parts: Any) -> Any:
            told = ask(data, parts)
            kept = told[:, known]
            sums = kept.sum(axis=1, keepdims=True, dtype=np.float64)
            before = told.sum(axis=1, keepdims=True, dtype=np.float64)
            return np.where(sums > 0, kept * before / np.maximum(sums, 1e-30), 0).astype(np.float32)

        return cut

    labels = [label for label, stays in zip(voter.labels, known, strict=True) if stays]
    return voter._replace(labels=labels, answers=given(voter.answers))
