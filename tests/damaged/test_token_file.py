"""Damage to a token file: any of it is named by verify, and none of it crashes anyone.

All 1,000 random damages are tried in child processes, so that a crash would be a failed test and not the end of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import multiprocessing
import random
import re
import struct
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.token_files import (
    bos_header,
    reseal,
    small_block,
    small_bpe,
    small_header,
    write_recklessly,
    write_small_file,
)
from tokenization.errors import TokenFileError, TokenizerError
from tokenization.interchange import table_of, write_stream_copy
from tokenization.layout import Block
from tokenization.probes import PROBES
from tokenization.reader import TokenFile, verify
from tokenization.seal import Seal, read_seal
from tokenization.tokenizer import Tokenizer, load_tokenizer

SEED = 20261129
PAGE = 4096
EACH = 91
"""Damages of each kind: 1,001 of eleven kinds."""
SHAPE = {"block_sequences": 150}


@dataclasses.dataclass(frozen=True)
class Whole:
    """A good file, and another one of the same shape."""

    data: bytes
    seal: Seal
    other: bytes
    other_seal: Seal

    def blocks(self) -> list[tuple[int, int]]:
        return [(head.start, body.end) for head, body in zip(self.seal.heads, self.seal.bodies, strict=True)]


def _flip(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    data[place] ^= 1 << rng.randrange(8)


def _set(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    data[place] = rng.randrange(256)


def _cut_end(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    del data[place:]


def _cut_beginning(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    del data[: max(1, place)]


def _cut_out(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    del data[place : place + rng.choice((1, 8, 64, rng.randrange(1, 300), PAGE))]


def _put_in(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    data[place:place] = rng.randbytes(rng.choice((1, 8, 64, rng.randrange(1, 300), PAGE)))


def _swap_pieces(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    a, b = sorted(rng.sample(range(0, len(data) - 64, 64), 2))
    data[a : a + 64], data[b : b + 64] = data[b : b + 64], data[a : a + 64]


def _swap_blocks(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    (a, a_end), (b, b_end) = sorted(rng.sample(whole.blocks(), 2))
    data[a:b_end] = data[b:b_end] + data[a_end:b] + data[a:a_end]


def _zero_page(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    start = place - place % PAGE
    data[start : start + PAGE] = bytes(len(data[start : start + PAGE]))


def _block_of_another(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    """Whole, or its head or its body alone."""
    number = rng.randrange(len(whole.seal.heads))
    other = rng.randrange(len(whole.seal.heads) - 1)
    head, body = whole.seal.heads[number], whole.seal.bodies[number]
    its_head, its_body = whole.other_seal.heads[other], whole.other_seal.bodies[other]
    what = rng.choice(("all", "head", "body"))
    if what != "head":
        data[body.start : body.end] = whole.other[its_body.start : its_body.end]
    if what != "body":
        data[head.start : head.end] = whole.other[its_head.start : its_head.end]


def _end_of_another(whole: Whole, data: bytearray, place: int, rng: random.Random) -> None:
    """The footer of another file, or its seal and footer, or its end from anywhere on."""
    choices = (
        (whole.seal.footer.start, whole.other_seal.footer.start),
        (whole.seal.end.start, whole.other_seal.end.start),
        (whole.seal.end.end, whole.other_seal.end.end),
        (place, min(place, len(whole.other) - 1)),
    )
    mine, its = rng.choice(choices)
    data[mine:] = whole.other[its:]


KINDS: dict[str, Callable[[Whole, bytearray, int, random.Random], None]] = {
    "flip a bit": _flip,
    "set a byte": _set,
    "cut the end": _cut_end,
    "cut the beginning": _cut_beginning,
    "cut out": _cut_out,
    "put in": _put_in,
    "swap two pieces of 64 bytes": _swap_pieces,
    "swap two blocks": _swap_blocks,
    "zero a page": _zero_page,
    "a block of another file": _block_of_another,
    "the end of another file": _end_of_another,
}


def touch(file: TokenFile) -> None:
    """Everything that can be read."""
    file[0 : len(file)].sum()
    for index in range(0, len(file), 29):
        assert file[index].shape == (file.metadata.seq_len,)
        file.documents(index)
        file.borders(index)
    file.__getitems__(range(len(file)))
    if len(file):
        file.batch(range(len(file)))


def use(path: Path, **how: Any) -> str:
    """Open the file and touch everything in it: the error, or nothing. Any other exception comes through."""
    try:
        with TokenFile(path, **how) as file:
            touch(file)
    except TokenFileError as error:
        return str(error)
    return ""


def in_child(work: Callable[[], None], folder: Path) -> None:
    """Run some work in a child process; what fails there fails here, a crash too."""
    said = folder / "said.txt"

    def run() -> None:
        try:
            work()
        except BaseException:
            said.write_text(traceback.format_exc(), encoding="utf-8")
            raise SystemExit(1) from None

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join(120)
    if child.exitcode != 0:
        child.kill()
        pytest.fail(said.read_text(encoding="utf-8") if said.exists() else f"the reader died: exit {child.exitcode}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A file of three blocks of three pages each, the last one shorter."""
    folder = tmp_path_factory.mktemp("whole")
    path = write_small_file(folder / "t.arrow", small_header(400, **SHAPE))
    other = write_small_file(folder / "u.arrow", bos_header(400, run_id="another", **SHAPE))
    return Whole(path.read_bytes(), read_seal(path), other.read_bytes(), read_seal(other))


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_passes(kind: str, whole: Whole, tmp_path: Path) -> None:
    """91 random damages of each kind: verify names every one; no reader crashes, and each that checks refuses it."""
    path = tmp_path / "t.arrow"

    def work() -> None:
        rng = random.Random(f"{SEED} {kind}")
        done = 0
        while done < EACH:
            data = bytearray(whole.data)
            KINDS[kind](whole, data, rng.randrange(len(data)), rng)
            if data == whole.data:
                continue
            path.write_bytes(data)
            report = verify(path, threads=1)
            assert not report.ok, f"damage {done} passed"
            assert all(problem.where and problem.what for problem in report.problems)
            assert str(report)
            use(path)
            use(path, read="copy")
            assert use(path, verify="lazy"), f"damage {done} was read as if nothing had happened"
            if done % 10 == 0:
                assert use(path, verify="all")
                with pytest.raises(TokenFileError):
                    write_stream_copy(path, tmp_path / "copy.arrow")
            done += 1

    in_child(work, tmp_path)


def test_every_byte_of_heads_seal_and_footer(whole: Whole, tmp_path: Path) -> None:
    """Flip each tenth byte outside the tokens: named, and refused by the reader before Arrow parses it."""
    path = tmp_path / "t.arrow"
    heads = [position for head in whole.seal.heads for position in range(head.start, head.end)]
    outside = [*range(whole.seal.schema.end), *heads, *range(whole.seal.end.start, len(whole.data))]

    def work() -> None:
        for position in outside[::10]:
            harmed = bytearray(whole.data)
            harmed[position] ^= 0xFF
            path.write_bytes(harmed)
            assert not verify(path, threads=1).ok
            assert use(path), f"byte {position} was read as if nothing had happened"

    in_child(work, tmp_path)


@pytest.mark.parametrize("block", [0, 1, 2])
def test_the_bad_block_is_named(block: int, whole: Whole, tmp_path: Path) -> None:
    """Any byte of a block names that block and no other."""
    path = tmp_path / "t.arrow"
    start, end = whole.blocks()[block]
    for position in range(start, end, 997):
        harmed = bytearray(whole.data)
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


def _put(name: str, value: int, where: int | tuple[int, ...]) -> Callable[[Block], Block]:
    def change(block: Block) -> Block:
        array = getattr(block, name).copy()
        array[where] = value
        return dataclasses.replace(block, **{name: array})

    return change


def _wrong_contents(rng: random.Random) -> tuple[Callable[[Block], Block], str]:
    """A change of a block that keeps every checksum, and what must be said of it."""
    row, piece = rng.randrange(16), rng.randrange(32)
    inside = rng.choice([0, 1, 2, 3, 5, 6, 7, 8, 9, 10])
    return rng.choice(
        [
            (_put("tokens", rng.randrange(100, 2**16), (row, rng.randrange(16))), "outside the vocabulary"),
            (_put("tokens", 0, (row, inside)), "end-of-document token .* inside a document"),
            (_put("tokens", 50, (row, 4)), "without end-of-document token before the end"),
            (_put("tokens", 50, (row, rng.randrange(12, 16))), "something else than padding"),
            (_put("rows", rng.choice([-1, 80, 2**40, -(2**63)]), (piece,)), "a document row is outside"),
            (_put("rows", (piece + 33) % 32 + 32, (piece,)), "documents have an end-of-document token"),
            (_put("lengths", rng.choice([0, -1, -(2**31)]), (piece,)), "a piece without tokens"),
            (_put("lengths", rng.choice([2**31 - 1, 13]), (piece,)), "in a sequence of 16"),
            (_put("lengths", 6, (2 * row,)), "inside a document|end of its sequence"),
            (_put("first_piece", rng.choice([0, 31, 2**31 - 1, -1]), (row or 1,)), "do not fit|no sequence|pieces of"),
        ]
    )


def test_contents_that_break_the_rules_are_found_under_a_good_seal(tmp_path: Path) -> None:
    """100 files whose writer was wrong, or a liar: every checksum fits, and verify names the rule; readers live."""

    def work() -> None:
        rng = random.Random(f"{SEED} contents")
        for number in range(100):
            change, fault = _wrong_contents(rng)
            path = write_recklessly(tmp_path / f"{number}.arrow", small_header(), change)
            problems = verify(path, threads=1).problems
            assert problems, f"case {number} passed: {fault}"
            assert any(re.search(fault, problem.what) for problem in problems), (fault, problems)
            use(path)
            use(path, read="copy")
            assert use(path, verify="all")

    in_child(work, tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": 481},
        {"pieces": 81},
        {"documents": 79},
        {"sequences": 39},
        {"sequences": 41},
        {"sequences": 2**40, "block_sequences": 2**20},
        {"seq_len": 12, "tokens": 480},
        {"block_sequences": 20},
        {"seq_len": 2**27 - 1},
        {"documents": 0, "pieces": 2**62, "tokens": 2**62, "sequences": 2**62},
    ],
)
def test_headers_that_lie_under_a_good_seal(changes: dict[str, int], tmp_path: Path) -> None:
    """Counts that are not those of the blocks: found, and nothing is made as large as they say."""
    # The lie must be as long as the truth, for no byte may move: the run id makes room.
    truth = small_header(run_id="r" * 100)
    good = write_small_file(tmp_path / "good.arrow", truth)
    lie = {**json.loads(truth.to_json()), **changes, "run_id": ""}
    text, missing = truth.to_json(), len(truth.to_json()) - len(json.dumps(lie, separators=(",", ":")))
    lie["run_id"] = "r" * missing
    data, seal = good.read_bytes(), read_seal(good)
    assert data.count(text.encode()) == 2, "at the beginning and in the footer"
    lying = data.replace(text.encode(), json.dumps(lie, separators=(",", ":")).encode())
    path = reseal(lying, seal, tmp_path / "t.arrow")

    def work() -> None:
        report = verify(path)
        assert not report.ok
        use(path)
        use(path, read="copy")
        assert use(path, verify="all")

    in_child(work, tmp_path)


def test_bytes_that_arrow_parses_may_be_anything_under_a_good_seal(whole: Whole, tmp_path: Path) -> None:
    """400 files with a random byte in schema, heads or footer, and checksums that fit it: nobody crashes."""
    heads = [position for head in whole.seal.heads for position in range(head.start, head.end)]
    footer = range(whole.seal.footer.start, whole.seal.footer.end - 10)
    places = [*range(8, whole.seal.schema.end), *heads, *footer]

    def work() -> None:
        rng = random.Random(f"{SEED} parsed")
        for number in range(400):
            data = bytearray(whole.data)
            for _ in range(rng.choice((1, 1, 3))):
                data[rng.choice(places)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            path = reseal(bytes(data), whole.seal, tmp_path / f"{number}.arrow")
            verify(path, threads=1)
            for how in ({}, {"read": "copy"}, {"verify": "all"}):
                use(path, **how)
            with contextlib.suppress(TokenFileError):
                table_of(path).to_pydict()
            path.unlink()

    in_child(work, tmp_path)


def _seal_json(data: bytes, seal: Seal) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(data[seal.end.end : seal.footer.start - 48])
    return content


def _with_seal(data: bytes, seal: Seal, content: Any, path: Path) -> Path:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    covered = text + b"CMSEAL1\n" + struct.pack("<Q", len(text))
    path.write_bytes(data[: seal.end.end] + covered + hashlib.sha256(covered).digest() + data[seal.footer.start :])
    return path


def _mutations(content: dict[str, Any]) -> list[Any]:
    """Seals with a checksum that fits, and a content that cannot be."""
    odd: list[Any] = [None, -1, 2**70, 1.5, "x", [], {}, True, [None], [-1], [2**70]]
    made: list[Any] = [b"", b"[", b"\xff", b"[" * 100_000, 1, [], "x", {}]
    for key in content:
        made += [{**content, key: value} for value in odd] + [{k: v for k, v in content.items() if k != key}]
    for outer in ("blocks", "schema", "end", "footer"):
        for inner, old in content[outer].items():
            values = [*odd, old[:-1], old + old[:1], old[::-1]] if isinstance(old, list) else odd
            made += [{**content, outer: {**content[outer], inner: value}} for value in values]
    return made


def test_seals_made_by_hand_are_refused(whole: Whole, tmp_path: Path) -> None:
    """A seal with its good checksum may hold anything: an error with a name, in verify and in the reader."""
    content = _seal_json(whole.data, whole.seal)
    assert verify(_with_seal(whole.data, whole.seal, content, tmp_path / "same.arrow")).ok

    def work() -> None:
        for number, mutation in zip(count(), _mutations(content), strict=False):
            path = _with_seal(whole.data, whole.seal, mutation, tmp_path / "t.arrow")
            assert not verify(path, threads=1).ok, (number, mutation)
            assert use(path, verify="lazy"), (number, mutation)

    in_child(work, tmp_path)


def _bpe(folder: Path, change: Callable[[list[Any]], None]) -> Tokenizer:
    data = json.loads(small_bpe())
    change(data["model"]["merges"])
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    return load_tokenizer(folder, eos="<|endoftext|>", fast=False)


def _swap_two_merges(merges: list[Any]) -> None:
    merges[0], merges[40] = merges[40], merges[0]


@pytest.mark.parametrize("change", [lambda merges: merges.pop(), _swap_two_merges])
def test_a_tokenizer_with_one_other_merge_is_refused(change: Callable[[list[Any]], None], tmp_path: Path) -> None:
    """One merge less, or two in another order, is another fingerprint; a trainer that says what it trains with is told."""
    right, wrong = _bpe(tmp_path / "right", lambda merges: None), _bpe(tmp_path / "wrong", change)
    header = small_header(
        tokenizer=dataclasses.replace(right.card(), eos_id=0, pad_id=1),
        golden_texts=PROBES,
        golden_ids=right.golden_ids,
    )
    path = write_small_file(tmp_path / "t.arrow", header)
    assert len(TokenFile(path, tokenizer=right)) == len(TokenFile(path, tokenizer=right.fingerprint())) == 40
    for other in (wrong, wrong.fingerprint(), "e" * 64):
        with pytest.raises(TokenizerError, match="fingerprint"):
            TokenFile(path, tokenizer=other)


def test_a_page_of_zeros_is_named_by_its_block(whole: Whole, tmp_path: Path) -> None:
    """What a failing disk gives back: ids that could be ids, in a block that is named."""
    path = tmp_path / "t.arrow"
    for start in range(0, len(whole.data) - PAGE, PAGE):
        data = bytearray(whole.data)
        data[start : start + PAGE] = bytes(PAGE)
        path.write_bytes(data)
        hit = [number for number, (a, b) in enumerate(whole.blocks()) if a < start + PAGE and start < b]
        named = {problem.where.split(" (")[0] for problem in verify(path).problems}
        assert {f"block {number}" for number in hit} <= named | (
            {f"block {n}" for n in hit} if "file" in named else set()
        )
        assert named


def test_a_block_stays_readable_beside_a_bad_one(whole: Whole, tmp_path: Path) -> None:
    """Lazy verification refuses the bad block, and no other."""
    path = tmp_path / "t.arrow"
    data = bytearray(whole.data)
    data[whole.seal.bodies[1].start] ^= 1
    path.write_bytes(data)
    file = TokenFile(path, verify="lazy")
    header = small_header(400, **SHAPE)
    assert np.array_equal(file[0], small_block(header, 0).tokens[0])
    with pytest.raises(TokenFileError, match="block 1"):
        file[150]
    assert np.array_equal(file[399], small_block(header, 2).tokens[99])
