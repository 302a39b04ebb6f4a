"""Reports in any order, repeated, between any lines that are written directly: the thresholds passed are the same."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.rescore.reports import _FIELDS, record
from tokenization.progress import Entry, ProgressLedger
from tokenization.progress_line import entry_of, to_line

BEGIN = datetime(2026, 5, 20, tzinfo=timezone.utc)
TOKENS = st.integers(0, 12)
CHECKPOINTS = st.sampled_from([None, "a", "b"])
SHA = st.sampled_from([None, "a" * 64, "b" * 64])
REPORTS = st.lists(
    st.fixed_dictionaries(
        {"training_run": st.sampled_from(["gpt", "gpt", "other"]), "tokens_seen": TOKENS, "checkpoint": CHECKPOINTS},
        optional={
            "checkpoint_sha256": SHA,
            "attempt": st.sampled_from([None, 0, 1, 2]),
            "time": st.integers(0, 9).map(lambda n: (BEGIN + timedelta(minutes=n)).isoformat()),
            "tokenizer": st.sampled_from(["f" * 64, "e" * 64]),
        },
    ).map(lambda one: {**one, "step": one["tokens_seen"] * 10}),
    max_size=7,
)


@st.composite
def direct_lines(draw: st.DrawFn) -> list[Entry]:
    """Lines of attempts that begin anew or go back to any line, as trainers write them."""
    lines: list[Entry] = []
    last: dict[str, Entry] = {}
    for number in range(draw(st.integers(0, 6))):
        data: dict[str, Any] = {"run": "gpt", "token_files": [], "tokenizer": "f" * 64}
        data["time"] = (BEGIN + timedelta(minutes=2 * number)).isoformat(timespec="microseconds")
        if not last or draw(st.booleans()):
            at = draw(st.sampled_from([None, *lines]))
            tokens = at.tokens_seen if at else 0
            data |= {"attempt": f"t{number}", "parent": at.attempt if at else None, "resumed_at": tokens}
        else:
            before = last[draw(st.sampled_from(sorted(last)))]
            tokens = before.tokens_seen + draw(st.integers(0, 5))
            data |= {name: getattr(before, name) for name in ("attempt", "parent", "resumed_at")}
        data |= {"tokens_seen": tokens, "step": tokens * 10}
        line = entry_of({**data, "checkpoint": draw(CHECKPOINTS), "checkpoint_sha256": draw(SHA)})
        last[line.attempt] = line
        lines.append(line)
    return lines


def written(lines: list[Entry], reports: list[dict[str, Any]], schedule: list[int]) -> Any:
    """What a ledger says; `schedule` has the place of a report, or anything else for the next direct line."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = ProgressLedger(Path(folder) / "p")
        rest = list(lines)
        for place in schedule:
            if 0 <= place < len(reports):
                told = record(ledger.path, reports[place])
                assert told is None or told == ledger.read().entries[-1]
            elif rest:
                with ledger.path.open("ab") as stream:
                    stream.write(to_line(rest.pop(0)))
        with ledger.path.open("ab") as stream:
            stream.write(b"".join(map(to_line, rest)))
        history = ledger.read()
        assert (history.problems, history.torn) == ((), None)
        lineage = history.lineage("gpt")
        assert [e.tokens_seen for e in lineage] == sorted(e.tokens_seen for e in lineage)
        return [
            (k, e.tokens_seen, e.step, e.checkpoint, e.checkpoint_sha256, e.tokenizer)
            for every in (1, 3)
            for k, e in history.thresholds_passed(every, "gpt")
        ]


@given(direct_lines(), REPORTS, st.data())
@settings(max_examples=100, deadline=None)
def test_any_order_any_number_any_interleaving(
    lines: list[Entry], reports: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Each report at least once, anywhere, as often as you like."""
    every = list(range(len(reports)))
    more = data.draw(st.lists(st.integers(-1, max(0, len(reports) - 1)), max_size=8))
    schedule = data.draw(st.permutations([*every, *more, *[-1] * len(lines)]))
    assert written(lines, reports, schedule) == written(lines, reports, every)


def takes_back(later: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """By the definition."""
    if later["tokens_seen"] >= earlier["tokens_seen"]:
        return False
    attempts = later.get("attempt"), earlier.get("attempt")
    if None not in attempts and attempts[0] != attempts[1]:
        return bool(attempts[0] > attempts[1])
    times = later.get("time"), earlier.get("time")
    return None not in times and times[0] > times[1]


@given(REPORTS, st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_reports_stand_that_no_later_one_takes_back(reports: list[dict[str, Any]], every: int) -> None:
    """Each threshold by the first report that stands and has a checkpoint."""
    own = [one for one in reports if one["training_run"] == "gpt"]
    stand = [one for one in own if not any(takes_back(other, one) for other in own) and one["checkpoint"]]
    tokens = sorted(one["tokens_seen"] for one in stand)
    expected = [(k, next(n for n in tokens if n >= k * every)) for k in range(1, max(tokens, default=0) // every + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for one in reports:
            record(folder, one)
        found = list(ProgressLedger(folder).thresholds_passed(every, "gpt"))
    assert [(k, e.tokens_seen) for k, e in found] == expected


ANY = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)


@given(ANY, st.sampled_from(_FIELDS))
@settings(max_examples=150, deadline=None)
def test_any_value_is_written_or_refused(value: Any, name: str) -> None:
    """Whatever is in an event: a line that can be read again, or an error that says so; never another."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            line = record(folder, {"training_run": "gpt", "tokens_seen": 5, "step": 1, "checkpoint": "c", name: value})
        except InputError:
            assert ProgressLedger(folder).read().entries == ()
        else:
            assert ProgressLedger(folder).read().entries == (line,)
