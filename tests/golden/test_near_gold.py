"""Laws of near-duplicate removal on 31,500 real documents of which every similar pair is known.

Recall and precision by the gold's own definition: tests/gate/near.py, with floors in tests/golden/floors.json.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from curation.config import parse_config
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.shards import open_table
from tests.bench.near_gold import Gold, load_gold, score
from tests.gate.near import GOLD_SCRIPTS

pytestmark = pytest.mark.slow

UNSPACED = {"th", "lo", "km", "my"}
"""Languages written without blanks whose scripts are cut by character by default, and not by the gold."""


@dataclass(frozen=True)
class Outcome:
    """What a run kept, by the users' ids, and the kept partner of every other document."""

    kept: frozenset[str]
    partners: dict[str, str]
    n_shards: int


@pytest.fixture(scope="module")
def gold(test_data: Path) -> Gold:
    return load_gold(test_data / "3_neardup")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs lie: those over the same files share their shards."""
    return tmp_path_factory.mktemp("root")


def run(
    inputs: Sequence[Path], root: Path, run_id: str, settings: str, *, shard_mb: int = 64, workers: int = 1
) -> Pipeline:
    """A finished run, by the functions of the command line."""
    config = parse_config(
        f"name: gold\ningest: {{shard_mb: {shard_mb}, slice_mb: {shard_mb}}}\nsteps: [{{near: {{{settings}}}}}]\n"
    )
    pipeline = start_run(config, [str(path) for path in inputs], root, run_id=run_id, workers=workers)
    drive(pipeline, workers=workers)
    finish_run(pipeline)
    return pipeline


def outcome(pipeline: Pipeline) -> Outcome:
    """Verdicts of a run's last step by the users' ids."""
    names: dict[bytes, str] = {}
    partner: dict[str, bytes] = {}
    for shard in pipeline.shards:
        told = open_table(shard.path).read_all().select(["doc_id", "id"]).to_pydict()
        names.update(zip(told["doc_id"], told["id"], strict=True))
        verdicts = open_table(pipeline.placed[-1].folder / f"{shard.name}.arrow").read_all().to_pydict()
        for name, keep, kept_doc_id in zip(told["id"], verdicts["keep"], verdicts["kept_doc_id"], strict=True):
            if not keep:
                partner[name] = kept_doc_id
    kept = frozenset(names.values()) - partner.keys()
    return Outcome(kept, {name: names[one] for name, one in partner.items()}, len(pipeline.shards))


@pytest.fixture(scope="module")
def documents(test_data: Path) -> list[Path]:
    return sorted((test_data / "3_neardup").glob("docs-*.jsonl.zst"))


def test_the_default_differs_in_unspaced_scripts_only(gold: Gold, documents: list[Path], root: Path) -> None:
    """What the default judges otherwise than the gold's definition is Thai, Lao, Khmer or Burmese."""
    by_gold = outcome(run(documents, root, "gold", f"by_character: [{', '.join(GOLD_SCRIPTS)}]"))
    by_default = outcome(run(documents, root, "gold", ""))
    other = by_gold.kept ^ by_default.kept
    other |= {name for name in by_gold.partners if by_default.partners.get(name) != by_gold.partners[name]}
    assert {gold.languages[name] for name in other} <= UNSPACED, sorted(other)[:10]
    judged = score(gold, by_default.kept, 0.9, by_default.partners)
    print(f"default: {len(other)} documents differ; recall {judged.recall:.5f} precision {judged.precision:.5f}")
    wrong = [*judged.missed, *judged.wrongly_removed, *judged.chained]
    assert {one.language for one in wrong} <= UNSPACED, [str(one) for one in wrong]
    # Of words, a lost group was near nothing kept; of characters it was.
    assert {gold.languages[name] for group in judged.lost for name in group} <= UNSPACED, judged.lost


@pytest.mark.timeout(900)
def test_chunks_workers_and_order_do_not_matter(gold: Gold, tmp_path: Path) -> None:
    """The same ids are kept in 1, 2 and 7 chunks, by 1 and 2 workers, in the given order and in others."""
    rows = [json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in gold.texts.items()]
    kept: dict[str, frozenset[str]] = {}
    for n_files, workers, seed in ((1, 1, None), (2, 2, None), (7, 1, 5), (7, 2, 6)):
        mixed = list(rows)
        if seed is not None:
            random.Random(seed).shuffle(mixed)
        folder = tmp_path / f"{n_files}-{workers}-{seed}"
        folder.mkdir()
        marks = [len(mixed) * i // n_files for i in range(n_files + 1)]
        for number, (begin, end) in enumerate(pairwise(marks)):
            (folder / f"{number}.jsonl").write_text("\n".join(mixed[begin:end]) + "\n", encoding="utf-8")
        files, shard_mb = sorted(folder.iterdir()), {1: 1024, 2: 64, 7: 16}[n_files]
        found = outcome(run(files, tmp_path / "root", folder.name, "", shard_mb=shard_mb, workers=workers))
        kept[f"{found.n_shards} shards, {workers} workers, seed {seed}"] = found.kept
    print({name: len(one) for name, one in kept.items()})
    assert [int(name.split()[0]) for name in kept][:2] == [1, 2]
    assert all(int(name.split()[0]) >= 7 for name in list(kept)[2:])
    first = next(iter(kept.values()))
    assert {name: sorted(one ^ first) for name, one in kept.items()} == {name: [] for name in kept}
