"""Which copy stays: criteria as numbers, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.config import parse_config
from curation.dedup.priority import CRITERIA, LAST, Priority, parsed
from curation.errors import ConfigError
from curation.run import file_sha256, write_json
from curation.shards import shards_of, write_table
from tests.fakes import make_run, shard_table


def places(criterion: str, tmp_path: Path, texts: Sequence[str], **columns: Sequence[Any]) -> list[int]:
    """The order of documents by one criterion: numbers of the documents, best first."""
    table = shard_table(texts)
    for name, values in columns.items():
        array = pa.array(values, pa.string())
        table = table.set_column(table.schema.get_field_index(name), name, array)
    shard = shards_of(make_run(tmp_path, [texts]))[0]
    priority = Priority([criterion], ["*/good/*", "https://fine.example/*"], "date", 3, shard, {})
    found = priority.of(table.to_batches()[0], np.arange(len(texts)))[:, 0]
    return [int(i) for i in np.argsort(found, kind="stable")]


def test_by_length(tmp_path: Path) -> None:
    """Length is in characters, not bytes: four letters are longer than two characters of three bytes."""
    assert places("longest", tmp_path / "a", ["ab", "日本", "abcd", ""]) == [2, 0, 1, 3]
    assert places("shortest", tmp_path / "b", ["ab", "日本", "abcd", ""]) == [3, 0, 1, 2]


def test_by_place_in_the_run(tmp_path: Path) -> None:
    """`first` is the order of the shards and of the rows in them."""
    assert places("first", tmp_path, ["c", "b", "a"]) == [0, 1, 2]


DATES = ["2024-05-01", None, 1_000_000_000_000, "no date", "2024-05-01T12:00:00+00:00", -5.5, True]


@pytest.mark.parametrize(
    ("criterion", "expected"), [("newest", [4, 0, 2, 5, 1, 3, 6]), ("oldest", [5, 2, 0, 4, 1, 3, 6])]
)
def test_by_date(criterion: str, expected: list[int], tmp_path: Path) -> None:
    """ISO dates and seconds since 1970 compare with each other; what is no date comes last, either way."""
    meta = [json.dumps({"date": date}) for date in DATES]

    assert places(criterion, tmp_path, [f"t{i}" for i in range(len(DATES))], meta=meta) == expected


def test_a_date_that_would_break_a_parser_is_no_date(tmp_path: Path) -> None:
    """What ingest lets pass is read: fields nested a thousand deep beside the date, numbers that no date is made of."""
    deep = "[" * 1000 + "]" * 1000
    meta = [f'{{"date": {deep}}}', f'{{"other": {deep}, "date": 5}}', '{"date": 7}', f'{{"date": 1{"0" * 300}}}']

    assert places("oldest", tmp_path, ["a", "b", "c", "d"], meta=meta) == [1, 2, 3, 0]


def test_a_score_that_is_no_number_comes_last(tmp_path: Path) -> None:
    """Neither null nor NaN is better than any number, in either order."""
    run = make_run(tmp_path, [["a", "b", "c", "d"]])
    shard, folder = shards_of(run)[0], tmp_path / "step"
    path = folder / f"{shard.name}.arrow"
    write_table(path, pa.table({"score": pa.array([np.nan, -1.0, None, 2.0])}))
    write_json(folder / "_items" / f"{shard.name}.json", {"verdict_sha256": file_sha256(path)})
    batch = shard_table(["a", "b", "c", "d"]).to_batches()[0]

    for criterion, expected in (("highest:step.score", [3, 1]), ("lowest:step.score", [1, 3])):
        found = Priority([criterion], [], "date", 0, shard, {"step": folder}).of(batch, np.arange(4))[:, 0]
        assert [int(i) for i in np.argsort(found, kind="stable")[:2]] == expected
        assert list(found[[0, 2]]) == [LAST, LAST]


def test_by_source(tmp_path: Path) -> None:
    """The first pattern that fits the path or the address decides; what fits none comes last."""
    source = ["/x/bad/1", "/x/bad/2", "/x/good/3", "/x/good/4"]
    url = [None, "https://fine.example/a", "https://fine.example/b", None]

    assert places("source_rank", tmp_path, ["a", "b", "c", "d"], source=source, url=url) == [2, 3, 1, 0]


@pytest.mark.parametrize("criterion", [*(name for name in CRITERIA if ":" not in name), "highest:length.units"])
def test_known_criteria_are_accepted(criterion: str) -> None:
    """Every criterion of the table is one."""
    assert parsed(criterion) == criterion


@pytest.mark.parametrize("criterion", ["longst", "", "highest", "highest:", "highest:length", "longest:length.units"])
def test_unknown_criteria_are_refused(criterion: str) -> None:
    """The message lists what there is."""
    with pytest.raises(ValueError, match="expected one of longest, shortest"):
        parsed(criterion)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("[{near: {keep: [longst]}}]", "did you mean .?longest"),
        ("[{near: {keep: ['lowest:html_noise.share']}}]", "does not stand before it in steps"),
        ("[{length: {}}, {near: {keep: ['highest:length.unit']}}]", "has no score 'unit'.*units"),
        (
            "[{exact: {}}, {near: {keep: ['highest:exact.kept_doc_id']}}]",
            r"no score 'kept_doc_id' that is a number.*\(it has similarity, group_size\)",
        ),
        ("[{near: {keep: [source_rank]}}]", "needs `sources`"),
        ("[{near: {threshold: 0.9123456789}}]", "six decimals"),
        ("[{near: {threshold: 0.5, num_perm: 16, recall: 0.99999}}]", "num_perm"),
    ],
)
def test_config_names_what_is_wrong(steps: str, message: str) -> None:
    """A config that cannot work is refused when it is read, with the key."""
    with pytest.raises(ConfigError, match=message):
        parse_config(f"steps: {steps}")


def test_scores_of_an_earlier_step_are_accepted() -> None:
    """A step that stands before gives its scores."""
    config = parse_config("steps: [{length: {}}, {near: {keep: ['highest:length.units', longest]}}]")

    assert config.steps[1].config.model_dump()["keep"] == ("highest:length.units", "longest")


def test_no_number_is_last_by_itself() -> None:
    """The largest and smallest scores stay below the place of a document without one."""
    from curation.dedup.priority import _ordered

    values = np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf])
    rising, falling = _ordered(values, highest=False), _ordered(values, highest=True)

    assert rising.max() < LAST
    assert falling.max() < LAST
    assert list(np.argsort(rising, kind="stable")) == [0, 1, 2, 3, 4, 5]
    assert list(np.argsort(falling, kind="stable")) == [5, 4, 2, 3, 1, 0]
    assert rising[2] == rising[3]
