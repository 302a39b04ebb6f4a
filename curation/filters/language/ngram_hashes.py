"""Hashes of the last 1, 2, ... 16 characters at once, and remainders of hashes: the inner loop of fastText's n-grams.

Hashing n-gram after n-gram reads each byte once per length and waits for a multiplication each time. Here 16 lanes
of one vector hold the hashes of the n-grams of all lengths that end at the present character; a byte goes into all
of them with one multiplication, and at a new character each moves one lane up. Twice as fast as one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from curation.text.memory import instruction

__all__ = ["HASH_PRIME", "HASH_START", "MAX_CHARS", "begin_char", "continue_char", "reciprocal", "remainder"]

HASH_START = 2166136261
HASH_PRIME = 16777619
MAX_CHARS = 16
LANE = ir.IntType(32)
LANES = ir.VectorType(LANE, MAX_CHARS)


def _everywhere(builder: Any, value: Any) -> Any:
    single = builder.insert_element(ir.Constant(LANES, ir.Undefined), value, LANE(0))
    return builder.shuffle_vector(single, ir.Constant(LANES, ir.Undefined), ir.Constant(LANES, None))


def _hash_byte(builder: Any, state: Any, byte: Any, *, new: bool) -> None:
    """One step of FNV-1a in every lane; fastText takes bytes as signed."""
    pointer = builder.inttoptr(state, LANES.as_pointer())
    hashes = builder.load(pointer)
    hashes.align = 4
    if new:
        start = ir.Constant(LANES, [HASH_START] * MAX_CHARS)
        order = ir.Constant(LANES, [MAX_CHARS, *range(MAX_CHARS - 1)])
        hashes = builder.shuffle_vector(hashes, start, order)
    signed = builder.sext(builder.trunc(byte, ir.IntType(8)), LANE)
    mixed = builder.xor(hashes, _everywhere(builder, signed))
    builder.store(builder.mul(mixed, ir.Constant(LANES, [HASH_PRIME] * MAX_CHARS)), pointer).align = 4


@instruction
def begin_char(typing_context: Any, state: Any, byte: Any) -> Any:
    """First byte of the next character. `state` is where uint32[16] lie: hashes of the last 1, 2, ... characters."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _hash_byte(builder, args[0], args[1], new=True)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instruction
def continue_char(typing_context: Any, state: Any, byte: Any) -> Any:
    """A further byte of the same character."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _hash_byte(builder, args[0], args[1], new=False)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def reciprocal(divisor: int) -> np.uint64:
    """What `remainder` takes beside a divisor from 1 to 2^32 - 1."""
    return np.uint64((1 << 64) // divisor + 1 & (1 << 64) - 1)


@instruction
def remainder(typing_context: Any, value: Any, divisor: Any, its_reciprocal: Any) -> Any:
    """value % divisor for 32-bit numbers: int64. Exact (Lemire, Kaser, Kurz, arXiv:1902.01961), and no division."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        fraction = builder.mul(args[0], args[2])
        product = builder.mul(builder.zext(fraction, wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.uint64), generate
