"""Write curation/impact/sample: the documents that `corpusmill impact` judges when no other sample is named.

    python tools/make_impact_sample.py [--output FOLDER]

About 2,000 documents made from the texts that were written for this project (demo/documents, tools/impact_texts; CC0): as they
stand, joined, framed, copied, damaged. The same bytes on every machine, so a test says when the folder is out of date.
Takes 2 s.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.impact_pool import Made, Pool

__all__ = ["SAMPLE", "main", "make_sample"]

SAMPLE = Path(__file__).resolve().parent.parent / "curation" / "impact" / "sample"
SEED = 20261130
LONG = {"en": 8, "zh": 6, "ja": 5, "zh-Hant": 2}
"""Digests of many articles, by language."""


def make_sample() -> dict[str, bytes]:
    """Contents of the files by name."""
    from tools.impact_pool import Pool

    pool = Pool()
    seen: set[str] = set()
    files = {name: list(_unseen(made, seen)) for name, made in _sites(pool)}
    originals = [row for rows in files.values() for row in rows if row.quality == "good"]
    files["mirrors"] = _mirrors(originals)
    contents = {f"{name}.jsonl": _lines(name, rows) for name, rows in files.items()}
    contents["sample.json"] = _facts(files)
    return contents


def _sites(pool: Pool) -> Iterator[tuple[str, Iterable[Made]]]:
    """Each file: a kind of site, with what such sites hold."""
    from tools import impact_damage as damage
    from tools import impact_pages as pages
    from tools.impact_pool import PROSE, Made

    def some(count: int, name: str, maker: Any, *more: Any) -> Iterator[Made]:
        return islice(maker(pool, Random(f"{SEED} {name}"), *more), count)

    written = [
        Made(row.text, row.lang, row.kind, "good" if row.kind in PROSE else None if row.kind in UNCLEAR else "junk")
        for row in (*pool.hand_written, *pool.extra)
    ]
    yield "articles", [row for row in written if row.quality == "good"]
    digests = [
        some(len(rows) // 4 + 3, f"digests {lang}", pages.digests, lang, 2, 5)
        for lang, rows in sorted(pool.articles.items())
        if len(rows) > 3
    ]
    # Long ones tell what short ones cannot, and weigh most: few.
    long = [some(count, f"long {lang}", pages.digests, lang, 12, 36) for lang, count in LONG.items()]
    yield "magazines", (row for made in (*digests, *long, some(160, "briefs", pages.briefs)) for row in made)
    yield "portals", (*some(220, "framed", pages.framed), *some(60, "mixed", damage.mixed))
    yield "boards", (*some(130, "threads", pages.threads), *(row for row in written if row.kind.startswith("forum_")))
    yield "old-pages", (*some(160, "residues", pages.residues), *some(140, "misread", damage.misread))
    adverts = list(pool.adverts())
    Random(f"{SEED} adverts").shuffle(adverts)
    kinds = ("advert", "euphemism", "seo")
    yield (
        "shops",
        (
            *_few_of_each(adverts, 4),
            *some(80, "injected", damage.injected),
            *(row for row in written if row.kind in kinds),
        ),
    )
    rest = [row for row in written if row.quality != "good" and row.kind not in kinds]
    noise = (
        *some(90, "repeats", damage.repeats),
        *some(70, "disguises", damage.disguises),
        *some(120, "noises", damage.noises),
        *some(140, "oddities", damage.oddities),
    )
    yield "odds", (*rest, *noise, *some(40, "tables", pages.tables))


UNCLEAR = ("mixed_zh_ja", "table", "code", "control")
"""Kinds that a corpus may keep or not: as configured."""


def _few_of_each(rows: Iterable[Made], most: int) -> Iterator[Made]:
    """Of each language and kind so many at most."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (row.lang, row.kind)
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= most:
            yield row


def _unseen(rows: Iterable[Made], seen: set[str]) -> Iterator[Made]:
    """Without those whose text stands already: copies are planted on purpose, in a file of their own."""
    for row in rows:
        if row.text and row.text not in seen:
            seen.add(row.text)
            yield row


def _mirrors(originals: list[Made]) -> list[Made]:
    from demo.copies import Source
    from tools.impact_damage import copies

    rng = Random(f"{SEED} copies")
    chosen = [row for row in rng.sample(originals, len(originals)) if len(row.text) < 2500][:500]
    sources = [Source(str(number), "", row.text) for number, row in enumerate(chosen)]
    return copies(sources, {str(number): row.lang for number, row in enumerate(chosen)}, (80, 110, 40), rng)


def _lines(name: str, rows: Iterable[Made]) -> bytes:
    lines = []
    for number, row in enumerate(rows, start=1):
        record: dict[str, Any] = {
            "id": f"{name}-{number:04}",
            "url": f"https://{name}.example.org/{number}",
            "text": row.text,
        }
        if row.quality is not None:
            record["quality"] = row.quality
        lines.append(json.dumps({**record, "lang": row.lang, "kind": row.kind}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _facts(files: dict[str, list[Made]]) -> bytes:
    facts = {
        "name": "shipped",
        "about": "Documents written for Corpusmill and made from such (CC0): good and bad, in 23 languages.",
        "population": None,
        "documents": sum(map(len, files.values())),
        "strata": [],
    }
    return (json.dumps(facts, ensure_ascii=False, indent=1) + "\n").encode()


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make_impact_sample.py", description="Write the shipped impact sample.")
    parser.add_argument("--output", type=Path, default=SAMPLE, metavar="FOLDER", help="folder to write into")
    output = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)
    for name, content in make_sample().items():
        (output / name).write_bytes(content)
        print(f"{name:18} {len(content) / 2**20:6.2f} MB  {len(content.splitlines()):5,} lines")
    return 0


if __name__ == "__main__":
    # As a script, its own folder is on the path; the packages that it draws on lie one above.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(main())
