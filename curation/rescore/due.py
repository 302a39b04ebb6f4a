"""Which thresholds are to be done, and with which checkpoint: level-triggered, from the ledger and the markers on disk.

Nothing is remembered between two calls but what lies on disk. So nothing is missed when several thresholds are passed at
once, when nobody looked for a week, or when an event was lost; and nothing is done twice when progress repeats or the
trainer rolls back. The ledger's entry is fixed for a threshold when it is first seen: what comes later changes nothing.

Costs reading the ledger (15 us a line) and a look at each threshold that was seen.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from curation.errors import CorpusmillError, RunError
from curation.rescore.checkpoints import GivenTokenizer, Pinned, age, held, look, pin, wait_for
from curation.rescore.crawl import anything_new
from curation.rescore.publish import let_go
from curation.rescore.settings import RescoreSettings
from curation.rescore.threshold import Threshold, thresholds_on_disk, training_lock
from tokenization.progress import History, ProgressError, ProgressLedger

__all__ = ["MAX_DUE", "due", "hold_checkpoint", "read_ledger"]

log = logging.getLogger("corpusmill")

MAX_DUE = 64
"""Thresholds that are taken up at once; those above come when these are done. As many as tasks of one pass at most."""
STALLED_S = 3600.0
"""A checkpoint that is not whole and has not changed for so long was given up by its writer, if a later one is whole."""


def due(settings: RescoreSettings) -> list[Threshold]:
    """Thresholds without a marker, in ascending order, with their entry fixed; at most MAX_DUE.

    One that has the very checkpoint of a lower one that is not done is left out: by the time that one is done, it has
    either new documents or none.

    Raises:
        RunError: the ledger cannot be read.
    """
    history = read_ledger(settings)
    with training_lock(settings):
        n_new = 0
        for k, entry in history.thresholds_passed(settings.every_tokens, settings.training.run):
            threshold = Threshold(settings, k * settings.every_tokens)
            if not threshold.is_seen:
                log.info("threshold %s is passed, at %s tokens", f"{threshold.tokens:,}", f"{entry.tokens_seen:,}")
                threshold.see(entry)
                n_new += 1
            if n_new == MAX_DUE:
                break
    found: list[Threshold] = []
    checkpoints = set()
    for threshold in thresholds_on_disk(settings):
        if threshold.done is not None:
            let_go(threshold)  # whoever wrote the marker may have been killed before
            continue
        entry_of = threshold.info["entry"]
        checkpoint = (entry_of["checkpoint"], entry_of["checkpoint_sha256"])
        if checkpoint not in checkpoints or threshold.is_begun:
            found.append(threshold)
        checkpoints.add(checkpoint)
    return found[:MAX_DUE]


def hold_checkpoint(threshold: Threshold, *, wait: bool = True) -> Pinned | None:
    """Wait for a threshold's checkpoint and hold it; None if it has ended without one.

    It ends without one where there is no document to judge, and where the checkpoint is gone for ever: no file of its name
    and checksum is there, `wait_seconds` after it was first seen, and a later line of the ledger names one that is.

    Raises:
        RunError: the checkpoint is not whole yet, or not there; another try may find it.
        ConfigError: it is of no kind that can be read, or its tokenizer is another.
    """
    settings = threshold.settings
    model = threshold.folder / "_model"
    if threshold.done is not None:
        return None
    if threshold.is_pinned:
        return held(model)
    if not threshold.is_begun and not anything_new(settings):
        with training_lock(settings):
            threshold.finish("no_documents", why="no document was new to this training when it was looked for")
        log.info("threshold %s: no new documents", f"{threshold.tokens:,}")
        return None
    entry = threshold.info["entry"]
    path = _path(settings, entry["checkpoint"])
    left = threshold.info["seen"] + settings.wait_seconds - time.time()
    try:
        seconds = max(0.0, min(left, settings.wait_seconds)) if wait else 0.0
        if seconds >= 1:
            log.info("threshold %s: waits for %s, up to %.0f s", f"{threshold.tokens:,}", path, seconds)
        found = wait_for(path, entry["checkpoint_sha256"], seconds=seconds)
    except RunError as error:
        if time.time() >= threshold.info["seen"] + settings.wait_seconds and (why := _superseded(threshold, path)):
            with training_lock(settings):
                threshold.finish("superseded", why=f"{why} Its own: {error}")
            log.warning("threshold %s: superseded. %s", f"{threshold.tokens:,}", why)
            return None
        raise
    given = settings.training.tokenizer
    tokenizer = None if given is None else GivenTokenizer(given.name, given.eos, given.bos)
    return pin(found, model, tokenizer=tokenizer, fingerprint=entry["tokenizer"])


def read_ledger(settings: RescoreSettings) -> History:
    """What the ledger holds; warns where that cannot be what is meant.

    Raises:
        RunError: it cannot be read.
    """
    ledger = ProgressLedger(settings.training.ledger)
    try:
        history = ledger.read()
    except ProgressError as error:
        raise RunError(str(error)) from error
    if not history.entries:
        log.warning("the progress ledger %s holds nothing yet: check training.ledger if there should be.", ledger.path)
    elif not any(entry.run == settings.training.run for entry in history.entries):
        known = ", ".join(sorted({entry.run for entry in history.entries})[:5])
        log.warning("the progress ledger %s knows no training %r, only %s.", ledger.path, settings.training.run, known)
    for problem in history.problems:
        log.warning("%s, line %d does not count: %s", ledger.path, problem.line, problem.what)
    return history


def _path(settings: RescoreSettings, checkpoint: str) -> Path:
    return ProgressLedger(settings.training.ledger).path.parent / checkpoint


def _superseded(threshold: Threshold, path: Path) -> str:
    """Why a checkpoint that could not be had never will be, and which one stands in for it; empty if it still may come."""
    settings, entry = threshold.settings, threshold.info["entry"]
    own = (entry["attempt"], entry["tokens_seen"], entry["step"], entry["checkpoint"])
    lost = (entry["checkpoint"], entry["checkpoint_sha256"])
    lines = [one for one in read_ledger(settings).entries if one.run == settings.training.run]
    places = [n for n, one in enumerate(lines) if (one.attempt, one.tokens_seen, one.step, one.checkpoint) == own]
    later = [one for one in lines[(places[-1] + 1 if places else 0) :] if one.checkpoint is not None]
    overwritten = any(
        one.checkpoint == entry["checkpoint"] and one.checkpoint_sha256 not in (None, entry["checkpoint_sha256"])
        for one in later
    )
    stalled = path.exists() and age(path) > STALLED_S
    if path.exists() and not overwritten and not stalled:
        return ""
    for one in reversed(later):
        if one.checkpoint is None or (one.checkpoint, one.checkpoint_sha256) == lost:
            continue
        try:
            look(_path(settings, one.checkpoint), one.checkpoint_sha256)
        except CorpusmillError:
            continue
        what = "was overwritten" if overwritten else "was never finished" if stalled else "is gone"
        return f"The checkpoint {entry['checkpoint']} {what}; that of {one.tokens_seen:,} tokens ({one.checkpoint}) is there."
    return ""
