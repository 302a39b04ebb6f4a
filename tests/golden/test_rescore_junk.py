"""Laws of what the re-score puts on the blacklist of a crawl with planted junk, by a model that is made in this test.

How much of it is junk, and how much good text is lost: tests/gate/rescore.py, with floors in tests/golden/floors.json.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.rescore.config import ChooseConfig
from tests.bench.quality_gold import load_texts
from tests.bench.rescore_gold import total
from tests.gate.rescore import SHARES, Scored, chosen, scored


@pytest.fixture(scope="module")
def judged(test_data: Path) -> Scored:
    if not (test_data / "2_text").is_dir():
        pytest.skip(f"no 2_text in the test data at {test_data}: set CORPUSMILL_TEST_DATA to a folder that has it")
    return scored(load_texts(test_data / "2_text"))


@pytest.mark.parametrize("share", SHARES)
def test_what_is_chosen_is_junk_more_often_than_all(judged: Scored, share: float) -> None:
    """At least twice as often, whatever share of the crawl is junk, where there is room for that."""
    line = total(chosen(judged, share).values())
    assert line.precision >= min(2 * line.base, 1.0)


def test_a_language_of_few_documents_is_left_alone(judged: Scored) -> None:
    """Below `min_documents` nothing is chosen, however odd a document is."""
    found = chosen(judged, 0.2)
    least = ChooseConfig().min_documents
    small = [line for line in found.values() if line.judged < least]
    assert len(small) >= 10
    assert all(line.hits + line.wrong == 0 for line in small)
