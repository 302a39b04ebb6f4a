"""`make impact`: what is compared with what, and when it says that there is nothing to compare."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import impact_of_checkout
from tools.impact_of_checkout import BASE_FILE, CONFIGS, WATCHED, NoBaseError, changed_files, main, signed_base

REPO = Path(__file__).resolve().parents[3]


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
    """A repository with a filter, a document beside it, and a signed commit."""
    folder = tmp_path / "checkout"
    (folder / "curation" / "filters").mkdir(parents=True)
    (folder / BASE_FILE.parent).mkdir(parents=True)
    (folder / "curation" / "filters" / "length.py").write_text("LIMIT = 16\n")
    (folder / "README.md").write_text("read\n")
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


def test_nothing_changed(checkout: Path, judged: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Changes elsewhere, committed or not, are none of its business."""
    (checkout / "README.md").write_text("read me\n")
    assert main([], checkout) == 0
    assert capsys.readouterr().out.startswith("impact: nothing under curation/filters, ")
    assert judged == []


@pytest.mark.parametrize("how", ["committed", "staged", "edited", "new", "removed"])
def test_a_change_is_judged_by_every_config(
    how: str, checkout: Path, judged: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """However it lies in the checkout; the worst config decides."""
    base = git(checkout, "rev-parse", "HEAD")
    path = checkout / "curation" / "filters" / ("fresh.py" if how == "new" else "length.py")
    path.write_text("LIMIT = 20\n") if how != "removed" else path.unlink()
    if how in ("committed", "staged"):
        git(checkout, "add", "curation")
    if how == "committed":
        git(checkout, "commit", "-qm", "a limit")

    assert main([], checkout) == 1
    assert judged == [(config, base) for config in CONFIGS]
    assert f"curation/filters/{path.name}" in capsys.readouterr().out
    assert main(["--base", "HEAD"], checkout) == (0 if how == "committed" else 1)


def test_a_base_that_is_not_there(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2, and what to do: in a shallow clone to fetch the rest, else to look at the name."""
    assert main(["--base", "no-such-branch"], checkout) == 2
    assert "there is no such commit here" in capsys.readouterr().err
    base = git(checkout, "rev-parse", "HEAD")
    git(checkout, "commit", "-qm", "more", "--allow-empty")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{checkout}", "shallow")
    with pytest.raises(NoBaseError, match="this clone is shallow: `git fetch --unshallow`"):
        changed_files(tmp_path / "shallow", base)


def test_without_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unpacked archive has no history: said, and no failure."""
    assert main([], tmp_path) == 0
    assert "no git history" in capsys.readouterr().out


@pytest.mark.parametrize("failing", ["rev-parse", "diff", "ls-files"])
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


def test_this_repositorys_own() -> None:
    """The file that is tracked names a commit, and what is watched is there."""
    assert re.fullmatch(r"[0-9a-f]{40}", signed_base((REPO / BASE_FILE).read_text(encoding="utf-8")))
    assert [folder for folder in WATCHED if not (REPO / folder).is_dir()] == []
