"""A change-impact sheet on disk: `sheet.html`, `sheet.md`, `pull-request.md` and `sheet.json` in one folder.

The page is self-contained, runs no script and is a function of what was compared: written again, it has the same bytes. What
the crawl says is escaped and personal data masked, as in every report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import BrokenBound
from curation.impact.counting.bounds_before import BoundChange
from curation.impact.counting.figure_types import Figures
from curation.impact.facts import Comparison
from curation.impact.sheet import sheet_json
from curation.impact.shown.documents import Documents, ShownDocument, documents_json
from curation.report.build import template_environment
from curation.report.impact_markdown import pull_request, sheet_markdown
from curation.report.impact_numbers import amount, interval, limits_words, percent, score_words, signed
from curation.report.impact_view import View, view_of
from curation.report.numbers import value
from curation.run import publish, write_json

__all__ = ["FILES", "write_sheet"]

HERE = Path(__file__).resolve().parent
FILES = ("sheet.html", "sheet.md", "pull-request.md", "sheet.json")


def write_sheet(
    comparison: Comparison,
    figures: Figures,
    broken: Sequence[BrokenBound],
    documents: Documents,
    folder: Path,
    *,
    bounds: ImpactConfig | None = None,
    bound_changes: Sequence[BoundChange] = (),
    loosened: Sequence[str] = (),
    command: str = "",
) -> None:
    """Write the four files of a sheet; the page last, so that where it is, the others are.

    Args:
        documents: see `curation.impact.shown.documents.choose_documents`.
        folder: made if it is not there.
        bounds: of the new side's config; None: it has none.
        bound_changes: bounds that are other ones on the base.
        loosened: see `curation.impact.counting.bounds_before.loosened_words`.
        command: that makes this sheet again.

    Raises:
        RunError: a file cannot be written, or a step's card cannot be read.
    """
    view = view_of(
        comparison, figures, broken, documents,
        bounds=bounds, bound_changes=bound_changes, loosened=loosened, command=command,
    )  # fmt: skip
    more = {"loosened": list(loosened), "changes": view.changes}
    write_json(folder / "sheet.json", sheet_json(comparison, figures, broken, documents_json(documents), **more))
    texts = {
        "sheet.md": sheet_markdown(comparison, figures, view),
        "pull-request.md": pull_request(comparison, figures, view),
        "sheet.html": _page(comparison, figures, view),
    }
    for name, text in texts.items():
        with publish(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _page(comparison: Comparison, figures: Figures, view: View) -> str:
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "impact.css"))
    return (
        template_environment()
        .get_template("impact.html.j2")
        .render(
            comparison=comparison,
            figures=figures,
            view=view,
            style=Markup(style),
            amount=amount,
            interval=interval,
            percent=percent,
            signed=signed,
            score_words=score_words,
            limits_words=limits_words,
            limit_word=value,
            unit_of=_unit_of,
        )
    )


def _unit_of(document: ShownDocument) -> str:
    """Unit of the score by which a document is borderline."""
    return document.scores[0].unit if document.scores else ""
