"""From step objects to places, digests and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.run import Run
from curation.steps import STEPS, place_steps, stage_of_each, step_class
from curation.verdicts import STAGES, DataSetStep, Filter, Step, StepConfig
from tests.fakes import BeginsWithK, Second, Watched, WatchedConfig, make_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of two small shards."""
    return make_run(tmp_path, [["a", "b"], ["c"]])


def watched(**settings: int) -> Watched:
    return Watched(WatchedConfig(**settings))


@pytest.mark.parametrize("name", STEPS)
def test_every_listed_step_is_what_it_says(name: str) -> None:
    """Each entry of the registry imports, is named so, and lies where its name says."""
    kind = step_class(name)

    assert kind.name == name
    assert issubclass(kind, Filter | DataSetStep)
    assert STEPS[name].partition(":")[0].rpartition(".")[2] == name
    assert kind.stage in STAGES


def test_an_unknown_step_names_the_nearest() -> None:
    """A misspelt step is a mistake in the config that can be mended from the message."""
    with pytest.raises(ConfigError, match=r"unknown step 'lenght' \(did you mean 'length'\?\)\. .* exact, .*length"):
        step_class("lenght")


def test_a_threshold_changes_the_digest_but_not_the_scores(run: Run) -> None:
    """Two configs with other thresholds have other folders and the same score digest; other scores, another one."""
    plain, strict, scaled = (
        place_steps(run, [step])[0] for step in (watched(), watched(max_chars=3), watched(factor=2))
    )

    assert plain.digest != strict.digest
    assert plain.folder != strict.folder
    assert plain.score_digest == strict.score_digest
    assert plain.score_digest != scaled.score_digest


def test_a_digest_names_everything_before_it(run: Run) -> None:
    """What an earlier step decides is part of every later digest; what a later one decides of no earlier."""
    first, behind = place_steps(run, [watched(), Second(WatchedConfig())])
    other, behind_other = place_steps(run, [watched(max_chars=3), Second(WatchedConfig())])
    alone = place_steps(run, [Second(WatchedConfig())])[0]

    assert first.digest != other.digest
    assert len({behind.digest, behind_other.digest, alone.digest}) == 3
    assert behind.score_digest == behind_other.score_digest == alone.score_digest
    assert behind.previous == first.folder
    assert first.previous is None


def test_the_shards_are_part_of_the_digest(tmp_path: Path) -> None:
    """The same config over other texts is another folder, so that no verdict can speak about other documents."""
    one = place_steps(make_run(tmp_path / "1", [["a"]]), [watched()])[0]
    same = place_steps(make_run(tmp_path / "2", [["a"]]), [watched()])[0]
    other = place_steps(make_run(tmp_path / "3", [["b"]]), [watched()])[0]

    assert one.digest == same.digest
    assert other.digest != one.digest
    assert other.score_digest != one.score_digest


def test_judging_all_lets_every_step_see_every_document(run: Run) -> None:
    """With judge_all no step has a step before it, and its digest is the same wherever it stands."""
    first, second = place_steps(run, [watched(), Second(WatchedConfig())], judge_all=True)

    assert first.previous is second.previous is None
    assert second.digest == place_steps(run, [Second(WatchedConfig())])[0].digest


def test_a_version_and_a_model_are_part_of_the_digest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A raised version, or another model file, opens a new folder and computes scores anew."""
    before = place_steps(run, [watched()])[0]
    monkeypatch.setattr(Watched, "version", 2)
    newer = place_steps(run, [watched()])[0]
    monkeypatch.setattr(Watched, "model_checksums", lambda self: {"weights": "abc"})
    other_model = place_steps(run, [watched()])[0]

    assert len({p.digest for p in (before, newer, other_model)}) == 3
    assert len({p.score_digest for p in (before, newer, other_model)}) == 3


def test_folders_are_numbered_in_the_order_of_the_config(run: Run) -> None:
    """NN-name-digest8: a listing of the folder tells the pipeline."""
    placed = place_steps(run, [BeginsWithK(StepConfig()), watched()])

    assert [p.folder.name for p in placed] == [f"01-begins_with_k-{placed[0].digest}", f"02-watched-{placed[1].digest}"]
    assert all(len(p.digest) == 8 for p in placed)


def test_the_yaml_order_wins_over_the_stages() -> None:
    """A step that stands behind one of a later stage runs in that stage."""
    dedup, quality = BeginsWithK(StepConfig()), watched()

    assert stage_of_each([dedup, quality]) == ["dedup", "quality"]
    assert stage_of_each([quality, dedup, quality]) == ["quality"] * 3
    no_steps: list[Step] = []
    assert stage_of_each(no_steps) == []
