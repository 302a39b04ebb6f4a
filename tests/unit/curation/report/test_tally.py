"""Documents by label: exact, and bounded where the crawl invents labels without end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.report import tally
from curation.report.tally import Tally, hosts


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.ORG/a", "example.org"),
        ("http://user:pw@host.example:8080/x?y#z", "host.example"),
        ("http://[::1]:80/", "[::1]"),
        ("http://bücher.example/ü", "bücher.example"),
        ("ftp://x", "x"),
        ("no address", None),
        ("", None),
        (None, None),
        ("javascript:alert(1)", None),
        ("http:///path", None),
    ],
)
def test_the_host_of_an_address(url: str | None, host: str | None) -> None:
    """Lower case, without port and password; null where there is none."""
    assert hosts(pa.array([url], pa.string())).to_pylist() == [host]


def test_labels_and_dictionaries_count_alike() -> None:
    words = pa.array(["a", "b", None, "a"])
    kept = np.array([True, False, True, False])
    for labels in (words, words.dictionary_encode(), words.slice(0, 4)):
        found = Tally()
        found.add(labels, kept)
        assert [(row.label, row.n_in, row.n_kept) for row in found.rows(9)] == [("a", 2, 1), ("b", 1, 0)]
        assert (found.n_in, found.n_kept, found.unlabelled) == (4, 2, 1)


def test_memory_is_bounded_and_the_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare labels go first; the table says that more are not shown."""
    monkeypatch.setattr(tally, "MAX_LABELS", 100)
    found = Tally()
    for i in range(50):
        labels = ["often"] * 5 + [f"rare{i}-{j}" for j in range(10)]
        found.add(pa.array(labels), np.ones(len(labels), np.bool_))
    assert len(found) <= 100
    table = found.table("caption", "label", 3)
    assert (table.rows[0].label, table.rows[0].n_in) == ("often", 250)
    assert "or more others are not shown" in table.remark
    assert found.n_in == 750


def test_of_a_list_of_labels_a_document_counts_for_each() -> None:
    """Totals are of documents: those with several labels count once, those with none are named."""
    tally = Tally()
    kept = np.array([True, False, True, True])
    tally.add_items(pa.array(["en", "ja", "ja"]), pa.array([0, 0, 1]), kept)
    tally.add_items(pa.array([], pa.string()), pa.array([], pa.int64()), np.array([False]))
    assert [(row.label, row.n_in, row.n_kept) for row in tally.rows(9)] == [("ja", 2, 1), ("en", 1, 1)]
    assert (tally.n_in, tally.n_kept, tally.unlabelled) == (5, 3, 3)
