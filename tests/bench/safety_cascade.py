"""What the safety filters do to ordinary documents: false alarms by language, what the cascade reads and misses, and what all costs."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.safety_model import SafetyModel
from curation.filters.safety_model.linear import suspicion
from curation.filters.safety_model.model import open_linear_model
from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig
from curation.safety_facts import cascade_facts
from tests.bench.quality_gold import Document
from tests.bench.quality_tables import head, row
from tests.bench.safety_judges import Kept, Said, model_batch, said_by_model
from tests.bench.safety_tables import share_cell
from tests.fakes import batch_for

__all__ = [
    "Read",
    "cascade_table",
    "drawn",
    "good_table",
    "languages_table",
    "model_flagged_table",
    "read_documents",
    "speed_table",
    "terms_flagged_table",
]

Mask = npt.NDArray[np.bool_]


@dataclass
class Read:
    """Documents as the filters see them. model: by the cascade; sample: of those it does not read, places and what scope `all` says."""

    documents: list[Document]
    terms: Said
    model: Said
    sample: list[int]
    sampled: Said

    @property
    def by_terms(self) -> Mask:
        return np.array([reason is not None for reason in self.terms.reasons])

    @property
    def by_model(self) -> Mask:
        return np.array([reason is not None for reason in self.model.reasons])

    @property
    def asked(self) -> npt.NDArray[np.str_]:
        return np.array(self.model.scores.column("asked").to_pylist())


def order(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def read_documents(
    documents: list[Document],
    languages: Sequence[str | None],
    steps: tuple[SafetyModel, SafetyModel],
    terms: Said,
    each: int,
    kept: Kept,
) -> Read:
    """steps: the model as a cascade, and the one that reads all. each: documents of a language and quality of the sample."""
    texts = [one.text for one in documents]
    hits = terms.scores.column("hits").to_pylist()
    model = said_by_model(steps[0], texts, languages, hits, kept)
    not_read = [i for i, why in enumerate(model.scores.column("asked").to_pylist()) if why == "no"]
    taken: Counter[tuple[str | None, bool]] = Counter()
    sample = []
    for i in sorted(not_read, key=lambda place: order(texts[place])):
        key = (documents[i].language, documents[i].quality == "good")
        if taken[key] < each:
            taken[key] += 1
            sample.append(i)
    some = ([texts[i] for i in sample], [languages[i] for i in sample], [hits[i] for i in sample])
    return Read(documents, terms, model, sample, said_by_model(steps[1], *some, kept))


# -- tables -----------------------------------------------------------------------------------------


def drawn(documents: Sequence[Document], most: int) -> list[int]:
    """Places of at most so many documents of each language and quality, chosen by hash."""
    taken: Counter[tuple[str | None, str]] = Counter()
    found = []
    for i in sorted(range(len(documents)), key=lambda place: order(documents[place].text)):
        key = (documents[i].language, documents[i].quality)
        if taken[key] < most:
            taken[key] += 1
            found.append(i)
    return sorted(found)


def good_table(documents: Sequence[Document], dropped: dict[str, Mask]) -> Iterator[str]:
    """Share of good documents that systems drop, by language. dropped: of all documents."""
    yield from head("language", "good documents", *dropped)
    for language, places in _by_language(documents):
        yield row(language, len(places), *(share_cell(int(of[places].sum()), len(places)) for of in dropped.values()))


def _by_language(documents: Sequence[Document]) -> Iterator[tuple[str, list[int]]]:
    """Places of good documents, most first, those of all languages last."""
    good = [i for i, one in enumerate(documents) if one.quality == "good"]
    languages = Counter(documents[i].language for i in good)
    for language, _ in languages.most_common():
        yield str(language), [i for i in good if documents[i].language == language]
    yield "all", good


def languages_table(read: Read) -> Iterator[str]:
    """Good documents dropped by language, as the filters run, and of those that the cascade does not read a part."""
    missed = {i for i, reason in zip(read.sample, read.sampled.reasons, strict=True) if reason is not None}
    systems = {"terms": read.by_terms, "model, cascade": read.by_model, "as shipped": read.by_terms | read.by_model}
    yield from head("language", "good documents", *systems, "read by the cascade", "not read: dropped of sampled")
    for language, places in _by_language(read.documents):
        sampled = set(places) & set(read.sample)
        cells = [share_cell(int(of[places].sum()), len(places)) for of in systems.values()]
        asked = (read.asked[places] != "no").mean()
        yield row(language, len(places), *cells, f"{asked:.1%}", f"{len(sampled & missed)} of {len(sampled)}")


def terms_flagged_table(documents: Sequence[Document], terms: Said) -> Iterator[str]:
    """Good documents that terms drop, and their hits."""
    yield from head("document", "language", "category", "hits")
    for one, reason, matched in zip(documents, terms.reasons, terms.scores.column("matched").to_pylist(), strict=True):
        if reason is not None:
            shown = ", ".join(dict.fromkeys(f"{hit[1]} ({hit[0]})" for hit in json.loads(matched)))
            yield row(one.name, one.language, reason.partition(".")[2], shown.replace("|", "\\|")[:160])


def model_flagged_table(read: Read) -> Iterator[str]:
    """Good documents that the model drops, by the cascade or of those that it does not read."""
    yield from head("document", "language", "asked", "category", "label, probability, window")
    sampled = {i: (read.sampled, at) for at, i in enumerate(read.sample) if read.sampled.reasons[at] is not None}
    for i, one in enumerate(read.documents):
        said, at = sampled.get(i, (read.model, i))
        if one.quality == "good" and (reason := said.reasons[at]) is not None:
            yield row(one.name, one.language, read.asked[i], reason.partition(".")[2], _label(said, at))


def _label(said: Said, at: int) -> str:
    label = said.scores.column("worst_label")[at].as_py()
    place = [said.scores.column(name)[at].as_py() for name in ("worst_begin", "worst_end", "windows")]
    value = said.scores.column(label)[at].as_py() if label else math.nan
    return f"{label} {value:.3f}, bytes {place[0]} to {place[1]}, {place[2]} windows"


def cascade_table(read: Read) -> Iterator[str]:
    """What is read and why, and what is missed: measured on the sample, and as the audit's own estimate has it."""
    asked, dropped = read.asked, read.by_model
    yield from head("asked", "documents", "dropped by the model")
    for why in ("terms", "linear", "audit", "no"):
        yield row(why, int((asked == why).sum()), int(dropped[asked == why].sum()) if why != "no" else "")
    found = sum(reason is not None for reason in read.sampled.reasons)
    n, not_read, known = len(read.sample), int((asked == "no").sum()), int(dropped.sum())
    expected = found / max(n, 1) * not_read
    yield f"\nMeasured: of {n} documents not read, the model drops {share_cell(found, n)}; that is some {expected:.0f} of all "
    yield f"{not_read:,} not read, {expected / max(expected + known, 1):.1%} of all that it would drop "
    yield f"({known} were found). The sample holds as many of each language and quality, so it is no plain share.\n"
    audit, wrong = int((asked == "audit").sum()), int(dropped[asked == "audit"].sum())
    yield f"The audit's estimate, as reports have it: `{json.dumps(cascade_facts(audit, wrong, not_read), default=str)}`"


# -- speed ------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Least processor time of a few runs."""
    found = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def speed_table(documents: Sequence[Document], steps: tuple[SafetyModel, SafetyModel], number: int) -> Iterator[str]:
    """Kernels on pages of two languages, and the model on a draw of documents of all kinds, in seconds of one core."""
    yield from head("what", "text", "MB", "MB/s, one core")
    terms = SafetyTerms(SafetyTermsConfig())
    for language in ("en", "zh"):
        texts = [one.text for one in documents if one.language == language and one.quality == "good"][:600]
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        batch, array = batch_for(terms, texts), pa.array(texts, pa.large_string())
        took = {
            "terms": seconds(partial(terms.score, batch)),
            "linear": seconds(partial(suspicion, array, open_linear_model())),
        }
        for name, value in took.items():
            yield row(name, f"pages in {language}", f"{megabytes:.1f}", f"{megabytes / value:.0f}")
    some = sorted(documents, key=lambda one: order("speed" + one.text))[:number]
    texts = [one.text for one in some]
    hits = terms.score(batch_for(terms, texts)).column("hits").to_pylist()
    yield "\n"
    yield from head(
        "model", "documents", "windows", "documents read", "documents/s, one core", "documents/s by the clock"
    )
    for step in steps:
        step.score(model_batch(step, texts[:2], [None] * 2, [1, 1]))
        wall, cpu = time.perf_counter(), time.process_time()
        scores = step.score(model_batch(step, texts, [None] * len(texts), hits))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        windows = np.array(scores.column("windows").to_pylist())
        yield row(
            step.config.scope,
            len(texts),
            windows.sum(),
            (windows > 0).sum(),
            f"{len(texts) / cpu:.1f}",
            f"{len(texts) / wall:.1f}",
        )
