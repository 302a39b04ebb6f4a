"""length: units in every script, and the limits."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.filters.length import LETTERS_PER_UNIT, Length, LengthConfig
from curation.text import UNSPACED_SCRIPTS


def score(texts: list[str]) -> pa.RecordBatch:
    return Length(LengthConfig()).score(pa.record_batch([pa.array(texts, pa.large_string())], names=["text"]))


@pytest.mark.parametrize(
    ("text", "words", "units"),
    [
        ("", 0, 0),
        ("three little words", 3, 3),
        ("図書館の本", 5, 4 / 1.6 + 1 / 3.3),
        ("漢" * 16, 16, 10),
        ("かなカナ", 4, 4 / 3.3),
        ("한국어 텍스트", 2, 2),
        ("ภาษาไทย", 7, 7 / 4.4),
        ("ສະບາຍດີ", 6, 6 / 4.4),
        ("GPT-4 和 BERT", 4, 3 + 1 / 1.6),
        ("नमस्ते दुनिया", 2, 2),
        ("مرحبا بالعالم", 2, 2),
        ("𠀀𠀁", 2, 2 / 1.6),
        ("...", 0, 0),
    ],
)
def test_units(text: str, words: int, units: float) -> None:
    """A word between blanks is a unit; a letter of an unspaced script a fraction of one; marks are nothing."""
    row = score([text]).to_pylist()[0]

    assert row["words"] == words
    assert row["units"] == pytest.approx(units, abs=1e-4)
    assert row["chars"] == len(text)


def test_every_unspaced_script_has_a_fraction() -> None:
    """No script in which each letter is a word is counted as if letters were English words."""
    assert set(LETTERS_PER_UNIT) == set(UNSPACED_SCRIPTS)
    assert all(letters > 1 for letters in LETTERS_PER_UNIT.values())


def test_parallel_texts_have_about_the_same_length() -> None:
    """One sentence in nine languages: from the shortest to the longest is less than a factor of two."""
    texts = [
        "The small shop by the river has had a new roof since last month, and the owner will go on next year.",
        "Der kleine Laden am Fluss hat seit letztem Monat ein neues Dach, und der Besitzer macht nächstes Jahr weiter.",
        "У маленького магазина на берегу реки с прошлого месяца новая крыша, и хозяин продолжит работу в будущем году.",
        "河边的小店从上个月起有了新的屋顶，店主明年还会继续干下去。",
        "河邊的小店從上個月起有了新的屋頂，店主明年還會繼續幹下去。",
        "川のそばの小さな店は先月から新しい屋根になり、店の主人は来年も続けるつもりです。",
        "강가의 작은 가게는 지난달부터 새 지붕을 얹었고, 주인은 내년에도 계속할 것이다. 그렇다고 한다.",
        "ร้านเล็กริมแม่น้ำมีหลังคาใหม่ตั้งแต่เดือนที่แล้ว และเจ้าของร้านจะทำต่อไปในปีหน้า",
        "Cửa hàng nhỏ bên sông có mái mới từ tháng trước và chủ quán sẽ làm tiếp vào năm sau.",
    ]

    units = score(texts).column("units").to_pylist()

    assert max(units) < 2 * min(units), [round(unit, 1) for unit in units]


@pytest.mark.parametrize(
    ("units", "words", "reason"),
    [
        (0, 0, "length.no_words"),
        (0.6, 1, "length.too_short"),
        (9.99, 16, "length.too_short"),
        (10, 16, None),
        (100, 160, None),
        (100.01, 161, "length.too_long"),
    ],
)
def test_the_limits(units: float, words: int, reason: str | None) -> None:
    """Exactly a limit is kept; what has no words is named so, though it is also too short."""
    step = Length(LengthConfig(min_units=10, max_units=100))
    columns = [pa.array([units], pa.float32()), pa.array([words]), pa.array([words])]

    decision = step.decide(pa.RecordBatch.from_arrays(columns, names=["units", "words", "chars"]))

    assert decision.reason_array(list(step.reasons)).to_pylist() == [reason]


def test_no_words_are_dropped_even_without_a_minimum() -> None:
    """min_units 0 means any length; a text without words still is none."""
    step = Length(LengthConfig(min_units=0))

    decision = step.decide(step.score(pa.record_batch([pa.array(["a", "!"], pa.large_string())], names=["text"])))

    assert decision.keep.tolist() == [True, False]


def test_limits_in_the_wrong_order_are_refused() -> None:
    """A config that would drop everything is a mistake."""
    with pytest.raises(ValidationError, match=r"max_units \(5\) must not be less than min_units \(16\)"):
        LengthConfig(max_units=5)
