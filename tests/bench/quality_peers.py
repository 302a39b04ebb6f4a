"""Other tools' quality chains: one driver for all, run by an interpreter that has the tool.

    PYTHON tests/bench/quality_peers.py CHAIN DOCUMENTS VERDICTS [--settings FOLDER]

DOCUMENTS is a file of JSON lines with `id`, `text` and `lang` (ISO 639-1 as the gold of the test data has it, or null). VERDICTS
gets one line with what was run and what it took, then one line a document: `id` and `reason`, null where it is kept. FOLDER
holds the per-language settings of FineWeb-2 (`configs/*.yml` of its repository). A text's chain ends with its first reason,
as the tools themselves do it. The interpreter need not have this project's packages; filters are made as the tools' own
recipes make them, and asked text by text in this one process, so what an engine costs (Ray, worker processes, start-up)
is not in the seconds. A filter that raises an exception, which would end its tool's task, has nothing against the text: the
next one is asked, and VERDICTS says how often it happened.

Chains:
- `datatrove`: Gopher repetition, Gopher quality, C4 without its rule on end marks, FineWeb, as FineWeb ran them.
- `datatrove-told`: the same with each text's language for the word splitter. Their stop words stay English.
- `fineweb2`: FineWeb-2's pipeline with its settings for each language; English, for which it has none, as FineWeb.
- `nemo`: NeMo Curator's heuristic recipe, English or not English, told each text's language.
- `data-juicer`: its rules with their default limits, English or not English, told each text's language.
Not asked: language identification and perplexity, for which the tools fetch models from the network.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

Ask = Callable[[str], "str | None"]
"""A text's reason, None where it is kept."""
Chain = Callable[["str | None", "Path | None"], Ask]
"""Makes what asks of texts in a language."""

LABELS = {
    "ar": "arb_Arab", "ca": "cat_Latn", "cs": "ces_Latn", "da": "dan_Latn", "de": "deu_Latn", "el": "ell_Grek",
    "en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn", "hi": "hin_Deva", "id": "ind_Latn", "it": "ita_Latn",
    "ja": "jpn_Jpan", "ko": "kor_Hang", "la": "lat_Latn", "lzh": "lzh_Hani", "nl": "nld_Latn", "no": "nob_Latn",
    "pl": "pol_Latn", "pt": "por_Latn", "ro": "ron_Latn", "ru": "rus_Cyrl", "sv": "swe_Latn", "th": "tha_Thai",
    "tr": "tur_Latn", "vi": "vie_Latn", "zh": "cmn_Hani", "zh-Hant": "cmn_Hani",
}  # fmt: skip
"""FineWeb-2's names of the gold's languages; others are told as English, the tools' default."""

SPLITTER = {"lzh_Hani": "cmn_Hani"}
"""Where the splitter of datatrove needs a model from the network, the one that stands in."""


RAISED: Counter[str] = Counter()
"""Filters and exceptions that they raised."""


def asked(name: str, question: Callable[[], Any]) -> Any:
    """What a filter says of a text; True if it raises an exception. An interpreter that lacks what it needs is no fault of it."""
    try:
        return question()
    except ImportError:
        raise
    except Exception as error:  # whatever a peer raises is counted, and told with its verdicts
        RAISED[f"{name}: {type(error).__name__}"] += 1
        return True


# -- datatrove ----------------------------------------------------------------------------------------


def in_turn(filters: Sequence[Any]) -> Ask:
    """datatrove's filters, which say False and a reason, and may edit the text for those behind them."""
    document = importlib.import_module("datatrove.data").Document

    def ask(text: str) -> str | None:
        one = document(text=text, id="0")
        for each in filters:
            said = asked(type(each).__name__, partial(each.filter, one))
            if isinstance(said, tuple):
                return str(said[1])
            if not said:
                return type(each).__name__
        return None

    return ask


def fineweb(language: str, settings: Path | None = None) -> Ask:
    """FineWeb's chain with a language for the word and sentence splitter."""
    made = importlib.import_module("datatrove.pipeline.filters")
    told = {"language": SPLITTER.get(language, language)}
    return in_turn(
        [
            made.GopherRepetitionFilter(**told),
            made.GopherQualityFilter(**told),
            made.C4QualityFilter(filter_no_terminal_punct=False, **told),
            made.FineWebQualityFilter(**told),
        ]
    )


def datatrove(_: str | None, settings: Path | None) -> Ask:
    return fineweb("en")


def datatrove_told(language: str | None, settings: Path | None) -> Ask:
    return fineweb(LABELS.get(language or "", "eng_Latn"))


def fineweb2(language: str | None, settings: Path | None) -> Ask:
    """Raises FileNotFoundError where --settings lacks a language's file."""
    label = LABELS.get(language or "", "eng_Latn")
    if label == "eng_Latn":
        return fineweb("eng_Latn")
    assert settings is not None, "fineweb2 needs --settings"
    made = importlib.import_module("datatrove.pipeline.filters")
    own = importlib.import_module("yaml").safe_load((settings / f"{label}.yml").read_text(encoding="utf-8"))
    told = {"language": SPLITTER.get(label, label)}
    repetition = {key: own[key] for key in ("dup_line_frac", "top_n_grams", "dup_n_grams")}
    repetition |= dict.fromkeys(("dup_para_frac", "dup_line_char_frac", "dup_para_char_frac"), 0)
    lines = {key: own[key] for key in ("line_punct_thr", "new_line_ratio")}
    lines |= {"short_line_thr": 999, "char_duplicates_ratio": 0.1}
    words = {key: own[key] for key in ("max_avg_word_length", "min_avg_word_length", "max_non_alpha_words_ratio")}
    words |= {"stop_words": own["stopwords"], "min_stop_words": 2}
    return in_turn(
        [
            made.GopherRepetitionFilter(**repetition, **told),
            made.FineWebQualityFilter(**lines, **told),
            made.GopherQualityFilter(**words, **told),
        ]
    )


# -- NeMo Curator -------------------------------------------------------------------------------------


def nemo(language: str | None, _: Path | None) -> Ask:
    """The recipe that it ships, each filter that takes a language told it; Chinese of either form is zh to it."""
    told = {"lzh": "zh", "zh-Hant": "zh"}.get(language or "en", language or "en")
    folder = Path(str(importlib.import_module("nemo_curator").__file__)).parent / "config" / "text"
    recipe = folder / f"heuristic_filter_{'english' if told == 'en' else 'non_english'}_pipeline.yaml"
    stages = importlib.import_module("yaml").safe_load(recipe.read_text(encoding="utf-8"))["stages"]
    filters = [nemo_filter(dict(stage["filter_obj"]), told) for stage in stages if "filter_obj" in stage]

    def ask(text: str) -> str | None:
        for each in filters:
            name = type(each).__name__
            if not asked(name, partial(nemo_keeps, each, text)):
                return name
        return None

    return ask


def nemo_keeps(each: Any, text: str) -> bool:
    return bool(each.keep_document(each.score_document(text)))


def nemo_filter(settings: dict[str, Any], language: str) -> Any:
    """One filter of a recipe."""
    module, _, name = settings.pop("_target_").rpartition(".")
    made = getattr(importlib.import_module(module), name)
    takes = "lang" in inspect.signature(made.__init__).parameters
    return made(**settings, **({"lang": language} if takes else {}))


# -- Data-Juicer --------------------------------------------------------------------------------------

DJ_RULES: tuple[dict[str, dict[str, Any]], ...] = (
    {"text_length_filter": {}},
    {"alphanumeric_filter": {}},
    {"average_line_length_filter": {}},
    {"maximum_line_length_filter": {}},
    {"character_repetition_filter": {}},
    {"special_characters_filter": {}},
)
DJ_WORD_RULES: tuple[dict[str, dict[str, Any]], ...] = ({"words_num_filter": {}}, {"word_repetition_filter": {}})
"""For languages with blanks between words: it splits at blanks, whatever language it is told."""
UNSPACED = {"zh", "zh-Hant", "lzh", "ja", "th"}


def data_juicer(language: str | None, _: Path | None) -> Ask:
    """Its rules that need no file from the network, with the limits that they have by default."""
    stats = importlib.import_module("data_juicer.utils.constant").Fields.stats
    rules = DJ_RULES if language in UNSPACED else DJ_RULES + DJ_WORD_RULES
    filters = importlib.import_module("data_juicer.ops").load_ops([dict(rule) for rule in rules])

    def ask(text: str) -> str | None:
        samples: dict[str, list[Any]] = {"text": [text], stats: [{}]}
        for each in filters:
            name = str(each._name)
            if not asked(name, partial(dj_keeps, each, samples)):
                return name
        return None

    return ask


def dj_keeps(each: Any, samples: dict[str, list[Any]]) -> bool:
    return all(each.process_batched(each.compute_stats_batched(samples)))


# -- the command --------------------------------------------------------------------------------------

CHAINS: dict[str, tuple[str, str, Chain]] = {
    "datatrove": ("datatrove", "datatrove", datatrove),
    "datatrove-told": ("datatrove", "datatrove", datatrove_told),
    "fineweb2": ("datatrove", "datatrove", fineweb2),
    "nemo": ("nemo_curator", "nemo-curator", nemo),
    "data-juicer": ("data_juicer", "py-data-juicer", data_juicer),
}
"""Module that a chain needs, distribution that it comes with, and how it is made."""

WARM = "The first text of a language loads what its splitter needs, and is not timed. It has two sentences.\n" * 20


def judge(
    chain: Chain, documents: Sequence[dict[str, Any]], settings: Path | None
) -> tuple[list[str | None], dict[str, float]]:
    """Reasons of all documents in their order, and seconds: of loading, of processors and by the clock."""
    begin = time.perf_counter()
    asks = {language: chain(language, settings) for language in {one["lang"] for one in documents}}
    for language, ask in asks.items():
        ask(next(one["text"] for one in documents if one["lang"] == language)[:2000])
        ask(WARM)
    loading = time.perf_counter() - begin
    RAISED.clear()
    reasons: list[str | None] = []
    cpu, wall = sum(os.times()[:2]), time.perf_counter()
    for number, one in enumerate(documents):
        reasons.append(asks[one["lang"]](one["text"]))
        if number % 500 == 0:
            print(f"{number} of {len(documents)}", file=sys.stderr, flush=True)
    took = {"cpu": sum(os.times()[:2]) - cpu, "wall": time.perf_counter() - wall, "loading": loading}
    return reasons, took


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chain", choices=CHAINS)
    parser.add_argument("documents", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--settings", type=Path)
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    with arguments.documents.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    _, distribution, chain = CHAINS[arguments.chain]
    reasons, took = judge(chain, documents, arguments.settings)
    megabytes = sum(len(one["text"].encode()) for one in documents) / 1e6
    version = f"{distribution} {importlib.metadata.version(distribution)}"
    summary = {"chain": arguments.chain, "version": version, "documents": len(documents), "megabytes": megabytes}
    summary |= {**took, "raised": dict(RAISED)}
    with arguments.verdicts.open("w", encoding="utf-8") as out:
        print(json.dumps(summary), file=out)
        for one, reason in zip(documents, reasons, strict=True):
            print(json.dumps({"id": one["id"], "reason": reason}), file=out)
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
