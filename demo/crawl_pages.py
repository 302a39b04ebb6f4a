"""`pages.warc.gz`: a crawl of package documentation and of hand-written pages in old and new charsets.

Most pages are English; the hand-written ones come in the charsets that real sites of their language use, named in
the HTTP head, in the page, in both or nowhere. Between them lie what every crawl holds: redirects, missing pages,
images, empty pages, requests. Costs about 1 s.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from demo.hand_written import HandWritten
from demo.package_docs import PackageText
from demo.warc_file import WarcFile, http_response
from demo.web_pages import LAYOUTS, Page, body_of, page_html

__all__ = ["PageFacts", "Pages", "hand_written_pages", "package_pages", "write_pages"]

PAGE_CHARACTERS = 5_000
"""A module whose doc strings are longer becomes several pages."""

CHARSETS: dict[str, tuple[tuple[str, str], ...]] = {
    "zh": (("utf-8", "utf-8"), ("gb2312", "gb18030"), ("gbk", "gb18030"), ("gb18030", "gb18030")),
    "zh-Hant": (("utf-8", "utf-8"), ("big5", "big5")),
    "ja": (("utf-8", "utf-8"), ("Shift_JIS", "cp932"), ("EUC-JP", "euc_jp")),
    "ko": (("utf-8", "utf-8"), ("euc-kr", "cp949")),
    "ru": (("utf-8", "utf-8"), ("windows-1251", "cp1251")),
    "de": (("utf-8", "utf-8"), ("windows-1252", "cp1252"), ("iso-8859-1", "cp1252")),
    "fr": (("utf-8", "utf-8"), ("windows-1252", "cp1252"), ("iso-8859-1", "cp1252")),
    "es": (("utf-8", "utf-8"), ("windows-1252", "cp1252")),
    "ar": (("utf-8", "utf-8"), ("windows-1256", "cp1256")),
    "th": (("utf-8", "utf-8"), ("tis-620", "cp874")),
    "en": (("utf-8", "utf-8"), ("utf-8", "utf-8"), ("utf-8", "utf-8"), ("windows-1252", "cp1252")),
}
"""For each language the charsets in use: as pages name them, and the codec that a browser takes for that name."""

DECLARED = ("both", "meta", "http", "both", "meta", "http", "both", "meta", "both", "nowhere")
"""Where pages name their charset. Pages of a language take turns through this and the charsets."""

_CURLY = str.maketrans({"'": "’"})


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What is known about one good page from the way it was made."""

    url: str
    lang: str
    charset: str
    """The charset as pages name it."""
    declared: str
    """Where: `http`, `meta`, `both` or `nowhere`."""
    layout: str
    coding: str
    """Of the HTTP body: `gzip`, `chunked` or nothing."""
    contains: str
    """Up to 40 characters of a line of the main text that stand on the page as they are."""


@dataclass(slots=True)
class Pages:
    """The finished file and what is in it."""

    content: bytes
    good: list[PageFacts] = field(default_factory=list)
    bad: Counter[str] = field(default_factory=Counter)
    other_records: Counter[str] = field(default_factory=Counter)
    """Records that are no responses, by WARC-Type."""


def package_pages(modules: Iterable[PackageText], chapters: Iterable[PackageText]) -> Iterator[tuple[Page, str]]:
    """Pages of documentation with the beginning of their text."""
    for module in modules:
        package, _, path = module.name.partition("/")
        for number, entries in enumerate(_in_pages(module.entries), start=1):
            parts = [module.text] if number == 1 and module.text else []
            parts += [f"{name}\n{'-' * max(len(name), 3)}\n\n{text}" for name, text in entries]
            url = f"https://docs.example.org/{package}/{path}{f'-{number}' if number > 1 else ''}.html"
            yield Page(url, module.title, "en", body_of("\n\n".join(parts))), entries[0][1]
    for chapter in chapters:
        url = f"https://reference.example.org/{chapter.name}.html"
        yield Page(url, chapter.title, "en", body_of(chapter.text)), chapter.text


def _in_pages(entries: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    page: list[tuple[str, str]] = []
    size = 0
    for name, text in entries:
        if page and size + len(text) > PAGE_CHARACTERS:
            yield page
            page, size = [], 0
        page.append((name, text))
        size += len(text)
    if page:
        yield page


def hand_written_pages(documents: Iterable[HandWritten], rng: Random, rounds: int = 3) -> Iterator[tuple[Page, str]]:
    """Columns of three hand-written pieces of one language each, shuffled anew in every round.

    Three, so that no page is nearly the same as one of its pieces.
    """
    by_language: dict[str, list[HandWritten]] = {}
    for document in documents:
        if document.kind == "good":
            by_language.setdefault(document.lang, []).append(document)
    for number, (lang, pieces) in itertools.product(range(1, rounds + 1), sorted(by_language.items())):
        order = rng.sample(pieces, len(pieces))
        for start in range(0, len(order) - 2, 3):
            three = order[start : start + 3]
            main = "\n".join(body_of(piece.text, line_breaks=True) for piece in three)
            url = f"https://{lang.lower()}.example.org/column/{number}/{three[0].id}.html"
            yield Page(url, three[0].text.splitlines()[0][:30], lang, main), three[0].text


def write_pages(pages: Iterable[tuple[Page, str]], rng: Random) -> Pages:
    """The WARC file of all pages in random order, with what else lies in a crawl between them."""
    warc = WarcFile()
    made = Pages(b"")
    _add(
        warc,
        made,
        "warcinfo",
        "",
        "application/warc-fields",
        b"software: demo/make_input.py\r\nformat: WARC File Format 1.1\r\n",
    )
    shuffled = list(pages)
    rng.shuffle(shuffled)
    turns: Counter[str] = Counter()
    for number, (page, text) in enumerate(shuffled):
        if number % 10 == 3:
            request = f"GET / HTTP/1.1\r\nHost: {page.url.split('/')[2]}\r\nUser-Agent: demo\r\n\r\n".encode()
            _add(warc, made, "request", page.url, "application/http; msgtype=request", request)
        _add_page(warc, made, page, text, turns[page.lang], rng)
        turns[page.lang] += 1
        if number % 25 == 7:
            _add_bad(warc, made, number // 25)
    metadata = b"fetchTimeMs: 120\r\n"
    _add(warc, made, "metadata", shuffled[-1][0].url, "application/warc-fields", metadata)
    made.content = warc.content()
    return made


def _add(warc: WarcFile, made: Pages, kind: str, url: str, content_type: str, block: bytes) -> None:
    warc.add(kind, url, content_type, block)
    made.other_records[kind] += 1


def _add_page(warc: WarcFile, made: Pages, page: Page, text: str, turn: int, rng: Random) -> None:
    charsets = CHARSETS.get(page.lang, (("utf-8", "utf-8"),))
    charset, codec = charsets[turn % len(charsets)]
    declared = DECLARED[turn % len(DECLARED)]
    layout = "portal" if codec != "utf-8" and rng.random() < 0.5 else rng.choice(list(LAYOUTS))
    coding = rng.choices(("", "gzip", "chunked"), (18, 1, 1))[0]
    if codec == "cp1252" and page.lang == "en":
        page, text = Page(page.url, page.title, page.lang, page.main.translate(_CURLY)), text.translate(_CURLY)
    content = page_html(page, layout, rng, charset if declared in ("both", "meta") else None)
    try:
        body = content.encode(codec)
    except UnicodeEncodeError:  # a character that the old charset lacks: such a page would be written in UTF-8
        charset, body = (
            "utf-8",
            content.replace(f"charset={charset}", "charset=utf-8").replace(f'"{charset}"', '"utf-8"').encode(),
        )
    kind = f"text/html; charset={charset}" if declared in ("both", "http") else "text/html"
    response = http_response("200 OK", {"Date": "Mon, 02 Mar 2026 08:00:00 GMT", "Content-Type": kind}, body, coding)
    warc.add("response", page.url, "application/http; msgtype=response", response)
    made.good.append(PageFacts(page.url, page.lang, charset, declared, layout, coding, _contains(text)))


def _contains(text: str) -> str:
    """The longest piece of one line of prose that holds no markup and nothing that HTML escapes."""
    lines = [line.strip() for line in re.sub(r"\]\(.*?\)", "]", text, flags=re.DOTALL).split("\n")]
    prose = next((line for line in lines if len(line) >= 60), lines[0])
    return max((piece.strip(" -+") for piece in re.split(r"[`*_\[\]<>&:#]+", prose)), key=len)[:40].strip()


def _add_bad(warc: WarcFile, made: Pages, number: int) -> None:
    """One record that is no page: the kinds take turns; the broken ones come once."""
    site = f"https://www.example.org/{number}"
    page = {"Content-Type": "text/html; charset=utf-8"}
    missing = b"<html><head><title>404</title></head><body><h1>Not found</h1></body></html>"
    image = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2
    empty = b"<!DOCTYPE html><html><head><title></title></head><body></body></html>"
    turns = (
        ("http_error", http_response("301 Moved Permanently", {**page, "Location": site + "/"}, b"")),
        ("http_error", http_response("404 Not Found", page, missing)),
        ("not_html", http_response("200 OK", {"Content-Type": "image/png"}, image)),
        ("http_error", http_response("503 Service Unavailable", page, b"<html><body>Busy</body></html>")),
        ("no_main_text", http_response("200 OK", page, empty)),
        ("not_html", http_response("200 OK", {"Content-Type": "application/pdf"}, b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")),
    )
    reason, block = turns[number % len(turns)]
    lost = 0
    if number == 20:
        reason, lost, block = "bad_warc_record", 20, http_response("200 OK", page, missing * 4)
    if number == 30:
        reason, block = "bad_http", b"\x00\x17 this is no HTTP head\r\n" + missing
    warc.add("response", f"{site}/{reason}", "application/http; msgtype=response", block, lost_bytes=lost)
    made.bad[reason] += 1
