"""Packing: the kept documents become one token file of fixed-length sequences, and a table of who lies where.

Two passes. `encode_shard` turns the living rows of one shard into a part file of ids; `assemble` plans over the
lengths of all documents and copies each piece to its place. The bytes of the result do not depend on shards,
chunks or workers. Encoding runs at 25 MB/s a core (2 to 3 with the stock tokenizer); assembling at 170 MB of
tokens/s a core, with 200 MB of memory and 28 bytes a document.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, RunError
from curation.ids import digest8
from curation.pack_config import MixConfig, PackConfig
from curation.run import file_sha256, publish, write_json
from tokenization.errors import TokenFileError, TokenizerError

if TYPE_CHECKING:
    from tokenization.layout import Header
    from tokenization.tokenizer import Encoded, Tokenizer

__all__ = ["MixConfig", "PackConfig", "assemble", "encode_digest", "encode_shard", "pack_digest"]

VERSION = 1
"""Raised whenever the same documents and config may give another token file."""
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
    return digest8({"version": VERSION, **settings, "ids": encode_digest(config)})


def encode_digest(config: PackConfig) -> str:
    """Digest of what decides the ids alone: another seq_len, strategy or limit encodes nothing again.

    Raises:
        ConfigError: the tokenizer cannot be loaded.
    """
    # An engine is asked for when the other is in doubt: then nothing that the other made may be used again.
    engine = {"engine": config.engine} if config.engine != "auto" else {}
    return digest8({"version": VERSION, **engine, "tokenizer": _tokenizer(config).fingerprint()})


def encode_shard(shard_path: Path, keep: Any, out: Path, config: PackConfig) -> dict[str, Any]:
    """Encode the kept documents of one shard into a part file, published at `out`.

    Args:
        shard_path: an Arrow file with columns doc_id, id, source and text.
        keep: bool[rows], as NumPy or Arrow array; null is not kept. None: all rows.

    Returns:
        Counts: documents, tokens (with EOS), unknown, characters, lost; sha256 of the part; the engine that gave
        the ids, and why not the fast one. The part itself does not depend on the engine.

    Raises:
        ConfigError: the tokenizer cannot be loaded, lets a text forge a document border, or its fast and its stock
            library differ on a sample.
        RunError: the shard is missing or damaged, or `keep` does not fit it.
    """
    from tokenization.parts import PartWriter

    tokenizer = _tokenizer(config)
    with publish(out) as temporary, _as_errors_of_the_run():
        with PartWriter(temporary, tokenizer) as writer:
            for batch in _kept_batches(shard_path, keep):
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
) -> dict[str, Any]:
    """Write tokens.arrow, documents.parquet and manifest.json from part files in document order.

    Args:
        checksums: SHA-256 of each part, as `encode_shard` returned it; given, the parts are checked first.
        engines: what encoded the parts, as `encode_shard` returned it; noted in manifest.json.

    Returns:
        What the funnel calls `packed`: documents, tokens, sequences, seq_len, padding_share, unk_share.

    Raises:
        ConfigError: too many unknown tokens or lost characters: the tokenizer does not fit the text.
        RunError: a part is missing, damaged, or encoded by another tokenizer.
    """
    from tokenization.assemble import Assembly
    from tokenization.parts import Parts

    for path, expected in zip(parts, checksums or (), strict=checksums is not None):
        if file_sha256(path) != expected:
            raise RunError(f"{path} is not the part that was written (SHA-256 differs). Delete it and run again.")
    tokenizer = _tokenizer(config)
    with _as_errors_of_the_run(), Parts(parts, tokenizer.fingerprint(), tokenizer.dtype) as opened:
        assembly = Assembly(opened, tokenizer, config.seq_lens[0], config.strategy)
        header = assembly.header(run_id, config_digest)
        _refuse_unfit(header, config)
        with publish(pack_folder / "tokens.arrow") as temporary:
            seal = assembly.write_tokens(temporary, header)
        with publish(pack_folder / "documents.parquet") as temporary:
            assembly.write_documents(temporary, header)
    write_json(pack_folder / "manifest.json", _manifest(pack_folder, header, seal.sha256, engines))
    names = ("documents", "tokens", "sequences", "seq_len", "padding_share", "unk_share")
    return {name: getattr(header, name) for name in names}


def _manifest(folder: Path, header: Header, seal: str, engines: Sequence[str]) -> Mapping[str, Any]:
    from dataclasses import asdict

    documents = folder / "documents.parquet"
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
        "documents": header.documents,
        "tokens": header.tokens,
        "sequences": header.sequences,
        "pieces": header.pieces,
        "padding_share": header.padding_share,
        "unk_share": header.unk_share,
        "lost_share": header.lost_share,
    }


def _refuse_unfit(header: Header, config: PackConfig) -> None:
    for name, share, limit, what in (
        ("max_unk_share", header.unk_share, config.max_unk_share, "of the tokens are unknown"),
        ("max_lost_share", header.lost_share, config.max_lost_share, "of the characters do not come back from the ids"),
    ):
        if share > limit:
            raise ConfigError(
                f"pack.{name}: {share:.4%} {what}, more than {limit:.4%}: tokenizer {header.tokenizer.name!r} does not fit "
                f"this text. Choose another one with pack.tokenizer, or raise pack.{name} if that is what you want."
            )


@contextlib.contextmanager
def _as_errors_of_the_run() -> Iterator[None]:
    """Errors of tokenization as those of the pipeline."""
    try:
        yield
    except TokenizerError as error:
        raise ConfigError(f"pack.tokenizer: {error}") from error
    except TokenFileError as error:
        raise RunError(f"{error} Run the same command again: it will be made anew.") from error


_loaded: dict[tuple[str, str | None, str, int], Tokenizer] = {}


def _tokenizer(config: PackConfig) -> Tokenizer:
    """The tokenizer, loaded once a process unless its file changes."""
    from tokenization.tokenizer import DEFAULT, load_tokenizer

    path = DEFAULT if config.tokenizer == "default" else Path(config.tokenizer)
    file = path / "tokenizer.json" if path.is_dir() else path
    key = (config.tokenizer, config.eos, config.engine, file.stat().st_mtime_ns if file.is_file() else 0)
    if key not in _loaded:
        with _as_errors_of_the_run():
            _loaded[key] = load_tokenizer(config.tokenizer, eos=config.eos, fast=config.engine == "auto")
    return _loaded[key]


def _kept_batches(shard_path: Path, keep: Any) -> Iterator[pa.RecordBatch]:
    """Kept rows of a shard in batches of about 16 MB of text."""
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(shard_path)))
    except (OSError, pa.ArrowInvalid) as error:
        raise RunError(f"{shard_path} cannot be read as an Arrow file: {error}. Run the same command again.") from error
    rows = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    mask = None if keep is None else pc.fill_null(keep if isinstance(keep, pa.Array) else pa.array(keep), False)
    if mask is not None and len(mask) != rows:
        raise RunError(f"{shard_path} has {rows} rows, but {len(mask)} verdicts were given: they are of another shard.")
    start = 0
    for index in range(reader.num_record_batches):
        batch = reader.get_batch(index).select(["doc_id", "id", "source", "text"])
        for a, b in _cuts(batch.column("text"), _BATCH_BYTES):
            kept = batch.slice(a, b - a)
            if mask is not None:
                kept = kept.filter(mask.slice(start + a, b - a))
            if kept.num_rows:
                yield kept
        start += batch.num_rows


def _encoded(texts: pa.Array, tokenizer: Tokenizer) -> Iterator[Encoded]:
    for a, b in _cuts(texts, _GROUP_BYTES):
        yield tokenizer.encode_documents(texts.slice(a, b - a).to_pylist())


def _cuts(texts: pa.Array, n_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `n_bytes` of text each; at least one row."""
    ends: npt.NDArray[np.int64] = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
    begin = 0
    while begin < len(ends):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + n_bytes, side="right")))
        yield begin, end
        begin = end
