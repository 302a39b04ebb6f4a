"""The report of a re-score: the whole page, for every state of a threshold and every kind of crawl."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from curation.errors import RunError
from curation.report.rescore_report import write_rescore_report
from curation.rescore.config import ChooseConfig, Tail
from curation.run import write_json
from tests.rescore_fake import Page, Score, make_run, make_threshold

B = 10**10
APPROVED = {"decision": "approved", "who": "anna", "when": "2026-05-20T15:55:00Z", "note": "looked at all"}


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


class Look(HTMLParser):
    """A page: every element closed, its text, its attributes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: set[str] = set()
        self.parts: list[str] = []
        self._open: list[str] = []
        self.feed(self.html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br", "col"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another element"
        self.parts.append(" " if tag in {"td", "th", "div", "p", "li"} else "")

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.parts.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.parts).split())


def pages(n: int, salt: str = "", languages: tuple[str, ...] = ("eng_Latn", "zho_Hans", "deu_Latn")) -> list[Page]:
    return [
        Page(
            f"{salt}{n} the mill by the river",
            languages[n % len(languages)],
            f"/data/s{n % 2}.jsonl",
            f"https://h{n % 5}.example/{n}",
        )
        for n in range(n)
    ]


def level(fell: float = 0.0) -> Any:
    """Scores around a level; some are far out at either end; one source is learned faster."""

    def score(page: Page, number: int) -> Score:
        bits = 2.0 - fell + (number * 7919 % 1000) / 1000
        if number % 60 == 7:
            bits += 4
        if number % 90 == 11:
            bits = 0.01 + number / 1e5
        faster = 3 * fell if page.source == "/data/s1.jsonl" else 0.0
        return bits, max(bits * 2.5 - faster, 0.01), 300

    return score


def history(root: Path, n: int = 3, *, size: int = 900, **options: Any) -> list[Path]:
    """Thresholds in a row, each of a run of its own, each with its report."""
    folders = []
    for k in range(1, n + 1):
        some = pages(size, f"{k}-")
        make_run(root, f"crawl-{k}", some, start=f"2026-05-0{k}T10:00:00Z")
        folders.append(
            make_threshold(
                root, "gpt", k * B, [(f"crawl-{k}", some)], level(0.2 * k), version=k, decision=APPROVED, **options
            )
        )
        write_rescore_report(folders[-1])
    return folders


def facts_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report" / "facts.json").read_text(encoding="utf-8"))
    return found


def test_the_third_lies_beside_the_former_two(tmp_path: Path) -> None:
    """The page tells the numbers of the facts: progress, drift, what was chosen, by whom approved, which version, weights."""
    folder = history(tmp_path)[-1]
    page, facts = Look(write_rescore_report(folder)), facts_of(folder)
    assert facts["former"]["threshold"] == 2 * B
    assert facts["drift"]["progress"] == pytest.approx(0.2, abs=0.01)
    assert {row["verdict"] for row in facts["drift"]["language"]["groups"]} == {"steady"}
    totals = facts["guards"]["totals"]
    assert totals["high_chosen"]
    assert totals["low_chosen"]
    for text in (
        "gpt at 30 B tokens", "compared with 10 B, 20 B", "approved by anna", "looked at all", "crawl-3",
        "noise, the farthest out", "boilerplate, the farthest out", f"{totals['high_chosen']} noise, {totals['low_chosen']} boilerplate",
        "by: source", "/data/s0.jsonl:", "No run has used version 3",
    ):  # fmt: skip
        assert text in page.words, text
    assert page.tags & {"script", "link", "img", "iframe", "object"} == set()
    assert not re.search(r"https?://", re.sub(r"<bdi>.*?</bdi>", "", page.html))


def test_it_is_a_function_of_what_lies_there(tmp_path: Path) -> None:
    """Written again it has the same bytes, also where shards were cut otherwise; a later run's losses come in."""
    folder = history(tmp_path, 2)[-1]
    before = [(folder / "report" / name).read_bytes() for name in ("report.html", "facts.json")]
    write_rescore_report(folder)
    assert before == [(folder / "report" / name).read_bytes() for name in ("report.html", "facts.json")]
    step = tmp_path / "runs" / "later" / "steps" / "05-blacklisted-0a1b2c3d"
    write_json(tmp_path / "runs" / "later" / "run.json", {"run_id": "later", "start": "2026-06-01T00:00:00Z"})
    write_json(step / "_step.json", {"config": {"version": 2}})
    write_json(step / "_done.json", {"docs_in": 1000, "docs_kept": 969, "dropped": {"blacklisted.near": 31}})
    assert "1,000 31 3.1 % ? near 31" in Look(write_rescore_report(folder)).words


def test_the_first_one_says_that_it_is(tmp_path: Path) -> None:
    page = Look(write_rescore_report(history(tmp_path, 1, size=300)[0]))
    assert "the first re-score of this training" in page.words
    assert "There is no former re-score" in page.words
    assert "by: source" not in page.words


@pytest.mark.parametrize("damage", ["missing", "damaged", "foreign", "half"])
def test_a_former_one_without_facts_is_left_out_and_named(tmp_path: Path, damage: str) -> None:
    first, _, third = history(tmp_path, size=130)
    path = first.with_name(f"{2 * B:016d}") / "report" / "facts.json"
    if damage == "missing":
        path.unlink()
    else:
        path.write_text(
            {"damaged": "{", "foreign": '{"format": 99}', "half": '{"format": 1, "entry": {}}'}[damage],
            encoding="utf-8",
        )
    page = Look(write_rescore_report(third))
    assert "The facts.json of the re-score at 20 B" in page.words or "The re-score at 20 B tokens has" in page.words
    assert facts_of(third)["former"]["threshold"] == B


def test_long_ago_only_summaries_are_needed(tmp_path: Path) -> None:
    """Of a training with many re-scores a page reads three whole; the older ones still stand in its drawings."""
    *older, _, _, _, last = history(tmp_path, 6, size=60)
    before = Look(write_rescore_report(last)).html
    for folder in older:
        (folder / "report" / "facts.json").unlink()
    assert Look(write_rescore_report(last)).html == before
    assert before.count("10 B") >= 2
    (older[0] / "report" / "summary.json").unlink()
    assert "The re-score at 10 B tokens has no facts.json" in Look(write_rescore_report(last)).words


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("rejected", "rejected by anna"),
        ("nothing_chosen", "nothing chosen"),
        ("superseded", "A later checkpoint took its place."),
        (None, "This re-score is not finished"),
    ],
)
def test_however_it_ended(tmp_path: Path, state: str | None, said: str) -> None:
    some = pages(300)
    make_run(tmp_path, "crawl", some)
    nothing = ChooseConfig(high=Tail(), low=Tail())
    decision = {**APPROVED, "decision": "rejected"} if state == "rejected" else None
    folder = make_threshold(
        tmp_path, "gpt", B, [("crawl", some)], level(), state=state, version=None, decision=decision,
        choose_config=nothing if state == "nothing_chosen" else None,
    )  # fmt: skip
    page = Look(write_rescore_report(folder))
    assert said in page.words
    assert "none was written" in page.words


def test_no_documents_no_scores_and_before_anything_began(tmp_path: Path) -> None:
    """No runs; a run whose scores are all null; threshold.json alone, as it is when it is first seen."""
    page = Look(write_rescore_report(make_threshold(tmp_path, "a", B, [], level(), state="no_documents", version=None)))
    assert "There were no new documents" in page.words
    some = pages(200)
    make_run(tmp_path, "crawl", some)
    folder = make_threshold(
        tmp_path, "b", B, [("crawl", some)], lambda page, n: None, state="nothing_chosen", version=None
    )
    assert "No document could be judged" in Look(write_rescore_report(folder)).words
    after = make_threshold(tmp_path, "b", 2 * B, [("crawl", some)], level(), version=1)
    assert "There is no former re-score to compare with" in Look(write_rescore_report(after)).words
    seen = tmp_path / "rescore" / "c" / f"{B:016d}"
    write_json(
        seen / "threshold.json", {"training_run": "c", "threshold": B, "settings": None, "runs": None, "begun": None}
    )
    assert "not finished" in Look(write_rescore_report(seen)).words
    with pytest.raises(RunError, match=r"threshold\.json"):
        write_rescore_report(tmp_path / "rescore" / "nosuch" / "0")


def test_a_run_that_is_gone_and_a_damaged_score_file(tmp_path: Path) -> None:
    """Scores outlast their run, without samples; what cannot be read is said on top."""
    first, second = history(tmp_path, 2)
    shutil.rmtree(tmp_path / "runs" / "crawl-2")
    page = Look(write_rescore_report(second))
    assert "Run crawl-2 is gone" in page.words
    assert "No sample could be read" in page.words
    assert facts_of(second)["distributions"]["all"]["judged"] == 900
    path = first / "crawl-1" / "scores" / "00000-000.arrow"
    path.write_bytes(path.read_bytes()[:-100] + b"x" * 100)
    assert "These scores are missing below" in Look(write_rescore_report(first)).words


def test_many_languages_and_sources(tmp_path: Path) -> None:
    """300 languages, 2,000 sources: the largest are shown, the others counted; the page stays small."""
    for k in (1, 2):
        some = [Page(f"{k}-{n}", f"l{n % 300:03d}", f"/d/{n % 2000:04d}.jsonl") for n in range(2400)]
        make_run(tmp_path, f"many-{k}", some)
        folder = make_threshold(tmp_path, "gpt", k * B, [(f"many-{k}", some)], level(0.1 * k), version=k)
        path = write_rescore_report(folder)
    page = Look(path)
    assert "300 languages, the largest first" in page.words
    assert "2,000 sources, the largest first" in page.words
    assert "1,900 more" in page.words
    assert path.stat().st_size < 3_000_000
    assert (folder / "report" / "facts.json").stat().st_size < 2_000_000


HOSTILE = [
    "</style><script>alert(1)</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} <!-- -->", "abc \u202edlrow\u202c \u2066x\u2069",
    "nul \x00 escape \x1b[31m \x7f", "A" * 100_000, """'"><a href="javascript:alert(1)" onclick='x'>""", "\u0301" * 300, " \n\n\t",
]  # fmt: skip


def test_hostile_names_and_texts_stay_text(tmp_path: Path) -> None:
    """In texts, addresses, sources, languages, the training's name, the decision, the settings."""
    some = [
        Page(
            HOSTILE[n % 8] + str(n),
            HOSTILE[n % 7][:300],
            f"/data/{HOSTILE[n % 8][:200]}",
            "https://" + HOSTILE[n % 8][:200],
        )
        for n in range(1600)
    ]
    make_run(tmp_path, "crawl", some)
    for k in (1, 2):
        folder = make_threshold(
            tmp_path, HOSTILE[0] + HOSTILE[5], k * B, [("crawl", some)], level(0.1 * k), choose_config=ChooseConfig(group="language"),
            settings={"note": HOSTILE[5], "choose": {}}, decision=dict.fromkeys(("decision", "who", "when", "note"), HOSTILE[0]),
        )  # fmt: skip
        path = write_rescore_report(folder)
    for page in (Look(path), Look(folder.parent / "index.html")):
        assert page.tags & {"script", "img", "iframe", "object", "link", "form"} == set()
        assert not [
            one for one in page.attributes if one[1].startswith("on") or ("javascript:" in one[2] and one[1] == "href")
        ]
        assert {
            value
            for tag, name, value in page.attributes
            if name == "href" and not value.startswith(("#", "../../index.html", "0"))
        } == set()
        assert "\x00" not in page.html
        assert "\u202e" not in page.html
    assert path.stat().st_size < 2_000_000


def test_persons_are_masked(tmp_path: Path) -> None:
    """In samples, and in names that come from the crawl, such as a page's host."""
    some = [
        Page(
            f"write to jane.doe@example.org or +86 138 1234 5678 now {n}", url="https://x.example/jane.doe@example.org"
        )
        for n in range(300)
    ]
    make_run(tmp_path, "crawl", some)
    html = write_rescore_report(make_threshold(tmp_path, "gpt", B, [("crawl", some)], level())).read_text(
        encoding="utf-8"
    )
    assert "jane.doe" not in html
    assert "138 1234" not in html
    assert "•" in html


def test_the_page_of_the_training_lists_them_all(tmp_path: Path) -> None:
    """Newest first, with links that lead to the reports; one without facts is listed too."""
    first, *_ = history(tmp_path, size=130)
    make_threshold(tmp_path, "gpt", 4 * B, [], level(), state=None, version=None)
    make_threshold(tmp_path, "gpt", 5 * B, [], level(), state="superseded", version=None)
    write_rescore_report(first)
    page = Look(first.parent / "index.html")
    links = [value for tag, name, value in page.attributes if tag == "a" and name == "href"]
    assert links == [f"{k * B:016d}/report/report.html" for k in (3, 2, 1)]
    assert all((first.parent / link).is_file() for link in links)
    assert "no report yet" in page.words
    assert "superseded no report" in page.words
    assert "5 re-scores" in page.words


def test_it_can_be_read_without_seeing_it(tmp_path: Path) -> None:
    """Every drawing says what it shows, every table that scrolls can be reached by keyboard, every id is there once."""
    page = Look(write_rescore_report(history(tmp_path, 2, size=300)[-1]))
    for svg in re.findall(r"<svg[^>]*>", page.html):
        assert 'aria-hidden="true"' in svg or re.search(r'role="img" aria-label="[^"]{8,}"', svg)
    for div in re.findall(r'<div class="scroll"[^>]*>', page.html):
        assert 'tabindex="0"' in div
        assert "aria-label" in div
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for tag, name, value in page.attributes if name == "href" and value.startswith("#")} <= set(ids)
