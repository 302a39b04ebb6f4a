"""The deployment files agree with one another. Nothing here starts a container: only reading shows what reading can."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
COMPOSE = REPO / "docker-compose.yml"
MORE = REPO / "deploy" / "several-machines.yml"
AIRFLOW_SERVICES = ["init", "api-server", "scheduler", "dag-processor", "triggerer", "worker-cpu", "worker-mem"]
# Must be the same on every service, or tasks cannot log in, be decrypted, or find their run.
SHARED = [
    "AIRFLOW__CORE__EXECUTOR",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__DAGS_FOLDER",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__CELERY__BROKER_URL",
    "AIRFLOW__CELERY__RESULT_BACKEND",
    "CORPUSMILL_ROOT",
]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return found


def example() -> dict[str, str]:
    lines = (REPO / "deploy" / "env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("path", [COMPOSE, MORE], ids=lambda path: path.name)
def test_the_compose_files_follow_their_schema(path: Path) -> None:
    """The official compose schema, which is part of check-jsonschema: no network."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_service_of_a_deployment_is_there(services: dict[str, Any]) -> None:
    """Airflow's parts, workers for both queues, database and broker."""
    assert set(services) == {"postgres", "redis", *AIRFLOW_SERVICES}
    queues = {name: services[name]["command"][4] for name in ("worker-cpu", "worker-mem")}
    assert queues == {"worker-cpu": "default,cpu", "worker-mem": "mem"}


@pytest.mark.parametrize("name", AIRFLOW_SERVICES)
def test_services_agree_on_what_must_agree(services: dict[str, Any], name: str) -> None:
    """The same settings and folders everywhere, without root, each with a check of its health."""
    service = services[name]
    for key in SHARED:
        assert service["environment"][key] == services["scheduler"]["environment"][key], key
    assert service["volumes"] == services["scheduler"]["volumes"]
    assert not service["user"].startswith("0")
    assert service["cap_drop"] == ["ALL"]
    assert name == "init" or "test" in service["healthcheck"]
    waits = service["depends_on"]
    assert waits["postgres"]["condition"] == "service_healthy"
    assert name == "init" or waits["init"]["condition"] == "service_completed_successfully"


def test_the_dags_folder_is_the_one_of_the_image(services: dict[str, Any]) -> None:
    """What the settings name is what the Dockerfile copies, and the init script lies there too."""
    dockerfile = (REPO / "Dockerfile").read_text(encoding="utf-8")
    workdir = re.findall(r"^WORKDIR (\S+)", dockerfile, re.MULTILINE)[0]
    assert services["scheduler"]["environment"]["AIRFLOW__CORE__DAGS_FOLDER"] == f"{workdir}/dags"
    assert services["init"]["command"] == ["bash", f"{workdir}/deploy/init.sh"]
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE):
        for name in source.split():
            assert name == "README.md" or (REPO / name).exists(), name
            assert f"!{name}" in (REPO / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE)[-1] == "50000"
    assert services["scheduler"]["user"] == "50000:0"


def test_nothing_listens_to_the_world(services: dict[str, Any]) -> None:
    """One port, of this machine only; with several machines three, on an address that has no default."""
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 1
    assert ports[0].startswith("127.0.0.1:")
    more = yaml.safe_load(MORE.read_text(encoding="utf-8"))["services"]
    assert set(more) == {"postgres", "redis", "api-server"}
    for name, service in more.items():
        port = {"postgres": 5432, "redis": 6379, "api-server": 8080}[name]
        assert re.fullmatch(rf"\$\{{FIRST_MACHINE:\?[^}}]+\}}:{port}:{port}", service["ports"][0])


def test_images_are_pinned(services: dict[str, Any]) -> None:
    """No image without a version; ours is built from the lock file with hashes."""
    for name in ("postgres", "redis"):
        assert re.search(r":\d", services[name]["image"])
    dockerfile = (REPO / "Dockerfile").read_text(encoding="utf-8")
    assert all(re.search(r":\d", image) for image in re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE))
    assert "--require-hashes -r requirements.lock" in dockerfile


def test_every_variable_is_in_the_example_and_no_secret_is_in_either_file() -> None:
    """What .env must hold is known, secrets are empty there and have no default in the compose file."""
    text = COMPOSE.read_text(encoding="utf-8")
    # FIRST_MACHINE stands in the example as a comment: it is for several machines only.
    text = re.sub(r"\$\{FIRST_MACHINE:-(postgres|redis|api-server)\}", r"\1", text)
    used = {name: (mark, default) for name, mark, default in re.findall(r"\$\{(\w+)(:[-?])?([^}]*)\}", text) if mark}
    known = example()
    assert set(used) <= {*known, "HOSTNAME"}
    assert set(known) - set(used) == {"COMPOSE_PROFILES"}
    secret = [name for name in known if re.search("PASSWORD|SECRET|KEY", name)]
    assert len(secret) == 6
    for name in secret:
        assert known[name] == ""
        assert used[name][0] == ":?"
    for name, (mark, default) in used.items():
        if mark == ":-":
            assert known[name] == default, name


def test_secrets_are_random_strong_and_fill_every_gap() -> None:
    """Two calls share nothing; nothing stays empty; the Fernet key is one."""
    import importlib.util

    from cryptography.fernet import Fernet

    spec = importlib.util.spec_from_file_location("make_env", REPO / "deploy" / "make_env.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (REPO / "deploy" / "env.example").read_text(encoding="utf-8")
    first, second = (dict(re.findall(r"^(\w+)=(.*)$", module.filled(text), re.MULTILINE)) for _ in range(2))
    for name, value in example().items():
        assert first[name] == value if value else len(first[name]) >= 44 and first[name] != second[name]
        assert name == "COMPOSE_PROFILES" or first[name]
    Fernet(first["AIRFLOW_FERNET_KEY"].encode())


def test_the_init_script_is_a_valid_one_and_makes_the_pools_of_the_dag() -> None:
    """bash can read it; both pools are in it. tests/e2e/test_celery.py runs it."""
    script = REPO / "deploy" / "init.sh"
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    pools = json.loads(re.sub(r"\$\{POOL_CPU:-4\}", "4", text.split("<<JSON\n")[1].split("\nJSON")[0]))
    assert {name: pool["slots"] for name, pool in pools.items()} == {"cpu": 4, "mem_heavy": 1}
