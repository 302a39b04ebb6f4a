"""Compiled kernels of this code for other code whose kernels are the same, so that a revision does not compile them again.

Compiling takes a filter 6 to 35 s. numba keeps machine code in a folder named by the path of the module, and stamps it with
the content of that module alone; where kernels may be shared is decided here, by the digest of the module, of all that it
imports of this project and of the tables beside those (`curation.impact.code`), and by its very bytes, since numba names a
kernel by its line. Files are linked: numba replaces them, it never writes into them. Where numba lays its cache out another
way, nothing is found, and kernels are compiled.

Costs 0.1 s. Kernels of `tokenization.engines` are left alone: judging needs them only with `token_fit`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from curation.impact.code import Sources

__all__ = ["share_kernels"]


def share_kernels(here: Sources, there: Sources) -> int:
    """Link what this code has compiled to where the other code looks for it; returns how many modules share kernels."""
    shared = 0
    for module, ours in _modules_with_kernels(here):
        theirs = there.path(module)
        if theirs is None or theirs.read_bytes() != ours.read_bytes():
            continue
        found = sorted(_cache(ours).glob(f"{ours.stem}.*"))
        target = _cache(theirs)
        if not found or here.digest([module]) != there.digest([module]):
            continue
        shared += 1
        # What a kernel was compiled to first, the index that names it last.
        for path in sorted(found, key=lambda path: path.suffix == ".nbi"):
            _link(path, target / path.name)
    return shared


def _modules_with_kernels(sources: Sources) -> Iterator[tuple[str, Path]]:
    for path in sorted((sources.folder / "curation").rglob("*.py")):
        if "kernel" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(sources.folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _cache(module: Path) -> Path:
    """Where numba keeps the kernels of a source file, as `curation.text.jit` makes it choose."""
    import numba

    from curation.text import jit

    folder = module.parent
    if folder.is_relative_to(jit.FOLDER.parent):
        base = Path(jit.cache_folder(folder) or folder)
    else:  # another version's: jit is the same there, else no kernel is shared, and its folder is ours to write
        text = next(parent for parent in module.parents if parent.name == "curation") / "text"
        name = f"kernels-{jit._digest(text)}" + (f"-{jit._digest(folder)}" if folder != text else "")
        base = Path(numba.config.CACHE_DIR or folder / "__pycache__") / name
    return base / f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


def _link(source: Path, target: Path) -> None:
    """What is there already stays: the other code has compiled it itself."""
    with contextlib.suppress(OSError):  # no links here, or no room: it is compiled
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
