"""Labels of lines of Chinese, Japanese and Korean: by their own characters, by the lines around, and mixed ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.language.cjk import BY_CONTEXT, BY_ITSELF, CJK_LABELS, NO_EVIDENCE, CjkLines, label_cjk
from curation.text import buffers, line_spans

SIMPLIFIED = "这家店的招牌写着专门店，味道很不错。老板是本地人，开了这家小店已经十二年了。"
TRADITIONAL = "政府公布新的圖書館計畫，預計明年春天開放給市民使用。"
JAPANESE = "連合は緒戦の勢いを失い、双方の首都をめぐり行われていた戦線は膠着状態に陥った。"
KOREAN = "이 문서에 대한 의견 및 추가는 언제나 환영합니다."
ENGLISH = "The library opens at nine every morning."


def labelled(*documents: str) -> CjkLines:
    """Labels of all lines of documents."""
    data, offsets = buffers(pa.array(documents, pa.large_string()))
    return label_cjk(data, line_spans(data, offsets))


def labels(*documents: str) -> list[str]:
    """Names of the labels of all lines of documents."""
    return [CJK_LABELS[code] for code in labelled(*documents).label]


@pytest.mark.parametrize(
    ("line", "label", "basis", "why"),
    [
        (SIMPLIFIED, "zho_Hans", BY_ITSELF, "a plain case"),
        (TRADITIONAL, "zho_Hant", BY_ITSELF, "B033: called Korean by a model, with 0.9999"),
        ("學校的花園種了許多樹，孩子們輪流替它們澆水。", "zho_Hant", BY_ITSELF, "the same"),
        (JAPANESE, "jpn_Jpan", BY_ITSELF, "a plain case"),
        (KOREAN, "kor_Kore", BY_ITSELF, "a plain case"),
        ("大韓民國은 民主共和國이다.", "kor_Kore", BY_ITSELF, "Korean with hanja"),
        ("世宗大学（谚文：세종대학교），创立于1940年，位于首尔特别市广津区。", "zho_Hans", BY_ITSELF, "quotes Korean"),
        ("这家店的招牌写着 ラーメン 专门店，味道很不错。", "zho_Hans", BY_ITSELF, "B035: Japanese words quoted"),
        ("这本书的日文名是「みどりの本」，中文译本去年出版。", "zho_Hans", BY_ITSELF, "B035: kana in quotation marks"),
        ("鲜の每日", "zho_Hans", BY_ITSELF, "の as an ornament of a Chinese shop's name"),
        ("スーパーマーケット", "jpn_Jpan", BY_ITSELF, "katakana alone"),
        ("無断転載禁止", "jpn_Jpan", BY_ITSELF, "kanji alone, with a form that only Japanese has"),
        ("東京国際大学", "jpn_Jpan", BY_ITSELF, "東 is not Simplified, 国 not Traditional: Japanese alone has both"),
        ("好", "zho_Hani", NO_EVIDENCE, "B047: decided by script; which one, a character of all three cannot tell"),
        ("借书", "zho_Hans", BY_ITSELF, "B047: called Korean by models"),
        ("散会了。", "zho_Hans", NO_EVIDENCE, "B047: 会 is not Traditional; it could be Japanese"),
        ("支票，提示", "zho_Hani", NO_EVIDENCE, "B052: shared characters must not choose between the standards"),
        (ENGLISH, "", NO_EVIDENCE, "nothing to label"),
        ("请把 pull request 合并到 main branch 再 deploy 到 staging", "zho_Hans", BY_ITSELF, "B039: English terms"),
        (
            "先跑 pip install 再改 config.yaml 然后 restart server",
            "zho_Hani",
            BY_ITSELF,
            "the same; no form of one standard",
        ),
        ("The word 中国 means the middle kingdom.", "", NO_EVIDENCE, "two characters quoted in English"),
        ("", "", NO_EVIDENCE, "an empty line"),
        ("12345 !!! 😀", "", NO_EVIDENCE, "B037: no letters"),
        ("ㄋㄧˇㄏㄠˇ", "zho_Hant", BY_ITSELF, "Bopomofo is Taiwan's"),
    ],
)
def test_a_line_by_itself(line: str, label: str, basis: int, why: str) -> None:
    """What one line is called, and what that rests on."""
    found = labelled(line + "\n")
    assert (CJK_LABELS[found.label[0]], int(found.basis[0])) == (label, basis), why


@pytest.mark.parametrize(
    ("document", "label", "basis", "why"),
    [
        ([JAPANESE, "著作者名", JAPANESE], "jpn_Jpan", BY_CONTEXT, "kanji alone in a Japanese page"),
        ([JAPANESE, "利用規約", JAPANESE], "jpn_Jpan", BY_CONTEXT, "forms shared with Traditional"),
        ([JAPANESE, "国立大学", JAPANESE], "jpn_Jpan", BY_CONTEXT, "forms shared with Simplified"),
        ([JAPANESE, "國學院", JAPANESE], "jpn_Jpan", BY_CONTEXT, "a name in old spelling"),
        ([JAPANESE, "欢迎光临本店", JAPANESE], "zho_Hans", BY_ITSELF, "Simplified forms stay Chinese"),
        ([JAPANESE, "你們好嗎", JAPANESE], "zho_Hant", BY_ITSELF, "so do function words"),
        ([SIMPLIFIED, "支票", SIMPLIFIED], "zho_Hans", BY_CONTEXT, "shared characters in a Simplified page"),
        ([TRADITIONAL, "支票", TRADITIONAL], "zho_Hant", BY_CONTEXT, "shared characters in a Traditional page"),
        ([SIMPLIFIED, "利用規約", SIMPLIFIED], "und", NO_EVIDENCE, "not Simplified, and nothing Traditional around"),
        ([SIMPLIFIED, "關於國會", SIMPLIFIED], "zho_Hant", BY_CONTEXT, "old forms that Japanese dropped"),
        ([SIMPLIFIED, "利用規約", JAPANESE], "jpn_Jpan", BY_CONTEXT, "Simplified would write it otherwise"),
        ([KOREAN, "目次", KOREAN], "und", NO_EVIDENCE, "never called Korean without Hangul"),
        ([ENGLISH, "目次", ENGLISH], "zho_Hani", NO_EVIDENCE, "English is no context"),
    ],
)
def test_a_line_among_others(document: list[str], label: str, basis: int, why: str) -> None:
    """What the second line of a document is called."""
    found = labelled("\n".join(document))
    assert (CJK_LABELS[found.label[1]], int(found.basis[1])) == (label, basis), why


def test_the_nearer_line_counts_more() -> None:
    """At the border of two parts of a page, a shared line goes with the part that it is in."""
    document = [JAPANESE, JAPANESE, "目次", "", JAPANESE, SIMPLIFIED, "支票", SIMPLIFIED, SIMPLIFIED]
    found = labels("\n".join(document))
    assert (found[2], found[6]) == ("jpn_Jpan", "zho_Hans")


def test_a_page_of_kanji_alone() -> None:
    """Headings some of which are not Traditional and some not Simplified are Japanese; shared ones are left open."""
    assert labels("会社概要\n利用規約\n目次") == ["jpn_Jpan"] * 3
    assert labels("目次\n人口") == ["zho_Hani"] * 2


@pytest.mark.parametrize(
    ("line", "label", "second", "least", "most"),
    [
        (f"{SIMPLIFIED}（{JAPANESE}）", "jpn_Jpan", "zho_Hans", 0.3, 0.5),
        (f"{JAPANESE}（这次叛乱大大削弱了）", "jpn_Jpan", "zho_Hans", 0.1, 0.3),
        (f"{SIMPLIFIED}（{KOREAN}）", "zho_Hans", "kor_Kore", 0.3, 0.5),
        ("这本书的日文名是「みどりの本」，中文译本去年出版。", "zho_Hans", "jpn_Jpan", 0.1, 0.3),
        (f"{SIMPLIFIED}（著作権法）", "zho_Hans", "jpn_Jpan", 0.05, 0.2),
        (JAPANESE, "jpn_Jpan", "", 0, 0),
        ("彼は「東京大学」と言った。", "jpn_Jpan", "", 0, 0),
    ],
)
def test_mixed_lines(line: str, label: str, second: str, least: float, most: float) -> None:
    """The second language of a line and its share of the characters."""
    found = labelled(line)
    assert (CJK_LABELS[found.label[0]], CJK_LABELS[found.second[0]]) == (label, second)
    letters = np.sort(found.letters[0])
    assert least <= letters[-2] / letters.sum() <= most


def test_letters_are_given_in_lines_without_a_label_too() -> None:
    """A caller that asks what the minor languages of a page are needs them."""
    found = labelled(f"{ENGLISH} 这是 {KOREAN[:3]} {ENGLISH}")
    assert found.label.tolist() == [0]
    assert found.letters.sum() > 0


def test_nothing() -> None:
    """No documents, empty ones, and one line of nothing."""
    assert labels() == labels("", "") == []
    assert labels("\n") == [""]


@settings(deadline=None)  # the first call may compile kernels
@given(
    st.lists(
        st.lists(
            st.sampled_from([SIMPLIFIED, TRADITIONAL, JAPANESE, KOREAN, ENGLISH, "目次", "国会", "東門", "國學", ""]),
            max_size=6,
        ).map("\n".join),
        max_size=5,
    )
)
def test_documents_do_not_see_each_other(documents: list[str]) -> None:
    """Any cut into batches gives the same labels, and shares, bases and letters."""
    together = labelled(*documents)
    apart = [labelled(document) for document in documents]
    for name in CjkLines._fields:
        one_by_one = [value for one in apart for value in getattr(one, name).tolist()]
        assert getattr(together, name).tolist() == one_by_one


def test_real_pages(test_data: Path) -> None:
    """Weighted by characters, 99.8 % of the lines of mixed pages are called right; Han alone is never Korean."""
    path = test_data / "4_langid" / "mixed_pages.jsonl.zst"
    if not path.is_file():
        pytest.skip(f"{path} not found")
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        pages = [json.loads(line) for line, _ in zip(file, range(300), strict=False)]
    found = labels(*(page["text"] for page in pages))
    gold = [name for page in pages for name in page["line_langs"]]
    lines = [line for page in pages for line in page["text"].split("\n")]
    right, all_of = dict.fromkeys(("zh", "ja", "ko"), 0), dict.fromkeys(("zh", "ja", "ko"), 0)
    for line, name, label in zip(lines, gold, found, strict=True):
        if name in right:
            all_of[name] += len(line)
            right[name] += len(line) * ({"zho": "zh", "jpn": "ja", "kor": "ko"}.get(label[:3]) == name)
            assert name == "ko" or label != "kor_Kore", line
    assert right["zh"] + right["ja"] >= 0.998 * (all_of["zh"] + all_of["ja"])
    assert right["ko"] >= 0.98 * all_of["ko"]
