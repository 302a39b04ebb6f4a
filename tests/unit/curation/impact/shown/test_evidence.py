"""What a step judged a document by is found where it stands, whatever the text, and nothing is claimed that is not there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.impact.shown.evidence import Evidence, evidence_of
from curation.impact.shown.evidence_of_rules import spans_of_measure
from curation.report.span_excerpt import cut_around, find_marks

TRIGGERS: list[tuple[str, str, list[str]]] = [
    ("duplicate_lines", "Ä one\ntwo\n Ä one \n\nÄ one", ["Ä one", "Ä one"]),
    ("duplicate_line_characters", "x\nx", ["x"]),
    ("duplicate_paragraphs", "a\nb\n\nc\n\na\nb", ["a\nb"]),
    ("bullet_lines", "- a point\nnone\n- another", ["- a point", "- another"]),
    ("ellipsis_lines", "goes on ...\nends.", ["goes on ..."]),
    ("short_lines", "tiny\nThis line says a good deal more than thirty characters.", ["tiny"]),
    ("end_mark_lines", "ends.\nbut this does not", ["but this does not"]),
    ("duplicate_5gram", "a b c d e f. then a b c d e f", ["a b c d e f"]),
    ("top_2gram", "buy shoes now, buy shoes today", ["buy shoes", "buy shoes"]),
    ("top_word", "good shoes and shoes and many more shoes", ["shoes", "shoes", "shoes"]),
    ("call_words", "Hello. Call today for a free quote! Bye.", ["Call today for a free quote"]),
    ("furniture_words", "Home\nShare\nLog in\nAn article about bridges.", ["Home\nShare\nLog in"]),
    ("placeholder_words", "Lorem ipsum dolor sit amet, consectetur adipiscing.", ["Lorem ipsum dolor sit amet, consectetur adipiscing"]),
    ("links", "é see https://example.org/x?y=1 or www.foo.bar/", ["https://example.org/x?y=1", "www.foo.bar/"]),
    ("contacts", "write @handle_me or t.me/xyz", ["@handle_me", "t.me/xyz"]),
    ("digits", "call 12 34 or é 5.6", ["12 34", "5.6"]),
    ("upper_case", "THIS IS BIG, this not, ÄÖÜ", ["THIS IS BIG", "ÄÖÜ"]),
    ("emoji", "hi 😀😀 there", ["😀😀"]),
    ("replacement_characters", "lo\ufffdst", ["\ufffd"]),
    ("longest_run", "é!!!!!!!!! aaaa", ["!!!!!!!!!"]),
    ("longest_word", "a long-ish word", ["long-ish"]),
    ("mojibake", "cafÃ© au lait", ["Ã©"]),
    ("hash_per_word", "a ## b", ["##"]),
    ("ellipsis_per_word", "a... b…", ["...", "…"]),
    ("brackets", "a [b]", ["[", "]"]),
    ("curly_brackets", "a {b}", ["{", "}"]),
    ("misread_signs", "ok ¡£ there", ["¡£"]),
    ("blanks", "a    b", ["    "]),
    ("single_letter_words", "so w o r d s here", ["w o r d s"]),
]  # fmt: skip


@pytest.mark.parametrize(("measure", "text", "found"), TRIGGERS, ids=[one[0] for one in TRIGGERS])
def test_what_a_rule_counts_is_marked(measure: str, text: str, found: list[str]) -> None:
    """For each measure that counts places, these are the places of a small text."""
    data = text.encode()
    assert [data[span.begin : span.end].decode() for span in spans_of_measure(measure, data)] == found


def test_a_measure_of_the_whole_text_marks_nothing() -> None:
    """A mean, an entropy, or what is too little stands nowhere."""
    for measure in ("word_entropy", "mean_line_length", "stop_words", "kept_sentences", "units", "no such measure"):
        assert spans_of_measure(measure, b"any text at all") == []


@pytest.mark.parametrize("measure", sorted({one[0] for one in TRIGGERS}))
def test_long_texts_of_one_kind_are_looked_at_in_time(measure: str) -> None:
    """No expression backtracks: each takes well under the test's limit for what it likes least."""
    for text in (
        "a" * 100_000,
        "1" * 100_000,
        "a " * 50_000,
        " " * 100_000,
        "A\n" * 50_000,
        "@" * 100_000,
        "![" * 50_000,
    ):
        spans_of_measure(measure, text.encode())


def test_markup_is_marked_by_kind() -> None:
    """Left-overs of HTML are named, text between them is not."""
    text = "Héllo <div class='a'>x</div> and&nbsp;more".encode()
    found = evidence_of("html_noise", None, "html_noise.markup", {}, memoryview(text))
    told = [(span.term, text[span.begin : span.end].decode()) for span in found.spans]
    assert told == [("tag of a page", "<div class='a'>"), ("tag", "</div>"), ("character reference", "&nbsp;")]


def test_terms_of_the_deciding_category_are_marked() -> None:
    """Of several categories that which decided, by the reason or by the score; of none all."""
    cell = json.dumps(
        [["drugs", "weed", 0, 4, "en.tsv:3"], ["spam", "buy", 5, 8, "en.tsv:9"], ["spam", "far", 90, 99, "en.tsv:9"]]
    )
    text, row = memoryview(b"weed buy now"), {"matched": cell}

    def terms(score: str | None, reason: str | None) -> list[str]:
        return [span.term for span in evidence_of("safety_terms", score, reason, row, text).spans]

    assert terms(None, "safety_terms.spam") == ["buy"], "a place beyond the text is none"
    assert terms("drugs_density", None) == ["weed"]
    assert terms(None, None) == ["weed", "buy"]


def test_lines_in_other_languages_are_marked() -> None:
    """By the runs of lines that the score holds; runs beyond the text, or that are none, are left out."""
    spans = [
        {"language": "eng_Latn", "first": 0, "end": 1}, {"language": "fra_Latn", "first": 1, "end": 3},
        {"language": "deu_Latn", "first": 90, "end": 91}, {"language": "x", "first": None, "end": 2}, "no run",
    ]  # fmt: skip
    text = "Hello\nBonjour é\nencore\nHello".encode()
    found = evidence_of("language", None, "language.mixed", {"language": "eng_Latn", "spans": spans}, memoryview(text))
    assert [(one.term, text[one.begin : one.end].decode()) for one in found.spans] == [
        ("fra_Latn", "Bonjour é\nencore")
    ]


@pytest.mark.parametrize(
    ("row", "begin", "note"),
    [
        (
            {"worst_begin": 5, "worst_end": 10, "worst_label": "spam"},
            5,
            "the part that decided: bytes 5 to 10, for spam",
        ),
        ({"worst_begin": 0, "worst_end": 20, "worst_label": None}, 0, "all of it was read at once"),
        ({"worst_begin": 5, "worst_end": 900, "worst_label": "spam"}, 0, ""),
        ({"worst_begin": None, "worst_end": None}, 0, ""),
        ({}, 0, ""),
    ],
)
def test_the_window_that_decided_is_named(row: dict[str, Any], begin: int, note: str) -> None:
    """A place that is none of the text is not told."""
    assert evidence_of("safety_model", None, "safety_model.spam", row, memoryview(b"x" * 20)) == Evidence(
        begin, (), note
    )


@pytest.mark.parametrize("step", ["length", "perplexity", "exact", "rules", "an older step"])
def test_a_step_about_the_whole_text_has_no_place(step: str) -> None:
    """The excerpt is then the beginning."""
    assert evidence_of(step, None, f"{step}.why", {}, memoryview(b"text")) == Evidence()


def test_an_excerpt_begins_where_most_is_marked() -> None:
    """A single tag at the top does not hide the page of tags further down."""
    text = ("<b>" + "plain words go on. " * 60 + "<div class='x'>" * 20).encode()
    found = evidence_of("html_noise", None, "html_noise.markup", {}, memoryview(text))
    excerpt = cut_around(text, found.begin)
    assert excerpt.begin > 500
    assert len(find_marks(text, excerpt, found.spans)) >= 1


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from([one[0] for one in TRIGGERS]))
def test_places_lie_in_the_text(text: str, measure: str) -> None:
    """Whatever the text: places are ascending, inside of it, and between characters."""
    data = text.encode("utf-8", "replace")
    spans = spans_of_measure(measure, data)
    for span in spans:
        assert 0 <= span.begin < span.end <= len(data)
        data[span.begin : span.end].decode("utf-8")
    assert [span.begin for span in spans] == sorted(span.begin for span in spans)
