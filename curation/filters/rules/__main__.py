"""Compile every kernel of the filter into the cache now, as when an image is built: `python -m curation.filters.rules`.

Takes some 60 s once; see `python -m curation.text`.
"""

from __future__ import annotations

import time

import pyarrow as pa

from curation.filters.rules import Rules, RulesConfig

TEXTS = (
    "# A line with 2 words.\n\n# A line with 2 words.\n- caf\u00e9 (https://example.org) ...",
    "这是一句话。\nこれは日本語です。",
    "",
)


def main() -> None:
    begin = time.perf_counter()
    step = Rules(RulesConfig())
    columns = [pa.array(TEXTS, pa.large_string()), pa.array(["eng_Latn", None, None], pa.string())]
    step.decide(step.score(pa.RecordBatch.from_arrays(columns, names=list(step.needs))))
    print(f"kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
