"""Labelled rows: nothing bad passes in silence, and no group is on both sides of a split."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from quality_models.safety_training_rows import Row, labels_in, read_rows, split_rows

LABELS = ("gambling", "spam", "hate")


def test_reads_every_field_and_compression(tmp_path: Path) -> None:
    """Plain, gzip and zstd files give the same rows, with a byte-order mark or without."""
    line = {
        "text": "下注",
        "labels": ["spam", "gambling", "spam"],
        "lang": "zh",
        "pattern": "p1",
        "split": "test",
        "weight": 2,
    }
    body = (json.dumps(line) + "\n\n" + json.dumps({"text": "hi", "labels": []}) + "\n").encode()
    for name, data in (
        ("a.jsonl", b"\xef\xbb\xbf" + body),
        ("b.jsonl.gz", gzip.compress(body)),
        ("c.jsonl.zst", zstandard.compress(body)),
    ):
        (tmp_path / name).write_bytes(data)
        first, second = read_rows([tmp_path / name], LABELS)
        assert first == Row("下注", ("gambling", "spam"), "zh", "p1", "test", 2.0, "", f"{name}:1")
        assert (second.labels, second.where) == ((), f"{name}:3")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "expected a JSON object"),
        ("[1]", "found list"),
        ('{"labels": []}', "text: expected a string"),
        ('{"text": "  ", "labels": []}', "text: expected a string"),
        ('{"text": "a"}', "labels: expected a list"),
        ('{"text": "a", "labels": "spam"}', "labels: expected a list"),
        ('{"text": "a", "labels": [""]}', "a harmless text has the empty list"),
        ('{"text": "a", "labels": ["gamling"]}', "did you mean 'gambling'?"),
        ('{"text": "a", "labels": [], "weight": 0}', "weight: expected"),
        ('{"text": "a", "labels": [], "weight": NaN}', "weight: expected"),
        ('{"text": "a", "labels": [], "split": "tset"}', "split: expected one of train"),
        ('{"text": "a", "labels": [], "lang": 3}', "lang: expected a string"),
    ],
)
def test_bad_rows_are_refused_with_their_place(tmp_path: Path, line: str, said: str) -> None:
    """File and line stand in the message; no row is left out in silence."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "fine", "labels": []}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\.jsonl:2") as caught:
        read_rows([path], LABELS)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.jsonl"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    """A cut stream or bytes that are no text end in a message with the file's name."""
    body = json.dumps({"text": "x" * 1000, "labels": []}).encode() * 50
    whole = {"a.jsonl.gz": gzip.compress(body), "a.jsonl.zst": zstandard.compress(body), "a.jsonl": b"\xff\xfe{"}[name]
    (tmp_path / name).write_bytes(whole if name == "a.jsonl" else whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=name):
        read_rows([tmp_path / name], LABELS)


def test_an_empty_file_is_no_input(tmp_path: Path) -> None:
    """A file without rows is said, not taken for one."""
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="expected rows, found none"):
        read_rows([tmp_path / "a.jsonl"])


def test_harmless_documents_need_no_labels_and_may_have_none(tmp_path: Path) -> None:
    """`--good` takes plain documents; one with a label there is a mistake."""
    path = tmp_path / "good.jsonl"
    path.write_text('{"text": "a"}\n')
    assert read_rows([path], harmless=True)[0].labels == ()
    path.write_text('{"text": "a", "labels": ["spam"]}\n')
    with pytest.raises(ValueError, match="expected none"):
        read_rows([path], harmless=True)


def test_lone_surrogates_become_text(tmp_path: Path) -> None:
    """What JSON may hold and UTF-8 may not cannot stop a tokenizer."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\ud800b", "labels": []}\n')
    assert read_rows([path])[0].text == "a\ufffdb"


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([f"text {n}" for n in range(30)]),
        st.sampled_from([(), ("spam",), ("gambling",), ("gambling", "spam")]),
        st.sampled_from(["zh", "en"]),
        st.sampled_from(["", *(f"g{n}" for n in range(8))]),
        st.sampled_from(["", "", "", "dev", "test"]),
    ),
    max_size=60,
)


@given(ROWS, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_no_group_and_no_text_is_on_both_sides(rows: list[Row], seed: int) -> None:
    """Groups, and rows of equal text, are in one part; each row is in one part at most, and none of its own is lost."""
    parts = split_rows(rows, 0.2, seed)
    places = [at for part in parts.values() for at in part]
    assert len(places) == len(set(places))
    for keys in (lambda row: row.group, lambda row: row.text):
        sides = [{keys(rows[at]) for at in parts[name]} - {""} for name in ("train", "dev")]
        assert not sides[0] & sides[1]
        assert not sides[0] & ({keys(rows[at]) for at in parts["test"]} - {""})
    assert parts["test"] == [at for at, row in enumerate(rows) if row.split == "test"]
    assert parts == split_rows(rows, 0.2, seed)


def test_the_development_part_is_like_the_rest() -> None:
    """Each pair of language and label has about its share, rare ones too; another seed draws others."""
    rows = [
        Row(f"{lang} {label} {n}", (label,) if label else (), lang, f"{lang}{label}{n // 3}")
        for lang in ("zh", "en")
        for label, count in (("", 600), ("spam", 300), ("hate", 60))
        for n in range(count)
    ]
    parts = split_rows(rows, 0.1, 1)
    of_dev = Counter((rows[at].lang, rows[at].labels) for at in parts["dev"])
    for key, n in Counter((row.lang, row.labels) for row in rows).items():
        assert 0.07 * n <= of_dev[key] <= 0.13 * n, key
    assert parts["dev"] != split_rows(rows, 0.1, 2)["dev"]


def test_a_group_that_is_a_whole_stratum_stays_in_training() -> None:
    """What has one group only cannot be both learned and judged: it is learned."""
    rows = [Row(f"a {n}", ("spam",), "en", "one") for n in range(50)] + [Row(f"b {n}") for n in range(50)]
    assert all(not rows[at].labels for at in split_rows(rows, 0.1)["dev"])


def test_labels_stand_in_the_known_order() -> None:
    """Known ones first, others by name."""
    rows = [Row("a", ("zebra", "spam")), Row("b", ("gambling", "ape"))]
    assert labels_in(rows, LABELS) == ("gambling", "spam", "ape", "zebra")
