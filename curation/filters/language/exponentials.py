"""Exponentials and logarithms of rows of floats, sixteen at a time, in one fixed order.

numba calls the C library for each single exp and log, and LLVM vectorises neither. Here both are range reduction and
a polynomial (Cephes' expf and logf, netlib.org/cephes), within 2e-7 of the true value, and without fused operations:
the same on any machine. Costs with AVX-512: 0.6 ns a float, 30 times as fast as one by one.

Rows lie at addresses and are as long as `padded` says, callers fill what is too many; nothing here checks bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types

from curation.text.jit import inlined
from curation.text.memory import Int, instruction

__all__ = ["FAR", "add_logs", "exp_row", "largest_of", "logistic_row", "padded"]

LANES = 16
FAR = np.float32(-1e30)
"""What fills a row: no largest, and nothing as an exponential."""

FLOAT, INT = ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)

SMALLEST, LARGEST = -87.0, 88.0
"""Beyond these, exponentials are taken to be those of these."""
TO_INTEGER = 1.5 * 2**23
"""Added to a float below 2^22, this leaves its nearest whole number in the lowest bits."""
LOG_2_HIGH, LOG_2_LOW = 0.693359375, -2.12194440e-4
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
ROOT_OF_HALF = 0x3F3504F3
"""The bits of sqrt(1/2)."""

Value: TypeAlias = Any
"""A vector of floats or of whole numbers in the code that is being built."""


def padded(n: int) -> int:
    """The least length of a row that has room for `n` floats."""
    return -(-n // LANES) * LANES


def _floats(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [float(np.float32(value))] * LANES)


def _ints(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value] * LANES)


def _everywhere(builder: Any, value: Value) -> Value:
    single = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), value, INT(0))
    return builder.shuffle_vector(single, ir.Constant(FLOATS, ir.Undefined), ir.Constant(INTS, None))


def _load(builder: Any, address: Value) -> Value:
    loaded = builder.load(builder.inttoptr(address, FLOATS.as_pointer()))
    loaded.align = 4
    return loaded


def _store(builder: Any, value: Value, address: Value) -> None:
    builder.store(value, builder.inttoptr(address, FLOATS.as_pointer())).align = 4


def _polynomial(builder: Any, x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the highest power first."""
    total: Value = _floats(coefficients[0])
    for coefficient in coefficients[1:]:
        total = builder.fadd(builder.fmul(total, x), _floats(coefficient))
    return total


def _exp(builder: Any, x: Value) -> Value:
    """e ** x. NaN stays NaN."""
    x = builder.select(builder.fcmp_ordered("<", x, _floats(SMALLEST)), _floats(SMALLEST), x)
    x = builder.select(builder.fcmp_ordered(">", x, _floats(LARGEST)), _floats(LARGEST), x)
    shifted = builder.fadd(builder.fmul(x, _floats(1 / np.log(2))), _floats(TO_INTEGER))
    whole = builder.fsub(shifted, _floats(TO_INTEGER))
    rest = builder.fsub(x, builder.fmul(whole, _floats(LOG_2_HIGH)))
    rest = builder.fsub(rest, builder.fmul(whole, _floats(LOG_2_LOW)))
    power = builder.add(builder.bitcast(shifted, INTS), _ints(127))  # TO_INTEGER's own bits fall out at the top
    scale = builder.bitcast(builder.shl(power, _ints(23)), FLOATS)
    tail = builder.fmul(_polynomial(builder, rest, EXP), builder.fmul(rest, rest))
    return builder.fmul(builder.fadd(builder.fadd(tail, rest), _floats(1.0)), scale)


def _log(builder: Any, x: Value) -> Value:
    """The natural logarithm of positive floats that are not denormal."""
    bits = builder.bitcast(x, INTS)
    power = builder.ashr(builder.sub(bits, _ints(ROOT_OF_HALF)), _ints(23))
    rest = builder.bitcast(builder.sub(bits, builder.shl(power, _ints(23))), FLOATS)
    rest = builder.fsub(rest, _floats(1.0))
    square, whole = builder.fmul(rest, rest), builder.sitofp(power, FLOATS)
    tail = builder.fmul(builder.fmul(_polynomial(builder, rest, LOG), rest), square)
    tail = builder.fadd(tail, builder.fmul(whole, _floats(LOG_2_LOW)))
    tail = builder.fsub(tail, builder.fmul(square, _floats(0.5)))
    return builder.fadd(builder.fadd(tail, rest), builder.fmul(whole, _floats(LOG_2_HIGH)))


def _joined(builder: Any, value: Value, *, larger: bool) -> Value:
    """The sum or the largest of all lanes, pairwise, always in the same order."""
    width = LANES
    while width > 1:
        width //= 2
        indices = [ir.Constant(ir.VectorType(INT, width), list(range(at, at + width))) for at in (0, width)]
        low, high = (builder.shuffle_vector(value, value, half) for half in indices)
        value = builder.select(builder.fcmp_ordered(">", low, high), low, high) if larger else builder.fadd(low, high)
    return builder.extract_element(value, INT(0))


@instruction
def _exp_lanes(typing_context: Any, address: Any, origin: Any, factor: Any) -> Any:
    """Make x at an address exp((x - origin) * factor), 16 times: their sum."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        origin, factor = (_everywhere(builder, value) for value in args[1:])
        x = _exp(builder, builder.fmul(builder.fsub(_load(builder, args[0]), origin), factor))
        _store(builder, x, args[0])
        return _joined(builder, x, larger=False)

    return types.float32(types.int64, types.float32, types.float32), generate


@instruction
def _logistic_lanes(typing_context: Any, address: Any) -> Any:
    """Make x at an address 1 / (1 + exp(-x)), 16 times."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        small = _exp(builder, builder.fsub(_floats(0.0), _load(builder, args[0])))
        _store(builder, builder.fdiv(_floats(1.0), builder.fadd(small, _floats(1.0))), args[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@instruction
def _largest_lane(typing_context: Any, address: Any) -> Any:
    """The largest of 16 floats at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _joined(builder, _load(builder, args[0]), larger=True)

    return types.float32(types.int64), generate


@instruction
def _add_log_lanes(typing_context: Any, target: Any, source: Any, weight: Any) -> Any:
    """Add weight * log(x) to what lies at the first address, for 16 x at the second."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        logs = builder.fmul(_log(builder, _load(builder, args[1])), _everywhere(builder, args[2]))
        _store(builder, builder.fadd(_load(builder, args[0]), logs), args[0])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), generate


@inlined
def exp_row(row: Int, length: int, origin: Any, factor: Any) -> Any:
    """Make each x of a row exp((x - origin) * factor): the sum of them, float32."""
    total = np.float32(0)
    for at in range(0, length, LANES):
        total += _exp_lanes(row + 4 * at, np.float32(origin), np.float32(factor))
    return total


@inlined
def logistic_row(row: Int, length: int) -> None:
    """Make each x of a row 1 / (1 + exp(-x))."""
    for at in range(0, length, LANES):
        _logistic_lanes(row + 4 * at)


@inlined
def largest_of(row: Int, length: int) -> Any:
    """The largest float of a row; unspecified where there are NaN."""
    found = np.float32(-np.inf)
    for at in range(0, length, LANES):
        found = max(found, _largest_lane(row + 4 * at))
    return found


@inlined
def add_logs(target: Int, source: Int, length: int, weight: Any) -> None:
    """Add weight * log(x) to a row for each x of another, all of them positive and not denormal."""
    for at in range(0, length, LANES):
        _add_log_lanes(target + 4 * at, source + 4 * at, np.float32(weight))
