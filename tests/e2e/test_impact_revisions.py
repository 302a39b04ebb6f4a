"""A clone of this repository with a commit that changes a filter: its revisions compared, killed, at once, and broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from curation.impact.code import HERE, Sources
from curation.impact.kernels import share_kernels
from tests.impact_repository import commit, git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONFIG = "name: mine\nsteps:\n  - exact: {}\n  - length: {min_units: 5}\n  - html_noise: {}\n"
OLD, NEW = "units < np.float32(self.config.min_units)", "units <= np.float32(self.config.min_units)"
SCRIPT = """
import json, sys
from pathlib import Path
import curation
from curation.errors import CorpusmillError
from curation.impact.run import judge_change
config, base, sample, root = sys.argv[1:]
try:
    found = judge_change(config, base, Path(sample), Path(root))
except CorpusmillError as error:
    print(json.dumps({"error": type(error).__name__, "text": str(error)}))
    raise SystemExit
table = found.documents
print(json.dumps({
    "package": curation.__file__,
    "labels": [found.base.label, found.new.label],
    "commit": found.base.commit,
    "before": table["before"].to_pylist(),
    "after": table["after"].to_pylist(),
    "ids": table["id"].to_pylist(),
    "outcomes": [[one.step, one.reason] for one in found.outcomes],
    "code": {side: {step.name: step.code for step in getattr(found, side).steps} for side in ("base", "new")},
    "scored": {side: {step.name: step.scored for step in getattr(found, side).steps} for side in ("base", "new")},
    "folders": {side: {step.name: str(step.folder) for step in getattr(found, side).steps} for side in ("base", "new")},
    "notes": found.notes,
}))
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone at HEAD with a config and a sample of 12 documents; kernels that are compiled here are so there."""
    if not (HERE / ".git").exists():
        pytest.skip("the package lies in no git checkout, so it has no revisions")
    folder = tmp_path_factory.mktemp("clone") / "repo"
    git(HERE, "clone", "-q", "--local", str(HERE), str(folder))
    source = (folder / "curation/filters/length.py").read_text()
    assert OLD in source, f"length.py does not say {OLD!r} any more: choose another change for this test"
    lines = [json.dumps({"id": f"d{n}", "text": " ".join(["word"] * n)}) for n in range(1, 13)]
    commit(folder, {"mine.yaml": CONFIG, "sample/a.jsonl": "\n".join(lines) + "\n"}, "begin")
    git(folder, "tag", "begin")
    commit(folder, {"curation/filters/length.py": source.replace(OLD, NEW)}, "change a filter")
    share_kernels(Sources(HERE), Sources(folder))
    return folder


def _command(clone: Path, base: str, root: Path) -> tuple[list[str], dict[str, str]]:
    arguments = [str(clone / "mine.yaml"), base, str(clone / "sample"), str(root)]
    environment = {**os.environ, "PYTHONPATH": str(clone), "PYTHONSAFEPATH": "1"}
    return [sys.executable, "-P", "-c", SCRIPT, *arguments], environment


def _judge(clone: Path, base: str, root: Path) -> dict[str, Any]:
    command, environment = _command(clone, base, root)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _moved(found: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    rows = zip(found["ids"], found["before"], found["after"], strict=True)
    return {key: (found["outcomes"][a], found["outcomes"][b]) for key, a, b in rows if a != b}


EXPECTED = {"d5": ([None, None], ["length", "length.too_short"])}


def test_a_changed_comparison_is_seen(clone: Path, tmp_path: Path) -> None:
    """The base is judged by its own code, and by no more of it than what differs; the second time nothing is done."""
    root = tmp_path / "root"
    found = _judge(clone, "begin", root)
    assert found["package"].startswith(str(clone))
    assert found["labels"] == [f"begin ({git(clone, 'rev-parse', 'begin')[:7]})", "working tree"]
    assert found["commit"] == git(clone, "rev-parse", "begin")
    assert _moved(found) == EXPECTED
    base, new = found["code"]["base"], found["code"]["new"]
    assert [name for name in base if base[name] != new[name]] == ["length"]
    assert found["scored"] == {
        "base": {"exact": 12, "length": 12, "html_noise": 7},
        "new": {"exact": 12, "length": 12, "html_noise": 7},
    }
    markers = [Path(found["folders"][side]["exact"]) / "_done.json" for side in ("base", "new")]
    assert markers[0].samefile(markers[1])
    began = {path: path.stat().st_mtime_ns for path in (root / "impact" / "runs").rglob("_done.json")}
    assert _judge(clone, "begin", root) == found
    assert {path: path.stat().st_mtime_ns for path in began} == began


@contextmanager
def _added_to(path: Path) -> Iterator[None]:
    """A line of code more in a file of the working tree, for as long as the block lasts."""
    text = path.read_text()
    try:
        path.write_text(f"{text}\nADDED = 1\n")
        yield
    finally:
        path.write_text(text)


def test_a_commit_that_changes_no_code_of_the_steps_is_judged_by_this_code(clone: Path, tmp_path: Path) -> None:
    """Neither a report nor another filter is what these verdicts depend on."""
    with _added_to(clone / "curation/report/numbers.py"):
        found = _judge(clone, "HEAD", tmp_path / "root")
    assert found["commit"] is None
    assert _moved(found) == {}


def test_what_drives_the_steps_is_code_too(clone: Path, tmp_path: Path) -> None:
    """The steps are equal, and yet the base is judged by its own engine, by scores that are taken over."""
    with _added_to(clone / "curation/pipeline.py"):
        found = _judge(clone, "HEAD", tmp_path / "root")
    assert found["code"]["base"] == found["code"]["new"]
    assert found["commit"] == git(clone, "rev-parse", "HEAD")
    assert _moved(found) == {}
    assert not [note for note in found["notes"] if "Both sides are the same" in note]


def test_killed_at_any_moment_it_goes_on(clone: Path, tmp_path: Path) -> None:
    """With kill -9, of the process alone or of those that it started too; the answer is the same in the end."""
    root = tmp_path / "root"
    command, environment = _command(clone, "begin", root)
    for number, seconds in enumerate((0.8, 1.6, 2.4, 3.5, 5.0, 7.0)):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as running:
            time.sleep(seconds)
            if running.poll() is None:
                (os.kill, os.killpg)[number % 2](running.pid, signal.SIGKILL)
            running.communicate()
    assert _moved(_judge(clone, "begin", root)) == EXPECTED


def test_two_at_once_both_answer(clone: Path, tmp_path: Path) -> None:
    """The second waits for the first and finds its work done."""
    command, environment = _command(clone, "begin", tmp_path / "root")
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [one.communicate() for one in both]
    assert [one.returncode for one in both] == [0, 0], told
    answers = [json.loads(out.splitlines()[-1]) for out, _ in told]
    assert answers[0] == answers[1]
    assert _moved(answers[0]) == EXPECTED


def test_a_base_that_is_broken_is_quoted(clone: Path, tmp_path: Path) -> None:
    """And a config that its code refuses is a mistake in the config."""
    source = (clone / "curation/filters/length.py").read_text()
    branch = git(clone, "rev-parse", "--abbrev-ref", "HEAD")
    git(clone, "checkout", "-q", "-b", "broken")
    commit(clone, {"curation/filters/length.py": source.replace(NEW, "units < self.config.no_such_limit")}, "break it")
    commit(
        clone, {"curation/filters/length.py": source, "mine.yaml": CONFIG.replace("min_units", "min_words")}, "no key"
    )
    git(clone, "checkout", "-q", branch)
    broken = _judge(clone, "broken~1", tmp_path / "root")
    assert broken["error"] == "RunError"
    assert "no_such_limit" in broken["text"]
    assert "broken~1" in broken["text"]
    refused = _judge(clone, "broken", tmp_path / "root")
    assert refused["error"] == "ConfigError"
    assert "min_words" in refused["text"]
