"""Which masks a stream leaves out, from which step on: as they were asked for, and as a state tells.

A mask begins at a step, and at the number of sequences that the stream had read before it: the two go apart where the batch
size changed. The number is kept in the state, so that a restart needs nothing else to know where the order was cut.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenization.errors import TokenFileError
from tokenization.mask import Mask
from tokenization.reader import TokenFile

__all__ = ["Asked", "MaskSource", "Skip", "SkipSource", "begun", "open_skips", "resumed", "rows_of_files", "told_of"]

Numbers = npt.NDArray[np.int64]
MaskSource = str | os.PathLike[str] | Mask
SkipSource = MaskSource | tuple[int, MaskSource]


class Asked(NamedTuple):
    """A mask that a stream was made with."""

    step: int | None
    """None: from where the stream is when it first knows of the mask."""
    mask: Mask


class Skip(NamedTuple):
    """A mask, and where it begins."""

    step: int
    sequences: int
    """Sequences of the stream before that step."""
    mask: Mask


def open_skips(skip: MaskSource | Sequence[SkipSource], files: Sequence[TokenFile]) -> tuple[Asked, ...]:
    """The masks of a stream of some files.

    Raises:
        TokenFileError: a mask is none, damaged, or of another file.
        ValueError: a step is below 0.
    """
    several = [skip] if isinstance(skip, str | os.PathLike | Mask) else list(skip)
    asked: list[Asked] = []
    for one in several:
        step, source = one if isinstance(one, tuple) else (None, one)
        if step is not None and operator.index(step) < 0:
            raise ValueError(f"skip: a mask from step {step} on: expected 0 or more")
        mask = source if isinstance(source, Mask) else Mask.read(source)
        name = "the mask" if isinstance(source, Mask) else f"the mask {source}"
        if not any((file.seal, len(file)) == (mask.seal, mask.sequences) for file in files):
            seals = ", ".join(f"{file.path} ({file.seal[:16]}, {len(file):,} sequences)" for file in files)
            raise TokenFileError(
                f"{name} is of another token file (seal {mask.seal[:16]}, {mask.sequences:,} sequences) than {seals}: its "
                "numbers mean other sequences. Make it of this file, with `corpusmill mask`."
            )
        asked.append(Asked(None if step is None else operator.index(step), mask))
    return tuple(asked)


def rows_of_files(skips: Sequence[Skip], files: Sequence[TokenFile], *, each: bool) -> list[tuple[int, list[Numbers]]]:
    """What `Order.without` takes: for each mask, in the order of their places, the rows of each file.

    Args:
        each: whether something must be left of every file, as of those with a weight; else of all together.

    Raises:
        ValueError: nothing is left.
    """
    nothing = np.zeros(0, np.int64)
    found = [
        (skip.sequences, [skip.mask.rows if file.seal == skip.mask.seal else nothing for file in files])
        for skip in sorted(skips, key=lambda one: one.sequences)
    ]
    empty = [file for number, file in enumerate(files) if len(file) == _distinct([rows[number] for _, rows in found])]
    if empty and (each or len(empty) == len(files)):
        names = ", ".join(str(file.path) for file in empty)
        raise ValueError(
            f"skip: the masks leave nothing of {names}: every sequence is masked. Leave out the file, or the mask."
        )
    return found


def _distinct(parts: Sequence[Numbers]) -> int:
    """How many different numbers there are."""
    both = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
    return int(np.count_nonzero(both[1:] != both[:-1])) + 1 if len(both) else 0


def begun(asked: Sequence[Asked], batch_size: int) -> tuple[Skip, ...]:
    """Where the masks of a new stream begin."""
    return tuple(Skip(step or 0, (step or 0) * batch_size, mask) for step, mask in asked)


def resumed(
    asked: Sequence[Asked], state: Mapping[str, Any], batch_size: int, anchor: int, *, changed: bool
) -> tuple[Skip, ...]:
    """Where the masks of a stream begin that goes on from a state.

    Masks of the state begin where it says. Others begin at their step, which is not before the state's, or at the state's.

    Args:
        batch_size: of the stream that goes on.
        anchor: the step from which on every step has had that many sequences.
        changed: whether other masks may have been left out until then: ours count as if they always had been.

    Raises:
        ValueError: a mask of the state is missing, or another one begins before it.
    """
    step, sequences = operator.index(state["step"]), operator.index(state["sequences"])
    told = _told(state)
    found: list[Skip] = []
    for number, (wanted, mask) in enumerate(asked):
        known = next((one for one in told if one[2] == mask.digest and wanted in (None, one[0])), None)
        if known is not None:
            told.remove(known)
            first = known[1] if known[0] < step else sequences + (known[0] - step) * batch_size
            found.append(Skip(known[0], first, mask))
            continue
        at = step if wanted is None else wanted
        if at < step and not (changed and at >= anchor):
            raise ValueError(
                f"skip: mask {number} begins at step {at}, but the state was saved at step {step} without it: sequences "
                f"that it masks were read until then. Begin at step {step}, or name no step"
                + (f"; with changed=['skip'], at {anchor} or later." if changed else "; or pass changed=['skip'].")
            )
        found.append(Skip(at, sequences + (at - step) * batch_size, mask))
    if told and not changed:
        names = ", ".join(f"{digest[:16]} from step {at} on" for at, _, digest in told)
        raise ValueError(
            f"the state was saved with masks that this stream does not skip: {names}. It would go on with other sequences. "
            "Give them with skip=, or, if you mean it, pass changed=['skip']."
        )
    return tuple(found)


def told_of(skips: Sequence[Skip]) -> list[dict[str, Any]]:
    """Masks as a state holds them."""
    return [{"step": one.step, "sequences": one.sequences, "mask": one.mask.digest} for one in skips]


def _told(state: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    """Step, sequences before it and digest of the masks of a state; those that a version without masks saved have none."""
    try:
        told = [
            (operator.index(one["step"]), operator.index(one["sequences"]), str(one["mask"]))
            for one in state.get("skip", ())
        ]
    except (TypeError, KeyError) as error:
        raise ValueError(f"no state of a TokenStream: its masks are {state.get('skip')!r:.200}") from error
    if any(min(step, first) < 0 for step, first, _ in told):
        raise ValueError(f"a state with masks from {told[:5]} on: expected 0 or more")
    return told
