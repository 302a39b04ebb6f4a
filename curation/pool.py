"""Worker processes for the items of a pass, with an error that says which item died and why.

One worker runs in this process. More are started by a fork server, so that no thread or lock of this
process is copied; each opens the run once and keeps it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import psutil

from curation.errors import RunError
from curation.passes import Pass
from curation.pipeline import Pipeline

__all__ = ["Pool", "run_one"]

log = logging.getLogger("corpusmill")

Item: TypeAlias = Callable[[str, str, int], dict[str, Any]]
"""Does one item: the folder, the name of the pass, and the item's number."""
PATIENCE_S = 120.0
"""How long a failed run waits for the items that other workers have begun; those that take longer are killed."""


@lru_cache(maxsize=1)
def _opened(folder: str, version: tuple[int, ...]) -> Pipeline:
    return Pipeline.open(folder)


def run_one(folder: str, pass_name: str, item: int) -> dict[str, Any]:
    """Do one item in this process; the run is opened again only when its config or shards changed."""
    version = tuple(
        path.stat().st_mtime_ns if path.exists() else 0
        for path in (Path(folder) / "config.yaml", Path(folder) / "shards/_done.json")
    )
    return _opened(folder, version).run_item(pass_name, item)


def _die_with(main_pid: int) -> None:
    """Let this worker end within a second of the process that started it, however that ended.

    Neither the fork server nor a closed pipe does it: the server lives as long as a worker does, and each worker holds
    both ends of the pipes. Without it, workers of a killed run would wait for work for ever.
    """
    main = psutil.Process(main_pid)

    def watch() -> None:
        while main.is_running() and main.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _start_fork_server() -> None:
    """Start it such that it imports what this process does.

    It is a `python -c`, which would look for modules in the current folder first: a random.py that lies beside the crawl,
    or another version of this package, would run in the workers.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _end(workers: Sequence[BaseProcess], patience: float) -> None:
    """Wait for workers to finish the items they are at, then kill those that are still there.

    A killed one leaves a whole file or none, as everywhere.
    """
    until = time.monotonic() + patience
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
    alive = [worker for worker in workers if worker.is_alive()]
    if alive and patience:
        log.warning("%d workers did not end within %.0f s and are killed", len(alive), patience)
    for worker in alive:
        worker.kill()
    for worker in alive:
        worker.join()


class Pool:
    """`workers` processes over one run; a context manager."""

    def __init__(self, folder: Path, workers: int, item: Item = run_one) -> None:
        """Start nothing yet. `item` does one in a worker: it must be a function at the top of a module."""
        self.folder = str(folder)
        self.workers = max(1, workers)
        self._executor: ProcessPoolExecutor | None = None
        self._item = item

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no worker behind: whoever takes the run up next must be the only one who writes in it."""
        if self._executor is None:
            return
        # Taken before the shutdown, which forgets them.
        workers = list((self._executor._processes or {}).values())
        self._executor.shutdown(wait=kind is None, cancel_futures=True)
        _end(workers, PATIENCE_S if isinstance(error, Exception) else 0.0)

    def run(self, work: Pass) -> Iterator[dict[str, Any]]:
        """Do all items of a pass; yields their counts as they finish.

        Raises:
            RunError: a worker was killed, most often for its memory.
        """
        if self.workers == 1 or work.n_items <= 1:
            for item in range(work.n_items):
                yield self._item(self.folder, work.name, item)
            return
        if self._executor is None:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["curation.pipeline"])
            _start_fork_server()
            self._executor = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_die_with, initargs=(os.getpid(),)
            )
        yield from self._run_on(self._executor, work)

    def _run_on(self, executor: ProcessPoolExecutor, work: Pass) -> Iterator[dict[str, Any]]:
        waiting = list(range(work.n_items - 1, -1, -1))
        running: dict[Future[dict[str, Any]], int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < 2 * self.workers:
                    item = waiting.pop()
                    running[executor.submit(self._item, self.folder, work.name, item)] = item
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    running.pop(future)
                    yield future.result()
        except BrokenProcessPool:
            items = sorted(running.values())
            raise RunError(
                f"a worker process died in pass {work.name} while {work.what}s {items} were in work (host pid {os.getpid()}): "
                "most often the system killed it for its memory. Run the same command with fewer --workers: it goes on where "
                "it stopped. If one worker is too much, begin a new run with a smaller ingest.shard_mb."
            ) from None
        finally:
            for future in running:
                future.cancel()
