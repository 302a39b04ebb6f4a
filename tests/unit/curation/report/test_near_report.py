"""The page on near-duplicates: alarms, groups with their texts, partners here and in an earlier run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from curation.config import parse_config
from curation.explain import explain, explanation_lines
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from tests.unit.curation.report.test_near_view import FACTS

LONG = "the text that several documents share, with some more words to it. " * 30
ALARM = "one group holds <b>160</b> of 300 documents"


def some_copies(made: Any) -> tuple[list[Any], dict[str, tuple[str | bytes, float, int]]]:
    """A group of 4 in this run, and one of 3 around a document of an earlier run."""
    partners: dict[str, tuple[str | bytes, float, int]] = {}
    docs = [made.doc(LONG, id="head"), made.doc("nothing like the others", id="other")]
    for i in range(3):
        text = f"{LONG[:1200]}CHANGED{i} {LONG[1200:]}"
        partners[text] = (LONG, 0.99 - 0.01 * i, 4)
        docs.append(made.doc(text, id=f"copy{i}"))
    for i in range(2):
        text = f"a document that the run before had too, number {i}"
        partners[text] = (b"\xee" * 16, 0.95, 3)
        docs.append(made.doc(text, id=f"old{i}"))
    return docs, partners


def section(page: Any, step: str) -> str:
    """The HTML of a step's section."""
    found = re.search(
        rf'<section class="step" id="step-\d+">\s*<h3>[^\n]*</span> {step}.*?(?=<section class="step" id|<section id=)',
        page.html,
        re.DOTALL,
    )
    assert found is not None
    return found.group()


def copy_groups(page: Any) -> list[str]:
    whole = re.search(r'<details class="group copies">.*?</details>', page.html, re.DOTALL)
    return whole.group().split('<div class="copy-group">')[1:] if whole else []


def test_the_largest_groups_are_shown_with_their_texts(made: Any) -> None:
    """Size, kept text beside its copies, the least alike first, what differs marked although it stands far inside."""
    docs, partners = some_copies(made)
    ours = [doc for doc in docs if not doc.id.startswith("old")]
    step = made.near({text: one for text, one in partners.items() if isinstance(one[0], str)})
    (group,) = copy_groups(made.page(made.run(ours, [step])))
    assert "4 documents" in group
    assert re.findall(r"<bdi>(copy\d|head)</bdi>", group) == ["head", *(n for i in "210" for n in (f"copy{i}", "head"))]
    assert re.findall(r"similarity <b><bdi>([^<]*)", group) == [f"{n}\N{NO-BREAK SPACE}%" for n in (97, 98, 99)]
    for i in range(3):
        assert re.search(rf"<mark>[^<]*CHANGED{i}[^<]*</mark>", group)
    assert group.count("the same up to byte 1,200") == 3


def test_a_partner_in_an_earlier_run_is_named(made: Any) -> None:
    """Its doc_id stands there; it is not looked for, and its group is counted once."""
    docs, partners = some_copies(made)
    page = made.page(made.run(docs, [made.near(partners, FACTS)]))
    groups = copy_groups(page)
    assert ["in an earlier run" in group for group in groups] == [False, True]
    assert "ee" * 16 in groups[1]
    assert re.findall(r"<bdi>(old\d)</bdi>", groups[1]) in (["old0", "old1"], ["old1", "old0"])
    assert f"kept instead: a document of an earlier run, doc_id {'ee' * 16}" in page.words
    assert page.row("3")[1] == "1"
    assert page.row("4")[1] == "1"


def test_alarms_stand_on_top_and_at_the_step(made: Any) -> None:
    """As text, whatever is in them; before everything else that is worth a look."""
    docs, partners = some_copies(made)
    page = made.page(made.run(docs, [made.near(partners, {**FACTS, "alarms": [ALARM]})]))
    assert f"Worth a look near: {ALARM}" in page.words
    assert "<b>160" not in page.html
    assert "one group holds &lt;b&gt;160" in section(page, "near")


def test_found_by_stands_in_the_block_and_not_twice(made: Any) -> None:
    """The table of the verdicts' words is left out beside the block, and stands where there are no facts."""
    docs, partners = some_copies(made)
    page = made.page(made.run(docs, [made.near(partners, FACTS)]))
    assert "How candidates were found" in page.words
    assert page.row("both")[1] == "1,000"
    assert "which signatures it shares" not in page.words
    made.root = made.root / "old"
    old = made.page(made.run(docs, [made.near(partners)]))
    assert "How candidates were found" not in old.words
    assert "which signatures it shares" in old.words
    assert old.row("both")[1] == "5"


def test_a_threshold_that_only_copies_have_has_one_side(made: Any) -> None:
    """No empty column of kept documents, and no share above a threshold below which nothing can lie."""
    docs, partners = some_copies(made)
    close = {text: (kept, 0.90001, size) for text, (kept, _, size) in partners.items()}
    page = made.page(made.run(docs, [made.near(close, FACTS)]))
    assert "just kept" not in page.words
    assert "100\N{NO-BREAK SPACE}% above" not in page.html
    assert "<bdi>90.001\N{NO-BREAK SPACE}%</bdi>" in page.html


def test_no_copy_of_an_earlier_run_is_not_worth_a_word(made: Any) -> None:
    """Most runs have no earlier one to be held against."""
    docs = [made.doc(f"document number {i} of many", id=f"d{i}") for i in range(1000)]
    page = made.page(made.run(docs, [made.near({docs[1].text: (docs[0].text, 0.95, 2)}, FACTS)]))
    assert "Never fired" not in page.words


def test_facts_of_a_step_without_a_view_are_a_table(made: Any) -> None:
    step = made.length()
    step.facts = {"n_rings": 12345, "alarms": ["look here"]}
    page = made.page(made.run([made.doc("some words that are enough")], [step]))
    assert "n rings 12,345" in page.words
    assert "Worth a look length: look here" in page.words


def write_pages(path: Path, n: int, same: str, start: int = 0) -> None:
    """n pages of 150 words that differ in one word, and one page of its own."""
    words = [f"{same}{i}" for i in range(150)]
    pages = [" ".join([*words[:100], f"number{start + i}", *words[101:]]) for i in range(n)]
    lines = [{"id": f"page{start + i}", "text": text} for i, text in enumerate([*pages, f"only once {start} ..."])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def run_near(root: Path, source: Path, settings: str = "") -> tuple[Pipeline, dict[str, Any]]:
    pipeline = start_run(parse_config(f"steps: [exact: {{}}, near: {{{settings}}}]\n"), [str(source)], root)
    drive(pipeline, workers=1)
    return Pipeline.open(pipeline.run.folder), finish_run(pipeline)


def test_a_real_run_and_one_against_it(tmp_path: Path, made: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The alarm is logged once, stands in funnel.json and on the page; the second run names the first one's document."""
    write_pages(tmp_path / "a.jsonl", 120, "word")
    first, funnel = run_near(tmp_path / "root", tmp_path / "a.jsonl")
    (alarm,) = funnel["alarms"]
    assert alarm["step"] == "near"
    assert "one group of near-duplicates holds 120 of 121 documents" in alarm["text"]
    assert sum(alarm["text"] in record.message for record in caplog.records) == 1
    page = made.page(first.run.folder)
    assert f"Worth a look near: {alarm['text']}" in page.words
    assert "16 bands x 8 rows, of 128 permutations" in page.words
    (group,) = copy_groups(page)
    assert "120 documents" in group
    assert re.search(r"<mark>number\d+</mark>", group)
    dropped = next(f"page{i}" for i in (0, 1) if not explain(first, f"page{i}")[0].verdicts[1].keep)
    said = "\n".join(explanation_lines(explain(first, dropped)[0]))
    assert "found_by = " in said
    assert re.search(r"the two are the same up to character \d+; from \d+ on\n    this one: .*number", said)

    write_pages(tmp_path / "b.jsonl", 2, "word", start=500)
    second, funnel = run_near(tmp_path / "root", tmp_path / "b.jsonl", f"against: [{first.run.folder}]")
    assert funnel["steps"][1]["dropped"] == {"near.duplicate_of_earlier": 2}
    assert funnel["alarms"] == []
    (found,) = explain(second, "page500")
    kept = found.verdicts[1].scores["kept_doc_id"]
    said = "\n".join(explanation_lines(found))
    assert found.partners == {}
    assert f"kept instead: doc_id {kept}, of an earlier run" in said
    assert explain(first, kept)[0].verdicts[1].keep
    page = made.page(second.run.folder)
    assert "3 documents · kept in an earlier run" in page.words
    assert f"kept instead: a document of an earlier run, doc_id {kept}" in page.words
