"""Verifies a token file: every checksum first, then every rule of its content. Needs pyarrow and NumPy only.

Nothing of a file is parsed before its checksum fits, and the file is read, not mapped: so damage of any kind,
even a failing disk, ends up in the report and not in a crash. Blocks are checked in threads, about 1 GB/s a core.
Memory: three blocks a thread, and a bit a document (two where documents begin with a BOS).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.documents import GROUP, Pieces, PieceSums, block_pieces, first_difference, table_pieces
from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header
from tokenization.rules import check_block
from tokenization.seal import Seal, data_fault, read_into, read_region, read_seal, region_fault

__all__ = ["Problem", "Report", "verify"]

_PIECE_BYTES = 12
"""Of a piece in the file: its length and its row. What a header promises must find room in the file."""
_FOOTER_BLOCK = struct.Struct("<qi4xq")
"""Arrow's footer on a block: where it begins, bytes of its head, bytes of its body."""
_COUNTS = ("seq_len", "documents", "tokens", "sequences", "pieces")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    where: str
    """`file`, `schema`, `block 3`, `block 3 (head)`, `end mark`, `footer`, `counts`, `manifest.json` ..."""
    what: str


@dataclass(slots=True)
class Report:
    """What `verify` found. True if all is well; prints as lines."""

    path: Path
    header: Header | None = None
    n_bytes: int = 0
    blocks: int = 0
    """Blocks whose bytes and content were checked."""
    documents_checked: bool = False
    """Whether documents.parquet lay beside the file and was compared with it."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.path}: {'OK' if self.ok else 'DAMAGED'}"]
        if self.header is not None:
            h = self.header
            lines.append(
                f"  {h.documents:,} documents, {h.tokens:,} tokens in {h.sequences:,} sequences of {h.seq_len}"
            )
            lines.append(f"  tokenizer {h.tokenizer.name}, fingerprint {h.tokenizer.fingerprint[:16]}, run {h.run_id}")
        table = "; every piece lies where documents.parquet says" if self.ok and self.documents_checked else ""
        lines.append(f"  {self.blocks} blocks and {self.n_bytes:,} bytes checked{table}")
        lines += [f"  {problem.where}: {problem.what}" for problem in self.problems[:50]]
        if len(self.problems) > 50:
            lines.append(f"  and {len(self.problems) - 50} more")
        return "\n".join(lines)

    def raise_if_bad(self) -> None:
        """Raises:
        TokenFileError: with the first problems, if there are any.
        """
        if self.problems:
            first = "; ".join(f"{p.where}: {p.what}" for p in self.problems[:3])
            more = f" (and {len(self.problems) - 3} more)" if len(self.problems) > 3 else ""
            raise TokenFileError(f"{self.path} is damaged: {first}{more}.")


def verify(path: str | os.PathLike[str], *, threads: int | None = None) -> Report:
    """Check every checksum and every rule of a token file, and what lies beside it: manifest.json, documents.parquet.

    Never raises for what is wrong with the file: all of it stands in the report, block by block.

    Args:
        threads: blocks that are checked at the same time; None: as many as this process may use cores.
    """
    report = Report(Path(path))
    try:
        seal = read_seal(report.path)
        descriptor = os.open(report.path, os.O_RDONLY)
    except (TokenFileError, OSError) as error:
        report.problems.append(Problem("file", str(error)))
        return report
    try:
        _verify_open(descriptor, seal, report, threads or _cores())
    except OSError as error:
        report.problems.append(Problem("file", f"cannot be read: {error}"))
    finally:
        os.close(descriptor)
    report.problems += _manifest_problems(report, seal)
    return report


def _cores() -> int:
    """That this process may use; not every system says which."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _verify_open(descriptor: int, seal: Seal, report: Report, threads: int) -> None:
    report.n_bytes = seal.footer.end
    for region in (seal.schema, seal.end, seal.footer):
        fault = region_fault(descriptor, region)
        if fault:
            report.problems.append(Problem(region.name, fault))
    schema = _schema(descriptor, seal, report) if report.ok else None
    totals = _Totals(report.header)
    check = partial(_check_block, _Memory(), descriptor, seal, schema, report.header)
    for problems, found in _in_order(check, len(seal.heads), threads):
        report.problems += problems
        report.blocks += 1
        if found is not None:
            totals.add(found)
    if not report.ok or report.header is None:
        return
    report.problems += [Problem("counts", fault) for fault in totals.faults()]
    if report.ok and schema is not None:
        _compare_documents(descriptor, seal, schema, totals.sums, report)


def _schema(descriptor: int, seal: Seal, report: Report) -> pa.Schema | None:
    """The schema of a file whose schema, end and footer are as they were written; fills in the header."""
    where = "schema"
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(read_region(descriptor, 8, seal.schema.end)))
        header = Header.from_schema(schema, str(report.path))
        where = "footer"
        with pa.OSFile(str(report.path)) as source:
            reader = pa.ipc.open_file(source)
            if not reader.schema.equals(schema, check_metadata=True):
                raise TokenFileError("its schema is not that at the beginning of the file")
        blocks = b"".join(
            _FOOTER_BLOCK.pack(head.start, body.start - head.start, body.end - body.start)
            for head, body in zip(seal.heads, seal.bodies, strict=True)
        )
        if blocks not in read_region(descriptor, seal.footer.start, seal.footer.end):
            raise TokenFileError("the blocks do not lie where the seal has them")
    except (TokenFileError, pa.ArrowException, OSError, struct.error) as error:
        report.problems.append(Problem(where, str(error)))
        return None
    if header.n_blocks != len(seal.heads) or header.pieces * _PIECE_BYTES > report.n_bytes:
        fault = f"{header.n_blocks} blocks and {header.pieces} pieces are promised, in {len(seal.heads)} blocks and "
        report.problems.append(Problem("schema", f"{fault}{report.n_bytes} bytes"))
        return None
    report.header = header
    return schema


class _Memory(threading.local):
    """Of one thread, for one block."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def read(self, descriptor: int, start: int, end: int) -> memoryview:
        if len(self.buffer) < end - start:
            self.buffer = bytearray(end - start)  # the old one may still be in use
        return read_into(memoryview(self.buffer)[: end - start], descriptor, start)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a good block adds to the counts."""

    sequences: int
    pieces: Pieces
    ends: npt.NDArray[np.bool_]
    begins: npt.NDArray[np.bool_] | None


def _check_block(
    memory: _Memory, descriptor: int, seal: Seal, schema: pa.Schema | None, header: Header | None, number: int
) -> tuple[list[Problem], _Found | None]:
    """Checksums, then content of one block."""
    head, body = seal.heads[number], seal.bodies[number]
    message = memory.read(descriptor, head.start, body.end)
    cut = body.start - head.start
    faults = [(head.name, data_fault(message[:cut], head)), (body.name, data_fault(message[cut:], body))]
    problems = [Problem(name, fault) for name, fault in faults if fault]
    if problems or header is None or schema is None:
        return problems, None
    try:
        block = _block(message, schema, header)
    except (TokenFileError, pa.ArrowException, OSError) as error:
        return [Problem(body.name, str(error))], None
    rows = header.rows_of_block(number)
    if len(block.tokens) != rows:
        return [Problem(body.name, f"{len(block.tokens)} sequences where the header promises {rows}")], None
    checked = check_block(block, header)
    if checked.faults:
        return [Problem(body.name, fault) for fault in checked.faults], None
    pieces = block_pieces(block, number * header.block_sequences)
    pieces = pieces._replace(row=pieces.row.copy())  # the block lies in memory that the next one is read into
    return [], _Found(rows, pieces, checked.ends, checked.begins)


def _block(message: memoryview, schema: pa.Schema, header: Header) -> Block:
    """A block out of its Arrow message."""
    batch = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(message)), schema)
    if batch.num_rows * header.seq_len * header.dtype.itemsize > len(message):
        raise TokenFileError("it is compressed, which no token file is")
    return Block.from_batch(batch, header.seq_len)


def _in_order(check: Any, n_blocks: int, threads: int) -> Iterator[tuple[list[Problem], _Found | None]]:
    """`check` of each block, in threads, with no more blocks in memory than threads and one more."""
    if threads < 2 or n_blocks < 2:
        yield from map(check, range(n_blocks))
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[tuple[list[Problem], _Found | None]]] = deque()
        for number in range(n_blocks):
            waiting.append(pool.submit(check, number))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Totals:
    """Counts over all blocks, to be compared with the header."""

    def __init__(self, header: Header | None) -> None:
        self.header = header
        self.sequences = self.tokens = self.pieces = self.blocks = 0
        documents = header.documents if header else 0
        self.sums = PieceSums(documents)
        self.ended = _Marked(documents)
        self.begun = _Marked(documents if header and header.tokenizer.bos_id is not None else 0)

    def add(self, found: _Found) -> None:
        self.blocks += 1
        self.sequences += found.sequences
        self.tokens += int(found.pieces.length.sum())
        self.pieces += len(found.pieces.row)
        self.sums.add(found.pieces)
        self.ended.add(found.pieces.row[found.ends])
        if found.begins is not None:
            self.begun.add(found.pieces.row[found.begins])

    def faults(self) -> Iterator[str]:
        """Counts that are not as the header says."""
        header = self.header
        if header is None:
            return
        for name, found, stated in (
            ("blocks", self.blocks, header.n_blocks),
            ("sequences", self.sequences, header.sequences),
            ("tokens", self.tokens, header.tokens),
            ("pieces", self.pieces, header.pieces),
        ):
            if found != stated:
                yield f"{found} {name}, but the header says {stated}"
        yield from self.ended.faults("end", header.documents)
        if header.tokenizer.bos_id is not None:
            yield from self.begun.faults("beginning", header.documents)


class _Marked:
    """Which documents were seen, a bit for each, and how often any was."""

    def __init__(self, documents: int) -> None:
        self.bits = np.zeros(-(-documents // 8), np.uint8)
        self.seen = 0

    def add(self, rows: npt.NDArray[np.int64]) -> None:
        np.bitwise_or.at(self.bits, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        self.seen += len(rows)

    def faults(self, what: str, documents: int) -> Iterator[str]:
        """Each document has one end, and one beginning where a token marks it."""
        different = int(np.bitwise_count(self.bits).sum(dtype=np.int64))
        if self.seen != documents:
            yield f"{self.seen} {what}-of-document tokens, but the header says {documents} documents"
        if different < documents:
            byte = int((self.bits != 0xFF).argmax())
            row = 8 * byte + int((~np.unpackbits(self.bits[byte : byte + 1], bitorder="little").astype(bool)).argmax())
            yield f"{different} documents have an {what}-of-document token, but the header says {documents}: row {row} has none"


def _compare_documents(descriptor: int, seal: Seal, schema: pa.Schema, sums: PieceSums, report: Report) -> None:
    """Whether each document's pieces lie where documents.parquet says, if it lies beside the file."""
    header, path = report.header, report.path.with_name("documents.parquet")
    if header is None or not path.is_file():
        return
    promised = PieceSums(header.documents)
    try:
        for pieces in table_pieces(path, header):
            promised.add(pieces)
        for group in sums.differing(promised)[:1]:
            wanted = table_pieces(path, header, group)
            found = _pieces_of_file(descriptor, seal, schema, header)
            lists = [[p.of(p.row // GROUP == group) for p in pieces] for pieces in (wanted, found)]
            raise TokenFileError(first_difference(lists[0], lists[1], header.seq_len))
    except TokenFileError as error:
        report.problems.append(Problem(path.name, str(error)))
    report.documents_checked = True


def _pieces_of_file(descriptor: int, seal: Seal, schema: pa.Schema, header: Header) -> Iterator[Pieces]:
    for number, (head, body) in enumerate(zip(seal.heads, seal.bodies, strict=True)):
        block = _block(memoryview(read_region(descriptor, head.start, body.end)), schema, header)
        yield block_pieces(block, number * header.block_sequences)


def _manifest_problems(report: Report, seal: Seal) -> Iterator[Problem]:
    """Whether the manifest beside the file speaks about this very file, and its document table is whole."""
    path = report.path
    manifest_path = path.with_name("manifest.json")
    try:
        manifest: Any = json.loads(manifest_path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        yield Problem("manifest.json", f"cannot be read: {error}")
        return
    files = manifest.get("files") if isinstance(manifest, dict) else None
    stated = files.get(path.name) if isinstance(files, dict) else None
    if not isinstance(files, dict) or not isinstance(stated, dict):
        return
    if stated.get("seal") != seal.sha256:
        yield Problem("manifest.json", "was written for another token file: its seal differs")
    for name in _COUNTS:
        if report.header is not None and manifest.get(name, getattr(report.header, name)) != getattr(
            report.header, name
        ):
            yield Problem(
                "manifest.json", f"says {manifest[name]!r:.40} {name}, the file {getattr(report.header, name)}"
            )
    for name, entry in files.items():
        if name == path.name or not isinstance(entry, dict):
            continue
        try:
            other = path.with_name(Path(name).name)
            if not other.is_file():
                continue
            with other.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != entry.get("sha256"):
                    yield Problem(name, "is not the file that was written with this one (SHA-256 differs)")
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            yield Problem("manifest.json", f"names {name!r:.60}, which cannot be read: {error}")
