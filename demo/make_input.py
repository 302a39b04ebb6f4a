"""Makes the demo input: a small crawl with everything that real ones have, from what is on every machine.

    python demo/make_input.py OUT

writes into the folder OUT, the same bytes every time in the same environment:

    pages.warc.gz     web pages of package documentation and hand-written columns, in many charsets
    docs.jsonl        long descriptions and licence texts of the installed packages
    crawl.jsonl.zst   the hand-written documents, doc strings, two very long documents; two zstd frames
    crawl-2.jsonl.gz  more doc strings, exact copies and near copies; two gzip members
    broken.jsonl      every kind of bad line, with good ones between
    cut.jsonl.gz      a stream that ends too early
    expected.json     what a right reader must find, known from how the files were made

Takes about 5 s and 200 MB of memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from demo.broken_lines import LineFile
    from demo.copies import Copy
    from demo.crawl_pages import Pages
    from demo.hand_written import HandWritten
    from demo.package_docs import PackageText

__all__ = ["main", "make_input"]

SEED = 20260302
MIN_DOC_STRING = 250
"""Characters of a doc string that may stand as a document of its own."""
N_CRAWL, N_CRAWL_2, N_BROKEN, N_CUT = 800, 600, 60, 90
N_EXACT, N_NEAR, N_APART = 260, 220, 60
LONG_CHARACTERS = 200_000


def make_input(out: Path) -> dict[str, Any]:
    """Write all files into `out` and return what `expected.json` says."""
    from demo import package_docs
    from demo.broken_lines import broken_file, cut_gzip
    from demo.crawl_pages import hand_written_pages, package_pages, write_pages
    from demo.hand_written import read_hand_written

    rng = Random(SEED)
    found = package_docs.distributions()
    hand_written = read_hand_written()
    modules = list(package_docs.modules(found))
    docs = list(package_docs.descriptions_and_licences(found))
    pools = _doc_strings(modules[::3], rng)
    pages = write_pages(
        [
            *package_pages([module for number, module in enumerate(modules) if number % 3], package_docs.topics()),
            *hand_written_pages(hand_written, rng),
        ],
        rng,
    )
    crawl, crawl_2, copies = _crawls(hand_written, docs, pools, rng)
    broken, cut = broken_file(pools["broken"]), cut_gzip(pools["cut"])
    doc_rows = [_row(f"pkg:{doc.name}", f"https://docs.example.org/{doc.name}", doc.text) for doc in docs]

    out.mkdir(parents=True, exist_ok=True)
    contents = {
        "pages.warc.gz": pages.content,
        "docs.jsonl": _lines(doc_rows),
        "crawl.jsonl.zst": _zstd(crawl),
        "crawl-2.jsonl.gz": _gzip(crawl_2),
        "broken.jsonl": broken.content,
        "cut.jsonl.gz": cut.content,
    }
    rows = {"docs.jsonl": doc_rows, "crawl.jsonl.zst": crawl, "crawl-2.jsonl.gz": crawl_2}
    expected = _expected(rows, {"broken.jsonl": broken, "cut.jsonl.gz": cut}, pages, copies)
    for name, content in contents.items():
        (out / name).write_bytes(content)
    text = json.dumps(expected, ensure_ascii=False, indent=1) + "\n"
    (out / "expected.json").write_text(text, encoding="utf-8")
    return expected


def _row(id_: str, url: str, text: str) -> dict[str, str]:
    return {"id": id_, "url": url, "text": text}


def _doc_strings(modules: Sequence[PackageText], rng: Random) -> dict[str, list[dict[str, str]]]:
    """Doc strings as documents, dealt out to the files; no text twice."""
    unique: dict[str, dict[str, str]] = {}
    for module in modules:
        for number, (name, text) in enumerate(module.entries):
            if len(text) >= MIN_DOC_STRING:
                url = f"https://api.example.org/{module.name}#{name}-{number}"
                unique.setdefault(text.strip(), _row(f"{module.name}#{name}-{number}", url, text))
    rows = iter(rng.sample(list(unique.values()), len(unique)))
    counts = {"broken": N_BROKEN, "cut": N_CUT, "crawl": N_CRAWL, "crawl_2": N_CRAWL_2}
    return {name: [row for _, row in zip(range(count), rows, strict=False)] for name, count in counts.items()}


def _crawls(
    hand_written: Sequence[HandWritten],
    docs: Sequence[PackageText],
    pools: Mapping[str, list[dict[str, str]]],
    rng: Random,
) -> tuple[list[dict[str, str]], list[dict[str, str]], dict[str, list[Copy]]]:
    """Rows of the two crawl files, and the copies planted in them."""
    from demo.copies import Source, exact_copies, near_copies

    written = [Source(row.id, row.url, row.text) for row in hand_written]
    extracted = [Source(**row) for row in pools["crawl"]]
    sources = [*written, *extracted[: len(written)]]  # half of the copies are of hand-written documents
    exact = exact_copies(sources, N_EXACT, rng)
    near, apart = near_copies([source for source in sources if len(source.text) >= 150], N_NEAR, N_APART, rng)

    originals = [_row(source.id, source.url, source.text) for source in [*written, *extracted]]
    planted = [_row(copy.id, copy.url, copy.text) for copy in [*exact, *near, *apart]]
    rng.shuffle(planted)
    a_fifth = len(planted) // 5  # copies stand in the file of their originals, too
    crawl = [*originals, *_long_documents(hand_written, docs), *planted[:a_fifth]]
    crawl_2 = [*pools["crawl_2"], *planted[a_fifth:]]
    rng.shuffle(crawl)
    rng.shuffle(crawl_2)
    return crawl, crawl_2, {"exact": exact, "near": near, "apart": apart}


def _long_documents(hand_written: Sequence[HandWritten], docs: Sequence[PackageText]) -> list[dict[str, str]]:
    """One document that is long by repetition, and one that is simply long."""
    story = next(row.text for row in hand_written if row.lang == "zh" and row.genre == "story")
    repeated = (story + "\n\n") * (LONG_CHARACTERS // len(story))
    legal = "\n\n".join(doc.text for doc in docs if not doc.name.endswith("/README"))[:LONG_CHARACTERS]
    return [
        _row("long-repeated", "https://www.example.org/long/repeated", repeated),
        _row("long-licences", "https://www.example.org/long/licences", legal),
    ]


# -- files -----------------------------------------------------------------------------------------


def _lines(rows: Iterable[Mapping[str, str]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def _zstd(rows: Sequence[Mapping[str, str]]) -> bytes:
    """Two frames with checksums: a plain stream reader stops after the first."""
    import zstandard

    middle = len(rows) // 2
    return b"".join(
        zstandard.ZstdCompressor(level=6, write_checksum=True).compress(_lines(half))
        for half in (rows[:middle], rows[middle:])
    )


def _gzip(rows: Sequence[Mapping[str, str]]) -> bytes:
    """Two members, as `cat` makes them."""
    middle = len(rows) // 2
    return gzip.compress(_lines(rows[:middle]), 6, mtime=0) + gzip.compress(_lines(rows[middle:]), 6, mtime=0)


# -- what must be found ----------------------------------------------------------------------------


def _expected(
    rows: Mapping[str, Sequence[Mapping[str, str]]],
    damaged: Mapping[str, LineFile],
    pages: Pages,
    copies: Mapping[str, Sequence[Copy]],
) -> dict[str, Any]:
    files: dict[str, dict[str, Any]] = {
        name: {"good": len(good), "bad": {}, "damaged": [], "blank_lines": 0} for name, good in rows.items()
    }
    for name, made in damaged.items():
        files[name] = {
            "good": made.good,
            "bad": dict(sorted(made.bad.items())),
            "damaged": list(made.damaged),
            "blank_lines": made.blank_lines,
        }
    files["pages.warc.gz"] = {
        "good": len(pages.good),
        "bad": dict(sorted(pages.bad.items())),
        "damaged": [],
        "other_records": dict(sorted(pages.other_records.items())),
    }
    bad = sum(sum(facts["bad"].values()) for facts in files.values())
    return {
        "files": dict(sorted(files.items())),
        "documents": sum(facts["good"] for facts in files.values()),
        "quarantined": bad,
        **{f"{group}_copies": [_copy_facts(copy) for copy in planted] for group, planted in copies.items()},
        "pages": [asdict(page) for page in sorted(pages.good, key=lambda page: page.url)],
    }


def _copy_facts(copy: Copy) -> dict[str, Any]:
    facts = asdict(copy)
    del facts["text"], facts["url"]
    return facts


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make_input.py", description="Make the demo input.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write into")
    out = parser.parse_args(arguments).out
    expected = make_input(out)
    for name, facts in expected["files"].items():
        size = (out / name).stat().st_size / 2**20
        print(f"{name:18} {size:6.1f} MB  {facts['good']:6,} good  {sum(facts['bad'].values()):4,} bad")
    print(f"{expected['documents']:,} documents and {expected['quarantined']:,} bad records in {out}")
    return 0


if __name__ == "__main__":
    # As a script, its own folder is on the path; the package that it belongs to lies one above.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(main())
