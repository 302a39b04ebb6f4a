"""Laws of the re-score's choice and sample, for any scores: the guards hold, and nothing depends on the order."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.blacklist import Blacklist, append
from curation.blacklist_input import entry_table
from curation.rescore.choose import HIGH, LOW, Chosen, choose
from curation.rescore.config import ChooseConfig, DomainConfig
from curation.rescore.entries import domains_of
from curation.rescore.sample import drawn, rates

LANGUAGES, SOURCES = ("eng_Latn", "zho_Hans", "und"), ("a.warc", "b.warc", "")

score = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, math.inf, math.nan]), st.floats(-5, 50, allow_nan=False))
document = st.tuples(score, st.integers(0, 90), st.sampled_from(LANGUAGES), st.sampled_from(SOURCES))
tail = st.fixed_dictionaries(
    {},
    optional={
        "percentile": st.none() | st.floats(0, 100),
        "limit": st.none() | st.floats(-5, 50),
        "spreads": st.none() | st.floats(0, 4),
    },
)


@st.composite
def choice(draw: st.DrawFn) -> ChooseConfig:
    """Both ends, in their order, and guards."""
    low, high = draw(tail), draw(tail)
    for name in ("percentile", "limit"):
        one, other = low.get(name), high.get(name)
        if one is not None and other is not None and one > other:
            low[name], high[name] = other, one
    return ChooseConfig.model_validate(
        {
            "low": low,
            "high": high,
            "max_share": draw(st.floats(0.01, 1)),
            "min_documents": draw(st.integers(2, 12)),
            "group": draw(st.sampled_from(["language", "language_and_source"])),
        }
    )


def table_of(
    documents: Sequence[tuple[Any, int, str, str]], ids: Sequence[int] | None = None, texts: Sequence[int] | None = None
) -> pa.Table:
    """Each document has a text of its own, unless `texts` names them."""
    numbers = range(len(documents)) if ids is None else ids
    columns = list(zip(*documents, strict=True)) if documents else [(), (), (), ()]
    return pa.table(
        {
            "doc_id": pa.array([sha256(bytes([n % 256, n // 256])).digest()[:16] for n in numbers], pa.binary(16)),
            "text_id": pa.array([n.to_bytes(16, "big") for n in texts or numbers], pa.binary(16)),
            "bits_per_byte": pa.array(columns[0], pa.float64()),
            "tokens": pa.array(columns[1], pa.int64()),
            "language": pa.array(columns[2], pa.string()),
            "source": pa.array(columns[3], pa.string()),
        }
    )


def shares(table: pa.Table, chosen: Chosen, name: str) -> list[tuple[int, int]]:
    """Chosen and judged documents of each language or source."""
    named = np.array(table.column(name).to_pylist(), object)
    return [(int((chosen.side[named == one] != 0).sum()), int(chosen.judged[named == one].sum())) for one in set(named)]


@given(st.lists(document, max_size=120), choice())
def test_the_guards_hold(documents: list[Any], config: ChooseConfig) -> None:
    """Never more than max_share of a language or source; only judged documents; none of a group with too few."""
    table = table_of(documents)
    chosen = choose(table, config)
    value, tokens = table.column("bits_per_byte").to_numpy(), table.column("tokens").to_numpy()
    assert np.array_equal(chosen.judged, np.isfinite(value) & (tokens >= config.min_tokens))
    assert not (chosen.side[~chosen.judged] != 0).any()
    for name in ("language", "source"):
        assert all(n <= config.max_share * judged for n, judged in shares(table, chosen, name))
    keys = ["language"] if config.group == "language" else ["language", "source"]
    groups = ["\0".join(row) for row in zip(*(table.column(key).to_pylist() for key in keys), strict=True)]
    for one in set(groups):
        mine = np.array(groups, object) == one
        if chosen.judged[mine].sum() < config.min_documents:
            assert not chosen.side[mine].any()


@given(st.lists(st.tuples(document, st.integers(0, 40)), max_size=120), choice(), st.randoms(use_true_random=False))
def test_the_guards_hold_for_what_the_list_drops(documents: list[Any], config: ChooseConfig, random: Any) -> None:
    """Copies of a chosen text are chosen, all at one end, and counted; their order decides nothing."""
    known: dict[int, tuple[Any, int]] = {}
    rows = [(*known.setdefault(text, one[:2]), *one[2:]) for one, text in documents]
    texts = [text for _, text in documents]
    table = table_of(rows, texts=texts)
    chosen = choose(table, config)
    for name in ("language", "source"):
        assert all(n <= config.max_share * judged for n, judged in shares(table, chosen, name))
    for text in set(texts):
        assert len({int(side) for side, one in zip(chosen.side, texts, strict=True) if one == text}) == 1
    order = list(range(len(rows)))
    random.shuffle(order)
    other = choose(table_of([rows[n] for n in order], order, [texts[n] for n in order]), config)
    assert np.array_equal(chosen.side[order], other.side)
    counts = chosen.counts()
    assert min(counts["high_held_back"], counts["low_held_back"]) >= 0


@given(st.lists(document, max_size=120), choice())
def test_each_end_holds_what_lies_beyond_it(documents: list[Any], config: ChooseConfig) -> None:
    """High ones are above all limits, low ones below; a percentile takes no more than its share; an end left out, nothing."""
    table = table_of(documents)
    chosen = choose(table, config)
    value = table.column("bits_per_byte").to_numpy()
    for end, one in ((HIGH, config.high), (LOW, config.low)):
        mine = chosen.side == end
        if not one.is_set:
            assert not mine.any()
        if one.limit is not None:
            assert ((value[mine] - one.limit) * end > 0).all()
        if one.percentile is not None:
            share = (100 - one.percentile if end == HIGH else one.percentile) / 100
            name = "high" if end == HIGH else "low"
            candidates = sum(chosen.groups.column(f"{name}_candidates").to_pylist())
            assert candidates <= share * chosen.judged.sum() + 1e-6 * max(1, len(documents))


@given(st.lists(st.floats(0, 10), min_size=10, max_size=60), st.floats(0, 3))
def test_spreads_are_counted_from_the_median(values: list[float], spreads: float) -> None:
    """What is chosen lies farther from the median than so many interquartile ranges, and what is not, does not."""
    table = table_of([(value, 90, "eng_Latn", "a") for value in values])
    ends = {"high": {"spreads": spreads}, "low": {"spreads": spreads}, "max_share": 1, "min_documents": 2}
    chosen = choose(table, ChooseConfig.model_validate(ends))
    ordered = sorted(values)
    first, median, third = (ordered[math.ceil(len(values) * share) - 1] for share in (0.25, 0.5, 0.75))
    for value, side in zip(values, chosen.side.tolist(), strict=True):
        above = value > median + spreads * (third - first)
        below = value < median - spreads * (third - first)
        assert side == (HIGH if above else LOW if below else 0)


@given(st.lists(document, max_size=80), choice(), st.randoms(use_true_random=False))
def test_the_order_of_documents_decides_nothing(documents: list[Any], config: ChooseConfig, random: Any) -> None:
    """Shuffled documents get the same sides, and the same counts."""
    order = list(range(len(documents)))
    random.shuffle(order)
    one = choose(table_of(documents), config)
    other = choose(table_of([documents[n] for n in order], order), config)
    assert np.array_equal(one.side[order], other.side)
    assert one.groups.equals(other.groups)


@given(st.lists(document, max_size=120), choice())
def test_counts_add_up(documents: list[Any], config: ChooseConfig) -> None:
    """Candidates = chosen + held back, at each end, and every document stands in one group."""
    chosen = choose(table_of(documents), config)
    counts = chosen.counts()
    assert counts["documents"] == len(documents)
    assert counts["judged"] == chosen.judged.sum()
    for name, end in (("high", HIGH), ("low", LOW)):
        assert counts[f"{name}_chosen"] == (chosen.side == end).sum()
        assert counts[f"{name}_candidates"] == counts[f"{name}_chosen"] + counts[f"{name}_held_back"]


@given(st.lists(document, min_size=30, max_size=120))
def test_a_held_up_guard_gives_the_farthest_out(documents: list[Any]) -> None:
    """Of one language and source, with a limit that half exceed, the highest are chosen."""
    same = [(value, 90, "eng_Latn", "a") for value, *_ in documents]
    config = ChooseConfig.model_validate(
        {"high": {"percentile": 50}, "low": {"percentile": None}, "max_share": 0.1, "min_documents": 2}
    )
    table = table_of(same)
    chosen = choose(table, config)
    value = table.column("bits_per_byte").to_numpy()
    if (chosen.side == HIGH).any():
        rest = chosen.judged & (chosen.side == 0)
        assert value[chosen.side == HIGH].min() >= value[rest].max()


NESTED = ["", "a.b", "x.a.b", "y.a.b", "deep.x.a.b", "c.d", "u.c.d", "10.0.0.1"]


@settings(deadline=None)
@example([("a.b", 1, 0)] * 3 + [("x.a.b", 0, 0)] * 20 + [("c.d", 0, 0)] * 30, 0.1, 0.8)
@example([("a.b", 1, 0)] * 9 + [("x.a.b", 1, 0)] + [("c.d", 0, 0)] * 90, 0.1, 0.8)
@given(
    st.lists(st.tuples(st.sampled_from(NESTED), st.sampled_from([-1, 0, 1, 1]), st.integers(0, 2)), max_size=80),
    st.floats(0.05, 1),
    st.floats(0.1, 1),
)
def test_domains_hold_the_guard_too(rows: list[Any], max_share: float, min_share: float) -> None:
    """With all that the list then drops gone, no language is above max_share that was not so by its documents alone."""
    hosts = [host for host, _, _ in rows]
    places = {host: place for place, host in enumerate(dict.fromkeys(hosts))}
    of = np.array([places[host] for host in hosts], np.int64)
    side = np.array([end for _, end, _ in rows], np.int8)
    codes = np.array([code for _, _, code in rows], np.int64)
    found = domains_of(places, of, side, [codes], DomainConfig(min_evidence=3, min_share=min_share), max_share)
    if not found:
        return
    dropped = dropped_by(list(found), hosts)
    before, after = (np.bincount(codes[one], minlength=3) for one in (side != 0, (side != 0) | dropped))
    assert (after <= np.maximum(max_share * np.bincount(codes, minlength=3) + 1e-9, before)).all()
    for name, below in found.items():
        mine = dropped_by([name], hosts)
        assert mine.sum() >= 3
        assert np.array_equal(np.flatnonzero(mine), below)
        assert (side[mine] != 0).mean() >= min_share


def dropped_by(domains: Sequence[str], hosts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which pages of these hosts the blacklist drops where it holds these domains."""
    with tempfile.TemporaryDirectory() as folder:
        append(folder, entry_table([("domain", one, {"reason": "test"}) for one in domains]), {"who": "t", "why": "t"})
        rows = Blacklist.open(folder).lookup_urls([f"http://{host}/page" if host else None for host in hosts])
    return np.asarray(rows >= 0)


@given(st.lists(st.integers(0, 10**6), max_size=30), st.integers(1, 10**5), st.integers(1, 2000))
def test_rates_spend_the_budget(counts: list[int], budget: int, floor: int) -> None:
    """No more than the budget is expected, nearly all of it is spent, and a small stratum is never read less than a large one."""
    sizes = np.array(counts, np.int64)
    rate = rates(sizes, budget, floor)
    assert ((rate >= 0) & (rate <= 1)).all()
    expected = float(sizes @ rate) if len(sizes) else 0.0
    assert expected <= min(budget, sizes.sum()) * (1 + 1e-9)
    assert expected >= min(budget, sizes.sum()) * (1 - 1e-6)
    order = np.argsort(sizes, kind="stable")
    assert (np.diff(rate[order]) <= 1e-9).all()


def ids(n: int) -> pa.Array:
    return pa.array([sha256(str(k).encode()).digest()[:16] for k in range(n)], pa.binary(16))


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**63 - 1), st.integers(0, 50))
def test_a_larger_rate_holds_the_smaller_sample(one: float, other: float, seed: int, cut: int) -> None:
    """Samples of one seed lie within each other, and a slice of the column gives the slice of the answer."""
    documents = ids(200)
    low, high = sorted((one, other))

    def at(rate: float, which: pa.Array) -> npt.NDArray[np.bool_]:
        return drawn(which, np.full(len(which), rate), seed)

    assert not (at(low, documents) & ~at(high, documents)).any()
    assert np.array_equal(at(high, documents)[cut:], at(high, documents.slice(cut)))
    assert at(1.0, documents).all()
    assert not at(0.0, documents).any()


def test_a_sample_has_its_share_whatever_the_seed() -> None:
    """A tenth of 20,000 documents is 2,000 give or take five deviations, and seeds draw different ones."""
    documents = ids(20_000)
    first, second = (drawn(documents, np.full(20_000, 0.1), seed) for seed in (0, 1))
    for one in (first, second):
        assert abs(int(one.sum()) - 2000) < 5 * 43
    assert int((first & second).sum()) < 300
