"""`broken.jsonl` and `cut.jsonl.gz`: every kind of damage that a file of JSON lines can have, between good lines.

Each bad line is written byte by byte with the reason that a reader should give (a key of `DAMAGE` in
`curation/ingest/record.py`); odd lines that are good all the same stand among them. `too_long` is left out: its
line would be longer than all other input together.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["BAD_LINES", "ODD_LINES", "LineFile", "broken_file", "cut_gzip"]

BAD_LINES: tuple[tuple[str, bytes], ...] = (
    ("bad_json", b'{"id":"b01","text":"the download stopped in the mid'),
    ("bad_json", b"{'id':'b02','text':'single quotes, as some languages print an object'}"),
    ("bad_json", b'{"id":"b03","text":"a comma too many",}'),
    ("bad_json", b'{"id":"b04","text":"NaN is not JSON","score":NaN}'),
    ("bad_json", b'{"id":"b05","text":"a raw tab\there inside the string"}'),
    ("bad_json", b"// a comment that somebody left"),
    ("bad_json", b'{"id":"b07","text":"an escape that JSON does not know: \\x41"}'),
    ("bad_json", b'INFO 2026-03-02 10:24:11 wrote {"id":"b08"} to disk'),
    ("bad_json", b'"id":"b09","text":"the brace was lost"}'),
    ("bad_json", b'{"id":"b10","text":"Infinity is no number either","score":-Infinity}'),
    ("bad_utf8", '{"id":"b11","text":"这一行是用国标码写的"}'.encode("gb18030")),
    ("bad_utf8", '{"id":"b12","text":"この行はシフトＪＩＳです"}'.encode("cp932")),
    ("bad_utf8", '{"id":"b13","text":"Äpfel und Birnen in Latin-1"}'.encode("latin-1")),
    ("bad_utf8", b'{"id":"b14","text":"bytes that no charset has here: \xff\xfe"}'),
    ("bad_utf8", '{"id":"b15","text":"一个字被切成两半：'.encode() + "半".encode()[:2] + b'"}'),
    ("nul_byte", b'{"id":"b16","text":"a lost block ' + bytes(512) + b' begins again"}'),
    ("nul_byte", bytes(4096)),
    ("lone_surrogate", b'{"id":"b18","text":"half of a pair: \\ud83d and nothing after it"}'),
    ("lone_surrogate", b'{"id":"b19","text":"a pair the wrong way round: \\ude00\\ud83d"}'),
    ("two_objects", b'{"id":"b20","text":"two files were joined"}{"id":"b21","text":"without a line end"}'),
    ("two_objects", b'{"id":"b22","text":"an object"} ["and a list"]'),
    ("not_an_object", b'["b23", "a list instead of an object"]'),
    ("not_an_object", b'"only a string"'),
    ("not_an_object", b"42"),
    ("not_an_object", b"null"),
    ("missing_text", b'{"id":"b27"}'),
    ("missing_text", b'{"id":"b28","content":"the text is in a field of another name"}'),
    ("missing_text", b"{}"),
    ("null_text", b'{"id":"b30","text":null}'),
    ("wrong_text_type", b'{"id":"b31","text":20260302}'),
    ("wrong_text_type", b'{"id":"b32","text":["a","list","of","lines"]}'),
    ("wrong_text_type", b'{"id":"b33","text":{"zh":"\\u6587","en":"text"}}'),
    ("wrong_text_type", b'{"id":"b34","text":true}'),
    ("empty_text", b'{"id":"b35","text":""}'),
    ("empty_text", b'{"id":"b36","text":" \\n\\t \\r\\n"}'),
    ("empty_text", '{"id":"b37","text":"　　"}'.encode()),
    ("duplicate_key", b'{"id":"b38","text":"which of the two","text":"is the text?"}'),
    ("duplicate_key", b'{"id":"b39","text":"which id is it?","id":"b40"}'),
)
"""Reason and bytes of each bad line, without its line end."""

ODD_LINES: tuple[bytes, ...] = (
    b'\xef\xbb\xbf{"id":"odd-01","text":"A byte order mark stands before this line, and the line is good."}',
    b'{"id":"odd-02","text":"This line ends as lines do on Windows."}\r',
    b'{"id":20260302,"text":"A number is the id of this line."}',
    b'{"text":"This line has no id at all and is given one."}',
    b'{"id":"odd-05","text":"Other fields are kept.","meta":{"text":"inner","links":["https://example.org/a"]},"n":1.5}',
    '{"id":"odd-06","text":"A line separator\u2028and a next-line character\u0085 end no line."}'.encode(),
    b'{"id":"odd-07","text":"An escaped NUL \\u0000 is legal JSON."}',
    b'{"id":"odd-08","text":"An integer of thirty digits.","n":123456789012345678901234567890}',
    b'{"id":"odd-09","text":"Escaped pairs are whole: \\ud83d\\ude00 \\u4e2d\\u6587"}',
    b'   {"id":"odd-10","text":"Blanks before the object are allowed."}  ',
    b'{"url":"https://example.org/odd-11","text":"The order of the fields does not matter.","id":"odd-11"}',
    b'{"id":"odd-12","text":"2026-03-02"}',
    b'{"id":"odd-13","text":"The key \\"text\\" is named in this text: \\"text\\": \\"id\\"."}',
)
"""Lines that are good although a careless reader stumbles over them."""

LAST_LINE = b'{"id":"b41","text":"the last line was never finis'


@dataclass(slots=True)
class LineFile:
    """The bytes of a file of JSON lines and what a right reader finds in it."""

    content: bytes
    good: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    blank_lines: int = 0
    damaged: tuple[str, ...] = ()
    """Reasons for which the file as a whole is marked."""


def broken_file(good: Sequence[dict[str, str]]) -> LineFile:
    """Bad and odd lines in turn, with at least one plain good line after each, and a last line that is cut off.

    Args:
        good: as many rows as there are bad lines, or more.
    """
    made = LineFile(b"", blank_lines=2 * (len(good) // 12))
    lines: list[bytes] = []
    for number, row in enumerate(good):
        lines += ODD_LINES[number : number + 1]
        lines += [line for _, line in BAD_LINES[number : number + 1]]
        lines.append(json.dumps(row, ensure_ascii=False).encode())
        if number % 12 == 11:
            lines += [b"", b"  \t "]
    made.good = len(good) + len(ODD_LINES)
    made.bad.update(reason for reason, _ in BAD_LINES)
    made.bad["truncated_line"] += 1
    made.content = b"\n".join([*lines, LAST_LINE])
    return made


def cut_gzip(rows: Iterable[dict[str, str]]) -> LineFile:
    """A gzip file whose last third was never written: cut so that exactly half of a line can still be read."""
    lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
    whole = len(lines) * 2 // 3
    half = lines[whole][: len(lines[whole]) // 2]
    deflate = zlib.compressobj(6, zlib.DEFLATED, 31)
    # The flush ends a block on a byte, so what lies before the cut decodes to the same bytes with any decoder.
    content = deflate.compress(b"".join(lines[:whole]) + half) + deflate.flush(zlib.Z_SYNC_FLUSH)
    rest = deflate.compress(b"".join(lines[whole:])[len(half) :]) + deflate.flush()
    return LineFile(content + rest[:4], whole, Counter({"truncated_line": 1}), damaged=("truncated_stream",))
