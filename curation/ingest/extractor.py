"""A child process that runs HTML extraction, so that no page can hang, crash or fill the ingest process.

Extraction is C and Rust code that holds the interpreter: no signal handler and no thread can stop it. The child
therefore arms kernel timers before each page, with the kernel's default action, which ends the process; a limit
on its memory does the same for pages that explode. The parent only sees the pipe close and reads the exit code, starts
another child (0.07 s; quality 0.4 s) and names the page. Time is CPU time, so that a busy machine changes no result; ten times as
much wall time is allowed before a sleeping child is given up.

The child is a plain subprocess: it may be started from daemonic pool workers and Airflow tasks, shares no lock
or thread with them, and ends when its pipe does, so that a killed parent leaves none behind (at most for the
time limit of the page in work). Cost: 0.3 ms a page of 100 kB beside the extraction.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
from typing import IO

from curation.errors import InputError
from curation.ingest.html import Extracted, Mode, extract

__all__ = ["ExtractionError", "Extractor"]

MAX_CHILD_MB = 1000
"""Private memory of the child, beside that of the ingest process. A page of 6 MB takes 200 MB (fast) or 500 MB (quality)."""
WALL_FACTOR = 10
_LENGTH = struct.Struct("<I")
_OK, _FAILED = b"\x00", b"\x01"


class ExtractionError(Exception):
    """A page could not be extracted: `reason` is `extract_timeout` or `extract_failed`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _KilledError(ExtractionError):
    """Something outside ended the child."""


class Extractor:
    """`extract` of `curation.ingest.html` within bounds; a context manager, started at the first page."""

    def __init__(self, mode: Mode, timeout_s: float) -> None:
        self.mode: Mode = mode
        self.timeout_s = timeout_s
        self.restarts = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> Extractor:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def extract(self, html: str) -> Extracted:
        """Main text and title of one page.

        Raises:
            ExtractionError: the page took too long or broke the extractor.
            InputError: the extractor cannot be started at all.
        """
        page = html.encode("utf-8", "replace")
        try:
            return self._ask(page)
        except _KilledError:
            return self._ask(page)  # from outside, as for want of memory: not the page's fault, unless it happens again

    def _ask(self, page: bytes) -> Extracted:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(_LENGTH.pack(len(page)))
            child.stdin.write(page)
            child.stdin.flush()
            status = child.stdout.read(1)
            title = _read_block(child.stdout) if status else None
            text = _read_block(child.stdout) if title is not None else None
        except BrokenPipeError:
            text = title = None
        if text is None or title is None:
            raise self._died(len(page))
        if status == _FAILED:
            raise ExtractionError("extract_failed", text.decode("utf-8"))
        return Extracted(text.decode("utf-8"), title.decode("utf-8") or None)

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _stop, with the child that writes to it
        code = f"import sys; sys.path[:] = {sys.path!r}; from curation.ingest.extractor import serve; serve(sys.argv)"
        self._child = child = subprocess.Popen(
            [sys.executable, "-c", code, self.mode, repr(self.timeout_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        assert child.stdout is not None
        if child.stdout.read(1) != _OK:
            said = self._stop()
            raise InputError(
                f"the HTML extractor ({self.mode}) could not be started: {said or 'no message'}. "
                "Check that the packages of the extra 'curate' are installed."
            )
        return child

    def _stop(self) -> str:
        """End the child, if there is one; returns the beginning of what it wrote to its error stream."""
        child, self._child = self._child, None
        said = ""
        if child is not None:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            child.stdout.close()
            child.kill()
            child.wait()
        if self._errors is not None:
            self._errors.seek(0)
            said = " ".join(self._errors.read(300).decode("utf-8", "replace").split())
            self._errors.close()
            self._errors = None
        return said

    def _died(self, n_bytes: int) -> ExtractionError:
        """Say why the child is gone, from the signal that ended it."""
        child = self._child
        assert child is not None
        code = child.wait()
        said = self._stop()
        self.restarts += 1
        if -code in (signal.SIGPROF, signal.SIGALRM):
            kind = "CPU" if -code == signal.SIGPROF else "wall"
            limit = self.timeout_s * (1 if kind == "CPU" else WALL_FACTOR)
            return ExtractionError(
                "extract_timeout", f"{n_bytes} bytes of HTML took more than {limit:g} s of {kind} time"
            )
        kind_of_error = _KilledError if -code in (signal.SIGKILL, signal.SIGTERM) else ExtractionError
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return kind_of_error("extract_failed", f"the extractor {how} on {n_bytes} bytes of HTML; {said}".rstrip("; "))


def _read_block(stream: IO[bytes]) -> bytes | None:
    """One length and that many bytes; None if the stream ends before."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    n_bytes = _LENGTH.unpack(head)[0]
    block = stream.read(n_bytes)
    return block if len(block) == n_bytes else None


# -- the child ------------------------------------------------------------------------------------


def serve(arguments: list[str]) -> None:
    """Main loop of the child: pages in on stdin, results out on stdout, until stdin ends."""
    mode: Mode = "quality" if arguments[1] == "quality" else "fast"
    timeout_s = float(arguments[2])
    pages, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get between the results
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and with it the pipe
    timers = (signal.SIGPROF, signal.SIGALRM)
    for timer in timers:
        signal.signal(timer, signal.SIG_DFL)  # a parent that ignores or blocks them would hand that down
    signal.pthread_sigmask(signal.SIG_UNBLOCK, timers)
    limit = MAX_CHILD_MB << 20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    extract("<p>warm up</p>", mode)
    results.write(_OK)
    results.flush()
    while (page := _read_block(pages)) is not None:
        os.ftruncate(2, 0)  # what the parent reads there shall speak of this page
        os.lseek(2, 0, os.SEEK_SET)
        _arm(timeout_s)
        status, title, text = _result(page, mode)
        _arm(0)
        results.write(b"".join((status, _LENGTH.pack(len(title)), title, _LENGTH.pack(len(text)), text)))
        results.flush()


def _arm(timeout_s: float) -> None:
    """Let the kernel end this process after so much CPU time, or ten times as much wall time; 0 disarms."""
    signal.setitimer(signal.ITIMER_PROF, timeout_s)
    signal.setitimer(signal.ITIMER_REAL, timeout_s * WALL_FACTOR)


def _result(page: bytes, mode: Mode) -> tuple[bytes, bytes, bytes]:
    try:
        text, title = extract(page.decode("utf-8"), mode)
        return _OK, (title or "").encode("utf-8", "replace"), text.encode("utf-8", "replace")
    except Exception as error:  # any page may break the extractor in its own way: the parent names page and error
        return _FAILED, b"", f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:500]
