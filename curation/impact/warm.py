"""A few documents judged before the sample is: so that no step's seconds hold what is done once a process or once a machine.

Kernels are compiled, models and word lists are read, when they are first used: 1 to 100 s in all, far more than the filters
need for a sample. Both sides are warmed alike, each in the process that judges. Steps whose scores are saved are not, nor is
what nobody asks for loaded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from curation.config import RunConfig
from curation.run import publish
from curation.shards import Shard, open_table

__all__ = ["DOCUMENTS", "warm_here", "warm_steps", "write_warm_documents"]

DOCUMENTS = 64
"""Enough to meet most languages of a sample, whose models are loaded one by one."""
_MAX_CHARACTERS = 5_000


def write_warm_documents(shards: Sequence[Shard], path: Path) -> None:
    """Some documents of a sample, spread evenly over it, as JSON lines; one twice, and once with another end.

    The copies let steps that look for copies find some.
    """
    if path.exists():
        return
    lines: list[bytes] = []
    total = sum(shard.rows for shard in shards)
    wanted = (
        np.unique(np.linspace(0, max(total - 1, 0), DOCUMENTS).astype(np.int64)) if total else np.zeros(0, np.int64)
    )
    first = 0
    for shard in shards:
        rows = wanted[(wanted >= first) & (wanted < first + shard.rows)] - first
        first += shard.rows
        if len(rows):
            table = open_table(shard.path, shard.sha256, shard.rows).read_all().select(["text", "url"]).take(rows)
            lines += [_line(row["text"], row["url"]) for row in table.to_pylist()]
    lines += [line for line in lines[:1] for _ in range(2)]
    if lines:
        longest = max((orjson.loads(line)["text"] for line in lines), key=len)
        lines += [_line(longest, None), _line(f"{longest} {longest[:20]}", None)]
    with publish(path, durable=False) as temporary:
        temporary.write_bytes(b"".join(line + b"\n" for line in lines))


def _line(text: str, url: str | None) -> bytes:
    return orjson.dumps({"text": text[:_MAX_CHARACTERS], **({"url": url} if url else {})})


def warm_steps(names: Sequence[str], saved: Collection[str], reads: Mapping[str, Sequence[str]]) -> list[str]:
    """The steps to warm, in order: those that have to compute, and those whose scores they read."""
    wanted = {name for name in names if name not in saved}
    waiting = list(wanted)
    while waiting:
        more = [name for name in reads.get(waiting.pop(), ()) if name not in wanted]
        wanted.update(more)
        waiting += more
    return [name for name in names if name in wanted]


def warm_here(config: RunConfig, steps: Collection[str], documents: Path, own: Path) -> None:
    """Let some steps judge a few documents in this process; nothing is kept.

    Args:
        own: folder of all that `impact` keeps.
    """
    from curation.launch import drive, start_run

    few = replace(config, steps=tuple(step for step in config.steps if step.name in steps))
    with tempfile.TemporaryDirectory(prefix=".warm-", dir=own) as root:
        drive(start_run(few, [str(documents)], Path(root), judge_all=True), workers=1)
