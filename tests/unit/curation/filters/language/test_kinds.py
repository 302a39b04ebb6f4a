"""What is text, and what is code, navigation or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from curation.filters.language.lines import LineKind, prepare
from curation.text import buffers

TEXT, BLANK, NO_LETTERS, CODE, NAVIGATION = LineKind


def kinds(text: str) -> list[LineKind]:
    return [LineKind(kind) for kind in prepare(*buffers(pa.array([text], pa.large_string()))).kind]


LINES = [
    (" ", BLANK),
    ("\u200b\u3000", BLANK),
    ("12345 67890", NO_LETTERS),
    ("!!! ??? ...", NO_LETTERS),
    ("😀😀🎉", NO_LETTERS),
    ("http://example.org/a?b=1", NO_LETTERS),
    ("==========", NO_LETTERS),
    ("});", NO_LETTERS),
    ("| --- | --- |", NO_LETTERS),
    ("mail@example.org", NO_LETTERS),
    ("const { cssPath } = hexo.config.fooPlugin;", CODE),
    ("for (int i = 0; i < n; ++i) {", CODE),
    ("#d-i netcfg/dhcp_timeout string 60", CODE),
    ("def apply_filter(app, environ, filter_func):", CODE),
    ("{{ todo.name }}", CODE),
    ("/etc/shadow", CODE),
    ("$ cd /usr/src", CODE),
    ("lrwxrwxrwx 1 root root 20 2007-03-24 19:05 /usr/bin/vi -> /etc/alternatives/vi", CODE),
    ("请把 pull request 合并到 main branch 再 deploy 到 staging", TEXT),
    ("先跑 pip install 再改 config.yaml 然后 restart server", TEXT),
    ("그러면, 데비안 미래 설치에서 login 패키지가 /bin/login 파일을 /bin/login.debian 로 씁니다.", TEXT),
    ("另一种场景是当一个组件通过 [`app.component`](/api/application#app-component) 被全局注册时。", TEXT),
    ("- [指南 - 单文件组件](/guide/scaling-up/sfc.html)", TEXT),
    ("### Settings", TEXT),
    ("> **Note:** see [the guide](https://a.example) (2nd edition).", TEXT),
    ("Es sei x = 5, also ist x > 3 und y < 7 für alle Zahlen.", TEXT),
    ("Bekanntmachung vom 28. Februar 2009 (VkBl. 2009 S. 102);", TEXT),
    ("好", TEXT),
    ("404 error", TEXT),
    ("床前明月光", TEXT),
]
MENU = "Home\nAbout us\n\nContact\nPrivacy policy\n12\nSign in\n"
PROSE = "The library opens at nine every morning, and it closes late in the evening, when the last bus leaves.\n" * 2
CHINESE = "东门菜市场把雨水收集起来浇花，路过的人都会停下来看一看。\n图书馆为老人准备了热茶，费用由几家商铺一起承担。\n"


@pytest.mark.parametrize(("line", "kind"), LINES)
def test_lines(line: str, kind: LineKind) -> None:
    """A line alone is text, code, or has no letters."""
    assert [kind] == kinds(line)


@pytest.mark.parametrize("menu", [MENU, "首页\n新闻中心\n产品展示\n联系我们\n", "Home | About | Contact | Help\n"])
@pytest.mark.parametrize("prose", [PROSE, CHINESE])
def test_menus_around_text_are_navigation(menu: str, prose: str) -> None:
    """At least four short lines or links in a row are no text where sentences are, before or after them."""
    for text in (menu + prose, prose + menu):
        found = kinds(text)
        assert (found.count(TEXT), CODE in found) == (2, False)
        assert found.count(NAVIGATION) == sum(any(map(str.isalpha, line)) for line in menu.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        MENU,
        "Home\nAbout us\nContact\n" + PROSE,
        "yeah i know right\ndid you see that\nno not at all\nwhat was it about\n" + PROSE,
        "床前明月光\n疑是地上霜\n举头望明月\n低头思故乡\n",
        "朝辞白帝彩云间\n千里江陵一日还\n两岸猿声啼不住\n轻舟已过万重山\n" + CHINESE,
        "床前明月光，\n疑是地上霜。\n举头望明月，\n低头思故乡。\n" + CHINESE,
        "“Yes.”\n“No!”\n“Why?”\n“Well, …”\n" + PROSE,
        "Alpha\nBeta\nGamma\nDelta\n" * 60 + PROSE,
    ],
)
def test_what_is_no_navigation(text: str) -> None:
    """A menu without text, few short lines, chat, verses, dialogue and long lists with a few sentences stay text."""
    assert NAVIGATION not in kinds(text)


def test_kinds_do_not_look_beyond_their_document() -> None:
    """Short lines of one document are not counted with those of the next."""
    lines = prepare(*buffers(pa.array([PROSE + "Home\nHelp", "Shop\nNews\n" + PROSE], pa.large_string())))
    assert NAVIGATION not in lines.kind.tolist()


def test_pages_of_real_lines_have_no_navigation(test_data: Path) -> None:
    """On pages made of sentences of two languages, headings and shop names among them, nearly all lines are text."""
    with (test_data / "4_langid" / "mixed_pages.jsonl.zst").open("rb") as file:
        rows = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file).read().decode().splitlines()
    lines = prepare(*buffers(pa.array([json.loads(row)["text"] for row in rows], pa.large_string())))
    assert (lines.kind == NAVIGATION).sum() == 0
    assert (lines.kind == CODE).mean() < 0.0005
