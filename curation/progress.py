"""Progress of a run: a bar a pass on a terminal, a line a pass in logs."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from curation.passes import Pass

__all__ = ["ProgressDisplay"]

log = logging.getLogger("corpusmill")


class ProgressDisplay:
    """Shows passes as they are done; a context manager. Call it as `launch.Progress`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = not quiet and sys.stderr.isatty()
        self._bars: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}
        columns = (
            TextColumn("{task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}s"),
        )
        self._progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), disable=not self._live)

    def __enter__(self) -> ProgressDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, work: Pass, done: int) -> None:
        key = f"{work.stage}: {work.name}"
        if done == 0:
            self._started[key] = time.perf_counter()
            self._bars[key] = self._progress.add_task(key, total=work.n_items, unit=work.what)
        self._progress.update(self._bars[key], completed=done)
        if done == work.n_items and not self._live:
            log.info("%s: %d %ss in %.1f s", key, done, work.what, time.perf_counter() - self._started[key])
