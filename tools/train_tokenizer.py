"""Trains the tokenizer that ships as `default`: byte-level BPE, 32,768 tokens, from permissively licensed text only.

    python tools/train_tokenizer.py DATA --out tokenization/data/default

DATA is the folder of real test data with its licence columns. The same rows give the same file, byte for
byte: documents are chosen by a hash of their text, and merges are ordered by count, then by ids.
Takes about a minute on two cores and 1.5 GB. Byte-level BPE: Sennrich et al. 2016 (arXiv 1508.07909)
over bytes as in GPT-2. One document in twenty is held out and only measured.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 32_768
EOS, PAD = "<|endoftext|>", "<|pad|>"

PATTERN = "|".join(
    (
        r"'(?i:[sdmt]|ll|ve|re)",  # English contractions
        r"[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]{1,64}",  # a word with its combining marks, and one sign or blank before
        r"\p{N}",  # digits one by one: numbers of any length look alike
        r" ?[^\s\p{L}\p{M}\p{N}]{1,64}[\r\n]{0,64}",  # punctuation, with the line end that follows it
        r"\s{0,64}[\r\n]{1,64}",
        r"\s{1,64}(?!\S)",  # blanks, all but the one that belongs to the next word
        r"\s{1,64}",
    )
)
"""How text is cut before merging. No piece is longer than 129 characters, so time grows with the text and no faster."""

LICENCES = {
    "Apache-2.0": "Apache-2.0",
    "CC-BY-4.0": "CC BY 4.0",
    "CC-BY-SA-4.0": "CC BY-SA 4.0",
    "CC0": "CC0",
    "MIT": "MIT",
    "ODC-BY-1.0": "ODC-BY 1.0",
    "law text": "law text, not copyrightable",
    "law text, not copyrightable in PRC": "law text, not copyrightable",
    "law text, public domain": "law text, not copyrightable",
    "public domain (Aozora, expired)": "public domain",
    "public domain (US government)": "public domain",
    "public domain (US)": "public domain",
    "public domain / CC0": "public domain or CC0",
    "public domain or CC0": "public domain or CC0",
}
"""Licences that allow training, as the rows spell them. Every other row is left out."""

LANGUAGES = {"zh_TW": "zh-Hant", "zh_HK": "zh-Hant", "pt_BR": "pt", "pt_PT": "pt", "zh_CN": "zh"}
BYTES_PER_SOURCE = 2_500_000
"""At most this much of one source in one language, so that no source's jargon fills the vocabulary."""
BYTES_PER_LANGUAGE = {"en": 9_000_000, "zh": 8_000_000}
BYTES_PER_OTHER_LANGUAGE = 4_000_000
REPEATS = {"fr": 3, "es": 2, "ru": 2, "pt": 2}
"""Languages of many readers with little permissive text here: their counts are raised."""
HELD_OUT = 20
"""One document in this many is measured and not trained on."""


@dataclass(frozen=True, slots=True)
class Row:
    """One document that may be trained on."""

    text: str
    language: str
    source: str
    licence: str

    @property
    def order(self) -> bytes:
        """Position in the order of choice: a hash, so that any subset is a fair sample."""
        return hashlib.sha256(self.text.encode("utf-8")).digest()


def read_jsonl_zst(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a .jsonl.zst file."""
    with path.open("rb") as stream:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(stream, read_across_frames=True)
        for line in io.TextIOWrapper(reader, encoding="utf-8", newline="\n"):
            yield json.loads(line)


def permitted_rows(data: Path) -> Iterator[Row]:
    """All rows of DATA whose licence permits training and whose text is worth it."""
    gold = {row["id"]: row for row in read_jsonl_zst(data / "2_text/gold.jsonl.zst")}
    for path in sorted((data / "2_text").glob("crawl-*.jsonl.zst")):
        for row in read_jsonl_zst(path):
            label = gold[row["id"]]
            if label["quality"] in ("good", "neutral"):
                yield from _row(row["text"], label["lang"], label["source"], label["licence"])
    revisions = _first_revisions(data / "3_neardup/gold_groups.tsv.gz")
    for path in sorted((data / "3_neardup").glob("docs-*.jsonl.zst")):
        for row in read_jsonl_zst(path):
            if revisions.get(row["id"], True):
                yield from _row(row["text"], row["lang"], row["source"], row["licence"])
    for row in read_jsonl_zst(data / "4_langid/sentences.jsonl.zst"):
        yield from _row(row["text"], row["lang"], "pemistahl/lingua-py", "Apache-2.0")


def _row(text: str, language: str | None, source: str, licence: str) -> Iterator[Row]:
    if licence in LICENCES:
        language = language or "und"
        yield Row(text, LANGUAGES.get(language, language), source, LICENCES[licence])


def _first_revisions(path: Path) -> dict[str, bool]:
    """For each id: whether it is the first of its group of near-identical documents."""
    seen: set[str] = set()
    first: dict[str, bool] = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        next(stream)
        for line in stream:
            identifier, group = line.split("\t")[:2]
            first[identifier] = group not in seen
            seen.add(group)
    return first


def choose(rows: Iterator[Row]) -> tuple[list[Row], list[Row]]:
    """Training and held-out rows: no text twice, each language and source within its share."""
    used: Counter[str] = Counter()
    used_of_source: Counter[tuple[str, str]] = Counter()
    seen: set[bytes] = set()
    train: list[Row] = []
    held_out: list[Row] = []
    for order, row in sorted(((row.order, row) for row in rows), key=lambda pair: pair[0]):
        n_bytes = len(row.text.encode("utf-8"))
        cap = BYTES_PER_LANGUAGE.get(row.language, BYTES_PER_OTHER_LANGUAGE)
        full = used[row.language] >= cap or used_of_source[row.language, row.source] >= BYTES_PER_SOURCE
        if order in seen or full:
            continue
        seen.add(order)
        used[row.language] += n_bytes
        used_of_source[row.language, row.source] += n_bytes
        (held_out if order[0] % HELD_OUT == 0 else train).append(row)
    return train, held_out


def train_tokenizer(rows: list[Row], vocabulary: int = VOCABULARY) -> Tokenizer:
    """Byte-level BPE over `rows`. No normaliser: every text comes back exactly."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[AddedToken(EOS, special=True), AddedToken(PAD, special=True)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = (row.text for row in rows for _ in range(REPEATS.get(row.language, 1)))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def bytes_per_token(encode: Callable[[str], int], rows: list[Row]) -> dict[str, tuple[int, float]]:
    """For each language: held-out bytes, and bytes per token. `encode` counts the tokens of a text."""
    n_bytes: Counter[str] = Counter()
    n_tokens: Counter[str] = Counter()
    for row in rows:
        n_bytes[row.language] += len(row.text.encode("utf-8"))
        n_tokens[row.language] += encode(row.text)
    return {
        language: (n_bytes[language], n_bytes[language] / n_tokens[language]) for language, _ in n_bytes.most_common()
    }


def counter_of(tokenizer: Tokenizer) -> Callable[[str], int]:
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """tokenizer.json, compact, and the names of the special tokens beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n", encoding="utf-8")
    config = {"eos_token": EOS, "pad_token": PAD, "bos_token": None, "unk_token": None, "add_prefix_space": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def card(train: list[Row], measured: Mapping[str, Mapping[str, tuple[int, float]]], sha256: str) -> str:
    """The model card: data, licences, how to make it again, what it costs in each language."""
    n_bytes: defaultdict[tuple[str, str], int] = defaultdict(int)
    languages: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in train:
        n_bytes[row.source, row.licence] += len(row.text.encode("utf-8"))
        languages[row.source, row.licence].add(row.language)
    sources = "\n".join(
        f"| {source} | {licence} | {_listed(languages[source, licence])} | {size / 1e6:.2f} |"
        for (source, licence), size in sorted(n_bytes.items(), key=lambda item: -item[1])
    )
    names = list(measured)
    shown = [language for language, (size, _) in measured[names[0]].items() if size >= 5_000]
    table = "\n".join(
        f"| {language} | {measured[names[0]][language][0] / 1e3:.0f} | "
        + " | ".join(f"{measured[name][language][1]:.2f}" for name in names)
        + " |"
        for language in shown
    )
    repeats = ", ".join(f"{language} x{n}" for language, n in REPEATS.items())
    return CARD.format(
        vocabulary=f"{VOCABULARY:,}",
        eos=EOS,
        pad=PAD,
        pattern=PATTERN,
        total=f"{sum(n_bytes.values()) / 1e6:.1f}",
        documents=f"{len(train):,}",
        sources=sources,
        names=" | ".join(names),
        rule=" | ".join("---" for _ in names),
        table=table,
        sha256=sha256,
        repeats=repeats,
        held_out=HELD_OUT,
        cap=BYTES_PER_SOURCE / 1e6,
    )


def _listed(names: set[str]) -> str:
    return " ".join(sorted(names)) if len(names) <= 20 else f"{len(names)} languages"


CARD = """# The default tokenizer

Byte-level BPE with {vocabulary} tokens, among them `{eos}` (id 0, end of a document) and `{pad}` (id 1).
There is no normaliser and no unknown token: decoding gives back every text exactly.
Digits are single tokens. Words carry one leading blank or sign, and their combining marks.
No token spans more than 129 characters.

Pattern of the pre-tokenizer:

    {pattern}

It is meant for trying the pipeline out, for tests, and for small models.
A corpus for a real model is packed with that model's own tokenizer.
Its licence is that of this project, Apache-2.0.

## Data
{documents} documents, {total} MB of UTF-8, in these sources.
Only rows whose licence permits it; rows labelled as junk are left out.
At most {cap} MB of one source in one language; counts of some languages are raised: {repeats}.
Of documents that are revisions of one file, one was taken.

| source | licence | languages | MB |
| --- | --- | --- | --- |
{sources}

CC BY and CC BY-SA texts are credited by the names above; the vocabulary holds fragments of words, not their text.

## Bytes per token
Measured on held-out documents (one in {held_out}) of the same sources; more is better.
No text is on both sides, but texts of one site are alike, so other text of a language may need more tokens.

| language | held-out kB | {names} |
| --- | --- | {rule} |
{table}

## To make it again

    python tools/train_tokenizer.py DATA --out tokenization/data/default

The same rows give the same file. SHA-256 of `tokenizer.json`: `{sha256}`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with 2_text, 3_neardup and 4_langid")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the tokenizer and its card")
    parser.add_argument(
        "--compare", nargs=3, action="append", default=[], metavar=("NAME", "VOCAB", "MERGES"),
        help="another byte-level BPE (GPT-2 layout) to put beside it in the card",
    )  # fmt: skip
    arguments = parser.parse_args()
    train, held_out = choose(permitted_rows(arguments.data))
    tokenizer = train_tokenizer(train)
    write_tokenizer(tokenizer, arguments.out)
    measured = {"this one": bytes_per_token(counter_of(tokenizer), held_out)}
    for name, vocabulary, merges in arguments.compare:
        other = Tokenizer(models.BPE.from_file(vocabulary, merges))
        other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        measured[name] = bytes_per_token(counter_of(other), held_out)
    sha256 = hashlib.sha256((arguments.out / "tokenizer.json").read_bytes()).hexdigest()
    text = card(train, measured, sha256)
    (arguments.out / "CARD.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
