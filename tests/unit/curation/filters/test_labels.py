"""The label by which filters choose their limits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.filters.labels import SCRIPT_LABELS, letters_of_script, lookup_keys, working_labels
from curation.text import buffers, script_counts


def labels_of(texts: list[str], languages: list[str | None] | None = None) -> list[str]:
    columns = {
        "text": pa.array(texts, pa.large_string()),
        "language.language": pa.array(languages or [None] * len(texts), pa.string()),
    }
    found = working_labels(pa.RecordBatch.from_pydict(columns))
    assert found.type == pa.string()
    assert found.null_count == 0
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("", "und"),
        ("12 + 30 = 42 …", "und"),
        ("The mill is open.", "und_Latn"),
        ("Мельница открыта", "und_Cyrl"),
        ("河边的小店", "und_Hani"),
        ("河邊的小店 ㄅㄆㄇ", "und_Hani"),
        ("川のそばの小さな店", "und_Jpan"),
        ("ガラス", "und_Jpan"),
        ("漢" * 90 + "の" * 9, "und_Hani"),
        ("漢" * 90 + "の" * 10, "und_Jpan"),
        ("강가의 작은 가게", "und_Kore"),
        ("강가의 작은 가게 漢字", "und_Kore"),
        ("ร้านเล็กริมแม่น้ำ", "und_Thai"),
        ("नदी के किनारे", "und_Deva"),
        ("אבג 河", "und_Hebr"),
        ("a б", "und_Latn"),
        ("𐌰𐌱𐌲", "und"),
    ],
)
def test_the_main_script_where_there_is_no_language(text: str, label: str) -> None:
    """Letters decide; kana make Japanese from a tenth on; no letters of a known script, no label."""
    assert labels_of([text]) == [label]
    assert label in SCRIPT_LABELS


def test_a_language_is_taken_as_it_is() -> None:
    """Only rows without a language, or with `und`, get their script."""
    texts = ["The mill", "The mill", "河边", "The mill", "河边"]

    assert labels_of(texts, ["zho_Hans", None, "und", "deu_Latn", "zho_Hant"]) == [
        "zho_Hans",
        "und_Latn",
        "und_Hani",
        "deu_Latn",
        "zho_Hant",
    ]
    assert labels_of(texts[:1], ["lat_Latn"]) == ["lat_Latn"]
    assert labels_of([]) == []


def test_a_slice_is_read_from_its_start() -> None:
    """A batch that begins in the middle of its buffers."""
    texts = pa.array(["The mill", "河边", "ガラス", "강가"], pa.large_string())
    languages = pa.array(["eng_Latn", None, "und", None], pa.string())
    batch = pa.RecordBatch.from_pydict({"text": texts, "language.language": languages}).slice(1, 2)

    assert working_labels(batch).to_pylist() == ["und_Hani", "und_Jpan"]


@pytest.mark.parametrize(
    ("label", "keys"),
    [
        ("zho_Hant", ("zho_Hant", "zho", "und_Hani", "")),
        ("zho_Hani", ("zho_Hani", "zho", "und_Hani", "")),
        ("jpn_Jpan", ("jpn_Jpan", "jpn", "und_Jpan", "")),
        ("kor_Kore", ("kor_Kore", "kor", "und_Kore", "")),
        ("eng_Latn", ("eng_Latn", "eng", "und_Latn", "")),
        ("und_Latn", ("und_Latn", "")),
        ("und", ("",)),
    ],
)
def test_where_settings_stand(label: str, keys: tuple[str, ...]) -> None:
    """The label, its language, its script, the default."""
    assert lookup_keys(label) == keys


def test_letters_of_the_labels_script() -> None:
    """What of a text is in the script of its label; Han and kana are one for Chinese and Japanese."""
    texts = ["The 河边", "The 河边", "The 河边のガ", "The 강가", "The 河", "The", ""]
    labels = ["eng_Latn", "zho_Hans", "jpn_Jpan", "kor_Kore", "und", "xyz_Xyzz", "eng_Latn"]

    letters = script_counts(*buffers(pa.array(texts, pa.large_string())))

    assert letters_of_script(letters, pa.array(labels)).tolist() == [3, 2, 4, 2, 0, 0, 0]
    assert letters_of_script(letters[:0], pa.array([], pa.string())).tolist() == []
