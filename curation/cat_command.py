"""`corpusmill cat`: what lies in a token file, as text, with the border and the provenance of every document.

Reads the sequences that were asked for and their rows of documents.parquet alone: a tenth of a second, whatever the
size of the file, and the time to load the tokenizer. The checksum of each block that is touched is checked first.
Text stands behind `| `, and nothing else does, so no document can forge a border; nothing in it reaches the terminal
as a command.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError, InputError, RunError
from curation.terminal import printable, printable_lines

if TYPE_CHECKING:
    from tokenization.layout import Header
    from tokenization.reader import TokenFile
    from tokenization.tokenizer import Tokenizer

__all__ = ["add_cat"]

log = logging.getLogger("corpusmill")

_IDS_A_LINE = 16
_MOST_COPIES = 8
_PLACES = ("n_tokens", "sequence", "offset", "pieces", "last_sequence", "last_offset")
_COLUMNS = ("doc_id", "id", "source", *_PLACES)
_DOC_ID = re.compile(r"[0-9a-f]{32}")
_ROW = re.compile(r"[0-9]{1,18}")


def add_cat(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "show sequences or documents of a token file as text, with borders and provenance"
    parser = commands.add_parser(
        "cat",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n"
        "  corpusmill cat RUN/pack/tokens.arrow --row 7\n"
        "  corpusmill cat RUN --rows 0:3 --tokens                  every id with its piece of text\n"
        "  corpusmill cat RUN --document zh-000123                 wherever its pieces lie\n"
        "  corpusmill cat tokens.arrow --row -1 --tokenizer my/tokenizer.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a token file, or a folder that holds one, as a run's")
    parser.add_argument(
        "--row", type=int, action="append", default=[], metavar="N", help="a sequence, from 0; -1 is the last"
    )
    parser.add_argument("--rows", metavar="A:B", help="sequences A to B - 1")
    parser.add_argument(
        "--document", metavar="ROW|ID", help="a row of documents.parquet, a doc_id, or the user's own id (or id:ID)"
    )
    parser.add_argument("--tokens", action="store_true", help="each token by itself: its place, id and text")
    parser.add_argument(
        "--tokenizer", type=Path, metavar="PATH", help="the tokenizer (the default one, or that of the run's config)"
    )
    parser.set_defaults(function=_cat)


def _cat(arguments: argparse.Namespace) -> int:
    from tokenization.errors import TokenFileError
    from tokenization.reader import TokenFile

    if arguments.document is not None and (arguments.row or arguments.rows):
        raise ConfigError("cat: give sequences, with --row or --rows, or a document, with --document; not both.")
    path = _token_file(arguments.file)
    try:
        with TokenFile(path, verify="lazy") as file:
            documents = _Documents(path.with_name("documents.parquet"), file.metadata)
            shown = _Shown(file, documents, _tokenizer(file.metadata, path, arguments.tokenizer), arguments.tokens)
            if arguments.document is not None:
                lines = shown.document(documents.find(arguments.document))
            else:
                lines = (line for row in _rows(arguments, len(file)) for line in shown.sequence(row))
            for line in lines:
                print(line)
    except TokenFileError as error:
        raise RunError(f"{error} `corpusmill verify {path}` says all that is wrong.") from error
    return 0


def _token_file(given: Path) -> Path:
    for path in (given, given / "tokens.arrow", given / "pack" / "tokens.arrow"):
        if path.is_file():
            return path
    raise ConfigError(
        f"no token file at {given}: expected one, or a folder that holds tokens.arrow, as RUN or RUN/pack."
    )


def _rows(arguments: argparse.Namespace, n_sequences: int) -> Iterable[int]:
    """The sequences that were asked for, in that order; the first one if none was."""
    named: range | tuple[int, ...] = ()
    if arguments.rows is not None:
        match = re.fullmatch(r"([0-9]{0,18}):([0-9]{0,18})", arguments.rows)
        if match is None:
            raise ConfigError(f"--rows {arguments.rows}: expected two numbers, as 10:20, 10: or :20.")
        begin, end = int(match[1] or 0), int(match[2] or n_sequences)
        if not begin < end <= n_sequences:
            raise InputError(f"--rows {arguments.rows}: the file has sequences 0 to {n_sequences - 1}.")
        named = range(begin, end)
    elif not arguments.row:
        named = (0,)
    for row in (*arguments.row, *named[:1]):
        if not -n_sequences <= row < n_sequences:
            there = f"sequences 0 to {n_sequences - 1}" if n_sequences else "no sequences: nothing was packed"
            raise InputError(f"--row {row}: the file has {there}.")
    return chain((row % n_sequences for row in arguments.row), named)


def _tokenizer(header: Header, path: Path, given: Path | None) -> Tokenizer | None:
    """The tokenizer that made the ids: as asked, ours, or the one that the run's config names; None: not found.

    Raises:
        ConfigError: the one that was asked for cannot be loaded, or is another one.
    """
    from tokenization.errors import TokenizerError
    from tokenization.tokenizer import load_tokenizer

    card = header.tokenizer
    name = given if given is not None else _of_config(path) or ("default" if card.name == "default" else None)
    if name is None:
        log.warning("the tokenizer %s is not here, so ids are shown: give it with --tokenizer", printable(card.name))
        return None
    try:
        tokenizer = load_tokenizer(name, eos=card.eos, bos=card.bos)
        if tokenizer.fingerprint() == card.fingerprint:
            return tokenizer
        fault = (
            f"{name} is another tokenizer than the one that made the file, {card.name}: its fingerprint is "
            f"{tokenizer.fingerprint()[:16]}, the file says {card.fingerprint[:16]}."
        )
    except TokenizerError as error:
        fault = str(error)
    if given is not None:
        raise ConfigError(f"--tokenizer: expected {printable(card.name)}, which made the file. {fault}")
    log.warning("%s So ids are shown: give the right one with --tokenizer.", fault)
    return None


def _of_config(path: Path) -> str | None:
    """`pack.tokenizer` of the run that a token file lies in: its folder is at most three above."""
    import yaml

    for folder in path.absolute().parents[:4]:
        with contextlib.suppress(OSError, yaml.YAMLError, UnicodeDecodeError):
            config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
            pack = config.get("pack") if isinstance(config, dict) else None
            name = pack.get("tokenizer") if isinstance(pack, dict) else None
            if isinstance(name, str):
                return name
    return None


class _Documents:
    """documents.parquet beside the file; rows are read in the groups that they lie in."""

    def __init__(self, path: Path, header: Header) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path, self.header = path, header
        self._file: pq.ParquetFile | None = None
        self._group: tuple[int, pa.Table] | None = None
        if not path.is_file():
            log.warning("%s is not there: documents are shown without their ids and sources", path)
            return
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise RunError(f"{path} cannot be read: {error}. Copy it again, or pack again.") from error
        missing = [name for name in _COLUMNS if name not in self._file.schema_arrow.names]
        if missing:
            raise RunError(f"{path} has no column {', '.join(missing)}: it is no table of a token file.")
        kinds = {name: self._file.schema_arrow.field(name).type for name in ("doc_id", *_PLACES)}
        wrong = [name for name in _PLACES if not pa.types.is_integer(kinds[name])]
        if kinds["doc_id"] not in (pa.binary(16), pa.binary()):
            wrong.append("doc_id")
        if wrong:
            raise RunError(f"{path}: column {wrong[0]} is {kinds[wrong[0]]}: it is no table of a token file.")
        if self._file.metadata.num_rows != header.documents:
            raise RunError(
                f"{path} has {self._file.metadata.num_rows} rows, but the token file {header.documents} documents: "
                "they do not belong together."
            )

    def row(self, row: int) -> dict[str, Any] | None:
        """What the table says of a document; None without a table."""
        import pyarrow as pa

        if self._file is None:
            return None
        begin = 0
        for number in range(self._file.num_row_groups):
            n_rows = self._file.metadata.row_group(number).num_rows
            if row < begin + n_rows:
                if self._group is None or self._group[0] != number:
                    try:
                        self._group = (number, self._file.read_row_group(number))
                    except (pa.ArrowException, OSError) as error:
                        raise RunError(f"{self.path} cannot be read: {error}. Copy it again, or pack again.") from error
                found: dict[str, Any] = self._group[1].slice(row - begin, 1).to_pylist()[0]
                self._refuse_impossible(row, found)
                return found
            begin += n_rows
        raise RunError(f"{self.path}: no row {row}; it does not belong to the token file.")

    def _refuse_impossible(self, row: int, found: dict[str, Any]) -> None:
        """Anybody may have made the table: nothing of it becomes a size or a place before it can be true."""
        fault = ""
        if None in (found[name] for name in _COLUMNS):
            fault = "has a place or an id that is null"
        elif not 1 <= found["pieces"] <= self.header.sequences:
            fault = f"cannot have {found['pieces']} pieces"
        else:
            for name in ("sequence", "last_sequence"):
                if not 0 <= found[name] < self.header.sequences:
                    fault = f"does not lie in sequence {found[name]}, as it says"
        if fault:
            raise RunError(f"{self.path}: document {row} {fault}. `corpusmill verify` compares the whole table.")

    def find(self, name: str) -> int:
        """The row of a document by its number, its doc_id, or the user's own id."""
        if self._file is None:
            raise InputError(f"--document needs {self.path.name} beside the token file: it says where a document lies.")
        if _ROW.fullmatch(name):
            if int(name) < self.header.documents:
                return int(name)
            there = f"rows 0 to {self.header.documents - 1}" if self.header.documents else "no documents"
            raise InputError(f"--document {name}: the table has {there}. For an id of digits, write id:{name}.")
        rows = self._rows_of(name.removeprefix("id:"), by_id=name.startswith("id:"))
        if not rows:
            raise InputError(f"--document {name}: no such id or doc_id in {self.path}.")
        if len(rows) > 1:
            log.warning("%s was packed more than once, or is no single id: rows %s are it; showing the first",
                        printable(name), ", ".join(map(str, rows[:_MOST_COPIES])))  # fmt: skip
        return rows[0]

    def _rows_of(self, name: str, *, by_id: bool) -> list[int]:
        """Rows whose id is this name; or whose doc_id, in hex."""
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self._file is not None
        key = bytes.fromhex(name) if _DOC_ID.fullmatch(name) and not by_id else None
        rows: list[int] = []
        begin = 0
        for batch in self._file.iter_batches(1 << 16, columns=["id", "doc_id"]):
            same = pc.equal(batch.column("id"), pa.scalar(name, batch.schema.field("id").type))
            if key is not None:
                same = pc.or_(same, pc.equal(batch.column("doc_id").cast(pa.binary()), pa.scalar(key, pa.binary())))
            rows += (begin + index for index in pc.indices_nonzero(same).to_pylist())
            begin += len(batch)
            if len(rows) >= _MOST_COPIES:
                break
        return rows


@dataclass(frozen=True)
class _Shown:
    """Sequences and documents of a file as lines."""

    file: TokenFile
    documents: _Documents
    tokenizer: Tokenizer | None
    by_token: bool

    def sequence(self, number: int) -> Iterator[str]:
        """Everything in one sequence."""
        header = self.file.metadata
        rows, borders = self.file.documents(number).rows.tolist(), self.file.borders(number).tolist()
        padding = header.seq_len - borders[-1]
        pieces = f"{len(rows)} document{'' if len(rows) == 1 else 's'} or parts of documents"
        yield f"=== sequence {number} of {header.sequences:,}: {header.seq_len:,} tokens, {pieces}, {padding:,} of padding"
        for piece, row in enumerate(rows):
            yield from self._piece(number, row, borders[piece], borders[piece + 1])
        if padding:
            yield f"--- padding: {padding} times {self._token(header.tokenizer.pad, header.tokenizer.pad_id)}"

    def document(self, row: int) -> Iterator[str]:
        """All pieces of one document, in the order of its text."""
        from tokenization.places import piece_sequences

        said = self.documents.row(row)
        assert said is not None
        header = self.file.metadata
        sequences = piece_sequences(
            said["sequence"], said["pieces"], said["last_sequence"],
            sequences=header.sequences, shuffle_seed=header.shuffle_seed,
        )  # fmt: skip
        for index, number in enumerate(sequences.tolist()):
            offset = said["offset"] if index == 0 else said["last_offset"] if index == len(sequences) - 1 else 0
            if not 0 <= number < header.sequences or row not in self.file.documents(number).rows:
                raise RunError(
                    f"{self.documents.path}: document {row} does not lie in sequence {number}, as it says. "
                    "`corpusmill verify` compares the whole table."
                )
            borders = self.file.borders(number).tolist()
            if offset not in borders[:-1]:
                raise RunError(f"{self.documents.path}: no document begins at {offset} of sequence {number}.")
            yield from self._piece(number, row, offset, borders[borders.index(offset) + 1])

    def _piece(self, number: int, row: int, begin: int, end: int) -> Iterator[str]:
        """A border, where the document comes from, and its text."""
        card = self.file.metadata.tokenizer
        ids = self.file[number][begin:end].tolist()
        begins, ends = card.bos_id is not None and ids[0] == card.bos_id, ids[-1] == card.eos_id
        said = self.documents.row(row)
        part = f", piece of a cut document ({said['pieces']} pieces)" if said and said["pieces"] > 1 else ""
        yield f"--- document {row}: sequence {number}, places {begin} to {end - 1}, {len(ids):,} tokens{part}"
        if said is not None:
            yield f"    {_provenance(said)}"
        if begins and card.bos is not None and card.bos_id is not None:
            yield f"    begins with {self._token(card.bos, card.bos_id)}"
        inside = ids[1 if begins else 0 : len(ids) - 1 if ends else len(ids)]
        yield from self._by_token(ids, begin) if self.by_token else self._text(inside)
        yield f"    ends with {self._token(card.eos, card.eos_id)}" if ends else "    goes on in another sequence"

    def _text(self, ids: list[int]) -> Iterator[str]:
        if self.tokenizer is None:
            for at in range(0, len(ids), _IDS_A_LINE):
                yield "| " + " ".join(map(str, ids[at : at + _IDS_A_LINE]))
            return
        for line in printable_lines(self.tokenizer.decode(ids)).split("\n"):
            yield f"| {line}"

    def _by_token(self, ids: list[int], begin: int) -> Iterator[str]:
        width = len(str(self.file.metadata.tokenizer.max_id))
        for place, token in enumerate(ids, begin):
            text = "" if self.tokenizer is None else f"  {printable(self.tokenizer.decode([token]))}"
            yield f"| {place:>6}  {token:>{width}}{text}"

    def _token(self, name: str, number: int) -> str:
        return f"{printable(name)} (id {number})"


def _provenance(said: dict[str, Any]) -> str:
    """Who a document is, in one line; what the table does not know is left out."""
    words = [f"id {said.get('id')}", f"doc_id {bytes(said['doc_id']).hex()}", f"source {said.get('source')}"]
    if said.get("language"):
        words.append(f"language {said['language']}")
    if said.get("epoch"):
        words.append(f"copy {said['epoch'] + 1}")
    words.append(f"{said['n_tokens']:,} tokens in all")
    return printable(", ".join(words))
