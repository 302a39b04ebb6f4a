"""What holds on a blacklist at one version and one time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curation.blacklist import Blacklist, append, compact
from curation.blacklist.entries import address_key
from curation.errors import ConfigError, InputError
from tests.blacklists import FACTS, NOW, addresses, held, key, texts


def keys(numbers: list[int]) -> pa.Array:
    return pa.array([key(number) for number in numbers], pa.binary(16))


@pytest.fixture(params=[False, True], ids=["segments", "snapshot"])
def compacted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_the_newest_entry_of_a_key_decides(tmp_path: Path, compacted: bool) -> None:
    """Added, taken back, added again; a version looks the same whatever came later, and with a snapshot in the middle."""
    append(tmp_path, texts([1, 2, 3]), FACTS)
    append(tmp_path, texts([2], removed=True), FACTS)
    if compacted:
        compact(tmp_path)
    append(tmp_path, texts([2, 4], reason="test.again"), FACTS)
    append(tmp_path, texts([1, 9], removed=True), FACTS)
    for version, expected in {0: [], 1: [1, 2, 3], 2: [1, 3], 3: [1, 2, 3, 4], 4: [2, 3, 4]}.items():
        blacklist = Blacklist.open(tmp_path, version)
        assert held(blacklist) == {("text", key(number)) for number in expected}
        rows = blacklist.lookup(keys(list(range(10))))
        assert [number for number in range(10) if rows[number] >= 0] == expected
        taken = blacklist.take(rows[rows >= 0][::-1], ["key"])
        assert taken.column("key").to_pylist() == [key(number) for number in reversed(expected)]
    latest = Blacklist.open(tmp_path)
    assert latest.version == 4
    assert latest.take(latest.lookup(keys([2, 3, 2])))["reason"].to_pylist() == [
        "test.again",
        "test.noise",
        "test.again",
    ]


def test_within_a_segment_the_later_row_is_the_newer(tmp_path: Path) -> None:
    """So that adding and taking back in one append has a meaning."""
    append(tmp_path, texts([1, 1, 2, 2], removed=[False, True, True, False]), FACTS)
    assert held(Blacklist.open(tmp_path)) == {("text", key(2))}


def test_an_entry_expires_at_its_time_and_gives_way_to_none(tmp_path: Path, compacted: bool) -> None:
    """It holds before its time, not at it; an older entry without end does not come back."""
    append(tmp_path, texts([1, 2]), FACTS)
    append(tmp_path, texts([1], expires=NOW), FACTS)
    if compacted:
        compact(tmp_path)
    moment = timedelta(microseconds=1)
    for at, expected in ((NOW - moment, {1, 2}), (NOW, {2}), (NOW + moment, {2})):
        blacklist = Blacklist.open(tmp_path, at=at)
        assert held(blacklist) == {("text", key(number)) for number in expected}
        assert (blacklist.lookup(keys([1, 2])) >= 0).tolist() == [1 in expected, True]
    append(tmp_path, texts([1], expires=NOW + timedelta(days=1)), FACTS)
    assert len(Blacklist.open(tmp_path, at=NOW)) == 2


def test_a_time_without_zone_is_refused(tmp_path: Path) -> None:
    """What expires when must not depend on the machine."""
    append(tmp_path, texts([1]), FACTS)
    with pytest.raises(ConfigError, match="no time zone"):
        Blacklist.open(tmp_path, at=datetime(2030, 1, 1))


def test_text_ids_come_in_any_shape(tmp_path: Path) -> None:
    """Slices, chunks, nulls, none at all, and bytes."""
    append(tmp_path, texts([1, 2]), FACTS)
    blacklist = Blacklist.open(tmp_path)
    array = keys([7, 1, 2, 8])
    assert (blacklist.lookup(array.slice(1, 2)) >= 0).all()
    chunked = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    assert (blacklist.lookup(chunked) >= 0).tolist() == [False, True, True, False]
    assert (blacklist.lookup(pa.array([None, key(1)], pa.binary(16))) >= 0).tolist() == [False, True]
    assert blacklist.lookup(pa.array([], pa.binary(16))).tolist() == []
    assert blacklist.lookup(pa.chunked_array([], pa.binary(16))).tolist() == []
    assert blacklist.lookup(np.frombuffer(key(2), np.uint8).reshape(1, 16))[0] >= 0
    with pytest.raises(InputError, match="16 bytes"):
        blacklist.lookup(np.zeros((1, 15), np.uint8))
    with pytest.raises(InputError, match="expected rows"):
        blacklist.take(np.array([-1]))


def test_keys_alike_in_their_first_half_are_told_apart(tmp_path: Path, compacted: bool) -> None:
    """Whoever makes text_ids that agree in 64 bits gains nothing."""
    made = [b"\xff" * 8 + number.to_bytes(8, "big") for number in (5, 1, 3, 2**64 - 1, 0)] + [
        bytes(16),
        b"\xff" * 7 + bytes(9),
    ]
    table = texts(range(len(made))).set_column(1, "key", pa.array(made, pa.binary(16)))
    append(tmp_path, table, FACTS)
    if compacted:
        compact(tmp_path)
    blacklist = Blacklist.open(tmp_path)
    rows = blacklist.lookup(pa.array(made, pa.binary(16)))
    assert blacklist.take(rows)["key"].to_pylist() == made
    other = [b"\xff" * 8 + (2).to_bytes(8, "big"), b"\xff" * 8 + (2**64 - 2).to_bytes(8, "big")]
    assert blacklist.lookup(pa.array(other, pa.binary(16))).tolist() == [-1, -1]


def test_pages_are_found_by_url_then_by_the_closest_domain(tmp_path: Path, compacted: bool) -> None:
    """Spelling does not matter; a domain holds for all below it, not for one that ends alike."""
    append(tmp_path, addresses("domain", ["spam.example", "www.spam.example", "例え.jp"]), FACTS)
    append(tmp_path, addresses("url", ["https://a.example/p?q=1", "https://spam.example/"]), FACTS)
    if compacted:
        compact(tmp_path)
    blacklist = Blacklist.open(tmp_path)
    cases = {
        "http://SPAM.example:80/x": "spam.example",
        "https://spam.example": "spam.example/",
        "https://a.b.spam.example/": "spam.example",
        "https://m.www.spam.example/": "www.spam.example",
        "https://notspam.example/": None,
        "//a.example/p?q=1#top": "a.example/p?q=1",
        "https://a.example/p?q=2": None,
        "https://xn--r8jz45g.jp/": "xn--r8jz45g.jp",
        "no url": None,
        "": None,
        "https://[::1/": None,
        "https://1.2.3.4/": None,
    }
    for urls in (list(cases), pa.array(list(cases)), pa.chunked_array([list(cases)])):
        rows = blacklist.lookup_urls(urls)
        shown = [blacklist.take(np.array([row]))["shown"][0].as_py() if row >= 0 else None for row in rows]
        assert shown == list(cases.values())
    assert blacklist.lookup_urls([None]).tolist() == [-1]
    assert blacklist.holds("domain", address_key("domain", "spam.example"))
    assert not blacklist.holds("url", address_key("domain", "spam.example"))


def test_a_domain_that_was_taken_back_leaves_the_one_above(tmp_path: Path) -> None:
    """`www.spam.example` is under `spam.example` again."""
    append(tmp_path, addresses("domain", ["spam.example", "www.spam.example"]), FACTS)
    append(tmp_path, addresses("domain", ["www.spam.example"], removed=True), FACTS)
    blacklist = Blacklist.open(tmp_path)
    assert blacklist.take(blacklist.lookup_urls(["https://www.spam.example"]))["shown"].to_pylist() == ["spam.example"]


def test_the_difference_of_versions(tmp_path: Path, compacted: bool) -> None:
    """What holds at one and not at the other, both ways."""
    append(tmp_path, texts([1, 2, 3]), FACTS)
    if compacted:
        compact(tmp_path)
    append(tmp_path, texts([2], removed=True), FACTS)
    append(tmp_path, texts([3, 4]), FACTS)
    old, new = Blacklist.open(tmp_path, 1), Blacklist.open(tmp_path, 3)
    assert new.take(new.missing_in(old))["key"].to_pylist() == [key(4)]
    assert old.take(old.missing_in(new))["key"].to_pylist() == [key(2)]


def test_signatures_come_with_their_making(tmp_path: Path) -> None:
    """Only those that hold and are there; a slightly changed text is near, another one is not."""
    from curation.blacklist.signature import agreement, sign_texts, signing_text

    words = " ".join(f"word{number * number % 97}" for number in range(200))
    table = texts([1, 2, 3]).append_column(
        "signature", sign_texts([words, "", "quite another text of eight words in all"])
    )
    append(tmp_path, table.replace_schema_metadata({b"signing": signing_text()}), FACTS)
    append(tmp_path, texts([4]), FACTS)
    found = list(Blacklist.open(tmp_path).signatures())
    assert [signing for signing, _ in found] == [signing_text()]
    assert found[0][1].column("key").to_pylist() == [key(1), key(3)]
    near = agreement(sign_texts([words + " end"])[0].as_py(), found[0][1].column("signature"))
    assert near[0] > 0.9
    assert near[1] < 0.2


def test_many_entries_come_in_batches(tmp_path: Path) -> None:
    """Over the border of a batch of a segment, in the order of the history."""
    append(tmp_path, texts(range(70_000)), FACTS)
    blacklist = Blacklist.open(tmp_path)
    sizes = [batch.num_rows for batch in blacklist.batches(["key"])]
    assert sizes == [65_536, 4_464]
    rows = blacklist.lookup(keys([69_999, 0, 65_536, 65_535]))
    assert blacklist.take(rows)["key"].to_pylist() == [key(69_999), key(0), key(65_536), key(65_535)]


def test_what_is_not_there(tmp_path: Path) -> None:
    """No folder is a mistake, an empty one is version 0, a version to come is a mistake."""
    with pytest.raises(ConfigError, match="no blacklist at"):
        Blacklist.open(tmp_path / "none")
    empty = Blacklist.open(tmp_path)
    assert (empty.version, empty.digest, len(empty)) == (0, "", 0)
    assert empty.lookup(keys([1])).tolist() == [-1]
    assert empty.lookup_urls(["https://a.example"]).tolist() == [-1]
    with pytest.raises(ConfigError, match="no version 1: the latest is 0"):
        Blacklist.open(tmp_path, 1)
    with pytest.raises(ConfigError, match="nothing to compact"):
        compact(tmp_path)


def test_an_address_of_the_file_scheme_is_local(tmp_path: Path) -> None:
    """Both spellings name one folder."""
    append(f"file://{tmp_path}/list", texts([1]), FACTS)
    assert len(Blacklist.open(tmp_path / "list", at=datetime.now(timezone.utc))) == 1
