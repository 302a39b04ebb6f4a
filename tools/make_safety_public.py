"""Rows of public data sets for training the safety model, in the form of tools/make_safety_rows.py.

    python tools/make_safety_public.py --sources FOLDER --held-out labelled.jsonl.zst --out public.jsonl

FOLDER holds clones of the repositories below, each in OWNER+NAME (bare or not). Only sets whose licences allow training
and shipping what was trained are read. `split` is `test` for what the model must never see: one topic of COLD, every
fourth template of HateCheck and of its translations, all of surge-ai/toxicity. Texts that stand in --held-out are left
out of `train`, but for those of HateCheck, whose templates decide. What a row's annotators did not look for counts as absent.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import html
import io
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

Row = dict[str, Any]

HELD_OUT_TOPIC = "region"
HELD_OUT_TEMPLATES = 4
"""Every template whose number this divides is held out."""
BY_TEMPLATE = ("paul-rottger/hatecheck-data", "rewire-online/multilingual-hatecheck")
MOST_OFFENSIVE_TWEETS = 5000
TRANSLATIONS = {
    "arabic": "ar",
    "dutch": "nl",
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "italian": "it",
    "mandarin": "zh",
    "polish": "pl",
    "portuguese": "pt",
    "spanish": "es",
}
MENTION = re.compile(r"(?:RT )?@\w+:?|https?://\S+")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sources", type=Path, required=True)
    options.add_argument("--held-out", type=Path, required=True)
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    with zstandard.open(given.held_out, "rt", encoding="utf-8") as file:
        held_out = {json.loads(line)["text"].strip() for line in file}
    seen: set[str] = set()
    counts: Counter[str] = Counter()
    with given.out.open("w", encoding="utf-8") as out:
        for row in _rows(given.sources):
            text = row["text"].strip()
            if not text or text in seen or _is_held_out(row, held_out):
                continue
            seen.add(text)
            out.write(json.dumps(row | {"text": text}, ensure_ascii=False) + "\n")
            counts[f"{row['source']} {row['lang']} {row['split']} {','.join(row['labels']) or 'harmless'}"] += 1
    for what, count in sorted(counts.items()):
        print(f"{count:>7,} {what}")


def _is_held_out(row: Row, texts: set[str]) -> bool:
    return row["split"] == "train" and row["text"].strip() in texts and row["source"] not in BY_TEMPLATE


def _rows(sources: Path) -> Iterator[Row]:
    yield from _cold(sources)
    yield from _davidson(sources)
    yield from _hatecheck(sources)
    yield from _toxicity(sources)
    yield from _sms(sources)


def _read(sources: Path, repository: str, path: str, encoding: str = "utf-8-sig") -> io.StringIO:
    folder = sources / repository
    bare = next(one for one in (folder / ".git", folder / "repo", folder) if (one / "HEAD").exists())
    command = ["git", f"--git-dir={bare}", "show", f"HEAD:{path}"]
    return io.StringIO(subprocess.run(command, check=True, capture_output=True).stdout.decode(encoding), newline="")


def _row(text: str, lang: str, labels: list[str], source: str, licence: str, group: str, test: bool) -> Row:
    return {
        "text": text,
        "lang": lang,
        "labels": labels,
        "source": source,
        "licence": licence,
        "pattern": f"{source}:{group}",
        "split": "test" if test else "train",
    }


def _cold(sources: Path) -> Iterator[Row]:
    """Chinese comments, offensive or not."""
    name = "thu-coai/COLDataset"
    for number, cells in enumerate(csv.DictReader(_read(sources, name.replace("/", "+"), "COLDataset/train.csv"))):
        labels = ["hate"] if cells["label"] == "1" else []
        test = cells["topic"] == HELD_OUT_TOPIC
        yield _row(cells["TEXT"], "zh", labels, name, "Apache-2.0", str(number), test)


def _davidson(sources: Path) -> Iterator[Row]:
    """English tweets: hate, offensive language, neither."""
    name, offensive = "t-davidson/hate-speech-and-offensive-language", 0
    for number, cells in enumerate(csv.DictReader(_read(sources, name.replace("/", "+"), "data/labeled_data.csv"))):
        offensive += cells["class"] == "1"
        if cells["class"] == "1" and offensive > MOST_OFFENSIVE_TWEETS:
            continue
        text = re.sub(r"\s+", " ", MENTION.sub(" ", html.unescape(cells["tweet"]))).strip(' "!:')
        yield _row(text, "en", ["hate"] if cells["class"] != "2" else [], name, "MIT", str(number), test=False)


def _hatecheck(sources: Path) -> Iterator[Row]:
    """Made sentences, hateful and not, by template: English and ten translations."""
    name, other = BY_TEMPLATE
    licence = "CC-BY-4.0"
    tables = [(name, "en", _read(sources, name.replace("/", "+"), "test_suite_cases.csv"))]
    for language, code in TRANSLATIONS.items():
        path = f"MHC Final Cases/hatecheck_cases_final_{language}.csv"
        tables.append((other, code, _read(sources, other.replace("/", "+"), path)))
    for source, code, table in tables:
        for cells in csv.DictReader(table):
            template = int(float(cells["ref_templ_id"] or cells["templ_id"]))
            labels = ["hate"] if cells["label_gold"] == "hateful" else []
            group = f"{code}{cells['templ_id']}"
            yield _row(cells["test_case"], code, labels, source, licence, group, template % HELD_OUT_TEMPLATES == 0)


def _toxicity(sources: Path) -> Iterator[Row]:
    """English comments, for testing only."""
    name = "surge-ai/toxicity"
    for number, cells in enumerate(csv.DictReader(_read(sources, name.replace("/", "+"), "toxicity_en.csv"))):
        labels = ["hate"] if cells["is_toxic"] == "Toxic" else []
        yield _row(cells["text"], "en", labels, name, "MIT", str(number), test=True)


def _sms(sources: Path) -> Iterator[Row]:
    """English text messages, advertising or not: Almeida and Gomez Hidalgo's collection, as UCI gives it (CC BY 4.0)."""
    table = _read(sources, "hamzaaacodes+sms-spam-collection", "SMSSpamCollection")
    for line in table:
        kind, _, text = line.partition("\t")
        digest = hashlib.sha256(text[:24].encode()).hexdigest()[:8]  # many messages are variants of one another
        labels = ["spam"] if kind == "spam" else []
        yield _row(text, "en", labels, "UCI SMS Spam Collection", "CC-BY-4.0", digest, test=False)


if __name__ == "__main__":
    main()
