"""Tokenizers that are lists of bytes in order of rank, as the equal tokenizer.json: tiktoken's files, tekken.json, GPT-2's.

tiktoken joins, of all neighbours whose bytes together are a token, those that make the token of lowest rank first. As a
tokenizer.json: every pair of tokens that makes a token is a merge, in the order of ranks, and what is a token as a whole
is taken whole. The same conversion as transformers' `TikTokenConverter`, so that files made by it have the same fingerprint.

A tiktoken file does not say how text is split before, nor which special tokens there are. For the vocabularies in
`known` we know; for any other, a file beside it must say.

Costs 1 s for 128,000 tokens, of which most goes into the merges.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tokenization.engines.round_trip import byte_alphabet
from tokenization.errors import TokenizerError
from tokenization.formats.known import KNOWN, Recipe

__all__ = ["convert_merges", "convert_ranks", "convert_tekken", "is_ranks", "read_recipe", "recipe_for"]

LONGEST_TOKEN = 10_000
"""Bytes of a token above which a file is no vocabulary: splitting a token costs the square of its length."""
MOST_SPECIAL = 1 << 16
"""Special tokens of a tekken.json above which it is none: each gets a name, and Mistral's have 1,000."""
_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")
TEKKEN_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *(
        "[/TOOL_RESULTS]",
        "[TOOL_CALLS]",
        "[IMG]",
        "<pad>",
        "[IMG_BREAK]",
        "[IMG_END]",
        "[PREFIX]",
        "[MIDDLE]",
        "[SUFFIX]",
    ),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""What a tekken.json up to version 7 means that names no special tokens."""

Names = dict[str, str]


def is_ranks(raw: bytes) -> bool:
    """Whether a file begins with a line of a token in base64 and its rank."""
    return _LINE.match(raw) is not None


def convert_ranks(raw: bytes, recipe: Recipe, where: str) -> tuple[dict[str, Any], Names]:
    """A tiktoken file as tokenizer.json, and the names of its special tokens.

    Raises:
        TokenizerError: a line is not a token and its rank, or a rank or token stands there twice.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            piece = base64.b64decode(token, validate=True)
            if piece in ranks:
                raise ValueError("a token that stands there twice")
            ranks[piece] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise TokenizerError(
                f"{where}, line {number}: expected a token in base64 and its rank, found {line[:80]!r}: {error}."
            ) from error
    return byte_level(ranks, recipe, where)


def recipe_for(raw: bytes, where: str) -> Recipe:
    """How a known vocabulary splits text, by the checksum of its file.

    Raises:
        TokenizerError: it is none that we know; the message says what to write beside it.
    """
    recipe = KNOWN.get(hashlib.sha256(raw).hexdigest())
    if recipe is not None:
        return recipe
    count = sum(1 for line in raw.splitlines() if line.strip())
    like = [f"{known.name} has as many" for known in KNOWN.values() if known.count == count]
    raise TokenizerError(
        f"{where}: a tiktoken file of {count:,} tokens that is none of those we know"
        f"{' (' + like[0] + ', but other ones)' if like else ''}. The file itself does not say how text is split or which "
        f'special tokens there are: write {where}.json with {{"pattern": REGEX, "special_tokens": {{NAME: ID}}, "eos": NAME}}, '
        f'or {{"like": NAME}} with one of {", ".join(sorted({known.name for known in KNOWN.values()}))}.'
    )


def read_recipe(data: Any, where: str) -> Recipe:
    """The file beside a vocabulary: `pattern`, `special_tokens`, `eos` and more, or `like`.

    Raises:
        TokenizerError: a key is missing, unknown or of a wrong type.
    """
    keys = ("like", "pattern", "special_tokens", "normalizer", "eos", "bos", "pad", "ignore_merges")
    if not isinstance(data, dict) or not set(data) <= set(keys):
        raise TokenizerError(
            f"{where}: expected a JSON object with keys of {', '.join(keys)}, found {str(data)[:200]}."
        )
    known = {recipe.name: recipe for recipe in KNOWN.values()}
    for key in ("like", "eos", "bos", "pad"):
        if not isinstance(data.get(key), str | None):
            raise TokenizerError(f"{where}: {key} must be a name, found {str(data[key])[:100]}.")
    if data.get("like", "gpt2") not in known:
        raise TokenizerError(f"{where}: like must be one of {', '.join(sorted(known))}, found {data['like']!r}.")
    base = known[data["like"]] if "like" in data else Recipe("", 0, None, (), None)
    special = data.get("special_tokens", dict(base.special))
    if not isinstance(data.get("pattern", "" if "like" in data else None), str):
        raise TokenizerError(f"{where}: expected pattern, a regular expression, or like; found {str(data)[:200]}.")
    if not isinstance(special, dict) or not all(isinstance(i, int) and i >= 0 for i in special.values()):
        raise TokenizerError(f"{where}: special_tokens must give each name an id, found {str(special)[:200]}.")
    if data.get("normalizer") not in (None, "NFC", "NFKC", "NFD", "NFKD"):
        raise TokenizerError(f"{where}: normalizer must be null, NFC, NFKC, NFD or NFKD, found {data['normalizer']!r}.")
    return replace(
        base,
        name=where,
        pattern=_onig(data["pattern"], where) if "pattern" in data else base.pattern,
        special=tuple(sorted(special.items(), key=lambda item: item[1])),
        normalizer=data.get("normalizer", base.normalizer),
        eos=data.get("eos", base.eos),
        bos=data.get("bos", base.bos),
        pad=data.get("pad", base.pad),
        ignore_merges=bool(data.get("ignore_merges", base.ignore_merges)),
    )


def _onig(pattern: str, where: str) -> str:
    """A pattern of tiktoken's regex library in the words of the other one: `$` there is the end of the text alone."""
    parts = re.split(r"(\\[pPxu]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\])", pattern, flags=re.DOTALL)
    if re.search(r"\{[0-9]*,?[0-9]*\}\+", "".join("" if i % 2 else part for i, part in enumerate(parts))):
        raise TokenizerError(
            f"{where}: the pattern says {{m,n}}+, which means something else in the library that reads it here: "
            "write (?>..{m,n}) instead."
        )
    return "".join(part if i % 2 else part.replace("$", r"\z") for i, part in enumerate(parts))


def convert_tekken(data: Mapping[str, Any], where: str) -> tuple[dict[str, Any], Names]:
    """Mistral's tekken.json as tokenizer.json: special tokens have the first ids, then come the ranks.

    Raises:
        TokenizerError: a key is missing, or ranks have gaps.
    """
    try:
        config = data["config"]
        n_special = int(config["default_num_special_tokens"])
        size = int(config["default_vocab_size"]) - n_special
        if not 0 <= n_special <= MOST_SPECIAL:
            raise ValueError(f"{n_special} special tokens")
        entries = data["vocab"][:size]
        ranks = {
            base64.b64decode(entry["token_bytes"], validate=True): n_special + int(entry["rank"]) for entry in entries
        }
        stated = data.get("special_tokens")
        named = (
            dict(enumerate(TEKKEN_SPECIAL))
            if stated is None
            else {int(token["rank"]): str(token["token_str"]) for token in stated}
        )
        pattern = str(config["pattern"])
        version = str(config["version"])
    except (KeyError, TypeError, ValueError, OverflowError, binascii.Error) as error:
        raise TokenizerError(f"{where} cannot be read as a tekken.json: {error!r}.") from error
    if stated is None and not re.fullmatch("v[1-7]", version):
        raise TokenizerError(f"{where}: a tekken.json of version {version} must name its special_tokens.")
    whole = len(ranks) == size and sorted(ranks.values()) == list(range(n_special, n_special + size))
    if not whole or not set(named) <= set(range(n_special)):
        raise TokenizerError(f"{where}: expected {size:,} ranks without gaps behind {n_special:,} special tokens.")
    special = tuple((named.get(index, f"<SPECIAL_{index}>"), index) for index in range(n_special))
    recipe = Recipe(
        name="tekken",
        count=size,
        pattern=pattern,
        special=special,
        eos="</s>",
        bos="<s>",
        pad="<pad>" if "<pad>" in named.values() else None,
    )
    return byte_level(ranks, recipe, where)


def byte_level(ranks: Mapping[bytes, int], recipe: Recipe, where: str) -> tuple[dict[str, Any], Names]:
    """A list of ranks as tokenizer.json, and the names of its special tokens.

    Args:
        ranks: bytes and id of each token.

    Raises:
        TokenizerError: an id twice, a byte without a token, an id of a special token that is taken.
    """
    _check_ranks(ranks, recipe, where)
    letters = str.maketrans({chr(byte): letter for letter, byte in byte_alphabet().items()})
    spelled = {token: token.decode("latin-1").translate(letters) for token in ranks}
    vocabulary = {spelled[token]: index for token, index in ranks.items()}
    merges = [[spelled[left], spelled[right]] for left, right in _merges(ranks)]
    behind = max(ranks.values()) + 1
    contiguous = [index for _, index in recipe.special] == list(range(behind, behind + len(recipe.special)))
    if not contiguous or behind != len(ranks):  # the library numbers added tokens itself, unless they stand here
        vocabulary |= dict(recipe.special)
    return _assembled(vocabulary, merges, recipe)


def convert_merges(vocab: Any, merges: str, recipe: Recipe, where: str) -> tuple[dict[str, Any], Names]:
    """GPT-2's two files as tokenizer.json, and the names of its special tokens.

    Args:
        vocab: the object in vocab.json: each token, spelled in byte letters, and its id.
        merges: the text of merges.txt: two tokens a line; its first line may be a comment.

    Raises:
        TokenizerError: they are not what they should be.
    """
    if not isinstance(vocab, dict) or not all(isinstance(index, int) for index in vocab.values()):
        raise TokenizerError(f"{where}: expected a JSON object of tokens and their ids, found {str(vocab)[:100]}.")
    lines = merges.splitlines()
    start = 1 if lines and lines[0].startswith("#version") else 0
    pairs = [line.split(" ") for line in lines[start:] if line]
    wrong = next((pair for pair in pairs if len(pair) != 2 or "".join(pair) not in vocab), None)
    if wrong is not None:
        raise TokenizerError(f"{where}: the merge {' '.join(wrong)!r} beside it is not two tokens that make a token.")
    lost = [letter for letter in byte_alphabet() if letter not in vocab]
    if lost:
        raise TokenizerError(
            f"{where}: a vocabulary without a token for {len(lost)} of 256 bytes ({lost[0]!r}): none of GPT-2's kind."
        )
    return _assembled(vocab, pairs, recipe)


def _assembled(vocabulary: Mapping[str, int], merges: list[list[str]], recipe: Recipe) -> tuple[dict[str, Any], Names]:
    """tokenizer.json of a byte-level BPE."""
    split = (
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        if recipe.pattern is None
        else {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": recipe.pattern}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            ],
        }
    )
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(name, index) for name, index in recipe.special],
        "normalizer": {"type": recipe.normalizer} if recipe.normalizer else None,
        "pre_tokenizer": split,
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": recipe.ignore_merges,
            "vocab": vocabulary,
            "merges": merges,
        },
    }
    names = {"eos_token": recipe.eos, "bos_token": recipe.bos, "pad_token": recipe.pad}
    return data, {key: name for key, name in names.items() if name is not None}


def _check_ranks(ranks: Mapping[bytes, int], recipe: Recipe, where: str) -> None:
    taken = set(ranks.values())
    longest = max(map(len, ranks), default=0)
    doubled = [name for name, index in recipe.special if index in taken]
    special = [index for _, index in recipe.special]
    fault = ""
    if len(taken) < len(ranks):
        fault = "two tokens of one rank"
    elif b"" in ranks:
        fault = "an empty token"
    elif missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        fault = f"no token for byte {missing[0]} and {len(missing) - 1} others: some text could not be said"
    elif longest > LONGEST_TOKEN:
        fault = f"a token of {longest:,} bytes"
    elif doubled or len(set(special)) < len(special):
        fault = f"special tokens whose ids are taken, {doubled[:3] or special[:3]}"
    if fault:
        raise TokenizerError(f"{where}: a vocabulary with {fault}.")


def _merges(ranks: Mapping[bytes, int]) -> Iterable[tuple[bytes, bytes]]:
    """All pairs of tokens that make a token, by the rank of what they make, then by the ranks of the two."""
    for token in sorted(ranks, key=ranks.__getitem__):
        pairs = [
            (token[:split], token[split:])
            for split in range(1, len(token))
            if token[:split] in ranks and token[split:] in ranks
        ]
        if len(pairs) > 1:
            pairs.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        yield from pairs


def _added_token(name: str, index: int) -> dict[str, Any]:
    return {
        "id": index,
        "content": name,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
