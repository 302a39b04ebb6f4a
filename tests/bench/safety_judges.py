"""Systems that judge texts for safety: our filters, the fast linear model, and fastText trained on the same rows.

Each says a margin for each text (see `safety_gold`). What took time is kept by text in a folder, so that a second run asks only for
what is new; keys hold the checksums of lists and models. Peers that need an interpreter of their own: `safety_peers`.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.safety_model import SafetyModel, SafetyModelConfig
from curation.filters.safety_model.linear import suspicion
from curation.filters.safety_model.model import open_linear_model
from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig
from curation.ids import canonical_json
from curation.verdicts import Filter
from quality_models.safety_labels import CATEGORY_NAMES
from tests.bench.safety_gold import best_f1
from tests.fakes import batch_for

__all__ = [
    "FastText",
    "Kept",
    "Said",
    "either",
    "linear_margins",
    "model_filter",
    "only_where",
    "said_by_model",
    "said_by_terms",
]

Doubles = npt.NDArray[np.float64]
BATCH_ROWS = 256
TINY = 1e-6


class Said(NamedTuple):
    """Margins float64[n], reasons, and the scores of a filter."""

    margins: Doubles
    reasons: list[str | None]
    scores: pa.RecordBatch


def logit(values: npt.ArrayLike) -> Doubles:
    p = np.clip(np.asarray(values, np.float64), TINY, 1 - TINY)
    found: Doubles = np.log(p / (1 - p))
    return found


@dataclass
class Kept:
    """Scores of texts in files of a folder; without a folder nothing is kept."""

    folder: Path | None = None

    def scores(
        self, key: str, texts: Sequence[str], score: Callable[[list[int]], pa.RecordBatch], schema: pa.Schema
    ) -> pa.RecordBatch:
        """One row a text: those kept under the key, and for the others (their places) what `score` says."""
        path = self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsonl" if self.folder else None
        known: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, row = json.loads(line)
                known[name] = row
        names = [hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
        missing = [place for place, name in enumerate(names) if name not in known]
        for at in range(0, len(missing), BATCH_ROWS):
            places = missing[at : at + BATCH_ROWS]
            rows = score(places).to_pylist()
            known |= {names[place]: row for place, row in zip(places, rows, strict=True)}
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as out:
                    out.writelines(json.dumps([names[p], r]) + "\n" for p, r in zip(places, rows, strict=True))
        return pa.RecordBatch.from_pylist([known[name] for name in names], schema)


def schema_of(step: Filter) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in step.score_columns])


def decided(step: Filter, scores: pa.RecordBatch) -> list[str | None]:
    found: list[str | None] = step.decide(scores).reason_array(list(step.reasons)).to_pylist()
    return found


# -- terms ------------------------------------------------------------------------------------------


def said_by_terms(texts: Sequence[str]) -> Said:
    """What the lists say. A margin is the logarithm of how many times the limits are reached, -20 without a hit."""
    step = SafetyTerms(SafetyTermsConfig())
    parts = [step.score(batch_for(step, texts[at : at + BATCH_ROWS])) for at in range(0, len(texts), BATCH_ROWS)]
    scores = pa.Table.from_batches(parts, schema_of(step)).combine_chunks()
    batch = scores.to_batches()[0] if len(texts) else pa.RecordBatch.from_pylist([], scores.schema)
    return Said(_terms_margins(step, batch), decided(step, batch), batch)


def _terms_margins(step: SafetyTerms, scores: pa.RecordBatch) -> Doubles:
    best = np.zeros(scores.num_rows)
    for name in CATEGORY_NAMES:
        limits = step.config.limits_of(name)
        if limits.drop:
            peak, density = (
                scores.column(f"{name}_{what}").to_numpy().astype(np.float64) for what in ("peak", "density")
            )
            dense = np.maximum(density / max(limits.min_density, TINY), peak / limits.dense_peak)
            best = np.maximum(best, np.minimum(peak / limits.min_peak, dense))
    found: Doubles = np.log(np.maximum(best, np.exp(-20)))
    return found


# -- models -----------------------------------------------------------------------------------------


def model_filter(model: str = "corpusmill", scope: str = "all", **settings: Any) -> SafetyModel:
    return SafetyModel(SafetyModelConfig.model_validate({"model": model, "scope": scope, **settings}))


def model_batch(
    step: Filter, texts: Sequence[str], languages: Sequence[str | None], hits: Sequence[int]
) -> pa.RecordBatch:
    """What the filter is given behind `language` and `safety_terms`."""
    batch = batch_for(step, texts, languages)
    place = batch.schema.get_field_index("safety_terms.hits")
    return batch.set_column(place, batch.schema.field(place), pa.array(hits, batch.schema.field(place).type))


def said_by_model(
    step: SafetyModel, texts: Sequence[str], languages: Sequence[str | None], hits: Sequence[int], kept: Kept
) -> Said:
    """What the classifier says, of the documents that its scope asks for; margins are of log odds, nan of the others."""

    def score(places: list[int]) -> pa.RecordBatch:
        some = ([texts[i] for i in places], [languages[i] for i in places], [hits[i] for i in places])
        return step.score(model_batch(step, *some))

    key = canonical_json({"sums": dict(step.model_checksums()), "score": dict(step.score_config())})
    scores = kept.scores(key, texts, score, schema_of(step))
    margins = np.full(len(texts), np.nan)
    for name, limits in step.limits_of(scores).items():
        values = scores.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        margins = np.fmax(margins, np.where(np.isnan(values) | np.isnan(limits), np.nan, logit(values) - logit(limits)))
    return Said(margins, decided(step, scores), scores)


def linear_margins(texts: Sequence[str]) -> Doubles:
    """The fast model against the limit from which the cascade reads a document."""
    limit = SafetyModelConfig().cascade.suspicious
    return logit(suspicion(pa.array(texts, pa.large_string()), open_linear_model())) - logit(limit)


def either(*margins: Doubles) -> Doubles:
    """Dropped by any of them."""
    found = margins[0]
    for one in margins[1:]:
        found = np.fmax(found, one)
    return found


def only_where(asked: npt.NDArray[np.bool_], margins: Doubles) -> Doubles:
    """The same, but nothing is said of texts that are not asked of."""
    found: Doubles = np.where(asked, margins, np.nan)
    return found


# -- fastText ---------------------------------------------------------------------------------------

WIDE = re.compile("([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")
DEV_SHARE = 0.05


def fasttext_line(text: str) -> str:
    """Small letters, Han, kana and Hangul each a word of its own: words 1 to 3 are then n-grams of characters there."""
    return " ".join(WIDE.sub(r" \1 ", text.lower()).split())


class FastText:
    """fastText, supervised, unsafe or not, trained on the rows of a file; the threshold is the best on 5 % of its patterns."""

    def __init__(self, train: Path, folder: Path, threads: int = 1) -> None:
        import fasttext  # type: ignore[import-untyped]

        rows = [json.loads(line) for line in train.read_text(encoding="utf-8").splitlines()]
        dev = [_drawn(row.get("pattern", row["text"])) for row in rows]
        digest = hashlib.sha256(train.read_bytes()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        path, given = folder / f"fasttext-{digest}.bin", folder / f"fasttext-{digest}.txt"
        begin = time.perf_counter()
        if path.exists():
            self._model: Any = fasttext.load_model(str(path))
        else:
            lines = [
                f"__label__{'u' if r['labels'] else 'h'} {fasttext_line(r['text'])}\n"
                for r, d in zip(rows, dev, strict=True)
                if not d
            ]
            given.write_text("".join(lines), encoding="utf-8")
            self._model = fasttext.train_supervised(
                str(given), lr=0.4, epoch=12, dim=64, wordNgrams=3, minn=2, maxn=4, minCount=2, bucket=1_000_000, thread=threads, verbose=0
            )  # fmt: skip
            self._model.save_model(str(path))
        self.seconds = time.perf_counter() - begin
        self.size = path.stat().st_size
        held = [row for row, is_dev in zip(rows, dev, strict=True) if is_dev]
        self.rows, self.dev_rows, self._limit = len(rows) - len(held), len(held), 0.0
        self.dev_f1, self._limit = best_f1(
            [bool(row["labels"]) for row in held], self.margins([row["text"] for row in held])
        )

    def margins(self, texts: Sequence[str]) -> Doubles:
        found = []
        for text in texts:
            labels, shares = self._model.predict(fasttext_line(text) or " ", k=2)
            said: Mapping[str, float] = dict(zip(labels, shares, strict=True))
            found.append(said.get("__label__u", 0.0))
        return logit(found) - self._limit


def _drawn(pattern: str) -> bool:
    """Whether a pattern belongs to the part that chooses the threshold."""
    return int.from_bytes(hashlib.sha256(pattern.encode()).digest()[:4], "big") / 2**32 < DEV_SHARE
