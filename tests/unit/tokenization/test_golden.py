"""A trainer's tokenizer is held against the file: by fingerprint, by golden ids, with the likely cause named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.token_files import small_header, write_small_file
from tokenization.errors import TokenizerError
from tokenization.golden import check_tokenizer
from tokenization.layout import Header
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream

TEXTS = ("", "abc", "a <e> b")
IDS = {"a": 2, "b": 3, "c": 4, " ": 5, "<": 6, "e": 7, ">": 8}


def encode(text: str) -> list[int]:
    """One id a letter."""
    return [IDS[letter] for letter in text]


def special(text: str) -> list[int]:
    """The same, but reads `<e>` as the special token 0."""
    return [0 if letter == "|" else IDS[letter] for letter in text.replace("<e>", "|")]


@pytest.fixture(scope="module")
def header() -> Header:
    return small_header(golden_texts=TEXTS, golden_ids=tuple(tuple(encode(text)) for text in TEXTS))


class Named:
    """A tokenizer that knows its fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    def fingerprint(self) -> str:
        return self._fingerprint


@pytest.mark.parametrize(
    "tokenizer",
    ["f" * 64, Named("f" * 64), encode, lambda text: iter(encode(text)), lambda text: {"input_ids": encode(text)}],
)
def test_the_tokenizer_of_the_file_is_taken(tokenizer: Any, header: Header) -> None:
    """As a fingerprint, an object with one, and functions that give ids in any form."""
    check_tokenizer(header, tokenizer, "t.arrow")


@pytest.mark.parametrize("tokenizer", ["a" * 64, Named("a" * 64)])
def test_another_fingerprint_is_refused(tokenizer: Any, header: Header) -> None:
    """The message names both."""
    with pytest.raises(TokenizerError, match=rf"t\.arrow: .*'?small'?, fingerprint {'f' * 64}; yours .*{'a' * 64}"):
        check_tokenizer(header, tokenizer, "t.arrow")


@pytest.mark.parametrize("tokenizer", [lambda text: [9, *encode(text)], special, lambda text: [9, *special(text)]])
def test_what_a_call_adds_is_no_other_tokenizer(tokenizer: Callable[[str], list[int]], header: Header) -> None:
    """A BOS before every text, and special tokens read where they are spelled: the same tokenizer, called otherwise."""
    check_tokenizer(header, tokenizer, "t.arrow")


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (lambda text: encode(text.replace("c", "a")), "golden text 1: 'abc': token 2 is 4 in the file, and 2 with"),
        (lambda text: encode(text)[:2], "golden text 1: 'abc': token 2 is 4 in the file, and nothing"),
    ],
)
def test_other_ids_are_refused(tokenizer: Callable[[str], list[int]], said: str, header: Header) -> None:
    """The file's fingerprint, the text and the token are named."""
    with pytest.raises(TokenizerError, match=rf"t\.arrow: packed with .*{'f' * 64}; yours is another one: .*{said}"):
        check_tokenizer(header, tokenizer, "t.arrow")


def test_what_is_no_tokenizer(header: Header) -> None:
    """A TypeError, at once."""
    with pytest.raises(TypeError, match="a function from text to ids"):
        check_tokenizer(header, 3, "t.arrow")  # type: ignore[arg-type]


def test_readers_refuse_it(tmp_path: Path, header: Header) -> None:
    """File and stream ask when they open; None trusts the trainer."""
    path = write_small_file(tmp_path / "t.arrow", header)
    assert len(TokenFile(path, tokenizer=encode)) == len(TokenFile(path)) == 40
    with pytest.raises(TokenizerError):
        TokenFile(path, tokenizer=lambda text: encode(text)[:2])
    for file in (path, TokenFile(path)):
        with pytest.raises(TokenizerError):
            TokenStream(file, batch_size=4, seed=1, tokenizer="a" * 64)
