"""Packing: the kept documents become one token file of fixed-length sequences, and a table of who lies where.

Two passes. `encode_shard` turns the living rows of one shard into a part file of ids; `assemble` plans over the
lengths of all documents and copies each piece to its place. The bytes of the result do not depend on shards,
chunks, threads or workers. Encoding runs at 25 MB/s a core (2 to 3 with the stock tokenizer); assembling at 150 to 330 MB of
tokens per CPU second. An assembly takes about 330 MB of memory: from 1 to 50 million documents its plan grows by 57 MB.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, RunError
from curation.ids import digest8
from curation.pack_config import MixConfig, PackConfig
from curation.run import file_sha256, publish, write_json
from curation.shards import groups_by_bytes
from tokenization.errors import TokenFileError, TokenizerError

if TYPE_CHECKING:
    from tokenization.layout import Header
    from tokenization.packing.assemble import Assembly
    from tokenization.packing.mix import Mix
    from tokenization.packing.parts import Parts, Totals
    from tokenization.packing.selection import Selection
    from tokenization.tokenizer import Encoded, Tokenizer

__all__ = ["MixConfig", "PackConfig", "assemble", "contents_of", "encode_digest", "encode_shard", "pack_digest"]

VERSION = 2
"""Raised whenever the same documents and config may give another token file."""
_TRAINER_FILES = ("*.json", "*.model*", "*.tiktoken", "*.txt", "*.bpe")
"""Of a trainer's folder: what decides its ids, and how many rows its embedding has."""
_BESIDE = ("tokenizer_config.json", "config.json")
_GROUP_BYTES = 1 << 20
"""Text encoded at a time: 50 to 200 bytes of memory for each of its tokens."""
_BATCH_BYTES = 16 << 20
"""Text of one batch of a part file."""


def pack_digest(config: PackConfig) -> str:
    """Digest of everything about the config that decides the token file or whether it may be made.

    Raises:
        ConfigError: the tokenizer cannot be loaded.
    """
    settings = config.model_dump(mode="json", exclude={"tokenizer", "engine"})
    if config.mix is not None:  # the first pattern that fits counts, and a digest knows no order of keys
        settings["mix"] |= {name: list(settings["mix"][name].items()) for name in ("epochs", "weights")}
    if config.trainer is not None:  # what it holds, wherever it lies: a changed one must be compared anew
        settings["trainer"] = contents_of(Path(config.trainer))
    return digest8({"version": VERSION, **settings, "ids": _ids_digest(config)})


def encode_digest(config: PackConfig) -> str:
    """Digest that encoded parts are found by: another seq_len, strategy or limit encodes nothing again.

    Parts of two versions of the stock library are never mixed; a finished file stands, whatever is installed later.

    Raises:
        ConfigError: the tokenizer cannot be loaded.
    """
    return digest8([_ids_digest(config), version("tokenizers")])


def _ids_digest(config: PackConfig) -> str:
    # An engine is asked for when the other is in doubt: then nothing that the other made may be used again.
    engine = {"engine": config.engine} if config.engine != "auto" else {}
    return digest8({"version": VERSION, **engine, "tokenizer": _tokenizer(config).fingerprint()})


def encode_shard(
    shard_path: Path, keep: Any, out: Path, config: PackConfig, languages: pa.Array | None = None
) -> dict[str, Any]:
    """Encode the kept documents of one shard into a part file, published at `out`.

    Args:
        shard_path: an Arrow file with columns doc_id, text_id, id, source and text.
        keep: bool[rows], as NumPy or Arrow array; null is not kept. None: all rows.
        languages: string[rows], what the step `language` says; null where it says nothing. None: of no row.

    Returns:
        Counts: documents, tokens (with EOS), unknown, characters, lost; sha256 of the part; the engine that gave
        the ids, and why not the fast one. The part itself does not depend on the engine.

    Raises:
        ConfigError: the tokenizer cannot be loaded, lets a text forge a document border, or its fast and its stock
            library differ on a sample.
        RunError: the shard is missing or damaged, or `keep` or `languages` does not fit it.
    """
    from tokenization.packing.parts import PartWriter

    tokenizer = _tokenizer(config)
    with publish(out) as temporary, _as_errors_of_the_run():
        with PartWriter(temporary, tokenizer) as writer:
            for batch in _kept_batches(shard_path, keep, languages):
                writer.write(batch, list(_encoded(batch.column("text"), tokenizer)))
        checksum = file_sha256(temporary)
    names = ("documents", "tokens", "unknown", "characters", "lost")
    return {**{name: getattr(writer, name) for name in names}, "sha256": checksum, "engine": tokenizer.engine}


def assemble(
    parts: Sequence[Path],
    *,
    pack_folder: Path,
    config: PackConfig,
    run_id: str,
    config_digest: str,
    checksums: Sequence[str] | None = None,
    engines: Sequence[str] = (),
    threads: int = 1,
) -> dict[str, Any]:
    """Write tokens.arrow, documents.parquet and manifest.json from part files in document order.

    One set lies in `pack_folder`, further lengths in folders named by them (`8192/`), held-out documents in `holdout/` of each.
    A file appears whole or not at all, by rename, its manifest last: a killed assembly begins again, and two at once both
    succeed. Parts are never changed, since another try may read them; the caller deletes them once all files stand. The disk
    holds the parts (as large as one file), the files, and 35 bytes a row of anonymous files that vanish with the process.

    Args:
        checksums: SHA-256 of each part, as `encode_shard` returned it; given, the parts are checked first.
        engines: what encoded the parts, as `encode_shard` returned it; noted in manifest.json.
        threads: how many gather blocks while one is written, at most 4 are used; no byte depends on it.

    Returns:
        The funnel's `packed`: documents (in any file), left_out (by pack.mix), copies (rows of the first file), its tokens,
        sequences, seq_len and shares, holdout_documents, and an entry for each file.

    Raises:
        ConfigError: the tokenizer does not fit the text, or pack.mix the documents.
        RunError: a part is missing, damaged, encoded by another tokenizer, or replaced meanwhile; the disk is full.
    """
    from tokenization.packing.assemble import MAX_THREADS
    from tokenization.packing.parts import Parts

    tokenizer = _tokenizer(config)
    threads = max(1, min(threads, MAX_THREADS))
    work = parts[0].parent if parts else _existing(pack_folder)
    fingerprint, dtype = tokenizer.fingerprint(), tokenizer.dtype
    with (
        _as_errors_of_the_run(),
        Parts(parts, fingerprint, dtype, work, checksums=checksums, threads=threads) as opened,
        _selection(opened, work, tokenizer, config) as selection,
    ):
        written = [
            (place, *_write_files(assembly, pack_folder / place, run_id, config_digest, engines))
            for place, assembly in _places(opened, selection, tokenizer, work, config, threads)
        ]
        return _packed(selection, written)


def _packed(selection: Selection, written: Sequence[tuple[Path, Header, int]]) -> dict[str, Any]:
    """What `assemble` returns, from the files in order: folder, header, documents that were cut."""
    _, first, _ = written[0]
    names = ("tokens", "sequences", "seq_len", "padding_share", "unk_share", "lost_share")
    return {
        "documents": selection.documents,
        "left_out": selection.left_out,
        "copies": first.documents,
        **{name: getattr(first, name) for name in names},
        "holdout_documents": sum(rows.documents for rows in selection.sides[1:]),
        "files": [_described(header, cut, place / "tokens.arrow") for place, header, cut in written],
    }


def _selection(parts: Parts, work: Path, tokenizer: Tokenizer, config: PackConfig) -> Selection:
    """Who is packed how often, if the tokenizer fits the text at all."""
    from tokenization.packing.selection import Selection

    _refuse_unfit(parts.totals, tokenizer.name, config)
    return Selection(parts, work, mix=_mix(config.mix), holdout_share=config.holdout_share)


def _places(
    parts: Parts, selection: Selection, tokenizer: Tokenizer, work: Path, config: PackConfig, threads: int
) -> Iterator[tuple[Path, Assembly]]:
    """What is to be written, each with its folder below `pack/`: every length, and both sides of each."""
    from tokenization.packing.assemble import Assembly

    for number, seq_len in enumerate(config.seq_lens):
        for rows in selection.sides:
            place = Path(str(seq_len) if number else "") / ("holdout" if rows.split == "holdout" else "")
            yield place, Assembly(parts, rows, tokenizer, work, seq_len, config.strategy, config.shuffle_seed, threads)


def _write_files(
    assembly: Assembly, folder: Path, run_id: str, config_digest: str, engines: Sequence[str]
) -> tuple[Header, int]:
    """Publish the three files of one folder: (header, documents that were cut)."""
    with publish(folder / "tokens.arrow") as tokens, assembly.plan() as planned:
        header = assembly.header(planned, run_id, config_digest)
        seal = assembly.write_tokens(tokens, header, planned)
        with publish(folder / "documents.parquet") as documents:
            assembly.write_documents(documents, header, planned)
    write_json(folder / "manifest.json", _manifest(folder, header, seal.sha256, engines, planned.cut_documents))
    return header, planned.cut_documents


def _described(header: Header, cut_documents: int, path: Path) -> dict[str, Any]:
    names = ("seq_len", "split", "documents", "tokens", "sequences", "pieces", "padding_share")
    return {"path": str(path), **{name: getattr(header, name) for name in names}, "cut_documents": cut_documents}


def _mix(config: MixConfig | None) -> Mix | None:
    from tokenization.packing.mix import Mix

    if config is None:
        return None
    return Mix(config.by, tuple(config.epochs.items()), tuple(config.weights.items()), config.max_epochs)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that there is."""
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def _manifest(folder: Path, header: Header, seal: str, engines: Sequence[str], cut_documents: int) -> Mapping[str, Any]:
    from dataclasses import asdict

    documents = folder / "documents.parquet"
    counts = ("documents", "tokens", "sequences", "pieces", "padding_share", "unk_share", "lost_share")
    return {
        "format": 1,
        "run_id": header.run_id,
        "config_digest": header.config_digest,
        "files": {
            "tokens.arrow": {"bytes": (folder / "tokens.arrow").stat().st_size, "seal": seal},
            "documents.parquet": {"bytes": documents.stat().st_size, "sha256": file_sha256(documents)},
        },
        "tokenizer": asdict(header.tokenizer),
        "engines": sorted(set(engines)),
        "dtype": header.dtype.name,
        "seq_len": header.seq_len,
        "strategy": header.strategy,
        "split": header.split,
        "shuffle_seed": header.shuffle_seed,
        "mix": [dict(group) for group in header.mix],
        **{name: getattr(header, name) for name in counts},
        "cut_documents": cut_documents,
    }


def _refuse_unfit(totals: Totals, name: str, config: PackConfig) -> None:
    unknown = totals.unknown / totals.tokens if totals.tokens else 0.0
    lost = totals.lost / totals.characters if totals.characters else 0.0
    for key, share, limit, what in (
        ("max_unk_share", unknown, config.max_unk_share, "of the tokens are unknown"),
        ("max_lost_share", lost, config.max_lost_share, "of the characters do not come back from the ids"),
    ):
        if share > limit:
            raise ConfigError(
                f"pack.{key}: {share:.4%} {what}, more than {limit:.4%}: tokenizer {name!r} does not fit "
                f"this text. Choose another one with pack.tokenizer, or raise pack.{key} if that is what you want."
            )


@contextlib.contextmanager
def _as_errors_of_the_run() -> Iterator[None]:
    """Errors of tokenization as those of the pipeline."""
    from tokenization.packing.mix import MixError

    try:
        yield
    except MixError as error:
        raise ConfigError(f"pack.mix: {error}") from error
    except TokenizerError as error:
        raise ConfigError(f"pack.tokenizer: {error}") from error
    except TokenFileError as error:
        raise RunError(f"{error} Run the same command again: it will be made anew.") from error
    except OSError as error:
        # Files of the run are written through `publish`, which names them; what is left has no name.
        raise RunError(
            f"an anonymous file beside the parts of pack could not be kept: {error.strerror or error}. "
            "If the disk is full, free some space; then run the same command again."
        ) from error


_loaded: dict[tuple[str, str | None, str | None, str, int], Tokenizer] = {}


def _tokenizer(config: PackConfig) -> Tokenizer:
    """The tokenizer, loaded once a process unless its file changes."""
    from tokenization.tokenizer import DEFAULT, load_tokenizer

    path = DEFAULT if config.tokenizer == "default" else Path(config.tokenizer)
    key = (config.tokenizer, config.eos, config.bos, config.engine, _changed(path))
    if key not in _loaded:
        with _as_errors_of_the_run():
            _loaded[key] = load_tokenizer(
                config.tokenizer, eos=config.eos, bos=config.bos, fast=config.engine == "auto"
            )
    return _loaded[key]


def contents_of(path: Path) -> list[tuple[str, str]]:
    """Name and SHA-256 of a tokenizer's file and what is read beside it, or of a folder's files; no weights."""
    if path.is_file():
        found = {path, *(path.with_name(name) for name in (f"{path.name}.json", *_BESIDE))}
    else:
        found = {file for pattern in _TRAINER_FILES for file in path.glob(pattern)}
    return [(file.name, file_sha256(file)) for file in sorted(found) if file.is_file()]


def _changed(path: Path) -> int:
    """When a file, or anything in a folder, was last changed: nanoseconds; 0 if it is not there."""
    files = [path, *(path.iterdir() if path.is_dir() else ())]
    return max((file.stat().st_mtime_ns for file in files if file.exists()), default=0)


def _kept_batches(shard_path: Path, keep: Any, languages: pa.Array | None) -> Iterator[pa.RecordBatch]:
    """Kept rows of a shard in batches of about 16 MB of text, with a column `language`."""
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(shard_path)))
    except (OSError, pa.ArrowInvalid) as error:
        raise RunError(f"{shard_path} cannot be read as an Arrow file: {error}. Run the same command again.") from error
    rows = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    mask = None if keep is None else pc.fill_null(keep if isinstance(keep, pa.Array) else pa.array(keep), False)
    if mask is not None and len(mask) != rows:
        raise RunError(f"{shard_path} has {rows} rows, but {len(mask)} verdicts were given: they are of another shard.")
    spoken = pa.nulls(rows, pa.string()) if languages is None else languages.cast(pa.string())
    if len(spoken) != rows:
        raise RunError(
            f"{shard_path} has {rows} rows, but {len(spoken)} languages were given: they are of another shard."
        )
    spoken = pc.fill_null(spoken, "")
    start = 0
    for index in range(reader.num_record_batches):
        batch = reader.get_batch(index).select(["doc_id", "text_id", "id", "source", "text"])
        batch = batch.append_column("language", spoken.slice(start, batch.num_rows))
        for a, b in groups_by_bytes(batch.column("text"), _BATCH_BYTES):
            kept = batch.slice(a, b - a)
            if mask is not None:
                kept = kept.filter(mask.slice(start + a, b - a))
            if kept.num_rows:
                yield kept
        start += batch.num_rows


def _encoded(texts: pa.Array, tokenizer: Tokenizer) -> Iterator[Encoded]:
    for a, b in groups_by_bytes(texts, _GROUP_BYTES):
        yield tokenizer.encode_documents(texts.slice(a, b - a).to_pylist())
