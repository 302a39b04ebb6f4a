"""Training in miniature: it learns, it goes on to the same end, and what is kept in memory changes nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")

from quality_models.safety_training import Trainer, label_matrix, pick_device  # noqa: E402
from quality_models.safety_training_base import load_base  # noqa: E402
from quality_models.safety_training_rows import Row  # noqa: E402
from quality_models.safety_training_settings import TrainingSettings  # noqa: E402
from quality_models.safety_training_state import Checkpoint, Progress  # noqa: E402
from tests.safety_toy import LABELS, toy_base, toy_rows  # noqa: E402

SETTINGS = TrainingSettings(adapter=8, freeze=1, epochs=2, batch_tokens=256, learning_rate=1e-2, max_tokens=32)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return toy_rows(240)


@pytest.fixture(scope="module")
def development() -> list[Row]:
    return toy_rows(60, seed=1)


def learned(
    folder: Path, rows: list[Row], development: list[Row], settings: TrainingSettings, checkpoint: Any = None
) -> tuple[Progress, dict[str, Any]]:
    """The progress of a training, and what its model has learned."""
    base = load_base(str(folder), LABELS, None, settings.seed)
    with Trainer(base, rows, development, LABELS, settings) as trainer:
        progress = trainer.train(checkpoint)
    return progress, {name: p.detach().clone() for name, p in base.model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        dataclasses.replace(SETTINGS, freeze=None),
        dataclasses.replace(SETTINGS, adapter=0, freeze=1),
        dataclasses.replace(SETTINGS, adapter=0, freeze=None),
    ],
    ids=["adapter", "adapter on all", "upper layers", "all weights"],
)
def test_learns_a_toy_task(base: Path, rows: list[Row], development: list[Row], settings: TrainingSettings) -> None:
    """Every way of training tells the toy's labels apart on rows that it has not seen."""
    progress, _ = learned(base, rows, development, dataclasses.replace(settings, epochs=6))
    assert progress.best > 0.9
    assert progress.history[-1]["loss"] < progress.history[0]["loss"]


@pytest.mark.parametrize("augment", [False, True])
def test_kept_states_are_those_worked_out_each_time(
    base: Path, rows: list[Row], development: list[Row], augment: bool
) -> None:
    """What the frozen layers say, kept or not: the same logits, and without augmentation the same training."""
    kept = dataclasses.replace(SETTINGS, augment=augment)
    fresh = dataclasses.replace(kept, cache_mb=0)
    found = []
    for settings in (kept, fresh):
        with Trainer(load_base(str(base), LABELS, None, 1), rows, development, LABELS, settings) as trainer:
            assert trainer.keep_states == (settings is kept)
            if trainer.keep_states:
                trainer._remember(trainer.development)
            found.append(trainer.judge(trainer.development))
            if augment:
                wanted = 2 * len(rows) if settings is kept else len(rows)
                assert len(trainer._of_epoch(0)) == wanted
    np.testing.assert_allclose(found[0], found[1], rtol=0.02, atol=0.02)
    if not augment:
        first, second = (learned(base, rows, development, settings)[0] for settings in (kept, fresh))
        assert first.best == pytest.approx(second.best, abs=0.03)


class StoppedError(Exception):
    """The process is killed."""


@pytest.mark.parametrize("after", [1, 10])
def test_a_stopped_run_goes_on_to_the_same_end(
    base: Path, rows: list[Row], development: list[Row], tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after any step that was saved, and begun again: the same judgements and weights as in one go."""
    whole, wanted = learned(base, rows, development, SETTINGS)
    saves = 0
    save = Checkpoint.save

    def killed(self: Checkpoint, *arguments: Any) -> None:
        nonlocal saves
        save(self, *arguments)
        saves += 1
        if saves == after:
            raise StoppedError

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(StoppedError):
        learned(base, rows, development, SETTINGS, Checkpoint(tmp_path / "state", "same", minutes=0))
    (tmp_path / "state.123.tmp").write_bytes(b"half")
    progress, found = learned(base, rows, development, SETTINGS, Checkpoint(tmp_path / "state", "same", minutes=1e9))
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    for mine, theirs in zip(progress.history, whole.history, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-5)
    assert progress.best == pytest.approx(whole.best, abs=1e-6)
    assert found.keys() == wanted.keys()
    for name, values in found.items():
        torch.testing.assert_close(values, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [SETTINGS, dataclasses.replace(SETTINGS, epochs=20, patience=1)], ids=["end", "early"]
)
def test_a_finished_run_is_not_trained_again(
    settings: TrainingSettings,
    base: Path,
    rows: list[Row],
    development: list[Row],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Begun again, it has its best state at once."""
    _, wanted = learned(base, rows, development, settings, Checkpoint(tmp_path / "state", "same", 60))
    monkeypatch.delattr(Trainer, "_step")
    _, found = learned(base, rows, development, settings, Checkpoint(tmp_path / "state", "same", 60))
    assert all(torch.equal(values, wanted[name]) for name, values in found.items())


def test_the_state_of_another_run_is_refused(
    base: Path, rows: list[Row], development: list[Row], tmp_path: Path
) -> None:
    """Changed rows or settings, and a damaged file, end in a message that says what to do."""
    path = tmp_path / "state"
    Checkpoint(path, "one", 60).save(Progress(), {})
    for checkpoint, said in ((Checkpoint(path, "other", 60), "found that of another"), (None, "found damage")):
        if checkpoint is None:
            path.write_bytes(path.read_bytes()[:100])
            checkpoint = Checkpoint(path, "one", 60)
        with pytest.raises(ValueError, match=said):
            learned(base, rows, development, SETTINGS, checkpoint)


def test_the_same_seed_gives_the_same_model(base: Path, rows: list[Row], development: list[Row]) -> None:
    """Bit by bit on one machine; another seed gives another."""
    first, second, other = (
        learned(base, rows[:120], development, dataclasses.replace(SETTINGS, epochs=1, seed=seed))[1]
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(values, second[name]) for name, values in first.items())
    assert not all(torch.equal(values, other[name]) for name, values in first.items())


def test_stops_when_it_gets_no_better(base: Path, rows: list[Row], development: list[Row]) -> None:
    """After `patience` judgements in a row without a better one it ends, in its best state."""
    settings = dataclasses.replace(SETTINGS, epochs=20, patience=2)
    progress, _ = learned(base, rows[:200], development, settings)
    assert progress.over
    assert progress.stale == 2
    assert len(progress.history) < 40
    assert progress.best == max(one["average_precision"] for one in progress.history)


def test_a_full_gpu_halves_the_batch(
    base: Path, rows: list[Row], development: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory: the batch is cut until it fits, and the gradients are those of the whole batch."""
    wanted = learned(base, rows[:120], development, dataclasses.replace(SETTINGS, epochs=1, dropout=0.0))[1]
    gradients = Trainer._gradients

    def full(self: Trainer, *arguments: Any) -> float:
        if self.pieces < 4:
            raise torch.cuda.OutOfMemoryError("no memory")
        return gradients(self, *arguments)

    monkeypatch.setattr(Trainer, "_gradients", full)
    found = learned(base, rows[:120], development, dataclasses.replace(SETTINGS, epochs=1, dropout=0.0))[1]
    for name, values in found.items():
        torch.testing.assert_close(values, wanted[name], rtol=0.1, atol=0.02)
    monkeypatch.setattr("quality_models.safety_training.MOST_PIECES", 2)
    with pytest.raises(ValueError, match="lower --batch-tokens"):
        learned(base, rows[:120], development, SETTINGS)


def test_rows_weigh_what_they_say(base: Path, rows: list[Row], development: list[Row]) -> None:
    """A row of weight 2 pulls as two rows of weight 1."""
    doubled = [*rows[:40], *rows[:40]]
    heavy = [row._replace(weight=2.0) for row in rows[:40]]
    gradients = []
    for some in (doubled, heavy):
        settings = dataclasses.replace(SETTINGS, dropout=0.0, batch_tokens=1 << 16)
        model = load_base(str(base), LABELS, None, 1)
        with Trainer(model, some, development, LABELS, settings) as trainer:
            learning = {name: p for name, p in model.model.named_parameters() if p.requires_grad}
            trainer._gradients(trainer._of_epoch(0), np.arange(len(some)), learning, 0)
        gradients.append(learning["classifier.bias"].grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0.05, atol=0.005)


def test_label_matrix_and_device() -> None:
    """One column a label; a GPU that is not there is said."""
    assert label_matrix([Row("a", ("hate",)), Row("b")], LABELS).tolist() == [[0, 1], [0, 0]]
    assert pick_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="found none"):
            pick_device("cuda")


def test_freezing_everything_leaves_no_adapter(base: Path, rows: list[Row], development: list[Row]) -> None:
    """As many frozen layers as there are is a mistake with adapters."""
    with pytest.raises(ValueError, match="nothing takes adapters"):
        Trainer(load_base(str(base), LABELS, 1, 1), rows, development, LABELS, SETTINGS)
