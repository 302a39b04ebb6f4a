"""The filter contract's own parts: decisions, reasons, configs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.records import ScoreColumn, verdict_schema
from curation.verdicts import Decision, decide_by_rules
from tests.fakes import WatchedConfig

REASONS = ["a.first", "a.second", "a.third"]


def test_the_first_declared_reason_is_named() -> None:
    """Where several rules hit, the reason is the first of the declared list, whatever the order of the hits."""
    hits = {"a.third": np.array([True, True, False, False]), "a.first": np.array([False, True, False, True])}

    decision = decide_by_rules(4, REASONS, hits)

    assert decision.reason.tolist() == [2, 0, -1, 0]
    assert decision.keep.tolist() == [False, False, True, False]


def test_no_rule_no_drop() -> None:
    """Without hits, everything is kept; an empty batch is an empty decision."""
    assert decide_by_rules(3, REASONS, {}).keep.tolist() == [True] * 3
    assert decide_by_rules(0, REASONS, {"a.first": np.zeros(0, np.bool_)}).reason.tolist() == []


def test_a_reason_out_of_the_list_is_refused() -> None:
    """A rule cannot fire a reason that the step does not declare."""
    with pytest.raises(AssertionError, match=r"a\.other"):
        decide_by_rules(1, REASONS, {"a.other": np.array([True])})


@pytest.mark.parametrize("reason", [[], [-1, -1], [0, -1, 2], [2, 2, 2]])
def test_the_reason_dictionary_is_the_declared_list(reason: list[int]) -> None:
    """The Arrow dictionary does not depend on which reasons occur, so that files of one step are alike."""
    indices = np.array(reason, np.int16)

    array = Decision(indices < 0, indices).reason_array(REASONS)

    assert array.type == pa.dictionary(pa.int16(), pa.string())
    assert array.dictionary.to_pylist() == REASONS
    assert array.to_pylist() == [REASONS[i] if i >= 0 else None for i in reason]


def test_a_config_is_frozen_and_closed() -> None:
    """A config cannot be changed, and knows no other keys."""
    config = WatchedConfig(max_chars=3)

    with pytest.raises(ValidationError, match="frozen"):
        config.max_chars = 4
    with pytest.raises(ValidationError, match="max_char"):
        WatchedConfig.model_validate({"max_char": 4})


def test_the_verdict_schema_explains_each_column() -> None:
    """keep and reason come first; each score carries its unit and meaning, the file its step and run."""
    scores = [ScoreColumn("share", pa.float32(), "share", "how much")]

    schema = verdict_schema(scores, {"run_id": "r", "step": "a"})

    assert schema.names == ["keep", "reason", "share"]
    assert schema.field("share").metadata == {b"unit": b"share", b"what": b"how much"}
    assert schema.metadata == {b"run_id": b"r", b"step": b"a"}
