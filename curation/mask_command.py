"""`corpusmill mask`: the sequences of a packed file that hold documents blacklisted since, as a mask that the reader skips.

Costs what `curation.mask` says. Nothing of the token file is changed. Reasons come from the blacklist, which may come from
anywhere: none of them reaches the terminal as a command.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from curation.command_parser import Commands, command
from curation.errors import ConfigError, RunError
from curation.terminal import printable

if TYPE_CHECKING:
    from curation.filters.blacklisted.step import Blacklisted
    from tokenization.mask import Mask
    from tokenization.reader import TokenFile

__all__ = ["add_mask"]

log = logging.getLogger("corpusmill")


def add_mask(commands: Commands) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "write which sequences of a packed file hold documents that were blacklisted since"
    examples = """
corpusmill mask RUN/pack/tokens.arrow -o mask-17.arrow
corpusmill mask RUN --near --blacklist lists/web --version 17 -o mask-17.arrow --compare mask-16.arrow"""
    parser = command(commands, "mask", summary, examples)
    parser.add_argument("file", type=Path, metavar="FILE", help="a token file, or a folder that holds one, as a run's")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="MASK", help="where to write it: a name.arrow"
    )
    parser.add_argument(
        "--blacklist", metavar="DIR|URL", help="the blacklist (default: the folder `blacklist` of the root)"
    )
    parser.add_argument("--root", type=Path, metavar="DIR", help="the root (default: CORPUSMILL_ROOT, or ./runs-root)")
    parser.add_argument("--version", type=int, metavar="N", help="as it was at version N (default: the latest)")
    parser.add_argument("--at", metavar="DATE", help="the time that decides what has expired (default: now)")
    parser.add_argument(
        "--near", action="store_true", help="near copies of blacklisted texts, too: needs the run's shards"
    )
    parser.add_argument(
        "--threshold", type=float, metavar="SHARE", help="agreement that makes a near copy (default 0.86)"
    )
    parser.add_argument(
        "--min-evidence", type=int, metavar="N", help="judged documents that a URL or domain must rest on (default 1)"
    )
    parser.add_argument("--run", type=Path, metavar="RUN", help="the run that packed it, if it does not lie above FILE")
    parser.add_argument("--compare", type=Path, metavar="MASK", help="tell what is new since this older mask")
    parser.set_defaults(function=_mask)


def _mask(arguments: argparse.Namespace) -> int:
    from curation.mask import find_listed, mask_of, run_of
    from curation.run import publish
    from tokenization.errors import TokenFileError
    from tokenization.reader import TokenFile

    path = _token_file(arguments.file)
    if arguments.output.suffix != ".arrow":
        raise ConfigError(f"--output {arguments.output}: expected a name that ends in .arrow.")
    if arguments.output.exists() and arguments.output.samefile(path):
        raise ConfigError(f"--output {arguments.output} is the token file itself. Give another name.")
    step = _step(arguments)
    try:
        with TokenFile(path, verify="lazy") as file:
            older = _older(arguments.compare, file)
            run, why = run_of(file, arguments.run)
            if run is None and arguments.near:
                raise ConfigError(
                    f"--near needs the run's shards: {why}. Give the run with --run, or leave out --near."
                )
            urls = _knows_urls(step)
            if run is None and urls:
                log.warning("URLs and domains of the blacklist are not looked for: %s. Give the run with --run.", why)
            found = find_listed(file, step, run, urls=urls)
            told = step.config.model_dump(mode="json", include={"version", "digest", "at", "threshold", "min_evidence"})
            mask = mask_of(file, found, {"made_by": "corpusmill mask", "blacklist": told})
            with publish(arguments.output) as temporary:
                mask.write(temporary)
            _tell(file, mask, urls)
    except TokenFileError as error:
        raise RunError(f"{error} `corpusmill verify {path}` says all that is wrong.") from error
    _tell_compared(mask, older, arguments)
    log.info("the mask %s: written to %s", mask.digest[:16], arguments.output)
    return 0


def _older(path: Path | None, file: TokenFile) -> Mask | None:
    from tokenization.errors import TokenFileError
    from tokenization.mask import Mask

    if path is None:
        return None
    try:
        older = Mask.read(path)
    except (TokenFileError, OSError) as error:
        raise ConfigError(f"--compare {path}: {error}") from error
    if older.seal != file.seal:
        raise ConfigError(f"--compare {path}: it is the mask of another token file (seal {older.seal[:16]}).")
    return older


def _token_file(given: Path) -> Path:
    for path in (given, given / "tokens.arrow", given / "pack" / "tokens.arrow"):
        if path.is_file():
            return path
    raise ConfigError(
        f"no token file at {given}: expected one, or a folder that holds tokens.arrow, as RUN or RUN/pack."
    )


def _step(arguments: argparse.Namespace) -> Blacklisted:
    """The step `blacklisted` with the settings that were asked for, pinned."""
    from pydantic import ValidationError

    from curation.blacklist_input import time_of
    from curation.environment import environment
    from curation.filters.blacklisted.config import BlacklistedConfig
    from curation.filters.blacklisted.pin import pin
    from curation.filters.blacklisted.step import Blacklisted

    asked = {"path": arguments.blacklist, "version": arguments.version, "near": arguments.near}
    asked |= {name: getattr(arguments, name) for name in ("threshold", "min_evidence")}
    at = time_of(arguments.at, "--at") if arguments.at else None
    try:
        config = BlacklistedConfig(at=at, **{name: value for name, value in asked.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"mask: --{str(first['loc'][0]).replace('_', '-')}: {first['msg']}.") from error
    pinned = pin(config, arguments.root or environment().root, None)
    if not pinned.version and arguments.version != 0:
        raise ConfigError(f"mask: the blacklist {pinned.path} has no version yet, or is not there: nothing is masked.")
    return Blacklisted(pinned)


def _knows_urls(step: Blacklisted) -> bool:
    """Whether any version named a URL or domain."""
    from curation.blacklist.files import open_files
    from curation.blacklist.history import versions

    path, number = step.config.path, step.config.version
    if not path or not number:
        return False
    return any(one.counts["url"] or one.counts["domain"] for one in versions(open_files(path), 1, number))


def _tell(file: TokenFile, mask: Mask, urls: bool) -> None:
    header, told = file.metadata, mask.facts
    looked, listed = told["looked_at"], told["blacklist"]
    print(f"{file.path}: {len(file):,} sequences of {header.seq_len:,} tokens, {header.documents:,} documents")
    print(f"blacklist version {listed['version']}, digest {(listed['digest'] or 'none')[:16]}, at {listed['at']}")
    pages = "the list has none" if not urls else "yes" if looked["url"] else "no, the run's shards are not there"
    print(f"looked for: texts yes; URLs and domains {pages}; near copies {'yes' if looked['near'] else 'no'}")
    print(f"{'found by':10s}{'documents':>12s}{'sequences':>12s}{'tokens':>16s}  reason")
    for one in told["reasons"]:
        counts = f"{one['documents']:>12,}{one['sequences']:>12,}{one['tokens']:>16,}"
        print(f"{one['found_by']:10s}{counts}  {printable(one['reason'])}")
    print(f"{'together':10s}{told['documents']:>12,}{told['sequences']:>12,}{told['tokens']:>16,}")
    if told["copies"] > told["documents"]:
        print(f"documents were packed more than once: {told['copies']:,} copies of them are found")
    good = told["tokens_of_file"] - told["tokens"]
    share, lost = len(mask) / len(file) if len(file) else 0.0, told["other_tokens"] / good if good else 0.0
    print(
        f"masked: {len(mask):,} sequences, {share:.2%} of the file; with them {told['other_tokens']:,} tokens of other documents "
        f"are not trained on, {lost:.2%} of all good ones"
    )


def _tell_compared(mask: Mask, older: Mask | None, arguments: argparse.Namespace) -> None:
    if older is None:
        return
    before, now = set(older.rows.tolist()), set(mask.rows.tolist())
    print(
        f"beside {arguments.compare}: {len(now - before):,} sequences are new, {len(before - now):,} are no more masked"
    )
    if before - now:
        log.warning(
            "%d sequences of the older mask hold nothing that is blacklisted now; a training that skips the older mask goes on "
            "to skip them: what was left out stays out",
            len(before - now),
        )
