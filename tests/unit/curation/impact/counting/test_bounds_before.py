"""Bounds of the base: found wherever the base lies, and what loosens them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.config import load_config
from curation.errors import ConfigError
from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import BrokenBound
from curation.impact.counting.bounds_before import bound_changes, bounds_of_base, loosened_words
from tests.impact_repository import commit, make_repository

OLD = {"max_kept_change": 0.005, "max_language_change": 0.02, "languages": {"tha_Thai": 0.1}}


def changes(old: dict[str, object] | None, new: dict[str, object] | None) -> list[tuple[str, str, bool]]:
    sides = [None if one is None else ImpactConfig.model_validate(one) for one in (old, new)]
    return [(one.key.removeprefix("impact."), one.kind, one.loosens) for one in bound_changes(*sides)]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (OLD, []),
        (None, [("max_kept_change", "bound removed", True), ("max_language_change", "bound removed", True),
                ("languages.tha_Thai", "bound removed", True)]),
        ({**OLD, "max_kept_change": 0.5}, [("max_kept_change", "bound raised", True)]),
        ({**OLD, "max_kept_change": 0.001}, [("max_kept_change", "bound lowered", False)]),
        ({**OLD, "languages": {"tha_Thai": 0.1, "jpn_Jpan": 0.5}}, [("languages.jpn_Jpan", "bound set", True)]),
        ({**OLD, "languages": {"tha_Thai": 0.1, "jpn_Jpan": 0.01}}, [("languages.jpn_Jpan", "bound set", False)]),
        ({**OLD, "least_documents": 5000}, [("least_documents", "bound raised", True)]),
        ({**OLD, "least_documents": 5}, [("least_documents", "bound lowered", False)]),
    ],
)  # fmt: skip
def test_each_change_of_a_bound_is_told(new: dict[str, object] | None, told: list[tuple[str, str, bool]]) -> None:
    """Raised or removed, or got round by another key: more may move than before."""
    assert changes(OLD, new) == told


def test_a_first_bound_loosens_nothing() -> None:
    """A config without bounds gets its first ones."""
    assert {(kind, loosens) for _, kind, loosens in changes(None, OLD)} == {("bound set", False)}
    assert changes(None, {"least_documents": 5}) == [("least_documents", "bound lowered", False)]
    assert changes(None, None) == []


def test_words_say_both_limits_and_whether_the_old_one_would_hold() -> None:
    """A reader need not look the config up; limits that are near to each other are told apart."""
    old, new = ImpactConfig(max_kept_change=0.005, max_language_change=0.02), ImpactConfig(max_kept_change=0.0050001)
    broken = [BrokenBound("impact.max_kept_change", None, 0.005, 0.21875, "...")]
    first, second = loosened_words(bound_changes(old, new), broken)
    assert first == (
        "impact.max_kept_change is loosened by the change itself: the base has 0.5 %, now 0.50001 %. "
        "By that of the base the change would fail: 21.88 % moves."
    )
    assert second == "impact.max_language_change is loosened by the change itself: the base has 2 %, now there is none."
    assert loosened_words(bound_changes(new, new), broken) == []
    thai = ImpactConfig(languages={"tha_Thai": 0.1})
    (text,) = loosened_words(bound_changes(thai, None), [])
    assert text.endswith("the base has 10 %, now there is none of its own.")
    thai = ImpactConfig(max_language_change=0.02, languages={"tha_Thai": 0.1})
    (text,) = loosened_words(bound_changes(ImpactConfig(max_language_change=0.02), thai), [])
    assert text.endswith("the base has none of its own, now 10 %.")


def test_bounds_of_a_revision(tmp_path: Path) -> None:
    """As they stand there, in the repository that holds the config, whatever the working tree says."""
    folder = make_repository(tmp_path / "own")
    head = "name: mine\nsteps: [length: {}]\n"
    commit(folder, {"configs/mine.yaml": f"{head}impact: {{max_kept_change: 0.005}}\n"})
    config = folder / "configs" / "mine.yaml"
    config.write_text(head, encoding="utf-8")
    assert bounds_of_base(str(config), "HEAD") == ImpactConfig(max_kept_change=0.005)
    commit(folder, {"configs/mine.yaml": head})
    assert bounds_of_base(str(config), "HEAD") is None
    commit(folder, {"configs/mine.yaml": f"{head}impact: {{max_kept_chang: 0.005}}\n"})
    with pytest.raises(ConfigError, match=r"configs/mine\.yaml at HEAD: .*impact\.max_kept_chang.*max_kept_change"):
        bounds_of_base(str(config), "HEAD")


def test_bounds_of_a_config(tmp_path: Path) -> None:
    """Of a shipped one and of a file; a revision that only the code has leaves the config as it is."""
    config = tmp_path / "mine.yaml"
    config.write_text("name: mine\nsteps: [length: {}]\nimpact: {max_kept_change: 0.3}\n", encoding="utf-8")
    assert bounds_of_base("zh-web", "web") == load_config("web").top.impact
    assert bounds_of_base("web", str(config)) == ImpactConfig(max_kept_change=0.3)
    assert bounds_of_base(str(config), "HEAD") == ImpactConfig(max_kept_change=0.3)
