"""Figures of near-duplicate removal, on 31,500 documents of which every similar pair is known.

The gold's definition of a shingle is the step's, but for one thing: it cuts Han, kana and Hangul by character and no other
script. So the step is judged with `by_character` set to these, at two thresholds, and with its default.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from curation.dedup.near import Near
from curation.ids import doc_id, text_id
from curation.shards import open_table
from tests.bench.near_gold import Gold as NearGold
from tests.bench.near_gold import Score, score
from tests.fakes import SOURCE, make_run, run_steps
from tests.gate.figures import NOTHING_CHANGED, Changed, Figure, Figures
from tests.gate.gold import Gold

__all__ = ["GOLD_SCRIPTS", "Outcome", "judged_by", "near"]

GOLD_SCRIPTS = ("han", "hiragana", "katakana", "hangul")
FEW = 20
"""Pairs of a language below which it does not count by itself."""
SHARDS = 2

Outcome = tuple[frozenset[str], dict[str, str]]
"""The documents that are kept, and the kept partner of every other one."""


def near(gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
    """By the gold's definition at .9 and .8: recall by language, precision, groups and partners. And the default's precision."""
    found: Figures = {}
    for threshold in (0.9, 0.8):
        judged = judged_by(gold.near, _step({"threshold": threshold, "by_character": GOLD_SCRIPTS}, changed))
        told = score(gold.near, judged[0], threshold, judged[1])
        found |= _figures(f"{threshold}", told)
        if threshold == 0.9:
            found |= _by_language(gold.near, told)
    default = judged_by(gold.near, _step({}, changed))
    told = score(gold.near, default[0], 0.9, default[1])
    found["near.recall.default"] = Figure(told.pairs - len(told.missed), told.pairs)
    found["near.precision.default"] = Figure(told.removed - len(told.wrongly_removed), told.removed)
    return found


def _step(config: Mapping[str, Any], changed: Changed) -> Near:
    given = changed.get("near")
    kind = Near if given is None else type(given)
    settings = {} if given is None else given.config.model_dump()
    made = kind(kind.Config.model_validate({**settings, **config}))
    assert isinstance(made, Near)
    return made


def judged_by(gold: NearGold, step: Near) -> Outcome:
    """What the step keeps of the gold's documents."""
    texts = list(gold.texts.values())
    names = {doc_id(SOURCE, row, 0, text_id(text)): name for row, (name, text) in enumerate(gold.texts.items())}
    cut = len(texts) // SHARDS
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
        judged = run_steps(make_run(Path(folder), [texts[:cut], texts[cut:]]), [step])
        partners: dict[str, str] = {}
        for shard in judged.shards:
            rows = open_table(judged.folder(step.name) / f"{shard.name}.arrow").read_all()
            kept, partner = rows.column("keep").to_pylist(), rows.column("kept_doc_id").to_pylist()
            ids = open_table(shard.path).read_all().column("doc_id").to_pylist()
            partners |= {
                names[one]: names[other] for one, keep, other in zip(ids, kept, partner, strict=True) if not keep
            }
    return frozenset(gold.texts) - partners.keys(), partners


def _figures(name: str, told: Score) -> Figures:
    return {
        f"near.recall.{name}": Figure(told.pairs - len(told.missed), told.pairs),
        f"near.precision.{name}": Figure(told.removed - len(told.wrongly_removed), told.removed),
        f"near.groups_not_lost.{name}": Figure(told.groups - len(told.lost), told.groups),
        f"near.partner_is_near.{name}": Figure(told.removed - len(told.chained), told.removed),
        f"near.partner_is_kept.{name}": Figure(told.removed - len(told.partner_removed), told.removed),
    }


def _by_language(gold: NearGold, told: Score) -> Figures:
    """Recall of the pairs whose first document is of a language."""
    pairs = Counter(gold.languages[one] for one, _ in gold.near(told.threshold))
    missed = Counter(wrong.language for wrong in told.missed)
    return {
        f"near.recall of {language}.{told.threshold}": Figure(n - missed[language], n)
        for language, n in sorted(pairs.items())
        if n >= FEW
    }
