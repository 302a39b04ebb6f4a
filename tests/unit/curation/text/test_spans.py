"""Arrow arrays as bytes and offsets: without a copy, checked, whatever the type and the slice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import InputError
from curation.text import Spans, buffers, count_chars, count_words, word_spans
from curation.text.spans import bounds

TEXTS = ["one", "", "zwei drei", "四"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_where_the_offsets_say(kind: pa.DataType) -> None:
    """Document d is data[offsets[d]:offsets[d + 1]], of an array and of each slice of it."""
    array = pa.array(TEXTS, kind)
    for start in range(5):
        for stop in range(start, 5):
            data, offsets = buffers(array[start:stop])
            found = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
            assert TEXTS[start:stop] == found


def test_text_is_not_copied() -> None:
    """The bytes are Arrow's own memory, read-only, and so are the offsets of a large_string array."""
    array = pa.array(TEXTS, pa.large_string())
    data, offsets = buffers(array.slice(1))
    _, arrow_offsets, arrow_data = array.buffers()

    assert data.ctypes.data == arrow_data.address
    assert offsets.ctypes.data == arrow_offsets.address + 8
    assert not data.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        pa.array([], pa.large_string()),
        pa.array([], pa.string()),
        pa.array(["a"], pa.large_string()).slice(1),
        pa.LargeStringArray.from_buffers(0, None, pa.py_buffer(b"")),
    ],
)
def test_no_texts(array: pa.Array) -> None:
    """An empty array has no documents, whatever buffers it lacks."""
    data, offsets = buffers(array)

    assert len(offsets) == 1
    assert len(count_chars(data, offsets)) == 0
    assert word_spans(data, offsets).offsets.tolist() == [0]


def test_empty_texts_without_data() -> None:
    """Empty documents may come without any bytes."""
    assert count_words(*buffers(pa.array(["", ""], pa.string()))).tolist() == [0, 0]


WRONG: list[tuple[Any, str]] = [
    (pa.array(["a", None], pa.large_string()), "no nulls, found 1 in 2"),
    (pa.array([b"a"], pa.large_binary()), "not large_binary"),
    (pa.array(["a"]).dictionary_encode(), "not dictionary"),
    (pa.array(["a"], pa.string_view()), "not string_view"),
    (pa.chunked_array([["a"]]), "ChunkedArray"),
    (["a"], "not list"),
]


@pytest.mark.parametrize(("array", "message"), WRONG)
def test_other_arrays_are_refused(array: Any, message: str) -> None:
    """Only string arrays without nulls are texts; the message says what was found."""
    with pytest.raises(InputError, match=message):
        buffers(array)


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 2], [3, 1], [0, 3, 1, 4]])
def test_damaged_offsets_are_refused(offsets: list[int]) -> None:
    """Offsets that fall or leave the data never reach a kernel."""
    data = np.zeros(4, np.uint8)
    with pytest.raises(InputError, match="must rise and lie within its 4 bytes"):
        bounds(data, np.array(offsets, np.int64))


def test_damaged_arrow_offsets_are_refused() -> None:
    """An Arrow array from a damaged file is refused as well."""
    offsets = pa.py_buffer(np.array([0, 400, 4], np.int64))
    array = pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(b"text"))
    with pytest.raises(InputError, match="damaged"):
        buffers(array)


def test_spans_are_counted_each_for_itself() -> None:
    """Spans may overlap, come in any order and be empty."""
    data, _ = buffers(pa.array(["one two three"], pa.string()))
    spans = Spans(np.array([8, 0, 4, 4]), np.array([13, 13, 7, 4]), np.array([0, 4]))

    assert count_chars(data, spans).tolist() == [5, 13, 3, 0]
    assert count_words(data, spans).tolist() == [1, 3, 1, 0]
