"""Tables for the model card: what the model was trained on, and how well it names held-out words, pairs and sentences.

Labels with text of other sources than the UDHR are called main languages here, the others outsiders: 10 kB
of one text each, there so that what is written in them is not taken for a main language.
Read and scored with the product's own reader and kernel. Takes 20 s for 40,000 texts.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from curation.filters.language.fasttext import FastText
from quality_models.fasttext_file import read_fasttext
from tools.language_model.fragments import Folded, Lines, pieces
from tools.language_model.nonsense import NO_LANGUAGE

__all__ = ["main_labels", "predict", "tables"]

LEAST_OTHER = 5000
FEWEST = 20
"""Held-out texts that a language needs for a line of its own in the table of the weakest."""


def main_labels(lines: Lines) -> set[str]:
    """Labels with LEAST_OTHER characters of other text than translations of the UDHR; nonsense is no language."""
    others = {
        label: sum(len(text) for source, some in sources.items() if source != "udhr" for text in some)
        for label, sources in lines.items()
    }
    return {label for label, size in others.items() if size >= LEAST_OTHER and label != NO_LANGUAGE}


def predict(path: Path, texts: Sequence[str]) -> list[str]:
    """The first label of each text; "" where the model knows no part of it."""
    model = read_fasttext(path)
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    labels, _ = FastText(model).top(np.frombuffer(b"".join(parts), np.uint8), ends[:-1], ends[1:])
    return [model.labels[label] if label >= 0 else "" for label in labels.tolist()]


def mean_recall(gold: Iterable[str], found: Iterable[str], labels: set[str]) -> float:
    """Share of texts named rightly, the mean over languages, so that each counts the same."""
    right: defaultdict[str, list[bool]] = defaultdict(list)
    for truth, label in zip(gold, found, strict=True):
        if truth in labels:
            right[truth].append(truth == label)
    return float(np.mean([np.mean(some) for some in right.values()])) if right else float("nan")


def _sources_table(lines: Lines, held_out: list[Folded]) -> str:
    rows = ["| source | labels | texts | MB | held out |", "| --- | --- | --- | --- | --- |"]
    for source in sorted({source for sources in lines.values() for source in sources}):
        some = [sources[source] for sources in lines.values() if source in sources]
        size = sum(len(text.encode()) for texts in some for text in texts) / 1e6
        held = sum(text.source == source for text in held_out)
        rows.append(f"| {source} | {len(some)} | {sum(map(len, some)):,} | {size:.1f} | {held:,} |")
    return "\n".join(rows)


def _accuracy_table(path: Path, held_out: list[Folded], main: set[str]) -> str:
    titles = ["source", "length", "main: texts", "main: right", "main: named an outsider"]
    titles += ["outsiders: texts", "outsiders: right", "outsiders: named a main"]
    rows = [f"| {' | '.join(titles)} |", f"| {' | '.join(['---'] * len(titles))} |"]
    names = sorted({text.source for text in held_out})
    for name, chosen in [*((name, {name}) for name in names), ("all", set(names))]:
        for length, texts in pieces([text for text in held_out if text.source in chosen]).items():
            gold = [label for label, _ in texts]
            found = predict(path, [text for _, text in texts])
            cells = [name, length]
            for known in (True, False):
                pairs = [(truth, label) for truth, label in zip(gold, found, strict=True) if (truth in main) == known]
                labels = {truth for truth, _ in pairs}
                wrong = sum(label != "" and (label in main) != known for _, label in pairs) / max(len(pairs), 1)
                right = mean_recall(gold, found, labels)
                cells += [f"{len(pairs):,}", f"{right:.1%}", f"{wrong:.1%}"] if pairs else ["0", "", ""]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _weakest(path: Path, held_out: list[Folded], main: set[str], most: int = 25) -> str:
    """The main languages whose held-out sentences are named rightly least often, and what they are taken for."""
    texts = pieces(held_out)["sentences"]
    found = predict(path, [text for _, text in texts])
    named: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (label, _), other in zip(texts, found, strict=True):
        named[label][other] += 1
    shares = sorted((some[label] / some.total(), label) for label, some in named.items() if some.total() >= FEWEST)
    rows = ["| label | sentences | right | taken for |", "| --- | --- | --- | --- |"]
    for share, label in [row for row in shares if row[1] in main][:most]:
        others = ", ".join(f"{other} {n}" for other, n in named[label].most_common(4) if other != label)
        rows.append(f"| {label} | {named[label].total()} | {share:.0%} | {others} |")
    return "\n".join(rows)


def tables(path: Path, lines: Lines, held_out: list[Folded]) -> str:
    """Markdown: sources, labels, results by source and length, weakest languages, checksum of the model."""
    main = main_labels(lines)
    data = path.read_bytes()
    labels = set(read_fasttext(path).labels)
    return "\n\n".join(
        (
            f"{len(labels)} labels; {len(labels & main)} main: {', '.join(sorted(labels & main))}",
            f"outsiders: {', '.join(sorted(labels - main))}",
            _sources_table(lines, held_out),
            _accuracy_table(path, held_out, main),
            _weakest(path, held_out, main),
            f"{len(data):,} bytes, SHA-256 `{hashlib.sha256(data).hexdigest()}`",
        )
    )
