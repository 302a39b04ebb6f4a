"""The default tokenizer: made from permitted text only, the same file each time, and the one that its card names."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import zstandard

from tests.conftest import REPO
from tools.train_tokenizer import EOS, PAD, Row, choose, permitted_rows, train_tokenizer

FOLDER = REPO / "tokenization/data/default"


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def test_only_permitted_rows_are_read(tmp_path: Path) -> None:
    """By licence, by quality, and one revision of a file: everything else is left out."""
    labels = {
        "mit": ("MIT", "good"),
        "gpl": ("GPL-3.0", "good"),
        "gfdl": ("GFDL-1.2+", "good"),
        "page": ("fixture page", "good"),
        "unclear": ("free (Debian main)", "good"),
        "junk": ("CC0", "junk"),
    }
    write(tmp_path / "2_text/crawl-00.jsonl.zst", [{"id": name, "text": name} for name in labels])
    gold = [
        {"id": name, "lang": "en", "quality": quality, "source": "s", "licence": licence}
        for name, (licence, quality) in labels.items()
    ]
    write(tmp_path / "2_text/gold.jsonl.zst", gold)
    revisions = [
        {"id": f"r{i}", "text": f"revision {i}", "lang": "zh_TW", "source": "s", "licence": "CC-BY-4.0"} for i in "123"
    ]
    write(tmp_path / "3_neardup/docs-00.jsonl.zst", revisions)
    with gzip.open(tmp_path / "3_neardup/gold_groups.tsv.gz", "wt") as file:
        file.write("id\tgroup\trevision\nr1\tg1\t0\nr2\tg1\t1\n")
    write(tmp_path / "4_langid/sentences.jsonl.zst", [{"text": "phrase", "lang": "fr"}])
    rows = list(permitted_rows(tmp_path))
    assert [row.text for row in rows] == ["mit", "revision 1", "revision 3", "phrase"]
    assert [row.language for row in rows] == ["en", "zh-Hant", "zh-Hant", "fr"]


def test_choice_and_training_do_not_depend_on_order() -> None:
    """The same rows in another order, with copies among them, give the same file."""
    rows = [Row(f"text number {i} of many, Straße {i % 7} 漢字", "en", f"s{i % 3}", "MIT") for i in range(300)]
    first, held_out = choose(iter(rows))
    second, _ = choose(iter([*reversed(rows), *rows]))
    assert first == second
    assert 0 < len(held_out) < 40
    assert not {row.text for row in first} & {row.text for row in held_out}
    files = {train_tokenizer(some, 320).to_str() for some in (first, second)}
    assert len(files) == 1


def test_a_source_has_its_share(monkeypatch: Any) -> None:
    """No more than the cap from one source in one language, give or take its last document."""
    monkeypatch.setattr("tools.train_tokenizer.BYTES_PER_SOURCE", 1_000)
    rows = [Row(f"{i:05d}" * 20, language, "s", "MIT") for i in range(200) for language in ("en", "fr")]
    train, held_out = choose(Row(row.text + row.language, row.language, row.source, row.licence) for row in rows)
    for language in ("en", "fr"):
        assert 1_000 <= sum(len(row.text) for row in [*train, *held_out] if row.language == language) < 1_200


def test_the_shipped_file_is_the_one_of_its_card() -> None:
    """Checksum, size of the vocabulary and special tokens as the card says; no sign of text that was not permitted."""
    content = (FOLDER / "tokenizer.json").read_bytes()
    card = (FOLDER / "CARD.md").read_text(encoding="utf-8")
    data = json.loads(content)
    assert hashlib.sha256(content).hexdigest() in card
    assert len(data["model"]["vocab"]) == 32_768
    assert [token["content"] for token in data["added_tokens"]] == [EOS, PAD]
    assert data["normalizer"] is None
    assert "GPL" not in card
    assert "GFDL" not in card
