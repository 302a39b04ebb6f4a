"""How many tokens each document of a sample has: counted once for each tokenizer, kept under `<root>/impact/tokens`.

Counted with the tokenizer of the new side's `pack`, the default one without it, and with the end of document, as `pack`
does. Costs 0.1 s a MB of text the first time, and nothing after.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, RunError
from curation.ids import digest8
from curation.impact.code import environment_digest
from curation.pack_config import PackConfig
from curation.shards import Shard, batches, groups_by_bytes, open_table, write_table

__all__ = ["Counted", "count_tokens"]

_GROUP_BYTES = 2**22


class Counted:
    """Tokens by document."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        """Of the tokenizer."""
        self._ids = table.column("doc_id").combine_chunks()
        self._tokens = table.column("tokens").to_numpy().astype(np.int64)

    def of(self, doc_ids: pa.Array) -> npt.NDArray[np.int64]:
        """Tokens of documents: int64[n]."""
        places = pc.index_in(doc_ids, value_set=self._ids).to_numpy(zero_copy_only=False)
        found: npt.NDArray[np.int64] = self._tokens[places.astype(np.int64)]
        return found


def count_tokens(shards: Sequence[Shard], pack: PackConfig | None, root: Path) -> Counted:
    """The tokens of every document.

    Args:
        shards: of the new side's run.
        pack: whose tokenizer counts; None: the default one.
        root: folder of all that `impact` keeps.

    Raises:
        ConfigError: the tokenizer cannot be loaded.
        RunError: the counts cannot be written.
    """
    pack = pack or PackConfig()
    texts = [[shard.name, shard.sha256] for shard in shards]
    path = root / "tokens" / f"{digest8(texts)}-{_tokenizer_digest(pack)}.arrow"
    table = _read(path, sum(shard.rows for shard in shards))
    if table is None:
        table = _count(shards, pack)
        write_table(path, table, durable=False)
    else:
        os.utime(path)  # it was of use
    return Counted(table.schema.metadata[b"tokenizer"].decode(), table)


def _tokenizer_digest(pack: PackConfig) -> str:
    """Of the tokenizer's files, without loading it, which takes a second."""
    from curation.pack import contents_of
    from tokenization.tokenizer import DEFAULT

    given = DEFAULT if pack.tokenizer == "default" else Path(pack.tokenizer)
    return digest8([contents_of(given), pack.eos, pack.bos, pack.engine, environment_digest()])


def _count(shards: Sequence[Shard], pack: PackConfig) -> pa.Table:
    from tokenization.errors import TokenizerError
    from tokenization.tokenizer import load_tokenizer

    ids: list[pa.Array] = [pa.array([], pa.binary(16))]
    counts = [np.zeros(0, np.int64)]
    try:
        tokenizer = load_tokenizer(pack.tokenizer, eos=pack.eos, bos=pack.bos, fast=pack.engine == "auto")
        for shard in shards:
            for _, batch in batches(shard, ["doc_id", "text"]):
                ids.append(batch.column("doc_id"))
                texts = batch.column("text")
                for begin, end in groups_by_bytes(texts, _GROUP_BYTES):
                    counts.append(tokenizer.encode_documents(texts.slice(begin, end - begin).to_pylist()).lengths)
    except TokenizerError as error:
        raise ConfigError(f"the tokenizer {pack.tokenizer} cannot count the sample's tokens: {error}") from error
    table = pa.table({"doc_id": pa.concat_arrays(ids), "tokens": np.concatenate(counts)})
    return table.replace_schema_metadata({"tokenizer": tokenizer.name})


def _read(path: Path, rows: int) -> pa.Table | None:
    """What was counted before; None if nothing was, or the file is not whole."""
    if not path.exists():
        return None
    try:
        table: pa.Table = open_table(path, None, rows).read_all()
        return (
            table
            if table.column_names == ["doc_id", "tokens"]
            and b"tokenizer" in (table.schema.metadata or {})
            and not table.column("tokens").null_count
            else None
        )
    except RunError:
        return None
