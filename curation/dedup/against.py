"""What earlier runs kept, for a run that is deduplicated against them: `near.against`.

Each entry is the folder of a run with a near step, or a signature index (`index_file`). All of it counts as one
corpus in which the earlier documents come first: none of them is judged again, and a new document is dropped if
its Jaccard with one of them is above the threshold. An earlier run gives what *it* kept; what it was itself
compared with is not included, so that each of several runs in a row names all that came before.

Of a run's texts only candidates are read, and the shingles of each must have the sum that was signed. An index needs
no texts: its sets of shingles are exact (`index_part`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.index_file import MADE_BY, Index, open_index
from curation.dedup.index_part import index_parts
from curation.dedup.parts import Part, shard_sets
from curation.dedup.sets import Shingles
from curation.dedup.sign import Signing, signing_of
from curation.errors import ConfigError, RunError, nearest
from curation.ids import canonical_json
from curation.run import Run, read_json
from curation.shards import Shard, alive_mask, open_table, shards_of

__all__ = ["EarlierShard", "earlier_parts", "identity"]


def earlier_parts(against: Sequence[str], signing: Signing) -> list[Part]:
    """What the runs and indexes kept, in the order in which they are named.

    Args:
        against: folders of runs, and files of exported indexes.
        signing: how the documents of the new run are signed.

    Raises:
        ConfigError: one of them is missing, not finished, damaged, named twice, or signed in another way.
    """
    parts: list[Part] = []
    for path, source in _opened(against).items():
        if isinstance(source, Index):
            _refuse_other_shingles(source.signing, signing, f"index {path}")
            parts += index_parts(source, signing)
        else:
            _refuse_other_signing(source, signing)
            parts += [EarlierShard(path, source, number, signing) for number in range(len(source.shards))]
    return parts


def identity(against: Sequence[str]) -> dict[str, str]:
    """For each path a digest of what it holds; reads markers and metadata only.

    Raises:
        ConfigError: as `earlier_parts`, but for how it was signed.
    """
    return {path: source.digest for path, source in _opened(against).items()}


# ---------------------------------------------------------------- parts


class EarlierShard(Part):
    """The signed documents of a shard of an earlier run."""

    def __init__(self, path: str, run: EarlierRun, number: int, signing: Signing) -> None:
        self._path = path
        self._run = run
        self._number = number
        self._signing = signing
        self._shard = run.shards[number]

    @cached_property
    def table(self) -> pa.Table:
        file = self._run.sign_file(self._number)
        try:
            marker = read_json(file.parent / "_items" / f"{file.stem}.json")
            table = open_table(file, marker["sha256"]).read_all()
            if signing_of(table, file) == self._signing:
                return table
        except RunError:
            pass  # told below: what to do about it is not what is done about a file of this run
        raise ConfigError(
            f"near.against: {file} is missing, or is not the file that was written. Delete {self._run.step} and run the "
            f"command of the earlier run {self._path} again: it signs its documents anew."
        )

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        """Which of its documents the near step kept: bool[n]."""
        with _blamed(self._path):
            alive = alive_mask(self._run.step, self._shard)
            rows = self.table.column("row").to_numpy()
            if len(rows) and int(rows.max()) >= len(alive):
                raise RunError(f"{self._run.sign_file(self._number)} speaks of documents that its shard does not have.")
            kept: npt.NDArray[np.bool_] = alive[rows]
            return kept

    def sets(self, positions: npt.NDArray[np.int64]) -> Shingles:
        with _blamed(self._path):
            return shard_sets(self._shard, self, positions, self._signing)


# ---------------------------------------------------------------- sources


@dataclass(frozen=True)
class EarlierRun:
    """A run whose near step is closed."""

    run: Run
    step: Path
    """Folder of the near step."""
    config: dict[str, Any]
    """Of the near step."""
    shards: Sequence[Shard]
    digest: str

    def sign_file(self, number: int) -> Path:
        return self.step / "sign" / f"{number:05d}.arrow"


def _opened(against: Sequence[str]) -> dict[str, EarlierRun | Index]:
    places: dict[Path, str] = {}
    opened: dict[str, EarlierRun | Index] = {}
    for path in against:
        place = Path(path).resolve()
        if place in places:
            raise ConfigError(
                f"near.against names {place} twice, as {places[place]} and {path}. Leave one of them out."
            )
        places[place] = path
        opened[path] = _open_one(path)
    return opened


def _open_one(path: str) -> EarlierRun | Index:
    place = Path(path)
    if (place / "run.json").is_file():
        with _blamed(path):
            return _open_run(path)
    if place.is_file():
        return open_index(place)
    if place.is_dir():
        known = sorted(one.parent.name for one in place.glob("runs/*/run.json"))
        there = f"; runs below it: {', '.join(f'runs/{name}' for name in known[-5:])}" if known else ""
        raise ConfigError(
            f"near.against: {path} is a folder, but of no run: it has no run.json{there}. "
            f"Name the folder of a run, or a signature index that {MADE_BY} wrote."
        )
    if not place.parent.is_dir():
        raise ConfigError(f"near.against: there is nothing at {path}: the folder {place.parent} does not exist.")
    beside = nearest(place.name, (one.name for one in place.parent.iterdir()))
    raise ConfigError(
        f"near.against: there is nothing at {path}{beside}. "
        f"Name the folder of a run, or a signature index that {MADE_BY} wrote."
    )


def _open_run(path: str) -> EarlierRun:
    run = Run(Path(path).resolve())
    config = _near_config(run, path)
    _refuse_circle(run.folder, path)
    step = _closed_step(run, config, path)
    done = read_json(step / "_done.json")
    shards = shards_of(run)
    for shard, told in zip(shards, run.ingested()["shards"], strict=True):
        if not shard.path.is_file() or shard.path.stat().st_size != told["file_bytes"]:
            raise RunError(f"{shard.path} is missing, or was changed since it was written.")
    verdicts = [[one["name"], one["rows"], one["kept"], one["sha256"]] for one in done["shards"]]
    digest = hashlib.sha256(canonical_json([done["digest"], verdicts]).encode()).hexdigest()
    if not (step / "sign").is_dir() and shards:
        raise ConfigError(
            f"near.against: run {path} has no signatures any more, {step / 'sign'} is missing. "
            f"Delete {step} and run that run's command again, or export an index: {MADE_BY}."
        )
    return EarlierRun(run, step, config, shards, digest)


def _near_config(run: Run, path: str) -> dict[str, Any]:
    """The settings of a run's near step, as its config.yaml has them.

    Raises:
        ConfigError: it has no near step.
    """
    found = _settings_of(run.config_path.read_text(encoding="utf-8"), str(run.config_path))
    if "near" not in found:
        raise ConfigError(
            f"near.against: run {path} has no step near (it has {', '.join(found) or 'no steps'}), so its documents are "
            f"not signed. Export an index of it ({MADE_BY}) and name that, or run it again with near."
        )
    return found["near"]


@lru_cache(maxsize=256)
def _settings_of(config: str, where: str) -> dict[str, dict[str, Any]]:
    """Settings of each step of a config: parsed once, since every task opens every earlier run."""
    from curation.config import parse_config

    return {step.name: step.config.model_dump(mode="json") for step in parse_config(config, where).steps}


def _refuse_circle(folder: Path, path: str) -> None:
    """Refuse a run that names itself in its own `against`, or is named by one that it names."""
    waiting, seen = [folder], set()
    while waiting:
        here = waiting.pop()
        for named in _near_config(Run(here), str(here))["against"]:
            place = Path(named).resolve()
            if place == folder:
                whose = (
                    "its own near.against" if here == folder else f"near.against of {here}, which it names in its own"
                )
                raise ConfigError(
                    f"near.against: run {path} is named in {whose}. A run can be compared with earlier ones only: "
                    "leave it out, or begin another run with --new."
                )
            if place not in seen and (place / "run.json").is_file():
                seen.add(place)
                waiting.append(place)


def _closed_step(run: Run, config: dict[str, Any], path: str) -> Path:
    """Folder of the near step to which the run's config leads."""
    closed = [
        card.parent
        for card in sorted(run.steps.glob("*-near-*/_step.json"))
        if (card.parent / "_done.json").exists() and read_json(card)["config"] == config
    ]
    # The usual case, in which nobody needs to look at what this run was compared with: that may be gone by now.
    if len(closed) == 1 and run.info["state"] == "done":
        return closed[0]
    from curation.pipeline import Pipeline

    ingested = (run.shards / "_done.json").exists()
    placed = next((one for one in Pipeline(run).placed if one.name == "near"), None) if ingested else None
    if placed is None or not (placed.folder / "_done.json").exists():
        raise ConfigError(
            f"near.against: run {path} is not finished: its near step is not done (state: {run.info['state']}). "
            "Run its command again, it goes on where it stopped, and then this one."
        )
    return placed.folder


# ---------------------------------------------------------------- refusals


@contextmanager
def _blamed(path: str) -> Iterator[None]:
    """Say that a file which is missing or damaged belongs to an earlier run: running this one again would not help."""
    try:
        yield
    except RunError as error:
        raise ConfigError(
            f"near.against: the earlier run {path} cannot be used: {error} (It is mended by its own command, not by this "
            f"one. `corpusmill verify {path}` looks for other damage.)"
        ) from error


def _refuse_other_signing(run: EarlierRun, signing: Signing) -> None:
    if not run.shards:
        return
    path = run.run.folder
    with _blamed(str(path)):
        found = signing_of(open_table(run.sign_file(0)).read_all(), run.sign_file(0))
    if found == signing:
        return
    _refuse_other_shingles(found, signing, f"run {path}")
    there = {name: run.config[name] for name in ("threshold", "num_perm", "recall")}
    settings = ", ".join(f"{name} {value}" for name, value in there.items())
    raise ConfigError(
        f"near.against: run {path} was signed with {found.bands} bands of {found.rows} out of {found.num_perm} "
        f"permutations ({settings}), this run needs {signing.bands} bands of {signing.rows} out of {signing.num_perm}. "
        f"Give near the same threshold, num_perm and recall, or export an index ({MADE_BY}), which serves any of them."
    )


def _refuse_other_shingles(found: Signing, signing: Signing, whose: str) -> None:
    """Refuse what was cut into other shingles: no setting of the bands makes these comparable."""
    for setting, there, here in (
        ("near.shingle", found.shingle, signing.shingle),
        ("near.by_character", list(found.by_character), list(signing.by_character)),
    ):
        if there != here:
            raise ConfigError(
                f"near.against: {whose} has other shingles: {setting} is {there} there and {here} in this run. "
                "Give this run the same, or make that one anew with this."
            )
    for what, theirs, ours in (
        ("Unicode", found.unicode, signing.unicode),
        ("the signatures' version", str(found.version), str(signing.version)),
    ):
        if theirs != ours:
            raise ConfigError(
                f"near.against: {whose} was signed with {what} {theirs}, this program has {ours}: their shingles differ. "
                "Make it anew with this version, or use the older one for this run, too."
            )
