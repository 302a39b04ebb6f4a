"""How the commands of the command line are parsed: their form, and the words for wrong use."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn, TypeAlias

__all__ = ["Commands", "Parser", "command"]


class Parser(argparse.ArgumentParser):
    """argparse with the nearest known command in its error."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"corpusmill: {message}\nSee `{self.prog} --help`.\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def command(commands: Commands, name: str, summary: str, examples: str) -> Parser:
    """Add a command.

    Args:
        summary: begins in lower case, without a full stop.
        examples: a line each.
    """
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
