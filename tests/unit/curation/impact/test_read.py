"""Both sides as one table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError, InputError, RunError
from curation.impact.classes import LENGTHS
from curation.impact.facts import DOCUMENTS_SCHEMA, KEPT, NOT_JUDGED, Comparison, Outcome
from curation.impact.run import judge_change
from curation.impact.seeds import own_steps
from curation.run import read_json

CONFIG = "name: mine\nsteps:\n  - exact: {}\n  - length: {min_units: 3}\n"
TOO_SHORT = Outcome("length", "length.too_short")
COPY = Outcome("exact", "exact.copy")


def _line(n: int) -> dict[str, Any]:
    drawn = {"stratum": n % 2, "weight": 2.5, "source": f"crawl-{n % 3}"} if n > 4 else "odd"
    return {"id": f"d{n}", "text": " ".join(["word"] * n), "quality": "good" if n > 6 else 7, "sample": drawn}


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, Path, Path]:
    """A config, a sample of 12 documents and a copy, and a root."""
    (tmp_path / "mine.yaml").write_text(CONFIG)
    lines = [*(_line(n) for n in range(1, 13)), {**_line(12), "id": "copy"}]
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(tmp_path / "mine.yaml"), tmp_path / "sample", tmp_path / "root"


def _moves(comparison: Comparison) -> Counter[tuple[Outcome, Outcome]]:
    pairs = zip(comparison.documents["before"].to_pylist(), comparison.documents["after"].to_pylist(), strict=True)
    return Counter((comparison.outcomes[before], comparison.outcomes[after]) for before, after in pairs)


def test_every_document_has_an_outcome_on_both_sides(paths: tuple[str, Path, Path]) -> None:
    """The first step that drops it says why; all else is kept."""
    config, sample, root = paths
    found = judge_change(config, config, sample, root, ["length.min_units=6"])
    reason = next(iter(own_steps(found.new.run_folder)[0]["dropped"]))
    assert _moves(found) == {
        (KEPT, KEPT): 7,
        (KEPT, TOO_SHORT): 3,
        (TOO_SHORT, TOO_SHORT): 2,
        (Outcome("exact", reason), Outcome("exact", reason)): 1,
    }
    assert found.documents.schema == DOCUMENTS_SCHEMA
    assert found.outcomes[0] == KEPT
    assert found.notes == ()
    assert (found.sample.documents, found.sample.quarantined, found.sample.files) == (13, 0, ("a.jsonl",))


def test_what_a_record_says_of_itself_is_told(paths: tuple[str, Path, Path]) -> None:
    """Label, stratum, weight and source; what is no such thing is left alone."""
    rows = judge_change(paths[0], paths[0], paths[1], paths[2]).documents.to_pylist()
    assert [row["label"] for row in rows] == [None] * 6 + ["good"] * 7
    assert [row["weight"] for row in rows] == [1.0] * 4 + [2.5] * 9
    assert [row["stratum"] for row in rows][3:7] == [0, 1, 0, 1]
    assert {row["source"] for row in rows} == {"a.jsonl", "crawl-0", "crawl-1", "crawl-2"}
    assert {row["language"] for row in rows} == {NOT_JUDGED}
    assert {row["length"] for row in rows} == {LENGTHS[0]}
    assert [row["characters"] for row in rows][:3] == [4, 9, 14]
    assert all(row["tokens"] > 1 for row in rows)
    assert [row["row"] for row in rows] == list(range(13))


def test_the_same_on_both_sides_is_said(paths: tuple[str, Path, Path]) -> None:
    """Nothing moves, and a note says why."""
    found = judge_change(paths[0], paths[0], paths[1], paths[2])
    assert all(before == after for before, after in _moves(found))
    assert "Both sides are the same" in found.notes[0]


def test_a_step_of_one_side_is_told(paths: tuple[str, Path, Path], tmp_path: Path) -> None:
    """New, gone, and in another order."""
    (tmp_path / "new.yaml").write_text(
        "name: new\nsteps:\n  - length: {min_units: 3}\n  - html_noise: {}\n  - exact: {}\n"
    )
    found = judge_change(str(tmp_path / "new.yaml"), paths[0], paths[1], paths[2])
    assert found.notes[0] == "The step `html_noise` is new."
    assert "another order" in found.notes[1]
    assert found.base.step("html_noise") is None
    back = judge_change(paths[0], str(tmp_path / "new.yaml"), paths[1], paths[2])
    assert back.notes[0] == "The step `html_noise` is gone."
    swapped = {(after, before): n for (before, after), n in _moves(found).items()}
    assert _moves(back) == swapped


def test_a_config_without_steps_keeps_everything(paths: tuple[str, Path, Path], tmp_path: Path) -> None:
    """Then every drop of the other side is a change."""
    (tmp_path / "none.yaml").write_text("name: none\nsteps: []\n")
    found = judge_change(paths[0], str(tmp_path / "none.yaml"), paths[1], paths[2])
    assert sum(n for (before, after), n in _moves(found).items() if before == KEPT and after != KEPT) == 3


def test_the_cost_of_scores_that_were_taken_over_is_that_of_making_them(paths: tuple[str, Path, Path]) -> None:
    """A decision alone costs nothing, and says nothing of a filter."""
    config, sample, root = paths
    judge_change(config, config, sample, root)
    steps = [judge_change(config, config, sample, root, [f"length.min_units={n}"]).new.step("length") for n in (5, 7)]
    assert [step and step.scored for step in steps] == [12, 12]
    assert steps[0] is not None
    assert steps[1] is not None
    assert steps[0].seconds == steps[1].seconds
    assert steps[0].cpu_seconds == steps[1].cpu_seconds
    assert steps[0].cpu_seconds is not None


def test_a_version_that_tells_less_is_read(paths: tuple[str, Path, Path]) -> None:
    """Older markers lack it."""
    found = judge_change(paths[0], paths[0], paths[1], paths[2])
    for item in (found.new.steps[1].folder / "_items").glob("*.json"):
        marker = json.loads(item.read_text())
        del marker["scored"], marker["cpu_seconds"]
        item.write_text(json.dumps(marker))
    again = judge_change(paths[0], paths[0], paths[1], paths[2])
    assert (again.new.steps[1].scored, again.new.steps[1].cpu_seconds) == (None, None)


def test_sides_with_other_shards_are_matched_by_document(paths: tuple[str, Path, Path]) -> None:
    """Other settings of ingest make other shards; what a document is, its place and text say."""
    config, sample, root = paths
    found = judge_change(config, config, sample, root, ["ingest.id_column=quality", "length.min_units=6"])
    shards = [
        [one["sha256"] for one in read_json(side.run_folder / "shards" / "_done.json")["shards"]]
        for side in (found.base, found.new)
    ]
    assert shards[0] != shards[1]
    assert found.documents.num_rows == 13
    assert _moves(found)[KEPT, TOO_SHORT] == 3
    assert found.notes == ()


def test_documents_of_one_side_alone_are_told(paths: tuple[str, Path, Path]) -> None:
    """They stand in no table; if there are no others, nothing can be compared."""
    config, sample, root = paths
    lines = (sample / "a.jsonl").read_text().splitlines()
    rows = [{**json.loads(line), "body": json.loads(line)["text"]} for line in lines]
    rows[0]["body"], rows[1]["body"] = "another text", ""
    (sample / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = judge_change(config, config, sample, root, ["ingest.text_column=body"])
    assert found.documents.num_rows == 11
    assert "1 are of the new side alone and 2 of the base alone" in found.notes[0]
    with pytest.raises(InputError, match="no document in common"):
        judge_change(config, config, sample, root, ["ingest.text_column=id"])


@pytest.mark.parametrize("text", ["", "\n\n", "{broken\n"])
def test_a_sample_without_documents_is_refused(paths: tuple[str, Path, Path], text: str) -> None:
    """With its name."""
    (paths[1] / "a.jsonl").write_text(text)
    with pytest.raises((InputError, RunError), match=r"no documents|JSON lines"):
        judge_change(paths[0], paths[0], paths[1], paths[2])


def test_a_tokenizer_that_is_not_here_is_noted(paths: tuple[str, Path, Path], tmp_path: Path) -> None:
    """Tokens are told all the same."""
    (tmp_path / "mine.yaml").write_text(f"{CONFIG}pack: {{tokenizer: nowhere/tokenizer.json}}\n")
    found = judge_change(paths[0], paths[0], paths[1], paths[2])
    assert any("default tokenizer" in note for note in found.notes)
    assert found.tokenizer == "default"


def test_a_wrong_setting_is_refused_before_anything_is_judged(paths: tuple[str, Path, Path]) -> None:
    """As everywhere."""
    with pytest.raises(ConfigError, match="min_unit"):
        judge_change(paths[0], paths[0], paths[1], paths[2], ["length.min_unit=3"])
    assert not (paths[2] / "impact" / "runs").exists()


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(paths: tuple[str, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the order of the work."""
    monkeypatch.setattr("curation.impact.judge_side.SMALL_BYTES", 0)
    config, sample, root = paths
    one = judge_change(config, config, sample, root, ["length.min_units=6"], workers=1)
    two = judge_change(config, config, sample, root.with_name("other"), ["length.min_units=6"], workers=2)
    drop = ["doc_id"]  # names the place of the sample's copy
    assert one.documents.drop_columns(drop).equals(two.documents.drop_columns(drop))
