"""Which tokens of a document a language model of bounded length scores, and what it sees before each of them.

The rule, for a model that is given at most `window` tokens at a time:

- The document's tokens are cut into windows. The first begins at the document's first token; each later one scores the
  next `stride` tokens (the last one what is left) and sees the tokens before them as context. So each token is scored
  exactly once, by the first window that reaches it.
- `bos` says which windows begin with a token for the beginning of text (the tokenizer's BOS, else its EOS: GPT-2 was
  trained with <|endoftext|> between documents). It takes one of the window's places and is never scored.
- Each token but those of the first window has at least `window - stride` tokens before it, the BOS among them.
- With bos `none` nothing stands before a document's first token, which is then not scored.
- A document with more than `max_windows` windows is judged by that many of them: the first, the last, and those between
  at even steps. Which ones depends on the number of tokens only.

With `every_window` no window differs from the first in how it begins, so a text gets nearly the same perplexity however
it is cut; without, later windows begin inside of a sentence at a place for which the model never saw such a beginning.
The sliding window itself is that of Hugging Face's "Perplexity of fixed-length models"
(huggingface.co/docs/transformers/perplexity), which knows no BOS and scores the first token of no text.

Costs: arithmetic per window. A long text makes the model read window / stride times its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["BosRule", "Window", "WindowRule", "character_ends", "windows_of"]

BosRule: TypeAlias = Literal["every_window", "document", "none"]


@dataclass(frozen=True)
class WindowRule:
    """How a document is cut into windows. Lengths are in tokens; `window` counts the BOS.

    Raises ValueError for a rule that cannot be: a window of less than two tokens, a stride that leaves no place for
    context, no window at all.
    """

    window: int = 1024
    stride: int = 768
    bos: BosRule = "every_window"
    max_windows: int = 8

    def __post_init__(self) -> None:
        if self.bos not in get_args(BosRule):
            raise ValueError(f"bos: expected one of {', '.join(get_args(BosRule))}, found {self.bos!r}")
        if self.window < 2:
            raise ValueError(f"window: expected 2 tokens or more, found {self.window}: nothing would have a context")
        if not 1 <= self.stride < self.window:
            raise ValueError(
                f"stride: expected 1 to {self.window - 1}, less than the window of {self.window} tokens, "
                f"found {self.stride}; half or three quarters of the window are usual"
            )
        if self.max_windows < 1:
            raise ValueError(f"max_windows: expected 1 or more, found {self.max_windows}")


class Window(NamedTuple):
    """Tokens `start` to `stop` of a document are given to the model, after a BOS if `bos`; those from `first` on count."""

    start: int
    first: int
    stop: int
    bos: bool

    @property
    def length(self) -> int:
        """Tokens that the model reads."""
        return self.stop - self.start + self.bos


def windows_of(n_tokens: int, rule: WindowRule) -> list[Window]:
    """The windows of a document of `n_tokens` tokens, in order; none if none of its tokens can be scored."""
    begins = rule.bos != "none"
    reach = rule.window - begins
    if n_tokens < (1 if begins else 2):
        return []
    later = max(0, -(-(n_tokens - reach) // rule.stride))
    again = rule.bos == "every_window"
    context = rule.window - rule.stride - again
    windows = []
    for index in spread(1 + later, rule.max_windows):
        if index == 0:
            windows.append(Window(0, 0 if begins else 1, min(n_tokens, reach), begins))
        else:
            first = reach + (index - 1) * rule.stride
            windows.append(Window(first - context, first, min(n_tokens, first + rule.stride), again))
    return windows


def spread(count: int, most: int) -> list[int]:
    """`most` of the numbers below `count`, at even steps, with the first and the last; all if they are no more."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0]
    return [(2 * index * (count - 1) + most - 1) // (2 * (most - 1)) for index in range(most)]


def character_ends(stops: Sequence[int] | npt.NDArray[np.int64], n_characters: int) -> npt.NDArray[np.int64]:
    """int64[n_tokens]: up to which character a text is said once each token is; it never falls, and ends at the whole text.

    stops: where each token's own characters end. A character belongs to the first token that reaches it, though bytes
    of it may be in the next ones; characters between two tokens (blanks that the tokenizer leaves out) to the later
    token, and those after the last one to the last.
    """
    ends = np.maximum.accumulate(np.asarray(stops, np.int64))
    if len(ends):
        ends[-1] = n_characters
    return ends
