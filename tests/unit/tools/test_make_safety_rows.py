"""Patterns become rows: the same ones everywhere, none lost silently, and every slip of a writer is named."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError, InputError

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_safety_rows", REPO / "tools" / "make_safety_rows.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_safety_rows"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def rows(tool: Any, folder: Path, count: int = 8, **files: str) -> list[dict[str, Any]]:
    """The rows of some files, given by name without `.txt`."""
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    made: list[dict[str, Any]] = tool.make_rows(tool.read_patterns(folder), count)
    return made


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("plain", {"plain"}),
        ("{a|b|}c", {"ac", "bc", "c"}),
        ("{#8-10}", {"8", "9", "10"}),
        ("{#08-10}", {"08", "09", "10"}),
        ("{x|{#1-2}}y", {"xy", "1y", "2y"}),
        (r"\{no\} \| a\nb \# \\", {"{no} | a\nb # \\"}),
        ("{s}", {"one", "two a", "two b"}),
        ("a | b", {"a | b"}),
    ],
)
def test_what_stands_in_braces_is_replaced(tool: Any, tmp_path: Path, pattern: str, texts: set[str]) -> None:
    """Slots, alternatives, ranges and escapes, nested too; all values come out, none twice."""
    source = f"$s = one | two {{a|b}}\n@ en train\nnever {{s}}\n{pattern}\n"
    made = [row["text"] for row in rows(tool, tmp_path, 40, en_x=source) if not row["text"].startswith("never")]
    assert set(made) == texts
    assert len(made) == len(texts)


def test_half_of_the_disguises_are_the_word_itself(tool: Any) -> None:
    """The rest keeps its letters, or, for Latin words, look-alikes of them."""
    made = [tool.disguised("赌博", tool.Draws(str(n))) for n in range(400)]
    assert 150 < made.count("赌博") < 300
    assert all([c for c in text if c in "赌博"] == ["赌", "博"] for text in made)
    assert {"c@51n0", "ｃａｓｉｎｏ"} <= {tool.disguised("casino", tool.Draws(str(n))) for n in range(200)}


def test_sections_give_language_split_and_labels(tool: Any, tmp_path: Path) -> None:
    """Labels stand in the order of the categories, whatever order they were written in."""
    made = rows(tool, tmp_path, zh_x="\ufeff# note\r\n@ zh-Hant test spam,gambling\r\n一\r\n\n@ ko train\n둘\n")
    assert [(row["lang"], row["split"], row["labels"]) for row in made] == [
        ("zh-Hant", "test", ["gambling", "spam"]),
        ("ko", "train", []),
    ]
    assert made[0]["pattern"].startswith("zh_x:")


def test_slots_of_a_language_serve_all_its_files(tool: Any, tmp_path: Path) -> None:
    """A file's own slot comes first."""
    files = {"zh_slots": "$a = 甲\n$b = 乙\n", "zh_x": "$b = 丙\n@ zh train\n{a}{b}\n", "zh_y": "@ zh train\n{b}{a}\n"}
    assert {row["text"] for row in rows(tool, tmp_path, **files)} == {"甲丙", "乙甲"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("@ zh train\n{site}\n", "zh_x.txt:2: expected a slot"),
        ("@ zh train gamblin\nx\n", "did you mean 'gambling'"),
        ("@ zh dev\nx\n", "expected `@ LANG train|test"),
        ("x\n", "expected a section line"),
        ("@ zh train\n{a\n", "an opening one too many"),
        ("@ zh train\na}\n", "a closing one too many"),
        ("@ zh train\n{#9-1}\n", "expected a range"),
        ("@ zh train\n{两 个}\n", r"write \{ for a brace"),
        ("@ zh train\n{a|~b}\n", "expected {~word} as an alternative"),
        ("$a =\n@ zh train\nx\n", "expected `$name = value"),
        ("$a = 1\n$a = 2\n@ zh train\nx\n", "zh_x.txt:1 already"),
        ("$a = {b}\n$b = {a}\n@ zh train\nx\n", "holds itself"),
        ("$a = {nobody}\n@ zh train\nx\n", "found 'nobody'"),
        ("@ zh train\nx\n@ zh train\nx\n", "the same pattern stands at zh_x.txt:2"),
        ("@ zh train\n加我 {a|b}！\n@ zh test\n加我{a|b}🔥\n", "a pattern belongs to one split"),
        ("@ zh train spam\n{a|b}\n@ zh train\n{b|c}\n", "give both the same labels"),
    ],
)
def test_slips_are_named_with_file_and_line(tool: Any, tmp_path: Path, source: str, said: str) -> None:
    """Nothing is guessed and nothing skipped."""
    with pytest.raises(ConfigError) as error:
        rows(tool, tmp_path, zh_x=source)
    assert said in str(error.value)


def test_an_empty_folder_is_an_error(tool: Any, tmp_path: Path) -> None:
    """No rows would look like a finished job."""
    with pytest.raises(InputError):
        tool.read_patterns(tmp_path)


def test_a_text_of_the_test_split_is_never_trained_on(tool: Any, tmp_path: Path) -> None:
    """Where both splits can make it, the test split keeps it."""
    made = rows(tool, tmp_path, zh_x="@ zh train spam\n{a|b}\n@ zh test spam\n{b|c}\n")
    assert {(row["text"], row["split"]) for row in made} == {("a", "train"), ("b", "test"), ("c", "test")}


def test_other_patterns_do_not_change_the_rows_of_one(tool: Any, tmp_path: Path) -> None:
    """Chance comes from the pattern alone, so that adding patterns keeps old rows."""
    before = rows(tool, tmp_path, 3, zh_x="@ zh train\n{#1-999}\n")
    after = rows(tool, tmp_path, 3, zh_x="@ zh train\nnew {#1-999}\n{#1-999}\n")
    assert [row for row in after if not row["text"].startswith("new")] == before
    assert [row["text"] for row in before] == ["15", "652", "332"]  # drawn once; other numbers: all rows changed


def test_shipped_patterns_make_rows(tool: Any, tmp_path: Path) -> None:
    """The command writes what the table says, twice the same."""
    for name in ("a", "b"):
        done = subprocess.run(
            [
                sys.executable,
                str(REPO / "tools/make_safety_rows.py"),
                "--out",
                str(tmp_path / name),
                "--per-pattern",
                "1",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    made = [json.loads(line) for line in (tmp_path / "a").read_text(encoding="utf-8").splitlines()]
    assert len({row["text"] for row in made}) == len(made)
    for lang in ("zh", "zh-Hant"):
        for split in ("train", "test"):
            found = {label for row in made if (row["lang"], row["split"]) == (lang, split) for label in row["labels"]}
            assert found == set(tool.CATEGORY_NAMES)
            assert f"{lang:8} {split:6} harmless" in done.stdout
