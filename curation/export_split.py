"""Documents of a finished run as one file for each language: `out/{language}.jsonl.zst`.

All files appear at once, by the rename of their folder, or none does. Beside them lies `_export.json`: what each file holds.
Files are written in groups of `MAX_OPEN`, the languages with most documents first, each group in one pass over the shards
that have such documents: so memory and open files are bounded (about 5 MB a file), whatever the number of languages, and
each file is what a run with this language alone would export. A document without a language goes to `und`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from curation.close import has_size
from curation.errors import ConfigError, RunError, nearest
from curation.export import COLUMNS, Selection, check_format, selection, writing
from curation.export_config import LANGUAGE
from curation.pipeline import Pipeline
from curation.run import fsync_folder, publish, read_json, write_json
from curation.shards import Shard, batches, item_marker, open_table
from curation.steps import PlacedStep

__all__ = ["MANIFEST", "Portion", "export_as_configured", "export_by_language", "names_language"]

MANIFEST = "_export.json"
log = logging.getLogger("corpusmill")

MAX_OPEN = 32
UNDETERMINED = "und"
_STEP = "language"
_COLUMN = "language"
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Portion:
    """One file of the export."""

    language: str
    name: str
    documents: int
    text_bytes: int
    """UTF-8 of the texts."""
    bytes: int = 0
    """Of the file."""


def names_language(output: Path) -> bool:
    """Whether the name asks for one file for each language.

    Raises:
        ConfigError: another word in braces, or the language in the name of a folder.
    """
    unknown = [word for word in re.findall(r"\{\w*\}", str(output)) if word != LANGUAGE]
    if unknown:
        raise ConfigError(f"--output {output}: {unknown[0]} is not known{nearest(unknown[0], [LANGUAGE])}.")
    if LANGUAGE in str(output.parent) or output.name.count(LANGUAGE) > 1:
        raise ConfigError(
            f"--output {output}: expected {LANGUAGE} once, in the name of the file, such as out/{LANGUAGE}.jsonl.zst."
        )
    return LANGUAGE in output.name


def export_by_language(pipeline: Pipeline, output: Path, chosen: Selection, about: dict[str, Any]) -> list[Portion]:
    """Write the chosen documents to a file for each language; returns what was written, most documents first.

    Args:
        output: FOLDER/NAME with `{language}` in NAME. The folder must be new, empty, or hold an earlier export and nothing
            else: it is replaced as a whole.
        about: goes into `_export.json` as it is.

    Raises:
        ConfigError: the run has no step `language`, the name no known ending, or the folder holds something else.
        RunError: the run is damaged, or the files cannot be written.
    """
    check_format(output)
    step = _language_step(pipeline)
    folder = output.parent.resolve()
    _check_replaceable(folder)
    portions = _census(pipeline, step, chosen, output.name)
    with _new_folder(folder) as temporary:
        for start in range(0, len(portions), MAX_OPEN):
            _write_group(pipeline, step, chosen, portions[start : start + MAX_OPEN], temporary)
        written = [
            Portion(one.language, one.name, one.documents, one.text_bytes, (temporary / one.name).stat().st_size)
            for one in portions
        ]
        write_json(temporary / MANIFEST, {**about, "files": [asdict(one) for one in written]})
    return written


def export_as_configured(pipeline: Pipeline) -> None:
    """Write the run's `export/` if its config has one, unless it stands there whole, for these very verdicts.

    Raises:
        ConfigError, RunError: see `export_by_language`.
    """
    config = pipeline.config.top.export
    if config is None:
        return
    folder = pipeline.run.folder / "export"
    about = {
        "run_id": pipeline.run.run_id,
        "route": None,
        "verdicts": pipeline.placed[-1].digest,
        "pattern": config.pattern,
    }
    if not _is_done(folder, about):
        portions = export_by_language(pipeline, folder / config.pattern, selection(pipeline), about)
        log.info(
            "%d documents in %d languages written to %s", sum(p.documents for p in portions), len(portions), folder
        )


def _is_done(folder: Path, about: dict[str, Any]) -> bool:
    """Whether an export of the same stands there, with every file whole; looks at sizes only."""
    if not (folder / MANIFEST).exists():
        return False
    manifest = read_json(folder / MANIFEST)
    same = {key: manifest.get(key) for key in about} == about
    return same and all(has_size(folder / one["name"], one["bytes"]) for one in manifest["files"])


def _language_step(pipeline: Pipeline) -> PlacedStep:
    found = next((placed for placed in pipeline.placed if placed.name == _STEP), None)
    if found is None:
        raise ConfigError(
            f"run {pipeline.run.run_id} has no step `{_STEP}`, so its documents cannot be told apart by {LANGUAGE}. "
            f"Add `- {_STEP}: {{}}` to `steps` of its config and run it again, with --run {pipeline.run.run_id}: what is done "
            "before that step is not done again."
        )
    return found


# ---------------------------------------------------------------- what there is


def _census(pipeline: Pipeline, step: PlacedStep, chosen: Selection, pattern: str) -> list[Portion]:
    """Documents and bytes of each language, most documents first. Touches no text."""
    counts: dict[str, list[int]] = {}
    for shard in pipeline.shards:
        rows = chosen(shard)
        if not rows.any():
            continue
        codes, names = _languages(step, shard)
        lengths = [
            pc.binary_length(batch.column(0)).to_numpy(zero_copy_only=False) for _, batch in batches(shard, ["text"])
        ]
        weights = np.concatenate(lengths)[rows]
        documents = np.bincount(codes[rows], minlength=len(names))
        n_bytes = np.bincount(codes[rows], weights=weights, minlength=len(names))
        for code in np.flatnonzero(documents).tolist():
            cell = counts.setdefault(names[code], [0, 0])
            cell[0] += int(documents[code])
            cell[1] += int(n_bytes[code])
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
    return [Portion(name, pattern.replace(LANGUAGE, name), *cell) for name, cell in ranked]


def _languages(step: PlacedStep, shard: Shard) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The language of each document of a shard: int64[rows], places in the list of names.

    Raises:
        RunError: a name that is none, and could be no part of a file's.
    """
    marker = item_marker(step.folder, shard.name)
    table = open_table(step.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
    column = table.column(_COLUMN).fill_null(UNDETERMINED).combine_chunks().dictionary_encode()
    names = column.dictionary.to_pylist()
    for name in names:
        if not _LABEL.fullmatch(name):
            raise RunError(f"step {step.name} calls a language {name!r}: expected letters, digits, '_' and '-'.")
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), names


# ---------------------------------------------------------------- writing


def _write_group(
    pipeline: Pipeline, step: PlacedStep, chosen: Selection, portions: Sequence[Portion], folder: Path
) -> None:
    """Write the files of some languages in one pass."""
    with contextlib.ExitStack() as stack:
        writes = {}
        for one in portions:
            temporary = stack.enter_context(publish(folder / one.name))
            writes[one.language] = stack.enter_context(writing(temporary, one.name))
        for shard in pipeline.shards:
            rows = chosen(shard)
            if not rows.any():
                continue
            codes, names = _languages(step, shard)
            wanted = np.array([name in writes for name in names], np.bool_)
            # Of the rows that are not for this group, the language does not matter: -1.
            codes = np.where(rows & wanted[codes], codes, -1)
            if (codes < 0).all():
                continue
            for start, batch in batches(shard, COLUMNS):
                here = codes[start : start + batch.num_rows]
                for code in np.unique(here[here >= 0]).tolist():
                    writes[names[code]](batch.take(pa.array(np.flatnonzero(here == code))))


def _check_replaceable(folder: Path) -> None:
    """Refuse a folder with anything in it that an earlier export did not write.

    Raises:
        ConfigError: it would be lost.
    """
    if folder == Path.cwd():
        raise ConfigError(
            f"the files of an export by language get a folder of their own, such as by-language/{LANGUAGE}.jsonl.zst."
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder, and the files of the export cannot lie in it. Give another name.")
    names = {path.name for path in folder.iterdir()}
    known: set[str] = set()
    if MANIFEST in names:
        known = _written_names(read_json(folder / MANIFEST))
    if strange := sorted(names - known):
        raise ConfigError(
            f"{folder} holds {strange[0]}{f' and {len(strange) - 1} more' if len(strange) > 1 else ''}, which no export has "
            f"written. The files of an export by language get a folder of their own, such as {folder / 'by-language'}."
        )


def _written_names(manifest: Any) -> set[str]:
    """What an export wrote, its manifest too; nothing for a manifest that is another program's."""
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, list) or not all(isinstance(one, dict) and "name" in one for one in files):
        return set()
    return {MANIFEST, *(one["name"] for one in files)}


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yields a hidden folder beside `folder`; on success it takes its place, on any error it is gone."""
    prefix = f".{folder.name}.{re.sub(r'[^A-Za-z0-9]+', '-', platform.node())}"
    temporary = folder.with_name(f"{prefix}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent, prefix)
        temporary.mkdir()
        yield temporary
        fsync_folder(temporary)
        _put_in_place(temporary, folder)
        fsync_folder(folder.parent)
    except OSError as error:
        raise RunError(
            f"{folder} could not be written: {error.strerror or error}. Check that its folder is one, and may be written to."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path) -> None:
    """Rename; what an earlier export left there is taken away first, so that never a mixture of two is to be seen."""
    old = temporary.with_name(temporary.name.removesuffix(".partial") + ".old.partial")
    try:
        if folder.exists():
            _check_replaceable(folder)
            folder.rename(old)
        try:
            temporary.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove what killed exports of this machine have left."""
    for path in parent.iterdir():
        pid, _, rest = path.name.removeprefix(f"{prefix}.").partition(".")
        if (
            path.name.startswith(f"{prefix}.")
            and rest.endswith(".partial")
            and pid.isdigit()
            and not psutil.pid_exists(int(pid))
        ):
            shutil.rmtree(path, ignore_errors=True)
