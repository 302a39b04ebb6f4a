"""What went wrong in other tools' rules of quality, from the public bug log: one test a number, over the whole chain.

Cases with files lie beside the test data; what is right stands in their `cases.jsonl`, in a form for programs. The
others are short and stand here.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.filters.html_noise import HtmlNoise, HtmlNoiseConfig
from curation.filters.length import Length, LengthConfig
from curation.filters.rules import Rules, RulesConfig
from curation.filters.rules.presets import PRESETS
from tests.fakes import batch_for

FIRST = (HtmlNoise(HtmlNoiseConfig()), Length(LengthConfig()))
CHAINS = {name: (*FIRST, Rules(RulesConfig.model_validate({"preset": name}))) for name in PRESETS}
"""The chain of quality by the preset of its rules."""

PROSE_EN = (
    "The library opens at nine every morning. People come to read the papers, and children do their homework there until "
    "the bus leaves. Last winter the roof was mended, so that the books in the upper room stay dry. Who wants to help can "
    "come on Friday; there is always something to carry, to sort or to paint. The oldest reader is ninety years old, and "
    "she has read the whole shelf of travels twice."
)
PROSE_ZH = (
    "图书馆每天早上九点开门。人们来看报纸，孩子们在那里做作业，一直做到公共汽车开走。去年冬天修好了屋顶，楼上的书再也不会受潮。"
    "愿意帮忙的人星期五可以过来，总有东西要搬、要整理、要刷漆。年纪最大的读者九十岁了，她把那一架游记从头到尾看了两遍。"
)
PRICES = "\n".join(f"{i}\t{i * 7 % 100} kg\t{i * 13 % 1000}.50\t{i * 3 % 60} %" for i in range(60))


def judge(
    texts: Sequence[str], labels: Sequence[str | None] | None = None, preset: str = "massive"
) -> list[str | None]:
    """The first reason of the chain for each text; None where all its steps keep it."""
    reasons: list[str | None] = [None] * len(texts)
    for step in reversed(CHAINS[preset]):
        decision = step.decide(step.score(batch_for(step, texts, labels)))
        found = decision.reason_array(list(step.reasons)).to_pylist()
        reasons = [new or old for new, old in zip(found, reasons, strict=True)]
    return reasons


def case(folder: Path, bug: str) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Texts of a case of the log by id, and what is expected of them."""
    described = [json.loads(line) for line in (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    found = next(one for one in described if one["id"] == bug)
    lines = (folder / found["input_file"]).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["text"] for row in map(json.loads, lines)}, found["expect"]


@pytest.mark.parametrize("bug", ["B098", "B101", "B103"])
def test_cases_with_files(bugcases: Path, bug: str) -> None:
    """B098 Chinese pages are kept; B101 empty texts divide by nothing; B103 a lesson about scripts stays, scripts go."""
    texts, expected = case(bugcases, bug)

    reasons = dict(zip(texts, judge(list(texts.values())), strict=True))

    kept = [name for name, reason in reasons.items() if reason is None]
    assert kept == expected["kept"], reasons
    if bug == "B103":
        assert all(str(reasons[name]).startswith("html_noise.") for name in expected["dropped"]), reasons


@pytest.mark.parametrize("preset", PRESETS)
def test_b098_a_chinese_page_is_no_long_word(preset: str) -> None:
    """900 characters without a blank are some 560 words in every preset, and no single word of 900 letters."""
    assert judge([PROSE_ZH, PROSE_ZH], ["zho_Hans", None], preset) == [None, None]


def test_b099_numbers_are_no_prose() -> None:
    """A page of numbers and units goes, prose in both scripts stays; the rule says what it is the share of."""
    assert [reason is None for reason in judge([PRICES, PROSE_EN, PROSE_ZH])] == [False, True, True]

    rules = Rules(RulesConfig.model_validate({"preset": "none", "letter_words": 0.8}))
    scores = rules.score(batch_for(rules, [PRICES, PROSE_EN, PROSE_ZH]))
    assert rules.decide(scores).keep.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "end", ["。", "！", "？", "……", "」", "。”", "！』", ".", "?", "…", '."', "؟", "۔", "।", "։", "።", "។"]
)
def test_b100_lines_end_in_every_script(end: str) -> None:
    """Ten lines that end in a mark of any script, inside of quotation marks too, end as sentences do."""
    mark = "。」" if end == "」" else end
    rules = Rules(RulesConfig.model_validate({"preset": "none", "end_mark_lines": 1}))

    scores = rules.score(batch_for(rules, ["\n".join(f"镇里的邮局每天早上九点开门{mark}" for _ in range(10))]))

    assert rules.decide(scores).keep.all(), scores.column("end_mark_lines")


@pytest.mark.parametrize("preset", PRESETS)
def test_b101_nothing_to_divide_by(preset: str) -> None:
    """Empty and blank texts get a verdict from every step: too short, not an exception."""
    reasons = judge(["", "\n\n", "\u3000", " ", "\0", "。"], preset=preset)

    assert set(reasons) <= {"length.no_words"}


def test_b105_no_text_takes_long(bugcases: Path) -> None:
    """Lines on which patterns backtrack take no longer than others."""
    texts, expected = case(bugcases, "B105")
    extreme = ["a" * 100_000 + "!", "a@a.a.a.a" * 11_000, "<" * 50_000, "(" * 100_000, "a b " * 25_000, "。" * 50_000]
    judge(["a"])
    start = time.perf_counter()

    judge([*texts.values(), *extreme])

    assert time.perf_counter() - start < expected["max_seconds"]


def test_b107_memory_does_not_grow_with_documents() -> None:
    """Judging ten batches needs what one needs: nothing is kept from document to document."""
    rules = CHAINS["massive"][-1]
    batch = batch_for(rules, [PROSE_EN, PROSE_ZH] * 200)
    rules.decide(rules.score(batch))

    def peak(times: int) -> int:
        tracemalloc.start()
        for _ in range(times):
            rules.decide(rules.score(batch))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(10) < peak(1) * 1.1 + 100_000
