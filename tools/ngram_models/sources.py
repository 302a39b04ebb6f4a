"""Reads the texts that the n-gram models are trained on. See the model card for what each source is, and its licence.

Every reader takes the folder of one source, as a checkout of the repository or an unpacked Debian package lies there,
and gives documents: a page, a chapter, an article; of collections of sentences, twenty in a row. Files that a source
lacks are passed over.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from quality_models.language_codes import to_iso639_3

__all__ = ["SOURCES", "Text"]

SENTENCES = 20
LONGEST = 20_000
"""Characters of a document; what is longer is cut into several."""
SHORTEST = 200
LARGEST_FILE = 4 << 20


class Text(NamedTuple):
    """A document. language: ISO 639-3. domain: news, encyclopedia, technical, fiction, speech, forum, law."""

    language: str
    domain: str
    source: str
    text: str


def _pieces(text: str) -> Iterator[str]:
    """A document in parts of 20,000 characters at most, without those that say nothing."""
    for start in range(0, len(text), LONGEST):
        piece = text[start : start + LONGEST].strip()
        if len(piece) >= SHORTEST:
            yield piece


def _sentences(lines: Iterable[str]) -> Iterator[str]:
    """Twenty sentences a document, a line each."""
    rows = [line.strip() for line in lines if line.strip()]
    for start in range(0, len(rows), SENTENCES):
        yield "\n".join(rows[start : start + SENTENCES])


def read_ntrex(folder: Path) -> Iterator[Text]:
    """newstest2019-src.eng.txt and newstest2019-ref.<language>.txt of NTREX-128."""
    for path in sorted((folder / "NTREX-128").glob("newstest2019-*.txt")):
        code = path.stem.split(".", 1)[1].split("-")[0]
        if code == "mey":  # Arabic letters for some rows, Latin for others
            continue
        for text in _sentences(path.read_text("utf-8-sig").splitlines()):
            yield Text(to_iso639_3(code), "news", "ntrex", text)


def read_common_voice(folder: Path) -> Iterator[Text]:
    """<language>/*.txt; files with `wiki` in their name are sentences of Wikipedia."""
    for path in sorted(folder.glob("*/*.txt")):
        # Speeches in the European Parliament are not CC0, as the others are.
        if path.stat().st_size <= LARGEST_FILE and not any(name in path.name for name in ("benchmark", "europarl")):
            domain = "encyclopedia" if "wiki" in path.name else "speech"
            for text in _sentences(path.read_text("utf-8-sig").splitlines()):
                yield Text(to_iso639_3(path.parent.name), domain, "common-voice", text)


def read_wikipedia(folder: Path) -> Iterator[Text]:
    """Page/*.md: English articles, without references, categories and pictures."""
    for path in sorted((folder / "Page").glob("*.md")):
        text = path.read_text("utf-8", "replace").split("\n\nReferences\n")[0]
        text = re.sub(r"\[\d+\]|_|Category:.*", "", re.sub(r"(?m)^\S+\.(jpg|jpeg|png|svg|gif)\b", "", text))
        for piece in _pieces(text):
            yield Text("eng", "encyclopedia", "wikipedia", piece)


def read_gnome(folder: Path) -> Iterator[Text]:
    """usr/share/help/<language>/*/*.page: the paragraphs that are translated."""
    help_folder = folder / "usr/share/help"
    english = {path.relative_to(help_folder / "C"): set(_page(path)) for path in (help_folder / "C").rglob("*.page")}
    for path in sorted(help_folder.rglob("*.page")):
        code, name = path.relative_to(help_folder).parts[0], Path(*path.relative_to(help_folder).parts[1:])
        lines = [line for line in _page(path) if code in ("C", "en_GB") or line not in english.get(name, set())]
        language = "eng" if code in ("C", "en_GB") else to_iso639_3(code.split("@")[0].split("_")[0])
        for piece in _pieces("\n".join(lines)):
            yield Text(language, "technical", "gnome", piece)


def _page(path: Path) -> list[str]:
    """Titles and paragraphs of a page of Mallard, each on one line."""
    root = ET.parse(path).getroot()
    for parent in root.iter():
        for child in [one for one in parent if one.tag.endswith(("}info", "}code", "}screen"))]:
            parent.remove(child)
    found = (" ".join("".join(one.itertext()).split()) for one in root.iter() if one.tag.endswith(("}p", "}title")))
    return [line for line in found if line]


def read_markdown(folder: Path, source: str) -> Iterator[Text]:
    """<language>/**/*.md: pages of documentation, without code, tags, tables of links and head."""
    for path in sorted(folder.glob("*/**/*.md")):
        text = path.read_text("utf-8", "replace")
        text = re.sub(r"(?ms)^---\n.*?^---\n|^ *(```|~~~).*?^ *\1[^\n]*$|<!--.*?-->", "", text)
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>\n]*>|\{[/*#:][^}]*\}", "", text))
        text = re.sub(r"[*`#|]+|:::\w*", "", text)
        for piece in _pieces(text):
            yield Text(path.relative_to(folder).parts[0], "technical", source, piece)


def read_po(folder: Path) -> Iterator[Text]:
    """<language>/**/*.po: the translated messages of Python's documentation that are not fuzzy."""
    for path in sorted(folder.glob("*/**/*.po")):
        texts: list[str] = []
        for entry in path.read_text("utf-8").split("\n\n"):
            message = re.search(r'^msgstr ((?:"(?:[^"\\]|\\.)*"\s*)+)', entry, re.MULTILINE)
            if message and "#, fuzzy" not in entry and 'msgid ""\nmsgstr' not in entry:
                text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', message[1]))
                text = re.sub(r":[\w:]+:`[~!]?([^`<]*?)(?: <[^`]*)?`|``?([^`]*)``?_*", r"\1\2", text)
                texts.append(text.replace('\\"', '"').replace("\\n", " ").replace("**", ""))
        for piece in _pieces("\n".join(texts)):
            yield Text(path.relative_to(folder).parts[0], "technical", "python-docs", piece)


def read_treebanks(folder: Path) -> Iterator[Text]:
    """<language>/*.conllu of Universal Dependencies: the sentences, in the order of the file.

    Only treebanks whose texts have the licence that the treebank states; of UD_English-EWT they are their writers'.
    """
    for path in sorted(folder.glob("*/*.conllu")):
        lines = re.findall(r"(?m)^# text = (.*)$", path.read_text("utf-8"))
        language = path.parent.name.split("_")[0]
        for text in _sentences(lines):
            yield Text(language, "encyclopedia", "treebanks", text)


def read_wikinews(folder: Path) -> Iterator[Text]:
    """full-articles/origin.tsv.gz: Japanese articles, cut into words by blanks, which are taken out."""
    with gzip.open(folder / "full-articles/origin.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for piece in _pieces(re.sub(r"(?<![a-zA-Z]) | (?![a-zA-Z])", "", row[1])):
                yield Text("jpn", "news", "wikinews", piece)


def read_tanaka(folder: Path) -> Iterator[Text]:
    """train.ja: everyday sentences, cut into words by blanks, which are taken out."""
    for text in _sentences((folder / "train.ja").read_text("utf-8").splitlines()):
        yield Text("jpn", "speech", "tanaka", text.replace(" ", ""))


def read_aozora(folder: Path) -> Iterator[Text]:
    """cards/*/files/**/*.txt in Shift JIS: works out of copyright, without readings, notes, head and colophon."""
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_bytes().decode("cp932", "replace")
        if "著作権" in text or "クリエイティブ・コモンズ" in text:
            continue
        text = re.split(r"\n底本：", re.sub(r"《[^》]*》|［[^］]*］|｜", "", text).replace("\r", ""))[0]
        parts = re.split(r"\n-{20,}\n", text)
        for piece in _pieces(parts[-1]):
            yield Text("jpn", "fiction", "aozora", piece)


def read_books(folder: Path) -> Iterator[Text]:
    """<language>/**/*.txt: books in UTF-8, without the frame of Project Gutenberg."""
    for path in sorted(folder.glob("*/**/*.txt")):
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig") if _is_utf8(raw) else raw.decode("latin-1")
        text = re.split(r"\*\*\* ?START OF.*?\*\*\*", text)[-1]
        text = re.split(r"\*\*\* ?END OF|End of (?:the )?Project Gutenberg", text)[0]
        for piece in _pieces(text):
            yield Text(path.relative_to(folder).parts[0], "fiction", "books", piece)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return True


def read_laws(folder: Path) -> Iterator[Text]:
    """<language>/*/*.json: laws of Taiwan, an article a line."""
    for path in sorted(folder.glob("*/FalVMingLing/*.json")):
        rows = json.loads(path.read_text("utf-8-sig")).get("法規內容") or []
        text = "\n".join(row["條文內容"].replace("\r\n", "\n") for row in rows if "條文內容" in row)
        for piece in _pieces(text):
            yield Text(path.relative_to(folder).parts[0], "law", "laws", piece)


def read_stories(folder: Path) -> Iterator[Text]:
    """data/*.json (stories with sentences to be filled in) and cft/* (sentences cut into words by blanks), Chinese."""
    for path in sorted((folder / "data").glob("*.json")):
        for story in json.loads(path.read_text("utf-8"))["data"]:
            text = re.sub(r"\[BLANK(\d+)\]", lambda match, of=story: _filled(of, int(match[1])), story["context"])
            for piece in _pieces(text):
                yield Text("zho", "fiction", "stories", piece)
    lines = [line for path in sorted((folder / "cft").glob("*")) for line in path.read_text("utf-8").splitlines()]
    plain = (re.sub(r"^\d+ \|\|\| ", "", line).replace(" ", "") for line in lines if "XXXXX" not in line)
    for text in _sentences(plain):
        yield Text("zho", "fiction", "stories", text)


def _filled(story: Mapping[str, Any], number: int) -> str:
    """What stands in a blank of a story, where the answer is known."""
    choices, answers = story.get("choices") or [], story.get("answers") or []
    return str(choices[answers[number - 1]]) if len(answers) >= number and answers[number - 1] < len(choices) else ""


def read_tatoeba(folder: Path) -> Iterator[Text]:
    """<language>/*.txt: pairs of sentences with a tab between, the second in the language."""
    for path in sorted(folder.glob("*/*.txt")):
        lines = dict.fromkeys(line.split("\t")[1] for line in path.read_text("utf-8").splitlines() if "\t" in line)
        for text in _sentences(lines):
            yield Text(path.parent.name, "speech", "tatoeba", text)


SOURCES: Mapping[str, Callable[[Path], Iterator[Text]]] = {
    "ntrex": read_ntrex,
    "common-voice": read_common_voice,
    "wikipedia": read_wikipedia,
    "gnome": read_gnome,
    "react": lambda folder: read_markdown(folder, "react"),
    "guides": lambda folder: read_markdown(folder, "guides"),
    "python-docs": read_po,
    "treebanks": read_treebanks,
    "wikinews": read_wikinews,
    "tanaka": read_tanaka,
    "aozora": read_aozora,
    "books": read_books,
    "laws": read_laws,
    "stories": read_stories,
    "tatoeba": read_tatoeba,
}
"""Reader of each source, by the name of its folder."""
