"""What the changes since the last signed commit do to the shipped sample: `make impact`.

    python tools/impact_of_checkout.py [--base REV]

Compares the working tree with the last commit of tests/golden/impact_base.txt, if anything under `WATCHED` differs, by each of
`CONFIGS`; each sheet lies in .cache/impact. Fails if a bound of a config is broken. How a change is signed stands in that file.
Costs nothing where nothing changed; else what `corpusmill impact` costs, about a minute for a changed filter.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BASE_FILE", "WATCHED", "changed_files", "main", "signed_base"]

REPO = Path(__file__).resolve().parent.parent
BASE_FILE = Path("tests/golden/impact_base.txt")
WATCHED = (
    "curation/filters",
    "curation/dedup",
    "curation/text",
    "curation/markup",
    "quality_models",
    "curation/configs",
)
"""What decides about documents."""
CONFIGS = ("web", "zh-web")
KILLED = 3
"""Exit code where a signal ended what judges, which tells nothing of a bound."""
_SIGNED = re.compile(r"(?P<commit>[0-9a-f]{40})\s+\d{4}-\d\d-\d\d\s+\S.*")


class NoBaseError(Exception):
    """There is nothing to compare with; the message says what to do."""


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


def changed_files(repo: Path, base: str) -> list[str]:
    """Files under WATCHED that differ from a revision, in the index, the working tree, or new.

    Raises:
        NoBaseError: the revision is not in this clone, or git fails.
    """
    known = _run(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if known.returncode == 1:
        shallow = _git(repo, "rev-parse", "--is-shallow-repository") == "true\n"
        why = "this clone is shallow: `git fetch --unshallow`, or fetch with all history in CI (depth 0)" if shallow else (
            "there is no such commit here: fetch it, or name another with IMPACT_BASE"
        )  # fmt: skip
        raise NoBaseError(f"the base {base} is not in this clone; {why}.")
    _check(known, repo)
    differing = _git(repo, "diff", "--name-only", base, "--", *WATCHED)
    new = _git(repo, "ls-files", "--others", "--exclude-standard", "--", *WATCHED)
    return sorted({*differing.splitlines(), *new.splitlines()})


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
    asked = parser.parse_args(arguments).base
    if not (repo / ".git").exists():
        print("impact: there is no git history here, so nothing to compare with")
        return 0
    try:
        base = asked or signed_base((repo / BASE_FILE).read_text(encoding="utf-8"))
        changed = changed_files(repo, base)
    except NoBaseError as error:
        print(f"impact: {error}", file=sys.stderr)
        return 2
    if not changed:
        print(f"impact: nothing under {', '.join(WATCHED)} changed since {base[:12]}")
        return 0
    print(
        f"impact: {len(changed)} files differ from {base[:12]}: {', '.join(changed[:5])}{' ...' if len(changed) > 5 else ''}",
        flush=True,
    )
    codes = [_impact(repo, config, base) for config in CONFIGS]
    if any(codes):
        print(
            f"impact: beyond a bound, or not judged, as said above. {BASE_FILE} says how a change is signed.",
            file=sys.stderr,
        )
    return max(codes)


def _impact(repo: Path, config: str, base: str) -> int:
    cache = repo / ".cache" / "impact"
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
