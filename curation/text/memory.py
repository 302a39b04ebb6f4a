"""Raw loads for kernels: single bytes, words of 8 bytes, and questions to 64 bytes at once.

A kernel takes the address of its data once and reads from there, without numba's handling of negative
indices. The vector instructions are written in LLVM's own portable form, so they become AVX-512, AVX2,
SSE2 or NEON as the machine has it. Bytes are read in little-endian order, as every machine that numba
and Arrow run on stores them.

Nothing here checks bounds: callers do, and tests run them against a page that must not be touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "Int",
    "address_of",
    "byte_at",
    "bytes_in",
    "count_bits",
    "load32",
    "load64",
    "store64",
    "store_byte",
    "trailing_zeros",
]

Int: TypeAlias = Any
"""An int64 in compiled code, for which Python's type checker has no one name."""

BYTE = ir.IntType(8)
WORD = ir.IntType(64)
BLOCK = ir.VectorType(BYTE, 64)


def instruction(typing_function: Callable[..., Any]) -> Callable[..., Any]:
    """numba's `intrinsic`, with types."""
    return cast(Callable[..., Any], intrinsic(typing_function))


def _load(builder: Any, address: Any, kind: ir.Type) -> Any:
    loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
    loaded.align = 1
    return loaded


@instruction
def address_of(typing_context: Any, array: Any) -> Any:
    """Address of a one-dimensional array's first byte: int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, WORD)

    return types.int64(array), generate


@instruction
def byte_at(typing_context: Any, address: Any) -> Any:
    """The byte at an address: int64, 0 to 255."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(_load(builder, args[0], BYTE), WORD)

    return types.int64(types.int64), generate


@instruction
def load32(typing_context: Any, address: Any) -> Any:
    """4 bytes from an address on: int64, not negative."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(_load(builder, args[0], ir.IntType(32)), WORD)

    return types.int64(types.int64), generate


@instruction
def load64(typing_context: Any, address: Any) -> Any:
    """8 bytes from an address on: uint64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, args[0], WORD)

    return types.uint64(types.int64), generate


@instruction
def store_byte(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the low 8 bits of an int64 to an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(builder.trunc(args[1], BYTE), builder.inttoptr(args[0], BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instruction
def store64(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the 8 bytes of an int64 or uint64 to an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], WORD.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64 if value == types.int64 else types.uint64), generate


@instruction
def bytes_in(typing_context: Any, address: Any, bits: Any, low: Any, n: Any) -> Any:
    """Which of the 64 bytes b from an address on have `low <= b | bits < low + n`: uint64, bit i for byte i."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def everywhere(value: Any) -> Any:
            first = builder.insert_element(
                ir.Constant(BLOCK, ir.Undefined), builder.trunc(value, BYTE), ir.IntType(32)(0)
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
            return builder.shuffle_vector(first, ir.Constant(BLOCK, ir.Undefined), zeros)

        block = builder.or_(_load(builder, args[0], BLOCK), everywhere(args[1]))
        inside = builder.icmp_unsigned("<", builder.sub(block, everywhere(args[2])), everywhere(args[3]))
        return builder.bitcast(inside, WORD)

    return types.uint64(types.int64, types.int64, types.int64, types.int64), generate


@instruction
def count_bits(typing_context: Any, mask: Any) -> Any:
    """Ones of a mask: int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@instruction
def trailing_zeros(typing_context: Any, mask: Any) -> Any:
    """Index of the lowest one of a mask, 64 for none: int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate
