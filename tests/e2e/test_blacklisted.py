"""A run with `blacklisted: {}` by the command line: what is dropped, what is told, the same with any number of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.run import read_json

WORDS = [f"word{i}" for i in range(400)]


def page(number: int) -> str:
    return " ".join(WORDS[(number * 37 + i * (number + 3)) % 400] + str(number) for i in range(120))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """40 pages; the config has the step in one line."""
    rows = [{"id": str(i), "text": page(i), "url": f"https://s{i}.example/p"} for i in range(40)]
    rows.append({"id": "near", "text": page(1) + " and a bit more", "url": "https://b.example/"})
    rows.append({"id": "domain", "text": "A page of its own about something else.", "url": "https://x.spam.example/"})
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = "ingest: {shard_mb: 1}\nsteps:\n  - blacklisted: {}\n  - exact: {}\n  - near: {}\n"
    (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
    return tmp_path


def run(corpus: Path, *more: str) -> dict[str, Any]:
    root = str(corpus / "root")
    before = set((corpus / "root" / "runs").glob("*"))
    command = ["run", str(corpus / "c.yaml"), "--input", str(corpus / "in.jsonl"), "--root", root, "--quiet", *more]
    assert main(command) == 0
    new = set((corpus / "root" / "runs").glob("*")) - before
    folder = new.pop() if new else max(before)
    funnel = read_json(folder / "report" / "funnel.json")
    return {**next(step for step in funnel["steps"] if step["name"] == "blacklisted"), "folder": folder}


def test_a_blacklist_is_obeyed_from_the_next_run_on(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing without a list; then text, near copy and domain, whatever the workers; explained with the entry."""
    assert run(corpus)["dropped"] == {}
    place = ["--root", str(corpus / "root")]
    (corpus / "bad.txt").write_text(page(1), encoding="utf-8")
    assert main(["blacklist", "add", "--text", str(corpus / "bad.txt"), "--reason", "test.noise", *place]) == 0
    assert main(["blacklist", "add", "--domain", "spam.example", "--reason", "test.spam", *place]) == 0
    found = run(corpus)
    expected = {"blacklisted.text": 1, "blacklisted.near": 1, "blacklisted.domain": 1}
    assert found["dropped"] == expected
    assert run(corpus)["folder"] == found["folder"]
    other = run(corpus, "--new", "--workers", "2")
    verdicts = [sorted(one["folder"].glob("steps/01-*/*.arrow")) for one in (found, other)]
    assert [path.name for path in verdicts[0]] == [path.name for path in verdicts[1]]
    assert other["dropped"] == expected
    facts = read_json(next(found["folder"].glob("steps/01-*/_done.json")))["facts"]
    assert (facts["version"], len(facts["dropped_by"])) == (2, 3)
    capsys.readouterr()
    assert main(["explain", str(found["folder"]), "near"]) == 0
    told = capsys.readouterr().out
    assert "blacklisted.near" in told
    assert "matches near 1/0 test.noise" in told
    assert main(["what-if", str(found["folder"]), "--set", "blacklisted.threshold=1"]) == 0
    assert run(corpus, "--set", "blacklisted.version=1", "--new")["dropped"] == {
        "blacklisted.text": 1,
        "blacklisted.near": 1,
    }
