"""Copies of 64 bytes at once, for kernels that write text; the other half of `curation.text.memory`.

All of them write past what is wanted, up to SLACK bytes: buffers need as many more, and what is written
later has to lie behind. `fold64` and `copy64` read 64 bytes from their source address on.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from curation.text.jit import inlined
from curation.text.memory import BLOCK, Int, byte_at, instruction, load64, store64, store_byte

__all__ = ["SLACK", "copy", "copy64", "fold64"]

SLACK = 72
"""Bytes that a buffer needs after the last one that counts."""


def _splat(value: int) -> ir.Constant:
    return ir.Constant(BLOCK, [value] * 64)


def _pointer(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _move(builder: Any, source: Any, target: Any, change: Any) -> None:
    block = builder.load(_pointer(builder, source, BLOCK))
    block.align = 1
    builder.store(change(block), _pointer(builder, target, BLOCK)).align = 1


@instruction
def copy64(typing_context: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _move(builder, args[0], args[1], lambda block: block)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instruction
def fold64(typing_context: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes, ASCII letters in lower case, `'` and `-` as they are, anything else as a blank."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def change(block: Any) -> Any:
            lower = builder.or_(block, _splat(0x20))
            is_letter = builder.icmp_unsigned("<", builder.sub(lower, _splat(0x61)), _splat(26))
            quote = builder.icmp_unsigned("==", block, _splat(0x27))
            hyphen = builder.icmp_unsigned("==", block, _splat(0x2D))
            other = builder.select(builder.or_(quote, hyphen), block, _splat(0x20))
            return builder.select(is_letter, lower, other)

        _move(builder, args[0], args[1], change)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@inlined
def copy(p: Int, n: Int, o: Int, limit: Int) -> Int:
    """Copy n bytes from address `p` to `o`, reading no byte at or beyond `limit`; returns the address after them."""
    if p + n + 8 <= limit:
        for i in range(0, n, 8):
            store64(o + i, load64(p + i))
    else:
        for i in range(n):
            store_byte(o + i, byte_at(p + i))
    return o + n
