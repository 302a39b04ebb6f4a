"""Other tools for near-duplicate removal, each run by its driver in an interpreter of its own.

A driver reads a folder of .jsonl files, runs its tool as it ships, prints one line of JSON (wall seconds, documents, peak
memory, stages) and writes kept_ids.txt. The drivers and how to make their environments lie beside the test data.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PEERS", "Peer", "Round", "Used", "interpreter", "run_peer"]

RUN_PEER = Path(__file__).with_name("run_peer.py")


@dataclass(frozen=True)
class Used:
    """What a piece of work took: wall and processor seconds, peak memory in MB."""

    wall: float
    cpu: float
    """nan: not measured."""
    peak_mb: float


@dataclass
class Round:
    """One run of one tool."""

    documents: int
    used: dict[str, Used]
    """Rows of the table by what was measured; the first one is the measure of others."""
    kept: frozenset[str]
    partners: dict[str, str] | None = None
    passes: dict[str, float] = field(default_factory=dict)
    """Seconds by pass: of ours processor time, of a peer wall time as its driver tells it."""


@dataclass(frozen=True)
class Peer:
    """How a peer is run: its driver, the module that it needs, and arguments for a Jaccard above the threshold."""

    driver: str
    module: str
    arguments: tuple[str, ...] = ()
    takes_threshold: bool = False


PEERS: Mapping[str, Peer] = {
    "rensa": Peer("rensa_minhash.py", "rensa", ("--bands", "16"), takes_threshold=True),
    "datasketch": Peer("datasketch_minhash.py", "datasketch", ("--bands", "16", "--rows", "8")),
    "datatrove": Peer("datatrove_minhash.py", "datatrove"),
    "datatrove 16x8": Peer("datatrove_minhash.py", "datatrove", ("--bands", "16", "--rows", "8")),
    "text-dedup": Peer("text_dedup_run.py", "text_dedup", takes_threshold=True),
}
WRITING = ("write", "filter")
"""Stages in which a driver does no more than write the kept documents."""


def interpreter(peer: Peer, pythons: Sequence[str]) -> str:
    """The first interpreter that has the peer.

    Raises:
        SystemExit: none has it.
    """
    for python in pythons:
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({peer.module!r}) is None)"
        if subprocess.run([python, "-c", look], check=False).returncode == 0:
            return python
    raise SystemExit(f"no interpreter of --peers-python {list(pythons)} has {peer.module}")


def run_peer(name: str, python: str, drivers: Path, corpus: Path, threshold: float) -> Round:
    """Run a peer's driver over a corpus, with one worker.

    Raises:
        SystemExit: it failed.
    """
    peer = PEERS[name]
    with tempfile.TemporaryDirectory(prefix="bench-near-peer-") as out:
        command = [python, str(RUN_PEER), str(drivers / peer.driver), str(corpus), out, "--workers", "1"]
        command += [*peer.arguments, *(["--threshold", str(threshold)] if peer.takes_threshold else [])]
        # A process inherits the peak memory of the one that started it: that is to be a shell, and not this one.
        done = subprocess.run(["sh", "-c", '"$@"; exit "$?"', "sh", *command], capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-3000:]}")
        *_, line, cpu_line = done.stdout.splitlines()
        found, cpu = json.loads(line), json.loads(cpu_line)["cpu"]
        kept = frozenset((Path(out) / "kept_ids.txt").read_text(encoding="utf-8").split())
    peak = found["peak_rss_mb"]
    used = {"all of it": Used(found["wall_s"], sum(cpu.values()), peak)}
    written = [stage for stage in found["stages"] if stage in WRITING]
    if written:
        wall = found["wall_s"] - sum(found["stages"][stage] for stage in written)
        used = {"without writing": Used(wall, sum(cpu[stage] for stage in cpu if stage not in written), peak), **used}
    return Round(found["docs_in"], used, kept, None, found["stages"])
