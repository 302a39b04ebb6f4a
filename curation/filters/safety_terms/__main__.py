"""Compile every kernel of the filter into the cache now, as when an image is built: `python -m curation.filters.safety_terms`.

Takes some 60 s once; see `python -m curation.text`.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig

LIST = "spam\t4\tsub\texample term\nspam\t4\tregex\texample =~ example .{1,9}\n"


def main() -> None:
    begin = time.perf_counter()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.tsv"
        path.write_text(LIST, "utf-8")
        step = SafetyTerms(SafetyTermsConfig(shipped=False, files=(path,)))
        step.ready()
        texts = pa.array(["An example-term, e\u0301.", ""], pa.large_string())
        step.decide(step.score(pa.RecordBatch.from_arrays([texts], names=["text"])))
    print(f"kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
