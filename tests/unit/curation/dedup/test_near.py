"""The step `near` as a whole, on runs made from lists of texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from curation.dedup import buckets, facts, hamming, near
from curation.dedup.near import Near, NearConfig
from curation.errors import RunError
from curation.filters.length import Length, LengthConfig
from curation.run import Run
from curation.shards import shards_of
from curation.steps import context_of, place_steps
from tests.fakes import make_run, run_passes, run_steps

WORDS = [f"w{i}" for i in range(5000)]


def page(seed: int, n_words: int = 400) -> list[str]:
    """Words of a text that shares nothing with others."""
    return random.Random(seed).choices(WORDS, k=n_words)


def edited(words: list[str], *places: int) -> list[str]:
    """The words with others in some places: each costs up to five shingles."""
    return [f"edit{i}" if i in places else word for i, word in enumerate(words)]


@pytest.fixture
def texts() -> list[str]:
    """Two groups of near copies (0 to 2, 3 and 4), one pair that is only similar (5 and 6), one alone, two without words."""
    one, two, three = page(1), page(2), page(3)
    apart = edited(three, *range(0, 400, 50))  # 8 edits: Jaccard 0.82
    versions = [one, edited(one, 100), edited(one, 300), two, edited(two, 5), three, apart, page(4)]
    return [*(" ".join(words) for words in versions), "", "!!! \U0001f389 ..."]


def near_rows(root: Path, texts: list[str], **settings: Any) -> list[dict[str, Any]]:
    """Verdicts of the step alone, over two shards."""
    run = make_run(root, [texts[:4], texts[4:]])
    return run_steps(run, [Near(NearConfig(**settings))]).verdicts("near")


def test_keeps_one_of_each_group(texts: list[str], tmp_path: Path) -> None:
    """Copies name the kept document with their exact Jaccard; what is only similar, alone or wordless stays."""
    rows = near_rows(tmp_path, texts)

    groups: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        if not row["keep"]:
            groups.setdefault(row["kept_doc_id"], []).append(place)
    assert sorted(map(len, groups.values())) == [1, 2]
    assert [row["group_size"] for row in rows] == [3, 3, 3, 2, 2, 1, 1, 1, 1, 1]
    assert all(row["keep"] for row in rows[5:])
    assert {row["reason"] for row in rows if not row["keep"]} == {"near.duplicate"}
    assert sorted(row["similarity"] for row in rows if not row["keep"]) == pytest.approx(
        [386 / 406, 391 / 401, 391 / 401]
    )
    assert all(row["found_by"] in ("minhash", "both") for row in rows if not row["keep"])
    assert all(row["similarity"] is row["kept_doc_id"] is row["found_by"] is None for row in rows if row["keep"])


def test_threshold_is_strict(tmp_path: Path) -> None:
    """A pair at the threshold itself is no pair of near-duplicates."""
    common = [f"c{i}" for i in range(18)]
    texts = [" ".join([*common, "a1"]), " ".join([*common, "b1"])]  # of single words 18 / 20 = 0.9

    assert [row["keep"] for row in near_rows(tmp_path / "at", texts, shingle=1)] == [True, True]
    below = near_rows(tmp_path / "below", texts, shingle=1, threshold=0.899999)
    assert sorted(row["keep"] for row in below) == [False, True]


@pytest.mark.parametrize(("keep", "kept"), [(["longest"], 1), (["shortest"], 0), (["first"], 0)])
def test_policy_decides_which_stays(keep: list[str], kept: int, tmp_path: Path) -> None:
    """The same two copies, another one kept."""
    words = page(7)
    texts = [" ".join(words), " ".join([*words, "and", "more"])]

    rows = near_rows(tmp_path, texts, keep=keep)

    assert [place for place, row in enumerate(rows) if row["keep"]] == [kept]


def test_score_of_an_earlier_step_decides(tmp_path: Path) -> None:
    """With `lowest:length.words` the copy with fewer words stays, though it has more characters."""
    words = page(8)
    texts = [" ".join([*words, "x" * 40]), " ".join([*words, "a", "b"])]
    near_config = NearConfig(keep=("lowest:length.words", "longest"))

    judged = run_steps(make_run(tmp_path, [texts]), [Length(LengthConfig()), Near(near_config)])

    assert judged.kept("near") == [0]


def passes_of(run: Run, step: Near, memory_mb: int = 500) -> Iterator[Any]:
    """The context of the step after all of its passes."""
    shards = shards_of(run)
    placed = place_steps(run, [step])[0]
    yield run_passes(run, placed, shards, memory_mb)


def test_small_memory_changes_nothing(texts: list[str], tmp_path: Path) -> None:
    """Many hash ranges, many tables, and clusters larger than memory give the same verdicts."""
    expected = near_rows(tmp_path / "large", texts)
    with (
        patch.object(buckets, "_BYTES_PER_KEY", 2**23),
        patch.object(buckets, "_BYTES_PER_FINGERPRINT", 2**26),
        patch.object(near, "_BYTES_PER_VALUE", 2**19),
        patch.object(hamming, "plan_tables", lambda documents, distance: (6, 20)),
    ):
        assert Near(NearConfig()).max_values(context_stub()) < 600
        found = near_rows(tmp_path / "small", texts)

    assert found == expected


def context_stub() -> Any:
    """A context that only says how much memory there is."""
    from curation.steps import StepContext

    return StepContext([], None, Path(), 500)


def test_facts_say_what_was_found(texts: list[str], tmp_path: Path) -> None:
    """Bands, links, clusters, groups and the documents that match nothing are counted."""
    run, step = make_run(tmp_path, [texts]), Near(NearConfig())
    found = step.facts(next(passes_of(run, step)))

    assert (found["bands"], found["rows"], found["documents"], found["without_shingles"]) == (16, 8, 10, 2)
    assert found["links"]["minhash"] >= 3
    assert found["clusters"] >= 2
    assert found["largest_group"]["size"] == 3
    assert sum(found["found_by"].values()) == 3
    assert found["alarms"] == []
    assert dict(map(tuple, found["curve"]))[0.9] > 0.999


def test_alarm_for_a_giant_group(texts: list[str], tmp_path: Path) -> None:
    """A group of more than its share is named; the smallest group worth an alarm has 100 documents."""
    run, step = make_run(tmp_path, [texts]), Near(NearConfig(alarm_group_share=0.2))
    context = next(passes_of(run, step))
    assert step.facts(context)["alarms"] == []
    with patch.object(facts, "_ALARM_AT_LEAST", 3):
        assert "3 of 10 documents" in step.facts(context)["alarms"][0]


def test_stops_where_too_much_is_dropped(texts: list[str], tmp_path: Path) -> None:
    """A share above the limit stops the run, and says how to go on."""
    run, step = make_run(tmp_path, [texts]), Near(NearConfig(max_dropped_share=0.29))

    with pytest.raises(RunError, match="drop 3 of 10 documents, which is more than max_dropped_share"):
        step.facts(next(passes_of(run, step)))


def test_preflight_estimates_and_refuses(texts: list[str], tmp_path: Path) -> None:
    """What cannot work is refused before the first pass, with what it would need."""
    run, step = make_run(tmp_path, [texts]), Near(NearConfig())
    context = context_of(run, place_steps(run, [step])[0], shards_of(run), 500)
    estimate = step.preflight(context)
    assert estimate["documents"] == 10
    assert 0 <= estimate["sign_seconds"] < 60
    with patch.object(facts, "CLUSTER_BYTES", 2**26), pytest.raises(RunError, match="Set memory_mb to 890 or more"):
        step.preflight(context)
    with (
        patch("shutil.disk_usage", return_value=type("Usage", (), {"free": 1000})),
        pytest.raises(RunError, match="Free some space"),
    ):
        step.preflight(context)


@pytest.mark.parametrize("shards", [[], [[]], [[], ["a b c d e f g", "a b c d e f g"]], [["", "..."]]])
def test_little_or_nothing_to_do(shards: list[list[str]], tmp_path: Path) -> None:
    """No shard, empty shards, and documents without words are no fault."""
    rows = run_steps(make_run(tmp_path, shards), [Near(NearConfig())]).verdicts("near")

    assert sum(bool(row["keep"]) for row in rows) == len({text for shard in shards for text in shard})


def test_limits_decide_nothing(tmp_path: Path) -> None:
    """A raised limit finds the step where it stands: nothing is signed again."""
    run = make_run(tmp_path, [["a b c d e f"]])
    configs = NearConfig(), NearConfig(max_dropped_share=0.5, alarm_group_share=0.5), NearConfig(threshold=0.8)

    one, other, another = (place_steps(run, [Near(config)])[0].folder for config in configs)

    assert one == other
    assert one != another


def test_a_criterion_that_says_nothing_is_named(texts: list[str], tmp_path: Path) -> None:
    """A misspelt field or a pattern that fits nothing decides nowhere, which nobody would notice."""
    run = make_run(tmp_path, [texts])
    step = Near(NearConfig(keep=("newest", "source_rank", "longest"), sources=("*nosuch*",)))

    alarms = step.facts(next(passes_of(run, step)))["alarms"]

    assert [alarm.split(",")[0] for alarm in alarms] == ["keep has 'newest'", "keep has 'source_rank'"]


def test_a_giant_cluster_is_refused(texts: list[str], tmp_path: Path) -> None:
    """What is held of every member of the largest cluster must fit into memory."""
    run, step = make_run(tmp_path, [texts]), Near(NearConfig())
    with patch.object(near, "_BYTES_PER_MEMBER", 2**27), pytest.raises(RunError, match="one cluster of candidates"):
        next(passes_of(run, step))
