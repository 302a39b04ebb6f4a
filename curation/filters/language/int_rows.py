"""Adding rows of whole numbers at addresses, for kernels: as the widest vectors that the machine has.

numba would count references to each array at each call, and ask at each loop whether two of them overlap.
Nothing here checks bounds: callers do.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from curation.text.memory import instruction

__all__ = ["LANES", "WIDTH", "add_long_row", "add_row", "add_short_row", "add_shorts", "add_to", "clear_row"]

WIDTH = 64
"""Numbers of a row."""

LANES = 16
"""Numbers that `add_shorts` adds; for rows of any length that is a multiple."""

SHORT, INT, LONG = (ir.IntType(bits) for bits in (16, 32, 64))


def _pointer(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _load(builder: Any, address: Any, kind: ir.Type) -> Any:
    loaded = builder.load(_pointer(builder, address, kind))
    loaded.align = 1
    return loaded


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, _pointer(builder, address, value.type)).align = 1


def _adder(narrow: ir.Type, wide: ir.Type, *, signed: bool, n: int) -> Any:
    """Code that adds n of one kind of numbers to n of another, at least as wide."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = args
        values, sums = _load(builder, source, ir.VectorType(narrow, n)), ir.VectorType(wide, n)
        if narrow is not wide:
            values = builder.sext(values, sums) if signed else builder.zext(values, sums)
        _store(builder, builder.add(_load(builder, target, sums), values), target)
        return context.get_dummy_value()

    return generate


@instruction
def add_row(typing_context: Any, target: Any, source: Any) -> Any:
    """Add int32[64] at the second address to int32[64] at the first."""
    return types.void(types.int64, types.int64), _adder(INT, INT, signed=True, n=WIDTH)


@instruction
def add_short_row(typing_context: Any, target: Any, source: Any) -> Any:
    """Add uint16[64] at the second address to int32[64] at the first."""
    return types.void(types.int64, types.int64), _adder(SHORT, INT, signed=False, n=WIDTH)


@instruction
def add_long_row(typing_context: Any, target: Any, source: Any) -> Any:
    """Add int32[64] at the second address to int64[64] at the first."""
    return types.void(types.int64, types.int64), _adder(INT, LONG, signed=True, n=WIDTH)


@instruction
def add_shorts(typing_context: Any, target: Any, source: Any) -> Any:
    """Add int16[LANES] at the second address to int32[LANES] at the first."""
    return types.void(types.int64, types.int64), _adder(SHORT, INT, signed=True, n=LANES)


@instruction
def clear_row(typing_context: Any, target: Any) -> Any:
    """Make int32[64] at an address zeros."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, ir.Constant(ir.VectorType(INT, WIDTH), None), args[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@instruction
def add_to(typing_context: Any, address: Any, value: Any) -> Any:
    """Add a number to the int32 at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = builder.add(_load(builder, args[0], INT), builder.trunc(args[1], INT))
        _store(builder, total, args[0])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
