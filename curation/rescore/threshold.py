"""One threshold of one training on disk: what was fixed of it, and how far it has come.

    <root>/rescore/<training>/<threshold>/
      threshold.json   written when the threshold is first seen, with the ledger's entry; once more when it begins, with the
                       settings and the runs that it judges; never changed after that
      problem.json     why the last try did not get on; gone when it did
      _done.json       written last, once

Whatever is written once is written under a lock of the training, which the death of its holder frees. The lock is held for
reading and writing small files only. The folder must be one on which `flock` works between the machines that work on it.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curation.errors import RunError
from curation.rescore.score import Order, Rescore, threshold_folder
from curation.rescore.settings import RescoreSettings
from curation.run import read_json, utc_now, write_json
from tokenization.progress import Entry

__all__ = ["STATES", "Threshold", "thresholds_on_disk", "training_lock"]

STATES = ("published", "nothing_chosen", "no_documents", "rejected", "superseded")
"""How a threshold may end."""
LOCK_S = 60.0
"""A lock is held for some small files: who waits longer has met a hanging disk."""


@contextmanager
def training_lock(settings: RescoreSettings) -> Iterator[None]:
    """Hold what is decided about the thresholds of a training for this process.

    Raises:
        RunError: another one has held it for a minute.
    """
    folder = threshold_folder(settings.runs_root, settings.training.run, 0).parent
    folder.mkdir(parents=True, exist_ok=True)
    give_up = time.monotonic() + LOCK_S
    with (folder / ".lock").open("w") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise RunError(f"{stream.name} has been held for {LOCK_S:.0f} s by another process.") from None
                time.sleep(0.01)
        yield


@dataclass(frozen=True)
class Threshold:
    """A multiple of `every_tokens` of a training."""

    settings: RescoreSettings
    """As they are now; those that count are `begun_with`."""
    tokens: int

    @cached_property
    def folder(self) -> Path:
        return threshold_folder(self.settings.runs_root, self.settings.training.run, self.tokens)

    # -- what is known of it -------------------------------------------------------------------

    @property
    def info(self) -> dict[str, Any]:
        """threshold.json."""
        found: dict[str, Any] = read_json(self.folder / "threshold.json")
        return found

    @property
    def is_seen(self) -> bool:
        return (self.folder / "threshold.json").exists()

    @property
    def is_begun(self) -> bool:
        """Whether its runs are fixed."""
        return self.is_seen and self.info["begun"] is not None

    @property
    def is_pinned(self) -> bool:
        """Whether its checkpoint is held."""
        return (self.folder / "_model" / "pinned.json").exists()

    @property
    def done(self) -> dict[str, Any] | None:
        """_done.json, if it stands."""
        path = self.folder / "_done.json"
        return read_json(path) if path.exists() else None

    @property
    def begun_with(self) -> RescoreSettings:
        """The settings that were fixed when it began. Raises RunError if it has not."""
        info = self.info
        if info["settings"] is None:
            raise RunError(f"{self.folder} has not begun. Run the same command again.")
        return RescoreSettings.model_validate(info["settings"])

    @property
    def order(self) -> Order:
        """What its checkpoint is, for `Rescore`."""
        return Order(self.settings.training.run, self.tokens, int(self.info["entry"]["tokens_seen"]))

    def rescores(self) -> list[Rescore]:
        """The re-scores of its runs, in order of their ids. Raises RunError if one was not begun."""
        return [Rescore.open(self.folder / run_id) for run_id in self.info["runs"]]

    def problem(self) -> dict[str, Any] | None:
        """What kept it from getting on when it was last tried: `step`, `error`, `kind`, `when`."""
        with suppress(RunError):
            path = self.folder / "problem.json"
            return read_json(path) if path.exists() else None
        return None

    # -- what is written of it -----------------------------------------------------------------

    def see(self, entry: Entry) -> None:
        """Fix the ledger's entry that passed it, unless one is fixed already. Call it under the lock."""
        if self.is_seen:
            return
        kept = ("tokens_seen", "step", "checkpoint", "checkpoint_sha256", "tokenizer", "attempt", "time")
        fixed = {name: value for name, value in asdict(entry).items() if name in kept}
        write_json(
            self.folder / "threshold.json",
            {
                "training_run": entry.run,
                "threshold": self.tokens,
                "every_tokens": self.settings.every_tokens,
                "entry": {**fixed, "time": entry.time.isoformat()},
                "seen": time.time(),
                "settings": None,
                "runs": None,
                "crawl": None,
                "begun": None,
            },
        )

    def begin(self, runs: list[str], crawl: Mapping[str, Any] | None) -> None:
        """Fix its settings and runs. Call it under the lock.

        Args:
            runs: ids, that of `crawl` among them.
            crawl: `run_id` and `files` (source, bytes, time of change) of the fresh crawl that it reads itself.
        """
        begun = {"settings": self.settings.model_dump(mode="json"), "runs": sorted(runs), "crawl": crawl}
        write_json(self.folder / "threshold.json", {**self.info, **begun, "begun": utc_now()})

    def finish(self, state: str, **facts: Any) -> dict[str, Any]:
        """Write the marker, unless one stands; returns the one that stands. Call it under the lock."""
        assert state in STATES, state
        if (stands := self.done) is not None:
            return stands
        marker = {"state": state, "version": None, "counts": {}, **facts, "end": utc_now()}
        write_json(self.folder / "_done.json", marker)
        self.clear_problem()
        return marker

    def note_problem(self, step: str, error: BaseException) -> None:
        """Leave a word about a try that failed."""
        told = {"step": step, "error": str(error), "kind": type(error).__name__, "when": utc_now()}
        write_json(self.folder / "problem.json", told)

    def clear_problem(self) -> None:
        """It got on."""
        (self.folder / "problem.json").unlink(missing_ok=True)


def thresholds_on_disk(settings: RescoreSettings) -> list[Threshold]:
    """All that were seen, of this training, in ascending order."""
    folder = threshold_folder(settings.runs_root, settings.training.run, 0).parent
    found = (path.parent.name for path in folder.glob("[0-9]*/threshold.json"))
    return [Threshold(settings, tokens) for tokens in sorted(int(name) for name in found if name.isdigit())]
