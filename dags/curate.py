"""The DAG `curate`: one run of the pipeline. Wiring only; what a task does stands in `curation.tasks`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import (
    DAG,
    Asset,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    TaskGroup,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, DownstreamTasksSkipped

from curation import chunks, tasks
from curation.errors import ConfigError, CorpusmillError, InputError, LawError

DOC = """
Raw crawl in, one packed Arrow file of token ids out, with every dropped line accounted for.

Each group is a stage of the pipeline; the `steps` of the config decide what runs in it. `plan` finds out which passes the
stage has. A small stage is done by `whole`, in one task; of a large one `pass_1`, `pass_2` ... each do a pass, in chunks.
`check` counts the documents anew and fails if one was lost. What the config does not need is skipped. `report` is written
for failed runs too, and `gate` decides the colour of the run.

**To run it**, trigger it with the form. A run id of your own (letters, digits, `.`, `_`, `-`) becomes the name of the run's
folder. **After a failure**, mend the cause and clear the failed tasks: what is done is recognised, nothing is done twice.
The report is the tab *Corpusmill* on the page of the DAG run. The pools `cpu` and `mem_heavy` must exist.
"""

# Passes of a stage that can be cut into many tasks: dedup holds exact (3) and near copies (4 or 5); elsewhere all filters
# together are one pass, and a data-set step that a config puts there is 3 to 5. Should a stage have more, its last slot
# does the rest in one task. Slots without a pass are skipped.
SLOTS = {"dedup": 8, "language": 4, "quality": 4, "safety": 4, "tokens": 4}
TOKENS = Asset("corpusmill_tokens", uri="x-corpusmill://tokens")
CPU, MEM_HEAVY = "cpu", "mem_heavy"
# After a stage's own tasks: run unless one failed, and be skipped with them if the config has no such stage.
AFTER_OWN = "none_failed_min_one_success"

# What a mapped task is called, also while it runs: `exact.scatter 0-7`.
LABEL = "{{ (task.op_kwargs.passes | join(' ') ~ ' ' ~ task.op_kwargs.chunk) | truncate(120) }}"
ABOUT = {
    "ingest": "inputs to shards of documents; what cannot be read goes to the quarantine",
    "dedup": "exact and near copies",
    "language": "which language a document is in",
    "quality": "residue, length, rules of quality",
    "safety": "adverts, fraud, hate: by terms, and by a model that reads the sentence",
    "tokens": "what only the tokenizer can see",
    "pack": "kept documents to token ids in one file",
}

PARAMS = {
    "input": Param(
        type="array",
        items={"type": "string", "minLength": 1},
        minItems=1,
        title="Input",
        description_md="Files, folders, globs or URLs, one a line: JSON lines (plain, gzip, zstd), parquet, Arrow, WARC. Absolute.",
    ),
    "config": Param(
        "web",
        type="string",
        minLength=1,
        examples=tasks.known_configs(),
        title="Config",
        description_md="A shipped config, or the absolute path of a YAML file that every worker can read.",
    ),
    "overrides": Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": "^[^=]+=.*$"},
        title="Changed settings",
        description_md="One key=value a line, such as length.min_units=30 or ingest.text_column=content.",
    ),
    "name": Param(
        None,
        type=["null", "string"],
        maxLength=60,
        title="Name",
        description_md="Begins the run id. Empty: the config's own.",
    ),
    "root": Param(
        None,
        type=["null", "string"],
        title="Root folder",
        description_md="Where runs lie, the same folder on every worker. Empty: what the workers have as CORPUSMILL_ROOT.",
    ),
    "chunk_mb": Param(
        chunks.CHUNK_MB,
        type="integer",
        minimum=1,
        title="MB of text a task",
        description_md="At least; large inputs come in larger chunks, at most 64 a pass. Less: more tasks, more seconds of scheduling.",
        section="Scheduling",
    ),
}

# Another try helps against lost workers and damaged files of the run, not against a wrong config or a broken law.
RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=ConfigError, action=RetryAction.FAIL, reason="the configuration must be mended first"),
        RetryRule(exception=InputError, action=RetryAction.FAIL, reason="the input must be looked at first"),
        RetryRule(exception=LawError, action=RetryAction.FAIL, reason="documents were lost: a fault of the program"),
    ]
)


def _folder(context: Any) -> Path:
    """The run's folder: the root of this worker and what `start` found out."""
    begun = context["ti"].xcom_pull(task_ids="start")
    return tasks.root_of(context["params"]) / begun["run"]


def _name(context: Any, doing: str = "") -> tasks.TaskName:
    ti = context["ti"]
    return tasks.TaskName(ti.task_id, -1 if ti.map_index is None else ti.map_index, ti.try_number, doing)


def _failed(context: Any) -> list[str]:
    """Tasks of this DAG run that failed by themselves, not because of another one."""
    run_id = context["dag_run"].run_id
    states = context["ti"].get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id]).get(run_id, {})
    failed = sorted(name for name, state in states.items() if state == "failed")
    return failed or sorted(name for name, state in states.items() if state == "upstream_failed")


def _skip(task_ids: set[str]) -> NoReturn:
    """End this task well, and skip those that the run does not need, at once: one after the other they take seconds."""
    raise DownstreamTasksSkipped(tasks=sorted(task_ids))


@task
def start() -> dict[str, Any]:
    """Checks the config, looks at the inputs and makes the run's folder. A wrong config or a missing input fails here, at once."""
    context = get_current_context()
    run, attempt = context["dag_run"], context["ti"].try_number
    return tasks.begin(
        context["params"], dag_id=run.dag_id, dag_run_id=run.run_id, run_after=run.run_after, attempt=attempt
    )


@task
def plan(stage: str, slot: int, n_slots: int, may_be_whole: bool) -> list[str]:
    """Cuts the next pass of the stage into chunks for the tasks that follow. No pass left: they are skipped."""
    context = get_current_context()
    folder = _folder(context)
    chunk_mb = context["params"]["chunk_mb"]
    with tasks.recorded(folder, _name(context)):
        planned = tasks.plan(folder, stage, slot, n_slots, chunk_mb=chunk_mb, may_be_whole=may_be_whole)
    if planned is None:
        raise AirflowSkipException(f"this config has nothing to do in stage {stage}")
    if may_be_whole and not planned.chunks:
        # The stage is small and `whole` does it, or the slots before this one do all there is.
        rest = {f"{stage}.pass_{n}" for n in range(slot, n_slots + 1)}
        _skip(rest | {f"{stage}.plan_{n}" for n in range(slot + 1, n_slots + 1)})
    context["ti"].xcom_push("passes", planned.passes)
    return planned.chunks


@task(pool=CPU, queue="cpu")
def whole(stage: str) -> dict[str, Any]:
    """Does a small stage (less text than one chunk) in one task. Has nothing to do in a large one: `pass_1` ... do it."""
    context = get_current_context()
    folder = _folder(context)
    with tasks.recorded(folder, _name(context, stage)):
        # No skip: Airflow notices a task that skips itself up to five seconds late, and `check` would wait for it.
        return tasks.whole(folder, stage, chunk_mb=context["params"]["chunk_mb"])


@task(pool=CPU, queue="cpu", map_index_template=LABEL)
def work(stage: str, passes: list[str], chunk: str) -> dict[str, Any]:
    """Does one chunk of a pass. Each item is published atomically and skipped when it is done, so a second try goes on."""
    context = get_current_context()
    folder = _folder(context)
    with tasks.recorded(folder, _name(context, f"{' '.join(passes)} {chunk}")):
        return tasks.work(folder, stage, passes, chunk)


@task(pool=CPU, queue="cpu", trigger_rule="none_failed")
def parity() -> dict[str, Any]:
    """Holds the tokenizer against the trainer's, on probe texts and on a sample of the documents. A difference ends the run here."""
    context = get_current_context()
    folder = _folder(context)
    with tasks.recorded(folder, _name(context)):
        counts = tasks.parity(folder)
    if counts is None:
        raise AirflowSkipException("this config packs nothing")
    return counts


@task(pool=MEM_HEAVY, queue="mem", trigger_rule=AFTER_OWN)
def assemble() -> dict[str, Any]:
    """Puts the encoded documents together into one token file, best fit first, and proves it with checksums."""
    context = get_current_context()
    folder = _folder(context)
    with tasks.recorded(folder, _name(context)):
        return tasks.assemble(folder)


@task(trigger_rule=AFTER_OWN)
def check(stage: str) -> dict[str, Any]:
    """Holds what lies on disk against the conservation law and closes the stage. A lost document fails the run here."""
    context = get_current_context()
    folder = _folder(context)
    with tasks.recorded(folder, _name(context)):
        counts = tasks.check(folder, stage)
    if stage == "pack":
        context["outlet_events"][TOKENS].extra = tasks.token_file_facts(folder)
    if unused := tasks.unused_after(folder, stage):
        context["ti"].xcom_push("return_value", counts)
        _skip({task_id for task_id in context["dag"].task_ids if task_id.partition(".")[0] in unused})
    return counts


@task(trigger_rule="all_done")
def report() -> dict[str, Any]:
    """Writes the funnel and the report, also when something failed, and says in run.json how the run ended."""
    context = get_current_context()
    failed = _failed(context)
    if "start" in failed:
        raise AirflowSkipException("the run did not begin, so there is nothing to report on")
    folder = _folder(context)
    with tasks.recorded(folder, _name(context)):
        return tasks.report(folder, failed)


@task(trigger_rule="all_done")
def gate() -> dict[str, Any]:
    """Decides the colour of the run: fails if any task failed, a stage is not closed, or the numbers do not add up."""
    context = get_current_context()
    failed = _failed(context)
    try:
        return tasks.gate(None if "start" in failed else _folder(context), failed)
    except CorpusmillError as error:
        # What is wrong stays wrong; only a lost worker is worth another try.
        raise AirflowFailException(str(error)) from error


def _chunks(task_id: str, stage: str, planned: Any) -> Any:
    """A mapped task that does the chunks which `planned` returned."""
    # Mapped tasks do not take their text from the function by themselves.
    mapped = work.override(task_id=task_id, doc_md=work.function.__doc__)
    return mapped.partial(stage=stage, passes=planned["passes"]).expand(chunk=planned)


def _group(stage: str) -> TaskGroup:
    return TaskGroup(stage, tooltip=ABOUT[stage], doc_md=ABOUT[stage].capitalize() + ".")


def ingest_group() -> TaskGroup:
    """Inputs become shards."""
    with _group("ingest") as group:
        planned = plan.override(task_id="plan")("ingest", 1, 1, False)
        chain([planned, _chunks("read", "ingest", planned)], check.override(task_id="close")("ingest"))
    return group


def stage_group(stage: str, n_slots: int) -> TaskGroup:
    """The steps of one stage: in one task if it is small, else each pass in a slot."""
    with _group(stage) as group:
        first = plan.override(task_id="plan", trigger_rule="none_failed")(stage, 1, n_slots, True)
        small = whole(stage)
        passes = [_chunks("pass_1", stage, first)]
        for slot in range(2, n_slots + 1):
            planned = plan.override(task_id=f"plan_{slot}")(stage, slot, n_slots, True)
            chain(passes[-1], planned)
            passes.append(_chunks(f"pass_{slot}", stage, planned))
        chain(first, small)
        chain([first, small, *passes], check.override(task_id="check")(stage))
    return group


def pack_group() -> TaskGroup:
    """Kept documents become token ids in one file."""
    with _group("pack") as group:
        compared = parity()
        # The first of three passes is parity's.
        planned = plan.override(task_id="plan")("pack", 2, 3, False)
        encode = _chunks("encode", "pack", planned)
        chain(compared, planned)
        chain([planned, encode], assemble(), check.override(task_id="check", outlets=[TOKENS])("pack"))
    return group


with DAG(
    "curate",
    description="Raw crawl in, one packed Arrow file of token ids out, every dropped line accounted for",
    doc_md=DOC,
    schedule=None,
    catchup=False,
    # Runs share nothing but the machine, and its pools share that out; two keep the pools full while one closes a stage.
    max_active_runs=2,
    # Pools limit what runs at once, not the DAG: 64 chunks of each of two runs may be in work on a large cluster.
    max_active_tasks=2 * chunks.MAX_CHUNKS,
    tags=["corpusmill", "curation"],
    params=PARAMS,
    default_args={
        "owner": "corpusmill",
        "retries": 2,
        "retry_delay": timedelta(seconds=10),
        "retry_policy": RETRY_POLICY,
    },
) as dag:
    stages = [ingest_group(), *[stage_group(stage, n_slots) for stage, n_slots in SLOTS.items()], pack_group()]
    reported = report()
    chain(start(), *stages, reported, gate())
    # When a chunk fails, what comes after it is given up at once, while other chunks still run: the report waits for them.
    chain([one for one in dag.tasks if one.pool == CPU], reported)
