"""The quality chain's floors beside what other tools' chains reach on the same 10,089 documents of 25 languages.

What the chain reaches, the gate measures (tests/gate) and holds to tests/golden/floors.json. What other tools reach stands in
bench/results/quality.md, from where the figures of this module were taken.
"""

from __future__ import annotations

import pytest

from tests.gate.floors import read

PEERS = {
    "datatrove as shipped": (0.111, 0.981),
    "datatrove told the language": (0.109, 0.981),
    "FineWeb-2's settings": (0.698, 0.933),
    "NeMo Curator told the language": (0.690, 0.927),
    "Data-Juicer": (0.734, 0.683),
}
"""Good kept, mean of languages, and junk dropped by other tools' chains."""


@pytest.mark.parametrize("peer", PEERS)
def test_better_than_other_tools_on_both(peer: str) -> None:
    """More of good text is kept and more junk dropped at once than by any other tool's chain, even where floors are only just held."""
    floors = read().floors
    kept, dropped = PEERS[peer]
    assert floors["quality.whole.good_kept_mean"].bound > kept
    assert floors["quality.whole.junk_dropped"].bound > dropped
