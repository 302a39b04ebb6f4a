"""Lists of ranks give the ids of tiktoken, or are refused: a guessed pattern would be another tokenizer."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken

from tests.tokenizer_models import PATTERN, RANKS, RECIPE, write_ranks
from tokenization.errors import TokenizerError
from tokenization.formats.known import KNOWN
from tokenization.formats.tiktoken import TEKKEN_SPECIAL, is_ranks, read_recipe, recipe_for
from tokenization.tokenizer import load_tokenizer
from tokenization.trials import trial_texts

TEXTS = trial_texts(["<|end|>"])
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"


def _rows(file: Path, texts: list[str]) -> list[list[int]]:
    ids, lengths = load_tokenizer(file).encode_batch(texts)
    return [row.tolist() for row in np.split(ids, np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize("pattern", [PATTERN, CL100K.replace("{1,3}+", "{1,3}")])
def test_ids_are_those_of_the_library(pattern: str, tmp_path: Path) -> None:
    """Every way to make a token out of two counts, and the lowest rank goes first; `$` is the end of the text alone."""
    own = tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=RANKS, special_tokens={})
    file = write_ranks(tmp_path / "t.tiktoken", RANKS, {**RECIPE, "pattern": pattern})
    texts = [*TEXTS[:460], "a\n  ", "a\n  b", "1234567", "x\n\n \n"]
    assert _rows(file, texts) == [own.encode_ordinary(text) for text in texts]


def test_special_tokens_keep_their_ids(tmp_path: Path) -> None:
    """Behind the ranks, or with gaps, as in cl100k; text that spells them is text."""
    for special in ({"<|end|>": 856, "<|begin|>": 857}, {"<|end|>": 900, "<|begin|>": 1_000}):
        file = write_ranks(tmp_path / "t.tiktoken", RANKS, {**RECIPE, "special_tokens": special, "bos": "<|begin|>"})
        loaded = load_tokenizer(file, bos="<|begin|>")
        assert (loaded.eos_id, loaded.bos_id) == tuple(special.values())
        assert loaded.max_id == special["<|begin|>"]
        assert loaded.vocab_size == 858
        encoded = loaded.encode_documents(["<|end|>", "a<|begin|>b"])
        assert np.isin(encoded.ids, list(special.values())).sum() == 4
        assert not encoded.lost.any()


def test_an_unknown_vocabulary_is_refused(tmp_path: Path) -> None:
    """The message says what to write, and that a vocabulary of the same size is another one."""
    file = write_ranks(tmp_path / "t.tiktoken", RANKS, None)
    with pytest.raises(
        TokenizerError, match=r"856 tokens that is none of those we know\..*t\.tiktoken\.json with .*pattern"
    ):
        load_tokenizer(file)
    with pytest.raises(TokenizerError, match=r"llama3 has as many, but other ones"):
        recipe_for(b"IQ== 0\n" * 128_000, "t")


def test_like_takes_what_is_known(tmp_path: Path) -> None:
    """`like` names a vocabulary of ours; what else is said goes first."""
    recipe = read_recipe({"like": "qwen", "special_tokens": {"<|endoftext|>": 856}}, "t")
    assert (recipe.normalizer, recipe.special, recipe.eos) == ("NFC", (("<|endoftext|>", 856),), "<|endoftext|>")
    file = write_ranks(tmp_path / "t.model", RANKS, {"like": "gpt2", "special_tokens": {"<|endoftext|>": 856}})
    assert load_tokenizer(file).eos_id == 856


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ([], "expected a JSON object with keys of like, pattern"),
        ({"patern": "x"}, "expected a JSON object with keys of like, pattern"),
        ({"like": "gpt9"}, "like must be one of cl100k_base, gpt2, llama3"),
        ({"special_tokens": {}}, "expected pattern, a regular expression, or like"),
        ({"like": "qwen", "pattern": 5}, "expected pattern, a regular expression, or like"),
        ({"pattern": ".", "special_tokens": {"<e>": "1"}}, "must give each name an id"),
        ({"pattern": ".", "normalizer": "nfc"}, "normalizer must be null, NFC"),
        ({"pattern": r"\p{N}{1,3}+"}, r"the pattern says \{m,n\}\+"),
    ],
)
def test_a_wrong_recipe_is_refused(recipe: Any, message: str) -> None:
    """A slip in the file beside is found before an id is made."""
    with pytest.raises(TokenizerError, match=message):
        read_recipe(recipe, "t.json")


def _doubled_token(ranks: dict[bytes, int]) -> bytes:
    return b"YQ== 900\n"


def _doubled_rank(ranks: dict[bytes, int]) -> bytes:
    return base64.b64encode(b"never seen") + b" 5\n"


def _no_rank(ranks: dict[bytes, int]) -> bytes:
    return b"YQ==\n"


def _no_base64(ranks: dict[bytes, int]) -> bytes:
    return b"Y%== 900\n"


def _lost_byte(ranks: dict[bytes, int]) -> bytes:
    del ranks[b"a"]
    return b""


def _taken(ranks: dict[bytes, int]) -> bytes:
    return base64.b64encode(b"never seen") + b" 856\n"


def _endless(ranks: dict[bytes, int]) -> bytes:
    return base64.b64encode(b"a" * 20_000) + b" 900\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_doubled_token, "line 857: .*a token that stands there twice"),
        (_doubled_rank, "two tokens of one rank"),
        (_no_rank, "line 857: expected a token in base64 and its rank"),
        (_no_base64, "line 857: expected a token in base64 and its rank"),
        (_lost_byte, "no token for byte 97"),
        (_taken, r"special tokens whose ids are taken, \['<\|end\|>'\]"),
        (_endless, "a token of 20,000 bytes"),
    ],
)
def test_a_damaged_file_is_refused(damage: Callable[[dict[bytes, int]], bytes], message: str, tmp_path: Path) -> None:
    """Nothing is guessed: a list with a fault is no vocabulary."""
    ranks = dict(RANKS)
    more = damage(ranks)
    file = write_ranks(tmp_path / "t.tiktoken", ranks)
    file.write_bytes(file.read_bytes() + more)
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(file)


def _tekken(**changes: Any) -> dict[str, Any]:
    ordered = sorted(RANKS, key=RANKS.__getitem__)
    config = {"pattern": PATTERN, "default_vocab_size": 900, "default_num_special_tokens": 50, "version": "v3"}
    words = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(ordered)]
    return {"config": {**config, **changes.pop("config", {})}, "vocab": words, **changes}


def test_tekken_puts_special_tokens_first(tmp_path: Path) -> None:
    """Ids of ranks begin behind the special tokens; the list of ranks is cut to the vocabulary's size."""
    file = tmp_path / "tekken.json"
    for special, names in ((None, TEKKEN_SPECIAL), ([{"rank": 2, "token_str": "</s>", "is_control": True}], ())):
        file.write_text(json.dumps(_tekken(special_tokens=special)), encoding="utf-8")
        loaded = load_tokenizer(file)
        kept = {token: rank for token, rank in RANKS.items() if rank < 850}
        own = tiktoken.Encoding("own", pat_str=PATTERN, mergeable_ranks=kept, special_tokens={})
        assert _rows(file, TEXTS[:460]) == [[i + 50 for i in own.encode_ordinary(text)] for text in TEXTS[:460]]
        assert (loaded.eos_id, loaded.max_id, loaded.vocab_size) == (2, 899, 900)
        assert loaded.pad == ("<pad>" if names else "</s>")
        assert not (loaded.encode_batch(["<s></s>[INST]<SPECIAL_40>"])[0] < 50).any()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_tekken(config={"version": "v11"}), "of version v11 must name its special_tokens"),
        (_tekken(config={"default_vocab_size": 1_000}), "expected 950 ranks without gaps"),
        (_tekken(config={"default_vocab_size": 10**12}), "expected 999,999,999,950 ranks without gaps"),
        (_tekken(config={"default_vocab_size": None}), "cannot be read as a tekken.json"),
        (_tekken(config={"default_vocab_size": math.inf}), "cannot be read as a tekken.json"),
        (
            _tekken(config={"default_num_special_tokens": 10**10, "default_vocab_size": 10**10 + 856}),
            r"cannot be read as a tekken.json.*10000000000 special tokens",
        ),
        (_tekken(special_tokens=[{"rank": 50, "token_str": "<s>"}]), "behind 50 special tokens"),
    ],
)
def test_a_damaged_tekken_is_refused(data: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Missing special tokens and missing ranks are named."""
    file = tmp_path / "tekken.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(file)


def test_what_is_known_fits_together() -> None:
    """Special ids lie behind the ranks or in a gap of theirs, no name or id twice, and EOS is one of them."""
    for recipe in KNOWN.values():
        names, ids = [name for name, _ in recipe.special], [index for _, index in recipe.special]
        assert len(set(names)) == len(names) == len(set(ids))
        assert {recipe.eos, recipe.bos or recipe.eos, recipe.pad or recipe.eos} <= set(names)
        assert ids == sorted(ids)
        assert recipe.name == "p50k_base" or min(ids) >= recipe.count
    assert is_ranks(b"IQ== 0\nIg== 1\n")
    assert not any(is_ranks(raw) for raw in (b"", b"{}", b"#version: 0.2\n", b"\x0a\x05\x0a\x01a"))
