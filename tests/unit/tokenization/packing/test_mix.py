"""Mixtures: who is in which group, how often it is packed, and shares that come true; all by identity alone."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tokenization.packing.mix import Mix, MixError, chosen, copies, epochs_of_weights, hash_of

IDS = np.frombuffer(b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest()[:16] for i in range(20_000)), np.uint8)
HASHES = hash_of(IDS.reshape(-1, 16))


def test_the_hash_is_frozen() -> None:
    """The last 8 bytes, little-endian: anybody can tell who is held out. Another choice would change every split."""
    ids = np.frombuffer(bytes(range(16)) + bytes(8) + b"\x01" + bytes(7), np.uint8).reshape(2, 16)
    assert hash_of(ids).tolist() == [int.from_bytes(bytes(range(8, 16)), "little"), 1]
    assert hash_of(np.zeros((0, 16), np.uint8)).tolist() == []


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.01, 0.3, 0.5, 0.999999])
def test_a_share_is_chosen(share: float) -> None:
    """About as many as asked for, none for 0, and a larger share chooses all of a smaller one."""
    inside = chosen(HASHES, share)
    assert inside.mean() == pytest.approx(share, abs=0.012)
    assert share or not inside.any()
    assert (inside <= chosen(HASHES, min(0.9999999, share + 0.1))).all()


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1000))
def test_copies_are_the_epochs_on_average(epochs: float) -> None:
    """Every document floor or ceil times; the mean is what was asked for; whole numbers leave nothing to chance."""
    counts = copies(HASHES, np.full(len(HASHES), epochs))
    assert int(counts.min()) >= int(epochs)
    assert int(counts.max()) <= int(epochs) + 1
    assert counts.mean() == pytest.approx(epochs, abs=0.012)
    assert epochs != int(epochs) or (counts == int(epochs)).all()


@pytest.mark.parametrize(
    ("by", "patterns", "name", "group"),
    [
        ("source", ("a*", "*"), "/in/abc.jsonl", 0),
        ("source", ("/in/*", "abc*"), "/in/abc.jsonl", 0),
        ("source", ("abc*", "/in/*"), "/in/abc.jsonl", 0),
        ("source", ("*.parquet", "s3://bucket/[ab]*"), "s3://bucket/b/c.warc.gz", 1),
        ("source", ("in", "ABC*"), "/in/abc.jsonl", 2),
        ("source", ("x",), "", 1),
        ("language", ("zh*", "en"), "zh-Hant", 0),
        ("language", ("zh*", "en"), "en", 1),
        ("language", ("zh*", "en"), "", 2),
        ("language", ("", "*"), "", 0),
        ("language", ("b",), "a/b", 1),
    ],
)
def test_the_first_pattern_that_fits_counts(by: str, patterns: tuple[str, ...], name: str, group: int) -> None:
    """Of a source its whole path or its file name; of a language the code; what none fits is the last group."""
    mix = Mix(by, epochs=tuple((pattern, 2.0) for pattern in patterns))  # type: ignore[arg-type]
    assert mix.groups_of([name, name]).tolist() == [group, group]
    assert mix.patterns == (*patterns, "*")


def test_weights_must_fit_everybody() -> None:
    """A source without a weight has no share; the message names it and the patterns."""
    mix = Mix("source", weights=(("a*", 1.0), ("b*", 2.0)))
    with pytest.raises(MixError, match=r"no pattern of weights fits source '/in/c.jsonl'.*Patterns: 'a\*', 'b\*'"):
        mix.groups_of(["/in/a", "/in/c.jsonl"])


@pytest.mark.parametrize(
    ("tokens", "weights", "max_epochs", "expected"),
    [
        ([100], [7.0], 4, (1.0,)),
        ([100, 100], [1.0, 1.0], 4, (1.0, 1.0)),
        ([100, 100], [3.0, 1.0], 4, (3.0, 1.0)),
        ([100, 300], [1.0, 1.0], 4, (3.0, 1.0)),
        ([100, 1000], [1.0, 1.0], 4, (4.0, 0.4)),
        ([100, 1000], [1.0, 1.0], 1, (1.0, 0.1)),
        ([10, 100, 1000], [0.2, 0.2, 0.6], 4, (4.0, 0.4, 0.12)),
        ([0, 0], [1.0, 2.0], 4, (0.0, 0.0)),
    ],
)
def test_epochs_follow_from_weights(
    tokens: list[int], weights: list[float], max_epochs: float, expected: tuple[float, ...]
) -> None:
    """Shares hold, everything is packed at least once if the limit allows it, and the limit holds."""
    mix = Mix("source", weights=tuple((str(i), w) for i, w in enumerate(weights)), max_epochs=max_epochs)
    assert epochs_of_weights(tokens, mix) == pytest.approx(expected)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**12), st.floats(0.01, 100)), min_size=1, max_size=6), st.floats(1, 10))
def test_weights_come_true(groups: list[tuple[int, float]], max_epochs: float) -> None:
    """For any tokens: the shares are those of the weights, no group exceeds the limit, one is at it or all are whole."""
    mix = Mix("source", weights=tuple((str(i), w) for i, (_, w) in enumerate(groups)), max_epochs=max_epochs)
    epochs = epochs_of_weights([n for n, _ in groups], mix)
    assume(min(epochs) > 1e-5)  # epochs are rounded to 9 places
    packed = [n * times for (n, _), times in zip(groups, epochs, strict=True)]
    total = sum(w for _, w in groups)
    assert [p / sum(packed) for p in packed] == pytest.approx([w / total for _, w in groups], rel=1e-3)
    assert max(epochs) <= max_epochs
    assert max(epochs) == pytest.approx(max_epochs) or min(epochs) == pytest.approx(1)


def test_a_weight_of_nothing_is_named() -> None:
    """A misspelt pattern would have a share of no tokens: refused, with what there is."""
    mix = Mix("source", weights=(("wiki*", 1.0), ("wbe*", 1.0)))
    mix.groups_of(["wiki.jsonl"])
    with pytest.raises(MixError, match=r"'wbe\*' fits no source with documents.*Known: 'wiki.jsonl'"):
        epochs_of_weights([10, 0], mix)
