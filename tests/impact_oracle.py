"""The numbers of a change-impact sheet counted slowly: lists of dictionaries, a document at a time; and comparisons without runs."""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.impact.facts import DOCUMENTS_SCHEMA, KEPT, Comparison, Outcome, SampleFacts, SideFacts, StepFacts

Document = dict[str, Any]
Chosen = Callable[[Document], bool]

STEPS = ("length", "rules", "safety")
REASONS = {
    "length": ("length.too_short", "length.too_long"),
    "rules": ("rules.lines", "rules.words"),
    "safety": ("safety.adult",),
}
OUTCOMES = (KEPT, *(Outcome(step, reason) for step in STEPS for reason in REASONS[step]))
MEASURES = ("documents", "characters", "tokens")
Z = 1.959963984540054


def documents_of(
    n: int,
    seed: int = 0,
    *,
    weighted: bool = True,
    moving: float = 0.1,
    languages: Sequence[str] = ("eng", "zho", "jpn"),
) -> list[Document]:
    """Documents of which some move, in strata of unequal weights if asked for."""
    rng = random.Random(seed)
    found = []
    for place in range(n):
        stratum = rng.choice((0, 0, 1, 2)) if weighted else 0
        before = rng.choice((0, 0, 0, *range(1, len(OUTCOMES))))
        after = rng.randrange(len(OUTCOMES)) if rng.random() < moving else before
        characters = int(rng.lognormvariate(6, 1.3))
        found.append(
            {
                "doc_id": hashlib.sha256(f"{seed} {place}".encode()).digest()[:16],
                "shard": place // 7,
                "row": place % 7,
                "id": f"d{place}",
                "source": rng.choice(("a.jsonl", "b.jsonl")),
                "language": rng.choice(languages),
                "length": "short" if characters < 400 else "long",
                "label": rng.choice(("good", "junk", "spam", None)),
                "characters": characters,
                "tokens": characters // 4,
                "stratum": stratum,
                "weight": (1.0, 12.5, 0.75)[stratum],
                "before": before,
                "after": after,
            }
        )
    return found


def step_facts(name: str, place: int, **given: Any) -> StepFacts:
    """A step's facts as they would be on disk."""
    facts: dict[str, Any] = {
        "name": name,
        "place": place,
        "version": 1,
        "folder": Path("steps") / name,
        "config": {},
        "reasons": {reason: f"it is {reason}" for reason in REASONS.get(name, ())},
        "thresholds": {"score": [1.0]},
        "units": {"score": "share"},
        "digest": f"digest-{name}",
        "score_digest": f"score-{name}",
        "code": f"code-{name}",
        "docs_in": 100,
        "docs_kept": 90,
        "dropped": {},
        "hits": None,
        "seconds": 2.0,
        "scored": 100,
        "peak_rss_mb": 50.0,
    }
    return StepFacts(**{**facts, **given})


def side(label: str, *steps: StepFacts) -> SideFacts:
    return SideFacts(label, None, "name: x\n", Path("no-such-run") / label, steps)


def compared(
    documents: Sequence[Document],
    base: Sequence[StepFacts] | None = None,
    new: Sequence[StepFacts] | None = None,
    *,
    outcomes: Sequence[Outcome] = OUTCOMES,
    population: int | None = None,
) -> Comparison:
    """A comparison of these documents. The steps are those of STEPS, if none are given."""
    sides = []
    for label, given, key in (("base", base, "before"), ("new", new, "after")):
        sides.append(side(label, *(standing(documents, key, outcomes) if given is None else given)))
    return Comparison(
        base=sides[0],
        new=sides[1],
        sample=SampleFacts("made", "0" * 64, "made for a test", len(documents), 0, population),
        documents=pa.Table.from_pylist(list(documents), schema=DOCUMENTS_SCHEMA),
        outcomes=tuple(outcomes),
        tokenizer="default",
    )


def standing(documents: Sequence[Document], key: str, outcomes: Sequence[Outcome] = OUTCOMES) -> list[StepFacts]:
    """STEPS with the numbers of documents that came to each of them, and that each dropped."""
    found, looked = [], len(documents)
    for place, name in enumerate(STEPS):
        dropped: dict[str, int] = defaultdict(int)
        for document in documents:
            outcome = outcomes[document[key]]
            if outcome.step == name and outcome.reason is not None:
                dropped[outcome.reason] += 1
        n = sum(dropped.values())
        found.append(
            step_facts(name, place, docs_in=looked, docs_kept=looked - n, dropped=dict(dropped), scored=looked)
        )
        looked -= n
    return found


# -- slow sums ---------------------------------------------------------------------------------------------------


def size(document: Document, measure: str) -> int:
    return 1 if measure == "documents" else int(document[measure])


def kept(document: Document, key: str) -> bool:
    return bool(OUTCOMES[document[key]] == KEPT)


def count(documents: Sequence[Document], chosen: Chosen, measure: str = "documents") -> int:
    return sum(size(one, measure) for one in documents if chosen(one))


def amount(documents: Sequence[Document], chosen: Chosen, measure: str = "documents") -> float:
    return math.fsum(one["weight"] * size(one, measure) for one in documents if chosen(one))


def ratio(
    documents: Sequence[Document], top: Chosen, bottom: Chosen, measure: str = "documents", of: str | None = None
) -> float | None:
    whole = amount(documents, bottom, of or measure)
    return amount(documents, top, measure) / whole if whole > 0 else None


def covariance(
    documents: Sequence[Document],
    one: tuple[Chosen, Chosen],
    other: tuple[Chosen, Chosen],
    measure: str = "documents",
    of: str | None = None,
) -> float:
    """Of the numerators of two ratios, linearised, within strata: every sum over documents, as the textbook has it."""
    of = of or measure
    ratios = [ratio(documents, *pair, measure, of) or 0.0 for pair in (one, other)]
    strata: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for document in documents:
        z = [
            document["weight"] * (size(document, measure) * top(document) - r * size(document, of) * bottom(document))
            for (top, bottom), r in zip((one, other), ratios, strict=True)
        ]
        strata[document["stratum"]].append((z[0], z[1]))
    lone = [key for key, values in strata.items() if len(values) == 1]
    if len(lone) > 1:
        strata[-1] = [strata.pop(key)[0] for key in lone]
    found = 0.0
    for values in strata.values():
        n = len(values)
        if n == 1:
            found += values[0][0] * values[0][1]
            continue
        means = [math.fsum(value[side] for value in values) / n for side in (0, 1)]
        found += n / (n - 1) * math.fsum((a - means[0]) * (b - means[1]) for a, b in values)
    return found


def heavy(documents: Sequence[Document], could: Chosen, measure: str) -> float:
    rows = [document for document in documents if could(document)]
    if measure == "documents":
        return max(float(document["weight"]) for document in rows)
    weighed = [document["weight"] * size(document, measure) for document in rows]
    return math.fsum(one * one for one in weighed) / math.fsum(weighed)


def wilson_share(
    documents: Sequence[Document], top: Chosen, bottom: Chosen, measure: str = "documents"
) -> tuple[float, float, float]:
    """Share and bounds, by solving for the shares that lie two standard deviations from what was found."""
    share = ratio(documents, top, bottom, measure)
    assert share is not None
    whole = amount(documents, bottom, measure)
    more = heavy(documents, bottom, measure)
    weight = (covariance(documents, (top, bottom), (top, bottom), measure) + more**2) / (
        whole * share * (1 - share) + more
    )

    def distance(p: float) -> float:
        return (share - p) ** 2 - Z * Z * p * (1 - p) * weight / whole

    return share, _root(distance, 0.0, share), _root(distance, 1.0, share)


def poisson_rate(
    documents: Sequence[Document], top: Chosen, bottom: Chosen, could: Chosen, measure: str, of: str
) -> tuple[float, float, float]:
    """Rate and bounds, by solving as above with a variance that is as the rate."""
    rate = ratio(documents, top, bottom, measure, of)
    assert rate is not None
    more = heavy(documents, lambda one: could(one) or top(one), measure)
    sum_top, whole = amount(documents, top, measure), amount(documents, bottom, of)
    weight = (covariance(documents, (top, bottom), (top, bottom), measure, of) + more**2) / (sum_top + more)

    def distance(r: float) -> float:
        return (rate - r) ** 2 - Z * Z * r * weight / whole

    return rate, _root(distance, 0.0, rate), _root(distance, 1e3 + 1e3 * rate, rate)


def _root(distance: Callable[[float], float], outer: float, inner: float) -> float:
    """Where the distance from what was found is two standard deviations; it is more at `outer` and less at `inner`."""
    if distance(outer) <= 0:
        return outer
    for _ in range(200):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if distance(middle) > 0 else (outer, middle)
    return (outer + inner) / 2


def reason_counts(documents: Sequence[Document], key: str) -> Mapping[str, int]:
    found: dict[str, int] = defaultdict(int)
    for document in documents:
        reason = OUTCOMES[document[key]].reason
        if reason is not None:
            found[reason] += 1
    return found
