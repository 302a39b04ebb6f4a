"""`make impact`: what is compared with what, and when it says that there is nothing to compare."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import impact_of_checkout
from tools.impact_of_checkout import BASE_FILE, CONFIGS, NoBaseError, changes, deciding, main, signed_base

REPO = Path(__file__).resolve().parents[3]

REGISTRY = '{"length": "curation.filters.length:Length", "unused": "curation.filters.unused:Unused"}'
PROJECT = {
    "README.md": "read\n",
    "curation/__init__.py": "",
    "curation/configs/web.yaml": "steps: [length]\n",
    "curation/configs/zh-web.yaml": "steps:\n  - length: {}\n",
    "curation/configs/other.yaml": "steps: [unused]\n",
    "curation/config.py": "KEYS = 3\n",
    "curation/filters/__init__.py": f"FILTERS = {REGISTRY}\n",
    "curation/filters/length.py": "from curation.spans import LIMIT\n",
    "curation/filters/unused.py": "LIMIT = 1\n",
    "curation/ingest/plan.py": "MEGABYTES = 64\n",
    "curation/judge.py": "from curation.shards import ROWS\n",
    "curation/passes.py": "PASSES = 1\n",
    "curation/report/page.py": "TITLE = 'a'\n",
    "curation/shards.py": "ROWS = 1024\n",
    "curation/spans.py": "from tokenization.cut import WIDTH\nLIMIT = WIDTH\n",
    "tokenization/__init__.py": "",
    "tokenization/cut.py": "WIDTH = 4\n",
    "tokenization/table.tsv": "a\tb\n",
}


def git(folder: Path, *words: str) -> str:
    """Output of a git command in a repository of nobody's."""
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "init.defaultBranch=main"]
    told = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env={**os.environ, **told}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small project: two filters, of which the shipped configs have one, what both need, and a signed commit."""
    folder = tmp_path / "checkout"
    for path, text in PROJECT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / BASE_FILE.parent).mkdir(parents=True)
    git(folder, "init", "-q", ".")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    (folder / BASE_FILE).write_text(f"# about\n{git(folder, 'rev-parse', 'HEAD')}  2026-11-30  nothing yet\n")
    return folder


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What would be judged; the second config is beyond a bound."""
    calls: list[tuple[str, str]] = []

    def impact(repo: Path, config: str, base: str) -> int:
        calls.append((config, base))
        return int(config == CONFIGS[1])

    monkeypatch.setattr(impact_of_checkout, "_impact", impact)
    return calls


@pytest.mark.parametrize(
    "path", ["README.md", "curation/filters/unused.py", "curation/report/page.py", "curation/filters/fresh.py"]
)
def test_nothing_changed(
    path: str, checkout: Path, judged: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What no shipped config asks for, committed or not, is none of its business; nor is a comment."""
    (checkout / path).write_text("NEW = 1\n")
    with (checkout / "curation" / "filters" / "length.py").open("a") as file:
        file.write("# said better\n")
    assert main([], checkout) == 0
    assert capsys.readouterr().out.startswith("impact: nothing that decides about documents by web or zh-web changed")
    assert judged == []


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("curation/filters/length.py", ["step length"]),
        ("curation/spans.py", ["step length"]),
        ("tokenization/cut.py", ["step length"]),
        ("tokenization/table.tsv", ["step length"]),
        ("curation/shards.py", ["step length"]),
        ("curation/judge.py", ["step length"]),
        ("curation/config.py", ["what drives the steps"]),
        ("curation/passes.py", ["what drives the steps"]),
        ("curation/ingest/plan.py", ["ingest"]),
        ("curation/configs/other.yaml", ["curation/configs/other.yaml"]),
    ],
)
def test_whatever_decides_is_seen(path: str, names: list[str], checkout: Path) -> None:
    """At any depth, in any package, in data and in what drives the steps: what a step depends on is followed, not listed."""
    with (checkout / path).open("a") as file:
        file.write("# a comment\nNEW = 1\n" if path.endswith(".py") else "new: 1\n")
    assert changes(checkout, "HEAD") == names


def test_another_class_of_the_same_name_is_a_change(checkout: Path) -> None:
    """Every module is as it was; which one the step is, is not."""
    path = checkout / "curation" / "filters" / "__init__.py"
    path.write_text(path.read_text().replace("length:Length", "unused:Unused"))
    assert changes(checkout, "HEAD") == ["step length"]


@pytest.mark.parametrize("how", ["committed", "staged", "edited", "new", "removed"])
def test_a_change_is_judged_by_every_config(
    how: str, checkout: Path, judged: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """However it lies in the checkout; the worst config decides."""
    base = git(checkout, "rev-parse", "HEAD")
    name = "table.tsv" if how != "new" else "more.tsv"
    path = checkout / "tokenization" / name
    path.write_text("c\td\n") if how != "removed" else path.unlink()
    if how in ("committed", "staged"):
        git(checkout, "add", "tokenization")
    if how == "committed":
        git(checkout, "commit", "-qm", "a table")

    assert main([], checkout) == 1
    assert judged == [(config, base) for config in CONFIGS]
    assert f"differs from {base[:12]}: step length\n" in capsys.readouterr().out
    assert main(["--base", "HEAD"], checkout) == (0 if how == "committed" else 1)


def test_a_base_that_is_not_there(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2, and what to do: in a shallow clone to fetch the rest, else to look at the name."""
    assert main(["--base", "no-such-branch"], checkout) == 2
    assert "there is no such commit here" in capsys.readouterr().err
    base = git(checkout, "rev-parse", "HEAD")
    git(checkout, "commit", "-qm", "more", "--allow-empty")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{checkout}", "shallow")
    with pytest.raises(NoBaseError, match="this clone is shallow: `git fetch --unshallow`"):
        changes(tmp_path / "shallow", base)
    assert main(["--base", base], tmp_path / "shallow") == 2
    assert main(["--base", base, "--not-if-shallow"], tmp_path / "shallow") == 0
    assert "NOT JUDGED" in capsys.readouterr().err
    assert main(["--base", "no-such-branch", "--not-if-shallow"], checkout) == 2


def test_without_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unpacked archive has no history: said, and no failure."""
    assert main([], tmp_path) == 0
    assert "no git history" in capsys.readouterr().out


@pytest.mark.parametrize("failing", ["rev-parse", "ls-tree", "archive"])
def test_a_git_that_fails_is_no_sign_of_nothing_changed(
    failing: str,
    checkout: Path,
    judged: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As of a checkout that belongs to somebody else, or of a broken index: 2, with what git said, and nothing is judged."""
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "git"
    stand_in.write_text(
        f'#!/bin/sh\n[ "$1" = {failing} ] && {{ echo "fatal: dubious ownership" >&2; exit 128; }}\nexec {real} "$@"\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")

    assert main([], checkout) == 2
    assert "fatal: dubious ownership" in capsys.readouterr().err
    assert judged == []


def test_without_the_git_command(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkout that cannot be asked is not an archive."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([], checkout) == 2
    assert "git is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "told"), [(-9, 3), (-11, 3), (0, 0), (1, 1), (2, 2)])
def test_a_process_that_was_killed_is_not_within_bounds(
    code: int, told: int, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal is told as such, and is a failure."""

    def ended(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], code)

    monkeypatch.setattr(impact_of_checkout, "_judge", ended)
    (checkout / "curation" / "filters" / "length.py").write_text("LIMIT = 20\n")
    assert main([], checkout) == told
    assert ("could not be judged" in capsys.readouterr().err) == (code < 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "names no commit"), ("# only words\n", "names no commit"), ("abc  2026-11-30  short\n", "line 1"), ("0" * 40 + "\n", "line 1")],
)  # fmt: skip
def test_a_file_without_a_base(text: str, words: str) -> None:
    """Refused with the line."""
    with pytest.raises(NoBaseError, match=words):
        signed_base(text)


def test_the_last_line_counts() -> None:
    """The lines before are history."""
    assert signed_base(f"{'1' * 40}  2026-01-01  first\n\n# later\n{'2' * 40}  2026-02-02  second\n") == "2" * 40


def test_this_repositorys_own(tmp_path: Path) -> None:
    """The file that is tracked names a commit; the steps of both configs are found, and what drives them."""
    assert re.fullmatch(r"[0-9a-f]{40}", signed_base((REPO / BASE_FILE).read_text(encoding="utf-8")))
    found = deciding(REPO, tmp_path / "memo.json")
    assert {"ingest", "what drives the steps", "curation/configs/web.yaml", "step near", "step rules"} <= found.keys()
    assert all(found.values())
    assert sum(name.startswith("step ") for name in found) >= 9
