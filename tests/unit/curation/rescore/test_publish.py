"""The end of a threshold by hand-made proposals: a decision is about one of them, and so is a version of the blacklist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.blacklist.files import open_files
from curation.blacklist.history import latest_number, read_version
from curation.blacklist_input import entry_table
from curation.errors import ConfigError
from curation.rescore.publish import decide, decision_of, needs_decision, publish
from curation.rescore.settings import RescoreSettings
from curation.rescore.threshold import Threshold
from curation.run import file_sha256, write_json
from curation.shards import write_table


def settings_of(tmp_path: Path, root: str, **more: Any) -> RescoreSettings:
    """Of one training and one blacklist, whatever the root."""
    return RescoreSettings.model_validate(
        {
            "training": {"run": "toy", "ledger": str(tmp_path / "ledger")},
            "root": str(tmp_path / root),
            "blacklist": str(tmp_path / "blacklist"),
            **more,
        }
    )


def threshold_of(settings: RescoreSettings, checkpoint: str = "c1") -> Threshold:
    """One that has begun."""
    found = Threshold(settings, 1000)
    entry = {"tokens_seen": 1005, "checkpoint": checkpoint}
    begun = {"settings": settings.model_dump(mode="json"), "runs": ["a"], "begun": "2026-05-20T15:00:00Z"}
    found.folder.mkdir(parents=True)
    said = json.dumps({"entry": entry, "training_run": "toy", "threshold": 1000, **begun})
    (found.folder / "threshold.json").write_text(said, encoding="utf-8")
    return found


def proposed(threshold: Threshold, identity: str, *texts: int) -> None:
    """A proposal of these texts."""
    entries = entry_table([("text_id", f"{n:032x}", {"reason": "rescore.high_loss"}) for n in texts])
    files = {}
    for name in ("entries", "groups", "chosen"):
        path = threshold.folder / "chosen" / f"{name}.arrow"
        write_table(path, entries)
        files[path.name] = file_sha256(path)
    said = {"identity": identity, "counts": {"entries": len(texts)}, "files": files}
    write_json(threshold.folder / "chosen" / "proposal.json", said)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def test_a_version_of_another_proposal_is_not_this_one_s(tmp_path: Path) -> None:
    """Two roots with one name of a training and one blacklist: the second is refused, again and again, and told what to do."""
    first, second = (threshold_of(settings_of(tmp_path, root)) for root in ("one", "two"))
    proposed(first, "aaaaaaaa", 1)
    proposed(second, "bbbbbbbb", 2, 3)
    done = publish(first)
    assert done is not None
    assert (done["version"], done["entries"]) == (1, 1)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"version 1 of .* named 'toy/1000' already.*Delete that folder"):
            publish(second)
    assert not (second.folder / "published.json").exists()
    assert latest_number(open_files(tmp_path / "blacklist")) == 1


def test_the_same_proposal_finds_its_version(tmp_path: Path) -> None:
    """Whoever was killed between the append and his file, or published the very same from elsewhere, is told the version."""
    first, second = (threshold_of(settings_of(tmp_path, root)) for root in ("one", "two"))
    for one in (first, second):
        proposed(one, "aaaaaaaa", 1, 2)
        done = publish(one)
        assert done is not None
        assert (done["version"], done["entries"]) == (1, 2)


def test_a_decision_is_about_one_proposal(tmp_path: Path) -> None:
    """An approval of one does not publish the next; somebody is asked again, and his word counts then."""
    threshold = threshold_of(settings_of(tmp_path, "one", approval=True))
    proposed(threshold, "aaaaaaaa", 1)
    assert needs_decision(threshold)
    decide(threshold, "approved", "somebody")
    assert decide(threshold, "rejected", "another")["decision"] == "approved"
    assert not needs_decision(threshold)
    proposed(threshold, "bbbbbbbb", 2)
    assert decision_of(threshold) is None
    assert needs_decision(threshold)
    assert publish(threshold) is None
    assert not (tmp_path / "blacklist").exists()
    assert decide(threshold, "rejected", "another")["proposal"] == "bbbbbbbb"
    done = publish(threshold)
    assert done is not None
    assert done["version"] is None


def test_a_path_that_is_not_utf_8_is_told_escaped(tmp_path: Path) -> None:
    """Its bytes stand in the version's facts as escapes, and the next writer finds a whole history."""
    threshold = threshold_of(settings_of(tmp_path, "one"), "caf\udce9/c1")
    proposed(threshold, "aaaaaaaa", 1)
    publish(threshold)
    facts = read_version(open_files(tmp_path / "blacklist"), 1).facts
    assert facts["checkpoint"] == "caf\\udce9/c1"
