"""corpusmill calibrate: percentiles by language from what a run has saved, in a form that the filter takes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import yaml

from curation.calibrate_command import add_calibrate, calibration_of, write_calibration
from curation.errors import ConfigError, RunError
from curation.filters.length import Length, LengthConfig
from curation.filters.perplexity import step as step_module
from curation.filters.perplexity.buckets import PERCENTILES
from curation.filters.perplexity.config import PerplexityConfig, Reading
from curation.filters.perplexity.engines import Engine
from curation.filters.perplexity.step import Perplexity
from curation.pipeline import Pipeline
from tests.fakes import make_run, run_steps
from tests.perplexity_fake import FakeEngine


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for models, and no waiting for disks."""
    engine = FakeEngine()

    def open_engine(reading: Reading) -> Engine:
        return engine

    monkeypatch.setattr(step_module, "open_engine", open_engine)
    monkeypatch.setattr(step_module, "identity_of", lambda reading: engine.identity())
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def with_bits(bits: float, letter: str) -> str:
    """A text of 700 characters with so many bits each, from 1 to 8."""
    odd = round(100 * (bits - 1))
    return "?" * odd + letter * (700 - odd)


def judged(folder: Path, shards: list[list[str]], steps: list[Any] | None = None, *, close: bool = True) -> Pipeline:
    """A run over texts; what a pipeline has of it."""
    config = PerplexityConfig.model_validate({"tail": "drop"})
    run = make_run(folder, shards)
    return cast(Pipeline, run_steps(run, [Perplexity(config)] if steps is None else steps, close=close))


BITS = np.random.default_rng(5).uniform(1, 4, 397).round(2)
TEXTS = [with_bits(bits, "ж") for bits in BITS]


def test_percentiles_are_those_of_all_that_could_be_judged(tmp_path: Path) -> None:
    """Dropped or kept, over all shards; short texts, broken ones and those without a model are left out."""
    pipeline = judged(tmp_path, [TEXTS[:150], [*TEXTS[150:], "жж", TEXTS[0] + "#", "สวัสดี" * 30]])
    found = calibration_of(pipeline)
    assert found["run_id"] == "test-run"
    assert found["engine"] == {"fake": "1.0"}
    assert list(found["languages"]) == ["und_Cyrl"]
    line = found["languages"]["und_Cyrl"]
    assert line["documents"] == 397
    assert tuple(line["percentiles"]) == PERCENTILES
    expected = np.percentile(BITS, PERCENTILES, method="inverted_cdf")
    np.testing.assert_allclose(list(line["percentiles"].values()), expected, atol=0.006)


@pytest.mark.parametrize("name", ["c.yaml", "c.yml", "c.json", "new/c.YAML"])
def test_what_is_written_is_what_the_filter_reads(tmp_path: Path, name: str) -> None:
    """As a file or as its content, and it fits the models that made it."""
    path = tmp_path / name
    written = write_calibration(judged(tmp_path, [TEXTS]), path)
    config = PerplexityConfig.model_validate({"calibration": str(path)})
    assert config == PerplexityConfig.model_validate({"calibration": written})
    step = Perplexity(config)
    assert config.calibration is not None
    assert dict(config.calibration.engine).items() <= dict(step.model_checksums()).items()
    text = path.read_text(encoding="utf-8")
    assert (json.loads(text) if path.suffix == ".json" else yaml.safe_load(text))["run_id"] == "test-run"


def test_a_language_with_several_labels_has_a_line_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zho beside zho_Hans and zho_Hant; a language with one label has that alone."""
    monkeypatch.setattr(step_module, "working_labels", _labels)
    texts = [with_bits(1, "x")] * 3 + [with_bits(2, "y")] * 2 + [with_bits(3, "z")]
    found = calibration_of(judged(tmp_path, [texts]))["languages"]
    assert {label: one["documents"] for label, one in found.items()} == {
        "zho": 5,
        "zho_Hans": 3,
        "zho_Hant": 2,
        "eng_Latn": 1,
    }
    assert found["zho"]["percentiles"][50] == 1
    assert found["zho"]["percentiles"][95] == 2


def _labels(batch: Any) -> Any:
    names = {"x": "zho_Hans", "y": "zho_Hant", "z": "eng_Latn"}
    return pa.array([names[text[-1]] for text in batch.column("text").to_pylist()], pa.string())


def test_what_cannot_be_calibrated_by_is_refused(tmp_path: Path) -> None:
    """A run without the step, one that is not done, one that judged nothing, a file of another kind."""
    with pytest.raises(ConfigError, match="has no step perplexity \\(its steps: length\\)"):
        calibration_of(judged(tmp_path / "a", [TEXTS], [Length(LengthConfig())]))
    with pytest.raises(RunError, match="is not done"):
        calibration_of(judged(tmp_path / "b", [TEXTS], close=False))
    with pytest.raises(RunError, match="could judge no document"):
        calibration_of(judged(tmp_path / "c", [["ж", "x" * 100]]))
    with pytest.raises(ConfigError, match=r"c\.csv: expected a name that ends in \.json, \.yaml, \.yml"):
        write_calibration(judged(tmp_path / "d", [TEXTS]), tmp_path / "c.csv")


def test_the_command_has_its_arguments() -> None:
    """A run and where to write."""
    parser = argparse.ArgumentParser()
    add_calibrate(parser.add_subparsers(dest="command"))
    found = parser.parse_args(["calibrate", "RUN", "--root", "out", "-o", "c.yaml"])
    assert (found.command, found.run, found.root, found.output) == ("calibrate", "RUN", Path("out"), Path("c.yaml"))
    with pytest.raises(SystemExit):
        parser.parse_args(["calibrate", "RUN"])
