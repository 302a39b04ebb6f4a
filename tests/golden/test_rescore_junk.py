"""What the re-score puts on the blacklist of a crawl with planted junk: mostly junk, by a model that is made in this test.

The model counts byte pairs of good text, so it is made in a second and says the same on every machine: the weakest checkpoint
that there could be. Parts are those of tests/bench/rescore_gold.py: what trains is not judged. What a trained one reaches stands
in bench/results/rescore.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from curation.ids import text_id
from curation.rescore.config import ChooseConfig
from tests.bench.quality_gold import load_texts
from tests.bench.rescore_gold import Gold, Line, lines, part_of, place_of, planted, total

BYTES = 2_000
"""Of a document, from its beginning: what trains, and what is read."""


def beginning(text: str) -> npt.NDArray[np.uint8]:
    """uint8[at most BYTES]"""
    return np.frombuffer(text.encode()[:BYTES], np.uint8)


def bits_of_pairs(texts: list[str]) -> npt.NDArray[np.float64]:
    """Bits of each byte after each other one, as counted: float64[256, 256]."""
    counts = np.full((256, 256), 0.02)
    for text in texts:
        ids = beginning(text)
        np.add.at(counts, (ids[:-1], ids[1:]), 1)
    found: npt.NDArray[np.float64] = -np.log2(counts / counts.sum(1, keepdims=True))
    return found


@pytest.fixture(scope="module")
def judged(test_data: Path) -> tuple[pa.Table, Gold]:
    """Scores of the judged part, with its gold."""
    if not (test_data / "2_text").is_dir():
        pytest.skip(f"no 2_text in the test data at {test_data}: set CORPUSMILL_TEST_DATA to a folder that has it")
    documents = [one for one in load_texts(test_data / "2_text") if one.language]
    bits = bits_of_pairs([one.text for one in documents if part_of(one) == "train"])
    mine = [one for one in documents if part_of(one) == "judged"]
    read = [beginning(one.text) for one in mine]
    score = np.array([bits[ids[:-1], ids[1:]].mean() if len(ids) > 1 else 0.0 for ids in read])
    n = len(mine)
    table = pa.table(
        {
            "doc_id": pa.array([one.name.encode().ljust(16)[:16] for one in mine], pa.binary(16)),
            "text_id": pa.array([text_id(one.text) for one in mine], pa.binary(16)),
            "language": pa.array([one.language for one in mine], pa.string()),
            "source": pa.array(["crawl"] * n, pa.string()),
            "tokens": pa.array([len(ids) - 1 for ids in read]),
            "bits_per_byte": pa.array(score),
        }
    )
    gold = Gold(
        mine,
        np.array([one.quality == "junk" for one in mine]),
        np.array(["judged"] * n),
        np.ones(n, np.bool_),
        np.array([place_of(one.name, "planted") for one in mine]),
    )
    return table, gold


def chosen(judged: tuple[pa.Table, Gold], share: float) -> dict[str, Line]:
    table, gold = judged
    rows = planted(np.array(table.column("language").to_pylist()), gold, "judged", share)
    return lines(table, gold, rows, ChooseConfig(), one_source=True)


@pytest.mark.parametrize(("share", "high", "found"), [(0.05, 0.6, 0.35), (0.2, 0.9, 0.18), (0.55, 0.95, 0.04)])
def test_what_is_chosen_is_mostly_junk(judged: tuple[pa.Table, Gold], share: float, high: float, found: float) -> None:
    """With the default settings: of what scores too high at least so much is junk, and so much of all junk is found."""
    line = total(chosen(judged, share).values())
    assert line.high_junk / (line.high_junk + line.high_good) >= high
    assert line.precision >= max(0.6, 2 * line.base)
    assert line.recall >= found


@pytest.mark.parametrize(("share", "lost"), [(0.05, 0.015), (0.2, 0.003), (0.55, 0.001)])
def test_little_good_text_is_chosen(judged: tuple[pa.Table, Gold], share: float, lost: float) -> None:
    """Of all good documents at most so many, and of no language more than one in 25: a trained model takes a sixth of that."""
    found = chosen(judged, share)
    assert total(found.values()).good_lost <= lost
    assert max(line.good_lost for line in found.values() if line.judged > line.junk) <= 1 / 25


def test_a_language_of_few_documents_is_left_alone(judged: tuple[pa.Table, Gold]) -> None:
    """Below `min_documents` nothing is chosen, however odd a document is."""
    found = chosen(judged, 0.2)
    least = ChooseConfig().min_documents
    small = [line for line in found.values() if line.judged < least]
    assert len(small) >= 10
    assert all(line.hits + line.wrong == 0 for line in small)
