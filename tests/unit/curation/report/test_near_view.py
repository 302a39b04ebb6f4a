"""The block on near-duplicates: every number is that of the facts, and its sentences are true."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from curation.report.near_view import POLICIES, near_view

FACTS: dict[str, Any] = {
    "threshold": 0.9,
    "shingle": 5,
    "by_character": ["han", "tai_le"],
    "keep": ["source_rank", "highest:quality.score", "longest"],
    "num_perm": 128,
    "bands": 16,
    "rows": 8,
    "simhash_distance": 3,
    "curve": [[j, 1 - (1 - j**8) ** 16] for j in (0.5, 0.7, 0.8, 0.9, 0.95)],
    "documents": 12_345,
    "without_shingles": 7,
    "earlier_documents": 600,
    "links": {"minhash": 900, "simhash": 30},
    "clusters": 321,
    "largest_cluster": 44,
    "found_by": {"neither": 3, "simhash": 5, "minhash": 70, "both": 1000},
    "largest_group": {"size": 9, "kept_doc_id": "00" * 16},
    "alarms": [],
}


def lines(facts: dict[str, Any]) -> dict[str, str]:
    return {fact.name: f"{fact.value} {fact.note}".strip() for fact in near_view(facts).facts}


def test_everything_that_was_found_is_said() -> None:
    """Shape of the signatures, shingle, policy, and how many documents took part in what."""
    found = lines(FACTS)
    assert found["shingle"].startswith("5 words 5 characters in scripts written without blanks")
    assert found["by characters"] == "2 scripts han, tai le"
    assert found["near-duplicate"].startswith("Jaccard > 0.9 ")
    assert found["MinHash"].startswith("16 bands x 8 rows, of 128 permutations ")
    assert found["SimHash"].startswith("at most 3 of 64 bits differ ")
    assert found["which copy stays"] == (
        "the one of the best source by the config's list, then the one with the highest quality.score, "
        "then the longest text, then the smaller text_id and then the smaller doc_id"
    )
    assert found["compared"].startswith("12,345 documents of which 7 without any word")
    assert found["and with"].startswith("600 documents that earlier runs kept")
    assert found["links"].startswith("900 by minhash, 30 by simhash ")
    assert found["clusters"].startswith("321 the largest holds 44 documents")
    view = near_view(FACTS)
    assert {row.name: row.n for row in view.counts} == FACTS["found_by"]
    assert all(row.note for row in view.counts)
    assert view.replaces == {"found_by"}


def test_what_is_not_there_is_not_said() -> None:
    """No SimHash, no earlier run, every document with a shingle; and a run that knows nothing at all."""
    found = lines({**FACTS, "simhash_distance": None, "earlier_documents": 0, "without_shingles": 0})
    assert found["SimHash"] == "not used"
    words = lines({**FACTS, "by_character": []})
    assert words["shingle"].startswith("5 words One changed word")
    assert "by characters" not in words
    assert "and with" not in found
    assert found["compared"] == "12,345 documents"
    nothing = near_view({"alarms": []})
    assert (list(nothing.facts), nothing.figure, list(nothing.counts), nothing.replaces) == ([], None, [], frozenset())


def test_every_policy_is_said_in_words() -> None:
    """The criteria of the step and the sentences here are the same list."""
    from curation.dedup.priority import CRITERIA

    assert POLICIES.keys() == {name.partition(":")[0] for name in CRITERIA}


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.9, 0.95])
def test_the_page_length_at_which_one_word_stops_to_matter(size: int, threshold: float) -> None:
    """B080: of templates that differ in a word, those from that many words on are near-duplicates, no shorter one is."""
    note = lines({"shingle": size, "threshold": threshold})["shingle"]
    match = re.search(r"from about ([\d,]+) words on", note)
    assert match is not None
    border = int(match.group(1).replace(",", ""))

    def jaccard(words: int) -> float:
        pages = [[f"w{i}" for i in range(words)] for _ in range(2)]
        pages[1][words // 2] = "another"
        a, b = ({tuple(page[i : i + size]) for i in range(words - size + 1)} for page in pages)
        return len(a & b) / len(a | b)

    assert jaccard(border) > threshold
    assert jaccard(border - 1) <= threshold


def test_the_curve_is_drawn_through_its_points() -> None:
    """Well formed, in its box, rising; a dot with a title for each point; the threshold where it belongs."""
    view = near_view(FACTS)
    svg = ElementTree.fromstring(str(view.figure))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    (curve,) = (path.attrib["d"] for path in svg.iter("path") if path.attrib["class"] == "curve")
    line = [tuple(map(float, pair.split())) for pair in curve[1:].split("L")]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in line)
    assert line == sorted(line, key=lambda point: (point[0], -point[1]))
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in svg.iter("circle")]
    assert len(dots) == len(FACTS["curve"])
    for x, y in dots:
        below = max((point for point in line if point[0] <= x + 0.06), key=lambda point: point[0])
        assert below == pytest.approx((x, y), abs=0.15) or below[0] < x
    (dashed,) = (path.attrib["d"] for path in svg.iter("path") if path.attrib["class"] == "threshold")
    assert f"M{dots[3][0]:.1f} " in dashed
    assert "exactly at the threshold 0.012\N{NO-BREAK SPACE}% are missed" in view.figure_note
    titles = [title.text for title in svg.iter("title")]
    assert "Jaccard 0.7: 61.3\N{NO-BREAK SPACE}%" in titles
