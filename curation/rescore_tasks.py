"""What each task of the DAG `rescore` does, free of Airflow; `corpusmill rescore` does the same, one after the other.

    take_reports -> due -> pin (each) -> begin -> ingest (each) -> plan, count (chunks) -> plan, score (chunks)
      -> propose -> approvals, decide -> publish -> report -> gate

Nothing travels between tasks that the next one could not find on disk: each looks at all thresholds of the training and
does what is due there. So a step may be done twice, by two at once, or by another process than the step before. A
threshold that does not get on leaves `problem.json`, is tried again the next time, and stops no other one. Where a step
finds that an earlier one has not got on, the word of that one stands: it is the cause.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from curation.chunks import cut, items_of
from curation.errors import CorpusmillError, InputError, RunError
from curation.launch import Progress
from curation.pipeline import Pipeline
from curation.pool import Pool
from curation.rescore import CHUNK_MB, crawl
from curation.rescore import publish as ending
from curation.rescore.checkpoints import held
from curation.rescore.due import due as thresholds_due
from curation.rescore.due import hold_checkpoint
from curation.rescore.propose import proposal_of, told
from curation.rescore.propose import propose as choose_of
from curation.rescore.reports import record
from curation.rescore.score import Rescore, threshold_folder
from curation.rescore.settings import RescoreSettings, load_settings, settings_path
from curation.rescore.threshold import NotReadyError, Threshold, thresholds_on_disk
from curation.run import read_json, write_json

__all__ = [
    "approvals",
    "begin",
    "decide",
    "due",
    "end",
    "gate",
    "ingest",
    "pin",
    "plan",
    "proposal_of",
    "propose",
    "publish",
    "report",
    "rescore_of",
    "score",
    "score_item",
    "settings_of",
    "take_reports",
    "told",
    "work",
]

log = logging.getLogger("corpusmill")

MOST_REPORTS = 10_000
NOBODY = "nobody answered in time"

T = TypeVar("T")


def settings_of(params: Mapping[str, Any]) -> RescoreSettings | None:
    """The settings of a DAG run; None if there are none.

    Raises:
        ConfigError: they cannot be.
    """
    path = settings_path(params.get("settings"))
    return None if path is None else load_settings(path)


# -- thresholds apart --------------------------------------------------------------------------


def _each(
    step: str, thresholds: Iterable[Threshold], act: Callable[[Threshold], T], *, fail: bool = True, part: bool = False
) -> dict[int, T]:
    """Do something for each threshold; one that fails leaves a word on disk and stops no other.

    Args:
        fail: raise at the end what was raised; else, and for NotReadyError, leave that to `gate`, which reads the words.
        part: this is one of several parts of a step: it takes back no word but its own.
    """
    found: dict[int, T] = {}
    errors: list[Exception] = []
    for threshold in thresholds:
        try:
            found[threshold.tokens] = act(threshold)
            threshold.clear_problem(step if part else None)
        except NotReadyError as error:
            log.warning("threshold %s, %s: %s", f"{threshold.tokens:,}", step, error)
            threshold.note_problem(step, error)
        except Exception as error:
            log.error("threshold %s, %s: %s", f"{threshold.tokens:,}", step, error)
            threshold.note_problem(step, error)
            errors.append(error)
    if fail and errors:
        raise _together(errors)
    return found


def _together(errors: Sequence[Exception]) -> Exception:
    """One error for several: a fault of the program before others; tried again unless none can be mended by that."""
    foreseen = [error for error in errors if isinstance(error, CorpusmillError)]
    if len(errors) == 1 or len(foreseen) < len(errors):
        return next((error for error in errors if not isinstance(error, CorpusmillError)), errors[0])
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else RunError
    return kind("\n".join(str(error) for error in errors))


def _open(settings: RescoreSettings) -> list[Threshold]:
    """Thresholds that have begun and are not done."""
    return [one for one in thresholds_on_disk(settings) if one.done is None and one.is_begun]


# -- the beginning -----------------------------------------------------------------------------


def take_reports(settings: RescoreSettings, reports: Iterable[Any]) -> dict[str, int]:
    """Put what events told of the training into its ledger, each once; wrong ones and other trainings' are passed over.

    Digests of those that were taken are kept beside the thresholds: each new one costs a reading of the ledger. Were they
    lost, the ledger itself would tell.

    Raises:
        RunError: the ledger cannot be written.
    """
    counts = Counter(reports=0, recorded=0, known=0, wrong=0, others=0)
    path = threshold_folder(settings.runs_root, settings.training.run, 0).parent / "reports.json"
    taken: dict[str, None] = dict.fromkeys(read_json(path) if path.exists() else ())
    n_before = len(taken)
    for told_of in reports:
        counts["reports"] += 1
        if isinstance(told_of, Mapping) and told_of.get("training_run", settings.training.run) != settings.training.run:
            counts["others"] += 1
            continue
        digest = hashlib.sha256(repr(told_of).encode()).hexdigest()[:32]
        if digest in taken:
            counts["known"] += 1
            continue
        try:
            counts["known" if record(settings.training.ledger, told_of) is None else "recorded"] += 1
        except InputError as error:
            counts["wrong"] += 1
            log.warning("an event is passed over: %s", error)
        taken[digest] = None
    if len(taken) > n_before:
        write_json(path, list(taken)[-MOST_REPORTS:])
    return dict(counts)


def due(settings: RescoreSettings) -> list[int]:
    """Thresholds that are to be done, in ascending order."""
    return [threshold.tokens for threshold in thresholds_due(settings)]


def pin(settings: RescoreSettings, tokens: int, *, wait: bool = True) -> dict[str, Any]:
    """Hold the checkpoint of a threshold; see `hold_checkpoint`."""
    threshold = Threshold(settings, tokens)
    _each("pin", [threshold], lambda one: hold_checkpoint(one, wait=wait))
    done = threshold.done
    return {"threshold": tokens, "state": "pinned" if done is None else done["state"]}


def begin(settings: RescoreSettings) -> list[int]:
    """Fix what each threshold judges whose checkpoint is held, the lowest first; returns those that read crawl themselves."""
    pinned = [one for one in thresholds_on_disk(settings) if one.done is None and one.is_pinned]
    begun = _each("begin", pinned, crawl.begin, fail=False)
    # What has no checkpoint yet, or waits for another one with the same, ends here where nothing is left for it.
    rest = [one for one in thresholds_on_disk(settings) if one.done is None and not one.is_pinned]
    if rest and not crawl.anything_new(settings):
        _each("begin", rest, lambda one: hold_checkpoint(one, wait=False), fail=False)
    return [one.tokens for one in pinned if begun.get(one.tokens) and one.info["crawl"] is not None]


def ingest(settings: RescoreSettings, tokens: int, progress: Progress | None = None) -> dict[str, Any]:
    """Read and filter the fresh crawl of a threshold."""
    return _each("ingest", [Threshold(settings, tokens)], lambda one: crawl.ingest_crawl(one, progress))[tokens]


# -- scoring -----------------------------------------------------------------------------------


def rescore_of(threshold: Threshold, run_id: str) -> Rescore:
    """The re-score of one run of a threshold, begun if it is not."""
    folder = threshold.folder / run_id
    if (folder / "rescore.json").exists():
        return Rescore.open(folder)
    own = threshold.info["crawl"]
    if own is not None and own["run_id"] == run_id:
        crawl.require_done(threshold)
    model = held(threshold.folder / "_model")
    with threshold.settings_stay():
        settings = threshold.begun_with
        pipeline = Pipeline.open(settings.runs_root / "runs" / run_id)
        return Rescore.create(settings.runs_root, pipeline, threshold.order, model, settings.score)


def plan(settings: RescoreSettings, kind: str, *, chunk_mb: float = CHUNK_MB) -> list[str]:
    """Cut a pass over all runs of all thresholds into at most 64 chunks: `200000/my-run 0-7; 200000/other 0-3`.

    Args:
        kind: `count` or `score`.
    """

    def items(threshold: Threshold) -> list[tuple[str, int, float]]:
        found: list[tuple[str, int, float]] = []
        if proposal_of(threshold) is not None:
            return found
        for run_id in threshold.info["runs"]:
            rescore = rescore_of(threshold, run_id)
            if any(one.name == f"rescore.{kind}" for one in rescore.passes()):
                share = _share_read(rescore) if kind == "score" else 1.0
                found += [
                    (f"{threshold.tokens}/{run_id}", n, one.text_bytes * share) for n, one in enumerate(rescore.shards)
                ]
        return found

    listed = [one for found in _each(f"plan {kind}", _open(settings), items, fail=False).values() for one in found]
    chunks = []
    for chunk in cut([weight for _, _, weight in listed], chunk_mb * 2**20) if listed else []:
        pieces: dict[str, list[int]] = {}
        for place in items_of(chunk, len(listed)):
            pieces.setdefault(listed[place][0], []).append(listed[place][1])
        chunks.append("; ".join(f"{where} {numbers[0]}-{numbers[-1]}" for where, numbers in pieces.items()))
    return chunks


def _share_read(rescore: Rescore) -> float:
    """Share of the documents that the plan of a run reads. Raises NotReadyError: not all of its shards are counted."""
    try:
        documents = rescore.plan.column("documents").to_numpy()
    except RunError as error:
        raise NotReadyError(str(error)) from error
    return float(documents @ rescore.plan.column("rate").to_numpy() / max(1, documents.sum()))


def work(settings: RescoreSettings, kind: str, chunk: str) -> dict[str, int]:
    """Do the items of one chunk; what is done already is recognised and left alone.

    Returns:
        `items`, and how many of them were `reused` from an earlier try.
    """
    counts = Counter(items=0, reused=0)
    errors: list[Exception] = []
    for piece in chunk.split("; "):
        where, _, numbers = piece.partition(" ")
        tokens, _, run_id = where.partition("/")

        def act(threshold: Threshold, run_id: str = run_id, numbers: str = numbers) -> None:
            rescore = Rescore.open(threshold.folder / run_id)
            for item in items_of(numbers, len(rescore.shards)):
                done = rescore.run_item(f"rescore.{kind}", item)
                counts.update(items=1, reused=int(bool(done.get("reused"))))

        try:
            _each(f"{kind} {run_id} {numbers}", [Threshold(settings, int(tokens))], act, part=True)
        except Exception as error:  # raised below, when the other pieces are done
            errors.append(error)
    if errors:
        raise _together(errors)
    return dict(counts)


def score(threshold: Threshold, *, workers: int, progress: Progress) -> None:
    """Both passes over all runs of one threshold, in worker processes: what `plan` and `work` do in tasks."""
    if proposal_of(threshold) is not None:
        return
    for run_id in threshold.info["runs"]:
        rescore = rescore_of(threshold, run_id)
        with Pool(rescore.folder, workers, score_item) as pool:
            for one in rescore.passes():
                progress(one, 0)
                for n_done, _ in enumerate(pool.run(one), start=1):
                    progress(one, n_done)


@lru_cache(maxsize=1)
def _opened(folder: str) -> Rescore:
    return Rescore.open(Path(folder))


def score_item(folder: str, pass_name: str, item: int) -> dict[str, Any]:
    """Do one item of the re-score in a folder, in this process."""
    return _opened(folder).run_item(pass_name, item)


# -- choosing and the end ----------------------------------------------------------------------


def propose(settings: RescoreSettings) -> dict[str, int]:
    """Choose for every threshold whose runs are scored; returns the entries of each."""
    found = _each("propose", _open(settings), _choose)
    return {str(tokens): proposal["counts"]["entries"] for tokens, proposal in found.items()}


def _choose(threshold: Threshold) -> dict[str, Any]:
    """Raises NotReadyError: a run is not scored whole."""
    for run_id in threshold.info["runs"]:
        if not (threshold.folder / run_id / "rescore.json").exists():
            raise NotReadyError(f"run {run_id} is not scored yet: it has not begun to be.")
        rescore = Rescore.open(threshold.folder / run_id)
        try:
            rescore.close()
        except RunError as error:
            raise NotReadyError(str(error)) from error
    return choose_of(threshold)


def approvals(settings: RescoreSettings) -> list[dict[str, Any]]:
    """What a person is asked: of each threshold `threshold`, `subject`, and `body`, plain text in an indented block.

    As such a block it is shown letter by letter, whatever the crawl holds: no links, no pictures, no headings.
    """
    asked = []
    for threshold in _open(settings):
        if ending.needs_decision(threshold):
            entries = (proposal_of(threshold) or {})["counts"]["entries"]
            body = "\n".join(f"    {line}" for line in told(threshold).split("\n"))
            subject = f"Blacklist {entries:,} entries? Re-score at {threshold.tokens:,} tokens"
            asked.append({"threshold": threshold.tokens, "subject": subject, "body": body})
    return asked


def decide(settings: RescoreSettings, tokens: int, *, approve: bool, who: str | None, note: str = "") -> dict[str, Any]:
    """Write down what a person said; `who` None: nobody did in time, which rejects."""
    threshold = Threshold(settings, tokens)
    if who is None:
        return ending.decide(threshold, "rejected", "corpusmill", note or NOBODY)
    return ending.decide(threshold, "approved" if approve else "rejected", who, note)


def publish(settings: RescoreSettings) -> dict[str, int | None]:
    """Append one version for each threshold that may; returns their numbers."""
    proposed = [one for one in _open(settings) if proposal_of(one) is not None]
    found = _each("publish", proposed, ending.publish)
    return {str(tokens): one["version"] for tokens, one in found.items() if one is not None}


def report(settings: RescoreSettings) -> dict[str, str]:
    """Write the report of each threshold that is published, or has nothing to be, and then its marker."""
    published = [one for one in _open(settings) if (one.folder / "published.json").exists()]
    return {str(tokens): state for tokens, state in _each("report", published, _finish).items()}


def _finish(threshold: Threshold) -> str:
    from curation.report.rescore_report import write_rescore_report

    write_rescore_report(threshold.folder)
    return str(ending.finish(threshold)["state"])


def end(threshold: Threshold) -> None:
    """Choose, publish, report and mark one threshold, as far as it may go without a person's word."""
    choose_of(threshold)
    if ending.publish(threshold) is not None:
        _finish(threshold)


def gate(settings: RescoreSettings, failed: Sequence[str] = ()) -> dict[str, Any]:
    """The colour of the DAG run: red if a task failed or a threshold did not get on. The next run takes it up.

    Raises:
        RunError: names them, with their errors.
    """
    lines = []
    waiting = [threshold for threshold in thresholds_on_disk(settings) if threshold.done is None]
    for threshold in waiting:
        if (problem := threshold.problem()) is not None:
            lines.append(f"threshold {threshold.tokens:,}, {problem['step']}: {problem['error']}")
    if failed:
        lines.append(f"failed: {', '.join(failed)}")
    if lines:
        raise RunError("\n".join(lines))
    return {"waiting": len(waiting)}
