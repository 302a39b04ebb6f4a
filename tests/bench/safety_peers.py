"""Other tools' safety filters: one driver for all, run by an interpreter that has the tool.

    PYTHON tests/bench/safety_peers.py PEER TEXTS ANSWERS [--words FOLDER]

TEXTS is a file of JSON lines with `text` and `lang`. ANSWERS gets one line with what was run and what it took, then a number a text: how
unsafe the peer calls it. FOLDER holds the lists of bad words that datatrove and Data-Juicer fetch from the network, one file a
language (`en`, `zh`, ...: LDNOOBW's, CC-BY-4.0), so that they work without it. The interpreter need not have this project's packages.

Peers:
- `alt-profanity-check`: probability of its linear model over English words. 0.5 and more is profane.
- `datatrove`: C4's filter of bad words; 1 where it drops, for languages that it has a list of. `keep_fraction` 0, no default language.
- `data-juicer`: share of flagged words among all; 0.045, its default limit, and more is dropped. Told the language, and words of FOLDER.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["PEERS"]

Rows = Sequence[dict[str, Any]]
Ask = Callable[[Rows], "list[float]"]
"""Numbers of some texts."""


def alt_profanity_check(_: Path | None) -> Ask:
    predict = importlib.import_module("profanity_check").predict_prob
    return lambda rows: [float(one) for one in predict([row["text"] for row in rows])]


def datatrove(words: Path | None) -> Ask:
    """C4BadWordsFilter; its files are those of --words instead of the ones it would fetch."""
    assert words is not None, "datatrove needs --words"
    module: Any = importlib.import_module("datatrove.pipeline.filters.c4_filters")
    document = importlib.import_module("datatrove.data").Document
    module.cached_asset_path_or_download = lambda url, *_, **__: str(words / url.rpartition("/")[2])
    made = module.C4BadWordsFilter(keep_fraction=0.0, fail_on_missing_language=False, default_language="none")

    def ask(rows: Rows) -> list[float]:
        found = []
        for row in rows:
            told = {"language": (row["lang"] or "none").partition("-")[0]}
            found.append(0.0 if made.filter(document(text=row["text"], id="0", metadata=told)) is True else 1.0)
        return found

    return ask


def data_juicer(words: Path | None) -> Ask:
    """FlaggedWordFilter with the words of --words, for each language its own, without a model of tokens."""
    assert words is not None, "data-juicer needs --words"
    stats = importlib.import_module("data_juicer.utils.constant").Fields.stats
    filters: Any = importlib.import_module("data_juicer.ops.filter.flagged_words_filter")
    lists = {path.name: path.read_text(encoding="utf-8").split("\n") for path in words.iterdir() if len(path.name) == 2}
    filters.load_words_asset = lambda *_, **__: {name: [w for w in found if w] for name, found in lists.items()}
    made: dict[str, Any] = {}

    def ask(rows: Rows) -> list[float]:
        found = []
        for row in rows:
            language = (row["lang"] or "").partition("-")[0]
            if language not in lists:
                found.append(0.0)
                continue
            each = made.setdefault(language, filters.FlaggedWordFilter(lang=language))
            samples: dict[str, list[Any]] = {"text": [row["text"]], stats: [{}]}
            each.compute_stats_batched(samples)
            found.append(float(samples[stats][0]["flagged_words_ratio"]))
        return found

    return ask


PEERS: dict[str, tuple[str, str, Callable[[Path | None], Ask], float]] = {
    "alt-profanity-check": ("profanity_check", "alt-profanity-check", alt_profanity_check, 0.5),
    "datatrove": ("datatrove", "datatrove", datatrove, 0.5),
    "data-juicer": ("data_juicer", "py-data-juicer", data_juicer, 0.045),
}
"""Module that a peer needs, distribution that it comes with, how it is made, and from which number on it drops."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("texts", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--words", type=Path)
    arguments = parser.parse_args()
    with arguments.texts.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    _, distribution, make, _ = PEERS[arguments.peer]
    ask = make(arguments.words)
    for row in rows[:50]:  # what a first text loads is not timed
        ask([row])
    begin = sum(os.times()[:2])
    found = ask(rows)
    summary = {
        "version": f"{distribution} {importlib.metadata.version(distribution)}",
        "cpu": sum(os.times()[:2]) - begin,
    }
    with arguments.answers.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in (summary, *found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
