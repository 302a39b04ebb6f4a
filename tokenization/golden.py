"""Holds a trainer's tokenizer against a token file: by fingerprint, or by the golden ids that the file carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from tokenization.errors import TokenizerError
from tokenization.layout import Header

__all__ = ["TrainerTokenizer", "check_tokenizer"]


class HasFingerprint(Protocol):
    """Any tokenizer that knows its own fingerprint, such as `tokenization.tokenizer.Tokenizer`."""

    def fingerprint(self) -> str: ...


TrainerTokenizer = str | HasFingerprint | Callable[[str], Iterable[int] | Mapping[str, Any]]
"""A fingerprint, a tokenizer with one, or a function from a text to its ids."""


def check_tokenizer(header: Header, tokenizer: TrainerTokenizer, where: str) -> None:
    """Refuse a tokenizer that is not the one of the file.

    Raises:
        TokenizerError: it is another one; the message names both, or the text and the token where they part.
        TypeError: it is no tokenizer.
    """
    fingerprint = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "fingerprint", None)
    if callable(fingerprint):
        fingerprint = fingerprint()
    card = header.tokenizer
    if isinstance(fingerprint, str):
        if fingerprint != card.fingerprint:
            raise TokenizerError(
                f"{where}: packed with tokenizer {card.name}, fingerprint {card.fingerprint}; yours has the fingerprint "
                f"{fingerprint}. Train with the tokenizer of the file, or pack again with yours."
            )
    elif callable(tokenizer):
        _check_golden(header, tokenizer, where)
    else:
        raise TypeError(
            f"tokenizer must be a fingerprint, a function from text to ids, or have fingerprint(): {tokenizer!r}"
        )


def _check_golden(header: Header, encode: Callable[[str], Any], where: str) -> None:
    wrong = []
    for text, golden in zip(header.golden_texts, header.golden_ids, strict=True):
        ids = encode(text)
        own = tuple(int(i) for i in (ids["input_ids"] if isinstance(ids, Mapping) else ids))
        if own != golden:
            wrong.append((text, golden, own))
    if not wrong:
        return
    text, golden, own = min(wrong, key=lambda case: len(case[0]))
    at = next((i for i, (a, b) in enumerate(zip(golden, own, strict=False)) if a != b), min(len(golden), len(own)))
    card = header.tokenizer
    raise TokenizerError(
        f"{where}: packed with tokenizer {card.name}, fingerprint {card.fingerprint}; yours differs on {len(wrong)} of "
        f"{len(header.golden_texts)} golden texts, say on {text[:60]!r} at token {at}: the file has "
        f"{_around(golden, at)}, yours {_around(own, at)}.{_cause(wrong)}"
    )


def _around(ids: tuple[int, ...], at: int) -> str:
    return str(list(ids[at : at + 6])) if at < len(ids) else "nothing"


def _cause(wrong: list[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> str:
    """The likely cause, where all differences have one of two faces."""
    inside = [text for text, golden, own in wrong if golden not in (own[: len(golden)], own[1 : 1 + len(golden)])]
    if any("<" not in text and "[" not in text for text in inside):
        return " Train with the tokenizer of the file, or pack again with yours."
    causes = ""
    if len(inside) < len(wrong):
        causes += " It puts tokens before or behind each text: encode without (add_special_tokens=False)."
    if inside:
        causes += (
            " Texts that spell special tokens differ: the file holds them as text, so yours must not read them as "
            "special: split_special_tokens=True (Hugging Face), encode_ordinary (tiktoken)."
        )
    return causes
