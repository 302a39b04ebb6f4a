"""The training file of the safety model: caps, turns, no handles that decide, and the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import mix_safety_rows
from tools.mix_safety_rows import CAPS, HANDLE, OURS, main, mix

Row = dict[str, Any]
HATECHECK = "rewire-online/multilingual-hatecheck"


def a_row(text: str, lang: str = "en", labels: tuple[str, ...] = (), source: str = "x", split: str = "train") -> Row:
    return {
        "text": text,
        "lang": lang,
        "labels": list(labels),
        "source": source,
        "licence": "CC0-1.0",
        "pattern": text,
        "split": split,
    }


def inputs() -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Adverts, a set with a cap in two languages, ordinary text of two languages, headlines."""
    ours = [a_row(f"best odds today {n}, write to @odds{n}00", labels=("gambling",)) for n in range(60)]
    public = [
        a_row(f"made sentence {n} {lang}", lang, ("hate",), HATECHECK) for n in range(400) for lang in ("de", "it")
    ]
    ordinary = [a_row(f"{lang} the river rises in spring {n} " * 40, lang) for n in range(30) for lang in ("ja", "de")]
    return ours, public, ordinary, [a_row(f"court sentences man {n}") for n in range(10)]


def test_every_part_is_there_and_capped() -> None:
    """All of ours, so many of a capped set and language, all ordinary text cut short, all headlines; no split any more."""
    rows = mix(*inputs(), share=1)
    of_set = [row["lang"] for row in rows if row["source"] == HATECHECK]
    assert {lang: of_set.count(lang) for lang in set(of_set)} == dict.fromkeys(("de", "it"), CAPS[HATECHECK])
    ordinary = [row for row in rows if str(row["pattern"]).startswith("neg:")]
    assert len(ordinary) == 60
    assert max(len(row["text"]) for row in ordinary if row["lang"] == "ja") <= 400
    assert sum(str(row["pattern"]).startswith("head:") for row in rows) == 10
    assert (
        len({row["text"] for row in rows if row["source"] == OURS["source"]} & {r["text"] for r in inputs()[0]}) == 60
    )
    assert all("split" not in row for row in rows)


def test_some_of_ours_come_again_changed() -> None:
    """Not as they are, with the same labels and pattern; of some the handle is gone."""
    written = {row["text"]: row for row in inputs()[0]}
    patterns = {row["pattern"] for row in written.values()}
    again = [row for row in mix(*inputs(), share=1) if row["source"] == OURS["source"] and row["text"] not in written]
    assert 20 < len(again) <= 60
    assert all(row["labels"] == ["gambling"] and row["pattern"] in patterns for row in again)
    assert any("@" not in row["text"] for row in again)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("write to @lucky_88 now", "write to  now"),
        ("see https://bet.example/x?y today", "see  today"),
        ("call +86 1380000 1234 tonight", "call tonight"),
        ("at 20 o'clock, 3 of 4", "at 20 o'clock, 3 of 4"),
        ("加微信 abc123", "加微信 abc123"),
    ],
)
def test_what_counts_as_a_handle(text: str, bare: str) -> None:
    """Handles, addresses and long numbers; not short numbers and words."""
    assert " ".join(HANDLE.sub("", text).split()) == " ".join(bare.split())


def test_one_text_has_one_set_of_labels() -> None:
    """The first one's: what we wrote goes before ordinary text."""
    ours, public, ordinary, headlines = inputs()
    headlines.append(a_row(ours[0]["text"]))
    texts = [
        tuple(row["labels"]) for row in mix(ours, public, ordinary, headlines, 1) if row["text"] == ours[0]["text"]
    ]
    assert set(texts) == {("gambling",)}


def test_ordinary_text_is_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of a main language for one of another, while both last."""
    monkeypatch.setattr(mix_safety_rows, "ORDINARY", 20)
    rows = [row for row in mix(*inputs(), share=1) if str(row["pattern"]).startswith("neg:")]
    assert [sum(row["lang"] == lang for row in rows) for lang in ("ja", "de")] == [15, 5]


def test_the_same_files_give_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And rows of `test` and `calibrate` are left out; --share makes it smaller."""
    names = ("rows", "public", "negatives", "dangerous")
    for name, rows in zip(names, inputs(), strict=True):
        kept_out = [a_row(f"never seen {split} {name}", split=split) for split in ("test", "calibrate")]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows + kept_out]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    options = [text for name in names for text in (f"--{name}", str(tmp_path / f"{name}.jsonl"))]
    for name, share in (("a", "1"), ("b", "1"), ("c", "0.5")):
        assert main([*options, "--out", str(tmp_path / name), "--share", share]) == 0
    whole = (tmp_path / "a").read_bytes()
    assert whole == (tmp_path / "b").read_bytes()
    assert b"never seen" not in whole
    assert len((tmp_path / "c").read_bytes()) < 0.8 * len(whole)
    assert "gambling" in capsys.readouterr().out
