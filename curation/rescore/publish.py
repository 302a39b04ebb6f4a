"""The end of a threshold: the decision about its proposal, one version of the blacklist, and the marker.

    decision.json    approved, rejected or not_asked: who, when, why; the first one about the proposal that stands counts
    published.json   the version that was appended; null where nothing was
    _done.json       last

A version is appended once: its `once` names the threshold, and an append that finds it in the history adds nothing. So a
process may die between any two of these files, and two may be at it at once.
"""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from typing import Any

from curation.blacklist.files import open_files
from curation.blacklist.history import Version, append, read_version
from curation.environment import somebody
from curation.errors import ConfigError, RunError
from curation.rescore.propose import proposal_of, read_proposed
from curation.rescore.threshold import Threshold, training_lock
from curation.run import read_json, utc_now, write_json

__all__ = ["decide", "decision_of", "finish", "let_go", "needs_decision", "publish"]

log = logging.getLogger("corpusmill")


def decision_of(threshold: Threshold) -> dict[str, Any] | None:
    """decision.json, if it stands and is about the proposal that stands: another proposal needs another decision."""
    path, proposal = threshold.folder / "decision.json", proposal_of(threshold)
    if proposal is None or not path.exists():
        return None
    found: dict[str, Any] = read_json(path)
    if found.get("proposal") == proposal["identity"]:
        return found
    log.warning("%s was about another proposal (%s): it does not count.", path, found.get("proposal"))
    return None


def needs_decision(threshold: Threshold) -> bool:
    """Whether a person must say something before the proposal is published."""
    if threshold.done is not None or decision_of(threshold) is not None:
        return False
    proposal = proposal_of(threshold)
    return proposal is not None and proposal["counts"]["entries"] > 0 and threshold.begun_with.approval


def decide(threshold: Threshold, decision: str, who: str, note: str = "") -> dict[str, Any]:
    """Write down what was decided, unless something was before; returns what stands.

    Args:
        decision: approved, rejected, or not_asked.

    Raises:
        ConfigError: there is no proposal to decide about.
    """
    assert decision in ("approved", "rejected", "not_asked"), decision
    with training_lock(threshold.settings):
        if (stands := decision_of(threshold)) is not None:
            return stands
        proposal = proposal_of(threshold)
        if proposal is None or threshold.done is not None:
            raise ConfigError(
                f"threshold {threshold.tokens:,} has nothing to decide about: it is "
                f"{'done' if threshold.done is not None else 'not scored yet'}. See `corpusmill rescore SETTINGS --status`."
            )
        told = {"decision": decision, "who": who, "when": utc_now(), "note": note, "proposal": proposal["identity"]}
        write_json(threshold.folder / "decision.json", told)
        return told


def publish(threshold: Threshold) -> dict[str, Any] | None:
    """Append the version, unless it is; None as long as a person has to decide. Returns published.json.

    Raises:
        RunError: there is no proposal yet, or the blacklist cannot be written.
        ConfigError: the blacklist has a version of this training and threshold that is another's.
    """
    path = threshold.folder / "published.json"
    if path.exists():
        found: dict[str, Any] = read_json(path)
        return found
    proposal = proposal_of(threshold)
    if proposal is None:
        raise RunError(f"{threshold.folder} has no proposal yet. Run the same command again.")
    settings, entries = threshold.begun_with, proposal["counts"]["entries"]
    published: dict[str, Any] = {"version": None, "digest": None, "entries": 0}
    if entries:
        decision = decision_of(threshold)
        if decision is None:
            if settings.approval:
                return None
            decision = decide(threshold, "not_asked", somebody())
        if decision["decision"] != "rejected":
            version = _appended(threshold, proposal, decision)
            published = {"version": version.number, "digest": version.digest, "entries": version.rows}
            log.info(
                "threshold %s: blacklist version %d, %d entries", f"{threshold.tokens:,}", version.number, version.rows
            )
    with training_lock(settings):
        if not path.exists():
            write_json(path, {**published, "when": utc_now()})
    return read_json(path)  # type: ignore[no-any-return]


def _appended(threshold: Threshold, proposal: dict[str, Any], decision: dict[str, Any]) -> Version:
    """The version that holds the entries of a proposal.

    Raises:
        ConfigError: the version of this name holds those of another proposal.
    """
    settings = threshold.begun_with
    once = f"{settings.training.run}/{threshold.tokens}"
    entries = read_proposed(threshold, "entries")
    number = append(settings.blacklist_path, entries, _facts(threshold, proposal, decision), once=once)
    version = read_version(open_files(settings.blacklist_path), number)
    if (of := version.facts.get("identity")) != proposal["identity"] or version.rows != entries.num_rows:
        raise ConfigError(
            f"version {number} of the blacklist {settings.blacklist_path} is named {once!r} already, and holds another "
            f"proposal ({version.rows:,} entries, {of}) than {threshold.folder} ({entries.num_rows:,}, "
            f"{proposal['identity']}); nothing was appended. Either another root follows a training of this name, or the "
            "threshold was published, deleted and scored anew. Delete that folder, and set another `blacklist` or another "
            "`training.run` before it is scored again; `corpusmill blacklist remove` takes back what the version holds."
        )
    return version


def _facts(threshold: Threshold, proposal: dict[str, Any], decision: dict[str, Any]) -> dict[str, Any]:
    entry = threshold.info["entry"]
    facts = {
        "who": decision["who"],
        "why": f"re-score of {threshold.settings.training.run} at {threshold.tokens:,} tokens",
        "decision": decision["decision"],
        "training_run": threshold.settings.training.run,
        "threshold": threshold.tokens,
        "tokens_seen": entry["tokens_seen"],
        "checkpoint": entry["checkpoint"],
        "runs": threshold.info["runs"],
        "counts": proposal["counts"],
        "identity": proposal["identity"],
    }
    return {name: _utf8(value) if isinstance(value, str) else value for name, value in facts.items()}


def _utf8(text: str) -> str:
    """The text with what UTF-8 cannot hold escaped: a path of other bytes, as Python reads it."""
    return text.encode("utf-8", "backslashreplace").decode()


def finish(threshold: Threshold) -> dict[str, Any]:
    """Write the marker of a threshold whose published.json stands, and let go of the held weights."""
    published, decision = read_json(threshold.folder / "published.json"), decision_of(threshold)
    proposal = read_json(threshold.folder / "chosen" / "proposal.json")
    if published["version"] is not None:
        state = "published"
    else:
        state = "rejected" if decision is not None and decision["decision"] == "rejected" else "nothing_chosen"
    with training_lock(threshold.settings):
        marker = threshold.finish(state, version=published["version"], counts=proposal["counts"])
    let_go(threshold)
    return marker


def let_go(threshold: Threshold) -> None:
    """Remove the held weights of a threshold that is done, unless they are to be kept; `pinned.json` stays."""
    if threshold.settings.keep_model:
        return
    for path in (threshold.folder / "_model").glob("*"):
        if path.name != "pinned.json":
            with suppress(OSError):  # another try is at it, too
                shutil.rmtree(path) if path.is_dir() else path.unlink()
