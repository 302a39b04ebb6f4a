"""Every checksum of a run: shards, verdict files, what lasts of a step's passes, and what was packed.

Costs a read of the run at 1 to 2 GB/s.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.errors import RunError
from curation.pipeline import Pipeline
from curation.run import file_sha256, read_json
from curation.shards import item_marker

__all__ = ["damaged_files", "verify_run"]


def verify_run(folder: Path) -> tuple[list[str], bool]:
    """Check a run: what to tell a person, line by line, and whether all is well.

    Raises:
        RunError: the run has no shards yet, or a marker is missing.
    """
    pipeline = Pipeline.open(folder)
    whole: list[str] = []
    lines = [f"{path}: {wrong}" for path, wrong in damaged_files(pipeline, whole)]
    if lines:
        many = f"{len(lines)} files are damaged. Delete them and run the same command again: they are made anew."
        return [*lines, many], False
    ok = f"{folder}: OK, {len(pipeline.shards)} shards and the verdicts of {len(pipeline.placed)} steps"
    return [*whole, ok], True


def damaged_files(pipeline: Pipeline, whole: list[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Files of a run that are not what was written, each with what is wrong with it.

    A file that is named here may be deleted: the same command then makes it anew.

    Args:
        whole: is given what there is to say of each token file that is whole.

    Raises:
        RunError: the run has no shards yet, or a marker is missing.
    """
    for shard in pipeline.shards:
        if (wrong := _wrong(shard.path, shard.sha256)) is not None:
            yield shard.path, wrong
    for placed in pipeline.placed:
        for shard in pipeline.shards:
            path = placed.folder / f"{shard.name}.arrow"
            if (wrong := _wrong(path, item_marker(placed.folder, shard.name)["verdict_sha256"])) is not None:
                yield path, wrong
        yield from _lasting(placed.folder)
    if pipeline.config.top.pack is not None:
        yield from _packed(pipeline, [] if whole is None else whole)


def _lasting(folder: Path) -> Iterator[tuple[Path, str]]:
    """What lasts of a data-set step's passes, each file by the marker beside it: without one of them the step is open."""
    for name in read_json(folder / "_done.json").get("lasting", {}):
        path = folder / name
        if path.suffix == ".json":
            if _told_by(path) is None:
                yield path, "it is missing, or is not the marker that was written"
            continue
        sha256 = _told_by(path.parent / "_items" / f"{path.stem}.json")
        if sha256 is not None and (wrong := _wrong(path, sha256)) is not None:
            yield path, wrong


def _told_by(marker: Path) -> str | None:
    """The checksum that an item's marker names; None: it cannot be read."""
    try:
        return str(read_json(marker)["sha256"])
    except (RunError, KeyError, TypeError):
        return None


def _wrong(path: Path, sha256: str) -> str | None:
    try:
        return None if file_sha256(path) == sha256 else "its bytes are not those that were written"
    except FileNotFoundError:
        return "it is missing"


def _packed(pipeline: Pipeline, whole: list[str]) -> Iterator[tuple[Path, str]]:
    """Each manifest by the marker, each table of documents by its manifest, each token file by its own seal."""
    marker = read_json(pipeline.run.pack / "_done.json")
    folders = [str(Path(one["path"]).parent) for one in marker["packed"]["files"]]
    wrong_beside: set[Path] = set()
    # Folder by folder as they were written; in each the token file comes after those beside it.
    names = sorted(marker["files"], key=lambda name: (folders.index(str(Path(name).parent)), name))
    for name in names:
        n_bytes = marker["files"][name]
        path = pipeline.run.pack / name
        if not path.is_file():
            wrong: str | None = "it is missing"
        elif path.stat().st_size != n_bytes:
            wrong = f"it has {path.stat().st_size} bytes, {n_bytes} were written"
        elif path.name == "manifest.json":
            wrong = _wrong_manifest(path, marker, name)
        elif path.name == "documents.parquet":
            sha256 = _documents_sha256(path.parent)
            # Without a readable manifest, which is told by itself, nobody knows.
            wrong = None if sha256 is None else _wrong(path, sha256)
        else:
            wrong = _wrong_tokens(path, whole, beside=path.parent in wrong_beside)
        if wrong is not None:
            wrong_beside.add(path.parent)
            yield path, wrong


def _wrong_tokens(path: Path, whole: list[str], *, beside: bool) -> str | None:
    """What is wrong with a token file.

    Args:
        whole: is given the report if nothing is.
        beside: a file beside it is damaged, and named already: that is no reason to make this one anew.
    """
    from tokenization.reader import verify

    report = verify(path)
    if beside and all(problem.where in ("manifest.json", "documents.parquet") for problem in report.problems):
        return None
    if not report.ok:
        return str(report)
    whole.append(str(report))
    return None


def _wrong_manifest(path: Path, marker: dict[str, Any], name: str) -> str | None:
    if (sha256 := marker.get("manifests", {}).get(name)) is not None:
        return _wrong(path, sha256)
    return None if _documents_sha256(path.parent) is not None else "it is not the manifest that was written"


def _documents_sha256(folder: Path) -> str | None:
    """What manifest.json says of documents.parquet; None: it cannot be read."""
    try:
        return str(read_json(folder / "manifest.json")["files"]["documents.parquet"]["sha256"])
    except (RunError, KeyError, TypeError):
        return None
