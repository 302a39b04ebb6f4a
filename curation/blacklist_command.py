"""`corpusmill blacklist`: what is on the blacklist, why, and how it came there; add to it, and take back.

Nothing here changes a file that stands: `add` and `remove` append a version. All commands but `add` and `remove` look at
the latest version unless `--version` names one. Opening costs what `blacklist` says; `why` reads the whole history, with
all signatures where it asks about a text (3 s for each 5 GB), the others what they show.
What the list holds comes from the crawl: nothing of it reaches the terminal as a command.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.environment import somebody
from curation.errors import ConfigError, InputError, RunError
from curation.terminal import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from curation.blacklist import Blacklist

__all__ = ["add_blacklist"]

log = logging.getLogger("corpusmill")

_SUMMARY = "list, show, ask, add to, take from, compare, export or compact the blacklist"
_EXAMPLES = """examples:
  corpusmill blacklist list --verify                       its versions; every checksum
  corpusmill blacklist why page.txt                        is this text, or nearly this text, on it, since when, why
  corpusmill blacklist add --domain spam.example --reason spam --evidence 40 --expires 180d
  corpusmill blacklist add --from bad.jsonl --reason manual.noise
  corpusmill blacklist remove --domain spam.example --why "mended by its owner"
  corpusmill blacklist diff 16 17"""


def add_blacklist(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    parser = commands.add_parser(
        "blacklist",
        help=_SUMMARY,
        description=_SUMMARY[0].upper() + _SUMMARY[1:] + ". `corpusmill blacklist ACTION --help` says more.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(actions, "list", "its versions, the newest last", _list)
    listed.add_argument("--verify", action="store_true", help="hold every file of its history against its checksum")
    shown = _action(actions, "show", "the entries that hold", _show)
    _add_version(shown)
    _add_limit(shown)
    asked = _action(actions, "why", "whether and why a text, URL or domain is on it", _why)
    asked.add_argument("what", metavar="TEXT_OR_FILE", help="a text, a file that holds one, a text_id, URL or domain")
    asked.add_argument(
        "--near", type=float, default=0.8, metavar="SHARE", help="name texts with this estimated Jaccard (default 0.8)"
    )
    _add_version(asked)
    _add_add(actions)
    removed = _action(actions, "remove", "take entries back, by an entry", _remove)
    _add_named(removed)
    removed.add_argument("--why", required=True, metavar="TEXT", help="why they are taken back")
    removed.add_argument("--who", metavar="NAME", help="who says so (default: you)")
    compared = _action(actions, "diff", "what holds at one version and not at the other", _diff)
    compared.add_argument("before", type=int, metavar="A", help="a version; 0 holds nothing")
    compared.add_argument("after", type=int, nargs="?", metavar="B", help="another (default: the latest)")
    compared.add_argument("--at", metavar="DATE", help="the time that decides what has expired (default: now)")
    _add_limit(compared)
    exported = _action(actions, "export", "write the entries that hold to a file", _export)
    exported.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=".jsonl, .arrow or .parquet")
    _add_version(exported)
    _action(
        actions,
        "compact",
        "write a snapshot, with which it opens fast, and on a disk an index for near copies",
        _compact,
    )


def _action(
    actions: Any, name: str, summary: str, function: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
    parser.add_argument("--path", metavar="DIR|URL", help="the blacklist (default: the folder `blacklist` of the root)")
    parser.add_argument("--root", type=Path, metavar="DIR", help="the root (default: CORPUSMILL_ROOT, or ./runs-root)")
    parser.set_defaults(function=function)
    return parser


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", type=int, metavar="N", help="as it was at version N (default: the latest)")
    parser.add_argument("--at", metavar="DATE", help="the time that decides what has expired (default: now)")


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="entries to show; 0: all (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON line an entry")


def _add_named(parser: argparse.ArgumentParser) -> None:
    for name, shown, summary in (
        ("--text", "TEXT_OR_FILE", "a text, or a file that holds one"),
        ("--text-id", "HEX", "a text by its text_id, without a signature"),
        ("--url", "URL", "a page"),
        ("--domain", "DOMAIN", "a domain, and all below it"),
    ):
        parser.add_argument(name, action="append", default=[], metavar=shown, help=f"{summary}; may be repeated")


def _add_add(actions: Any) -> None:
    parser = _action(actions, "add", "append entries as a new version", _add)
    _add_named(parser)
    parser.add_argument(
        "--from", dest="file", type=Path, metavar="FILE", help="entries from .jsonl, .arrow or .parquet"
    )
    parser.add_argument("--reason", metavar="WORD", help="the reason of each entry that has none of its own")
    parser.add_argument("--why", metavar="TEXT", help="why this version was made (default: the reason)")
    parser.add_argument("--who", metavar="NAME", help="who made it (default: you)")
    parser.add_argument("--expires", metavar="DATE|Nd", help="until when it holds: 2027-01-31, or 30d from now")
    parser.add_argument("--score", type=float, metavar="X")
    parser.add_argument("--evidence", type=int, metavar="N", help="judged documents of the URL or domain")
    for name in ("language", "source", "note"):
        parser.add_argument(f"--{name}", metavar="WORD")


# ---------------------------------------------------------------- reading


def _place(arguments: argparse.Namespace) -> str:
    from curation.environment import environment

    if arguments.path and arguments.root:
        raise ConfigError("blacklist: give --path or --root, not both.")
    return arguments.path or str((arguments.root or environment().root) / "blacklist")


def _open(arguments: argparse.Namespace, version: int | None) -> Blacklist:
    from curation.blacklist import Blacklist
    from curation.blacklist_input import time_of

    at = time_of(arguments.at, "--at") if arguments.at else None
    return Blacklist.open(_place(arguments), version, at=at)


def _list(arguments: argparse.Namespace) -> int:
    from curation.blacklist.files import open_files
    from curation.blacklist.history import damages, latest_number, versions

    place = _place(arguments)
    files = open_files(place)
    if arguments.verify:
        found = list(damages(place))
        if found:
            raise RunError("\n".join(found))
    for one in versions(files, 1, latest_number(files)):
        counts = ", ".join(f"{n:,} {name}" for name, n in one.counts.items() if n)
        who, why = (one.facts.get(name, "") for name in ("who", "why"))
        print(printable(f"{one.number:6d}  {one.when[:19]}Z  {one.digest[:12]}  {counts}  by {who}: {why}"))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    blacklist = _open(arguments, arguments.version)
    rows = blacklist.rows()
    some = rows[: arguments.limit] if arguments.limit else rows
    for entry in _entries(blacklist, some):
        print(_line(entry, arguments.json))
    log.info("version %d: %d entries hold, %d shown", blacklist.version, len(rows), len(some))
    return 0


def _entries(blacklist: Blacklist, rows: Any) -> Iterator[Mapping[str, Any]]:
    from curation.blacklist.entries import SCHEMA

    columns = [name for name in SCHEMA.names if name != "signature"]
    for batch in blacklist.batches(columns, rows):
        yield from batch.to_pylist()


def _line(entry: Mapping[str, Any], as_json: bool = False) -> str:
    from curation.blacklist_input import json_line

    told = json_line(entry)
    if as_json:
        return json.dumps(told)
    what = f"{entry['kind']:6s} {entry['shown'] or entry['key'].hex()}"
    rest = [f"{name} {value}" for name, value in told.items() if name in _TOLD]
    verb = "taken back" if entry["removed"] else str(entry["reason"])
    return printable("  ".join([what, verb, *rest]))


_TOLD = ("score", "evidence", "language", "source", "training_run", "tokens_seen", "model", "time", "expires", "note")


def _why(arguments: argparse.Namespace) -> int:
    from curation.blacklist_input import key_of, meant

    blacklist = _open(arguments, arguments.version)
    found = False
    for name, value in meant(arguments.what):
        kind, key, shown = key_of(name, value)
        found |= _tell(arguments, blacklist, kind, key, shown, value)
        if name == "text" and _tell_near(blacklist, value, key, arguments.near):
            found = True
    if not found:
        print(f"nothing on version {blacklist.version} of the blacklist")
    return 0


def _tell(arguments: argparse.Namespace, blacklist: Blacklist, kind: str, key: bytes, shown: str, value: str) -> bool:
    """Print what holds for a text, URL or domain, and all that was ever said about its key."""
    import numpy as np

    if kind == "text":
        rows = blacklist.lookup(np.frombuffer(key, np.uint8).reshape(1, 16))
    else:
        rows = blacklist.lookup_urls([value if kind == "url" else f"//{value}/"])
    holding = list(_entries(blacklist, rows[rows >= 0]))
    for entry in holding:
        print(f"holds at version {blacklist.version}: {_line(entry)}")
    past = list(_history(arguments, blacklist.version, kind, key))
    if past and not holding:
        print(f"does not hold at version {blacklist.version}: {kind} {printable(shown) or key.hex()}")
    for number, entry in past:
        print(f"  version {number}: {_line(entry)}")
    return bool(holding or past)


def _history(
    arguments: argparse.Namespace, last: int, kind: str, key: bytes
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from curation.blacklist.files import open_files
    from curation.blacklist.history import segment, versions

    files = open_files(_place(arguments))
    for version in versions(files, 1, last):
        reader = segment(files, version)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            same = pc.and_(pc.equal(batch["key"], pa.scalar(key, pa.binary(16))), pc.equal(batch["kind"], kind))
            yield from ((version.number, entry) for entry in batch.filter(same).to_pylist())


def _tell_near(blacklist: Blacklist, text: str, key: bytes, share: float) -> bool:
    from curation.blacklist.signature import agreement, sign_texts, signing_text

    signature = sign_texts([text])[0].as_py()
    if signature is None:
        return False
    near: list[tuple[float, str]] = []
    others = 0
    for signing, batch in blacklist.signatures():
        if signing != signing_text():
            others += batch.num_rows
            continue
        shares = agreement(signature, batch.column("signature"))
        keys = batch.column("key")
        near += [(float(shares[i]), keys[i].as_py().hex()) for i in (shares >= share).nonzero()[0].tolist()]
    near = sorted((one for one in near if one[1] != key.hex()), reverse=True)
    for estimate, name in near[:10]:
        print(f"near copy: text {name}, Jaccard about {estimate:.2f}")
    if others:
        log.warning("%d entries were signed in another way: near copies of them are not found", others)
    return bool(near)


def _diff(arguments: argparse.Namespace) -> int:
    from curation.blacklist import Blacklist

    after = _open(arguments, arguments.after)
    before = Blacklist.open(_place(arguments), arguments.before, at=after.at)
    for sign, here, there in (("+", after, before), ("-", before, after)):
        rows = here.missing_in(there)
        for entry in _entries(here, rows[: arguments.limit] if arguments.limit else rows):
            print(f"{sign} {_line(entry, arguments.json)}")
        log.info("%s %d entries (version %d to %d)", sign, len(rows), before.version, after.version)
    return 0


# ---------------------------------------------------------------- writing


def _export(arguments: argparse.Namespace) -> int:
    from curation.blacklist_input import json_line
    from curation.run import publish

    suffix = arguments.output.suffix
    if suffix not in (".jsonl", ".arrow", ".parquet"):
        raise ConfigError(f"{arguments.output}: expected a name that ends in .jsonl, .arrow or .parquet.")
    blacklist = _open(arguments, arguments.version)
    rows = blacklist.rows()
    with publish(arguments.output) as temporary:
        if suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as stream:
                for entry in _entries(blacklist, rows):
                    stream.write(json.dumps(json_line(entry), ensure_ascii=False) + "\n")
        else:
            _write_table(blacklist, temporary, suffix)
    log.info("%d entries of version %d written to %s", len(rows), blacklist.version, arguments.output)
    return 0


def _write_table(blacklist: Blacklist, path: Path, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from curation.blacklist.entries import SCHEMA, SIGNING

    signings = {signing for signing, batch in blacklist.signatures() if batch.num_rows}
    if len(signings) > 1:
        raise InputError(
            "blacklist: its signatures were made in several ways, which one table cannot hold: export .jsonl."
        )
    schema = SCHEMA.with_metadata({SIGNING: signings.pop()} if signings else None)
    with pq.ParquetWriter(path, schema) if suffix == ".parquet" else pa.ipc.new_file(str(path), schema) as writer:
        for batch in blacklist.batches():
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def _compact(arguments: argparse.Namespace) -> int:
    from curation.blacklist import compact

    print(compact(_place(arguments)))
    return 0


def _named(arguments: argparse.Namespace, columns: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    from curation.blacklist_input import text_of

    rows: list[tuple[str, str, Mapping[str, Any]]] = []
    rows += [("text", text_of(word), columns) for word in arguments.text]
    for name in ("text_id", "url", "domain"):
        rows += [(name, value, columns) for value in getattr(arguments, name)]
    return rows


def _add(arguments: argparse.Namespace) -> int:
    from curation.blacklist_input import entry_table, read_entries, time_of

    columns: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("reason", "score", "evidence", "language", "source", "note")
        if getattr(arguments, name) is not None
    }
    if arguments.expires:
        columns["expires"] = time_of(arguments.expires, "--expires")
    named = _named(arguments, columns)
    if bool(named) == bool(arguments.file):
        raise ConfigError(
            "blacklist add: name what to add, with --text, --text-id, --url, --domain; or a file, with --from."
        )
    table = read_entries(arguments.file, columns) if arguments.file else entry_table(named)
    if "reason" not in table.column_names:
        raise ConfigError("blacklist add: give --reason: each entry must say why it is there.")
    why = arguments.why or arguments.reason or f"entries of {arguments.file}"
    return _append(arguments, table, why)


def _remove(arguments: argparse.Namespace) -> int:
    from curation.blacklist import Blacklist
    from curation.blacklist_input import entry_table, key_of

    named = _named(arguments, {"reason": "removed", "removed": True, "note": arguments.why})
    if not named:
        raise ConfigError("blacklist remove: name what to take back, with --text, --text-id, --url or --domain.")
    blacklist = Blacklist.open(_place(arguments))
    for name, value, _ in named:
        kind, key, shown = key_of(name, value)
        if not blacklist.holds(kind, key):
            raise InputError(
                f"blacklist remove: {kind} {shown or key.hex()} does not hold at version {blacklist.version}, so there is "
                "nothing to take back. `corpusmill blacklist why` shows what was said about it."
            )
    return _append(arguments, entry_table(named), arguments.why)


def _append(arguments: argparse.Namespace, table: pa.Table, why: str) -> int:
    from curation.blacklist import append

    who = arguments.who or somebody()
    number = append(_place(arguments), table, {"who": who, "why": why})
    log.info("%d entries appended to %s", table.num_rows, _place(arguments))
    print(number)
    return 0
