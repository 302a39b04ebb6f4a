"""Laws of near-duplicate removal: the slow definition over any texts, however they are cut and however little fits.

The definition knows no buckets: in order of priority, a document goes if a kept one before it has Jaccard >
threshold with it. So that the step must agree in every case, `recall` is set to 1 - 1e-9 where the two are compared: of a
pair above the threshold both bands and rows then miss less than one in 10^9. What is missed at usual settings is
measured elsewhere, on real documents. Where the step is compared with itself, `recall` is low on purpose: which pairs are
missed must not depend on files, memory or order either.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.dedup.choose import choose
from curation.dedup.minhash import band_keys, signatures
from curation.dedup.near import Near, NearConfig
from curation.dedup.sets import distinct
from curation.dedup.shingles import shingles
from curation.dedup.simhash import fingerprints
from curation.ids import doc_id, text_id
from tests.fakes import SOURCE, make_run, run_steps
from tests.strategies import cuts, hostile_text

Row = dict[str, Any]

MEMORY = 500 * 2**20 // 2
"""Bytes that an item may take where memory_mb is 500, as the runs of these tests have it."""
NEARLY_ALL = 1 - 1e-9
WORDS = ["mill", "river", "Öl", "don't", "3.14", "ﬁne", "река", "e\u0301te\u0301", "नदी", "a", "b", "c"]
HAN = "河边的小店登记每一位来客意见附近孩子常来帮忙图书馆上个月换了新屋顶かなカナ한국"


def edited(rng: random.Random, units: list[str], vocabulary: Sequence[str]) -> list[str]:
    """A near copy: some units replaced, put in, taken out, or more at an end."""
    units = list(units)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        place = rng.choice([0, rng.randrange(len(units) + 1), len(units)])
        units[place : place + rng.randrange(3)] = rng.choices(vocabulary, k=rng.randrange(3))
    return units


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    """Texts with copies of copies, in words and in characters, long and short; some that hurt."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    n, longest = draw(st.integers(0, 24)), draw(st.sampled_from([3, 12, 60, 150]))
    copied = draw(st.sampled_from([0.3, 0.7, 0.95]))
    few, many = WORDS, [f"{word}{number}" for word in WORDS for number in range(40)]
    texts: list[tuple[list[str], str, Sequence[str]]] = []
    for _ in range(n):
        if texts and rng.random() < copied:
            units, blank, vocabulary = rng.choice(texts)
            texts.append((edited(rng, units, vocabulary), blank, vocabulary))
        else:
            blank, vocabulary = rng.choice([(" ", few), (" ", many), (" ", many), ("", HAN)])
            texts.append((rng.choices(vocabulary, k=rng.randint(0, longest)), blank, vocabulary))
    hurting = draw(st.lists(hostile_text, max_size=4))
    found = [blank.join(units) for units, blank, _ in texts] + hurting
    rng.shuffle(found)
    return found


@dataclass(frozen=True)
class Room:
    """How little fits: bytes and numbers that decide into how many pieces the work is cut, and which way is taken."""

    key_ranges: int
    fingerprint_ranges: int
    verify_items: int
    max_values: int
    piece_bytes: int
    scan_up_to: int
    batch_rows: int

    @contextmanager
    def patched(self, n_documents: int, n_bands: int) -> Iterator[None]:
        n = max(n_documents, 1)
        with ExitStack() as stack:
            for name, value in {
                "buckets._BYTES_PER_KEY": MEMORY * self.key_ranges // (n * n_bands),
                "buckets._BYTES_PER_FINGERPRINT": MEMORY * self.fingerprint_ranges // n,
                "near._BYTES_PER_VALUE": MEMORY // self.max_values,
                "near._VALUES_PER_TEXT_BYTE": 0,
                "near._VERIFY_ITEMS": (self.verify_items, 256),
                "sign._PIECE_BYTES": self.piece_bytes,
                "verify.choose": partial(choose, scan_up_to=self.scan_up_to),
            }.items():
                stack.enter_context(patch(f"curation.dedup.{name}", value))
            stack.enter_context(patch("os.fsync"))
            yield


ROOMY = Room(1, 1, 16, 2**20, 2**23, 2_000, 1_000)
rooms = st.builds(
    Room,
    key_ranges=st.integers(1, 5),
    fingerprint_ranges=st.integers(1, 3),
    verify_items=st.integers(1, 4),
    max_values=st.sampled_from([1, 60, 400, 2**20]),
    piece_bytes=st.sampled_from([1, 500, 2**23]),
    scan_up_to=st.sampled_from([0, 2, 2_000]),
    batch_rows=st.sampled_from([1, 3, 1_000]),
)
POLICIES: list[tuple[str, ...]] = [("longest",), ("shortest",), ("first",), ("shortest", "first"), ("longest", "first")]


def rows_of(shards: Sequence[Sequence[str]], config: NearConfig, room: Room = ROOMY) -> list[Row]:
    """Verdicts of a run over the shards."""
    step = Near(config)
    n = sum(len(shard) for shard in shards)
    with tempfile.TemporaryDirectory() as root, room.patched(n, step.bands.bands):
        return run_steps(make_run(Path(root), shards, batch_rows=room.batch_rows), [step]).verdicts("near")


# -- the definition ---------------------------------------------------------------------------------


def by_definition(texts: Sequence[str], config: NearConfig) -> list[Row]:
    """The verdicts that a run over the texts must give, by plain sets and fractions."""
    ids = [doc_id(SOURCE, place, 0, text_id(text)) for place, text in enumerate(texts)]
    found = distinct(shingles(pa.array(texts, pa.large_string()), config.shingle))
    sets = [frozenset(found.values[found.offsets[i] : found.offsets[i + 1]].tolist()) for i in range(len(texts))]
    threshold = Fraction(round(config.threshold * 10**6), 10**6)

    def priority(place: int) -> tuple[Any, ...]:
        length = len(texts[place])
        rank = {"longest": -length, "shortest": length, "first": place}
        return (*(rank[criterion] for criterion in config.keep), text_id(texts[place]), ids[place])

    keeper: dict[int, int] = {}
    jaccard: dict[int, Fraction] = {}
    kept: list[int] = []
    for place in sorted(range(len(texts)), key=priority):
        for other in kept:
            both = len(sets[place] & sets[other])
            if both and Fraction(both, len(sets[place] | sets[other])) > threshold:
                keeper[place], jaccard[place] = other, Fraction(both, len(sets[place] | sets[other]))
                break
        else:
            kept.append(place)
    sizes = Counter(keeper.get(place, place) for place in range(len(texts)))
    found_by = signatures_that_agree(texts, keeper, config)
    return [
        {
            "keep": place not in keeper,
            "reason": "near.duplicate" if place in keeper else None,
            "kept_doc_id": ids[keeper[place]] if place in keeper else None,
            "similarity": float(np.float32(float(jaccard[place]))) if place in keeper else None,
            "group_size": sizes[keeper.get(place, place)],
            "found_by": found_by.get(place),
        }
        for place in range(len(texts))
    ]


def _signed(texts: Sequence[str], step: Near) -> tuple[npt.NDArray[np.uint64], list[int], list[int]]:
    """Band keys, fingerprints and numbers of shingles of the texts that have any."""
    found = shingles(pa.array(texts, pa.large_string()), step.config.shingle)
    counts = np.diff(found.offsets)
    some = np.flatnonzero(counts)
    keys = band_keys(signatures(found, step.config.num_perm), *step.bands)
    return keys[some], fingerprints(found)[some].tolist(), counts[some].tolist()


def signatures_that_agree(texts: Sequence[str], keeper: dict[int, int], config: NearConfig) -> dict[int, str]:
    """For each dropped document which of its signatures agree with those of the kept one."""
    found = shingles(pa.array(texts, pa.large_string()), config.shingle)
    keys = band_keys(signatures(found, config.num_perm), *Near(config).bands)
    prints, counts = fingerprints(found).tolist(), np.diff(found.offsets)
    names = {}
    for place, other in keeper.items():
        near = config.simhash_distance is not None and min(counts[place], counts[other]) >= 64
        near = near and (prints[place] ^ prints[other]).bit_count() <= (config.simhash_distance or 0)
        names[place] = {
            (False, False): "neither",
            (True, False): "simhash",
            (False, True): "minhash",
            (True, True): "both",
        }[bool(near), bool((keys[place] == keys[other]).any())]
    return names


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    texts=corpora(),
    room=rooms,
    threshold=st.sampled_from([0.5, 0.6, 0.75, 0.8, 0.9, 0.999999]),
    shingle=st.sampled_from([1, 2, 5, 5]),
    distance=st.sampled_from([None, 0, 3, 7]),
    keep=st.sampled_from(POLICIES),
)
def test_as_the_definition_says(
    data: st.DataObject,
    texts: list[str],
    room: Room,
    threshold: float,
    shingle: int,
    distance: int | None,
    keep: tuple[str, ...],
) -> None:
    """Kept set, partner, similarity, group size and signatures that agree are those of plain sets and fractions."""
    shards = data.draw(cuts(texts))
    config = NearConfig(threshold=threshold, shingle=shingle, recall=NEARLY_ALL, simhash_distance=distance, keep=keep)
    assert rows_of(shards, config, room) == by_definition(texts, config)


# -- candidates -------------------------------------------------------------------------------------


def components(n: int, pairs: Iterable[tuple[int, int]]) -> set[frozenset[int]]:
    """Groups of two and more of n numbers that are connected by pairs."""
    groups = {number: {number} for number in range(n)}
    for one, other in pairs:
        if groups[one] is not groups[other]:
            joined = groups[one] | groups[other]
            groups.update(dict.fromkeys(joined, joined))
    return {frozenset(group) for group in groups.values() if len(group) > 1}


@settings(max_examples=15, deadline=None)
@given(data=st.data(), texts=corpora(), room=rooms, distance=st.sampled_from([None, 3, 7]))
def test_clusters_are_what_equal_signatures_join(
    data: st.DataObject, texts: list[str], room: Room, distance: int | None
) -> None:
    """Documents are candidates of each other exactly if a chain of equal band keys or close fingerprints joins them.

    Two bands only, so that a key that is lost shows. All cuts of the hashes must find the same.
    """
    step = Near(NearConfig(num_perm=16, recall=0.5, simhash_distance=distance))
    shards = data.draw(cuts(texts))
    with (
        tempfile.TemporaryDirectory() as root,
        room.patched(len(texts), step.bands.bands),
        patch("curation.dedup.simhash.MIN_SHINGLES", 20),
    ):
        run_steps(make_run(Path(root), shards), [step])
        table = pa.ipc.open_file(next(Path(root).rglob("cluster/00000.arrow"))).read_all().to_pydict()
    found: list[set[int]] = []
    for number, first in zip(table["number"], table["first"], strict=True):
        found += [set()] * first
        found[-1] = found[-1] | {number}
    keys, prints, counts = _signed(texts, step)
    pairs = [
        (one, other)
        for one, other in combinations(range(len(keys)), 2)
        if (keys[one] == keys[other]).any()
        or (
            distance is not None
            and min(counts[one], counts[other]) >= 20
            and (prints[one] ^ prints[other]).bit_count() <= distance
        )
    ]
    assert {frozenset(group) for group in found} == components(len(keys), pairs)


# -- the step against itself ------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    data=st.data(),
    texts=corpora(),
    room=rooms,
    threshold=st.sampled_from([0.5, 0.7, 0.9]),
    keep=st.sampled_from(POLICIES),
)
def test_cuts_and_memory_do_not_matter(
    data: st.DataObject, texts: list[str], room: Room, threshold: float, keep: tuple[str, ...]
) -> None:
    """Every verdict and score is the same for one shard and any number, much memory and little, also where bands miss pairs."""
    config = NearConfig(threshold=threshold, num_perm=16, recall=0.5, keep=keep)
    assert rows_of(data.draw(cuts(texts)), config, room) == rows_of([texts], config)


@settings(max_examples=12, deadline=None)
@given(
    data=st.data(),
    texts=corpora(),
    room=rooms,
    keep=st.sampled_from([("longest",), ("shortest",)]),
    recall=st.sampled_from([0.5, 0.999]),
)
@example(
    data=None,
    texts=["a b c d e f", "f e d c b a", "b a c d e f", "a b c d e f"],
    room=ROOMY,
    keep=("longest",),
    recall=0.5,
)
def test_the_order_of_the_input_does_not_matter(
    data: st.DataObject | None, texts: list[str], room: Room, keep: tuple[str, ...], recall: float
) -> None:
    """The same documents in other files and in another order keep the same texts: ties go by text, not by place.

    Unless the policy is `first`, which asks for the order.
    """
    config = NearConfig(threshold=0.6, num_perm=32, recall=recall, keep=keep)
    mixed = data.draw(st.permutations(texts)) if data else texts[::-1]
    shards = data.draw(cuts(mixed)) if data else [mixed]
    kept = [text_id(text) for text, row in zip(mixed, rows_of(shards, config, room), strict=True) if row["keep"]]
    before = [text_id(text) for text, row in zip(texts, rows_of([texts], config), strict=True) if row["keep"]]
    assert sorted(kept) == sorted(before)
