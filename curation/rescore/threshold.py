"""One threshold of one training on disk: what was fixed of it, and how far it has come.

    <root>/rescore/<training>/<threshold>/
      threshold.json   the ledger's entry, fixed when the threshold is first seen; runs, files and `begun`, fixed when it
                       begins; settings, fixed as soon as a run of it has begun to be scored (`rescore.json`)
      problem.json     why the last try did not get on; gone when it did
      _done.json       written last, once

Whatever is written once is written under a lock of the training, which the death of its holder frees. That lock is held for
small files only; inputs are listed and checkpoints read before it is taken. A second lock, `.lock` of the threshold, is
held while a run begins to be scored, which reads the checkpoint: meanwhile its settings stay as they are. The folder must
be one on which `flock` works between the machines that work on it.
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

from curation.errors import ConfigError, RunError
from curation.rescore.score import Order, Rescore, threshold_folder
from curation.rescore.settings import RescoreSettings
from curation.run import read_json, utc_now, write_json
from tokenization.progress import Entry

__all__ = ["STATES", "BusyError", "NotReadyError", "Threshold", "thresholds_on_disk", "training_lock"]

STATES = ("published", "nothing_chosen", "no_documents", "rejected", "superseded", "given_up")
"""How a threshold may end."""
LOCK_S = 60.0
"""The training's lock is held for some small files: who waits longer has met a hanging disk."""
BEGIN_S = 3600.0
"""A threshold's own is held while its checkpoint is read: of some 100 GB, over a network, that takes minutes."""


class BusyError(RunError):
    """Another process holds a lock."""


class NotReadyError(RunError):
    """A step before this one has not got on: a consequence, which hides no cause that is told already."""


@contextmanager
def training_lock(settings: RescoreSettings) -> Iterator[None]:
    """Hold what is decided about the thresholds of a training for this process.

    Raises:
        BusyError: another one has held it for a minute.
    """
    folder = threshold_folder(settings.runs_root, settings.training.run, 0).parent
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock", LOCK_S):
        yield


@contextmanager
def _locked(path: Path, seconds: float) -> Iterator[None]:
    """Raises BusyError: another process has held it for so long."""
    late = time.monotonic() + seconds
    with path.open("w") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= late:
                    raise BusyError(f"{path} has been held for {seconds:.0f} s by another process.") from None
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
    def is_being_scored(self) -> bool:
        """Whether a run of it has begun to be: then its settings stay."""
        return self.is_begun and any((self.folder / run_id / "rescore.json").exists() for run_id in self.info["runs"])

    @property
    def taken(self) -> dict[str, Any] | None:
        """`runs` and `crawl` that no other threshold may judge; None: it has not begun, or was given up."""
        if not self.is_begun or ((done := self.done) is not None and done["state"] == "given_up"):
            return None
        return self.info

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

    @contextmanager
    def settings_stay(self, *, seconds: float = BEGIN_S) -> Iterator[None]:
        """Hold its settings as they are, to begin to score a run of it.

        Raises:
            BusyError: another process has held them for so long.
        """
        with _locked(self.folder / ".lock", seconds):
            yield

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
        """Fix its runs, and its settings for now. Call it under the lock, and again under that of `settings_stay`, too.

        Args:
            runs: ids, that of `crawl` among them.
            crawl: `run_id` and `files` (source, bytes, time of change) of the fresh crawl that it reads itself.
        """
        info = self.info
        begun = {"settings": self.settings.model_dump(mode="json"), "runs": sorted(runs), "crawl": crawl}
        if any(info[name] != value for name, value in begun.items()):
            write_json(self.folder / "threshold.json", {**info, **begun, "begun": info["begun"] or utc_now()})

    def finish(self, state: str, **facts: Any) -> dict[str, Any]:
        """Write the marker, unless one stands; returns the one that stands. Call it under the lock."""
        assert state in STATES, state
        if (stands := self.done) is not None:
            return stands
        marker = {"state": state, "version": None, "counts": {}, **facts, "end": utc_now()}
        write_json(self.folder / "_done.json", marker)
        self.clear_problem()
        return marker

    def give_up(self, who: str, why: str) -> dict[str, Any]:
        """End it because somebody says so; what else it would have judged is free for the next one. Returns the marker.

        Raises:
            ConfigError: it is done, or it was decided what becomes of its proposal: a version may have been appended.
        """
        with training_lock(self.settings):
            if (done := self.done) is not None:
                raise ConfigError(f"threshold {self.tokens:,} is done: {done['state']}, at {done['end']}.")
            path = self.folder / "decision.json"
            if path.exists():
                told = read_json(path)
                raise ConfigError(
                    f"threshold {self.tokens:,} was {told['decision']} by {told['who']}, and the blacklist may hold its version. "
                    "`corpusmill rescore SETTINGS --once` ends it."
                )
            return self.finish("given_up", who=who, why=f"{who}: {why}")

    def note_problem(self, step: str, error: BaseException) -> None:
        """Leave a word about a try that failed; a consequence leaves the word of its cause alone."""
        if isinstance(error, NotReadyError) and self.problem() is not None:
            return
        told = {"step": step, "error": str(error), "kind": type(error).__name__, "when": utc_now()}
        write_json(self.folder / "problem.json", told)

    def clear_problem(self, step: str | None = None) -> None:
        """It got on; with `step`, only in this one: what another left stands."""
        if step is None or ((problem := self.problem()) is not None and problem["step"] == step):
            (self.folder / "problem.json").unlink(missing_ok=True)


def thresholds_on_disk(settings: RescoreSettings) -> list[Threshold]:
    """All that were seen, of this training, in ascending order."""
    folder = threshold_folder(settings.runs_root, settings.training.run, 0).parent
    found = (path.parent.name for path in folder.glob("[0-9]*/threshold.json"))
    return [Threshold(settings, tokens) for tokens in sorted(int(name) for name in found if name.isdigit())]
