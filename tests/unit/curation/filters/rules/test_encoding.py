"""Letters read in the wrong encoding: found however they were misread, and not where a language looks like it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules.encoding import COLUMNS, measure
from curation.filters.rules.parts import parts_of

TEXTS = {
    "fr": "L’été dernier, nous avons traversé la forêt où mon père a planté des chênes. Ça va, répondit-elle à Noël.",
    "de": "Über den Fluß führen schöne Brücken; für große Wagen wären sie zu schmal. „Nein“, sagte die Müllerin.",
    "es": "El niño preguntó: ¿dónde está la montaña? Mañana, dijo la señora, después del desayuno y la canción.",
    "pt": "NÃO HÁ RAZÃO PARA ISSO: a situação é fácil, e as mães já não estão à espera. «À tarde», disse ela.",
    "vi": "Cửa hàng nhỏ bên sông vừa thay mái mới vào tháng trước, và trẻ em đến giúp mỗi buổi chiều.",
    "tr": "Irmağın kıyısındaki küçük dükkân geçen ay yeniden açıldı; çocuklar akşamları yardıma geliyor, dedi «İşçi».",
    "ru": "Старая мельница на берегу реки снова открыта для посетителей. «ВСЁ ХОРОШО», — сказала она, и США тоже.",
    "uk": "Він живе в Києві, її діти вчаться в школі. УКРАЇНСЬКІ КНИГИ Є ТУТ. «Її дім», — каже Ірина.",
    "sr": "Ја сам јуче видео њену књигу; ЊЕНЕ ЉУБАВИ ЈОШ НЕМА. Ђак пише, а Јелена чита.",
    "cs": "Úžasný Mauric, Útvar, Íšan a ÝŽE: STARÝ MLÝN U ŘEKY JE ZNOVU OTEVŘEN, příští rok též.",
    "el": "Ο παλιός μύλος στην όχθη του ποταμού άνοιξε ξανά. Τα παιδιά έρχονται το βράδυ.",
    "ja": "川のそばの小さな店は、先月あたらしい屋根になりました。近所の子どもたちがよく手伝いに来ます。",
    "zh": "河边的小店上个月换了新的屋顶，负责人说明年还会继续。附近的孩子常来帮忙，琳琅满目。",
    "zh-Hant": "河邊的小店上個月換了新的屋頂，負責人說明年還會繼續。附近的孩子常來幫忙。",
    "ko": "강가의 작은 가게가 지난달 지붕을 새로 고쳤습니다. 근처 아이들이 자주 도와줍니다.",
    "signs": "« … » — “ ” ‘ ’ • • • ° ° ´ ¨ ··· ¼ ½ ×××× ±±±± ©®™ £££ §§§",
}


def scores(text: str) -> dict[str, float | None]:
    """The measures of one text."""
    found = measure(parts_of(pa.array([text], pa.large_string())))
    return {name: None if np.ma.getmaskarray(column)[0] else float(column[0]) for name, column in found.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_ordinary_text_is_read_rightly(name: str) -> None:
    """Whatever letters a language puts beside each other, no measure comes near to the limit of its rule."""
    found = scores(TEXTS[name] * 3)

    assert found["mojibake"] == pytest.approx(0, abs=0.0125), found
    assert found["replacement_characters"] == 0
    assert (found["misread_han"] or 0) < 0.1
    assert not found["inverted_case"]
    assert found["misread_signs"] == 0


@pytest.mark.parametrize(
    ("name", "written", "read", "measured", "least"),
    [
        ("fr", "utf-8", "latin-1", "mojibake", 0.05),
        ("de", "utf-8", "cp1252", "mojibake", 0.05),
        ("es", "utf-8", "latin-1", "mojibake", 0.05),
        ("vi", "utf-8", "latin-1", "mojibake", 0.3),
        ("tr", "utf-8", "cp1252", "mojibake", 0.05),
        ("ru", "utf-8", "cp1251", "mojibake", 0.7),
        ("uk", "utf-8", "cp1251", "mojibake", 0.7),
        ("ru", "utf-8", "latin-1", "mojibake", 0.7),
        ("el", "utf-8", "latin-1", "mojibake", 0.7),
        ("ja", "utf-8", "latin-1", "mojibake", 0.7),
        ("zh", "gb18030", "latin-1", "mojibake", 0.7),
        ("ko", "euc-kr", "latin-1", "mojibake", 0.4),
        ("ja", "shift_jis", "latin-1", "replacement_characters", 0.3),
        ("ja", "utf-8", "cp932", "misread_han", 0.3),
        ("zh", "utf-8", "cp932", "misread_han", 0.3),
        ("zh", "utf-8", "gb18030", "misread_han", 0.2),
        ("ru", "koi8-r", "cp1251", "inverted_case", 0.04),
    ],
)
def test_wrong_encodings_are_found(name: str, written: str, read: str, measured: str, least: float) -> None:
    """Text of a language, written in one encoding and read in another."""
    text = (TEXTS[name] * 3).encode(written, "ignore").decode(read, "replace")

    assert (scores(text)[measured] or 0) > least, text[:60]


def test_what_was_lost_counts() -> None:
    """U+FFFD, C1 controls and private code points count; NEL, a line end, does not."""
    assert scores("ab\ufffdd")["replacement_characters"] == pytest.approx(1 / 4)
    assert scores("abc\u0093")["replacement_characters"] == pytest.approx(1 / 3)
    assert scores("ab\ue000d")["replacement_characters"] == pytest.approx(1 / 4)
    assert scores("ab\u0085d")["replacement_characters"] == 0


def test_little_text_says_nothing() -> None:
    """Fewer than 20 Han letters, or 10 Cyrillic words: undefined; no character at all: all are."""
    assert scores("縺ｮ 縺ｮ")["misread_han"] is None
    assert scores("зМБЧБ оБЪЧБОЙС")["inverted_case"] is None
    assert {name for name, value in scores("").items() if value is not None} == {"misread_signs"}
    assert [column.name for column in COLUMNS] == list(scores("a"))


def test_texts_do_not_reach_into_each_other() -> None:
    """A sequence that is cut by the border of a text is none, on either side."""
    whole, cut = pa.array(["Ã©t"], pa.large_string()), pa.array(["Ã", "©t"], pa.large_string())

    assert float(measure(parts_of(whole))["mojibake"][0]) == pytest.approx(2 / 3)
    assert measure(parts_of(cut))["mojibake"].tolist() == [0, 0]


def test_the_sets_come_from_the_encodings() -> None:
    """The best-known letters of such text: 縺 for hiragana, 繧 繝 for kana, 鐨 for 的, 锛 for full-width signs."""
    text = "縺繧繝荳鐨涓锛鍥" * 5

    assert scores(text)["misread_han"] == 1


def test_misread_signs_are_counted() -> None:
    """Quotation marks of EUC-KR or GB 18030 around English words; Spanish exclamations are none."""
    assert scores("the ¡°Sphere¡± filter ¡¦")["misread_signs"] == 3
    assert scores("¡¢£¤¥¦ ¡¢£¤")["misread_signs"] == 0  # tables of Latin-1
    assert scores("a¡¢b")["misread_signs"] == 1
    assert scores("¡Hola! ¡¿Qué?! ¡«Sí»! ¡Él! 1¡ 2¡")["misread_signs"] == 0
    assert scores("Los signos «¡» y «¿», “¡” y '¡' abren.")["misread_signs"] == 0
