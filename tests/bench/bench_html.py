"""Quality and speed of main-text extraction, accuracy of charset decoding, speed of whole WARC files.

    python tests/bench/bench_html.py [--modes fast quality] > bench/results/html-DATE.md

Pages and gold are those of the test data (CORPUSMILL_TEST_DATA), folder 1_web. F1 is over bags of words, or of
characters where Chinese, Japanese or Korean make up a third of a page. CPU time of one core, children included.
`resiliparse` is its own main-content mode as it comes, `text` its whole text: what the modes must beat.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import orjson
import zstandard
from resiliparse.extract.html2text import extract_plain_text
from warcio.archiveiterator import ArchiveIterator

from curation.ingest.charset import UndecodableError, codec_of, decode
from curation.ingest.config import IngestConfig
from curation.ingest.extractor import Extractor
from curation.ingest.html import extract
from curation.ingest.record import Document, Slice, SliceReport
from curation.ingest.warc import read_warc

REPO = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data")) / "1_web"
ARCHIVES = ("pages-00", "pages-01")
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

MODES: dict[str, Callable[[str], str]] = {
    "text": lambda html: str(extract_plain_text(html)),
    "resiliparse": lambda html: str(extract_plain_text(html, main_content=True)),
    "fast": lambda html: extract(html, "fast").text,
    "quality": lambda html: extract(html, "quality").text,
}


def rows(name: str) -> dict[str, dict[str, Any]]:
    """Gold rows by id."""
    with zstandard.open(FOLDER / f"{name}.jsonl.zst", "rt", encoding="utf-8") as lines:
        return {row["id"]: row for row in map(orjson.loads, lines)}


def raw_pages(name: str) -> Iterator[tuple[str, bytes]]:
    """Fixture id and payload of each response."""
    with (FOLDER / f"{name}.warc.gz").open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type == "response":
                yield record.rec_headers.get_header("WARC-X-Fixture-Id"), record.content_stream().read()


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def bag(text: str) -> Counter[str]:
    letters = re.findall(r"\w", text)
    is_cjk = len(CJK.findall(text)) > 0.3 * len(letters)
    return Counter(letters if is_cjk else re.findall(r"\w+", text.lower()))


def f1(text: str, gold: str) -> float:
    found, wanted = bag(text), bag(gold)
    common = (found & wanted).total()
    return 2 * common / (found.total() + wanted.total()) if common else 0.0


def snippets(text: str, wanted: list[str] | None) -> tuple[int, int]:
    """How many of the snippets stand in the text, and how many there are."""
    flat = " ".join(text.split())
    return sum(" ".join(one.split()) in flat for one in wanted or ()), len(wanted or ())


def quality(modes: list[str]) -> None:
    """One row a mode and language."""
    gold = rows("gold")
    pages = {key: decode(raw).text for name in ARCHIVES for key, raw in raw_pages(name)}
    print(
        "## Main text\n\n| mode | pages | F1 (pages with gold) | leaked | missed | pages/s |\n| --- | --- | --- | --- | --- | --- |"
    )
    by_language: dict[str, dict[str, str]] = defaultdict(dict)
    for mode in modes:
        start = cpu()
        texts = {key: MODES[mode](html) for key, html in pages.items()}
        speed = len(pages) / (cpu() - start)
        scores: dict[str, list[float]] = defaultdict(list)
        leaked, missed = Counter[str](), Counter[str]()
        for key, text in texts.items():
            for language in ("all", str(gold[key]["lang"])):
                if gold[key].get("gold_text"):
                    scores[language].append(f1(text, gold[key]["gold_text"]))
                bad, n_bad = snippets(text, gold[key].get("must_not_have"))
                good, n_good = snippets(text, gold[key].get("must_have"))
                leaked.update({language: bad, f"{language} of": n_bad})
                missed.update({language: n_good - good, f"{language} of": n_good})
        for language in sorted(leaked.keys() | scores.keys()):
            if language.endswith(" of"):
                continue
            mean = sum(scores[language]) / len(scores[language]) if scores[language] else None
            score = "-" if mean is None else f"{mean:.3f} ({len(scores[language])})"
            of = f"{language} of"
            row = f"{score} | {leaked[language]}/{leaked[of]} | {missed[language]}/{missed[of]}"
            by_language[language][mode] = row
        print(f"| {mode} | {len(pages)} | {by_language['all'][mode]} | {speed:.0f} |", flush=True)
    print("\n| language | mode | F1 (pages with gold) | leaked | missed |\n| --- | --- | --- | --- | --- |")
    for language in sorted(set(by_language) - {"all"}):
        for mode in modes:
            print(f"| {language} | {mode} | {by_language[language][mode]} |")


def isolation() -> None:
    """What the child process costs beside the extraction."""
    pages = [decode(raw).text for name in ARCHIVES for _, raw in raw_pages(name)]
    for html in pages:
        extract(html, "fast")
    start = cpu()
    for html in pages:
        extract(html, "fast")
    direct = cpu() - start
    start = cpu()
    with Extractor("fast", 10) as extractor:
        for html in pages:
            extractor.extract(html)
    isolated = cpu() - start
    cost = (isolated - direct) / len(pages) * 1000
    print(
        f"\nThe child process costs {cost:.2f} ms a page ({isolated / direct:.2f} times the time without), its start included."
    )


def charsets() -> None:
    """Accuracy by encoding and class of declaration."""
    gold = rows("encodings_gold")
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    start = cpu()
    for key, raw in raw_pages("encodings"):
        row = gold[key]
        true_codec = "utf-16" if row["encoding"] == "utf-16" else codec_of(row["encoding"]) or row["encoding"]
        try:
            is_right = decode(raw).text == raw.decode(true_codec)
        except UndecodableError:
            is_right = False
        right[row["encoding"], row["mode"]].append(is_right)
    cost = (cpu() - start) / len(gold) * 1000
    kinds = ("declared", "undeclared", "wrong")
    print(f"\n## Charsets\n\n{cost:.1f} ms a page that is not UTF-8, reading included.\n")
    print("| encoding | declared | undeclared | declared wrongly |\n| --- | --- | --- | --- |")
    for encoding in sorted({one for one, _ in right}):
        cells = [right[encoding, kind] for kind in kinds]
        print(f"| {encoding} | " + " | ".join(f"{sum(cell)}/{len(cell)}" for cell in cells) + " |")


def archives() -> None:
    """Whole files, as a run reads them."""
    print(
        "\n## WARC files, fast mode\n\n| file | documents | pages/s a core | MB/s of HTML |\n| --- | --- | --- | --- |"
    )
    for name in ARCHIVES:
        path = FOLDER / f"{name}.warc.gz"
        n_bytes = sum(len(raw) for _, raw in raw_pages(name))
        size = path.stat().st_size
        start = cpu()
        found = list(read_warc(Slice(str(path), "warc", 0, size, size), IngestConfig(), SliceReport()))
        seconds = cpu() - start
        documents = sum(isinstance(one, Document) for one in found)
        print(f"| {name} | {documents} | {len(found) / seconds:.0f} | {n_bytes / seconds / 1e6:.0f} |")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    arguments = parser.parse_args()
    print(f"# HTML and charsets, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    load = os.getloadavg()[0]
    print(f"{model.group(1) if model else platform.machine()}, load {load:.1f}; Python {platform.python_version()}.\n")
    quality(arguments.modes)
    isolation()
    charsets()
    archives()


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"\nTook {time.monotonic() - started:.0f} s.")
