"""JSON lines in, documents and damages out: strict RFC 8259, one rule for every line.

orjson parses; what it refuses is refused, and only then is the reason looked for, in an order that names the
cause rather than the symptom. Nothing that orjson refuses is accepted by another way, except a lone surrogate
under `lone_surrogates: replace`.

- Fields: `text` must be a string with something in it. A number as `id` becomes its digits as written; an id
  of another type stays in `meta` and counts as missing, as does an empty one. A `url` that is no string
  stays in `meta`. Everything else goes to `meta` as one JSON object. An integer beyond 64 bits keeps its digits;
  a fraction is kept as a double, and of a repeated key in `meta` the last value counts.
- Line ends: byte 0x0A alone; a CR before it is white space. A file that has CRs only, or is UTF-16 or UTF-32 (by
  byte order mark, or by its NUL bytes) is turned into UTF-8 lines first; byte offsets then count in that text.
- One JSON document over several lines is refused as a whole, with one message.

Costs about 4 ns a byte of input, half of it in orjson (see tests/bench/bench_ingest.py). Memory: a few MB, plus about six times
the longest record, which `max_record_mb` bounds.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

import orjson

from curation.ingest.config import IngestConfig
from curation.ingest.diagnose import Fields, diagnose, exact_id, exact_meta, repeated_keys, replace_surrogates
from curation.ingest.forms import BOM, HEAD_BYTES, Form, encoding_of, form_of
from curation.ingest.lines import LineBlock, cut_lines, is_blank
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.ingest.stored import mark
from curation.ingest.streams import open_stream

__all__ = ["read_jsonl"]

_MISSING: Any = object()


def read_jsonl(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """The documents and damages of a slice of JSON lines, plain or compressed, in order.

    Raises:
        InputError: the file is gone, may not be read, or has another size than planned.
        RunError: the store failed; a retry may help.
    """
    blocks = open_stream(part, report)
    if part.start == 0 and part.end == part.size:
        blocks = _as_lines(blocks, report)
    limit = int(config.max_record_mb * 2**20)
    kept_bytes = config.quarantine_raw_kb * 1024
    reader = _Reader(config, report, kept_bytes)
    for block in cut_lines(blocks, part, report, limit=limit, kept_bytes=kept_bytes):
        if isinstance(block, Damage):
            yield block
        else:
            yield from reader.records(block)


# -- the form of the file -------------------------------------------------------------------------


def _as_lines(blocks: Iterator[bytes | Damage], report: SliceReport) -> Iterator[bytes | Damage]:
    """A whole file as UTF-8 lines, whatever its encoding and line ends; or one Damage."""
    taken, ended = _head(blocks)
    head = b"".join(block for block in taken if isinstance(block, bytes))
    blocks = _again(taken, blocks)
    encoding = encoding_of(head)
    if encoding != "utf-8":
        report.notes[f"decoded_{encoding.replace('-', '_')}"] = 1
        blocks = _decoded(blocks, encoding, report)
        head = head.decode(encoding, "ignore").encode()
    form = form_of(head, whole=ended)
    if form is Form.DOCUMENT:
        yield mark(report, "bad_file", 0, _describe_document(head), head)
        for block in blocks:
            if isinstance(block, Damage):
                yield block
    elif form is Form.CR_LINES:
        report.notes["cr_line_ends"] = 1
        for block in blocks:
            yield block if isinstance(block, Damage) else block.replace(b"\r", b"\n")
    else:
        yield from blocks


def _head(blocks: Iterator[bytes | Damage]) -> tuple[list[bytes | Damage], bool]:
    """The first blocks, up to `HEAD_BYTES`, a Damage or the end of the file; whether it ended."""
    taken: list[bytes | Damage] = []
    size = 0
    for block in blocks:
        taken.append(block)
        size += 0 if isinstance(block, Damage) else len(block)
        if size >= HEAD_BYTES or isinstance(block, Damage):
            return taken, False
    return taken, True


def _again(taken: list[bytes | Damage], blocks: Iterator[bytes | Damage]) -> Iterator[bytes | Damage]:
    yield from taken
    taken.clear()
    yield from blocks


def _describe_document(head: bytes) -> str:
    first = head.removeprefix(BOM).lstrip()[:1].decode()
    what, recipe = ("array", "'.[]'") if first == "[" else ("object", ".")
    return (
        f"expected JSON lines (one object on each line), found one JSON {what} over several lines, or records "
        f"that span lines. Turn it into JSON lines, for example with: jq -c {recipe} FILE"
    )


def _decoded(blocks: Iterator[bytes | Damage], encoding: str, report: SliceReport) -> Iterator[bytes | Damage]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    offset = 0
    fault = None
    for block in blocks:
        if isinstance(block, Damage):
            yield block
        elif fault is None:
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                text = error.object[: error.start].decode(encoding)
                fault = f"the file begins as {encoding}, but stops being it near byte {offset + error.start:,}: {error.reason}"
            offset += len(block)
            yield text.encode()
            if fault:
                yield mark(report, "wrong_encoding", offset, fault)
    if fault is None and decoder.getstate()[0]:
        yield mark(report, "wrong_encoding", offset, f"the file ends inside a character of {encoding}")


# -- records --------------------------------------------------------------------------------------


class _Reader:
    """Judges lines. One object a slice, so that its fields are looked up once."""

    def __init__(self, config: IngestConfig, report: SliceReport, kept_bytes: int) -> None:
        self.fields = Fields(config.text_column, config.id_column, config.url_column)
        self.report = report
        self.kept_bytes = kept_bytes
        self.replace = config.lone_surrogates == "replace"

    def note(self, what: str, count: int = 1) -> None:
        self.report.notes[what] = self.report.notes.get(what, 0) + count

    def records(self, block: LineBlock) -> Iterator[Document | Damage]:
        """One Document or Damage for each line that is not blank."""
        offset, number = block.offset, block.number
        escaped = self.fields.may_be_escaped(block.body)
        loads, document = orjson.loads, self.document
        for line in block.lines:
            try:
                record = loads(line)
            except orjson.JSONDecodeError as error:
                if not is_blank(line):
                    yield self.refused(line, offset, number, error, block.cut_off)
            else:
                yield document(line, record, offset, number, escaped)
            offset += len(line) + 1
            number += 1

    def document(self, line: bytes, record: Any, offset: int, number: int, escaped: bool) -> Document | Damage:
        """A Document from a parsed line, or what is wrong with it."""
        fields = self.fields
        if type(record) is not dict:
            detail = f"expected an object, found {_type_name(record)}"
            return self.damage("not_an_object", line, offset, number, detail)
        text = record.pop(fields.text, _MISSING)
        if type(text) is not str:
            return self.no_text(line, record, text, offset, number)
        if fields.may_repeat(line, text, escaped) and (repeated := repeated_keys(line, fields)):
            detail = f"the key {repeated[0]!r} stands more than once"
            return self.damage("duplicate_key", line, offset, number, detail)
        if not text or text.isspace():
            return self.damage("empty_text", line, offset, number, f"the text has {len(text)} characters, all blank")
        own_id = record.pop(fields.id, None)
        if type(own_id) is not str and own_id is not None:
            own_id = self.odd_id(line, record, own_id)
        url = record.pop(fields.url, None)
        if type(url) is not str and url is not None:
            record[fields.url], url = url, None
        meta = self.meta(line, record) if record else None
        return Document(text, number, offset, own_id or None, url, meta)

    def no_text(self, line: bytes, record: dict[str, Any], text: Any, offset: int, number: int) -> Damage:
        if repeated := repeated_keys(line, self.fields):
            detail = f"the key {repeated[0]!r} stands more than once"
            return self.damage("duplicate_key", line, offset, number, detail)
        if text is _MISSING:
            found = ", ".join(repr(key[:40]) for key in sorted(record)[:10])
            detail = f"expected a field {self.fields.text!r} (ingest.text_column), found {found or 'no field at all'}"
            return self.damage("missing_text", line, offset, number, detail)
        reason = "null_text" if text is None else "wrong_text_type"
        return self.damage(reason, line, offset, number, f"expected a string, found {_type_name(text)}")

    def odd_id(self, line: bytes, record: dict[str, Any], own_id: Any) -> str | None:
        """A number's digits as written; another type goes back to the record."""
        if type(own_id) is int and own_id:
            return str(own_id)
        if type(own_id) in (int, float):
            return exact_id(line, self.fields)
        record[self.fields.id] = own_id
        self.note("odd_id")
        return None

    def meta(self, line: bytes, record: dict[str, Any]) -> str:
        """The remaining fields as JSON, from the line's own bytes where orjson would change a number."""
        try:
            dumped = orjson.dumps(record)
        except orjson.JSONEncodeError:  # nested deeper than it writes
            return exact_meta(line, list(record))
        # Integers beyond 64 bits have become doubles of 1.8e+19 and more.
        return exact_meta(line, list(record)) if b"e+" in dumped else dumped.decode()

    def refused(
        self, line: bytes, offset: int, number: int, error: orjson.JSONDecodeError, cut_off: bool
    ) -> Document | Damage:
        """A line that orjson refuses: taken without its BOM, mended if the config says so, or named."""
        bare = line
        while bare.startswith(BOM):
            bare = bare[len(BOM) :]
        if bare is not line:
            self.note("bom_removed")
            try:
                return self.document(bare, orjson.loads(bare), offset, number, True)
            except orjson.JSONDecodeError as again:
                error = again
        reason, detail = diagnose(bare, error, cut_off=cut_off)
        if reason == "lone_surrogate" and self.replace:
            mended, n_replaced = replace_surrogates(bare)
            self.note("lone_surrogates_replaced", n_replaced)
            return self.document(mended, orjson.loads(mended), offset, number, True)
        return self.damage(reason, line, offset, number, detail)

    def damage(self, reason: str, line: bytes, offset: int, number: int, detail: str) -> Damage:
        length = len(line) if len(line) > self.kept_bytes else None
        return Damage(reason, number, offset, line[: self.kept_bytes], detail, length)


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
