"""What `corpusmill what-if` prints: every number of the answer, nothing that commands a terminal, columns that hold."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from curation.errors import ConfigError
from curation.pipeline import Pipeline
from curation.run import Run
from curation.steps import STEPS, step_class
from curation.what_if_command import add_what_if_arguments, print_what_if
from tests.fakes import SOURCE, write_shards
from tests.near_runs import finish

HOSTILE = "eng_Latn:0.9 漢字 \x1b]0;owned\x07\u202e[bold]not markup[/bold]\nsecond \\ line\n\n\tthird"
TEXTS = [HOSTILE, "jpn_Jpan:0.9 かな" * 30, "eng_Latn:0.9 x", "12", "eng_Latn:0.9 a\njpn_Jpan:0.9 b"]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    before = dict(STEPS)
    STEPS["language"] = "tests.language_fake:FakeLanguage"
    step_class.cache_clear()
    config = "steps: [{length: {min_units: 1}}, language, near]"
    run = Run.create(tmp_path, run_id="r", config_text=config, config_digest="0" * 8, inputs=[SOURCE])
    write_shards(run, [TEXTS])
    pipeline = Pipeline.open(run.folder)
    finish(pipeline)
    yield pipeline
    STEPS.clear()
    STEPS.update(before)
    step_class.cache_clear()


def printed(pipeline: Pipeline, *words: str, file: io.StringIO | None = None) -> str:
    parser = argparse.ArgumentParser()
    add_what_if_arguments(parser)
    stream = file if file is not None else io.StringIO()
    assert print_what_if(pipeline, parser.parse_args(list(words)), stream) == 0
    return stream.getvalue()


def test_the_answer_is_told_in_order(pipeline: Pipeline) -> None:
    """Settings, sums, kinds of change, languages, what only a run decides, samples, the command."""
    text = printed(pipeline, "--set", "length.min_units=4", "--set", "language.mixed=route:mixed")
    lines = [line.split() for line in text.splitlines()]
    assert ["length.min_units", "1", "->", "4"] in lines
    assert ["language.mixed", "keep", "->", "route:mixed"] in lines
    assert ["kept", "in", "the", "run", "5", "100", "%", "of", "5"] in lines
    assert any(line[:2] == ["would", "leave"] for line in lines)
    assert any(line[:3] == ["kept", "->", "length.too_short"] for line in lines)
    assert "near would look at other documents than it did" in text
    assert "limit 1 -> 4" in text
    assert text.rstrip().splitlines()[-1].startswith("to run it: corpusmill run ")
    parts = ["length.min_units", "kept in the run", "from ", "language ", "near would", "doc_id", "to run it"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_the_crawl_says_commands_no_terminal(pipeline: Pipeline) -> None:
    """No control character, no turn of direction, and no markup of the library that draws: as text and on a terminal."""
    text = printed(pipeline, "--set", "length.max_units=5")
    assert "\\u001b]0;owned\\u0007\\u202e[bold]not markup[/bold]" in text
    assert text.isprintable() or set(text) - {"\n"} <= {c for c in text if c.isprintable()}
    drawn = printed(pipeline, "--set", "length.max_units=5", file=Screen())
    assert "]0;owned\x07" not in drawn
    assert "[bold]not markup[/bold]" in drawn.replace("\n  | ", " ")


def test_columns_hold_beside_wide_characters(pipeline: Pipeline) -> None:
    """Cells are counted as a terminal draws them; numbers of a column end below each other."""
    text = printed(pipeline, "--set", "language.mixed=route:mixed")
    table = [line for line in text.splitlines() if " -> " in line and "set aside" in line][:1]
    head = next(line for line in text.splitlines() if line.startswith("from"))
    assert cell_len(table[0].rsplit("  ", 1)[0].rstrip()) == cell_len(head)


def test_json_is_the_same_answer(pipeline: Pipeline) -> None:
    """Plain data with the same numbers, and every sample with its text."""
    told = json.loads(printed(pipeline, "--set", "length.max_units=5", "--samples", "2", "--json"))
    assert told["kept_before"] == 5
    assert told["kept_after"] == 5 - told["leave"]
    assert told["settings"] == [{"key": "length.max_units", "before": 1_000_000, "after": 5, "decides": True}]
    assert sum(change["documents"] for change in told["changes"]) == told["leave"] > 0
    assert {sample["after"]["reason"] for sample in told["samples"]} == {"length.too_long"}
    assert told["data_set_steps"][0]["step"] == "near"


def test_a_question_without_a_setting_is_refused(pipeline: Pipeline) -> None:
    """It would be answered with nothing."""
    with pytest.raises(ConfigError, match="say what to change"):
        printed(pipeline)


def test_what_changes_nothing_is_said(pipeline: Pipeline) -> None:
    """In words."""
    assert "no document changes sides" in printed(pipeline, "--set", "length.min_units=0.5")
    assert "decides no verdict" in printed(pipeline, "--set", "memory_mb=999")
    assert "these very settings" in printed(pipeline, "--set", "length.min_units=1")
