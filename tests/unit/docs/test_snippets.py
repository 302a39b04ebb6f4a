"""What the pages tell the reader to write is accepted: configs, `--set`, limits; and links meet a heading."""

from __future__ import annotations

import re
import textwrap
from dataclasses import asdict
from pathlib import Path

import pytest

from curation.config import TopLevel, parse_config
from curation.dedup.near import NearConfig
from curation.steps import STEPS

REPO = Path(__file__).resolve().parents[3]
PAGES = {str(page.relative_to(REPO)): page for page in [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]}
NEW_FILTER_PAGE = "docs/tutorial-add-a-filter.md"
"""Its filter is not here; tests/e2e/test_tutorial_filter.py does all that it says."""
NEAR_PAGE = PAGES["docs/how-to/remove-near-duplicates.md"]


def blocks(text: str) -> list[str]:
    """Fenced and indented blocks; of one that writes a file by `<<END`, what it writes."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^\n(?=    )|^    .*\n)+", text + "\n", re.MULTILINE)
    found = [textwrap.dedent(block).strip("\n") for block in [*fenced, *indented]]
    return [m[1] if (m := re.search(r"<<END\n(.*?)\nEND", block, re.DOTALL)) else block for block in found]


def configs() -> dict[str, str]:
    """Every block that is a config: one with `steps:` as a key of its own."""
    found = {}
    for name, page in PAGES.items():
        for i, block in enumerate(blocks(page.read_text(encoding="utf-8"))):
            if re.search(r"^steps:", block, re.MULTILINE):
                found[f"{name} {i}"] = block
    return found


@pytest.mark.parametrize("where", configs())
def test_a_config_on_a_page_is_accepted(where: str) -> None:
    """No step, key, criterion or score that is not there."""
    assert parse_config(configs()[where], where).steps


def test_configs_on_pages_are_found() -> None:
    """The test above looks at something: three on the page about near-duplicates, one in the tutorial."""
    names = [name.partition(" ")[0] for name in configs()]
    assert names.count("docs/how-to/remove-near-duplicates.md") >= 3
    assert names.count("docs/tutorial.md") >= 1


def test_what_set_is_shown_with_is_accepted() -> None:
    """Every `--set key=value` on a page changes a config that has all steps."""
    everything = "steps: [" + ", ".join(STEPS) + "]\npack: {}\n"
    shown = set()
    for page in (page for name, page in PAGES.items() if name != NEW_FILTER_PAGE):
        text = page.read_text(encoding="utf-8")
        shown |= {a or b for a, b in re.findall(r"--set (?:'([a-z_.]+=[^']*)'|([a-z_.]+=[^\s`']+))", text)}
    assert len(shown) >= 5
    for override in shown - {"near.against=[...]"}:
        assert parse_config(everything, overrides=[override]).digest() != parse_config(everything).digest(), override


def test_the_limits_on_the_page_are_those_of_the_settings() -> None:
    """The table of the page about near-duplicates says from where to where each number may go, and its default."""
    table = re.findall(
        r"^\| `(\w+)`.*?\| ([\d.]+) \| (below )?([\d.]*) ?\| ([\d.]+)", NEAR_PAGE.read_text("utf-8"), re.M
    )
    names = {"threshold", "shingle", "num_perm", "recall", "simhash_distance", "memory_mb"}
    assert {row[0] for row in table} == names
    for name, low, below, high, default in table:
        field = NearConfig.model_fields.get(name) or TopLevel.model_fields[name]
        limits = {kind: value for one in field.metadata for kind, value in asdict(one).items()}
        said = {"ge": float(low)} | ({"lt" if below else "le": float(high)} if high else {})
        assert {kind: float(value) for kind, value in limits.items()} == said, name
        assert float(default) == field.default, name


def test_links_to_a_heading_meet_one() -> None:
    """`page.md#heading` and `#heading`: GitHub's anchor of a heading that is there."""
    broken = []
    for name, page in PAGES.items():
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                other = (page.parent / target) if target else page
                headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
                if anchor not in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]:
                    broken.append(f"{name}: {target}#{anchor}")
    assert broken == []
