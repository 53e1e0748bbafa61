"""Dates and timestamps by kernels and on Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from noonmark.compute.scalar import moments, number
from noonmark.compute.scalar.forms import Forms, Kernel, Made, spread
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.conform import as_numerals
from noonmark.rows.value import DATE_INFINITY, DATE_NEG_INFINITY
from noonmark.sql.ir.scalar import Call, Literal


def _part(name: str) -> Kernel:
    def kernel(call: Call, value: Any) -> Any:
        def act(array: pa.Array) -> pa.Array:
            found = moments.part(name, array)
            if not t.is_plain(call.type):
                return number.to_array(found, call.type)
            return as_numerals(number.to_array(found, t.Numeric(20, found.scale)))

        return spread(value, act)

    return kernel


def _date_trunc(call: Call, _: Any, moment: Any) -> Any:
    unit = call.arguments[0]
    if not isinstance(unit, Literal) or unit.value is None:
        raise NoKernel
    return spread(moment, lambda each: moments.truncated(unit.value.lower(), each))


def _year(f: Any, date: Any) -> Made:
    """Before year 1 comes year -1; that of an infinity is refused, as everywhere."""
    infinite = f.unix_date(date).isin(DATE_INFINITY.days, DATE_NEG_INFINITY.days)
    year = f.year(date)
    value = f.when(~infinite, f.when(year > 0, year).otherwise(year - 1))
    return Made(value, "0A000 the year of an infinite date is not supported")


_STAMPS = ("timestamp without time zone", "timestamp with time zone")

TABLE: dict[str, Forms] = {
    **{
        f"extract {part}({kind})": Forms(_part(part))
        for part in moments.PARTS
        for kind in (*_STAMPS, "date")
        if kind != "date" or part not in moments.CLOCK_PARTS
    },
    "extract year(date)": Forms(_part("year"), _year),
    **{f"date_trunc(text, {kind})": Forms(_date_trunc) for kind in _STAMPS},
}
