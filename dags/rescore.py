"""The DAG `rescore`: checkpoints of a training judge new crawl. Wiring only; what a task does stands in `curation.rescore_tasks`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, NoReturn

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import (
    DAG,
    Asset,
    AssetOrTimeSchedule,
    CronTriggerTimetable,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    TaskGroup,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError, DownstreamTasksSkipped

from curation.airflow_event import ASSET
from curation.errors import ConfigError, CorpusmillError, InputError, LawError
from curation.rescore import CHUNK_MB, SETTINGS_VARIABLE

DOC = """
For every multiple of `every_tokens` that a training has passed, its checkpoint of that moment scores the documents that are
new since; the worst of them make one version of the blacklist, which the next run of `curate` obeys.

The truth is on disk: the trainer's ledger says what was passed, a marker for each threshold what is done. This DAG looks at
both every ten minutes, or as soon as somebody posts an event of the asset `corpusmill_progress`, and does **all** that is due.
So a lost, doubled or late event costs ten minutes at most, and a run that fails is taken up by the next one: there is nothing
to clear. A threshold that does not get on turns the run red and stops no other one.

`approval` asks somebody, where the settings want that, and shows what would be blacklisted: *Required Actions* on the page of
the run. Whoever does not answer within `approval_hours` has rejected. While it waits no other run begins.

**To use it**, set `CORPUSMILL_RESCORE` to the absolute path of a settings file, for all of Airflow, and unpause the DAG. Without
it every run is skipped. The pool `cpu` must exist.
"""

PROGRESS = Asset(ASSET, uri="x-corpusmill://progress")
CPU = "cpu"
# A step looks at all thresholds on disk: what failed before it concerns some of them only.
ANYWAY = "all_done"
APPROVE, REJECT = "Approve", "Reject"
MOST_EVENTS = 1000
LABEL = "{{ task.op_kwargs.chunk | truncate(120) }}"

PARAMS = {
    "settings": Param(
        None,
        type=["null", "string"],
        title="Settings",
        description_md=f"Absolute path of a settings file that every worker can read. Empty: what the workers have as {SETTINGS_VARIABLE}.",
    ),
    "chunk_mb": Param(
        CHUNK_MB,
        type="integer",
        minimum=1,
        title="MB of text a task",
        description_md="At least; large runs come in larger chunks, at most 64 a pass.",
        section="Scheduling",
    ),
}

# Another try helps against lost workers and checkpoints that are not whole yet, not against wrong settings.
RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=ConfigError, action=RetryAction.FAIL, reason="the settings must be mended first"),
        RetryRule(exception=InputError, action=RetryAction.FAIL, reason="the input must be looked at first"),
        RetryRule(exception=LawError, action=RetryAction.FAIL, reason="documents were lost: a fault of the program"),
    ]
)


class Question(HITLOperator):
    """Asks, and shows the body as it is: it quotes the crawl, and a template in there would be rendered, secrets included."""

    template_fields = ()


def _steps(context: Any) -> tuple[Any, Any]:
    """What tasks do, and the settings (None: there are none). Imported here: it takes a second, and the DAG is read often."""
    from curation import rescore_tasks

    return rescore_tasks, rescore_tasks.settings_of(context["params"])


def _ready(context: Any) -> tuple[Any, Any]:
    steps, settings = _steps(context)
    if settings is None:
        raise AirflowFailException(f"no settings: `settings` of the form and {SETTINGS_VARIABLE} are empty.")
    return steps, settings


def _skip_rest(context: Any, why: str) -> NoReturn:
    """End this task well, and skip all that comes after it; the gate too, unless it has a failure to tell of."""
    print(why)  # where Airflow's log of the task shows it
    behind = context["task"].get_flat_relative_ids(upstream=False)
    raise DownstreamTasksSkipped(tasks=sorted(behind - ({"gate"} if _failed(context) else set())))


def _failed(context: Any) -> list[str]:
    """Tasks of this DAG run that failed by themselves, not because of another one."""
    run_id = context["dag_run"].run_id
    states = context["ti"].get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id]).get(run_id, {})
    return sorted(name for name, state in states.items() if state == "failed")


def _stored(context: Any) -> list[Any]:
    """Events of earlier on, as they came: one that came while the DAG was paused has started no run.

    None where Airflow cannot tell: its server fails at that while a run that an event has started waits for its turn (3.3.2,
    `created_dagruns.start_date`). That event is of the waiting run, and the others will be told by a later one.
    """
    try:
        return list(context["inlet_events"][PROGRESS].ascending(False).limit(MOST_EVENTS))[::-1]
    except AirflowRuntimeError as error:
        print(f"Airflow does not tell earlier events: {error}")
        return []


@task(inlets=[PROGRESS])
def take_reports() -> dict[str, int]:
    """Puts what events of `corpusmill_progress` told into the ledger, each once; wrong ones are logged. No settings: the run ends here."""
    context = get_current_context()
    steps, settings = _steps(context)
    if settings is None:
        _skip_rest(context, f"nothing to do: `settings` of the form and {SETTINGS_VARIABLE} are empty.")
    stored = _stored(context)
    fresh = [event for events in context["triggering_asset_events"].values() for event in events]
    return steps.take_reports(settings, [event.extra for event in [*stored, *fresh]])


@task(trigger_rule=ANYWAY)
def due() -> list[int]:
    """Compares the ledger with the markers: every threshold that is passed and not done. None: the run ends here, green."""
    context = get_current_context()
    steps, settings = _ready(context)
    found = steps.due(settings)
    if not found:
        _skip_rest(context, "nothing is due.")
    return found


@task(pool=CPU, queue="cpu", map_index_template="{{ '{:,}'.format(task.op_kwargs.tokens) }}")
def pin(tokens: int) -> dict[str, Any]:
    """Waits until the checkpoint of a threshold is whole and fits its checksum, and holds it. One that is gone for ever is superseded."""
    steps, settings = _ready(get_current_context())
    return steps.pin(settings, tokens)


@task(trigger_rule=ANYWAY)
def begin() -> list[int]:
    """Fixes which documents each threshold judges whose checkpoint is held, the lowest first."""
    steps, settings = _ready(get_current_context())
    return steps.begin(settings)


@task(pool=CPU, queue="cpu", map_index_template="{{ '{:,}'.format(task.op_kwargs.tokens) }}")
def ingest(tokens: int) -> dict[str, Any]:
    """Reads and filters the fresh crawl of a threshold, as a run of its own."""
    steps, settings = _ready(get_current_context())
    return steps.ingest(settings, tokens)


@task(trigger_rule=ANYWAY)
def plan(kind: str) -> list[str]:
    """Cuts the next pass over all runs of all thresholds into chunks. Nothing left: the chunks are skipped."""
    context = get_current_context()
    steps, settings = _ready(context)
    return steps.plan(settings, kind, chunk_mb=context["params"]["chunk_mb"])


@task(pool=CPU, queue="cpu", map_index_template=LABEL)
def count(chunk: str) -> dict[str, int]:
    """Counts the documents of each language and source in one chunk: what the sample is drawn by."""
    steps, settings = _ready(get_current_context())
    return steps.work(settings, "count", chunk)


@task(pool=CPU, queue="cpu", map_index_template=LABEL)
def score(chunk: str) -> dict[str, int]:
    """Lets the checkpoint read one chunk. Each shard is published atomically and skipped when it is done, so a second try goes on."""
    steps, settings = _ready(get_current_context())
    return steps.work(settings, "score", chunk)


@task(trigger_rule=ANYWAY)
def propose() -> dict[str, int]:
    """Checks that no document was lost, and chooses low scorers over all runs of a threshold together."""
    steps, settings = _ready(get_current_context())
    return steps.propose(settings)


@task(trigger_rule=ANYWAY)
def ask() -> list[dict[str, Any]]:
    """Writes what a person is shown: what would be blacklisted by language and source, with samples, where approval is wanted."""
    context = get_current_context()
    steps, settings = _ready(context)
    asked = steps.approvals(settings)
    context["ti"].xcom_push("thresholds", [one["threshold"] for one in asked])
    wait = timedelta(hours=settings.approval_hours)
    return [{"subject": one["subject"], "body": one["body"], "response_timeout": wait} for one in asked]


@task(trigger_rule=ANYWAY)
def decide() -> list[str]:
    """Writes down what was answered. No answer in time counts as a rejection, and says so."""
    context = get_current_context()
    (steps, settings), ti = _ready(context), context["ti"]
    said = []
    for place, tokens in enumerate(ti.xcom_pull(task_ids="choose.ask", key="thresholds") or []):
        answer = ti.xcom_pull(task_ids="choose.approval", map_indexes=place)
        if answer:
            user = answer["responded_by_user"]
            who = None if user is None else str(user["name"] or user["id"])
            approve = answer["chosen_options"] == [APPROVE]
            said.append(steps.decide(settings, tokens, approve=approve, who=who)["decision"])
    return said


@task(trigger_rule=ANYWAY)
def publish() -> dict[str, int | None]:
    """Appends one version to the blacklist for each threshold that chose something and may; twice would be once."""
    steps, settings = _ready(get_current_context())
    return steps.publish(settings)


@task(trigger_rule=ANYWAY)
def report() -> dict[str, str]:
    """Writes the distribution report of each threshold that is published, and then its marker."""
    steps, settings = _ready(get_current_context())
    return steps.report(settings)


@task(trigger_rule=ANYWAY)
def gate() -> dict[str, Any]:
    """Decides the colour of the run: fails if a task failed or a threshold did not get on. The next run takes it up."""
    context = get_current_context()
    steps, settings = _ready(context)
    try:
        return steps.gate(settings, _failed(context))
    except CorpusmillError as error:
        raise AirflowFailException(str(error)) from error


def _mapped(function: Any, **over: Any) -> Any:
    """A task that is to be mapped; such ones do not take their text from the function by themselves."""
    return function.override(doc_md=function.function.__doc__, **over)


with DAG(
    "rescore",
    description="Checkpoints of a training judge new crawl; the worst of it makes a version of the blacklist",
    doc_md=DOC,
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("*/10 * * * *", timezone="UTC"), assets=[PROGRESS]),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    # Each run does all that is due, so a second one beside it would only do the same.
    max_active_runs=1,
    tags=["corpusmill", "rescore"],
    params=PARAMS,
    default_args={
        "owner": "corpusmill",
        "retries": 2,
        "retry_delay": timedelta(seconds=10),
        "retry_policy": RETRY_POLICY,
    },
) as dag:
    found = due()
    pinned = _mapped(pin).expand(tokens=found)
    begun = begin()
    ingested = _mapped(ingest).expand(tokens=begun)
    with TaskGroup("count", tooltip="which documents there are", doc_md="Which documents there are.") as counting:
        planned = plan.override(task_id="plan")("count")
        _mapped(count, task_id="chunks").expand(chunk=planned)
    with TaskGroup("score", tooltip="what the checkpoint says of them", doc_md="What it says of them.") as scoring:
        planned = plan.override(task_id="plan")("score")
        _mapped(score, task_id="chunks").expand(chunk=planned)
    with TaskGroup(
        "choose", tooltip="which of them go on the blacklist", doc_md="Which go on the blacklist."
    ) as choosing:
        asked = ask()
        # Not ApprovalOperator: its Reject skips what comes after it, for every threshold, and nobody would write it down.
        approval = Question.partial(
            task_id="approval",
            options=[APPROVE, REJECT],
            defaults=[REJECT],
            doc_md="Waits for somebody's word on each threshold, where the settings want that; holds no worker.",
        ).expand_kwargs(asked)
        chain(propose(), asked, approval, decide())
    chain(take_reports(), found, pinned, begun, ingested, counting, scoring, choosing, publish(), report(), gate())
