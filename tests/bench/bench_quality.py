"""Quality filtering against gold and beside other tools: what is kept of good text, what is dropped of junk, and how fast.

    python -m tests.bench.bench_quality --into bench/results/quality.md --verdicts FOLDER --settings FINEWEB2_CONFIGS \\
        --peers-python PATH...

Ours is the chain html_noise, length, rules, perplexity with default settings, over the presets of `rules`; steps that are not
registered are left out. Peers are run by tests/bench/quality_peers.py in the first interpreter of --peers-python that has
them, and their verdicts are kept in FOLDER, from which they are read the next time. `--into FILE` replaces everything in FILE
up to the heading `## What the wrong ones are`, which is written by hand. `--wrong good` or `--wrong junk` prints documents that
our chain judges wrongly and nothing else: that is test data, and not to be kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.bench.bench_language import revision
from tests.bench.bench_scale import _processor
from tests.bench.language_tools import ONE_THREAD
from tests.bench.quality_chain import CHAIN, PRESETS, Judge, broken_rules, named_languages, registered, violations
from tests.bench.quality_gold import (
    LABEL_OF,
    Document,
    Page,
    Part,
    half_of,
    load_pages,
    load_parts,
    load_texts,
    sentence_length,
)
from tests.bench.quality_peers import CHAINS
from tests.bench.quality_tables import (
    Chain,
    chains_table,
    classes_table,
    head,
    languages_table,
    others_table,
    pages_table,
    parts_table,
    rankings_table,
    reasons_table,
    row,
    rules_table,
)

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
DRIVER = Path(__file__).with_name("quality_peers.py")
BY_HAND = "## What the wrong ones are"

PEER_NAMES: Mapping[str, str] = {
    "datatrove": "datatrove as shipped",
    "datatrove-told": "datatrove told",
    "fineweb2": "FineWeb-2 settings",
    "nemo": "NeMo told",
    "data-juicer": "Data-Juicer",
}

NOTES = """\
`python -m tests.bench.bench_quality` over the shared test data. *good kept* is the share of documents whose gold is
good that a chain keeps, for each language and as mean over the languages, so that each counts the same; *junk
dropped* is of documents whose gold is junk. Degraded, mixed, neutral and short ones are told apart, and count neither
way. *held out*: the half of the documents whose id's SHA-256 begins with an odd byte; limits were tuned on the other
half. Both halves are of the same sources, and much of the junk of the same few generators: on pages of other kinds
less of it will be dropped, by any chain. Our chains are html_noise, length, `rules` with a preset, and `perplexity`
where it is named, with the language that our step `language` finds. Peers: each tool's own recipe in one process,
asked text by text, without its language identification and perplexity, for which it would load models from the
network. *told*: each text's language as the gold has it, which a user's pipeline would have to find out; texts
without one are told as English. *datatrove*: Gopher repetition, Gopher quality, C4 without its rule on end marks,
FineWeb, in FineWeb's order; *FineWeb-2 settings*: its pipeline and its limits and stop words for each language
(English, which has none, as FineWeb; Literary Chinese with the word splitter of Chinese, since its own is a model
from the network). *NeMo*: the heuristic recipes that NeMo Curator ships, for English and for other languages; a
filter that raises an exception has nothing against the text. *Data-Juicer*: its rules with their default limits.
MB/s: megabytes of UTF-8 for each second of processor time, of one process on one core of a machine that others used
too, loading left out; ours all steps together."""


class Texts(NamedTuple):
    """A set of texts with the language that peers are told."""

    names: Sequence[str]
    texts: Sequence[str]
    told: Sequence[str | None]


# -- peers ------------------------------------------------------------------------------------------


def interpreter(module: str, pythons: Sequence[str]) -> str | None:
    """The first interpreter that has a module, None where none has."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    for python in pythons:
        if subprocess.run([python, "-c", look], check=False).returncode == 0:
            return python
    return None


def peer_verdicts(chain: str, name: str, texts: Texts, arguments: argparse.Namespace) -> Chain | None:
    """What a peer's chain says of a set of texts, from its file or by running it; None where it can not be run.

    Raises:
        SystemExit: it failed.
    """
    out = arguments.verdicts / f"{chain}.{name}.jsonl"
    if not out.exists():
        python = interpreter(CHAINS[chain][0], arguments.peers_python)
        if python is None or (chain == "fineweb2" and arguments.settings is None):
            print(f"{chain}: not run, no interpreter of --peers-python has it, or no --settings", file=sys.stderr)
            return None
        given = arguments.verdicts / f"{name}.jsonl"
        rows = zip(texts.names, texts.texts, texts.told, strict=True)
        given.write_text(
            "".join(json.dumps({"id": a, "text": b, "lang": c}) + "\n" for a, b, c in rows), encoding="utf-8"
        )
        command = [python, str(DRIVER), chain, str(given), str(out)]
        command += ["--settings", str(arguments.settings)] if arguments.settings else []
        offline = {"HF_HUB_OFFLINE": "1", **os.environ, **ONE_THREAD}
        done = subprocess.run(command, capture_output=True, env=offline, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-3000:]}")
    return read_verdicts(chain, out)


def read_verdicts(chain: str, path: Path) -> Chain:
    summary, *rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    for what, number in summary.get("raised", {}).items():
        print(f"{path.name}: {what} {number} times", file=sys.stderr)
    verdicts = {one["id"]: one["reason"] for one in rows}
    return Chain(PEER_NAMES[chain], verdicts, summary["megabytes"] / summary["cpu"], summary["version"])


def peers(name: str, texts: Texts, arguments: argparse.Namespace) -> list[Chain]:
    if arguments.verdicts is None:
        return []
    arguments.verdicts.mkdir(parents=True, exist_ok=True)
    found = (peer_verdicts(chain, name, texts, arguments) for chain in CHAINS)
    return [one for one in found if one is not None]


# -- ours -------------------------------------------------------------------------------------------

Steps = list[tuple[str, dict[str, Any]]]


def our_chains() -> dict[str, Steps]:
    """By name, the steps of each of our chains that can be run."""
    first: Steps = [("html_noise", {}), ("length", {})]
    found = {"html_noise + length": first}
    if registered("rules"):
        for preset in PRESETS:
            found[f"`{preset}`"] = [*first, ("rules", {"preset": preset})]
    if registered("perplexity"):
        before = found.get("`massive`", first)
        found["`massive` + perplexity" if registered("rules") else "+ perplexity"] = [*before, ("perplexity", {})]
    return found


def ours(judge: Judge, names: Sequence[str], wanted: Sequence[str] | None = None) -> list[Chain]:
    """Verdicts of our chains; speed of all their steps together."""
    megabytes = sum(len(text.encode()) for text in judge.texts) / 1e6
    found = []
    for name, steps in our_chains().items():
        if wanted is None or name in wanted:
            verdicts = dict(zip(names, judge.verdicts(steps), strict=True))
            taken = sum(judge.seconds[step] for step, _ in steps)
            found.append(Chain(name, verdicts, megabytes / taken))
    return found


def last_chain() -> str:
    return list(our_chains())[-1]


# -- reports ----------------------------------------------------------------------------------------


def texts_report(documents: Sequence[Document], arguments: argparse.Namespace) -> Iterator[str]:
    names, texts = [one.name for one in documents], [one.text for one in documents]
    judge = Judge(texts, named_languages(texts))
    mine = ours(judge, names)
    others = peers("text", Texts(names, texts, [one.language for one in documents]), arguments)
    gold = Judge(texts, [LABEL_OF.get(one.language or "") for one in documents])
    told = [chain._replace(name=f"{chain.name}, gold's languages") for chain in ours(gold, names, [last_chain()])]
    yield f"## Good and junk: {len(documents):,} documents of `2_text`, {sum(len(t.encode()) for t in texts) / 1e6:.1f} MB\n"
    yield from chains_table(documents, [*mine, *told, *others])
    side_by_side = [*mine, *others]
    yield "\n## Good kept, by language\n"
    yield from languages_table(documents, side_by_side)
    yield "\n## Good kept, by language: held out\n"
    yield from languages_table(documents, side_by_side, "held out")
    yield "\n## Junk dropped, by class\n"
    yield from classes_table(documents, side_by_side)
    yield "\n## Junk dropped, by class: held out\n"
    yield from classes_table(documents, side_by_side, "held out")
    yield "\n## Neither good nor junk: kept\n"
    yield from others_table(documents, side_by_side)
    yield f"\n## What {mine[-1].name} drops, by first reason\n"
    yield from reasons_table(documents, mine[-1])
    if registered("rules"):
        yield "\n## Rules of `massive`, each by itself\n"
        yield from rules_table(documents, broken_rules(judge, {"preset": "massive"}))
    yield "\n## Speed, one core\n"
    yield from speed_table(judge, [*mine, *others])


def speed_table(judge: Judge, chains: Sequence[Chain]) -> Iterator[str]:
    """Of each of our steps, and of each chain beside ours."""
    megabytes = sum(len(text.encode()) for text in judge.texts) / 1e6
    mine = next(one.speed for one in chains if one.name == last_chain())
    yield from head("step or chain", "MB/s", "ours is faster by")
    for step, taken in judge.seconds.items():
        yield row(f"`{step}` by itself", f"{megabytes / taken:.1f}", "")
    for one in chains:
        if one.speed is not None and mine is not None:
            yield row(one.name, f"{one.speed:.2f}", f"{mine / one.speed:.1f}")


def parts_report(arguments: argparse.Namespace) -> Iterator[str]:
    parts, pages = load_parts(DATA / "6_quality"), load_pages(DATA / "6_quality")
    names, texts = [one.name for one in parts], [one.text for one in parts]
    judge = Judge(texts, named_languages(texts))
    wanted = [name for name in our_chains() if name in ("html_noise + length", "`massive`", last_chain())]
    english: list[str | None] = ["en"] * len(texts)
    yield "\n## Parts of web pages and reading levels: kept\n"
    yield from parts_table(parts, [*ours(judge, names, wanted), *peers("six", Texts(names, texts, english), arguments)])
    cut = page_texts(pages)
    of_pages = Judge(list(cut.values()), named_languages(list(cut.values())))
    told = Texts(list(cut), list(cut.values()), [None] * len(cut))
    yield "\n"
    yield from pages_table(pages, [*ours(of_pages, list(cut), wanted), *peers("pages", told, arguments)])
    yield "\n## How scores rank them, beside plain length\n"
    yield RANKED
    yield from rankings_table(parts, measures(parts, judge))


RANKED = """\
Share of pairs in which the better text has the higher score (area under the curve; ties count half): of all pairs, and of those
whose texts differ in length by a tenth at most, where length says nothing. Length alone orders most of them, so a score says
something only where it is above length in the first figure, or away from 0.5 in the second.
"""


def page_texts(pages: Sequence[Page]) -> dict[str, str]:
    found = {f"{one.name} {what}": getattr(one, what) for one in pages for what in ("main", "others", "whole")}
    return {name: text for name, text in found.items() if text.strip()}


def measures(parts: Sequence[Part], judge: Judge) -> dict[str, Any]:
    """What ranks parts: plain measures, and scores of our steps."""
    place = {one.name: at for at, one in enumerate(parts)}
    found: dict[str, Any] = {
        "length in characters": lambda one: float(len(one.text)),
        "sentence length in words": lambda one: sentence_length(one.text),
    }

    def by(values: Sequence[float], one: Part) -> float:
        return values[place[one.name]]

    if registered("rules"):
        broken = violations(judge, {"preset": "massive"})
        found["rules kept, of `massive`"] = partial(by, [-float(one) for one in broken])
        for preset in ("gopher", "fineweb"):
            found[f"rules kept, of `{preset}`"] = partial(
                by, [-float(one) for one in violations(judge, {"preset": preset})]
            )
    if registered("perplexity"):
        scores = judge.scored("perplexity", {})
        for column in ("bits_per_character", "perplexity"):
            values = [float("nan") if one is None else -one for one in scores.column(column).to_pylist()]
            found[f"low {column.replace('_', ' ')}"] = partial(by, values)
    return found


def wrong_report(documents: Sequence[Document], arguments: argparse.Namespace) -> Iterator[str]:
    """Documents that our whole chain judges wrongly, in a fixed random order, those of the half that limits were tuned on."""
    texts = [one.text for one in documents]
    judge = Judge(texts, named_languages(texts))
    (chain,) = ours(judge, [one.name for one in documents], [last_chain()])
    wanted = arguments.wrong == "good"
    labels = {one.name: label for one, label in zip(documents, judge.labels, strict=True)}
    wrong = [
        one for one in documents if one.quality == arguments.wrong and (chain.verdicts[one.name] is not None) == wanted
    ]
    random.Random(arguments.seed).shuffle(wrong)
    yield f"{len(wrong)} of {sum(one.quality == arguments.wrong for one in documents)} wrong"
    for one in wrong[: arguments.number]:
        told = f"{one.name} {one.language} as {labels[one.name]} {one.kind} {one.source} {half_of(one.name)}"
        yield f"\n=== {told} {chain.verdicts[one.name]} {len(one.text)} characters\n{one.text[: arguments.characters]}"


# -- the command ------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, help="file to write, its hand-written end kept")
    parser.add_argument("--verdicts", type=Path, help="folder of the peers' verdicts; without it no peer is asked")
    parser.add_argument("--settings", type=Path, help="folder of FineWeb-2's configs/*.yml")
    parser.add_argument("--peers-python", nargs="+", default=[], metavar="PATH")
    parser.add_argument("--wrong", choices=("good", "junk"))
    parser.add_argument("--number", type=int, default=50, help="documents of --wrong")
    parser.add_argument("--characters", type=int, default=1500, help="of each document of --wrong")
    parser.add_argument("--seed", type=int, default=0, help="of the order of --wrong")
    return parser.parse_args()


def report(arguments: argparse.Namespace) -> Iterator[str]:
    memory = psutil.virtual_memory().total / 2**30
    yield f"# Quality filtering, {datetime.now(timezone.utc):%Y-%m-%d}\n"
    machine = f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GB, Python {platform.python_version()}"
    yield f"{machine}; revision {revision()}; load {os.getloadavg()[0]:.1f} at the start.\n\n{NOTES}\n"
    missing = [name for name in CHAIN if not registered(name)]
    if missing:
        yield f"Not registered, and left out: {', '.join(missing)}.\n"
    yield from texts_report(load_texts(DATA / "2_text"), arguments)
    yield from parts_report(arguments)


def main() -> int:
    arguments = parse()
    if arguments.wrong:
        for line in wrong_report(load_texts(DATA / "2_text"), arguments):
            print(line)
        return 0
    text = "\n".join(report(arguments)) + "\n"
    if arguments.into is None:
        print(text)
        return 0
    old = arguments.into.read_text(encoding="utf-8") if arguments.into.exists() else ""
    _, heading, by_hand = old.partition(BY_HAND)
    arguments.into.write_text(f"{text}\n{heading}{by_hand}" if heading else text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
