"""What later runs lost through the blacklist: which runs count, whatever lies beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.report.rescore_later import later_runs
from curation.run import write_json
from curation.shards import write_table


def run(
    root: Path,
    name: str,
    *,
    version: Any = 3,
    start: str = "2026-05-21T00:00:00Z",
    done: bool = True,
    in_config: bool = False,
) -> Path:
    folder = root / "runs" / name
    step = folder / "steps" / "05-blacklisted-0a1b2c3d"
    write_json(folder / "run.json", {"run_id": name, "start": start})
    write_json(step / "_step.json", {"name": "blacklisted", "config": {} if in_config else {"version": version}})
    steps = f"steps: [language, {{blacklisted: {{version: {version}}}}}]\n" if in_config else "steps: []\n"
    (folder / "config.yaml").write_text(steps, encoding="utf-8")
    if done:
        write_json(
            step / "_done.json",
            {"docs_in": 10, "docs_kept": 7, "dropped": {"blacklisted.text": 2, "blacklisted.near": 1}},
        )
    return folder


def test_runs_of_this_version_or_a_later_one_count(tmp_path: Path) -> None:
    """In the order in which they began; the version is the step's or the config's; one that is not known is shown, as such."""
    run(tmp_path, "late", version=4, start="2026-05-23")
    run(tmp_path, "early", version=2)
    run(tmp_path, "same", in_config=True, start="2026-05-22")
    run(tmp_path, "open", done=False, start="2026-05-24")
    run(tmp_path, "unknown", version="latest", start="2026-05-25")
    (tmp_path / "runs" / "stray.txt").write_text("x", encoding="utf-8")
    (tmp_path / "runs" / "empty").mkdir()
    damaged = run(tmp_path, "damaged", start="2026-05-26")
    (damaged / "run.json").write_text("{", encoding="utf-8")
    found = later_runs(tmp_path, 3)
    assert [(one["run_id"], one["version"], one["closed"]) for one in found] == [
        ("same", 3, True),
        ("late", 4, True),
        ("open", 3, False),
        ("unknown", None, True),
    ]
    assert found[0]["dropped"] == {"blacklisted.near": 1, "blacklisted.text": 2}
    assert (found[0]["documents"], found[0]["kept"]) == (10, 7)


def test_what_entries_of_this_version_did_is_told_apart(tmp_path: Path) -> None:
    """By the entry that decided; a document that an older entry dropped is not counted, whatever else speaks of it."""

    def match(kind: str, entry: str) -> dict[str, Any]:
        return {"kind": kind, "entry": entry, "reason": "rescore.high_loss", "score": "4.2", "what": "x"}

    rows = [
        {"reason": "blacklisted.text", "matches": [match("text", "3/0"), match("domain", "2/7")]},
        {"reason": "blacklisted.text", "matches": [match("text", "1/5"), match("domain", "3/7")]},
        {"reason": "blacklisted.near", "matches": [match("near", "30/1")]},
        {"reason": "blacklisted.domain", "matches": [match("domain", "3/7")]},
        {"reason": None, "matches": [match("url", "3/9")]},
        {"reason": None, "matches": None},
    ]
    step = run(tmp_path, "some") / "steps" / "05-blacklisted-0a1b2c3d"
    write_table(step / "00000-000.arrow", pa.Table.from_pylist(rows))
    assert later_runs(tmp_path, 3)[0]["by_this"] == 2
    write_table(step / "00001-000.arrow", pa.table({"reason": ["blacklisted.text"]}))
    assert later_runs(tmp_path, 3)[0]["by_this"] is None


def test_without_a_version_nothing_was_lost(tmp_path: Path) -> None:
    run(tmp_path, "some")
    assert later_runs(tmp_path, None) == []
    assert later_runs(tmp_path / "nosuch", 1) == []
