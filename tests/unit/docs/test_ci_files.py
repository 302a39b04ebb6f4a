"""The CI files that users copy: valid for their services, and their shell lines do what the how-to says, in a small repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from curation.impact.code import PACKAGES

REPO = Path(__file__).resolve().parents[3]
CI = REPO / "docs" / "ci"
PAGE = REPO / "docs" / "how-to" / "check-changes-in-ci.md"
SCHEMAS = {
    "vendor.github-workflows": ["github-actions.yml", "github-actions-filters.yml"],
    "vendor.gitlab-ci": ["gitlab-ci.yml"],
    "vendor.woodpecker-ci": ["woodpecker.yml"],
}
STUB = r"""#!/bin/sh
# Stands for corpusmill: notes its words, writes a sheet, and ends as the config's name says.
echo "$@" >>"$WORDS"
while [ $# -gt 0 ]; do
  case "$1" in --output) output=$2 ;; *.yaml) config=$2; config=$1 ;; esac
  shift
done
case "$config" in *wrong*) exit 2 ;; *crash*) exit 1 ;; esac
mkdir -p "$output"
echo "## $config" >"$output/pull-request.md"
echo "Sample \`s\`. The documents and all numbers: [sheet.html](sheet.html), [sheet.md](sheet.md)." >>"$output/pull-request.md"
echo "<html></html>" >"$output/sheet.html"
case "$config" in *broken*) exit 1 ;; esac
"""
PYTHON = """#!/bin/sh
# Stands for python: `-m venv .ci-venv` makes one that holds the stand-in above, `-m pip` does nothing.
mkdir -p .ci-venv/bin
ln -sf "$(command -v corpusmill)" .ci-venv/bin/corpusmill
printf '#!/bin/sh\\n' >.ci-venv/bin/python
chmod +x .ci-venv/bin/python
"""


def git(folder: Path, *words: str) -> str:
    """Output of a git command in a repository of somebody's."""
    told = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env={**os.environ, **told}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A repository of configs, on a branch off main; `corpusmill` and `pip` are stand-ins."""
    folder = tmp_path / "repo"
    (folder / "ci").mkdir(parents=True)
    (folder / "configs").mkdir()
    (folder / "lists").mkdir()
    shutil.copy(CI / "impact.sh", folder / "ci" / "impact.sh")
    (folder / "requirements.txt").write_text("")
    (folder / "lists" / "terms.txt").write_text("one\n")
    for name in ("good", "same", "broken", "wrong", "crash"):
        (folder / "configs" / f"{name}.yaml").write_text(f"name: {name}\nsteps: [length]\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "corpusmill").write_text(STUB)
    (tmp_path / "bin" / "corpusmill").chmod(0o755)
    git(folder, "init", "-q", ".")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    git(folder, "switch", "-qc", "change")
    return folder


def change(folder: Path, *names: str) -> None:
    """A commit that changes these configs."""
    for name in names:
        path = folder / "configs" / f"{name}.yaml"
        path.write_text(f"name: {name}\nsteps: [{{length: {{min_units: 20}}}}]\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change")


def shell(folder: Path, script: str, **told: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a CI file."""
    environment = {
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "WORDS": str(folder.parent / "words"),
        "HOME": str(folder.parent),
        **told,
    }
    return subprocess.run(
        ["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def words(folder: Path) -> list[str]:
    """How corpusmill was called."""
    path = folder.parent / "words"
    return path.read_text().splitlines() if path.exists() else []


# -- the files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_is_valid_for_its_service(schema: str) -> None:
    """By the service's own schema, which comes with check-jsonschema; nothing is fetched."""
    shape = ["--data-transform", "gitlab-ci"] if "gitlab" in schema else []
    files = [str(CI / name) for name in SCHEMAS[schema]]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *shape, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_is_named_on_the_page() -> None:
    """And the page links to no other."""
    linked = set(re.findall(r"\(\.\./ci/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
    assert linked == {path.name for path in CI.iterdir()}


def test_a_file_leaves_nothing_of_a_pull_request_to_the_shell() -> None:
    """What a stranger can name, such as a branch, reaches a shell in a variable only, never pasted into its text."""
    for name in ("github-actions.yml", "github-actions-filters.yml"):
        for step in steps_of(name):
            assert "${{" not in step.get("run", ""), step


def steps_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((CI / name).read_text(encoding="utf-8"))["jobs"]["impact"]["steps"]
    return found


# -- the script -------------------------------------------------------------------------------------


def test_only_what_changed_is_judged(configs: Path) -> None:
    """A changed config against where the branch left main; one that is as it was, and a new one, are told."""
    base = git(configs, "rev-parse", "HEAD")
    (configs / "configs" / "fresh.yaml").write_text("steps: [length]\n")
    change(configs, "good")
    git(configs, "switch", "-q", "main")
    change(configs, "same")  # what happened on main since is no part of this change
    git(configs, "switch", "-q", "change")

    done = shell(configs, "sh ci/impact.sh main")

    assert done.returncode == 0, done.stderr
    assert words(configs) == [f"impact configs/good.yaml --base {base} --root .impact --output impact/good --quiet"]
    told = (configs / "impact" / "pull-request.md").read_text()
    assert "## configs/good.yaml" in told
    assert "`configs/fresh.yaml` is new" in told
    assert "`configs/same.yaml` is as it was" in told


def test_a_list_concerns_every_config_and_a_sample_is_passed_on(configs: Path) -> None:
    """Whatever lies in the folder that all depend on."""
    (configs / "lists" / "terms.txt").write_text("one\ntwo\n")
    git(configs, "commit", "-qam", "a term")

    done = shell(
        configs,
        "sh ci/impact.sh main",
        IMPACT_SAMPLE="sample of ours",
        IMPACT_ROOT="kept",
        IMPACT_CONFIGS="configs/good.yaml configs/same.yaml",
    )

    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in words(configs)] == ["configs/good.yaml", "configs/same.yaml"]
    assert all("--sample sample of ours --root kept" in line for line in words(configs))


@pytest.mark.parametrize(
    ("changed", "code"), [(["good"], 0), (["broken", "good"], 1), (["wrong", "broken"], 3), (["crash", "good"], 3)]
)  # fmt: skip
def test_the_worst_decides(configs: Path, changed: list[str], code: int) -> None:
    """0 within bounds, 1 for a broken bound, 3 for what could not be judged; the others are judged all the same."""
    change(configs, *changed)

    done = shell(configs, "sh ci/impact.sh main")

    assert done.returncode == code, done.stderr
    assert len(words(configs)) == len(changed)
    told = (configs / "impact" / "pull-request.md").read_text()
    assert ("could not be judged" in told) == (code == 3)


def test_a_base_that_is_not_there(configs: Path) -> None:
    """As in a shallow clone: said, and nothing is judged."""
    done = shell(configs, "sh ci/impact.sh origin/main")
    assert (done.returncode, words(configs)) == (2, [])
    assert "whole history" in done.stderr
    assert shell(configs, "sh ci/impact.sh").returncode == 2


def test_a_renamed_config_is_judged_against_what_it_was(configs: Path) -> None:
    """A new name frees of no bound: the base is a commit that holds the old text by the new name, and nothing else is touched."""
    base = git(configs, "rev-parse", "HEAD")
    text = (configs / "configs" / "broken.yaml").read_text() + "# as agreed\n" * 5
    (configs / "configs" / "broken.yaml").write_text(text)
    git(configs, "commit", "-qam", "words")
    git(configs, "branch", "-f", "main")
    git(configs, "mv", "configs/broken.yaml", "configs/broken-2.yaml")
    (configs / "configs" / "broken-2.yaml").write_text(text.replace("length", "exact"))
    git(configs, "commit", "-qam", "rename")
    before = git(configs, "status", "--porcelain"), git(configs, "for-each-ref")

    done = shell(configs, "sh ci/impact.sh main")

    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = words(configs)
    from_commit = line.split()[3]
    assert line.split()[1] == "configs/broken-2.yaml"
    assert from_commit != base
    assert git(configs, "show", f"{from_commit}:configs/broken-2.yaml") == text.strip()
    assert git(configs, "diff", "--name-only", "main", from_commit) == "configs/broken-2.yaml"
    assert "`configs/broken-2.yaml` was `configs/broken.yaml`." in (configs / "impact" / "pull-request.md").read_text()
    shutil.rmtree(configs / "impact")
    assert (git(configs, "status", "--porcelain"), git(configs, "for-each-ref")) == before


def test_a_deleted_config_is_told(configs: Path) -> None:
    """It had bounds, and nothing holds them any more: the reviewer reads it, also where the config is named by hand."""
    git(configs, "rm", "-q", "configs/good.yaml")
    git(configs, "commit", "-qm", "away")
    for named in ({}, {"IMPACT_CONFIGS": "configs/good.yaml configs/same.yaml"}):
        assert shell(configs, "sh ci/impact.sh main", **named).returncode == 0
        assert "`configs/good.yaml` is gone" in (configs / "impact" / "pull-request.md").read_text()


@pytest.mark.parametrize(
    "named", [{}, {"IMPACT_CONFIGS": "configs/goood.yaml"}, {"IMPACT_CONFIGS": "pipelines/*.yaml"}]
)
def test_without_a_config_nothing_passes(configs: Path, named: dict[str, str]) -> None:
    """A folder of another name, a name that is mistyped: 2, since nothing was looked at."""
    git(configs, "mv", "configs", "settings")
    git(configs, "commit", "-qm", "elsewhere")
    git(configs, "branch", "-f", "main")
    done = shell(configs, "sh ci/impact.sh main", **named)
    assert (done.returncode, words(configs)) == (2, [])
    assert "there is no config" in done.stderr


@pytest.mark.parametrize(("gone", "code"), [(["broken"], 1), (["broken", "good"], 3)])
def test_rewritten_and_renamed_at_once_escapes_no_bound(configs: Path, gone: list[str], code: int) -> None:
    """Git sees a new file and one that is gone: these are compared; where several are gone nobody knows which: no pass."""
    for name in gone:
        git(configs, "rm", "-q", f"configs/{name}.yaml")
    (configs / "configs" / "broken-2.yaml").write_text("all of it another\n")
    git(configs, "add", "-A")
    git(configs, "commit", "-qm", "rewrite")

    done = shell(configs, "sh ci/impact.sh main")

    assert done.returncode == code, done.stdout + done.stderr
    assert len(words(configs)) == (code == 1)
    assert "`configs/broken.yaml` is gone" in (configs / "impact" / "pull-request.md").read_text()


def test_yml_is_a_config_too(configs: Path) -> None:
    """By default."""
    git(configs, "mv", "configs/good.yaml", "configs/good.yml")
    git(configs, "commit", "-qm", "short")
    git(configs, "branch", "-f", "main")
    (configs / "configs" / "good.yml").write_text("steps: [exact]\n")
    git(configs, "commit", "-qam", "change")
    assert shell(configs, "sh ci/impact.sh main").returncode == 0
    assert [line.split()[1] for line in words(configs)] == ["configs/good.yml"]


@pytest.mark.parametrize("tracked", [True, False])
def test_a_folder_of_the_users_own_is_left_alone(configs: Path, tracked: bool) -> None:
    """What holds no sheets is refused, as is what git knows; the folder can have another name."""
    change(configs, "good")
    (configs / "impact").mkdir()
    (configs / "impact" / ("pull-request.md" if tracked else "study.md")).write_text("ours\n")
    if tracked:
        git(configs, "add", "impact")
    done = shell(configs, "sh ci/impact.sh main")
    assert (done.returncode, words(configs)) == (2, [])
    assert "IMPACT_OUTPUT" in done.stderr
    assert len(list((configs / "impact").iterdir())) == 1
    for _ in range(2):  # the second time its own sheets lie there
        assert shell(configs, "sh ci/impact.sh main", IMPACT_OUTPUT="sheets").returncode == 0
    assert (configs / "sheets" / "good" / "sheet.html").exists()


def test_two_configs_of_one_name_have_two_sheets(configs: Path) -> None:
    """In two folders."""
    for folder in ("a", "b"):
        (configs / folder).mkdir()
        (configs / folder / "web.yaml").write_text("steps: [length]\n")
    git(configs, "add", "-A")
    git(configs, "commit", "-qm", "two")
    git(configs, "branch", "-f", "main")
    for folder in ("a", "b"):
        (configs / folder / "web.yaml").write_text("steps: [exact]\n")
    git(configs, "commit", "-qam", "change")
    assert shell(configs, "sh ci/impact.sh main", IMPACT_CONFIGS="a/web.yaml b/web.yaml").returncode == 0
    sheets = sorted(path.parent.name for path in (configs / "impact").glob("*/sheet.html"))
    assert sheets == ["web", "web_"]


def test_links_lead_somewhere(configs: Path) -> None:
    """A comment has no file beside it: the sheet is named by its place in the artefact, and the job's page is given."""
    change(configs, "good")
    url = "https://git.example.org/jobs/7?a=1&b=2"
    assert shell(configs, "sh ci/impact.sh main", IMPACT_URL=url).returncode == 0
    told = (configs / "impact" / "pull-request.md").read_text()
    assert "numbers: `good/sheet.html`, `good/sheet.md`." in told
    assert told.endswith(f"\nThe sheets: {url}\n")
    assert shell(configs, "sh ci/impact.sh main").returncode == 0
    assert "The sheets:" not in (configs / "impact" / "pull-request.md").read_text()


# -- the files' own lines ---------------------------------------------------------------------------


def test_the_lines_for_github(configs: Path, tmp_path: Path) -> None:
    """Judge, summary: as the runner runs them; the comment is what the script wrote."""
    change(configs, "good")
    judge, summary, comment = (
        next(step for step in steps_of("github-actions.yml") if step.get("name") == name)
        for name in ("Judge the change", "Summary", "Comment")
    )

    assert shell(configs, judge["run"], INTO="main").returncode == 0
    assert shell(configs, summary["run"], GITHUB_STEP_SUMMARY=str(tmp_path / "summary")).returncode == 0
    assert "## configs/good.yaml" in (tmp_path / "summary").read_text()
    assert "--body-file impact/pull-request.md" in comment["run"]
    assert judge["env"]["INTO"] == "origin/${{ github.base_ref }}"


def test_the_lines_for_gitlab(configs: Path, tmp_path: Path) -> None:
    """The script by the commit that GitLab names; the note only with a token."""
    base = git(configs, "rev-parse", "HEAD")
    change(configs, "broken")
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))["impact"]
    (tmp_path / "bin" / "curl").write_text('#!/bin/sh\necho "curl $*" >>"$WORDS"\n')
    (tmp_path / "bin" / "curl").chmod(0o755)
    api = {"CI_API_V4_URL": "https://git.example.org/api/v4", "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "3"}

    script, page = "\n".join(job["script"]), "https://git.example.org/a/-/jobs/7"

    assert shell(configs, script, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, CI_JOB_URL=page).returncode == 1
    told = (configs / "impact" / "pull-request.md").read_text()
    assert told.endswith(f"The sheets: {page}/artifacts/browse/impact/\n")
    assert shell(configs, job["after_script"][0], **api).returncode == 0
    assert len(words(configs)) == 1
    assert shell(configs, job["after_script"][0], IMPACT_TOKEN="t", **api).returncode == 0
    assert words(configs)[1].endswith("https://git.example.org/api/v4/projects/7/merge_requests/3/notes")


def test_a_merge_request_on_gitlab_writes_no_cache(configs: Path) -> None:
    """What one change wrote, the next would believe: only the default branch fills the cache, once a change is in."""
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))["impact"]
    request, push = job["rules"]
    assert job["cache"]["policy"] == "$IMPACT_CACHE"
    assert job["cache"]["key"] == "impact-$CI_DEFAULT_BRANCH"
    assert "variables" not in request
    assert (job["variables"]["IMPACT_CACHE"], push["variables"]["IMPACT_CACHE"]) == ("pull", "pull-push")
    assert "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in push["if"]

    base = git(configs, "rev-parse", "HEAD")
    change(configs, "good")
    done = shell(configs, "\n".join(job["script"]), CI_COMMIT_BEFORE_SHA=base, CI_JOB_URL="https://git.example.org/7")
    assert done.returncode == 0, done.stderr
    assert len(words(configs)) == 1


@pytest.mark.parametrize("name", ["github-actions.yml", "github-actions-filters.yml"])
def test_github_leaves_no_token_in_the_checkout(name: str) -> None:
    """What the change itself runs could read it; and the script is told where the job's page is."""
    checkout = next(step for step in steps_of(name) if step.get("uses", "").startswith("actions/checkout@"))
    assert checkout["with"]["persist-credentials"] is False
    judge = next(step for step in steps_of(name) if step.get("name") == "Judge the change")
    assert judge["env"]["IMPACT_URL"].endswith("/actions/runs/${{ github.run_id }}")


def test_every_package_that_decides_is_looked_at_in_a_fork() -> None:
    """Those that the engine follows: in what starts the job, and in what it compares."""
    told = yaml.safe_load((CI / "github-actions-filters.yml").read_text(encoding="utf-8"))
    judge = next(step for step in steps_of("github-actions-filters.yml") if step.get("name") == "Judge the change")
    assert set(PACKAGES) == set(judge["env"]["IMPACT_ALSO"].split())
    # YAML 1.1 reads the key `on` as true.
    assert {f"{package}/**" for package in PACKAGES} <= set(told[True]["pull_request"]["paths"])
    assert f"# IMPACT_ALSO: {judge['env']['IMPACT_ALSO']}\n" in (CI / "gitlab-ci.yml").read_text(encoding="utf-8")


def test_the_lines_for_woodpecker_and_jenkins(configs: Path, tmp_path: Path) -> None:
    """They fetch the branch that the change is to go into, judge, and print the short text even where a bound is broken."""
    (tmp_path / "bin" / "python").write_text(PYTHON)
    (tmp_path / "bin" / "python").chmod(0o755)
    change(configs, "broken")
    git(configs, "remote", "add", "origin", str(configs))
    lines = yaml.safe_load((CI / "woodpecker.yml").read_text(encoding="utf-8"))["steps"]["impact"]["commands"]

    done = shell(configs, "\n".join(lines), CI_COMMIT_TARGET_BRANCH="main", CI_PIPELINE_URL="https://ci.example.org/3")
    assert "The sheets: https://ci.example.org/3" in done.stdout
    assert done.returncode == 1
    assert "## configs/broken.yaml" in done.stdout

    script = re.search(r"sh '''(.*?)'''", (CI / "Jenkinsfile").read_text(encoding="utf-8"), re.DOTALL)
    assert script is not None
    done = shell(configs, script[1], CHANGE_TARGET="main", BUILD_URL="https://jenkins.example.org/job/3/")
    assert (
        "The sheets: https://jenkins.example.org/job/3/artifact/impact/"
        in (configs / "impact" / "pull-request.md").read_text()
    )
    assert done.returncode == 1, done.stderr
    assert len(words(configs)) == 2


@pytest.mark.slow
def test_with_the_real_command(configs: Path) -> None:
    """A small config and sample, judged before and after: 1 for the change that moves too much, with its sheet, also by a new name."""
    sample = configs / "sample"
    sample.mkdir()
    (sample / "a.jsonl").write_text("".join(f'{{"id": "{n}", "text": "{"word " * (n + 1)}"}}\n' for n in range(60)))
    bound = "\nimpact: {max_kept_change: 0.01}\n"
    (configs / "configs" / "good.yaml").write_text("steps: [{length: {min_units: 10}}]" + bound)
    git(configs, "add", "-A")
    git(configs, "commit", "-qm", "a bound and a sample")
    base = git(configs, "rev-parse", "HEAD")
    (configs / "configs" / "good.yaml").write_text("steps: [{length: {min_units: 20}}]" + bound)
    git(configs, "commit", "-qam", "a limit")
    (configs.parent / "bin" / "corpusmill").write_text(f'#!/bin/sh\nexec {sys.executable} -m curation.cli "$@"\n')

    done = shell(configs, f"sh ci/impact.sh {base}", IMPACT_SAMPLE="sample", PYTHONPATH=str(REPO))

    assert done.returncode == 1, done.stdout + done.stderr
    assert (configs / "impact" / "good" / "sheet.html").stat().st_size > 1000
    assert "max_kept_change" in (configs / "impact" / "pull-request.md").read_text()

    git(configs, "mv", "configs/good.yaml", "configs/renamed.yaml")
    git(configs, "commit", "-qm", "another name")
    done = shell(configs, f"sh ci/impact.sh {base}", IMPACT_SAMPLE="sample", PYTHONPATH=str(REPO))

    assert done.returncode == 1, done.stdout + done.stderr
    assert "max_kept_change" in (configs / "impact" / "pull-request.md").read_text()
    assert (configs / "impact" / "renamed" / "sheet.html").exists()
