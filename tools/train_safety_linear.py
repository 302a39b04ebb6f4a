"""Train the fast safety model, quality_models/weights/corpusmill-safety-linear.npz.

    python tools/train_safety_linear.py --rows rows.jsonl mixed.jsonl --harmless long_good.jsonl [--out FILE] [--share 0.003]

Rows have `text`, `labels` and `split` (only `train` is read). Harmless texts are cut into windows of the length that the
model judges, so that its bias holds for windows; of each label as many n-grams count as of the others (class weights).
Logistic regression by AdaGrad, one pass after another over the rows in a random order; about a minute.

At last each label's bias is moved, so that one half is what its worst window reaches in --share of the whole harmless
documents of --harmless: what the model says is then no probability, but one limit means the same for all labels.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.safety_model.linear import SEGMENT, feature_ids, label_probabilities
from quality_models.safety_labels import CATEGORY_NAMES
from quality_models.safety_linear import SHIPPED_LINEAR, read_linear, write_linear

BITS = 18
WINDOW = 2 * SEGMENT
MOST_WEIGHT = 8.0
SEED = 20261130
SHARES = ["hate=0.015", "spam=0.008", "fraud=0.005", "sexual=0.005", "gambling=0.005"]
"""Labels that are worth more documents read: at home in words that harmless texts have, too."""

Floats = npt.NDArray[np.float32]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=Path, nargs="+", required=True)
    options.add_argument("--out", type=Path, default=SHIPPED_LINEAR)
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--rate", type=float, default=0.5)
    options.add_argument("--harmless", type=Path, required=True)
    options.add_argument("--share", type=float, default=0.003)
    options.add_argument("--share-of", nargs="*", default=SHARES, metavar="LABEL=SHARE")
    given = options.parse_args()
    rows = read_rows(given.rows)
    weights, bias = train(rows, given.epochs, given.rate)
    write_linear(given.out, CATEGORY_NAMES, weights, bias)
    with given.harmless.open(encoding="utf-8") as lines:
        harmless = pa.array([json.loads(line)["text"] for line in lines], pa.large_string())
    found = label_probabilities(harmless, read_linear(given.out)).astype(np.float64)
    shares = {label: float(share) for label, _, share in (one.partition("=") for one in given.share_of)}
    columns = zip(CATEGORY_NAMES, found.T, strict=True)
    limits = [np.quantile(column, 1 - shares.get(name, given.share)) for name, column in columns]
    reached = np.array(limits).clip(1e-9, 1 - 1e-9)
    write_linear(given.out, CATEGORY_NAMES, weights, bias - np.log(reached / (1 - reached)).astype(np.float32))
    print(f"{given.out}: {given.out.stat().st_size:,} bytes, trained on {len(rows):,} rows")
    tell(rows, given.out)


def read_rows(paths: Iterable[Path]) -> list[tuple[str, tuple[str, ...]]]:
    """Texts, at most a window long where they are harmless, and their labels."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row: dict[str, Any] = json.loads(line)
                if row.get("split", "train") != "train":
                    continue
                text, labels = row["text"], tuple(row["labels"])
                if labels:
                    found.append((text, labels))
                else:
                    found += [(text[at : at + WINDOW], ()) for at in range(0, max(len(text), 1), WINDOW)][:3]
    random.Random(SEED).shuffle(found)
    return found


def train(rows: list[tuple[str, tuple[str, ...]]], epochs: int, rate: float) -> tuple[Floats, Floats]:
    """Weights float32[2 ** BITS, n_labels], bias float32[n_labels]."""
    ids, ends = feature_ids(pa.array([text for text, _ in rows], pa.large_string()), 1 << BITS)
    truth = np.array([[name in labels for name in CATEGORY_NAMES] for _, labels in rows], np.float32)
    counts = truth.sum(axis=0)
    print(dict(zip(CATEGORY_NAMES, counts.astype(int).tolist(), strict=True)), "of", len(rows))
    heavy = np.clip(np.sqrt(len(rows) / np.maximum(counts, 1) / 10), 1, MOST_WEIGHT).astype(np.float32)
    weights = np.zeros((1 << BITS, len(CATEGORY_NAMES)), np.float32)
    squares = np.full_like(weights, 1e-8)
    bias = np.full(len(CATEGORY_NAMES), -3.0, np.float32)
    for epoch in range(epochs):
        order = np.random.default_rng(SEED + epoch).permutation(len(rows))
        loss = _epoch(ids, ends, truth, heavy, weights, squares, bias, order, rate)
        print(f"epoch {epoch + 1}: loss {loss / len(rows):.4f}", flush=True)
    return weights, bias


@numba.njit(fastmath=True)
def _epoch(ids, ends, truth, heavy, weights, squares, bias, order, rate):  # type: ignore[no-untyped-def]
    total, n_labels = 0.0, truth.shape[1]
    logits = np.zeros(n_labels, np.float32)
    for row in order:
        start, end = ends[row], ends[row + 1]
        if end == start:
            continue
        logits[:] = 0
        for i in range(start, end):
            for k in range(n_labels):
                logits[k] += weights[ids[i], k]
        share = 1.0 / (end - start)
        for k in range(n_labels):
            p = 1 / (1 + np.exp(-(bias[k] + logits[k] * share)))
            y = truth[row, k]
            heavier = heavy[k] if y > 0 else 1.0
            total -= heavier * (y * np.log(max(p, 1e-7)) + (1 - y) * np.log(max(1 - p, 1e-7)))
            logits[k] = heavier * (p - y)
            bias[k] -= 0.01 * rate * logits[k]
        for i in range(start, end):
            for k in range(n_labels):
                slope = logits[k] * share
                squares[ids[i], k] += slope * slope
                weights[ids[i], k] -= rate * slope / np.sqrt(squares[ids[i], k])
    return total


def tell(rows: list[tuple[str, tuple[str, ...]]], path: Path) -> None:
    """Print how often the model is suspicious of what it was trained on, by label."""
    model = read_linear(path)
    texts = [text for text, _ in rows]
    found = label_probabilities(pa.array(texts, pa.large_string()), model).max(axis=1)
    seen: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for (_, labels), p in zip(rows, found.tolist(), strict=True):
        for label in labels or ("harmless",):
            seen[label] += 1
            caught[label] += p >= 0.5
    print({label: f"{caught[label] / seen[label]:.3f}" for label in seen})


if __name__ == "__main__":
    main()
