"""Texts as web pages: four kinds of site around the same prose, with menus, banners, scripts and footers.

The pages imitate what crawls hold: a documentation site, a blog, a portal of about 2004 in tables, and a page of
nested div. The rendering of Markdown and reStructuredText is as rough as that of many sites. About 60 us a page.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

__all__ = ["LAYOUTS", "Page", "body_of", "page_html"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page before it is bytes: its main part is HTML already."""

    url: str
    title: str
    lang: str
    main: str


_WORDS = {
    "en": "Home|Products|Documentation|Blog|About us|Contact|Search|Previous|Next|Share|Related pages|"
    "This site uses cookies to improve your experience.|Accept|All rights reserved.|Privacy",
    "zh": "首页|产品|文档|博客|关于我们|联系方式|搜索|上一篇|下一篇|分享|相关阅读|"
    "本网站使用Cookie以改善您的浏览体验。|同意|版权所有|隐私政策",
    "zh-Hant": "首頁|產品|文件|部落格|關於我們|聯絡方式|搜尋|上一篇|下一篇|分享|相關閱讀|"
    "本網站使用Cookie以改善您的瀏覽體驗。|同意|版權所有|隱私權政策",
    "ja": "ホーム|製品|資料|ブログ|会社概要|お問い合わせ|検索|前へ|次へ|シェア|関連記事|"
    "当サイトではCookieを使用しています。|同意する|無断転載を禁じます|個人情報保護方針",
    "ko": "홈|제품|문서|블로그|회사 소개|문의|검색|이전|다음|공유|관련 글|"
    "이 사이트는 쿠키를 사용합니다.|동의|모든 권리 보유|개인정보 처리방침",
    "ru": "Главная|Товары|Документы|Блог|О нас|Контакты|Поиск|Назад|Далее|Поделиться|Читайте также|"
    "Этот сайт использует файлы cookie.|Принять|Все права защищены|Конфиденциальность",
}


def _words(lang: str) -> list[str]:
    return _WORDS.get(lang, _WORDS["en"]).split("|")


# -- prose to HTML ---------------------------------------------------------------------------------


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"``(.+?)``|`([^`\n]+)`", lambda match: f"<code>{match[1] or match[2]}</code>", text)
    text = re.sub(r"\*\*([^*\n]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^\]\n]+)\]\((https?://[^)\s]+)\)", r'<a href="\2">\1</a>', text)


def body_of(text: str, *, line_breaks: bool = False) -> str:
    """Prose, Markdown or reStructuredText as HTML: headings, lists, code and paragraphs.

    Args:
        text: blocks set apart by blank lines.
        line_breaks: whether a line end inside a paragraph counts, as in verse and dialogue.
    """
    parts = []
    for piece in re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.MULTILINE | re.DOTALL):
        if piece.startswith("```"):
            code = "\n".join(piece.splitlines()[1:-1])
            parts.append(f"<pre><code>{html.escape(code, quote=False)}</code></pre>")
        else:
            parts += [_block(block, line_breaks) for block in re.split(r"\n[ \t]*\n", piece) if block.strip()]
    return "\n".join(parts)


def _block(block: str, line_breaks: bool) -> str:
    block = block.strip("\n")
    lines = block.splitlines()
    if len(lines) == 2 and re.fullmatch(r"([=~^*\"#-])\1{2,}\s*", lines[1]):
        return f"<h2>{_inline(lines[0].strip())}</h2>"
    if match := re.match(r"(#{1,5})\s+(.+)", lines[0]):
        level = min(len(match[1]) + 1, 5)
        rest = _block("\n".join(lines[1:]), line_breaks) if lines[1:] else ""
        return f"<h{level}>{_inline(match[2])}</h{level}>{rest}"
    if lines[0].startswith(">>>") or all(line.startswith("    ") for line in lines):
        return f"<pre>{html.escape(block, quote=False)}</pre>"
    if all(re.match(r"\s*([-*+]|\d+[.)])\s|\s{2,}", line) for line in lines):
        items = [re.sub(r"^\s*[-*+]\s", "", item) for item in re.split(r"\n(?=\s*(?:[-*+]|\d+[.)])\s)", block)]
        return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
    paragraph = _inline(block)
    return "<p>" + (paragraph.replace("\n", "<br>") if line_breaks else paragraph) + "</p>"


# -- layouts ---------------------------------------------------------------------------------------


def _links(words: list[str], rng: Random, n_links: int) -> str:
    return "".join(f'<li><a href="/{rng.randrange(10**6)}.html">{rng.choice(words)}</a></li>' for _ in range(n_links))


def _analytics(rng: Random) -> str:
    return (
        f"<script>window.dataLayer=window.dataLayer||[];function gtag(){{dataLayer.push(arguments)}}"
        f"gtag('js',new Date());gtag('config','DEMO-{rng.randrange(10**8):08d}');</script>"
    )


def _documentation(page: Page, words: list[str], rng: Random) -> str:
    return f"""<body><div class="skip"><a href="#content">{words[2]}</a></div>
<header><nav class="top"><ul>{_links(words[:6], rng, 6)}</ul></nav>
<form action="/search"><input name="q" placeholder="{words[6]}"><button>{words[6]}</button></form></header>
<div class="document"><aside class="sidebar"><h3>{words[2]}</h3><ul>{_links(words[:11], rng, 12)}</ul></aside>
<main id="content" role="main"><h1>{html.escape(page.title)}</h1>
{page.main}
</main></div>
<nav class="rel"><a rel="prev" href="#">« {words[7]}</a> <a rel="next" href="#">{words[8]} »</a></nav>
<footer><p>&copy; 2026 Example. {words[13]} <a href="/privacy">{words[14]}</a></p></footer>{_analytics(rng)}</body>"""


def _blog(page: Page, words: list[str], rng: Random) -> str:
    data = json.dumps({"@type": "Article", "headline": page.title, "url": page.url}, ensure_ascii=True)
    return f"""<body class="post"><script type="application/ld+json">{data}</script>
<div id="cookie-banner" class="banner"><p>{words[11]}</p><button onclick="ok()">{words[12]}</button></div>
<header><a class="logo" href="/">Example</a><nav><ul>{_links(words[:6], rng, 5)}</ul></nav></header>
<article><header><h1>{html.escape(page.title)}</h1><time datetime="2026-02-{rng.randint(1, 28):02d}"></time></header>
<div class="entry-content">
{page.main}
</div><div class="share"><a href="javascript:void(0)">{words[9]}</a></div></article>
<aside><h3>{words[10]}</h3><ul>{_links(words[:11], rng, 8)}</ul></aside>
<footer><ul>{_links(words[:6], rng, 6)}</ul><small>&copy; 2026 {words[13]}</small></footer>{_analytics(rng)}</body>"""


def _portal(page: Page, words: list[str], rng: Random) -> str:
    menu = " | ".join(f'<A HREF="/{rng.randrange(999)}.htm"><FONT SIZE=2>{word}</FONT></A>' for word in words[:6])
    return f"""<BODY BGCOLOR="#FFFFFF" LEFTMARGIN=0>
<SCRIPT LANGUAGE="JavaScript">function addFav(){{window.external.addFavorite(location.href,document.title)}}</SCRIPT>
<TABLE WIDTH=760 BORDER=0 CELLPADDING=0 ALIGN=center><TR><TD COLSPAN=2 HEIGHT=60><IMG SRC="/logo.gif" ALT="Example"></TD></TR>
<TR><TD COLSPAN=2 BGCOLOR="#336699">{menu}</TD></TR>
<TR><TD WIDTH=160 VALIGN=top><FONT SIZE=2><B>{words[10]}</B><UL>{_links(words[:11], rng, 9)}</UL></FONT></TD>
<TD VALIGN=top><H1>{html.escape(page.title)}</H1>
{page.main}
<P ALIGN=right><A HREF="javascript:addFav()">{words[9]}</A> <A HREF="javascript:history.back()">{words[7]}</A></P></TD></TR>
<TR><TD COLSPAN=2 ALIGN=center><FONT SIZE=1>Copyright 2004-2026 {words[13]} {words[5]}</FONT></TD></TR></TABLE></BODY>"""


def _nested(page: Page, words: list[str], rng: Random) -> str:
    pieces = page.main.split("\n")
    middle = len(pieces) // 2
    advert = f'<div class="ad-slot" data-id="{rng.randrange(10**6)}"><script>adq.push({{slot:{rng.randrange(99)}}})</script></div>'
    main = "\n".join([*pieces[:middle], advert, *pieces[middle:]]) if "<pre" not in page.main else page.main
    return f"""<body><div id="app" data-v-1a2b3c><div class="hd"><div class="nav-wrap"><ul>{_links(words[:6], rng, 7)}</ul></div></div>
<div class="crumb"><a href="/">{words[0]}</a> &gt; <a href="/x">{words[3]}</a></div>
<div class="main-wrap"><div class="left" style="float:left;width:700px"><div class="title"><h1>{html.escape(page.title)}</h1></div>
<div class="txt">{main}</div></div>
<div class="right"><div class="box"><div class="box-hd">{words[10]}</div><ul>{_links(words[:11], rng, 10)}</ul></div></div></div>
<div class="ft"><p>{words[13]} <a href="/p">{words[14]}</a></p></div></div>{_analytics(rng)}
<script>window.__STATE__={{"user":null,"ab":[{rng.randrange(9)},{rng.randrange(9)}]}}</script></body>"""


LAYOUTS: dict[str, Callable[[Page, list[str], Random], str]] = {
    "documentation": _documentation,
    "blog": _blog,
    "portal": _portal,
    "nested": _nested,
}


def page_html(page: Page, layout: str, rng: Random, meta_charset: str | None) -> str:
    """The whole page as text.

    Args:
        layout: a key of LAYOUTS.
        meta_charset: the charset that the page names in a meta element; None leaves the element out.
    """
    old = layout == "portal"
    meta = ""
    if meta_charset and old:
        meta = f'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset={meta_charset}">\n'
    elif meta_charset:
        meta = f'<meta charset="{meta_charset}">\n'
    doctype = '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">' if old else "<!DOCTYPE html>"
    style = "body{margin:0;font:16px/1.6 sans-serif}.sidebar,.right{width:240px}.banner{position:fixed;bottom:0}"
    head = f"{doctype}\n<html lang={json.dumps(page.lang)}>\n<head>\n{meta}<title>{html.escape(page.title)}</title>\n"
    return f"{head}<style>{style}</style>\n</head>\n{LAYOUTS[layout](page, _words(page.lang), rng)}\n</html>\n"
