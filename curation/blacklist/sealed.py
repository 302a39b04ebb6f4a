"""What a segment tells about itself, and the json that seals it as a version.

The json is made only after the number is taken, by the writer or by whoever comes next. So all that could keep it from
being written is refused before: what is no Unicode, no plain JSON, or nested so deep that the one can be written where
the other cannot. Costs microseconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from curation.errors import ConfigError
from curation.ids import canonical_json

__all__ = ["FORMAT", "checked_told", "sealed"]

FORMAT = 1
_DEEPEST_FACTS = 32
"""Facts nest no deeper, so that whoever completes a segment, from however deep a call, can write its json."""


def checked_told(told: Mapping[str, Any]) -> bytes:
    """What the segment tells, in UTF-8, after the json was tried that `sealed` makes of it once the number is taken:
    a segment whose json cannot be written would stand in the way of all later writers.

    Raises:
        ConfigError: the facts cannot be written.
    """
    try:
        _refuse_depth(told["facts"])
        json.dumps(told, allow_nan=False)
        text = canonical_json(dict(told)).encode()
        sealed(1, "", "", b"", json.loads(text))
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        raise ConfigError(
            f"blacklist: facts must be Unicode, but hold {bad!a} behind {error.object[: error.start][-30:]!a}: bytes "
            "that are not UTF-8 became that. Write it in UTF-8."
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"blacklist: facts must be plain JSON: {error}") from error
    return text


def _refuse_depth(facts: object) -> None:
    level = [facts]
    for _ in range(_DEEPEST_FACTS):
        level = [
            one
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for one in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"they nest more than {_DEEPEST_FACTS} deep")


def sealed(number: int, previous: str, name: str, content: pa.Buffer | bytes, told: Mapping[str, Any]) -> bytes:
    """The json of a version, in UTF-8.

    Args:
        previous: digest of the version before.
        name: of its segment, with the content.
        told: what the segment tells.

    Raises:
        KeyError, TypeError, ValueError, RecursionError: it cannot be made of that.
    """
    size, sha256 = memoryview(content).nbytes, hashlib.sha256(content).hexdigest()
    told = {
        "format": FORMAT,
        "version": number,
        "previous": previous,
        "segment": {"file": name, "bytes": size, "sha256": sha256},
        **{key: told[key] for key in ("rows", "counts", "when", "facts")},
    }
    return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()
