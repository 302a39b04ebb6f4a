"""The filter `language` beside other tools: accuracy on labelled texts and mixed pages, and speed.

    python -m tests.bench.bench_language [--accuracy] [--per-language] [--speed] [--peers-python PATH...] > bench/results/language.md

`--accuracy` scores the test data's `4_langid` and the Chinese of `2_text` and `3_neardup`; `--per-language` prints its long
tables, `--wrong` every text of 60 characters and more that is named wrongly, which is test data and not to be kept.
`--speed` runs over `2_text`, in rounds in which each tool is run once, on one core. Tools: fastText (the library, with lid.176),
langdetect (seed 0), both if they say the same, py3langid, lingua with all its languages, and for speed also langdetect-rs and
datatrove's LanguageFilter. Each is run by tests/bench/language_peers.py in the first interpreter of --peers-python that has it;
one that none has is said to be missing. An answer that is missing counts as wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import psutil

from tests.bench.bench_scale import _processor
from tests.bench.language_answers import Answer, answers, without_languages
from tests.bench.language_asked import main_form, reached
from tests.bench.language_gold import (
    LENGTHS,
    NOTHING,
    Known,
    Page,
    Sentence,
    accuracy,
    chinese_lines,
    chinese_texts,
    known_languages,
    load_pages,
    load_sentences,
    macro_f1,
    read_rows,
    share,
)
from tests.bench.language_pages import agreed, by_share, han_only_lines, line_score, mix_score, pages_wrong, vote
from tests.bench.language_speed import OURS, measure_all, speed_table
from tests.bench.language_tools import answers_of

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))

Codes = Mapping[str, Sequence[str]]
"""Answers of each tool, one a text."""

BOTH = "both agree"
FEWER: Mapping[str, tuple[str, ...]] = {
    f"{OURS}, fastText and langdetect": (),
    f"{OURS}, and py3langid": ("py3langid",),
    f"{OURS}, and our model": ("corpusmill",),
}
"""The filter with fewer voters than it has by default."""

NOTES = """\
`python -m tests.bench.bench_language` over the shared test data: `4_langid`, sentences of lingua's own test data,
which are not free of sentences in another language than their label, and pages made of lines of two languages;
Chinese of `2_text` and `3_neardup`. Languages are ISO 639-3, dialects and members of macrolanguages together, so no
tool loses by its names for them. *none* is a missing answer, and counts as wrong. *both agree* is fastText and
langdetect where they say the same. *right* and *other* of languages that a tool knows and fastText and langdetect do
not: its own name, or another such language's. *unknown to its voters*: py3langid and our model do without these
languages, their probability given to the others, so that no model has heard of them: one language at a time, so that
its relatives stay, or all at once. A page is *clear* if the shares of its two languages differ by more than 10 points
of its characters; lines of two languages are split for that, and left out where labels of lines are judged. Speed is
of one core and one thread, medians of rounds in which the tools ran one right after the other, lowest and highest in
brackets; fastText gets whole texts as one line, as its users do, or each line; langdetect-rs reads no more than the
first 10,000 characters of a text; datatrove's LanguageFilter is given the file lid.176.ftz in place of the larger one
that it would load from the network."""

FAST = ("fastText", "fastText by line", "langdetect-rs", "datatrove")


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def head(*names: str) -> list[str]:
    return [row(*names), f"|{' --- |' * len(names)}"]


# -- sentences --------------------------------------------------------------------------------------


def ask_all(texts: Sequence[str], tools: Sequence[str], pythons: Sequence[str]) -> dict[str, list[str]]:
    """Answers of the tools that can be run, by name and version, and of fastText and langdetect together."""
    told: dict[str, list[str]] = {}
    pair: list[list[str]] = []
    for tool in tools:
        found = answers_of(tool, pythons, texts)
        if found is None:
            print(f"{tool}: not run, no interpreter of --peers-python has it", file=sys.stderr)
            continue
        told[f"{tool} ({found.version})"] = found.languages
        if tool in ("fastText", "langdetect"):
            pair.append(found.languages)
        if tool == "langdetect" and len(pair) == 2:
            told[BOTH] = agreed(*pair)
    return told


def of_length(sentences: Sequence[Sentence], known: Known | None, length: str) -> list[int]:
    """Places of the sentences of a length, of languages known to both models where these are given."""
    low, high = LENGTHS[length]
    return [
        at
        for at, one in enumerate(sentences)
        if low <= one.length < high and (known is None or one.language in known.both)
    ]


def known_table(sentences: Sequence[Sentence], told: Codes, known: Known) -> list[str]:
    """Markdown: macro F1, accuracy and missing answers by length, over the languages that both models know."""
    places = {length: of_length(sentences, known, length) for length in LENGTHS}
    gold = {length: [sentences[at].language for at in places[length]] for length in LENGTHS}
    lines = head("tool", *(f"{length}: F1 / accuracy / none" for length in LENGTHS))
    lines.append(row("texts", *(f"{len(ones):,}" for ones in gold.values())))
    for tool, codes in told.items():
        cells = []
        for length in LENGTHS:
            mine = [codes[at] for at in places[length]]
            nothing = share(one == NOTHING for one in mine)
            cells.append(f"{macro_f1(mine, gold[length]):.4f} / {accuracy(mine, gold[length]):.4f} / {nothing:.4f}")
        lines.append(row(tool, *cells))
    return lines


def unknown_table(sentences: Sequence[Sentence], told: Codes, known: Known, wanted: Callable[[str], bool]) -> list[str]:
    """Markdown: what is made of languages that models do not know."""
    lines = head(
        "tool",
        "length",
        "texts",
        "named as one known to both",
        "named as one known to either",
        "none",
        "right",
        "other",
    )
    for tool, codes in told.items():
        for name, least in (("all", 0), (">= 60", 60)):
            rows = [
                (one.language, code)
                for one, code in zip(sentences, codes, strict=True)
                if wanted(one.language) and one.length >= least
            ]
            both, either = (
                share(code in ones and code != gold for gold, code in rows) for ones in (known.both, known.either)
            )
            nothing, right = share(code == NOTHING for _, code in rows), share(code == gold for gold, code in rows)
            other = share(code not in (gold, NOTHING) and code not in known.either for gold, code in rows)
            cells = (f"{one:.3f}" for one in (both, either, nothing, right, other))
            lines.append(row(tool, name, f"{len(rows):,}", *cells))
    return lines


def left_out(sentences: Sequence[Sentence], groups: Iterable[frozenset[str]]) -> list[str]:
    """Answers to the texts of each group of languages where no model knows any of them; no answers to other texts."""
    codes = [NOTHING] * len(sentences)
    for group in groups:
        places = [at for at, one in enumerate(sentences) if one.language in group]
        with without_languages(group):
            for at, found in zip(places, answers([sentences[at].text for at in places]), strict=True):
                codes[at] = found.language
    return codes


def language_tables(sentences: Sequence[Sentence], told: Codes) -> Iterator[str]:
    """Markdown: accuracy of each language, a table a length; every language of the set."""
    for length in LENGTHS:
        yield f"\n## {length} characters\n"
        yield from head("language", "texts", *told)
        places = of_length(sentences, None, length)
        for language in sorted({one.language for one in sentences}):
            mine = [at for at in places if sentences[at].language == language]
            if mine:
                cells = (f"{share(codes[at] == language for at in mine):.3f}" for codes in told.values())
                yield row(language, len(mine), *cells)


# -- pages ------------------------------------------------------------------------------------------


def ask_pages(pages: Sequence[Page], pythons: Sequence[str]) -> dict[str, list[str]]:
    """What fastText and langdetect say of pages, and fastText's vote of lines."""
    told = ask_all([page.text for page in pages], ("fastText", "langdetect"), pythons)
    lines = [text for page in pages for text, _ in page.lines]
    if (found := answers_of("fastText", pythons, lines)) is not None:
        labels = iter(found.languages)
        told["fastText, vote of lines"] = [
            vote([text for text, _ in page.lines], [next(labels) for _ in page.lines]) for page in pages
        ]
    return told


def pages_tables(pages: Sequence[Page], told: Codes) -> Iterator[str]:
    """Markdown: pages whose language of most characters is named."""
    groups: dict[str, list[int]] = {
        "all with more than 10 points between the shares": [at for at, one in enumerate(pages) if one.clear]
    }
    groups |= {f"other language: {name} %": places for name, places in by_share(pages).items()}
    clear = groups["all with more than 10 points between the shares"]
    for kind in ("pair", "style"):
        for value in sorted({str(getattr(pages[at], kind)) for at in clear}):
            groups[f"{kind} {value}"] = [at for at in clear if getattr(pages[at], kind) == value]
    yield from head("pages", "number", *told)
    for name, places in groups.items():
        right = [sum(codes[at] == pages[at].majority for at in places) for codes in told.values()]
        yield row(name, len(places), *(f"{one} ({one / len(places):.3f})" for one in right))


def lines_tables(pages: Sequence[Page], ours: Sequence[Answer]) -> Iterator[str]:
    """Markdown: lines, mixes, and Japanese lines without kana."""
    lines = line_score(pages, [one.lines for one in ours])
    yield from head("lines in", "characters", "rightly labelled")
    yield row("all", f"{lines.all.total():,}", f"{lines.accuracy:.5f}")
    for language, count in sorted(lines.all.items()):
        yield row(language, f"{count:,}", f"{lines.right[language] / count:.5f}")
    confused = ", ".join(f"{gold} as {said} {n:,}" for (gold, said), n in lines.confused.most_common())
    yield f"\nCharacters of lines wrongly labelled: {confused or 'none'}.\n"
    mixes = mix_score(pages, ours)
    yield from head("pages", "number", "called mixed")
    for name, (called, number) in (
        ("12 % or more in another language", mixes.mixed),
        ("of them with lines of two languages", mixes.inline),
        ("one language, or less than 8 % of another", mixes.spared),
    ):
        yield row(name, number, f"{called} ({called / number:.3f})")
    yield f"\nPages with lines of two languages whose shares name both: {mixes.seen[0]} of {mixes.seen[1]}.\n"
    yield from head("Japanese lines without kana, in pages", "lines", "labels")
    for kind, labels in han_only_lines(pages, ours).items():
        yield row(kind, labels.total(), ", ".join(f"{label} {n}" for label, n in labels.most_common()))


# -- forms of Chinese -------------------------------------------------------------------------------


def forms_tables(chinese: Mapping[str, Sequence[str]], bugcases: Path) -> Iterator[str]:
    """Markdown: Simplified and Traditional, in documents and in single lines."""
    yield from head("Chinese", "number", "label")
    for form, texts in chinese.items():
        lines = chinese_lines(texts)
        forms = [main_form(one) for one in answers(texts)]
        for what, labels in (("documents", forms), ("single lines", [one.label for one in answers(lines)])):
            named = [label for label in labels if label]
            counts = {label: named.count(label) for label in sorted(set(named), key=lambda one: -named.count(one))}
            told = ", ".join(f"{label} {n:,}" for label, n in counts.items())
            yield row(f"{what}, {form}", f"{len(named):,}", f"{counts.get(form, 0) / len(named):.4f} right: {told}")
    for name, form in (("l_hant", "zho_Hant"), ("l_zhkana", "zho_Hans")):
        path = bugcases / f"{name}.jsonl"
        if path.exists():
            texts = [one["text"] for one in read_rows(path)]
            labels = [one.label for one in answers(texts)]
            yield row(f"bug cases {name}", len(labels), f"{labels.count(form)} {form}")


# -- the command ------------------------------------------------------------------------------------


def accuracy_report(arguments: argparse.Namespace) -> Iterator[str]:
    known = known_languages()
    sentences, pages = load_sentences(DATA / "4_langid"), load_pages(DATA / "4_langid")
    texts = [one.text for one in sentences]
    whole = answers(texts)
    ours = {OURS: [one.language for one in whole]}
    peers = ask_all(texts, arguments.tools, arguments.peers_python)
    if arguments.per_language:
        yield from language_tables(sentences, {**ours, **peers})
        return
    fewer = {name: [one.language for one in answers(texts, voters)] for name, voters in FEWER.items()}
    languages = {one.language for one in sentences}
    unknown = frozenset(languages - known.either)
    yield f"## Sentences, pairs of words and words of the {len(languages & known.both)} languages that both models know\n"
    yield from known_table(sentences, {**ours, **fewer, **peers}, known)
    yield f"\n## Languages that neither model knows: {', '.join(sorted(unknown))}\n"
    each = [frozenset({language}) for language in sorted(unknown)]
    alone = {
        f"{OURS}, the text's language unknown to its voters": left_out(sentences, each),
        f"{OURS}, all these unknown to its voters": left_out(sentences, [unknown]),
    }
    yield from unknown_table(sentences, {**ours, **alone, **fewer, **peers}, known, unknown.__contains__)
    one_only = frozenset((languages & known.either) - known.both)
    yield f"\n## Languages that one of the two knows: {', '.join(sorted(one_only))}\n"
    yield from unknown_table(sentences, {**ours, **peers}, known, one_only.__contains__)
    yield "\n## Mixed pages\n"
    told = answers([page.text for page in pages])
    said = {OURS: [one.language for one in told], **ask_pages(pages, arguments.peers_python)}
    yield from pages_tables(pages, said)
    wrong = pages_wrong(pages, said[OURS])
    letters = sum(max(page.letters, key=lambda one: page.letters[one]) == code for page, code in wrong)
    yield f"\nOf {len(wrong)} clear pages that {OURS} names wrongly, {letters} have most letters, if not characters, as it says.\n"
    yield from lines_tables(pages, told)
    yield "\n## Simplified and Traditional\n"
    chinese = chinese_texts(DATA)
    yield from forms_tables(chinese, DATA.parent / "bugcases")
    yield "\n## What was asked for\n"
    yield from head("what", "asked", "reached", "kept")
    for asked in reached(sentences, whole, known, pages, told, chinese):
        yield asked.row()
    if arguments.wrong:
        yield from wrong_cases(sentences, whole, known, pages, told)


def wrong_cases(
    sentences: Sequence[Sentence], ours: Sequence[Answer], known: Known, pages: Sequence[Page], told: Sequence[Answer]
) -> Iterator[str]:
    """Every long text of a known language, and every clear page, that is named wrongly."""
    yield "\n## Wrong: texts of 60 characters and more\n"
    for one, found in zip(sentences, ours, strict=True):
        if one.length >= 60 and one.language in known.both and found.language != one.language:
            yield f"{one.language} as {found.label} ({found.confidence:.2f}, {found.kind}): {one.text}"
    yield "\n## Wrong: pages\n"
    shares = {
        page.name: {code: round(part, 3) for code, part in one.shares.items()}
        for page, one in zip(pages, told, strict=True)
    }
    for page, code in pages_wrong(pages, [one.language for one in told]):
        counts = f"characters {dict(page.characters)}, letters {dict(page.letters)}"
        yield f"{page.name} {page.style} {page.pair}, {counts}: {code} {shares[page.name]}"
    yield "\n## Wrong: lines\n"
    for gold, label, text in line_score(pages, [one.lines for one in told]).wrong:
        yield f"{gold} as {label}: {text}"


def speed_report(arguments: argparse.Namespace) -> Iterator[str]:
    paths = sorted((DATA / "2_text").glob("crawl-*.jsonl.zst"))
    texts = [one["text"] for path in paths for one in read_rows(path)][:: arguments.every]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    results = measure_all(
        texts, FAST, arguments.peers_python, arguments.rounds, lambda line: print(line, file=sys.stderr)
    )
    yield f"## Speed over {len(texts):,} documents of `2_text`, {megabytes:.1f} MB, {arguments.rounds} rounds\n"
    yield from speed_table(results, megabytes)
    yield f"\nLoad at the end: {os.getloadavg()[0]:.1f}."


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--per-language", action="store_true", help="the long tables of --accuracy, and nothing else")
    parser.add_argument("--wrong", action="store_true", help="what is named wrongly too, with --accuracy")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--tools", nargs="*", default=["fastText", "langdetect", "py3langid", "lingua"])
    parser.add_argument("--peers-python", nargs="+", default=[], metavar="PATH", help="looked at after this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="every n-th document only, for speed")
    arguments = parser.parse_args()
    arguments.peers_python = [sys.executable, *arguments.peers_python]
    return arguments


def revision() -> str:
    """Of this tree, with a + if files were changed since."""
    command = ["git", "describe", "--always", "--dirty=+"]
    return subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def main() -> int:
    arguments = parse()
    memory = psutil.virtual_memory().total / 2**30
    print(f"# Language identification, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    machine = f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GB, Python {platform.python_version()}"
    print(f"{machine}; revision {revision()}; load {os.getloadavg()[0]:.1f} at the start.\n\n{NOTES}\n")
    for wanted, report in (
        (arguments.accuracy or arguments.per_language, accuracy_report),
        (arguments.speed, speed_report),
    ):
        if wanted:
            for line in report(arguments):
                print(line, flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
