"""Write curation/filters/rules/limits.tsv, the limits of the preset `massive`, from labelled text.

    python tools/make_rule_limits.py [--data FOLDER] [--scores FILE]

FOLDER holds the test data (default: $CORPUSMILL_TEST_DATA, or ../shared/data). FILE keeps the scores of its documents,
so that a second run takes seconds; without it they are computed, in half a minute.

A limit is what good text needs, but never stricter than `FLOORS`: what a reader calls a fault, chosen by hand on the
junk of the development half. Good text is that of the labelled crawl (`2_text`, quality `good`) and the good sides of
`6_quality` (main content of pages, texts of teachers), development half: documents whose id has an even first byte of
SHA-256. The other half is never read, so figures on it are honest.

- default: the limit that at most `LOSS` of good text passes, every language weighing alike.
- a script, a language, a label: only where more than `NOTABLE` of its good text, and more than one document, lies
  beyond the limit above it. Then the limit that at most `LOSS_OF_FEW` of it passes, with a margin, shrunk towards the limit
  above it by `SHRINK` documents.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import zstandard

from curation.filters.html_noise import HtmlNoise, HtmlNoiseConfig
from curation.filters.labels import lookup_keys
from curation.filters.language import Language, LanguageConfig
from curation.filters.length import Length, LengthConfig
from curation.filters.rules import Rules, RulesConfig
from curation.filters.rules.rule import BY_NAME, RULES

FOLDER = Path(__file__).resolve().parent.parent / "curation" / "filters" / "rules"

LOSS = 0.003
NOTABLE = 0.01
LOSS_OF_FEW = 0.006
SHRINK = 20
MARGIN = 0.05
"""Added to a limit of good text, relatively: the next document may be a little further out."""
FEWEST = 15
"""Documents from which on a language or script is looked at."""

FLOORS: Mapping[str, float] = {
    "longest_run": 0.1,
    "single_letter_words": 0.5,
    "upper_case": 0.5,
    "digits": 0.3,
    "other_signs": 0.35,
    "blanks": 0.6,
    "brackets": 0.3,
    "links": 0.7,
    "emoji": 0.02,
    "duplicate_lines": 0.6,
    "duplicate_line_characters": 0.25,
    "duplicate_paragraph_characters": 0.25,
    "top_word": 0.4,
    "top_2gram": 0.35,
    "top_3gram": 0.4,
    "duplicate_5gram": 0.5,
    "duplicate_10gram": 0.3,
    "hash_per_word": 0.4,
    "ellipsis_per_word": 0.3,
    "newlines_per_word": 0.5,
    "replacement_characters": 0.005,
    "misread_signs": 1,
    "mojibake": 0.008,
    "misread_han": 0.15,
    "inverted_case": 0.04,
    "disguised_letters": 0.08,
    "placeholder_words": 0.2,
    "filler_lines": 0.4,
    "call_words": 0.015,
    "furniture_words": 0.05,
    "contacts": 2,
    "number_rows": 0.4,
    "loose_lines": 0.3,
    "loose_line_characters": 0.45,
    "unended_sentences": 0.98,
    "removable_words": 0.3,
    "word_entropy": 0.6,
    "letter_words": 0.6,
    "long_words": 15,
    "short_words": 2,
    "longest_word": 1000,
}
"""The strictest limit of each rule that is on.

Those of top_word to top_3gram, brackets, other_signs and letter_words are wider than any junk needed, since other rules drop
what these drop: pages of commands, which repeat the name of what they explain, were dropped by the fifth with .2 (short pages
of `3_neardup`, which no limit was made from). stop_words is off for the same reason: it took one junk document that nothing
else took, and good ones whose language was named wrongly."""

FLOORS_BY_KEY: Mapping[str, Mapping[str, float]] = {
    "loose_lines": {"und_Hani": 0.15, "und_Jpan": 1},
    "loose_line_characters": {"und_Hani": 0.1, "und_Jpan": 1},
    "duplicate_5gram": {"und_Hani": 0.7, "und_Jpan": 0.7},
    "duplicate_10gram": {"und_Hani": 0.5, "und_Jpan": 0.5},
    "unended_sentences": {"und_Jpan": 1},
}
"""The same for single scripts, stricter or less so. Chinese is not broken into short lines; five of its characters are
three words, and a word of katakana is 11 characters. Japanese
verse, old and new, does without marks."""

Doubles = npt.NDArray[np.float64]


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file, zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file) as raw:
        yield from map(json.loads, io.TextIOWrapper(raw, "utf-8"))


def documents(data: Path) -> Iterator[dict[str, Any]]:
    """Id, text, quality and kind of each labelled document."""
    gold = {row["id"]: row for row in rows_of(data / "2_text" / "gold.jsonl.zst")}
    for path in sorted((data / "2_text").glob("crawl-*.jsonl.zst")):
        for row in rows_of(path):
            told = gold[row["id"]]
            yield {
                "id": row["id"],
                "text": row["text"],
                "quality": told["quality"],
                "kind": told["kind"] or "",
                "crawl": True,
            }
    for row in rows_of(data / "6_quality" / "labelled.jsonl.zst"):
        good = row["scale"] != "web page part" or row["label"] == "main content"
        about = {"quality": "good" if good else "part", "kind": row["scale"], "crawl": False}
        yield {"id": row["id"], "text": row["text"], **about}


def scored(data: Path, store: Path | None) -> pa.Table:
    """Scores of every document, with `development`, `quality`, `kind`, `crawl` and `before`: kept by the steps before."""
    if store is not None and store.exists():
        return feather.read_table(store)
    rows = list(documents(data))
    steps = (Language(LanguageConfig()), HtmlNoise(HtmlNoiseConfig()), Length(LengthConfig()), Rules(RulesConfig()))
    tables = []
    for first in range(0, len(rows), 500):
        part = rows[first : first + 500]
        table = {"text": pa.array([row["text"] for row in part], pa.large_string())}
        batch = pa.RecordBatch.from_pydict(table)
        batch = batch.append_column("language.language", steps[0].score(batch).column("language"))
        kept = np.ones(len(part), np.bool_)
        for step in steps[1:3]:
            kept &= step.decide(step.score(batch)).keep
        found = pa.Table.from_batches([steps[3].score(batch)])
        for name in ("quality", "kind", "crawl"):
            found = found.append_column(name, [[row[name] for row in part]])
        even = [hashlib.sha256(row["id"].encode()).digest()[0] % 2 == 0 for row in part]
        tables.append(found.append_column("development", [even]).append_column("before", [kept]))
    all_of_them = pa.concat_tables(tables).combine_chunks()
    if store is not None:
        feather.write_feather(all_of_them, store)
    return all_of_them


class Values:
    """One measure of good text, turned so that larger is worse; a text without it is beyond no limit."""

    def __init__(self, good: pa.Table, rule: str) -> None:
        self.sign = 1 if BY_NAME[rule].side == "max" else -1
        measured = good.column(BY_NAME[rule].measure).cast(pa.float64()).to_numpy()
        self.values: Doubles = np.where(np.isnan(measured), -np.inf, self.sign * measured)
        self.labels = np.array(good.column("language").to_pylist(), object)

    def beyond(self, limit: float, labels: npt.NDArray[np.bool_]) -> int:
        return int((self.values[labels] > limit).sum())

    def default(self, floor: float) -> float:
        """The least limit that at most LOSS of good text passes, every language with enough documents weighing alike."""
        _, places, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        weights = np.where(counts >= FEWEST, 1 / counts, 0)[places] / max((counts >= FEWEST).sum(), 1)
        order = np.argsort(-self.values)
        passed = np.cumsum(weights[order])
        first = int(np.searchsorted(passed, LOSS, side="right"))
        return max(floor, self.values[order[first]] if first < len(order) else floor)

    def of_group(self, labels: npt.NDArray[np.bool_], above: float) -> float | None:
        """The limit of some of the documents, or None where that of the level above suits them."""
        inside = np.sort(self.values[labels])[::-1]
        n = len(inside)
        if n < FEWEST or (inside > above).sum() <= max(1, NOTABLE * n):
            return None
        needed = inside[int(LOSS_OF_FEW * n)]
        needed += abs(needed) * MARGIN
        return float(above + (needed - above) * n / (n + SHRINK))


def limits_of(good: pa.Table, rule: str, floor: float) -> Iterator[tuple[str, float, int, int]]:
    """Label, limit, good documents and those of them that are beyond, for the default and whatever differs from it."""
    values, whole = Values(good, rule), BY_NAME[rule].unit in ("words", "sentences", "places")
    everything = np.ones(len(values.values), np.bool_)
    chosen = {"": rounded(values.default(values.sign * floor), values.sign, whole)}
    yield "", chosen[""], len(values.values), values.beyond(values.sign * chosen[""], everything)
    looked_at: set[bytes] = set()
    keys = {key for label in set(values.labels) for key in lookup_keys(label) if key}
    for key in sorted(keys, key=lambda key: (not key.startswith("und_"), "_" in key, key)):
        inside = np.array([key in lookup_keys(label) for label in values.labels], np.bool_)
        if inside.tobytes() in looked_at:  # a language in one script, a script of one language
            continue
        looked_at.add(inside.tobytes())
        above = next(chosen[one] for one in lookup_keys(_first(values.labels[inside])) if one in chosen)
        own = FLOORS_BY_KEY.get(rule, {}).get(key)
        start = values.sign * (above if own is None else own)
        limit = values.of_group(inside, start)
        if limit is None and own is not None:
            limit = start
        if limit is not None:
            chosen[key] = rounded(limit, values.sign, whole)
            yield key, chosen[key], int(inside.sum()), values.beyond(values.sign * chosen[key], inside)


def _first(labels: npt.NDArray[np.object_]) -> str:
    return str(labels[0])


def rounded(limit: float, sign: int, whole: bool) -> float:
    """Two digits that matter, or a whole number, away from good text; a turned limit is turned back."""
    digits = 1.0 if whole or not limit else 10.0 ** (int(np.floor(np.log10(abs(limit)))) - 1)
    return float(f"{sign * np.ceil(limit / digits - 1e-9) * digits:.6g}")


def is_free(rule: str, limit: float) -> bool:
    """Whether nothing can break a limit."""
    return limit <= 0 if BY_NAME[rule].side == "min" else BY_NAME[rule].unit == "share" and limit >= 1


def write_limits(table: pa.Table) -> None:
    good = table.filter(pc.and_(table.column("development"), pc.equal(table.column("quality"), "good")))
    lines = [
        "# Limits of the preset massive, by tools/make_rule_limits.py, which says how.",
        f"# From {good.num_rows} good documents of the development half of the test data, {datetime.now(timezone.utc):%Y-%m-%d}.",
        f"# At most {LOSS:.1%} of good text beyond; documents: good ones; beyond: those past it, also where a nearer limit keeps them.",
        "rule\tlabel\tlimit\tdocuments\tbeyond",
    ]
    for rule in RULES:
        if rule.name in FLOORS:
            for label, limit, documents, beyond in limits_of(good, rule.name, FLOORS[rule.name]):
                shown = "off" if is_free(rule.name, limit) else f"{limit:g}"
                lines.append("\t".join((rule.name, label, shown, str(documents), str(beyond))))
    (FOLDER / "limits.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the limits of the preset massive from labelled text.")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CORPUSMILL_TEST_DATA", beside)))
    parser.add_argument("--scores", type=Path, help="file that keeps the scores")
    arguments = parser.parse_args()
    table = scored(arguments.data, arguments.scores)
    write_limits(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
