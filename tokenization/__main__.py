"""Compile every kernel of the package into the cache now, as when an image is built: `python -m tokenization`.

Takes 10 s once. Where the cache is, `tokenization.engines.kernels` says.
"""

from __future__ import annotations

import time

import numpy as np

from tokenization.engines.merges import read_merges
from tokenization.engines.round_trip import Comparison


def main() -> None:
    begin = time.perf_counter()
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = {token: index for index, token in enumerate([*byte_tokens, "a", "aa"])}
    model = {"type": "BPE", "byte_fallback": True, "vocab": vocabulary, "merges": [["a", "a"]]}
    engine = read_merges({"model": model, "normalizer": None, "pre_tokenizer": None, "added_tokens": []})
    ids, lengths = engine.encode(["a" * 100])
    Comparison([token.encode() for token in vocabulary])(["a" * 100], ids, np.cumsum(lengths), False)
    print(f"kernels ready in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
