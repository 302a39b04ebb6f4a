"""A mask: sequences of one token file that are to be left out of a training, and why.

    mask = Mask.read("mask.arrow")
    mask.rows                                       # int64[k], ascending: sequences of the file
    mask.others()                                   # int64[n - k]: all others, for a map-style data set
    mask = Mask.of(file, [17, 4]); mask.write(path) # one of your own

`corpusmill mask` writes one for documents that were blacklisted since the file was packed; `stream.TokenStream(skip=..)` leaves
them out. On disk it is an Arrow IPC file with a column `sequence`, int64, ascending, and others that tell more; its schema's
metadata has one key, `corpusmill.mask`, with one JSON object: what the file is of (the token file's seal, its number of
sequences), the digest of both and of the numbers, that of the rest, and the facts. So any Arrow reader takes it:

    pyarrow.ipc.open_file(path).read_all()["sequence"].to_numpy()

Needs pyarrow and NumPy only. Costs 8 bytes a masked sequence, and as much again while it is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.durable import fsync_folder
from tokenization.errors import TokenFileError

if TYPE_CHECKING:
    from tokenization.reader import TokenFile

__all__ = ["Mask"]

Numbers = npt.NDArray[np.int64]
FORMAT = 1
_KEY = b"corpusmill.mask"
REMEDY = "Write it again with `corpusmill mask`."


@dataclass(frozen=True, eq=False)
class Mask:
    """Sequences of one token file; see `of` and `read`."""

    seal: str
    """SHA-256 that stands for the token file, as `TokenFile.seal`."""
    sequences: int
    """Sequences of the token file."""
    rows: Numbers
    """int64[k], ascending, read-only: those that are left out."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known, as JSON has it: of `corpusmill mask` the version of the blacklist, reasons, counts."""
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """More of each row, as `blacklisted_tokens`: arrays [k] of numbers or truth values."""

    @classmethod
    def of(
        cls,
        file: TokenFile,
        rows: Sequence[int] | npt.NDArray[np.integer[Any]],
        *,
        facts: Mapping[str, Any] | None = None,
        columns: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Mask:
        """A mask of some sequences of a file, in any order; with columns they must be ascending.

        Raises:
            ValueError: a row is not of the file, or a column does not fit.
        """
        given = np.asarray(rows)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(f"rows must be a list of whole numbers, found {given.dtype}{list(given.shape)}")
        if given.size and not 0 <= int(given.min()) <= int(given.max()) < len(file):
            raise ValueError(f"{file.path} has sequences 0 to {len(file) - 1}; found {given.min()} to {given.max()}")
        unique = np.unique(given.astype(np.int64))
        if columns and not np.array_equal(unique, given):
            raise ValueError("rows with columns must be ascending, none twice")
        for name, column in (columns or {}).items():
            if column.shape != unique.shape:
                raise ValueError(
                    f"column {name!r} must have {len(unique)} values, one a row, found {list(column.shape)}"
                )
            # Objects would be digested as addresses in memory; and what Arrow gives back must have the same type.
            if name == "sequence" or column.dtype.kind not in "biuf" or not column.dtype.isnative:
                raise ValueError(
                    f"column {name!r} must be of numbers or truth values in this machine's byte order, and not be named "
                    f"`sequence`; found {column.dtype.str}. Text belongs into facts."
                )
        unique.flags.writeable = False
        return cls(file.seal, len(file), unique, facts or {}, columns or {})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Mask:
        """Read a mask and check it.

        Raises:
            TokenFileError: it is none, of another version, or damaged.
            FileNotFoundError: there is no such file.
        """
        where = Path(path)
        try:
            reader = pa.ipc.open_file(pa.py_buffer(where.read_bytes()))
            table = reader.read_all()
            table.validate(full=True)
            told = json.loads((table.schema.metadata or {})[_KEY])
            format_, seal, sequences, digest, facts = (
                told[key] for key in ("format", "seal", "sequences", "digest", "facts")
            )
        except (FileNotFoundError, IsADirectoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise TokenFileError(f"{where} is no mask, or it is damaged: {error!r:.200}. {REMEDY}") from error
        if format_ != FORMAT:
            raise TokenFileError(f"{where}: mask format {format_!r}; this version of corpusmill reads {FORMAT}.")
        if type(sequences) is not int or not isinstance(seal, str) or not isinstance(facts, dict):
            raise TokenFileError(f"{where} is damaged: it does not say what file it is of. {REMEDY}")
        mask = cls(seal, sequences, _checked_rows(table, where), facts, _more(table))
        if (mask.digest, mask._digest_of_more()) != (digest, told.get("more_digest")):
            raise TokenFileError(f"{where} is damaged: its numbers are not those that were written. {REMEDY}")
        if len(mask.rows) and not 0 <= int(mask.rows[0]) <= int(mask.rows[-1]) < sequences:
            raise TokenFileError(f"{where}: there are sequences outside 0 .. {sequences - 1}. {REMEDY}")
        return mask

    @property
    def digest(self) -> str:
        """SHA-256 over the file's seal and the rows: masks with one digest leave out the same."""
        name = f"corpusmill mask {FORMAT} {self.seal} {self.sequences}\n".encode()
        return hashlib.sha256(name + self.rows.astype("<i8").tobytes()).hexdigest()

    def _digest_of_more(self) -> str:
        """SHA-256 over facts and columns."""
        found = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode())
        for name, column in self.columns.items():
            found.update(f"{name} {column.dtype.str}\n".encode())
            found.update(np.ascontiguousarray(column).tobytes())
        return found.hexdigest()

    def others(self) -> Numbers:
        """All sequences of the file that are not masked: int64[n - k], ascending; 8 bytes each."""
        kept = np.ones(self.sequences, np.bool_)
        kept[self.rows] = False
        return np.flatnonzero(kept)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the mask: whole or not at all, whatever crashes, in place of what was there.

        Raises:
            OSError: it cannot be written; what was there stands.
        """
        told = {
            "format": FORMAT,
            "seal": self.seal,
            "sequences": self.sequences,
            "masked": len(self.rows),
            "digest": self.digest,
            "more_digest": self._digest_of_more(),
            "facts": dict(self.facts),
        }
        table = pa.table({"sequence": pa.array(self.rows, pa.int64()), **self.columns})
        schema = table.schema.with_metadata({_KEY: json.dumps(told, ensure_ascii=False).encode()})
        out = Path(path)
        temporary = out.with_name(f".{out.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("wb") as stream:
                with pa.ipc.new_file(stream, schema) as writer:
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
        fsync_folder(out.parent)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Mask({len(self.rows):,} of {self.sequences:,} sequences, of the file {self.seal[:16]})"


def _checked_rows(table: pa.Table, where: Path) -> Numbers:
    """The column `sequence`, ascending, none twice."""
    column = table.column("sequence") if "sequence" in table.column_names else pa.chunked_array([], pa.null())
    if column.type != pa.int64() or column.null_count:
        raise TokenFileError(f"{where} has no column `sequence` of int64 without nulls: it is no mask. {REMEDY}")
    rows: Numbers = column.to_numpy()
    if (rows[1:] <= rows[:-1]).any():
        raise TokenFileError(f"{where}: its sequences are not ascending. {REMEDY}")
    rows.flags.writeable = False
    return rows


def _more(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    return {name: table.column(name).to_numpy() for name in table.column_names if name != "sequence"}
