"""The pipeline's tokenizer held against the trainer's, on the frozen probes and on documents, and what else must hold.

    report = check_tokenizer(ours, theirs, documents, ...)
    report.raise_if_different()

Checked beside equal ids: no id lies outside the trainer's vocabulary or its embedding; BOS and EOS are the trainer's, and
stand once; the share of unknown tokens, and of characters that decoding does not give back, over all documents. Each is
reported by language too, with the documents that are worst.

No difference, but said: BOS and EOS that the trainer's tokenizer puts as the pack does, and special tokens that it reads
in text which only spells them. Where no trainer's tokenizer is given, ours is held against the library that reads its file,
and what the file's own settings put around a text or cut off is said too, and is no difference.

Costs: both tokenizers on all documents, one after the other: 1 to 3 MB/s of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenization.errors import TokenizerError
from tokenization.parity.causes import Case, Cause, Encode, Side, likely_cause
from tokenization.parity.golden_check import Difference, difference_at
from tokenization.parity.ids import Ids, Wrap, common_wrap, reads_special_tokens, spells_special
from tokenization.parity.limits import (
    Limits,
    Problem,
    fit_notes,
    fit_problems,
    special_problems,
    vocabulary_problems,
    wrap_notes,
)
from tokenization.parity.tally import Tally, Text
from tokenization.parity.trainers import TrainerTokenizer, load_stock, other_ways
from tokenization.probes import PROBES
from tokenization.trials import trial_texts

if TYPE_CHECKING:
    from tokenization.layout import TokenizerCard
    from tokenization.tokenizer import Encoded, Tokenizer

__all__ = ["Limits", "ParityReport", "Problem", "check_tokenizer"]

VOCABULARY_BATCH = 8_192
MOST_CASES = 64
"""Differing texts that are kept for the search for a cause."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """What was compared and found."""

    tokenizer: Mapping[str, Any]
    reference: Mapping[str, Any] | None
    """What it was held against; None: no library for this kind of file is installed."""
    probes: Mapping[str, int]
    documents: Mapping[str, Any]
    languages: Mapping[str, Mapping[str, Any]]
    difference: Difference | None
    problems: Sequence[Problem]
    notes: Sequence[str]

    @property
    def equal(self) -> bool:
        """Whether everything holds."""
        return not self.problems

    def message(self) -> str:
        """The first problem in full, and what the others are about."""
        if not self.problems:
            return "equal"
        first, *rest = self.problems
        also = f" Also: {'; '.join(problem.message for problem in rest)}" if rest else ""
        return f"{first.message}{also}"

    def raise_if_different(self) -> None:
        """
        Raises:
            TokenizerError: something does not hold; the message says what, where and what to do.
        """
        if self.problems:
            raise TokenizerError(self.message())

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"equal": self.equal, **asdict(self)}


@dataclass
class _Comparison:
    """Both tokenizers, and what was found so far."""

    ours: Tokenizer
    theirs: TrainerTokenizer
    asked: bool
    """The trainer's tokenizer was named; else it is the library that reads our own file."""
    wrap: Wrap = field(default_factory=Wrap)
    cases: list[Case] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def compare(self, texts: Sequence[Text], ours: Sequence[Ids]) -> list[bool]:
        """Whether each text has equal ids; differing ones are kept as cases, special tokens and cuts are counted."""
        loaded = self.theirs.loaded([text.text for text in texts])
        unequal = [i for i, ids in enumerate(loaded) if self.wrap.strip(ids) != ours[i]]
        plain = dict(zip(unequal, self.theirs.plain([texts[i].text for i in unequal]), strict=True)) if unequal else {}
        equal = [True] * len(texts)
        for index, alone in plain.items():
            case = Case(
                texts[index].where, texts[index].text, ours[index], self.wrap.strip(loaded[index]), loaded[index]
            )
            kind = self._kind(case, alone)
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if kind == "different":
                equal[index] = False
                if len(self.cases) < MOST_CASES:
                    self.cases.append(case)
        return equal

    def _kind(self, case: Case, alone: Ids) -> str:
        special = self.theirs.special_ids
        if spells_special(case.text, self.theirs.special_names):
            if alone == case.ours and special.intersection(case.theirs):
                return "special_text"
            if reads_special_tokens(case.ours, case.theirs, special.__contains__):
                return "special_text"
            if not self.asked and _only_hidden(case.ours, alone, special):
                return "special_text"
        if not self.asked and alone == case.ours:
            return "cut"
        return "different"

    def difference(self, ways: Sequence[tuple[Cause, Encode]], own: str | Path, trainer: str | Path) -> Difference:
        """The first difference, with its likely cause."""

        def merges() -> Sequence[str] | None:
            return load_stock(own).merges()

        cause = likely_cause(
            self.cases,
            theirs=lambda text: self.theirs.plain([text])[0],
            ours=lambda text: _ids(self.ours.encode_batch([text])[0]),
            sizes=(self.ours.vocab_size, self.theirs.vocab_size),
            sides=(Side(self.ours.decode, merges, self.ours.unk_id), self.theirs.side()),
            their_ways=other_ways(trainer, self.theirs),
            our_ways=ways,
        )
        return difference_at(self.cases[0], self.ours.decode, self.theirs.decode, cause)


def check_tokenizer(
    ours: Tokenizer,
    theirs: TrainerTokenizer | None,
    documents: Iterable[Sequence[Text]] = (),
    *,
    trainer: str | Path | None = None,
    own: str | Path = "default",
    stock: Callable[[], Tokenizer] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    complete: bool = True,
) -> ParityReport:
    """Compare, on the probes and on documents.

    Args:
        theirs: the trainer's tokenizer; or the library's that reads our own file, where `trainer` is None; None: neither.
        documents: batches of documents.
        trainer: where `theirs` was loaded from, if it is the trainer's.
        own: where `ours` was loaded from.
        stock: loads ours with the stock library, to tell whether the fast one is at fault.
        complete: the documents are all that there are; else a sample, and a share must lie over its limit beyond doubt.

    Raises:
        TokenizerError: a document yields the end-of-document token by itself.
    """
    comparison = None if theirs is None else _Comparison(ours, theirs, trainer is not None)
    on_probes, largest = _on_probes(ours, comparison)
    card = ours.card()
    tally = Tally(max(largest, card.eos_id, card.pad_id, card.bos_id or 0))
    borders: list[str] = []
    for batch in documents:
        encoded = ours.encode_documents([document.text for document in batch])
        ids = _without_borders(ours, batch, encoded, borders)
        equal = comparison.compare(batch, ids) if comparison is not None else [True] * len(batch)
        tally.add(batch, encoded, ids, equal, ours.decode)
    difference = None
    if comparison is not None and comparison.cases:
        ways = [] if stock is None else [(_ENGINE, _lazily(stock))]
        difference = comparison.difference(ways, own, trainer or own)
    problems = _problems(card, comparison, tally, limits, difference, complete=complete)
    problems += [Problem("borders", message) for message in borders[:1]]
    return ParityReport(
        tokenizer={**asdict(card), "engine": ours.engine},
        reference=None if comparison is None else _about(comparison, trainer),
        probes=on_probes,
        documents={**tally.totals(), **(comparison.counts if comparison else {})},
        languages=tally.by_language(),
        difference=difference,
        problems=problems,
        notes=_notes(card, comparison, on_probes, tally, limits),
    )


_ENGINE = Cause(
    "engine",
    "the fast library that the pipeline uses; its stock library gives the trainer's ids.",
    "Set pack.engine to stock, and please report the text.",
)


def _on_probes(ours: Tokenizer, comparison: _Comparison | None) -> tuple[dict[str, int], int]:
    """Compare on the probes: how many, and of which kinds; and the largest id that ours gave them."""
    probes = _probes(ours, asked=comparison is not None and comparison.asked)
    ids = _plain(ours, [probe.text for probe in probes])
    largest, counts = max((max(one) for one in ids if one), default=0), {}
    if comparison is not None:
        theirs = comparison.theirs
        comparison.wrap = common_wrap(theirs.plain(PROBES), theirs.loaded(PROBES))
        comparison.compare(probes, ids)
        if comparison.asked:
            probes += _compare_vocabulary(comparison)
        counts, comparison.counts = comparison.counts, {}
    return {"texts": len(probes), **counts}, largest


def _probes(ours: Tokenizer, *, asked: bool) -> list[Text]:
    """The frozen probes and the look-alikes of special tokens; against a trainer's, all texts on which libraries differed.

    Ours was held against its own library on those when it was loaded (`engines`).
    """
    card = ours.card()
    names = [name for name in dict.fromkeys((card.eos, card.pad, card.bos)) if name]
    texts = trial_texts(names) if asked else [*PROBES]
    texts += [text for name in names for text in (f"{name}word", f"{name} word", f"  {name}\n word", f"{name}{name}a")]
    return [Text(f"probe text {number}", text, None) for number, text in enumerate(texts)]


def _compare_vocabulary(comparison: _Comparison) -> list[Text]:
    """The text of every token, as far as it is whole characters: a merge that is missing or in another place shows there.

    An added token stands behind a letter: before one that is all of a text SentencePiece puts its blank, and the library
    `tokenizers` cannot. A document that is nothing else is compared as a document.
    """
    ours, compared = comparison.ours, []
    added = ours.added_tokens
    for first in range(0, ours.max_id + 1, VOCABULARY_BATCH):
        ids = range(first, min(first + VOCABULARY_BATCH, ours.max_id + 1))
        named = ((index, ours.decode([index])) for index in ids)
        texts = ((index, f"a{text}" if text in added else text) for index, text in named)
        batch = [Text(f"text of token {index}", text, None) for index, text in texts if text and "\ufffd" not in text]
        comparison.compare(batch, _plain(ours, [text.text for text in batch]))
        compared += batch
    return compared


def _plain(ours: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    ids, lengths = ours.encode_batch(texts)
    flat = iter(ids.tolist())
    return [tuple(islice(flat, int(n))) for n in lengths]


def _ids(array: Any) -> Ids:
    return tuple(array.tolist())


def _without_borders(ours: Tokenizer, batch: Sequence[Text], encoded: Encoded, wrong: list[str]) -> list[Ids]:
    """Ids of the texts alone. Each document must begin with its BOS, where there is one, and end with EOS; each once."""
    flat, card = iter(encoded.ids.tolist()), ours.card()
    found = []
    for document, length in zip(batch, encoded.lengths.tolist(), strict=True):
        ids: Ids = tuple(islice(flat, length))
        begin = 0 if card.bos_id is None else 1
        inner = ids[begin:-1]
        if (begin and ids[0] != card.bos_id) or ids[-1] != card.eos_id or card.eos_id in inner:
            wrong.append(f"{document.where}: expected {card.bos!r} once before it and {card.eos!r} once behind it.")
        elif begin and card.bos_id in inner:
            wrong.append(
                f"{document.where}: {card.bos!r} ({card.bos_id}) stands inside of it, as the begin of another."
            )
        found.append(inner)
    return found


def _only_hidden(ours: Ids, alone: Ids, special: frozenset[int]) -> bool:
    """Models that look up whole words find special tokens whatever they are told; ours are hidden from text."""
    return reads_special_tokens(ours, alone, special.__contains__)


def _problems(
    card: TokenizerCard,
    comparison: _Comparison | None,
    tally: Tally,
    limits: Limits,
    difference: Difference | None,
    *,
    complete: bool,
) -> list[Problem]:
    """What does not hold, the most telling first."""
    problems: list[Problem] = []
    asked = comparison.theirs if comparison is not None and comparison.asked else None
    if comparison is not None and difference is not None:
        them = "with the trainer" if comparison.asked else f"with {comparison.theirs.how}"
        problems.append(Problem("ids", difference.message("here", them)))
    problems += vocabulary_problems(card, asked, tally.max_id, limits)
    if comparison is not None and asked is not None:
        problems += special_problems(card, asked, comparison.wrap)
    problems += fit_problems(tally, limits, complete=complete)
    return problems


def _notes(
    card: TokenizerCard, comparison: _Comparison | None, on_probes: Mapping[str, int], tally: Tally, limits: Limits
) -> list[str]:
    if comparison is None:
        return ["no library is installed that reads this kind of tokenizer: ids were compared with nothing"]
    counts = Counter({key: on_probes.get(key, 0) for key in ("special_text", "cut")}) + Counter(comparison.counts)
    said = wrap_notes(card, comparison.theirs, comparison.wrap, counts, asked=comparison.asked)
    return [*said, *fit_notes(tally, limits)]


def _lazily(load: Callable[[], Tokenizer]) -> Encode:
    loaded: list[Tokenizer] = []

    def encode(text: str) -> Ids:
        if not loaded:
            loaded.append(load())
        return _ids(loaded[0].encode_batch([text])[0])

    return encode


def _about(comparison: _Comparison, trainer: str | Path | None) -> dict[str, Any]:
    theirs = comparison.theirs
    return {
        "trainer": None if trainer is None else str(trainer),
        "how": theirs.how,
        "vocab_size": theirs.vocab_size,
        "max_id": theirs.max_id,
        "eos_id": theirs.eos_id,
        "bos_id": theirs.bos_id,
        "embedding_rows": theirs.embedding_rows,
        "puts_before": list(comparison.wrap.lead),
        "puts_behind": list(comparison.wrap.tail),
    }
