"""Scores texts with a language model of any engine: tokens, windows, batches, and the sums for each text.

An engine gives `BatchNats`: the sum of -ln p over the scored tokens of each row of a batch of token ids. All else, and so
what a number means, is the same for every engine.

Costs: those of the engine; beside it a few microseconds a window. Rows of one call are held as int32 token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.lm_batches import Shape, batches
from quality_models.lm_tokens import encode
from quality_models.windows import Window, WindowRule, windows_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["BatchNats", "TextNats", "judge_texts"]

Ids: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """A batch for an engine. ids: int32[rows, length]. first, stop: int64[rows], the positions whose tokens are scored,
    each by what stands before it; first is 1 or more, and stop is 1 in rows of padding, where nothing is."""

    ids: Ids
    first: Ints
    stop: Ints


BatchNats: TypeAlias = Callable[[Rows], Floats]
"""float64[rows]: sum of -ln p; nan or infinity where the model's numbers are."""


class TextNats(NamedTuple):
    """What a model says of each text; float64 or int64 [n_texts] each.

    nats: sum of -ln p over the scored tokens; nan where any of them is not finite. tokens: how many were scored.
    characters, bytes: what they say of the text, bytes in UTF-8. All are 0 for a text of which nothing can be scored.
    """

    nats: Floats
    tokens: Ints
    characters: Ints
    bytes: Ints


class _Task(NamedTuple):
    """One window of one text, with the ids that the model reads."""

    text: int
    ids: Ids
    first: int


def judge_texts(
    texts: Sequence[str], tokenizer: Tokenizer, rule: WindowRule, *, bos: int, allowed: Sequence[Shape], nats_of: BatchNats,
    threads: int,
) -> TextNats:  # fmt: skip
    """Score each text by a rule.

    bos: id of the token before text. allowed: shapes of batches. threads: batches computed at a time; the numbers do
    not depend on it.
    """
    tokens, characters, n_bytes = (np.zeros(len(texts), np.int64) for _ in range(3))
    tasks: list[_Task] = []
    for number, (ids, ends) in enumerate(encode(tokenizer, texts, parallel=threads > 1)):
        for window in windows_of(len(ids), rule):
            said = texts[number][ends[window.first - 1] if window.first else 0 : ends[window.stop - 1]]
            tokens[number] += window.stop - window.first
            characters[number] += len(said)
            n_bytes[number] += len(said.encode())
            tasks.append(_Task(number, *_row(ids, window, bos)))
    nats = np.zeros(len(texts))
    if tasks:
        # In the order of the text, so that the sum of a text's windows has the same last bits in every batch.
        for task, found in zip(tasks, _nats(tasks, allowed, nats_of, threads), strict=True):
            nats[task.text] += found
    nats[~np.isfinite(nats)] = np.nan
    return TextNats(nats, tokens, characters, n_bytes)


def _row(ids: Ids, window: Window, bos: int) -> tuple[Ids, int]:
    """What the model reads, and the first position that is scored."""
    before = np.full(int(window.bos), bos, np.int32)
    return np.concatenate([before, ids[window.start : window.stop]]), window.first - window.start + window.bos


def _nats(tasks: Sequence[_Task], allowed: Sequence[Shape], nats_of: BatchNats, threads: int) -> Floats:
    """float64[n_tasks]."""
    found = np.zeros(len(tasks))
    planned = list(batches([len(task.ids) for task in tasks], allowed))
    rows = (_rows([tasks[index] for index in batch.windows], batch.shape) for batch in planned)
    for batch, nats in zip(planned, _compute(nats_of, rows, threads), strict=True):
        found[batch.windows] = nats[: len(batch.windows)]
    return found


def _compute(nats_of: BatchNats, rows: Iterable[Rows], threads: int) -> Iterator[Floats]:
    """Each batch's numbers, in order."""
    if threads == 1:
        yield from map(nats_of, rows)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(nats_of, rows)


def _rows(tasks: Sequence[_Task], shape: Shape) -> Rows:
    """A batch of a shape; padding is token 0, which no scored position sees."""
    ids = np.zeros(shape, np.int32)
    first, stop = np.ones(shape.rows, np.int64), np.ones(shape.rows, np.int64)
    for row, task in enumerate(tasks):
        ids[row, : len(task.ids)] = task.ids
        first[row], stop[row] = task.first, len(task.ids)
    return Rows(ids, first, stop)
