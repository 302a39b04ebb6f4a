"""Write the limits and stop words of FineWeb-2 as two tables: curation/filters/rules/fineweb2.tsv and stop_words.tsv.

    git clone https://github.com/huggingface/fineweb-2
    python tools/make_fineweb2_limits.py fineweb-2

FineWeb-2 (Penedo et al. 2025) found the limits of its filters language by language and published them as one YAML
file for each language (`configs/*.yml`, Apache-2.0). Taken are those of the languages that the step `language` can
name, under the names that it gives them: FineWeb-2 names single languages (`arb`) where our labels name the
macrolanguage (`ara`). Rows `und_Latn`, `und_Cyrl`, ... and the default are medians over the languages of a script, or
over all, for text of which only the script is known. Stop words are kept where they are one word as `curation.text`
counts words: in scripts without blanks that is one character, so the lists of Thai, Khmer, Lao and Burmese fall away.
English is not in FineWeb-2: its stop words are those of Gopher (Rae et al. 2021, appendix A.1).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from curation.text import buffers, word_spans
from quality_models.language_codes import LANGUAGE_SCRIPTS

FOLDER = Path(__file__).resolve().parent.parent / "curation" / "filters" / "rules"

THEIR_NAMES: Mapping[str, str] = {
    "ara": "arb", "aym": "ayr", "aze": "azj", "est": "ekk", "ful": "fuv", "grn": "gug", "iku": "ike", "kok": "gom",
    "kom": "kpv", "kur": "kmr", "lav": "lvs", "mlg": "plt", "mon": "khk", "msa": "zsm", "nep": "npi", "ori": "ory",
    "orm": "gaz", "pus": "pbt", "que": "quz", "sqi": "als", "swa": "swh", "tgl": "fil", "uzb": "uzn", "yid": "ydd",
    "zho": "cmn",
}  # fmt: skip
"""The language that FineWeb-2 has for a macrolanguage of ours."""
THEIR_SCRIPTS: Mapping[str, str] = {"Kore": "Hang", "Hans": "Hani", "Hant": "Hani"}
OUR_SCRIPTS: Mapping[str, str] = {"Hang": "Kore"}

GOPHER_STOP_WORDS = "the be to of and that have with"
FEWEST_STOP_WORDS = 5
"""A list with less after the cut says too little, and is left out."""
PARTS_OF_WORDS = frozenset({"kor_Kore"})
"""Languages whose list holds parts of words."""
FEWEST_DOCUMENTS = 100_000
"""Languages with less count for no median: texts of many of them are one Bible and stubs of an encyclopedia."""

PLAIN = {
    "short_words": "min_avg_word_length",
    "long_words": "max_avg_word_length",
    "letter_words": "max_non_alpha_words_ratio",
    "end_mark_lines": "line_punct_thr",
    "newlines_per_word": "new_line_ratio",
    "duplicate_lines": "dup_line_frac",
}
"""Our rule for each of their settings. Theirs named a maximum of words without a letter is a minimum of words with one."""
TOP, REPEATED = range(2, 5), range(5, 11)
RULES = (*PLAIN, *(f"top_{n}gram" for n in TOP), *(f"duplicate_{n}gram" for n in REPEATED))

LICENCE = """\
# From https://github.com/huggingface/fineweb-2 at {commit}, configs/*.yml:
# Copyright the FineWeb-2 authors (Hugging Face), Apache License 2.0. Changed: selected, renamed, put into one table
# by tools/make_fineweb2_limits.py, which also says what the rows und_* are.
"""


class Clone(NamedTuple):
    """What is read from a clone."""

    commit: str
    configs: dict[str, dict[str, Any]]
    """Settings by their label."""
    documents: dict[str, int]
    """Documents by their label."""


def read(folder: Path) -> Clone:
    """Read a clone, with or without a work tree."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout

    commit = git("rev-parse", "HEAD").strip()
    names = [name for name in git("ls-tree", "-r", "--name-only", commit, "configs/").split() if name.endswith(".yml")]
    configs = {Path(name).stem: yaml.safe_load(git("show", f"{commit}:{name}")) for name in names}
    sizes = csv.DictReader(git("show", f"{commit}:fineweb2-language-distribution.csv").splitlines())
    documents = {row["subset"]: int(row["documents"]) for row in sizes if row["split"] == "train"}
    return Clone(commit, configs, documents)


def chosen(known: Container[str]) -> dict[str, str]:
    """Their label by ours: `deu_Latn`; for Chinese `zho`, since they are the same for all its forms."""
    found = {}
    for code, scripts in LANGUAGE_SCRIPTS.items():
        for script in scripts:
            theirs = THEIR_SCRIPTS.get(script, script)
            for name in (code, THEIR_NAMES.get(code, code)):
                if f"{name}_{theirs}" in known:
                    found[code if code == "zho" else f"{code}_{script}"] = f"{name}_{theirs}"
    return found


def numbers(config: Mapping[str, Any]) -> list[float]:
    """Limits of one language, in the order of `RULES`."""
    tops, repeats = dict(config["top_n_grams"]), dict(config["dup_n_grams"])
    shares = ("letter_words", "end_mark_lines", "duplicate_lines")
    plain = [min(max(config[key], 0), 1) if name in shares else max(config[key], 0) for name, key in PLAIN.items()]
    return [*plain, *(min(tops[n], 1) for n in TOP), *(min(repeats[n], 1) for n in REPEATED)]


def limit_rows(clone: Clone, languages: Mapping[str, str]) -> Iterator[list[str]]:
    """Header and rows: languages, then medians by script, then the median of all."""
    yield ["label", *RULES]
    groups: dict[str, list[list[float]]] = {}
    for label, theirs in sorted(languages.items()):
        values = numbers(clone.configs[theirs])
        yield [label, *(f"{value:g}" for value in values)]
        if clone.documents.get(theirs, 0) >= FEWEST_DOCUMENTS:
            script = theirs.partition("_")[2]
            for group in (f"und_{OUR_SCRIPTS.get(script, script)}", ""):
                groups.setdefault(group, []).append(values)
    for label, members in sorted(groups.items(), reverse=True):
        yield [label, *medians(members)]


def medians(rows: list[list[float]]) -> list[str]:
    return [f"{median(column):.3g}" for column in zip(*rows, strict=True)]


def one_word(words: list[str]) -> list[str]:
    """Those that `curation.text` takes for exactly one word."""
    data, offsets = buffers(pa.array(words, pa.large_string()))
    spans = word_spans(data, offsets)
    first, count = spans.offsets[:-1], spans.offsets[1:] - spans.offsets[:-1]
    whole = []
    for row, word in enumerate(words):
        length = spans.ends[first[row]] - spans.starts[first[row]] if count[row] == 1 else -1
        if length == len(word.encode()):
            whole.append(word)
    return list(dict.fromkeys(word.casefold() for word in whole))


def stop_word_rows(clone: Clone, languages: Mapping[str, str]) -> Iterator[list[str]]:
    """Header and rows: label, words between blanks."""
    yield ["label", "words"]
    yield ["eng", GOPHER_STOP_WORDS]
    for label, theirs in sorted(languages.items()):
        words = one_word([str(word) for word in clone.configs[theirs]["stopwords"]])
        if len(words) >= FEWEST_STOP_WORDS and label not in PARTS_OF_WORDS:
            yield [label, " ".join(words)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of FineWeb-2's limits and stop words.")
    parser.add_argument("clone", type=Path, help="a clone of huggingface/fineweb-2")
    clone = read(parser.parse_args().clone)
    languages = chosen(clone.configs)
    tables = {"fineweb2.tsv": limit_rows(clone, languages), "stop_words.tsv": stop_word_rows(clone, languages)}
    for name, rows in tables.items():
        text = LICENCE.format(commit=clone.commit) + "".join("\t".join(row) + "\n" for row in rows)
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{name}: {text.count(chr(10)) - LICENCE.count(chr(10)) - 1} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
