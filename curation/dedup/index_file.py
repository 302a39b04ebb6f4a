"""The exported signature index: what stands at the end of a run, in one Arrow file that finds copies without its texts.

    doc_id  text_id  id  n_shingles  simhash  signature  shingles        one row a document with a shingle

A later run names it in `near.against`. It holds the exact sets of shingles, so nothing is estimated; band keys
are not stored, they follow from the config that reads it. A signature is that of `datasketch.MinHash(num_perm=...,
seed=1, scheme="affine32")`, made of the low 32 bits of the shingles.

The file is plain Arrow IPC, written batch by batch. Each batch carries the SHA-256 of its columns in its custom
metadata: one of `shingles`, one of the rest, so that what is read can be checked alone. The last batch is empty and
carries the seal: the digest of the file's metadata and of all those checksums. So its identity costs no look at its
content, and its content cannot differ from it unnoticed.

Costs 44 + 4 * num_perm + 8 * n_shingles bytes a document and its id (about 1.5 times an English text, 3 times a Chinese
one), 15 to 30 us for a text of 2 kB, and the memory of one batch, about 100 MB.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.minhash import signatures
from curation.dedup.sets import Shingles, distinct
from curation.dedup.sign import Signing, pieces
from curation.dedup.simhash import fingerprints
from curation.errors import ConfigError
from curation.ids import canonical_json
from curation.run import Run, publish, read_json
from curation.shards import alive_mask

if TYPE_CHECKING:
    from curation.pipeline import Pipeline

__all__ = ["MADE_BY", "Index", "export_signatures", "kept_digest", "open_index"]

FORMAT = "corpusmill signature index"
FORMAT_VERSION = 1
MADE_BY = "`corpusmill export RUN --signatures FILE`"
PERMUTATIONS = (16, 1024)
"""Of a signature, at least and at most: what near.num_perm may be."""
_BANDS = {"bands": 0, "rows": 0}
_SHINGLES = ("shingles",)
_DOCUMENTS = ("doc_id", "text_id", "id", "n_shingles", "simhash", "signature")


def _schema(metadata: Mapping[str, str], num_perm: int) -> pa.Schema:
    what = {
        "doc_id": (pa.binary(16), "identity of the occurrence"),
        "text_id": (pa.binary(16), "identity of the content"),
        "id": (pa.string(), "the user's own id"),
        "n_shingles": (pa.uint32(), "shingles of the text, repeated ones too"),
        "simhash": (pa.uint64(), "SimHash fingerprint, repeated shingles counted"),
        "signature": (pa.list_(pa.field("item", pa.uint32(), nullable=False), num_perm), "MinHash of the shingles"),
        "shingles": (pa.list_(pa.field("item", pa.uint64(), nullable=False)), "distinct shingles, ascending"),
    }
    fields = [pa.field(name, kind, nullable=False, metadata={"what": text}) for name, (kind, text) in what.items()]
    return pa.schema(fields, metadata=dict(metadata))


# ---------------------------------------------------------------- writing


def export_signatures(pipeline: Pipeline, output: Path, num_perm: int | None = None) -> int:
    """Write the signature index of what stands at the end of the run, after its last step.

    Documents without a shingle are left out: they are near-duplicates of nothing.

    Args:
        num_perm: permutations of a signature; None: as many as the near step has.

    Returns:
        Documents in the index.

    Raises:
        ConfigError: `num_perm` is not what near.num_perm may be, or the path cannot be written to.
        RunError: the run is not done, or damaged.
    """
    from curation.dedup.near import Near, NearConfig
    from curation.export import check_done

    check_done(pipeline)
    near = next((placed for placed in pipeline.placed if isinstance(placed.step, Near)), None)
    last = pipeline.placed[-1].folder if pipeline.placed else None
    config = near.step.config if near else NearConfig()
    assert isinstance(config, NearConfig)
    num_perm = config.num_perm if num_perm is None else num_perm
    least, most = PERMUTATIONS
    if not least <= num_perm <= most:
        raise ConfigError(f"--num-perm {num_perm}: expected {least} to {most} permutations; 128 is usual.")
    # Bands follow from the config that reads it.
    signing = Signing(config.shingle, num_perm, 0, 0, config.by_character)
    metadata = _metadata(pipeline.run.run_id, kept_digest(pipeline.run, last), signing)
    with publish(output) as temporary, _Writer(temporary, _schema(metadata, num_perm)) as writer:
        for shard in pipeline.shards:
            alive = alive_mask(last, shard)
            for _, batch in pieces(shard, alive, ["text", "doc_id", "text_id", "id"]):
                writer.write(_signed(batch, signing, writer.schema))
        return writer.finish()


def kept_digest(run: Run, last: Path | None) -> str:
    """Digest of what stands at the end of a run; reads markers only.

    Args:
        last: folder of its last step; None: it has no steps.
    """
    marker = run.ingested() if last is None else read_json(last / "_done.json")
    shards = [[one["name"], one["rows"], one.get("kept"), one["sha256"]] for one in marker["shards"]]
    return hashlib.sha256(canonical_json([run.run_id, marker.get("digest"), shards]).encode()).hexdigest()


def _metadata(run_id: str, kept: str, signing: Signing) -> dict[str, str]:
    return {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "run_id": run_id,
        "kept": kept,
        "signing": json.dumps({name: value for name, value in asdict(signing).items() if name not in _BANDS}),
        "minhash": json.dumps({"scheme": "affine32", "seed": 1, "of": "the low 32 bits of each shingle"}),
    }


def _signed(batch: pa.RecordBatch, signing: Signing, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the index for the documents of a batch that have a shingle."""
    found = signing.shingles(batch.column("text"))
    counts = np.diff(found.offsets)
    sets = distinct(found)
    values = pa.array(signatures(sets, signing.num_perm).reshape(-1))
    columns = {
        "n_shingles": pa.array(counts.astype(np.uint32)),
        "simhash": pa.array(fingerprints(found)),
        "signature": pa.FixedSizeListArray.from_arrays(values, signing.num_perm),
        "shingles": pa.ListArray.from_arrays(pa.array(sets.offsets.astype(np.int32)), pa.array(sets.values)),
    }
    whole = [(columns[f.name] if f.name in columns else batch.column(f.name)).cast(f.type) for f in schema]
    signed = pa.array(np.flatnonzero(counts))
    return pa.RecordBatch.from_arrays([column.take(signed) for column in whole], schema=schema)


class _Writer:
    """Writes the batches of one index in order, and then its seal."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self._documents = self._batches = 0
        self._seal = _seal_of(schema)
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, schema)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
        self._sink.close()

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        checksums = {"documents": _checksum(batch, _DOCUMENTS), "shingles": _checksum(batch, _SHINGLES)}
        self._writer.write_batch(batch, custom_metadata=checksums)
        _add_to_seal(self._seal, batch.num_rows, checksums)
        self._documents += batch.num_rows
        self._batches += 1

    def finish(self) -> int:
        """Seal the file; returns how many documents it holds."""
        seal = {"documents": self._documents, "batches": self._batches, "digest": self._seal.hexdigest()}
        empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        self._writer.write_batch(empty, custom_metadata={"seal": json.dumps(seal)})
        return self._documents


def _seal_of(schema: pa.Schema) -> Any:
    """The hash that becomes the digest, begun with the file's metadata."""
    return hashlib.sha256(json.dumps(sorted(_text(schema.metadata).items())).encode())


def _add_to_seal(seal: Any, rows: int, checksums: Mapping[str, str]) -> None:
    seal.update(f"{rows} {checksums['documents']} {checksums['shingles']}\n".encode())


def _checksum(batch: pa.RecordBatch, names: tuple[str, ...]) -> str:
    """SHA-256 in hex of some columns, whatever their layout in memory."""
    content = hashlib.sha256()
    for name in names:
        for part in _content(batch.column(name)):
            content.update(part)
    return content.hexdigest()


def _content(column: pa.Array) -> Iterator[Any]:
    """The values of a column without nulls, as bytes."""
    kind = column.type
    if pa.types.is_list(kind):
        yield column.value_lengths().to_numpy()
        yield column.flatten().to_numpy()
    elif pa.types.is_fixed_size_list(kind):
        yield column.flatten().to_numpy()
    elif pa.types.is_string(kind):
        borders = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
        yield np.diff(borders)
        yield memoryview(column.buffers()[2] or b"")[borders[0] : borders[-1]]
    elif pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        yield memoryview(column.buffers()[1])[column.offset * width : (column.offset + len(column)) * width]
    else:
        yield column.to_numpy()


# ---------------------------------------------------------------- reading


@dataclass
class Index:
    """A signature index that can be read: its metadata agrees with its seal. Batches are checked as they are read."""

    path: Path
    run_id: str
    kept: str
    """Digest of what stood at the end of that run; see `kept_digest`."""
    signing: Signing
    """How its documents were signed; without bands."""
    rows: list[int]
    """Documents of each batch."""
    digest: str
    """Of the whole content, as the seal says."""
    version: tuple[int, ...] = field(repr=False)
    """Size, time and number of the file that was opened."""
    _checked: set[tuple[int, str]] = field(default_factory=set, repr=False)

    def documents(self, number: int) -> pa.RecordBatch:
        """Columns of a batch of documents, but their shingles.

        Raises:
            ConfigError: the file was changed since it was written.
        """
        return self._batch(number, "documents", _DOCUMENTS)

    def sets(self, number: int, rows: npt.NDArray[np.int64]) -> Shingles:
        """Distinct shingles of some rows of a batch.

        Raises:
            ConfigError: the file was changed since it was written.
        """
        found = self._batch(number, "shingles", _SHINGLES).column(0).take(pa.array(rows))
        offsets = np.concatenate([[0], np.cumsum(found.value_lengths().to_numpy(), dtype=np.int64)])
        return Shingles(found.flatten().to_numpy(), offsets)

    def _batch(self, number: int, part: str, columns: tuple[str, ...]) -> pa.RecordBatch:
        try:
            # Mapped anew each time: what an open mapping has read counts as memory of this process.
            reader = pa.ipc.open_file(pa.memory_map(str(self.path)))
            if _version(self.path) != self.version:
                raise ConfigError(f"{self.path} was replaced while it was read. Run the same command again.")
            batch, metadata = reader.get_batch_with_custom_metadata(number)
            if (number, part) not in self._checked:
                batch.select(list(columns)).validate()
                if _checksum(batch, columns) != _text(metadata)[part]:
                    raise _damaged(self.path, f"the content of batch {number} is not what was written")
                self._checked.add((number, part))
        except (pa.ArrowException, OSError, KeyError, ValueError, IndexError) as error:
            raise _damaged(self.path, f"batch {number} cannot be read ({error})") from error
        return batch.select(list(columns))


def open_index(path: Path) -> Index:
    """Open a signature index and check everything but its content, which costs 20 us for each batch of 8 MB of text.

    Raises:
        ConfigError: it is no index, is cut or damaged, or this version cannot read it.
    """
    try:
        version = _version(path)
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        stated = _text(reader.schema.metadata or {})
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ConfigError(
            f"{path} is no signature index, or it was cut: expected the Arrow file that {MADE_BY} writes, found one that "
            f"cannot be read ({error}). Write it anew."
        ) from error
    if stated.get("format") != FORMAT:
        raise ConfigError(
            f"{path} is an Arrow file, but no signature index: it does not say `format: {FORMAT}`. "
            f"Name the file that {MADE_BY} wrote, or the folder of a run."
        )
    if stated.get("format_version") != str(FORMAT_VERSION):
        raise ConfigError(
            f"{path} is a signature index of format {stated.get('format_version')}; this version reads {FORMAT_VERSION}. "
            f"Write it anew with {MADE_BY}."
        )
    try:
        rows, digest = _read_seal(reader, path)
        signing = Signing.from_json(json.dumps({**json.loads(stated["signing"]), **_BANDS}).encode())
        if reader.schema != _schema(stated, signing.num_perm):
            raise _damaged(path, "its columns are not those of an index")
        return Index(path, stated["run_id"], stated.get("kept", digest), signing, rows, digest, version)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its metadata cannot be read ({error})") from error


def _read_seal(reader: pa.ipc.RecordBatchFileReader, path: Path) -> tuple[list[int], str]:
    """Rows of each batch, and the digest; both follow from the metadata that the seal vouches for."""
    computed = _seal_of(reader.schema)
    rows: list[int] = []
    seal: dict[str, Any] = {}
    for number in range(reader.num_record_batches):
        batch, metadata = reader.get_batch_with_custom_metadata(number)
        stated = _text(metadata or {})
        if "seal" in stated:
            seal = json.loads(stated["seal"])
            break
        _add_to_seal(computed, batch.num_rows, stated)
        rows.append(batch.num_rows)
    found = {"documents": sum(rows), "batches": len(rows), "digest": computed.hexdigest()}
    if found != seal or reader.num_record_batches != len(rows) + 1:
        raise _damaged(path, "its batches are not those that its seal names")
    return rows, computed.hexdigest()


def _version(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _text(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in dict(metadata).items()}


def _damaged(path: Path, what: str) -> ConfigError:
    return ConfigError(f"{path} is a signature index that is damaged: {what}. Write it anew with {MADE_BY}.")
