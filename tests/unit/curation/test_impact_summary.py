"""What `corpusmill impact` prints: the change in short, in columns, and nothing that commands a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import broken_bounds
from curation.impact.counting.corpus import corpus_of
from curation.impact.counting.figures import figures
from curation.impact_summary import summary_lines
from curation.impact_tasks import Answer
from curation.terminal_columns import print_lines
from tests.impact_fake import Told, compare_runs

HOSTILE = "\x1b]0;owned\x07\u202e[bold]x[/bold]"
TEXTS = [Told("word " * n, "eng_Latn" if n % 2 else "tha_Thai", HOSTILE if n % 3 else "b") for n in range(1, 41)]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def told(found: Answer, file: io.StringIO | None = None) -> str:
    stream = file if file is not None else io.StringIO()
    print_lines(lambda width: summary_lines(found), stream)
    return stream.getvalue()


def answered(
    root: Path, before: dict[str, int], after: dict[str, int], bounds: ImpactConfig | None = None, corpus: str = ""
) -> Answer:
    comparison = compare_runs(root, TEXTS, {"length": before}, {"length": after})
    numbers = figures(comparison, corpus_of(corpus) if corpus else None)
    return Answer(comparison, numbers, bounds, broken_bounds(numbers, bounds), root / "sheet")


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_change_is_told_in_order(tmp_path: Path) -> None:
    """Sides, sums, steps, languages, reasons, what it means on a corpus, bounds; the last line is the sheet's path."""
    bounds = ImpactConfig(max_kept_change=0.2, max_language_change=None, languages={"tha_Thai": 0.01})
    text = told(answered(tmp_path, {"min_units": 5}, {"min_units": 15}, bounds, "3Bdocuments"))
    lines = words(text)
    assert lines[5][:5] == ["kept", "before", "36", "90.0", "%"]
    assert any(line[:4] == ["leave", "10", "27.8", "%"] for line in lines)
    assert any(line[:4] == ["come", "in", "0", "0"] for line in lines)
    assert ["length", "changed", "4", "14", "10"] in lines
    assert next(line for line in lines if "tha_Thai" in line)[:6] == ["tha_Thai", "18", "5", "13", "27.8", "%"]
    assert "3B documents kept before: 833M (" in text
    assert ["impact.max_kept_change", "27.78", "%", "20", "%"] in lines
    assert ["impact.languages.tha_Thai", "tha_Thai", "27.78", "%", "1", "%"] in lines
    assert text.splitlines()[-1] == str(tmp_path / "sheet" / "sheet.html")
    parts = ["base ", "kept before", "step ", "language ", "reason ", "kept before: ", "bound broken", "sheet.html"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_changes_nothing_is_said(tmp_path: Path) -> None:
    """In words, without empty tables; none of so many has an upper bound all the same."""
    text = told(answered(tmp_path, {"min_units": 5}, {"min_units": 5}, ImpactConfig(max_kept_change=0.01)))
    assert "no document changes sides" in text
    assert "within the bounds of the config" in text
    assert "of those (0 % to " in text
    for head in ("drops before", "kept before  leave", "reason"):
        assert head not in text
    assert "no bounds (section `impact`)" in told(answered(tmp_path / "b", {"min_units": 5}, {"min_units": 5}))


def test_documents_that_come_in_are_no_losses(tmp_path: Path) -> None:
    """Both directions have their own row."""
    lines = words(told(answered(tmp_path, {"min_units": 15}, {"min_units": 5})))
    assert any(line[:3] == ["come", "in", "10"] for line in lines)
    assert any(line[:2] == ["leave", "0"] for line in lines)


def test_a_drawn_sample_names_the_corpus_that_shares_are_of(tmp_path: Path) -> None:
    """Counts are of the sample, shares are not."""
    drawn = [
        replace(one, weight=1.0 if one.language == "eng_Latn" else 99.0, stratum=n % 2) for n, one in enumerate(TEXTS)
    ]
    comparison = compare_runs(tmp_path, drawn, {"length": {}}, {"length": {"min_units": 20}}, population=2000)
    text = told(Answer(comparison, figures(comparison), None, [], tmp_path))
    assert "made: 40 documents, drawn from 2,000: shares are of these" in text
    assert "of the corpus that was drawn from" in text


def test_nothing_commands_a_terminal(tmp_path: Path) -> None:
    """Neither names of sources, nor labels of sides, nor notes: as text and on a terminal."""
    found = answered(tmp_path, {"min_units": 5}, {"min_units": 15})
    side = replace(found.comparison.base, label=HOSTILE)
    comparison = replace(found.comparison, base=side, notes=(HOSTILE,))
    languages = tuple(replace(one, name=HOSTILE) for one in found.figures.languages)
    hostile = replace(found, comparison=comparison, figures=replace(found.figures, languages=languages))
    text = told(hostile)
    assert "\\u001b]0;owned\\u0007\\u202e[bold]x[/bold]" in text
    assert {character for character in text if not character.isprintable()} <= {"\n"}
    assert "]0;owned\x07" not in told(hostile, Screen())


@pytest.mark.parametrize("n", [3, 40])
def test_tables_are_short(tmp_path: Path, n: int) -> None:
    """The sheet has all of it; columns hold beside wide characters."""
    found = answered(tmp_path, {"min_units": 5}, {"min_units": 15})
    group = next(one for one in found.figures.languages if one.documents.leaves.count)
    many = tuple(replace(group, name=f"漢{place}") for place in range(n))
    text = told(replace(found, figures=replace(found.figures, languages=many)))
    rows = [line for line in text.splitlines() if line.startswith("漢")]
    assert len(rows) == min(n, 15)
    assert len({cell_len(row) for row in rows}) == 1
    assert (f"and {n - 15} more languages that change; the sheet has all" in text) is (n > 15)
