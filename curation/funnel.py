"""The funnel: how many lines, documents and bytes went in and what became of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curation.errors import LawError
from curation.pipeline import Pipeline
from curation.run import read_json

__all__ = ["build_funnel", "funnel_rows"]

_STEP_KEYS = ("name", "digest", "docs_in", "docs_kept", "dropped", "bytes_in", "bytes_kept", "seconds", "peak_rss_mb")


def build_funnel(pipeline: Pipeline) -> dict[str, Any]:
    """The funnel of a finished run, as `report/funnel.json` holds it. The whole law is checked once more.

    Raises:
        RunError: a stage is not done.
        LawError: the numbers do not add up.
    """
    from curation.report.usual import usual_alarms

    run = pipeline.run
    ingested = run.ingested()
    steps = [read_json(placed.folder / "_done.json") for placed in pipeline.placed]
    packed = read_json(run.pack / "_done.json")["packed"] if pipeline.config.top.pack is not None else None
    funnel = {
        "run_id": run.run_id,
        "inputs": {key: ingested[key] for key in ("files", "bytes", "lines")},
        "documents": ingested["documents"],
        "quarantined": ingested["quarantined"],
        "ingest": {key: ingested[key] for key in ("seconds", "peak_rss_mb", "damaged_files") if key in ingested},
        "steps": [{key: step[key] for key in _STEP_KEYS} for step in steps],
        "kept": steps[-1]["docs_kept"] if steps else ingested["documents"],
        "packed": packed,
        "alarms": [
            *(
                {"step": step["name"], "text": text}
                for step in steps
                for text in step.get("facts", {}).get("alarms", [])
            ),
            *usual_alarms(pipeline),
        ],
    }
    if not pipeline.judge_all:
        check_law(funnel)
    return funnel


def check_law(funnel: dict[str, Any]) -> None:
    """Lines in = documents + quarantined; documents = kept + dropped by a named reason;
    kept = packed + left out by the mixture.

    Raises:
        LawError: names the first equation that does not hold.
    """
    quarantined = sum(funnel["quarantined"].values())
    dropped = sum(sum(step["dropped"].values()) for step in funnel["steps"])
    equations = [
        ("lines in", funnel["inputs"]["lines"], "documents + quarantined", funnel["documents"] + quarantined),
        ("documents", funnel["documents"], "kept + dropped", funnel["kept"] + dropped),
    ]
    if funnel["packed"] is not None:
        packed = funnel["packed"]
        left_out = packed.get("left_out", 0)
        where = "documents in the token file" + (" + left out by the mixture" if left_out else "")
        equations.append(("kept", funnel["kept"], where, packed["documents"] + left_out))
    for left, left_value, right, right_value in equations:
        if left_value != right_value:
            raise LawError(
                f"run {funnel['run_id']}: {left} = {left_value}, but {right} = {right_value}: documents were lost or invented."
            )


def funnel_rows(funnel: dict[str, Any]) -> Iterator[tuple[str, int, int, str]]:
    """Rows for a table: what, documents after it, documents it took away, why."""
    quarantined = funnel["quarantined"]
    damaged = funnel.get("ingest", {}).get("damaged_files", 0)
    files = f"{funnel['inputs']['files']} files" + (f", {damaged} of them damaged" if damaged else "")
    yield "lines in", funnel["inputs"]["lines"], 0, files
    yield "readable", funnel["documents"], sum(quarantined.values()), _reasons(quarantined)
    for step in funnel["steps"]:
        dropped = sum(step["dropped"].values())
        yield step["name"], step["docs_kept"], dropped, _reasons(step["dropped"])
    if funnel["packed"] is not None:
        packed = funnel["packed"]
        sequences = f"{packed['sequences']:,} sequences of {packed['seq_len']}"
        text = f"{packed['tokens']:,} tokens in {sequences}, {packed['padding_share']:.2%} padding"
        others = dict.fromkeys(one["seq_len"] for one in packed.get("files", []) if one["seq_len"] != packed["seq_len"])
        if others:
            text += f"; also in sequences of {', '.join(map(str, others))}"
        if packed.get("holdout_documents"):
            text += f"; {packed['holdout_documents']:,} documents held out"
        left_out = packed.get("left_out", 0)
        yield "packed", packed["documents"], left_out, f"{text}; pack.mix left out {left_out:,}" if left_out else text


def _reasons(counts: dict[str, int]) -> str:
    shown = sorted(counts.items(), key=lambda pair: -pair[1])
    text = ", ".join(f"{reason} {n:,}" for reason, n in shown[:4])
    return text + (f" and {len(shown) - 4} more reasons" if len(shown) > 4 else "")
