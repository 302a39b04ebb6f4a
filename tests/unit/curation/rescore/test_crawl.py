"""What a threshold judges: listed before the lock is taken, each file once, and as it was when the threshold began."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from curation import rescore_tasks as tasks
from curation.errors import InputError
from curation.ingest import find
from curation.rescore import crawl
from curation.rescore.settings import RescoreSettings
from curation.rescore.threshold import Threshold
from tests.rescore_loops import Loop, texts, write_texts

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

CRAWL = {"runs": [], "input": ["new"], "config": "crawl.yaml"}


@pytest.fixture
def settings(loop: Loop, model: Path) -> RescoreSettings:
    """Two thresholds are passed, and one file of new crawl is there."""
    (loop.folder / "crawl.yaml").write_text("steps: [{length: {min_units: 3}}]\n", encoding="utf-8")
    write_texts(loop.folder / "new" / "1.jsonl", texts(30))
    attempt = loop.attempt()
    for n in (1, 2):
        attempt.append(1000 * n + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))
    found = loop.settings(crawl=CRAWL)
    for tokens in tasks.due(found):
        tasks.pin(found, tokens)
    return found


def test_nobody_waits_while_the_input_is_listed(settings: RescoreSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is free then; what another threshold takes meanwhile, this one does not."""
    listed = find.find_inputs

    def slow(inputs: Any) -> Any:
        with (Threshold(settings, 1000).folder.parent / ".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = listed(inputs)
        monkeypatch.setattr(find, "find_inputs", listed)
        assert crawl.begin(Threshold(settings, 1000))
        return found

    (Threshold(settings, 1000).folder.parent / ".lock").touch()
    monkeypatch.setattr(find, "find_inputs", slow)
    assert not crawl.begin(Threshold(settings, 2000))
    states = [(Threshold(settings, n).done or {}).get("state") for n in (1000, 2000)]
    assert states == [None, "no_documents"]


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_file_that_changed_since_the_threshold_began_is_not_read_as_it_is_now(
    loop: Loop, settings: RescoreSettings, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It would be judged again at the next threshold, as the file it is now: refused, with what to do."""
    path, threshold = loop.folder / "new" / "1.jsonl", Threshold(settings, 1000)
    assert crawl.begin(threshold)
    was = path.stat()
    if when == "before":
        os.utime(path, (1e9, 1e9))
    else:
        drive = crawl.drive
        monkeypatch.setattr(crawl, "drive", lambda *args, **more: (drive(*args, **more), os.utime(path, (1e9, 1e9))))
    with pytest.raises(InputError, match=r"1\.jsonl .*when the threshold began.*--give-up 1000"):
        crawl.ingest_crawl(threshold)
    monkeypatch.undo()
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert crawl.ingest_crawl(threshold)["documents"] == 30
    os.utime(path, (1e9, 1e9))
    assert crawl.ingest_crawl(threshold)["reused"]
