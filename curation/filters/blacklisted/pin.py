"""Which blacklist a run obeys: settled when it starts, opened by every worker, the same whenever it is opened.

A run keeps the version with which it was begun, however often it is started, until its config names another one: verdicts
of two versions in one run would be a mixture. What is not there is refused, with two exceptions: version 0, which holds
nothing whatever lies at the path; and no folder at all at the default path, where nothing can be mistyped and the first
run of a loop finds nothing, unless a run or a re-score of that root has seen a version. An empty folder is a list without
versions, but a folder of other files is a mistyped path.
"""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import ConfigError, CorpusmillError
from curation.filters.blacklisted.config import BlacklistedConfig
from curation.run import read_json

if TYPE_CHECKING:
    from curation.blacklist import Blacklist
    from curation.blacklist.files import Files
    from curation.blacklist.near import NearCopies

__all__ = ["Opened", "check_history", "opened", "pin", "told_of_others"]

log = logging.getLogger("corpusmill")

_OURS = re.compile(r"\..*|latest\.json.*|((index|near)-)?[0-9]{6,12}\..*")
_NEVER = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""Time of version 0, of which nothing can expire."""


@dataclass(frozen=True)
class Opened:
    """An open blacklist; `near` is None where near copies are not asked for."""

    blacklist: Blacklist
    near: NearCopies | None


def pin(config: BlacklistedConfig, root: Path, former: BlacklistedConfig | None) -> BlacklistedConfig:
    """The settings with path, version, time and digest.

    Args:
        root: folder of all runs.
        former: settings with which this run was begun, if it was.

    Raises:
        ConfigError: there is no such list or version.
        RunError: it is damaged.
    """
    path = config.path or str(root / "blacklist")
    if former is not None and former.path == path and config.version in (None, former.version):
        _tell_kept(former, config.version)
        kept = {"version": former.version, "at": config.at or former.at, "digest": config.digest or former.digest}
        return config.model_copy(update={"path": path, **kept})
    if former is not None and config.version is not None and config.digest == former.digest:
        # The settings of the run itself with another version: time and digest are those of the former one.
        config = config.model_copy(update={"digest": None, "at": None if config.at == former.at else config.at})
    number = _number(config, path, root)
    if not number:
        return config.model_copy(update={"path": path, "version": 0, "at": config.at or _NEVER, "digest": ""})
    from curation.blacklist import Blacklist

    blacklist = Blacklist.open(path, number, at=config.at)
    at = config.at or blacklist.settled()
    log.info("blacklisted: version %d of %s, %d entries hold", number, path, len(blacklist))
    pinned = {"version": number, "at": at, "digest": config.digest or blacklist.digest}
    return config.model_copy(update={"path": path, **pinned})


def _tell_kept(former: BlacklistedConfig, asked: int | None) -> None:
    """Say that there is a newer version; what the run needs of its own is looked at by `opened`."""
    from curation.blacklist.files import open_files
    from curation.blacklist.history import latest_number

    assert former.path is not None
    with contextlib.suppress(CorpusmillError):  # a list that is gone has no newer version either
        latest = latest_number(open_files(former.path))
        if asked is None and former.version is not None and latest > former.version:
            log.warning(
                "blacklisted: this run was begun with version %d of %s and keeps it, though version %d is there. To decide "
                "it anew: --set blacklisted.version=%d",
                former.version,
                former.path,
                latest,
                latest,
            )


def _number(config: BlacklistedConfig, path: str, root: Path) -> int:
    """The version that is meant; see the module for what may be missing."""
    from curation.blacklist.files import open_files
    from curation.blacklist.snapshot import wanted_number

    if config.version == 0:
        log.info("blacklisted: version 0 is asked for, which holds nothing")
        return 0
    files = open_files(path)
    names = files.names()
    if names is None:
        if config.version is not None:
            raise ConfigError(
                f"blacklisted.version: version {config.version} is asked for, but there is no folder {path}. Put the list back, or "
                "give blacklisted.path where it lies now."
            )
        if path == str(root / "blacklist"):
            if known := _known_before(root, path):
                raise ConfigError(
                    f"blacklisted: there is no blacklist at {path}, but {known}. Put it back, or give blacklisted.path where it "
                    "lies now; blacklisted.version=0 goes on without it."
                )
            log.info("blacklisted: there is no blacklist at %s yet: nothing is dropped (version 0)", path)
            return 0
        raise ConfigError(
            f"blacklisted.path: there is no folder {path}. If the list is yet to come, leave `path` out (then it is "
            "`blacklist` in the root) or set blacklisted.version=0 for the first run."
        )
    number = wanted_number(files, config.version)
    if not number:
        _refuse_other_files(files, names)
        log.info("blacklisted: the blacklist %s has no entries yet: nothing is dropped (version 0)", path)
    return number


def _known_before(root: Path, path: str) -> str:
    """Who in this root says that the list has had a version; empty if nobody: then this is the first run of a loop."""
    for card in sorted(root.glob("runs/*/steps/*-blacklisted-*/_step.json")):
        told = read_json(card).get("config", {})
        if told.get("path") == path and told.get("version"):
            return f"run {card.parents[2].name} obeyed its version {told['version']}"
    for marker in sorted(root.glob("rescore/*/*/published.json")):
        version = read_json(marker).get("version")
        settings = read_json(marker.with_name("threshold.json")).get("settings") or {}
        if version and settings.get("blacklist") in (None, path):
            return f"the re-score {marker.parent.relative_to(root)} published its version {version}"
    return ""


def _refuse_other_files(files: Files, names: set[str]) -> None:
    own = files.where.rstrip("/").rpartition("/")[2]  # some stores list a folder in itself
    other = sorted(name for name in names if name != own and not _OURS.fullmatch(name))
    if other:
        raise ConfigError(
            f"blacklisted.path: {files.where} is no blacklist: it has no version, but holds {', '.join(other[:3])}. "
            "Give the folder that `corpusmill blacklist list` shows, or an empty one."
        )


def check_history(config: BlacklistedConfig) -> None:
    """Hold the list as it lies there now against settled settings; reads one small file.

    Raises:
        ConfigError: it is gone, or has another history.
        RunError: it is damaged.
    """
    if not config.version:
        return
    from curation.blacklist.files import open_files
    from curation.blacklist.history import read_version
    from curation.blacklist.snapshot import wanted_number

    assert config.path is not None
    files = open_files(config.path)
    found = read_version(files, wanted_number(files, config.version)).digest
    if found != config.digest:
        raise ConfigError(
            f"blacklisted: version {config.version} of the blacklist {config.path} is not the one that is meant: its digest "
            f"is {found[:16]}, expected {str(config.digest)[:16]}. Put the right list back; or, if another version is meant, "
            "set blacklisted.digest=null beside it."
        )


def opened(config: BlacklistedConfig) -> Opened | None:
    """The blacklist that settled settings name, opened once a process; None for version 0, which holds nothing.

    Raises:
        ConfigError: it is gone, or has another history.
        RunError: it is damaged.
    """
    if not config.version:
        return None
    assert config.path is not None
    assert config.digest is not None
    assert config.at is not None
    return _open(config.path, config.version, config.digest, config.at, config.near)


@lru_cache(maxsize=2)
def _open(path: str, version: int, digest: str, at: datetime, near: bool) -> Opened:
    from curation.blacklist import Blacklist

    check_history(BlacklistedConfig(path=path, version=version, digest=digest))

    blacklist = Blacklist.open(path, version, at=at)
    if not near:
        return Opened(blacklist, None)
    from curation.blacklist.near import NearCopies

    copies = NearCopies.open(blacklist)
    if copies.others:
        log.warning("blacklisted: %s", told_of_others(copies.others))
    return Opened(blacklist, copies)


def told_of_others(others: int) -> str:
    """What to say of entries whose signatures cannot be compared."""
    return (
        f"{others:,} entries of the blacklist were signed in another way than this version signs: exact copies of their texts "
        "are dropped, near copies are not. Add the texts again to sign them anew."
    )
