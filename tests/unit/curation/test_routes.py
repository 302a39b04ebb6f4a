"""Outputs that documents are set aside for: named by the config, found again by the scores, none lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import LawError
from curation.routes import count_routes, known_routes, routed_mask, routes_of
from curation.shards import open_table
from tests.fakes import Watched, WatchedConfig, make_run, run_steps
from tests.language_fake import FakeLanguage, FakeLanguageConfig

TEXTS = ["eng_Latn:0.9 a", "12", "jpn_Jpan:0.9 a\neng_Latn:0.9 b", "", "zho_Hans:0.2 a", "34"]
CONFIG = FakeLanguageConfig(mixed="route:aside", no_language="route:none", min_confidence=0.5)


def verdicts(tmp_path: Path, config: FakeLanguageConfig) -> pa.Table:
    judged = run_steps(make_run(tmp_path, [TEXTS]), [FakeLanguage(config)])
    return open_table(judged.folder("language") / "00000.arrow").read_all()


def test_the_config_names_the_outputs() -> None:
    """Each once, in the config's order; a step that sets nothing aside has none."""
    assert known_routes(FakeLanguage(CONFIG)) == ["aside", "none"]
    assert known_routes(FakeLanguage(FakeLanguageConfig(mixed="route:x", no_language="route:x"))) == ["x"]
    assert known_routes(FakeLanguage(FakeLanguageConfig(mixed="drop"))) == []
    assert known_routes(Watched(WatchedConfig())) == []


def test_a_document_has_an_output_exactly_if_it_was_dropped_as_routed(tmp_path: Path) -> None:
    """Not for another reason, and not if it was kept."""
    table = verdicts(tmp_path, CONFIG)
    assert routes_of(FakeLanguage(CONFIG), table) == [None, "none", "aside", "none", None, "none"]
    assert table.column("reason").to_pylist()[4] == "language.low_confidence"
    assert count_routes(FakeLanguage(CONFIG), table) == {"none": 3, "aside": 1}
    assert routes_of(FakeLanguage(CONFIG), table.slice(0, 0)) == []
    assert routes_of(FakeLanguage(CONFIG), table.slice(4, 1)) == [None]


def test_every_output_has_its_documents_and_together_they_are_all(tmp_path: Path) -> None:
    """The masks of the outputs are apart, and their sum is what was dropped as routed."""
    judged = run_steps(make_run(tmp_path, [TEXTS, TEXTS[:2]]), [FakeLanguage(CONFIG)])
    for shard in judged.shards:
        masks = np.array([routed_mask(judged.placed, shard, name) for name in ("aside", "none")])
        reasons = open_table(judged.folder("language") / f"{shard.name}.arrow").read_all().column("reason").to_pylist()
        assert masks.sum(axis=0).tolist() == [int(reason == "language.routed") for reason in reasons]
        assert not routed_mask(judged.placed, shard, "other").any()


class Forgetful(FakeLanguage):
    """Sets documents aside, and does not say for what."""

    def route_of(self, scores: pa.RecordBatch) -> list[str | None]:
        return [None] * scores.num_rows


def test_a_step_that_names_no_output_loses_documents(tmp_path: Path) -> None:
    """It is found when the step is closed: nobody could find them again."""
    with pytest.raises(LawError, match="names an output for 0 of them"):
        run_steps(make_run(tmp_path, [TEXTS]), [Forgetful(CONFIG)])
