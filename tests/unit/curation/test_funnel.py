"""The funnel: its equations, and the rows that people read."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from curation.errors import LawError
from curation.funnel import check_law, funnel_rows

FUNNEL: dict[str, Any] = {
    "run_id": "r",
    "inputs": {"files": 2, "bytes": 900, "lines": 12},
    "documents": 10,
    "quarantined": {"bad_json": 1, "bad_utf8": 1},
    "steps": [
        {"name": "exact", "docs_kept": 8, "dropped": {"exact.duplicate": 2}},
        {"name": "length", "docs_kept": 5, "dropped": {"length.too_short": 1, "length.too_long": 2}},
    ],
    "kept": 5,
    "packed": {"documents": 5, "tokens": 4000, "sequences": 2, "seq_len": 2048, "padding_share": 0.0234},
}


def changed(**values: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FUNNEL), **values}


def test_the_law_holds() -> None:
    """A funnel that adds up is accepted, with a token file or without."""
    check_law(FUNNEL)
    check_law(changed(packed=None))
    check_law(changed(steps=[], kept=10, packed=None))


@pytest.mark.parametrize(
    ("funnel", "message"),
    [
        (changed(documents=9), "lines in = 12, but documents [+] quarantined = 11"),
        (changed(quarantined={}), "lines in = 12, but documents [+] quarantined = 10"),
        (changed(kept=6), "documents = 10, but kept [+] dropped = 11"),
        (changed(steps=FUNNEL["steps"][:1]), "documents = 10, but kept [+] dropped = 7"),
        (changed(packed={**FUNNEL["packed"], "documents": 4}), "kept = 5, but documents in the token file = 4"),
        (
            changed(packed={**FUNNEL["packed"], "documents": 3, "left_out": 1}),
            "kept = 5, but documents in the token file [+] left out by the mixture = 4",
        ),
    ],
)
def test_the_first_broken_equation_is_named(funnel: dict[str, Any], message: str) -> None:
    """Whatever is lost or invented stops the run, and the message gives both sides."""
    with pytest.raises(LawError, match=message):
        check_law(funnel)


def test_the_rows_tell_the_whole_way() -> None:
    """One row for the input, one for reading, one a step, one for the token file; reasons by size."""
    rows = list(funnel_rows(FUNNEL))

    assert [(name, left, gone) for name, left, gone, _ in rows] == [
        ("lines in", 12, 0),
        ("readable", 10, 2),
        ("exact", 8, 2),
        ("length", 5, 3),
        ("packed", 5, 0),
    ]
    assert rows[3][3] == "length.too_long 2, length.too_short 1"
    assert "2.34% padding" in rows[4][3]


def test_a_mixture_says_what_it_leaves_out() -> None:
    """Documents with fewer than one epoch are kept, and stand in no file: the law counts them, the row names them."""
    lengths = [{"seq_len": n} for n in (2048, 2048, 8192, 8192)]
    packed = {**FUNNEL["packed"], "documents": 3, "left_out": 2, "holdout_documents": 1, "files": lengths}
    check_law(changed(packed=packed))
    name, left, gone, text = list(funnel_rows(changed(packed=packed)))[-1]
    assert (name, left, gone) == ("packed", 3, 2)
    assert text.endswith("2.34% padding; also in sequences of 8192; 1 documents held out; pack.mix left out 2")


def test_many_reasons_are_cut_short() -> None:
    """The four largest reasons are named, the rest counted."""
    quarantined = {f"r{n}": n for n in range(1, 8)}

    shown = list(funnel_rows(changed(quarantined=quarantined)))[1][3]

    assert shown == "r7 7, r6 6, r5 5, r4 4 and 3 more reasons"
