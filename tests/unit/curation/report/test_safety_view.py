"""The audit of safety: every number is that of the verdicts, every excerpt stands around what was found, nobody is named."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.config import parse_config
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.report.build import write_report
from curation.report.collect import StepFolder, StepPass, collect
from curation.report.safety_pass import begin_safety
from curation.report.safety_view import safety_view
from curation.report.samples import Reservoir
from curation.run import read_json
from tests.fakes import make_run, run_steps
from tests.safety_fake import FakeTerms, FakeTermsConfig, fake_filters, fake_safety
from tests.unit.curation.report.conftest import Page

__all__ = ["fake_safety"]

pytestmark = pytest.mark.usefixtures("fake_safety")

LONG = "A day at the library. 昨天下雨。\n" * 200
ADVERT = "casino jackpot, 加微信：made_up_00"
TEXTS = [
    LONG + "online casino casino jackpot bonus, ask @made_up_00 or 1380000 0000\n" + LONG,  # peak 11, not dense
    ADVERT,  # dropped for gambling; spam stands in it, too
    "casino casino casino",  # dropped
    "a jackpot and a bonus",  # kept: peak 3
    "<script>jackpot</script> & bonus pills\u202e",  # kept: peak 3
    "上车买票",  # kept: spam, peak 1
    "加微信 加微信",  # dropped for spam
    "weather and hate=0.95 words",  # dropped by the model
    LONG + "hate=0.5 lines in between " + LONG,  # kept by the model, near the limit
    "violence=0.9 hate=0.99",  # of two labels: violence comes first
    "# nothing is read",
    "plain words",
]


def done(root: Path, texts: Sequence[str], steps: str = "[safety_terms, safety_model]") -> Path:
    """The folder of a finished run."""
    lines = [json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)]
    root.mkdir(exist_ok=True)
    (root / "in.jsonl").write_text("".join(lines), "utf-8")
    config = parse_config(f"name: t\nsteps: {steps}\n")
    pipeline = start_run(config, [str(root / "in.jsonl")], root / "root")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return Pipeline.open(pipeline.run.folder).run.folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    with fake_filters():
        return Page(write_report(done(tmp_path_factory.mktemp("page"), TEXTS)))


def sections(page: Page) -> list[str]:
    """The HTML of the sections of all steps."""
    return re.split(r'<section class="step"', page.html)[1:]


def groups(section: str) -> dict[str, str]:
    """The HTML of each group of samples, by its title."""
    found = re.findall(r'<details class="group.*?<summary><b>(.*?)</b>(.*?)</details>', section, re.DOTALL)
    return dict(found)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_table_counts_every_category(page: Page) -> None:
    """hit = dropped for it + dropped for another + kept."""
    assert page.row("safety_terms.gambling")[1:6] == ["5", "2", "16.7 %", "0", "3"]
    assert page.row("safety_terms.spam")[1:6] == ["3", "1", "8.3 %", "1", "1"]
    assert page.row("safety_terms.drugs")[1:6] == ["1", "0", "0 %", "0", "1"]
    assert page.row("safety_model.hate")[1:6] == ["2", "1", "11.1 %", "1", "0"]
    assert page.row("safety_model.violence")[1:6] == ["1", "1", "11.1 %", "0", "0"]


def test_each_category_shows_both_sides_of_its_limit(page: Page) -> None:
    """Dropped ones, and of the kept ones those that lack least; none where nothing was found."""
    terms, model = (groups(section) for section in sections(page))
    assert list(terms) == ["gambling", "spam", "drugs", "passed", "terms that fire most"]
    dropped, near = terms["gambling"].split("kept, nearest to the limit")
    assert {*re.findall(r"<bdi>(d\d+)</bdi>", dropped)} == {"d1", "d2"}
    # d0 lacks density and the peak of a dense block (11 of 12), d3 and d4 lack a quarter of the least peak.
    assert re.findall(r"<bdi>(d\d+)</bdi>", near)[0] == "d0"
    assert {*re.findall(r"<bdi>(d\d+)</bdi>", near)} == {"d0", "d3", "d4"}
    assert set(model) == {"violence", "hate", "passed"}
    assert re.findall(r"<bdi>(d\d+)</bdi>", model["hate"]) == ["d7", "d8"]


def test_an_excerpt_stands_around_its_heaviest_term(page: Page) -> None:
    """Not at the beginning of a long document; with the terms of the category marked, and their rules named."""
    (gambling,) = [html for title, html in groups(sections(page)[0]).items() if title == "gambling"]
    near = next(one for one in gambling.split("<article")[1:] if "<bdi>d0</bdi>" in one)
    assert near.count('<mark title="gambling: casino (fake.tsv:3)">casino</mark>') == 2
    assert re.search(r"characters from byte [\d,]+ of", near)
    assert "gambling peak 11" in words(near)
    assert "terms casino ×2 (fake.tsv:3), jackpot (fake.tsv:6), bonus (fake.tsv:5)" in words(near)
    advert = next(one for one in gambling.split("<article")[1:] if "<bdi>d1</bdi>" in one)
    assert '<mark class="other" title="spam: 加微信 (fake.tsv:7)">加微信</mark>' in advert


def test_a_model_shows_its_worst_window(page: Page) -> None:
    """The text from there on, the label in question first, with its probability and the limit's mark."""
    hate = groups(sections(page)[1])["hate"]
    near = next(one for one in hate.split("<article")[1:] if "<bdi>d8</bdi>" in one)
    begin = len(LONG.encode())
    assert f"worst window bytes {begin:,} to {begin + 200:,}" in words(near)
    assert '<li class="decides">hate <b><bdi>50\u00a0%</bdi></b></li>' in near
    assert re.search(r'<p class="text" dir="auto">hate=0.5 lines in between', near)


def test_what_passed_is_shown_by_chance_with_its_scores(page: Page) -> None:
    """Also what has no score: no term was found, or the model has not read it."""
    terms, model = (groups(section)["passed"] for section in sections(page))
    assert terms.count("<article") == 9
    assert "9 of 9 documents that this step kept, drawn at random" in words(terms)
    assert "no term found" in words(next(one for one in terms.split("<article") if "<bdi>d11</bdi>" in one))
    assert "not read by the model" in words(next(one for one in model.split("<article") if "<bdi>d10</bdi>" in one))


def test_nobody_is_named(page: Page) -> None:
    """Accounts and numbers are masked in every excerpt, and nothing of the crawl is HTML."""
    assert "made_up" not in page.html
    assert "1380000" not in page.html
    assert "@••••••••••" in page.text
    assert "script" not in page.tags
    assert {tag for tag, name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset")} == set()


def test_terms_are_ranked_by_documents(page: Page) -> None:
    """With the line of their list, so that it can be repaired."""
    section = groups(sections(page)[0])["terms that fire most"]
    rows = [words(row).split() for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", section, re.DOTALL)]
    assert rows[:4] == [
        ["jackpot", "fake.tsv:6", "4", "1", "0"],
        ["bonus", "fake.tsv:5", "3", "0", "0"],
        ["casino", "fake.tsv:3", "3", "2", "1"],
        ["pills", "fake.tsv:11", "1", "0", "0"],
    ]
    assert 'title="/lists/fake.tsv:3"' in section


def test_the_cascade_says_what_it_misses(page: Page) -> None:
    """In a sentence, with the interval; and how much of all the model has read."""
    text = page.words.replace("\u00a0", " ")
    assert "The model read 8 of 9 documents (88.9 %)." in text
    assert (
        "of 200 documents that it would not have given to the model, drawn at random and read all the same, 3 were unsafe"
        in text
    )
    assert "about 1.5 % of the 1 document left unread" in text
    assert "(95 % interval 0.51 % to 4.3 %): 0 documents, between 0 and 0" in text


def test_spans_are_no_labels(page: Page) -> None:
    """`matched` is neither counted nor drawn nor shown as it is stored."""
    assert "matched:" not in page.text
    assert '[["' not in page.text
    assert "Stored, but of a type" not in page.text
    assert "hits_hits" not in page.html


def test_the_page_is_a_function_of_the_run(tmp_path: Path) -> None:
    folder = done(tmp_path, TEXTS)
    assert write_report(folder).read_bytes() == write_report(folder).read_bytes()


def test_one_step_is_enough(tmp_path: Path) -> None:
    """A model without terms has no marks; terms without a model are complete."""
    for number, steps in enumerate(("[safety_terms]", "[safety_model]", "[safety_model, safety_terms]")):
        page = Page(write_report(done(tmp_path / str(number), TEXTS, steps)))
        assert ("mark" in page.tags) == (steps != "[safety_model]")


@pytest.mark.parametrize("texts", [["# only this"], ["plain words"], ["casino casino"]])
def test_runs_with_next_to_nothing(tmp_path: Path, texts: list[str]) -> None:
    """Nothing read, nothing found, nothing left."""
    Page(write_report(done(tmp_path, texts)))


def test_nothing_depends_on_the_cut_into_shards(tmp_path: Path) -> None:
    """Numbers, samples and their order are those of the documents."""
    texts = [f"{text} {number}" for number in range(6) for text in TEXTS]
    found = []
    for cut in (len(texts), 7, 20):
        shards = [texts[i : i + cut] for i in range(0, len(texts), cut)]
        judged = run_steps(make_run(tmp_path / str(cut), shards), [FakeTerms(FakeTermsConfig())])
        folder = judged.folder("safety_terms")
        step = StepFolder(0, "safety_terms", folder, read_json(folder / "_step.json"))
        (passed,) = collect(judged.shards, [step]).steps
        assert passed.safety is not None
        places = [shard * cut + row for shard, row in passed.safety.places]
        counts = [(c.name, c.hit, c.dropped, c.elsewhere, c.kept) for c in passed.safety.categories.values()]
        found.append((places, counts))
    assert found[0] == found[1] == found[2]
    assert ("gambling", 30, 12, 0, 18) in found[0][1]
    assert len(found[0][0]) > 20


CARD: dict[str, Any] = {
    "reasons": {"safety_model.hate": "hate"},
    "scores": [{"name": name, "unit": "", "what": ""} for name in ("hate", "worst_begin", "worst_end")],
    "thresholds": {},
}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"terms": 3, "cascade": 4},
        {
            "terms": {"hate": 3, "own": [None, {}, {"term": 3}, {"term": "x", "documents": "many"}]},
            "different_terms": [],
        },
        {"cascade": {"audited": "some", "audited_unsafe": 0, "documents_not_read": 0}},
        {"cascade": {"audited": 3, "audited_unsafe": 4, "documents_not_read": 0}},
        {"cascade": {"audited": 3, "audited_unsafe": 1, "documents_not_read": 5, "low": "?", "high": 7}},
        {"cascade": {"audited": 0, "audited_unsafe": 0, "documents_not_read": 5, "estimate": None}},
    ],
)
def test_facts_of_another_version_break_nothing(facts: dict[str, Any]) -> None:
    """What is not there, or is something else, is left out, or worked out from what is there."""
    found = StepPass(StepFolder(0, "safety_model", Path("x"), CARD, facts), Reservoir(2), {}, {})
    found.safety = begin_safety("safety_model", CARD)
    view = safety_view(found)
    assert view is not None
    assert len(view.rows) == 1


def test_an_audit_of_nothing_says_so() -> None:
    facts = {"cascade": {"audited": 0, "audited_unsafe": 0, "documents_not_read": 5}}
    found = StepPass(StepFolder(0, "safety_model", Path("x"), CARD, facts), Reservoir(2), {}, {})
    found.safety = begin_safety("safety_model", CARD)
    view = safety_view(found)
    assert view is not None
    assert "nobody can say" in view.sentences[0]


def test_facts_are_in_the_marker(tmp_path: Path) -> None:
    """So that a report does not pass over `matched` again."""
    folder = done(tmp_path, TEXTS)
    (marker,) = folder.glob("steps/*safety_terms*/_done.json")
    assert set(read_json(marker)["facts"]) >= {"terms", "different_terms"}


def test_a_damaged_step_leaves_the_other_readable(tmp_path: Path) -> None:
    """Its file is named as a problem; samples of the other have no marks then."""
    folder = done(tmp_path, TEXTS, "[safety_model, safety_terms]")
    (verdicts,) = folder.glob("steps/*safety_terms*/*.arrow")
    verdicts.chmod(0o644)
    verdicts.write_bytes(verdicts.read_bytes()[:200])
    page = Page(write_report(folder))
    assert "mark" not in page.tags
    assert verdicts.name in page.text
    assert page.row("safety_model.hate")[1:6] == ["2", "1", "8.3 %", "1", "0"]
