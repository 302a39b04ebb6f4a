"""Arrow columns as Python values: text that is checked, ids, and values that JSON can hold.

Costs 0.1 us a string cell; the slow way, cell by cell, is taken only by a piece that holds a bad one.
What Arrow cannot turn into Python without loss or an exception (nanoseconds, years beyond 9999) becomes
text inside Arrow, so that the result does not depend on which other packages are installed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["BadCell", "as_bytes", "dump_json", "holds_text", "id_cells", "json_cells", "text_cells"]


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell of the text column that is no text."""

    reason: str
    raw: bytes
    """Its first bytes."""
    raw_length: int
    detail: str


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(plain or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind))


def holds_text(kind: pa.DataType) -> bool:
    """Whether cells of this type can be text: strings and bytes, plain or dictionary-encoded, or only nulls."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_null(kind)) or _is_string(kind) or _is_binary(kind)


# -- text -----------------------------------------------------------------------------------------


def text_cells(column: pa.Array, max_bytes: int, raw_bytes: int) -> list[str | BadCell | None]:
    """The cells of a text column, one for each row: text, None for null, or what is wrong with it.

    Args:
        max_bytes: a longer cell is never made a Python object.
        raw_bytes: how much of a bad cell is kept.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return [None] * len(column)
    if pa.types.is_dictionary(kind):
        used = pc.unique(column.indices).drop_null()
        cells = text_cells(column.dictionary.take(used), max_bytes, raw_bytes)
        by_index = dict(zip(used.to_pylist(), cells, strict=True))
        return [None if index is None else by_index[index] for index in column.indices.to_pylist()]
    longest = pc.max(pc.binary_length(_plain_binary(column))).as_py() or 0
    if longest <= max_bytes:
        try:
            texts: list[str | BadCell | None] = _as_string(column).to_pylist()
            return texts
        except UnicodeDecodeError:
            pass  # some cell is no UTF-8: look at each
    return [_text_cell(column[i], max_bytes, raw_bytes) for i in range(len(column))]


def _plain_binary(column: pa.Array) -> pa.Array:
    """The same bytes in a type that `binary_length` knows."""
    if pa.types.is_string_view(column.type):
        column = column.view(pa.binary_view())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _as_string(column: pa.Array) -> pa.Array:
    """Bytes relabelled as strings, without a check; strings as they are."""
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        column, kind = column.cast(pa.binary()), pa.binary()
    if pa.types.is_binary_view(kind):
        return column.view(pa.string_view())
    if pa.types.is_large_binary(kind):
        return column.view(pa.large_string())
    return column.view(pa.string()) if pa.types.is_binary(kind) else column


def _text_cell(cell: pa.Scalar, max_bytes: int, raw_bytes: int) -> str | BadCell | None:
    if not cell.is_valid:
        return None
    stored = memoryview(cell.as_buffer()).cast("B")  # Arrow says signed bytes
    if len(stored) > max_bytes:
        detail = f"{len(stored)} bytes, allowed are {max_bytes}"
        return BadCell("too_long", bytes(stored[:raw_bytes]), len(stored), detail)
    try:
        return str(stored, "utf-8")
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the text is {stored[error.start]:#04x}: {error.reason}"
        return BadCell("bad_utf8", bytes(stored[:raw_bytes]), len(stored), detail)


# -- ids and other values -------------------------------------------------------------------------


def id_cells(column: pa.Array) -> list[str | None]:
    """Ids as strings: numbers as their digits, times as ISO 8601, lists and structs as JSON; null and "" are no id."""
    return [_id(value) for value in json_cells(column)[0]]


def _id(value: Any) -> str | None:
    if value is None or value == "" or value != value:
        return None
    return dump_json(value) if isinstance(value, (bool, list, dict)) else str(value)


def json_cells(column: pa.Array) -> tuple[list[Any], int]:
    """Values that `dump_json` can write, one for each row, and how many had to be given up as null.

    Times are ISO 8601, in UTC where they have a zone; inside nested values a blank stands for the `T`.
    A cell is given up when it is nested and holds bytes that are no UTF-8 where a string should be.
    """
    is_time = pa.types.is_timestamp(column.type)
    column = column.cast(_mapped(column.type, _in_utc)).cast(_mapped(column.type, _readable))
    if is_time:
        column = pc.replace_substring(column, " ", "T")
    if _is_string(column.type):
        try:
            return column.to_pylist(), 0
        except UnicodeDecodeError:
            column = as_bytes(column)
    if _is_binary(column.type):
        return [None if cell is None else _text_or_base64(cell) for cell in column.to_pylist()], 0
    try:
        return column.to_pylist(), 0
    except UnicodeDecodeError:
        values = [_value(column[i]) for i in range(len(column))]
        return values, sum(value is None and column[i].is_valid for i, value in enumerate(values))


def _value(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return None


def _text_or_base64(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def dump_json(value: Any) -> str:
    """JSON text; NaN and infinities are null, bytes text or base64, anything else its `str`.

    Raises:
        orjson.JSONEncodeError: nested more than 254 deep.
    """
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode("utf-8")


def _plain(value: Any) -> Any:
    return _text_or_base64(value) if isinstance(value, bytes) else str(value)


# -- types ----------------------------------------------------------------------------------------


def as_bytes(column: pa.Array) -> pa.Array:
    """The same buffers with every string relabelled as bytes, so that `validate(full=True)` looks at structure alone."""
    return column.view(_mapped(column.type, _bytes_for))


def _bytes_for(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    return pa.binary_view() if pa.types.is_string_view(kind) else kind


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def _readable(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) and not pa.types.is_interval(kind) else kind


def _mapped(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """`kind` with `leaf` applied to the innermost types."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _mapped(kind.value_type, leaf), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_mapped(field.type, leaf)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_mapped(kind.key_type, leaf)),
            kind.item_field.with_type(_mapped(kind.item_type, leaf)),
        )
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped(kind.value_type, leaf)), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_mapped(kind.value_type, leaf)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped(kind.value_type, leaf)))
    return leaf(kind)
