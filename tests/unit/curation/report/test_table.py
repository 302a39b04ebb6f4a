"""The funnel on a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from curation.report.table import plain_funnel, print_funnel


@pytest.fixture
def funnel() -> dict[str, Any]:
    return {
        "run_id": "r",
        "inputs": {"files": 2, "bytes": 10, "lines": 1010},
        "documents": 1000,
        "quarantined": {"bad_json": 10},
        "steps": [
            {"name": "exact", "docs_in": 1000, "docs_kept": 900, "dropped": {"exact.duplicate": 100}},
            {"name": "length", "docs_in": 900, "docs_kept": 899, "dropped": {"length.too_short": 1}},
        ],
        "kept": 899,
        "packed": {
            "documents": 899,
            "tokens": 12345,
            "sequences": 7,
            "seq_len": 2048,
            "padding_share": 0.001,
            "unk_share": 0.0,
        },
    }


def test_plain_text_has_every_number_and_no_control_character(funnel: dict[str, Any]) -> None:
    """As it goes into a log or a pipe."""
    stream = io.StringIO()
    print_funnel(funnel, file=stream)
    text = stream.getvalue()
    assert text == plain_funnel(funnel) + "\n"
    assert text.isascii()
    assert "\x1b" not in text
    rows = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert "1,010" in rows["lines"]
    assert "10.0 %" in rows["exact"]
    assert "exact.duplicate 100" in rows["exact"]
    assert "12,345 tokens" in rows["packed"]


def test_a_terminal_gets_the_same_numbers(funnel: dict[str, Any]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    print_funnel(funnel, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for number in ("1,010", "1,000", "900", "899", "12,345"):
        assert number in text


def test_markup_in_a_reason_is_text(funnel: dict[str, Any]) -> None:
    """rich would read [red] as a style."""
    funnel["quarantined"] = {"[red]x\x1b[2J": 10}
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    print_funnel(funnel, console)
    assert "[red]x" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2J" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in plain_funnel(funnel)
