"""The pipeline as a list of passes over independent items: the same for the command line and Airflow.

A run goes through stages: ingest, then those of the config's steps, pack. A stage is a few passes; a pass
is a number of items that may run in any order, on any worker, twice, or not at all if their marker
stands; between two passes lies a barrier. Closing a stage checks the conservation law and writes markers.

    plan -> [ingest.read] close -> [exact.scatter][exact.resolve][exact] close -> [html_noise+length] close
         -> [pack.parity][pack.encode][pack.assemble] close -> report
"""

from __future__ import annotations

import logging
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any

from curation.close import close_step, has_size, is_closed, keep_passes, verdict_tables
from curation.config import RunConfig, parse_config
from curation.errors import InputError, RunError
from curation.judge import judge_shard
from curation.pack_stage import PackStage
from curation.passes import Pass, used
from curation.run import Run, file_sha256, peak_memory, read_json, write_json
from curation.shards import Shard, open_table, shards_of
from curation.steps import PlacedStep, StepContext, context_of, place_steps, stage_of_each
from curation.verdicts import STAGES, DataSetStep, Filter

__all__ = ["ALL_STAGES", "Pipeline"]

log = logging.getLogger("corpusmill")

ALL_STAGES = ("ingest", *STAGES, "pack")


class Pipeline:
    """A run with its config, ready to do any item of any pass."""

    def __init__(self, run: Run, config: RunConfig | None = None) -> None:
        self.run = run
        self.config = config or parse_config(run.config_path.read_text(encoding="utf-8"), str(run.config_path))
        self.judge_all = bool(run.info.get("judge_all", False))

    @classmethod
    def open(cls, folder: str | Path) -> Pipeline:
        """Open the run in `folder` with the config that lies there."""
        return cls(Run(Path(folder)))

    # -- what there is to do -------------------------------------------------------------------

    @cached_property
    def plan(self) -> Any:
        """The plan of ingest: parts made of slices of the inputs."""
        from curation.ingest.plan import Plan

        return Plan.from_json(read_json(self.run.shards / "plan.json"))

    @cached_property
    def shards(self) -> list[Shard]:
        """All shards, once ingest is closed."""
        return shards_of(self.run)

    @cached_property
    def placed(self) -> list[PlacedStep]:
        """The config's steps with digests and folders, once ingest is closed."""
        return place_steps(self.run, self.config.steps, judge_all=self.judge_all)

    @property
    def pack(self) -> PackStage:
        """The stage `pack` of a config that has it, once the steps before it are closed."""
        assert self.config.top.pack is not None
        return PackStage(self.run, self.config.top.pack, self.config.digest(), self.shards, self.placed)

    def stages(self) -> list[str]:
        """The stages this config uses, in order."""
        used = set(stage_of_each(self.config.steps))
        pack = ["pack"] if self.config.top.pack is not None else []
        return ["ingest", *[stage for stage in STAGES if stage in used], *pack]

    def passes(self, stage: str) -> list[Pass]:
        """The passes of a stage that is not closed yet; empty if it is. After ingest, every stage can be asked."""
        if stage == "ingest":
            return [] if self._ingest_closed() else [Pass("ingest", "ingest.read", len(self.plan.parts), "part")]
        if stage == "pack":
            return self.pack.passes() if self.config.top.pack is not None else []
        return self._step_passes(stage)

    def _ingest_closed(self) -> bool:
        """Whether ingest's marker stands and every shard it names is there, whole; a lost shard opens ingest again."""
        done = self.run.shards / "_done.json"
        if not done.exists():
            return False
        if all(has_size(self.run.shard_path(s["name"]), s["file_bytes"]) for s in read_json(done)["shards"]):
            return True
        done.unlink(missing_ok=True)
        return False

    def _step_passes(self, stage: str) -> list[Pass]:
        passes: list[Pass] = []
        for group in self._groups(stage):
            first = group[0]
            if all(is_closed(placed.folder) for placed in group):
                continue
            if isinstance(first.step, DataSetStep) and not is_closed(first.folder):
                context = self._context(first)
                self._preflight(first, context)
                passes += [
                    Pass(stage, f"{first.name}.{name}", first.step.n_items(name, context), "item")
                    for name in first.step.passes
                ]
            passes.append(Pass(stage, "+".join(placed.name for placed in group), len(self.shards), "shard"))
        return passes

    def _preflight(self, placed: PlacedStep, context: StepContext) -> None:
        """Estimate a data-set step once, before its first pass; refuses what cannot work."""
        path = context.folder / "preflight.json"
        if path.exists():
            return
        assert isinstance(placed.step, DataSetStep)
        estimate = placed.step.preflight(context)
        if "summary" in estimate:
            log.info("%s: %s", placed.name, estimate["summary"])
        write_json(path, estimate)

    def _groups(self, stage: str) -> list[list[PlacedStep]]:
        """Consecutive steps that one pass over a shard can judge: only the first may be a data-set step."""
        groups: list[list[PlacedStep]] = []
        for placed, its_stage in zip(self.placed, stage_of_each(self.config.steps), strict=True):
            if its_stage != stage:
                continue
            if not groups or isinstance(placed.step, DataSetStep):
                groups.append([])
            groups[-1].append(placed)
        return groups

    def _context(self, placed: PlacedStep) -> StepContext:
        return context_of(self.run, placed, self.shards, self.config.top.memory_mb)

    # -- doing it ------------------------------------------------------------------------------

    def run_item(self, pass_name: str, item: int) -> dict[str, Any]:
        """Do one item of a pass, or nothing if its marker stands. Safe to run twice at once.

        Returns:
            A few counts, less than 1 kB.
        """
        if pass_name == "ingest.read":
            return self._ingest(item)
        if pass_name.startswith("pack."):
            return self.pack.run_item(pass_name, item)
        name, _, part = pass_name.partition(".")
        if part:
            return self._data_set_item(self._by_name(name), part, item)
        group = [self._by_name(step) for step in pass_name.split("+")]
        return judge_shard(self.run, group, item, self.shards, self.config.top.memory_mb)

    def _by_name(self, name: str) -> PlacedStep:
        return next(placed for placed in self.placed if placed.name == name)

    def _ingest(self, item: int) -> dict[str, Any]:
        from curation.ingest.part import ingest_part, marker_path

        part = self.plan.parts[item]
        marker = ingest_part(
            part, shards=self.run.shards, quarantine=self.run.quarantine, config=self.config.top.ingest
        )
        if not marker.get("reused"):
            try:
                self._check_inputs_unchanged({one.source for one in part.slices})
            except InputError:
                marker_path(self.run.shards, item).unlink(missing_ok=True)
                raise
        documents = sum(slice_["documents"] for slice_ in marker["inputs"])
        return {"item": item, "documents": documents, "reused": bool(marker.get("reused"))}

    def _check_inputs_unchanged(self, sources: set[str]) -> None:
        """An input that was replaced since it was planned would give a mixture of two files."""
        from curation.ingest.find import find_inputs

        planned = {one.source: (one.size, one.mtime) for one in self.plan.inputs if one.source in sources}
        now = {found.source: (found.size, found.mtime) for found in find_inputs(sorted(sources))[0]}
        changed = sorted(source for source in planned if planned[source] != now.get(source))
        if changed:
            raise InputError(
                f"{changed[0]} was changed while the run was reading it: its documents would be a mixture. "
                "Wait until the inputs are complete, then start a new run."
            )

    def _data_set_item(self, placed: PlacedStep, pass_name: str, item: int) -> dict[str, Any]:
        context = self._context(placed)
        marker_path = context.item_marker_path(pass_name, item)
        path = context.item_path(pass_name, item)
        if _is_whole(path, marker_path):
            return {"item": item, "reused": True}
        assert isinstance(placed.step, DataSetStep)
        with peak_memory() as cost:
            placed.step.run_item(pass_name, item, context)
        # An item whose file does not fit its marker is done again, so neither must outlive a crash of the machine.
        marker = {"sha256": file_sha256(path), "rows": open_table(path).read_all().num_rows, **cost}
        write_json(marker_path, marker, durable=pass_name in placed.step.lasting)
        return {"item": item, "reused": False}

    # -- closing -------------------------------------------------------------------------------

    def close(self, stage: str) -> dict[str, Any]:
        """Check the law of a stage and write its markers. Nothing is done twice.

        Returns:
            A few counts, less than 1 kB.

        Raises:
            LawError: documents were lost or invented.
            InputError: too much of the input is in the quarantine.
        """
        if stage == "ingest":
            return self._close_ingest()
        if stage == "pack":
            return self.pack.close()
        counts: dict[str, Any] = {}
        for placed, its_stage in zip(self.placed, stage_of_each(self.config.steps), strict=True):
            if its_stage == stage:
                marker = self._close_step(placed)
                counts[placed.name] = {key: marker[key] for key in ("docs_in", "docs_kept", "seconds", "peak_rss_mb")}
        return counts

    def _close_step(self, placed: PlacedStep) -> dict[str, Any]:
        """Close one step; of a data-set step keep what lasts and delete the rest of its passes."""
        if is_closed(placed.folder):
            return close_step(placed, self.shards)
        if isinstance(placed.step, Filter):
            facts = placed.step.facts(verdict_tables(placed, self.shards))
            self._warn(placed, facts)
            return close_step(placed, self.shards, facts=facts)
        assert isinstance(placed.step, DataSetStep)
        context = self._context(placed)
        try:
            facts = placed.step.facts(context)
            used = self._passes_used(placed)
            keep_passes(context.folder, placed.step.lasting, placed.folder)
        except (RunError, FileNotFoundError):
            if is_closed(placed.folder):  # by another try, which has begun to delete what this one reads
                return close_step(placed, self.shards)
            raise
        self._warn(placed, facts)
        marker = close_step(placed, self.shards, passes=used, facts=facts)
        for left in self.run.work.glob(f"{placed.folder.name}-*mb"):
            shutil.rmtree(left, ignore_errors=True)
        return marker

    def _warn(self, placed: PlacedStep, facts: dict[str, Any]) -> None:
        for alarm in facts.get("alarms", []):
            log.warning("%s: %s", placed.name, alarm)

    def _passes_used(self, placed: PlacedStep) -> dict[str, float]:
        """Seconds and peak memory of the passes before a data-set step's verdicts, from their markers."""
        markers = [read_json(path) for path in self._context(placed).folder.glob("*/_items/*.json")]
        return used(markers)

    def _close_ingest(self) -> dict[str, Any]:
        from curation.ingest.close import close_ingest

        done = self.run.shards / "_done.json"
        totals: dict[str, Any] = (
            read_json(done)
            if done.exists()
            else close_ingest(
                shards=self.run.shards,
                quarantine=self.run.quarantine,
                inputs_path=self.run.folder / "inputs.json",
                plan=self.plan,
                config=self.config.top.ingest,
            )
        )
        self.__dict__.pop("shards", None)
        self.__dict__.pop("placed", None)
        return {key: totals[key] for key in ("files", "lines", "documents", "seconds", "peak_rss_mb")}


def _is_whole(path: Path, marker_path: Path) -> bool:
    """Whether an item's file is what its marker says. A marker that cannot be read says nothing."""
    try:
        return path.exists() and marker_path.exists() and file_sha256(path) == read_json(marker_path)["sha256"]
    except (RunError, KeyError, TypeError):
        return False
