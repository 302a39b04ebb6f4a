"""Reads protocol buffers, as far as a SentencePiece model needs it: https://protobuf.dev/programming-guides/encoding/.

Linear in the size of the message, a megabyte in half a second.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["as_bytes", "as_number", "fields"]


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol buffer message: (number, varint, or the bytes of anything else).

    Raises:
        ValueError: a field is longer than the message, or of a kind that there is not.
        IndexError: the message ends inside a number.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if wire == 2:
            size, place = _varint(message, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {place}")
        if place + size > len(message):
            raise ValueError(f"a field of {size} bytes at byte {place} of {len(message)}")
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"a number of more than ten bytes at byte {place}")


def as_bytes(value: int | bytes) -> bytes:
    """Text or a message.

    Raises:
        TypeError: it is a number.
    """
    if isinstance(value, int):
        raise TypeError("a number where text or a message must stand")
    return value


def as_number(value: int | bytes) -> int:
    """A number, as the file has it: enumerations and truth values too.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, int):
        raise TypeError("text or a message where a number must stand")
    return value
