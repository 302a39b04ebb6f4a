"""The model card of a safety model: what it was trained on, how, how well it does, and where it fails. Markdown, no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from quality_models.safety_training_rows import Row

__all__ = ["model_card", "row_counts"]

NO_NOTES = "Not looked at yet. Give a file with `--card-notes`."


def row_counts(parts: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Rows by part, language, label and licence, as the card lists them; a row of two labels counts for both."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for part, rows in parts.items():
        for row in rows:
            for label in row.labels or ("",):
                counts[(part, row.lang, label, row.licence)] += 1
    return [
        {"part": part, "language": lang, "label": label or None, "licence": licence or None, "rows": n}
        for (part, lang, label, licence), n in sorted(counts.items())
    ]


def model_card(facts: Mapping[str, Any], name: str, notes: str = "") -> str:
    """README.md out of what safety.json holds."""
    metrics = facts["metrics"]
    parts = [f"# {_cell(name)}", _introduction(facts), "## Data", _data(facts["data"]), "## Training", _training(facts)]
    for part, title in (("test", "Test rows, which were not trained on"), ("development", "Development part")):
        measured = metrics.get(part, {}).get("by_language")
        if measured:
            parts += [f"## {title}", _measures(measured)]
            if part == "development":
                parts.append("Thresholds were chosen by these rows, so the figures flatter.")
    parts += ["## Thresholds", _thresholds(facts), "## Known failures", notes.strip() or NO_NOTES]
    return "\n\n".join(parts) + "\n"


def _introduction(facts: Mapping[str, Any]) -> str:
    base = facts["base"]
    return (
        f"Says of a text which of {len(facts['labels'])} categories of unwanted content it belongs to: "
        f"{', '.join(_cell(label) for label in facts['labels'])}. For Corpusmill's filter `safety_model`, to leave such "
        f"texts out of training data. Fine-tuned from {_cell(base['name'])} ({base['layers']} layers, sha256 "
        f"`{base['sha256']}`). Reads {facts['max_tokens']} tokens at a time. It is no judge of people: it errs, and what it "
        "drops should be looked at."
    )


def _data(data: Mapping[str, Any]) -> str:
    files = _table(("file", "sha256"), [(_cell(one["file"]), f"`{one['sha256']}`") for one in data["files"]])
    columns = ("part", "language", "label", "licence", "rows")
    counts = [
        (one["part"], _cell(one["language"]), _cell(one["label"] or "harmless"), _cell(one["licence"] or "not stated"), f"{one['rows']:,}")
        for one in data["counts"]
    ]  # fmt: skip
    totals = ", ".join(f"{n:,} {part}" for part, n in data["rows"].items())
    return f"Rows: {totals}. A row of several labels stands in several lines.\n\n{files}\n\n{_table(columns, counts)}"


def _training(facts: Mapping[str, Any]) -> str:
    settings = facts["settings"]
    listed = _table(("setting", "value"), [(key, _cell(str(value))) for key, value in settings.items()])
    history = facts["metrics"]["history"]
    rows = [(f"{one['epoch']:g}", f"{one['loss']:.4f}", f"{one['average_precision']:.4f}") for one in history]
    steps = _table(("epoch", "loss", "average precision, development part"), rows)
    return f"{facts['versions']}.\n\n{listed}\n\n{steps}\n\nThe state with the best average precision was kept."


def _measures(by_language: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    rows = [
        (_cell(language), _cell(label), f"{one['rows']:,}", f"{one['hits']:,}", *(_share(one[key]) for key in
        ("precision", "recall", "f1", "average_precision")))
        for language, labels in by_language.items() for label, one in labels.items()
    ]  # fmt: skip
    columns = ("language", "label", "rows", "of them with it", "precision", "recall", "F1", "average precision")
    return _table(columns, rows)


def _thresholds(facts: Mapping[str, Any]) -> str:
    limits, promised = facts["thresholds"], facts["calibration"]
    rows = [
        (_cell(label), f"{limits['default'][label]:.4f}", f"{limits['long'][label]:.4f}", *(
            f"{value:.4f}" for value in facts["temperature"][label]))
        for label in facts["labels"]
    ]  # fmt: skip
    table = _table(("label", "texts", "long documents", "Platt's a", "b"), rows)
    own = [
        (_cell(language), _cell(label), f"{value:.4f}")
        for language, labels in limits["languages"].items() for label, value in labels.items()
    ]  # fmt: skip
    said = (
        f"For a precision of {promised['precision']:g} on the development part, and at most "
        f"{promised['max_false_alarms']:.3%} of harmless windows and documents flagged by any label "
        f"({promised['good_windows']:,} windows of {promised['good_documents']:,} documents"
        f"{'' if promised['good_documents'] else ', so not promised'})."
    )
    notes = "".join(f"\n- {_cell(note)}" for note in promised["notes"])
    parts = [said + (f"\n{notes}" if notes else ""), table]
    return "\n\n".join([*parts, _table(("language", "label", "threshold"), own)] if own else parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _cell(text: str) -> str:
    """Text of others on one line of Markdown, without effect on what stands around it."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    for sign in "\\`*_[]<>|#":
        plain = plain.replace(sign, "\\" + sign)
    return plain
