"""A drawn sample: every outcome is in it, weights add up to the run, and the cut into shards does not change what is drawn."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from curation.config import parse_config
from curation.errors import ConfigError, RunError
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from curation.sampling.draw import COMPANION, draw_sample, source_groups
from curation.sampling.strata import LEAST, Reservoir, Stratum, allotted, chosen, combined
from curation.steps import STEPS, step_class

CONFIG = "name: t\ningest: {shard_mb: 1, slice_mb: 1}\nsteps: [exact, language, length]\n"
LANGUAGES = ("eng_Latn", "jpn_Jpan", "deu_Latn")


@pytest.fixture(autouse=True)
def fake_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The step `language` reads its label from the text, so that nothing is compiled."""
    monkeypatch.setitem(STEPS, "language", "tests.language_fake:FakeLanguage")
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    step_class.cache_clear()
    yield
    step_class.cache_clear()


def crawl(folder: Path, count: int = 1200) -> list[Path]:
    """Two sources, three languages, three lengths, short documents, exact copies; one label in four."""
    paths = [
        folder / "cc-2026" / "part-001.jsonl",
        folder / "cc-2026" / "part-002.jsonl",
        folder / "wiki" / "dump.jsonl",
    ]
    files: dict[Path, list[str]] = {path: [] for path in paths}
    for number in range(count):
        language = LANGUAGES[0 if number % 7 else 1 + number % 2]
        words = (3, 40, 40, 300)[number % 4]
        told = number if number % 11 else number // 22  # every eleventh is a copy of an earlier one
        text = f"{language}:0.9 number {told} " + " ".join(f"word{told % 97}" for _ in range(words))
        record: dict[str, Any] = {"id": f"d{number}", "text": text, "url": f"https://example.org/{number}"}
        if number % 4 == 0:
            record["quality"] = "good"
        files[paths[number % 3]].append(json.dumps(record))
    for path, lines in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def judged(folder: Path, paths: list[Path], root: str = "root", config: str = CONFIG, workers: int = 1) -> Pipeline:
    """A finished run."""
    pipeline = start_run(parse_config(config), [str(path) for path in paths], folder / root)
    drive(pipeline, workers=workers)
    return pipeline


def records(folder: Path) -> list[dict[str, Any]]:
    """All documents of a sample."""
    lines = []
    for path in sorted(folder.glob("sample-*.jsonl.zst")):
        lines += io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(path.open("rb")), "utf-8").readlines()
    return [json.loads(line) for line in lines]


def files_of(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- the whole --------------------------------------------------------------------------------------


def test_a_sample_stands_for_its_run(tmp_path: Path) -> None:
    """Every outcome is drawn, weights add up to each stratum's documents, and ids, labels, sources are those of the run."""
    pipeline = judged(tmp_path, crawl(tmp_path / "in"))

    made = draw_sample(pipeline, tmp_path / "sample", 120)

    found, card = records(tmp_path / "sample"), json.loads((tmp_path / "sample" / "sample.json").read_text())
    assert made.population == card["population"] == 1200
    assert made.documents == card["documents"] == len(found) == 120 + made.companions
    assert {stratum.outcome for stratum, _, _ in made.strata} == {"kept", "dropped by exact", "dropped by length"}
    weights: Counter[int] = Counter()
    drawn: Counter[int] = Counter()
    for record in found:
        weights[record["sample"]["stratum"]] += record["sample"]["weight"]
        drawn[record["sample"]["stratum"]] += 1
        assert record["url"] == f"https://example.org/{record['id'][1:]}"
        assert (record.get("quality") == "good") == (int(record["id"][1:]) % 4 == 0)
        assert record["sample"]["source"] in ("cc-2026", "wiki")
    for stratum in card["strata"]:
        assert drawn[stratum["stratum"]] == stratum["sampled"] >= min(LEAST, stratum["population"])
        assert weights[stratum["stratum"]] == pytest.approx(stratum["population"], abs=1e-6)


def test_copies_bring_the_document_they_are_copies_of(tmp_path: Path) -> None:
    """Judged again, what `exact` had dropped is dropped again: the kept document is there, and stands for nothing."""
    pipeline = judged(tmp_path, crawl(tmp_path / "in"))
    made = draw_sample(pipeline, tmp_path / "sample", 60)

    found = records(tmp_path / "sample")
    companions = [one for one in found if one["sample"]["weight"] == COMPANION]
    assert len(companions) == made.companions > 0
    again = judged(tmp_path, sorted((tmp_path / "sample").glob("*.zst")), "again")
    before = sum(count for stratum, count, _ in made.strata if stratum.outcome == "dropped by exact")
    sent = json.loads((again.placed[0].folder / "_done.json").read_text())["dropped"]["exact.duplicate"]
    assert sent >= before  # two copies of one text, of which neither was the kept one, are one more


def test_shards_change_nothing(tmp_path: Path) -> None:
    """The same documents are drawn from a run of one shard and of several, and once more; another seed draws others."""
    paths = crawl(tmp_path / "in", 3000)
    folders = []
    for number, shard_mb in enumerate((1, 64)):
        config = CONFIG.replace("_mb: 1", f"_mb: {shard_mb}")
        pipeline = judged(tmp_path, paths, f"root{number}", config)
        folders.append(tmp_path / f"sample{number}")
        draw_sample(pipeline, folders[-1], 100)
        draw_sample(pipeline, folders[-1], 100)
    few, many = (records(folder) for folder in folders)
    assert len(pipeline.shards) == 1 < len(Pipeline.open(next((tmp_path / "root0" / "runs").iterdir())).shards)

    assert few == many
    draw_sample(pipeline, folders[0], 100, seed=1)
    assert records(folders[0]) != many


def test_of_a_small_run_everything_is_drawn(tmp_path: Path) -> None:
    """A run with fewer documents than asked for: all of them, each standing for itself, in the run's order."""
    pipeline = judged(tmp_path, crawl(tmp_path / "in", 90)[:1])

    made = draw_sample(pipeline, tmp_path / "sample", 2000)

    found = records(tmp_path / "sample")
    assert [one["id"] for one in found] == [f"d{number}" for number in range(0, 90, 3)]
    assert {one["sample"]["weight"] for one in found} == {1.0}
    assert made.companions == 0


# -- refusals ---------------------------------------------------------------------------------------


def test_what_is_not_a_sample_is_never_removed(tmp_path: Path) -> None:
    """A folder with anything else in it, and a file, are refused; an earlier sample is replaced."""
    pipeline = judged(tmp_path, crawl(tmp_path / "in", 60))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"thesis\.txt, which is no part of a sample"):
        draw_sample(pipeline, tmp_path / "mine")
    with pytest.raises(ConfigError, match="expected a folder, found a file"):
        draw_sample(pipeline, tmp_path / "mine" / "thesis.txt")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    draw_sample(pipeline, tmp_path / "sample")
    (tmp_path / "sample" / "sample-0007.jsonl.zst").write_bytes(b"left over")
    draw_sample(pipeline, tmp_path / "sample")
    assert sorted(files_of(tmp_path / "sample")) == ["sample-0000.jsonl.zst", "sample.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "mine", "root", "sample"]


def test_a_run_that_is_not_done_and_a_sample_that_is_too_small_are_refused(tmp_path: Path) -> None:
    """Nothing is written."""
    paths = crawl(tmp_path / "in", 60)
    with pytest.raises(RunError, match="is not done"):
        draw_sample(start_run(parse_config(CONFIG), [str(paths[0])], tmp_path / "open"), tmp_path / "sample")
    with pytest.raises(ConfigError, match="expected at least 40, 10 for each outcome"):
        draw_sample(judged(tmp_path, paths), tmp_path / "sample", 39)
    assert not (tmp_path / "sample").exists()


# -- parts ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=60), st.integers(60, 3000))
def test_allotted(populations: list[int], documents: int) -> None:
    """All there is or as many as wanted; LEAST or all of each stratum where there is room; more of a larger one."""
    counts = allotted(populations, documents)

    assert sum(counts) == min(documents, sum(populations))
    least = min(LEAST, documents // len(populations))
    for population, count in zip(populations, counts, strict=True):
        assert min(least, population) <= count <= population
    ranked = sorted(zip(populations, counts, strict=True))
    assert all(later[1] >= earlier[1] - 1 for earlier, later in pairwise(ranked))


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz"), st.sampled_from("kd"), st.integers(1, 400)),
        max_size=80,
    )
)
def test_combined(rows: list[tuple[str, str, str, int]]) -> None:
    """No document is lost, outcomes stay apart, and there is room for LEAST of each in half of the sample, if not all is one."""
    found: dict[Stratum, Reservoir] = {}
    for number, (language, source, outcome, size) in enumerate(rows):
        keys = np.arange(size, dtype=np.uint64) * np.uint64(7919) + np.uint64(number)
        reservoir = found.setdefault(Stratum(language, source, "< 200", outcome), Reservoir(60))
        reservoir.add(keys, number, np.arange(size, dtype=np.int64))

    strata = combined(dict(found), 60)

    sizes: Counter[str] = Counter()
    for stratum, reservoir in strata.items():
        sizes[stratum.outcome] += reservoir.population
    asked: Counter[str] = Counter()
    for _, _, outcome, size in rows:
        asked[outcome] += size
    assert sizes == asked
    assert 2 * LEAST * len(strata) <= 60
    counts = allotted([one.population for one in strata.values()], 60) if strata else []
    drawn = chosen(strata.values(), counts)
    assert len({(one.shard, one.row) for one in drawn}) == len(drawn) == min(60, sum(asked.values()))


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=300), st.integers(1, 40), st.integers(1, 50))
def test_a_reservoir_holds_the_smallest_keys_however_they_come(keys: list[int], most: int, piece: int) -> None:
    """Any cut into pieces, and a merge of two, hold the same documents as one sort of all."""
    one, other = Reservoir(most), Reservoir(most)
    for start in range(0, len(keys), piece):
        part = np.array(keys[start : start + piece], np.uint64)
        rows = np.arange(start, start + len(part), dtype=np.int64)
        (one if start % 2 else other).add(part, 0, rows)
    one.merge(other)

    assert [int(item["key"]) for item in one.items()] == sorted(keys)[:most]
    assert one.population == len(keys)


def test_source_groups() -> None:
    """Folders below the shared one; numbers in names left out; the smallest beyond twenty are others; URLs too."""
    assert source_groups({"/c/a/1.jsonl": 5, "/c/a/2.jsonl": 5, "/c/b/x.jsonl": 1}) == {
        "/c/a/1.jsonl": "a",
        "/c/a/2.jsonl": "a",
        "/c/b/x.jsonl": "b",
    }
    assert set(source_groups({f"s3://crawl/part-{n:05}.warc.gz": 1 for n in range(90)}).values()) == {"part-#.warc.gz"}
    assert source_groups({"/only.jsonl": 3}) == {"/only.jsonl": "only.jsonl"}
    assert source_groups({}) == {}
    many = source_groups({f"/c/{'abcdefghijklmnopqrstuvwxyz'[n]}/x.jsonl": 100 - n for n in range(26)})
    assert [many[f"/c/{letter}/x.jsonl"] for letter in "atuz"] == ["a", "t", "others", "others"]
