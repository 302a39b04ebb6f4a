"""No page can hang, crash or outlive the ingest process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from curation.errors import InputError
from curation.ingest import extractor as module
from curation.ingest.extractor import ExtractionError, Extractor
from curation.ingest.html import Extracted

PAGE = "<title>Bridges</title><p>The council met on Tuesday and agreed to repair the old bridge.</p>"
GOOD = Extracted("The council met on Tuesday and agreed to repair the old bridge.", "Bridges")
MANY_ATTRIBUTES = "<div " + " ".join(f"a{i}=x" for i in range(120_000)) + ">text</div>"
"""Parsers compare each attribute with all before it: a minute of work in 1 MB."""

HOSTILE = {
    "20,000 nested div and 50,000 spans (B027)": "<div>" * 20_000
    + "".join(f"<span>w{i} </span>" for i in range(50_000)),
    "nested inline elements": "<a><b><i>" * 30_000 + "x",
    "many attributes": MANY_ATTRIBUTES,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_pages_that_take_too_long_are_named_and_the_next_is_read(what: str) -> None:
    """The kernel ends the child inside C code; the error says why, and another child goes on."""
    with Extractor("fast", 0.1) as extractor:
        start = time.monotonic()
        with pytest.raises(ExtractionError, match=r"more than 0\.1 s of CPU time") as caught:
            extractor.extract(HOSTILE[what])
        assert time.monotonic() - start < 20
        assert caught.value.reason == "extract_timeout"
        assert extractor.extract(PAGE) == GOOD
        assert extractor.restarts == 1


def test_a_crash_of_the_child_is_named_and_the_next_page_is_read() -> None:
    """A child that dies of a signal costs one page."""
    with Extractor("fast", 10) as extractor:
        assert extractor.extract(PAGE) == GOOD
        assert extractor._child is not None
        os.kill(extractor._child.pid, signal.SIGSEGV)
        with pytest.raises(ExtractionError, match="ended by SIGSEGV") as caught:
            extractor.extract(PAGE)
        assert caught.value.reason == "extract_failed"
        assert extractor.extract(PAGE) == GOOD


def test_a_child_that_is_killed_from_outside_costs_no_page() -> None:
    """The system kills for want of memory: the page is tried once more, since it may be innocent."""
    with Extractor("fast", 10) as extractor:
        extractor.extract(PAGE)
        assert extractor._child is not None
        os.kill(extractor._child.pid, signal.SIGKILL)
        assert extractor.extract(PAGE) == GOOD
        assert extractor.restarts == 1


def test_time_limits_hold_where_the_parent_ignores_or_blocks_the_timers() -> None:
    """Ignored and blocked signals are handed down to children: ours takes them back."""
    timers = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.signal(timer, signal.SIG_IGN) for timer in timers]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, timers)
    try:
        with Extractor("fast", 0.1) as extractor, pytest.raises(ExtractionError, match="CPU time"):
            extractor.extract(MANY_ATTRIBUTES)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for timer, handler in zip(timers, before, strict=True):
            signal.signal(timer, handler)


def test_an_exception_of_the_extractor_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception inside the child is reported with its words and does not end the child."""

    def fail(html: str, mode: str) -> Extracted:
        raise RecursionError("too deep")

    monkeypatch.setattr(module, "extract", fail)
    status, _, words = module._result(b"<p>x", "fast")
    assert status == b"\x01"
    assert words == b"RecursionError: too deep"


def test_an_extractor_that_cannot_start_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is an error of the installation, with Python's own words, and not of each page."""
    monkeypatch.setattr(sys, "path", [])
    with Extractor("fast", 10) as extractor, pytest.raises(InputError, match="ModuleNotFoundError"):
        extractor.extract(PAGE)


def test_big_pages_go_through_the_pipe() -> None:
    """Pages and texts of several MB, far beyond a pipe's buffer, in both directions."""
    text = "One of many lines that say what happened on the bridge.\n"
    html = f"<pre>{text * 60_000}</pre>"
    with Extractor("fast", 30) as extractor:
        assert extractor.extract(html).text.count("bridge") == 60_000


def test_nothing_starts_before_the_first_page() -> None:
    """A WET file has no HTML: it costs no child."""
    with Extractor("quality", 10) as extractor:
        assert extractor._child is None


def _gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("work", ["idle", "busy"])
def test_a_killed_parent_leaves_no_child(work: str, tmp_path: Path) -> None:
    """After kill -9 of the parent the child sees its pipe close, or runs into its page's time limit."""
    script = (
        f"import sys, time; sys.path[:] = {sys.path!r}\n"
        "from curation.ingest.extractor import Extractor\n"
        "with Extractor('fast', 0.5) as extractor:\n"
        f"    extractor.extract({PAGE!r})\n"
        "    print(extractor._child.pid, flush=True)\n"
        + ("    time.sleep(60)" if work == "idle" else f"    extractor.extract({MANY_ATTRIBUTES[:600_000]!r})")
    )
    path = tmp_path / "parent.py"
    path.write_text(script, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.1)
        parent.kill()
        parent.wait()
        assert _gone(pid, seconds=20)


def test_it_runs_in_a_daemonic_worker() -> None:
    """Pool workers and Airflow tasks may be daemons, which must not have multiprocessing children: ours is none."""
    code = f"__import__('curation.ingest.extractor').ingest.extractor.Extractor('fast', 10).extract({PAGE!r}).text"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(eval, (code,)) == GOOD.text
