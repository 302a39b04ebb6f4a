"""Write curation/filters/perplexity/perplexity_limits.tsv: where good text of each language lies under the shipped models.

    python tools/make_perplexity_limits.py [--data FOLDER] [--scores FILE]

FOLDER holds the test data (default: $CORPUSMILL_TEST_DATA, or ../shared/data). FILE keeps the scores of its texts, so that
a second run takes a second; without it they are computed, in about a minute. To be run anew whenever the models change.

Good text is that of the labelled crawl (`2_text`, quality `good`) and the main content of web pages and texts of teachers of
`6_quality`, development half: documents whose id has an even first byte of SHA-256; the other half is never read. It has two
dozen languages. For fifty others there are news sentences (`4_langid`), ten to a text.

- at most: 1 - `OUTER` of a language's texts, and further out by `MARGIN` of the distance from the median. News is all alike, and
  so are the pages of some languages here; so no language is held to less than pages of any language need that is written in
  Latin letters and read by the same model, neither in bits (listings, tables and names are the same everywhere) nor as a
  multiple of its median (where a character says more, all is further apart).
- at least: `LOW_SHARE` of what the least surprising texts of its model have. Nothing good was seen below; but what a model was
  trained on itself, and everybody quotes, lies far below what is new to it.
- a script, for languages that nobody has measured and text that nobody could name: what `MOST` of its languages are held to. Random
  letters have no language, or are taken for a rare one, and the rarest would set the limit.
- default: the widest of all. It is also the upper limit of scripts that no document here is in: news of a few lines says
  nothing of their spellings. And Greek and Hebrew with all their marks, which no model has read, are good text: no limit of
  theirs is below `MARKED`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import zstandard

from curation.filters.labels import UNDETERMINED, WRITTEN_IN
from curation.filters.language import Language, LanguageConfig
from curation.filters.perplexity import Perplexity, PerplexityConfig
from curation.filters.perplexity.limits import SHIPPED_LIMITS
from quality_models.language_codes import to_iso639_3

MARKED = {"Grek": 11.5, "Hebr": 16.0}
"""Bits that polytonic Greek and pointed Hebrew were seen to need, by script."""
ENOUGH = 20
"""Documents from which on those of a language say how far others may reach."""
OUTER = 0.004
MARGIN = 0.35
LOW_SHARE = 0.5
MOST = 0.9
SENTENCES = 10
"""In a text."""
FEWEST = 5
"""Texts that a line needs."""
DOCUMENTS, NEWS = "documents", "sentences"
DIGITS = 2


class Line(NamedTuple):
    """A line of the table: bits per character, from how many documents and how many texts of news, and which model reads it."""

    low: float
    middle: float
    high: float
    documents: int
    news: int
    model: str


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file, zstandard.ZstdDecompressor(max_window_size=1 << 28).stream_reader(file) as raw:
        yield from map(json.loads, io.TextIOWrapper(raw, "utf-8"))


def is_development(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def texts_of(data: Path) -> Iterator[tuple[str, str, str]]:
    """Source, language code (of sentences; else empty) and text."""
    good = {row["id"] for row in rows_of(data / "2_text" / "gold.jsonl.zst") if row["quality"] == "good"}
    for path in sorted((data / "2_text").glob("crawl-*.jsonl.zst")):
        yield from ((DOCUMENTS, "", r["text"]) for r in rows_of(path) if r["id"] in good and is_development(r["id"]))
    for row in rows_of(data / "6_quality" / "labelled.jsonl.zst"):
        if (row["scale"] != "web page part" or row["label"] == "main content") and is_development(row["id"]):
            yield DOCUMENTS, "", row["text"]
    sentences: dict[str, list[str]] = defaultdict(list)
    for row in rows_of(data / "4_langid" / "sentences.jsonl.zst"):
        if row["unit"] == "sentences":
            sentences[to_iso639_3(row["lang"])].append(row["text"])
    for code, all_of_them in sorted(sentences.items()):
        for first in range(0, len(all_of_them) - SENTENCES + 1, SENTENCES):
            yield NEWS, code, "\n".join(all_of_them[first : first + SENTENCES])


def scored(data: Path, store: Path | None) -> pa.Table:
    """Source, label, model and bits of every text that could be judged; of news only what got its language's label."""
    if store is not None and store.exists():
        return feather.read_table(store)
    language, step = Language(LanguageConfig()), Perplexity(PerplexityConfig())
    found: dict[str, list[Any]] = defaultdict(list)
    texts = list(texts_of(data))
    for first in range(0, len(texts), 500):
        part = texts[first : first + 500]
        batch = pa.RecordBatch.from_arrays([pa.array([text for *_, text in part], pa.large_string())], names=["text"])
        batch = batch.append_column("language.language", language.score(batch).column("language"))
        for (source, code, _), row in zip(part, step.score(batch).to_pylist(), strict=True):
            judged = row["perplexity"] is not None and row["tokens"] >= step.config.min_tokens
            if judged and (source == DOCUMENTS or row["language"].startswith(code)):
                found["source"].append(source)
                found["label"].append(row["language"])
                found["model"].append(row["model"])
                found["bits"].append(row["bits_per_character"])
    table = pa.table(found)
    if store is not None:
        feather.write_feather(table, store)
    return table


def script_of(label: str) -> str:
    code = label.partition("_")[2]
    return WRITTEN_IN.get(code, code)


def by_key(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Texts by label, and by language where it has several labels."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        if not row["label"].startswith(UNDETERMINED):
            found[row["label"]].append(row)
    labels: dict[str, list[str]] = defaultdict(list)
    for label in found:
        labels[label.partition("_")[0]].append(label)
    for code, mine in labels.items():
        if len(mine) > 1:
            found[code] = [row for label in mine for row in found[label]]
    return found


def own_line(rows: Sequence[Mapping[str, Any]]) -> Line:
    """Where the texts of a language end, and a margin beyond."""
    least, middle, high = np.quantile([row["bits"] for row in rows], [OUTER, 0.5, 1 - OUTER])
    documents = sum(row["source"] == DOCUMENTS for row in rows)
    return Line(
        LOW_SHARE * least,
        middle,
        high + MARGIN * (high - middle),
        documents,
        len(rows) - documents,
        rows[0]["model"],
    )


def limits(table: pa.Table) -> dict[str, Line]:
    """The lines of the table, by key; the default under ""."""
    texts = by_key(table)
    own = {key: own_line(rows) for key, rows in sorted(texts.items()) if len(rows) >= _least(key, texts)}
    measured = {key: line for key, line in own.items() if line.documents >= ENOUGH}
    lines = {}
    for key, line in own.items():
        peers = [one for other, one in measured.items() if one.model == line.model and other.endswith("_Latn")]
        reach = [max(one.high, one.high / one.middle * line.middle) for one in peers]
        lines[key] = line._replace(low=min([line.low, *(one.low for one in peers)]), high=max([line.high, *reach]))
    scripts: dict[str, list[Line]] = defaultdict(list)
    for key, line in lines.items():
        if "_" in key:
            scripts[f"{UNDETERMINED}_{script_of(key)}"].append(line)
    of_scripts = {key: _together(mine, MOST) for key, mine in sorted(scripts.items())}
    known = {script_of(key) for key, line in lines.items() if "_" in key and line.documents}
    marked = {key: _marked(key, line) for key, line in {**of_scripts, **lines}.items()}
    widest = _together([*lines.values()], 1)._replace(high=max(line.high for line in marked.values()))
    wide = {
        key: line if "_" not in key or script_of(key) in known else line._replace(high=widest.high)
        for key, line in marked.items()
    }
    return {"": widest, **wide}


def _marked(key: str, line: Line) -> Line:
    return line._replace(high=max(line.high, MARKED.get(script_of(key), 0.0) if "_" in key else 0.0))


def _least(key: str, texts: Mapping[str, Any]) -> int:
    """Texts that a line needs: more where the language as a whole has one, too."""
    return ENOUGH if key.partition("_")[0] in texts and "_" in key else FEWEST


def _together(lines: Sequence[Line], share: float) -> Line:
    """A line for several languages: the lowest of their lower limits, and an upper one that is enough for a share of them."""
    model = lines[0].model if len({line.model for line in lines}) == 1 else "several"
    documents, news = sum(line.documents for line in lines), sum(line.news for line in lines)
    middle = float(np.median([line.middle for line in lines]))
    high = float(np.quantile([line.high for line in lines], share))
    return Line(min(one.low for one in lines), middle, high, documents, news, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CORPUSMILL_TEST_DATA", default)))
    parser.add_argument("--scores", type=Path, help="file that keeps the scores, .feather")
    parser.add_argument("--output", type=Path, default=SHIPPED_LIMITS)
    arguments = parser.parse_args()
    lines = limits(scored(arguments.data, arguments.scores))
    head = (
        "# Bits per character of good text under the shipped n-gram models, by language, script and for all others.\n"
        "# Made by tools/make_perplexity_limits.py, whose text says how and from what; not to be edited by hand.\n"
        "language\tmin_bits_per_character\tmedian\tmax_bits_per_character\tdocuments\tnews\tmodel\n"
    )
    body = "".join(
        "\t".join([key or "default", *(f"{bits:.{DIGITS}f}" for bits in one[:3]), *map(str, one[3:])]) + "\n"
        for key, one in lines.items()
    )
    arguments.output.write_text(head + body, encoding="utf-8")
    print(f"{len(lines)} lines written to {arguments.output}")


if __name__ == "__main__":
    main()
