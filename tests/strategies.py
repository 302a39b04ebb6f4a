"""What hypothesis makes for several tests: texts that hurt, lists with copies, cuts of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")

PIECES = (
    *("word ", "don't ", "3.14 ", "\n", "\r\n", "\t", " ", "  ", "", "\0", "\x1b[0m", "\ufeff"),
    *("漢字", "かな", "カナ", "한국어 ", "ไทย", "မြန်မာ", "हिन्दी ", "العربية ", "עברית ", "ǅ", "ß", "İ"),
    *("e\u0301", "\u0301", "\u0e31", "\u200b", "\u200d", "\u202e", "\u2028", "\u00a0", "\u3000", "\ufffd"),
    *("😀", "👨‍👩‍👧", "𝔘", "\U0001f1e9\U0001f1ea", "\U0010ffff", "𠀀", "。", "…", "¿", "«", "№", "½", "①"),
)
"""Pieces of texts in which something often goes wrong."""

MARKUP = (
    *("<", ">", "</", "/>", "<p>", "</p>", '<div class="a">', "<a href='x'>", "<script>", "</script>", "<style>"),
    *(
        "</style>",
        "<!--",
        "-->",
        "<!doctype html>",
        "<![CDATA[",
        "]]>",
        "<?php ",
        "?>",
        "<%= x %>",
        "{{ x }}",
        "{% y %}",
    ),
    *(
        "[caption ",
        "[/url]",
        "]",
        "(",
        ")",
        "&nbsp;",
        "&#39;",
        "&#x1F600;",
        "&amp",
        "&",
        ";",
        "`",
        "``",
        "```\n",
        "~~~\n",
    ),
    *('"', "'", "=", "{", "}", ":", "color: red;", "h1 {", "margin:0}", "https://a.b/c", "://", "import x ", "export "),
    *(
        "window.x = ",
        "document.",
        "var a = 1;\n",
        "if (a) {\n",
        "});\n",
        '"key": "value",\n',
        "@click",
        "v-if",
        "data-x",
    ),
    *("\n", " ", "    ", "> ", "\\", "$", "0.5-1.2c", "M10 20", "AbC/+"),
)
"""Pieces of pages, whole and broken."""

any_text = st.text(st.characters(codec="utf-8"), max_size=60)
hostile_text = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(codec="utf-8"), max_size=3))).map(
    "".join
)
markup_text = st.lists(st.sampled_from((*MARKUP, *PIECES)), max_size=60).map("".join)


def cuts(items: Sequence[Item]) -> st.SearchStrategy[list[Sequence[Item]]]:
    """Every way to cut a sequence into consecutive parts, empty ones among them."""
    places = st.lists(st.integers(0, len(items)), max_size=6).map(sorted)
    return places.map(
        lambda marks: [items[a:b] for a, b in zip([0, *marks], [*marks, len(items)], strict=True)],
    )
