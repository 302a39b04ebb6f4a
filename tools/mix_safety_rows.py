"""Mixes one training file of the safety model out of what we wrote, labelled sets and ordinary text.

    python -m tools.mix_safety_rows --rows rows.jsonl --public public.jsonl --negatives negatives.jsonl \\
        --dangerous dangerous.jsonl --out mixed.jsonl [--share 1.0]

The files are those of make_safety_rows, make_safety_public and make_safety_negatives (which says the order of all steps); of
each only rows of the split `train` are taken. What is done to them:

- Labelled sets have caps (`CAPS`), by language: else 27,000 sentences of a few hundred templates outweigh everything.
- Ordinary text is taken in turn by language, Chinese, Japanese, English and Korean three times as often, and cut to lengths
  that adverts have too: else length alone decides.
- Of what we wrote 10,000 rows come a second time, in evasive spelling or beside a harmless sentence. In half of the unsafe ones
  handles, addresses and numbers are taken out, so that what is offered decides and not a contact.
- Of rows of one text the first one's labels stand.

--share makes a smaller file of the same kind. The same files and the same Python give the same bytes; takes a few seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quality_models.safety_training_augment import augmented
from quality_models.safety_training_rows import Row as TrainingRow

Row = dict[str, Any]

SEED, SEED_OF_SPELLING = 7, 11
OURS = {"source": "written for Corpusmill", "licence": "CC0-1.0"}
CAPS: Mapping[str, int] = {
    "rewire-online/multilingual-hatecheck": 300,
    "thu-coai/COLDataset": 10_000,
    "t-davidson/hate-speech-and-offensive-language": 4_500,
    "UCI SMS Spam Collection": 2_600,
}
"""Rows of a source and language."""
MOST_HARMLESS: Mapping[str, int] = {"UCI SMS Spam Collection": 1_600}
ORDINARY, CHANGED = 12_000, 10_000
"""Rows of ordinary text; rows of ours that come again, changed."""
MAIN, MAIN_TURNS = ("zh", "zh-Hant", "en", "ja", "ko"), 3
LENGTHS = (60, 120, 120, 200, 400)
"""Characters to which ordinary text is cut, by chance; twice as many in other scripts than these:"""
DENSE = ("zh", "zh-Hant", "ja", "ko")
LONGEST_COMPANY = 120
SHORTEST = 8
HANDLE = re.compile(
    r"(?:https?://)?[\w.-]*\w\.(?:example|com|net|org|me|top|xyz|cc|vip)\S*|@\w{3,}|(?:\+?\d[\d -]{6,})"
)


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("rows", "public", "negatives", "dangerous"):
        options.add_argument(f"--{name}", type=Path, required=True, metavar="FILE.jsonl")
    options.add_argument("--out", type=Path, required=True, metavar="FILE.jsonl")
    options.add_argument("--share", type=float, default=1.0)
    given = options.parse_args(arguments)
    parts = [train_rows(path) for path in (given.rows, given.public, given.negatives, given.dangerous)]
    mixed = mix(parts[0], parts[1], parts[2], parts[3], share=given.share)
    with given.out.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in mixed)
    counts = Counter(label for row in mixed for label in (row["labels"] or ["harmless"]))
    print(f"{given.out}: {len(mixed):,} rows; " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()))
    return 0


def train_rows(path: Path) -> list[Row]:
    """Rows of the split `train`, or without any."""
    with path.open(encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row.get("split", "train") == "train"]


def mix(ours: list[Row], public: list[Row], ordinary: list[Row], dangerous: list[Row], share: float) -> list[Row]:
    """All rows in an order of chance, without `split`. share: of all parts, from 0 to 1."""
    chance = random.Random(SEED)
    ours = [row | OURS for row in ours]
    public = _capped(public, chance)
    ordinary = _in_turn(ordinary, int(ORDINARY * share), chance)
    dangerous = [row | {"pattern": f"head:{number}"} for number, row in enumerate(dangerous)]
    chance.shuffle(dangerous)
    rows = _some(ours, share, chance) + _some(public, share, chance) + ordinary + _some(dangerous, share, chance)
    again = [row for row in rows if row["source"] == OURS["source"]]
    chance.shuffle(again)
    rows += _changed(again[: int(CHANGED * share)], ordinary, chance)
    labels: dict[str, tuple[str, ...]] = {}
    rows = [row for row in rows if labels.setdefault(row["text"], tuple(row["labels"])) == tuple(row["labels"])]
    chance.shuffle(rows)
    return [{key: value for key, value in row.items() if key != "split"} for row in rows]


def _some(rows: Sequence[Row], share: float, chance: random.Random) -> list[Row]:
    drawn = list(rows)
    chance.shuffle(drawn)
    return drawn[: int(len(drawn) * share)]


def _capped(rows: Sequence[Row], chance: random.Random) -> list[Row]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["source"], row["lang"]].append(row)
    found: list[Row] = []
    for (source, _), group in groups.items():
        chance.shuffle(group)
        if source in MOST_HARMLESS:
            harmless = [row for row in group if not row["labels"]]
            group = [row for row in group if row["labels"]] + harmless[: MOST_HARMLESS[source]]
        found += group[: CAPS.get(source, len(group))]
    return found


def _in_turn(rows: Sequence[Row], most: int, chance: random.Random) -> list[Row]:
    """Ordinary text, language by language, cut short."""
    shuffled = list(rows)
    chance.shuffle(shuffled)
    left: dict[str, list[Row]] = defaultdict(list)
    for row in shuffled:
        left[row["lang"]].append(row)
    found: list[Row] = []
    turns = [lang for lang in left for _ in range(MAIN_TURNS if lang in MAIN else 1)]
    while len(found) < most and turns:
        for lang in list(turns):
            if left[lang]:
                row = left[lang].pop()
                length = chance.choice(LENGTHS) * (1 if lang in DENSE else 2)
                found.append(row | {"text": row["text"][:length]})
            else:
                turns = [other for other in turns if other != lang]
    return [row | {"pattern": f"neg:{number}"} for number, row in enumerate(found[:most])]


def _changed(rows: Sequence[Row], ordinary: Sequence[Row], chance: random.Random) -> list[Row]:
    """Rows without handles, in other spelling or beside ordinary text; what chance leaves as it is does not come again."""
    texts = [_without_handles(row["text"]) if row["labels"] and chance.random() < 0.5 else row["text"] for row in rows]
    sources = [_training_row(row, text) for row, text in zip(rows, texts, strict=True)]
    company = [_training_row(row, row["text"]) for row in ordinary if len(row["text"]) <= LONGEST_COMPANY]
    drawn = augmented(sources + company, SEED_OF_SPELLING, 0)[: len(rows)]
    pairs = zip(rows, drawn, strict=True)
    return [row | {"text": other.text} for row, other in pairs if other.text != row["text"]]


def _without_handles(text: str) -> str:
    bare = HANDLE.sub("", text).strip()
    return bare if len(bare) >= SHORTEST else text


def _training_row(row: Row, text: str) -> TrainingRow:
    return TrainingRow(text=text, labels=tuple(row["labels"]), lang=row["lang"], group=row["pattern"])


if __name__ == "__main__":
    sys.exit(main())
