"""`corpusmill calibrate`: percentiles of bits per character by language, from the scores that a run has saved.

Reads no text and no model: a run of a million documents takes about a second. What it writes is what the filter
`perplexity` reads as `calibration`; documents of another run then fall into head, middle and tail (CCNet's method).
"""

from __future__ import annotations

import argparse
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError, RunError

if TYPE_CHECKING:
    import pyarrow as pa

    from curation.filters.perplexity.histogram import BitsHistogram
    from curation.pipeline import Pipeline
    from curation.steps import PlacedStep

__all__ = ["add_calibrate", "calibration_of", "write_calibration"]

log = logging.getLogger("corpusmill")

STEP = "perplexity"
FORMATS = (".json", ".yaml", ".yml")
DIGITS = 4


def add_calibrate(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "percentiles of bits per character by language from a run, for the buckets of perplexity"
    parser = commands.add_parser(
        "calibrate",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n"
        "  corpusmill calibrate out/runs/web-20260520-142322-8c4a --output calibration.yaml\n"
        "  then, in the config of the next run:  - perplexity: {calibration: calibration.yaml}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="a run's folder, or its id under --root")
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of all runs, if RUN is an id")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help=".yaml or .json")
    parser.set_defaults(function=_calibrate)


def _calibrate(arguments: argparse.Namespace) -> int:
    from curation.environment import environment
    from curation.pipeline import Pipeline
    from curation.run import Run

    pipeline = Pipeline(Run.find(arguments.run, arguments.root or environment().root))
    found = write_calibration(pipeline, arguments.output)
    for line in _table(found):
        print(line)
    log.info("percentiles of %d languages written to %s", len(found["languages"]), arguments.output)
    return 0


def write_calibration(pipeline: Pipeline, output: Path) -> dict[str, Any]:
    """Write the calibration of a run; returns what was written.

    Raises:
        ConfigError: the file's name ends in nothing that is known, or the run has no step perplexity.
        RunError: the step is not done, judged no document, or its files are damaged.
    """
    import yaml

    from curation.run import publish

    if output.suffix.lower() not in FORMATS:
        raise ConfigError(f"--output {output}: expected a name that ends in {', '.join(FORMATS)}.")
    found = calibration_of(pipeline)
    if output.suffix.lower() == ".json":
        text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    else:
        text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    output.parent.mkdir(parents=True, exist_ok=True)
    with publish(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return found


def calibration_of(pipeline: Pipeline) -> dict[str, Any]:
    """Percentiles by label, and by language where it has several labels, of every document that could be judged.

    Whether this or another step dropped a document afterwards does not matter; what an earlier step dropped was not read.

    Raises:
        ConfigError: the run has no step perplexity.
        RunError: the step is not done, judged no document, or its files are damaged.
    """
    from curation.filters.perplexity.buckets import KIND, PERCENTILES
    from curation.filters.perplexity.engines import identity_in

    placed = _step_of(pipeline)
    languages = _counted(placed, pipeline)
    if not languages:
        raise RunError(
            f"run {pipeline.run.run_id}: step {STEP} could judge no document, so there is nothing to calibrate by."
        )
    return {
        "kind": KIND,
        "run_id": pipeline.run.run_id,
        "engine": identity_in(placed.models),
        "languages": {
            label: {
                "documents": counted.documents,
                "percentiles": {
                    percentile: round(bits, DIGITS)
                    for percentile, bits in zip(PERCENTILES, counted.percentiles(PERCENTILES), strict=True)
                },
            }
            for label, counted in languages.items()
        },
    }


def _step_of(pipeline: Pipeline) -> PlacedStep:
    from curation.close import is_closed

    placed = next((one for one in pipeline.placed if one.name == STEP), None)
    if placed is None:
        steps = ", ".join(one.name for one in pipeline.placed) or "none"
        raise ConfigError(
            f"run {pipeline.run.run_id} has no step {STEP} (its steps: {steps}). Calibrate from a run whose config has it."
        )
    if not is_closed(placed.folder):
        raise RunError(
            f"run {pipeline.run.run_id}: step {STEP} is not done. Run the same command again, then calibrate."
        )
    return placed


def _counted(placed: PlacedStep, pipeline: Pipeline) -> dict[str, BitsHistogram]:
    """Histograms by label, and by language where it has several labels, most documents first."""
    import numpy as np
    import pyarrow.compute as pc

    from curation.filters.perplexity.config import PerplexityConfig
    from curation.filters.perplexity.histogram import BitsHistogram

    config = placed.step.config
    assert isinstance(config, PerplexityConfig)
    by_label: dict[str, BitsHistogram] = defaultdict(BitsHistogram)
    for table in _verdicts(placed, pipeline):
        judged = table.filter(
            pc.and_(pc.is_valid(table["perplexity"]), pc.greater_equal(table["tokens"], config.min_tokens))
        )
        labels = judged["language"].to_numpy()
        bits = judged["bits_per_character"].to_numpy().astype(np.float64)
        for label in np.unique(labels.astype(str)):
            by_label[str(label)].add(bits[labels == label])
    return dict(sorted(_with_languages(by_label).items(), key=lambda one: (-one[1].documents, one[0])))


def _with_languages(by_label: Mapping[str, BitsHistogram]) -> dict[str, BitsHistogram]:
    from curation.filters.perplexity.histogram import BitsHistogram

    labels: dict[str, list[str]] = defaultdict(list)
    for label in by_label:
        if not label.startswith("und"):
            labels[label.partition("_")[0]].append(label)
    found = dict(by_label)
    for language, mine in labels.items():
        if len(mine) > 1:
            found[language] = BitsHistogram()
            for label in mine:
                found[language].merge(by_label[label])
    return found


def _verdicts(placed: PlacedStep, pipeline: Pipeline) -> Iterator[pa.Table]:
    from curation.shards import item_marker, open_table

    columns = ["language", "perplexity", "bits_per_character", "tokens"]
    for shard in pipeline.shards:
        marker = item_marker(placed.folder, shard.name)
        path = placed.folder / f"{shard.name}.arrow"
        yield open_table(path, marker["verdict_sha256"], shard.rows).read_all().select(columns)


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    """A line for each language: documents, and a few of its percentiles."""
    shown = (5, 30, 50, 60, 95)
    yield "  ".join(["language".ljust(10), "documents", *(f"p{percentile}".rjust(7) for percentile in shown)])
    for label, one in found["languages"].items():
        bits = (f"{one['percentiles'][percentile]:7.3f}" for percentile in shown)
        yield "  ".join([label.ljust(10), f"{one['documents']:9,}", *bits])
