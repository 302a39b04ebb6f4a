"""Writes curation/report/usual_shares.tsv anew: how often each rule of the shipped config fires on crawl-like text.

Reads the crawl files of the test data (2_text, 10,089 documents in 30 languages: good text and junk of many kinds) with
the config `web`; of the filter `rules` every preset is decided from the same scores. Takes some minutes.

    python tools/make_usual_shares.py
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.config import load_config
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from curation.report.usual_sources import TABLE, table_rows
from curation.run import publish, read_json
from curation.verdicts import Filter, Step

REPO = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
Entry = tuple[Step, Mapping[str, str], Mapping[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="web", help="a shipped config, or a YAML file (default: web)")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    inputs = [str(path) for path in sorted((DATA / "2_text").glob("crawl-*.jsonl.zst"))]
    if not inputs:
        print(f"no crawl files in {DATA / '2_text'}: set CORPUSMILL_TEST_DATA to the folder of the test data")
        return 1
    with tempfile.TemporaryDirectory(prefix="corpusmill-usual-") as root:
        entries = list(_entries(arguments.config, inputs, Path(root), arguments.workers))
    rows = list(table_rows(entries))
    with publish(TABLE) as temporary:
        temporary.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows) - 1} rules written to {TABLE.relative_to(REPO)}")
    return 0


def _entries(config: str, inputs: list[str], root: Path, workers: int) -> Iterator[Entry]:
    """Every filter of the config once, and `rules` once for each preset, from one run."""
    first = _run(config, [], inputs, root, workers)
    placed = [one for one in first.placed if isinstance(one.step, Filter)]
    yield from ((one.step, one.models, read_json(one.folder / "_done.json")) for one in placed)
    if not any(one.name == "rules" for one in placed):
        return
    from curation.filters.rules.presets import PRESETS

    used = next(one.step.config.model_dump()["preset"] for one in placed if one.name == "rules")
    for preset in (name for name in PRESETS if name != used):
        again = _run(config, [f"rules.preset={preset}"], inputs, root, workers, last="rules")
        one = next(one for one in again.placed if one.name == "rules")
        yield one.step, one.models, read_json(one.folder / "_done.json")


def _run(config: str, overrides: list[str], inputs: list[str], root: Path, workers: int, last: str = "") -> Pipeline:
    """A run of a config, or of its steps up to `last`."""
    loaded = load_config(config, [*overrides, "pack="])
    if last:
        end = next(place for place, step in enumerate(loaded.steps, 1) if step.name == last)
        loaded = dataclasses.replace(loaded, steps=loaded.steps[:end])
    pipeline = start_run(loaded, inputs, root, run_id="usual", workers=workers)
    drive(pipeline, workers=workers)
    return Pipeline(pipeline.run, loaded)


if __name__ == "__main__":
    sys.exit(main())
