"""What the filter `language` takes on one core, beside its peers, one right after the other.

    python -m tests.bench.language_speed '`language`' < texts.json     # the filter alone, one line of JSON

The filter scores batches of 512 documents, its kernels loaded. Loading is measured apart: the models, and the first batch, in
which kernels are read from their cache. Memory is the most that loading and work take, beyond what the texts do.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.bench.language_peers import memory_from_here, peak_memory
from tests.bench.language_tools import on_one_core, speed_of

__all__ = ["OURS", "measure_all", "speed_table"]

OURS = "`language`"

VOTERS: Mapping[str, tuple[str, ...] | None] = {OURS: None, "`language`, two models": ()}


def measure(texts: Sequence[str], voters: Sequence[str] | None) -> dict[str, Any]:
    """Processor and wall seconds for all texts, seconds of loading, memory."""
    from tests.bench.language_answers import batches

    work = batches(texts)
    before = memory_from_here()
    begin = time.perf_counter()
    from curation.filters.language import Language, LanguageConfig

    made = Language(LanguageConfig() if voters is None else LanguageConfig(voters=tuple(voters)))
    made.ready()
    loading = time.perf_counter() - begin
    made.score(work[0])
    first = time.perf_counter() - begin - loading
    cpu, wall = sum(os.times()[:2]), time.perf_counter()
    for batch in work:
        made.score(batch)
    used = {"cpu": sum(os.times()[:2]) - cpu, "wall": time.perf_counter() - wall, "loading": loading, "first": first}
    return {"version": "this revision", "grown_mb": peak_memory() - before, **used}


def measure_all(
    texts: Sequence[str], tools: Sequence[str], pythons: Sequence[str], rounds: int, say: Callable[[str], None]
) -> dict[str, list[dict[str, Any]]]:
    """Each round: the filter, with and without its voters, then every tool; a tool that no interpreter has is left out."""
    whole = json.dumps(list(texts)).encode()
    results: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}")
        for name in VOTERS:
            results.setdefault(name, []).append(
                on_one_core([sys.executable, "-m", "tests.bench.language_speed", name], whole)
            )
        for tool in tools:
            found = speed_of(tool, pythons, whole)
            if found is not None:
                results.setdefault(tool, []).append(found)
    return results


def speed_table(results: Mapping[str, Sequence[Mapping[str, Any]]], megabytes: float) -> list[str]:
    """Markdown: medians, lowest and highest in brackets; ratios are those of one round."""
    names = ["tool", "MB/s, processor", "MB/s, wall", f"{OURS} is faster by", "loading, s", "first batch, s", "MB more"]
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    for tool, rounds in results.items():
        ratios = [one["cpu"] / ours["cpu"] for one, ours in zip(rounds, results[OURS], strict=True)]
        cells = [
            _spread([megabytes / one["cpu"] for one in rounds]),
            _spread([megabytes / one["wall"] for one in rounds]),
            _spread(ratios, ".2f"),
            f"{statistics.median(one['loading'] for one in rounds):.1f}",
            f"{statistics.median(one['first'] for one in rounds):.1f}" if "first" in rounds[0] else "",
            f"{max(one['grown_mb'] for one in rounds):.0f}",
        ]
        named = tool if tool.startswith("`") else f"{tool} ({rounds[0]['version']})"
        lines.append(f"| {named} | {' | '.join(cells)} |")
    return lines


def _spread(values: Sequence[float], form: str = ".1f") -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def main() -> int:
    print(json.dumps(measure(json.load(sys.stdin.buffer), VOTERS[sys.argv[1]])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
