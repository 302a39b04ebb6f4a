"""What the filter `safety_model` says of a whole run: what was read and why, and what the cascade is likely to miss.

One pass over its verdict files; memory is a few counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.safety_facts import cascade_facts

__all__ = ["facts_of"]

WHY = ("terms", "linear", "audit", "all", "no")


def facts_of(scope: str, tables: Iterator[pa.Table]) -> dict[str, Any]:
    """Plain data for the report.

    `asked`: for each reason to read, documents and how many of them are dropped. `windows`: read in all. `partly_read`: documents
    of which windows were chosen. `cascade`: see `safety_facts.cascade_facts`; only where the scope is cascade.

    Args:
        tables: the step's verdict files, each as one table; rows that it did not look at are left out here.
    """
    asked: Counter[str] = Counter()
    unsafe: Counter[str] = Counter()
    windows = partly = 0
    for table in tables:
        seen = table.filter(table.column("keep").is_valid()).select(["keep", "asked", "windows", "share_read"])
        dropped = seen.filter(pc.invert(seen.column("keep")))
        for counter, part in ((asked, seen), (unsafe, dropped)):
            for entry in pc.value_counts(part.column("asked")).to_pylist():
                counter[entry["values"]] += entry["counts"]
        windows += pc.sum(seen.column("windows")).as_py() or 0
        partly += pc.sum(pc.less(seen.column("share_read"), 1)).as_py() or 0
    found: dict[str, Any] = {
        "documents": sum(asked.values()),
        "asked": {why: {"documents": asked[why], "dropped": unsafe[why]} for why in WHY if asked[why]},
        "windows": windows,
        "partly_read": partly,
    }
    if scope == "cascade":
        found["cascade"] = cascade_facts(asked["audit"], unsafe["audit"], asked["no"])
    return found
