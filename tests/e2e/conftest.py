"""A small corpus with everything in it, made from a seed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

WORDS = (
    "river mill orchard kettle window garden winter market bridge letter harbour meadow lantern quilt engine "
    "pencil saddle valley copper needle carries mends weighs borrows lifts counts plants turns keeps builds"
).split()
HAN = "河边的小店登记每一位来客意见附近孩子常来帮忙图书馆上个月换了新屋顶负责人说明年还会继续老车站把雨水收集起来浇花"


def document(rng: random.Random, number: int) -> str:
    """A text of many sentences, in English or Chinese."""
    if number % 3 == 0:
        return "".join("".join(rng.choices(HAN, k=rng.randint(8, 30))) + "。" for _ in range(rng.randint(4, 40)))
    return " ".join(
        " ".join(rng.choices(WORDS, k=rng.randint(5, 15))).capitalize() + "." for _ in range(rng.randint(6, 60))
    )


def write_corpus(path: Path, n_documents: int, seed: int = 1) -> dict[str, int]:
    """Write jsonl with copies, residue, short texts and bad lines; returns what must come out of it."""
    rng = random.Random(seed)
    lines: list[str] = []
    texts: list[str] = []
    expected = {"lines": 0, "bad": 0, "copies": 0}
    for number in range(n_documents):
        kind = rng.random()
        if kind < 0.1 and texts:
            text = rng.choice(texts)
            expected["copies"] += 1
        elif kind < 0.15:
            text = "ok then"
            expected["copies"] += text in texts
        elif kind < 0.2:
            text = f'<script>var a{number} = "b"; function go(){{ return document.getElementById("x"); }}</script>' * 20
        else:
            text = document(rng, number)
        texts.append(text)
        lines.append(json.dumps({"id": f"d{number}", "text": text, "n": number}, ensure_ascii=False))
        if rng.random() < 0.01:
            lines.append(lines[-1][: len(lines[-1]) // 2])
            expected["bad"] += 1
    expected["lines"] = len(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return expected


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """A folder with one file of 600 documents, and what must come out of it."""
    folder = tmp_path_factory.mktemp("corpus")
    return folder, write_corpus(folder / "docs.jsonl", 600)
