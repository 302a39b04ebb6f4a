"""What earlier runs kept, for a run that is deduplicated against them: `near.against`.

Each entry is the folder of a run with a near step, or a signature index (`index_file`). All of it counts as one
corpus in which the earlier documents come first: none of them is judged again, and a new document is dropped if
its Jaccard with one of them is above the threshold. An earlier run gives what stands at its end, after its last
step: a document that a filter behind near dropped is in no output, so a new copy of it must not go for its sake.
What a run was itself compared with is not included, so that each of several in a row names all that came before.

Of a run's texts only candidates are read, and the shingles of each must have the sum that was signed. An index needs
no texts: its sets of shingles are exact (`index_part`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.close import lost_files
from curation.dedup.index_file import MADE_BY, Index, kept_digest, open_index
from curation.dedup.index_part import index_parts
from curation.dedup.parts import Part, signed_shingles
from curation.dedup.sets import Shingles
from curation.dedup.sign import Signing, signing_of
from curation.errors import ConfigError, RunError, nearest
from curation.run import Run, read_json
from curation.shards import Shard, alive_mask, open_table, shards_of
from curation.steps import place_steps
from curation.verdicts import Step

__all__ = ["EarlierShard", "earlier_parts", "identity"]


def earlier_parts(against: Sequence[str], signing: Signing) -> list[Part]:
    """What the runs and indexes kept, in the order in which they are named.

    Args:
        against: folders of runs, and files of exported indexes.
        signing: how the documents of the new run are signed.

    Raises:
        ConfigError: one of them is missing, not finished, damaged, signed in another way, or there are two of the same.
    """
    parts: list[Part] = []
    for path, source in _opened(against).items():
        if isinstance(source, Index):
            _refuse_other_shingles(source.signing, signing, f"index {path}")
            parts += index_parts(source, signing)
        else:
            _refuse_lost_signatures(source, path)
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
            table = open_table(file, self._marker()["sha256"]).read_all()
            if signing_of(table, file) == self._signing:
                return table
        except RunError:
            pass  # told below: what to do about it is not what is done about a file of this run
        raise ConfigError(
            f"near.against: {file} is missing, or is not the file that was written. {_mended(self._path, file)}"
        )

    @property
    def n(self) -> int:
        try:
            return int(self._marker()["rows"])  # every task counts: none needs to open and hash the file for it
        except (RunError, KeyError):
            return int(self.table.num_rows)  # which says what is wrong, if anything is

    def _marker(self) -> dict[str, Any]:
        file = self._run.sign_file(self._number)
        marker: dict[str, Any] = read_json(file.parent / "_items" / f"{file.stem}.json")
        return marker

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        """Which of its documents stand after the run's last step: bool[n]."""
        with _blamed(self._path):
            alive = alive_mask(self._run.last, self._shard)
            rows = self.table.column("row").to_numpy()
            if len(rows) and int(rows.max()) >= len(alive):
                raise RunError(f"{self._run.sign_file(self._number)} speaks of documents that its shard does not have.")
            kept: npt.NDArray[np.bool_] = alive[rows]
            return kept

    def shingles(self, positions: npt.NDArray[np.int64]) -> Shingles:
        with _blamed(self._path):
            return signed_shingles(self._shard, self, positions, self._signing)


# ---------------------------------------------------------------- sources


@dataclass(frozen=True)
class EarlierRun:
    """A run whose steps are all closed."""

    run: Run
    step: Path
    """Folder of the near step."""
    last: Path
    """Folder of the last step, whose verdicts say what stands."""
    config: dict[str, Any]
    """Of the near step."""
    shards: Sequence[Shard]
    digest: str
    """Of what stands."""

    @property
    def kept(self) -> str:
        return self.digest

    @property
    def run_id(self) -> str:
        return self.run.run_id

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
    _refuse_the_same(opened)
    return opened


def _refuse_the_same(opened: Mapping[str, EarlierRun | Index]) -> None:
    """Refuse a run beside its own index, or beside a copy: the same documents would be looked through twice."""
    known: dict[str, str] = {}
    for path, source in opened.items():
        before = known.setdefault(source.kept, path)
        if before != path:
            raise ConfigError(
                f"near.against names the same documents twice: {before} and {path} both hold what the run "
                f"{source.run_id} kept. Leave one of them out."
            )


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
    folders = _closed_folders(run, path)
    shards = shards_of(run)
    for shard, told in zip(shards, run.ingested()["shards"], strict=True):
        if not shard.path.is_file() or shard.path.stat().st_size != told["file_bytes"]:
            raise RunError(f"{shard.path} is missing, or was changed since it was written.")
    last = list(folders.values())[-1]
    return EarlierRun(run, folders["near"], last, config, shards, kept_digest(run, last))


def _near_config(run: Run, path: str) -> dict[str, Any]:
    """The settings of a run's near step, as its config.yaml has them.

    Raises:
        ConfigError: it has no near step.
    """
    steps = _steps_of(run)
    found = next((step for step in steps if step.name == "near"), None)
    if found is None:
        names = ", ".join(step.name for step in steps) or "no steps"
        raise ConfigError(
            f"near.against: run {path} has no step near (it has {names}), so its documents are "
            f"not signed. Export an index of it ({MADE_BY}) and name that, or run it again with near."
        )
    return found.config.model_dump(mode="json")


def _steps_of(run: Run) -> Sequence[Step]:
    return _parsed(run.config_path.read_text(encoding="utf-8"), str(run.config_path))


@lru_cache(maxsize=256)
def _parsed(config: str, where: str) -> Sequence[Step]:
    """Steps of a config: parsed once, since every task opens every earlier run."""
    from curation.config import parse_config

    return tuple(parse_config(config, where).steps)


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


def _closed_folders(run: Run, path: str) -> dict[str, Path]:
    """Folders of the steps to which the run's config leads, by name, in order; all of them are closed."""
    told = _folders_as_told(run)
    if told is not None:
        return told
    from curation.pipeline import Pipeline

    ingested = (run.shards / "_done.json").exists()
    folders = {one.name: one.folder for one in Pipeline(run).placed} if ingested else {}
    missing = next((name for name, folder in folders.items() if not (folder / "_done.json").exists()), None)
    if missing or not ingested:
        raise ConfigError(
            f"near.against: run {path} is not finished: its step {missing or 'ingest'} is not done (state: "
            f"{run.info['state']}). Run its command again, it goes on where it stopped, and then this one."
        )
    return folders


def _folders_as_told(run: Run) -> dict[str, Path] | None:
    """The same by the cards in the folders alone: what the run was compared with may be gone, a model be another.

    None: a step is not closed, or closed in two ways that differ in what lies outside of the run.
    """
    if not (run.shards / "_done.json").exists():
        return None
    chain: list[Step] = []
    for index, step in enumerate(_steps_of(run)):
        cards = sorted(run.steps.glob(f"{index + 1:02d}-{step.name}-*/_step.json"))
        told = [_as_told(step, read_json(card)) for card in cards if (card.parent / "_done.json").exists()]
        tried = {place_steps(run, [*chain, one])[-1].folder: one for one in told}
        fits = [one for folder, one in tried.items() if (folder / "_done.json").exists()]
        if len(fits) != 1:
            return None
        chain.append(fits[0])
    return {one.name: one.folder for one in place_steps(run, chain)}


def _as_told(step: Step, card: Mapping[str, Any]) -> Step:
    """A step of the version that a card names, with the checksums that were found at that time."""
    told = copy(step)
    told.__dict__.update(version=card["version"], model_checksums=lambda: card["models"])
    return told


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


def _refuse_lost_signatures(run: EarlierRun, path: str) -> None:
    """Refuse a run whose near step has lost files, by their sizes."""
    lost = lost_files(run.step)
    if lost:
        raise ConfigError(f"near.against: {lost[0]} is missing or cut. {_mended(path)}")


def _mended(path: str, damaged: Path | None = None) -> str:
    """What to do about signatures that are gone, or where only a look at the bytes tells that they are damaged."""
    first = f"Delete {damaged} and run" if damaged else "Run"
    return (
        f"{first} the command of the earlier run {path} again: it signs its documents anew. "
        f"Or export an index of it, which needs no signatures, and name that: {MADE_BY}."
    )


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
