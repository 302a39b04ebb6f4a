"""What-if: what it says of a document is what a run with those settings then does, and what it cannot say it names."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import ConfigError, RunError
from curation.judgements import judgements
from curation.pipeline import Pipeline
from curation.records import ScoreColumn
from curation.run import Run, read_json, write_json
from curation.steps import STEPS, step_class
from curation.what_if import WhatIf, what_if
from curation.what_if_outcomes import KEPT, Outcome, Outcomes, redecide
from curation.what_if_samples import score_of_reason
from curation.what_if_settings import ask
from tests.fakes import SOURCE, Second, Watched, WatchedConfig, write_shards
from tests.near_runs import finish

FAKES = {
    "language": "tests.language_fake:FakeLanguage",
    "watched": "tests.fakes:Watched",
    "second": "tests.fakes:Second",
    "begins_with_k": "tests.fakes:BeginsWithK",
}
CHAIN = "steps: [exact, {language: {min_confidence: 0.3}}, html_noise, {length: {min_units: 4}}]\n"


@contextmanager
def fake_steps() -> Iterator[None]:
    """The stand-ins are steps that a config may name, in this process."""
    before = dict(STEPS)
    STEPS.update(FAKES)
    step_class.cache_clear()
    yield
    STEPS.clear()
    STEPS.update(before)
    step_class.cache_clear()


@pytest.fixture(autouse=True)
def fakes() -> Iterator[None]:
    """Every test of this file knows them."""
    with fake_steps():
        yield


def begun(root: Path, config: str, shards: Sequence[Sequence[str]], **extra: Any) -> Pipeline:
    run = Run.create(root, run_id="asked", config_text=config, config_digest="0" * 8, inputs=[SOURCE], extra=extra)
    write_shards(run, shards, batch_rows=7)
    return Pipeline.open(run.folder)


def done(root: Path, config: str, shards: Sequence[Sequence[str]], **extra: Any) -> Pipeline:
    pipeline = begun(root, config, shards, **extra)
    finish(pipeline)
    return Pipeline.open(pipeline.run.folder)


def corpus(seed: int, n_documents: int) -> list[str]:
    """Texts of one to thirty words with language labels, residue and copies."""
    rng = random.Random(seed)
    texts: list[str] = []
    for number in range(n_documents):
        if texts and rng.random() < 0.1:
            texts.append(rng.choice(texts))
            continue
        labels = rng.sample(["eng_Latn", "deu_Latn", "jpn_Jpan"], rng.choice([0, 1, 1, 1, 2]))
        lines = [f"{label}:{rng.choice(['0.2', '0.5', '0.9'])} " for label in labels]
        lines.append(" ".join(f"w{rng.randrange(500)}" for _ in range(rng.randint(0, 30))))
        noise = "<div class='a'></div>" * rng.choice([0, 0, 0, 1, 3, 20])
        texts.append("\n".join(lines) + f" {number}" + noise)
    return texts


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: exact first, then three filters."""
    texts = corpus(5, 300)
    with fake_steps():
        return done(tmp_path_factory.mktemp("chain"), CHAIN, [texts[:120], [], texts[120:]]).run.folder


def with_settings(folder: Path, copy: Path, overrides: Sequence[str]) -> Pipeline:
    """What `corpusmill run --run ID --set ...` makes of a copy of a run."""
    from curation.config import parse_config

    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    config = parse_config((folder / "config.yaml").read_text(encoding="utf-8"), "test", overrides)
    (copy / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
    pipeline = Pipeline.open(copy)
    finish(pipeline)
    return pipeline


def outcomes_of(pipeline: Pipeline, overrides: Sequence[str] = ()) -> list[Outcome]:
    """What becomes of each document, in document order: in the run, or with other settings."""
    changed = ask(pipeline, overrides).steps if overrides else {}
    outcomes = Outcomes()
    found: list[Outcome] = []
    for shard in pipeline.shards:
        codes = redecide(pipeline.placed, changed, shard, outcomes).after
        found += [outcomes.all[code] for code in codes]
    return found


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "language.mixed": st.sampled_from(["keep", "drop", "route:a", "route:b"]),
        "language.no_language": st.sampled_from(["keep", "drop", "route:b"]),
        "language.min_confidence": st.sampled_from([0, 0.3, 0.6, 0.95]),
        "language.wanted": st.sampled_from(["[]", "[eng_Latn]"]),
        "html_noise.max_noise_share": st.floats(0, 1).map(lambda x: round(x, 3)),
        "html_noise.min_noise_chars": st.integers(0, 400),
        "length.min_units": st.integers(0, 40),
        "length.max_units": st.integers(40, 60),
    },
)


@settings(max_examples=8, deadline=None)
@given(wanted=SETTINGS)
def test_what_it_says_is_what_a_run_then_does(
    chain: Path, tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, Any]
) -> None:
    """Every document fares as told; one that waits is judged by the steps that it waits for, and by no other."""
    overrides = [f"{key}={value}" for key, value in wanted.items()]
    told = outcomes_of(Pipeline.open(chain), overrides)
    really = outcomes_of(with_settings(chain, tmp_path_factory.getbasetemp() / "copy", overrides))

    assert len(told) == len(really) == 300
    for said, fares in zip(told, really, strict=True):
        if said.waiting:
            assert fares == KEPT or fares.step in said.waiting
        else:
            assert said == fares

    answer = what_if(Pipeline.open(chain), overrides, n_samples=0)
    assert answer.kept_after == sum(1 for said in told if said == KEPT)
    assert answer.kept_after <= sum(1 for fares in really if fares == KEPT) <= answer.kept_after + answer.total.waiting


def test_what_a_run_keeps_after_the_last_filter_is_told_exactly(chain: Path, tmp_path: Path) -> None:
    """Of the last step nothing waits: the numbers are those of the run."""
    overrides = ["length.min_units=15", "length.max_units=25"]
    answer = what_if(Pipeline.open(chain), overrides)
    run = with_settings(chain, tmp_path / "copy", overrides)
    assert answer.total.waiting == 0
    assert answer.kept_after == read_json(run.placed[-1].folder / "_done.json")["docs_kept"]
    assert answer.total.leave > 0


def test_what_it_says_is_what_judging_says(tmp_path: Path) -> None:
    """Where every step judges every document, a document is kept exactly if each step would keep it: so here."""
    texts = corpus(9, 120)
    loose, strict = "[html_noise, {length: {min_units: 1}}]", ["length.min_units=12", "length.max_units=20"]
    asked = done(tmp_path / "a", f"steps: {loose}", [texts])
    alone = with_settings(
        begun(tmp_path / "b", f"steps: {loose}", [texts], judge_all=True).run.folder, tmp_path / "copy", strict
    )
    verdicts = {row["id"]: row["reason"] for row in judgements(alone)}
    assert [said.reason for said in outcomes_of(asked, strict)] == list(verdicts.values())


def test_without_a_change_nothing_changes(chain: Path) -> None:
    """The settings of the run, said once more, or settings that decide no verdict."""
    kept = read_json(Pipeline.open(chain).placed[-1].folder / "_done.json")["docs_kept"]
    for overrides in ([], ["length.min_units=4"], ["memory_mb=3000", "pack={}"], ["ingest.max_quarantine_share=1"]):
        answer = what_if(Pipeline.open(chain), overrides)
        assert not answer.changes
        assert not answer.samples
        assert not answer.inputs
        assert answer.total.kept == answer.kept_after == kept
        assert not any(setting.decides for setting in answer.question.settings)


def test_the_run_is_not_touched(chain: Path, tmp_path: Path) -> None:
    """No file of it is written, not even with other bytes of the same meaning."""

    def state() -> dict[str, Any]:
        files = sorted(path for path in chain.rglob("*") if path.is_file())
        return {str(p): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest()) for p in files}

    before = state()
    what_if(Pipeline.open(chain), ["length.min_units=10"], output=tmp_path / "changed.jsonl")
    assert state() == before


# -- data-set steps --------------------------------------------------------------------------------------------


def test_a_data_set_step_behind_a_filter_is_named(tmp_path: Path) -> None:
    """Who leaves before it, who enters, and whose kept copy is gone; the copy that stands alone then is not guessed at."""
    words = [f"w{n}" for n in range(60)]
    long, short = " ".join(words), " ".join(words[:57])  # Jaccard of 5-shingles 53 / 56 > 0.9
    texts = [long, short, "one two three four five six", "x"]
    pipeline = done(tmp_path, "steps: [{length: {min_units: 2}}, near]", [texts[:1], texts[1:]])
    assert [said.reason for said in outcomes_of(pipeline)] == [None, "near.duplicate", None, "length.too_short"]

    answer = what_if(pipeline, ["length.max_units=58"])
    (near,) = answer.inputs
    assert (near.step, near.leave, near.enter, near.may_enter, near.orphans) == ("near", 1, 0, 0, 1)
    assert [(c.before.reason, c.after.reason) for c in answer.changes] == [(None, "length.too_long")]

    answer = what_if(pipeline, ["length.min_units=0"])
    (near,) = answer.inputs
    assert (near.leave, near.enter, near.may_enter, near.orphans) == (0, 1, 0, 0)
    (change,) = answer.changes
    assert change.after == Outcome("length", waiting=("near",))
    assert answer.kept_after == answer.total.kept
    assert answer.total.waiting == 1

    answer = what_if(pipeline, ["length.min_units=59"])
    (near,) = answer.inputs
    assert (near.leave, near.orphans) == (2, 0)  # the copy leaves by itself; of two documents one was kept


def test_what_may_enter_is_told_apart_from_what_enters(tmp_path: Path) -> None:
    """A filter between that has not judged them may still stop them."""
    texts = ["k" * 30, "kite", "other", "k" * 7]
    config = "steps: [{watched: {max_chars: 5}}, second, begins_with_k]"
    answer = what_if(done(tmp_path, config, [texts]), ["watched.max_chars=10"])
    (step,) = answer.inputs
    assert (step.enter, step.may_enter) == (0, 1)
    assert answer.changes[0].after.waiting == ("second", "begins_with_k")


def test_a_data_set_step_before_the_change_is_not_named(chain: Path) -> None:
    """Its input is what it was."""
    assert what_if(Pipeline.open(chain), ["length.min_units=30"]).inputs == []


# -- what cannot be answered ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("exact=3", "name a setting"),
        ("length.min_unts=3", "unknown key steps.length.min_unts.*did you mean 'min_units'"),
        ("lenth.min_units=3", "no step or key 'lenth'.*did you mean 'length'"),
        ("length.min_units=-1", "greater than or equal to 0, found -1"),
        ("length.min_units", "expected key=value"),
        (
            "watched.factor=2",
            r"watched.factor changes the scores.*corpusmill run .*--run asked .*--set watched.factor=2",
        ),
        ("near.shingle=3", r"near.shingle changes which copies step near finds.*--set near.shingle=3"),
        ("ingest.text_column=body", "ingest.text_column decides what the documents are"),
        ("steps=[length]", "not which steps there are"),
    ],
)
def test_what_scores_cannot_answer_is_refused(tmp_path: Path, override: str, says: str) -> None:
    """By the setting that it is, with the command that does it; a mistake with the nearest key. Exit code 2."""
    pipeline = done(tmp_path, "steps: [near, watched, length, exact]", [["some text", "another"]])
    with pytest.raises(ConfigError, match=says) as caught:
        what_if(pipeline, ["length.min_units=1", override])
    assert caught.value.exit_code == 2


def test_settings_that_only_raise_alarms_are_no_change_of_a_data_set_step(tmp_path: Path) -> None:
    """They decide no verdict."""
    pipeline = done(tmp_path, "steps: [near, length]", [["some text", "another"]])
    answer = what_if(pipeline, ["near.alarm_group_share=0.5"])
    assert [(s.key, s.decides) for s in answer.question.settings] == [("near.alarm_group_share", False)]


def test_a_run_that_is_not_done_is_refused(tmp_path: Path) -> None:
    """Before ingest is closed, and while a step is open."""
    pipeline = begun(tmp_path, "steps: [length]", [["text"]])
    with pytest.raises(RunError, match="not done: length has no marker"):
        what_if(pipeline, ["length.min_units=1"])
    (pipeline.run.shards / "_done.json").unlink()
    with pytest.raises(RunError, match="not done: ingest has no marker"):
        what_if(Pipeline.open(pipeline.run.folder), ["length.min_units=1"])


def test_a_run_whose_steps_stood_alone_is_refused(tmp_path: Path) -> None:
    """There is no side to change."""
    pipeline = done(tmp_path, "steps: [length]", [["text"]], judge_all=True)
    with pytest.raises(RunError, match="judged each step alone"):
        what_if(pipeline, ["length.min_units=1"])


def test_scores_of_another_version_or_model_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of today would give other scores: what it decides from the old ones says nothing."""
    pipeline = done(tmp_path, "steps: [watched]", [["text"]])
    with monkeypatch.context() as patch:
        patch.setattr(Watched, "version", 2)
        with pytest.raises(RunError, match=r"version 1 of the step, and this is version 2.*corpusmill run"):
            what_if(Pipeline.open(pipeline.run.folder), ["watched.max_chars=1"])
    with monkeypatch.context() as patch:
        patch.setattr(Watched, "model_checksums", lambda self: {"words.txt": "abc"})
        with pytest.raises(RunError, match=r"other models or lists \(words.txt\)"):
            what_if(Pipeline.open(pipeline.run.folder), ["watched.max_chars=1"])


def test_limits_that_changed_behind_the_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a preset do with a new version of the code."""
    pipeline = done(tmp_path, "steps: [watched]", [["text"]])
    monkeypatch.setattr(type(pipeline.placed[0].step.config), "deciding", lambda self: {"limits": "new"})
    with pytest.raises(RunError, match="other limits or lists behind the same settings"):
        what_if(Pipeline.open(pipeline.run.folder), ["watched.max_chars=1"])


def test_verdicts_without_a_score_of_today_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that got a score and no new version is one message, too."""
    pipeline = done(tmp_path, "steps: [watched]", [["text"]])
    more = (*pipeline.placed[0].step.score_columns, ScoreColumn("more", pa.int64(), "x", "x"))
    monkeypatch.setattr(Watched, "score_columns", more)
    with pytest.raises(RunError, match="no score 'more'"):
        what_if(pipeline, ["watched.max_chars=1"])


def test_a_model_that_is_gone_keeps_no_one_from_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores are saved: as with explaining and exporting, the model is not needed."""
    monkeypatch.setattr(Watched, "model_checksums", lambda self: {"words.txt": "abc"})
    pipeline = done(tmp_path, "steps: [watched]", [["text"]])

    def gone(self: Watched) -> dict[str, str]:
        raise ConfigError("no such file")

    monkeypatch.setattr(Watched, "model_checksums", gone)
    assert what_if(Pipeline.open(pipeline.run.folder), ["watched.max_chars=1"]).total.leave == 1


def test_settings_that_a_run_would_refuse_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer by a limit that does not fit the saved scores would be no answer, and the command shown would fail."""

    def ready(self: Watched) -> None:
        if self.config.max_chars == 1:
            raise ConfigError("made by other models")

    monkeypatch.setattr(Watched, "ready", ready)
    pipeline = done(tmp_path, "steps: [watched]", [["text"]])
    with pytest.raises(ConfigError, match="made by other models"):
        what_if(pipeline, ["watched.max_chars=1"])
    assert what_if(pipeline, ["watched.max_chars=2"]).total.leave == 1


@pytest.mark.parametrize("harm", ["cut", "turned", "gone", "no marker", "other shard"])
def test_a_damaged_run_is_one_message(tmp_path: Path, harm: str) -> None:
    """A verdict file that is not the one that was written decides nothing."""
    pipeline = done(tmp_path, "steps: [watched]", [["text"], ["other"]])
    folder = pipeline.placed[0].folder
    path = folder / "00001.arrow"
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif harm == "turned":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif harm == "gone":
        path.unlink()
    elif harm == "no marker":
        (folder / "_items" / "00001.json").unlink()
    else:
        marker = read_json(folder / "_items" / "00001.json")
        write_json(folder / "_items" / "00001.json", {**marker, "shard_sha256": "0" * 64})
    with pytest.raises(RunError):
        what_if(pipeline, ["watched.max_chars=1"])


# -- languages, samples, the file -------------------------------------------------------------------------------


def test_languages_add_up_to_the_whole(chain: Path) -> None:
    """In every column; those that no language step had looked at are in none."""
    answer = what_if(
        Pipeline.open(chain), ["language.mixed=route:x", "length.min_units=20", "html_noise.min_noise_chars=200"]
    )
    for name in ("kept", "leave", "come_in", "waiting", "other"):
        assert sum(getattr(one, name) for one in answer.languages) == getattr(answer.total, name), name
    assert sum(one.changes for one in answer.languages) == sum(change.documents for change in answer.changes) > 0
    assert {"eng_Latn", "deu_Latn", "und"} <= {one.language for one in answer.languages}


def test_samples_are_spread_and_always_the_same(chain: Path) -> None:
    """Every kind of change has one before any has two; fewer are a beginning of more; the text is the document's."""
    overrides = ["language.mixed=route:x", "length.min_units=20", "html_noise.min_noise_chars=200"]
    answer = what_if(Pipeline.open(chain), overrides, n_samples=12)
    kinds = {(one.before, one.after) for one in answer.samples}
    assert len(answer.samples) == 12
    assert len(kinds) == min(12, len(answer.changes))
    again = what_if(Pipeline.open(chain), overrides, n_samples=12)
    assert again.samples == answer.samples
    fewer = what_if(Pipeline.open(chain), overrides, n_samples=3)
    assert {one.doc_id for one in fewer.samples} <= {one.doc_id for one in answer.samples}
    assert what_if(Pipeline.open(chain), overrides, n_samples=0).samples == []


def test_a_sample_shows_the_score_that_decides_with_both_limits(chain: Path) -> None:
    """Of the step in question; a reason that is called as a score is decided by it."""
    (sample, *_) = what_if(Pipeline.open(chain), ["length.min_units=20"]).samples
    (score,) = sample.scores
    assert (score.step, score.name) == ("length", "units")
    assert 4 <= score.value < 20
    assert (score.before, score.after) == ((4.0, 1_000_000.0), (20.0, 1_000_000.0))
    (sample, *_) = what_if(Pipeline.open(chain), ["language.mixed=drop"]).samples
    assert [(one.name, one.value) for one in sample.scores if one.name == "class"] == [("class", "mixed")]


class ByLength(Second):
    """A reason that is called as a score, and a limit that depends on the document."""

    reasons = {"second.length": "too long"}  # noqa: RUF012  # as the class above

    def limits_of(self, scores: pa.RecordBatch) -> dict[str, npt.NDArray[np.float64]]:
        length = scores.column("length").to_numpy(zero_copy_only=False)
        return {"length": np.where(length % 2 == 1, self.config.max_chars, np.nan)}

    def decide(self, scores: pa.RecordBatch) -> Any:
        from curation.verdicts import decide_by_rules

        hit = scores.column("length").to_numpy(zero_copy_only=False) > self.limits_of(scores)["length"]
        return decide_by_rules(scores.num_rows, list(self.reasons), {"second.length": hit})


def test_a_step_that_knows_the_limit_of_a_document_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all limits that it applies to any."""
    monkeypatch.setattr("tests.fakes.Second", ByLength)
    answer = what_if(done(tmp_path, "steps: [second]", [["abc", "abcd", "abcde"]]), ["second.max_chars=4"])
    (sample,) = answer.samples
    (score,) = sample.scores
    assert (score.value, score.before, score.after) == (5, (20.0,), (4.0,))


def test_the_file_holds_every_document_that_changes(chain: Path, tmp_path: Path) -> None:
    """One line each, in the order of the run, with the whole text, so that it is an input like any other."""
    output = tmp_path / "changed.jsonl"
    overrides = ["language.mixed=route:x", "length.min_units=20"]
    pipeline = Pipeline.open(chain)
    answer = what_if(pipeline, overrides, output=output)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    before, after = outcomes_of(pipeline), outcomes_of(pipeline, overrides)
    changes = [i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    assert answer.written == len(rows) == len(changes) > 0
    assert [row["id"] for row in rows] == [f"d{i}" for i in changes]
    for i, row in zip(changes, rows, strict=True):
        assert row["before"]["reason"] == before[i].reason
        assert row["after"]["outcome"] == after[i].side
        assert row["line"] == i + 1
        assert row["text"] == corpus(5, 300)[i]


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("s.units", "units"),
        ("s.few_units", "units"),
        ("s.low_bits_per_character", "bits_per_character"),
        ("s.unfew", None),
        ("s.told", "character"),
    ],
)
def test_a_reason_leads_to_its_score(reason: str, says: str | None) -> None:
    """As the step says; else called as it, or ending in it, the longest name first."""

    class Telling(Watched):
        def score_of(self, reason: str) -> str | None:
            return {"s.told": "character"}.get(reason)

    known = ["units", "character", "bits_per_character"]
    assert score_of_reason(Telling(WatchedConfig()), reason, known) == says


@pytest.mark.parametrize(
    ("name", "says"), [("changed.csv", "ends in .jsonl"), ("{run}/quarantine/x.jsonl", "lies in the run")]
)
def test_a_place_for_the_file_that_will_not_do(chain: Path, tmp_path: Path, name: str, says: str) -> None:
    """Another ending, or inside of the run."""
    with pytest.raises(ConfigError, match=says):
        what_if(Pipeline.open(chain), ["length.min_units=20"], output=tmp_path / name.format(run=chain))


def test_a_run_without_documents_or_steps_answers(tmp_path: Path) -> None:
    """Nothing changes where nothing is."""
    answer: WhatIf = what_if(done(tmp_path / "a", "steps: [watched]", [[]]), ["watched.max_chars=1"])
    assert (answer.documents, answer.kept_after, answer.changes) == (0, 0, [])
    answer = what_if(done(tmp_path / "b", "steps: []", [["text"]]), ["memory_mb=999"])
    assert (answer.kept_after, answer.changes) == (1, [])
