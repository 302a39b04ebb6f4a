"""Stored bytes become decompressed blocks; every fault is named, and what surrounds it is delivered."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import fsspec
import pytest
import zstandard

from curation.errors import InputError, RunError
from curation.ingest import stored
from curation.ingest.record import Damage, Slice, SliceReport
from curation.ingest.streams import open_stream

LINES = b"".join(b'{"text":"%d: %s"}\n' % (i, hashlib.sha256(b"%d" % i).hexdigest().encode()) for i in range(12_000))


def read(path: Path | str, start: int = 0, end: int | None = None) -> tuple[bytes, list[Damage], SliceReport]:
    """Everything that a slice delivers."""
    size = Path(path).stat().st_size
    report = SliceReport()
    blocks, damages = [], []
    for block in open_stream(Slice(str(path), "jsonl", start, size if end is None else end, size), report):
        (damages if isinstance(block, Damage) else blocks).append(block)
    assert all(len(block) <= 2**21 for block in blocks), "blocks are small, whatever the ratio"
    return b"".join(blocks), damages, report


def write(folder: Path, content: bytes, name: str = "x.jsonl.gz") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def zst(content: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True, **options).compress(content)


SKIPPABLE = b"\x53\x2a\x4d\x18\x05\x00\x00\x00hello"
WHOLE = {
    "plain": LINES,
    "empty": b"",
    "plain named .gz": LINES,
    "gzip": gzip.compress(LINES),
    "gzip of nothing": gzip.compress(b""),
    "gzip members": b"".join(gzip.compress(LINES[i : i + 7_777]) for i in range(0, len(LINES), 7_777)),
    "gzip members, some empty": gzip.compress(b"") + gzip.compress(LINES) + gzip.compress(b""),
    "zstd": zst(LINES),
    "zstd without size": zstandard.ZstdCompressor().compressobj().compress(b"") + zst(LINES, write_content_size=False),
    "zstd frames": b"".join(zst(LINES[i : i + 7_777]) for i in range(0, len(LINES), 7_777)),
    "zstd with skippable frames": SKIPPABLE + zst(LINES[:100]) + SKIPPABLE + zst(LINES[100:]) + SKIPPABLE,
}


@pytest.mark.parametrize("name", WHOLE)
def test_undamaged_files_come_out_whole(name: str, tmp_path: Path) -> None:
    """Plain, gzip and zstd, of one stream or many, give the bytes that went in and the hash of the stored ones."""
    path = write(tmp_path, WHOLE[name], "x.jsonl" if name == "empty" else "x.jsonl.gz")
    found, damages, report = read(path)
    expected = b"" if name in ("empty", "gzip of nothing") else LINES
    assert found == expected
    assert (damages, report.damaged) == ([], [])
    assert report.sha256 == hashlib.sha256(WHOLE[name]).hexdigest()


@pytest.mark.parametrize("compress", [gzip.compress, zst], ids=["gzip", "zstd"])
def test_highly_compressed_bytes_come_in_small_blocks(compress: object, tmp_path: Path) -> None:
    """A file of zeros, a thousand times and more its stored size, never lies in memory as a whole."""
    path = write(tmp_path, compress(bytes(30_000_000)))  # type: ignore[operator]
    assert path.stat().st_size < 40_000, "the case is what it says"
    found, damages, _ = read(path)
    assert len(found) == 30_000_000
    assert not damages


@pytest.mark.parametrize("cut", [1, 2, 9, 10, 11, 30, 1000, 5000, -9, -8, -1])
def test_a_gzip_cut_anywhere_gives_what_zlib_gives(cut: int, tmp_path: Path) -> None:
    """A truncated gzip delivers all that can be decoded and is marked."""
    content = gzip.compress(LINES)[:cut]
    found, damages, report = read(write(tmp_path, content))
    expected = zlib.decompressobj(31).decompress(content) if cut > 2 or cut < 0 else b""
    assert found == expected
    assert [damage.reason for damage in damages] == report.damaged == ["truncated_stream"]
    assert report.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("cut", [4, 5, 6, 7, 20, 10_000, -200, -4, -1])
def test_a_zstd_cut_anywhere_gives_its_whole_blocks(cut: int, tmp_path: Path) -> None:
    """A truncated zstd delivers every whole block and is marked."""
    found, damages, report = read(write(tmp_path, zst(LINES)[:cut], "x.zst"))
    assert LINES.startswith(found)
    assert len(found) % 2**17 == 0 or found == LINES
    assert (found == LINES) == (-5 < cut < 0), "a lost checksum loses no bytes"
    assert [damage.reason for damage in damages] == report.damaged == ["truncated_stream"]


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


@pytest.mark.parametrize("compress", [gzip.compress, zst], ids=["gzip", "zstd"])
@pytest.mark.parametrize("place", [5, 12, 300, 20_000, -1, -6])
def test_reading_goes_on_behind_a_damaged_stream(compress: object, place: int, tmp_path: Path) -> None:
    """Of three streams with a fault in the second, the first and the third come out whole."""
    one, two, three = LINES[:3000], LINES[3000:900_000], LINES[900_000:]
    bad = compress(two)  # type: ignore[operator]
    content = compress(one) + flipped(bad, place) + compress(three)  # type: ignore[operator]
    found, damages, report = read(write(tmp_path, content))
    assert found.startswith(one)
    assert found.endswith(three)
    if place > 100:
        # What was decoded before the fault is delivered: the flip can spoil bytes behind it only.
        intact = zlib.decompressobj(31).decompress(bad[:place]) if compress is gzip.compress else b""
        assert found[len(one) :].startswith(intact[:-300])
    if compress is zst or place != 5:  # byte 5 of a gzip head is its time: no fault
        assert report.damaged == ["corrupt_stream"]
        assert "went on" in damages[0].detail
    assert report.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("compress", [gzip.compress, zst], ids=["gzip", "zstd"])
@pytest.mark.parametrize("lost", [1, 4, 8, 9, 100, 20_000])
@pytest.mark.parametrize("following", [40, 900_000])
def test_a_stream_cut_short_swallows_no_other(compress: object, lost: int, following: int, tmp_path: Path) -> None:
    """Half an upload joined with a whole one: the whole one is read, though the half one ran into it."""
    content = compress(LINES[:500_000])[:-lost] + compress(LINES[:following])  # type: ignore[operator]
    found, damages, report = read(write(tmp_path, content))
    assert found.endswith(LINES[:following])
    assert found.startswith(LINES[:300_000])
    assert len(report.damaged) == len(damages) == 1
    assert report.sha256 == hashlib.sha256(content).hexdigest()


def test_bytes_before_a_deflate_fault_are_not_lost(tmp_path: Path) -> None:
    """All that zlib gives byte by byte before it fails is delivered, and nothing twice."""
    content = flipped(gzip.compress(LINES, 6), 60_000)
    decoder, expected = zlib.decompressobj(31), []
    with pytest.raises(zlib.error):
        for i in range(len(content)):
            expected.append(decoder.decompress(content[i : i + 1]))
    found, damages, _ = read(write(tmp_path, content))
    assert found == b"".join(expected)
    assert len(found) > 100_000
    assert [damage.reason for damage in damages] == ["corrupt_stream"]


@pytest.mark.parametrize("compress", [gzip.compress, zst], ids=["gzip", "zstd"])
@pytest.mark.parametrize("tail", [b"\0", bytes(600), b"junk that is no stream", b"\x1f\x8b\x08 but no gzip stream" * 9])
def test_a_tail_that_is_no_stream_is_reported(compress: object, tail: bytes, tmp_path: Path) -> None:
    """Zeros and junk behind the last stream cost no byte of it and are named with their place."""
    content = compress(LINES)  # type: ignore[operator]
    found, damages, report = read(write(tmp_path, content + tail))
    assert found == LINES
    assert report.damaged[-1] in ("trailing_garbage", "corrupt_stream")
    if compress is zst or not tail.startswith(b"\x1f"):
        assert (report.damaged, report.notes) == (["trailing_garbage"], {"trailing_bytes": len(tail)})
        assert damages[0].byte_offset == len(content)
        assert damages[0].raw == tail[:64]


def test_a_lost_first_block_is_skipped(tmp_path: Path) -> None:
    """Zeros at the head of a file named .gz are damage, not text, and what follows is read."""
    found, damages, report = read(write(tmp_path, bytes(4096) + gzip.compress(LINES)))
    assert found == LINES
    assert report.damaged == ["corrupt_stream"]
    assert damages[0].byte_offset == 0


def test_a_file_of_zero_bytes_named_gz_is_a_failed_upload(tmp_path: Path) -> None:
    """Zero bytes are no gzip stream: no rows, and a warning."""
    found, damages, report = read(write(tmp_path, b""))
    assert found == b""
    assert [damage.reason for damage in damages] == report.damaged == ["truncated_stream"]


def test_a_window_over_the_limit_is_refused(tmp_path: Path) -> None:
    """A zstd frame that asks for more than 2 GiB of window is named with what it asks for; the next one is read."""
    head = zstandard.ZstdCompressor(write_content_size=False).compress(LINES)
    greedy = head[:5] + bytes([31 - 10 << 3 | 1]) + head[6:]
    found, damages, _ = read(write(tmp_path, greedy + zst(LINES), "x.zst"))
    assert found == LINES
    assert damages[0].reason == "bad_file"
    assert "2,415,919,104" in damages[0].detail


def test_the_largest_window_is_read(tmp_path: Path) -> None:
    """A frame written with `--long=31` is decoded."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31, compression_level=1)
    content = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = write(tmp_path, content.compress(LINES) + content.flush(), "x.zst")
    assert read(path)[:2] == (LINES, [])


@pytest.mark.parametrize(("start", "end"), [(0, 10), (1, 10), (599_999, 600_000), (600_000, len(LINES))])
def test_a_plain_slice_hashes_its_own_bytes_only(start: int, end: int, tmp_path: Path) -> None:
    """A slice begins one byte early and goes on beyond its end; its hash covers neither."""
    found, _, report = read(write(tmp_path, LINES, "x.jsonl"), start, end)
    assert found == LINES[max(start - 1, 0) :]
    assert report.sha256 == hashlib.sha256(LINES[start:end]).hexdigest()


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    """Another size than planned is no longer the same input."""
    path = write(tmp_path, LINES)
    with pytest.raises(InputError, match="has changed since the run was planned"):
        list(open_stream(Slice(str(path), "jsonl", 0, 5, 5), SliceReport()))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """A vanished input is the user's to mend, so no retry is asked for."""
    with pytest.raises(InputError, match=r"gone\.jsonl was there when"):
        list(open_stream(Slice(str(tmp_path / "gone.jsonl"), "jsonl", 0, 5, 5), SliceReport()))


def test_a_failing_store_asks_for_a_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the store is no damage of the file: nothing is quarantined, and a retry is asked for."""

    class Failing:
        def read(self, n_bytes: int) -> bytes:
            raise ConnectionError("reset by peer")

        def seek(self, offset: int, whence: int = 0) -> int:
            return 5

        def close(self) -> None:
            pass

    monkeypatch.setattr(stored, "open_source", lambda source: Failing())
    with pytest.raises(RunError, match="reset by peer"):
        list(open_stream(Slice("s3://bucket/x.jsonl", "jsonl", 0, 5, 5), SliceReport()))


def test_urls_are_read_like_files(tmp_path: Path) -> None:
    """Any store that fsspec knows gives the same bytes, file:// URLs with escapes included."""
    content = gzip.compress(LINES)
    with fsspec.open("memory://streams/x.jsonl.gz", "wb") as stream:
        stream.write(content)
    odd = write(tmp_path, content, "a b%é.jsonl.gz")
    for source in ("memory://streams/x.jsonl.gz", odd.as_uri(), f"file://{odd}"):
        report = SliceReport()
        part = Slice(source, "jsonl", 0, len(content), len(content))
        assert b"".join(b for b in open_stream(part, report) if isinstance(b, bytes)) == LINES
        assert report.sha256 == hashlib.sha256(content).hexdigest()
