"""Rules that take nothing, ten times as many as usual or less than a tenth: named where chance does not explain it, and only there."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from curation.config import shipped_config
from curation.launch import finish_run
from curation.pipeline import Pipeline
from curation.report import usual_sources
from curation.report.build import write_report
from curation.report.usual import compare, usual_of, write_usual
from curation.report.usual_sources import Known, fired, identity, off_reasons, table_rows
from curation.run import Run, read_json, write_json
from curation.steps import STEPS, step_class
from curation.verdicts import Filter, Step
from tests.fakes import SOURCE, Watched, WatchedConfig, write_shards
from tests.near_runs import finish

FAKES = {"watched": "tests.fakes:Watched", "second": "tests.fakes:Second", "counting": f"{__name__}:Counting"}


class Counting(Watched):
    """Counts every rule that a document breaks, as a filter of many rules does."""

    name: ClassVar[str] = "counting"
    reasons: ClassVar[Mapping[str, str]] = {"counting.a": "first", "counting.b": "second", "counting.c": "third"}

    def decide(self, scores: Any) -> Any:
        from curation.verdicts import decide_by_rules

        return decide_by_rules(scores.num_rows, list(self.reasons), {})

    def facts(self, tables: Any) -> dict[str, Any]:
        return {"documents": sum(table.num_rows for table in tables), "hits": {"a": 1000, "b": 0}}


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The stand-ins are steps that a config may name, and nothing is known of them."""
    before = dict(STEPS)
    STEPS.update(FAKES)
    step_class.cache_clear()
    usual_sources._table.cache_clear()
    yield
    STEPS.clear()
    STEPS.update(before)
    step_class.cache_clear()
    usual_sources._table.cache_clear()


def texts(n_long: int, n_short: int, n_empty: int = 0) -> list[str]:
    """Texts of more than 20 characters, of 1 to 9, of none: of the first two kinds no two are the same."""
    return [f"{'k' * 20}{n}" for n in range(n_long)] + [f"s{n}" for n in range(n_short)] + [""] * n_empty


def done(
    root: Path, shards: Sequence[Sequence[str]], run_id: str = "now", config: str = "steps: [watched]", **info: Any
) -> Pipeline:
    inputs = [f"{SOURCE}-{run_id}"]
    run = Run.create(root, run_id=run_id, config_text=config, config_digest="0" * 8, inputs=inputs)
    write_shards(run, shards)
    write_json(run.shards / "_done.json", {**read_json(run.shards / "_done.json"), "peak_rss_mb": 1.0})
    pipeline = Pipeline.open(run.folder)
    finish(pipeline)
    pipeline.run.update(state="running", **info)
    return Pipeline.open(run.folder)


@contextmanager
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *entries: tuple[Step, dict[str, Any]]) -> Iterator[None]:
    """A table of usual shares that was counted on these markers."""
    path = tmp_path / "usual_shares.tsv"
    rows = table_rows((step, step.model_checksums(), marker) for step, marker in entries)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(usual_sources, "TABLE", path)
        usual_sources._table.cache_clear()
        yield


def marker(dropped: Mapping[str, int], docs_in: int, name: str = "watched") -> dict[str, Any]:
    return {"name": name, "docs_in": docs_in, "dropped": dict(dropped), "facts": {}}


USUAL = marker({"watched.too_long": 1000, "watched.too_short": 10}, 10_000)


def found(pipeline: Pipeline, step: str = "watched") -> dict[str, Any]:
    write_usual(pipeline)
    digest = next(placed.digest for placed in pipeline.placed if placed.name == step)
    return dict(usual_of(pipeline.run.report, step, digest))


# -- statistics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "documents", "usual", "kind"),
    [
        (0, 1000, (500, 10_000), "never"),
        (1, 1000, (500, 10_000), ""),
        (0, 300, (500, 10_000), ""),  # 15 expected: may be chance
        (0, 10_000, (0, 10_000), ""),  # never is usual
        (0, 100_000, (3, 10_000), ""),  # 30 expected, of a share that three documents say
        (650, 1000, (500, 10_000), "often"),
        (500, 1000, (500, 10_000), ""),  # exactly ten times
        (19, 100, (0, 100_000), ""),  # a handful
        (25, 100, (0, 100_000), "often"),
        (25, 100, (0, 100), ""),  # a share that a hundred documents do not say
        (10, 10_000, (500, 10_000), "seldom"),
        (50, 10_000, (500, 10_000), ""),  # exactly a tenth
        (40, 10_000, (500, 10_000), ""),  # less, but by chance
        (1, 10_000, (500, 10_000), "seldom"),
        (1, 400, (9_000, 10_000), "seldom"),
        (1, 20, (9_000, 10_000), ""),  # 18 expected
        (1, 100_000, (3, 10_000), ""),  # a share that three documents say
        (0, 0, (500, 10_000), ""),
        (0, 0, (0, 0), ""),
    ],
)
def test_an_alarm_needs_more_than_chance(n: int, documents: int, usual: tuple[int, int], kind: str) -> None:
    """Twenty expected and none found; ten times the usual share, by the bounds of both."""
    assert compare(n, documents, Known(*usual, "somewhere"))[0] == kind


def test_a_usual_sample_raises_no_alarm() -> None:
    """Hundreds of rules on documents like the usual ones: none is named."""
    rng = random.Random(4)
    for share in (0.0005, 0.003, 0.02, 0.1, 0.4):
        for _ in range(60):
            usual, now = (sum(rng.random() < share for _ in range(3000)) for _ in range(2))
            assert compare(now, 3000, Known(usual, 3000, "x"))[0] == ""


# -- what is said of a run ---------------------------------------------------------------------------------------


def test_a_rule_that_never_fires_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the run's file, its funnel, its log and on the page: found, usual, where usual comes from, what to look at."""
    pipeline = done(tmp_path, [texts(0, 900)])
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), USUAL)), caplog.at_level(logging.WARNING):
        funnel = finish_run(pipeline)
    (alarm,) = funnel["alarms"]
    assert (alarm["step"], alarm["reasons"]) == ("watched", ["watched.too_long"])
    assert "Fired on none of 900 documents: watched.too_long (usual: 10.0 %, about 90)" in alarm["text"]
    assert "10,000 documents of the crawl that the shipped shares are of" in alarm["text"]
    assert read_json(pipeline.run.report / "funnel.json")["alarms"] == funnel["alarms"]
    assert [record.getMessage() for record in caplog.records] == [f"watched: {alarm['text']}"]
    page = (pipeline.run.report / "report.html").read_text(encoding="utf-8")
    assert page.count("Fired on none of 900 documents") == 2  # on top, and at its step
    assert "never fired</span>" in page


def test_a_rule_that_fires_ten_times_as_often_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its numbers; one that fires nine times as often is not."""
    pipeline = done(tmp_path, [texts(90, 800, 110)])
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), USUAL)):
        (alarm,) = found(pipeline)["alarms"]
        page = write_report(pipeline.run.folder)
    assert (alarm["kind"], alarm["reasons"]) == ("often", ["watched.too_short"])
    assert (
        "more than 10 times as often as usual, of 1,000 documents: watched.too_short (110, 11.0 %; usual: 0.1 %)"
        in alarm["text"]
    )
    assert page.exists()


def test_a_rule_that_fires_a_tenth_as_often_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its numbers, where usual comes from and what to look at; on its line of the page it is marked."""
    pipeline = done(tmp_path, [texts(2, 998)])
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), marker({"watched.too_long": 4000}, 10_000))):
        funnel = finish_run(pipeline)
    (alarm,) = funnel["alarms"]
    assert (alarm["step"], alarm["reasons"]) == ("watched", ["watched.too_long"])
    assert alarm["text"].startswith(
        "Fired less than a tenth as often as usual, of 1,000 documents: watched.too_long (2, 0.2 %; usual: 40.0 %, about 400). "
        "Usual is the share in 10,000 documents of the crawl that the shipped shares are of."
    )
    page = (pipeline.run.report / "report.html").read_text(encoding="utf-8")
    assert "less than usual</span>" in page


def test_nothing_is_said_of_what_is_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No alarm, and no rule is called silent of which its silence is usual."""
    pipeline = done(tmp_path, [texts(110, 1000)])
    never = marker({"watched.too_long": 1000}, 10_000)
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), never)):
        assert found(pipeline) == {
            "digest": pipeline.placed[0].digest,
            "alarms": [],
            "silent": [],
            "off": ["watched.routed"],
        }


def test_a_rule_that_nobody_knows_is_named_for_its_silence(tmp_path: Path) -> None:
    """A filter of one's own, from a thousand documents on; not with fewer."""
    assert found(done(tmp_path, [texts(0, 1000)]))["silent"] == ["watched.too_short", "watched.too_long"]
    assert found(done(tmp_path, [texts(0, 999)], run_id="less"))["silent"] == []


def test_it_is_found_once_for_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes usual later does not change the report of a run; other verdicts are compared anew."""
    pipeline = done(tmp_path, [texts(0, 900)])
    before = found(pipeline)
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), USUAL)):
        assert found(pipeline) == before
        pipeline.run.config_path.write_text("steps: [{watched: {least_chars: 0}}]", encoding="utf-8")
        again = Pipeline.open(pipeline.run.folder)
        finish(again)
        assert usual_of(again.run.report, "watched", again.placed[0].digest) == {}
        assert found(again)["digest"] == again.placed[0].digest != before["digest"]


def test_settings_that_differ_are_compared_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting called as a rule is that rule's alone; of any other nobody knows which rules it moves."""

    def others(theirs: dict[str, Any], mine: dict[str, Any]) -> set[str] | None:
        return usual_sources._other_reasons(theirs, mine, ["s.a", "s.b", "s.c"])

    assert others({"x": 1}, {"x": 1}) == set()
    assert others({"x": 1, "a": 1}, {"x": 1, "a": 2}) == {"s.a"}
    assert others({"languages": {}}, {"languages": {"zho": {"b": 1, "c": 2}}}) == {"s.b", "s.c"}
    assert others({"x": 1, "a": 1}, {"x": 2, "a": 2}) is None
    pipeline = done(tmp_path, [texts(0, 900)], config="steps: [{watched: {max_chars: 19}}]")
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), USUAL)):
        assert found(pipeline)["alarms"] == []


def test_shares_of_another_version_or_model_are_not_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were counted with other scores."""
    pipeline = done(tmp_path, [texts(0, 900)])
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), USUAL)):
        monkeypatch.setattr(Watched, "version", 2)
        pipeline = Pipeline.open(pipeline.run.folder)
        finish(pipeline)
        assert found(pipeline)["alarms"] == []


def test_a_step_that_counts_every_rule_is_taken_at_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks a rule counts, not what it is named for; a rule that is no key is off."""
    pipeline = done(tmp_path, [texts(0, 1200)], config="steps: [counting]")
    usual = {**marker({}, 10_000, "counting"), "facts": {"hits": {"a": 100, "b": 3000, "c": 5}}}
    with table(monkeypatch, tmp_path, (Counting(WatchedConfig()), usual)):
        said = found(pipeline, "counting")
        assert {alarm["kind"]: alarm["reasons"] for alarm in said["alarms"]} == {
            "often": ["counting.a"],
            "never": ["counting.b"],
        }
        assert said["off"] == ["counting.c", "counting.routed"]
        page = (write_report(finished(pipeline))).read_text(encoding="utf-8")
    assert "break it</th>" in page
    assert "Off with these settings: <code>counting.c</code>" in page


def finished(pipeline: Pipeline) -> Path:
    finish_run(pipeline)
    return pipeline.run.folder


# -- earlier runs ------------------------------------------------------------------------------------------------


def earlier(root: Path, run_id: str, shards: Sequence[Sequence[str]], **options: Any) -> Pipeline:
    pipeline = done(root, shards, run_id, **{"start": "2020-01-01T00:00:00Z", **options})
    finish_run(pipeline)
    return pipeline


def test_earlier_runs_say_what_is_usual_before_the_table_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together, if they looked at enough documents."""
    earlier(tmp_path, "a", [texts(300, 400)])
    earlier(tmp_path, "b", [texts(300, 401)])
    pipeline = done(tmp_path, [texts(0, 900)])
    none_is_usual = marker({}, 10_000)
    with table(monkeypatch, tmp_path, (Watched(WatchedConfig()), none_is_usual)):
        (alarm,) = found(pipeline)["alarms"]
    assert "usual: 42.8 %, about 385" in alarm["text"]
    assert "1,401 documents of 2 earlier runs with these settings" in alarm["text"]


@pytest.mark.parametrize(
    "why", ["few", "later", "same inputs", "not done", "other settings", "other version", "other step", "judged alone"]
)
def test_other_runs_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Too few documents, begun later, of the same inputs, not done, or decided otherwise."""
    many = [texts(600, 700)]
    changed: dict[str, dict[str, Any]] = {
        "later": {"start": "2099-01-01T00:00:00Z"},
        "other settings": {"config": "steps: [{watched: {factor: 2}}]"},
        "other step": {"config": "steps: [second]"},
        "judged alone": {"judge_all": True},
    }
    options = changed.get(why, {})
    with monkeypatch.context() as patch:
        if why == "other version":
            patch.setattr(Watched, "version", 7)
        old = earlier(tmp_path, "a", [texts(400, 500)] if why == "few" else many, **options)
    pipeline = done(tmp_path, [texts(0, 900)])
    if why == "same inputs":
        pipeline.run.update(inputs=old.run.info["inputs"])
    if why == "not done":
        old.run.update(state="failed")
    assert found(Pipeline.open(pipeline.run.folder))["alarms"] == []


@pytest.mark.parametrize("name", ["run.json", "report/funnel.json", "steps/*/_done.json", "steps/*/_step.json"])
@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"steps": [{}]}'])
def test_a_damaged_earlier_run_is_left_out_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, content: str
) -> None:
    """The run that is being finished is not the one that is broken."""
    old = earlier(tmp_path, "a", [texts(600, 700)])
    (path,) = old.run.folder.glob(name)
    path.write_text(content, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert found(done(tmp_path, [texts(0, 900)]))["alarms"] == []
    assert "left out while looking for what is usual" in caplog.text


def test_no_more_earlier_runs_are_looked_at_than_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest ones: a root with thousands of runs costs no look at the funnel of each."""
    old = earlier(tmp_path, "a", [texts(600, 700)], start="2001-01-01T00:00:00Z")
    new = earlier(tmp_path, "b", [texts(600, 701)], start="2001-01-02T00:00:00Z")
    (old.run.report / "funnel.json").write_text("{", encoding="utf-8")
    pipeline = done(tmp_path, [texts(0, 900)])
    monkeypatch.setattr(usual_sources, "MAX_RUNS", 1)
    with caplog.at_level(logging.WARNING):
        assert list(usual_sources.earlier_runs(pipeline)) == [new.run.folder]
    assert not caplog.text


# -- which rules are on, and the table that ships ----------------------------------------------------------------


def test_a_rule_that_is_off_is_not_dead() -> None:
    """By its setting, by what the step says itself, or because nothing is set aside."""
    language = step_class("language")

    def off(**settings: Any) -> set[str]:
        return off_reasons(language(language.Config.model_validate(settings)), {"name": "language"})

    assert "language.mixed" in off(mixed="keep")
    assert {"language.mixed", "language.routed"} & off(mixed="route:x") == {"language.mixed"}
    assert "language.mixed" not in off(mixed="drop")
    assert "language.unwanted" in off()
    assert "language.unwanted" not in off(wanted=["en"])
    assert {"language.low_share", "language.low_confidence"} <= off(min_share=0, min_confidence=0)
    assert not {"language.low_share", "language.low_confidence"} & off(min_share=0.1, min_confidence_of={"en": 0.5})
    assert off_reasons(Watched(WatchedConfig()), {"name": "watched"}) == {"watched.routed"}


def test_perplexity_says_what_it_cannot_say() -> None:
    """No bucket without a calibration, no limit of a model that has none."""
    perplexity = step_class("perplexity")

    def off(**settings: Any) -> set[str]:
        told = off_reasons(perplexity(perplexity.Config.model_validate(settings)), {"name": "perplexity"})
        return {reason.partition(".")[2] for reason in told}

    buckets = {"uncalibrated", "head", "middle", "tail"}
    assert off() == buckets | {"no_model", "too_short", "routed"}
    assert off(short="drop", no_model="route:x") == buckets | {"no_model"}
    neural = {"engine": "gpt2", "model": "somewhere"}
    assert {"too_low", "too_high"} <= off(**neural)
    assert {"too_low", "too_high"} & off(**neural, max_perplexity=35) == {"too_low"}
    assert {"too_low", "too_high"} & off(**neural, languages={"eng": {"min_bits_per_character": 1}}) == {"too_high"}
    percentiles = {"engine": {}, "languages": {"eng": {"documents": 1, "percentiles": {"1": 1.0, "99": 2.0}}}}
    assert buckets - off(calibration=percentiles) == {"tail"}


def test_the_table_is_fresh() -> None:
    """Every filter of the shipped config has an entry for its settings, version and models; else run tools/make_usual_shares.py."""
    import yaml

    shipped = yaml.safe_load(shipped_config("web").read_text(encoding="utf-8"))["steps"]
    entries = {(name, digest) for name, _, digest in usual_sources._table()}
    for entry in shipped:
        ((name, settings),) = entry.items()
        step = step_class(name)(step_class(name).Config.model_validate(settings))
        if isinstance(step, Filter):
            assert (name, identity(step, step.model_checksums())) in entries, "run tools/make_usual_shares.py"


def test_every_row_of_the_table_is_of_a_rule_that_is_there() -> None:
    """Counts are shares; nothing names a step or a reason that is no more."""
    for (name, settings, _), rows in usual_sources._table().items():
        json.loads(settings)
        assert set(rows) <= set(step_class(name).reasons)
        assert all(0 <= n <= documents and documents >= 1000 for n, documents in rows.values())


def test_a_row_whose_setting_is_no_more_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old table never keeps a run from ending."""
    path = tmp_path / "usual_shares.tsv"
    path.write_text(
        "step\tsettings\tdigest\treason\tfired\tdocuments\tshare\n"
        'watched\t{"gone": 1}\t00000000\twatched.too_long\t5\t10\t0.5\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(usual_sources, "TABLE", path)
    usual_sources._table.cache_clear()
    assert found(done(tmp_path, [texts(0, 900)]))["alarms"] == []


def test_what_fired_is_the_verdicts_or_what_the_step_counted() -> None:
    """Names of rules stand for their reasons."""
    assert fired(USUAL).counts == USUAL["dropped"]
    both = {**marker({"s.a": 3, "s.b": 1}, 9, "s"), "facts": {"hits": {"a": 5, "s.b": 2}}}
    assert fired(both).counts == {"s.a": 5, "s.b": 2}


def test_a_run_whose_steps_stood_alone_is_not_compared(tmp_path: Path) -> None:
    """What a step looked at is then not what is usual."""
    pipeline = done(tmp_path, [texts(0, 1200)], judge_all=True)
    write_usual(pipeline)
    assert not (pipeline.run.report / "usual.json").exists()
    write_json(pipeline.run.report / "usual.json", {"steps": {}})
    assert usual_of(pipeline.run.report, "watched", pipeline.placed[0].digest) == {}
