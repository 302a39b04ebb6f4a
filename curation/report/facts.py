"""What lies on disk of a run, as plain facts: state, funnel, steps, inputs, pack. A broken run gives fewer of them.

A finished run is read from `report/funnel.json`. Of any other run the markers say how far it came, and whatever
is missing or damaged becomes a sentence in `problems`: a report of a failed run is there to be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curation.errors import CorpusmillError
from curation.report.collect import StepFolder
from curation.report.numbers import noun
from curation.run import Run, read_json
from curation.shards import Shard, shards_of

__all__ = ["Equation", "RunFacts", "equations", "read_facts"]


@dataclass
class RunFacts:
    """A run as the report sees it."""

    run: Run
    funnel: dict[str, Any]
    """As in funnel.json; of an unfinished run only what is done, `documents` and `kept` may be None."""
    finished: bool
    shards: list[Shard] = field(default_factory=list)
    steps: list[StepFolder] = field(default_factory=list)
    not_reached: list[str] = field(default_factory=list)
    """Steps of the config of which nothing lies on disk."""
    open_steps: list[str] = field(default_factory=list)
    """Steps with some verdicts that were not closed."""
    inputs: list[dict[str, Any]] = field(default_factory=list)
    ignored: list[list[str]] = field(default_factory=list)
    """Files that were named and not read: source, why."""
    notes: list[str] = field(default_factory=list)
    """What ingest says of the run as a whole."""
    usual: dict[str, Any] = field(default_factory=dict)
    """By step what `curation.report.usual` found: rules that take nothing or far more than usual; of finished runs only."""
    pack: dict[str, Any] | None = None
    config_text: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def judge_all(self) -> bool:
        """Every step judged every document: there is no funnel, only verdicts side by side."""
        return bool(self.run.info.get("judge_all"))


@dataclass(frozen=True)
class Equation:
    """One line of the conservation law: left = sum of the right."""

    left: tuple[str, int]
    right: tuple[tuple[str, int], ...]

    @property
    def holds(self) -> bool:
        return self.left[1] == sum(value for _, value in self.right)


def read_facts(folder: Path) -> RunFacts:
    """Read everything but verdicts and texts.

    Raises:
        RunError: run.json itself is missing or unreadable.
    """
    run = Run(folder)
    facts = RunFacts(run, _empty_funnel(run.run_id), finished=False)
    if run.config_path.exists():
        facts.config_text = run.config_path.read_text(encoding="utf-8", errors="replace")
    ingested = read_fact(facts, run.shards / "_done.json")
    if ingested is not None:
        facts.shards = shards_of(run)
        facts.funnel.update({key: ingested[key] for key in ("documents", "quarantined")})
        facts.funnel["inputs"] = {key: ingested[key] for key in ("files", "bytes", "lines")}
        facts.funnel["ingest"] = {
            key: ingested[key] for key in ("seconds", "peak_rss_mb", "damaged_files") if key in ingested
        }
    plan = read_fact(facts, run.shards / "plan.json") or {}
    facts.ignored, facts.notes = plan.get("ignored", []), list(plan.get("notes", []))
    blank = (ingested or {}).get("blank_lines", 0)
    if blank:
        facts.notes.append(f"{noun(blank, 'blank line is', 'blank lines are')} not counted as lines")
    facts.inputs = read_fact(facts, run.folder / "inputs.json") or []
    if ingested is None and facts.inputs:
        _count_inputs(facts)
    funnel = read_fact(facts, run.report / "funnel.json") if run.info["state"] == "done" else None
    if funnel is not None and all("digest" in step for step in funnel["steps"]):
        facts.funnel, facts.finished = funnel, True
        _steps_of_funnel(facts)
    else:
        _steps_of_config(facts)
        if funnel is not None:
            facts.funnel, facts.finished = funnel, True
    if facts.finished:
        facts.usual = _usual(facts)
    if facts.funnel["packed"] is not None or not facts.finished:
        facts.pack = read_fact(facts, run.pack / "_done.json")
    return facts


def _empty_funnel(run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "inputs": None,
        "documents": None,
        "quarantined": {},
        "ingest": {},
        "steps": [],
        "kept": None,
        "packed": None,
    }


def read_fact(facts: RunFacts, path: Path) -> Any:
    """A JSON file of the run; None if it does not exist. A damaged one is a problem to be shown."""
    if not path.exists():
        return None
    try:
        return read_json(path)
    except CorpusmillError as error:
        facts.problems.append(str(error))
        return None


def _count_inputs(facts: RunFacts) -> None:
    """Ingest read everything and was then refused, as happens with too much quarantine: inputs.json has the numbers."""
    bad: Counter[str] = Counter()
    for entry in facts.inputs:
        bad.update(entry["bad"])
    good = sum(entry["lines_good"] for entry in facts.inputs)
    facts.funnel["inputs"] = {
        "files": len(facts.inputs),
        "bytes": sum(entry["bytes"] for entry in facts.inputs),
        "lines": good + bad.total(),
    }
    facts.funnel.update(documents=good, quarantined=dict(bad.most_common()))


def _steps_of_funnel(facts: RunFacts) -> None:
    """Folders of a finished run: the funnel names each step's digest, so no code of today is asked."""
    for index, step in enumerate(facts.funnel["steps"]):
        _add_step(facts, index, step["name"], facts.run.steps / f"{index + 1:02d}-{step['name']}-{step['digest']}")


def _usual(facts: RunFacts) -> dict[str, Any]:
    """What was found of the verdicts that the run ended with, by step."""
    from curation.report.usual import usual_of

    found = {}
    for step in facts.funnel["steps"]:
        try:
            found[step["name"]] = usual_of(facts.run.report, step["name"], step.get("digest", ""))
        except CorpusmillError as error:
            facts.problems.append(str(error))
            break
    return found


def _steps_of_config(facts: RunFacts) -> None:
    """Folders of the config that lies in the run; older digests of changed thresholds lie beside them."""
    from curation.pipeline import Pipeline

    try:
        pipeline = Pipeline.open(facts.run.folder)
        placed = pipeline.placed if facts.shards else []
        facts.not_reached = [step.name for step in pipeline.config.steps]
    except (CorpusmillError, OSError) as error:
        facts.problems.append(f"the config of this run cannot be read by this version of the code: {error}")
        return
    for step in placed:
        if not (step.folder / "_step.json").exists():
            break
        facts.not_reached.remove(step.name)
        _add_step(facts, step.index, step.name, step.folder)
    if placed and not facts.not_reached and not facts.open_steps:
        facts.funnel["kept"] = facts.funnel["steps"][-1]["docs_kept"]
    elif not pipeline.config.steps:
        facts.funnel["kept"] = facts.funnel["documents"]


def _add_step(facts: RunFacts, index: int, name: str, folder: Path) -> None:
    card = read_fact(facts, folder / "_step.json")
    if card is None:
        facts.problems.append(f"{folder.name} holds no readable _step.json: its verdicts are not shown.")
        return
    done = read_fact(facts, folder / "_done.json")
    facts.steps.append(StepFolder(index, name, folder, card, (done or {}).get("facts", {})))
    if facts.finished:
        return
    if done is None:
        facts.open_steps.append(name)
    else:
        facts.funnel["steps"].append({key: value for key, value in done.items() if key not in ("shards", "facts")})


def equations(facts: RunFacts) -> list[Equation]:
    """The conservation law in numbers, as far as the run came."""
    funnel = facts.funnel
    if funnel["inputs"] is None:
        return []
    quarantined = sum(funnel["quarantined"].values())
    found = [
        Equation(
            ("lines in", funnel["inputs"]["lines"]), (("documents", funnel["documents"]), ("quarantined", quarantined))
        )
    ]
    if facts.judge_all or not (facts.finished or funnel["steps"]):
        return found
    dropped = sum(sum(step["dropped"].values()) for step in funnel["steps"])
    kept = funnel["steps"][-1]["docs_kept"] if funnel["steps"] else funnel["documents"]
    label = "kept" if funnel["kept"] is not None else "kept so far"
    found.append(Equation(("documents", funnel["documents"]), ((label, kept), ("dropped", dropped))))
    if funnel["packed"] is not None:
        packed = funnel["packed"]
        left_out = (("left out by the mixture", packed["left_out"]),) if packed.get("left_out") else ()
        found.append(Equation(("kept", kept), (("in the token file", packed["documents"]), *left_out)))
    return found


def chain_breaks(steps: Sequence[dict[str, Any]], documents: int) -> list[str]:
    """Where what a step was given is not what the step before kept, or is not kept + dropped."""
    found, given = [], documents
    for step in steps:
        if step["docs_in"] != given:
            found.append(f"{step['name']} was given {step['docs_in']:,} documents where {given:,} were kept before it")
        dropped = sum(step["dropped"].values())
        if step["docs_in"] != step["docs_kept"] + dropped:
            found.append(
                f"{step['name']}: {step['docs_in']:,} in, but {step['docs_kept']:,} kept and {dropped:,} dropped"
            )
        given = step["docs_kept"]
    return found
