"""Figures of what the re-score puts on the blacklist of a crawl with planted junk, by a model that is made in a second.

The model counts byte pairs of good text and says the same on every machine: the weakest checkpoint that there could be. What a
trained one reaches stands in bench/results/rescore.md. Parts are those of tests/bench/rescore_gold.py: what trains is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.ids import text_id
from curation.rescore.config import ChooseConfig
from tests.bench.quality_gold import Document
from tests.bench.rescore_gold import Gold as Planted
from tests.bench.rescore_gold import Line, lines, part_of, place_of, planted, total
from tests.gate.figures import NOTHING_CHANGED, Changed, Figure, Figures
from tests.gate.gold import Gold

__all__ = ["SHARES", "Scored", "chosen", "rescore", "scored"]

SHARES = (0.05, 0.2, 0.55)
"""Of the crawl that is junk."""
BYTES = 2_000
"""Of a document, from its beginning: what trains, and what is read."""

Scored = tuple[pa.Table, Planted]


def beginning(text: str) -> npt.NDArray[np.uint8]:
    """uint8[at most BYTES]"""
    return np.frombuffer(text.encode()[:BYTES], np.uint8)


def bits_of_pairs(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Bits of each byte after each other one, as counted: float64[256, 256]."""
    counts = np.full((256, 256), 0.02)
    for text in texts:
        ids = beginning(text)
        np.add.at(counts, (ids[:-1], ids[1:]), 1)
    found: npt.NDArray[np.float64] = -np.log2(counts / counts.sum(1, keepdims=True))
    return found


def scored(documents: Sequence[Document]) -> Scored:
    """Scores of the judged part of the documents, with its gold."""
    known = [one for one in documents if one.language]
    bits = bits_of_pairs([one.text for one in known if part_of(one) == "train"])
    mine = [one for one in known if part_of(one) == "judged"]
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
    gold = Planted(
        mine,
        np.array([one.quality == "junk" for one in mine]),
        np.array(["judged"] * n),
        np.ones(n, np.bool_),
        np.array([place_of(one.name, "planted") for one in mine]),
    )
    return table, gold


def chosen(judged: Scored, share: float) -> dict[str, Line]:
    """What is chosen with default settings, by language, where a share is junk."""
    table, gold = judged
    rows = planted(np.array(table.column("language").to_pylist()), gold, "judged", share)
    return lines(table, gold, rows, ChooseConfig(), one_source=True)


def rescore(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """For each share of junk: junk among what scores too high and among all that is chosen, junk found, good text spared, in all
    and in the language that fares worst."""
    judged = scored(gold.documents)
    found: Figures = {}
    for share in SHARES:
        by_language = chosen(judged, share)
        line, name = total(by_language.values()), f"{share:.0%}"
        good = {code: _spared(one) for code, one in by_language.items() if one.judged > one.junk}
        found |= {
            f"rescore.high_is_junk.{name}": Figure(line.high_junk, line.high_junk + line.high_good),
            f"rescore.chosen_is_junk.{name}": Figure(line.hits, line.hits + line.wrong),
            f"rescore.junk_found.{name}": Figure(line.hits, line.junk),
            f"rescore.good_spared.{name}": _spared(line),
            f"rescore.good_spared_at_worst.{name}": min(good.values(), key=lambda one: one.share),
        }
    return found


def _spared(line: Line) -> Figure:
    good = line.judged - line.junk
    return Figure(good - line.wrong, good)
