"""Harmless rows of clones and folders: cut, chosen, kept from held-out texts, and the same ones each time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.make_safety_negatives import main
from tools.safety_negatives.collect import SOURCES, Document, collect
from tools.safety_negatives.cut import form_of, is_in_script, is_plain, pieces, prepared
from tools.safety_negatives.dangerous import words
from tools.safety_negatives.held_out import without_held_out
from tools.safety_negatives.texts import Text, draw, markdown, messages, of_locale

ENGLISH = "Nobody reads this line but in English."
HELD_OUT = "The harbour master counts every boat that comes home before the evening bell."


def a_clone(folder: Path, files: dict[str, str]) -> None:
    """A repository with one commit."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


def a_page(lang: str, number: int) -> str:
    verb = {"en": "The river carries stone", "de": "Der Fluss trägt Steine, so schwer wie Rätsel"}[lang]
    lines = [f"{verb} {number}.{n} down to the sea, and nobody counts what is {lang} in it." for n in range(40)]
    return f"---\ntitle: x\n---\n# Head\n\n{ENGLISH}\n\n" + "\n\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    pages = {f"_articles/p{n}.md": a_page("en", n) for n in range(8)}
    pages |= {f"_articles/de/p{n}.md": a_page("de", n) for n in range(8)}
    a_clone(folder / "github+opensource.guide", pages)
    voices = [f"Zwei Boten {n} tragen {n + 7} Briefe zum Gericht, und keiner fragt warum." for n in range(60)]
    (folder / "common-voice/de").mkdir(parents=True)
    (folder / "common-voice/de/x.txt").write_text("\n".join(voices), encoding="utf-8")
    (folder / "common-voice/en").mkdir(parents=True)
    english = [HELD_OUT, *(f"On day {n} the police asked {n * 3} people about the bridge." for n in range(60))]
    (folder / "common-voice/en/x.txt").write_text("\n".join(english), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("made")
    held_out = folder / "held.jsonl"
    held_out.write_text(json.dumps({"text": f"Before. {HELD_OUT.upper()} After."}) + "\n", encoding="utf-8")
    for name in ("a", "b"):
        assert main(["--sources", str(sources), "--held-out", str(held_out), "--out", str(folder / name)]) == 0
    found = {}
    for name in ("negatives", "dangerous", "long"):
        data = (folder / "a" / f"{name}.jsonl").read_bytes()
        assert data == (folder / "b" / f"{name}.jsonl").read_bytes()
        found[name] = [json.loads(line) for line in data.decode().splitlines()]
    return found


def test_rows_are_harmless_and_say_where_they_come_from(made: dict[str, list[dict[str, Any]]]) -> None:
    """Both languages and both splits; no text twice; a document is of one split."""
    rows = made["negatives"]
    assert {row["lang"] for row in rows} == {"de", "en"}
    assert {row["split"] for row in rows} == {"train", "calibrate"}
    assert len({row["text"] for row in rows}) == len(rows) > 20
    assert all(row["labels"] == [] and row["source"] and row["licence"] for row in rows)
    splits: dict[str, set[str]] = {}
    for row in rows:
        splits.setdefault(row["doc"], set()).add(row["split"])
    assert all(len(of_doc) == 1 for of_doc in splits.values())


def test_lines_left_in_english_and_held_out_texts_are_left_out(made: dict[str, list[dict[str, Any]]]) -> None:
    """The first of translations only; the second of training rows."""
    assert not any(ENGLISH in row["text"] for row in made["negatives"] if row["lang"] == "de")
    assert not any("harbour master" in row["text"] for name in ("negatives", "dangerous") for row in made[name])


def test_dangerous_rows_have_such_words_and_are_no_negatives(made: dict[str, list[dict[str, Any]]]) -> None:
    """Police, courts and the like, of training documents only."""
    rows = made["dangerous"]
    assert {row["lang"] for row in rows} == {"de", "en"}
    assert all(words()[row["lang"]].search(row["text"]) and row["split"] == "train" for row in rows)
    assert not {row["text"] for row in rows} & {row["text"] for row in made["negatives"]}


def test_long_documents_are_whole(made: dict[str, list[dict[str, Any]]]) -> None:
    """From 1,000 characters on, for choosing thresholds."""
    assert made["long"]
    assert all(len(row["text"]) >= 1000 and row["split"] == "calibrate" for row in made["long"])


def test_a_source_that_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else happens."""
    assert list(collect(tmp_path)) == []
    assert capsys.readouterr().err.count("not there, left out") == len(SOURCES)


def test_markdown_becomes_sentences() -> None:
    """Code, tags, marks, comments and targets of links vanish; what is read stays."""
    page = "---\na: b\n---\n# Head {#x}\n\n> See [the *guide*](x.md) ![pic](p.png)<br>now.<!-- no -->\n```\ncode\n```\nEnd.\n"
    assert markdown(page).split() == "Head See the guide now. End.".split()


def test_messages_are_translations() -> None:
    """Not fuzzy ones, not the head, and quotes as they are meant."""
    text = 'msgid ""\nmsgstr "Language: de"\n\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr "d \\"e\\" "\n"f"\n'
    assert messages(text) == ['d "e" f']


@pytest.mark.parametrize(
    ("locale", "lang"),
    [("zh-TW", "zh-Hant"), ("pt-br", "pt"), ("zh_CN", "zh"), ("iw", "he"), ("sr", "sr"), ("xx-YY", "xx-YY")],
)
def test_locales(locale: str, lang: str) -> None:
    """Known ones become a language, others stay as they are."""
    assert of_locale(locale) == lang


@pytest.mark.parametrize(("text", "form"), [("汉语说话", "zh"), ("漢語說話", "zh-Hant"), ("人山", None)])
def test_forms_of_chinese(text: str, form: str | None) -> None:
    """By the characters that one form lacks."""
    assert form_of(text) == form


def test_what_is_plain() -> None:
    """Words, not numbers, broken characters or the wrong script."""
    assert is_plain("The river carries stones.", "en")
    assert not is_plain("1234567890 1234567890 ab", "en")
    assert not is_plain("The river carries\ufffd stones.", "en")
    assert is_in_script("река несёт камни", "ru")
    assert not is_in_script("the river", "ru")


def test_pieces_are_of_the_document_and_of_many_lengths() -> None:
    """Sentences in a row as they stand there."""
    text = " ".join(f"Sentence number {n} tells of a river." for n in range(200))
    found = list(pieces(Text("en", "guide", "s", "CC0-1.0", "d", "prose", text), 30))
    assert len(found) > 20
    assert all(piece in text for piece in found)
    assert min(map(len, found)) < 100 < 500 < max(map(len, found)) <= 1250


def test_lines_inside_of_a_paragraph_are_joined() -> None:
    """In books, whose lines are cut at a width."""
    text = Text("en", "fiction", "books", "public domain", "d", "prose", "one\ntwo\n\nthree")
    assert prepared(Document(text, "train"), ()).text.text == "one two\n\nthree"


def test_rows_that_share_thirty_letters_are_left_out() -> None:
    """Case, blanks and signs aside; short ones only where all of it is there."""
    held_out = ["xx The quick brown fox, jumps over THE lazy dog today yy", "a short headline here"]
    texts = ["the quick brown fox jumps over the lazy dog", "A short, headline here!", "a short one"]
    assert [row["text"] for row in without_held_out([{"text": text} for text in texts], held_out)] == texts[2:]


def test_chance_is_the_same_everywhere() -> None:
    """It is a hash of its parts."""
    assert draw("a", 1) == draw("a", 1) == draw("a/1")
    assert 0 <= draw("b") < 1
