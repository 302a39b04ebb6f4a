"""Which code and which config either side is."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.impact.prune import prune
from curation.impact.sides import Side, sides_of, step_names
from curation.impact.tree import package_repository
from tests.impact_repository import commit, make_repository

CONFIG = "name: mine\nsteps:\n  - exact: {}\n  - length: {min_units: 16}\npack: {seq_len: 512}\n"
NEEDS_CHECKOUT = pytest.mark.skipif(package_repository() is None, reason="the package is in no checkout")


def _length(side: Side) -> float:
    assert side.config is not None
    return float(next(step for step in side.config.steps if step.name == "length").config.model_dump()["min_units"])


def test_a_config_as_base_is_judged_by_this_code(tmp_path: Path) -> None:
    """Settings given with --set are of the new side alone; nothing but verdicts counts."""
    file = tmp_path / "mine.yaml"
    file.write_text(CONFIG)
    sides = sides_of(str(file), str(file), ["length.min_units=30"], tmp_path / "root")
    assert (_length(sides.base), _length(sides.new)) == (16, 30)
    assert sides.base.label == str(file)
    assert sides.new.label == f"{file} with length.min_units=30"
    assert sides.base.tree is None
    assert sides.base.code == sides.new.code
    assert sides.base.config is not None
    assert sides.base.config.top.pack is None
    assert sides.base.config.top.ingest.max_quarantine_share == 1


def test_a_shipped_config_is_known_by_its_name(tmp_path: Path) -> None:
    """On both sides."""
    sides = sides_of("demo", "web", [], tmp_path)
    assert (sides.base.label, sides.new.label) == ("web", "demo")


def test_a_repository_of_configs_alone_gives_the_config_of_a_revision(tmp_path: Path) -> None:
    """The code is this one, of whatever version the repository knows nothing."""
    folder = make_repository(tmp_path / "repo")
    first = commit(folder, {"configs/mine.yaml": CONFIG})
    commit(folder, {"configs/mine.yaml": CONFIG.replace("16", "20")})
    (folder / "configs/mine.yaml").write_text(CONFIG.replace("16", "25"))
    sides = sides_of(str(folder / "configs/mine.yaml"), "HEAD~1", [], tmp_path / "root")
    assert (_length(sides.base), _length(sides.new)) == (16, 25)
    assert sides.base.label == f"HEAD~1 ({first[:7]})"
    assert sides.new.label == "working tree"
    assert sides.base.commit is None
    assert sides.base.tree is None
    assert _length(sides_of(str(folder / "configs/mine.yaml"), first[:7], [], tmp_path / "root").base) == 16


@NEEDS_CHECKOUT
def test_an_upgrade_is_seen_with_a_config_of_ones_own(tmp_path: Path) -> None:
    """A revision that only the package's checkout knows is one of its code: the config is the same on both sides."""
    ours = package_repository()
    assert ours is not None
    head = ours[0].commit("HEAD")
    folder = make_repository(tmp_path / "repo")
    commit(folder, {"mine.yaml": CONFIG})
    (tmp_path / "alone.yaml").write_text(CONFIG)
    for file in (folder / "mine.yaml", tmp_path / "alone.yaml"):
        sides = sides_of(str(file), f"corpusmill:{head}", ["length.min_units=30"], tmp_path / "root")
        assert sides.base.label == f"Corpusmill {head[:7]}"
        assert "min_units: 16" in sides.base.text
        assert _length(sides.new) == 30
    with pytest.raises(ConfigError, match="no revision"):
        sides_of(str(folder / "mine.yaml"), "corpusmill:v99", [], tmp_path / "root")


@NEEDS_CHECKOUT
def test_a_revision_that_the_configs_lack_is_not_answered_by_the_package(tmp_path: Path) -> None:
    """In a shallow clone of configs `HEAD~1` is missing: the package's would let every change pass."""
    folder = make_repository(tmp_path / "repo")
    commit(folder, {"mine.yaml": CONFIG})
    with pytest.raises(ConfigError, match="no revision 'HEAD~1'"):
        sides_of(str(folder / "mine.yaml"), "HEAD~1", [], tmp_path / "root")


def test_files_that_a_config_names_are_those_of_the_revision(tmp_path: Path) -> None:
    """A changed list is the change itself; one that did not change keeps its place, so that scores are shared."""
    folder = make_repository(tmp_path / "repo")
    terms = "steps:\n  - safety_terms: {files: [../lists/mine.txt, ../lists/same.txt]}\n"
    commit(folder, {"configs/mine.yaml": terms, "lists/mine.txt": "old words\n", "lists/same.txt": "same words\n"})
    (folder / "lists/mine.txt").write_text("new words\n")
    sides = sides_of(str(folder / "configs/mine.yaml"), "HEAD", [], tmp_path / "root")
    old, new = (side.text for side in (sides.base, sides.new))
    assert "lists/mine.txt" in old
    assert "impact/trees" in old
    assert "impact/trees" not in new
    assert old.count("impact/trees") == 1
    prune(tmp_path / "root" / "impact", (), keep=0)
    assert next((tmp_path / "root" / "impact" / "trees").rglob("mine.txt")).read_text() == "old words\n"


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("v9", "no revision 'v9'"),
        ("mian", "did you mean 'main'"),
        ("nowhere.yaml", "nowhere"),
    ],
)
def test_a_base_that_is_nothing_is_refused(tmp_path: Path, base: str, told: str) -> None:
    """With what there is."""
    folder = make_repository(tmp_path / "repo")
    commit(folder, {"mine.yaml": CONFIG})
    with pytest.raises(ConfigError, match=told):
        sides_of(str(folder / "mine.yaml"), base, [], tmp_path / "root")


def test_a_config_that_is_not_part_of_the_revision_is_named(tmp_path: Path) -> None:
    """With the configs that are."""
    folder = make_repository(tmp_path / "repo")
    commit(folder, {"mine.yaml": CONFIG})
    (folder / "mine2.yaml").write_text(CONFIG)
    with pytest.raises(ConfigError, match=r"mine2\.yaml is not part of HEAD.*did you mean 'mine\.yaml'"):
        sides_of(str(folder / "mine2.yaml"), "HEAD", [], tmp_path / "root")


def test_a_config_outside_of_git_has_no_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what --base may be."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    with pytest.raises(ConfigError, match="lies in no git checkout"):
        sides_of(str(tmp_path / "mine.yaml"), "main", [], tmp_path / "root")


def test_an_installed_package_has_no_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a shipped config nothing but other configs can be the base."""
    monkeypatch.setattr("curation.impact.sides.package_repository", lambda: None)
    with pytest.raises(ConfigError, match="installed without its git checkout"):
        sides_of("web", "main", [], tmp_path)


@NEEDS_CHECKOUT
def test_a_shipped_config_has_the_revisions_of_the_package(tmp_path: Path) -> None:
    """Of HEAD, with the code as it stands there if the working tree differs."""
    sides = sides_of("demo", "HEAD", [], tmp_path)
    assert sides.base.label.startswith("HEAD (")
    assert set(sides.base.code.steps) == set(sides.new.code.steps)


def test_the_names_of_steps_are_read_of_plain_data() -> None:
    """Written short or long, and of a config that is none."""
    assert step_names({"steps": ["exact", {"length": {}}, {"rules": None}]}) == ["exact", "length", "rules"]
    assert step_names({"steps": None}) == []
    assert step_names({}) == []
