"""Exact deduplication against a plain dictionary, over any texts and any cut into shards."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup import exact
from curation.dedup.exact import Exact, ExactConfig
from curation.ids import doc_id, normalise, text_id
from tests.fakes import SOURCE, make_run, run_steps
from tests.strategies import cuts, hostile_text

FEW = st.sampled_from(["a", "b", "é", "e\u0301", " a", "a\r\n", "", "\u3000"])
CORPUS = st.lists(st.one_of(FEW, hostile_text), max_size=30)


def first_of_each(texts: Sequence[str]) -> dict[str, list[int]]:
    """Places of each normalised text: the oracle."""
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        groups.setdefault(normalise(text), []).append(place)
    return groups


@settings(max_examples=40, deadline=None)
@given(st.data(), CORPUS, st.integers(1, 4))
def test_as_a_dictionary_would(data: st.DataObject, texts: list[str], ranges: int) -> None:
    """The kept set, the partner and the size of every group are those of a dictionary of normalised texts."""
    shards = data.draw(cuts(texts))
    groups = first_of_each(texts)
    ids = [doc_id(SOURCE, place, 0, text_id(text)) for place, text in enumerate(texts)]
    bytes_each = 250 * 2**20 * ranges // max(len(texts), 1) + 1
    with (
        patch.object(exact, "_BYTES_PER_DOCUMENT", bytes_each),
        patch("os.fsync"),
        tempfile.TemporaryDirectory() as root,
    ):
        rows = run_steps(make_run(Path(root), shards), [Exact(ExactConfig())]).verdicts("exact")

    assert [place for place, row in enumerate(rows) if row["keep"]] == sorted(group[0] for group in groups.values())
    for text, row in zip(texts, rows, strict=True):
        group = groups[normalise(text)]
        assert row["group_size"] == len(group)
        assert row["kept_doc_id"] == (None if row["keep"] else ids[group[0]])


@given(hostile_text)
def test_normalising_is_done_once(text: str) -> None:
    """A normalised text is its own normal form, so its identity does not change when it is stored."""
    once = normalise(text)

    assert normalise(once) == once
    assert text_id(once) == text_id(text)
