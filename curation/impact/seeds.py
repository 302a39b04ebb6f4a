"""What earlier runs over the same sample have done already, linked into a new run's folder: shards, closed steps, scores.

The pipeline trusts what lies in a run's folder by names, versions and settings. Here code may differ without a version that
says so, hence the rules, by the digests of `curation.impact.code`, kept beside each run in `code.json`:

- shards are taken where ingest's code and settings are equal;
- a closed step is taken where its code is equal, and that of every step before it and of the engine that drives them;
- the scores of a filter are taken where its code is equal, and that of the steps whose scores it reads.

Hard links take no room, and nothing that is linked is ever changed in place.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from curation.dedup import DATA_SET_STEPS
from curation.errors import RunError
from curation.impact.code import Code
from curation.run import read_json, write_json
from curation.verdicts import Step

__all__ = [
    "CODE_FILE",
    "Cost",
    "Made",
    "cost_of",
    "is_finished",
    "own_steps",
    "saved_steps",
    "seed",
    "step_folder",
    "steps_with_scores",
]

log = logging.getLogger("corpusmill")

CODE_FILE = "code.json"
COST_FILE = "cost.json"
"""Beside linked scores: what it took to compute them."""
_FORMAT = 2


@dataclass(frozen=True)
class Cost:
    """Seconds, documents whose scores were computed in them (None: its version does not say), and peak memory."""

    seconds: float
    scored: int | None
    peak_rss_mb: float
    cpu_seconds: float | None = None
    """Processor seconds of all threads; None: its version, or the kind of step, does not say."""


@dataclass
class _Saved:
    """Where the scores of one kind are: those of most documents, and what they cost where most were computed."""

    docs: int = -1
    source: Path = Path()
    cost: Cost = Cost(0.0, None, 0.0)

    def offer(self, docs: int, source: Path, cost: Cost) -> None:
        if docs > self.docs:
            self.docs, self.source = docs, source
        if (cost.scored or 0) > (self.cost.scored or 0):
            self.cost = cost


@dataclass(frozen=True)
class Made:
    """What a run was made with: what decides whether another may take over what it holds."""

    sample: str
    """Folder and content of the sample."""
    ingest: str
    """Digest of the settings of ingest; empty where they are not known."""
    environment: str
    code: Code
    contents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of this code by step the checksums of models and lists; of other code those of what its config names, under ""."""

    def write(self, folder: Path) -> None:
        """Put `code.json` into a run's folder."""
        write_json(folder / CODE_FILE, {"format": _FORMAT, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> Made | None:
        """What lies in a run's folder; None if nothing does that can be read."""
        try:
            told = read_json(folder / CODE_FILE)
            code = Code(*(told["code"][name] for name in ("ingest", "steps", "reads", "engine")))
            if told["format"] != _FORMAT:
                return None
            return cls(told["sample"], told["ingest"], told["environment"], code, told["contents"])
        except (RunError, KeyError, TypeError):
            return None


def is_finished(folder: Path) -> bool:
    """Whether a run is done and all of it is still there: by sizes, as the pipeline looks at it."""
    from curation.close import has_size, is_closed

    try:
        if read_json(folder / "run.json")["state"] != "done" or Made.read(folder) is None:
            return False
        shards = read_json(folder / "shards" / "_done.json")["shards"]
        whole = all(has_size(folder / "shards" / f"{one['name']}.arrow", one["file_bytes"]) for one in shards)
        return whole and all(is_closed(step_folder(folder, one)) for one in own_steps(folder))
    except (RunError, KeyError, TypeError):
        return False


def own_steps(folder: Path) -> list[dict[str, Any]]:
    """The lines of a finished run's funnel, in order: its own steps, not what was linked for its scores.

    Raises:
        RunError: the run is not done.
    """
    steps: list[dict[str, Any]] = read_json(folder / "report" / "funnel.json")["steps"]
    return [{**step, "place": place} for place, step in enumerate(steps)]


def step_folder(folder: Path, step: Mapping[str, Any]) -> Path:
    """Where the verdicts of a line of the funnel lie."""
    return folder / "steps" / f"{step['place'] + 1:02d}-{step['name']}-{step['digest']}"


def score_folder(folder: Path, name: str, score_digest: str) -> Path:
    """Where scores of a filter that other verdicts rest on are linked: found by the shard runner before all others."""
    return folder / "steps" / f"00-{name}-{score_digest}"


def steps_with_scores(folder: Path) -> set[str]:
    """Filters of which some scores are linked into a run's folder."""
    return {path.parent.name.split("-")[1] for path in folder.glob("steps/00-*/_step.json")}


def closed_steps(folder: Path) -> set[str]:
    """Steps of which closed folders lie in a run's folder, its own of an earlier try or linked."""
    return {path.parent.name.split("-")[1] for path in folder.glob("steps/*/_done.json")}


def saved_steps(folder: Path, steps: Sequence[Step], contents: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Steps of this code of which scores lie in a run's folder that they would take over or make again: by models and settings.

    What is linked may be of other lists or settings, which says nothing of these.

    Args:
        contents: by step the checksums of models and lists.
    """
    closed = (path.parent / "_step.json" for path in folder.glob("steps/*/_done.json"))
    cards = [*folder.glob("steps/00-*/_step.json"), *(path for path in closed if path.exists())]
    wanted = {step.name: (step, dict(contents.get(step.name, {}))) for step in steps}
    found: set[str] = set()
    for card in map(read_json, cards):
        step, models = wanted.get(str(card.get("name")), (None, {}))
        if step is not None and card.get("models") == models and _is_alike(step, card.get("config")):
            found.add(step.name)
    return found


def _is_alike(step: Step, settings: Any) -> bool:
    """Whether a step would score, or of a data-set step judge, with other settings as with its own."""
    try:
        config = step.Config.model_validate(settings)
    except ValidationError:
        return False
    if step.name in DATA_SET_STEPS:
        return config.deciding() == step.config.deciding()
    return type(step)(config).score_config() == step.score_config()


def cost_of(run: Path, step: Mapping[str, Any]) -> Cost:
    """What a step of a finished run cost, or what its scores cost the run that computed most of them.

    A decision alone says nothing of a filter, nor do the few documents that another threshold lets through.
    """
    folder = step_folder(run, step)
    card, done = read_json(folder / "_step.json"), read_json(folder / "_done.json")
    items = [read_json(folder / "_items" / f"{shard['name']}.json") for shard in done["shards"]]
    scored = sum(int(item["scored"]) for item in items) if all("scored" in item for item in items) else None
    own = Cost(float(done["seconds"]), scored, float(done["peak_rss_mb"]), _cpu_seconds(done, items))
    path = score_folder(run, card["name"], card["score_digest"]) / COST_FILE
    saved = Cost(**read_json(path)) if path.exists() else own
    return saved if own.scored is not None and (saved.scored or 0) > own.scored else own


def _cpu_seconds(done: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> float | None:
    """Of a step whose items are all there is to it: of a data-set step the passes before its verdicts are gone."""
    has_passes = float(done["seconds"]) > sum(float(item["seconds"]) for item in items) + 0.01
    if has_passes or not all("cpu_seconds" in item for item in items):
        return None
    return sum(float(item["cpu_seconds"]) for item in items)


def seed(folder: Path, runs: Path, made: Made) -> None:
    """Link into a run's folder what other runs hold that it would make itself. May be repeated.

    Args:
        folder: the run that is about to begin, or to go on.
        runs: folder of all runs of `impact`.
    """
    others = [
        (other, its)
        for other in _newest(runs)
        if other != folder and is_finished(other) and (its := Made.read(other)) is not None
    ]
    others = [(other, its) for other, its in others if (its.sample, its.environment) == (made.sample, made.environment)]
    if (folder / "shards" / "_done.json").exists():
        shards = _shards(folder)
    else:
        same = [one for one, its in others if (its.ingest, its.code.ingest) == (made.ingest, made.code.ingest)]
        found = _link_first_ingest(same, folder) if made.ingest else None
        if found is None:
            return
        shards = found
    best: defaultdict[tuple[str, str], _Saved] = defaultdict(_Saved)
    for other, its in others:
        try:
            if _shards(other) == shards:
                _link_closed(other, its, made, folder, best)
        except (RunError, OSError) as error:  # it is being deleted, to make room
            log.info("%s is not made use of: %s", other.name, error)
    for (name, digest), saved in best.items():
        try:
            _link_scores(saved, score_folder(folder, name, digest))
        except (RunError, OSError) as error:
            log.info("the scores in %s are not made use of: %s", saved.source, error)


def _link_closed(other: Path, its: Made, made: Made, folder: Path, best: defaultdict[tuple[str, str], _Saved]) -> None:
    """Link the closed steps of another run that hold here, and note of each kind of scores where most are."""
    for step, closed in _alike(other, its.code, made.code):
        source = step_folder(other, step)
        if closed:
            _link_folder(source, folder / "steps" / source.name)
        if step["name"] not in DATA_SET_STEPS:
            key = (step["name"], str(read_json(source / "_step.json")["score_digest"]))
            best[key].offer(step["docs_in"], source, cost_of(other, step))


def _newest(runs: Path) -> list[Path]:
    found = [path.parent for path in runs.glob(f"*/{CODE_FILE}")]
    return sorted(found, key=_last_use, reverse=True)


def _last_use(run: Path) -> int:
    try:
        return (run / CODE_FILE).stat().st_mtime_ns
    except OSError:  # deleted just now
        return 0


def _shards(folder: Path) -> list[tuple[str, str]]:
    return [(one["name"], one["sha256"]) for one in read_json(folder / "shards" / "_done.json")["shards"]]


def _alike(other: Path, its: Code, code: Code) -> Iterator[tuple[dict[str, Any], bool]]:
    """Steps of a finished run whose scores are those of the code asked for, and whether their verdicts are too."""
    closed = code.engine == its.engine
    for step in own_steps(other):
        name = step["name"]
        same = name in code.steps and code.steps[name] == its.steps.get(name)
        closed = closed and same
        if same and all(code.steps.get(one) == its.steps.get(one) for one in code.reads.get(name, ())):
            yield step, closed


def _link_first_ingest(others: Sequence[Path], folder: Path) -> list[tuple[str, str]] | None:
    """Link the shards of the first of some runs that is still there; None if none is."""
    for other in others:
        try:
            shards = _shards(other)
            _link_ingest(other, folder)
        except (RunError, OSError) as error:  # it is being deleted, to make room; each part that is linked is whole
            log.info("the documents in %s are not made use of: %s", other.name, error)
        else:
            return shards
    return None


def _link_ingest(other: Path, folder: Path) -> None:
    """All but the marker of the whole: the run itself looks at each part and closes ingest."""
    for source in (other / "quarantine", other / "shards"):
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name != "_done.json" and not path.name.endswith(".tmp"):
                _link(path, folder / source.name / path.relative_to(source))


def _link_folder(source: Path, target: Path) -> None:
    """Every file of a folder, its `_done.json` last; what is there already stays."""
    if (target / "_done.json").exists():
        return
    files = [path for path in sorted(source.rglob("*")) if path.is_file() and not path.name.endswith(".tmp")]
    for path in sorted(files, key=lambda path: path == source / "_done.json"):
        _link(path, target / path.relative_to(source))


def _link_scores(saved: _Saved, target: Path) -> None:
    """What the shard runner needs to take scores over; the card, by which it finds them, last."""
    source = saved.source
    if (target / "_step.json").exists():
        return
    for path in sorted((*source.glob("*.arrow"), *(source / "_items").glob("*.json"))):
        _link(path, target / path.relative_to(source))
    write_json(target / COST_FILE, asdict(saved.cost))
    _link(source / "_step.json", target / "_step.json")


def _link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where the file system has none; what is there already stays.

    Raises:
        RunError: it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
    except FileExistsError:
        return
    except OSError as error:
        if not source.exists():
            raise RunError(f"{source} is gone: another command has deleted it, to make room. Try again.") from error
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            shutil.copyfile(source, temporary)
            temporary.replace(target)
        except OSError:
            raise RunError(f"{target} could not be written: {error.strerror or error}. Free some space.") from error
