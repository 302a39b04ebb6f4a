"""The page of the reader bench: goals first, then tables. Works on plain answers alone."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["RATES", "Results", "Setting", "ratios", "write_page"]

Answer = Mapping[str, Any]
Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Answers by format and by what was asked, one for each round; `failed` holds the reason where there is none."""

RATES = {
    "sequential": "one after the other",
    "random": "at random",
    "copy": "at random, copied to int64",
    "batch": "64 at random into one int64 array",
    "get": "at random, nothing read",
}
BASE, OURS = "numpy view", "ours"
OUTCOMES = ("refused when opened", "refused when read", "same tokens", "other tokens, not noticed")
GOAL = 0.9
MICROSECONDS = 2.0


@dataclass(frozen=True)
class Setting:
    """What was run, and where."""

    command: str
    tokens: int
    seq_len: int
    rounds: int
    load: tuple[float, float]
    """Load of the machine before and after."""
    missing: Sequence[str]
    """Formats without an interpreter that has them."""

    @property
    def row_mb(self) -> float:
        return self.seq_len * 2 / 1e6


def sound(answers: Iterable[Answer]) -> list[Answer]:
    """Answers that are none of a failure."""
    return [one for one in answers if "failed" not in one]


def per_row(answer: Answer, clock: str = "cpu") -> float:
    """Seconds a row."""
    return float(answer[clock]) / int(answer["rows"])


def ratios(mine: Sequence[Answer], others: Sequence[Answer], clock: str = "cpu") -> list[float]:
    """How many times as fast, round by round, where both were measured."""
    both = [(a, b) for a, b in zip(mine, others, strict=False) if "failed" not in a and "failed" not in b]
    return [per_row(b, clock) / per_row(a, clock) for a, b in both]


def number(value: float) -> str:
    """Three digits, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: Sequence[float], show: Callable[[float], str] = number) -> str:
    """Median, and lowest to highest where there is more than one."""
    if not values:
        return ""
    middle = show(median(values))
    return middle if len(values) < 2 else f"{middle} ({show(min(values))} to {show(max(values))})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rate_cell(answers: Sequence[Answer], what: str, row_mb: float, clock: str) -> str:
    """MB/s, or microseconds a row where nothing is read; the reason if it failed."""
    good = sound(answers)
    if answers and not good:
        return "failed"
    seconds = [per_row(one, clock) for one in good]
    return spread([one * 1e6 if what == "get" else row_mb / one for one in seconds])


def rates_table(results: Results, setting: Setting, clock: str) -> str:
    head = ["format", *(f"{text}, us" if what == "get" else text for what, text in RATES.items())]
    measured = [name for name in results if any(what in results[name] for what in RATES)]
    rows = [
        [name, *(rate_cell(results[name].get(what, []), what, setting.row_mb, clock) for what in RATES)]
        for name in measured
    ]
    return table(head, rows)


def peers(results: Results) -> list[str]:
    """Formats that are neither ours nor NumPy's map by itself."""
    return [name for name in results if not name.startswith((OURS, "numpy"))]


def loaders(results: Results, name: str, workers: int) -> dict[str, Sequence[Answer]]:
    """Answers of a format by its ways of loading."""
    keys = [key for key in results[name] if key.startswith("loader ") and key.endswith(f" {workers}")]
    return {key.removeprefix("loader ").removesuffix(f" {workers}"): results[name][key] for key in keys}


def fastest(candidates: Mapping[str, Sequence[Answer]], clock: str) -> tuple[str, Sequence[Answer]] | None:
    """The quickest by its median; None if nothing was measured."""
    good = {name: answers for name, answers in candidates.items() if sound(answers)}
    if not good:
        return None
    best = min(good, key=lambda name: median(per_row(one, clock) for one in sound(good[name])))
    return best, good[best]


def share(values: Sequence[float]) -> str:
    return spread(values, lambda value: f"{value:.0%}" if value < 10 else f"{value:.0f} times")


def goals(results: Results, setting: Setting) -> str:
    """Ours beside the base and the best of the others, measure by measure, and which goals are kept."""
    rows, kept, ahead = [], [], []
    measures = [(text, what, "cpu") for what, text in RATES.items()]
    measures += [("DataLoader, 0 workers", "loader 0", "cpu"), ("DataLoader, 2 workers", "loader 2", "wall")]
    for text, what, clock in measures:
        mine, base, best = (contender(results, names, what, clock) for names in ([OURS], base_of(what), peers(results)))
        if mine is None:
            continue
        way = mine[0].removeprefix(OURS).removeprefix(", ")
        line = [text, f"{way}{': ' if way else ''}{rate_cell(mine[1], what, setting.row_mb, clock)}"]
        for other in (base, best):
            if other is None:
                line += ["", ""]
                continue
            times = ratios(mine[1], other[1], clock)
            line += [f"{other[0]}: {rate_cell(other[1], what, setting.row_mb, clock)}", share(times)]
            if other is best and times:
                ahead.append((text, median(times)))
            elif times and what != "get":
                kept.append((text, median(times)))
        rows.append(line)
    head = ["measure", "ours", "NumPy", "of NumPy", "best of the others", "of the best other"]
    return "\n\n".join([table(head, rows), verdicts(results, kept, ahead)])


def base_of(what: str) -> list[str]:
    return ["numpy"] if what.startswith("loader") else [BASE]


def contender(results: Results, names: Sequence[str], what: str, clock: str) -> tuple[str, Sequence[Answer]] | None:
    """The quickest of some formats, in the quickest of its ways."""
    if not what.startswith("loader"):
        return fastest({name: results[name].get(what, []) for name in names if name in results}, clock)
    workers = int(what.split()[1])
    ways = {
        f"{name}, {way}": answers
        for name in names
        if name in results
        for way, answers in loaders(results, name, workers).items()
    }
    return fastest(ways, clock)


def verdicts(results: Results, kept: Sequence[tuple[str, float]], ahead: Sequence[tuple[str, float]]) -> str:
    lines = []
    if kept:
        below = [f"{text} {value:.1%}" for text, value in kept if value < GOAL]
        lines.append(
            f"At least {GOAL:.0%} of the NumPy map: {'**missed** by ' + ', '.join(below) if below else 'kept'}."
        )
    if ahead:
        behind = [f"{text} {value:.1%}" for text, value in ahead if value <= 1]
        lines.append(f"Ahead of all others: {'**missed** by ' + ', '.join(behind) if behind else 'kept'}.")
    got = [per_row(one) * 1e6 for one in sound(results.get(OURS, {}).get("get", []))]
    touched = [per_row(one) * 1e6 for one in sound(results.get(OURS, {}).get("random", []))]
    if got and touched:
        verdict = "kept" if median(got) < MICROSECONDS else "**missed**"
        lines.append(
            f"A random row in less than {MICROSECONDS:.0f} us: {verdict}, {median(got):.2f} us; with every byte of it "
            f"read {median(touched):.2f} us."
        )
    return "\n".join(f"- {line}" for line in lines)


def loaders_table(results: Results, setting: Setting) -> str:
    rows = []
    for name in results:
        for way in loaders(results, name, 0):
            line = [name, way]
            for workers, clocks in ((0, ("wall", "cpu")), (2, ("wall",))):
                answers = results[name].get(f"loader {way} {workers}", [])
                line += [rate_cell(answers, "loader", setting.row_mb, clock) for clock in clocks]
                line.append(spread([one["first"]["wall"] * 1e3 for one in sound(answers)]))
            processes = [one for answer in sound(answers) for one in answer.get("workers", [])]
            both = [median(one[kind] for one in processes) for kind in ("own", "mapped") if processes]
            line.append(" / ".join(number(value) for value in both))
            rows.append(line)
    first = "first batch, ms"
    head = ["format", "way", "0 workers", "per CPU s", first, "2 workers", first, "a worker: own / mapped MB"]
    return table(head, rows)


def life_table(results: Results, setting: Setting) -> str:
    rows = []
    for name, found in results.items():
        lives = sound(found.get("life", []))
        if not lives:
            continue
        line = [name, spread([one["open"]["wall"] * 1e3 for one in lives])]
        line.append(spread([setting.row_mb / per_row(one["pass"]) for one in lives]))
        for moment in ("opened", "passed"):
            grown = [median(one[moment][kind] - one["before"][kind] for one in lives) for kind in ("own", "mapped")]
            line.append(" / ".join(f"{value:.1f}" for value in grown))
        whole = all(one["pass"]["rows"] == one["n"] for one in lives)
        line.append("all" if whole else f"{median(one['pass']['rows'] / one['n'] for one in lives):.0%}")
        rows.append(line)
    head = [
        "format",
        "open and first row, ms",
        "first pass, MB per CPU s",
        "opened: own / mapped MB",
        "passed: own / mapped MB",
        "rows",
    ]
    return table(head, rows)


def resume_table(results: Results) -> str:
    rows = []
    for name, found in results.items():
        saved, resumed = found.get("run_to", []), found.get("resume", [])
        good = sound(resumed)
        if good:
            exact = "yes" if all(one["exact"] for one in good) else "**no**"
            rows.append(
                [name, spread([one["wall"] * 1e3 for one in good]), spread([one["cpu"] * 1e3 for one in good]), exact]
            )
        elif saved or resumed:
            reasons = [str(one["failed"]) for one in (*saved, *resumed) if "failed" in one]
            rows.append([name, "", "", f"failed: {reasons[0] if reasons else ''}"])
    return table(["format", "ms", "CPU ms", "exactly the next batch"], rows)


def written_table(results: Results, setting: Setting) -> str:
    bare = setting.tokens * 2
    rows = [
        [name, number(one["wall"]), number(one["cpu"]), f"{one['bytes'] / 1e6:,.1f}", f"{one['bytes'] / bare - 1:+.2%}"]
        for name, found in results.items()
        for one in sound(found.get("write", []))
    ]
    return table(["format", "s", "CPU s", "MB", "beside the bare tokens"], rows)


def damage_table(results: Results) -> str:
    rows = []
    for name, found in results.items():
        answers = found.get("flip", [])
        if answers:
            counts = [sum(one.get("outcome") == outcome for one in answers) for outcome in OUTCOMES]
            rows.append([name, *(str(one) if one else "" for one in (*counts, len(answers) - sum(counts)))])
    return table(["format", *OUTCOMES, "died or hung"], rows)


def versions(results: Results) -> str:
    """Of each tool, with the NumPy it ran with."""
    found: dict[str, str] = {}
    for answers in results.values():
        for one in sound(answers.get("load", []))[:1]:
            known = dict(one["versions"])
            numpy = known.pop("numpy")
            tools = " ".join(f"{tool} {version}" for tool, version in known.items()) or "NumPy"
            found[tools] = f"{tools} (NumPy {numpy})" if tools != "NumPy" else f"NumPy {numpy}"
    return ", ".join(found.values())


def failures(results: Results) -> list[str]:
    """What could not be measured, with the reason, once each."""
    return [
        f"{name}, {key}: {reason}"
        for name, found in results.items()
        for key, answers in found.items()
        if key != "flip"
        for reason in sorted({str(one["failed"]) for one in answers if "failed" in one})
    ]


def machine() -> str:
    """Processor and memory, in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        model = next(
            (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine()
        )
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB; Python {platform.python_version()}"


INTRODUCTION = """
{tokens:,} random uint16 tokens ({mb:,.0f} MB) in sequences of {seq_len:,}, the same for all. Page cache warm: each file was dropped from it
after writing, and read again in order. MB are 10^6 bytes of uint16 tokens, also where int64 is made of them. Medians of
{rounds} rounds (3 for loaders, opening, resuming), with the lowest and the highest; in each round every format is measured, forwards and
backwards by turns. *numpy* is np.memmap as it comes, *numpy view* the same as a plain array: the base. Every byte is touched (xor by
8 bytes), but where nothing is read.
"""
LOADING = """
Without the first batch, which waits for the workers to start; each tool's own loader where it has one. TokenStream gives positions and
borders of documents with the tokens. With workers, CPU seconds are those of the process that trains. Own: private memory of a worker
that was written to; mapped: pages of files, shared.
"""
RESUMING = """
In a fresh process, imports left out: open, take the state, read the next batch. *numpy*: by hand, a permutation by a seed. *datasets*:
shuffled through a mapping of numbers, then as a stream.
"""
WRITING = """
Once, from memory; nothing waits for the disk. Ours checks and hashes every block, and holds the lengths and rows of documents.
"""


def write_page(results: Results, setting: Setting) -> str:
    """The whole page, as Markdown."""
    known = {"tokens": setting.tokens, "mb": setting.tokens * 2 / 1e6}
    parts = [
        f"# Reading token files, {datetime.now(timezone.utc):%-d %B %Y}",
        f"`{setting.command}`",
        f"{machine()}; load {setting.load[0]:.1f} before, {setting.load[1]:.1f} after. {versions(results)}.",
        INTRODUCTION.format(seq_len=setting.seq_len, rounds=setting.rounds, **known).strip(),
    ]
    if setting.missing:
        parts.append(f"Not here, and left out: {'; '.join(setting.missing)}.")
    sections = [
        ("Goals", "Per CPU second; with 2 workers by wall time.", goals(results, setting)),
        ("Rows, MB per CPU second", "", rates_table(results, setting, "cpu")),
        ("Rows, MB per second of wall time", "", rates_table(results, setting, "wall")),
        ("torch's DataLoader: batches of 64 as int64, shuffled, MB/s", LOADING, loaders_table(results, setting)),
        (
            "Opening, first pass, memory",
            "A fresh process each time. Memory: what has grown since the imports.",
            life_table(results, setting),
        ),
        ("Resuming in the middle of a shuffled epoch", RESUMING, resume_table(results)),
        ("Writing", WRITING, written_table(results, setting)),
        (
            "One bit flipped",
            "In a small file: one bit at the same relative places of all bytes, then every row read and compared.",
            damage_table(results),
        ),
        ("Not measured", "", "\n".join(f"- {line}" for line in failures(results))),
    ]
    for title, text, content in sections:
        if content.count("\n") > 1 or content.startswith("- "):
            parts += [f"## {title}", text.strip(), content]
    return "\n\n".join(part for part in parts if part) + "\n"
