"""N-gram models of characters as ARPA files, which KenLM, SRILM and others read and write.

A token is one character; a blank is `▁` (U+2581), any other character `<unk>`. What a model of ours does not know is
in no n-gram but that one, so one ARPA model is one file of ours and back again. Logarithms are to base 10 there.

To use a model that KenLM's `lmplz` trained over characters, normalise the text as ours is (see
curation.filters.perplexity.ngram_text), put a blank between any two characters and `▁` for a blank. N-grams with the
marks `<s>` and `</s>` of a line's begin and end are passed over, since we have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np
import numpy.typing as npt

from quality_models.ngram_smoothing import Estimated, Grams

__all__ = ["BLANK_TOKEN", "UNKNOWN_TOKEN", "read_arpa", "tokens_of", "write_arpa"]

BLANK_TOKEN, UNKNOWN_TOKEN = "▁", "<unk>"
MARKS = ("<s>", "</s>")
NEVER = -99.0
ROUNDED = 1e-4
"""Above 0, what a logarithm of 1 may be written as."""
LN_10 = math.log(10)
Gram = tuple[str, ...]


def tokens_of(characters: npt.NDArray[np.uint32]) -> list[str]:
    """The token of each number of a model: `<unk>` first."""
    return [UNKNOWN_TOKEN, *(BLANK_TOKEN if code == ord(" ") else chr(code) for code in characters.tolist())]


def write_arpa(model: Estimated, path: Path) -> None:
    """Write a model, with the marks of begin and end that readers expect, which nothing ever gives a probability.

    Raises ValueError where a character that ARPA cannot hold (a control character, or U+2581 itself) is listed.
    """
    tokens = tokens_of(model.characters)
    wrong = [token for token in tokens[1:] if token.isspace() or (token == BLANK_TOKEN and tokens.count(token) > 1)]
    if wrong:
        raise ValueError(
            f"{path}: expected characters that are no separators, found {wrong[0]!r}: ARPA has no place for it"
        )
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n")
        for n, grams in enumerate(model.grams, 1):
            file.write(f"ngram {n}={len(grams.last) + (len(MARKS) if n == 1 else 0)}\n")
        names: list[str] = [""]
        for n, grams in enumerate(model.grams, 1):
            file.write(f"\n\\{n}-grams:\n")
            if n == 1:
                file.writelines(f"{NEVER}\t{mark}\t0\n" for mark in MARKS)
            names = [
                f"{names[prefix]} {tokens[last]}".lstrip(" ")
                for prefix, last in zip(grams.prefix.tolist(), grams.last.tolist(), strict=True)
            ]
            _write_grams(file, names, grams, n < model.order)
        file.write("\n\\end\\\n")


def _write_grams(file: TextIO, names: list[str], grams: Grams, with_backoff: bool) -> None:
    rows = zip((grams.log_p / LN_10).tolist(), names, (grams.log_backoff / LN_10).tolist(), strict=True)
    for p, name, backoff in rows:
        file.write(f"{p:.7g}\t{name}\t{backoff:.7g}\n" if with_backoff else f"{p:.7g}\t{name}\n")


def read_arpa(path: Path) -> Estimated:
    """The model in an ARPA file over characters.

    Raises ValueError for a file that is none, whose tokens are no single characters, or whose n-grams begin or end
    with n-grams that are not listed.
    """
    try:
        levels = list(_levels(path))
    except UnicodeDecodeError as error:
        _fail(path, 0, f"expected text in UTF-8, found a byte {error.object[error.start]:#x}; write the model in UTF-8")
    if not levels:
        _fail(path, 1, "expected \\data\\ and \\1-grams:, found neither; it is no ARPA file")
    blank_and_marks = {UNKNOWN_TOKEN, *MARKS}
    for (token,) in levels[0]:
        if len(token) != 1 and token not in blank_and_marks:
            _fail(
                path,
                0,
                f"expected tokens of one character, found {token!r}; train on text with a blank between any two",
            )
    codes = sorted(
        ord(" " if token == BLANK_TOKEN else token) for (token,) in levels[0] if token not in blank_and_marks
    )
    characters = np.array(codes, np.uint32)
    numbers = {token: number for number, token in enumerate(tokens_of(characters))}
    if (UNKNOWN_TOKEN,) not in levels[0]:
        levels[0][UNKNOWN_TOKEN,] = (NEVER, 0.0)
    rows: dict[Gram, int] = {}
    grams: list[Grams] = []
    for n, level in enumerate(levels, 1):
        listed = [gram for gram in level if not any(mark in gram for mark in MARKS)]
        if n == 1:
            listed.sort(key=lambda gram: numbers[gram[0]])
        values = np.array([level[gram] for gram in listed]).reshape(-1, 2) * LN_10
        try:
            prefix = [rows[gram[:-1]] if n > 1 else 0 for gram in listed]
            suffix = [rows[gram[1:]] if n > 1 else 0 for gram in listed]
        except KeyError as error:
            _fail(path, 0, f"expected every n-gram to begin and end with listed ones, found {error.args[0]!r} missing")
        last = np.array([numbers[gram[-1]] for gram in listed], np.int64)
        grams.append(Grams(np.array(prefix, np.int64), np.array(suffix, np.int64), last, values[:, 0], values[:, 1]))
        rows = {gram: row for row, gram in enumerate(listed)}
    return Estimated(characters, grams)


def _levels(path: Path) -> Iterator[dict[Gram, tuple[float, float]]]:
    """For each order n-grams with log10 p and log10 back-off."""
    n = 0
    level: dict[Gram, tuple[float, float]] = {}
    told: dict[str, str] = {}
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            text = line.strip("\r\n")
            if text.endswith("-grams:") and text.startswith("\\"):
                if n:
                    yield _whole(path, number, level, told.get(str(n)))
                n, level = n + 1, {}
                if text != f"\\{n}-grams:":
                    _fail(path, number, f"expected \\{n}-grams:, found {text!r}")
            elif text == "\\end\\":
                if n:
                    yield _whole(path, number, level, told.get(str(n)))
                return
            elif not n and text.startswith("ngram "):
                order, _, count = text.removeprefix("ngram ").partition("=")
                told[order.strip()] = count.strip()
            elif n and text:
                level.update([_gram(path, number, text, n)])
    if n:
        _fail(path, number, "expected \\end\\, found the end of the file; it is cut off")


def _whole(
    path: Path, number: int, level: dict[Gram, tuple[float, float]], told: str | None
) -> dict[Gram, tuple[float, float]]:
    """The n-grams of an order, as many as the head of the file tells, if it does."""
    if told is not None and told != str(len(level)):
        _fail(
            path, number, f"expected {told} different n-grams before this line, found {len(level):,}; it is not whole"
        )
    return level


def _gram(path: Path, number: int, text: str, n: int) -> tuple[Gram, tuple[float, float]]:
    parts = text.split("\t") if "\t" in text else text.split(" ")
    gram = tuple(parts[1].split(" ")) if "\t" in text and len(parts) > 1 else tuple(parts[1 : n + 1])
    rest = parts[2:] if "\t" in text else parts[n + 1 :]
    try:
        values = [float(part) for part in (parts[0], *(rest or ["0"]))]
    except ValueError:
        _fail(path, number, f"expected log10 p, {n} tokens and a back-off weight, found {text[:60]!r}")
    if len(gram) != n or len(values) != 2 or not all(map(math.isfinite, values)):
        _fail(path, number, f"expected log10 p, {n} tokens and a back-off weight, found {text[:60]!r}")
    if values[0] > ROUNDED:
        _fail(path, number, f"expected log10 of a probability, which is 0 at most, found {parts[0]}")
    return gram, (values[0], values[1])


def _fail(path: Path, number: int, problem: str) -> NoReturn:
    place = f"{path}, line {number:,}" if number else str(path)
    raise ValueError(f"{place}: {problem}")
