"""The file of an n-gram model: what is written is read, and what is damaged is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quality_models.ngram_file import NgramModel, pack, quantised, read_ngram, write_ngram
from quality_models.ngram_smoothing import Estimated
from quality_models.ngram_table import MOST_PILOTS, place
from quality_models.ngram_training import train

TEXT = "the quick brown fox jumps over the lazy dog and the lazy dog sleeps under the old brown tree " * 30


def model_of(text: str = TEXT, order: int = 4, most_bytes: int = 60_000) -> Estimated:
    codes = np.array([ord(char) for char in text], np.uint32)
    return train(codes, np.array([0, len(codes)]), order=order, most_bytes=most_bytes)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, NgramModel]:
    path = tmp_path / "model.bin"
    return path, write_ngram(pack(model_of(), "eng", 1, {"characters": len(TEXT)}), path)


def test_a_model_is_read_as_it_was_written(written: tuple[Path, NgramModel]) -> None:
    """Head and arrays are the same, and the arrays are the file's own memory."""
    path, model = written
    found = read_ngram(path)
    assert found[:5] == model[:5]
    assert (found.language, found.order, found.normalisation, found.facts) == ("eng", 4, 1, {"characters": len(TEXT)})
    for name in NgramModel._fields[5:]:
        np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
        assert not getattr(found, name).flags.writeable


def test_the_same_text_gives_the_same_file(tmp_path: Path) -> None:
    """Training has no chance in it."""
    paths = tmp_path / "a.bin", tmp_path / "b.bin"
    for path in paths:
        write_ngram(pack(model_of(), "eng", 1, {}), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("order", [2, 3, 6])
def test_size_keeps_to_what_was_asked(order: int, tmp_path: Path) -> None:
    """A file is no larger than asked, but for its head; a smaller one holds fewer n-grams."""
    sizes = []
    for most in (20_000, 30_000, 1_000_000):
        path = tmp_path / f"{most}.bin"
        write_ngram(pack(model_of(TEXT[::-1] + TEXT, order, most), "eng", 1, {}), path)
        sizes.append(path.stat().st_size)
        assert sizes[-1] <= most + 4096
    assert sizes == sorted(sizes)


def damage_checksum(raw: bytes) -> bytes:
    return raw[:-2000] + bytes([raw[-2000] ^ 1]) + raw[-1999:]


def change_head(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def changed(raw: bytes) -> bytes:
        size = struct.unpack("<I", raw[12:16])[0]
        head = json.loads(raw[16 : 16 + size])
        change(head)
        text = json.dumps(head).encode()
        return raw[:12] + struct.pack("<I", len(text)) + text + raw[16 + size :]

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: b"", "found a file of 0 bytes"),
        (lambda raw: raw[:15], "found a file of 15 bytes"),
        (lambda raw: b"mmap lm http" + raw, "begins with"),
        (lambda raw: raw[:8] + b"\x02" + raw[9:], "expected format 1, found 2"),
        (lambda raw: raw[:40], "cut off"),
        (lambda raw: raw[: len(raw) // 2], "cut off"),
        (lambda raw: raw[:-1], "cut off|checksum"),
        (damage_checksum, "checksum"),
        (lambda raw: raw[:16] + b"?" + raw[17:], "JSON"),
        (change_head(lambda head: head.pop("order")), "expected order"),
        (change_head(lambda head: head.update(order="4")), "expected order"),
        (change_head(lambda head: head.update(order=9)), "order from 2 to 8"),
        (change_head(lambda head: head["arrays"].pop("top")), "place and shape of top"),  # type: ignore[attr-defined]
        (change_head(lambda head: head["arrays"]["top"].update(at=-1)), "place and shape of top"),  # type: ignore[index]
        (change_head(lambda head: head["arrays"]["top"].update(shape=[1 << 60])), "cut off"),  # type: ignore[index]
        (change_head(lambda head: head["arrays"]["top"].update(shape=[0])), "at least one slot"),  # type: ignore[index]
        (change_head(lambda head: head["arrays"]["inner"].update(shape=[2])), "at least one slot"),  # type: ignore[index]
        (change_head(lambda head: head["arrays"]["single"].update(shape=[3, 2])), "values of"),  # type: ignore[index]
        (change_head(lambda head: head.update(facts={"scripts": {"latin": "1"}})), "share for each script"),
        (change_head(lambda head: head.update(facts={"labels": 5})), "list of labels"),
    ],
)
def test_damaged_and_foreign_files_are_refused(
    change: Callable[[bytes], bytes], message: str, written: tuple[Path, NgramModel]
) -> None:
    """What was expected, found, where, and what to do: never a crash, never a wrong model."""
    path, _ = written
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message) as caught:
        read_ngram(path)
    assert str(path) in str(caught.value)


def test_characters_beyond_unicode_are_refused(tmp_path: Path) -> None:
    """Whoever wrote the file, and whatever its checksum: no table has a place for them."""
    model = pack(model_of(), "eng", 1, {})
    beyond = np.append(model.characters[:-1], np.uint32(0x110000))
    write_ngram(model._replace(characters=beyond), tmp_path / "model.bin")
    with pytest.raises(ValueError, match="characters of Unicode"):
        read_ngram(tmp_path / "model.bin")


def test_the_checksum_is_that_of_the_whole_file(tmp_path: Path) -> None:
    """Other facts, such as which scripts are foreign, are other scores of the same arrays: so another model."""
    packed = pack(model_of(), "eng", 1, {})
    found = []
    for scripts in ({"latin": 1.0}, {"latin": 0.9, "han": 0.1}):
        written = write_ngram(packed._replace(facts={"scripts": scripts}), tmp_path / "model.bin")
        assert read_ngram(tmp_path / "model.bin").checksum == written.checksum
        found.append(written.checksum)
    assert found[0] != found[1]
    assert [path.name for path in tmp_path.iterdir()] == ["model.bin"]


def test_values_are_off_by_half_a_step_at_most() -> None:
    """The bound on rounding that a file states."""
    model = model_of()
    packed = pack(model, "eng", 1, {})
    for n in range(2, 5):
        exact, rounded = model.grams[n - 1], quantised(model).grams[n - 1]
        for k, name in enumerate(("log_p", "log_backoff")):
            step = float(np.diff(packed.levels[n, k]).max(initial=0))
            assert np.abs(getattr(exact, name) - getattr(rounded, name)).max() <= step / 2 + 1e-5
            assert step <= packed.step


@pytest.mark.parametrize("order", [1, 9])
def test_other_orders_are_refused(order: int) -> None:
    """A file holds orders 2 to 8."""
    with pytest.raises(ValueError, match="order from 2 to 8"):
        model_of(order=order)


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 20_000, 200_000])
def test_each_key_has_a_slot_of_its_own(n: int) -> None:
    """No two keys share a slot, and the pilots are few."""
    keys = np.random.default_rng(1).integers(0, 1 << 63, n).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    placed = place(keys)
    assert len(np.unique(placed.slots)) == n
    assert placed.slots.max(initial=0) < placed.n_slots <= n / 0.98 + 3
    assert placed.pilots.max(initial=0) < MOST_PILOTS


def test_equal_keys_are_refused() -> None:
    """Two n-grams that cannot be told apart."""
    with pytest.raises(ValueError, match="two that are equal"):
        place(np.array([5, 5], np.uint64))
