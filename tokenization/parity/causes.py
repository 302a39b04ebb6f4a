"""Why two tokenizers differ: what is known to go wrong, tried one after the other on the texts that differ.

Each hypothesis says: if this were it, the ids would be equal. The one that makes most of the differing texts equal is
named, and of those that explain as many the first. Sources: the bug trackers of the libraries (legacy and prefix space:
huggingface/transformers#24569, #25700, #27279; double BOS: OpenRLHF#393; normalisers: google/sentencepiece#329; ids shifted
by added tokens: huggingface/transformers#26714).

Standard library only. Costs a few encodings of each differing text; at most `MOST_TRIED` texts are tried.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from tokenization.parity.ids import Ids, first_difference

__all__ = ["Case", "Cause", "Encode", "Side", "likely_cause", "model_of_size"]

MOST_TRIED = 24
LONGEST_TRIED = 20_000
"""Characters of a text that hypotheses are tried on; a longer one is left to its shorter fellows."""

Encode = Callable[[str], Ids]

_MODELS: Mapping[int, str] = {
    30_522: "BERT uncased",
    28_996: "BERT cased",
    119_547: "BERT multilingual",
    50_257: "GPT-2",
    50_265: "RoBERTa or BART",
    50_277: "GPT-NeoX or Pythia",
    50_280: "OLMo",
    32_000: "Llama 2 or Mistral v1",
    32_016: "Code Llama",
    32_100: "T5",
    32_768: "Mistral v3, or the tokenizer that ships with corpusmill",
    65_024: "ChatGLM or Falcon",
    100_277: "cl100k (GPT-4)",
    100_352: "OLMo 2 or Phi-4",
    128_000: "Llama 3 without its special tokens",
    128_256: "Llama 3",
    128_815: "DeepSeek V3",
    129_280: "DeepSeek V3 with reserved rows",
    131_072: "Mistral Tekken",
    151_643: "Qwen without its special tokens",
    151_646: "Qwen 2",
    151_665: "Qwen 2.5",
    151_669: "Qwen 3",
    151_936: "Qwen with reserved rows",
    200_019: "o200k (GPT-4o)",
    201_134: "Llama 4",
    202_048: "Llama 4 with reserved rows",
    250_002: "XLM-RoBERTa",
    250_680: "BLOOM",
    256_000: "Gemma or Gemma 2",
    262_144: "Gemma 3",
}
"""Vocabulary sizes, with added tokens, by which models are told."""


@dataclass(frozen=True, slots=True)
class Case:
    """A text on which two tokenizers differ."""

    where: str
    text: str
    ours: Ids
    theirs: Ids
    """Without what the tokenizer puts around every text."""
    loaded: Ids
    """As the trainer gets them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why texts differ, and what to do."""

    name: str
    sentence: str
    remedy: str
    explains: int = 0
    """Of the differing texts that were tried."""
    tried: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """What may be asked of one of the two tokenizers beside ids."""

    decode: Callable[[list[int]], str] | None = None
    merges: Callable[[], Sequence[str] | None] = field(default=lambda: None)
    """Its merges in order, as `a b`; None: it has none, or keeps them to itself."""
    unk_id: int | None = None


NOBODY = Side()

_Hypothesis = tuple[Cause, Callable[[Case], bool]]


def likely_cause(
    cases: Sequence[Case],
    *,
    theirs: Encode,
    ours: Encode | None = None,
    sizes: tuple[int, int] | None = None,
    sides: tuple[Side, Side] = (NOBODY, NOBODY),
    their_ways: Iterable[tuple[Cause, Encode]] = (),
    our_ways: Iterable[tuple[Cause, Encode]] = (),
) -> Cause | None:
    """The best explanation of the first text that differs, or None.

    Args:
        cases: differing texts, the first one first.
        theirs: ids of any text by the trainer's tokenizer, without what it puts around every text.
        ours: the same by the pipeline's; None: only the ids in the cases are known, as in a token file.
        sizes: vocabulary of ours and of theirs, with added tokens.
        sides: what else ours and theirs can say.
        their_ways, our_ways: other ways to load one of them, each with what it means if its ids equal the other side's.
    """
    short = [case for case in cases if len(case.text) <= LONGEST_TRIED] or [cases[0]]
    tried = [cases[0], *(case for case in short[: MOST_TRIED + 1] if case is not cases[0])][:MOST_TRIED]
    best: Cause | None = None
    for cause, explains in _hypotheses(tried, theirs, ours, sizes, sides, their_ways, our_ways):
        if not explains(cases[0]):
            continue
        count = sum(map(explains, tried))
        if best is None or count > best.explains:
            best = Cause(cause.name, cause.sentence, cause.remedy, count, len(tried))
        if count == len(tried):
            return best
    if sizes is not None and sizes[0] != sizes[1] and (best is None or 2 * best.explains < len(tried)):
        return Cause("another_model", _sizes(*sizes), "Give both the same tokenizer.", len(tried), len(tried))
    return best or _other_merges(sides)


def model_of_size(size: int) -> str:
    """` (GPT-2)`, or nothing for a size that belongs to no known model."""
    return f" ({_MODELS[size]})" if size in _MODELS else ""


def _sizes(ours: int, theirs: int) -> str:
    return (
        f"another model altogether: {ours:,} tokens here{model_of_size(ours)}, "
        f"{theirs:,} with the trainer{model_of_size(theirs)}."
    )


def _hypotheses(
    cases: Sequence[Case],
    theirs: Encode,
    ours: Encode | None,
    sizes: tuple[int, int] | None,
    sides: tuple[Side, Side],
    their_ways: Iterable[tuple[Cause, Encode]],
    our_ways: Iterable[tuple[Cause, Encode]],
) -> Iterator[_Hypothesis]:
    yield from _cut(cases)
    for cause, encode in our_ways:
        yield cause, lambda case, encode=encode: _equal(encode, case.text, case.theirs)  # type: ignore[misc]
    for name, change, does, mend in _CHANGES:
        yield _if_changed(name, change, f"the pipeline's tokenizer {does}, the trainer's does not.", mend, theirs)
        sentence = f"the trainer's tokenizer {does}, the pipeline's does not."
        if ours is not None:
            yield _if_we_changed(name, change, sentence, mend, ours)
        else:
            yield _if_indifferent(name, change, sentence, mend, theirs)
    for cause, encode in their_ways:
        yield cause, lambda case, encode=encode: _equal(encode, case.text, case.ours)  # type: ignore[misc]
    yield from _one_more(cases)
    yield from _only_one_side(cases, sizes or (0, 0))
    yield from _renumbered(cases, sides)
    yield from _unknown(sides)


def _cut(cases: Sequence[Case]) -> Iterator[_Hypothesis]:
    """Truncation: the trainer's list is the beginning of ours, and every one that was cut is as long."""
    lengths = Counter(len(case.loaded) for case in cases if _is_beginning(case))
    for length, _ in lengths.most_common(1):
        cause = Cause(
            "truncation",
            f"the trainer's tokenizer cuts every text after {length} tokens.",
            "Take `truncation` out of its tokenizer.json, or call no_truncation().",
        )
        yield cause, lambda case, length=length: _is_beginning(case) and len(case.loaded) == length  # type: ignore[misc]


def _is_beginning(case: Case) -> bool:
    return 0 < len(case.theirs) < len(case.ours) and case.ours[: len(case.theirs)] == case.theirs


def _equal(encode: Encode, text: str, ids: Ids) -> bool:
    return len(text) <= LONGEST_TRIED and encode(text) == ids


def _if_changed(name: str, change: Callable[[str], str], sentence: str, mend: str, theirs: Encode) -> _Hypothesis:
    def explains(case: Case) -> bool:
        changed = change(case.text)
        return changed != case.text and _equal(theirs, changed, case.ours)

    return Cause(name, sentence, mend), explains


def _if_we_changed(name: str, change: Callable[[str], str], sentence: str, mend: str, ours: Encode) -> _Hypothesis:
    def explains(case: Case) -> bool:
        changed = change(case.text)
        return changed != case.text and _equal(ours, changed, case.theirs)

    return Cause(name, sentence, mend), explains


def _if_indifferent(name: str, change: Callable[[str], str], sentence: str, mend: str, theirs: Encode) -> _Hypothesis:
    """Where ours cannot be asked: theirs gives the changed text the same ids, as if it changed it itself."""

    def explains(case: Case) -> bool:
        changed = change(case.text)
        return changed != case.text and _equal(theirs, changed, case.theirs)

    return Cause(name, sentence, mend), explains


def _without_marks(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def _form(form: str) -> Callable[[str], str]:
    return lambda text: unicodedata.normalize(form, text)  # type: ignore[arg-type]


_FILES = "Give the pipeline the very files that the trainer loads."
_CHANGES: tuple[tuple[str, Callable[[str], str], str, str], ...] = (
    (
        "prefix_space",
        lambda text: " " + text,
        "puts a blank before every text (add_prefix_space, add_dummy_prefix, legacy)",
        "Set the same add_prefix_space and legacy flags in both tokenizer_config.json files.",
    ),
    ("lower_case", str.lower, "lower-cases text", f"One normaliser differs. {_FILES}"),
    ("nfc", _form("NFC"), "composes characters (NFC)", f"One normaliser differs. {_FILES}"),
    ("nfkc", _form("NFKC"), "folds widths and ligatures (NFKC)", f"One normaliser differs. {_FILES}"),
    ("nfd", _form("NFD"), "takes characters apart (NFD)", f"One normaliser differs. {_FILES}"),
    ("nfkd", _form("NFKD"), "folds and takes characters apart (NFKD)", f"One normaliser differs. {_FILES}"),
    ("accents", _without_marks, "drops accents", f"One normaliser differs. {_FILES}"),
    (
        "lower_accents",
        lambda text: _without_marks(text.lower()),
        "lower-cases text and drops accents",
        f"One normaliser differs. {_FILES}",
    ),
    (
        "strip",
        str.strip,
        "drops blanks at both ends",
        f"One normaliser or flag (strip, lstrip, rstrip) differs. {_FILES}",
    ),
    ("blanks", lambda text: " ".join(text.split()), "makes one blank of many", f"One normaliser differs. {_FILES}"),
    ("line_ends", lambda text: text.replace("\r\n", "\n").replace("\r", "\n"), "changes line ends", _FILES),
)
"""Name, change of the text, what a tokenizer that does so does, what to do."""


def _one_more(cases: Sequence[Case]) -> Iterator[_Hypothesis]:
    """One side has one and the same token more at the beginning, and not in every text, else it would stand around texts."""
    for which, place in (("trainer's", 1), ("pipeline's", 0)):
        more = Counter(_first_if_more(case, place) for case in cases)
        del more[-1]
        for index, _ in more.most_common(1):
            cause = Cause(
                "leading_token",
                f"the {which} tokenizer begins this text with one more token, {index}: SentencePiece puts its blank before an "
                "added token too, the library tokenizers does not.",
                "It concerns texts that begin with an added token; leave such tokens out of the text, or load both the same way.",
            )
            yield cause, lambda case, place=place, index=index: _first_if_more(case, place) == index  # type: ignore[misc]


def _only_one_side(cases: Sequence[Case], sizes: tuple[int, int]) -> Iterator[_Hypothesis]:
    """A token beyond the other side's vocabulary, where the two begin to differ."""
    for which, place in (("pipeline's", 0), ("trainer's", 1)):
        other = sizes[1 - place]
        if other < sizes[place]:
            found = Counter(one for one in (_at_difference(case, place) for case in cases) if one >= other)
            for index, _ in found.most_common(1):
                sentence = (
                    f"only the {which} tokenizer has token {index}: the other one has {other:,} tokens, without it."
                )
                cause = Cause("added_token", sentence, "Add the same tokens in both before the corpus is encoded.")
                yield cause, lambda case, place=place, other=other: _at_difference(case, place) >= other  # type: ignore[misc]


def _at_difference(case: Case, place: int) -> int:
    """The larger of two ids of one side where the two begin to differ, the blank before it may go another way; -1: none."""
    one, other = (case.ours, case.theirs) if place == 0 else (case.theirs, case.ours)
    first = first_difference(one, other)
    return max(one[first : first + 2], default=-1)


def _first_if_more(case: Case, place: int) -> int:
    """The first id of one side, where the rest of it is the other side; else -1."""
    one, other = (case.ours, case.theirs) if place == 0 else (case.theirs, case.ours)
    return one[0] if one[1:] == other and one else -1


def _renumbered(cases: Sequence[Case], sides: tuple[Side, Side]) -> Iterator[_Hypothesis]:
    """The same tokens under other ids."""
    ours, theirs = (side.decode for side in sides)
    if ours is None or theirs is None:
        shifts = Counter(_shift(case) for case in cases if len(case.ours) > 1)
        shift = shifts.most_common(1)[0][0] if shifts else 0
        if shift:
            yield _shifted(shift), lambda case: _shift(case) == shift
        return

    def same_tokens(case: Case) -> bool:
        pairs = list(zip_longest(case.ours, case.theirs, fillvalue=-1))[:200]
        return len(case.ours) == len(case.theirs) and all(ours([a]) == theirs([b]) for a, b in pairs if a != b)

    first = next((case for case in cases if same_tokens(case)), None)
    if first is None:
        return
    place = first_difference(first.ours, first.theirs)
    shifts = Counter(b - a for a, b in zip(first.ours, first.theirs, strict=True))
    shift = shifts.most_common(1)[0][0]
    if shift and shifts[shift] > len(first.ours) // 2:
        yield _shifted(shift), same_tokens
    else:
        sentence = f"the same tokens have other ids: {ours([first.ours[place]])!r} is {first.ours[place]} here and "
        yield Cause("renumbered", f"{sentence}{first.theirs[place]} with the trainer.", _FILES), same_tokens


def _shift(case: Case) -> int:
    """By how much every id is moved; 0: not by one number."""
    if len(case.ours) != len(case.theirs):
        return 0
    steps = {b - a for a, b in zip(case.ours, case.theirs, strict=True)}
    return steps.pop() if len(steps) == 1 else 0


def _shifted(shift: int) -> Cause:
    return Cause(
        "shifted",
        f"the same tokens with ids moved by {shift:+d}: one side counts special or added tokens before them.",
        "Add the tokens in both, or in neither, before the corpus is encoded.",
    )


def _unknown(sides: tuple[Side, Side]) -> Iterator[_Hypothesis]:
    for which, place in (("pipeline's", 0), ("trainer's", 1)):
        unk = sides[place].unk_id
        if unk is None:
            continue

        def explains(case: Case, unk: int = unk, place: int = place) -> bool:
            mine, other = (case.ours, case.theirs) if place == 0 else (case.theirs, case.ours)
            first = first_difference(mine, other)
            return unk in mine[first : first + 2] and unk not in other[first : first + 2]

        sentence = f"the {which} tokenizer does not know this text (unknown token {unk}), the other one does."
        yield Cause("unknown", sentence, f"One has byte fallback or a larger vocabulary. {_FILES}"), explains


def _other_merges(sides: tuple[Side, Side]) -> Cause | None:
    one, other = (side.merges() for side in sides)
    if one is None or other is None:
        return None
    pairs = zip_longest(one, other)
    for number, (mine, theirs) in enumerate(pairs):
        if mine != theirs:
            sentence = f"merge {number} is {mine!r} here and {theirs!r} with the trainer."
            return Cause("merges", f"other merges: {sentence}", _FILES)
    return None
