"""Dates and timestamps, all rows at once: their parts, and the beginning of what they are in.

Days and microseconds are whole numbers, before 1970 too. What is outside of the years 1 to 9999,
the infinities with it, is `NoKernel`.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.scalar.number import NoKernel, Scaled

Ints = npt.NDArray[np.int64]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
#: The days of the years 1 to 9999.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MICROS = 6

_UNITS = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": _DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def micros_of(array: pa.Array) -> Ints:
    """Dates or timestamps as microseconds since 1970; 0 where there is none."""
    if pa.types.is_date32(array.type):
        found = pc.fill_null(array.view(pa.int32()), 0).to_numpy(zero_copy_only=False)
        made = found.astype(np.int64)
        _check(made)
        return np.asarray(made * _DAY, np.int64)
    found = pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    micros = np.asarray(found, np.int64)
    _check(micros // _DAY)
    return micros


def _check(days: Ints) -> None:
    if len(days) and (days.min() < _FIRST_DAY or days.max() > _LAST_DAY):
        raise NoKernel


def _valid(array: pa.Array) -> np.ndarray | None:
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def cast(array: pa.Array, storage: pa.DataType) -> pa.Array:
    """A date as the timestamp of its midnight, and a timestamp as its date."""
    micros, valid = micros_of(array), _valid(array)
    mask = None if valid is None else ~valid
    if pa.types.is_date32(storage):
        return pa.array((micros // _DAY).astype(np.int32), pa.int32(), mask=mask).view(storage)
    return pa.array(micros, pa.int64(), mask=mask).view(storage)


def truncated(unit: str, array: pa.Array) -> pa.Array:
    """The beginning of the hour, day, month, ... of timestamps."""
    micros = micros_of(array)
    if unit in _UNITS:
        made = micros // _UNITS[unit] * _UNITS[unit]
    elif unit == "week":
        days = (micros // _DAY + 3) // 7 * 7 - 3  # 1970 began with a Thursday
        made = days * _DAY
    elif unit in _MONTHS:
        months = micros.view("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        first = months // _MONTHS[unit] * _MONTHS[unit]
        made = first.view("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    else:
        raise NoKernel
    valid = _valid(array)
    return pa.array(made, pa.int64(), mask=None if valid is None else ~valid).view(array.type)


def _months(micros: Ints) -> Ints:
    return micros.view("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def _day_of_month(micros: Ints) -> Ints:
    first = _months(micros).view("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return micros // _DAY - first + 1


def _day_of_year(micros: Ints) -> Ints:
    years = micros.view("datetime64[us]").astype("datetime64[Y]").astype("datetime64[D]")
    return micros // _DAY - years.astype(np.int64) + 1


_PARTS: dict[str, tuple[Callable[[Ints], Ints], int]] = {
    "year": (lambda micros: _months(micros) // 12 + 1970, 0),
    "quarter": (lambda micros: _months(micros) % 12 // 3 + 1, 0),
    "month": (lambda micros: _months(micros) % 12 + 1, 0),
    "day": (_day_of_month, 0),
    "doy": (_day_of_year, 0),
    "dow": (lambda micros: (micros // _DAY + 4) % 7, 0),
    "isodow": (lambda micros: (micros // _DAY + 3) % 7 + 1, 0),
    "hour": (lambda micros: micros // (3_600 * _SECOND) % 24, 0),
    "minute": (lambda micros: micros // (60 * _SECOND) % 60, 0),
    "second": (lambda micros: micros % (60 * _SECOND), _MICROS),
    "epoch": (lambda micros: micros, _MICROS),
}
PARTS = tuple(_PARTS)
#: What a date has not.
CLOCK_PARTS = ("hour", "minute", "second")


def part(name: str, array: pa.Array) -> Scaled:
    """A part of dates or timestamps, as a number."""
    act, scale = _PARTS[name]
    micros = micros_of(array)
    values = act(micros)
    if scale and pa.types.is_date32(array.type):
        values, scale = values // _SECOND, 0  # a date has whole seconds
    return Scaled(values, scale, _valid(array))
