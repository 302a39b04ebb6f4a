"""report.html: one self-contained page about a run, to be looked at rather than read.

Reads the run's markers, passes once over its verdict files, and reads a few hundred sample documents: about a second for
100,000 documents and a dozen scores, memory for one shard's verdicts. The page loads nothing and runs no script. It is a
function of the run alone: building it again gives the same bytes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from curation.report import numbers, overview
from curation.report.charts import histogram
from curation.report.collect import Collected, collect
from curation.report.excerpt import EXCERPT_CHARS, cut, plain, quantity_of_bytes, shown
from curation.report.facts import RunFacts, equations, read_facts
from curation.report.pack_view import pack_view
from curation.report.quarantine import Quarantined, sample_quarantine
from curation.report.scripts import count_scripts
from curation.report.step_view import StepView, step_views
from curation.report.tally import TallyTable
from curation.run import publish

__all__ = ["template_environment", "write_report"]

HERE = Path(__file__).resolve().parent
MAX_HOST_ROWS = 25


def write_report(run_folder: Path) -> Path:
    """Write `report/report.html` of a run, finished or not; returns its path.

    Raises:
        RunError: run.json is missing or unreadable, or the page cannot be written.
    """
    facts = read_facts(Path(run_folder))
    found = collect(facts.shards, facts.steps)
    page = _page(facts, found)
    path = facts.run.report / "report.html"
    with publish(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _page(facts: RunFacts, found: Collected) -> str:
    totals = {step["name"]: step for step in facts.funnel["steps"]}
    steps = step_views(found, facts.shards, totals, facts.usual)
    quarantine, oddities = sample_quarantine(facts.run.quarantine)
    facts.problems.extend(oddities)
    pack = pack_view(facts)
    inputs, n_more_inputs = overview.input_rows(facts, found)
    times = overview.time_rows(facts, found, steps)
    return (
        template_environment()
        .get_template("page.html.j2")
        .render(
            facts=facts,
            info=facts.run.info,
            funnel=facts.funnel,
            equations=equations(facts),
            recounted=not overview.recount(facts, found) and bool(found.steps),
            alarms=overview.alarms(facts, found, steps),
            picture=overview.funnel_picture(facts, steps),
            steps=steps,
            n_dropped=sum(sum(step["dropped"].values()) for step in facts.funnel["steps"]),
            kept_so_far=_kept(facts),
            n_quarantined=sum(facts.funnel["quarantined"].values()),
            quarantine=_by_count(quarantine, facts.funnel["quarantined"]),
            sentences=_damage_sentences(),
            inputs=inputs,
            n_more_inputs=n_more_inputs,
            tables=_tables(facts, found, steps),
            lengths=histogram(found.text_bytes, "document size", "bytes", []) if found.text_bytes.total else None,
            pack=pack,
            times=times,
            wall=overview.wall_seconds(facts.run.info),
            style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        )
    )


def _kept(facts: RunFacts) -> int | None:
    """Documents that are kept, so far; None before any step is closed."""
    if facts.judge_all or not (facts.finished or facts.funnel["steps"]):
        return None
    kept = facts.funnel["steps"][-1]["docs_kept"] if facts.funnel["steps"] else facts.funnel["documents"]
    return None if kept is None else int(kept)


def _by_count(quarantine: dict[str, list[Quarantined]], counts: dict[str, int]) -> dict[str, list[Quarantined]]:
    """The reason with the most lines first; damage of whole files, which counts no line, last."""
    return dict(sorted(quarantine.items(), key=lambda item: (-counts.get(item[0], 0), item[0])))


def _damage_sentences() -> dict[str, str]:
    from curation.ingest.record import DAMAGE

    return dict(DAMAGE)


def _tables(facts: RunFacts, found: Collected, steps: list[StepView]) -> list[TallyTable]:
    """Documents by script, language and host."""
    tables = []
    scripts = count_scripts(facts.shards, found.scripts.places, found.survivors)
    if scripts.n_in:
        whole = scripts.n_in == found.sources.n_in
        caption = (
            f"Main script of {'all ' if whole else ''}{scripts.n_in:,} documents{'' if whole else ' drawn by hash'}"
        )
        tables.append(scripts.table(caption, "script", 20, "without letters"))
    # The language of the language step stands here once more, beside scripts and hosts; its other labels do not.
    tables += [table for step in steps if step.name == "language" for table in step.labels if table.head == "language"]
    if len(found.hosts):
        caption = f"Hosts by documents, {len(found.hosts) + found.hosts.forgotten:,} in all"
        tables.append(found.hosts.table(caption, "host", MAX_HOST_ROWS, "without an address"))
    return tables


def _code(text: str) -> Markup:
    """A sentence of a step with what stands between backticks set as code."""
    parts = [shown(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return shown(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


@cache
def template_environment() -> Environment:
    """Templates in which every expression is shown safely, whatever a template forgets."""

    def finalize(value: Any) -> Any:
        return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=numbers.count,
        bytes=quantity_of_bytes,
        duration=numbers.duration,
        plain=lambda text: escape(plain(text)),
        code=_code,
    )
    environment.globals.update(
        cut=cut, share=numbers.share, value=numbers.value, noun=numbers.noun, excerpt_chars=EXCERPT_CHARS
    )
    return environment
