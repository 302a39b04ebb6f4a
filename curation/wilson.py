"""How sure a share is that was counted in few documents."""

from __future__ import annotations

import math

__all__ = ["wilson"]


def wilson(hits: float, n: float, sigmas: float) -> tuple[float, float]:
    """Bounds of the share of which `hits` of `n` independent draws were seen; (0, 1) for no draw.

    sigmas: half the width in standard deviations, 1.96 for 95 %. Source: E. B. Wilson 1927, without continuity correction.
    """
    if n == 0:
        return 0.0, 1.0
    share, square = hits / n, sigmas * sigmas / n
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(share * (1 - share) * square + square * square / 4) / (1 + square)
    # The share lies within by definition; a rounding must not put a bound on its wrong side (0 of 11: 2e-17).
    return min(max(0.0, middle - half), share), max(min(1.0, middle + half), share)
