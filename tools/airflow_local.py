"""A local Airflow in this folder: `up` starts it, `down` stops it, `demo` curates the demo input through it.

    python tools/airflow_local.py demo

Needs no network, no login and no root; listens on 127.0.0.1 only; leaves nothing running that it started.
Starting takes about 20 seconds on two cores, most of which Airflow spends on importing itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from airflow_api import AirflowApi, ApiError
from airflow_demo import follow, print_failure, print_result
from airflow_home import BIN, REPO, Home, LocalAirflowError, cores, tail

START_LIMIT_S = 180
RUN_LIMIT_S = 1800
TINY = "A sentence of a few words.\n\nund ein kurzer\nRZECZ\nодно слово\n这是一句话（and an English one）。\nこれは日本語です。e\u0301"
"""Lines of many kinds: each reaches other kernels."""
PROSE = "The old mill by the river is open again, and the children come to help. It was closed for years, as its roof had fallen."
"""What every filter keeps, so that the last one sees a text, too."""


def say(text: str) -> None:
    print(text, flush=True)


def running(home: Home) -> AirflowApi | None:
    """The Airflow of this folder if it is up and well."""
    port = home.started().get("port")
    if port is None or home.dead_component():
        return None
    api = AirflowApi(f"http://127.0.0.1:{port}")
    return api if api.healthy() else None


def bring_up(home: Home) -> AirflowApi:
    """Start Airflow and wait until it has read the DAG; what an earlier one left behind is stopped first.

    Raises:
        LocalAirflowError: a component died or nothing came up; with the end of its log.
    """
    if home.stop():
        say("stopped what an earlier Airflow had left behind")
    begun = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    api = AirflowApi(f"http://127.0.0.1:{home.start()}")
    # Its first answer to a task takes the API server seconds, more than a task waits: have that behind us.
    _wait(home, "answer", api.answers_tasks)
    _wait(home, "come up", api.healthy)
    # An old version of the DAG may stand in the database: wait until its file was read anew.
    _wait(home, "read the DAG", lambda: (api.parsed_at() or "") >= begun, api)
    api.set_pool("cpu", cores(), "one slot a core: chunks of a pass")
    api.set_pool("mem_heavy", 1, "tasks that need the machine's memory for themselves")
    return api


def _wait(home: Home, what: str, ready: Callable[[], bool], api: AirflowApi | None = None) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not ready():
        dead = home.dead_component()
        if dead or time.monotonic() > deadline:
            why = f"its {dead} ended" if dead else f"it did not {what} within {START_LIMIT_S} seconds"
            logs = [dead] if dead else ["api-server", "scheduler", "dag-processor"]
            ends = [
                f"--- {home.component_log(name)}\n{tail(home.component_log(name).read_text(errors='replace'))}"
                for name in logs
            ]
            raise LocalAirflowError(f"Airflow did not start: {why}.\n" + "\n".join(ends))
        if api is not None and (errors := api.import_errors()):
            raise LocalAirflowError("Airflow cannot read the DAG:\n" + "\n".join(tail(error) for error in errors))
        time.sleep(0.25)


def up(home: Home) -> int:
    """Start Airflow unless it is up, and leave it running."""
    api = running(home)
    if api is None:
        say("starting Airflow ...")
        api = bring_up(home)
    say(f"Airflow is up: {api.address}/dags/curate (no login; stop it with `make down`)")
    return 0


def down(home: Home) -> int:
    """Stop Airflow."""
    n_stopped = home.stop()
    say(f"Airflow is stopped ({n_stopped} processes)" if n_stopped else "Airflow was not running")
    return 0


def demo(home: Home) -> int:
    """Make the demo input, curate it through Airflow, show what became of it; 0 only if the run is green."""
    begun = time.monotonic()
    with _demo_input() as finished_input:
        api = running(home)
        was_up = api is not None
        try:
            if api is None:
                say("starting Airflow ...")
                api = bring_up(home)
                for left in api.unfinished_runs():
                    if left.startswith("demo-"):  # of a demo that was killed
                        api.give_up(left)
            files = finished_input()
            say(f"Airflow is up after {time.monotonic() - begun:.0f} s: {api.address}/dags/curate")
            return _demo_run(home, api, files, begun)
        finally:
            if not was_up:
                home.stop()
                say(
                    f"Airflow is stopped; {time.monotonic() - begun:.0f} s in all. `make up` starts it and leaves it running."
                )


@contextlib.contextmanager
def _demo_input() -> Iterator[Callable[[], list[str]]]:
    """Makes the input while Airflow starts; yields a function that waits for it and returns its files."""
    folder = REPO / ".cache" / "demo-input"
    command = [sys.executable, str(REPO / "demo" / "make_input.py"), str(folder)]

    def finished() -> list[str]:
        failed = maker.wait()
        words.seek(0)
        if failed:
            raise LocalAirflowError(f"making the demo input failed:\n{tail(words.read())}")
        say(words.read().strip())
        # Beside the input lies what must come out of it.
        return sorted(str(path) for path in folder.iterdir() if path.suffix != ".json")

    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as words,
        subprocess.Popen(command, stdout=words, stderr=subprocess.STDOUT) as maker,
        _compiled_kernels(),
    ):
        try:
            yield finished
        finally:
            maker.kill()


@contextlib.contextmanager
def _compiled_kernels() -> Iterator[None]:
    """On a fresh machine compiling the kernels takes a minute: a tiny run does it while Airflow starts."""
    with tempfile.TemporaryDirectory(prefix="corpusmill-warm-") as folder:
        tiny = Path(folder) / "tiny.jsonl"
        records = [{"id": str(number), "text": text} for number, text in enumerate((TINY, PROSE))]
        tiny.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        command = [
            str(BIN / "corpusmill"),
            "run",
            "demo",
            "--input",
            str(tiny),
            "--root",
            folder,
            "--workers",
            "1",
            "--quiet",
        ]
        # Only its by-product counts: if it fails, so will the run, which says why.
        with subprocess.Popen(["nice", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as warmer:
            try:
                yield
            finally:
                warmer.kill()


def _demo_run(home: Home, api: AirflowApi, files: list[str], begun: float) -> int:
    run_id = f"demo-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}"
    root = Path(os.environ.get("CORPUSMILL_ROOT", home.root)).resolve()
    api.trigger(run_id, {"input": files, "config": "demo", "root": str(root)})
    say(f"run {run_id}")
    ended = follow(api, run_id, home, RUN_LIMIT_S)
    if ended["state"] != "success":
        print_failure(api, run_id)
        return 1
    print_result(root / "runs" / run_id, ended, seconds=time.monotonic() - begun)
    return _verify(root / "runs" / run_id)


def _verify(folder: Path) -> int:
    """The trainer's own check of the token file, as a command."""
    say("")
    return subprocess.run([str(BIN / "corpusmill"), "verify", str(folder)], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["up", "down", "demo"])
    command = parser.parse_args().command
    try:
        return {"up": up, "down": down, "demo": demo}[command](Home())
    except (LocalAirflowError, ApiError) as error:
        print(f"airflow_local: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("airflow_local: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
