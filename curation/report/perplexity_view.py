"""What the report says of perplexity: how each language lies, what could not be judged, and what the cascade did.

The facts are those of `curation.filters.perplexity.facts`. Reads nothing else, and imports no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curation.report.numbers import NBSP, count, noun, share, value
from curation.report.step_facts import Count, Fact, FactsView, number

__all__ = ["perplexity_view"]

WHY_NOT = {
    "too short": "fewer tokens than min_tokens could be scored",
    "no model": "no model knows the language",
    "not finite": "the model gave no probability, or no number",
}
"""Why a document could not be judged."""
MOST_LANGUAGES = 30


def perplexity_view(facts: Mapping[str, Any]) -> FactsView:
    """The block *How languages lie*, and the cascade's lines."""
    return FactsView(
        title="What the models read",
        facts=[*_judged(facts), *_models(facts), *_cascade(_mapping(facts, "cascade"))],
        counts_caption="Bits per character by language: 5 %, half and 95 % of the documents lie below; and what the limits drop",
        counts_head="language",
        counts_of="documents",
        counts=list(_languages(facts)),
    )


def _judged(facts: Mapping[str, Any]) -> Iterator[Fact]:
    documents, judged = number(facts, "documents"), number(facts, "judged")
    if documents is None or judged is None:
        return
    yield Fact("judged", f"{count(judged)} of {noun(int(documents), 'document')}", share(judged, documents))
    for name, n in _mapping(facts, "not_judged").items():
        if isinstance(n, int) and n:
            yield Fact(f"not judged: {name}", noun(n, "document"), WHY_NOT.get(name, ""))


def _models(facts: Mapping[str, Any]) -> Iterator[Fact]:
    models = _mapping(facts, "models")
    parts = [f"{name} {count(n)}" for name, n in models.items() if isinstance(n, int)]
    if parts:
        yield Fact("models", ", ".join(parts), "documents that each has read")


def _languages(facts: Mapping[str, Any]) -> Iterator[Count]:
    lines = facts.get("languages")
    for line in lines[:MOST_LANGUAGES] if isinstance(lines, list) else ():
        if not isinstance(line, Mapping) or (n := number(line, "documents")) is None:
            continue
        parts = [f"{value(bits)}" for p in ("p5", "p50", "p95") if (bits := number(line, p)) is not None]
        notes = [" / ".join(parts) if parts else "none could be judged"]
        notes += [f"{side} {count(hits)}" for side in ("too_low", "too_high") if (hits := number(line, side))]
        yield Count(str(line.get("language", "")), int(n), "; ".join(notes).replace("too_", f"too{NBSP}"))


def _cascade(cascade: Mapping[str, Any]) -> Iterator[Fact]:
    asked, not_asked = number(cascade, "asked"), number(cascade, "not_asked")
    if asked is None or not_asked is None:
        return
    yield Fact(
        "second model asked",
        noun(int(asked), "document"),
        f"{share(asked, asked + not_asked)}: the undecided band, and a sample of the others",
    )
    band = _mapping(cascade, "band")
    if (n := number(band, "answered")) is not None:
        differ = number(band, "differ") or 0
        yield Fact(
            "in the band", noun(int(n), "document"), f"where it decides; in {share(differ, n)} the first said the other"
        )
    sample = _mapping(cascade, "sample")
    if (n := number(sample, "answered")) is not None:
        yield _sample(sample, int(n))
    read, saved = number(cascade, "tokens_read"), number(cascade, "tokens_saved")
    if read is not None and saved is not None:
        yield Fact("tokens that it read", count(read), "")
        yield Fact(
            "tokens saved",
            f"about {count(saved)}",
            f"{share(saved, read + saved)} of what it would read without the first",
        )


def _sample(sample: Mapping[str, Any], n: int) -> Fact:
    """How often the two would differ on what the first decides alone."""
    if not n:
        return Fact("in the sample", "no document", "raise cascade.sample_share to see how often the two differ")
    differ = int(number(sample, "differ") or 0)
    kept, dropped = (int(number(sample, f"{side}_by_the_first_alone") or 0) for side in ("kept", "dropped"))
    interval = sample.get("interval")
    note = f"the second would drop {kept} that the first keeps, and keep {dropped} that it drops"
    if isinstance(interval, list) and len(interval) == 2:
        low, high = (_percent(edge) for edge in interval)
        note += f"; of all that the first decides alone between {low} and {high} would change (95{NBSP}% interval)"
    return Fact("the two differ in the sample", f"{count(differ)} of {noun(n, 'document')}", note)


def _mapping(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _percent(part: Any) -> str:
    return value(part, "share") if isinstance(part, int | float) else "?"
