"""`corpusmill train-ngram`: an n-gram model for the filter `perplexity`, from texts of one's own.

Reads what a run would read (JSON lines, parquet, Arrow, WARC), the kept documents of a finished run, or plain text; up
to 40 million characters, all in one process: some four minutes and 4 GB for as many, a few seconds for a million.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import ConfigError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["add_train_ngram", "training_texts"]

log = logging.getLogger("corpusmill")

BATCH_CHARACTERS = 1 << 20
FEWEST_CHARACTERS = 10_000
PLAIN = ".txt"
DEFAULT_ORDER, DEFAULT_MEGABYTES = 6, 4.0


LEAST_MB, MOST_MB = 0.05, 1000.0
"""Megabytes of a model: with less there is room for single characters only."""


def add_train_ngram(commands: Any) -> None:
    """The command's arguments; `commands` is what `add_subparsers` returned."""
    summary = "train an n-gram model of a language, for the filter perplexity"
    parser = commands.add_parser(
        "train-ngram",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n"
        "  corpusmill train-ngram --language fra --input books/*.jsonl.zst --output fra.bin\n"
        "  corpusmill train-ngram --language fra --input out/runs/good-20260520-142322-8c4a --output fra.bin\n"
        "  corpusmill run web --input crawl/ --root out --set perplexity.model.fra=fra.bin",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--language", metavar="CODE", help="ISO 639-3, as `fra`, or a label, as `zho_Hant`")
    parser.add_argument(
        "--input",
        nargs="+",
        metavar="TEXT",
        help="JSON lines, parquet, Arrow or WARC, as for `run`; plain text (.txt); or the folder of a finished run",
    )
    parser.add_argument("--from-arpa", type=Path, metavar="FILE", help="instead of texts: a model in ARPA, as of KenLM")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the model")
    parser.add_argument("--order", type=int, default=DEFAULT_ORDER, metavar="N", help="characters of an n-gram (6)")
    parser.add_argument("--max-mb", type=float, default=DEFAULT_MEGABYTES, metavar="MB", help="size of the file (4)")
    parser.add_argument(
        "--text-column", default="text", metavar="NAME", help="field or column that holds the text (text)"
    )
    parser.add_argument("--arpa", type=Path, metavar="FILE", help="write the model as ARPA too, before it is rounded")
    parser.set_defaults(function=_train_ngram)


def _train_ngram(arguments: argparse.Namespace) -> int:
    from quality_models.arpa import read_arpa, write_arpa
    from quality_models.ngram_file import pack, write_ngram

    if not arguments.language:
        raise ConfigError("train-ngram: say which language the texts are in, with --language (ISO 639-3, as `fra`).")
    language = _language(arguments.language)
    if bool(arguments.input) == bool(arguments.from_arpa):
        raise ConfigError("train-ngram: give either texts, with --input, or a model, with --from-arpa.")
    if not LEAST_MB <= arguments.max_mb <= MOST_MB:
        raise ConfigError(f"--max-mb {arguments.max_mb:g}: expected a number from {LEAST_MB:g} to {MOST_MB:g}.")
    for path in (arguments.output, arguments.arpa):
        if path is not None and path.exists() and not path.is_file():
            raise ConfigError(
                f"{path} is no regular file, and writing there would replace it. Give the name of a file."
            )
    try:
        if arguments.from_arpa:
            model, facts = read_arpa(arguments.from_arpa), {"source": arguments.from_arpa.name}
        else:
            model, facts = _trained(arguments, language)
        if arguments.arpa:
            write_arpa(model, arguments.arpa)
        from curation.filters.perplexity.ngram_text import NORMALISATION

        packed = pack(model, language, NORMALISATION, facts)
    except ValueError as error:
        raise InputError(str(error)) from error
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    written = write_ngram(packed, arguments.output)
    counts = ", ".join(f"{len(grams.last):,}" for grams in model.grams)
    log.info(
        "%s: %s bytes, n-grams of 1 to %d characters: %s; checksum %s",
        arguments.output,
        f"{arguments.output.stat().st_size:,}",
        model.order,
        counts,
        written.checksum[:12],
    )
    return 0


def _language(name: str) -> str:
    """The code or label by which the filter looks for a model: `en` is `eng`. Raises ConfigError for none."""
    from pydantic import TypeAdapter, ValidationError

    from curation.filters.perplexity.config import LimitKey

    try:
        found: str = TypeAdapter(LimitKey).validate_python(name)
    except ValidationError as error:
        raise ConfigError(f"--language: {error.errors()[0]['msg'].removeprefix('Value error, ')}.") from error
    return found


def _trained(arguments: argparse.Namespace, language: str) -> tuple[Any, dict[str, Any]]:
    """The model of the texts, and the facts that stand in its file."""
    import numpy as np

    from curation.text import Script
    from quality_models.ngram_training import MOST_CHARACTERS, train

    codes: list[npt.NDArray[np.uint32]] = []
    offsets: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
    letters = np.zeros(len(Script), np.int64)
    total = 0
    for batch in _batches(training_texts(arguments.input, arguments.text_column)):
        found, ends, counted = _normalised(batch)
        room = MOST_CHARACTERS - total
        codes.append(found[:room])
        offsets.append(np.minimum(ends[1:], room) + total)
        letters += counted
        total += len(codes[-1])
        if len(found) > room:
            log.warning("read %s characters, which is enough; the rest of the texts is left out", f"{total:,}")
            break
    if total < FEWEST_CHARACTERS:
        raise ValueError(f"expected at least {FEWEST_CHARACTERS:,} characters of text to train on, found {total:,}")
    all_offsets = np.concatenate(offsets)
    model = train(
        np.concatenate(codes), all_offsets, order=arguments.order, most_bytes=int(arguments.max_mb * 1_000_000)
    )
    shares = letters / max(int(letters.sum()), 1)
    facts: dict[str, Any] = {
        "characters": total,
        "documents": len(all_offsets) - 1,
        "labels": [language] if "_" in language else [],
        "scripts": {script.name.lower(): round(float(shares[script]), 6) for script in Script if letters[script]},
        "ngrams": [len(grams.last) for grams in model.grams],
    }
    return model, {key: value for key, value in facts.items() if value != []}


def _normalised(texts: list[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Normalised characters, offsets, and letters of each script."""
    import pyarrow as pa

    from curation.filters.perplexity.ngram_text import normal_characters
    from curation.text import buffers, script_counts

    data, offsets = buffers(pa.array(texts, pa.large_string()))
    codes, ends = normal_characters(data, offsets)
    return codes, ends, script_counts(data, offsets).sum(axis=0)


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """Texts together, about a million characters at a time."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def training_texts(inputs: Sequence[str], text_column: str = "text") -> Iterator[str]:
    """The texts of inputs, in their order: of runs the kept documents, of plain files the paragraphs.

    Raises:
        InputError: an input is not there, or nothing can be read in any.
        RunError: a run is not done.
    """
    from curation.pipeline import Pipeline
    from curation.run import Run

    others: list[str] = []
    for one in inputs:
        path = Path(one)
        if (path / "run.json").is_file():
            yield from _kept(Pipeline(Run.find(path)))
        elif path.suffix.lower() == PLAIN and path.is_file():
            yield from _paragraphs(path)
        else:
            others.append(one)
    if others:
        yield from _read(others, text_column)


def _kept(pipeline: Any) -> Iterator[str]:
    from curation.export import kept_batches

    batch: pa.RecordBatch
    for batch in kept_batches(pipeline, ("text",)):
        yield from batch.column("text").to_pylist()


def _paragraphs(path: Path) -> Iterator[str]:
    """Parts of a plain text between empty lines; a part of a million characters is cut, so that none fills the memory."""
    lines: list[str] = []
    size = 0
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            if line.strip():
                lines.append(line)
                size += len(line)
            if lines and (size >= BATCH_CHARACTERS or not line.strip()):
                yield "".join(lines)
                lines, size = [], 0
    if lines:
        yield "".join(lines)


def _read(inputs: Sequence[str], text_column: str) -> Iterator[str]:
    """The documents that a run would ingest; what is damaged is counted and said."""
    from curation.ingest.config import IngestConfig
    from curation.ingest.part import READERS
    from curation.ingest.plan import plan_inputs
    from curation.ingest.record import Document, SliceReport

    config = IngestConfig(text_column=text_column)
    damaged = 0
    for part in plan_inputs(inputs, config).parts:
        for piece in part.slices:
            for record in READERS[piece.kind](piece, config, SliceReport()):
                if isinstance(record, Document):
                    yield record.text
                else:
                    damaged += 1
    if damaged:
        log.warning("%s records could not be read, and are left out", f"{damaged:,}")
