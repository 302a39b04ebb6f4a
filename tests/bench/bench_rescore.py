"""The re-score on a crawl with planted junk: how much of what it puts on the blacklist is junk, how much is good text.

    python -m tests.bench.bench_rescore --work FOLDER [--steps 700] > out.md                   # default settings, judged part
    python -m tests.bench.bench_rescore --work FOLDER --part tuning --try '{"score": "loss"}'  # other settings
    python -m tests.bench.bench_rescore --work FOLDER --wrong 40                               # prints test data
    python -m tests.bench.bench_rescore --work FOLDER --speed                                  # beside plain transformers

Good text of one part of the test data is packed by a run, examples/train_gpt.py trains on it, and its checkpoints score the
documents of another run, all as a user would do it (pin, Rescore, choose); gold says what was chosen (tests/bench/rescore_gold.py
says who trains and who is judged). What is in FOLDER already is not done again. One thread; a quarter of an hour of training.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from curation.config import parse_config
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from curation.rescore.checkpoints import GivenTokenizer, look, pin
from curation.rescore.choose import HIGH
from curation.rescore.config import ChooseConfig, ScoreConfig
from curation.rescore.documents import state_of
from curation.rescore.score import Order, Rescore, threshold_folder
from curation.shards import alive_mask, read_column
from tests.bench.quality_gold import Document, load_texts
from tests.bench.rescore_gold import Gold, choose_among, lines, part_of, place_of, planted, table_of
from tokenization.progress import Entry, ProgressLedger

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
FILTERS = ("language", "html_noise", "length", "rules")
"""Steps of the judged run: the re-score takes the labels of the first; the others say what a curated crawl still holds."""
SEQ_LEN, BATCH = 512, 2
CHARACTERS, UNSPACED_CHARACTERS = 1_500, 700
"""Of a document that trains, at most: a small budget of tokens sees more documents so. The latter of UNSPACED."""
UNSPACED = ("zh", "ja", "ko", "lzh", "zh-Hant", "th")
"""Languages whose characters say more."""
READING = ScoreConfig(documents="all", window=256, stride=192, max_windows=2)
"""A long document is read at two places: all documents in some minutes on one core."""


# -- the model and its scores ------------------------------------------------------------------


def run_of(name: str, files: dict[str, list[dict[str, str]]], work: Path, config: dict[str, Any]) -> Pipeline:
    """A finished run over files of JSON lines; one that is there is taken as it is."""
    if (work / "root" / "runs" / name / "run.json").exists():
        return Pipeline.open(work / "root" / "runs" / name)
    folder = work / f"{name}-in"
    folder.mkdir(parents=True, exist_ok=True)
    for file, rows in files.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / file).write_text(text, encoding="utf-8")
    settings = {"name": name, "ingest": {"shard_mb": 4}, **config}
    pipeline = start_run(parse_config(yaml.safe_dump(settings)), [str(folder)], work / "root", run_id=name)
    drive(pipeline, workers=1)
    return Pipeline.open(pipeline.run.folder)


def trained(work: Path, documents: Sequence[Document], steps: int, save_every: int) -> list[Entry]:
    """The lines of the ledger that name checkpoints, early to late; trains what is missing."""
    rows = [
        {"id": one.name, "text": one.text[: UNSPACED_CHARACTERS if one.language in UNSPACED else CHARACTERS]}
        for one in documents
        if part_of(one) == "train"
    ]
    pack = {"tokenizer": "default", "seq_len": SEQ_LEN}
    run = run_of("train", {"good.jsonl": rows}, work, {"steps": ["language"], "pack": pack})
    out = work / "training"
    done = checkpoints(out)
    if not done or done[-1].step < steps:
        script = str(REPO / "examples" / "train_gpt.py")
        command = [sys.executable, script, str(run.run.folder / "pack" / "tokens.arrow"), "--out", str(out)]
        command += ["--steps", str(steps), "--batch", str(BATCH), "--save-every", str(save_every), "--device", "cpu"]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(REPO)}
        subprocess.run(command + (["--resume"] if done else []), check=True, env=environment, stdout=sys.stderr)
    return checkpoints(out)


def checkpoints(out: Path) -> list[Entry]:
    ledger = ProgressLedger(out / "progress.jsonl")
    return [entry for entry in ledger.read().entries if entry.checkpoint] if ledger.path.exists() else []


def crawl(work: Path, documents: Sequence[Document]) -> Pipeline:
    """The judged run: what is tuned on and what is judged, a file for each source of the test data."""
    return run_of("crawl", files_of(documents, ("tuning", "judged")), work, {"steps": list(FILTERS)})


def english(work: Path, documents: Sequence[Document]) -> Pipeline:
    """Half of the English documents of the judged part, for a model that is slow."""
    some = [one for one in documents if one.language == "en" and place_of(one.name, "half") < 1 / 2]
    return run_of("english", files_of(some, ("judged",)), work, {"steps": list(FILTERS)})


def files_of(documents: Sequence[Document], parts: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Rows by name of the file."""
    files: dict[str, list[dict[str, str]]] = {}
    for one in documents:
        if part_of(one) in parts:
            name = "".join(c if c.isalnum() else "-" for c in one.source) + ".jsonl"
            files.setdefault(name, []).append({"id": one.name, "text": one.text})
    return files


def scored(work: Path, run: Pipeline, entry: Entry) -> Rescore:
    """A finished re-score of the crawl by a checkpoint of the training."""
    order = Order(entry.run, entry.tokens_seen, entry.tokens_seen)
    checkpoint = look(work / "training" / str(entry.checkpoint), entry.checkpoint_sha256)
    folder = threshold_folder(work / "root", order.training_run, order.threshold) / "_model"
    model = pin(checkpoint, folder, tokenizer=GivenTokenizer("default"), fingerprint=entry.tokenizer)
    return finished(Rescore.create(work / "root", run, order, model, READING))


def scored_by(work: Path, run: Pipeline, model: Path) -> Rescore:
    """The same by a model in transformers' format, of each document's first 256 tokens or some in its middle."""
    order = Order(model.name, 1, 1)
    folder = threshold_folder(work / "root", order.training_run, order.threshold) / "_model"
    reading = READING.model_copy(update={"max_windows": 1})
    return finished(Rescore.create(work / "root", run, order, pin(look(model), folder), reading))


def finished(rescore: Rescore) -> Rescore:
    for one in rescore.passes():
        for item in range(one.n_items):
            rescore.run_item(one.name, item)
    rescore.close()
    return rescore


def gold_of(run: Pipeline, rescore: Rescore, documents: Sequence[Document]) -> Gold:
    """Gold in the order of the scores: every document of every shard was read."""
    known = {one.name: one for one in documents}
    last = run.run.folder / "steps" / state_of(run, "kept").last
    mine = [known[name] for shard in rescore.shards for name in read_column(shard, "id").to_pylist()]
    return Gold(
        mine,
        np.array([one.quality == "junk" for one in mine]),
        np.array([part_of(one) for one in mine]),
        np.concatenate([alive_mask(last, shard) for shard in rescore.shards]),
        np.array([place_of(one.name, "planted") for one in mine]),
    )


# -- what it is told ---------------------------------------------------------------------------


def cost_of(rescore: Rescore) -> str:
    totals = rescore.close()
    return f"{totals['judged']:,} documents scored, {totals['tokens']:,} tokens, {totals['seconds']:,.0f} s"


def wrong_ones(scores: pa.Table, gold: Gold, rows: npt.NDArray[np.int64], chosen: Any, number: int) -> None:
    """Print good documents that were chosen, and junk that was not, drawn by hash: test data, not to be kept."""
    side, order = np.zeros(scores.num_rows, np.int8), np.argsort(gold.draw[rows], kind="stable")
    side[rows] = chosen.side
    judged = np.zeros(scores.num_rows, np.bool_)
    judged[rows] = chosen.judged
    for title, is_junk, is_chosen in (("good, chosen", False, True), ("junk, missed", True, False)):
        picked = [
            row
            for row in rows[order].tolist()
            if judged[row] and gold.junk[row] == is_junk and bool(side[row]) == is_chosen
        ]
        for row in picked[:number]:
            one, score = gold.documents[row], scores.slice(row, 1).to_pylist()[0]
            end = "high" if side[row] == HIGH else "low" if side[row] else "-"
            said = (
                f"{score['bits_per_byte']:.2f} bits a byte, {score['loss']:.2f} nats a token, {score['tokens']} tokens"
            )
            print(
                f"--- {title} ({end}): {one.name} {score['language']} {one.source} {one.kind}; {said}; {len(one.text):,} characters"
            )
            print(" ".join(one.text[:300].split()))


# -- speed -------------------------------------------------------------------------------------


def plain(folder: Path, rows: int) -> Callable[[Sequence[str]], float]:
    """The usual batch of transformers: float32, padded to its longest text, all logits; returns nats of all."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    from quality_models.causal_lm import quiet

    with quiet():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def judge(texts: Sequence[str]) -> float:
        nats = 0.0
        for at in range(0, len(texts), rows):
            ids = [one.ids for one in tokenizer.encode_batch(list(texts[at : at + rows]), add_special_tokens=False)]
            longest = max(map(len, ids))
            given = torch.tensor([one + [0] * (longest - len(one)) for one in ids])
            mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in ids])
            with torch.inference_mode():
                logits = model(input_ids=given, attention_mask=mask).logits[:, :-1]
                targets = given[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
                nats += float(
                    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
                )
        return nats

    return judge


def speed(rescore: Rescore, documents: Sequence[Document], number: int, rounds: int) -> list[str]:
    """Documents and bytes a second beside plain batches, on texts that fit one window."""
    import torch

    from quality_models.causal_lm import CausalLm
    from quality_models.windows import WindowRule

    torch.set_num_threads(1)
    scores, folder = rescore.scores(), str(rescore.folder.parent / "_model")
    ids = [name for shard in rescore.shards for name in read_column(shard, "id").to_pylist()]
    known = {one.name: one.text for one in documents}
    share = scores.column("share_scored").to_numpy()
    whole = [known[ids[row]] for row in np.flatnonzero((share > 0.98) & (scores.column("tokens").to_numpy() < 256))]
    texts = sorted(whole, key=lambda text: place_of(text[:200], "speed"))[:number]
    rule = WindowRule(SEQ_LEN, SEQ_LEN * 3 // 4, "none", 8)
    tools: dict[str, Callable[[Sequence[str]], float]] = {
        "transformers, batches of 16": plain(Path(folder), 16),
        "transformers, one by one": plain(Path(folder), 1),
        "re-score, bfloat16": lambda some: float(CausalLm(folder, rule, "bfloat16", "cpu").judge(some).nats.sum()),
        "re-score, float32": lambda some: float(CausalLm(folder, rule, "float32", "cpu").judge(some).nats.sum()),
    }
    taken: dict[str, list[float]] = {name: [] for name in tools}
    nats = {name: judge(texts[:20]) for name, judge in tools.items()}  # loads them
    for _ in range(rounds):
        for name, judge in tools.items():
            begin = time.process_time()
            nats[name] = judge(texts)
            taken[name].append(time.process_time() - begin)
    size, base = sum(len(text.encode()) for text in texts), next(iter(tools))
    found = [
        f"{len(texts)} documents of {size / 1e6:.2f} MB, {rounds} rounds\n",
        "| tool | documents a CPU second | MB a CPU second | times | nats of all |\n| --- " + "| ---: " * 4 + "|",
    ]
    for name, seconds in taken.items():
        ratio = statistics.median(one / two for one, two in zip(taken[base], seconds, strict=True))
        middle = statistics.median(seconds)
        found.append(
            f"| {name} | {len(texts) / middle:,.0f} | {size / middle / 1e6:.3f} | {ratio:.2f} | {nats[name]:,.0f} |"
        )
    return found


# -- command line ------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.bench_rescore", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--work", type=Path, help="folder of runs, checkpoints and scores")
    parser.add_argument(
        "--steps", type=int, default=700, help=f"of the trainer, of {SEQ_LEN * BATCH:,} tokens each (700)"
    )
    parser.add_argument("--save-every", type=int, default=100, help="steps (100)")
    parser.add_argument("--at", type=int, help="the checkpoint of this step (the last)")
    parser.add_argument("--model", type=Path, help="a model in transformers' format instead, over English documents")
    parser.add_argument("--part", choices=("tuning", "judged"), default="judged")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.2, 0.55], help="of junk (0.05 0.2 0.55)")
    parser.add_argument(
        "--try", dest="settings", default="{}", help="other settings than the default ChooseConfig, as JSON"
    )
    parser.add_argument("--sources", action="store_true", help="a source for each of the test data's; else one for all")
    parser.add_argument("--kept", action="store_true", help=f"only what {', '.join(FILTERS)} keep")
    parser.add_argument(
        "--wrong", type=int, metavar="N", help="print so many wrong ones of each kind, and nothing else"
    )
    parser.add_argument("--speed", type=int, metavar="N", help="speed over so many documents, and nothing else")
    return parser.parse_args()


def main() -> int:
    arguments = parsed()
    if not (DATA / "2_text").is_dir():
        print(f"passed over: {DATA / '2_text'} is not there; set CORPUSMILL_TEST_DATA")
        return 0
    if arguments.work is None:
        print("passed over: it trains for a quarter of an hour and keeps what it made; give --work FOLDER")
        return 0
    documents = load_texts(DATA / "2_text")
    if arguments.model:
        run = english(arguments.work, documents)
        rescore, said = scored_by(arguments.work, run, arguments.model), arguments.model.name
    else:
        entries = trained(arguments.work, documents, arguments.steps, arguments.save_every)
        entry = entries[-1] if arguments.at is None else next(one for one in entries if one.step == arguments.at)
        run, said = crawl(arguments.work, documents), f"Step {entry.step:,}, {entry.tokens_seen:,} tokens"
        rescore = scored(arguments.work, run, entry)
    if arguments.speed:
        print("\n".join(speed(rescore, documents, arguments.speed, 5)))
        return 0
    scores, gold = rescore.scores(), gold_of(run, rescore, documents)
    config = ChooseConfig.model_validate(json.loads(arguments.settings))
    language = np.array(scores.column("language").to_pylist())
    if not arguments.wrong:
        print(f"{said}; {cost_of(rescore)}.")
    for share in arguments.shares:
        rows = planted(language, gold, arguments.part, share, kept=arguments.kept)
        if arguments.wrong:
            chosen = choose_among(scores, rows, config, one_source=not arguments.sources)
            wrong_ones(scores, gold, rows, chosen, arguments.wrong)
            continue
        print(f"\n## {share:.0%} of it junk ({arguments.part} part)\n")
        found = lines(scores, gold, rows, config, one_source=not arguments.sources)
        print("\n".join(table_of(found, config.min_documents)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
