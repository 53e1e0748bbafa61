"""Thrift's compact protocol, as far as Parquet's footer, page index and page headers use it.

A struct is a dict from field id to `Field`; nothing is known of names. Law (round trip):
``decode_struct(encode_struct(s)) == (s, len)`` for every struct whose values fit their types, so a
struct can be read, changed and written with all fields that we do not know.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from noonmark.errors import Corrupt

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_DEPTH_MAX = 32


class Field(NamedTuple):
    """A value with its wire type. A boolean has type `TRUE`, whatever its value."""

    type: int
    value: Any


class Items(NamedTuple):
    """The value of a list: the type of its items, and the items."""

    type: int
    values: list[Any]


Struct = dict[int, Field]


def decode_struct(data: bytes | memoryview, at: int = 0) -> tuple[Struct, int]:
    """The struct that starts at `at`, and the place after it; `Corrupt` when there is none."""
    try:
        return _read_struct(data, at, 0)
    except (IndexError, struct.error) as error:
        raise Corrupt("a Parquet header ends before it is complete") from error


def encode_struct(value: Struct) -> bytes:
    """The struct on the wire."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


def zigzag(value: int) -> int:
    """Signed to unsigned: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """Unsigned to signed."""
    return (value >> 1) ^ -(value & 1)


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while shift < 70:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise Corrupt("a Parquet header has an integer that does not end")


def _read_struct(data: bytes | memoryview, at: int, depth: int) -> tuple[Struct, int]:
    if depth > _DEPTH_MAX:
        raise Corrupt("a Parquet header is nested too deeply")
    fields: Struct = {}
    field_id = 0
    while header := data[at]:
        kind, delta = header & 0x0F, header >> 4
        at += 1
        if delta:
            field_id += delta
        else:
            raw, at = _read_varint(data, at)
            field_id = unzigzag(raw)
        if kind in (TRUE, FALSE):
            fields[field_id] = Field(TRUE, kind == TRUE)
        else:
            value, at = _read_value(data, at, kind, depth)
            fields[field_id] = Field(kind, value)
    return fields, at + 1


def _read_value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (I16, I32, I64):
        raw, at = _read_varint(data, at)
        return unzigzag(raw), at
    if kind == BINARY:
        size, at = _read_varint(data, at)
        if at + size > len(data):
            raise Corrupt("a Parquet header has text beyond its end")
        return bytes(data[at : at + size]), at + size
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind == LIST:
        return _read_list(data, at, depth)
    if kind == I8:
        return struct.unpack_from("b", data, at)[0], at + 1
    if kind == DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise Corrupt(f"a Parquet header has a value of the unknown type {kind}")


def _read_list(data: bytes | memoryview, at: int, depth: int) -> tuple[Items, int]:
    header = data[at]
    at += 1
    kind, size = header & 0x0F, header >> 4
    if size == 15:
        size, at = _read_varint(data, at)
    if size > len(data) - at:
        raise Corrupt("a Parquet header has a list beyond its end")
    if kind in (TRUE, FALSE):
        return Items(TRUE, [byte == TRUE for byte in data[at : at + size]]), at + size
    values = []
    for _ in range(size):
        value, at = _read_value(data, at, kind, depth)
        values.append(value)
    return Items(kind, values), at


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Struct) -> None:
    previous = 0
    for field_id, (kind, value) in sorted(fields.items()):
        wire = (TRUE if value else FALSE) if kind == TRUE else kind
        delta = field_id - previous
        if 0 < delta < 16:
            out.append(delta << 4 | wire)
        else:
            out.append(wire)
            _write_varint(out, zigzag(field_id))
        if kind != TRUE:
            _write_value(out, kind, value)
        previous = field_id
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _write_varint(out, zigzag(value))
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind == LIST:
        _write_list(out, value)
    elif kind == TRUE:
        out.append(TRUE if value else FALSE)
    elif kind == I8:
        out += struct.pack("b", value)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        raise ValueError(f"a Parquet header has no values of type {kind}")


def _write_list(out: bytearray, items: Items) -> None:
    size = len(items.values)
    if size < 15:
        out.append(size << 4 | items.type)
    else:
        out.append(0xF0 | items.type)
        _write_varint(out, size)
    for value in items.values:
        _write_value(out, items.type, value)
