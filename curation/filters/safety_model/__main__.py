"""Make the shipped model ready and compile the kernels into the cache, as when an image is built.

`python -m curation.filters.safety_model` takes about 10 s once.
"""

from __future__ import annotations

import time

import pyarrow as pa

from curation.filters.safety_model.config import SafetyModelConfig
from curation.filters.safety_model.step import SafetyModel

TEXTS = ("A sentence of some words.", "另一种文字的一句话。")


def main() -> None:
    begin = time.perf_counter()
    for scope in ("cascade", "all"):
        step = SafetyModel(SafetyModelConfig(scope=scope))
        step.ready()
        columns = [
            pa.array(TEXTS, pa.large_string()),
            pa.nulls(len(TEXTS), pa.string()),
            pa.nulls(len(TEXTS), pa.int32()),
        ]
        step.score(pa.RecordBatch.from_arrays(columns, names=list(step.needs)))
    print(f"model and kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
