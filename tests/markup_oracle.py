"""What the markup kernels should find, told slowly: regular expressions over bytes, one rule after the other."""

from __future__ import annotations

import re

from curation.markup.kinds import Kind
from curation.markup.words import ATTRIBUTES, ENTITIES, PAGE_SCRIPT, SHORTCODES, STYLE, TAGS, Table, packed

STRONG = frozenset(b"{}[]();=<>|&+*$_\\")
DENSE = frozenset(b"{}[]();=<>|&+*$_\\\"':,!")
BLANKS = frozenset(b" \t\n\v\f\r")
PATH = frozenset(b"MmLlHhVvCcSsQqTtAaZz")

Found = tuple[int, Kind]
"""Where something ends, and what it is."""


NAMES = {id(table): frozenset(table.tolist()) for table in (ATTRIBUTES, ENTITIES, PAGE_SCRIPT, SHORTCODES, STYLE, TAGS)}


def known(table: Table, name: bytes) -> bool:
    return packed(name.decode("ascii")) in NAMES[id(table)]


# -- first pass ------------------------------------------------------------------------------------


def fence(data: bytes, i: int) -> int | None:
    """End of the fenced block whose first line begins at `i`."""
    opening = re.compile(rb"[ \t>]*(`{3,}|~{3,})([^\n]*)").match(data, i)
    if not opening or (opening[1][:1] == b"`" and b"`" in opening[2]):
        return None
    length = min(len(opening[1]), 8)
    closing = re.compile(rb"\n[ \t>]*%b{%d,}[ \t\r]*(?=\n|\Z)" % (re.escape(opening[1][:1]), length))
    found = closing.search(data, opening.end())
    return found.end() if found else None


def attribute(name: bytes, rest: bytes, is_known: bool) -> str:
    """What an attribute says about its tag; `rest` is what stands behind its name."""
    has_value = rest[:1] == b"="
    low = name.lower()
    if not has_value and not is_known:
        return ""
    if rest[:2] == b"={" or low[:2] == b"v-":
        return "source"
    if known(ATTRIBUTES, low) or (len(low) > 5 and low[:5] in (b"data-", b"aria-")):
        return "page"
    return "page" if len(low) > 3 and low[:2] == b"on" and has_value else ""


def tag(data: bytes, i: int) -> tuple[int, Kind, bytes] | None:
    """End, kind and name of the tag at `i`."""
    text = data[i : i + 4000]
    head = re.match(rb"</?([A-Za-z][A-Za-z0-9:_-]*)(?=[\s/>])", text)
    if not head:
        return None
    name = head[1].lower()
    is_known = (b"-" in name and text[1:2] == b"/") or known(TAGS, name)
    said = set()
    k = head.end()
    while k < len(text) and text[k] not in b"<>":
        value = re.compile(rb"=(?:\s*(?:\"[^\"]*\"|'[^']*'))?").match(text, k)
        if value:
            k = value.end()
            continue
        if text[k - 1 : k] in (b'"', b"'") or text[k - 1] in BLANKS:
            word = re.compile(rb"[A-Za-z][A-Za-z0-9:_-]*").match(text, k)
            if word:
                k = word.end()
                said.add(attribute(word[0], text[k : k + 2], is_known))
                continue
            if text[k] in b"@:#[(*{":
                said.add("source")
        k += 1
    if text[k : k + 1] != b">" or not (is_known or said & {"page", "source"}):
        return None
    kind = Kind.CODE if "source" in said else Kind.PAGE_TAG if "page" in said else Kind.BARE_TAG
    return i + k + 1, kind, name


def calls(text: bytes) -> int:
    """Words of PAGE_SCRIPT before a sign."""
    words = re.finditer(rb"([A-Za-z_@][A-Za-z0-9_]*)(?=([.(\[=\"'])?)", text)
    return sum(word[2] is not None and known(PAGE_SCRIPT, word[1]) for word in words)


def is_program(text: bytes) -> bool:
    visible = [byte for byte in text if byte not in BLANKS]
    return sum(byte in STRONG for byte in visible) >= 0.06 * len(visible) or calls(text) > 0


def element(data: bytes, after: int, name: bytes, kind: Kind) -> Found:
    """End and kind of the script or style element whose opening tag ends at `after`."""
    whole = Kind.SCRIPT if name == b"script" else Kind.CSS
    mark = re.compile(rb"<(/?)%b(?![A-Za-z0-9:_-])" % name, re.IGNORECASE).search(data, after)
    if not mark or not mark[1]:
        cut_off_data = mark is None and data[after:].lstrip(bytes(BLANKS))[:1] in (b"{", b"[")
        if kind == Kind.PAGE_TAG:
            return (len(data), whole) if cut_off_data else (after, whole)
        return after, kind
    body = data[after : mark.start()]
    end = re.compile(rb"[^>]{0,20}").match(data[: mark.start() + 20], mark.start())
    assert end
    stop = min(end.end() + 1, len(data))
    if kind == Kind.PAGE_TAG:
        return stop, whole
    if kind == Kind.CODE or re.search(rb"(?:\A|\n)\s*(?:import|export) ", body):
        return stop, Kind.CODE
    return (stop, whole) if is_program(body) else (after, kind)


def angle(data: bytes, i: int) -> Found | None:
    """What opens with the `<` at `i`."""
    if data.startswith(b"<!--", i) and (end := data.find(b"-->", i + 4)) >= 0:
        return end + 3, Kind.PAGE_TAG
    if declared := re.match(rb"<!(?:\[|[dD])[^>]*>", data[i : i + 300]):
        return i + declared.end(), Kind.PAGE_TAG
    if template := re.match(rb"<([?%])[^\n]*?\1>", data[i : i + 300]):
        return i + template.end(), Kind.TEMPLATE
    found = tag(data, i)
    if not found:
        return None
    stop, kind, name = found
    if data[i + 1 : i + 2] != b"/" and name in (b"script", b"style"):
        return element(data, stop, name, kind)
    return stop, kind


def entity(data: bytes, i: int) -> Found | None:
    text = data[i : i + 12]
    if numeric := re.match(rb"&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,7});", text):
        return i + numeric.end(), Kind.ENTITY
    named = re.match(rb"&([A-Za-z0-9]{1,8});", text)
    return (i + named.end(), Kind.ENTITY) if named and known(ENTITIES, named[1]) else None


def backticks(data: bytes, i: int) -> tuple[int | None, int]:
    """End of the code in backticks, and where to go on."""
    opening = re.compile(rb"`+").match(data, i)
    assert opening
    for mark in re.compile(rb"`+|\n").finditer(data, opening.end()):
        if mark[0] == b"\n" or mark.start() >= i + 400:
            break
        if len(mark[0]) == len(opening[0]):
            return mark.end(), mark.end()
    return None, opening.end()


def bracket(data: bytes, i: int) -> Found | None:
    code = re.match(rb"\[/?([A-Za-z0-9:_-]{1,40})(?=[\] =])[^\n\]]*\]", data[i : i + 300])
    if not code or not known(SHORTCODES, code[1]) or data[i + code.end() : i + code.end() + 1] == b"(":
        return None
    return i + code.end(), Kind.TEMPLATE


def link(data: bytes, i: int) -> tuple[int, int] | None:
    """Start and end of the link whose `://` is at `i`."""
    found = re.compile(rb"://[^\s\x80-\xff\"'<>)\]}`]*\)?").match(data, i)
    if not found:
        return None
    scheme = re.compile(rb"[A-Za-z]{0,10}\Z").search(data[max(i - 10, 0) : i])
    assert scheme
    start = i - len(scheme[0])
    return (start - 2 if start > 1 and data[start - 2 : start] == b"](" else start), found.end()


def style(data: bytes, i: int) -> tuple[int, int] | None:
    """Start and end of the style property whose `:` is at `i`."""
    name = re.compile(rb"[A-Za-z-]{1,40}\Z").search(data[max(i - 40, 0) : i])
    if not name:
        return None
    start = i - len(name[0])
    if start > 0 and data[start - 1] not in BLANKS | frozenset(b"{;"):
        return None
    plain = re.sub(rb"\A-[^-]*-?", b"", name[0])
    first = re.match(rb"[A-Za-z]*", plain)
    value = re.match(rb":[^\n{;}]+[;}]", data[i : i + 200])
    if not first or not value or not known(STYLE, first[0]):
        return None
    return start, i + value.end()


def span(data: bytes, i: int) -> tuple[int, int, Kind, int] | None:
    """Start, end, kind of what stands at `i`, and where to go on."""
    sign = data[i : i + 1]
    found: Found | None = None
    if sign == b"<":
        found = angle(data, i)
    elif sign == b"&":
        found = entity(data, i)
    elif sign == b"`":
        end, after = backticks(data, i)
        return i, end or i, Kind.CODE, after
    elif sign == b"{":
        template = re.match(rb"\{\{(?!\{)[^\n]*?\}\}|\{%[^\n]*?%\}", data[i : i + 300])
        found = (i + template.end(), Kind.TEMPLATE) if template else None
    elif sign == b"[":
        found = bracket(data, i)
    elif sign == b":":
        for rule, kind in ((link, Kind.LINK), (style, Kind.CSS)):
            if place := rule(data, i):
                return place[0], place[1], kind, place[1]
    return (i, found[0], found[1], found[0]) if found else None


def selectors(data: bytes, kinds: bytearray) -> None:
    """Give selectors and braces around style properties to CSS."""
    for i, byte in enumerate(data):
        if kinds[i] != Kind.TEXT:
            continue
        if byte == ord("{"):
            k = next((k for k in range(i + 1, len(data)) if data[k] not in BLANKS), len(data))
            if k == len(data) or kinds[k] != Kind.CSS:
                continue
            start = i
            while start > 0 and i - start < 1000 and kinds[start - 1] == Kind.TEXT and data[start - 1] not in b"{};\n":
                start -= 1
            kinds[start : i + 1] = bytes([Kind.CSS]) * (i + 1 - start)
        elif byte == ord("}"):
            k = next((k for k in range(i - 1, -1, -1) if data[k] not in BLANKS), -1)
            if k >= 0 and kinds[k] == Kind.CSS:
                kinds[i] = Kind.CSS


def first_pass(data: bytes) -> bytearray:
    """The kind of each byte by tags, scripts, entities, styles, marks and marked code."""
    kinds = bytearray(len(data))
    i, line_start = 0, True
    while i < len(data):
        if line_start and (stop := fence(data, i)):
            kinds[i:stop] = bytes([Kind.CODE]) * (stop - i)
            i, line_start = stop, False
            continue
        line_start = data[i : i + 1] == b"\n"
        found = span(data, i)
        if not found:
            i += 1
            continue
        start, stop, kind, after = found
        kinds[start:stop] = bytes([kind]) * (stop - start)
        i = max(after, i + 1)
    if Kind.CSS in kinds:
        selectors(data, kinds)
    return kinds


# -- second pass -----------------------------------------------------------------------------------


def is_machine_made(data: bytes, kinds: bytes) -> bool:
    """Whether a window of a long line is minified code or data."""
    visible = [b for b, k in zip(data, kinds, strict=True) if b not in BLANKS and k == Kind.TEXT]
    n = len(visible)
    if n < 64 or sum(b < 128 for b in visible) < 0.95 * n:
        return False
    blanks = sum(b in BLANKS for b in data)
    digits = sum(48 <= b <= 57 for b in visible)
    dense = sum(b in DENSE for b in visible)
    path = sum(b in PATH for b in visible)
    points = sum(b in b"-." for b in visible)
    longest = run = 0
    for byte, kind in zip(data, kinds, strict=True):
        if byte in BLANKS:
            run = 0
        elif kind == Kind.TEXT:
            run = run + 1 if byte < 128 else 0
            longest = max(longest, run)
    minified = dense >= 0.15 * n and dense + digits >= 0.25 * n and blanks <= 0.1 * len(data)
    drawing = path >= 0.03 * n and digits + path + points >= 0.9 * n
    return minified or drawing or longest >= 200


def claim(kinds: bytearray, start: int, end: int, kind: Kind) -> None:
    for k in range(start, end):
        if kinds[k] in (Kind.TEXT, Kind.LINK):
            kinds[k] = kind


def second_pass(data: bytes, kinds: bytearray) -> None:
    """Runs of program lines that call the page, listings, and machine-made lines."""
    run_start = n_lines = n_statements = n_calls = start = 0

    def settle(end: int) -> None:
        if n_calls > 0 and n_calls >= 0.1 * n_lines:
            claim(kinds, run_start, end, Kind.SCRIPT)
        elif n_calls == 0 and n_lines >= 3 and 2 * n_statements >= n_lines:
            claim(kinds, run_start, end, Kind.CODE)

    for line in data.split(b"\n") if data else []:
        if start == len(data):
            break  # behind the last line end there is no line
        stop = start + len(line)
        breaks = program = script = False
        is_row = line.lstrip(bytes(BLANKS))[:1] == b"|"
        if len(line) > 300:
            for left in range(start, stop, 256):
                right = min(left + 256, stop)
                if not is_row and is_machine_made(data[left:right], bytes(kinds[left:right])):
                    claim(kinds, left, right, Kind.SCRIPT)
                    script = True
            breaks = not script
        else:
            visible = [(b, k) for b, k in zip(line, kinds[start:stop], strict=True) if b not in BLANKS]
            plain = [b for b, k in visible if k == Kind.TEXT]
            n = len(plain)
            text = bytes(b for b, _ in visible)
            program = (not is_row and n > 0) and (
                (sum(b < 128 for b in plain) >= 0.8 * n and sum(b in STRONG for b in plain) >= 0.06 * n)
                or (text[:1] == b'"' and b'":' in text)
            )
            script = any(k == Kind.SCRIPT for _, k in visible)
            breaks = n > 0 and not program
        n_calls += 2 * script
        if program and not breaks:
            n_lines += 1
            n_statements += any(b in b"{};=" for b in plain)
            n_calls += calls(line)
        if breaks:
            settle(start)
            run_start, n_lines, n_statements, n_calls = stop, 0, 0, 0
        start = stop + 1
    settle(len(data))


def kinds_slowly(text: str) -> bytes:
    """The kind of each byte of a text in UTF-8."""
    data = text.encode("utf-8")
    kinds = first_pass(data)
    second_pass(data, kinds)
    return bytes(kinds)
