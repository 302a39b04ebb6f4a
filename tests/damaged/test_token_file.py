"""Damage to a token file: any of it is named by verify, and none of it crashes anyone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.token_files import small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.reader import TokenFile, verify
from tokenization.seal import read_seal

SEED = 20261129
KINDS = ("flip a byte", "set a byte", "cut the end", "cut out", "put in", "swap two pieces", "swap two blocks")


def damaged(whole: bytes, blocks: list[tuple[int, int]], kind: str, rng: random.Random) -> bytes:
    """`whole` with one damage of a kind."""
    data = bytearray(whole)
    place = rng.randrange(len(data))
    if kind == "flip a byte":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "set a byte":
        data[place] = rng.randrange(256)
    elif kind == "cut the end":
        del data[place:]
    elif kind == "cut out":
        del data[place : place + rng.randrange(1, 300)]
    elif kind == "put in":
        data[place:place] = rng.randbytes(rng.randrange(1, 300))
    elif kind == "swap two pieces":
        a, b = sorted(rng.sample(range(0, len(data) - 64, 64), 2))
        data[a : a + 64], data[b : b + 64] = data[b : b + 64], data[a : a + 64]
    else:
        (a, a_end), (b, b_end) = sorted(rng.sample(blocks, 2))
        data[a:b_end] = data[b:b_end] + data[a_end:b] + data[a:a_end]
    return bytes(data)


def use(path: Path) -> str:
    """Open the file without verification and touch everything in it."""
    try:
        file = TokenFile(path)
        for index in range(len(file)):
            file[index].sum()
            file.documents(index)
            file.borders(index)
    except TokenFileError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[tuple[int, int]]]:
    """A file of three blocks, and where they lie."""
    path = write_small_file(tmp_path_factory.mktemp("whole") / "t.arrow")
    seal = read_seal(path)
    return path.read_bytes(), [(h.start, b.end) for h, b in zip(seal.heads, seal.bodies, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_passes(kind: str, whole: tuple[bytes, list[tuple[int, int]]], tmp_path: Path) -> None:
    """60 random damages of each kind: verify names every one, readers end well or with a named error."""
    data, blocks = whole
    rng = random.Random(f"{SEED} {kind}")
    path = tmp_path / "t.arrow"
    done = 0
    while done < 60:
        harmed = damaged(data, blocks, kind, rng)
        if harmed == data:
            continue
        path.write_bytes(harmed)
        report = verify(path)
        assert not report.ok
        assert str(report)
        assert all(problem.where and problem.what for problem in report.problems)
        use(path)
        done += 1


def test_every_byte_of_heads_seal_and_footer(whole: tuple[bytes, list[tuple[int, int]]], tmp_path: Path) -> None:
    """Flip each tenth byte outside the tokens: named, and refused by the reader before Arrow parses it."""
    data, blocks = whole
    path = tmp_path / "t.arrow"
    seal_heads = read_seal(write_small_file(tmp_path / "w")).heads
    heads = [position for head in seal_heads for position in range(head.start, head.end)]
    for position in [*range(blocks[0][0]), *heads, *range(blocks[-1][1], len(data))][::10]:
        harmed = bytearray(data)
        harmed[position] ^= 0xFF
        path.write_bytes(harmed)
        assert not verify(path).ok
        assert use(path), f"byte {position} was read as if nothing had happened"


@pytest.mark.parametrize("block", [0, 1, 2])
def test_the_bad_block_is_named(block: int, whole: tuple[bytes, list[tuple[int, int]]], tmp_path: Path) -> None:
    """Any byte of a block names that block and no other."""
    data, blocks = whole
    path = tmp_path / "t.arrow"
    start, end = blocks[block]
    for position in range(start, end, 97):
        harmed = bytearray(data)
        harmed[position] ^= 0x40
        path.write_bytes(harmed)
        assert [problem.where.split(" (")[0] for problem in verify(path).problems] == [f"block {block}"]


def test_swapped_blocks_are_both_named(tmp_path: Path) -> None:
    """Two whole blocks of one size, each with its good checksum, in each other's place."""
    path = write_small_file(tmp_path / "t.arrow", small_header(60))
    seal = read_seal(path)
    (a, a_end), (b, b_end) = ((seal.heads[i].start, seal.bodies[i].end) for i in (1, 2))
    assert b_end - b == a_end - a
    data = path.read_bytes()
    path.write_bytes(data[:a] + data[b:b_end] + data[a:a_end] + data[b_end:])
    assert {problem.where.split(" (")[0] for problem in verify(path).problems} == {"block 1", "block 2"}
