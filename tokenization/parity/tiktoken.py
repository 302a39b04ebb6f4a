"""Lists of ranks by the library `tiktoken`: the file's own engine, beside the equal tokenizer.json that the pipeline uses.

How text is split and which special tokens there are stands in no such file; it is the pipeline's (`formats.tiktoken`).
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenization.engines.round_trip import byte_alphabet
from tokenization.errors import TokenizerError
from tokenization.formats.known import Recipe
from tokenization.formats.source import recipe_beside
from tokenization.formats.tiktoken import convert_tekken, recipe_for
from tokenization.parity.ids import Ids
from tokenization.parity.trainers import MissingLibraryError, TrainerTokenizer

__all__ = ["load_ranks", "load_tekken"]


class _Tiktoken(TrainerTokenizer):
    """An `Encoding`, called as trainers do: text that spells a special token is text."""

    def __init__(self, ranks: Mapping[bytes, int], recipe: Recipe, file: Path) -> None:
        if find_spec("tiktoken") is None:
            raise MissingLibraryError(f"{file}: the package tiktoken, which a trainer reads it with, is not installed.")
        import tiktoken

        special = dict(recipe.special)
        try:
            self._encoding: Any = tiktoken.Encoding(
                recipe.name, pat_str=recipe.pattern or "", mergeable_ranks=dict(ranks), special_tokens=special
            )
        except ValueError as error:
            raise TokenizerError(f"{file} cannot be read by tiktoken: {error}.") from error
        self._form = recipe.normalizer
        self.how = f"tiktoken {tiktoken.__version__}"
        self.vocab_size = len(ranks) + len(special)
        self.max_id = max([*ranks.values(), *special.values()])
        self.eos_id, self.bos_id = (special.get(name or "") for name in (recipe.eos, recipe.bos))

    def loaded(self, texts: Sequence[str]) -> list[Ids]:
        form: Any = self._form
        given = texts if form is None else [unicodedata.normalize(form, text) for text in texts]
        return [tuple(self._encoding.encode_ordinary(text)) for text in given]

    plain = loaded

    def decode(self, ids: list[int]) -> str:
        return str(self._encoding.decode(ids))


def load_ranks(file: Path, raw: bytes) -> TrainerTokenizer:
    """A tiktoken file.

    Raises:
        TokenizerError: its lines are damaged, or nobody knows how it splits text.
        MissingLibraryError: tiktoken is not installed.
    """
    recipe = recipe_beside(file) or recipe_for(raw, str(file))
    try:
        lines = (line.split() for line in raw.splitlines() if line.strip())
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in lines}
    except ValueError as error:
        raise TokenizerError(f"{file}: expected lines of a token in base64 and its rank: {error}.") from error
    return _Tiktoken(ranks, recipe, file)


def load_tekken(file: Path, data: Mapping[str, Any]) -> TrainerTokenizer:
    """Mistral's tekken.json: ranks that stand behind the special tokens.

    Raises:
        TokenizerError: a key is missing, or ranks have gaps.
        MissingLibraryError: tiktoken is not installed.
    """
    converted, names = convert_tekken(data, str(file))
    letters, special = byte_alphabet(), {token["content"]: token["id"] for token in converted["added_tokens"]}
    ranks = {
        bytes(letters[letter] for letter in token): index
        for token, index in converted["model"]["vocab"].items()
        if token not in special
    }
    recipe = Recipe(
        name="tekken",
        count=len(ranks),
        pattern=str(data["config"]["pattern"]),
        special=tuple(special.items()),
        eos=names.get("eos_token"),
        bos=names.get("bos_token"),
    )
    return _Tiktoken(ranks, recipe, file)
