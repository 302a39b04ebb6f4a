"""What the pass over the verdicts finds, held against a plain count; and the sides of a threshold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.report.collect import Border, Collected, StepFolder, _Judged, collect
from curation.run import Run
from curation.shards import shards_of


def collected(folder: Path) -> Collected:
    steps = []
    for index, path in enumerate(sorted((folder / "steps").iterdir())):
        card = json.loads((path / "_step.json").read_text(encoding="utf-8"))
        steps.append(StepFolder(index, card["name"], path, card))
    return collect(shards_of(Run(folder)), steps)


@pytest.mark.parametrize("rows", [7, 1000])
def test_counts_are_those_of_a_plain_loop(made: Any, rows: int) -> None:
    """Documents by reason, source, host and label, whatever the shards."""
    docs = [
        made.doc("汉字 " * (i % 9) + "word " * (i % 5), f"https://Host{i % 3}.example:8080/x", f"/data/{i % 2}.jsonl")
        for i in range(100)
    ]
    found = collected(made.run(docs, [made.length(), made.language()], shard_rows=rows))
    words = [len(doc.text.split()) for doc in docs]
    kept = [n >= 5 for n in words]
    assert found.steps[0].counts == {"length.too_short": kept.count(False), "length.too_long": 0}
    assert (found.steps[1].docs_in, found.steps[1].docs_kept) == (sum(kept), sum(kept))
    hosts = Counter(f"host{i % 3}.example" for i in range(100))
    assert {row.label: row.n_in for row in found.hosts.rows(9)} == hosts
    sources = Counter(doc.source for doc, keep in zip(docs, kept, strict=True) if keep)
    assert {row.label: row.n_kept for row in found.sources.rows(9)} == sources
    assert found.text_bytes.by_side == (kept.count(False), sum(kept))
    assert found.problems == []


def judged(scores: list[float], reasons: list[int]) -> tuple[_Judged, np.ndarray]:
    n = len(scores)
    reason = np.array(reasons, np.int64)
    batch = _Judged(0, np.arange(n), np.arange(n, dtype=np.uint64), reason < 0, reason)
    return batch, np.array(scores, np.float64)


@pytest.mark.parametrize(
    ("scores", "reasons", "dropped", "kept"),
    [
        ([1, 2, 3, 4, 5, 6], [0, 0, 0, -1, -1, -1], [2, 1], [3, 4]),  # dropped below 3.5
        ([1, 2, 3, 4, 5, 6], [-1, -1, -1, 0, 0, 0], [3, 4], [2, 1]),  # dropped above
        ([1, 2, 3, 4, 5, 6], [1, -1, -1, 0, 0, 0], [3, 4], [2, 1]),  # reason 1 fires on both sides or the wrong one
        ([1, 2, 3], [0, 0, 0], [2, 1], []),  # nothing above, nothing kept
        ([4, 5, 6], [-1, -1, -1], [], [0, 1]),  # nothing dropped
        ([4, 5, 6], [0, 0, 0], [0, 1], []),  # everything above and dropped
    ],
)
def test_sides_of_a_threshold(scores: list[float], reasons: list[int], dropped: list[int], kept: list[int]) -> None:
    """The side with the smaller share of kept documents is the one that is dropped; nearest first."""
    border = Border("score", 3.5, 2)
    border.add(*judged(scores, reasons))
    assert [row for _, row in border.places(kept=False)] == dropped
    assert [row for _, row in border.places(kept=True)] == kept


def test_a_threshold_shows_its_own_reason() -> None:
    """A document dropped for something else is not a borderline case, however near it lies."""
    border = Border("score", 10, 3)
    border.add(*judged([9.9, 5, 10.1, 10.2, 30, 40], [-1, 1, 1, -1, 0, 0]))
    border.add(*judged([3, 4], [-1, -1]))
    assert border.drops_below is False
    assert [row for _, row in border.places(kept=False)] == [4, 5]
