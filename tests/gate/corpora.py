"""The gold corpora as files, and their digests: a floor speaks of one corpus only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tests.gate.gold import REPO

__all__ = ["CORPORA", "OWN", "digest_of", "files_of"]

OWN = "own sentences"
"""Sentences of ours, in this repository, and what puts them in disguise or makes rows of them."""

CORPORA: Mapping[str, tuple[str, ...]] = {
    "2_text": ("crawl-*.zst", "gold.jsonl.zst"),
    "3_neardup": ("docs-*.zst", "gold_pairs.tsv.gz"),
    "4_langid": ("sentences.jsonl.zst", "mixed_pages.jsonl.zst"),
    "5_safety": ("labelled.jsonl.zst",),
    "6_quality": ("labelled.jsonl.zst",),
    OWN: (
        "tests/golden/cases/safety_*.tsv",
        "tests/golden/safety_evasion.py",
        "tests/golden/safety_phrases.py",
        "tools/make_safety_rows.py",
        "tools/safety_rows/*.txt",
    ),
}
"""By name, the files that the gate reads: patterns within the folder of that name in the test data; of OWN, in this repository."""


def files_of(name: str, data: Path) -> list[Path]:
    """The files of a corpus, in the order of their names; none where the test data do not have it."""
    folder = REPO if name == OWN else data / name
    return sorted({path for pattern in CORPORA[name] for path in folder.glob(pattern)})


def digest_of(name: str, data: Path) -> str | None:
    """SHA-256 over names and contents of its files; None where there are none."""
    files = files_of(name, data)
    if not files:
        return None
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
