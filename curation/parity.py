"""Before anything is packed: does our tokenizer give the trainer's ids on the very documents that will be packed?

A sample of the kept documents is drawn by hash: those with the smallest `doc_id`, which is a hash already, so every rerun
draws the same ones, spread over all shards and sources. They, and the frozen probe texts, are encoded by both tokenizers
(`tokenization.parity.check`). A difference stops the run with the text, the token, both ids and the likely cause.

Costs: 16 bytes for each document of the run are read, and the texts of the sample, at most 16 MB; both tokenizers need some
seconds for them (transformers 2 to 5 s to import). Memory: the sample, and what its ids need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError
from curation.run import read_json, write_json
from curation.shards import Shard, alive_mask, batches, item_marker, open_table
from tokenization.errors import TokenizerError

if TYPE_CHECKING:
    import pyarrow as pa

    from curation.pack_config import PackConfig
    from tokenization.parity.check import ParityReport
    from tokenization.parity.tally import Text
    from tokenization.parity.trainers import TrainerTokenizer
    from tokenization.tokenizer import Tokenizer

__all__ = ["check_before", "check_parity", "compare", "reference_for"]

FORMAT = 1
MOST_BYTES = 16 << 20
"""Text of the sample."""
MOST_CHARACTERS = 100_000
"""Of one document; a longer one is compared up to there."""
BATCH_CHARACTERS = 1 << 20

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows of each shard that are drawn, in the order of the shards, and how many documents there were to draw from."""

    rows: Sequence[Rows]
    documents: int
    complete: bool
    """All that there are."""


def check_parity(
    shards: Sequence[Shard],
    folder: Path | None,
    config: PackConfig,
    out: Path,
    *,
    languages: Path | None = None,
) -> dict[str, Any]:
    """Compare on the probes and a sample of the kept documents; write a JSON report.

    Args:
        folder: of the last step, which says who is kept; None: all documents are.
        out: where the report is published, whether it is good or bad.
        languages: folder of the step `language`; None: looked for beside `folder`, where there is exactly one.

    Returns:
        The report.

    Raises:
        ConfigError: something does not hold; the message names the text, the token, both ids, and the likely cause.
        RunError: a shard or a verdict is missing or damaged.
    """
    sample = _drawn(shards, folder, config.parity_documents)
    named = languages if languages is not None else _language_folder(folder)
    try:
        ours = _load(config, fast=config.engine == "auto")
        report = compare(
            ours,
            reference_for(config.trainer or config.tokenizer, named=config.trainer is not None),
            _documents(shards, sample, named),
            config,
            complete=sample.complete,
        )
    except TokenizerError as error:
        raise ConfigError(f"pack.trainer: {error}" if config.trainer else f"pack.tokenizer: {error}") from error
    found = {
        "format": FORMAT,
        "summary": _summary(report, config),
        **report.to_json(),
        "kept_documents": sample.documents,
        "sampled_documents": report.documents["documents"],
        "characters": report.documents["characters"],
        "probe_texts": report.probes["texts"],
    }
    write_json(out, found)
    if not report.equal:
        key = "pack.trainer" if config.trainer else "pack.tokenizer"
        raise ConfigError(f"{key}: the tokenizer of the pack cannot be trusted. {report.message()}")
    return found


def check_before(config: PackConfig) -> None:
    """What can be known before a run begins: the tokenizer loads, and the trainer's gives its ids on the probe texts.

    Ingest and steps may take days, and then it would be late to hear of a misspelt EOS.

    Raises:
        ConfigError: the tokenizer cannot be loaded, or is not the trainer's.
    """
    from curation.pack import encode_digest

    encode_digest(config)
    if config.trainer is None:
        return
    try:
        ours, theirs = _load(config, fast=config.engine == "auto"), reference_for(config.trainer, named=True)
        report = compare(ours, theirs, iter(()), config)
    except TokenizerError as error:
        raise ConfigError(f"pack.trainer: {error}") from error
    if not report.equal:
        raise ConfigError(f"pack.trainer: the tokenizer of the pack cannot be trusted. {report.message()}")


def _summary(report: ParityReport, config: PackConfig) -> str:
    """One sentence for the report's page."""
    against = "no other library" if report.reference is None else str(report.reference["how"])
    whose = f"{Path(config.trainer).name} ({against})" if config.trainer else against
    compared = f"{report.probes['texts']:,} probe texts and {report.documents['documents']:,} documents"
    if report.equal:
        return f"equal to {whose} on {compared}"
    return f"differs from {whose}: {', '.join(dict.fromkeys(problem.check for problem in report.problems))}"


def compare(
    ours: Tokenizer,
    theirs: TrainerTokenizer | None,
    documents: Iterator[list[Text]],
    config: PackConfig,
    *,
    embedding_rows: int | None = None,
    complete: bool = True,
) -> ParityReport:
    """Hold the pack's tokenizer against another, within the pack's limits.

    Raises:
        TokenizerError: a document yields the end-of-document token by itself.
    """
    from tokenization.parity.check import check_tokenizer
    from tokenization.parity.limits import Limits

    return check_tokenizer(
        ours,
        theirs,
        documents,
        trainer=config.trainer,
        own=config.tokenizer,
        stock=lambda: _load(config, fast=False),
        limits=Limits(config.max_unk_share, config.max_lost_share, embedding_rows),
        complete=complete,
    )


def reference_for(path: str, *, named: bool) -> TrainerTokenizer | None:
    """What ours is held against: the trainer's tokenizer where one is named, else the library that reads our own file.

    Returns:
        None where no library is installed that reads our own file beside the pipeline's.

    Raises:
        TokenizerError: it is missing or unreadable; or named, and its library is not installed.
    """
    from tokenization.parity.trainers import MissingLibraryError, load_stock, load_trainer

    if named:
        return load_trainer(path)
    try:
        return load_stock(path)
    except MissingLibraryError:
        return None


def _load(config: PackConfig, *, fast: bool) -> Tokenizer:
    from tokenization.tokenizer import load_tokenizer

    return load_tokenizer(config.tokenizer, eos=config.eos, bos=config.bos, fast=fast)


def _drawn(shards: Sequence[Shard], folder: Path | None, most: int) -> _Sample:
    """The `most` kept documents with the smallest doc_id, as far as they have no more than MOST_BYTES of text."""
    keys, sizes = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    places = np.zeros((0, 2), np.int64)
    total = 0
    for number, shard in enumerate(shards):
        ids, lengths = _identities(shard)
        alive = np.flatnonzero(alive_mask(folder, shard))
        total += len(alive)
        keys, sizes = np.append(keys, ids[alive]), np.append(sizes, lengths[alive])
        places = np.concatenate([places, np.stack([np.full(len(alive), number), alive], axis=1)])
        # No more than the sample is kept, however many shards there are.
        order = np.argsort(keys, kind="stable")[:most]
        keys, sizes, places = keys[order], sizes[order], places[order]
    room = np.cumsum(np.minimum(sizes, 4 * MOST_CHARACTERS)) <= MOST_BYTES
    room[:1] = True
    found = places[room]
    rows = [np.sort(found[found[:, 0] == number, 1]) for number in range(len(shards))]
    return _Sample(rows, total, len(found) == total)


def _identities(shard: Shard) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The first eight bytes of each doc_id as a number, and bytes of each text."""
    import pyarrow.compute as pc

    ids: list[npt.NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
    sizes: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for _, batch in batches(shard, ["doc_id", "text"]):
        column = batch.column("doc_id")
        raw = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, column.type.byte_width)
        raw = raw[column.offset : column.offset + len(column), :8]
        ids.append(np.ascontiguousarray(raw).view(">u8").ravel().astype(np.uint64))
        sizes.append(pc.binary_length(batch.column("text")).to_numpy(zero_copy_only=False).astype(np.int64))
    return np.concatenate(ids), np.concatenate(sizes)


def _documents(shards: Sequence[Shard], sample: _Sample, languages: Path | None) -> Iterator[list[Text]]:
    """The drawn documents in batches of about a million characters."""
    from tokenization.parity.tally import Text

    batch: list[Text] = []
    size = 0
    for shard, rows in zip(shards, sample.rows, strict=True):
        names = None if languages is None or not len(rows) else _languages(languages, shard)
        for row, name, text in _texts(shard, rows):
            label = None if names is None else names[row].as_py()
            batch.append(Text(f"document {name}", text[:MOST_CHARACTERS], label))
            size += len(batch[-1].text)
            if size >= BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _texts(shard: Shard, rows: Rows) -> Iterator[tuple[int, str, str]]:
    """Row, the document's own id, and text of some rows, ascending."""
    if not len(rows):
        return
    for start, batch in batches(shard, ["id", "text"]):
        low, high = np.searchsorted(rows, [start, start + batch.num_rows])
        for row in rows[low:high].tolist():
            yield row, str(batch.column("id")[row - start].as_py()), batch.column("text")[row - start].as_py()


def _languages(folder: Path, shard: Shard) -> pa.Array:
    """What the step `language` says of each row of a shard; null where it did not look."""
    marker = item_marker(folder, shard.name)
    table = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
    return table.column("language").combine_chunks()


def _language_folder(folder: Path | None) -> Path | None:
    """The folder of the only step `language` beside a step's; None where there is none, or settings were tried out."""
    if folder is None:
        return None
    found = [one for one in sorted(folder.parent.glob("*-language-*")) if (one / "_done.json").exists()]
    own = [one for one in found if read_json(one / "_step.json")["name"] == "language"]
    return own[0] if len(own) == 1 else None
