"""`corpusmill parity`: does a tokenizer give the ids of a token file, or of the trainer's tokenizer?

Exit code 0: equal; 1: different, with the first text and token, both ids and the likely cause; 2: wrong use.
Costs some seconds: loading, the probe texts, and the texts that are given (1 to 3 MB/s).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError, RunError
from curation.export_command import positive
from tokenization.errors import TokenFileError, TokenizerError

if TYPE_CHECKING:
    from tokenization.layout import Header
    from tokenization.parity import GoldenCheck
    from tokenization.parity.check import ParityReport
    from tokenization.parity.tally import Text
    from tokenization.tokenizer import Tokenizer

__all__ = ["add_parity"]

DEFAULT_LIMIT = 2_000


def add_parity(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "hold a tokenizer against a token file, or against the trainer's tokenizer"
    parser = commands.add_parser(
        "parity",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n"
        "  corpusmill parity tokenizer.json out/runs/web-20260520-142322-8c4a/pack/tokens.arrow\n"
        "  corpusmill parity tokenizer.json --trainer model/                  as transformers loads the folder\n"
        "  corpusmill parity tokenizer.json --trainer model/ --bos '<s>' --text sample.jsonl --limit 500\n"
        "  corpusmill parity tokenizer.json                                   against the library that reads the file",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tokenizer", metavar="TOKENIZER", help="as pack.tokenizer: default, tokenizer.json, a folder, a .model ..."
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="a token file: its golden ids and fingerprint"
    )
    parser.add_argument(
        "--trainer", metavar="PATH", help="the trainer's tokenizer: a folder, tokenizer.json, a .model ..."
    )
    parser.add_argument(
        "--text",
        nargs="+",
        metavar="FILE",
        help="compare on these texts too: JSON lines, parquet, Arrow, WARC, .txt, or the folder of a finished run",
    )
    parser.add_argument(
        "--limit", type=positive, default=DEFAULT_LIMIT, metavar="N", help=f"texts at most ({DEFAULT_LIMIT:,})"
    )
    parser.add_argument("--eos", metavar="TOKEN", help="what ends a document (as the file, or the tokenizer, says)")
    parser.add_argument("--bos", metavar="TOKEN", help="what begins a document (as the file says; else nothing)")
    parser.add_argument(
        "--embedding-rows", type=positive, metavar="N", help="rows of the trainer's embedding (its config.json's)"
    )
    parser.add_argument("--json", action="store_true", help="print all that was found as JSON")
    parser.set_defaults(function=_parity)


def _parity(arguments: argparse.Namespace) -> int:
    header = None if arguments.file is None else _header(arguments.file)
    found: dict[str, Any] = {"equal": True}
    lines: list[str] = []
    if header is not None:
        _against_file(arguments, header, found, lines)
    if header is None or arguments.trainer or arguments.text:
        _against_tokenizer(arguments, header, found, lines)
    _show(found if arguments.json else None, lines)
    return 0 if found["equal"] else 1


def _header(file: Path) -> Header:
    from tokenization.reader import TokenFile

    if not file.is_file():
        raise ConfigError(f"parity: {file}: expected a token file, found {'a folder' if file.is_dir() else 'nothing'}.")
    try:
        return TokenFile(file).metadata
    except TokenFileError as error:
        raise RunError(str(error)) from error


def _load(arguments: argparse.Namespace, header: Header | None) -> Tokenizer:
    """The tokenizer as the pipeline loads it, with the file's BOS and EOS where nothing else is said."""
    from tokenization.tokenizer import load_tokenizer

    card = None if header is None else header.tokenizer
    eos = arguments.eos if arguments.eos is not None or card is None else card.eos
    bos = arguments.bos if arguments.bos is not None or card is None else card.bos
    return load_tokenizer(arguments.tokenizer, eos=eos, bos=bos)


def _against_file(arguments: argparse.Namespace, header: Header, found: dict[str, Any], lines: list[str]) -> None:
    """Golden ids, and the fingerprint if the pipeline can load the tokenizer."""
    from tokenization.parity import check_golden
    from tokenization.parity.trainers import load_trainer

    card, fingerprint, why = header.tokenizer, None, ""
    try:
        ours = _load(arguments, header)
        fingerprint = ours.fingerprint()
        golden = check_golden(
            lambda text: ours.encode_batch([text])[0].tolist(),
            header,
            decode=ours.decode,
            vocab_size=ours.vocab_size,
            library=ours.card().library,
        )
    except TokenizerError as error:
        # Perhaps it only lacks the file's EOS: then it is another tokenizer, and the golden ids say where.
        why = str(error)
        try:
            theirs = load_trainer(arguments.tokenizer)
        except TokenizerError:
            raise ConfigError(f"parity: {why}") from error
        golden = check_golden(
            lambda text: theirs.loaded([text])[0],
            header,
            decode=theirs.decode,
            vocab_size=theirs.vocab_size,
            library=theirs.how,
        )
    same = fingerprint == card.fingerprint
    found["equal"] &= golden.equal and same
    found["file"] = {"golden": _golden_json(golden), "fingerprint": fingerprint, "expected": card.fingerprint}
    lines.append(f"{'equal' if golden.equal else 'DIFFERENT'}: {golden.message()}")
    lines += [f"  note: {note}" for note in golden.notes]
    if why:
        lines.append(f"DIFFERENT: it cannot take the file's place: {why}")
    elif same:
        lines.append(f"equal: fingerprint {card.fingerprint[:16]}..., of tokenizer {card.name!r}")
    else:
        lines.append(
            f"DIFFERENT: fingerprint {str(fingerprint)[:16]}..., and the file has {card.fingerprint[:16]}... (tokenizer {card.name!r}, "
            f"{card.library}): {_why_other(golden, header)}"
        )


def _why_other(golden: GoldenCheck, header: Header) -> str:
    if not golden.equal:
        return "it is another tokenizer."
    return (
        "its golden ids are equal, and something that changes other ids is not: a rare merge, an added token, EOS "
        f"{header.tokenizer.eos!r} or BOS {header.tokenizer.bos!r}. Compare the two files."
    )


def _golden_json(golden: GoldenCheck) -> dict[str, Any]:
    from dataclasses import asdict

    return {"equal": golden.equal, **asdict(golden)}


def _against_tokenizer(
    arguments: argparse.Namespace, header: Header | None, found: dict[str, Any], lines: list[str]
) -> None:
    """The trainer's tokenizer, or else the library that reads the tokenizer's own file."""
    from curation.pack_config import PackConfig
    from curation.parity import compare, reference_for

    try:
        ours = _load(arguments, header)
        config = PackConfig(tokenizer=arguments.tokenizer, eos=ours.eos, bos=ours.bos, trainer=arguments.trainer)
        report = compare(
            ours,
            reference_for(arguments.trainer or arguments.tokenizer, named=arguments.trainer is not None),
            _texts(arguments),
            config,
            embedding_rows=arguments.embedding_rows,
        )
    except TokenizerError as error:
        raise ConfigError(f"parity: {error}") from error
    found["equal"] &= report.equal
    found["comparison"] = report.to_json()
    lines += _report_lines(report, arguments.trainer)


def _report_lines(report: ParityReport, trainer: str | None) -> Iterator[str]:
    how = "no library" if report.reference is None else report.reference["how"]
    against = f"{trainer} by {how}" if trainer else f"its own file by {how}"
    documents = report.documents
    compared = f"{report.probes['texts']:,} probe texts and {documents['documents']:,} texts"
    if report.equal:
        yield f"equal: {against}, on {compared}"
    for problem in report.problems:
        yield f"DIFFERENT ({problem.check}): {problem.message}"
    if not report.equal:
        yield f"  compared: {against}, on {compared}"
    if documents["documents"]:
        yield (
            f"  {documents['tokens']:,} tokens, {documents['tokens_per_character']:.3f} a character; "
            f"{documents['unk_share']:.4%} unknown; {documents['lost_share']:.4%} of the characters do not come back"
        )
    for note in report.notes:
        yield f"  note: {note}"


def _texts(arguments: argparse.Namespace) -> Iterator[list[Text]]:
    """The texts that were given, a hundred at a time."""
    from curation.parity import MOST_CHARACTERS
    from curation.train_ngram_command import training_texts
    from tokenization.parity.tally import Text

    if not arguments.text:
        return
    given = islice(training_texts(arguments.text), arguments.limit)
    named = (Text(f"text {number}", text[:MOST_CHARACTERS], None) for number, text in enumerate(given, 1))
    while batch := list(islice(named, 100)):
        yield batch


def _show(found: dict[str, Any] | None, lines: list[str]) -> None:
    from curation.terminal import printable

    if found is not None:
        print(json.dumps(found, indent=1))
        return
    for line in lines:
        print(printable(line))
