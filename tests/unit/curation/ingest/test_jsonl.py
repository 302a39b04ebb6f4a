"""One rule for every line: strict JSON, exact text, exact ids, and a reason for whatever is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from curation.ingest.config import IngestConfig
from curation.ingest.jsonl import read_jsonl
from curation.ingest.record import Damage, Document, Slice, SliceReport

DEEP = b"[" * 1500 + b"]" * 1500


def read(
    folder: Path, content: bytes, *, start: int = 0, end: int | None = None, **settings: Any
) -> tuple[list[Document | Damage], SliceReport]:
    """What a slice of a file of these bytes gives; the law is checked on the way."""
    path = folder / "x.jsonl"
    path.write_bytes(content)
    report = SliceReport()
    part = Slice(str(path), "jsonl", start, len(content) if end is None else end, len(content))
    found = list(read_jsonl(part, IngestConfig(**settings), report))
    assert report.records == sum(not (isinstance(item, Damage) and item.whole_file) for item in found)
    return found, report


def one(folder: Path, line: bytes, **settings: Any) -> Document | Damage:
    """What one line between two good ones gives; the neighbours are untouched."""
    good = b'{"text":"good"}\n'
    found, _ = read(folder, good + line + b"\n" + good, **settings)
    first, middle, last = found
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    assert (first.line, last.line) == (1, 3)
    assert (middle.line, middle.byte_offset) == (2, len(good))
    assert last.byte_offset == len(good) + len(line) + 1
    return middle


def good(folder: Path, line: bytes, **settings: Any) -> Document:
    document = one(folder, line, **settings)
    assert isinstance(document, Document), document
    return document


def bad(folder: Path, line: bytes, **settings: Any) -> Damage:
    damage = one(folder, line, **settings)
    assert isinstance(damage, Damage), damage
    assert damage.raw == line
    assert damage.detail
    assert damage.raw_length is None
    assert not damage.whole_file
    return damage


TEXTS = {
    "plain": (b'{"text":"a b"}', "a b"),
    "date": (b'{"text":"2024-01-02"}', "2024-01-02"),
    "number in a string": (b'{"text":"1e5"}', "1e5"),
    "escaped NUL": (b'{"text":"a\\u0000b"}', "a\0b"),
    "raw U+2028, U+2029, U+0085": ('{"text":"a\u2028b\u2029c\u0085d"}'.encode(), "a\u2028b\u2029c\u0085d"),
    "escaped CR and LF": (b'{"text":"a\\r\\nb"}', "a\r\nb"),
    "surrogate pair": (b'{"text":"\\ud83d\\ude00"}', "\U0001f600"),
    "astral": ('{"text":"\U0001f600"}'.encode(), "\U0001f600"),
    "outer blanks": (b'{"text":" a "}', " a "),
    "BOM inside": ('{"text":"a\ufeffb"}'.encode(), "a\ufeffb"),
    "blanks around": (b' \t{ "text" : "a" } \r', "a"),
    "decomposed": ('{"text":"e\u0301"}'.encode(), "e\u0301"),
    "escaped key": (b'{"te\\u0078t":"a"}', "a"),
    "key in a text": (b'{"text":"say \\"text\\": and \\"text\\": again"}', 'say "text": and "text": again'),
    "key as value": (b'{"type":"text","text":"a"}', "a"),
    "key in meta": (b'{"meta":{"text":"x","id":"y"},"text":"a","more":[{"text":"z"}]}', "a"),
    "escaped backslash before u": (b'{"text":"\\\\ud83d"}', "\\ud83d"),
    "text last, long meta": (b'{"a":"' + b"x" * 5000 + b'","text":"a"}', "a"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_what_the_json_says(name: str, tmp_path: Path) -> None:
    """The text is the JSON string, character for character."""
    line, text = TEXTS[name]
    assert good(tmp_path, line).text == text


REFUSED = {
    "cut": (b'{"text":"a', "bad_json"),
    "NaN": (b'{"text":"a","score":NaN}', "bad_json"),
    "Infinity": (b'{"text":"a","score":-Infinity}', "bad_json"),
    "single quotes": (b"{'text':'a'}", "bad_json"),
    "trailing comma": (b'{"text":"a",}', "bad_json"),
    "comma after the object": (b'{"text":"a"},', "bad_json"),
    "comment": (b"# comment", "bad_json"),
    "comment behind": (b'{"text":"a"} // why', "bad_json"),
    "bad escape": (b'{"text":"\\x41"}', "bad_json"),
    "raw tab": (b'{"text":"a\tb"}', "bad_json"),
    "raw CR": (b'{"text":"a\rb"}', "bad_json"),
    "leading zero": (b'{"text":"a","n":01}', "bad_json"),
    "number beyond doubles": (b'{"text":"a","n":1e999}', "bad_json"),
    "5,000 digits": (b'{"text":"a","n":' + b"7" * 5000 + b"}", "bad_json"),
    "deep nesting": (b'{"text":"a","n":' + DEEP + b"}", "bad_json"),
    "deep and broken": (b'{"text":"a","n":' + b"[" * 100_000, "bad_json"),
    "many quotes and no end": (b'{"text":"' + b'\\"' * 200_000, "bad_json"),
    "a word": (b"text", "bad_json"),
    "raw NUL": (b'{"text":"a\0b"}', "nul_byte"),
    "NULs only": (b"\0" * 50, "nul_byte"),
    "latin-1": (b'{"text":"caf\xe9"}', "bad_utf8"),
    "overlong": (b'{"text":"\xc0\xaf"}', "bad_utf8"),
    "surrogate in UTF-8": (b'{"text":"\xed\xa0\x80"}', "bad_utf8"),
    "cut character": (b'{"text":"\xe4\xb8', "bad_utf8"),
    "beyond Unicode": (b'{"text":"\xf4\x90\x80\x80"}', "bad_utf8"),
    "high surrogate": (b'{"text":"a \\ud83d b"}', "lone_surrogate"),
    "low surrogate": (b'{"text":"\\udc00"}', "lone_surrogate"),
    "reversed pair": (b'{"text":"\\udc00\\ud800"}', "lone_surrogate"),
    "high, then a pair": (b'{"text":"\\ud83d\\ud83d\\ude00"}', "lone_surrogate"),
    "surrogate in meta": (b'{"text":"a","m":"\\uD800"}', "lone_surrogate"),
    "surrogate and broken": (b'{"text":"\\ud800"', "bad_json"),
    "two objects": (b'{"text":"a"}{"text":"b"}', "two_objects"),
    "two objects, blank": (b'{"text":"a"} {"text":"b"}', "two_objects"),
    "second object cut": (b'{"text":"a"}{"tex', "two_objects"),
    "braces in a text": (b'{"text":"}{"}{"text":"b"}', "two_objects"),
    "object and number": (b'{"text":"a"} 5', "two_objects"),
    "two numbers": (b"4 5", "two_objects"),
    "two strings": (b'"a" "b"', "two_objects"),
    "array": (b"[1,2]", "not_an_object"),
    "string": (b'"text"', "not_an_object"),
    "number": (b"42", "not_an_object"),
    "null": (b"null", "not_an_object"),
    "true": (b"true", "not_an_object"),
    "empty object": (b"{}", "missing_text"),
    "other key": (b'{"Text":"a"}', "missing_text"),
    "text in meta only": (b'{"meta":{"text":"a"}}', "missing_text"),
    "null text": (b'{"text":null}', "null_text"),
    "number text": (b'{"text":5}', "wrong_text_type"),
    "false text": (b'{"text":false}', "wrong_text_type"),
    "list text": (b'{"text":["a"]}', "wrong_text_type"),
    "object text": (b'{"text":{"a":"b"}}', "wrong_text_type"),
    "empty": (b'{"text":""}', "empty_text"),
    "blank": ('{"text":" \\n\\t\u3000"}'.encode(), "empty_text"),
    "text twice": (b'{"text":"a","text":"b"}', "duplicate_key"),
    "text twice, equal": (b'{"text":"a","text":"a"}', "duplicate_key"),
    "text twice, long last": (b'{"text":"a","text":"' + b"b" * 5000 + b'"}', "duplicate_key"),
    "text twice, long first": (b'{"text":"' + b"b" * 5000 + b'","text":"a"}', "duplicate_key"),
    "text twice, far apart": (b'{"text":"a","m":"' + b"x" * 5000 + b'","text":"b"}', "duplicate_key"),
    "text twice, one escaped": (b'{"te\\u0078t":"a","text":"b"}', "duplicate_key"),
    "text twice, both escaped": (b'{"te\\u0078t":"a","\\u0074ext":"b"}', "duplicate_key"),
    "text twice, blank before the colon": (b'{"text" :"a","text" : "b"}', "duplicate_key"),
    "text twice, wrong types": (b'{"text":1,"text":null}', "duplicate_key"),
    "id twice": (b'{"id":"a","id":"b","text":"c"}', "duplicate_key"),
    "id twice, around the text": (b'{"id":"a","text":"c","id":"b"}', "duplicate_key"),
    "id twice, one escaped": (b'{"id":"a","text":"c","\\u0069d":"b"}', "duplicate_key"),
    "id twice, behind the text": (b'{"text":"c","id":"a","id":"b"}', "duplicate_key"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_refusal_has_its_reason(name: str, tmp_path: Path) -> None:
    """A line that is not taken is named for its cause, with its bytes and its place."""
    line, reason = REFUSED[name]
    assert bad(tmp_path, line).reason == reason


@pytest.mark.parametrize(
    "name", [name for name, (_, why) in REFUSED.items() if why in ("bad_json", "bad_utf8", "nul_byte")]
)
def test_a_last_line_without_newline_is_truncated(name: str, tmp_path: Path) -> None:
    """The reason of a broken last line is that it was cut, unless its bytes say more."""
    line, reason = REFUSED[name]
    (damage,), _ = read(tmp_path, line)
    assert isinstance(damage, Damage)
    cut_character = name == "cut character"
    assert damage.reason == ("truncated_line" if reason == "bad_json" or cut_character else reason)


def test_replacing_lone_surrogates_is_the_only_mending(tmp_path: Path) -> None:
    """With `replace`, U+FFFD stands for each half pair, is counted, and every other rule still holds."""
    line = b'{"text":"a \\ud83d b \\uDC00 \\ud83d\\ude00 \\\\ud800","id":"\\ud800"}'
    document = good(tmp_path, line, lone_surrogates="replace")
    assert document.text == "a \ufffd b \ufffd \U0001f600 \\ud800"
    assert document.id == "\ufffd"
    _, report = read(tmp_path, line, lone_surrogates="replace")
    assert report.notes == {"lone_surrogates_replaced": 3}
    for name, (other, reason) in REFUSED.items():
        if reason != "lone_surrogate":
            assert one(tmp_path, other, lone_surrogates="replace").reason == reason, name  # type: ignore[union-attr]
    twice = b'{"text":"\\ud800","text":"b"}'
    assert one(tmp_path, twice, lone_surrogates="replace").reason == "duplicate_key"  # type: ignore[union-attr]


IDS = {
    "string": (b'"a-1"', "a-1", None),
    "integer": (b"17", "17", None),
    "zero": (b"0", "0", None),
    "minus zero": (b"-0", "-0", None),
    "negative": (b"-5", "-5", None),
    "2^53 + 1": (b"9007199254740993", "9007199254740993", None),
    "30 digits": (b"123456789012345678901234567890", "123456789012345678901234567890", None),
    "fraction": (b"1.50", "1.50", None),
    "exponent": (b"1E5", "1E5", None),
    "null": (b"null", None, None),
    "empty": (b'""', None, None),
    "boolean": (b"true", None, {"id": True}),
    "list": (b'["a"]', None, {"id": ["a"]}),
    "object": (b'{"$oid":"5f"}', None, {"id": {"$oid": "5f"}}),
}


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("layout", ['{"id":%s,"text":"a"}', '{"text":"a", "id" : %s }'])
def test_ids_are_kept_as_written(name: str, layout: str, tmp_path: Path) -> None:
    """A number becomes its digits; what cannot be an id stays in meta; without one there is none."""
    value, expected, meta = IDS[name]
    document = good(tmp_path, layout.replace("%s", value.decode()).encode())
    assert document.id == expected
    assert (json.loads(document.meta) if document.meta else None) == meta


META = {
    "none": (b"", None),
    "some": (b',"a":1,"b":[true,null],"c":{"d":"\xc3\xa9"}', '{"a":1,"b":[true,null],"c":{"d":"é"}}'),
    "floats": (b',"a":1.5,"b":0.1', '{"a":1.5,"b":0.1}'),
    "64 bits": (
        b',"a":18446744073709551615,"b":-9223372036854775808',
        '{"a":18446744073709551615,"b":-9223372036854775808}',
    ),
    "more bits": (
        b',"a":18446744073709551616, "b": [-9223372036854775809]',
        '{"a":18446744073709551616,"b":[-9223372036854775809]}',
    ),
    "deep": (b',"a":' + b"[" * 300 + b"]" * 300, '{"a":' + "[" * 300 + "]" * 300 + "}"),
    "odd url": (b',"url":["u"]', '{"url":["u"]}'),
    "null url": (b',"url":null', None),
    "repeated key": (b',"a":1,"a":2', '{"a":2}'),
    "escaped key": (b',"\\u00e9":1e30', '{"é":1e30}'),
    "quote in a key": (b',"\\"":1e30', '{"\\"":1e30}'),
    "surrounding": (b',"source":"x","date":"2024-01-02"', '{"source":"x","date":"2024-01-02"}'),
}


@pytest.mark.parametrize("name", META)
def test_other_fields_go_to_meta(name: str, tmp_path: Path) -> None:
    """Fields that are not read are kept as one JSON object, integers of any length exactly."""
    extra, expected = META[name]
    assert good(tmp_path, b'{"id":"i","text":"a"' + extra + b"}").meta == expected
    assert good(tmp_path, b'{"url":"u","text":"a"' + extra + b"}").url == (None if "url" in name else "u")


def test_columns_are_configured(tmp_path: Path) -> None:
    """Other names are read as well, non-ASCII ones and those spelled with escapes included."""
    settings = {"text_column": "正文", "id_column": 'n"r/', "url_column": "link"}
    record = {"正文": "a", 'n"r/': 5, "link": "l", "text": "meta", "id": 7}
    for line in (json.dumps(record), json.dumps(record, ensure_ascii=False), json.dumps(record).replace("/", "\\/")):
        (document,), _ = read(tmp_path, line.encode(), **settings)
        assert isinstance(document, Document)
        assert (document.text, document.id, document.url) == ("a", "5", "l")
        assert json.loads(document.meta or "") == {"text": "meta", "id": 7}
    twice = '{"正文":"a","\\u6B63\\u6587":"b"}'.encode()
    assert read(tmp_path, twice, **settings)[0][0].reason == "duplicate_key"  # type: ignore[union-attr]


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    """CRLF and blank lines are harmless and counted; BOMs before any line are removed and counted."""
    content = b'\xef\xbb\xbf{"text":"a"}\r\n\r\n  \t\n\n\xef\xbb\xbf{"text":"b"}\n\xef\xbb\xbf\n{"text":"c"}'
    found, report = read(tmp_path, content)
    assert [(item.text, item.line) for item in found if isinstance(item, Document)] == [("a", 1), ("b", 5), ("c", 7)]
    assert report.blank_lines == 4
    assert report.records == 3
    assert report.notes == {"bom_removed": 2, "crlf": 2}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", [True, False])
def test_wide_encodings_are_decoded(encoding: str, mark: bool, tmp_path: Path) -> None:
    """UTF-16 and UTF-32 are recognised by their mark or their NUL bytes."""
    text = '{"text": "汉字 \U0001f600 ģ"}\r\n{"text": "b"}\r\n'
    found, report = read(tmp_path, (("\ufeff" if mark else "") + text).encode(encoding))
    assert [item.text for item in found if isinstance(item, Document)] == ["汉字 \U0001f600 ģ", "b"]
    assert report.notes[f"decoded_{encoding.replace('-', '_')}"] == 1


@pytest.mark.parametrize("tail", [b"\x00\xd8a\x00", b"\x00"])
def test_a_fault_in_a_wide_encoding_is_named(tail: bytes, tmp_path: Path) -> None:
    """What is decoded before the fault is kept, and the file is marked."""
    found, report = read(tmp_path, '\ufeff{"text": "a"}\n'.encode("utf-16-le") + tail)
    assert isinstance(found[0], Document)
    assert report.damaged == ["wrong_encoding"]


DOCUMENTS = {
    "indented array": json.dumps([{"text": "a", "n": i} for i in range(4000)], indent=2).encode(),
    "array, an object a line": b'[{"text":"a"},\n{"text":"b"}]\n',
    "array on one line": b'[{"text":"a"},{"text":"b"}]\n',
    "huge array on one line": json.dumps([{"text": "a", "n": i} for i in range(9000)]).encode(),
    "array, bracket and brace": b'[{\n"text":"a"}]',
    "indented object": json.dumps({"text": "a"}, indent=1).encode(),
    "indented objects": b'{\n "text": "a"\n}\n{\n "text": "b"\n}\n',
    "object, key on the first line": b'{"id": 5,\n "text": "a"}\n',
    "with a BOM and blank lines": b'\xef\xbb\xbf\n\n[\n  {"text": "a"}\n]',
    "in UTF-16": '\ufeff[\n  {"text": "a"}\n]'.encode("utf-16-le"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_json_document_is_refused_as_a_whole(name: str, tmp_path: Path) -> None:
    """A file that is not JSON lines is one clear entry, not a bad line for each of its lines."""
    found, report = read(tmp_path, DOCUMENTS[name])
    (damage,) = found
    assert isinstance(damage, Damage)
    assert (damage.reason, damage.whole_file) == ("bad_file", True)
    assert "jq -c" in damage.detail
    assert report.damaged == ["bad_file"]
    assert report.records == 0
    assert len(report.sha256) == 64


LINES = {
    "first line cut": b'{"text":"a\n{"text":"b"}\n',
    "first line cut at a comma": b'{"id":"a",\n{"text":"b"}\n',
    "first line an array": b'[1,2,3]\n{"text":"b"}\n',
    "first line a bracket alone": b'{"text":"b"}\n[\n',
    "one long line": b'{"text":"' + b"b" * 100_000 + b'"}',
}


@pytest.mark.parametrize("name", LINES)
def test_a_damaged_first_line_is_no_json_document(name: str, tmp_path: Path) -> None:
    """One bad line does not condemn a line file."""
    found, report = read(tmp_path, LINES[name])
    assert report.damaged == []
    assert sum(isinstance(item, Document) for item in found) == 1


def test_old_mac_line_ends_are_read(tmp_path: Path) -> None:
    """Where CRs alone stand between objects, they end lines; a CR inside a good line does not."""
    found, report = read(tmp_path, b'{"text":"a"}\r{"text":"b"}\r')
    assert [(item.text, item.line, item.byte_offset) for item in found if isinstance(item, Document)] == [
        ("a", 1, 0),
        ("b", 2, 13),
    ]
    assert report.notes == {"cr_line_ends": 1}
    assert good(tmp_path, b'{"text":\r"a"}').text == "a"


@pytest.mark.parametrize("length", [1023, 1024, 1025, 5000, 3_000_000])
@pytest.mark.parametrize("newline", [b"\n", b""])
def test_a_record_beyond_the_limit_is_cut_from_memory(length: int, newline: bytes, tmp_path: Path) -> None:
    """A record over max_record_mb gives its first bytes and its length; its neighbours are untouched."""
    line = b'{"text":"' + b"x" * (length - 11) + b'"}'
    before, after = b'{"text":"before"}\n', b'{"text":"after"}\n' if newline else b""
    found, report = read(tmp_path, before + line + newline + after, max_record_mb=1 / 1024, quarantine_raw_kb=1)
    item = found[1]
    if length <= 1024:
        assert isinstance(item, Document)
    else:
        assert isinstance(item, Damage)
        assert (item.reason, item.line, item.byte_offset) == ("too_long", 2, len(before))
        assert (item.raw, item.raw_length) == (line[:1024], length)
        assert f"{length:,}" in item.detail
    assert report.records == len(found) == (3 if newline else 2)
    if newline:
        assert isinstance(found[2], Document)
        assert (found[2].line, found[2].byte_offset) == (3, len(before) + length + 1)


def test_a_damaged_record_keeps_its_first_bytes(tmp_path: Path) -> None:
    """Of a long damaged record only the first quarantine_raw_kb are stored, with its full length."""
    (damage,), _ = read(tmp_path, b"{" * 3000 + b"\n", quarantine_raw_kb=1)
    assert isinstance(damage, Damage)
    assert (len(damage.raw), damage.raw_length) == (1024, 3000)


def test_records_cut_by_a_broken_stream_are_named(tmp_path: Path) -> None:
    """The record in which a stream breaks off is quarantined; those of the next stream follow."""
    content = b"".join(b'{"text":"%d"}\n' % i for i in range(100))
    broken = gzip.compress(content)[:-12]
    found, report = read(tmp_path, broken + gzip.compress(content))
    texts = [item.text for item in found if isinstance(item, Document)]
    assert texts[-100:] == [str(i) for i in range(100)]
    assert texts[:90] == [str(i) for i in range(90)]
    assert len(report.damaged) == 1
    # Behind the cut, the next stream's head is decoded as noise: refused, or marked with the file.
    assert any(isinstance(item, Damage) and not item.whole_file for item in found)


def test_hostile_key_names_are_shown_harmless(tmp_path: Path) -> None:
    """What a log line may show of a record holds no control characters and is short."""
    damage = bad(tmp_path, b'{"\\u001b[31m' + b"x" * 5000 + b'":1}')
    assert damage.reason == "missing_text"
    assert "\x1b" not in damage.detail
    assert len(damage.detail) < 200
