"""The bounds that a change is held to, beside those that its base holds: a change may raise or drop its own bounds, not unseen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.config import SHIPPED, checked_model, load_config, yaml_mapping
from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import BrokenBound, percent_of
from curation.impact.tree import package_repository, repository_of

__all__ = ["BoundChange", "bound_changes", "bounds_of_base", "loosened_words"]


@dataclass(frozen=True, slots=True)
class BoundChange:
    """A bound that is another one on the new side."""

    key: str
    """Of the config: `impact.max_kept_change`."""
    before: float | None
    """Share, or documents for `impact.least_documents`; None: the base has no such bound."""
    after: float | None
    """None: the new side has no such bound."""
    loosens: bool
    """Whether more may move now than the base allows."""

    @property
    def kind(self) -> str:
        """In two words."""
        if self.before is None:
            return "bound set"
        if self.after is None:
            return "bound removed"
        return "bound raised" if self.after > self.before else "bound lowered"

    def words(self) -> tuple[str, str]:
        """Both limits, as a reader of the config knows them."""
        sides = ((self.before, self.after), (self.after, self.before))
        before, after = (
            "-" if limit is None else f"{limit:,.0f}" if self.key == _LEAST else percent_of(limit, other)
            for limit, other in sides
        )
        return before, after


_ALL, _EACH, _LEAST = "impact.max_kept_change", "impact.max_language_change", "impact.least_documents"


def bounds_of_base(config: str, base: str) -> ImpactConfig | None:
    """The section `impact` as it stands on the base; None if there is none.

    A revision that the config's own repository does not know is one of the code alone: the config is then the same on both
    sides.

    Args:
        config: the new side, as in `curation.impact.sides.sides_of`.
        base: a config or a git revision, as there.

    Raises:
        ConfigError: the config is wrong, or the section is one that this version does not know.
    """
    if Path(base).is_file() or (SHIPPED / f"{base}.yaml").is_file():
        return load_config(base, ["pack="]).top.impact
    if Path(config).is_file():
        file = Path(config).resolve()
        repository = repository_of(file.parent)
        path = "" if repository is None else file.relative_to(repository.folder.resolve()).as_posix()
    else:
        found = package_repository()
        repository = None if found is None else found[0]
        path = "" if found is None else f"{found[1]}curation/configs/{config}.yaml"
    if repository is None or not repository.knows(base):
        return load_config(config, ["pack="]).top.impact
    where = f"{path} at {base}"
    section = yaml_mapping(repository.text(repository.commit(base), path) or "", where).get("impact")
    return None if section is None else checked_model(ImpactConfig, section, where, "impact")


def bound_changes(base: ImpactConfig | None, new: ImpactConfig | None) -> list[BoundChange]:
    """Each bound that differs, in the order of the config's keys."""
    old, now = (one or ImpactConfig.model_validate({}) for one in (base, new))
    found = [
        _change(_ALL, old.max_kept_change, now.max_kept_change),
        _change(_EACH, old.max_language_change, now.max_language_change),
    ]
    for name in dict.fromkeys([*old.languages, *now.languages]):
        before, after = old.languages.get(name), now.languages.get(name)
        # A bound of a language goes before the one of each: a new one that is wider lets more of it move.
        wider = before is None and after is not None and after > _limit(old.max_language_change)
        found.append(_change(f"impact.languages.{name}", before, after, wider=wider))
    if old.least_documents != now.least_documents:
        held = old.max_language_change is not None
        wider = held and now.least_documents > old.least_documents
        found.append(BoundChange(_LEAST, old.least_documents, now.least_documents, wider))
    return [one for one in found if one.before != one.after]


def _change(key: str, before: float | None, after: float | None, *, wider: bool = False) -> BoundChange:
    return BoundChange(key, before, after, wider or _limit(after) > _limit(before))


def _limit(bound: float | None) -> float:
    return math.inf if bound is None else bound


def loosened_words(changes: Sequence[BoundChange], broken_before: Sequence[BrokenBound]) -> list[str]:
    """A sentence for each bound that the change itself loosens.

    Args:
        broken_before: bounds of the base that the change breaks.
    """
    found = []
    for one in changes:
        if one.loosens:
            before, after = one.words()
            had = f"the base has {before}" if one.before is not None else "the base has none of its own"
            single = " of its own" if one.key.startswith("impact.languages.") else ""
            has = f"now {after}" if one.after is not None else f"now there is none{single}"
            key = _EACH if one.key == _LEAST else one.key
            worst = max((bound.found for bound in broken_before if bound.key == key), default=None)
            moved = "" if worst is None else f" By that of the base the change would fail: {_moved(worst)}."
            found.append(f"{one.key} is loosened by the change itself: {had}, {has}.{moved}")
    return found


def _moved(share: float) -> str:
    return f"{percent_of(share)} moves" if math.isfinite(share) else "documents come in, of which the base keeps none"
