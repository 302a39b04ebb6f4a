"""Changed spellings: unsafe and harmless rows alike, the same each time, and never another label."""

from __future__ import annotations

import random
import unicodedata

import pytest

from quality_models.safety_training_augment import CHANGES, augmented
from quality_models.safety_training_rows import Row

ROWS = [Row(f"bet now {n}", ("gambling",), "en") for n in range(300)]
ROWS += [Row(f"the cat sleeps {n}", (), "en") for n in range(300)] + [Row("赌博网站", ("gambling",), "zh")] * 50


def test_the_same_seed_and_epoch_give_the_same_rows() -> None:
    """As many rows in the same order, with their labels; another epoch changes them otherwise."""
    first = augmented(ROWS, 1, 0)
    assert first == augmented(ROWS, 1, 0)
    assert first != augmented(ROWS, 1, 1)
    assert [row._replace(text="") for row in first] == [row._replace(text="") for row in ROWS]
    assert all(row.text.strip() for row in first)


def test_harmless_rows_are_changed_as_often() -> None:
    """Odd spelling must not tell the label."""
    shares = []
    for labelled in (True, False):
        pairs = [
            (a, b)
            for a, b in zip(ROWS, augmented(ROWS, 1, 0), strict=True)
            if bool(a.labels) == labelled and a.lang == "en"
        ]
        shares.append(sum(a.text not in b.text for a, b in pairs) / len(pairs))
    assert shares[0] == pytest.approx(shares[1], abs=0.1)
    assert 0.3 < shares[0] < 0.6


def test_company_is_harmless_and_of_the_same_language() -> None:
    """An advert may stand beside an innocent sentence, never the other way round; Chinese has none here, so gets none."""
    changed = augmented(ROWS, 3, 0)
    english = [row.text for row in changed[:300] if "the cat" in row.text]
    assert 50 < len(english) < 150
    assert not any("bet" in row.text.lower() for row in changed[300:600])
    assert not any("cat" in row.text.lower() for row in changed[600:])


@pytest.mark.parametrize("change", CHANGES)
def test_changes_take_any_text(change: object) -> None:
    """One character, many scripts and astral characters are fine, and something is left."""
    for text in ("a", "ab", "赌", "🔥", "Привет, мир", "บาคาร่า", "a\nb"):
        assert callable(change)
        changed = change(text, random.Random(1))
        assert unicodedata.normalize("NFKC", changed).strip()
