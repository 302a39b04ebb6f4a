"""Safety filtering on groups that were never trained on, on good documents, against disguises, and how fast.

    python -m tests.bench.bench_safety --into bench/results/safety.md [--public FILE] [--own FILE] [--train FILE]
        [--model NAME_OR_FOLDER] [--scores FOLDER] [--peers-python PATH...] [--words FOLDER]

--public and --own are files of tools/make_safety_public.py and tools/make_safety_rows.py, of which the rows of split `test` are
read; without --own these are made anew. --train is what our models were trained on, for fastText to be trained on the same.
--scores keeps what took time. Peers (`safety_peers`) are run by the first interpreter of --peers-python that has them. `--into
FILE` replaces everything in FILE up to the heading `## What the wrong ones are`, which is written by hand. `--wrong GROUP`
prints the rows of a group that terms and model together judge wrongly, `--wrong good` the good documents that they drop: test
data, not to be kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from tests.bench.bench_language import revision
from tests.bench.bench_quality import interpreter
from tests.bench.bench_scale import _processor
from tests.bench.language_tools import ONE_THREAD
from tests.bench.quality_chain import named_languages
from tests.bench.quality_gold import Document, load_texts
from tests.bench.quality_tables import head, row
from tests.bench.safety_cascade import (
    Read,
    cascade_table,
    drawn,
    good_table,
    languages_table,
    model_flagged_table,
    read_documents,
    speed_table,
    terms_flagged_table,
)
from tests.bench.safety_disguises import disguises_report
from tests.bench.safety_gold import Row, capped, load_own, load_public, load_shared, load_suite
from tests.bench.safety_judges import (
    FastText,
    Kept,
    either,
    linear_margins,
    logit,
    model_filter,
    only_where,
    said_by_model,
    said_by_terms,
)
from tests.bench.safety_peers import PEERS
from tests.bench.safety_tables import (
    Sheet,
    best_table,
    categories_table,
    groups_table,
    harmless_table,
    losses_table,
    means_table,
    parts_table,
    shifts_table,
)

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
DRIVER = Path(__file__).with_name("safety_peers.py")
BY_HAND = "## What the wrong ones are"
Doubles = npt.NDArray[np.float64]

TERMS, MODEL, BOTH, SHIPPED, LINEAR = "terms", "model", "terms + model", "as shipped", "linear"
FASTTEXT, PROFANITY = "fastText", "alt-profanity-check"

NOTES = """\
`python -m tests.bench.bench_safety`, one run for all systems. *terms*: `safety_terms` with default settings. *model*: `safety_model`, scope
all, thresholds as shipped. *terms + model*: dropped by either. *as shipped*: dropped by terms, or by the model where the cascade
has it read (its scope by default). *linear*: the fast model of the cascade, at the limit from which that reads a document: a
gate, set low, no verdict. *fastText*: supervised on the rows that our model was trained on, threshold of best F1 on 5 % of
their patterns. *alt-profanity-check*: English only, at 0.5. Intervals: Wilson, 95 %."""


RANKING = """\
What thresholds do not decide: F1 at the threshold that is best for each group and system · area under the curve · average
precision · recall at the threshold where precision is .9 were both classes as many. Of a group that is mostly unsafe the best F1 is
high for any system, one that drops everything too; the others compare:"""


# -- systems ----------------------------------------------------------------------------------------


def own_rows(path: Path | None) -> list[Row]:
    """Our own held-out rows, from a file or made anew."""
    if path is not None:
        return load_own(path)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.jsonl"
        tool = REPO / "tools" / "make_safety_rows.py"
        command = [sys.executable, str(tool), "--split", "test", "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        return load_own(out)


def gold_rows(arguments: argparse.Namespace) -> list[Row]:
    rows = load_shared(DATA / "5_safety") + own_rows(arguments.own) + load_suite()
    if arguments.public is not None:
        rows += load_public(arguments.public)
    return capped(rows, arguments.most)


def peer(
    name: str, texts: Sequence[str], languages: Sequence[str | None], arguments: argparse.Namespace
) -> tuple[Doubles, float] | None:
    """Margins of a peer and its seconds of processor time; None where no interpreter has it.

    Raises:
        SystemExit: it failed.
    """
    module, _, _, limit = PEERS[name]
    python = interpreter(module, arguments.peers_python)
    if python is None or (name != PROFANITY and arguments.words is None):
        print(f"{name}: left out, no interpreter of --peers-python has it, or no --words", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "texts.jsonl", Path(folder) / "answers.jsonl"
        rows = zip(texts, languages, strict=True)
        given.write_text("".join(json.dumps({"text": a, "lang": b}) + "\n" for a, b in rows), encoding="utf-8")
        command = [python, str(DRIVER), name, str(given), str(out)]
        command += ["--words", str(arguments.words)] if arguments.words else []
        done = subprocess.run(command, capture_output=True, env={**os.environ, **ONE_THREAD}, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-3000:]}")
        summary, *numbers = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    return logit(numbers) - logit([limit]), float(summary["cpu"])


class Judges:
    """All systems of a run, each as a function from texts to margins."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.kept = Kept(arguments.scores)
        self.all = model_filter(arguments.model)
        self.cascade = model_filter(arguments.model, "cascade")
        folder = arguments.scores or Path(tempfile.mkdtemp())
        self.fasttext = FastText(arguments.train, folder) if arguments.train else None

    def model(self, texts: Sequence[str], languages: Sequence[str | None] | None = None) -> Doubles:
        told = named_languages(texts) if languages is None else languages
        return said_by_model(self.all, texts, told, [0] * len(texts), self.kept).margins

    def margins(self, texts: Sequence[str]) -> dict[str, Doubles]:
        """Of all systems but peers."""
        terms = said_by_terms(texts)
        model, linear = self.model(texts), linear_margins(texts)
        read = (terms.scores.column("hits").to_numpy() > 0) | (linear >= 0)
        found = {TERMS: terms.margins, MODEL: model, BOTH: either(terms.margins, model)}
        found[SHIPPED] = either(terms.margins, only_where(read, model))
        found[LINEAR] = linear
        if self.fasttext is not None:
            found[FASTTEXT] = self.fasttext.margins(texts)
        return found

    def by_name(self) -> Mapping[str, Callable[[Sequence[str]], Doubles]]:
        """The same one by one; each call judges anew what it is given."""
        names = [TERMS, MODEL, BOTH, SHIPPED, *([FASTTEXT] if self.fasttext else [])]
        found: dict[str, Callable[[Sequence[str]], Doubles]] = {TERMS: lambda texts: said_by_terms(texts).margins}
        for name in names[1:]:
            found[name] = lambda texts, of=name: self.margins(texts)[of]  # type: ignore[misc]
        return found


def sheet_of(rows: list[Row], judges: Judges, arguments: argparse.Namespace) -> Sheet:
    sheet = Sheet(rows, judges.margins([one.text for one in rows]))
    english = np.array([one.lang == "en" for one in rows])
    places = np.flatnonzero(english)
    said = peer(PROFANITY, [rows[i].text for i in places], ["en"] * len(places), arguments)
    if said is not None:
        margins = np.full(len(rows), np.nan)
        margins[places] = said[0]
        sheet.margins[PROFANITY], sheet.asked[PROFANITY] = margins, english
    return sheet


# -- reports ----------------------------------------------------------------------------------------


def groups_report(sheet: Sheet, judges: Judges) -> Iterator[str]:
    yield f"## Groups that were never trained on: {len(sheet.rows):,} rows\n"
    if (own := judges.fasttext) is not None:
        told = f"{own.rows:,} rows in {own.seconds:.0f} s, {own.size / 1e6:.0f} MB"
        yield f"fastText: trained on {told}; F1 {own.dev_f1:.3f} on {own.dev_rows:,} rows of its own.\n"
    yield "F1 (precision / recall), every system as it is set:\n"
    yield from groups_table(sheet)
    yield f"\n{RANKING}\n"
    yield from best_table(sheet)
    yield "\n## Means over groups: F1 as set · best F1 · area under the curve · average precision · recall at .9\n"
    yield from means_table(sheet, families(sheet))
    yield "\n## The model with lower thresholds, in log odds\n"
    yield from shifts_table(sheet, MODEL, families(sheet))
    yield "\n## Our own sentences, by language and category: F1 (precision / recall), recall at .9\n"
    yield from categories_table(sheet, [one for one in sheet.margins if one not in (PROFANITY, BOTH)])
    yield "\n## Recall by kind of unsafe row\n"
    yield from parts_table(sheet)
    yield "\n## Harmless rows that are dropped\n"
    yield from harmless_table(sheet, harmless_groups(sheet))
    yield "\n## What the cascade loses of unsafe rows\n"
    yield from losses_table(sheet, BOTH, SHIPPED)


def harmless_groups(sheet: Sheet) -> dict[str, list[int]]:
    parts: dict[str, list[int]] = {}
    for place, one in enumerate(sheet.rows):
        if not one.unsafe:
            name = one.group if one.group.startswith(("own", "HateCheck")) else f"{one.group}: {one.part}"
            parts.setdefault(name, []).append(place)
    hard = sheet.places(lambda one: not one.unsafe and one.hard and not one.group.startswith(("own", "HateCheck")))
    everything = sheet.places(lambda one: not one.unsafe and one.hard)
    return {"**hard negatives of `5_safety`**": hard, "**all hard negatives**": everything, **parts}


FAMILIES: Mapping[str, tuple[str, ...]] = {
    "adverts and euphemism": ("tg-spam zh", "by hand, adverts", "by hand, euphemism", "umputun"),
    "adverts and more, our own sentences": ("own", "suite"),
    "offensive language": ("Korean comments", "COLD region", "surge-ai en", "HateCheck"),
}


def families(sheet: Sheet) -> dict[str, list[str]]:
    """Groups by family, and of each family those in Chinese and English."""
    found: dict[str, list[str]] = {}
    for name, prefixes in FAMILIES.items():
        groups = [one for one in sheet.mixed() if one.startswith(prefixes)]
        found |= {name: groups, f"{name}: zh and en": [one for one in groups if _zh_or_en(one)]}
    return {name: groups for name, groups in found.items() if groups}


def _zh_or_en(group: str) -> bool:
    return group.startswith(("COLD", "by hand")) or group.endswith((" zh", " en"))


def read_some(documents: list[Document], judges: Judges, arguments: argparse.Namespace) -> Read:
    """A draw of documents as the model sees them."""
    some = [documents[i] for i in drawn(documents, arguments.documents)]
    texts = [one.text for one in some]
    steps = (judges.cascade, judges.all)
    return read_documents(some, named_languages(texts), steps, said_by_terms(texts), arguments.sample, judges.kept)


def good_report(documents: list[Document], judges: Judges, arguments: argparse.Namespace) -> Iterator[str]:
    """What needs no large model, of all good documents."""
    good = [one for one in documents if one.quality == "good"]
    texts, languages = [one.text for one in good], [one.language for one in good]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    terms = said_by_terms(texts)
    found = {TERMS: terms.margins}
    if judges.fasttext is not None:
        found[FASTTEXT] = judges.fasttext.margins(texts)
    found["linear, read by the cascade"] = linear_margins(texts)
    speeds = []
    for name in ("datatrove", "data-juicer"):
        if (said := peer(name, texts, languages, arguments)) is not None:
            found[f"{name}'s bad words"] = said[0]
            speeds.append(row(f"{name}'s bad words", f"{megabytes / max(said[1], 0.01):.1f}"))
    yield f"\n## Good documents of `2_text` that are dropped: all {len(good):,}\n"
    yield from good_table(good, {name: margins >= 0 for name, margins in found.items()})
    if speeds:
        yield "\n"
        yield from head("peer, on the same documents", "MB/s, one core")
        yield from speeds
    yield "\n### Those that terms drop, one by one\n"
    yield from terms_flagged_table(good, terms)


def documents_report(documents: list[Document], judges: Judges, arguments: argparse.Namespace) -> Iterator[str]:
    """What the model does to a draw of documents, and what it costs."""
    read = read_some(documents, judges, arguments)
    yield f"\n## Documents as the model sees them: {len(read.documents):,} of `2_text`, drawn by language and quality\n"
    yield from languages_table(read)
    yield "\n## What the cascade reads and misses\n"
    yield from cascade_table(read)
    yield "\n## Speed\n"
    yield from speed_table(documents, (judges.all, judges.cascade), arguments.timed)
    yield "\n## Good documents that the model drops, one by one\n"
    yield from model_flagged_table(read)


def wrong_documents(documents: list[Document], judges: Judges, arguments: argparse.Namespace) -> Iterator[str]:
    """Good documents that terms or model drop, with the text around what decided."""
    good = [one for one in documents if one.quality == "good"]
    terms = said_by_terms([one.text for one in good])
    for one, reason, matched in zip(good, terms.reasons, terms.scores.column("matched").to_pylist(), strict=True):
        if reason is not None:
            yield f"=== {one.name} {one.language} {reason} {matched[:300]}\n{one.text[:400]!r}"
            for hit in json.loads(matched)[:4]:
                around = one.text.encode()[max(hit[2] - 120, 0) : hit[3] + 120]
                yield f"   ...{around.decode(errors='ignore')!r}"
    read = read_some(documents, judges, arguments)
    for said, places in ((read.model, range(len(read.documents))), (read.sampled, read.sample)):
        for at, place in enumerate(places):
            one = read.documents[place]
            if said.reasons[at] is not None and one.quality == "good":
                begin, end = (said.scores.column(f"worst_{what}")[at].as_py() for what in ("begin", "end"))
                window = one.text.encode()[begin:end].decode(errors="ignore")
                label = said.scores.column("worst_label")[at].as_py()
                value = said.scores.column(label)[at].as_py()
                yield f"=== {one.name} {one.language} {said.reasons[at]} {label} {value:.3f}\n{one.text[:200]!r}\n   ...{window!r}"


def wrong_report(arguments: argparse.Namespace, judges: Judges) -> Iterator[str]:
    """Texts that terms or model judge wrongly."""
    if arguments.wrong == "good":
        yield from wrong_documents(load_texts(DATA / "2_text"), judges, arguments)
        return
    rows = [one for one in gold_rows(arguments) if one.group.startswith(arguments.wrong)]
    found = judges.margins([one.text for one in rows])
    for i, one in enumerate(rows):
        if (found[SHIPPED][i] >= 0) != one.unsafe:
            said = " ".join(f"{name} {values[i]:.1f}" for name, values in found.items())
            yield f"{'MISSED' if one.unsafe else 'DROPPED'} {one.lang} {one.part} [{said}] {one.text[:300]!r}"


# -- the command ------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, help="file to write, its hand-written end kept")
    parser.add_argument("--public", type=Path, help="rows of tools/make_safety_public.py")
    parser.add_argument("--own", type=Path, help="rows of tools/make_safety_rows.py; left out: made anew")
    parser.add_argument("--train", type=Path, help="rows that our model was trained on, for fastText")
    parser.add_argument("--model", default="corpusmill")
    parser.add_argument("--scores", type=Path, help="folder that keeps scores by text and model")
    parser.add_argument("--peers-python", nargs="+", default=[], metavar="PATH")
    parser.add_argument("--words", type=Path, help="folder of the bad words that peers fetch")
    parser.add_argument("--most", type=int, default=1500, help="rows of a group, language and label")
    parser.add_argument("--documents", type=int, default=150, help="documents of a language and quality for the model")
    parser.add_argument(
        "--sample", type=int, default=30, help="documents of a language and quality that scope all reads"
    )
    parser.add_argument("--timed", type=int, default=150, help="documents that the model is timed on")
    parser.add_argument("--wrong", help="a group's name, its beginning, or good")
    parser.add_argument(
        "--parts", nargs="+", default=["groups", "good", "disguises"], choices=["groups", "good", "disguises"]
    )
    return parser.parse_args()


def report(arguments: argparse.Namespace, judges: Judges) -> Iterator[str]:
    memory = psutil.virtual_memory().total / 2**30
    yield f"# Safety filtering, {datetime.now(timezone.utc):%Y-%m-%d}\n"
    machine = f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GB, Python {platform.python_version()}"
    yield f"{machine}; revision {revision()}; load {os.getloadavg()[0]:.1f} at the start.\n\n{NOTES}\n"
    if "groups" in arguments.parts:
        yield from groups_report(sheet_of(gold_rows(arguments), judges, arguments), judges)
    if "disguises" in arguments.parts:
        yield "\n## Disguises\n"
        yield from disguises_report(judges.by_name())
    if "good" in arguments.parts:
        documents = load_texts(DATA / "2_text")
        yield from good_report(documents, judges, arguments)
        yield from documents_report(documents, judges, arguments)


def main() -> int:
    arguments = parse()
    judges = Judges(arguments)
    if arguments.wrong:
        for line in wrong_report(arguments, judges):
            print(line)
        return 0
    text = "\n".join(report(arguments, judges)) + "\n"
    if arguments.into is None:
        print(text)
        return 0
    old = arguments.into.read_text(encoding="utf-8") if arguments.into.exists() else ""
    _, heading, by_hand = old.partition(BY_HAND)
    arguments.into.write_text(f"{text}\n{heading}{by_hand}" if heading else text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
