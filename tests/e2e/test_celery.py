"""The DAG on a scaled-out Airflow: PostgreSQL, Redis, two Celery workers; the same result as the command line.

Services come from Debian packages (`make services`), listen on 127.0.0.1 only, live in a folder of their own and end with
the test. The deployment's own init script prepares the database. Takes about a minute and a half on two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.config import load_config
from curation.export import export_kept
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from tests import airflow_env
from tests.airflow_services import AIRFLOW, Services, free_port
from tests.e2e.conftest import write_corpus
from tools.airflow_api import ApiError

# Some thirty tasks, each with a start of its own: on a busy machine they take thrice as long as on a quiet one.
pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(600)]

REPO = airflow_env.REPO
SMALL = ["ingest.slice_mb=1", "ingest.shard_mb=1", "safety_model.max_windows=1"]


def postgres_bin() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found or not shutil.which("redis-server"):
        pytest.skip(
            "PostgreSQL or Redis is not installed: `make services` (as root) installs both from Debian packages"
        )
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("PostgreSQL refuses to run as root, and setpriv (util-linux) is missing")
    return found[-1].parent


class CeleryServices(Services):
    """With PostgreSQL and Redis."""

    def __init__(self, folder: Path) -> None:
        self.ports = {name: free_port() for name in ("postgres", "redis")}
        database = f"airflow@127.0.0.1:{self.ports['postgres']}/airflow"
        settings = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
            "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{self.ports['redis']}/0",
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql://{database}",
            "POOL_CPU": "4",
        }
        super().__init__(folder, settings)


def start_database(services: CeleryServices, binaries: Path) -> None:
    """An empty PostgreSQL and an empty Redis, on ports of this machine only."""
    import psycopg2

    data = services.folder / "postgres"
    data.mkdir()
    as_user: list[str] = []
    if os.getuid() == 0:
        shutil.chown(data, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run(
        [*as_user, str(binaries / "initdb"), "-A", "trust", "-U", "airflow", "-D", str(data), "--no-sync"],
        check=True,
        capture_output=True,
        cwd=data,
    )
    options = [
        f"port={services.ports['postgres']}",
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=off",
    ]
    options += ["idle_in_transaction_session_timeout=60s"]
    settings = [part for option in options for part in ("-c", option)]
    services.start("postgres", *as_user, str(binaries / "postgres"), "-D", str(data), *settings)
    redis = ["redis-server", "--port", str(services.ports["redis"]), "--bind", "127.0.0.1", "--save", ""]
    services.start("redis", *redis, "--dir", str(services.folder))
    address = f"host=127.0.0.1 port={services.ports['postgres']} user=airflow"

    def made() -> bool:
        try:
            connection = psycopg2.connect(f"{address} dbname=postgres")
        except psycopg2.OperationalError:
            return False
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE airflow")
        connection.close()
        return True

    services.wait_for("PostgreSQL", made, 30)


@pytest.fixture
def services() -> Iterator[CeleryServices]:
    binaries = postgres_bin()
    folder = Path(tempfile.mkdtemp(prefix="corpusmill-celery-"))
    folder.chmod(0o711)  # PostgreSQL's user must reach its own folder below
    found = CeleryServices(folder)
    try:
        start_database(found, binaries)
        init = ["bash", str(REPO / "deploy" / "init.sh")]
        done = subprocess.run(init, env=found.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found.start("api-server", AIRFLOW, "api-server", "--workers", "1")
        found.start("dag-processor", AIRFLOW, "dag-processor")
        found.start("scheduler", AIRFLOW, "scheduler", "--skip-serve-logs")
        for name, queues in (("worker-a", "default,cpu"), ("worker-b", "default,cpu,mem")):
            flags = ["--queues", queues, "--concurrency", "2", "--celery-hostname", f"{name}@test", "--skip-serve-logs"]
            found.start(name, AIRFLOW, "celery", "worker", *flags)
        found.wait_for("API server", found.api.answers_tasks)
        found.wait_for("scheduler", found.api.healthy)
        found.wait_for("DAG", lambda: found.api.parsed_at() is not None)
        for name in ("worker-a", "worker-b"):
            found.wait_for(name, lambda name=name: " ready." in found.log(name).read_text(errors="replace"))
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def kept(folder: Path) -> list[str]:
    out = folder / "kept.jsonl"
    export_kept(Pipeline.open(folder), out)
    return sorted(out.read_text(encoding="utf-8").splitlines())


@pytest.mark.timeout(1200)
def test_two_workers_keep_what_the_command_line_keeps(services: CeleryServices, tmp_path: Path) -> None:
    """Chunks of every stage go to both workers; kept documents and token counts are those of one process."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(3):
        write_corpus(inputs / f"{number}.jsonl", 800, seed=number)
    # First, so that the kernels are compiled: on a fresh machine every task at work would compile them at once.
    pipeline = start_run(load_config("demo", SMALL), [str(inputs)], tmp_path / "root")
    drive(pipeline, workers=1)
    funnel = finish_run(pipeline)
    services.api.trigger("celery", {"input": [str(inputs)], "config": "demo", "overrides": SMALL, "chunk_mb": 1})

    def ended() -> bool:
        try:
            return services.api.run("celery")["state"] in ("success", "failed")
        except ApiError:
            return False

    services.wait_for("the run", ended, 700)
    failed = [task for task in services.api.tasks("celery") if task["state"] == "failed"]
    assert services.api.run("celery")["state"] == "success", [
        services.api.log_of("celery", task) for task in failed[:2]
    ]
    folder = services.folder / "root" / "runs" / "celery"
    assert kept(folder) == kept(pipeline.run.folder)
    assert Pipeline.open(folder).run.info["state"] == "done"
    assert len(kept(folder)) == funnel["kept"] > 1000
    for name in ("worker-a", "worker-b"):
        done = services.log(name).read_text(errors="replace").count(" succeeded in ")
        assert done > 5, f"{name} did {done} tasks"
