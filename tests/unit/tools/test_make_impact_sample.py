"""The shipped sample: what the tool writes is what ships, it is like a crawl, and nearly every reason of `web` meets it."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from curation.config import load_config
from curation.filters.rules.config import limits_of
from curation.impact.classes import LENGTHS, length_classes
from curation.launch import drive, start_run
from curation.run import read_json
from tools.make_impact_sample import SAMPLE, main

REPO = Path(__file__).resolve().parents[3]
NOT_MET = {
    "near.duplicate_of_earlier": "there is no earlier run",
    "language.routed": "no policy routes",
    "language.too_short": "off: min_chars is 0",
    "language.unwanted": "every language is wanted",
    "language.mixed": "mixed pages are kept",
    "language.low_share": "off: min_share is 0",
    "length.no_words": "a text without a word has no language, and that step stands before",
    "length.too_long": "longer than any book",
    "rules.duplicate_paragraph_characters": "a paragraph that comes again is lines that come again, and that rule is first",
    "rules.short_words": "words of less than two letters on average: that single letters are too many is said first",
    "rules.longest_word": "a thousand letters without a blank are most of a short text: its language is not decided",
    "perplexity.routed": "no policy routes",
    "perplexity.not_finite": "no model here gives that",
    "perplexity.no_model": "an unknown language is kept",
    "perplexity.too_short": "a short one is kept",
    "perplexity.too_low": "repetition is dropped by `rules`, before",
    "perplexity.uncalibrated": "there is no calibration",
    "perplexity.head": "there is no calibration",
    "perplexity.middle": "there is no calibration",
    "perplexity.tail": "there is no calibration",
    "safety_model.gambling": "`safety_terms` stands before, and names what would be",
    "safety_model.sexual": "`safety_terms` stands before, and names what would be",
    "safety_model.weapons": "`safety_terms` stands before, and names what would be",
    "safety_model.filler": "`rules` and `safety_terms` stand before, and name what would be",
    "safety_model.other": "a rest: what would be named so is named otherwise",
}
"""Reasons that drop no document of the sample, though the config `web` has them on; and those that it has not."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """All documents that ship."""
    return [json.loads(line) for path in sorted(SAMPLE.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def test_what_ships_is_what_the_tool_writes(tmp_path: Path) -> None:
    """The same bytes; if not: run tools/make_impact_sample.py and commit the folder."""
    assert main(["--output", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in SAMPLE.iterdir()} - {"README.md"}
    differing = [path.name for path in tmp_path.iterdir() if path.read_bytes() != (SAMPLE / path.name).read_bytes()]
    assert not differing, f"{differing} differ: run python tools/make_impact_sample.py"


def test_it_is_small_and_wide(rows: list[dict[str, Any]]) -> None:
    """1,500 to 2,500 documents in less than 3 MB; twenty languages; good and junk; all lengths but the longest class many times."""
    assert 1500 <= len(rows) <= 2500
    assert sum(path.stat().st_size for path in SAMPLE.glob("*.jsonl")) < 3_000_000
    languages = Counter(row["lang"] for row in rows)
    assert len(languages) >= 20
    assert {
        "zh",
        "zh-Hant",
        "ja",
        "ko",
        "th",
        "ar",
        "hi",
        "ru",
        "vi",
        "he",
        "el",
        "en",
        "de",
        "fr",
        "es",
    } <= languages.keys()
    quality = Counter(row.get("quality") for row in rows)
    assert quality.keys() == {"good", "junk", "copy", None}
    assert min(quality["good"], quality["junk"]) > len(rows) / 5
    import numpy as np

    lengths = Counter(length_classes(np.array([len(row["text"]) for row in rows])).to_pylist())
    assert all(lengths[name] >= 15 for name in LENGTHS[:4]), lengths
    card = read_json(SAMPLE / "sample.json")
    assert card["documents"] == len(rows)
    assert card["population"] is None


def test_documents_are_told_apart(rows: list[dict[str, Any]]) -> None:
    """Ids and addresses stand once; a text stands once, but in the file of copies."""
    assert len({row["id"] for row in rows}) == len({row["url"] for row in rows}) == len(rows)
    texts = [row["text"] for row in rows if not row["id"].startswith("mirrors")]
    assert len(set(texts)) == len(texts)


def test_nothing_in_it_is_anybodys(rows: list[dict[str, Any]]) -> None:
    """Addresses lead to example.org, or to none; handles are those of nobody."""
    for row in rows:
        for address in row["text"].split("//")[1:]:
            host = address[:40]
            assert host.startswith(("example.org", "www.example.org")) or "." not in host.split("/")[0].split(" ")[0], (
                row["id"]
            )


def test_it_is_package_data() -> None:
    """Every file of it has an ending that the wheel takes along, and git knows it."""
    with (REPO / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["*"]
    tracked = subprocess.run(
        ["git", "ls-files", str(SAMPLE)], cwd=REPO, capture_output=True, text=True, check=False
    ).stdout
    for path in SAMPLE.iterdir():
        assert any(fnmatch(path.name, pattern) for pattern in patterns), path.name
        assert path.name in tracked or not tracked


@pytest.mark.slow
@pytest.mark.timeout(900)  # kernels may have to be compiled first
def test_the_reasons_of_web_meet_it(tmp_path: Path) -> None:
    """Every reason that `web` has on drops a document of the sample, but those of which it is told why not."""
    config = load_config("web", ["pack="])
    pipeline = start_run(config, [str(path) for path in sorted(SAMPLE.glob("*.jsonl"))], tmp_path)
    drive(pipeline, workers=2)

    off = {f"rules.{rule.name}" for rule in _rules_that_are_off(config)}
    missed = {}
    for placed in pipeline.placed:
        dropped = read_json(placed.folder / "_done.json")["dropped"]
        missed.update({reason: placed.name for reason in placed.step.reasons if not dropped.get(reason)})
        assert sum(dropped.values()) > 0, placed.name
    assert set(missed) - off == set(NOT_MET)


def _rules_that_are_off(config: Any) -> list[Any]:
    from curation.filters.rules.rule import RULES

    step = next(step for step in config.steps if step.name == "rules")
    on = limits_of(step.config)
    return [rule for rule in RULES if rule.name not in on]
