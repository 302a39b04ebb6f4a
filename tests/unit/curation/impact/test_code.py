"""The digest of code: what changes it, and what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from curation.errors import RunError
from curation.filters import FILTERS
from curation.impact.code import HERE, Sources, code_of, environment_digest
from curation.steps import STEPS, step_class

FILES = {
    "curation/__init__.py": "",
    "curation/judge.py": "from curation import shards\n",
    "curation/shards.py": "def alive():\n    return 1\n",
    "curation/other.py": "x = 1\n",
    "curation/filters/__init__.py": 'FILTERS = {"a": "curation.filters.a:A", "b": "curation.filters.b:B"}\n',
    "curation/filters/a/__init__.py": "from curation.filters.a.step import A\n",
    "curation/filters/a/step.py": (
        '"""Doc."""\nfrom . import limits\nneeds = ("text", "b.score")\nclass A:\n    def f(self):\n'
        "        from quality_models import model\n        return model\n"
    ),
    "curation/filters/a/limits.py": "LIMIT = 3\n",
    "curation/filters/a/limits.tsv": "en\t1\n",
    "curation/filters/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import curation.other\nclass B: ...\n",
    "curation/dedup/__init__.py": 'DATA_SET_STEPS: dict[str, str] = {"near": "curation.dedup.near:Near"}\n',
    "curation/dedup/near.py": "import curation.pipeline\n",
    "curation/pipeline.py": "from curation import other\n",
    "curation/ingest/__init__.py": "",
    "curation/ingest/part.py": "",
    "quality_models/__init__.py": "",
    "quality_models/model.py": "",
    "quality_models/weights/w.bin": "1",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small project of the same shape."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def _digests(tree: Path) -> dict[str, str]:
    sources = Sources(tree)
    code = code_of(sources, ["a", "b", "near", "unknown"])
    return {**code.steps, "ingest": code.ingest}


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        ("curation/filters/a/step.py", "class A: ...\n", {"a"}),
        ("curation/filters/a/limits.py", "LIMIT = 4\n", {"a"}),
        ("curation/filters/a/limits.tsv", "en\t2\n", {"a"}),
        ("curation/filters/a/new.txt", "en\t2\n", {"a"}),
        ("quality_models/model.py", "x = 1\n", {"a"}),
        ("quality_models/weights/w.bin", "2", {"a"}),
        ("curation/shards.py", "def alive():\n    return 2\n", {"a", "b", "near"}),
        ("curation/ingest/part.py", "x = 1\n", {"ingest"}),
        ("curation/other.py", "x = 2\n", set()),
        ("curation/pipeline.py", "x = 2\n", set()),
        ("curation/filters/__init__.py", FILES["curation/filters/__init__.py"] + "# c\nX = {}\n", set()),
        ("curation/shards.py", '"""Doc."""\n# why\ndef alive():\n    """More."""\n\n    return (1)\n', set()),
        ("curation/configs/web.yaml", "name: web\n", set()),
        ("curation/filters/a/__pycache__/x.pyc", "1", set()),
    ],
)
def test_a_change_moves_the_digest_of_what_depends_on_it_alone(
    tree: Path, file: str, text: str, changed: set[str]
) -> None:
    """Imports count at any depth and inside functions, and data beside them; comments, docstrings and strangers do not."""
    before = _digests(tree)
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    after = _digests(tree)
    assert {name for name in before if before[name] != after[name]} == changed


def test_a_step_that_is_not_there_has_no_digest(tree: Path) -> None:
    """Another version may lack it."""
    assert set(_digests(tree)) == {"a", "b", "near", "ingest"}


def test_reads_are_the_steps_whose_scores_are_named(tree: Path) -> None:
    """`b.score` in the sources of a step's package."""
    assert code_of(Sources(tree), ["a", "b"]).reads == {"a": ["b"], "b": []}


@pytest.mark.parametrize("way", ["from curation.names import SCORE", "from ..names import SCORE as s"])
def test_a_score_that_is_named_by_a_constant_is_read(tree: Path, way: str) -> None:
    """Where the constant is imported, and only of it; with a memo too."""
    (tree / "curation/names.py").write_text('SCORE: str = "a.score"\nOTHER = "near.score"\n')
    (tree / "curation/filters/b.py").write_text(f"{way}\nclass B: ...\n")
    memo = tree / "memo.json"
    for _ in range(2):
        sources = Sources(tree, memo)
        assert sources.reads("b") == ["a"]
        sources.remember()


def test_reads_hold_what_every_step_says_that_it_needs() -> None:
    """Of every step of this version: else scores would be taken over that rest on scores of other code."""
    sources = Sources(HERE)
    for name in STEPS:
        needed = {need.partition(".")[0] for need in step_class(name).needs if "." in need}
        assert needed <= set(sources.reads(name)), name


def test_the_digest_is_one_in_every_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Paths do not count."""
    other = tmp_path_factory.mktemp("other") / "deep"
    for name in FILES:
        path = other / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((tree / name).read_text())
    assert _digests(other) == _digests(tree)


@pytest.mark.parametrize("name", ["pipeline", "config", "launch", "passes", "close"])
def test_what_drives_all_steps_has_a_digest_of_its_own(tree: Path, name: str) -> None:
    """By its own text: a step that it drives, a comment, and what else it imports are no part of it."""
    before = code_of(Sources(tree), ["a"])
    path = tree / f"curation/{name}.py"
    path.write_text(f"{path.read_text() if path.exists() else ''}\nx = 2\n")
    after = code_of(Sources(tree), ["a"])
    assert after.engine != before.engine
    assert replace(after, engine=before.engine) == before
    path.write_text(f"# why\n{path.read_text()}")
    (tree / "curation/other.py").write_text("x = 3\n")
    assert code_of(Sources(tree), ["a"]) == after


def test_the_memo_says_what_the_sources_say(tree: Path) -> None:
    """With a memo, of a broken one, and after a change."""
    memo = tree / "memo.json"
    first = Sources(tree, memo)
    want = first.step("a")
    first.remember()
    assert memo.exists()
    assert Sources(tree, memo).step("a") == want
    memo.write_text("{broken")
    assert Sources(tree, memo).step("a") == want
    memo.write_text('{"format": 1, "modules": []}')
    assert Sources(tree, memo).step("a") == want


def test_a_source_that_is_no_python_is_named(tree: Path) -> None:
    """With its path."""
    (tree / "curation/filters/a/step.py").write_text("def :")
    with pytest.raises(RunError, match=r"step\.py is no Python"):
        Sources(tree).step("a")


def test_every_step_of_this_version_has_a_digest_of_its_own() -> None:
    """And its closure holds its own module; the report and the command line are in none."""
    sources = Sources(HERE)
    digests = {name: sources.step(name) for name in ("length", "exact", "html_noise")}
    assert len(set(digests.values())) == 3
    for name in FILTERS:
        reached = sources.closure([sources.steps[name].partition(":")[0], "curation.judge"])
        assert f"curation.filters.{name}" in reached
        assert "curation.text" in reached
        assert not {"curation.cli", "curation.report", "curation.config", "curation.pipeline"} & set(reached)
    assert "language" in sources.reads("perplexity")


def test_the_environment_is_one_digest() -> None:
    """Of the packages that are installed: equal within a process."""
    assert environment_digest() == environment_digest()
    assert len(environment_digest()) == 16
