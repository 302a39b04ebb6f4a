"""Main text is kept whole in every script, navigation is not; the same page gives the same text everywhere."""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from curation.ingest.charset import decode
from curation.ingest.extractor import ExtractionError, Extractor
from curation.ingest.html import Mode, extract

LEAD = "".join(
    f"<p>This is paragraph {i} of an article on bridges, and it has enough words to be taken for prose, "
    f'with a <a href="/n{i}">link</a>.</p>'
    for i in range(5)
)
MENU = '<nav><ul><li><a href="/">Home</a></li><li><a href="/sport">Sport</a></li></ul></nav>'
CAPTION = "The mayor points at a crack in the northern pillar of the old bridge, which was built in 1910."


def article(body: str, *, before: str = MENU, after: str = "") -> str:
    return f"<html><head><title>Bridges</title></head><body>{before}<main><article>{LEAD}{body}</article></main>{after}</body></html>"


CASES = [
    # html, must be in, must not be in, why
    (
        article(""),
        ["paragraph 0", "paragraph 4", "a link."],
        ["Home", "Sport"],
        "prose stays, with the words of its links; menus go",
    ),
    (
        article("<pre><code>def f(x):\n    return x &lt; 1\n\nf(2)</code></pre>"),
        ["def f(x):\n    return x < 1\n\nf(2)"],
        [],
        "code keeps its indentation and blank lines",
    ),
    (
        article("<table><tr><th>Name</th><th>Length</th></tr><tr><td>North</td><td>120 m</td></tr></table>"),
        ["Name\tLength\nNorth\t120 m"],
        [],
        "a table row is a line",
    ),
    (
        article("<ul><li>two eggs</li><li>flour</li></ul>"),
        ["two eggs\nflour"],
        [],
        "a list in an article is no menu, however shallow it lies",
    ),
    (
        article("<p>一<ruby>子<rt>こ</rt></ruby>ども<b>の</b>本</p>"),
        ["一子どもの本"],
        ["こど"],
        "one character in an element is text (resiliparse drops it); readings of a ruby are not",
    ),
    (article("<p>그<i>는</i> 갔다</p><p>ท<b>่</b>าน</p>"), ["그는 갔다"], [], "the same for hangul"),
    (article("<p>a<br>b<br>c</p>"), ["\na\nb\nc"], [], "a line break is one"),
    (
        article(f"<figure><figcaption>{CAPTION}</figcaption></figure><p>Words.</p><div><p>{CAPTION}</p></div>"),
        [CAPTION],
        [f"{CAPTION}\nWords.\n{CAPTION}"],
        "what a page prints twice for two screen sizes stands once",
    ),
    (
        article(
            "<h2>More news</h2><p><a href='/a'>Storm hits the coast</a></p><p><a href='/b'>Team wins again</a></p>"
        ),
        [],
        ["More news", "Storm", "Team"],
        "lines of links go, and with them the heading above",
    ),
    (
        article("<h2>History</h2><p>The first bridge was made of wood and burned down twice in one year.</p>"),
        ["History\nThe first bridge"],
        [],
        "a heading with text under it stays",
    ),
    (
        article("", after="<footer><p>Imprint</p></footer><div>Top stories</div>"),
        [],
        ["Imprint", "Top stories"],
        "labels after the last paragraph go",
    ),
    (
        article("<div class='comment'><p>First! What a lovely bridge this is, I walk over it every day.</p></div>"),
        [],
        ["First!"],
        "comments of readers are not the article",
    ),
    (
        "<html><body><div class='comments'>" + LEAD + "</div></body></html>",
        ["paragraph 3"],
        [],
        "but where there is nothing else they are",
    ),
    (
        "<main><article><div><br>" + "One long line of text. " * 20 + "</div></article></main>",
        ["One long line of text. " * 19],
        ["line of text.\nOne"],
        "nested containers give their line once (B025)",
    ),
    (
        article("<p>5 &lt; 6 &amp;&amp; x &gt; 2, &eacute;t&#233;</p>"),
        ["5 < 6 && x > 2, été"],
        [],
        "entities are characters",
    ),
    (
        article("<p>visible<script>var hidden = '<p>no</p>';</script><style>p {color: red}</style></p>"),
        ["visible"],
        ["hidden", "color"],
        "scripts and styles are no text",
    ),
    ("", [], ["None"], "an empty page has no text"),
    ("just words, no markup at all", ["just words, no markup at all"], [], "text without markup is text"),
]


@pytest.mark.parametrize(("html", "inside", "outside", "why"), CASES, ids=[case[3] for case in CASES])
def test_fast_keeps_the_text_and_drops_the_rest(html: str, inside: list[str], outside: list[str], why: str) -> None:
    """Each case says what must and must not stand in the result, and why."""
    text = extract(html, "fast").text
    for wanted in inside:
        assert wanted in text
    for unwanted in outside:
        assert unwanted not in text


@pytest.mark.parametrize("mode", ["fast", "quality"])
def test_lines_are_paragraphs(mode: Mode) -> None:
    """One paragraph is one line; no blank lines, no blanks around."""
    lines = extract(article(""), mode).text.split("\n")
    assert [line for line in lines if "paragraph" in line] == [line.strip() for line in lines if line.strip()]
    assert len([line for line in lines if "paragraph" in line]) == 5


TITLES = [
    ("<title>A &amp; B\n  c</title>", "A & B c"), ("<TITLE lang=en>x</TITLE>", "x"), ("<p>none</p>", None), ("<title></title>", None),
    ("<title>never closed", None), ("<title>" * 50_000, None),
]  # fmt: skip


@pytest.mark.parametrize(("html", "title"), TITLES)
def test_titles(html: str, title: str | None) -> None:
    """The title is the first title element's text on one line; a broken one is none."""
    assert extract(html, "fast").title == title


# -- real pages -----------------------------------------------------------------------------------

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _bag(text: str) -> Counter[str]:
    letters = re.findall(r"\w", text)
    is_cjk = len(_CJK.findall(text)) > 0.3 * len(letters)
    return Counter(letters if is_cjk else re.findall(r"\w+", text.lower()))


def _f1(text: str, gold: str) -> float:
    found, wanted = _bag(text), _bag(gold)
    common = (found & wanted).total()
    return 2 * common / (found.total() + wanted.total()) if common else 0.0


def _pages(folder: Path, every: int = 1) -> Iterator[tuple[dict[str, object], str]]:
    with zstandard.open(folder / "gold.jsonl.zst", "rt", encoding="utf-8") as lines:
        gold = {row["id"]: row for row in map(orjson.loads, lines)}
    number = 0
    for name in ("pages-00", "pages-01"):
        with (folder / f"{name}.warc.gz").open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    number += 1
                    if number % every == 0:
                        raw = record.content_stream().read()
                        yield gold[record.rec_headers.get_header("WARC-X-Fixture-Id")], decode(raw).text


SLOW = pytest.mark.slow
FLOORS = [
    # mode, every n-th page, mean F1 at least, leaked and missed snippets at most
    pytest.param("fast", 8, 0.918, 10, 6, id="fast, a sample"),
    pytest.param("quality", 24, 0.969, 5, 1, id="quality, a sample"),
    pytest.param("fast", 1, 0.937, 111, 47, id="fast, all", marks=SLOW),
    pytest.param("quality", 1, 0.952, 69, 49, id="quality, all", marks=SLOW),
]


@pytest.mark.parametrize(("mode", "every", "f1", "leaked", "missed"), FLOORS)
def test_gold_pages(test_data: Path, mode: Mode, every: int, f1: float, leaked: int, missed: int) -> None:
    """Mean F1 on pages with gold text, leaked and missed snippets: floors and ceilings that only get better.

    Per language and with speeds: `tests/bench/bench_html.py`.
    """
    scores: list[float] = []
    n_leaked = n_missed = 0
    for gold, html in _pages(test_data / "1_web", every):
        text = extract(html, mode).text
        if gold.get("gold_text"):
            scores.append(_f1(text, str(gold["gold_text"])))
        flat = " ".join(text.split())
        n_leaked += sum(" ".join(snippet.split()) in flat for snippet in gold.get("must_not_have") or ())
        n_missed += sum(" ".join(snippet.split()) not in flat for snippet in gold.get("must_have") or ())
    assert sum(scores) / len(scores) >= f1
    assert n_leaked <= leaked
    assert n_missed <= missed


def test_a_page_gives_the_same_text_whatever_was_read_before() -> None:
    """Six copies in one process, and one after other pages, give one result (B024: no cache of seen paragraphs)."""
    html = article(f"<p>{CAPTION}</p>")
    for mode in ("fast", "quality"):
        assert len({extract(html, mode) for _ in range(6)}) == 1
        with Extractor(mode, 10) as extractor:
            extractor.extract(article("<p>Something else came first.</p>"))
            assert extractor.extract(html) == extract(html, mode)


def test_mutated_pages_are_extracted_or_refused() -> None:
    """300 pages with random cuts, flips and repeats: a result or a named reason, never anything else."""
    page = article(
        "<table><tr><td>a<td>b</table><ul><li>x<p>子</p></ul><pre>c\n d</pre><!-- e --><svg><title>t</title></svg>" * 5
    )
    with Extractor("fast", 10) as extractor:
        for seed in range(300):
            rng = random.Random(seed)
            cut = [page[rng.randrange(len(page)) :][: rng.randrange(400)] for _ in range(rng.randrange(1, 9))]
            html = "".join(
                rng.choice((part, part[::-1], part.replace("<", "<<"), part.replace(">", ""))) for part in cut
            )
            with contextlib.suppress(ExtractionError):
                extractor.extract(html).text.encode("utf-8")
        assert "paragraph 4" in extractor.extract(page).text
