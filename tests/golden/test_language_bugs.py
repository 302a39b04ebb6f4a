"""What went wrong in other tools' language identification, from the public bug log: one test a number.

Cases with files lie beside the test data; what is right stands in their `cases.jsonl`, in a form for programs. The
others are short and stand here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.filters.language import Language, LanguageConfig
from quality_models.language_codes import to_iso639_3
from tests.fakes import shard_table

REPO = Path(__file__).resolve().parents[2]
CAPITALS = "THE LIBRARY OPENS AT NINE EVERY MORNING"


def judge(*texts: str, **settings: Any) -> list[dict[str, Any]]:
    """The scores of each text, with `code` (language without script) and the reason, None where it is kept."""
    step = Language(LanguageConfig.model_validate(settings))
    scores = step.score(shard_table(texts).select(["text"]).combine_chunks().to_batches()[0])
    reasons = step.decide(scores).reason_array(list(step.reasons)).to_pylist()
    rows = scores.to_pylist()
    assert len(rows) == len(texts)
    return [
        {**row, "code": row["language"].partition("_")[0], "reason": reason}
        for row, reason in zip(rows, reasons, strict=True)
    ]


def case(folder: Path, bug: str) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Texts of a case of the log by id, and what is expected of them."""
    described = [json.loads(line) for line in (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    found = next(one for one in described if one["id"] == bug)
    lines = (folder / found["input_file"]).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["text"] for row in map(json.loads, lines)}, found["expect"]


@pytest.mark.parametrize("bug", ["B033", "B035", "B037", "B039", "B047", "B051"])
def test_cases_with_files(bugcases: Path, bug: str) -> None:
    """Each text has the language that the case names, and none of those that it rules out."""
    texts, expect = case(bugcases, bug)
    found = dict(zip(texts, judge(*texts.values()), strict=True))

    assert expect.keys() <= {"lang", "not_lang"}
    for name, code in expect.get("lang", {}).items():
        assert found[name]["code"] == to_iso639_3(code), (name, found[name])
    for name, codes in expect.get("not_lang", {}).items():
        assert found[name]["code"] not in {to_iso639_3(code) for code in codes}, (name, found[name])


ELSEWHERE = """
from tests.golden.test_language_bugs import CAPITALS, judge
print(repr([(row["language"], row["confidence"]) for row in judge(CAPITALS, *["x"] * 3, CAPITALS)]))
"""


def test_b031_the_same_answer_every_time() -> None:
    """B031: langdetect draws at random, 28 en and 12 vi of 40. Right: one label in every call, order and process."""
    rows = judge(*[CAPITALS] * 40, "Ngày mai trời mưa.", CAPITALS)
    del rows[40]
    answers = {(row["language"], row["confidence"], row["langdetect"], row["langdetect_confidence"]) for row in rows}
    assert len(answers) == 1
    assert rows[0]["language"] == "eng_Latn"

    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], cwd=REPO, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    other = [(row["language"], row["confidence"]) for row in judge(CAPITALS, *["x"] * 3, CAPITALS)]
    assert done.stdout.strip() == repr(other)


def test_b033_traditional_chinese_is_no_korean(bugcases: Path) -> None:
    """B033: langdetect says ko with 0.9999. Right: Chinese in Traditional characters, kept, whatever a model says."""
    texts, _ = case(bugcases, "B033")
    for row in judge(*texts.values(), wanted=["zh-TW"]):
        assert row["language"] == "zho_Hant"
        assert row["reason"] is None
        assert row["class"] in ("agree", "resolved-by-script")


def test_b035_japanese_is_a_minor_language(bugcases: Path) -> None:
    """B035: a few Japanese words made a Chinese page Japanese. Right: zh, and ja is noted with its share."""
    texts, _ = case(bugcases, "B035")
    for row in judge(*texts.values()):
        shares = {one["language"]: one["share"] for one in row["shares"]}
        assert row["language"] == "zho_Hans"
        assert shares["zho_Hans"] > 0.8
        assert set(shares) <= {"zho_Hans", "jpn_Jpan"}
    title = judge(texts["q1"])[0]
    assert [one["language"] for one in title["shares"]] == ["zho_Hans", "jpn_Jpan"], "quoted kana are seen"


def test_b037_texts_without_letters(bugcases: Path) -> None:
    """B037: digits, signs, emoji, blanks and addresses raised. Right: und, a class of their own, the others unharmed."""
    texts, _ = case(bugcases, "B037")
    sentence = "The library opens at nine every morning."
    *rows, last = judge(*texts.values(), sentence)
    for row in rows:
        assert (row["language"], row["class"], row["characters"]) == ("und", "no-language", 0)
        assert (row["fasttext"], row["langdetect"], row["shares"]) == (None, None, [])
        assert row["reason"] == "language.no_language"
    assert last == judge(sentence)[0]


def test_b039_english_terms_in_chinese(bugcases: Path) -> None:
    """B039: Chinese with English terms was called French. Right: Chinese, and kept."""
    texts, _ = case(bugcases, "B039")
    for row in judge(*texts.values(), wanted=["zh"]):
        assert row["code"] == "zho"
        assert row["reason"] is None


def test_b040_texts_of_several_lines() -> None:
    """B040: fastText refuses a newline. Right: any line ends, and the label of the same text on one line."""
    words = "Der Bus hält im Winter nur an der Brücke, weil die Straße dahinter vereist ist und niemand sie räumt."
    rows = judge(*(words.replace(", ", f",{end}") for end in (" ", "\n", "\r\n", "\n\n", "\r", "\u2028", "\x0b")))
    assert [row["language"] for row in rows] == ["deu_Latn"] * len(rows)
    assert [row["reason"] for row in rows] == [None] * len(rows)


def test_b041_one_text_or_many() -> None:
    """B041: fastText's predict of a single text raises under numpy 2. Right: one text has the answer it has in a list."""
    texts = ["La boulangère livre le pain aux écoles des villages voisins.", "Stary młyn nad rzeką jest znów otwarty."]
    assert [judge(text)[0] for text in texts] == judge(*texts)
    assert [row["fasttext"] for row in judge(*texts)] == ["fra", "pol"]


def test_b043_nothing_known_nothing_said() -> None:
    """B043: an empty text was named at 0.67. Right: und for nothing, for blanks, and for letters that no model has seen."""
    for text in ("", "   ", "\u3000\n\t", "𐌰𐌱𐌲𐌳 𐌴𐌵𐌶𐌷 𐌸𐌹𐌺𐌻 𐌼𐌽𐌾𐌿 𐍀𐍁𐍂𐍃 𐍄𐍅𐍆𐍇", "𐎠𐎡𐎢𐎣 𐎤𐎥𐎦𐎧 𐎨𐎩𐎪𐎫 𐎬𐎭𐎮𐎯 𐎰𐎱𐎲𐎳"):
        (row,) = judge(text)
        assert row["language"] == "und", text
        assert row["confidence"] == 0
        assert row["reason"] in ("language.no_language", "language.undecided")


def test_b045_a_row_for_each_text() -> None:
    """B045: predict of a batch with a threshold gave rows of different length. Right: a row for each, with all scores."""
    rows = judge("Bonjour à tous, le marché ouvre à huit heures.", "", "ok", "12", "Guten Morgen zusammen, es regnet.")
    assert len(rows) == 5
    assert [row["language"] for row in rows][::4] == ["fra_Latn", "deu_Latn"]


def test_b047_two_characters_go_by_script(bugcases: Path) -> None:
    """B047: Chinese texts of two characters got random languages. Right: too short, decided by script, kept."""
    texts, _ = case(bugcases, "B047")
    for row in judge(*texts.values()):
        assert (row["class"], row["code"], row["reason"]) == ("too-short", "zho", None)


@pytest.mark.parametrize("text", ["404 error", "ok", "I love tea"])
def test_b048_short_english_is_not_dropped(text: str) -> None:
    """B048: short English was called Danish or Slovak. Right: never that, and no vote alone drops it."""
    (row,) = judge(text, wanted=["en"], min_confidence=0.9)
    assert row["language"] in ("und", "eng_Latn")
    assert (row["class"], row["reason"]) == ("too-short", None)


def test_b050_one_code_for_chinese() -> None:
    """B050: zh, zh-cn and zho_Hans are no disagreement. Right: one code, the script apart, both forms agreed on."""
    simplified = "图书馆每天早上九点开门，很多老人来这里看报纸。下午放学以后，孩子们也会来借书，有时候还帮忙整理书架。"
    traditional = "圖書館每天早上九點開門，很多老人來這裡看報紙。下午放學以後，孩子們也會來借書，有時候還幫忙整理書架。"
    rows = judge(simplified, traditional, wanted=["zho"])
    assert [row["language"] for row in rows] == ["zho_Hans", "zho_Hant"]
    assert [row["reason"] for row in rows] == [None, None]
    assert rows[0]["class"] == "agree"
    assert rows[0]["fasttext"] == rows[0]["langdetect"] == rows[1]["fasttext"] == "zho"


def test_b051_a_menu_has_no_weight(bugcases: Path) -> None:
    """B051: an English menu around a Chinese article decided the page. Right: zh, by the text."""
    texts, _ = case(bugcases, "B051")
    for row in judge(*texts.values()):
        shares = {one["language"]: one["share"] for one in row["shares"]}
        assert row["language"] == "zho_Hans"
        assert shares["zho_Hans"] > 0.99
        assert row["class"] in ("agree", "resolved-by-script")


def test_b052_shared_characters_choose_no_form() -> None:
    """B052: characters common to both forms made a Simplified text Traditional. Right: zh, of unknown form, in no bucket."""
    shared = ("支票", "提示", "支票 提示 公告 出口 入口", "支票提示，出口入口。")
    for row in judge(*shared):
        assert row["language"] == "zho_Hani", row
        assert row["reason"] is None
    for wanted in ("zho_Hans", "zho_Hant", "zh"):
        assert [row["reason"] for row in judge(*shared, wanted=[wanted], min_confidence=0)] == [None] * len(shared)
    page = judge("这家店的老板是本地人。\n支票\n提示", "這家店的老闆是本地人。\n支票\n提示")
    assert [[one["language"] for one in row["spans"]] for row in page] == [["zho_Hans"], ["zho_Hant"]]


def test_scores_hold_codes_of_one_kind_only() -> None:
    """B050: every language that a score names is ISO 639-3, with a script where it is a label of ours."""
    texts = ("圖書館每天早上九點開門。", "Den gamle mølle ved elven er åpen igjen.", "Стари млин је поново отворен.")
    for row in judge(*texts, "הטחנה הישנה פתוחה", "ok"):
        for opinion in (row["fasttext"], row["langdetect"]):
            assert opinion is None or (opinion == to_iso639_3(opinion) and len(opinion) == 3)
        for label in [row["language"], *(one["language"] for one in [*row["shares"], *row["spans"]])]:
            code, _, script = label.partition("_")
            assert label == "und" or (code == to_iso639_3(code) and len(script) == 4)
    assert pa.types.is_string(Language(LanguageConfig()).score_columns[0].type)
