"""Near-duplicate removal beside the tools that others use: documents a second, memory, and what was found or lost.

    python -m tests.bench.bench_near [CORPUS] [--gold] [--peers rensa datasketch --peers-python PATH...] > bench/results/near-DATE.md

CORPUS is a folder of .jsonl files (`id`, `text`); left out, it is the documents of the gold. A peer is run by its driver
(--drivers) with the first interpreter of --peers-python that can import it. In every round each tool is run once, one right
after the other, so that a ratio within a round means something on a shared machine too; the table gives the median round,
and the lowest and highest in brackets.

CPU seconds are those of user and system together: the better measure where others use the machine too. Ours is measured as
- the step alone: all passes of the dedup stage and its close, in one process with its kernels loaded (the peers' clocks too
  start after their imports). It reads shards, not JSON: ingest, likewise in one process, stands in a row of its own;
- `corpusmill run`, whole: start of Python, ingest, the step, report, with --workers processes.
The peers read JSON and end with a file of the kept documents; what that file takes is left out of their rates where their
driver tells it. --gold scores the result against all similar pairs, with --own-words
also as the step itself defines words (see near_words), --planted against the copies planted in a generated corpus.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil

from curation.config import load_config
from curation.launch import start_run
from curation.pipeline import Pipeline
from curation.run import peak_memory
from curation.shards import Shard, open_table, read_column
from tests.bench.bench_scale import _processor, measure
from tests.bench.near_gold import Gold, Score, load_gold, load_planted, score
from tests.bench.near_peers import PEERS, Round, Used, interpreter, run_peer
from tests.bench.near_words import recounted
from tests.bench.run_peer import processor_seconds
from tests.e2e.conftest import write_corpus

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))


# -- ours -------------------------------------------------------------------------------------------


def work(pipeline: Pipeline, stage: str) -> dict[str, float]:
    """Do a stage in this process; returns processor seconds by pass, its close among them."""
    seconds: dict[str, float] = {}
    for one in pipeline.passes(stage):
        begin = time.process_time()
        for item in range(one.n_items):
            pipeline.run_item(one.name, item)
        seconds[one.name] = time.process_time() - begin
    begin = time.process_time()
    pipeline.close(stage)
    seconds[f"close {stage}"] = time.process_time() - begin
    return seconds


@contextlib.contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Wall and processor seconds and the peak memory of the block, in this process."""
    found: dict[str, float] = {}
    begin = processor_seconds()
    with peak_memory() as used:
        yield found
    found |= {"wall": used["seconds"], "cpu": processor_seconds() - begin, "peak_mb": used["peak_rss_mb"]}


def ingest(config: str, corpus: str, root: str) -> dict[str, Any]:
    """Plan and ingest a corpus in this process; returns the run's folder and what it took."""
    with measured() as used:
        pipeline = start_run(load_config(config), [f"{corpus}/*.jsonl"], Path(root))
        work(pipeline, "ingest")
    return {"folder": str(pipeline.run.folder), "used": used}


def step(folder: str, warm_up: str) -> dict[str, Any]:
    """Do the steps of an ingested run in this process, after those of a small one, which loads the kernels."""
    small = Pipeline.open(warm_up)
    for stage in small.stages()[1:]:
        work(small, stage)
    pipeline = Pipeline.open(folder)
    passes: dict[str, float] = {}
    with measured() as used:
        for stage in pipeline.stages()[1:]:
            passes |= work(pipeline, stage)
    return {"passes": passes, "used": used}


CHILDREN: Mapping[str, Callable[..., dict[str, Any]]] = {"ingest": ingest, "step": step}


def child(name: str, *arguments: str) -> dict[str, Any]:
    """Call one of CHILDREN in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.bench_near", "--child", name, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(command, env=environment, cwd=REPO, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ours(corpus: Path, config: Path, workers: int) -> Round:
    """A whole run with `workers`, then ingest and steps in one process each; everything is made anew."""
    whole = measure(corpus, str(config), workers, []) if workers else None
    with tempfile.TemporaryDirectory(prefix="bench-near-", dir=config.parent) as folder:
        root = Path(folder)
        (root / "small").mkdir()
        write_corpus(root / "small" / "00.jsonl", 50)
        warm_up = child("ingest", str(config), str(root / "small"), str(root / "warm-up"))
        read = child("ingest", str(config), str(corpus), str(root / "run"))
        done = child("step", read["folder"], warm_up["folder"])
        documents, kept, partners = verdicts(Pipeline.open(read["folder"]))
    alone, before = Used(**done["used"]), Used(**read["used"])
    both = Used(alone.wall + before.wall, alone.cpu + before.cpu, max(alone.peak_mb, before.peak_mb))
    used = {"the step alone": alone, "ingest alone": before, "ingest and step": both}
    if whole is not None:
        used[f"`corpusmill run`, {workers} workers"] = Used(whole.seconds, math.nan, whole.whole().tree)
    return Round(documents, used, kept, partners, done["passes"])


def verdicts(pipeline: Pipeline) -> tuple[int, frozenset[str], dict[str, str]]:
    """Number of documents, the user's ids of the kept ones, and of the dropped ones with their partners.

    Where a copy's partner was dropped by a later step, the partner of that one counts.
    """
    names: dict[bytes, str] = {}
    kept: set[str] = set()
    for shard in pipeline.shards:
        ids = read_column(shard, "id").to_pylist()
        names |= zip(read_column(shard, "doc_id").to_pylist(), ids, strict=True)
        kept.update(ids)
    if len(kept) != len(names):
        raise SystemExit("the ids of this corpus are not unique: its documents cannot be told apart")
    partners: dict[str, str] = {}
    for placed in pipeline.placed:
        dropped = {
            names[doc_id]: names[partner]
            for shard in pipeline.shards
            for doc_id, partner in _dropped(shard, placed.folder)
        }
        partners = {name: dropped.get(partner, partner) for name, partner in partners.items()} | dropped
    return len(names), frozenset(kept - partners.keys()), partners


def _dropped(shard: Shard, folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """doc_id of each document that a step dropped from a shard, and of its partner."""
    table = open_table(folder / f"{shard.name}.arrow", rows=shard.rows).read_all()
    columns = read_column(shard, "doc_id"), table.column("keep"), table.column("kept_doc_id")
    for doc_id, keep, partner in zip(*(column.to_pylist() for column in columns), strict=True):
        if keep is False:
            yield doc_id, partner


# -- tables -----------------------------------------------------------------------------------------


def spread(values: Iterable[float], form: str) -> str:
    """Median, and lowest and highest in brackets where there are several; a dash where one was not measured."""
    values = sorted(values)
    if any(math.isnan(value) for value in values):
        return "-"
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} ({values[0]:{form}}-{values[-1]:{form}})"


def speeds(results: Mapping[str, Sequence[Round]], base: str | None) -> list[str]:
    """Markdown: of each tool and thing measured time, rates, their ratio to the tool `base` in the same round, memory."""
    names = ["tool", "measured", "s", "CPU s", "documents/s", "documents/CPU s"]
    names += [] if base is None else [f"x {base}", f"x {base}, CPU"]
    lines = [f"| {' | '.join(names)} | peak MB |", f"|{' --- |' * (len(names) + 1)}"]
    bases = [] if base is None else [next(iter(one.used.values())) for one in results[base]]
    for tool, rounds in results.items():
        for what in rounds[0].used:
            used, n = [one.used[what] for one in rounds], rounds[0].documents
            cells = [spread((one.wall for one in used), ".2f"), spread((one.cpu for one in used), ".2f")]
            cells += [spread((n / one.wall for one in used), ",.0f")]
            cells += [spread((n / one.cpu for one in used), ",.0f")]
            if bases:
                both = list(zip(used, bases, strict=True))
                cells += [spread((its.wall / mine.wall for mine, its in both), ".2f")]
                cells += [spread((its.cpu / mine.cpu for mine, its in both), ".2f")]
            lines.append(f"| {tool} | {what} | {' | '.join(cells)} | {max(one.peak_mb for one in used):.0f} |")
    return lines


def passes(rounds: Sequence[Round]) -> list[str]:
    """Markdown: where our time goes, by pass."""
    lines = ["| pass | CPU s | share | us a document |", "| --- | --- | --- | --- |"]
    total = sum(statistics.median(one.passes[name] for one in rounds) for name in rounds[0].passes)
    for name in rounds[0].passes:
        seconds = [one.passes[name] for one in rounds]
        middle = statistics.median(seconds)
        lines.append(
            f"| {name} | {spread(seconds, '.2f')} | {middle / total:.0%} | {middle / rounds[0].documents * 1e6:.1f} |"
        )
    return lines


def quality(results: Mapping[str, Sequence[Round]], gold: Gold, threshold: float) -> tuple[list[str], list[str]]:
    """Markdown: the score of each tool; and each fault of ours in a line, to be looked at."""
    names = ["tool", "kept", "recall", "precision", "groups lost whole", "removed, nothing near kept (chain's end)"]
    names += ["partner not near", "partner not kept", "same in all rounds"]
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    faults: list[str] = []
    for tool, rounds in results.items():
        first = rounds[0]
        found = score(gold, first.kept, threshold, first.partners)
        same = "yes" if all((one.kept, one.partners) == (first.kept, first.partners) for one in rounds) else "NO"
        lines.append(_quality_row(tool, len(first.kept), found, gold, "-" if len(rounds) == 1 else same))
        if first.partners is not None:
            faults += _faults(found)
    return lines, faults


def _quality_row(tool: str, kept: int, found: Score, gold: Gold, same: str) -> str:
    wrong = f"{len(found.wrongly_removed)} of {found.removed} ({found.orphaned})"
    has_partners = tool == "ours"
    cells = [
        f"{kept:,}",
        f"{found.recall:.5f} ({found.pairs - len(found.missed):,} of {found.pairs:,})",
        f"{found.precision:.5f}" if gold.complete else "-",
        f"{len(found.lost)} of {found.groups:,}" if gold.complete else "-",
        wrong if gold.complete else "-",
        str(len(found.chained)) if has_partners else "-",
        str(len(found.partner_removed)) if has_partners else "-",
        same,
    ]
    return f"| {tool} | {' | '.join(cells)} |"


def _faults(found: Score) -> list[str]:
    kinds = {
        "missed pair": found.missed,
        "wrongly removed, most similar kept": found.wrongly_removed,
        "partner not near": found.chained,
        "partner not kept": found.partner_removed,
    }
    lines = [f"{kind}: {one}" for kind, faults in kinds.items() for one in faults]
    return [*lines, *(f"lost group: {' '.join(group)}" for group in found.lost)]


# -- the command ------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", nargs="?", type=Path, metavar="CORPUS", help="folder of .jsonl files (the gold's)")
    parser.add_argument("--gold", nargs="?", type=Path, const=DATA / "3_neardup", metavar="FOLDER")
    parser.add_argument("--planted", action="store_true", help="score against CORPUS/gold of a generated corpus")
    parser.add_argument("--threshold", type=float, default=0.9, help="Jaccard that near documents exceed")
    parser.add_argument("--steps", nargs="+", default=["near"], help="the data-set steps to measure, in order")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="setting of the config")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="of the whole run; 0: leave it out")
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS, help="the first one is the measure of ratios")
    parser.add_argument("--peers-python", nargs="+", default=[sys.executable], metavar="PATH")
    parser.add_argument("--drivers", type=Path, default=DATA.parent / "bench" / "peers", metavar="FOLDER")
    parser.add_argument(
        "--own-words", action="store_true", help="score against pairs by the step's definition of words too"
    )
    parser.add_argument("--faults", type=Path, metavar="FILE", help="write each fault of ours there")
    parser.add_argument("--child", nargs="+", metavar="NAME", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child[0]](*arguments.child[1:])))
        return 0
    if arguments.corpus is None and arguments.gold is None:
        raise SystemExit("give a folder of .jsonl files, or --gold")
    gold = (
        load_gold(arguments.gold) if arguments.gold else load_planted(arguments.corpus) if arguments.planted else None
    )
    with tempfile.TemporaryDirectory(prefix="bench-near-") as folder:
        corpus = arguments.corpus
        if corpus is None:
            assert gold is not None
            corpus = write_texts(gold, Path(folder) / "gold")
        steps = [{name: {"threshold": arguments.threshold} if name == "near" else {}} for name in arguments.steps]
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps({"name": "bench", "steps": steps}), encoding="utf-8")
        config.write_text(load_config(config, arguments.set).to_yaml(), encoding="utf-8")
        results = all_rounds(arguments, corpus, config)
        _print(arguments, corpus, results, gold)
    return 0


def write_texts(gold: Gold, folder: Path) -> Path:
    """The gold's documents as four files of JSON lines, in order."""
    folder.mkdir()
    rows = list(gold.texts.items())
    for number in range(4):
        part = rows[len(rows) * number // 4 : len(rows) * (number + 1) // 4]
        lines = [json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n" for name, text in part]
        (folder / f"{number:02}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    return folder


def all_rounds(arguments: argparse.Namespace, corpus: Path, config: Path) -> dict[str, list[Round]]:
    """Every tool once a round, ours first."""
    pythons = {name: interpreter(PEERS[name], arguments.peers_python) for name in arguments.peers}
    results: dict[str, list[Round]] = {name: [] for name in ("ours", *pythons)}
    with tempfile.TemporaryDirectory(prefix="bench-near-") as folder:
        write_corpus(Path(folder) / "00.jsonl", 50)
        measure(Path(folder), str(config), 1, [])  # kernels are compiled once a machine, and that takes memory
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        results["ours"].append(ours(corpus, config, arguments.workers))
        for name, python in pythons.items():
            results[name].append(run_peer(name, python, arguments.drivers, corpus, arguments.threshold))
    return results


def _print(
    arguments: argparse.Namespace, corpus: Path, results: Mapping[str, Sequence[Round]], gold: Gold | None
) -> None:
    megabytes = sum(path.stat().st_size for path in corpus.glob("*.jsonl")) / 1e6
    memory = psutil.virtual_memory().total / 2**30
    print(f"# Near-duplicates, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    size = f"{results['ours'][0].documents:,} documents, {megabytes:,.0f} MB of JSON lines"
    print(f"{size}; steps {', '.join(arguments.steps)}; Jaccard > {arguments.threshold}; {arguments.rounds} rounds;")
    print(f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GB; load {os.getloadavg()[0]:.1f} at the end.\n")
    print("\n".join(speeds(results, arguments.peers[0] if arguments.peers else None)), end="\n\n")
    print("\n".join(passes(results["ours"])), end="\n\n")
    golds = {"as the gold defines words": gold} if gold is not None else {}
    if gold is not None and arguments.own_words:
        golds["as the step defines words"] = recounted(gold)
    faults: list[str] = []
    for title, one in golds.items():
        lines, found = quality(results, one, arguments.threshold)
        print("\n".join([f"Jaccard {title}:\n", *lines]), end="\n\n")
        faults += [f"{title}: {line}" for line in found]
    if arguments.faults:
        arguments.faults.write_text("".join(f"{line}\n" for line in faults), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
