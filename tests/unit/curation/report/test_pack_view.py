"""What the page says of token files: every file, the mixture, the comparison of ids, what was held out and left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.run import read_json, write_json

SUMMARY = "equal to tokenizer.json (tokenizers 0.23.3) on 70 probe texts and 5 documents"
CARD = {
    "name": "letters", "fingerprint": "0123456789abcdef" * 4, "vocab_size": 300, "eos": "</s>", "eos_id": 0, "bos": None
}  # fmt: skip


def one_file(path: str, seq_len: int, split: str, documents: int) -> dict[str, Any]:
    counts = {"documents": documents, "tokens": 100 * documents, "sequences": 3, "pieces": documents}
    return {"path": path, "seq_len": seq_len, "split": split, **counts, "padding_share": 0.0125, "cut_documents": 1}


FILES = [
    one_file("tokens.arrow", 512, "train", 6),
    one_file("holdout/tokens.arrow", 512, "holdout", 1),
    one_file("2048/tokens.arrow", 2048, "train", 6),
    one_file("2048/holdout/tokens.arrow", 2048, "holdout", 1),
]
MIX = [
    {"name": "zho*", "weight": None, "epochs": 2.5, "documents": 5, "tokens": 450},
    {"name": "<b>fra", "weight": None, "epochs": 0.0, "documents": 0, "tokens": 0},
    {"name": "*", "weight": None, "epochs": 1.0, "documents": 1, "tokens": 150},
]


def packed_run(made: Any, *, mix: list[dict[str, Any]], files: list[dict[str, Any]]) -> Path:
    """A made run of 5 kept documents, of which 3 are in the files and 2 left out, with six copies in the first file."""
    folder: Path = made.run([made.doc(f"one two three four five {n}") for n in range(5)], [made.length()], pack=True)
    first = files[0]
    packed = {
        "documents": 3, "left_out": 2, "copies": first["documents"], "tokens": first["tokens"], "sequences": 3,
        "seq_len": 512, "padding_share": 0.0125, "unk_share": 0.0, "lost_share": 0.0, "holdout_documents": 1,
        "files": files,
    }  # fmt: skip
    funnel = read_json(folder / "report" / "funnel.json")
    write_json(folder / "report" / "funnel.json", {**funnel, "packed": packed})
    write_json(folder / "pack" / "_done.json", {**read_json(folder / "pack" / "_done.json"), "packed": packed})
    write_json(folder / "pack" / "manifest.json", {"tokenizer": CARD, "engines": ["tokenizers 0.23.3"], "mix": mix})
    write_json(folder / "pack" / "parity.json", {"summary": SUMMARY, "equal": True})
    lengths = pa.array([100] * first["documents"], pa.int32())
    pq.write_table(pa.table({"n_tokens": lengths}), folder / "pack" / "documents.parquet")
    return folder


def test_every_file_and_every_group_is_a_row(made: Any) -> None:
    """Numbers as they are in the marker and the manifest; groups of no document too; all text escaped."""
    page = made.page(packed_run(made, mix=MIX, files=FILES))

    for one in FILES:
        purpose = "training" if one["split"] == "train" else "validation"
        tokens = f"{one['tokens']:,}"
        assert page.row(f"pack/{one['path']}") == [
            f"pack/{one['path']}", purpose, str(one["documents"]), tokens, "3", f"{one['seq_len']:,}", "1.2 %", "1"
        ]  # fmt: skip
    assert page.row("zho*") == ["zho*", "2.5", "5", "450", "75.0 %"]
    assert page.row("&lt;b&gt;fra")[1:4] == ["0", "0", "0"]
    assert page.row("all others")[1:4] == ["1", "1", "150"]
    assert "share wanted" not in page.words


def test_where_the_documents_are(made: Any) -> None:
    """In the files, held out, left out; the law as an equation; the average is that of a copy, not of a document."""
    page = made.page(packed_run(made, mix=MIX, files=FILES))

    assert page.row("documents")[1] == "3"
    assert page.row("left out by the mixture")[1] == "2"
    assert page.row("held out")[1] == "1"
    assert page.row("copies by the mixture")[1] == "6"
    assert page.row("tokens a document")[1] == "100 on average"
    assert page.row("token ids")[1] == SUMMARY
    assert "kept 5 = in the token file 3 + left out by the mixture 2" in page.words
    assert "600tokens to train on, 3 sequences of 512" in page.words.replace(" tokens to", "tokens to")


def test_weights_are_shares(made: Any) -> None:
    """As they were wanted beside what came out of it: a group that would need too many epochs has less."""
    mix = [{**MIX[0], "weight": 3.0}, {**MIX[2], "weight": 1.0}]
    page = made.page(packed_run(made, mix=mix, files=FILES))

    assert page.row("zho*") == ["zho*", "75 %", "2.5", "5", "450", "75.0 %"]
    assert page.row("all others")[1] == "25 %"


def test_one_file_has_no_table_of_files(made: Any) -> None:
    """Its numbers stand in the list, as in runs before there were more."""
    page = made.page(packed_run(made, mix=[], files=[{**FILES[0], "split": "all"}]))

    assert page.row("tokens")[1] == "600"
    assert page.row("sequences")[1] == "3 of 512 tokens"
    assert "pack/tokens.arrow, " in page.words
    assert "Mixture" not in page.words
    assert "copies by the mixture" not in page.words


@pytest.mark.parametrize("name", ["manifest.json", "parity.json"])
def test_a_damaged_file_beside_the_tokens_is_told(made: Any, name: str) -> None:
    """The page is there without what stood in it, and names the file."""
    folder = packed_run(made, mix=MIX, files=FILES)
    (folder / "pack" / name).write_text("{", encoding="utf-8")

    page = made.page(folder)

    assert f"pack/{name} is not valid JSON" in page.words
    assert page.row("documents")[1] == "3"
