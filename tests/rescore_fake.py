"""Thresholds of a re-score made on disk in the real layout, from hand-made scores: no model is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.ids import doc_id, text_id
from curation.records import SHARD_SCHEMA
from curation.rescore.choose import choose
from curation.rescore.config import ChooseConfig
from curation.rescore.propose import chosen_table
from curation.rescore.score import SCORE_SCHEMA, threshold_folder
from curation.run import Run, file_sha256, write_json
from curation.shards import write_table

Score = tuple[float, float, int] | None
"""Bits per byte, nats a token, tokens; None: not scored."""


@dataclass
class Page:
    """A document of a made run."""

    text: str
    language: str = "eng_Latn"
    source: str = "/data/crawl-00.jsonl"
    url: str | None = "https://example.org/page"


def make_run(
    root: Path, run_id: str, pages: Sequence[Page], *, shard_rows: int = 1000, start: str = "2026-05-20T14:23:22Z"
) -> Run:
    """A run whose shards hold the pages."""
    run = Run.create(
        root, run_id=run_id, config_text="name: made\nsteps: []\n", config_digest="8c4a0000", inputs=["/data"]
    )
    run.update(start=start, state="done", end=start)
    shards = []
    for first in range(0, len(pages), shard_rows):
        rows = []
        for line, page in enumerate(pages[first : first + shard_rows], first + 1):
            content = text_id(page.text)
            rows.append(
                {
                    "doc_id": doc_id(f"{run_id}{page.source}", line * 100, 0, content), "text_id": content, "id": f"d{line}",
                    "source": page.source, "url": page.url, "line": line, "byte_offset": line * 100, "text": page.text,
                    "meta": None,
                }
            )  # fmt: skip
        path = run.shard_path(f"{first // shard_rows:05d}-000")
        write_table(path, pa.Table.from_pylist(rows, schema=SHARD_SCHEMA))
        shards.append({"name": path.stem, "rows": len(rows), "text_bytes": 1, "sha256": file_sha256(path)})
    write_json(run.shards / "_done.json", {"documents": len(pages), "shards": shards})
    return run


def make_threshold(
    root: Path,
    training: str,
    threshold: int,
    runs: Sequence[tuple[str, Sequence[Page]]],
    score: Callable[[Page, int], Score],
    *,
    choose_config: ChooseConfig | None = None,
    read: Callable[[Page, int], bool] = lambda page, number: True,
    shard_rows: int = 1000,
    version: int | None = 1,
    settings: dict[str, Any] | None = None,
    decision: dict[str, Any] | None = None,
    state: str | None = "published",
    domain: bool = False,
) -> Path:
    """A threshold whose runs were scored by a function of a page and its number; returns its folder."""
    folder = threshold_folder(root, training, threshold)
    config = choose_config or ChooseConfig()
    write_json(
        folder / "threshold.json",
        {
            "training_run": training, "threshold": threshold, "every_tokens": 10_000_000_000,
            "entry": {
                "tokens_seen": threshold + 12_345_678, "step": threshold // 4_194_304, "checkpoint": f"step-{threshold}",
                "checkpoint_sha256": hashlib.sha256(str(threshold).encode()).hexdigest(), "tokenizer": "d1e2",
                "time": "2026-05-20T14:23:22Z",
            },
            "settings": settings or {"score": {"source": "domain" if domain else "file"}, "choose": config.model_dump(mode="json")},
            "runs": [run_id for run_id, _ in runs], "begun": "2026-05-20T15:00:00Z",
        },
    )  # fmt: skip
    tables = []
    for run_id, pages in runs:
        table = _scores(root, folder / run_id, run_id, pages, score, read, shard_rows, domain=domain)
        tables.append(table)
    if tables:
        _choose(folder, [run_id for run_id, _ in runs], tables, config)
    if decision is not None:
        write_json(folder / "decision.json", decision)
    if version is not None and state == "published":
        published = {"version": version, "digest": "ab" * 32, "entries": 12, "when": "2026-05-20T16:00:00Z"}
        write_json(folder / "published.json", published)
    if state is not None:
        write_json(
            folder / "_done.json", {"state": state, "version": version, "counts": {}, "end": "2026-05-20T16:00:01Z"}
        )
    return folder


def _scores(
    root: Path, folder: Path, run_id: str, pages: Sequence[Page], score: Callable[[Page, int], Score],
    read: Callable[[Page, int], bool], shard_rows: int, *, domain: bool,
) -> pa.Table:  # fmt: skip
    write_json(folder / "rescore.json", {"run_id": run_id, "identity": "00000000"})
    strata: dict[tuple[str, str], list[int]] = {}
    parts = []
    for first in range(0, len(pages), shard_rows):
        rows = []
        name = f"{first // shard_rows:05d}-000"
        for row, page in enumerate(pages[first : first + shard_rows]):
            number = first + row
            source = page.source if not domain else (page.url or "").split("/")[2] if page.url else ""
            counted = strata.setdefault((page.language, source), [0, 0])
            counted[0] += 1
            if not read(page, number):
                continue
            counted[1] += 1
            found = score(page, number)
            content = text_id(page.text)
            rows.append(
                {
                    "doc_id": doc_id(f"{run_id}{page.source}", (number + 1) * 100, 0, content), "text_id": content,
                    "shard": name, "row": row, "language": page.language, "source": source, "url": page.url,
                    "tokens": found[2] if found else 0, "loss": found[1] if found else None,
                    "bits_per_byte": found[0] if found else None, "share_scored": 1.0 if found else 0.0,
                }
            )  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)
        path = folder / "scores" / f"{name}.arrow"
        write_table(path, table)
        write_json(folder / "_items" / f"score-{name}.json", {"sha256": file_sha256(path), "rows": len(rows)})
        parts.append(table)
    whole = pa.concat_tables([SCORE_SCHEMA.empty_table(), *parts])
    plan = [
        {"language": language, "source": source, "documents": n, "rate": k / n}
        for (language, source), (n, k) in sorted(strata.items())
    ]
    schema = pa.schema(
        [("language", pa.string()), ("source", pa.string()), ("documents", pa.int64()), ("rate", pa.float64())]
    )
    write_table(folder / "plan.arrow", pa.Table.from_pylist(plan, schema=schema))
    judged = whole.num_rows - whole.column("loss").null_count
    write_json(
        folder / "_done.json",
        {
            "documents": len(pages), "left_out": len(pages) - whole.num_rows, "read": whole.num_rows, "judged": judged,
            "unread": whole.num_rows - judged, "not_finite": 0, "tokens": pc.sum(whole.column("tokens")).as_py() or 0,
            "seconds": 12.5, "peak_rss_mb": 900.0,
        },
    )  # fmt: skip
    return whole


def _choose(folder: Path, run_ids: Sequence[str], scores: Sequence[pa.Table], config: ChooseConfig) -> None:
    chosen = choose(pa.concat_tables(scores), config)
    write_table(folder / "chosen" / "chosen.arrow", chosen_table(run_ids, scores, chosen, config.score))
    write_table(folder / "chosen" / "groups.arrow", chosen.groups.combine_chunks())
    write_json(folder / "chosen" / "proposal.json", {"counts": chosen.counts()})
