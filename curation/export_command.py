"""`corpusmill export`: its arguments, and which of the exports they mean. Imports what they need when they are meant."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import ConfigError

if TYPE_CHECKING:
    from curation.export_split import Portion
    from curation.pipeline import Pipeline

__all__ = ["add_export_arguments", "export", "portion_lines", "positive"]

log = logging.getLogger("corpusmill")


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return value


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Everything but the run."""
    files = parser.add_mutually_exclusive_group()
    files.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=".jsonl, .jsonl.gz, .jsonl.zst or .parquet; FOLDER/{language}.parquet: a file for each language",
    )
    files.add_argument("--signatures", type=Path, metavar="FILE", help="a signature index instead, an Arrow file")
    parser.add_argument(
        "--route",
        nargs="?",
        const="",
        metavar="NAME",
        help="documents that a filter set aside for the output NAME, instead of the kept ones; without NAME: list the names",
    )
    parser.add_argument(
        "--num-perm", type=positive, metavar="N", help="permutations of a signature (default: near.num_perm, or 128)"
    )


def export(pipeline: Pipeline, arguments: argparse.Namespace) -> Iterator[str]:
    """Do what the arguments say; yields what is to be printed.

    Raises:
        ConfigError: they do not go together, or name what is not there.
        RunError: the run is not done, or damaged.
    """
    if arguments.num_perm and not arguments.signatures:
        raise ConfigError("--num-perm is for --signatures: documents have no signature.")
    if arguments.signatures:
        if arguments.route is not None:
            raise ConfigError("--route is for --output: what is set aside has no signatures.")
        _signatures(pipeline, arguments.signatures, arguments.num_perm)
    elif arguments.output is not None:
        yield from _documents(pipeline, arguments.output, arguments.route)
    elif arguments.route is not None:
        yield from _routes(pipeline)
    else:
        raise ConfigError("export: say where to, with --output FILE or --signatures FILE; `--route` alone lists names.")


def _signatures(pipeline: Pipeline, output: Path, num_perm: int | None) -> None:
    from curation.dedup.index_file import export_signatures

    count = export_signatures(pipeline, output, num_perm)
    log.info("%d documents written to %s", count, output)


def _documents(pipeline: Pipeline, output: Path, route: str | None) -> Iterator[str]:
    from curation.export import check_format, export_selected, selection
    from curation.export_split import export_by_language, names_language

    by_language = names_language(output)
    check_format(output)
    if route == "":
        raise ConfigError("--route needs a NAME beside --output; `--route` without --output lists the names.")
    chosen = selection(pipeline, route)
    if by_language:
        portions = export_by_language(pipeline, output, chosen, {"run_id": pipeline.run.run_id, "route": route})
        yield from portion_lines(portions)
        count = sum(one.documents for one in portions)
    else:
        count = export_selected(pipeline, output, chosen)
    log.info("%d documents written to %s", count, output.parent if by_language else output)


def _routes(pipeline: Pipeline) -> Iterator[str]:
    """The names that the run's config sets documents aside for."""
    from curation.export import check_done
    from curation.routes import route_counts

    check_done(pipeline)
    counts = route_counts(pipeline.placed)
    if not counts:
        log.info("this run sets no document aside")
        return
    yield from _table([("output", "documents"), *((name, f"{n:,}") for name, n in counts.items())])


def portion_lines(portions: Sequence[Portion]) -> Iterator[str]:
    """A line for each language, most documents first, and their sum."""
    from curation.report.excerpt import quantity_of_bytes
    from curation.report.numbers import NBSP, share

    documents = sum(one.documents for one in portions)
    rows = [("language", "documents", "share", "text", "file")]
    for one in portions:
        part = share(one.documents, documents).replace(NBSP, " ")
        sizes = quantity_of_bytes(one.text_bytes), quantity_of_bytes(one.bytes)
        rows.append((one.language, f"{one.documents:,}", part, *sizes))
    total = [
        quantity_of_bytes(sum(sizes))
        for sizes in ((one.text_bytes for one in portions), (one.bytes for one in portions))
    ]
    rows.append((f"{len(portions)} in all", f"{documents:,}", "", total[0], total[1]))
    yield from _table(rows)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
