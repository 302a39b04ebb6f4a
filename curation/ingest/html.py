"""HTML into main text and title, fast (resiliparse and a few line rules) or good (trafilatura).

Both are pure functions of the page: no cache of seen paragraphs, no dependence on earlier pages. Text keeps one
line for a paragraph, heading, list item or table row (cells parted by a tab), and code as it stands.
Neither is safe against a hostile page (175 kB of nested lists: 11 s and 2.4 GB): call them through
`curation.ingest.extractor`, which bounds time and memory.

Measured on 223 pages with gold text and 541 pages in all, one core; leaked = of 756 snippets that must not appear:

    resiliparse main content as it comes   F1 .888   226 leaked   880 pages/s
    fast                                   F1 .937   111 leaked   490 pages/s
    quality                                F1 .952    69 leaked    75 pages/s
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Literal, NamedTuple

__all__ = ["Extracted", "Mode", "extract"]

Mode = Literal["fast", "quality"]


class Extracted(NamedTuple):
    """Main text ("" if the page has none) and the page's title."""

    text: str
    title: str | None


_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,1000})</title", re.I)


def extract(html: str, mode: Mode) -> Extracted:
    """Main text and title of a page.

    Costs 2 ms (fast) or 14 ms (quality) for a page of 100 kB; no bound on time or memory.
    """
    found = _TITLE.search(html)
    title = " ".join(unescape(found.group(1)).split()) if found else ""
    text = _fast(html) if mode == "fast" else _quality(html)
    return Extracted(text, title or None)


def _quality(html: str) -> str:
    import trafilatura

    return trafilatura.extract(html, fast=True, include_comments=False, deduplicate=False) or ""


# -- fast -----------------------------------------------------------------------------------------

MAX_LINK_SHARE = 0.8
"""Lines of which more is link text are navigation."""
REPEATED_CHARS = 60
"""Lines this long stand once in a page: captions and teasers are often printed for each screen size."""
SHORT_LINE = 40
"""Outside the first and last paragraph, an unmarked line shorter than this is a label."""
MARKED_SHARE = 0.7
"""Only if so much of the text is marked up as paragraphs and the like do unmarked lines mean anything."""
LITTLE_TEXT = 250
"""With less than this, what was thrown away as comments or boilerplate gets a second look."""
DENSE_LINE = 80
"""Length from which a line of a page without marked main content counts as prose."""


@dataclass(slots=True)
class _Line:
    kind: str
    """p, h1 to h6, li, pre, td (table row), or "" where the page marks nothing."""
    text: str
    n_link: int
    """Characters of `text` that are link text."""


def _fast(html: str) -> str:
    page = _ARTICLE.sub(r"\g<0><div><div><div>", html, count=1)
    page = _LONE_CHARACTER.sub(r"\g<0>" + _GUARD, page)
    lines = _main_lines(page, comments=False)
    if _size(lines) < LITTLE_TEXT:
        with_comments = _main_lines(page, comments=True)
        lines = with_comments if _size(with_comments) > 2 * _size(lines) else lines
    if _size(lines) < LITTLE_TEXT:
        prose = [line for line in _read(page, main=False, comments=True) if _is_prose(line)]
        lines = prose if _size(prose) > 2 * _size(lines) else lines
    return "\n".join(line.text for line in lines).strip("\n")


_ARTICLE = re.compile(r"<(?:main|article|MAIN|ARTICLE)\b[^<>]{0,2000}>")
"""resiliparse takes every list less than three levels below the body for navigation; in an article it is none."""

_LONE_CHARACTER = re.compile(r">\s*(?:[\u0800-\uffff]|&[#\w]{2,10};)(?=\s*<)")
_GUARD = "\ufdd0"
"""resiliparse 2.0.1 takes a text node of one three-byte character, such as 子 in a ruby, for an icon and drops it.
A noncharacter beside it, removed again from the result, saves it."""


def _size(lines: list[_Line]) -> int:
    return sum(len(line.text) for line in lines)


def _is_prose(line: _Line) -> bool:
    return len(line.text) >= DENSE_LINE and line.n_link < 0.3 * len(line.text)


def _main_lines(page: str, *, comments: bool) -> list[_Line]:
    lines = _read(page, main=True, comments=comments)
    lines = [line for line in lines if line.kind == "pre" or line.n_link < MAX_LINK_SHARE * len(line.text)]
    return _without_empty_sections(_without_labels(_from_heading(_without_repeats(lines))))


def _without_repeats(lines: list[_Line]) -> list[_Line]:
    seen: set[str] = set()
    kept = []
    for line in lines:
        if line.kind == "pre" or len(line.text) < REPEATED_CHARS or line.text not in seen:
            kept.append(line)
            seen.add(line.text)
    return kept


def _from_heading(lines: list[_Line]) -> list[_Line]:
    """What stands above the page's first h1 is kept only if it is long, or if little stands below."""
    first = next((i for i, line in enumerate(lines) if line.kind == "h1"), 0)
    if _size(lines[first + 1 :]) < 300:
        return lines
    above = [line for line in lines[:first] if len(line.text) >= 200 or line.kind == "pre"]
    return above + lines[first:]


_SENTENCE_END = re.compile(r"[.!?…。！？:：;；\"”’』」)）>]$")


def _without_labels(lines: list[_Line]) -> list[_Line]:
    """Drop labels ("Advert", "Top stories") before the first and after the last marked paragraph."""
    if sum(len(line.text) for line in lines if line.kind) < MARKED_SHARE * _size(lines):
        return lines
    paragraphs = [
        i for i, line in enumerate(lines) if line.kind in ("p", "pre", "li", "td") and len(line.text) >= SHORT_LINE
    ]
    if not paragraphs:
        return lines
    return [
        line
        for i, line in enumerate(lines)
        if line.kind
        or paragraphs[0] < i < paragraphs[-1]
        or len(line.text) >= SHORT_LINE
        or _SENTENCE_END.search(line.text)
    ]


def _without_empty_sections(lines: list[_Line]) -> list[_Line]:
    """Drop headings that are followed by no text of their own: their section was navigation."""
    kept: list[_Line] = []
    for line in reversed(lines):
        is_heading = line.kind.startswith("h")
        if is_heading and (not kept or (kept[-1].kind.startswith("h") and kept[-1].kind <= line.kind)):
            continue
        kept.append(line)
    return kept[::-1]


# -- resiliparse's minimal HTML -------------------------------------------------------------------

_OPEN = re.compile(r"<(p|h[1-6]|li|pre)>")
_CLOSE = re.compile(r"</(?:p|h[1-6]|li|pre|ul|ol)>")
_TAG = re.compile(r"</?(?:p|a|br|li|ul|ol|h[1-6]|pre)\b[^<>]*>")
_LINK = re.compile(r"<a\b[^<>]*>(.*?)(?:</a>|$)")


def _read(page: str, *, main: bool, comments: bool) -> list[_Line]:
    """The lines of a page in which resiliparse left paragraphs, headings, lists, code and links marked."""
    from resiliparse.extract.html2text import extract_plain_text

    minimal = extract_plain_text(
        page,
        main_content=main,
        comments=comments,
        preserve_formatting="minimal_html",
        links=True,
        alt_texts=False,
        post_meta=False,
        skip_elements=("rt", "rp"),
    )
    lines = []
    kind = ""
    for raw in minimal.replace(_GUARD, "").split("\n"):
        opened = _OPEN.search(raw)
        kind = opened.group(1) if opened else kind
        line = _line(raw, kind)
        if line is not None:
            lines.append(line)
        if _CLOSE.search(raw):
            kind = ""
    return lines


def _line(raw: str, kind: str) -> _Line | None:
    bare = _TAG.sub("", raw) if "<" in raw else raw
    if kind == "pre":
        return _Line(kind, unescape(bare).rstrip(), 0)
    cells = [" ".join(unescape(cell).split()) for cell in bare.split("\t")]
    text = "\t".join(cell for cell in cells if cell)
    if not text:
        return None
    n_link = sum(len(_TAG.sub("", link).strip()) for link in _LINK.findall(raw)) if "<a" in raw else 0
    return _Line(kind or ("td" if "\t" in text else ""), text, n_link)
