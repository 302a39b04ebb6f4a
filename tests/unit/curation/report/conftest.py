"""Runs made on disk in the real formats, with steps that are a few lines each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.ids import doc_id, text_id
from curation.records import PARTNER_COLUMNS, SHARD_SCHEMA, ScoreColumn, verdict_schema
from curation.run import Run, file_sha256, write_json
from curation.shards import write_table
from curation.verdicts import Decision


@dataclass
class Doc:
    """A document of a made run."""

    text: str
    url: str | None = "https://example.org/page"
    source: str = "/data/crawl-00.jsonl"
    id: str = ""


@dataclass
class Judgement:
    """A step: what it declares, and a function from living texts to scores and reason numbers (-1 = kept)."""

    name: str
    judge: Callable[[list[str], list[bytes]], tuple[dict[str, list[Any]], list[int]]]
    reasons: dict[str, str]
    scores: Sequence[ScoreColumn]
    thresholds: dict[str, list[float]] = field(default_factory=dict)
    summary: str = "A step of the tests."
    facts: dict[str, Any] | None = None
    """None: the marker has none, as in runs before there were facts."""


def length_step(least: int = 5) -> Judgement:
    """Drops texts of fewer than `least` words."""

    def judge(texts: list[str], ids: list[bytes]) -> tuple[dict[str, list[Any]], list[int]]:
        words = [len(text.split()) for text in texts]
        share = [sum(c.isalpha() for c in text) / max(len(text), 1) for text in texts]
        return {"n_words": words, "letter_share": share}, [0 if n < least else -1 for n in words]

    scores = (
        ScoreColumn("n_words", pa.int32(), "words", "words of the document"),
        ScoreColumn("letter_share", pa.float32(), "share", "letters among the characters"),
    )
    reasons = {"length.too_short": "fewer words than min_words", "length.too_long": "more words than max_words"}
    return Judgement("length", judge, reasons, scores, {"n_words": [float(least)]}, "Drops very short documents.")


def language_step() -> Judgement:
    """Keeps everything; its score is a word."""

    def judge(texts: list[str], ids: list[bytes]) -> tuple[dict[str, list[Any]], list[int]]:
        return {"language": ["zh" if any("\u4e00" <= c <= "\u9fff" for c in t) else "en" for t in texts]}, [-1] * len(
            texts
        )

    scores = (ScoreColumn("language", pa.string(), "language", "language of most lines"),)
    return Judgement("language", judge, {"language.unwanted": "not a wanted language"}, scores)


def copies_step() -> Judgement:
    """Keeps the first of equal texts, as a data-set step does."""

    def judge(texts: list[str], ids: list[bytes]) -> tuple[dict[str, list[Any]], list[int]]:
        first: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for i, text in enumerate(texts):
            first.setdefault(text, i)
            sizes[text] = sizes.get(text, 0) + 1
        copy = [first[text] != i for i, text in enumerate(texts)]
        scores: dict[str, list[Any]] = {
            "kept_doc_id": [ids[first[t]] if c else None for t, c in zip(texts, copy, strict=True)],
            "similarity": [1.0 if c else None for c in copy],
            "group_size": [sizes[t] for t in texts],
        }
        return scores, [0 if c else -1 for c in copy]

    reasons = {"exact.duplicate": "the same text is kept elsewhere"}
    return Judgement("exact", judge, reasons, PARTNER_COLUMNS, summary="Drops copies.")


def near_step(
    partners: dict[str, tuple[str | bytes, float, int]], facts: dict[str, Any] | None = None, found_by: str = "both"
) -> Judgement:
    """Drops documents by a list, as near-deduplication does.

    Args:
        partners: for each dropped text its kept text, or the doc_id of one in an earlier run; similarity; size of its group.
    """
    sizes = {kept: size for kept, _, size in partners.values()}

    def judge(texts: list[str], ids: list[bytes]) -> tuple[dict[str, list[Any]], list[int]]:
        found = [partners.get(text) for text in texts]
        kept = [one and (one[0] if isinstance(one[0], bytes) else ids[texts.index(one[0])]) for one in found]
        scores: dict[str, list[Any]] = {
            "kept_doc_id": kept,
            "similarity": [one and one[1] for one in found],
            "group_size": [one[2] if one else sizes.get(text, 1) for one, text in zip(found, texts, strict=True)],
            "found_by": [one and found_by for one in found],
        }
        return scores, [-1 if one is None else 0 if isinstance(one[0], bytes) else 1 for one in found]

    reasons = {"near.duplicate_of_earlier": "kept by an earlier run", "near.duplicate": "kept in this run"}
    columns = (*PARTNER_COLUMNS, ScoreColumn("found_by", pa.string(), "signature", "which signatures it shares"))
    return Judgement("near", judge, reasons, columns, {"similarity": [0.9]}, "Drops near-copies.", facts)


def make_run(
    root: Path,
    docs: Sequence[Doc],
    steps: Sequence[Judgement] = (),
    *,
    quarantine: Sequence[dict[str, Any]] = (),
    pack: bool = False,
    shard_rows: int = 1000,
    state: str = "done",
    error: str | None = None,
    config_text: str = "name: made\nsteps: []\n",
) -> Path:
    """Write a whole run in one shard after the other; returns its folder. Data-set steps see one shard only."""
    sources = sorted({doc.source for doc in docs}) or ["/data/empty.jsonl"]
    run = Run.create(
        root, run_id="made-20260520-142322-8c4a", config_text=config_text, config_digest="8c4a0000", inputs=sources
    )
    parts = [docs[i : i + shard_rows] for i in range(0, len(docs), shard_rows)]
    ids = _write_shards(run, parts, quarantine)
    _write_inputs(run, docs, sources, quarantine)
    alive = [np.ones(len(part), np.bool_) for part in parts]
    lines = []
    for index, step in enumerate(steps):
        lines.append(_write_step(run, index, step, parts, ids, alive))
    kept = int(sum(mask.sum() for mask in alive))
    packed = _write_pack(run, kept) if pack else None
    shards = json.loads((run.shards / "_done.json").read_text())
    funnel = {
        "run_id": run.run_id,
        "inputs": {k: shards[k] for k in ("files", "bytes", "lines")},
        "documents": len(docs),
        "quarantined": shards["quarantined"],
        "ingest": {"seconds": 1.5, "peak_rss_mb": 120.0, "damaged_files": 0},
        "steps": lines,
        "kept": kept,
        "packed": packed,
    }
    write_json(run.report / "funnel.json", funnel)
    run.update(
        state=state,
        error=error,
        start="2026-05-20T14:23:22Z",
        end="2026-05-20T14:25:30Z",
        host="mill",
        code_version="0.1.0",
    )
    return run.folder


def _write_shards(run: Run, parts: Sequence[Sequence[Doc]], quarantine: Sequence[dict[str, Any]]) -> list[list[bytes]]:
    all_ids: list[list[bytes]] = []
    shards: list[dict[str, Any]] = []
    line = 0
    for number, part in enumerate(parts):
        ids, rows = [], []
        for doc in part:
            line += 1
            content = text_id(doc.text)
            ids.append(doc_id(doc.source, line * 100, 0, content))
            rows.append(
                {
                    "doc_id": ids[-1], "text_id": content, "id": doc.id or f"d{line}", "source": doc.source, "url": doc.url,
                    "line": line, "byte_offset": line * 100, "text": doc.text, "meta": None,
                }
            )  # fmt: skip
        path = run.shard_path(f"{number:05d}")
        write_table(path, pa.Table.from_pylist(rows, schema=SHARD_SCHEMA))
        text_bytes = sum(len(doc.text.encode()) for doc in part)
        shards.append({"name": path.stem, "rows": len(part), "text_bytes": text_bytes, "sha256": file_sha256(path)})
        all_ids.append(ids)
    reasons = [entry["reason"] for entry in quarantine]
    marker = {
        "files": len({doc.source for part in parts for doc in part}),
        "bytes": sum(s["text_bytes"] for s in shards), "lines": sum(s["rows"] for s in shards) + len(reasons),
        "documents": sum(s["rows"] for s in shards), "quarantined": {r: reasons.count(r) for r in sorted(set(reasons))},
        "seconds": 1.5, "peak_rss_mb": 120.0, "damaged_files": 0, "shards": shards,
    }  # fmt: skip
    write_json(run.shards / "_done.json", marker)
    if quarantine:
        run.quarantine.mkdir()
        text = "".join(json.dumps(entry) + "\n" for entry in quarantine)
        (run.quarantine / "00000.jsonl").write_text(text, encoding="utf-8")
    return all_ids


def _write_inputs(run: Run, docs: Sequence[Doc], sources: Sequence[str], quarantine: Sequence[dict[str, Any]]) -> None:
    inputs = []
    for source in sources:
        reasons = [entry["reason"] for entry in quarantine if entry["file"] == source]
        good = [doc for doc in docs if doc.source == source]
        inputs.append(
            {
                "source": source, "kind": "jsonl", "bytes": sum(len(d.text.encode()) for d in good), "sha256": "0" * 64,
                "lines_good": len(good), "lines_bad": len(reasons), "bad": {r: reasons.count(r) for r in sorted(set(reasons))},
                "damaged": ["truncated_stream"] if source.endswith(".gz") else [], "notes": {},
            }
        )  # fmt: skip
    write_json(run.folder / "inputs.json", inputs)


def _write_step(
    run: Run, index: int, step: Judgement, parts: Sequence[Sequence[Doc]], ids: list[list[bytes]], alive: list[Any]
) -> dict[str, Any]:
    digest = f"{index + 1:08x}"
    folder = run.steps / f"{index + 1:02d}-{step.name}-{digest}"
    card = {
        "name": step.name, "version": 1, "summary": step.summary, "config": {}, "reasons": step.reasons,
        "scores": [{"name": s.name, "unit": s.unit, "what": s.what} for s in step.scores],
        "thresholds": step.thresholds, "digest": digest, "score_digest": digest,
    }  # fmt: skip
    write_json(folder / "_step.json", card)
    total: dict[str, Any] = {"docs_in": 0, "docs_kept": 0, "bytes_in": 0, "bytes_kept": 0}
    dropped: dict[str, int] = {}
    for number, part in enumerate(parts):
        rows = np.flatnonzero(alive[number]).tolist()
        scores, reasons = step.judge([part[i].text for i in rows], [ids[number][i] for i in rows])
        decision = Decision(np.array([r < 0 for r in reasons], np.bool_), np.array(reasons, np.int16))
        take = pa.array(np.cumsum(alive[number]) - 1, mask=~alive[number], type=pa.int64())
        columns = [pa.array(decision.keep, pa.bool_()).take(take), decision.reason_array(list(step.reasons)).take(take)]
        columns += [pa.array(scores[s.name], s.type).take(take) for s in step.scores]
        path = folder / f"{number:05d}.arrow"
        write_table(path, pa.RecordBatch.from_arrays(columns, schema=verdict_schema(step.scores)))
        lengths = np.array([len(part[i].text.encode()) for i in rows], np.int64)
        names = list(step.reasons)
        here = {names[r]: reasons.count(r) for r in sorted({r for r in reasons if r >= 0})}
        item: dict[str, Any] = {
            "rows": len(part), "docs_in": len(rows), "kept": int(decision.keep.sum()), "dropped": here,
            "bytes_in": int(lengths.sum()), "bytes_kept": int(lengths[decision.keep].sum()), "shard_sha256": "",
            "verdict_sha256": file_sha256(path), "seconds": 0.25 + number, "peak_rss_mb": 150.0,
        }  # fmt: skip
        write_json(folder / "_items" / f"{number:05d}.json", item)
        for key, its in (
            ("docs_in", "docs_in"),
            ("docs_kept", "kept"),
            ("bytes_in", "bytes_in"),
            ("bytes_kept", "bytes_kept"),
        ):
            total[key] += item[its]
        for name, n in here.items():
            dropped[name] = dropped.get(name, 0) + n
        alive[number][np.array(rows, np.int64)[~decision.keep]] = False
    line = {"name": step.name, "digest": digest, **total, "dropped": dropped, "seconds": 0.25, "peak_rss_mb": 150.0}
    facts = {} if step.facts is None else {"facts": step.facts}
    write_json(folder / "_done.json", {**line, **facts, "shards": []})
    return line


def _write_pack(run: Run, kept: int) -> dict[str, Any]:
    import pyarrow.parquet as pq

    packed = {
        "documents": kept,
        "tokens": 1234 * kept,
        "sequences": kept,
        "seq_len": 2048,
        "padding_share": 0.0003,
        "unk_share": 0.0,
    }
    run.pack.mkdir()
    pq.write_table(pa.table({"n_tokens": pa.array([1234] * kept, pa.int32())}), run.pack / "documents.parquet")
    write_json(
        run.pack / "_done.json",
        {"digest": "x", "bytes": 4936 * kept, "packed": packed, "seconds": 0.5, "peak_rss_mb": 90.0},
    )
    return packed


class Page(HTMLParser):
    """A report taken apart: tags, attributes, text; fails on an element that is not closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.bytes = path.read_bytes()
        self.html = self.bytes.decode("utf-8")
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        """Tag, attribute, value."""
        self.text = ""
        self._open: list[str] = []
        self.feed(self.html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    @property
    def words(self) -> str:
        """The text with every run of blanks as one."""
        return " ".join(self.text.split())

    def row(self, head: str) -> list[str]:
        """Texts of the first table row whose first cell begins with `head`."""
        for match in re.finditer(r"<tr[^>]*>(.*?)</tr>", self.html, re.DOTALL):
            cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", match.group(1), re.DOTALL)
            texts = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]
            if texts and texts[0].startswith(head):
                return texts
        raise AssertionError(f"no row {head!r}")


@dataclass
class Maker:
    """Makes runs and opens their reports."""

    root: Path
    doc: type[Doc] = Doc
    length: Callable[..., Judgement] = length_step
    language: Callable[..., Judgement] = language_step
    exact: Callable[..., Judgement] = copies_step
    near: Callable[..., Judgement] = near_step

    def run(self, docs: Sequence[Doc], steps: Sequence[Judgement] = (), **options: Any) -> Path:
        """The folder of a made run; see `make_run`."""
        return make_run(self.root, docs, steps, **options)

    def page(self, folder: Path) -> Page:
        """Build the report of a run and take it apart."""
        from curation.report.build import write_report

        return Page(write_report(folder))


@pytest.fixture
def made(tmp_path: Path) -> Maker:
    return Maker(tmp_path)
