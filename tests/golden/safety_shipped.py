"""Whether the models of the safety filters are here: tests of what they find skip, and say so, where they are not."""

from __future__ import annotations

import pytest

from curation.errors import ConfigError
from tests.bench.safety_judges import model_filter

__all__ = ["needs_the_shipped_model"]


def missing() -> str:
    """What is missing, empty if nothing is."""
    try:
        model_filter(scope="cascade").model_checksums()
    except ConfigError as error:
        return str(error)
    return ""


_MISSING = missing()
needs_the_shipped_model = pytest.mark.skipif(
    bool(_MISSING), reason=f"the shipped safety model cannot be read: {_MISSING}"
)
