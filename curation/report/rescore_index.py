"""index.html of a training: all its re-scores on one page, each with a link to its report.

A function of the facts of each threshold; one without facts is listed by its number. Costs a look into each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from curation.report.build import template_environment
from curation.report.rescore_charts import bands
from curation.report.rescore_facts import read_summary, tokens
from curation.report.rescore_view import when
from curation.run import publish

__all__ = ["style", "write_index"]

HERE = Path(__file__).resolve().parent


def style() -> Markup:
    """The style sheet of the run report, and what is added to it here."""
    return Markup("\n".join((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "rescore.css")))


def write_index(training: Path) -> Path:
    """Write index.html into the folder of a training; returns its path."""
    rows = [_row(folder) for folder in sorted(training.iterdir(), reverse=True) if _is_threshold(folder)]
    names = sorted({str(row["facts"]["training_run"]) for row in rows if row["facts"]})
    points = [
        (float(one["threshold"]), tokens(one["threshold"]), one["distributions"]["all"]["bits_per_byte"]["quantiles"])
        for one in (row["facts"] for row in reversed(rows))
        if one and one["distributions"]["all"]["bits_per_byte"]["quantiles"]
    ]
    page = (
        template_environment()
        .get_template("rescore_index.html.j2")
        .render(
            name=names[0] if names else training.name,
            rows=rows,
            bands=bands(points, "bits per byte") if len(points) > 1 else Markup(""),
            style=style(),
            tokens=tokens,
            when=when,
        )
    )
    path = training / "index.html"
    with publish(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _is_threshold(folder: Path) -> bool:
    return folder.name.isdigit() and (folder / "threshold.json").is_file()


def _row(folder: Path) -> dict[str, Any]:
    """A re-score: its folder's name, its tokens, its facts (None: there are none that can be read)."""
    facts: dict[str, Any] | None
    try:
        facts = read_summary(folder)
    except (OSError, ValueError):
        facts = None  # the page says that there is no report
    return {
        "folder": folder.name,
        "threshold": int(folder.name),
        "facts": facts,
        "state": _done_state(folder) if facts is None else "",
        "linked": (folder / "report" / "report.html").is_file(),
    }


def _done_state(folder: Path) -> str:
    """How a threshold without a report ended; empty if it has not, or does not tell."""
    try:
        done = json.loads((folder / "_done.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(done.get("state") or "") if isinstance(done, dict) else ""
