"""The seal covers every byte of the file once, and says what is wrong before anything is parsed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import REPO
from tests.token_files import small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.layout import FORMAT_VERSION
from tokenization.seal import read_seal


@pytest.mark.parametrize("sequences", [0, 1, 16, 40])
def test_the_regions_tile_the_file(sequences: int, tmp_path: Path) -> None:
    """Schema, blocks, end mark, seal and footer follow each other without a gap."""
    path = write_small_file(tmp_path / "t.arrow", small_header(sequences))
    seal = read_seal(path)
    regions = [seal.schema, *(r for pair in zip(seal.heads, seal.bodies, strict=True) for r in pair), seal.end]
    assert regions[0].start == 0
    assert all(a.end == b.start for a, b in itertools.pairwise(regions))
    assert all(region.start < region.end for region in regions)
    assert regions[-1].end < seal.footer.start < seal.footer.end == path.stat().st_size


def test_the_seal_stands_for_the_content(tmp_path: Path) -> None:
    """Equal files have equal seals, and one changed word another."""
    a = read_seal(write_small_file(tmp_path / "a"))
    b = read_seal(write_small_file(tmp_path / "b"))
    c = read_seal(write_small_file(tmp_path / "c", small_header(config_digest="1" * 8)))
    assert a.sha256 == b.sha256 != c.sha256


def _plain_arrow(path: Path, whole: bytes) -> None:
    with pa.ipc.new_file(str(path), pa.schema([("a", pa.int32())])) as writer:
        writer.write_batch(pa.record_batch({"a": pa.array(range(100), pa.int32())}))


def _rewritten(path: Path, whole: bytes) -> None:
    path.write_bytes(whole)
    table = pa.ipc.open_file(pa.BufferReader(whole)).read_all()
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)


def _bytes(make: Callable[[bytes], bytes]) -> Callable[[Path, bytes], None]:
    return lambda path, whole: path.write_bytes(make(whole)) and None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_bytes(lambda whole: b""), "found 0: it is empty or cut"),
        (_bytes(lambda whole: whole[:40]), "found 40: it is empty or cut"),
        (_bytes(lambda whole: b"not an arrow file" * 100), "does not begin with ARROW1"),
        (_bytes(lambda whole: whole[:-1]), "does not end with ARROW1"),
        (_bytes(lambda whole: whole[: len(whole) // 2]), "does not end with ARROW1"),
        (_bytes(lambda whole: whole + b"\n"), "does not end with ARROW1"),
        (_bytes(lambda whole: whole[:-10] + b"\0\0\0\0ARROW1"), "no seal"),
        (_bytes(lambda whole: whole[:-10] + b"\xff\xff\xff\x7fARROW1"), "no seal"),
        (_bytes(lambda whole: whole[:-10] + b"\xff\xff\xff\xffARROW1"), "no seal"),
        (_bytes(lambda whole: whole.replace(b'"seal":1', b'"seal":2')), "the seal at bytes .* is damaged"),
        (_bytes(lambda whole: whole[:1000] + whole[1008:]), "bytes are missing or were put in"),
        (_bytes(lambda whole: whole[:1000] + b"12345678" + whole[1000:]), "bytes are missing or were put in"),
        (_plain_arrow, "no seal .*not written by corpusmill"),
        (_rewritten, "no seal .*written again by another program"),
    ],
)
def test_what_has_no_good_seal_is_named(make: Callable[[Path, bytes], None], message: str, tmp_path: Path) -> None:
    """Cut, foreign, compressed by another program, longer or shorter: each has its message."""
    whole = write_small_file(tmp_path / "whole").read_bytes()
    path = tmp_path / "t.arrow"
    make(path, whole)
    with pytest.raises(TokenFileError, match=message):
        read_seal(path)


def test_the_recipe_in_the_reference_works(tmp_path: Path) -> None:
    """The few lines that check a file without our code do what the page says, and find a flipped byte."""
    page = (REPO / "docs/reference/token-file.md").read_text(encoding="utf-8")
    recipe = page.split("```python\n")[1].split("```")[0]
    path = write_small_file(tmp_path / "t.arrow")
    exec(recipe, {"path": path})
    data = bytearray(path.read_bytes())
    data[read_seal(path).bodies[1].start] ^= 1
    path.write_bytes(data)
    with pytest.raises(AssertionError):
        exec(recipe, {"path": path})


def test_the_reference_names_every_key_of_the_metadata(tmp_path: Path) -> None:
    """What stands in the header stands on the page."""
    page = (REPO / "docs/reference/token-file.md").read_text(encoding="utf-8")
    header = json.loads(small_header().to_json())
    missing = [key for key in (*header, *header["tokenizer"]) if f"`{key}`" not in page]
    assert missing == []
    assert f"| `format` | {FORMAT_VERSION};" in page
