"""Trains the language model that ships with Corpusmill: a fastText classifier of words and short lines.

    python -m tools.train_language_model --common-voice DIR --chromium DIR --cldr DIR --udhr DIR \\
        --out quality_models/weights/corpusmill-lid.ftz --held-out held_out.jsonl

DIRs: see tools/language_model/sources.py. Prints the tables of the model card. With --threads 1 the same sources
give the same file on the same machine; fastText's threads write to shared memory without locks, so with more the
model differs a little each time. Takes 10 minutes with two threads, 4 GB, and fasttext-community of the extra `test`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.language_model.fragments import Folded, Lines, fold, fragments, split
from tools.language_model.measure import tables
from tools.language_model.nonsense import nonsense
from tools.language_model.sources import SOURCES, Text

MOST_LINES = 160_000
"""Training lines of one label."""
SETTINGS = {
    "dim": 48,
    "loss": "softmax",
    "epoch": 1,  # lines are cut anew instead: 3 points more of words than 4 times the same lines
    "minn": 1,
    "maxn": 5,
    "bucket": 1_000_000,
    "minCount": 6,
    "lr": 0.5,
}
QUANTISED = {"cutoff": 400_000, "qnorm": True, "dsub": 2, "retrain": False}
"""400,000 of the words and n-grams stay, two columns share one of 256 centroids: 14 MB in place of 300."""
SEED = 7


def read(folders: dict[str, Path]) -> Iterator[Text]:
    """The texts of all sources, and what is no language."""
    for name, reader in SOURCES.items():
        yield from reader(folders[name])
    yield from nonsense()


def write_training(lines: Lines, most: int, path: Path) -> int:
    """Write the training lines in random order, the same each time; returns how many."""
    rows = [f"__label__{label} {text}\n" for label, text in fragments(lines, most)]
    random.Random(SEED).shuffle(rows)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(rows)
    return len(rows)


def write_held_out(texts: list[Folded], path: Path) -> None:
    """Write {label, source, text} rows as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for text in texts:
            row = {"label": text.label, "source": text.source, "text": text.text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def train(source: Path, out: Path, threads: int, settings: dict[str, object], quantised: dict[str, object]) -> None:
    """Train on the lines of `source`, and write the quantised model."""
    import fasttext  # type: ignore[import-untyped]

    model = fasttext.train_supervised(str(source), thread=threads, verbose=0, **settings)
    model.quantize(input=str(source), thread=threads, **quantised)
    out.parent.mkdir(parents=True, exist_ok=True)
    model.save_model(str(out))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SOURCES:
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model, .ftz")
    parser.add_argument("--held-out", type=Path, required=True, metavar="FILE", help="texts not trained on, .jsonl")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    lines, held_out = split(fold(read({name: getattr(given, name.replace("-", "_")) for name in SOURCES})))
    write_held_out(held_out, given.held_out)
    with tempfile.TemporaryDirectory(dir=given.out.resolve().parent) as folder:
        source = Path(folder) / "train.txt"
        count = write_training(lines, MOST_LINES, source)
        print(f"{count:,} lines of {len(lines)} labels; held out {len(held_out):,} texts", file=sys.stderr)
        train(source, given.out, given.threads, dict(SETTINGS), dict(QUANTISED))
    print(tables(given.out, lines, held_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
