"""A Hugging Face table over a token file: mapped, and pickled as its path, its seal and the changes made to it.

`datasets.table.MemoryMappedTable` does the same for Arrow streams; this one opens a token file instead, and comes back
as itself from every change. Imports `datasets`, so only `interchange.to_hf` imports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets.table import MemoryMappedTable  # type: ignore[import-untyped, unused-ignore]

from tokenization.interchange import table_of
from tokenization.seal import read_seal

__all__ = ["MappedTokens"]

_CHANGES = (
    "slice",
    "filter",
    "flatten",
    "combine_chunks",
    "cast",
    "replace_schema_metadata",
    "add_column",
    "append_column",
    "remove_column",
    "set_column",
    "rename_columns",
    "drop",
    "select",
)
"""Methods of a table that give another one over the same file."""


class MappedTokens(MemoryMappedTable):  # type: ignore[misc, unused-ignore]
    """The table of one token file. Made by `of`."""

    def __init__(self, table: pa.Table, path: str, replays: list[Any] | None = None, *, seal: str) -> None:
        super().__init__(table, path, replays)
        self.seal = seal

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> MappedTokens:
        """The table of a file.

        Raises:
            TokenFileError: no token file, or damaged where Arrow must parse it.
        """
        seal = read_seal(Path(path)).sha256
        return cls(table_of(path, seal=seal), os.fspath(path), seal=seal)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "replays": self.replays, "seal": self.seal}

    def __setstate__(self, state: dict[str, Any]) -> None:
        table = self._apply_replays(table_of(state["path"], seal=state["seal"]), state["replays"])
        MappedTokens.__init__(self, table, state["path"], state["replays"], seal=state["seal"])


def _same_kind(name: str) -> Callable[..., MappedTokens]:
    change = getattr(MemoryMappedTable, name)

    @wraps(change)
    def changed(self: MappedTokens, *args: Any, **kwargs: Any) -> MappedTokens:
        made = change(self, *args, **kwargs)
        return MappedTokens(made.table, made.path, made.replays, seal=self.seal)

    return changed


for _name in _CHANGES:
    setattr(MappedTokens, _name, _same_kind(_name))
