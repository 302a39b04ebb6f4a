"""A re-score of a run by a toy checkpoint: its numbers, what it reads, how it goes on, and what becomes of it."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from curation.blacklist import Blacklist, append
from curation.blacklist.signature import sign_texts
from curation.config import parse_config
from curation.errors import ConfigError, LawError, RunError
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from curation.rescore.checkpoints import Pinned, look, pin
from curation.rescore.choose import choose
from curation.rescore.config import ChooseConfig, DomainConfig, SampleConfig, ScoreConfig
from curation.rescore.entries import entries_of
from curation.rescore.score import SCORE_SCHEMA, Order, Rescore, threshold_folder
from curation.run import read_json, write_json
from curation.shards import batches, read_column
from quality_models.causal_lm import CausalLm
from quality_models.windows import WindowRule
from tests.language_fake import fake_language  # noqa: F401  (a fixture)
from tests.lm_oracle import write_bigrams

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

ORDER = Order("my gpt / 2", 400_000, 412_345)
CONFIG = ScoreConfig(window=128, dtype="float32", device="cpu")
PROSE = "eng_Latn:0.9 the mill by the river turns all day and grinds the corn of farm "
WHEN = datetime.now(timezone.utc).replace(microsecond=0)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch, fake_language: Any) -> None:  # noqa: F811
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of byte pairs that has read the prose and one line of boilerplate very often."""
    return write_bigrams(tmp_path_factory.mktemp("lm") / "bigrams", PROSE * 20 + "a" * 4000, positions=256)


def texts() -> list[str]:
    """120 of prose, 8 of noise, 8 that repeat themselves; every 10th too short to be kept, and 2 that say nothing of English."""
    found = []
    for n in range(136):
        if n % 17 == 3:
            found.append(f"eng_Latn:0.9 {n} " + " ".join(f"{n * k % 9973:x}QZ~" for k in range(1, 30)))
        elif n % 17 == 9:
            found.append("eng_Latn:0.9 " + "a" * (200 + n))
        else:
            found.append(PROSE + f"number {n}" if n % 10 else f"no {n}")
    return found


def begun(root: Path, *, steps: Any = ("language", {"length": {"min_units": 3}})) -> Pipeline:
    """A run of small shards whose steps are closed; pages of noise lie on a host of their own."""
    (root / "in").mkdir(parents=True)
    for name, part in (("a", texts()[:80]), ("b", texts()[80:])):
        lines = [
            {"text": text, "url": f"https://{'www.junk.example' if 'QZ' in text else 'good.example'}/{n}"}
            for n, text in enumerate(part)
        ]
        (root / "in" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = parse_config(yaml.safe_dump({"name": "p", "ingest": {"shard_mb": 1}, "steps": list(steps)}))
    pipeline = start_run(config, [str(root / "in")], root, run_id="crawl")
    drive(pipeline, workers=1)
    return Pipeline.open(pipeline.run.folder)


def pinned(root: Path, checkpoint: Path) -> Pinned:
    return pin(look(checkpoint, settled_s=-1e9), threshold_folder(root, ORDER.training_run, ORDER.threshold) / "_model")


def done(rescore: Rescore) -> dict[str, Any]:
    """Do every item and close."""
    for one in rescore.passes():
        for item in range(one.n_items):
            rescore.run_item(one.name, item)
    return rescore.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def kept_texts(pipeline: Pipeline) -> list[str]:
    """Texts with more than two words, as the step `length` keeps them."""
    whole = [text for shard in pipeline.shards for text in read_column(shard, "text").to_pylist()]
    return [text for text in whole if not text.startswith("no ")]


def test_scores_are_what_the_model_says_of_kept_documents(root: Path, checkpoint: Path) -> None:
    """Loss per token and bits per byte of each kept document equal a judgement of its text alone."""
    pipeline = begun(root)
    rescore = Rescore.create(root, pipeline, ORDER, pinned(root, checkpoint), CONFIG)
    totals = done(rescore)
    table = rescore.scores()
    assert table.schema == SCORE_SCHEMA
    kept = kept_texts(pipeline)
    assert (totals["documents"], totals["read"], totals["judged"], totals["left_out"]) == (len(kept),) * 3 + (0,)
    lm = CausalLm(str(checkpoint), WindowRule(128, 96), "float32", "cpu")
    for row in (0, 3, 9, len(kept) - 1):
        nats, tokens, _, n_bytes = (one[0] for one in lm.judge([kept[row]]))
        assert table.column("loss")[row].as_py() == nats / tokens
        assert table.column("bits_per_byte")[row].as_py() == nats / np.log(2) / n_bytes
        assert table.column("tokens")[row].as_py() == tokens
    assert set(table.column("language").to_pylist()) == {"eng_Latn"}
    assert {Path(one).name for one in table.column("source").to_pylist()} == {"a.jsonl", "b.jsonl"}
    assert rescore.folder.parent.parent.name.startswith("training-")  # no name of a training is a path


def test_all_documents_by_script_and_domain(root: Path, checkpoint: Path) -> None:
    """`all` reads dropped ones too; without a language their script is named; `domain` is the host."""
    pipeline = begun(root)
    config = CONFIG.model_copy(update={"documents": "all", "source": "domain"})
    rescore = Rescore.create(root, pipeline, ORDER, pinned(root, checkpoint), config)
    assert done(rescore)["documents"] == len(texts())
    table = rescore.scores()
    assert set(table.column("source").to_pylist()) == {"junk.example", "good.example"}
    assert set(table.column("language").to_pylist()) == {"eng_Latn", "und_Latn"}


def test_it_goes_on_where_it_stopped(root: Path, checkpoint: Path) -> None:
    """Items that stand are left alone; a file that is gone or damaged is made anew, to the same bytes; a closed one is closed."""
    rescore = Rescore.create(root, begun(root), ORDER, pinned(root, checkpoint), CONFIG)
    with pytest.raises(RunError, match="not counted yet"):
        rescore.run_item("rescore.score", 0)
    with pytest.raises(RunError, match="not scored yet"):
        rescore.close()
    count, score = rescore.passes()
    assert (count.what, count.n_items) == ("shard", len(rescore.shards))
    for item in range(count.n_items):
        rescore.run_item(count.name, item)
    assert not rescore.run_item(score.name, 0)["reused"]
    path = rescore.folder / "scores" / f"{rescore.shards[0].name}.arrow"
    before = path.read_bytes()
    again = Rescore.open(rescore.folder)
    assert again.run_item(score.name, 0)["reused"]
    path.write_bytes(before[:-30])
    assert not again.run_item(score.name, 0)["reused"]
    assert path.read_bytes() == before
    path.unlink()
    assert not again.run_item(score.name, 0)["reused"]
    totals = done(again)
    assert again.passes() == []
    assert again.close()["read"] == totals["read"]


def test_another_order_is_refused(root: Path, checkpoint: Path) -> None:
    """The folder of a threshold and run belongs to one checkpoint and one set of settings."""
    pipeline, model = begun(root), pinned(root, checkpoint)
    first = Rescore.create(root, pipeline, ORDER, model, CONFIG)
    assert Rescore.create(root, pipeline, ORDER, model, CONFIG).identity == first.identity
    with pytest.raises(ConfigError, match="another config"):
        Rescore.create(root, pipeline, ORDER, model, CONFIG.model_copy(update={"max_windows": 3}))
    with pytest.raises(ConfigError, match="expected it pinned into"):
        Rescore.create(root, pipeline, Order("other", 1, 1), model, CONFIG)
    with pytest.raises(ConfigError, match="at most 256, the positions"):
        Rescore.create(root, pipeline, ORDER, model, CONFIG.model_copy(update={"window": 512}))


def test_a_checkpoint_that_changed_meanwhile_judges_nothing(root: Path, checkpoint: Path) -> None:
    """The held weights are looked at before a shard is scored."""
    rescore = Rescore.create(root, begun(root), ORDER, pinned(root, checkpoint), CONFIG)
    info = read_json(rescore.folder / "rescore.json")
    info["engine"]["neural weights"] = "0" * 64
    write_json(rescore.folder / "rescore.json", info)
    again = Rescore.open(rescore.folder)
    for item in range(len(again.shards)):
        again.run_item("rescore.count", item)
    with pytest.raises(RunError, match="not the checkpoint"):
        again.run_item("rescore.score", 0)


def test_what_is_read_stays_when_the_run_goes_on(root: Path, checkpoint: Path) -> None:
    """The state of the run is written down at the beginning: a step that is closed later changes nothing."""
    pipeline = begun(root)
    rescore = Rescore.create(root, pipeline, ORDER, pinned(root, checkpoint), CONFIG)
    assert rescore.info["state"]["last"].startswith("02-length-")
    last = pipeline.placed[-1].folder
    (last / "_done.json").rename(last / "_later.json")
    assert Rescore.create(root, pipeline, ORDER, pinned(root, checkpoint), CONFIG).info == rescore.info


def test_documents_that_vanish_break_the_law(root: Path, checkpoint: Path) -> None:
    """A marker that tells of fewer documents than were counted fails the closing."""
    rescore = Rescore.create(root, begun(root), ORDER, pinned(root, checkpoint), CONFIG)
    for one in rescore.passes():
        for item in range(one.n_items):
            rescore.run_item(one.name, item)
    path = rescore.folder / "_items" / f"score-{rescore.shards[0].name}.json"
    write_json(path, {**read_json(path), "documents": 5})
    with pytest.raises(LawError, match="do not add up"):
        rescore.close()


def test_a_sample_is_a_function_of_the_plan(root: Path, checkpoint: Path) -> None:
    """About as many as asked are read; the plan says of each stratum how many it holds, and the rest is counted."""
    config = CONFIG.model_copy(update={"sample": SampleConfig(max_documents=60, stratum_documents=10, seed=4)})
    rescore = Rescore.create(root, begun(root), ORDER, pinned(root, checkpoint), config)
    totals = done(rescore)
    plan = pa.ipc.open_file(str(rescore.folder / "plan.arrow")).read_all()
    assert plan.num_rows == 2
    assert pc.sum(plan.column("documents")).as_py() == totals["documents"] == totals["read"] + totals["left_out"]
    assert 40 < totals["read"] < 80
    expected = np.dot(plan.column("documents").to_numpy(), plan.column("rate").to_numpy())
    assert expected == pytest.approx(60)


def test_noise_and_repetition_go_on_the_blacklist(root: Path, checkpoint: Path) -> None:
    """The planted junk is chosen at its end, signed as the blacklist signs, with its domain; the list takes the entries."""
    pipeline = begun(root)
    rescore = Rescore.create(root, pipeline, ORDER, pinned(root, checkpoint), CONFIG)
    done(rescore)
    settings = ChooseConfig.model_validate(
        {
            "high": {"percentile": 92},
            "low": {"percentile": 8},
            "group": "language",
            "max_share": 0.2,
            "expires_days": 90,
        }
    ).model_copy(update={"domains": DomainConfig(min_evidence=5)})
    scores = rescore.scores()
    chosen = choose(scores, settings)
    table = entries_of(rescore, scores, chosen, settings, WHEN)
    whole = {
        text_id: text
        for shard in pipeline.shards
        for _, batch in batches(shard, ["text_id", "text"])
        for text_id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    }
    rows = table.to_pylist()
    domains = [row for row in rows if row["kind"] == "domain"]
    by_reason = {
        reason: [whole[row["key"]] for row in rows if row["kind"] == "text" and row["reason"] == reason]
        for reason in ("rescore.high_loss", "rescore.low_loss")
    }
    assert len(by_reason["rescore.high_loss"]) == len(by_reason["rescore.low_loss"]) == 8
    assert all("QZ" in text for text in by_reason["rescore.high_loss"])
    assert all("aaaa" in text for text in by_reason["rescore.low_loss"])
    assert [(row["shown"], row["evidence"], row["reason"]) for row in domains] == [
        ("www.junk.example", 8, "rescore.high_loss")
    ]
    first = rows[0]
    assert first["signature"] == sign_texts([whole[first["key"]]])[0].as_py()
    assert (first["tokens_seen"], first["training_run"]) == (412_345, "my gpt / 2")
    assert (first["expires"] - first["time"]).days == 90
    append(str(root / "blacklist"), table, {"who": "test", "why": "a re-score"})
    opened = Blacklist.open(str(root / "blacklist"))
    assert (opened.lookup(table.column("key").combine_chunks().slice(0, 16)) >= 0).all()
