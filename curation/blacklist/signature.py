"""Signatures of blacklisted texts: MinHash, as the step `near` makes it with its default settings.

512 bytes and about 15 us for a text of 2 kB. How they were made stands beside them (`signing_text`), since only
signatures made in one way can be compared. Importing this module compiles or loads kernels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.minhash import choose_bands, signatures
from curation.dedup.near import NearConfig
from curation.dedup.sign import Signing

__all__ = ["agreement", "sign_rows", "sign_texts", "signature_places", "signing_text"]


def _signing() -> Signing:
    config = NearConfig()
    bands = choose_bands(config.threshold, config.num_perm, config.recall)
    return Signing(config.shingle, config.num_perm, bands.bands, bands.rows, config.by_character)


def signing_text() -> bytes:
    """How `sign_texts` signs, as canonical JSON: all that a signature depends on."""
    signing = _signing()
    told = {
        "shingle": signing.shingle,
        "num_perm": signing.num_perm,
        "by_character": list(signing.by_character),
        "version": signing.version,
        "unicode": signing.unicode,
    }
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def signature_places() -> int:
    """Numbers in a signature."""
    return _signing().num_perm


def sign_rows(texts: pa.Array) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Signature of each text of a large_string array, uint32[n, num_perm], and whether it has a shingle, bool[n]."""
    signing = _signing()
    found = signing.shingles(texts)
    return signatures(found, signing.num_perm), np.diff(found.offsets) > 0


def sign_texts(texts: Sequence[str] | pa.Array) -> pa.Array:
    """Signature of each text, little-endian uint32[num_perm] as binary; null for a text without a shingle."""
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
    signed, has = sign_rows(array.cast(pa.large_string()))
    rows = [row.astype("<u4").tobytes() if one else None for row, one in zip(signed, has.tolist(), strict=True)]
    return pa.array(rows, pa.binary())


def agreement(signature: bytes, others: pa.Array) -> npt.NDArray[np.float64]:
    """Estimated Jaccard of a text with others, by their signatures, none of which is null: float64[n]."""
    one = np.frombuffer(signature, "<u4")
    data = np.frombuffer(b"".join(others.to_pylist()), "<u4").reshape(-1, len(one))
    shares: npt.NDArray[np.float64] = (data == one).mean(axis=1)
    return shares
