"""report.html and facts.json of a re-score: what a checkpoint said of the crawl, beside what the former ones said.

    path = write_rescore_report(threshold_folder(root, training_run, threshold))

Reads the folder of the threshold, facts.json of the thresholds below it, a few dozen texts of the runs, and the markers of
runs that used the blacklist since. Self-contained, no script, a function of what lies on disk: written again, it tells
what has come since. The training's index.html, which lists all its re-scores, is written with it. Costs 2 s for a million
scored documents.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from curation.report.build import template_environment
from curation.report.rescore_facts import collect_facts, facts_path, former_facts, summary_of, tokens
from curation.report.rescore_index import style, write_index
from curation.report.rescore_samples import sample_chosen
from curation.report.rescore_threshold import read_threshold
from curation.report.rescore_view import view_of, when
from curation.run import publish, write_json

__all__ = ["write_rescore_report"]


def write_rescore_report(folder: Path) -> Path:
    """Write `facts.json`, `summary.json` and `report.html` into `report/` of a threshold, finished or not, and the training's index.html.

    Returns:
        The path of report.html.

    Raises:
        RunError: threshold.json is missing or damaged, or the files cannot be written.
    """
    threshold = read_threshold(Path(folder))
    formers, missing = former_facts(threshold)
    facts = collect_facts(threshold, formers)
    score = str(threshold.setting("choose").get("score") or "bits_per_byte")
    samples = sample_chosen(threshold, score)
    page = (
        template_environment()
        .get_template("rescore.html.j2")
        .render(
            facts=facts,
            view=view_of(facts, formers, threshold.problems, missing),
            samples=samples,
            score=score,
            settings=yaml.safe_dump(facts["settings"], sort_keys=False, allow_unicode=True, width=100),
            style=style(),
            tokens=tokens,
            when=when,
        )
    )
    write_json(facts_path(threshold.folder), facts)
    write_json(facts_path(threshold.folder).with_name("summary.json"), summary_of(facts))
    path = threshold.folder / "report" / "report.html"
    with publish(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    write_index(threshold.folder.parent)
    return path
