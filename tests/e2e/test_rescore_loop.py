"""The whole loop on a real Airflow: a training passes thresholds, new crawl is judged, and the next curation obeys.

A scheduler of its own with SQLite; it is killed with all of its tasks while a checkpoint judges, and started again. Every
event comes twice, some late; the last checkpoint is half written when it is reported. Takes three to five minutes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tokenizers import Tokenizer

from curation.blacklist.blacklist import Blacklist
from curation.config import load_config
from curation.explain import explain
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import read_json
from demo.make_input import make_input
from tests import airflow_env
from tests.airflow_services import AIRFLOW, Services
from tests.token_files import save_tokenizer, small_bpe
from tokenization.progress import Entry, ProgressLedger
from tokenization.reader import TokenFile
from tools.airflow_api import ApiError

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed: `make torch`", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(1500)]

REPO = airflow_env.REPO
EVERY, TRAINED, REPORTED = 200_000, 2, 3
"""Tokens between thresholds; thresholds that the trainer passes; and with that of the half-written checkpoint."""
STEPS, BATCH, SEQ_LEN = 110, 16, 256
"""110 steps of 16 sequences of 256 tokens: 447,000 tokens."""
NEW, JUNK = 260, 20
"""Documents and planted noise of each file of new crawl."""
EOS = "<|endoftext|>"
"""Ends a document."""
ALPHABET = "bcdfghjklmnpqrstvwxz0123456789#%&*"


class Loop:
    """Folders and files of the loop, the first curation, and what the test says to Airflow."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "root"
        self.crawl, self.training = folder / "crawl", folder / "training"
        for path in (self.crawl, self.training):
            path.mkdir()
        tokenizer = folder / "tokenizer"
        tokenizer.mkdir()
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS}
        save_tokenizer(tokenizer, Tokenizer.from_str(small_bpe()), settings)
        self.tokenizer = str(tokenizer)
        make_input(folder / "demo")
        names = ("docs.jsonl", "crawl.jsonl.zst", "broken.jsonl")
        self.inputs = [str(folder / "demo" / name) for name in names]
        self.blacklist = str(self.root / "blacklist")
        self.ledger = ProgressLedger(self.training / "progress.jsonl")

    def config(self, name: str, steps: Sequence[Any], *, pack: bool) -> Path:
        path = self.folder / f"{name}.yaml"
        data: dict[str, Any] = {"name": name, "ingest": {"max_quarantine_share": 0.5}, "steps": list(steps)}
        if pack:
            data["pack"] = {"tokenizer": self.tokenizer, "eos": EOS, "seq_len": SEQ_LEN}
        path.write_text(yaml.safe_dump(data), encoding="utf-8")
        return path

    def curate(self, config: Path, inputs: Sequence[str]) -> Pipeline:
        """A run by the command line's functions."""
        pipeline = start_run(load_config(config), list(inputs), self.root)
        drive(pipeline, workers=1)
        finish_run(pipeline)
        return Pipeline.open(pipeline.run.folder)

    def settings(self) -> Path:
        """Of the re-score."""
        data = {
            "training": {
                "run": "gpt",
                "ledger": str(self.training),
                "tokenizer": {"name": self.tokenizer, "eos": EOS},
            },
            "every_tokens": EVERY,
            "root": str(self.root),
            "crawl": {
                "runs": [],
                "input": [str(self.crawl)],
                "config": str(self.config("crawl", ["exact"], pack=False)),
            },
            "score": {"device": "cpu", "max_windows": 2},
            # A model of half a million tokens knows letters and little more: the noise is what it finds hardest.
            "choose": {"group": "language", "high": {"percentile": 96}, "max_share": 0.1, "min_documents": 50},
            "wait_seconds": 2,
        }
        path = self.folder / "rescore.yaml"
        path.write_text(yaml.safe_dump(data), encoding="utf-8")
        return path

    def new_crawl(self, number: int, texts: Sequence[str]) -> None:
        """A file of new pages, made of paragraphs of others, with noise among them; it appears whole."""
        rng = random.Random(number)
        parts = [part for text in texts for part in text.split("\n\n") if 80 < len(part) < 1500]
        pages = ["\n\n".join(rng.choices(parts, k=4)) for _ in range(NEW)]
        noise = [
            " ".join("".join(rng.choices(ALPHABET, k=rng.randint(3, 12))) for _ in range(120)) for _ in range(JUNK)
        ]
        lines = [
            {"id": f"{kind}-{number}-{n}", "text": text}
            for kind, some in (("page", pages), ("noise", noise))
            for n, text in enumerate(some)
        ]
        rng.shuffle(lines)
        written = self.folder / f"{number}.tmp"
        written.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        written.replace(self.crawl / f"{number}.jsonl")

    def threshold(self, k: int) -> Path:
        return self.root / "rescore" / "gpt" / f"{k * EVERY:016d}"

    def is_begun(self, k: int) -> bool:
        path = self.threshold(k) / "threshold.json"
        return path.exists() and read_json(path)["begun"] is not None

    def done(self, k: int) -> dict[str, Any] | None:
        path = self.threshold(k) / "_done.json"
        return read_json(path) if path.exists() else None


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    folder = Path(tempfile.mkdtemp(prefix="corpusmill-loop-"))
    try:
        yield Loop(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def airflow(loop: Loop) -> Iterator[Services]:
    """API server, DAG processor and scheduler; the DAG `rescore` is on."""
    home = loop.folder / "services"
    home.mkdir()
    settings = {
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        # When a scheduler counts as dead, and how soon another one looks for its tasks: 5 minutes unless it is said.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
        "CORPUSMILL_RESCORE": str(loop.settings()),
        "OMP_NUM_THREADS": "1",
    }
    found = Services(home, settings, "rescore")
    try:
        migrated = subprocess.run(
            [AIRFLOW, "db", "migrate"], env=found.environment, cwd=home, capture_output=True, text=True, check=False
        )
        assert migrated.returncode == 0, migrated.stdout + migrated.stderr
        found.start("api-server", AIRFLOW, "api-server", "--workers", "1")
        found.start("dag-processor", AIRFLOW, "dag-processor")
        start_scheduler(found)
        found.wait_for("API server", found.api.answers_tasks)
        found.wait_for("scheduler", found.api.healthy)
        found.wait_for("DAG", lambda: found.api.parsed_at() is not None)
        found.api.set_pool("cpu", 2, "one slot a core")
        yield found
    finally:
        found.stop()


def start_scheduler(airflow: Services) -> None:
    airflow.start("scheduler", AIRFLOW, "scheduler", "--skip-serve-logs")


def report(airflow: Services, entry: Entry) -> None:
    """Post a line of the ledger as an event, as a trainer does: best effort."""
    extra = {
        "training_run": entry.run,
        "tokens_seen": entry.tokens_seen,
        "step": entry.step,
        "time": entry.time.isoformat(),
        "checkpoint": entry.checkpoint,
        "checkpoint_sha256": entry.checkpoint_sha256,
    }
    try:
        found = airflow.api.call("GET", "/api/v2/assets?name_pattern=corpusmill_progress")["assets"]
        body = {"asset_id": found[0]["id"], "extra": extra}
        airflow.api.call("POST", "/api/v2/assets/events", body)
    except ApiError as error:
        print(f"no event: {error}")


class Trainer:
    """The example, in a process of its own, and its reports: each twice."""

    def __init__(self, loop: Loop, file: Path, airflow: Services) -> None:
        command = [sys.executable, str(REPO / "examples" / "train_gpt.py"), str(file), "--out", str(loop.training)]
        command += ["--steps", str(STEPS), "--batch", str(BATCH), "--save-every", "20", "--device", "cpu"]
        self.log = loop.folder / "trainer.log"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPO)}
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=environment)
        self.ledger, self.airflow, self.told = loop.ledger, airflow, 0

    def tell(self) -> bool:
        """Post what is new, and the line before once more; true when the training has ended."""
        ended = self.process.poll() is not None
        lines = [entry for entry in self.ledger.read().entries if entry.checkpoint]
        for place in range(self.told, len(lines)):
            for entry in (lines[place], lines[max(0, place - 1)], lines[place]):
                report(self.airflow, entry)
        self.told = len(lines)
        if ended and self.process.returncode:
            pytest.fail(self.log.read_text(errors="replace")[-3000:])
        return ended


def follow(airflow: Services, what: str, ready: Callable[[], bool], trainer: Trainer, seconds: float = 300) -> None:
    """Wait for something while the trainer goes on and its reports come in."""

    def told() -> bool:
        trainer.tell()
        return ready()

    airflow.wait_for(what, told, seconds)


def late_checkpoint(loop: Loop) -> tuple[Entry, bytes]:
    """The trainer's last checkpoint once more under a new name, as the one that passed the next threshold; half of it is written."""
    last = loop.ledger.read().latest_checkpoint("gpt")
    assert last is not None
    assert last.checkpoint
    whole = (loop.training / last.checkpoint).read_bytes()
    (loop.training / "late.pt").write_bytes(whole[: len(whole) // 2])
    attempt = loop.ledger.begin("gpt", tokenizer=last.tokenizer, token_files=last.token_files, after=last)
    entry = attempt.append(REPORTED * EVERY + 7, last.step + 1, "late.pt", sha256=last.checkpoint_sha256)
    return entry, whole


def nudge(airflow: Services, entry: Entry) -> None:
    """Report until a run has begun after that and ended."""
    before = {one["dag_run_id"] for one in _runs(airflow)}
    report(airflow, entry)

    def ended() -> bool:
        fresh = [one for one in _runs(airflow) if one["dag_run_id"] not in before]
        return any(one["state"] in ("success", "failed") for one in fresh)

    airflow.wait_for("a run after the report", ended, 300)


def _runs(airflow: Services) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = airflow.api.call("GET", f"{airflow.api.dag}/dagRuns?limit=100")["dag_runs"]
    except ApiError:
        return []
    return found


def test_the_next_curation_drops_what_the_training_found(loop: Loop, airflow: Services) -> None:
    """Each threshold once, whatever happens; a version of the blacklist for each; the next run drops exactly those."""
    first = loop.curate(loop.config("first", ["exact", "language", "length"], pack=True), loop.inputs)
    file = first.run.pack / "tokens.arrow"
    texts = [text for text in _texts(first) if text.isascii()]
    loop.new_crawl(1, texts)
    trainer = Trainer(loop, file, airflow)
    try:
        follow(airflow, "the first threshold", lambda: loop.is_begun(1), trainer)
        loop.new_crawl(2, texts)
        airflow.kill("scheduler")  # with all of its tasks: the first threshold is being judged
        for _ in range(12):  # meanwhile the training goes on
            trainer.tell()
            time.sleep(0.5)
        start_scheduler(airflow)
        trained = range(1, TRAINED + 1)
        follow(airflow, "every threshold of the trainer", lambda: all(loop.done(k) for k in trained), trainer, 600)
        airflow.wait_for("the end of the training", trainer.tell, 300)
    finally:
        trainer.process.kill()
        trainer.process.wait()
    before = {k: (loop.threshold(k) / "_done.json").read_bytes() for k in trained}
    loop.new_crawl(3, texts)
    entry, whole = late_checkpoint(loop)
    nudge(airflow, entry)
    assert loop.done(REPORTED) is None, "a half-written checkpoint has judged"
    (loop.training / "late.tmp").write_bytes(whole)
    (loop.training / "late.tmp").replace(loop.training / "late.pt")
    nudge(airflow, entry)
    airflow.wait_for("the threshold of the late checkpoint", lambda: loop.done(REPORTED) is not None, 300)
    nudge(airflow, entry)  # once more: nothing is due
    assert {k: (loop.threshold(k) / "_done.json").read_bytes() for k in before} == before
    check_reports(airflow)
    check_versions(loop)
    check_curation(loop)


def _texts(pipeline: Pipeline) -> list[str]:
    """Texts of the documents that a run has kept."""
    from curation.export import export_kept

    out = pipeline.run.folder.parent.parent / "kept.jsonl"
    export_kept(pipeline, out)
    return [json.loads(line)["text"] for line in out.read_text(encoding="utf-8").splitlines()]


def check_reports(airflow: Services) -> None:
    """What the events told came to the ledger: none was refused."""
    total = Counter[str]()
    for run in _runs(airflow):
        path = (
            f"{airflow.api.dag}/dagRuns/{quote(run['dag_run_id'])}/taskInstances/take_reports/xcomEntries/return_value"
        )
        try:
            told = airflow.api.call("GET", path)["value"]
        except ApiError as error:  # it was killed, or has not ended
            print(f"{run['dag_run_id']}: {error}")
            continue
        total.update(json.loads(told) if isinstance(told, str) else told)
    print(dict(total))
    assert total["recorded"] + total["known"] > 0, total
    assert total["wrong"] == 0, total


def check_versions(loop: Loop) -> None:
    """A version for each threshold that chose something, one after the other; every file of crawl was judged once."""
    folders = sorted(path.name for path in loop.threshold(1).parent.glob("0*"))
    assert folders == [loop.threshold(k).name for k in range(1, REPORTED + 1)]
    marks = [loop.done(k) for k in range(1, REPORTED + 1)]
    published = [mark["version"] for mark in marks if mark and mark["state"] == "published"]
    assert published == list(range(1, len(published) + 1))
    assert len(published) >= 2, marks
    assert Blacklist.open(loop.blacklist).version == published[-1]
    judged = [
        file[0]
        for k in range(1, REPORTED + 1)
        for file in ((read_json(loop.threshold(k) / "threshold.json")["crawl"] or {}).get("files") or [])
    ]
    assert sorted(Path(one).name for one in judged) == ["1.jsonl", "2.jsonl", "3.jsonl"]
    for k, mark in enumerate(marks, start=1):
        if mark and mark["state"] == "published":
            assert (loop.threshold(k) / "report" / "report.html").stat().st_size > 10_000


def check_curation(loop: Loop) -> None:
    """The second run drops exactly what is blacklisted, by its newest version, and its token file lacks it."""
    blacklist = Blacklist.open(loop.blacklist)
    listed = set(blacklist.entries(["key"]).column("key").to_pylist())
    assert listed
    steps = ["exact", {"blacklisted": {"path": loop.blacklist}}, "language", "length"]
    config = loop.config("second", steps, pack=True)
    crawls = [str(path) for path in sorted(loop.crawl.iterdir())]
    second = loop.curate(config, [*loop.inputs, *crawls])
    funnel = read_json(second.run.report / "funnel.json")
    step = next(one for one in funnel["steps"] if one["name"] == "blacklisted")
    assert step["dropped"] == {"blacklisted.text": len(listed)}
    here = dict(_ids(second))
    packed = set(pq.read_table(second.run.pack / "documents.parquet", columns=["doc_id"]).column("doc_id").to_pylist())
    assert {here[one] for one in packed} & listed == set()
    assert {text_id for one, text_id in here.items()} >= listed
    assert len(TokenFile(second.run.pack / "tokens.arrow", verify="all")) > 0
    noise = [user for user, text_id in _user_ids(second) if text_id in listed]
    share = sum(one.startswith("noise-") for one in noise) / len(noise)
    assert share > 0.8, f"of what was blacklisted only {share:.0%} was planted noise"
    gone = next(one for one in noise if one.startswith("noise-"))
    told = explain(second, gone)[0]
    assert "blacklisted.text" in str(told)


def _ids(pipeline: Pipeline) -> list[tuple[bytes, bytes]]:
    """doc_id and text_id of all documents."""
    tables = [pa.ipc.open_file(pa.memory_map(str(shard.path))).read_all() for shard in pipeline.shards]
    table = pa.concat_tables([table.select(["doc_id", "text_id"]) for table in tables])
    return list(zip(table.column("doc_id").to_pylist(), table.column("text_id").to_pylist(), strict=True))


def _user_ids(pipeline: Pipeline) -> list[tuple[str, bytes]]:
    """The crawl's own id and text_id of all documents."""
    tables = [pa.ipc.open_file(pa.memory_map(str(shard.path))).read_all() for shard in pipeline.shards]
    table = pa.concat_tables([table.select(["id", "text_id"]) for table in tables])
    return list(zip(table.column("id").to_pylist(), table.column("text_id").to_pylist(), strict=True))
