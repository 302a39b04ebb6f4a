"""The stage `pack` of a run: who lies where, what a changed config costs, and what stops it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from curation.check import damaged_files, verify_run
from curation.config import RunConfig, parse_config
from curation.errors import ConfigError, LawError, RunError
from curation.export import kept_batches
from curation.funnel import build_funnel
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import read_json, write_json
from curation.steps import STEPS, step_class
from tests.language_fake import fake_language  # noqa: F401  (a fixture)
from tests.parity_variants import small, twin
from tokenization.reader import TokenFile

FILES = ("documents.parquet", "manifest.json", "tokens.arrow")
MIX = {"by": "language", "epochs": {"jpn_Jpan": 2, "fra_Latn": 0, "eng_Latn": 0.5}}
PACK = {"seq_len": [64, 256], "holdout_share": 0.2, "shuffle_seed": 5, "mix": MIX, "engine": "stock"}
LANGUAGES = ("jpn_Jpan", "fra_Latn", "eng_Latn", "zho_Hans")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch, fake_language: Any) -> None:  # noqa: F811
    """These runs need not survive a power cut, and know the languages that a text names."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(small(tmp_path_factory.mktemp("ours"))[0])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 documents in four languages; some are copies, some too short, one is longer than a sequence of 64."""
    path = tmp_path_factory.mktemp("in") / "a.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for n in range(240):
            line = f"{LANGUAGES[n % 4]}:0.9 the mill by the river number {n % 200} turns"
            text = "ok" if n % 40 == 7 else "\n".join([line] * (1 + n % 3 + 20 * (n == 20)))
            out.write(json.dumps({"id": f"d{n}", "text": text + " by <tool>" * (n == 33)}) + "\n")
    return path


def config(tokenizer: str, **pack: Any) -> RunConfig:
    steps = ["exact", "language", {"length": {"min_units": 3}}]
    return parse_config(yaml.safe_dump({"name": "p", "steps": steps, "pack": {"tokenizer": tokenizer, **pack}}))


def started(source: Path, root: Path, tokenizer: str, **pack: Any) -> Pipeline:
    return start_run(config(tokenizer, **pack), [str(source)], root, run_id="r")


def finished(source: Path, root: Path, tokenizer: str, **pack: Any) -> Pipeline:
    pipeline = started(source, root, tokenizer, **pack)
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return pipeline


def until(pipeline: Pipeline, last: str) -> list[dict[str, Any]]:
    """Everything up to a pass of `pack`, which is not closed; what that pass returned."""
    for stage in pipeline.stages():
        for work in pipeline.passes(stage):
            done = [pipeline.run_item(work.name, item) for item in range(work.n_items)]
            if work.name == last:
                return done
        pipeline.close(stage)
    raise AssertionError(f"no pass {last}")


def packed(pipeline: Pipeline, place: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(pipeline.run.pack / place / "documents.parquet").to_pylist()
    return rows


def kept(pipeline: Pipeline) -> dict[str, str]:
    """Language of every kept document, by its id."""
    rows = [row for batch in kept_batches(pipeline, ("id", "text")) for row in batch.to_pylist()]
    return {row["id"]: row["text"].partition(":")[0] for row in rows}


def contents(pipeline: Pipeline) -> dict[str, bytes]:
    folder = pipeline.run.pack
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def names(pipeline: Pipeline) -> set[str]:
    return set(contents(pipeline)) - {"_done.json", "parity.json"}


def places(*folders: str) -> set[str]:
    return {str(Path(folder) / name) for folder in folders for name in FILES}


# -- who lies where ------------------------------------------------------------------------------


def test_every_kept_document_is_packed_held_out_or_left_out(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """Of each length the same; no document on both sides; the epochs of its language; the sums are those of the funnel."""
    pipeline = finished(source, tmp_path, tokenizer, **PACK)
    languages = kept(pipeline)
    numbers = build_funnel(pipeline)["packed"]
    train, held = packed(pipeline, ""), packed(pipeline, "holdout")

    copies = Counter(row["id"] for row in train)
    out = {row["id"] for row in held}
    assert not copies.keys() & out
    left_out = languages.keys() - copies.keys() - out
    assert {languages[one] for one in left_out} == {"fra_Latn", "eng_Latn"}
    assert {copies[one] for one in copies if languages[one] == "jpn_Jpan"} == {2}
    assert {copies[one] for one in copies if languages[one] == "zho_Hans"} == {1}
    assert {languages[one] for one in out} == {"jpn_Jpan", "eng_Latn", "zho_Hans"}, "what is not wanted is not held out"
    assert {copies[one] for one in copies if languages[one] == "eng_Latn"} == {1}
    assert {row["language"] for row in train} == {"jpn_Jpan", "eng_Latn", "zho_Hans"}
    assert all(row["language"] == languages[row["id"]] for row in train + held)

    assert len(languages) == numbers["documents"] + numbers["left_out"]
    assert (numbers["documents"], numbers["left_out"]) == (len(copies) + len(out), len(left_out))
    assert (numbers["copies"], numbers["holdout_documents"]) == (len(train), len(out))

    def who(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        return Counter((row["doc_id"], row["epoch"], row["n_tokens"]) for row in rows)

    assert who(packed(pipeline, "256")) == who(train)
    assert who(packed(pipeline, "256/holdout")) == who(held)


def test_the_files_say_what_the_marker_says(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """The marker names every file there is, with its size; work/ is gone; each folder opens by itself; verify is content."""
    pipeline = finished(source, tmp_path, tokenizer, **PACK)
    marker = read_json(pipeline.run.pack / "_done.json")

    assert names(pipeline) == set(marker["files"]) == places("", "holdout", "256", "256/holdout")
    assert marker["files"] == {name: len(contents(pipeline)[name]) for name in marker["files"]}
    assert not pipeline.run.work.exists()
    for one in marker["packed"]["files"]:
        file = TokenFile(pipeline.run.pack / one["path"], verify="all")
        assert (len(file), file[0].shape) == (one["sequences"], (one["seq_len"],))
        said = read_json((pipeline.run.pack / one["path"]).with_name("manifest.json"))
        assert (said["split"], said["tokens"], said["documents"]) == (one["split"], one["tokens"], one["documents"])
    lines, whole = verify_run(pipeline.run.folder)
    assert whole
    assert len(lines) == 5, "one for each token file, one for the run"


@pytest.mark.parametrize("key", ["documents", "left_out"])
def test_a_lost_document_stops_the_run(source: Path, tmp_path: Path, tokenizer: str, key: str) -> None:
    """One less in the marker than was kept: the stage is not closed, and the parts stay."""
    pipeline = started(source, tmp_path, tokenizer, **PACK)
    until(pipeline, "pack.assemble")
    marker = read_json(pipeline.run.pack / "_done.json")
    marker["packed"][key] -= 1
    write_json(pipeline.run.pack / "_done.json", marker)

    with pytest.raises(LawError, match="documents were kept, but"):
        pipeline.close("pack")

    assert pipeline.run.work.exists()


def test_the_law_is_counted_on_the_files(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """A table of another file with fewer documents, of the size that the marker names: not the marker alone is asked."""
    pipeline = started(source, tmp_path, tokenizer, **PACK)
    until(pipeline, "pack.assemble")
    path, marker_path = pipeline.run.pack / "256" / "documents.parquet", pipeline.run.pack / "_done.json"
    pq.write_table(pq.read_table(path).slice(1), path)
    marker = read_json(marker_path)
    marker["files"]["256/documents.parquet"] = path.stat().st_size
    write_json(marker_path, marker)

    with pytest.raises(LawError, match="256"):
        pipeline.close("pack")


def test_nothing_kept(tmp_path: Path, tokenizer: str) -> None:
    """No document is a file of no sequence, in every folder."""
    source = tmp_path / "a.jsonl"
    source.write_text('{"id": "1", "text": "ok"}\n', encoding="utf-8")

    pipeline = finished(source, tmp_path / "root", tokenizer, **PACK)

    assert build_funnel(pipeline)["packed"]["documents"] == 0
    assert names(pipeline) == places("", "holdout", "256", "256/holdout")


# -- another config in the same run --------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "folders"),
    [
        ({"seq_len": [256, 64]}, ("", "holdout", "64", "64/holdout")),
        ({"seq_len": 64}, ("", "holdout")),
        ({"holdout_share": 0}, ("", "256")),
        ({"mix": None}, ("", "holdout", "256", "256/holdout")),
        ({"shuffle_seed": None}, ("", "holdout", "256", "256/holdout")),
        ({"seq_len": 64, "holdout_share": 0, "mix": None}, ("",)),
    ],
)
def test_another_config_encodes_nothing_again(
    source: Path, tmp_path: Path, tokenizer: str, change: dict[str, Any], folders: tuple[str, ...]
) -> None:
    """Before the stage is closed its parts serve every length, split and mixture; files of the earlier config go, with
    their folders; the result is that of a run of its own."""
    first = started(source, tmp_path / "root", tokenizer, **PACK)
    until(first, "pack.assemble")

    second = started(source, tmp_path / "root", tokenizer, **{**PACK, **change})
    assert {done["reused"] for done in until(second, "pack.encode")} == {True}
    drive(second, workers=1)
    finish_run(second)

    alone = finished(source, tmp_path / "alone", tokenizer, **{**PACK, **change})
    assert names(second) == places(*folders)
    assert {p for p in second.run.pack.rglob("*") if p.is_dir()} == {second.run.pack / one for one in folders if one}
    for name in names(second):
        if not name.endswith("manifest.json"):
            assert contents(second)[name] == contents(alone)[name], name


def test_after_the_close_it_encodes_once_more(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """The parts are gone: they are made again, and nothing before them; what somebody put beside our files stays his."""
    first = finished(source, tmp_path, tokenizer, **PACK)
    own = [first.run.pack / name for name in ("256/notes.txt", "mine/tokens.arrow", "copy/256/manifest.json")]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine", encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in first.run.steps.rglob("*")}

    second = started(source, tmp_path, tokenizer, **{**PACK, "seq_len": 64})
    assert {done["reused"] for done in until(second, "pack.encode")} == {False}
    drive(second, workers=1)
    finish_run(second)

    assert names(second) == places("", "holdout") | {str(path.relative_to(first.run.pack)) for path in own}
    assert {path: path.stat().st_mtime_ns for path in first.run.steps.rglob("*")} == before


def test_the_same_command_again_does_nothing(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """Not even parity."""
    first = finished(source, tmp_path, tokenizer, **PACK)
    before = contents(first)

    assert started(source, tmp_path, tokenizer, **PACK).passes("pack") == []
    assert contents(finished(source, tmp_path, tokenizer, **PACK)) == before


def test_a_part_that_was_changed_is_made_again(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """By its checksum; the others are used."""
    pipeline = started(source, tmp_path, tokenizer, **PACK)
    until(pipeline, "pack.encode")
    part = next(pipeline.run.work.glob("pack-*/*.arrow"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)

    assert pipeline.run_item("pack.encode", 0)["reused"] is False
    assert pipeline.run_item("pack.encode", 0)["reused"] is True


# -- the trainer's tokenizer ---------------------------------------------------------------------


def test_nothing_is_encoded_where_parity_fails(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """One document differs, and no probe before the start: the run is failed with the message; parity.json says the same;
    mended, the same run goes on from there."""
    other = str(twin(tmp_path / "trainer", "added"))
    pipeline = started(source, tmp_path, tokenizer, **PACK, trainer=other)

    with pytest.raises(ConfigError, match=r"pack\.trainer: .*document d33: .*Likely cause: only the trainer") as told:
        drive(pipeline, workers=1)

    assert {path.name for path in pipeline.run.pack.iterdir()} == {"parity.json"}
    assert read_json(pipeline.run.pack / "parity.json")["equal"] is False
    assert list(pipeline.run.work.glob("pack-*")) == []
    info = read_json(pipeline.run.folder / "run.json")
    assert (info["state"], info["error"]) == ("failed", str(told.value))

    mended = finished(source, tmp_path, tokenizer, **PACK, trainer=tokenizer)
    found = read_json(mended.run.pack / "parity.json")
    assert found["equal"] is True
    assert found["sampled_documents"] == found["kept_documents"] == len(kept(mended))
    assert found["summary"].startswith("equal to tokenizer.json (")


def test_an_earlier_comparison_does_not_outlive_a_failed_one(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """A trainer's tokenizer that cannot be read gives no report, and `equal` of another day must not stand in its place."""
    pipeline = finished(source, tmp_path, tokenizer, **PACK)
    assert read_json(pipeline.run.pack / "parity.json")["equal"] is True
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"pack\.trainer"):
        drive(started(source, tmp_path, tokenizer, **PACK, trainer=str(broken)), workers=1)

    assert not (pipeline.run.pack / "parity.json").exists()


# -- damage --------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # it may be mapped
    path.write_bytes(data)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-9])


@pytest.fixture(scope="module")
def whole(source: Path, tokenizer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run's folder, which each test leaves as it found it."""
    root = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STEPS, "language", "tests.language_fake:FakeLanguage")
        step_class.cache_clear()
        yield finished(source, root, tokenizer, **PACK).run.folder
    step_class.cache_clear()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("256/tokens.arrow", flip),
        ("256/holdout/documents.parquet", flip),
        ("holdout/manifest.json", flip),
        ("holdout/manifest.json", Path.unlink),
        ("tokens.arrow", cut),
    ],
)
def test_a_damaged_file_of_any_folder_is_found_and_made_anew(
    whole: Path, source: Path, tokenizer: str, damage: Any, name: str
) -> None:
    """`verify` names it, exit code 1; deleted, as it says, the same command makes it again, byte for byte."""
    pipeline = Pipeline.open(whole)
    before = contents(pipeline)
    path = pipeline.run.pack / name
    damage(path)

    lines, well = verify_run(whole)
    assert not well
    assert [found for found, _ in damaged_files(pipeline)] == [path]
    assert str(path) in lines[0]
    assert "Delete them and run the same command again" in lines[-1]

    path.unlink(missing_ok=True)
    again = finished(source, whole.parents[1], tokenizer, **PACK)
    timed = ("_done.json", "parity.json")
    assert {n: data for n, data in contents(again).items() if n not in timed} == {
        n: data for n, data in before.items() if n not in timed
    }
    assert verify_run(whole)[1]


def test_a_stage_that_was_not_run_is_not_closed(source: Path, tmp_path: Path, tokenizer: str) -> None:
    """Nor verified: there is nothing to check."""
    pipeline = started(source, tmp_path, tokenizer, **PACK)
    until(pipeline, "pack.parity")

    with pytest.raises(RunError, match="no finished token file"):
        pipeline.close("pack")
    with pytest.raises(RunError, match=r"pack/_done\.json is missing"):
        verify_run(pipeline.run.folder)
