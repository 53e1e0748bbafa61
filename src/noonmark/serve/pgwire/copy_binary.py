"""The data of a binary COPY, column by column: Arrow tables instead of rows.

Law (same): where `decode` gives a table, its rows are those that `copy.decoder` makes of the bytes;
where it gives none, the bytes hold something that is no row, and the exact way says what.

Fields are found one after the other, since each one's length says where the next begins; then a
column is all of its fields at once. Types without a rule here are decoded value by value, by the
same function as in rows.

Where it runs: threads beside the loop; pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.arrow import arrow_type
from noonmark.rows.pg.binary import EPOCH_DAYS, EPOCH_MICROS
from noonmark.rows.postgres import decode_binary
from noonmark.rows.refine import refine
from noonmark.source.format.convert import as_text, from_values

#: The signature, flags, and the length of an extension.
OPENING_BYTES = 19
_LENGTH = struct.Struct(">i")

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


class BinaryColumns:
    """Blocks of rows as tables of columns of these types."""

    def __init__(self, sql_types: Sequence[t.SqlType]) -> None:
        self._types = tuple(sql_types)
        self._names = [str(at) for at in range(len(self._types))]
        #: Whether there is anything that `decode` could do.
        self.can = len(self._types) > 0

    def opening(self, data: bytes) -> int:
        """How many bytes come before the first row."""
        return min(OPENING_BYTES, len(data))

    def decode(self, data: bytes) -> tuple[int, pa.Table | None]:
        """How many bytes are whole rows, and those; None where they are not for columns."""
        starts, end = _fields(data, len(self._types))
        if not end:
            return 0, None
        raw = np.frombuffer(data, np.uint8)
        arrays = []
        for at, sql_type in enumerate(self._types):
            array = _column(raw, starts[at :: len(self._types)], sql_type)
            if array is None:
                return end, None
            arrays.append(array)
        return end, pa.table(arrays, self._names)


def _fields(data: bytes, width: int) -> tuple[Ints, int]:
    """Where the fields of whole rows begin, row by row, and where the last row ends."""
    count, length_at = struct.pack(">h", width), _LENGTH.unpack_from
    starts: list[int] = []
    found, at = 0, 0
    add = starts.append
    try:
        while data[at : at + 2] == count:
            end = at + 2
            for _ in range(width):
                (length,) = length_at(data, end)
                end += 4
                add(end)
                if length > 0:
                    end += length
                elif length < -1:
                    raise struct.error("a length that is none")
            if end > len(data):
                break
            found, at = found + width, end
    except struct.error:
        pass  # the row is not whole, or no row: the next look, or the exact way, says which
    return np.array(starts[:found], np.int64), at


def _column(raw: Bytes, starts: Ints, sql_type: t.SqlType) -> pa.Array | None:
    """The fields that begin there as a column; None where one is no value."""
    words = raw[(starts - 4)[:, None] + np.arange(4)].view(">i4").ravel()
    lengths = words.astype(np.int64)
    absent = lengths < 0
    lengths[absent] = 0
    try:
        if (width := _WIDTHS.get(type(sql_type))) is not None:
            array = _fixed(raw, starts, lengths, absent, (width, sql_type))
        elif isinstance(sql_type, t.Text | t.Varchar | t.Bytea | t.Uuid | t.Json):
            array = _varying(raw, starts, lengths, absent, sql_type)
        else:
            array = _one_by_one(raw, starts, lengths, absent, sql_type)
        return None if array is None else refine(array, sql_type)
    except (pa.ArrowException, NoonmarkError):
        return None


def _fixed(
    raw: Bytes, starts: Ints, lengths: Ints, absent: Bools, kind: tuple[str, t.SqlType]
) -> pa.Array | None:
    form, sql_type = np.dtype(kind[0]), kind[1]
    storage = arrow_type(sql_type)
    present = ~absent
    if not present.any():
        return pa.nulls(len(starts), storage)
    if (lengths[present] != form.itemsize).any():
        return None
    # A NULL has no bytes: it borrows those of a field that has some.
    places = np.where(absent, starts[present][0], starts)
    cells = raw[places[:, None] + np.arange(form.itemsize)]
    values = cells.view(form).ravel().astype(form.newbyteorder("="))
    rule = _RULES.get(type(sql_type))
    ruled = values if rule is None else rule(values)
    if ruled is None:
        return None
    array = pa.array(ruled, mask=absent if absent.any() else None)
    return array if array.type == storage else array.view(storage)


def _booleans(values: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    return values.astype(np.bool_) if (values <= 1).all() else None


def _days(values: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    days = values.astype(np.int64)
    infinite = (days == v.INT32_MIN) | (days == v.INT32_MAX)
    days = np.where(infinite, days, days + EPOCH_DAYS)
    return days.astype(np.int32) if (days <= v.INT32_MAX).all() else None


def _instants(values: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    infinite = (values == v.INT64_MIN) | (values == v.INT64_MAX)
    if (~infinite & (values > v.MICROS_MAX - EPOCH_MICROS)).any():
        return None
    return np.where(infinite, values, values + np.where(infinite, 0, EPOCH_MICROS))


def _varying(
    raw: Bytes, starts: Ints, lengths: Ints, absent: Bools, sql_type: t.SqlType
) -> pa.Array | None:
    ends = np.cumsum(lengths)
    offsets = np.zeros(len(starts) + 1, np.int32)
    offsets[1:] = ends
    places = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
    valid = None
    if absent.any():
        valid = pa.py_buffer(np.packbits(~absent, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(offsets.tobytes()), pa.py_buffer(raw[places].tobytes())]
    array = pa.Array.from_buffers(pa.binary(), len(starts), buffers)
    return as_text(array) if isinstance(sql_type, t.Text | t.Varchar | t.Json) else array


def _one_by_one(
    raw: Bytes, starts: Ints, lengths: Ints, absent: Bools, sql_type: t.SqlType
) -> pa.Array | None:
    data = raw.data
    items = [
        None if none else bytes(data[start : start + length])
        for start, length, none in zip(
            starts.tolist(), lengths.tolist(), absent.tolist(), strict=True
        )
    ]
    array, reasons = from_values(items, sql_type, partial(_decoded, sql_type))
    return None if reasons else array


def _decoded(sql_type: t.SqlType, raw: bytes) -> Any:
    return decode_binary(raw, sql_type)


#: What a field of a type is, where all have the same bytes.
_WIDTHS: dict[type[t.SqlType], str] = {
    t.Boolean: "u1",
    t.SmallInt: ">i2",
    t.Integer: ">i4",
    t.BigInt: ">i8",
    t.Real: ">f4",
    t.Double: ">f8",
    t.Date: ">i4",
    t.Time: ">i8",
    t.Timestamp: ">i8",
    t.TimestampTz: ">i8",
}
#: What is done to the numbers of a column; None says that one is no value of the type.
_RULES: dict[type[t.SqlType], Callable[[npt.NDArray[Any]], npt.NDArray[Any] | None]] = {
    t.Boolean: _booleans,
    t.Date: _days,
    t.Timestamp: _instants,
    t.TimestampTz: _instants,
}
