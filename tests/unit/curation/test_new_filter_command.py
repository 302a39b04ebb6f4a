"""`corpusmill new-filter`: everything or nothing is written, what was there stays, and what is made is clean and works."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curation import new_filter_command
from curation.command_parser import Parser
from curation.errors import ConfigError, RunError
from curation.filters import FILTERS
from curation.new_filter import FILL_IN, checked_name, new_filter, with_filter, with_step
from curation.new_filter_command import add_new_filter, begin_filter
from curation.steps import STEPS
from curation.verdicts import Filter

REPO = Path(__file__).resolve().parents[3]
LIST = REPO / "curation/filters/__init__.py"
LONGEST = "a_filter_with_the_longest_name"
CONFIG = """# ours
name: mine   # the first
steps:
  # copies first
  - exact: {}
  - length:          # in units
      min_units: 20  # more than a caption

  - rules: {}  # all of them

  # what is unsafe
  - safety_terms: {}
memory_mb: 900
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders that the command writes into, with the real list of filters; pages are not made."""
    for folder in ("tests/golden/cases", "tests/unit/curation/filters", "tools", "curation/filters"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(LIST, tmp_path / "curation/filters/__init__.py")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tools/make_reference.py").write_text("open('made', 'w').close()")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def module_of(name: str, folder: Path) -> ModuleType:
    """The template's module, imported from a file."""
    path = folder / f"{name}.py"
    path.write_text(new_filter(name).files[f"curation/filters/{name}.py"], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Shouting", "how about 'shouting'"),
        ("tooManyMarks", "how about 'too_many_marks'"),
        ("my-filter", "how about 'my_filter'"),
        ("2fast", "how about 'fast'"),
        ("double__mark", "how about 'double_mark'"),
        ("a b", "how about 'a_b'"),
        ("../up", "how about 'up'"),
        ("_", "cannot be called"),
        ("", "cannot be called"),
        ("感叹", "cannot be called"),
        ("x" * 31, "31 letters"),
        ("class", "Python's own"),
        ("text", "another module"),
        ("test", "another module"),
        ("length", "already: curation.filters.length"),
        ("near", "already: curation.dedup"),
        ("ingest", "a key of every config"),
        ("steps", "a key of every config"),
    ],
)
def test_a_bad_name_is_refused(name: str, said: str) -> None:
    """The message says why, and how it could be called instead."""
    with pytest.raises(ConfigError, match=said):
        checked_name(name)


@pytest.mark.parametrize("name", ["filter", "decision", "field", "exception", "score_column"])
def test_a_class_that_would_hide_another_is_refused(name: str) -> None:
    """The module's own class must not be called as one that it imports, or as one of Python's."""
    with pytest.raises(ConfigError, match="has one of that name"):
        new_filter(name)


@pytest.mark.parametrize("name", ["aa", "q", "html_noise2", "zz", LONGEST])
def test_the_list_of_filters_stays_sorted(name: str) -> None:
    """One line more, in its place; every other line as it was."""
    source = LIST.read_text(encoding="utf-8")

    changed = with_filter(source, name)

    added = [line for line in changed.splitlines() if line not in source.splitlines()]
    assert len(added) == 1
    assert changed.replace(added[0] + "\n", "") == source
    keys = [line.split('"')[1] for line in changed.splitlines() if line.startswith('    "')]
    assert keys == sorted([*FILTERS, name])


@pytest.mark.parametrize(
    "source",
    ["", "FILTERS = {}\n", "FILTERS: dict = {}\n", "x = (\n", 'FILTERS: dict = {"a": "b"}\n', "FILTERS: int\n"],
)
def test_a_list_that_cannot_be_read_is_refused(source: str) -> None:
    """Nothing is guessed about a file that somebody has changed."""
    with pytest.raises(ConfigError, match="no list FILTERS"):
        with_filter(source, "mine")


def test_a_config_keeps_all_that_stands_in_it() -> None:
    """The step stands behind those of its stage and before the unsafe ones; comments and blank lines stay."""
    changed, behind = with_step(CONFIG, "mine", "mine.yaml")

    assert behind == "rules"
    assert changed == CONFIG.replace("  - rules: {}  # all of them\n", "  - rules: {}  # all of them\n  - mine: {}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps:\n- exact\n- safety_terms\n", "steps:\n- exact\n- mine: {}\n- safety_terms\n"),
        ("steps:\n  - exact", "steps:\n  - exact\n  - mine: {}\n"),
        ("steps:\r\n  - exact: {}\r\nname: a\r\n", "steps:\r\n  - exact: {}\r\n  - mine: {}\r\nname: a\r\n"),
        ("steps:\n    - safety_terms: {}\n", "steps:\n    - mine: {}\n    - safety_terms: {}\n"),
        ("steps:\n  - exact:\n# end\n", "steps:\n  - exact:\n  - mine: {}\n# end\n"),
        (
            "steps:\n  - length: {\n    min_units: 3\n    }\n",
            "steps:\n  - length: {\n    min_units: 3\n    }\n  - mine: {}\n",
        ),
        ('name: "steps:"\nsteps:\n  - exact: {}\n', 'name: "steps:"\nsteps:\n  - exact: {}\n  - mine: {}\n'),
        ("steps: !!seq\n  - exact: {}\n...\n", "steps: !!seq\n  - exact: {}\n  - mine: {}\n...\n"),
    ],
)
def test_forms_of_configs(text: str, expected: str) -> None:
    """Strings, empty settings, indents, line ends, settings over several lines."""
    assert with_step(text, "mine", "x.yaml")[0] == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: [exact, length]\n", "by hand"),
        ("steps: []\n", "by hand"),
        ("name: a\n", "by hand"),
        ("", "by hand"),
        ("steps:\n  -\n    exact: {}\n  - safety_terms: {}\n  - no_such: {}\n", "unknown step 'no_such'"),
        ("steps:\n  - exact: {}\n  - exact: {}\n", "stands twice"),
        ("steps: {exact: 1}\n", "steps"),
        ("a: [\n", "not valid YAML"),
        ("steps:\n  - length: {}\n", "already"),
    ],
)
def test_a_config_that_cannot_get_a_step_is_refused(text: str, said: str) -> None:
    """Flow lists, no steps, a wrong config, a step that is there: with what to do."""
    with pytest.raises(ConfigError, match=said):
        with_step(text, "length" if said == "already" else "mine", "x.yaml")


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(set(STEPS) - {"blacklisted"})), min_size=1, max_size=5, unique=True),
    comments=st.lists(st.sampled_from(["", "\n", "  # a - b: {}\n", "# c\n"]), min_size=6, max_size=6),
    indent=st.integers(0, 4),
    tail=st.sampled_from(["", "name: x\n", "# - mine: {}\n", "memory_mb: 700 # y"]),
)
def test_any_config_gets_one_line(names: Sequence[str], comments: Sequence[str], indent: int, tail: str) -> None:
    """Taking the line away again gives the text as it was, and the steps are the old ones with the new one among them."""
    blanks = " " * indent
    items = [f"{comment}{blanks}- {name}: {{}}\n" for comment, name in zip(comments, names, strict=False)]
    text = f"{comments[-1]}steps:\n{''.join(items)}{comments[-2]}{tail}"

    changed, behind = with_step(text, "mine", "x.yaml")

    assert changed.replace(f"{blanks}- mine: {{}}\n", "", 1) in (text, text + "\n")
    steps = [next(iter(step)) for step in yaml.safe_load(changed)["steps"]]
    assert [step for step in steps if step != "mine"] == list(names)
    assert behind == (steps[steps.index("mine") - 1] if steps[0] != "mine" else None)


@pytest.mark.parametrize("name", ["q", "lost_bytes", LONGEST])
def test_what_is_made_is_clean(name: str, tmp_path: Path) -> None:
    """ruff finds nothing to change in module, test and list, however long the name is."""
    made = new_filter(name)
    shutil.copy(REPO / "pyproject.toml", tmp_path)
    for path, text in {
        **made.files,
        "curation/__init__.py": "",  # by it the sorter of imports knows whose they are
        "curation/filters/__init__.py": with_filter(LIST.read_text(encoding="utf-8"), name),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "curation", "tests"]
        done = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_made_works(tmp_path: Path) -> None:
    """The example of a rule judges: lost bytes are found in any script, few are no reason, blanks are nothing."""
    made = module_of("lost_bytes", tmp_path).LostBytes
    step = made(made.Config())
    assert isinstance(step, Filter)
    texts = [
        "",
        " \n\u3000",
        "an ordinary text",
        "\ufffd" * 4,
        "\ufffd" * 5,
        "字\ufffd" * 10,
        "字" * 191 + "\ufffd" * 9,
    ]

    scores = step.score(pa.record_batch([pa.array(texts, pa.large_string())], names=["text"]))
    decision = step.decide(scores)

    assert scores.column("found").to_pylist() == [0, 0, 0, 4, 5, 10, 9]
    assert scores.column("share").to_pylist() == pytest.approx([0, 0, 0, 1, 1, 0.5, 0.045])
    assert decision.keep.tolist() == [True, True, True, True, False, False, True]


def test_what_only_a_person_knows_is_marked() -> None:
    """Module and test hold FILL IN, so that the law test refuses them; the first cases are kept ones in 13 languages."""
    files = new_filter("mine").files
    texts = {path.rpartition(".")[2] + path[:5]: text for path, text in files.items()}
    cases = [json.loads(line) for line in texts["jsonltests"].splitlines()]

    assert FILL_IN in texts["pycurat"]
    assert FILL_IN in texts["pytests"]
    assert len({case["lang"] for case in cases} - {"und"}) == 13
    assert all(case["keep"] and case["reason"] is None and "CC0" in case["source"] for case in cases)
    assert len({case["id"] for case in cases}) == len(cases)


def test_templates_are_shipped() -> None:
    """Each template has an ending that goes into a package."""
    settings = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["*"]
    for path in (REPO / "curation/filter_templates").iterdir():
        assert any(fnmatch(path.name, pattern) for pattern in patterns), path.name


def test_a_filter_is_begun(checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """New files, two changed ones, the pages made anew, and the next command, as the command line prints them."""
    (checkout / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    (checkout / "mine.yaml").chmod(0o600)
    monkeypatch.setattr(new_filter_command, "CHECKOUT", checkout)
    parser = Parser()
    add_new_filter(parser.add_subparsers(parser_class=Parser))
    arguments: argparse.Namespace = parser.parse_args(["new-filter", "mine", "--config", "mine.yaml"])

    assert arguments.function(arguments) == 0

    told = capsys.readouterr().out
    for path in (
        "curation/filters/mine.py",
        "tests/golden/cases/mine.jsonl",
        "tests/unit/curation/filters/test_mine.py",
    ):
        assert f"new      {path}\n" in told
        ast.parse((checkout / path).read_text(encoding="utf-8")) if path.endswith(".py") else None
    assert "mine.yaml: - mine: {} stands behind rules\n" in told
    assert '"mine": "curation.filters.mine:Mine"' in (checkout / "curation/filters/__init__.py").read_text(
        encoding="utf-8"
    )
    assert "- mine: {}" in (checkout / "mine.yaml").read_text(encoding="utf-8")
    assert (checkout / "mine.yaml").stat().st_mode & 0o777 == 0o600
    assert (checkout / "made").exists()


def test_without_a_config_its_line_is_printed(checkout: Path) -> None:
    """For whoever keeps configs elsewhere."""
    assert "    - mine: {}" in begin_filter("mine", None, checkout)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("rm tools/make_reference.py", "not a checkout"),
        ("touch curation/filters/mine.py", "there already"),
        ("touch tests/golden/cases/mine.jsonl", "there already"),
        ("echo > curation/filters/__init__.py", "no list FILTERS"),
        ("rm mine.yaml", "there is no file"),
        ("rm mine.yaml; mkdir mine.yaml", "there is no file"),
        ("printf '\\377' > mine.yaml", "not in UTF-8"),
        ("echo 'steps: [exact]' > mine.yaml", "by hand"),
    ],
)
def test_nothing_is_written_where_anything_is_wrong(checkout: Path, spoil: str, said: str) -> None:
    """Everything is looked at before the first file is written."""
    (checkout / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    subprocess.run(spoil, shell=True, check=True, cwd=checkout)
    before = contents(checkout)

    with pytest.raises(ConfigError, match=said):
        begin_filter("mine", checkout / "mine.yaml", checkout)

    assert contents(checkout) == before


@pytest.mark.parametrize("broken", ["__init__.py", "mine.yaml"])
def test_a_full_disk_leaves_nothing_behind(checkout: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """What was written before a file that could not be is taken back."""
    (checkout / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    before = contents(checkout)
    whole = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name.startswith(f".{broken}"):
            raise OSError(28, "No space left on device", str(self))
        return whole(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)

    with pytest.raises(RunError, match="disk is full"):
        begin_filter("mine", checkout / "mine.yaml", checkout)

    assert contents(checkout) == before


def test_a_linked_config_stays_a_link(checkout: Path) -> None:
    """The file is changed, not the link."""
    (checkout / "real.yaml").write_text(CONFIG, encoding="utf-8")
    (checkout / "mine.yaml").symlink_to("real.yaml")

    begin_filter("mine", checkout / "mine.yaml", checkout)

    assert (checkout / "mine.yaml").is_symlink()
    assert "- mine: {}" in (checkout / "real.yaml").read_text(encoding="utf-8")


def test_pages_that_cannot_be_made_are_a_warning(checkout: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The filter is there all the same."""
    (checkout / "tools/make_reference.py").write_text("raise SystemExit('no \\x1b[31mreason')")

    told = begin_filter("mine", None, checkout)

    assert "run `make docs` later" in caplog.text
    assert "\x1b" not in caplog.text
    assert not any("reference" in line for line in told)
    assert (checkout / "curation/filters/mine.py").exists()
