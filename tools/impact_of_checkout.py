"""What the changes since the last signed commit do to the shipped sample: `make impact`.

    python tools/impact_of_checkout.py [--base REV]

Compares the working tree with the last commit of tests/golden/impact_base.txt by each of `CONFIGS`, if one of their steps, what
drives these or a shipped config differs; each sheet lies in .cache/impact. Fails if a bound of a config is broken. How a change is
signed stands in that file. What a step depends on is found as `corpusmill impact` finds it, at any depth and by content.
Costs some seconds where nothing changed; else what `corpusmill impact` costs, about a minute for a changed filter.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from curation.config import yaml_mapping
from curation.errors import CorpusmillError
from curation.impact.code import PACKAGES, Sources, code_of
from curation.impact.sides import step_names

__all__ = ["BASE_FILE", "CONFIGS", "NoBaseError", "changes", "deciding", "main", "signed_base"]

REPO = Path(__file__).resolve().parent.parent
BASE_FILE = Path("tests/golden/impact_base.txt")
CACHE = Path(".cache/impact")
"""Root of the runs and folder of the sheets."""
FOLDER_OF_CONFIGS = "curation/configs"
CONFIGS = ("web", "zh-web")
KILLED = 3
"""Exit code where a signal ended what judges, which tells nothing of a bound."""
_SIGNED = re.compile(r"(?P<commit>[0-9a-f]{40})\s+\d{4}-\d\d-\d\d\s+\S.*")


class NoBaseError(Exception):
    """There is nothing to compare with; the message says what to do."""


class ShallowError(NoBaseError):
    """The base is older than what this clone holds."""


def signed_base(text: str) -> str:
    """The last commit of a file as `BASE_FILE`.

    Raises:
        NoBaseError: a line is none, or there is no line.
    """
    commits = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            found = _SIGNED.fullmatch(line.strip())
            if found is None:
                raise NoBaseError(
                    f"{BASE_FILE}, line {number}: expected a full commit id, a date and a reason, found: {line.strip()[:80]}"
                )
            commits.append(found["commit"])
    if not commits:
        raise NoBaseError(f"{BASE_FILE} names no commit.")
    return commits[-1]


def changes(repo: Path, base: str) -> list[str]:
    """What decides about documents and is in the working tree another than at a revision.

    Raises:
        NoBaseError: the revision is not in this clone, or git fails.
        RunError: a source is no Python.
    """
    known = _run(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if known.returncode == 1:
        shallow = _git(repo, "rev-parse", "--is-shallow-repository") == "true\n"
        why = "this clone is shallow: `git fetch --unshallow`, or fetch with all history in CI (depth 0)" if shallow else (
            "there is no such commit here: fetch it, or name another with IMPACT_BASE"
        )  # fmt: skip
        raise (ShallowError if shallow else NoBaseError)(f"the base {base} is not in this clone; {why}.")
    _check(known, repo)
    memo = repo / CACHE / "impact" / "sources.json"
    memo.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="corpusmill-base-") as folder:
        _unpack(repo, base, Path(folder))
        before = deciding(Path(folder), memo)
    now = deciding(repo, memo)
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def deciding(tree: Path, memo: Path | None = None) -> dict[str, str]:
    """What decides about the documents of `CONFIGS` in a version of this project: names, with a digest of each.

    The shipped configs, ingest, what drives all steps, and the steps of `CONFIGS` with all that they depend on.

    Args:
        memo: a file that keeps what was read of sources, see `Sources`.
    """
    configs = (tree / FOLDER_OF_CONFIGS).glob("*.yaml")
    found = {config.relative_to(tree).as_posix(): hashlib.sha256(config.read_bytes()).hexdigest() for config in configs}
    steps: set[str] = set()
    for shipped in CONFIGS:
        path = tree / FOLDER_OF_CONFIGS / f"{shipped}.yaml"
        if path.is_file():
            steps.update(step_names(yaml_mapping(path.read_text(encoding="utf-8"), str(path))))
    sources = Sources(tree, memo)
    code = code_of(sources, sorted(steps))
    sources.remember()
    found |= {f"step {name}": digest for name, digest in code.steps.items()}
    return found | {"ingest": code.ingest, "what drives the steps": code.engine}


def _unpack(repo: Path, base: str, folder: Path) -> None:
    """Write this project's packages as they stand at a revision into a folder."""
    there = _git(repo, "ls-tree", "--name-only", "--full-tree", base, "--", *PACKAGES).split()
    if there:
        archive = folder / "base.tar"
        _git(repo, "archive", "--format=tar", "--output", str(archive), base, "--", *there)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")


def _git(repo: Path, *words: str) -> str:
    """Output of a git command. Raises NoBaseError: it fails, so nothing can be said of what changed."""
    return _check(_run(repo, *words), repo)


def _check(done: subprocess.CompletedProcess[str], repo: Path) -> str:
    if done.returncode != 0:
        told = done.stderr.strip() or f"it ended with {done.returncode}"
        raise NoBaseError(f"`{' '.join(done.args[:2])}` failed in {repo}, so what changed is not known: {told}")
    return done.stdout


def _run(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", *words], cwd=repo, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except FileNotFoundError:
        raise NoBaseError("git is not installed, so what changed is not known. Install it.") from None


def main(arguments: Sequence[str] | None = None, repo: Path = REPO) -> int:
    """The command line; `repo` is the checkout that is looked at."""
    parser = argparse.ArgumentParser(
        prog="impact_of_checkout.py", description="Sheets of what changed since the last signed commit."
    )
    parser.add_argument(
        "--base", metavar="REV", help=f"compare with this revision instead of the last one of {BASE_FILE}"
    )
    parser.add_argument(
        "--not-if-shallow",
        action="store_true",
        help="say that nothing is judged where a shallow clone lacks the base; no failure",
    )
    given = parser.parse_args(arguments)
    asked = given.base
    if not (repo / ".git").exists():
        print("impact: there is no git history here, so nothing to compare with")
        return 0
    try:
        base = asked or signed_base((repo / BASE_FILE).read_text(encoding="utf-8"))
        changed = changes(repo, base)
    except ShallowError as error:
        print(f"impact: NOT JUDGED: {error}", file=sys.stderr)
        return 0 if given.not_if_shallow else 2
    except (NoBaseError, CorpusmillError) as error:
        print(f"impact: {error}", file=sys.stderr)
        return 2
    if not changed:
        print(f"impact: nothing that decides about documents by {' or '.join(CONFIGS)} changed since {base[:12]}")
        return 0
    shown = f"{', '.join(changed[:5])}{' ...' if len(changed) > 5 else ''}"
    print(f"impact: differs from {base[:12]}: {shown}", flush=True)
    codes = [_impact(repo, config, base) for config in CONFIGS]
    if any(codes):
        print(
            f"impact: beyond a bound, or not judged, as said above. {BASE_FILE} says how a change is signed.",
            file=sys.stderr,
        )
    return max(codes)


def _impact(repo: Path, config: str, base: str) -> int:
    cache = repo / CACHE
    words = [
        "impact",
        config,
        "--base",
        base,
        "--root",
        str(cache),
        "--output",
        str(cache / f"sheet-{config}"),
        "--quiet",
    ]
    code = _judge(repo, words).returncode
    if code < 0:
        print(f"impact: {config} could not be judged: signal {-code} ended its process", file=sys.stderr)
    return code if code >= 0 else KILLED


def _judge(repo: Path, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "curation.cli", *words], cwd=repo, env=os.environ, check=False)


if __name__ == "__main__":
    sys.exit(main())
