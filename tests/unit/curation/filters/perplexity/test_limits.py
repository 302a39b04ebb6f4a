"""The limits that ship: a line for each language, told apart from what the config says."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.labels import lookup_keys
from curation.filters.perplexity.config import PerplexityConfig
from curation.filters.perplexity.limits import row_limits, shipped_limits


def test_the_table_is_in_order() -> None:
    """A default, positive limits that rise, keys that a label can ask for."""
    table = shipped_limits()
    assert "" in table
    for key, limit in table.items():
        assert 0 < limit.min_bits_per_character < limit.max_bits_per_character < 30, key
        assert not key or key in lookup_keys(f"{key}_Latn" if "_" not in key else key), key


def test_every_other_language_has_the_widest_limits() -> None:
    """What good text of it looks like nobody has measured, so what is good in any measured language is good in it."""
    table = shipped_limits()
    assert table[""].min_bits_per_character <= min(limit.min_bits_per_character for limit in table.values())
    assert table[""].max_bits_per_character >= max(limit.max_bits_per_character for limit in table.values())


def test_rows_get_the_limits_of_their_label() -> None:
    """The config before the table; none, where the models are not those that ship."""
    labels = pa.array(["eng_Latn", "xxx_Zzzz", "eng_Latn", "und"])
    config = PerplexityConfig.model_validate(
        {"languages": {"eng": {"max_bits_per_character": 29, "max_perplexity": 7}}}
    )
    default = shipped_limits()[""].max_bits_per_character

    found = row_limits(config, labels, shipped=True)
    np.testing.assert_array_equal(found.max_bits_per_character, [29, default, 29, default])
    np.testing.assert_array_equal(found.max_perplexity, [7, math.inf, 7, math.inf])

    found = row_limits(config, labels, shipped=False)
    np.testing.assert_array_equal(found.max_bits_per_character, [29, math.inf, 29, math.inf])
    np.testing.assert_array_equal(found.min_bits_per_character, [-math.inf] * 4)


@pytest.mark.parametrize("shipped", [True, False])
def test_no_rows(shipped: bool) -> None:
    """No labels, no limits."""
    assert len(row_limits(PerplexityConfig(), pa.array([], pa.string()), shipped=shipped).max_perplexity) == 0
