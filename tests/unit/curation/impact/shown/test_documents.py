"""The documents of a sheet: which are shown, what is said of each, and that older code and moved shards do no harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from curation.errors import RunError
from curation.impact.facts import KEPT, Comparison
from curation.impact.shown.documents import Documents, ShownDocument, all_shown, choose_documents, documents_json
from tests.impact_fake import Told, compare_runs, with_commit

SENTENCE = "The old bridge over the river was built by masons who came from the south of the country in spring. "
BASE = {"exact": {}, "html_noise": {}, "length": {"min_units": 16}}
NEW = {
    "exact": {},
    "html_noise": {"max_noise_share": 0.6, "max_noise_share_with_code": 0.7},
    "length": {"min_units": 30},
}
LANGUAGES = ("eng_Latn", "deu_Latn", "fra_Latn")


def corpus() -> list[Told]:
    """Short ones that leave, pages with markup that come in, copies, and documents that stay on either side of a limit."""
    found = [Told(f"Number {i}. {SENTENCE}", LANGUAGES[i % 3], label="good" if i % 2 else None) for i in range(45)]
    found += [Told(f"Number {i}. {SENTENCE * 2}", "eng_Latn") for i in range(45, 60)]
    for i in range(8):
        page = f"<div class='a{i}'><a href='x'>go {i}</a></div> " * 3 + SENTENCE * 2 + f"mail joe{i}@example.org"
        found.append(Told(page, "eng_Latn", label="junk"))
    found += [Told(f"tiny {i}", "deu_Latn") for i in range(4)]
    return [*found, Told(found[50].text, "eng_Latn", source="copies.jsonl")]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compare_runs(tmp_path_factory.mktemp("sides"), corpus(), BASE, NEW, shard_rows=20)


@pytest.fixture(scope="module")
def chosen(comparison: Comparison) -> Documents:
    return choose_documents(comparison)


def test_newly_dropped_and_newly_kept_are_told_apart(chosen: Documents) -> None:
    """Twenty of those that leave, all of those that come in; each with what becomes of it on either side."""
    assert len(chosen.dropped) == 20
    assert {(one.before, one.after.reason) for one in chosen.dropped} == {(KEPT, "length.too_short")}
    assert len(chosen.kept) == 8
    assert {(one.before.reason, one.after) for one in chosen.kept} == {("html_noise.markup", KEPT)}


def test_languages_take_turns(chosen: Documents) -> None:
    """No language fills the list while another has something to show."""
    counts = [sum(one.language == language for one in chosen.dropped) for language in LANGUAGES]
    assert max(counts) - min(counts) <= 1


def test_the_same_change_shows_the_same_documents(comparison: Comparison, chosen: Documents, tmp_path: Path) -> None:
    """However its shards were cut."""
    again = choose_documents(compare_runs(tmp_path, corpus(), BASE, NEW, shard_rows=7))
    for name in ("dropped", "kept", "border_kept", "border_dropped"):
        assert [one.doc_id for one in getattr(again, name)] == [one.doc_id for one in getattr(chosen, name)], name
    assert choose_documents(comparison) == chosen


def test_fewer_are_shown_if_fewer_are_asked_for(comparison: Comparison) -> None:
    """The first ones of the same list."""
    few, many = choose_documents(comparison, 5), choose_documents(comparison, 20)
    assert few.dropped == many.dropped[:5]


def test_the_deciding_score_has_both_limits(chosen: Documents) -> None:
    """A moved limit is told as it was and as it is, beside the score."""
    (score,) = chosen.dropped[0].scores
    assert (score.step, score.name, score.unit) == ("length", "units", "English words")
    assert score.before == score.after
    assert (score.limits_before[0], score.limits_after[0]) == (16.0, 30.0)
    assert 16 <= score.after < 30


def test_what_triggered_it_is_marked(chosen: Documents) -> None:
    """Tags of the document that html_noise dropped on the base, and nothing else."""
    one = chosen.kept[0]
    assert "<mark" in one.html
    marked = [one.excerpt.text[mark.begin : mark.end] for mark in one.marks]
    assert marked[0].startswith("<div class=")
    assert not any("bridge" in piece for piece in marked)


def test_personal_data_is_masked(chosen: Documents) -> None:
    """As in every report."""
    for one in all_shown(chosen):
        assert not re.search(r"joe\d@example", one.excerpt.text + one.html)


def test_borderline_documents_stay_and_are_near(chosen: Documents) -> None:
    """Kept ones on the kept side of a limit, dropped ones beyond it, the nearest first for each score."""
    assert {one.before for one in chosen.border_kept} == {KEPT} == {one.after for one in chosen.border_kept}
    for one in (*chosen.border_kept, *chosen.border_dropped):
        assert one.before == one.after
        assert one.near is not None
        assert one.near.step in ("html_noise", "length")
    tiny = [one for one in chosen.border_dropped if one.near is not None and one.near.score == "units"]
    assert tiny
    assert all(one.near is not None and one.near.limit == 16.0 for one in tiny)


def test_a_copy_is_shown_beside_the_one_that_is_kept(tmp_path: Path) -> None:
    """A document that deduplication drops now: both texts, and where they are the same."""
    found = choose_documents(compare_runs(tmp_path, corpus(), ["html_noise"], ["html_noise", "exact"]))
    (copy,) = found.dropped
    assert copy.after.reason == "exact.duplicate"
    assert copy.source == "copies.jsonl"
    assert copy.partner is not None
    assert (copy.partner.id, copy.partner.note) == ("d50", "the same text")
    assert [score.name for score in copy.scores] == ["similarity"]


def test_a_step_on_one_side_only(tmp_path: Path) -> None:
    """Its scores have a value and limits on that side alone; nothing is borderline."""
    found = choose_documents(compare_runs(tmp_path, corpus(), ["exact"], {"exact": {}, "length": {}}))
    (score,) = found.dropped[0].scores
    assert (score.before, score.limits_before) == (None, ())
    assert score.limits_after == (16.0, 1_000_000.0)
    assert found.border_kept == found.border_dropped == ()


def test_other_code_is_asked_for_nothing_but_what_lies_on_disk(comparison: Comparison, chosen: Documents) -> None:
    """A base whose config this code cannot even read gives the same documents: its cards say enough."""
    older = with_commit(comparison, "1a2b3c4" * 5)
    older = replace(older, base=replace(older.base, config_text="name: old\nsteps:\n- no_such_step: {}\n"))
    found = choose_documents(older)
    assert [one.doc_id for one in found.dropped] == [one.doc_id for one in chosen.dropped]
    assert found.kept[0].scores == chosen.kept[0].scores
    assert found.kept[0].marks == chosen.kept[0].marks


def test_shards_that_the_base_cut_otherwise(chosen: Documents, tmp_path: Path) -> None:
    """Documents are found by their identity; borderline ones are not looked for."""
    other = compare_runs(tmp_path, corpus(), BASE, NEW, shard_rows=20, base_shard_rows=33)
    found = choose_documents(other)
    assert [(one.doc_id, one.scores) for one in found.kept] == [(one.doc_id, one.scores) for one in chosen.kept]
    assert found.border_kept == ()


def test_no_change_shows_nothing(tmp_path: Path) -> None:
    """Both sides alike: no document, and no filter of which one could be borderline."""
    assert list(all_shown(choose_documents(compare_runs(tmp_path, corpus()[:5], ["exact"], ["exact"])))) == []


def test_a_damaged_shard_is_refused(tmp_path: Path) -> None:
    """What is shown is what was written."""
    found = compare_runs(tmp_path, corpus(), BASE, NEW)
    path = next((found.new.run_folder / "shards").glob("*.arrow"))
    data = path.read_bytes()
    place = data.find(b"masons")
    path.write_bytes(data[:place] + b"MASONS" + data[place + 6 :])
    with pytest.raises(RunError, match="is not the file that was written"):
        choose_documents(found)


def test_reasons_take_turns(tmp_path: Path) -> None:
    """A rare reason is shown among the first, a frequent one does not fill the list."""
    found = choose_documents(
        compare_runs(tmp_path, corpus(), ["exact"], {"exact": {}, "html_noise": {}, "length": {"min_units": 30}})
    )
    assert {one.after.reason for one in found.dropped[:2]} == {"html_noise.markup", "length.too_short"}


def test_documents_as_plain_data(chosen: Documents) -> None:
    """Everything but what is there for pages; nothing that JSON cannot hold."""
    from curation.impact.sheet import plain

    told = json.loads(json.dumps(plain(documents_json(chosen))))
    first = told["dropped"][0]
    assert first["after"] == {"step": "length", "reason": "length.too_short"}
    assert first["scores"][0]["limits_after"] == [30.0, 1_000_000.0]
    assert {"excerpt", "marks", "label", "language", "weight"} <= first.keys()
    assert "html" not in first


def test_hostile_names_are_cut_and_masked(tmp_path: Path) -> None:
    """Ids, labels and sources come from the crawl."""
    hostile = Told("tiny", source="x" * 500, label="call +49 170 1234567", id="mail bob@example.org " + "y" * 500)
    found = choose_documents(compare_runs(tmp_path, [hostile], ["exact"], ["exact", "length"]))
    (one,) = found.dropped
    assert isinstance(one, ShownDocument)
    assert len(one.id) <= 120 >= len(one.source)
    assert "bob@" not in one.id
    assert one.label is not None
    assert "1234567" not in one.label


def test_a_table_of_no_documents(comparison: Comparison) -> None:
    """An empty table is no error."""
    empty = replace(comparison, documents=comparison.documents.slice(0, 0))
    assert list(all_shown(choose_documents(empty))) == []
    assert isinstance(empty.documents, pa.Table)
