"""Trains the n-gram models that ship with Corpusmill.

    python -m tools.train_ngram_models --sources DIR --unseen TEXTS.jsonl --out quality_models/weights [--only eng]

DIR holds a folder for each source, see tools/ngram_models/sources.py; a source that is missing is left out, and said.
TEXTS: rows with `text` of which no long line may be trained on (what the models are judged by). The same sources
give the same files. For Chinese it needs the package opencc-python-reimplemented. Takes two minutes and 4 GB a model.
Prints the tables of the model card.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.filters.labels import working_labels
from curation.filters.perplexity.ngram_text import NORMALISATION, normal_characters
from curation.text import Script, buffers, script_counts
from quality_models.ngram_file import pack, write_ngram
from quality_models.ngram_models import PREFIX
from quality_models.ngram_training import train
from tools.ngram_models.han import in_both_forms
from tools.ngram_models.measure import tables
from tools.ngram_models.mixture import MIXTURES, Mixture, chosen, held_out, long_lines
from tools.ngram_models.sources import SOURCES, Text

LEAST_OF_LABEL = 20_000
"""Characters from which on a label counts as one that a model was trained on."""
LEAST_OF_LANGUAGE = 0.1
"""Share of a language's text, likewise: a manual of functions is in Latin letters in any language."""


def read(folder: Path) -> Iterator[Text]:
    """The texts of all sources."""
    for name, reader in SOURCES.items():
        if (folder / name).exists():
            yield from reader(folder / name)
        else:
            print(f"{folder / name}: not there, left out", file=sys.stderr)


def read_unseen(path: Path) -> frozenset[int]:
    """What `long_lines` gives of the texts in a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        return frozenset(line for row in file for line in long_lines(json.loads(row)["text"]))


def script_shares(texts: pa.Array) -> dict[str, float]:
    """Share of each script among the letters."""
    counts = script_counts(*buffers(texts)).sum(axis=0)
    return {script.name.lower(): round(float(counts[script] / counts.sum()), 6) for script in Script if counts[script]}


def labels_of(rows: list[Text]) -> list[str]:
    """Labels (language and script) with enough text, sorted."""
    batch = pa.record_batch(
        {
            "text": pa.array([row.text for row in rows], pa.large_string()),
            "language.language": pa.nulls(len(rows), pa.string()),
        }
    )
    sizes: Counter[str] = Counter()
    for row, label in zip(rows, working_labels(batch).to_pylist(), strict=True):
        script = label.partition("_")[2] if label else ""
        sizes[f"{row.language}_{script}"] += len(row.text)
    languages: Counter[str] = Counter()
    for row in rows:
        languages[row.language] += len(row.text)
    return sorted(
        label
        for label, size in sizes.items()
        if size >= max(LEAST_OF_LABEL, LEAST_OF_LANGUAGE * languages[label[:3]]) and not label.endswith("_")
    )


def train_one(name: str, mixture: Mixture, rows: list[Text], out: Path) -> None:
    """Train a model, and write it."""
    texts = pa.array([row.text for row in rows], pa.large_string())
    codes, offsets = normal_characters(*buffers(texts))
    estimated = train(codes, offsets, order=mixture.order, most_bytes=int(mixture.megabytes * 1e6))
    sources = Counter(dict.fromkeys(SOURCES, 0))
    for row in rows:
        sources[row.source] += len(row.text)
    facts: dict[str, Any] = {
        "characters": int(offsets[-1]),
        "documents": len(rows),
        "labels": labels_of(rows),
        "scripts": script_shares(texts),
        "sources": {source: size for source, size in sources.items() if size},
        "ngrams": [len(grams.last) for grams in estimated.grams],
    }
    path = out / f"{PREFIX}{name}.bin"
    write_ngram(pack(estimated, name, NORMALISATION, facts), path)
    print(
        f"{path.name}: {path.stat().st_size:,} bytes, {len(rows):,} documents, {facts['characters']:,} characters, "
        f"n-grams {facts['ngrams']}",
        file=sys.stderr,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, required=True, metavar="DIR")
    parser.add_argument("--unseen", type=Path, metavar="TEXTS.jsonl")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", nargs="*", choices=sorted(MIXTURES), default=sorted(MIXTURES))
    parser.add_argument("--tables", action="store_true", help="only measure models that are there")
    given = parser.parse_args(arguments)
    unseen = read_unseen(given.unseen) if given.unseen else frozenset()
    everything = list(read(given.sources))
    if not given.tables:
        for name in given.only:
            train_one(name, MIXTURES[name], list(in_both_forms(chosen(everything, MIXTURES[name], unseen))), given.out)
    print(tables({name: given.out / f"{PREFIX}{name}.bin" for name in given.only}, _held_out(everything)))
    return 0


def _held_out(texts: Iterable[Text]) -> list[Text]:
    return [text for text in texts if held_out(text)]


if __name__ == "__main__":
    sys.exit(main())
