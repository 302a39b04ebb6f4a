"""The DAG `filter_impact`: what a change does to real documents. Wiring only; what a task does stands in `curation.impact_tasks`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import (
    DAG,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import AirflowFailException

from curation import tasks
from curation.errors import ConfigError, CorpusmillError, InputError, LawError

DOC = """
Two sides judge one sample of documents: the config as the workers have it (*new*), and the same at another revision, or
another config (*base*). What differs becomes a **change-impact sheet**: which documents change sides, why, in which
languages and sources, with intervals; what each filter costs; and which bounds of the config the change breaks.

Each side is an ordinary run over the sample, in `impact/runs` of the root. What an earlier run has judged by the same code
and settings is taken over, so a change of thresholds takes seconds. `bounds` decides the colour of the run: red where the
change moves more than the section `impact` of the new config allows; the sheet is written all the same.

**To run it**, trigger it with the form. The sheet is the tab *Corpusmill* on the page of the DAG run. A revision can be the
base where the workers' package, or the config, lies in a git checkout. The pool `cpu` must exist.
"""

CPU = "cpu"

PARAMS = {
    "base": Param(
        type="string",
        minLength=1,
        title="Base",
        description_md="Compared with: a git revision (`main`, `v1.2`, a commit), a shipped config, or the absolute path of a YAML file.",
    ),
    "config": Param(
        "web",
        type="string",
        minLength=1,
        examples=tasks.known_configs(),
        title="Config",
        description_md="The new side: a shipped config, or the absolute path of a YAML file that every worker can read.",
    ),
    "overrides": Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": "^[^=]+=.*$"},
        title="Changed settings",
        description_md="Of the new side alone. One key=value a line, such as length.min_units=30.",
    ),
    "sample": Param(
        None,
        type=["null", "string"],
        title="Sample",
        description_md="Absolute path of a folder of documents, such as `corpusmill sample` writes. Empty: the sample that ships.",
    ),
    "corpus": Param(
        None,
        type=["null", "string"],
        title="Corpus",
        description_md="Size of a corpus for which the sheet says what the change would mean: `3Bdocuments`, `2.5Ttokens`.",
    ),
    "root": Param(
        None,
        type=["null", "string"],
        title="Root folder",
        description_md="Where runs lie, the same folder on every worker. Empty: what the workers have as CORPUSMILL_ROOT.",
    ),
}

# Another try helps against lost workers and damaged files of a run, not against a wrong config or a broken law.
RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=ConfigError, action=RetryAction.FAIL, reason="the question must be mended first"),
        RetryRule(exception=InputError, action=RetryAction.FAIL, reason="the sample must be looked at first"),
        RetryRule(exception=LawError, action=RetryAction.FAIL, reason="documents were lost: a fault of the program"),
    ]
)


def _steps() -> Any:
    """What tasks do. Imported here: it takes a second, and the DAG is read often."""
    from curation import impact_tasks

    return impact_tasks


def _folder(context: Any) -> Path:
    """The sheet's folder: the root of this worker and what `start` found out."""
    begun = context["ti"].xcom_pull(task_ids="start")
    return tasks.root_of(context["params"]) / begun["sheet"]


@task
def start() -> dict[str, str]:
    """Checks the question and makes the folder of its sheet. What cannot be asked fails here, at once."""
    context = get_current_context()
    run = context["dag_run"]
    return _steps().begin(context["params"], dag_id=run.dag_id, dag_run_id=run.run_id, run_after=run.run_after)


@task(pool=CPU, queue="cpu")
def judge_new() -> dict[str, int]:
    """Judges the sample as the workers' config and code do. What an earlier run judged alike is taken over."""
    return _steps().judge(_folder(get_current_context()), "new")


@task(pool=CPU, queue="cpu")
def judge_base() -> dict[str, int]:
    """Judges the sample as the base does, by the code of its revision where that differs."""
    return _steps().judge(_folder(get_current_context()), "base")


@task(pool=CPU, queue="cpu")
def sheet() -> dict[str, Any]:
    """Compares the sides document by document and writes the sheet: a page, Markdown, JSON, and a text for a pull request."""
    return _steps().write(_folder(get_current_context()))


@task
def bounds() -> dict[str, Any]:
    """Decides the colour of the run: fails if the change moves more than the section `impact` of the new config allows."""
    try:
        return _steps().hold(_folder(get_current_context()))
    except CorpusmillError as error:
        # What is written stays written; only a lost worker is worth another try.
        raise AirflowFailException(str(error)) from error


with DAG(
    "filter_impact",
    description="What a change of filters, settings or code does to a sample of documents, before it lands",
    doc_md=DOC,
    schedule=None,
    catchup=False,
    # Two questions over one sample share what they judge alike, and the later one finds it done.
    max_active_runs=2,
    tags=["corpusmill", "impact"],
    params=PARAMS,
    default_args={
        "owner": "corpusmill",
        "retries": 2,
        "retry_delay": timedelta(seconds=10),
        "retry_policy": RETRY_POLICY,
    },
) as dag:
    chain(start(), judge_new(), judge_base(), sheet(), bounds())
