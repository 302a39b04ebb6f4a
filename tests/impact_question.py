"""A small question about a change: two configs, forty texts, and a root that knows this code's sources and counts of tokens.

Reading all sources and loading a tokenizer takes two seconds, which a test must not pay for that only asks.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from curation.impact_tasks import Question, answer

CONFIG = "name: mine\nsteps: [length: {min_units: 3}]\nimpact: {max_kept_change: 0.1}\n"


def write_question(folder: Path) -> None:
    """`mine.yaml`, `old.yaml` with another limit, and `sample` with 40 texts of 1 to 40 words, in a folder."""
    (folder / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "old.yaml").write_text(CONFIG.replace("min_units: 3", "min_units: 10"), encoding="utf-8")
    (folder / "sample").mkdir()
    lines = [json.dumps({"id": f"d{n}", "text": f"{n} " + "word " * n}) for n in range(1, 41)]
    (folder / "sample" / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_root(root: Path) -> None:
    """A root in which nothing was judged yet."""
    shutil.copytree(_known(), root / "impact")


@cache
def _known() -> Path:
    """What is the same in each root, made once by a test process."""
    folder = Path(tempfile.mkdtemp(prefix="corpusmill-impact-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_question(folder)
    config = str(folder / "mine.yaml")
    answer(Question(config, config, sample=(str(folder / "sample"),)), folder / "root")
    (folder / "known").mkdir()
    for name in ("sources.json", "tokens"):
        (folder / "root" / "impact" / name).rename(folder / "known" / name)
    return folder / "known"
