"""The language model's training: what each source gives, what is held out, and the same model from the same texts."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from quality_models.fasttext_file import read_fasttext
from tools.language_model.fragments import MOST_WORDS, Folded, cut, fold, fragments, pieces, split, without_marks
from tools.language_model.measure import main_labels, mean_recall, predict, tables
from tools.language_model.nonsense import KINDS, LEAST, LINES, NO_LANGUAGE, nonsense
from tools.language_model.sources import (
    LARGEST_FILE,
    Text,
    read_chromium,
    read_cldr,
    read_common_voice,
    read_udhr,
)
from tools.train_language_model import train, write_held_out, write_training

WORDS = {
    "eng": "the house stands where water and trees were before winter came over them".split(),
    "deu": "das haus steht wo wasser und bäume waren bevor der winter über sie kam".split(),
    "rus": "дом стоит там где вода и деревья были прежде чем зима пришла к ним".split(),
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def pak(texts: dict[int, bytes], *, version: int = 5) -> bytes:
    """A .pak file in UTF-8, as Chromium's tools write it."""
    offset = 12 + 6 * (len(texts) + 1)
    table = b""
    for number, text in texts.items():
        table += struct.pack("<HI", number, offset)
        offset += len(text)
    return (
        struct.pack("<IB3xHH", version, 1, len(texts), 0)
        + table
        + struct.pack("<HI", 0, offset)
        + b"".join(texts.values())
    )


def sentences(label: str, count: int) -> list[Folded]:
    rng = random.Random(label)
    found = (" ".join(rng.choices(WORDS[label], k=rng.randint(3, 8))) for _ in range(count))
    return [Folded(label, "common-voice", text, text) for text in found]


def test_common_voice_gives_a_text_for_each_line(tmp_path: Path) -> None:
    """The folder is the language; blanks become single ones; other files and large ones are left out."""
    write(tmp_path / "ga-IE/a.txt", "\ufeffDia  duit\n\n Slán \r\n")
    write(tmp_path / "rm-sursilv/a.txt", "Bun di\n")
    write(tmp_path / "en/LICENSE", "terms")
    write(tmp_path / "en/wiki.txt", "x" * (LARGEST_FILE + 1))
    assert [(text.label, text.text) for text in read_common_voice(tmp_path)] == [
        ("gle", "Dia duit"),
        ("gle", "Slán"),
        ("roh", "Bun di"),
    ]


def test_chromium_gives_translated_texts(tmp_path: Path) -> None:
    """No markup, no programs, no pictures, nothing left in English, no forms of address; the number is the key."""
    english = {1: b"Open file", 2: b"Chrome OS", 3: b"Save <b>all</b> $1 tabs"}
    german = {
        1: "Datei öffnen".encode(),
        2: b"Chrome OS",
        3: b"Alle $1 <b>Tabs</b> sichern",
        4: b"a = b;",
        5: b"\xff\xfe",
    }
    (tmp_path / "en-GB.pak").write_bytes(pak(english))
    (tmp_path / "de.pak").write_bytes(pak(german))
    (tmp_path / "de_FEMININE.pak").write_bytes(pak(german))
    found = list(read_chromium(tmp_path))
    assert [(text.key, text.text) for text in found if text.label == "deu"] == [
        ("1", "Datei öffnen"),
        ("3", "Alle Tabs sichern"),
    ]
    assert [text.text for text in found if text.label == "eng"] == ["Open file", "Chrome OS", "Save all tabs"]


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" + bytes(20), pak({1: b"text"}, version=4)])
def test_other_files_than_pak_are_refused(tmp_path: Path, data: bytes) -> None:
    """The error names the file and what was expected."""
    (tmp_path / "en-GB.pak").write_bytes(data)
    with pytest.raises(ValueError, match=r"en-GB\.pak: expected a \.pak file of version 5"):
        list(read_chromium(tmp_path))


def test_cldr_gives_keywords(tmp_path: Path) -> None:
    """Each once, none of two letters, none in English, no copies of other locales."""
    form = "<ldml><annotations><annotation cp='x'>{}</annotation></annotations></ldml>"
    for name, words in {
        "en": "face | ok",
        "nb": "ansikt | face | ↑↑↑ | ansikt | to",
        "root": "word",
        "kl": "ansigt",
    }.items():
        write(tmp_path / f"annotations/{name}.xml", form.format(words))
    assert [(text.label, text.text) for text in read_cldr(tmp_path)] == [("eng", "face"), ("nob", "ansikt")]


def test_udhr_gives_paragraphs_with_their_article(tmp_path: Path) -> None:
    """The article is the key; titles, short translations, unknown languages are left out; scripts tell codes apart."""
    form = (
        "<udhr xmlns='http://efele.net/udhr' iso639-3='{}' iso15924='Latn'><title>Head</title>"
        "<preamble><para>Whereas</para></preamble><article number='7'><title>Art 7</title><para>{}</para></article></udhr>"
    )
    for code, text in {"als": "fjalë " * 400, "und": "word " * 500, "deu": "kurz", "zlm": "kata " * 450}.items():
        write(tmp_path / f"udhr_{code}.xml", form.format(code, text))
    found = list(read_udhr(tmp_path))
    assert {text.label for text in found} == {"sqi", "msa"}
    assert [text.key for text in found if text.label == "sqi"] == ["preamble", "article 7"]


def test_nonsense_is_the_same_each_time_and_has_no_short_words() -> None:
    """LINES of each kind, in one label that is no language; words of LEAST letters at least."""
    found = list(nonsense())
    assert found == list(nonsense())
    assert len(found) == len({text.key for text in found}) == LINES * len(KINDS)
    assert {(text.label, text.source) for text in found} == {(NO_LANGUAGE, "nonsense")}
    assert min(len(word) for text in found for word in text.text.split()) >= LEAST
    assert main_labels({NO_LANGUAGE: {"nonsense": ["x" * 9000]}, "eng": {"cldr": ["x" * 9000]}}) == {"eng"}


def test_texts_are_folded_as_the_product_folds_them() -> None:
    """Lower case, no digits, no addresses; scripts of one language and scripts that a label has not are left out."""
    texts = [
        Text("deu", "udhr", "1", "Straße 7, ÄRGER: https://example.org/x"),
        Text("deu", "udhr", "1", "12 345"),
        Text("ell", "udhr", "1", "Καλημέρα"),
        Text("hin", "cldr", "1", "namaste duniya"),
        Text("pan", "cldr", "1", "سلام دنیا"),
    ]
    assert [(text.label, text.text) for text in fold(texts)] == [("deu", "straße ärger"), ("hin", "namaste duniya")]


def test_held_out_texts_are_the_same_each_time_and_never_trained_on() -> None:
    """Whatever the order; a key is held out in all languages or in none."""
    texts = [text for label in WORDS for text in sentences(label, 400)]
    texts += [Folded(label, "udhr", f"article {n}", f"{label} {n}") for label in WORDS for n in range(30)]
    texts += [Folded("few", "cldr", word, word) for word in map(str, range(100))]
    lines, held_out = split(texts)
    again, held_again = split(reversed(texts))
    assert held_out == held_again
    assert {label: set(sources["common-voice"]) for label, sources in lines.items()} == {
        label: set(sources["common-voice"]) for label, sources in again.items()
    }
    assert 60 < len(held_out) < 250
    known = {(label, text) for label, sources in lines.items() for some in sources.values() for text in some}
    assert not known & {(text.label, text.text) for text in held_out}
    articles = {
        label: {text.key for text in held_out if text.label == label and text.source == "udhr"} for label in WORDS
    }
    assert articles["eng"] == articles["deu"] == articles["rus"] != set()
    assert set(lines) == set(WORDS), "a label of a few keywords is left out"


@pytest.mark.parametrize("count", [1, 2, 5, 200])
def test_fragments_are_runs_of_words_within_bounds(count: int) -> None:
    """One to MOST_WORDS words that follow each other."""
    words = [str(n) for n in range(count)]
    rng = random.Random(0)
    lengths = set()
    for _ in range(300):
        some = cut(words, rng)
        first = int(some[0])
        assert some == words[first : first + len(some)]
        lengths.add(len(some))
    assert {1, min(count, 2), min(count, MOST_WORDS)} <= lengths
    assert max(lengths) <= MOST_WORDS


def test_a_label_has_no_more_lines_than_the_limit_and_its_text_allow() -> None:
    """Large labels the limit, small ones a number that grows with their text; the same lines each time."""
    lines = {
        "eng": {"udhr": ["one two three four"] * 2000},
        "deu": {"udhr": ["ein kurzer satz"] * 4, "cldr": ["ein wort"]},
    }
    found = list(fragments(lines, 100))
    assert sum(label == "eng" for label, _ in found) == 100
    assert 0 < sum(label == "deu" for label, _ in found) < 40
    assert found == list(fragments(lines, 100))


def test_marks_are_removed_as_people_leave_them_out() -> None:
    """Letters stay, with those that have no decomposition too."""
    assert without_marks("łódź đường señor ırmak") == "lodz duong senor irmak"


def test_pieces_are_words_pairs_and_sentences() -> None:
    """Each text gives a sentence and one of its words, and a pair if it has one."""
    found = pieces([Folded("eng", "udhr", "1", "a b c"), Folded("eng", "udhr", "1", "x")])
    assert found["sentences"] == [("eng", "a b c"), ("eng", "x")]
    assert len(found["words"]) == 2
    assert [text for _, text in found["pairs"]] in (["a b"], ["b c"])


def test_recall_counts_each_language_the_same() -> None:
    """One right of one and one right of three: two thirds in the mean."""
    assert mean_recall(["a", "b", "b", "b", "c"], ["a", "b", "a", "a", "a"], {"a", "b"}) == pytest.approx(2 / 3)


def test_a_model_trained_on_a_few_lines_reads_and_names_languages(tmp_path: Path) -> None:
    """The same file from the same texts with one thread; the product's reader reads it; the tables tell of it."""
    lines, held_out = split(text for label in WORDS for text in sentences(label, 300))
    source = tmp_path / "train.txt"
    count = write_training(lines, 200, source)
    assert count == len(source.read_text("utf-8").splitlines()) == 600
    settings = {"dim": 8, "loss": "softmax", "epoch": 3, "minn": 1, "maxn": 3, "bucket": 2000, "minCount": 1, "lr": 0.5}
    for name in ("a.ftz", "b.ftz"):
        train(source, tmp_path / name, 1, settings, {"cutoff": 700, "qnorm": True, "dsub": 2, "retrain": False})
    assert (tmp_path / "a.ftz").read_bytes() == (tmp_path / "b.ftz").read_bytes()
    assert sorted(read_fasttext(tmp_path / "a.ftz").labels) == ["deu", "eng", "rus"]
    assert predict(tmp_path / "a.ftz", ["дом и зима", "das haus und der winter"]) == ["rus", "deu"]
    assert main_labels(lines) == set(WORDS)
    assert "3 labels; 3 main: deu, eng, rus" in tables(tmp_path / "a.ftz", lines, held_out)
    write_held_out(held_out, tmp_path / "held_out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "held_out.jsonl").read_text("utf-8").splitlines()]
    assert [row["text"] for row in rows] == [text.text for text in held_out]
    assert set(rows[0]) == {"label", "source", "text"}
