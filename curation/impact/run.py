"""What `corpusmill impact` and the DAG `filter_impact` share: from two names to what is known of the change.

The new side goes first, so that the base computes only what its own code changes. Everything lies under `<root>/impact`:
`samples`, `trees`, `runs`, `tokens`, `locks`. Of runs, trees, samples and tokens the 20 that were of use last are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.config import load_config
from curation.errors import ConfigError, InputError
from curation.impact.facts import Comparison
from curation.impact.inputs import Sample, take_sample
from curation.impact.judge_side import judge_side
from curation.impact.prune import prune
from curation.impact.read import compare_sides
from curation.impact.sides import Sides, sides_of
from curation.impact.tokens import count_tokens
from curation.launch import Progress
from curation.pack_config import PackConfig
from curation.run import Run
from curation.shards import shards_of

__all__ = ["Change", "change_of", "judge_change"]


@dataclass(frozen=True)
class Change:
    """What is compared, on what; the three parts of the work may be done by three processes."""

    sides: Sides
    sample: Sample
    root: Path
    pack: PackConfig | None
    notes: tuple[str, ...] = ()

    def judge_new(self, workers: int = 1, progress: Progress | None = None) -> Path:
        """Let the new side judge the sample; returns its run's folder.

        Raises:
            InputError: the sample holds no documents.
        """
        folder = judge_side(self.sides.new, self.sample, self.root, workers=workers, progress=progress)
        if not any(shard.rows for shard in shards_of(Run(folder))):
            raise InputError(f"the sample {self.sample.name} holds no documents: nothing can be compared on it.")
        return folder

    def judge_base(self, workers: int = 1, progress: Progress | None = None) -> Path:
        """Let the base judge the sample; returns its run's folder."""
        return judge_side(self.sides.base, self.sample, self.root, workers=workers, progress=progress)

    def compare(self, base: Path, new: Path) -> Comparison:
        """Read what both have judged, and delete what has been of no use for the longest time."""
        tokens = count_tokens(shards_of(Run(new)), self.pack, self.root / "impact")
        notes = (*self.sides.notes, *self.notes)
        comparison = compare_sides(self.sides.base, self.sides.new, (base, new), self.sample, tokens, notes)
        prune(self.root / "impact", {base, new})
        return comparison


def change_of(
    config: str, base: str, sample: Path | str | Sequence[Path | str] | None, root: Path, overrides: Sequence[str] = ()
) -> Change:
    """Find out what is asked; judges nothing.

    Args:
        config: the new side: a YAML file, or the name of a config that ships.
        base: the same, or a git revision.
        sample: files, folders, globs or URLs; None: the sample that ships.
        root: folder of all runs.
        overrides: `a.b=c` items for the new side.

    Raises:
        ConfigError: a config or the revision will not do.
        InputError: the sample is not there.
    """
    root = root.resolve()
    sides = sides_of(config, base, overrides, root)
    pack, notes = _tokenizer_of(config, overrides)
    return Change(sides, take_sample(sample, root / "impact"), root, pack, tuple(notes))


def _tokenizer_of(config: str, overrides: Sequence[str]) -> tuple[PackConfig | None, list[str]]:
    """The new side's `pack`, if its tokenizer is here: a comparison of filters needs none."""
    try:
        return load_config(config, overrides).top.pack, []
    except ConfigError as error:
        return None, [f"Tokens are those of the default tokenizer: {error}"]


def judge_change(
    config: str,
    base: str,
    sample: Path | str | Sequence[Path | str] | None,
    root: Path,
    overrides: Sequence[str] = (),
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Both sides on one sample; see `change_of` for the arguments.

    Args:
        workers: processes, for a sample that is worth them.

    Raises:
        ConfigError: a config, the revision or the sample's settings will not do.
        InputError: the sample is not there, or holds no documents.
        RunError: the base's code failed, or the root cannot be written.
    """
    change = change_of(config, base, sample, root, overrides)
    new = change.judge_new(workers, progress)
    return change.compare(change.judge_base(workers, progress), new)
