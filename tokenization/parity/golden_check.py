"""Does another tokenizer give the ids of a token file? Needs no tokenizer library: a trainer calls it with its own.

    from tokenization.parity import check_golden
    from tokenization.reader import TokenFile

    check_golden(my_tokenizer.encode, TokenFile("pack/tokens.arrow").metadata).raise_if_different()

Every token file holds the ids of some sixty frozen texts (`probes.PROBES`). The answer is "equal", or the first text and
token that differ, with both ids and the likely cause, which is found by trying what is known to go wrong (`causes`).
Two things are no difference: what `encode` puts around every text (that is said in the notes), and special tokens that it
reads in text which only spells them: text stays text in a token file, so that no page can forge a border.

Costs some milliseconds.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tokenization.errors import TokenizerError
from tokenization.parity.causes import Case, Cause, likely_cause
from tokenization.parity.ids import (
    NO_WRAP,
    Ids,
    Wrap,
    common_wrap,
    first_difference,
    reads_special_tokens,
    spells_special,
)

if TYPE_CHECKING:
    from tokenization.layout import Header

__all__ = ["Difference", "GoldenCheck", "Place", "check_golden", "difference_at", "ids_of"]

WINDOW = 6
"""Ids shown from two before the first that differs."""
EXCERPT_BEFORE, EXCERPT_AFTER = 24, 40
"""Characters of the text shown around it."""
NAMES_FROM = 40
"""Characters from which the name of a token is cut."""


@dataclass(frozen=True, slots=True)
class Place:
    """What stands in one list of ids around the first difference."""

    length: int
    """Ids of the whole text."""
    first: int
    """Place of the first id shown."""
    ids: tuple[int, ...]
    names: tuple[str, ...]
    """What each of them stands for; empty where nobody can say."""

    def at(self, token: int) -> str:
        """The id at a place, with its name, or that there is none."""
        place = token - self.first
        if not 0 <= place < len(self.ids):
            return f"nothing (the text has {self.length} tokens)"
        return f"{self.ids[place]}{f' {self.names[place]}' if self.names else ''}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place at which two tokenizers differ on a text."""

    where: str
    """`probe text 12`, `document d17`."""
    excerpt: str
    """The text around the place, escaped."""
    token: int
    """0-based."""
    ours: Place
    theirs: Place
    cause: Cause | None = None

    def message(self, us: str, them: str) -> str:
        """One paragraph for a person: where, which ids, why, what to do."""
        shown = f"{self.where}: {self.excerpt}: token {self.token} is {self.ours.at(self.token)} {us}, "
        shown += f"and {self.theirs.at(self.token)} {them}. "
        shown += f"From token {self.ours.first} on: {list(self.ours.ids)} and {list(self.theirs.ids)}. "
        if self.cause is None:
            return f"{shown}No known cause explains it: compare the two files, and their libraries' versions."
        return f"{shown}Likely cause: {self.cause.sentence} {self.cause.remedy}"


@dataclass(frozen=True, slots=True)
class GoldenCheck:
    """A tokenizer against the golden ids of a token file."""

    texts: int
    differing: int
    special: int
    """Texts in which it read special tokens where the file has text: no difference."""
    difference: Difference | None
    doubled: str
    """What it puts twice before or behind every text, as a sentence; empty if it does not."""
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return self.differing == 0 and not self.doubled

    def message(self) -> str:
        """What was found, in one sentence or two."""
        if self.difference is None:
            if self.doubled:
                return self.doubled
            return f"all {self.texts} golden texts have the ids of the file"
        first = self.difference.message("in the file", "with this tokenizer")
        return f"{self.differing} of {self.texts} golden texts have other ids. {first}"

    def raise_if_different(self) -> None:
        """
        Raises:
            TokenizerError: another tokenizer; the message says where, and why.
        """
        if not self.equal:
            raise TokenizerError(self.message())


def check_golden(
    encode: Callable[[str], Any],
    header: Header,
    *,
    decode: Callable[[list[int]], str] | None = None,
    vocab_size: int | None = None,
    library: str = "",
) -> GoldenCheck:
    """Compare a tokenizer with the golden ids of a token file.

    Args:
        encode: text to ids, as the trainer calls it: `AutoTokenizer(...).encode`, `SentencePieceProcessor(...).encode`,
            or the `encode` of the library `tokenizers`.
        header: `TokenFile(path).metadata`.
        decode: ids to text; given, messages name the tokens.
        vocab_size: of the trainer's tokenizer; given, another model is told by it.
        library: its name and version, for the message.

    Raises:
        TokenizerError: `encode` gives no ids.
    """
    texts, golden = header.golden_texts, header.golden_ids
    theirs = [ids_of(encode, text) for text in texts]
    text_ids = frozenset(index for ids in golden for index in ids)
    wrap = _of_special_ids(common_wrap(golden, theirs), text_ids)
    cases, special = [], 0
    for number, (text, ours, found) in enumerate(zip(texts, golden, theirs, strict=True)):
        inner = wrap.strip(found)
        if inner == ours:
            continue
        if spells_special(text) and reads_special_tokens(ours, inner, lambda index: index not in text_ids):
            special += 1
            continue
        cases.append(Case(f"golden text {number}", text, ours, inner, found))
    difference = None
    if cases:
        cause = likely_cause(
            cases,
            theirs=lambda text: wrap.strip(ids_of(encode, text)),
            sizes=None if vocab_size is None else (header.tokenizer.vocab_size, vocab_size),
        )
        cause = cause or _other_library(header, library)
        difference = difference_at(cases[0], None, decode, cause)
    notes = tuple(_notes(header, wrap, special))
    return GoldenCheck(len(texts), len(cases), special, difference, _doubled(wrap), notes)


def ids_of(encode: Callable[[str], Any], text: str) -> Ids:
    """The ids of a text, from whatever libraries return: a list or array, `tokenizers.Encoding`, a mapping with `input_ids`.

    Raises:
        TokenizerError: it is nothing of the kind: tokens as text, a batch, None.
    """
    given = encode(text)
    found: Any = given.get("input_ids") if isinstance(given, Mapping) else getattr(given, "ids", given)
    try:
        return tuple(operator.index(index) for index in found)
    except TypeError as error:
        raise TokenizerError(
            f"the tokenizer gives {reprlib.repr(found)} for the text {text[:40]!r}. Expected its ids, a list of whole numbers: give "
            "`tokenizer.encode`, or a function from one text to ids."
        ) from error


def _doubled(wrap: Wrap) -> str:
    """One token twice in a row around every text: a template puts it, and the tokenizer again."""
    for ids, where in ((wrap.lead, "before"), (wrap.tail, "behind")):
        twice = next((one for one, other in pairwise(ids) if one == other), None)
        if twice is not None:
            return (
                f"this tokenizer puts token {twice} twice {where} every text: {list(ids)} (double BOS or EOS). A template adds it, and "
                "the tokenizer once more: switch one of them off."
            )
    return ""


def difference_at(
    case: Case,
    ours: Callable[[list[int]], str] | None,
    theirs: Callable[[list[int]], str] | None,
    cause: Cause | None,
) -> Difference:
    """The first difference of a text, with what a person needs to see.

    Args:
        ours, theirs: ids to text, for the names of tokens; None: nobody can say. The file's tokens are named by the other
            side where only that can.
    """
    token = first_difference(case.ours, case.theirs)
    decode = ours or theirs
    known = len(decode(list(case.ours[:token]))) if decode is not None and token else 0
    start = max(0, min(known, len(case.text)) - EXCERPT_BEFORE)
    end = start + EXCERPT_BEFORE + EXCERPT_AFTER
    excerpt = f"{'...' if start else ''}{case.text[start:end]!r}{'...' if end < len(case.text) else ''}"
    return Difference(
        case.where, excerpt, token, _place(case.ours, token, ours), _place(case.theirs, token, theirs), cause
    )


def _of_special_ids(wrap: Wrap, text_ids: frozenset[int]) -> Wrap:
    """Without what is text: a blank that is put before every text is a difference, and no BOS."""
    lead, tail = ((() if text_ids.intersection(ids) else ids) for ids in (wrap.lead, wrap.tail))
    return Wrap(lead, tail)


def _place(ids: Ids, token: int, decode: Callable[[list[int]], str] | None) -> Place:
    first = max(0, token - 2)
    shown = ids[first : first + WINDOW]
    names = () if decode is None else tuple(_name(decode, index) for index in shown)
    return Place(len(ids), first, shown, names)


def _name(decode: Callable[[list[int]], str], index: int) -> str:
    name = decode([index])
    return repr(name if len(name) <= NAMES_FROM else f"{name[:NAMES_FROM]}...")


def _notes(header: Header, wrap: Wrap, special: int) -> list[str]:
    """What is no difference of ids, and still worth knowing."""
    card, notes = header.tokenizer, []
    if wrap.lead and wrap.lead != (card.bos_id,):
        documents = "begin with nothing of the kind" if card.bos_id is None else f"begin with {card.bos!r} alone"
        notes.append(f"this tokenizer puts {list(wrap.lead)} before every text; the documents of the file {documents}")
    if wrap.tail and wrap.tail != (card.eos_id,):
        notes.append(
            f"this tokenizer puts {list(wrap.tail)} behind every text; those of the file end with {card.eos_id}"
        )
    if wrap == NO_WRAP and card.bos_id is not None:
        notes.append(
            f"every document of the file begins with {card.bos!r} ({card.bos_id}), which this tokenizer does not put"
        )
    if special:
        notes.append(
            f"in {special} texts this tokenizer reads special tokens where text only spells them; in the file it is text"
        )
    return notes


def _other_library(header: Header, library: str) -> Cause | None:
    made_by = header.tokenizer.library
    if not library or library == made_by:
        return None
    return Cause(
        "library",
        f"the file was made with {made_by}, this is {library}.",
        "Install the version that the file names, and compare again.",
    )
