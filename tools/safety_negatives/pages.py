"""Sources that are pages in Markdown, and books: guides, rules of conduct, manuals, recipes, commands.

Every reader takes a clone, and gives each page as a text; see `collect` for their names and licences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.safety_negatives.clones import read, tree
from tools.safety_negatives.texts import Text, draw, markdown, of_locale

__all__ = [
    "read_book", "read_commands", "read_conduct", "read_guides", "read_recipes", "read_ruby", "read_rust_chinese",
    "read_rust_korean", "read_tidb", "read_typescript",
]  # fmt: skip

TYPESCRIPT_LANGUAGES = ("pt", "ja", "id", "it", "zh", "ko", "fr", "es")
RUBY_LANGUAGES = "bg|de|en|es|fr|id|it|ja|ko|pl|pt|ru|tr|uk|vi|zh_cn|zh_tw"
BOOK_PIECE = 8000
"""Characters of a piece of a book."""


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _pages(clone: Path, under: str = "") -> Iterator[tuple[str, str]]:
    for path, data in read(clone, [blob for blob in tree(clone, under) if blob.path.endswith(".md")]):
        yield path, _decoded(data)


def read_guides(clone: Path) -> Iterator[Text]:
    """Guides to open source in some thirty languages."""
    for path, text in _pages(clone, "_articles/"):
        *folder, name = path.removeprefix("_articles/").split("/")
        lang = folder[0] if folder else "en"
        if lang not in ("sa", "pcm"):
            yield Text(of_locale(lang), "guide", "opensource.guide", "CC-BY-4.0", name, "prose", markdown(text))


def read_conduct(clone: Path) -> Iterator[Text]:
    """Rules of conduct, which say what harassment and insults are in order to forbid them."""
    for path, text in _pages(clone, "content/version/"):
        match = re.match(r"content/version/([\d/]+)/code-of-conduct(?:\.([\w-]+))?\.md", path)
        if match:
            plain = markdown(re.sub(r"(?s)\A\+\+\+.*?\+\+\+", "", text))
            lang = of_locale(match[2] or "en")
            document = f"covenant{match[1]}"
            yield Text(lang, "rules", "contributor-covenant", "CC-BY-4.0", document, "prose", plain)


def read_commands(clone: Path) -> Iterator[Text]:
    """Pages about commands with examples: much in English is left out, so that all languages have their share."""
    for path, text in _pages(clone):
        if not path.startswith("pages"):
            continue
        share = 0.12 if path.startswith("pages/") else 0.35 if path.startswith("pages.ko") else 0.9
        if draw("t", path) >= share:
            continue
        folder, _, name = path.split("/", 2)
        lang = folder.split(".")[1] if "." in folder else "en"
        text = re.sub(r"(?m)^> .*<https?://.*$\n?", "", text)
        text = re.sub(r"(?m)^> ?", "", text).replace("{{", "").replace("}}", "").replace("`", "").replace("# ", "")
        plain = re.sub(r"\n{2,}", "\n", text).strip()
        yield Text(of_locale(lang), "code", "tldr", "CC-BY-4.0", name, "prose", plain)


def read_rust_korean(clone: Path) -> Iterator[Text]:
    for path, text in _pages(clone, "src/"):
        yield Text("ko", "technical", "rust-book-ko", "MIT OR Apache-2.0", path, "prose", markdown(text))


def read_rust_chinese(clone: Path) -> Iterator[Text]:
    for path, text in _pages(clone):
        if "src/" in path:
            yield Text("zh", "technical", "trpl-zh", "MIT OR Apache-2.0", path, "prose", markdown(text))


def read_tidb(clone: Path) -> Iterator[Text]:
    """Three of ten pages of a manual in Chinese."""
    for path, text in _pages(clone):
        if draw("tidb", path) < 0.3:
            yield Text("zh", "technical", "tidb-docs-cn", "CC-BY-SA-3.0", path, "prose", markdown(text))


def read_typescript(clone: Path) -> Iterator[Text]:
    for path, text in _pages(clone, "docs/"):
        _, _, lang, *name = path.split("/")
        if lang in TYPESCRIPT_LANGUAGES:
            document = "/".join(name)
            yield Text(lang, "technical", "typescript-docs", "CC-BY-4.0", document, "prose", markdown(text))


def read_ruby(clone: Path) -> Iterator[Text]:
    for path, text in _pages(clone):
        if re.match(rf"({RUBY_LANGUAGES})/", path):
            lang, _, name = path.partition("/")
            licence = "BSD-2-Clause (not stated for texts)"
            yield Text(of_locale(lang), "technical", "ruby-lang.org", licence, name, "prose", markdown(text))


def read_recipes(clone: Path) -> Iterator[Text]:
    for path, text in _pages(clone):
        if path.startswith(("dishes", "tips")):
            yield Text("zh", "recipe", "HowToCook", "Unlicense", path, "prose", markdown(text))


def read_book(clone: Path, lang: str) -> Iterator[Text]:
    """A book of Project Gutenberg without its frame, in pieces."""
    for path, data in read(clone, [blob for blob in tree(clone) if re.search(r"^\d+(-\d)?\.txt$", blob.path)]):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        text = re.split(r"\*\*\* ?START OF.*?\*\*\*", text.replace("\r\n", "\n"))[-1]
        text = re.split(r"\*\*\* ?END OF|End of (?:the )?Project Gutenberg", text)[0]
        for at in range(0, len(text), BOOK_PIECE):
            piece = text[at : at + BOOK_PIECE]
            if len(piece) >= 200:
                yield Text(lang, "fiction", "books", "public domain", f"{path}:{at}", "prose", piece)
