"""The filter `rules`: verdicts from scores, limits by label, and what it tells the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules import Rules, RulesConfig
from curation.filters.rules.rule import BY_NAME, RULES
from curation.filters.rules.step import COLUMNS
from tests.fakes import batch_for


def rules(**settings: Any) -> Rules:
    return Rules(RulesConfig.model_validate({"preset": "none", **settings}))


def scores_of(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Scores of documents of which only some measures are known; all others are null."""
    arrays = [pa.array([row.get(column.name) for row in rows], column.type) for column in COLUMNS]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in COLUMNS])


def reasons_of(step: Rules, rows: Sequence[Mapping[str, Any]]) -> list[str | None]:
    found: list[str | None] = step.decide(scores_of(rows)).reason_array(list(step.reasons)).to_pylist()
    return found


def test_the_table_fits_the_measures() -> None:
    """Each rule has a name and a measure that is computed, in the unit of its score column; no rule stands twice."""
    columns = {column.name: column for column in COLUMNS}

    assert len(BY_NAME) == len(RULES)
    assert len({(rule.measure, rule.side) for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert columns[rule.measure].unit == rule.unit, rule.name
        assert rule.sentence
        assert rule.source


def test_a_limit_itself_is_kept() -> None:
    """Above a maximum, below a minimum: float32 of the config's number on both sides, so 0.3 is not above 0.3."""
    step = rules(duplicate_lines=0.3, letter_words=0.7)
    above, below = (
        float(np.nextafter(np.float32(0.3), np.float32(1))),
        float(np.nextafter(np.float32(0.7), np.float32(0))),
    )

    assert reasons_of(step, [{"language": "und", "duplicate_lines": 0.3, "letter_words": 0.7}]) == [None]
    assert reasons_of(step, [{"language": "und", "duplicate_lines": above}]) == ["rules.duplicate_lines"]
    assert reasons_of(step, [{"language": "und", "letter_words": below}]) == ["rules.letter_words"]


def test_an_undefined_measure_drops_nothing() -> None:
    """Null is neither above nor below any limit, for every rule at its strictest."""
    strictest = {rule.name: 0 if rule.side == "max" else 1 for rule in RULES}

    assert reasons_of(rules(**strictest), [{"language": "und"}]) == [None]


def test_counts_beyond_float32_are_judged() -> None:
    """One word of 17 million letters is too long, not an error: 2^24 + 1 is no float32."""
    row = {"language": "und", "longest_word": 2**24 + 1, "sentences": 2**24 + 1}
    step = rules(longest_word=1000, few_sentences=5)

    assert reasons_of(step, [row]) == ["rules.longest_word"]
    assert step.limits_of(scores_of([row]))["longest_word"].tolist() == [1000]


def test_lists_of_words_are_part_of_what_decides() -> None:
    """Other phrases or stop words give other scores, so a step with them is another one."""
    assert rules().model_checksums().keys() == {"phrases.tsv", "stop_words.tsv"}


def test_the_first_rule_of_the_table_is_the_reason() -> None:
    """Whatever else a document breaks, and in whatever order the config names the rules."""
    step = rules(many_units=10, upper_case=0.1, duplicate_lines=0.1, mojibake=0.1)
    broken = {"language": "und", "units": 11, "upper_case": 0.2, "duplicate_lines": 0.2}

    assert reasons_of(step, [broken, {**broken, "mojibake": 0.2}]) == ["rules.upper_case", "rules.mojibake"]
    assert {name for name, mask in step.hits(scores_of([broken])).items() if mask[0]} == {
        "rules.duplicate_lines",
        "rules.upper_case",
        "rules.many_units",
    }


def test_limits_are_those_of_the_label() -> None:
    """Label, language, script, default; a rule may be on for one language alone."""
    step = rules(digits=0.5, languages={"zho": {"digits": 0.2}, "und_Jpan": {"digits": "off"}, "deu": {"links": 0.1}})
    labels = ["eng_Latn", "zho_Hans", "jpn_Jpan", "und_Jpan", "und_Hani", "deu_Latn", "und"]

    found = reasons_of(step, [{"language": label, "digits": 0.3, "links": 0.3} for label in labels])

    assert found == [None, "rules.digits", None, None, None, "rules.links", None]
    assert step.thresholds() == {"digits": [0.5]}
    own = step.limits_of(scores_of([{"language": label, "digits": 0.3} for label in labels]))
    np.testing.assert_allclose(own["digits"], [0.5, 0.2, np.nan, np.nan, 0.5, 0.5, 0.5])
    none = step.limits_of(scores_of([{"language": "und_Jpan", "digits": 0.3}]))["digits"]
    assert np.isnan(none).all(), "a rule that is off for all of a batch has no limit to show there"


def test_a_measure_with_two_sides() -> None:
    """Both limits are drawn; the one that is nearer to a document's value is shown beside it."""
    step = rules(short_words=3, long_words=10)

    assert step.thresholds() == {"mean_word_length": [3, 10]}
    scores = scores_of([{"language": "und", "mean_word_length": value} for value in (2, 4, 9, 12)])
    assert step.decide(scores).keep.tolist() == [False, True, True, False]
    assert step.limits_of(scores)["mean_word_length"].tolist() == [3, 3, 10, 10]


def test_scores_know_no_label_of_their_own() -> None:
    """The label of the step `language` is stored, or the script where there is none."""
    step = rules()

    scores = step.score(batch_for(step, ["The mill is open.", "水车转了。", ""], ["eng_Latn", None, "und"]))

    assert scores.column("language").to_pylist() == ["eng_Latn", "und_Hani", "und"]


def test_stop_words_are_those_of_the_language() -> None:
    """Distinct ones, in any case; none are counted where the language has no list,
    is not known, or is not that of the letters."""
    step = rules()
    texts = ["The mill of the river. THE END", "Die Mühle und der Fluss", "老磨坊在河的边上", "โรงสีเก่า", "The mill", ""]

    scores = step.score(batch_for(step, texts, ["eng_Latn", "deu_Latn", "zho_Hant", "tha_Thai", None, "eng_Latn"]))

    assert scores.column("stop_words").to_pylist() == [2, 3, 2, None, None, None]


@pytest.mark.parametrize(
    ("preset", "reasons"),
    [
        ("massive", {None}),
        ("gopher", {"rules.few_units"}),
        ("c4", {"rules.kept_sentences"}),
        ("fineweb", {"rules.few_sentences"}),
        ("fineweb2", {"rules.few_units"}),
        ("none", {None}),
    ],
)
def test_texts_without_words(preset: str, reasons: set[str | None]) -> None:
    """Only rules that ask for a least amount speak of nothing."""
    step = rules(preset=preset)

    found = step.decide(step.score(batch_for(step, ["", " \n\u3000"])))

    assert set(found.reason_array(list(step.reasons)).to_pylist()) == reasons


def test_it_tells_how_often_each_rule_fires() -> None:
    """Documents that were judged, and what each rule drops of them whatever others say; rules that are off are no keys."""
    step = rules(digits=0.5, upper_case=0.5)
    scores = scores_of(
        [{"language": "und", "digits": 0.6, "upper_case": 0.6}, {"language": "und"}, {"language": "und"}]
    )
    table = pa.Table.from_batches([scores]).append_column("keep", [[False, True, None]])

    assert step.facts(iter([table, table])) == {"documents": 4, "hits": {"upper_case": 2, "digits": 2}}
    assert step.facts(iter([])) == {"documents": 0, "hits": {"upper_case": 0, "digits": 0}}


def test_the_score_behind_a_reason() -> None:
    """Each reason names the measure that decides."""
    step = rules()

    assert {step.score_of(reason) for reason in step.reasons} <= {column.name for column in COLUMNS}
    assert step.score_of("rules.few_units") == "units"
