"""Runs of loose lines and rows of numbers: menus, chats and tables are made of them, prose and headings are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules.line_runs import measure
from curation.filters.rules.parts import parts_of


def shares(text: str) -> dict[str, float | None]:
    """The measures of one text."""
    found = measure(parts_of(pa.array([text], pa.large_string())))
    return {name: None if np.ma.getmaskarray(column)[0] else float(column[0]) for name, column in found.items()}


@pytest.mark.parametrize(
    ("lines", "loose"),
    [
        ("Home|News|Sports|Weather", 1.0),
        ("Home|News||Sports|Weather", 0.0),  # runs of two
        ("Home|News|Sports||The mill is open again.", 0.75),
        ("首页|新闻中心|体育|天气预报", 1.0),
        ("今天好热啊|谁在|我刚下班|有人打游戏吗", 1.0),
        ("春眠不觉晓，|处处闻啼鸟。|夜来风雨声，|花落知多少。", 0.0),
        ("- Home|- News|- Sports|- Weather", 0.0),
        ("1 Home|2 News|3 Sports|4 Weather", 0.0),
        ("First:|Second,|Third;|Fourth -", 0.0),
        ("Главная|Новости|Спорт|Погода", 1.0),
        ("หน้าแรก|ข่าว|กีฬา|อากาศ", 1.0),
        ("الرئيسية|أخبار|رياضة|طقس", 1.0),
        ("one two three four five six seven eight nine|" * 4, 0.0),  # a paragraph with hard line ends
        ("Yes.|No.|Why?|Because!", 0.0),
        ("def f(x)|  y = f|  return y|  end|  go", 0.0),  # a listing
        ("name / type /|size / int /|kind / str /|last / any /", 0.0),  # a table
    ],
)
def test_loose_lines(lines: str, loose: float) -> None:
    """Lines in runs of three or more short lines that nothing ends, over lines."""
    assert shares(lines.strip("|").replace("|", "\n"))["loose_lines"] == pytest.approx(loose)


def test_characters_weigh_long_lines_more() -> None:
    """The same lines by their characters: three menu words beside a long paragraph are little."""
    found = shares("Home\nNews\nSports\n\n" + "The mill by the river is open again. " * 10)

    assert found["loose_lines"] == pytest.approx(0.75)
    assert found["loose_line_characters"] == pytest.approx(14 / (14 + 369))


def test_a_page_with_an_article_is_no_menu() -> None:
    """From 300 words of prose on, the share of lines says nothing; that of characters still does."""
    menu, line = (
        "Home\nNews\nSports\nWeather\n",
        "The old mill by the river is open again, and the children come in the evening.\n",
    )

    assert shares(menu * 10 + line * 10)["loose_lines"] == pytest.approx(0.8)
    assert shares(menu * 10 + line * 20)["loose_lines"] is None
    assert shares(menu * 10 + line * 20)["loose_line_characters"] == pytest.approx(210 / (210 + 20 * 78))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("name | a | b\n412.11 | 2020-01-01 | -\nN/A | 358.25 | 596.88\n1 2 3\n5,6", 0.6),  # 5,6 is one number
        ("Chapter 1\nChapter 2\nChapter 3\nChapter 4", 0.0),
        ("In 1998 there were 12 mills\n" * 4, 0.0),
        ("2020年1月\n2020年2月\n3.5 4.5\n1 2", 0.5),
    ],
)
def test_number_rows(text: str, rows: float) -> None:
    """Lines with two numbers or more, which are six words in ten or more; single letters do not count."""
    assert shares(text)["number_rows"] == pytest.approx(rows)


@pytest.mark.parametrize("text", ["", "a\nb\nc", "\n\n\n\n\n", "one line"])
def test_few_lines_say_nothing(text: str) -> None:
    """Fewer than four lines that are not blank: undefined."""
    assert set(shares(text).values()) == {None}


def test_blanks_of_the_text_before_are_no_indent() -> None:
    """What stands before a text's first line belongs to another text."""
    texts = pa.array(["a  ", "Home\nNews\nSports\nWeather"], pa.large_string())

    assert measure(parts_of(texts))["loose_lines"].tolist()[1] == 1
