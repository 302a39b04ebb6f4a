"""Everything that the search needs of the lists in use: the tries, what each row asks, and how reports name it.

Some 0.5 s for 7,000 spellings, once for the same lists in a process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from curation.errors import ConfigError, nearest
from curation.filters.safety_terms.find import Rows, Tries
from curation.filters.safety_terms.spelling import Solid, spelled, spelled_context
from curation.filters.safety_terms.terms import ContextWord, Term, TermList, read_terms
from curation.filters.safety_terms.trie import Spelling, trie_of
from quality_models.safety_labels import CATEGORY_NAMES

__all__ = ["SHIPPED", "Tables", "checksums_of", "files_of", "tables_for", "tables_of"]

SHIPPED = Path(__file__).resolve().parent / "terms"


class Tables(NamedTuple):
    """Lists, made ready."""

    terms: tuple[Term, ...]
    spellings: tuple[str, ...]
    """As written, by the number that hits have."""
    tries: Tries
    rows: Rows


def files_of(files: Sequence[Path], *, shipped: bool) -> list[Path]:
    """The files of lists in the order in which they count.

    Raises ConfigError where there is none.
    """
    found = [*(sorted(SHIPPED.glob("*.tsv")) if shipped else ()), *files]
    if not found:
        raise ConfigError("step safety_terms: expected a list of terms, found shipped: false and no files: name a file")
    return found


def checksums_of(files: Sequence[Path]) -> dict[str, str]:
    """Name of each file -> digest of its bytes.

    Raises ConfigError for a missing file, and for two of one name, whose rows a report could not tell apart.
    """
    found: dict[str, str] = {}
    for path in files:
        if path.name in found:
            raise ConfigError(f"{path}: expected files of terms with different names, found two: rename one")
        try:
            found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise ConfigError(f"{path}: expected a file of terms, found: {error.strerror}: correct `files`") from error
    return found


def tables_for(files: Sequence[Path], off: Sequence[str]) -> Tables:
    """The tables of lists in files, read anew only if their bytes changed. Raises ConfigError as `read_terms` does."""
    return _tables_for(tuple(files), tuple(checksums_of(files).values()), tuple(off))


@lru_cache(maxsize=8)
def _tables_for(files: tuple[Path, ...], checksums: tuple[str, ...], off: tuple[str, ...]) -> Tables:
    assert len(files) == len(checksums)
    return tables_of([read_terms(path) for path in files], off)


def tables_of(lists: Sequence[TermList], off: Sequence[str] = ()) -> Tables:
    """The tables of lists without the spellings in `off`.

    Raises ConfigError for one in `off` that no list has: it would do nothing.
    """
    terms = without(lists, off)
    spellings: list[Spelling] = []
    written: list[str] = []
    for row, term in enumerate(terms):
        seen: set[tuple[Solid, ...]] = set()
        for text in term.spellings:
            solids = spelled(text)
            if solids not in seen:
                seen.add(solids)
                spellings.append(Spelling(solids, term.mode == "word", row))
                written.append(text)
    words: dict[tuple[tuple[Solid, ...], str], int] = {}
    contexts: dict[tuple[ContextWord, ...], int] = {(): -1}
    numbers_of: dict[int, int] = {}  # by identity: a list has hundreds of rows with the same long context

    def number_of(context: tuple[ContextWord, ...]) -> int:
        if id(context) not in numbers_of:
            numbers_of[id(context)] = contexts.setdefault(context, len(contexts) - 1)
        return numbers_of[id(context)]

    near, unless = [number_of(term.near) for term in terms], [number_of(term.unless) for term in terms]
    sets = [
        {words.setdefault((spelled_context(word.word), word.mode), len(words)) for word in context}
        for context in contexts
        if context
    ]
    of_words = [Spelling(solids, mode == "word", number) for (solids, mode), number in words.items()]
    members = np.zeros((max(1, len(sets)), max(1, len(words))), np.uint8)
    for of_set, numbers in enumerate(sets):
        members[of_set, sorted(numbers)] = 1
    rows = Rows(
        categories=np.array([CATEGORY_NAMES.index(term.category) for term in terms], np.int32),
        weights=np.array([term.weight for term in terms], np.int32),
        is_regex=np.array([term.mode == "regex" for term in terms], np.bool_),
        near=np.array(near, np.int32),
        unless=np.array(unless, np.int32),
        sets=members,
        n_owners=max(1, len(terms), len(words)),
    )
    return Tables(tuple(terms), tuple(written), Tries(trie_of(spellings), trie_of(of_words)), rows)


def without(lists: Sequence[TermList], off: Sequence[str]) -> list[Term]:
    """All terms but the spellings in `off`, which are compared as terms are."""
    switched_off = {spelled(text): text for text in off}
    used: set[tuple[Solid, ...]] = set()
    terms = []
    for term in (term for one in lists for term in one.terms):
        left = []
        for text in term.spellings:
            solids = spelled(text)
            if solids in switched_off:
                used.add(solids)
            else:
                left.append(text)
        if left:
            terms.append(term._replace(spellings=tuple(left)))
    for solids, text in switched_off.items():
        if solids not in used:
            known = [spelling for one in lists for term in one.terms for spelling in term.spellings]
            raise ConfigError(f"off: expected terms that a list has, found {text!r}{nearest(text, known)}: remove it")
    return terms
