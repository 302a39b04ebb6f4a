"""Harmless rows of more than eighty languages for training the safety model, and long harmless documents to choose thresholds by.

    python -m tools.make_safety_negatives --sources FOLDER --out FOLDER [--held-out TEXTS.jsonl ...]

The third of the steps that lead to the shipped models:

    python tools/make_safety_rows.py --out rows.jsonl                                   1. what we wrote
    python tools/make_safety_public.py --sources ... --held-out ... --out public.jsonl  2. labelled sets
    python -m tools.make_safety_negatives --sources ... --held-out ... --out .          3. ordinary text
    python -m tools.mix_safety_rows --rows rows.jsonl --public public.jsonl --negatives negatives.jsonl \\
        --dangerous dangerous.jsonl --out mixed.jsonl                                   4. one file of them
    corpusmill train-safety --input mixed.jsonl --good long.jsonl --output my-model --layers 8 --freeze 4 --adapter 16 \\
        --batch-tokens 2048 --development 0.05                                          5. the model
    python tools/train_safety_linear.py --rows mixed.jsonl negatives.jsonl --harmless long.jsonl
                                                                                        6. the fast one of the cascade

Instead of long.jsonl step 5 takes any harmless documents of which no row was made.

FOLDER holds a folder for each source that `safety_negatives/collect.py` names: a clone OWNER+NAME, or what the tools of the n-gram
and language models read. One that is missing is left out, and said. Written are, below --out:

    negatives.jsonl    pieces of one sentence to one page, 80 % of them `train`, the others `calibrate`
    dangerous.jsonl    sentences that speak of crime, war and courts, all `train`
    long.jsonl         whole documents, all `calibrate`

A row: {"text", "lang", "labels": [], "source", "licence", "split", "domain", "doc"}. Rows that share 30 letters in a row with a
text of --held-out are left out of the first two. What is share-alike is only in `calibrate`. The same sources make the same files.
Needs the package opencc. Takes a minute of processor time and 1.1 GB for 450 MB of text.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.safety_negatives.choose import choose_long, choose_pieces
from tools.safety_negatives.collect import Document, collect
from tools.safety_negatives.cut import prepared
from tools.safety_negatives.dangerous import HEADLINES, choose_dangerous, read_headlines
from tools.safety_negatives.held_out import without_held_out

ENGLISH_SOURCES = ("common-voice", "books", "wikipedia", "tatoeba", "ntrex", "python-docs")
"""Sources whose English lines do not stand untranslated in other languages."""
SHORTEST_LINE = 12


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sources", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--held-out", type=Path, nargs="*", default=[], metavar="TEXTS.jsonl")
    options.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    given = options.parse_args(arguments)
    documents = list(collect(given.sources))
    english = frozenset(_english_lines(documents))
    plain = [prepared(document, english) for document in documents]
    pieces = choose_pieces(plain)
    headlines = read_headlines(given.sources / HEADLINES) if (given.sources / HEADLINES).exists() else ()
    dangerous = choose_dangerous(headlines, documents, {row["text"] for row in pieces})
    for name, rows in (("negatives", pieces), ("dangerous", dangerous)):
        _write(given.out / f"{name}.jsonl", without_held_out(rows, _texts(given.held_out)))
    _write(given.out / "long.jsonl", choose_long(plain))
    return 0


def _english_lines(documents: Iterable[Document]) -> Iterator[str]:
    for text, _ in documents:
        if text.lang == "en" and text.source not in ENGLISH_SOURCES:
            lines = (line.strip() for line in text.text.split("\n"))
            yield from (line for line in lines if len(line) > SHORTEST_LINE)


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    counts = Counter(f"{row['source']} {row['split']}" for row in rows)
    print(f"{path}: {len(rows):,} rows")
    for name, count in counts.most_common():
        print(f"{count:>7,} {name}")


if __name__ == "__main__":
    sys.exit(main())
