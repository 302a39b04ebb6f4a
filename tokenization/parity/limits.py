"""What must hold between two tokenizers beside equal ids: vocabularies, special tokens, unknown and lost characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenization.parity.causes import model_of_size
from tokenization.parity.ids import Wrap
from tokenization.parity.tally import Tally

if TYPE_CHECKING:
    from tokenization.layout import TokenizerCard
    from tokenization.parity.trainers import TrainerTokenizer

__all__ = ["Limits", "Problem", "fit_notes", "fit_problems", "special_problems", "vocabulary_problems", "wrap_notes"]

MOST_LANGUAGES = 5
"""Named in a note."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tokenizer may cost, over all documents together."""

    max_unk_share: float = 0.001
    max_lost_share: float = 0.001
    embedding_rows: int | None = None
    """Rows of the trainer's embedding; None: what the trainer's config.json says."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not hold."""

    check: str
    """ids, vocabulary, embedding, eos, bos, unknown, lost."""
    message: str


def vocabulary_problems(
    card: TokenizerCard, theirs: TrainerTokenizer | None, max_id: int, limits: Limits
) -> Iterator[Problem]:
    """Ids that the trainer has no token or no embedding for.

    Args:
        max_id: the largest id that was seen, special tokens included.
    """
    if theirs is not None and max_id > theirs.max_id:
        yield Problem(
            "vocabulary",
            f"id {max_id} occurs, and the trainer's largest is {theirs.max_id}: its vocabulary has {theirs.vocab_size:,} tokens"
            f"{model_of_size(theirs.vocab_size)}, ours {card.vocab_size:,}{model_of_size(card.vocab_size)}. "
            "Add the same tokens in both before the corpus is encoded.",
        )
    rows = limits.embedding_rows or (theirs.embedding_rows if theirs is not None else None)
    if rows is not None and max(max_id, card.max_id) >= rows:
        yield Problem(
            "embedding",
            f"the trainer's embedding has {rows:,} rows, and ids go up to {max(max_id, card.max_id)}, added tokens included. "
            f"Give it at least {max(max_id, card.max_id) + 1:,} rows.",
        )


def special_problems(card: TokenizerCard, theirs: TrainerTokenizer, wrap: Wrap) -> Iterator[Problem]:
    """BOS and EOS must be the trainer's, and stand once."""
    if theirs.eos_id is not None and theirs.eos_id != card.eos_id:
        yield Problem(
            "eos",
            f"documents end with {card.eos!r} (id {card.eos_id}), and the trainer's end of text is id {theirs.eos_id} "
            f"({theirs.decode([theirs.eos_id])!r}). Set pack.eos to that token.",
        )
    if card.bos_id is not None and theirs.bos_id is not None and theirs.bos_id != card.bos_id:
        yield Problem(
            "bos",
            f"documents begin with {card.bos!r} (id {card.bos_id}), and the trainer's begin of text is id {theirs.bos_id} "
            f"({theirs.decode([theirs.bos_id])!r}). Set pack.bos to that token.",
        )
    ours = () if card.bos_id is None else (card.bos_id,)
    if len(wrap.lead) > 1 and len(set(wrap.lead)) == 1:
        yield Problem(
            "bos",
            f"the trainer's tokenizer puts its BOS {len(wrap.lead)} times before every text (ids {list(wrap.lead)}): once by the "
            "post-processor in its tokenizer.json and once by add_bos_token. Switch one of them off.",
        )
    elif wrap.lead and wrap.lead != ours:
        named = theirs.decode(list(wrap.lead))
        yield Problem(
            "bos",
            f"the trainer's tokenizer begins every text with {named!r} (ids {list(wrap.lead)}), and documents are packed with "
            f"{'nothing' if not ours else repr(card.bos)} before them. Set pack.bos to {named!r}, or switch it off there.",
        )
    if wrap.tail and wrap.tail != (card.eos_id,):
        yield Problem(
            "eos",
            f"the trainer's tokenizer ends every text with {theirs.decode(list(wrap.tail))!r} (ids {list(wrap.tail)}), and documents "
            f"are packed with {card.eos!r} ({card.eos_id}) behind them. Set pack.eos to that token, or switch it off there.",
        )


def fit_problems(tally: Tally, limits: Limits, *, complete: bool) -> Iterator[Problem]:
    """Unknown tokens, and characters that are lost though nothing is unknown."""
    totals = tally.all.shares()
    of = f"of {totals['documents']:,} {'documents' if complete else 'documents of a sample'}"
    if tally.is_over("unknown", limits.max_unk_share, complete=complete):
        worst = f", most of all {tally.worst[0][1]} with {tally.worst[0][0]:.1%}" if tally.worst else ""
        yield Problem(
            "unknown",
            f"{totals['unk_share']:.4%} of the tokens {of} are unknown, more than {limits.max_unk_share:.4%}{worst}: the tokenizer "
            "does not know this text. Choose another one with pack.tokenizer, or raise pack.max_unk_share if that is what you want.",
        )
    if tally.is_over("lost", limits.max_lost_share, complete=complete):
        shown = tally.samples[0]
        yield Problem(
            "lost",
            f"{totals['lost_share']:.4%} of the characters {of} do not come back from the ids, more than "
            f"{limits.max_lost_share:.4%}, though {totals['unk_share']:.4%} of the tokens are unknown: the tokenizer drops or changes "
            f"them. {shown['where']}: {shown['text']!r} becomes {shown['decoded']!r}. Choose another one with pack.tokenizer, or raise "
            "pack.max_lost_share if that is what you want.",
        )


def fit_notes(tally: Tally, limits: Limits) -> Iterator[str]:
    """Languages that are over a limit which all documents together keep, and documents that do not come back."""
    for key, limit, what in (
        ("unk_share", limits.max_unk_share, "unknown tokens"),
        ("lost_share", limits.max_lost_share, "characters that do not come back"),
    ):
        shares = {name or "without a language": sums[key] for name, sums in tally.by_language().items()}
        over = sorted(((share, name) for name, share in shares.items() if share > limit), reverse=True)
        if over and len(shares) > 1:
            shown = ", ".join(f"{name} {share:.2%}" for share, name in over[:MOST_LANGUAGES])
            yield f"{len(over)} languages have more than {limit:.2%} {what}: {shown}"
    lossy = tally.all.documents_with_loss
    if lossy:
        yield f"{lossy:,} of {tally.all.documents:,} documents do not come back from their ids as they were"


def wrap_notes(
    card: TokenizerCard, theirs: TrainerTokenizer, wrap: Wrap, counts: Mapping[str, int], *, asked: bool
) -> Iterator[str]:
    """What is no difference, and worth knowing.

    Args:
        counts: texts by kind, probes and documents together: special_text, cut.
    """
    whose = "the trainer's tokenizer" if asked else "the tokenizer's own file"
    if wrap.lead:
        like = (
            "as the pack does"
            if wrap.lead == (card.bos_id,)
            else f"the pack puts {card.bos!r}"
            if card.bos
            else "the pack puts nothing"
        )
        yield f"{whose} begins every text with ids {list(wrap.lead)}; {like}"
    elif card.bos_id is not None:
        yield f"{whose} puts nothing before a text; the pack puts {card.bos!r} ({card.bos_id})"
    if wrap.tail:
        like = "as the pack does" if wrap.tail == (card.eos_id,) else f"the pack puts {card.eos!r}"
        yield f"{whose} ends every text with ids {list(wrap.tail)}; {like}"
    if counts.get("special_text"):
        yield (
            f"in {counts['special_text']} texts {whose} reads special tokens where the text only spells them; packed they are text, "
            "so that no page can forge a border"
        )
    if counts.get("cut"):
        yield f"{whose} cuts or pads texts, {counts['cut']} of those compared; packed they are whole"
    if theirs.vocab_size != card.vocab_size:
        yield f"{card.vocab_size:,} tokens here, {theirs.vocab_size:,} there"
