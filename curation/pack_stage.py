"""The last stage of a run: the tokenizer is held against the trainer's, documents become ids, ids one file.

    [pack.parity] once -> [pack.encode] a shard -> [pack.assemble] once -> close

Nothing is encoded before parity holds. What `pack/` holds is in docs/reference/run-on-disk.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.close import has_size
from curation.errors import LawError, RunError
from curation.ids import digest8
from curation.pack_config import PackConfig
from curation.passes import Pass, used
from curation.run import Run, file_sha256, peak_memory, read_json, write_json
from curation.shards import Shard, alive_mask, item_marker, open_table
from curation.steps import PlacedStep

__all__ = ["PackStage"]

_FILES = ("tokens.arrow", "documents.parquet", "manifest.json")
"""What each folder of packed files holds."""
_FOLDER = re.compile(r"(?:[0-9]+)?(?:/?holdout)?")
"""Names of the folders below `pack/` that are ours; any other is somebody's own."""


class PackStage:
    """Packing in a run whose steps are decided."""

    def __init__(
        self, run: Run, config: PackConfig, config_digest: str, shards: Sequence[Shard], placed: Sequence[PlacedStep]
    ) -> None:
        self.run, self.config, self.config_digest = run, config, config_digest
        self.shards, self.placed = shards, placed

    def passes(self) -> list[Pass]:
        """Empty if the files stand."""
        if self.done() is not None:
            return []
        return [
            Pass("pack", "pack.parity", 1, "file"),
            Pass("pack", "pack.encode", len(self.shards), "shard"),
            Pass("pack", "pack.assemble", 1, "file"),
        ]

    def run_item(self, pass_name: str, item: int) -> dict[str, Any]:
        """Do one item: a few counts, less than 1 kB."""
        if pass_name == "pack.parity":
            return self._parity()
        return self._encode(self.shards[item]) if pass_name == "pack.encode" else self._assemble()

    def digest(self) -> str:
        """Digest of everything that decides the token file: the last step's verdicts, and the config."""
        from curation.pack import pack_digest

        return digest8([self._documents_digest(), pack_digest(self.config)])

    def done(self) -> dict[str, Any] | None:
        """The marker, if it stands, is of this config, and its files are there."""
        path = self.run.pack / "_done.json"
        if not path.exists():
            return None
        marker: dict[str, Any] = read_json(path)
        whole = all(has_size(self.run.pack / name, n_bytes) for name, n_bytes in marker["files"].items())
        return marker if whole and marker["digest"] == self.digest() else None

    def close(self) -> dict[str, Any]:
        """Check that every kept document was packed or left out by the mixture, and delete what was only on the way.

        Documents are counted on the tables that lie on disk, for each sequence length by itself.

        Raises:
            LawError: documents were lost or invented.
            RunError: there is no finished token file, or a table of documents cannot be read.
        """
        marker = self.done()
        if marker is None:
            raise RunError(f"{self.run.pack} holds no finished token file. Run the same command again.")
        kept = read_json(self.placed[-1].folder / "_done.json")["docs_kept"] if self.placed else None
        expected = sum(shard.rows for shard in self.shards) if kept is None else kept
        packed: dict[str, Any] = marker["packed"]
        if packed["documents"] + packed["left_out"] != expected:
            raise LawError(
                f"{expected} documents were kept, but {packed['documents']} lie in the files of {self.run.pack} "
                f"and {packed['left_out']} were left out by pack.mix."
            )
        counted: Counter[int] = Counter()
        for one in packed["files"]:
            counted[one["seq_len"]] += _documents_in((self.run.pack / one["path"]).with_name("documents.parquet"))
        for seq_len, found in counted.items():
            if found != packed["documents"]:
                raise LawError(
                    f"{packed['documents']} documents were packed into {self.run.pack}, but the tables of documents "
                    f"for sequences of {seq_len} tokens name {found}."
                )
        shutil.rmtree(self.run.work, ignore_errors=True)
        return packed

    # -- the three passes ----------------------------------------------------------------------

    def _parity(self) -> dict[str, Any]:
        from curation.parity import check_parity

        last, language = self.placed[-1].folder if self.placed else None, self._language_step()
        out = self.run.pack / "parity.json"
        marker = self._parts_folder() / f"parity-{self.digest()}.json"
        if marker.exists() and out.exists():
            return {"item": 0, "reused": True}
        # A tokenizer that cannot be loaded leaves no report, and an earlier one must not stand for it.
        out.unlink(missing_ok=True)
        report = check_parity(self.shards, last, self.config, out, languages=language.folder if language else None)
        counts = {key: value for key, value in report.items() if isinstance(value, int | float | bool)}
        write_json(marker, counts)
        return {"item": 0, **counts}

    def _encode(self, shard: Shard) -> dict[str, Any]:
        from curation.pack import encode_shard

        out = self._part_path(shard)
        marker_path = out.with_suffix(".json")
        if marker_path.exists() and out.exists() and file_sha256(out) == read_json(marker_path)["sha256"]:
            return {"item": shard.name, "reused": True}
        alive = alive_mask(self.placed[-1].folder if self.placed else None, shard)
        with peak_memory() as cost:
            counts = encode_shard(shard.path, alive, out, self.config, languages=self._languages(shard))
        write_json(marker_path, {**counts, **cost})
        return {"item": shard.name, "documents": counts["documents"], "tokens": counts["tokens"], "reused": False}

    def _assemble(self) -> dict[str, Any]:
        from curation.pack import assemble

        if self.done() is not None:  # by another try of this task, which must not lose its marker to a late one
            return {"item": 0, "reused": True}
        parts = [self._part_path(shard) for shard in self.shards]
        markers = [read_json(part.with_suffix(".json")) for part in parts]
        # A killed writer must not leave the old marker beside a new file.
        (self.run.pack / "_done.json").unlink(missing_ok=True)
        with peak_memory() as cost:
            packed = assemble(
                parts,
                checksums=[marker["sha256"] for marker in markers],
                engines=[marker["engine"] for marker in markers if "engine" in marker],
                pack_folder=self.run.pack,
                config=self.config,
                run_id=self.run.run_id,
                config_digest=self.config_digest,
                threads=os.cpu_count() or 1,
            )
        names = [str(Path(one["path"]).parent / name) for one in packed["files"] for name in _FILES]
        self._remove_others(names)
        files = {name: (self.run.pack / name).stat().st_size for name in names}
        marker = {
            "digest": self.digest(),
            "bytes": sum(n for name, n in files.items() if name.endswith("tokens.arrow")),
            "files": files,
            # The manifests hold the checksums of the other files; who holds theirs?
            "manifests": {name: file_sha256(self.run.pack / name) for name in names if name.endswith("manifest.json")},
            "packed": packed,
            **used([cost, *markers]),
        }
        write_json(self.run.pack / "_done.json", marker)
        return {"item": 0, **{key: value for key, value in packed.items() if key != "files"}}

    def _remove_others(self, names: Sequence[str]) -> None:
        """Remove the files of an earlier config: another length, or documents that are no longer held out."""
        top = self.run.pack
        # The deepest first, so that a folder is empty when its turn comes.
        folders = sorted((one for one in top.glob("**/") if _is_ours(one, top)), reverse=True)
        for folder in folders:
            for path in (folder / name for name in _FILES):
                if str(path.relative_to(top)) not in names:
                    path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it is in use, or somebody's own file lies there
                folder.rmdir()

    # -- what they read ------------------------------------------------------------------------

    def _documents_digest(self) -> str:
        """Digest of what is kept and of the languages: the last step's, which names all before it, or that of the shards."""
        if self.placed:
            return self.placed[-1].digest
        return digest8([[shard.name, shard.sha256] for shard in self.shards])

    def _parts_folder(self) -> Path:
        from curation.pack import encode_digest

        return self.run.work / f"pack-{digest8([self._documents_digest(), encode_digest(self.config)])}"

    def _part_path(self, shard: Shard) -> Path:
        return self._parts_folder() / f"{shard.name}.arrow"

    def _language_step(self) -> PlacedStep | None:
        return next((placed for placed in self.placed if placed.name == "language"), None)

    def _languages(self, shard: Shard) -> pa.Array | None:
        """What the step `language` says of each row of a shard; null where it did not look."""
        placed = self._language_step()
        if placed is None:
            return None
        marker = item_marker(placed.folder, shard.name)
        table = open_table(placed.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
        return table.column("language").combine_chunks().cast(pa.string())


def _is_ours(folder: Path, top: Path) -> bool:
    """Whether packed files of any config may lie in a folder: `pack/`, a length, `holdout` of either."""
    return folder == top or _FOLDER.fullmatch(str(folder.relative_to(top))) is not None


def _documents_in(path: Path) -> int:
    """Documents that a table of packed copies names: each has one first copy."""
    try:
        with pq.ParquetFile(path) as table:
            batches = table.iter_batches(columns=["epoch"])
            return sum(pc.sum(pc.equal(batch.column(0), 0)).as_py() or 0 for batch in batches)
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"{path} cannot be read: {error}. Delete it and run the same command again.") from error
