"""What a tokenizer's vocabulary says about itself: which tokens are parts of characters, and which scripts it has letters of.

    opened = open_tokenizer("default", None)
    opened.is_part[ids]                 # bool: the token is no whole character
    opened.knows("zho_Hans")            # True: it has thousands of Chinese characters

Costs what loading a tokenizer costs, once a process, and 0.1 s for 100,000 tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.language.scripts import SCRIPT_CODES
from curation.text import Script, buffers, script_counts
from tokenization.errors import TokenizerError

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

__all__ = ["Opened", "open_tokenizer"]

REPLACEMENT = "\ufffd"
"""What decoding gives for bytes that are no whole character."""

LEAST_LETTERS = 15
"""Letters of a script that stand whole in some token, from which on the tokenizer knows the script. With so many, text of
the script has at most some 0.6 of its tokens as parts of characters (tried with five tokenizers on 75 languages)."""
LEAST_OF: Mapping[Script, int] = {
    Script.HAN: 500,
    Script.YI: 400,
    Script.HANGUL: 200,
    Script.ETHIOPIC: 100,
    Script.CANADIAN_ABORIGINAL: 100,
    Script.VAI: 100,
}
"""The same for scripts with many letters: GPT-2 has 41 Chinese characters, Mistral's first one 1,456, ours 2,247."""

_SEVERAL: Mapping[str, tuple[Script, ...]] = {
    "Hani": (Script.HAN,),
    "Hans": (Script.HAN,),
    "Hant": (Script.HAN,),
    "Jpan": (Script.HAN, Script.HIRAGANA, Script.KATAKANA),
    "Kore": (Script.HANGUL,),
    "Hang": (Script.HANGUL,),
    "Hira": (Script.HIRAGANA,),
    "Kana": (Script.KATAKANA,),
    "Bopo": (Script.BOPOMOFO,),
}
"""Scripts that a label's code stands for, where they are several or have other names."""
_OF_CODE: Mapping[str, tuple[Script, ...]] = {code: (script,) for script, code in SCRIPT_CODES.items()} | dict(_SEVERAL)


@dataclass(frozen=True)
class Opened:
    """A tokenizer, and what its vocabulary says.

    is_part: bool[max_id + 1]
    letters: int64[n_scripts]   letters of each script that stand whole in some token
    """

    tokenizer: Tokenizer
    is_part: npt.NDArray[np.bool_]
    letters: npt.NDArray[np.int64]

    def knows(self, label: str) -> bool:
        """Whether it has the letters of a label's script; False for `und` and for codes of no known script."""
        scripts = _OF_CODE.get(label.partition("_")[2], ())
        return bool(scripts) and all(self.letters[s] >= LEAST_OF.get(s, LEAST_LETTERS) for s in scripts)


def open_tokenizer(name_or_path: str, eos: str | None) -> Opened:
    """Load a tokenizer, once a process unless its file changes.

    Raises:
        ConfigError: it cannot be loaded, or has no such token.
    """
    path = Path(name_or_path)
    changed = max((file.stat().st_mtime_ns for file in ([path] if path.is_file() else path.glob("*"))), default=0)
    return _open(name_or_path, eos, changed)


@lru_cache(maxsize=4)
def _open(name_or_path: str, eos: str | None, changed: int) -> Opened:
    from tokenization.tokenizer import load_tokenizer

    try:
        tokenizer = load_tokenizer(name_or_path, eos=eos)
    except TokenizerError as error:
        raise ConfigError(f"step token_fit: tokenizer: {error}") from error
    tokens = [tokenizer.decode([index]) for index in range(tokenizer.max_id + 1)]
    suspects = [index for index, token in enumerate(tokens) if REPLACEMENT in token]
    # The character itself may be a token, or several of it: then it is what that text is encoded as.
    ids, lengths = tokenizer.encode_batch([tokens[index] for index in suspects])
    rows = np.split(ids, np.cumsum(lengths)[:-1]) if suspects else []
    is_part = np.zeros(len(tokens), np.bool_)
    is_part[[index for index, row in zip(suspects, rows, strict=True) if row.tolist() != [index]]] = True
    characters = sorted(
        {character for token, part in zip(tokens, is_part, strict=True) if not part for character in token}
    )
    found = script_counts(*buffers(pa.array(characters, pa.large_string())))
    return Opened(tokenizer, is_part, (found > 0).sum(axis=0).astype(np.int64))
