"""The example trainer as a module: it is a script, and no part of the package."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ["EXAMPLE", "load_example"]

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "train_gpt.py"


@cache
def load_example() -> ModuleType:
    """The module, loaded once; needs torch."""
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_gpt"] = module
    spec.loader.exec_module(module)
    return module
