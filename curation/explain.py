"""One document's path through a run: where it came from, what each step scored and said, the copy that was kept.

A copy that an earlier run kept is named, and not looked for: it is in none of this run's shards.

Costs a look at the id columns of every shard, and the hash of those that hold a document that is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.matched_spans import MATCHED, MatchedSpan, different_terms, read_spans
from curation.pipeline import Pipeline
from curation.records import EARLIER_SUFFIX
from curation.report.compare import first_difference
from curation.report.excerpt import MARGIN_CHARS
from curation.report.masking import mask
from curation.routes import routes_of
from curation.score_words import score_lines
from curation.shards import Shard, item_marker, open_table
from curation.steps import PlacedStep
from curation.terminal import printable
from curation.verdicts import Filter

__all__ = ["Explanation", "StepVerdict", "explain", "explanation_lines"]

_LINE_DIGITS = 18
"""No line number has more: it would not fit into the int64 of its column."""
_SHOWN_CHARS = 300
_MANY_SCORES = 24
"""Of a step with more scores than this only those that a limit applies to are shown."""
_CONTEXT_CHARS = 60
"""Characters before the place where two texts begin to differ."""
_MANY_TERMS = 12
_TERM_CONTEXT_CHARS = 24
"""Characters on either side of a term."""
_TERM_CHARS = 80
"""Characters of a term as it stands in the text."""
_SHOWN_COLUMNS = ["id", "doc_id", "source", "line", "byte_offset", "url", "text", "meta"]


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """What one step said: keep is None where it did not look."""

    step: str
    keep: bool | None
    reason: str | None
    sentence: str | None
    scores: dict[str, Any]
    thresholds: dict[str, list[float]]
    meanings: dict[str, str] = field(default_factory=dict)
    """Of the scores that are words: what they say."""
    route: str | None = None
    """The output that a dropped document is set aside for."""
    decided_by: str | None = None
    """The score that the reason is about, where the step says."""
    terms: list[MatchedSpan] | None = None
    """Where terms stand, the heaviest first; None of a step that looks for none."""

    @property
    def kept_elsewhere(self) -> str | None:
        """doc_id in hex of the document that an earlier run kept instead."""
        of_earlier = self.reason is not None and self.reason.endswith(EARLIER_SUFFIX)
        return self.scores.get("kept_doc_id") if of_earlier else None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A document and its verdicts in order; or a quarantined record, with no verdicts."""

    document: dict[str, Any]
    verdicts: list[StepVerdict] = field(default_factory=list)
    partners: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Kept documents of this run that this one duplicates, by doc_id in hex."""


def explain(pipeline: Pipeline, wanted: str, limit: int = 20) -> list[Explanation]:
    """All documents and quarantined records that `wanted` names, at most `limit`.

    Args:
        wanted: the document's own id, its doc_id or text_id in hex, its URL, or FILE:LINE (the end of the file's path will do).

    Raises:
        ConfigError: nothing in the run is called so.
    """
    wanted = wanted.encode("utf-8", "replace").decode(
        "utf-8"
    )  # a byte of the command line that is no UTF-8 is in no id
    found: list[Explanation] = []
    for index, shard in enumerate(pipeline.shards):
        for row, document in _rows_called(shard, wanted):
            verdicts = [_verdict(placed, shard, row) for placed in pipeline.placed]
            partners = _partners(pipeline, verdicts)
            found.append(
                Explanation({**document, "shard": pipeline.shards[index].name, "row": row}, verdicts, partners)
            )
            if len(found) == limit:
                return found
    found += [Explanation(entry) for entry in _quarantined(pipeline, wanted)][: limit - len(found)]
    if not found:
        raise ConfigError(
            f"run {pipeline.run.run_id} has no document with the id, doc_id, text_id or URL {wanted!r} and no record at that FILE:LINE. "
            "Ids are those of the input; `corpusmill export` and the report show them."
        )
    return found


def _rows_called(shard: Shard, wanted: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a shard by id, doc_id, text_id, URL or FILE:LINE."""
    hexed = _hex16(wanted)
    place = _place(wanted)
    for start, batch in _unverified(shard):
        hit = pc.equal(batch.column("id"), wanted)
        if hexed is not None:
            for name in ("doc_id", "text_id"):
                hit = pc.or_(hit, pc.equal(batch.column(name), pa.scalar(hexed, pa.binary(16))))
        if "://" in wanted:
            hit = pc.or_(hit, pc.fill_null(pc.equal(batch.column("url"), wanted), False))
        if place is not None:
            source = batch.column("source").cast(pa.string())
            there = pc.and_(pc.ends_with(source, place[0]), pc.equal(batch.column("line"), place[1]))
            hit = pc.or_(hit, there)
        rows = pc.indices_nonzero(hit).to_pylist()
        if rows:
            # What is shown must be what was written: only now the whole shard is hashed, once.
            open_table(shard.path, shard.sha256, shard.rows)
        for row in rows:
            document = batch.select(_SHOWN_COLUMNS).slice(row, 1).to_pylist()[0]
            document["doc_id"] = document["doc_id"].hex()
            yield start + row, document


def _unverified(shard: Shard) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of a shard with their first rows, without hashing it: only the columns that are asked for are read."""
    reader = open_table(shard.path, None, shard.rows)
    start = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        yield start, batch
        start += batch.num_rows


def _place(wanted: str) -> tuple[str, int] | None:
    """FILE and LINE of `FILE:LINE`."""
    file, _, line = wanted.rpartition(":")
    if not file or not (line.isascii() and line.isdigit()) or len(line) > _LINE_DIGITS:
        return None
    return file, int(line)


def _hex16(text: str) -> bytes | None:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        return None
    return value if len(value) == 16 else None


def _verdict(placed: PlacedStep, shard: Shard, row: int) -> StepVerdict:
    marker = item_marker(placed.folder, shard.name)
    table = open_table(placed.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
    values = table.slice(row, 1).to_pylist()[0]
    keep, reason = values.pop("keep"), values.pop("reason")
    looks_for_terms = any(score.name == MATCHED for score in placed.step.score_columns)
    terms = read_spans(values.pop(MATCHED)) if looks_for_terms and keep is not None else None
    scores = {k: v.hex() if isinstance(v, bytes) else v for k, v in values.items() if v is not None}
    thresholds = {name: list(limits) for name, limits in placed.step.thresholds().items()}
    decided_by = None
    if isinstance(placed.step, Filter) and keep is not None:
        names = [score.name for score in placed.step.score_columns]
        batch = table.slice(row, 1).select(names).combine_chunks().to_batches()[0]
        for name, of_row in placed.step.limits_of(batch).items():
            thresholds[name] = [] if np.isnan(of_row[0]) else [float(of_row[0])]
        decided_by = placed.step.score_of(reason) if reason else None
    meanings = {s.name: s.what for s in placed.step.score_columns if isinstance(scores.get(s.name), str)}
    meanings.pop("kept_doc_id", None)  # hex, and the document itself is shown
    route = routes_of(placed.step, table.slice(row, 1))[0]
    sentence = placed.step.reasons.get(reason)
    return StepVerdict(placed.name, keep, reason, sentence, scores, thresholds, meanings, route, decided_by, terms)


def _partners(pipeline: Pipeline, verdicts: list[StepVerdict]) -> dict[str, dict[str, Any]]:
    """The kept documents of this run that the verdicts name, read from their shards."""
    wanted = {v.scores["kept_doc_id"] for v in verdicts if "kept_doc_id" in v.scores and not v.kept_elsewhere}
    found: dict[str, dict[str, Any]] = {}
    for shard in pipeline.shards if wanted else []:
        for doc_id in sorted(wanted - found.keys()):
            for _, document in _rows_called(shard, doc_id):
                found[doc_id] = document
    return found


def _quarantined(pipeline: Pipeline, wanted: str) -> Iterator[dict[str, Any]]:
    """Quarantined records at FILE:LINE."""
    place = _place(wanted)
    if place is None:
        return
    for path in sorted(pipeline.run.quarantine.glob("*.jsonl")):
        with path.open(encoding="utf-8") as stream:
            for row in stream:
                entry = json.loads(row)
                if entry["line"] == place[1] and str(entry["file"]).endswith(place[0]):
                    yield entry


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """The explanation for a person, as lines of plain text; nothing in them can command a terminal."""
    return map(printable, _lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    document = explanation.document
    if not explanation.verdicts and "reason" in document:
        yield f"quarantined: {document['reason']}: {document['file']}, line {document['line']}, byte {document['byte_offset']}"
        yield f"  {document.get('detail') or ''}"
        raw = document.get("raw") or f"base64 {document.get('raw_base64', '')}"
        yield f"  raw: {_shown(raw)}"
        return
    place = f"line {document['line']}" + (
        f", byte {document['byte_offset']}" if document["byte_offset"] is not None else ""
    )
    yield f"{document['id']}  (doc_id {document['doc_id']})"
    yield f"  from {document['source']}, {place}" + (f", {document['url']}" if document["url"] else "")
    width = max((len(v.step) for v in explanation.verdicts), default=0)
    for verdict in explanation.verdicts:
        word = {True: "kept", False: "dropped", None: "not looked at"}[verdict.keep]
        because = f"  {verdict.reason}: {verdict.sentence}" if verdict.reason else ""
        yield f"  {verdict.step:<{width}}  {word}{because}"
        if verdict.route:
            yield f"  {'':<{width}}    set aside for {verdict.route}"
        for line in [*_score_lines(verdict), *_term_lines(verdict.terms or [], document["text"])]:
            yield f"  {'':<{width}}    {line}"
    for verdict in explanation.verdicts:
        if verdict.kept_elsewhere:
            yield f"  kept instead: doc_id {verdict.kept_elsewhere}, of an earlier run (one of {verdict.step}.against)"
            yield f"    to see it: corpusmill explain EARLIER_RUN {verdict.kept_elsewhere}"
    for doc_id, partner in explanation.partners.items():
        yield f"  kept instead: {partner['id']} (doc_id {doc_id}), {partner['source']}, line {partner['line']}"
        yield f"    {_shown(partner['text'])}"
        yield from _difference(document["text"], partner["text"])
    yield f"  text, {len(document['text']):,} characters: {_shown(document['text'])}"


def _score_lines(verdict: StepVerdict) -> Iterator[str]:
    """The scores that a reader must see, the one that decided marked."""
    shown = verdict.scores
    if verdict.terms is not None:
        # Ten categories with four scores each: those of which nothing was found say nothing.
        shown = {name: value for name, value in shown.items() if value}
    if len(shown) > _MANY_SCORES:
        limited = {name for name, limits in verdict.thresholds.items() if limits}
        shown = {name: value for name, value in shown.items() if name in limited or isinstance(value, str)}
    for line in score_lines(shown, verdict.thresholds, verdict.meanings):
        decided = verdict.decided_by is not None and line.startswith(f"{verdict.decided_by} =")
        yield line + ("  <- decides" if decided else "")
    if verdict.terms is None and len(shown) < len(verdict.scores):
        yield f"and {len(verdict.scores) - len(shown)} scores without a limit"


def _term_lines(spans: Sequence[MatchedSpan], text: str) -> Iterator[str]:
    """Each term with its rule and its first place, so that a list can be repaired; what leads to a person is masked."""
    data = text.encode()
    terms = list(different_terms(spans))
    for span, times in terms[:_MANY_TERMS]:
        place = f"byte {span.begin:,}" + (f", {times} times" if times > 1 else "")
        yield f"{span.category}: {mask(span.term)} ({span.rule})  {place}: {_around(data, span)}"
    if len(terms) > _MANY_TERMS:
        yield f"and {len(terms) - _MANY_TERMS} more terms"


def _around(data: bytes, span: MatchedSpan) -> str:
    """A term in brackets with what stands around it. Masked with a margin: half an account is one."""
    margin = 4 * (_TERM_CONTEXT_CHARS + MARGIN_CHARS)
    pieces = (data[max(0, span.begin - margin) : span.begin], data[span.begin : span.end], data[span.end :][:margin])
    before, found, after = (piece.decode("utf-8", "ignore") for piece in pieces)
    masked = mask(before + found + after)
    begin, end = len(before), len(before) + len(found)
    found = masked[begin:end] if end - begin <= _TERM_CHARS else f"{masked[begin : begin + _TERM_CHARS]}..."
    return f"{masked[max(0, begin - _TERM_CONTEXT_CHARS) : begin]}[{found}]{masked[end : end + _TERM_CONTEXT_CHARS]}"


def _difference(text: str, kept: str) -> Iterator[str]:
    """Where a copy begins to differ from the kept document, if their beginnings do not show it."""
    byte = first_difference(text.encode(), kept.encode())
    place = None if byte is None else len(text.encode()[:byte].decode("utf-8", "ignore"))
    if place is None or place < _SHOWN_CHARS:
        return
    begin = place - _CONTEXT_CHARS
    yield f"  the two are the same up to character {place:,}; from {begin:,} on"
    yield f"    this one: {_shown(text[begin:])}"
    yield f"    kept:     {_shown(kept[begin:])}"


def _shown(text: str, limit: int = _SHOWN_CHARS) -> str:
    """The beginning of a text, the cut marked."""
    return text[:limit] + (f" ... ({len(text) - limit:,} more characters)" if len(text) > limit else "")
