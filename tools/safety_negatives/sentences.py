"""Sources that are sentences or lines, verses and laws, and those that the n-gram models were trained on.

Readers take a clone, or the folder that tools/ngram_models/sources.py describes.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import pairwise
from pathlib import Path

from tools.ngram_models.sources import SOURCES as NGRAM_SOURCES
from tools.safety_negatives.clones import read, tree
from tools.safety_negatives.texts import TRADITIONAL, Text, draw, markdown, of_locale, short_code

__all__ = [
    "read_bible", "read_chat", "read_common_voice", "read_laws", "read_medical", "read_ngram_source", "read_ntrex",
    "read_stories", "read_tatoeba",
]  # fmt: skip

MEDICAL_CODES = {"es-LA": "es", "es-419": "es", "pt-BR": "pt", "fuv": "ff"}
MEDICAL_LEFT_OUT = ("kr", "din", "nus", "ti_ER", "ti_ET")
BIBLES = {
    "Ukranian-NT": "uk", "Estonian-PART": "et", "Latvian-NT": "lv", "Swahili-NT": "sw", "Armenian-PART": "hy",
    "Basque-NT": "eu", "Gujarati-NT": "gu", "Zulu-NT": "zu", "Wolof-NT": "wo", "Ewe-NT": "ee", "Gaelic-PART": "gd",
    "Kabyle-NT": "kab",
}  # fmt: skip
NTREX_CODES = {"zho-CN": "zh", "zho-TW": TRADITIONAL, "por-BR": "pt", "prs": "prs"}
NTREX_LEFT_OUT = ("mey", "eng-IN", "eng-US", "spa-MX", "fra-CA", "srp-Latn")
CRIMES = re.compile(
    "刑法|槍砲|毒品|賭|性侵|家庭暴力|兒童|少年|洗錢|詐|彩券|菸酒|人口販運|刑事|監獄|通訊|個人資料|銀行|保險|藥|醫|自殺|傳染病|警|社會秩序"
)
"""In the name of a law: what it speaks of is also what adverts offer."""
NGRAM_LICENCES = {
    "wikipedia": "CC-BY-SA-3.0", "gnome": "CC-BY-SA-3.0", "react": "CC-BY-4.0", "python-docs": "PSF-2.0/CC0-1.0",
    "treebanks": "CC-BY-SA-4.0", "wikinews": "CC-BY-2.5", "tanaka": "CC-BY-2.0-FR", "books": "public domain",
}  # fmt: skip
LARGEST_FILE = 4 << 20
MOST_SENTENCES = 12_000
"""Of a file of Common Voice; of a larger one stretches of twenty."""
NO_BLANKS = ("zh", TRADITIONAL, "ja", "th", "yue")


def read_medical(clone: Path) -> Iterator[Text]:
    """TICO-19: texts about a disease, translated; what was said at the doctor's forty lines a document."""
    done: set[str] = set()
    pattern = re.compile(r"data/TM/all\.en-([\w-]+)\.tmx(\.zip)?$")
    blobs = [blob for blob in tree(clone, "data/TM/") if pattern.match(blob.path)]
    for path, data in read(clone, sorted(blobs, key=lambda blob: blob.path)):
        match = pattern.match(path)
        assert match is not None
        lang = MEDICAL_CODES.get(match[1], match[1])
        if lang in done or lang in MEDICAL_LEFT_OUT or len(lang) > 3:
            continue
        if match[2]:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                data = archive.read(archive.namelist()[0])
        theirs, english = _medical_documents(data.decode("utf-8", "replace"))
        if not theirs:
            continue
        if "en" not in done:
            yield from _medical_texts(english, "en")
        done |= {lang, "en"}
        yield from _medical_texts(theirs, lang)


def _medical_documents(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Sentences in the other language and in English, by document."""
    theirs: dict[str, list[str]] = defaultdict(list)
    english: dict[str, list[str]] = defaultdict(list)
    for unit in re.finditer(r'(?s)<tu tuid="([^":]+):\d+">(.*?)</tu>', text):
        segments = re.findall(r'(?s)<tuv xml:lang="[^"]+">\s*<seg>(.*?)</seg>', unit[2])
        if len(segments) >= 2:
            plain = [re.sub(r"\s+", " ", unescape(segment)).strip() for segment in segments]
            english[unit[1]].append(plain[0])
            theirs[unit[1]].append(plain[1])
    return theirs, english


def _medical_texts(documents: dict[str, list[str]], lang: str) -> Iterator[Text]:
    for name, sentences in documents.items():
        talk = name.startswith("CMU")
        size = 40 if talk else len(sentences)
        between = "\n" if talk else "" if lang in ("zh", "my", "km") else " "
        for at in range(0, len(sentences), size):
            text = between.join(sentences[at : at + size])
            yield Text(lang, "medical", "tico-19", "CC0-1.0", f"{name}:{at}", "lines", text)


def read_chat(clone: Path) -> Iterator[Text]:
    """Questions and answers of small talk in Korean, ten pairs a document, in an order of chance."""
    files = [blob for blob in tree(clone) if blob.path.endswith(".csv")]
    for _, data in read(clone, files[:1]):
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8"))))
        random.Random(3).shuffle(rows)
        for at in range(0, len(rows), 10):
            text = "\n".join(f"{row['Q']}\n{row['A']}" for row in rows[at : at + 10])
            yield Text("ko", "chat", "songys-chatbot", "MIT", f"c{at}", "lines", text)


def read_bible(clone: Path) -> Iterator[Text]:
    """Chapters of translations that are in no copyright, in languages of which there is little else."""
    blobs = [blob for blob in tree(clone, "bibles/") if Path(blob.path).stem in BIBLES]
    for path, data in read(clone, blobs):
        chapters: dict[str, list[str]] = defaultdict(list)
        pattern = r'(?s)<seg id="b\.(\w+)\.(\d+)\.\d+"[^>]*>(.*?)</seg>'
        for verse in re.finditer(pattern, data.decode("utf-8", "replace")):
            chapters[f"{verse[1]}.{verse[2]}"].append(" ".join(verse[3].split()))
        for name, verses in chapters.items():
            lang = BIBLES[Path(path).stem]
            yield Text(lang, "religion", "bible-corpus", "CC0-1.0", name, "prose", " ".join(verses))


def read_common_voice(folder: Path) -> Iterator[Text]:
    """<language>/*.txt, twelve sentences a document, without lists of names and without what is not CC0."""
    for path in sorted(folder.glob("*/*.txt")):
        if any(name in path.name for name in ("benchmark", "europarl")) or path.stat().st_size > LARGEST_FILE:
            continue
        lang = of_locale(path.parent.name)
        lines = path.read_text("utf-8-sig", "replace").splitlines()
        sentences = [line.strip() for line in lines if line.strip() and not _is_title(line.strip())]
        if len(sentences) < 2:
            continue
        if _is_sorted(sentences):
            sentences.sort(key=lambda sentence: draw("cvs", sentence))
        if len(sentences) > MOST_SENTENCES:
            every = 20 * (len(sentences) // MOST_SENTENCES + 1)
            sentences = [one for at in range(0, len(sentences), every) for one in sentences[at : at + 20]]
        domain = "encyclopedia" if "wiki" in path.name else "speech"
        for at in range(0, len(sentences), 12):
            between = "\n" if draw(path.name, at) < 0.6 or lang in NO_BLANKS else " "
            text = between.join(sentences[at : at + 12])
            yield Text(lang, domain, "common-voice", "CC0-1.0", f"{path.name}:{at}", "lines", text)


def _is_title(sentence: str) -> bool:
    words = sentence.split()
    capitals = sum(word[:1].isupper() for word in words)
    return len(words) >= 2 and capitals > 0.75 * len(words) and sentence[-1] not in ".!?"


def _is_sorted(sentences: Sequence[str]) -> bool:
    """By the alphabet: neighbours would be alike."""
    ordered = sum(a.casefold() <= b.casefold() for a, b in pairwise(sentences))
    return ordered > 0.7 * len(sentences)


def read_ntrex(folder: Path) -> Iterator[Text]:
    """NTREX-128: whole articles of news in 128 languages."""
    names = (folder / "DOCUMENT_IDS.tsv").read_text("utf-8").split("\n")
    for path in sorted((folder / "NTREX-128").glob("newstest2019-*.txt")):
        code = path.stem.split(".", 1)[1]
        if code in NTREX_LEFT_OUT or "ref-2" in path.name:
            continue
        lang = NTREX_CODES.get(code) or short_code(code.split("-")[0])
        articles: dict[str, list[str]] = defaultdict(list)
        for name, line in zip(names, path.read_text("utf-8-sig").splitlines(), strict=False):
            articles[name.strip()].append(line.strip())
        for name, lines in articles.items():
            yield Text(lang, "news", "ntrex", "CC-BY-SA-4.0", name, "prose", "\n".join(lines))


def read_ngram_source(folder: Path, source: str) -> Iterator[Text]:
    """A source as the n-gram models' tool reads it, its documents numbered by language."""
    counts: Counter[str] = Counter()
    for one in NGRAM_SOURCES[source](folder):
        lang = short_code(one.language)
        if source == "treebanks" and lang == "en":  # texts of UD_English-EWT are their writers'
            continue
        counts[lang] += 1
        text = re.sub(r"\n{3,}", "\n\n", one.text)
        text = markdown(text) if source in ("react", "python-docs") else text
        kind = "lines" if one.domain == "speech" else "prose"
        yield Text(lang, one.domain, source, NGRAM_LICENCES[source], f"{lang}{counts[lang]}", kind, text)


def read_laws(folder: Path) -> Iterator[Text]:
    """<language>/FalVMingLing/*.json: laws of Taiwan; all that name a crime or what is regulated, an eighth of the others."""
    for path in sorted(folder.glob("*/FalVMingLing/*.json")):
        law = json.loads(path.read_text("utf-8-sig"))
        if draw("law", path.name) > 0.12 and not CRIMES.search(law.get("法規名稱", "")):
            continue
        articles = [row["條文內容"] for row in law.get("法規內容") or [] if "條文內容" in row]
        text = "\n".join(article.replace("\r\n", "\n") for article in articles)
        if len(text) > 80:
            yield Text(TRADITIONAL, "law", "laws-tw", "no copyright (laws)", path.name, "prose", text)


def read_tatoeba(folder: Path) -> Iterator[Text]:
    """zho/*.txt: English and Chinese sentences in pairs, ten a document; of the English ones a third."""
    for path in sorted(folder.glob("zho/*.txt")):
        rows = [line.split("\t") for line in path.read_text("utf-8").split("\n") if "\t" in line]
        for at in range(0, len(rows), 10):
            both = rows[at : at + 10]
            for lang, place in (("zh", 1), ("en", 0)):
                if lang == "zh" or at % 3 == 0:
                    text = "\n".join(row[place] for row in both)
                    yield Text(lang, "speech", "tatoeba", "CC-BY-2.0-FR", f"{at}", "lines", text)


def read_stories(folder: Path) -> Iterator[Text]:
    for number, one in enumerate(NGRAM_SOURCES["stories"](folder)):
        yield Text("zh", "fiction", "cmrc-stories", "CC-BY-SA-4.0", str(number), "lines", one.text)
