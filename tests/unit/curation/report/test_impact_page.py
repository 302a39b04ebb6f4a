"""The sheet of a change: what it says first, that it says all, and that nothing in a crawl breaks a page or a terminal."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from curation.impact.classes import LENGTHS
from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import broken_bounds
from curation.impact.counting.figure_types import Corpus
from curation.impact.counting.figures import figures
from curation.impact.facts import Comparison
from curation.impact.shown.documents import choose_documents
from curation.report.impact_page import FILES, write_sheet
from tests.impact_fake import Told, compare_runs

SENTENCE = "The old bridge over the river was built by masons who came from the south of the country in spring. "
BASE = {"exact": {}, "html_noise": {}, "length": {"min_units": 16}}
NEW = {
    "exact": {},
    "html_noise": {"max_noise_share": 0.6, "max_noise_share_with_code": 0.7},
    "length": {"min_units": 30},
}
TIGHT = ImpactConfig(max_kept_change=0.005, max_language_change=0.02)
WIDE = ImpactConfig(max_kept_change=1.0, max_language_change=None)
COMMAND = "corpusmill impact web --base main --sample 'my sample'"
HOSTILE = [
    "</p></article><script>alert(1)</script><img src=x onerror=alert(2)>",
    "| a | b |\n| --- | --- |\n| c | d |",
    "```\n# heading\n```\n````\n~~~\n`code` ``two``",
    "[link](https://evil.example) ![picture](https://evil.example/x.png) <https://evil.example> www.evil.example @everyone #1",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eevil\u202c \u2066x\u2069 \ufeff\u200b",
    "w" * 3000,
    "---\n===\n- item\n1. item\n> quote\n    indented\n\t\ttabbed",
    "{{ view.title }} {% raw %} ${7*7} &lt; &#60; &nbsp; \\n \\",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f466 e\u0301\u0301\u0301",
]  # fmt: skip


@dataclass
class Sheet:
    """The four files of a sheet."""

    folder: Path
    comparison: Comparison

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    @property
    def page(self) -> Page:
        return Page(self.read("sheet.html"))


class Page(HTMLParser):
    """A page taken apart; fails on an element that is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html, self.tags, self.attributes = html, Counter[str](), list[tuple[str, str, str]]()
        self.text, self._open = "", list[str]()
        self.feed(html)
        self.close()
        assert self._open == []
        self.words = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def corpus(extra: list[Told] | None = None) -> list[Told]:
    found = [
        Told(f"Number {i}. {SENTENCE}", ("eng_Latn", "deu_Latn")[i % 2], label="good" if i % 2 else None)
        for i in range(30)
    ]
    found += [Told(f"Number {i}. {SENTENCE * 2}", "eng_Latn") for i in range(30, 80)]
    for i in range(8):
        page = f"<div class='a{i}'><a href='x'>go {i}</a></div> " * 3 + SENTENCE * 2
        found.append(Told(page, "fra_Latn", label="junk", source="pages.jsonl"))
    return [*found, *(extra or [])]


def write(
    folder: Path, comparison: Comparison, bounds: ImpactConfig | None = TIGHT, *, size: Corpus | None = None
) -> Sheet:
    told = figures(comparison, size)
    broken = broken_bounds(told, bounds)
    write_sheet(comparison, told, broken, choose_documents(comparison), folder, bounds=bounds, command=COMMAND)
    return Sheet(folder, comparison)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    found = compare_runs(tmp_path_factory.mktemp("sides"), corpus(), BASE, NEW)
    return replace(found, notes=("main requires other packages than this code.",))


@pytest.fixture(scope="module")
def sheet(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Sheet:
    return write(tmp_path_factory.mktemp("sheet"), comparison, size=Corpus(2.5e12, "tokens"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Sheet:
    """Texts, ids, sources, labels and languages that try to break out, on both sides of a change and near to a limit."""
    documents = []
    for place, text in enumerate(HOSTILE):
        body = f"{text}\n{SENTENCE}" if len(text) < 200 else f"{text} {SENTENCE}"
        documents.append(Told(body, text[:60], text, text, id=text))
        documents.append(
            Told(
                f"<div class='a{place}'><a href='x'>go</a></div> " * 6 + SENTENCE * 2 + text,
                text[:60],
                text,
                text,
                id=text,
            )
        )
    folder = tmp_path_factory.mktemp("hostile")
    found = compare_runs(folder, corpus(documents), BASE, NEW)
    sample = replace(found.sample, name=HOSTILE[3], about=HOSTILE[0], files=tuple(HOSTILE))
    notes = tuple(HOSTILE)
    new = replace(found.new, label="".join(HOSTILE[:5]))
    return write(folder / "sheet", replace(found, sample=sample, notes=notes, new=new))


# -- what it says ------------------------------------------------------------------------------


def test_all_files_are_written(sheet: Sheet) -> None:
    """Four files, and nothing else."""
    assert sorted(path.name for path in sheet.folder.iterdir()) == sorted(FILES)


def test_lengths_are_called_as_in_any_sheet(sheet: Sheet) -> None:
    """Classes of the documents made here are those of the engine, so that they stand in its order."""
    assert set(sheet.comparison.documents["length"].to_pylist()) <= set(LENGTHS)


def test_the_verdict_comes_first(sheet: Sheet) -> None:
    """Before any table: whether bounds hold, how many move, by whom, and what was changed."""
    words = sheet.page.words
    verdict, changed, table = (
        words.index("Out of bounds"),
        words.index("length.min_units"),
        words.index("Totals Shares of"),
    )
    assert words.index("Of 80 documents that the base keeps 30 leave (37.5 %") < changed < table
    assert verdict < changed
    assert "Dropped by length (30)." in words
    assert "Let in by html_noise (8)." in words


def test_what_was_changed_is_named(sheet: Sheet) -> None:
    """Each setting with both values, as the command line names it."""
    for name in ("sheet.md", "pull-request.md"):
        assert "`length.min_units`" in sheet.read(name)
    assert "| `length.min_units` | setting | `16` | `30` |" in sheet.read("sheet.md")


def test_every_number_of_the_totals_is_in_both(sheet: Sheet) -> None:
    """Page and Markdown come of the same rows."""
    totals = figures(sheet.comparison, None).totals
    for measure in ("documents", "characters", "tokens"):
        found = totals.moves(measure)
        for part in (found.before, found.leaves, found.comes_in, found.after):
            assert f"{part.count:,}" in sheet.page.words
            assert f"{part.count:,}" in sheet.read("sheet.md")


PARTS = (
    "By filter", "By language", "By source", "By length", "By label", "Reasons", "Documents", "Borderline", "Dead and wild rules",
    "Time and memory", "On a corpus", "How it was made", "Signature",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_there(sheet: Sheet, part: str) -> None:
    """In the page with a link to it, and as a heading of the Markdown."""
    assert part in sheet.page.words
    assert f"\n## {part}\n" in sheet.read("sheet.md")


def test_links_lead_somewhere(sheet: Sheet) -> None:
    """Each link of the page has its place, and each place is one."""
    page = sheet.page
    places = [value for _, name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    links = {value for tag, name, value in page.attributes if tag == "a" and name == "href"}
    assert {link for link in links if not link.startswith("#")} == set()
    assert {link[1:] for link in links} <= set(places)


def test_documents_are_shown_with_scores_and_marks(sheet: Sheet) -> None:
    """The deciding score with both limits, and what triggered it."""
    page = sheet.page
    assert page.tags["mark"] >= 8
    assert page.tags["article"] >= 28
    assert re.search(r"units 2\d(\.\d+)? · limit 16 → 30", page.words)
    assert re.search(r"`units` \*\*2\d(\.\d+)?\*\*, limit 16 → 30", sheet.read("sheet.md"))
    assert "\u27e6<div class=" in sheet.read("sheet.md")


def test_it_can_be_made_again(sheet: Sheet) -> None:
    """The command, the sample's checksum, both sides, versions."""
    for text in (sheet.page.words, sheet.read("sheet.md")):
        assert COMMAND in text
        assert sheet.comparison.sample.sha256 in text
        assert "impact-base" in text
        assert "corpusmill/default" in text
        assert "Python 3." in text


def test_there_is_room_for_a_signature(sheet: Sheet) -> None:
    """Name, date and word, empty, at the end of the Markdown."""
    assert sheet.read("sheet.md").endswith("\n- name:\n- date:\n- word:\n")


def test_a_corpus_is_told_with_intervals(sheet: Sheet) -> None:
    """What leaves of 2.5 T tokens."""
    assert re.search(r"of which the base keeps 2\.50 T tokens", sheet.page.words.replace("\u00a0", " "))


def test_notes_are_told(sheet: Sheet) -> None:
    """What a reader must know of the comparison."""
    assert "main requires other packages" in sheet.page.words
    assert "main requires other packages" in sheet.read("sheet.md")


def test_a_pull_request_is_short(sheet: Sheet) -> None:
    """Under 30 lines, with the verdict, the totals, the broken bounds, the languages and the way to the sheet."""
    text = sheet.read("pull-request.md")
    assert len(text.splitlines()) < 30
    for part in ("out of bounds", "| `documents` |", "**broken**: all documents", "`eng_Latn`", "(sheet.html)"):
        assert part in text


def test_json_holds_all(sheet: Sheet) -> None:
    """Numbers, documents, changes; for programs."""
    told = json.loads(sheet.read("sheet.json"))
    assert told["within_bounds"] is False
    assert told["figures"]["totals"]["documents"]["leaves"]["count"] == 30
    assert len(told["documents"]["dropped"]) == 20
    assert {"what": "length.min_units", "kind": "setting", "before": "16", "after": "30"} in told["changes"]


@pytest.mark.parametrize(
    ("bounds", "verdict", "level"),
    [
        (TIGHT, "Out of bounds", "bad"),
        (WIDE, "Within its bounds", "done"),
        (None, "No bounds are set", "look"),
        (ImpactConfig(), "No bounds are set", "look"),
    ],
)
def test_three_verdicts(
    comparison: Comparison, tmp_path: Path, bounds: ImpactConfig | None, verdict: str, level: str
) -> None:
    """Each in words, not by a colour alone."""
    found = write(tmp_path, comparison, bounds)
    assert verdict in found.page.words
    assert f"**{verdict}**" in found.read("sheet.md")
    assert f"### Impact on documents: {verdict.lower()}" in found.read("pull-request.md")
    assert f'class="badge state {level}"' in found.page.html


def test_a_pull_request_names_a_sample_without_where_it_lies(comparison: Comparison, tmp_path: Path) -> None:
    """Everyone who may read the change reads it; the sheet tells the folder."""
    found = replace(comparison, sample=replace(comparison.sample, name="/srv/me/repo/ci/sample"))
    text = write(tmp_path, found).read("pull-request.md")
    assert "Sample `sample`, " in text
    assert "/srv/me" not in text


def test_a_pull_request_is_short_with_all_that_can_be_said(comparison: Comparison, tmp_path: Path) -> None:
    """Loosened bounds push no broken one out, nor the text over 30 lines."""
    told = figures(comparison, None)
    loosened = [f"impact.languages.l{place} is loosened" for place in range(9)]
    documents = choose_documents(comparison)
    broken = broken_bounds(told, TIGHT)
    write_sheet(comparison, told, broken, documents, tmp_path, bounds=TIGHT, loosened=loosened)
    text = Sheet(tmp_path, comparison).read("pull-request.md")
    assert len(text.splitlines()) < 30
    assert text.count("**loosened**") == 2
    assert "- and 7 more" in text
    assert "**broken**: all documents" in text


def test_the_same_comparison_gives_the_same_bytes(comparison: Comparison, sheet: Sheet, tmp_path: Path) -> None:
    """Nothing of a clock or a hash seed."""
    again = write(tmp_path, comparison, size=Corpus(2.5e12, "tokens"))
    for name in FILES:
        assert again.read(name) == sheet.read(name), name


def test_nothing_changes(tmp_path: Path) -> None:
    """A sheet of two sides alike says so, with how sure that is."""
    found = write(tmp_path / "sheet", compare_runs(tmp_path, corpus()[:40], ["exact"], ["exact"]), WIDE)
    assert "No document changes sides." in found.page.words
    assert "Nothing that decides a verdict" in found.page.words
    assert "Nothing that decides a verdict" in found.read("sheet.md")
    assert len(found.read("pull-request.md").splitlines()) < 30


def test_no_documents_at_all(tmp_path: Path) -> None:
    """A base that keeps nothing has no shares, and no division by nothing."""
    tiny = [Told(f"tiny {i}") for i in range(3)]
    found = write(tmp_path / "sheet", compare_runs(tmp_path, tiny, ["length"], {"length": {"min_units": 0}}), TIGHT)
    assert "Newly kept" in found.page.words


def test_weights_are_told(tmp_path: Path) -> None:
    """Of a drawn sample: numbers of the corpus, with those of the sample beside them."""
    documents = [
        replace(one, weight=100.0 if place % 2 else 7.5, stratum=place % 2) for place, one in enumerate(corpus())
    ]
    found = write(tmp_path / "sheet", compare_runs(tmp_path, documents, BASE, NEW, population=5000))
    words = found.page.words.replace("\u00a0", " ")
    assert "stand for 5,000" in words
    assert re.search(r"· \d+ in the sample", words)
    assert "drawn from 5,000" in words
    assert "stands for 100" in words


def test_many_languages_and_reasons_are_folded(tmp_path: Path) -> None:
    """A hundred languages do not bury the rest: twelve are in sight."""
    documents = [replace(one, language=f"l{place:03d}_Latn") for place, one in enumerate(corpus())]
    page = write(tmp_path / "sheet", compare_runs(tmp_path, documents, BASE, NEW)).page
    section = page.html[page.html.index('id="languages"') : page.html.index('id="sources"')]
    assert "<summary>76 more</summary>" in section
    assert section[: section.index("<details")].count("<tr>") == 13


# -- nothing breaks it -------------------------------------------------------------------------


def test_nothing_of_the_crawl_becomes_markup(hostile: Sheet, sheet: Sheet) -> None:
    """The page has the same kinds of elements as any other, no script, no handler, nothing that is loaded."""
    page = hostile.page
    assert set(page.tags) <= set(sheet.page.tags) | {"i", "mark"}
    assert not page.tags.keys() & {"script", "img", "iframe", "link", "object", "form", "base"}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not [one for one in page.attributes if one[1] in ("src", "href") and not one[2].startswith("#")]
    assert "default-src 'none'" in page.html
    assert "http" not in "".join(value for _, name, value in page.attributes if name in ("src", "href", "style"))


FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


@pytest.mark.parametrize("name", ["sheet.html", "sheet.md", "pull-request.md"])
def test_nothing_commands_a_terminal(hostile: Sheet, name: str) -> None:
    """No control character, no mark that turns the direction of writing, whoever prints the file."""
    assert FORBIDDEN.findall(hostile.read(name)) == []


def _tokens(text: str) -> list[tuple[str, str, str]]:
    """Kind, content and tag of every token of Markdown with tables, as CommonMark reads it."""
    flat = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        flat.append((token.type, token.content, token.tag))
        flat += [(child.type, child.content, child.attrGet("href") or "") for child in token.children or ()]  # type: ignore[misc]
    return flat


@pytest.mark.parametrize("name", ["sheet.md", "pull-request.md"])
def test_nothing_of_the_crawl_becomes_markdown(hostile: Sheet, name: str) -> None:
    """No HTML, picture or link but those to the sheet, no heading but its own, whatever names and texts hold."""
    found = _tokens(hostile.read(name))
    assert not [one for one in found if one[0] in ("html_block", "html_inline", "image", "code_block")]
    assert {href for kind, _, href in found if kind == "link_open"} <= {"sheet.html", "sheet.md"}


def test_headings_of_the_sheet_are_its_own(hostile: Sheet, sheet: Sheet) -> None:
    """As many, and the same, as without anything hostile, but for the title."""

    def headings(of: Sheet) -> list[str]:
        parsed = MarkdownIt("commonmark").enable("table").parse(of.read("sheet.md"))
        return [parsed[place + 1].content for place, one in enumerate(parsed) if one.type == "heading_open"][1:]

    assert set(headings(hostile)) <= set(headings(sheet)) | {"Dropped for another reason"}


@pytest.mark.parametrize("of", ["sheet", "hostile"])
def test_tables_keep_their_columns(of: str, request: pytest.FixtureRequest) -> None:
    """Each row of each Markdown table has as many cells as its head: a pipe in a name is no border."""
    found: Sheet = request.getfixturevalue(of)
    rows = 0
    for name in ("sheet.md", "pull-request.md"):
        columns = 0
        for line in found.read(name).splitlines():
            if not line.startswith("|"):
                columns = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            columns = columns or cells
            assert cells == columns, line
            rows += 1
    assert rows > 40


def test_texts_stand_in_blocks_that_they_cannot_close(hostile: Sheet) -> None:
    """Fences of a text are longer than any in it, so that each document is one block."""
    parsed = MarkdownIt("commonmark").enable("table").parse(hostile.read("sheet.md"))
    fences = [one.content for one in parsed if one.type == "fence"]
    assert any("# heading" in one and "````" in one for one in fences)
    assert any("[link](https://evil.example)" in one for one in fences)


def test_very_long_names_are_cut(hostile: Sheet) -> None:
    """A word of three thousand letters is neither a name nor a cell."""
    for name in FILES[:3]:
        assert "w" * 1001 not in hostile.read(name), name


def test_a_folder_is_made(comparison: Comparison, tmp_path: Path) -> None:
    """The output may be a folder that is not there yet."""
    assert (write(tmp_path / "a" / "b", comparison).folder / "sheet.html").exists()


def test_style_sheet_loads_nothing() -> None:
    """As the others."""
    css = (Path(__file__).resolve().parents[4] / "curation" / "report" / "impact.css").read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|</", css)
