"""Compile every kernel of the filter into the cache now, as when an image is built: `python -m curation.filters.language`.

Takes 20 to 40 s once; see `python -m curation.text`.
"""

from __future__ import annotations

import time

import pyarrow as pa

from curation.filters.language import Language, LanguageConfig

TEXTS = (
    "A sentence that both models know.\n\nund ein kurzer\nRZECZ\nодно слово",
    "这是一句话（and an English one in brackets, long enough）。\nこれは日本語です。e\u0301",
)


def main() -> None:
    begin = time.perf_counter()
    step = Language(LanguageConfig())
    step.ready()
    step.score(pa.RecordBatch.from_arrays([pa.array(TEXTS, pa.large_string())], names=["text"]))
    print(f"kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
