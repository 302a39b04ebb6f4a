"""`corpusmill rescore`: the rolling re-score without Airflow, what has become of each threshold, and a person's word.

The loop looks at the ledger, does what is due, and looks again; it can be stopped or killed at any moment, and may run
beside the DAG. Costs what the model costs; a worker holds the model, and uses every core by itself.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError, CorpusmillError, RunError
from curation.export_command import positive
from curation.report.numbers import noun
from curation.terminal import printable

if TYPE_CHECKING:
    from curation.rescore.settings import RescoreSettings
    from curation.rescore.threshold import Threshold

__all__ = ["add_rescore"]

log = logging.getLogger("corpusmill")

_SUMMARY = "let the checkpoints of a training judge new crawl, and put the worst of it on the blacklist"
_EXAMPLES = """examples:
  corpusmill rescore rescore.yaml                          for as long as the training goes on
  corpusmill rescore rescore.yaml --once                   what is due now
  corpusmill rescore rescore.yaml --status
  corpusmill rescore rescore.yaml --approve 20_000_000_000 --note "looked at the samples"
  corpusmill rescore rescore.yaml --give-up 20_000_000_000 --note "its run is deleted"
exit code of --once: 0: nothing is left to do, or only a person's word; 1: a threshold did not get on"""


def add_rescore(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    parser = commands.add_parser(
        "rescore",
        help=_SUMMARY,
        description=_SUMMARY[0].upper() + _SUMMARY[1:] + ".",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", type=Path, metavar="SETTINGS.yaml", help="which training, what it judges, and how")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--once", action="store_true", help="do what is due now, and end")
    what.add_argument("--status", action="store_true", help="show what has become of each threshold; does nothing")
    what.add_argument("--approve", type=_tokens, metavar="THRESHOLD", help="publish what this threshold proposes")
    what.add_argument("--reject", type=_tokens, metavar="THRESHOLD", help="publish nothing of it")
    what.add_argument(
        "--give-up", type=_tokens, nargs="+", metavar="THRESHOLD", help="end what cannot end by itself; needs --note"
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="why it is approved, rejected or given up")
    parser.add_argument(
        "--poll", type=float, default=60.0, metavar="S", help="seconds between two looks at the ledger (default 60)"
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes that score; each uses all cores (default 1)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(function=_rescore)


def _tokens(text: str) -> int:
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of tokens, found {text!r}") from None


def _rescore(arguments: argparse.Namespace) -> int:
    from curation.rescore.settings import load_settings

    settings = load_settings(arguments.settings)
    if arguments.status:
        return _status(settings)
    tokens = arguments.approve if arguments.approve is not None else arguments.reject
    if tokens is not None:
        return _decide(settings, tokens, approve=arguments.approve is not None, note=arguments.note)
    if arguments.give_up:
        return _give_up(settings, arguments.give_up, arguments.note)
    if arguments.once:
        return 1 if _once(settings, arguments, wait=True) else 0
    while True:
        settings = _look(settings, arguments)


# -- the loop ----------------------------------------------------------------------------------


def _look(settings: RescoreSettings, arguments: argparse.Namespace) -> RescoreSettings:
    """Do what is due, and wait for the next look; returns the settings for that. It is to go on for weeks: whatever cannot be
    read now, or locked, may be by then."""
    from curation.rescore.settings import load_settings

    try:
        _once(settings, arguments, wait=False)
    except (CorpusmillError, OSError) as error:
        log.error("%s It is tried again in %g s.", error, arguments.poll)
    time.sleep(max(0.1, arguments.poll))
    try:
        return load_settings(arguments.settings)
    except (CorpusmillError, OSError) as error:
        log.error("%s Until the settings are mended, those of before stay.", error)
        return settings


def _once(settings: RescoreSettings, arguments: argparse.Namespace, *, wait: bool) -> list[str]:
    """Do all that is due, also what becomes due meanwhile; returns why a threshold did not get on."""
    from curation import rescore_tasks as tasks
    from curation.rescore.threshold import Threshold

    tried: set[int] = set()
    problems: dict[int, str] = {}
    while new := [one for one in tasks.due(settings) if one not in tried]:
        # Those whose checkpoint is whole come first: one that is not holds up no other.
        waiting = []
        for tokens in new:
            tried.add(tokens)
            try:
                tasks.pin(settings, tokens, wait=False)
            except RunError:
                waiting.append(tokens)
            except Exception as error:
                problems[tokens] = _told(tokens, error)
            else:
                problems |= _go_on(Threshold(settings, tokens), arguments)
        for tokens in waiting if wait else []:
            try:
                tasks.pin(settings, tokens)
            except Exception as error:
                problems[tokens] = _told(tokens, error)
            else:
                problems |= _go_on(Threshold(settings, tokens), arguments)
    return [f"threshold {tokens:,}: {why}" for tokens, why in problems.items()]


def _told(tokens: int, error: Exception) -> str:
    """What a threshold failed with, logged; where that is a fault of the program, with the place. It stops no other one."""
    fault = None if isinstance(error, CorpusmillError) else error
    log.error("threshold %s: %s", f"{tokens:,}", error, exc_info=fault)
    return str(error)


def _go_on(threshold: Threshold, arguments: argparse.Namespace) -> dict[int, str]:
    """Everything after the checkpoint is held; returns why it did not get on, if so."""
    from curation import rescore_tasks as tasks
    from curation.progress import ProgressDisplay
    from curation.rescore import crawl

    was_told = threshold.is_begun and tasks.proposal_of(threshold) is not None
    try:
        if threshold.done is None and crawl.begin(threshold):
            with ProgressDisplay(quiet=arguments.quiet) as progress:
                tasks.ingest(threshold.settings, threshold.tokens, progress=progress)
                tasks.score(threshold, workers=arguments.workers, progress=progress)
            tasks.end(threshold)
    except Exception as error:
        threshold.note_problem("rescore", error)
        return {threshold.tokens: _told(threshold.tokens, error)}
    if (done := threshold.done) is not None:
        version = f", blacklist version {done['version']}" if done["version"] is not None else ""
        log.info("threshold %s: %s%s", f"{threshold.tokens:,}", done["state"], version)
    elif threshold.is_begun and not was_told:
        log.info("threshold %s: waits for somebody's word: --approve or --reject it", f"{threshold.tokens:,}")
        log.info("%s", tasks.told(threshold))
    return {}


# -- a person's word ---------------------------------------------------------------------------


def _decide(settings: RescoreSettings, tokens: int, *, approve: bool, note: str) -> int:
    from curation import rescore_tasks as tasks
    from curation.environment import somebody

    threshold = _seen(settings, tokens)
    wanted = "approved" if approve else "rejected"
    stands = tasks.decide(settings, tokens, approve=approve, who=somebody(), note=note)
    if stands["decision"] != wanted:
        raise ConfigError(
            f"threshold {tokens:,} was {stands['decision']} by {stands['who']} at {stands['when']}: the first word counts. "
            "`corpusmill blacklist remove` takes entries back, `blacklist add --from` adds them."
        )
    tasks.end(threshold)
    done = threshold.done or {}
    version = done.get("version")
    print(
        f"threshold {tokens:,}: {done.get('state')}, "
        + (f"blacklist version {version}" if version else "nothing published")
    )
    return 0


def _give_up(settings: RescoreSettings, given: Sequence[int], note: str) -> int:
    from curation.environment import somebody
    from curation.rescore.publish import let_go

    if not note.strip():
        raise ConfigError("--give-up: --note is missing. Say why: the marker of the threshold keeps it.")
    for threshold in [_seen(settings, tokens) for tokens in given]:
        threshold.give_up(somebody(), note)
        let_go(threshold)
        print(f"threshold {threshold.tokens:,}: given_up")
    return 0


def _seen(settings: RescoreSettings, tokens: int) -> Threshold:
    """Raises ConfigError: there is no such threshold."""
    from curation.rescore.threshold import Threshold, thresholds_on_disk

    threshold = Threshold(settings, tokens)
    if not threshold.is_seen:
        known = ", ".join(f"{one.tokens:,}" for one in thresholds_on_disk(settings)[-5:]) or "none yet"
        raise ConfigError(f"no threshold {tokens:,} of training {settings.training.run!r}; known: {known}.")
    return threshold


# -- what has become of each -------------------------------------------------------------------


def _status(settings: RescoreSettings) -> int:
    from curation.rescore.crawl import runs_left
    from curation.rescore.threshold import thresholds_on_disk

    print(printable(_follows(settings)))
    rows: list[tuple[str, ...]] = [
        ("threshold", "state", "checkpoint", "runs", "judged", "entries", "version", "since")
    ]
    notes = []
    for threshold in thresholds_on_disk(settings):
        row, note = _row(threshold)
        rows.append(row)
        if note:
            notes.append(f"{threshold.tokens:,}: {note}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(printable("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()))
    left: dict[str, list[str]] = {}
    for run_id, why in runs_left(settings):
        left.setdefault(why, []).append(run_id)
    notes += [f"{noun(len(ids), 'run')} left, {why}: {', '.join(ids)}" for why, ids in left.items()]
    for note in notes:
        print(printable(note))
    return 0


def _follows(settings: RescoreSettings) -> str:
    """Which training is followed, by which ledger, and how far that says it is."""
    from curation.rescore.due import read_ledger
    from tokenization.progress import ProgressLedger

    run, ledger = settings.training.run, ProgressLedger(settings.training.ledger)
    latest = read_ledger(settings).latest(run)
    far = (
        "not in it"
        if latest is None
        else f"{latest.tokens_seen:,} tokens seen, of {settings.every_tokens:,} a threshold"
    )
    return f"training {run!r} by {ledger.path}: {far}"


def _row(threshold: Threshold) -> tuple[tuple[str, ...], str]:
    """One line of the table, and what else there is to say."""
    from curation.rescore.propose import proposal_of
    from curation.rescore.publish import needs_decision

    info, done, problem = threshold.info, threshold.done, threshold.problem()
    counts = (done or proposal_of(threshold) or {}).get("counts", {})
    note = ""
    if done is not None:
        state, note = done["state"], str(done.get("why", ""))
    elif needs_decision(threshold):
        state = "needs approval"
    elif problem is not None:
        state, note = "failing", f"{problem['step']}: {problem['error']}"
    else:
        state = "in work" if threshold.is_begun else "due"
    row = (
        f"{threshold.tokens:,}",
        state,
        f"{info['entry']['tokens_seen']:,}",
        str(len(info["runs"] or [])),
        f"{counts['judged']:,}" if counts else "",
        f"{counts['entries']:,}" if counts else "",
        str(done["version"]) if done and done["version"] is not None else "",
        (done or {}).get("end") or info["begun"] or "",
    )
    return row, note
