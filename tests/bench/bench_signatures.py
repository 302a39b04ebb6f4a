"""Speed of MinHash, SimHash and their buckets on random shingles, on one core.

    python -m tests.bench.bench_signatures [--repeats 7] [--shingles 2000000]

CPU time, best of the repeats, since the machine may be shared. datasketch and simhash do the same work on a small part,
given the same hashes.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from datasketch import MinHash

from curation.dedup import hamming, minhash
from curation.dedup.sets import Shingles
from curation.dedup.simhash import fingerprints
from tests.bench.bench_text import seconds

with warnings.catch_warnings():  # of an escape in its source, when that is compiled for the first time
    warnings.simplefilter("ignore")
    from simhash import Simhash


def low_half(value: int) -> int:
    """What datasketch is given of a shingle."""
    return value & 0xFFFFFFFF


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--shingles", type=int, default=2_000_000)
    options = parser.parse_args()
    source = np.random.default_rng(1)
    values = source.integers(0, 2**64, options.shingles, np.uint64)
    print("| shingles a document | MinHash, 128: ns a shingle | datasketch | SimHash: ns a shingle | simhash |")
    print("|---|---|---|---|---|")
    for length in (5, 30, 300, 3000):
        found = Shingles(values, np.arange(0, len(values) + 1, length, np.int64))
        documents = values[: 3000 // length * length].reshape(-1, length).tolist()
        features = [[str(value) for value in document] for document in documents]

        def theirs(features: list[list[str]] = features) -> None:
            for document in features:
                Simhash(document, hashfunc=lambda text: 0 if text == b"test" else int(text))

        n, few = int(found.offsets[-1]), len(documents) * length
        cells = [
            seconds(lambda found=found: minhash.signatures(found, 128), options.repeats) / n,
            seconds(lambda documents=documents: MinHash.bulk(documents, num_perm=128, hashfunc=low_half), 1) / few,
            seconds(lambda found=found: fingerprints(found), options.repeats) / n,
            seconds(theirs, 1) / few,
        ]
        print(f"| {length:,} |", " | ".join(f"{cell * 1e9:,.2f}" for cell in cells), "|", flush=True)
    print("\n| documents | distance | tables | ns a document and table | ns a document, all tables |")
    print("|---|---|---|---|---|")
    for n in (10_000, 100_000, 1_000_000):
        numbers = np.arange(n, dtype=np.uint32)
        for distance in (3, 7):
            blocks, n_tables = hamming.plan_tables(n, distance)

            def one_table(n: int = n, k: int = distance, b: int = blocks, numbers: np.ndarray = numbers) -> None:
                hamming.links(values[:n], numbers, k, 1, b)

            cell = seconds(one_table, min(options.repeats, 3)) / n * 1e9
            print(f"| {n:,} | {distance} | {n_tables} | {cell:.0f} | {cell * n_tables:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
