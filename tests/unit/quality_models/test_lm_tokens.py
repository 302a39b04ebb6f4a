"""Text to tokens for language models: pieces of long texts, and characters by token."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from quality_models import lm_tokens
from quality_models.lm_tokens import encode, read_tokenizer
from tests.lm_oracle import TOKENIZER
from tests.strategies import any_text, hostile_text


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return read_tokenizer(TOKENIZER / "tokenizer.json")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(any_text, hostile_text), max_size=5))
def test_each_text_gets_its_own_tokens(tokenizer: Tokenizer, some: list[str]) -> None:
    """As many answers as texts; ids are the tokenizer's; the last token ends the text; characters never go back."""
    found = list(encode(tokenizer, some, parallel=False))
    assert len(found) == len(some)
    for text, (ids, ends) in zip(some, found, strict=True):
        assert ids.tolist() == tokenizer.encode(text, add_special_tokens=False).ids
        assert len(ids) == len(ends)
        if text:
            assert ends[-1] == len(text)
            assert (ends[1:] >= ends[:-1]).all()


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("filler", ["word ", "word\n", "字", "x"])
def test_long_texts_are_encoded_in_pieces(
    tokenizer: Tokenizer, filler: str, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces follow each other without gap, whatever the text offers to cut at, and say the whole text."""
    monkeypatch.setattr(lm_tokens, "PIECE", 64)
    monkeypatch.setattr(lm_tokens, "GROUP", 100)
    some = [filler * 70, "", "short", filler * 40]
    found = list(encode(tokenizer, some, parallel=parallel))
    for text, (ids, ends) in zip(some, found, strict=True):
        assert tokenizer.decode(ids.tolist(), skip_special_tokens=False) == text
        assert (ends[-1] if len(ends) else 0) == len(text)
