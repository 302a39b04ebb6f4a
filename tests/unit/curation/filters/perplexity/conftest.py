"""The stand-in for models takes their place in all tests of the filter, unless they ask for the real ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from curation.filters.perplexity import engines, limits, step
from curation.filters.perplexity.config import Reading
from curation.filters.perplexity.limits import ShippedLimit
from tests.perplexity_fake import FakeEngine

LIMITS = {"": ShippedLimit(0.5, 3.0), "zho": ShippedLimit(0.5, 2.0), "und_Cyrl": ShippedLimit(0.5, 4.0)}


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeEngine]:
    """The engines by the name of the setting `engine`: the neural one says a tenth more than the n-grams, in twice the tokens."""
    found = {"ngram": FakeEngine(), "gpt2": FakeEngine(scale=1.1, tokens_per_letter=2)}

    def open_engine(reading: Reading) -> engines.Engine:
        return found[reading.engine]

    def identity_of(reading: Reading) -> Mapping[str, str]:
        return found[reading.engine].identity()

    monkeypatch.setattr(step, "open_engine", open_engine)
    monkeypatch.setattr(step, "identity_of", identity_of)
    monkeypatch.setattr(limits, "shipped_limits", lambda: LIMITS)
    monkeypatch.setattr(step, "shipped_limits", lambda: LIMITS)
    return found
