"""Bits per character of texts that were held out, and of the same texts when they are broken."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from curation.filters.perplexity.ngram import Scorer, prepared, score_texts
from curation.text import buffers
from quality_models.ngram_file import read_ngram
from tools.ngram_models.mixture import MIXTURES, reads
from tools.ngram_models.sources import Text

__all__ = ["bits", "random_text", "shuffled_characters", "shuffled_words", "tables"]

FEWEST = 3
MOST = 200
"""Documents that are measured of a language and domain."""


def bits(scorer: Scorer, texts: Sequence[str]) -> float:
    """Bits per normalised character of all texts together; nan where none is scored."""
    scores = score_texts(scorer, *buffers(pa.array(texts, pa.large_string())))
    tokens = int(scores.tokens.sum())
    return float(scores.nats.sum()) / math.log(2) / tokens if tokens else math.nan


def shuffled_characters(text: str) -> str:
    found = list(text)
    random.Random(len(text)).shuffle(found)
    return "".join(found)


def shuffled_words(text: str) -> str:
    """Words in random order; in a text without blanks, pieces of two characters."""
    words = text.split()
    if len(words) * 12 < len(text):
        words = [text[start : start + 2] for start in range(0, len(text), 2)]
        random.Random(len(text)).shuffle(words)
        return "".join(words)
    random.Random(len(text)).shuffle(words)
    return " ".join(words)


def random_text(text: str) -> str:
    """Characters of the text, each as likely as any other that occurs."""
    letters = sorted(set(text))
    chance = random.Random(len(text))
    return "".join(chance.choice(letters) for _ in text)


def tables(models: Mapping[str, Path], texts: Sequence[Text]) -> str:
    """A table in Markdown for each model: languages and domains, whole and broken."""
    return "\n".join(_table(name, prepared(read_ngram(path)), texts) for name, path in models.items() if path.exists())


def _table(name: str, scorer: Scorer, texts: Sequence[Text]) -> str:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for text in texts:
        if reads(MIXTURES[name], text.language) and len(groups[text.language, _domain(name, text)]) < MOST:
            groups[text.language, _domain(name, text)].append(text.text)
    lines = [
        f"\n{name}:\n",
        "| language | domain | documents | bits a character | words shuffled | characters shuffled | random |",
        "|---|---|---|---|---|---|---|",
    ]
    for (language, domain), found in sorted(groups.items()):
        if len(found) >= FEWEST:
            row = [bits(scorer, [change(text) for text in found]) for change in CHANGES]
            cells = " | ".join("-" if np.isnan(value) else f"{value:.2f}" for value in row)
            lines.append(f"| {language} | {domain} | {len(found)} | {cells} |")
    return "\n".join(lines)


def _domain(name: str, text: Text) -> str:
    """Of a model of one language the text's domain; of one of many all together."""
    return text.domain if MIXTURES[name].languages is not None else "all"


CHANGES = (str, shuffled_words, shuffled_characters, random_text)
