"""`corpusmill progress`: how far a training is, by its ledger; and a line of it from a trainer that is not Python.

Looking costs a reading of the ledger (15 us a line) and of the last checkpoint (1 to 2 GB a second, for its checksum).
Reporting costs a reading of the ledger and an fsync, with `--sha256 auto` also a reading of the checkpoint.
"""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.command_parser import Commands, command
from curation.errors import ConfigError, InputError, RunError
from curation.rescore import EVERY_TOKENS
from curation.terminal import printable

if TYPE_CHECKING:
    from tokenization.progress import Entry, History, ProgressLedger

__all__ = ["add_progress"]

log = logging.getLogger("corpusmill")

_COUNT = re.compile(r"([0-9][0-9_,]*)([kMBT]?)")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_MOST_THRESHOLDS = 1_000_000
_MOST_ROWS = 40
_MOST_PROBLEMS = 20
_EXAMPLES = """
corpusmill progress out/progress.jsonl --every 200M
corpusmill progress out --report --run my-gpt --tokens 20_480_000 --step 10 --checkpoint out/step-10 --sha256 auto
corpusmill progress out --report --run my-gpt --tokens 0 --step 0 --token-file RUN/pack/tokens.arrow
corpusmill progress out --report --run my-gpt --tokens 31M --step 15 --notify http://localhost:8080"""


def add_progress(commands: Commands) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "show how far a training is, by its progress ledger; or report it, from a trainer that is not Python"
    parser = command(commands, "progress", summary, _EXAMPLES)
    parser.add_argument(
        "ledger",
        type=Path,
        metavar="LEDGER",
        help="the file, or a folder: then progress.jsonl in it; --report makes it",
    )
    parser.add_argument("--run", metavar="NAME", help="name of the training (the one that began last)")
    parser.add_argument(
        "--every", type=_count, default=EVERY_TOKENS, metavar="N", help="tokens from one re-score to the next (10B)"
    )
    told = parser.add_argument_group("reporting", "In the order of the training; the same report twice is one line.")
    told.add_argument("--report", action="store_true", help="append a line; fewer tokens than before: it went back")
    told.add_argument("--tokens", type=_count, metavar="N", help="tokens seen since the very beginning, over all ranks")
    told.add_argument("--step", type=_count, metavar="S", help="optimizer steps since the very beginning")
    told.add_argument("--checkpoint", metavar="PATH", help="written completely; or an id, as s3://bucket/step-10")
    told.add_argument(
        "--sha256", metavar="HEX|auto", help="its checksum; auto: look whether it is whole, and compute it"
    )
    told.add_argument(
        "--tokenizer", metavar="NAME|HEX", help="as pack.tokenizer, or its fingerprint (that of the line before)"
    )
    told.add_argument(
        "--token-file",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="trained on; says the tokenizer too",
    )
    told.add_argument(
        "--notify",
        metavar="URL",
        help="tell Airflow at this address, too; CORPUSMILL_AIRFLOW_LOGIN=user:password. A failure is a warning",
    )
    parser.set_defaults(function=_progress)


def _progress(arguments: argparse.Namespace) -> int:
    from tokenization.errors import TokenizationError
    from tokenization.progress import ProgressError, ProgressLedger

    ledger = ProgressLedger(arguments.ledger)
    try:
        return _report(ledger, arguments) if arguments.report else _show(ledger, arguments)
    except ProgressError as error:
        raise RunError(str(error)) from error
    except TokenizationError as error:
        raise InputError(str(error)) from error


def _count(text: str) -> int:
    """A number as 20_480_000, 20,480,000, 20480k or 10B."""
    match = _COUNT.fullmatch(text)
    if match is None or len(text) > 30:
        raise argparse.ArgumentTypeError(f"expected a whole number, as 20_480_000, 200M or 10B, found {text[:40]!r}")
    return int(match[1].replace(",", "").replace("_", "")) * _UNITS[match[2]]


# ---------------------------------------------------------------- look


def _show(ledger: ProgressLedger, arguments: argparse.Namespace) -> int:
    reporting = ("tokens", "step", "checkpoint", "sha256", "tokenizer", "token_file", "notify")
    if given := [name for name in reporting if getattr(arguments, name) not in (None, [])]:
        raise ConfigError(f"progress: --{given[0].replace('_', '-')} belongs to a report: add --report.")
    if arguments.every < 1:
        raise ConfigError("progress: --every: expected at least 1 token.")
    if not ledger.path.is_file():
        raise InputError(f"no progress ledger at {ledger.path}: expected a file that a trainer appends to.")
    history = ledger.read()
    for line in _lines(ledger, history, arguments.run, arguments.every):
        print(printable(line))
    return 0


def _lines(ledger: ProgressLedger, history: History, run: str | None, every: int) -> Iterator[str]:
    lineage = history.lineage(run)
    runs = list(dict.fromkeys(entry.run for entry in history.entries))
    if not lineage and run is not None:
        raise InputError(f"{ledger.path} has no training {run!r}: it knows {', '.join(runs) or 'none yet'}.")
    if lineage:
        yield from _state(ledger, history, lineage)
        if lineage[-1].tokens_seen // every > _MOST_THRESHOLDS:
            raise ConfigError(
                f"progress: --every {every}: more than {_MOST_THRESHOLDS:,} were passed; give a greater number."
            )
        yield from _thresholds(ledger, list(history.thresholds_passed(every, lineage[-1].run)), every)
        if others := [name for name in runs if name != lineage[-1].run]:
            yield f"other trainings here: {', '.join(others)}; show one with --run"
    else:
        yield f"{ledger.path} has no lines yet"
    yield from _problems(history)


def _state(ledger: ProgressLedger, history: History, lineage: tuple[Entry, ...]) -> Iterator[str]:
    last, run = lineage[-1], lineage[-1].run
    lines = [entry for entry in history.entries if entry.run == run]
    attempts = {entry.attempt for entry in lines if not entry.reported}
    reports = sum(entry.reported is not None for entry in lines)
    ways = [f"{len(attempts)} attempt{'' if len(attempts) == 1 else 's'}"] if attempts else []
    ways += [f"{reports:,} report{'' if reports == 1 else 's'} by events"] if reports else []
    yield f"training {run}: {len(lines):,} line{'' if len(lines) == 1 else 's'}, {' and '.join(ways)}; {len(lineage):,} count"
    yield f"  tokens seen  {last.tokens_seen:,} at step {last.step:,}"
    yield f"  last line    {last.time:%Y-%m-%d %H:%M:%S} UTC, {_ago(last.time)}"
    if furthest := max((entry.tokens_seen for entry in lines), default=0) - last.tokens_seen:
        yield f"  went back    from {last.tokens_seen + furthest:,} tokens"
    saved = next((entry for entry in reversed(lineage) if entry.checkpoint), None)
    if saved is None:
        yield "  checkpoint   none yet"
    else:
        yield f"  checkpoint   {saved.checkpoint} at {saved.tokens_seen:,} tokens: {_judged(ledger, saved)}"
    tokenizer = f"{last.tokenizer[:16]}..." if last.tokenizer else "not said: give --tokenizer or --token-file once"
    yield f"  tokenizer    {tokenizer}"
    files = ", ".join(f"{seal[:16]}..." for seal in last.token_files) or "not said"
    yield f"  token files  {files}"


def _judged(ledger: ProgressLedger, entry: Entry) -> str:
    """Whether a checkpoint is there and whole."""
    from curation.rescore.checkpoints import look

    path = _place(ledger, entry)
    if path is None:
        return "an id, not looked at"
    try:
        look(path, entry.checkpoint_sha256, settled_s=0)
    except (RunError, ConfigError) as error:
        return f"MISSING, nothing is at {path}" if not path.exists() else f"NOT WHOLE: {error}"
    return "whole, its SHA-256 fits" if entry.checkpoint_sha256 else "whole, as far as is seen without a checksum"


def _place(ledger: ProgressLedger, entry: Entry) -> Path | None:
    name = str(entry.checkpoint)
    return None if "://" in name else ledger.path.parent / name


def _thresholds(ledger: ProgressLedger, passed: list[tuple[int, Entry]], every: int) -> Iterator[str]:
    yield f"thresholds of {every:,} tokens passed: {len(passed):,}"
    if len(passed) > _MOST_ROWS:
        yield f"  ... {len(passed) - _MOST_ROWS:,} before these"
    for k, entry in passed[-_MOST_ROWS:]:
        path = _place(ledger, entry)
        gone = "" if path is None or path.exists() else "  MISSING"
        yield f"  {k:>4}  {k * every:>18,}  {entry.checkpoint} at {entry.tokens_seen:,}, step {entry.step:,}{gone}"


def _problems(history: History) -> Iterator[str]:
    if history.problems:
        yield f"damaged lines, which do not count: {len(history.problems):,}"
    for problem in history.problems[:_MOST_PROBLEMS]:
        yield f"  line {problem.line}: {problem.what}"
    if (more := len(history.problems) - _MOST_PROBLEMS) > 0:
        yield f"  ... and {more:,} more"
    if history.torn:
        yield f"line {history.torn.line} is not whole: a trainer was killed while it wrote, or is writing"


def _ago(time: datetime) -> str:
    seconds = (datetime.now(timezone.utc) - time).total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now" if seconds > -60 else "in the future: a clock is wrong"


# ---------------------------------------------------------------- report


def _report(ledger: ProgressLedger, arguments: argparse.Namespace) -> int:
    from curation.rescore.reports import MOST_TOKENS

    if missing := [name for name in ("run", "tokens", "step") if getattr(arguments, name) is None]:
        raise ConfigError(f"progress: --report needs {', '.join(f'--{name}' for name in missing)}, too.")
    if arguments.tokens > MOST_TOKENS:
        raise ConfigError(f"progress: --tokens: expected at most {MOST_TOKENS:,}, found {arguments.tokens:,}.")
    if not arguments.run.isprintable():
        raise ConfigError(f"progress: --run: expected a printable name, found {arguments.run!r:.80}.")
    checkpoint, path = _checkpoint(ledger, arguments.checkpoint)
    sha256 = _sha256(arguments.sha256, path)
    tokenizer, seals = _trained_on(arguments)
    entry = ledger.report(
        arguments.run,
        tokens_seen=arguments.tokens,
        step=arguments.step,
        checkpoint=checkpoint,
        sha256=sha256,
        tokenizer=tokenizer,
        token_files=seals,
    )
    history = ledger.read()
    if entry is None:
        print(f"known already: {printable(arguments.run)} at {arguments.tokens:,} tokens, step {arguments.step:,}")
    else:
        back = f", after going back to {entry.resumed_at:,}" if _went_back(history, entry) else ""
        print(f"reported: {printable(entry.run)} at {entry.tokens_seen:,} tokens, step {entry.step:,}{back}")
        if entry.tokenizer is None:
            log.warning(
                "no tokenizer is known: a checkpoint that brings none cannot be read. Give --tokenizer or --token-file once"
            )
    if arguments.notify:
        _notify(arguments, path, checkpoint, history)
    return 0


def _went_back(history: History, entry: Entry) -> bool:
    """Whether a line begins an attempt that leaves lines behind which had seen more."""
    before = history.entries[: history.entries.index(entry)] if entry in history.entries else ()
    own = [line for line in before if line.run == entry.run]
    begins = all(line.attempt != entry.attempt for line in own)
    return begins and bool(own) and entry.tokens_seen < max(line.tokens_seen for line in own)


def _checkpoint(ledger: ProgressLedger, given: str | None) -> tuple[str | None, Path | None]:
    """A checkpoint as the ledger names it, and where it lies here.

    Raises:
        ConfigError, InputError: it cannot be, or is not there.
    """
    if given is None:
        return None, None
    if not given or not given.isprintable():
        raise ConfigError(f"progress: --checkpoint: expected a printable path, found {given!r:.80}.")
    if "://" in given:
        return given, None
    home = ledger.path.parent.absolute()
    path = next((one for one in (Path(given).absolute(), home / given) if one.exists()), None)
    if path is None:
        raise InputError(f"--checkpoint {given}: nothing is there. Report a checkpoint when it is written completely.")
    own = path.resolve().is_relative_to(home.resolve()) and path.resolve() != home.resolve()
    return str(path.resolve().relative_to(home.resolve()) if own else path), path


def _sha256(given: str | None, path: Path | None) -> str | None:
    from curation.rescore.checkpoints import look

    if given is None:
        return None
    if given != "auto":
        if not _FINGERPRINT.fullmatch(given.lower()):
            raise ConfigError(f"--sha256: expected 64 hex digits, or auto, found {given!r:.80}.")
        return given.lower()
    if path is None:
        raise ConfigError("--sha256 auto needs a --checkpoint that lies on a disk here.")
    return look(path, settled_s=0).sha256


def _trained_on(arguments: argparse.Namespace) -> tuple[str | None, list[str] | None]:
    """Fingerprint of the tokenizer, and seals of the token files, as far as they are given."""
    fingerprints, seals = [], []
    for path in arguments.token_file:
        from tokenization.reader import TokenFile

        if not path.is_file():
            raise InputError(f"--token-file {path}: expected a token file, as RUN/pack/tokens.arrow, found none.")
        with TokenFile(path, verify="lazy") as file:
            fingerprints.append(file.metadata.tokenizer.fingerprint)
            seals.append(file.seal)
    name = arguments.tokenizer
    if name is not None and _FINGERPRINT.fullmatch(name.lower()):
        fingerprints.append(name.lower())
    elif name is not None:
        from tokenization.tokenizer import load_tokenizer

        fingerprints.append(load_tokenizer(name).fingerprint())
    if len(set(fingerprints)) > 1:
        raise InputError("--tokenizer, --token-file: expected one tokenizer, found several: a training has one.")
    return (fingerprints[0] if fingerprints else None), seals or None


def _notify(arguments: argparse.Namespace, path: Path | None, checkpoint: str | None, history: History) -> None:
    """Tell Airflow what the ledger's line says: the same each time, so that it is one report however often it is sent."""
    from curation.airflow_event import post_event
    from curation.environment import environment

    said = (arguments.tokens, arguments.step, checkpoint)
    lines = [line for line in history.lineage(arguments.run) if (line.tokens_seen, line.step, line.checkpoint) == said]
    if not lines:
        log.warning("another report came between, so Airflow was not told of this one")
        return
    line = lines[-1]
    extra: dict[str, Any] = {
        "training_run": arguments.run,
        "tokens_seen": arguments.tokens,
        "step": arguments.step,
        "checkpoint": str(path.absolute()) if path else checkpoint,
        "checkpoint_sha256": line.checkpoint_sha256,
        "tokenizer": line.tokenizer,
        "time": line.time.isoformat(timespec="microseconds"),
    }
    extra = {name: value for name, value in extra.items() if value is not None}
    if why := post_event(arguments.notify, extra, login=environment().airflow_login):
        log.warning("%s", why)
