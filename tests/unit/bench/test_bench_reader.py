"""Laws of the reader bench: what it counts, what it says of it, and that it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.reader_formats import FORMATS
from tests.bench.reader_interface import PIECES, make_tokens
from tests.bench.reader_page import RATES, Results, Setting, ratios, spread, write_page
from tests.bench.reader_processes import MeasureError, Worker
from tests.bench.reader_worker import Bench, flip_byte


def answer(rows: int, cpu: float, wall: float | None = None) -> dict[str, Any]:
    return {"rows": rows, "cpu": cpu, "wall": wall or cpu}


def page(results: Results) -> str:
    return write_page(results, Setting("command", 10**6, 2048, 2, (0.0, 0.0), ["litdata"]))


def test_tokens_are_whole_documents() -> None:
    """Every sequence ends with a document and holds the same number of them; equal for every call."""
    rows = make_tokens(50, 64)
    assert rows.dtype == np.uint16
    assert ((rows == 0).sum(1) == PIECES).all()
    assert (rows[:, -1] == 0).all()
    assert np.array_equal(rows, make_tokens(50, 64))


@pytest.mark.parametrize(("place", "name", "byte"), [(0.0, "a", 0), (0.49, "a", 4), (0.5, "b", 0), (0.999, "b", 4)])
def test_one_bit_is_flipped(tmp_path: Path, place: float, name: str, byte: int) -> None:
    """Places count all bytes of a folder, in the order of names; one bit changes and nothing else."""
    for each in ("a", "b"):
        (tmp_path / each).write_bytes(bytes(5))
    assert flip_byte(tmp_path, place, 3) == name
    changed = {each: np.flatnonzero(np.frombuffer((tmp_path / each).read_bytes(), np.uint8)).tolist() for each in "ab"}
    assert changed == {"a": [], "b": [], name: [byte]}
    assert (tmp_path / name).read_bytes()[byte] == 8


def test_ratios_are_of_the_same_round() -> None:
    """Rounds are compared one by one, and left out where one of both failed."""
    mine = [answer(100, 1.0), {"failed": "no"}, answer(100, 4.0)]
    others = [answer(100, 2.0), answer(100, 1.0), answer(50, 2.0)]
    assert ratios(mine, others) == [2.0, 1.0]


@pytest.mark.parametrize(
    ("values", "text"), [([], ""), ([3.14159], "3.14"), ([3, 1, 2], "2.00 (1.00 to 3.00)"), ([1234.5], "1,234")]
)
def test_spread(values: list[float], text: str) -> None:
    """Median, and the ends where there are several."""
    assert spread(values) == text


@pytest.mark.parametrize(("ours", "verdict"), [(1.0, "NumPy map: kept"), (1.2, "**missed** by at random 83.3%")])
def test_goals_are_judged(ours: float, verdict: str) -> None:
    """Ours against the base round by round; the slower is said to have missed."""
    results = {"numpy view": {"random": [answer(1000, 1.0)]}, "ours": {"random": [answer(1000, ours)]}}
    assert verdict in page(results)


def test_the_best_of_the_others_is_named() -> None:
    """Behind another tool is a goal missed, with its name; failures are told with their reason."""
    results = {
        "ours": {"random": [answer(1000, 2.0)]},
        "mds": {"random": [answer(1000, 1.0)], "batch": [{"failed": "no answer"}]},
        "litdata": {"random": [answer(1000, 3.0)]},
    }
    text = page(results)
    assert "mds: " in text
    assert "Ahead of all others: **missed** by at random 50.0%" in text
    assert "- mds, batch: no answer" in text
    assert "Not here, and left out: litdata." in text


def flip_outcomes(name: str, folder: Path, source: Path) -> set[str]:
    bench = Bench(FORMATS[name], folder, 64)
    places = {"copy": str(folder.parent / "copy"), "source": str(source)}
    return {bench.flip(place=place, bit=5, **places)["outcome"] for place in (0.3, 0.6)}


def test_our_formats_are_written_read_resumed_and_damaged(tmp_path: Path) -> None:
    """From tokens to answers, in little: every command but the loader, by ours and by the NumPy map."""
    source = tmp_path / "source"
    make_tokens(400, 64).tofile(source)
    outcomes = {}
    for name in ("numpy", "ours", "ours, verify lazy"):
        folder = tmp_path / name
        folder.mkdir()
        bench = Bench(FORMATS[name], folder, 64)
        bench.write(str(source))
        life = bench.life(10.0)
        assert life["pass"]["rows"] == life["n"] == 400
        assert all(bench.rate(what, 0.001, 1)["rows"] > 0 for what in RATES)
        keep = str(tmp_path / "keep.npy")
        state = json.loads(json.dumps(bench.run_to(16, 0.5, keep)["state"]))
        assert bench.resume(16, state, keep)["exact"]
        outcomes[name] = flip_outcomes(name, folder, source)
    unnoticed = {"other tokens, not noticed"}
    assert outcomes == {"numpy": unnoticed, "ours": unnoticed, "ours, verify lazy": {"refused when read"}}


def test_a_failure_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """Another process answers, says why it cannot, and goes on answering; a dead one is an error as well."""
    with Worker("numpy", sys.executable, tmp_path, 64, tmp_path) as worker:
        with pytest.raises(MeasureError, match="FileNotFoundError"):
            worker.ask("life", seconds=1)
        assert "numpy" in worker.ask("load")["versions"]
        worker._process.kill()
        with pytest.raises(MeasureError, match="died with code -9"):
            worker.ask("load")
