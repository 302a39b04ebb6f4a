"""The model card says what it was made of, and nothing in the data can change its form."""

from __future__ import annotations

from quality_models.safety_card import NO_NOTES, model_card, row_counts
from quality_models.safety_training_rows import Row

ROWS = [
    Row("a", ("spam", "hate"), "zh", licence="CC0"),
    Row("b", (), "zh", licence="MIT"),
    Row("c", (), "zh", licence="MIT"),
]


def facts() -> dict:
    one = {"rows": 3, "hits": 1, "precision": None, "recall": 1.0, "f1": 0.5, "average_precision": 0.25}
    return {
        "labels": ["spam", "hate"],
        "max_tokens": 128,
        "base": {"name": "tiny|*base*", "layers": 2, "sha256": "ab"},
        "data": {
            "files": [{"file": "rows.jsonl", "sha256": "cd"}],
            "rows": {"train": 2, "dev": 1, "test": 0},
            "counts": row_counts({"train": ROWS[:2], "dev": ROWS[2:]}),
        },
        "settings": {"layers": 2},
        "versions": "torch 1",
        "thresholds": {
            "default": {"spam": 0.5, "hate": 0.6},
            "long": {"spam": 0.7, "hate": 0.8},
            "languages": {"zho": {"spam": 0.4}},
        },
        "temperature": {"spam": [1.0, 0.0], "hate": [2.0, 0.5]},
        "calibration": {
            "precision": 0.95, "max_false_alarms": 0.001, "good_documents": 9, "good_windows": 90, "notes": ["hate: rare"],
        },
        "metrics": {
            "history": [{"epoch": 0.5, "loss": 0.1, "average_precision": 0.9}],
            "development": {"by_language": {"all": {"spam": one}}},
            "test": {"by_language": {"all": {"hate": one}}},
        },
    }  # fmt: skip


def test_counts_by_part_language_label_and_licence() -> None:
    """A row of two labels counts for both; equal ones are summed."""
    found = {(one["part"], one["label"], one["licence"]): one["rows"] for one in row_counts({"train": ROWS})}
    assert found == {("train", "spam", "CC0"): 1, ("train", "hate", "CC0"): 1, ("train", None, "MIT"): 2}


def test_says_all_that_matters() -> None:
    """Data with licences, settings, metrics, thresholds, promises and what they could not keep."""
    card = model_card(facts(), "mine", "- It reads *no* irony.")
    for wanted in (
        "CC0",
        "rows.jsonl",
        "torch 1",
        "| - | 1.000 | 0.500 | 0.250 |",
        "0.7000",
        "zho",
        "hate: rare",
        "*no* irony",
    ):
        assert wanted in card, wanted
    assert card.index("Test rows") < card.index("Development part")
    assert NO_NOTES in model_card(facts(), "mine")


def test_names_of_others_stay_text() -> None:
    """Marks of Markdown and control characters in names have no effect."""
    card = model_card(facts(), "a\n# b<script>")
    assert "tiny\\|\\*base\\*" in card
    assert card.startswith("# a \\# b\\<script\\>\n")
