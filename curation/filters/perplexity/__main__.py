"""Compile every kernel of the filter into the cache now, as when an image is built: `python -m curation.filters.perplexity`.

Takes about 10 s once; see `python -m curation.text`.
"""

from __future__ import annotations

import time

import pyarrow as pa

from curation.filters.perplexity import Perplexity, PerplexityConfig

TEXTS = ("A sentence of some words, read by one model.", "另一种文字的一句话。", "e\u0301\u0327 must be put together")


def main() -> None:
    begin = time.perf_counter()
    step = Perplexity(PerplexityConfig())
    step.ready()
    columns = [pa.array(TEXTS, pa.large_string()), pa.nulls(len(TEXTS), pa.string())]
    step.score(pa.RecordBatch.from_arrays(columns, names=list(step.needs)))
    print(f"kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
