"""Aggregates: one value from the rows of a group.

The meaning of an aggregate takes the list of ``(arguments, count)`` of the group, each list of
arguments once, its count positive, in the order of the arguments (or of the ORDER BY). So the
result is a function of the multiset. Sums and moments of floats are computed exactly and rounded
once: they do not depend on an order, where PostgreSQL's do in the last digit.

A strict aggregate does not see rows with a NULL argument. Over no rows, count is 0 and
every other aggregate is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from noonmark.errors import InvalidArgument, OutOfRange, TooManyRows
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.numeral import scale_of
from noonmark.rows.order import total_key
from noonmark.sql.functions.errors import NullRefused
from noonmark.sql.functions.function import Any_, Parameter, Result, Signature
from noonmark.sql.functions.json import key_of, text_of
from noonmark.sql.functions.jsonb import data_of, jsonb_of, name_of, parse
from noonmark.sql.functions.number import numeric
from noonmark.sql.functions.number.fit import WIDE, numeric_for
from noonmark.sql.functions.time.calendar import interval_add, interval_scale

_SUM_DIGITS = t.NUMERIC_PRECISION_MAX - 10

Rows = Sequence[tuple[tuple[Any, ...], int]]
Meaning = Callable[[tuple[t.SqlType, ...], Rows], Any]


@dataclass(frozen=True, slots=True)
class Aggregator(Signature):
    """An aggregate; its meaning takes the argument types and the rows."""

    ordered: bool = False  # the result depends on the order of the rows

    def fails(self, types: tuple[t.SqlType, ...]) -> bool:
        """Whether rows exist over which it raises; 10^10 rows are taken for all there can be."""
        if self.name in ("single value", "jsonb_agg", "json_agg") or "object_agg" in self.name:
            return True
        if self.name.startswith(("percentile", "corr", "covar", "regr")):
            return True
        if self.name not in ("sum", "avg") or isinstance(types[0], t.SmallInt | t.Integer):
            return self.name.startswith(("var", "stddev"))
        digits = types[0].precision if isinstance(types[0], t.Numeric) else None
        return not isinstance(types[0], t.BigInt) and (digits is None or digits > _SUM_DIGITS)


def _first(rows: Rows) -> list[tuple[Any, int]]:
    return [(arguments[0], count) for arguments, count in rows]


def _count(_: tuple[t.SqlType, ...], rows: Rows) -> int:
    return sum(count for _, count in rows)


def _sum(_: tuple[t.SqlType, ...], rows: Rows) -> Any:
    return sum(value * count for value, count in _first(rows)) if rows else None


def _sum_numeric(_: tuple[t.SqlType, ...], rows: Rows) -> Decimal | None:
    total = Decimal(0)
    for value, count in _first(rows):
        total = WIDE.add(total, WIDE.multiply(value, Decimal(count)))
    return total if rows else None


def _special(values: list[tuple[float, int]]) -> float | None:
    """The sum, if an infinity or NaN decides it."""
    odd = {value for value, _ in values if math.isinf(value)}
    if any(math.isnan(value) for value, _ in values) or len(odd) == 2:
        return math.nan
    return odd.pop() if odd else None


def _exact(values: list[tuple[float, int]]) -> Fraction:
    return sum((Fraction(value) * count for value, count in values), Fraction(0))


def rounded(value: Fraction | float) -> float:
    """The float nearest to an exact number."""
    try:
        return float(value)
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None


def _sum_float(_: tuple[t.SqlType, ...], rows: Rows) -> float | None:
    values = _first(rows)
    if not rows:
        return None
    special = _special(values)
    return special if special is not None else rounded(_exact(values))


def _avg_float(types: tuple[t.SqlType, ...], rows: Rows) -> float | None:
    values = _first(rows)
    if not rows:
        return None
    special = _special(values)
    return special if special is not None else rounded(_exact(values) / _count(types, rows))


def _sum_interval(_: tuple[t.SqlType, ...], rows: Rows) -> v.Interval | None:
    total = v.Interval()
    for value, count in _first(rows):
        scaled = v.Interval(value.months * count, value.days * count, value.micros * count)
        total = interval_add(total, scaled)
    return total if rows else None


def _avg_interval(types: tuple[t.SqlType, ...], rows: Rows) -> v.Interval | None:
    total, count = _sum_interval(types, rows), _count(types, rows)
    return None if total is None else interval_scale(total, lambda field: field / count)


def _avg(types: tuple[t.SqlType, ...], rows: Rows) -> Decimal | None:
    as_numeric = [((Decimal(value),), count) for value, count in _first(rows)]
    total = _sum_numeric(types, as_numeric)
    return None if total is None else numeric.divide(total, Decimal(_count(types, rows)))


class Moment:
    """Variance or standard deviation, of the sample or of the population."""

    def __init__(self, sample: bool, root: bool) -> None:
        self.sample = sample
        self.root = root

    def _divisor(self, count: int) -> int:
        return count * (count - 1) if self.sample else count * count

    def exact(self, types: tuple[t.SqlType, ...], rows: Rows) -> Decimal | None:
        """Of integers and numerics."""
        total, squares = Decimal(0), Decimal(0)
        for value, times in _first(rows):
            number = Decimal(value)
            total = WIDE.add(total, WIDE.multiply(number, Decimal(times)))
            square = WIDE.multiply(number, number)
            squares = WIDE.add(squares, WIDE.multiply(square, Decimal(times)))
        return self.of_numbers(_count(types, rows), total, squares)

    def of_numbers(self, count: int, total: Decimal, squares: Decimal) -> Decimal | None:
        """Of how many numbers there are, their sum and that of their squares, as PostgreSQL."""
        if count <= int(self.sample):
            return None
        spread = WIDE.subtract(WIDE.multiply(squares, Decimal(count)), WIDE.multiply(total, total))
        if not spread.is_finite():
            return Decimal("NaN")
        if spread <= 0:
            return Decimal(0)
        variance = numeric.divide(spread, Decimal(self._divisor(count)))
        if not self.root:
            return variance
        return numeric.square_root(variance, scale_of(variance))

    def of_floats(self, types: tuple[t.SqlType, ...], rows: Rows) -> float | None:
        """Of floats."""
        values, count = _first(rows), _count(types, rows)
        if _special(values) is not None:
            return math.nan if count > int(self.sample) else None
        squares = sum((Fraction(x) ** 2 * times for x, times in values), Fraction(0))
        return self.of_fractions(count, _exact(values), squares)

    def of_fractions(self, count: int, total: Fraction, squares: Fraction) -> float | None:
        """Of how many floats there are, their sum and that of their squares: rounded once."""
        if count <= int(self.sample):
            return None
        variance = rounded((squares * count - total**2) / self._divisor(count))
        return math.sqrt(variance) if self.root else variance


MOMENTS = {
    "var_samp": Moment(sample=True, root=False),
    "variance": Moment(sample=True, root=False),
    "var_pop": Moment(sample=False, root=False),
    "stddev_samp": Moment(sample=True, root=True),
    "stddev": Moment(sample=True, root=True),
    "stddev_pop": Moment(sample=False, root=True),
}


class Extreme:
    """min and max."""

    def __init__(self, pick: Callable[..., Any]) -> None:
        self.pick = pick

    def __call__(self, types: tuple[t.SqlType, ...], rows: Rows) -> Any:
        """The extreme of the values; of floats, there is one zero."""
        values = [value for value, _ in _first(rows)]
        found = self.pick(values, key=total_key(types[0])) if values else None
        return found + 0.0 if isinstance(found, float) else found


def _bool_and(_: tuple[t.SqlType, ...], rows: Rows) -> bool | None:
    return all(value for value, _ in _first(rows)) if rows else None


def _bool_or(_: tuple[t.SqlType, ...], rows: Rows) -> bool | None:
    return any(value for value, _ in _first(rows)) if rows else None


def _repeated(rows: Rows) -> list[tuple[Any, ...]]:
    return [arguments for arguments, count in rows for _ in range(count)]


def _string_agg(_: tuple[t.SqlType, ...], rows: Rows) -> str | None:
    parts: list[str] = []
    for text, separator in _repeated(rows):
        if text is not None:
            parts += [separator or "", text] if parts else [text]
    return "".join(parts) if parts else None


def _bytes_agg(_: tuple[t.SqlType, ...], rows: Rows) -> bytes | None:
    parts: list[bytes] = []
    for data, separator in _repeated(rows):
        if data is not None:
            parts += [separator or b"", data] if parts else [data]
    return b"".join(parts) if parts else None


def _array_agg(_: tuple[t.SqlType, ...], rows: Rows) -> tuple[Any, ...] | None:
    return tuple(arguments[0] for arguments in _repeated(rows)) if rows else None


def _jsonb_agg(types: tuple[t.SqlType, ...], rows: Rows) -> str | None:
    items = [parse(jsonb_of(arguments[0], types[0])) for arguments in _repeated(rows)]
    return jsonb_of(items) if rows else None


def _object_agg(types: tuple[t.SqlType, ...], rows: Rows) -> str | None:
    made: dict[str, Any] = {}
    for name, value in _repeated(rows):
        if name is None:
            raise InvalidArgument("field name must not be null")
        made[name_of(name, types[0])] = data_of(value, types[1])
    return jsonb_of(made) if rows else None


def _json_agg(types: tuple[t.SqlType, ...], rows: Rows) -> str | None:
    """Items that are arrays or records begin on a line of their own, but for the first."""
    values = [arguments[0] for arguments in _repeated(rows)]
    line = "\n " if isinstance(types[0], t.Array | t.Record) else ""
    items = [
        (line if at and x is not None else "") + text_of(x, types[0]) for at, x in enumerate(values)
    ]
    return f"[{', '.join(items)}]" if rows else None


def _json_object_agg(types: tuple[t.SqlType, ...], rows: Rows) -> str | None:
    made = []
    for name, value in _repeated(rows):
        if name is None:
            raise NullRefused("null value not allowed for object key")
        made.append(f"{key_of(name, types[0])} : {text_of(value, types[1])}")
    return "{ " + ", ".join(made) + " }" if rows else None


class Bits:
    """bit_and, bit_or and bit_xor; a value that is there n times counts n times."""

    def __init__(self, act: Callable[[int, int], int]) -> None:
        self.act = act

    def __call__(self, _: tuple[t.SqlType, ...], rows: Rows) -> int | None:
        """All values, bit by bit."""
        # Twice is once for AND and OR, and nothing for XOR: a third time is the first again.
        values = [value for value, count in _first(rows) for _ in range(2 - count % 2)]
        return reduce(self.act, values) if values else None


def _any_value(_: tuple[t.SqlType, ...], rows: Rows) -> Any:
    return rows[0][0][0] if rows else None


def _single(_: tuple[t.SqlType, ...], rows: Rows) -> Any:
    values = _repeated(rows)
    if len(values) > 1:
        raise TooManyRows("more than one row returned by a subquery used as an expression")
    return values[0][0] if values else None


def _numeric_sum_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    source = numeric_for(types[0])
    if source.is_plain or source.trimmed:
        return t.Numeric()
    return t.Numeric(t.NUMERIC_PRECISION_MAX, source.scale)


def _extreme_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    """PostgreSQL has min and max of text alone, which a name becomes."""
    return t.Text() if isinstance(types[0], t.Text) else types[0]


def _same_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return types[0]


def _row(
    name: str,
    parameters: tuple[Parameter, ...],
    result: Result,
    meaning: Meaning,
    *,
    strict: bool = True,
    ordered: bool = False,
) -> Aggregator:
    return Aggregator(
        name,
        parameters,
        result,
        meaning,
        strict=strict,
        gives_null=name != "count",
        ordered=ordered,
    )


def _table() -> list[Aggregator]:
    plain, double, anything = t.Numeric(), t.Double(), (Any_.ELEMENT,)
    rows = [
        _row("count", (), t.BigInt(), _count),
        _row("count", (Any_.ANY,), t.BigInt(), _count),
        _row("sum", (t.SmallInt,), t.BigInt(), _sum),
        _row("sum", (t.Integer,), t.BigInt(), _sum),
        _row("sum", (t.BigInt,), _numeric_sum_type, _sum),
        _row("sum", (t.Numeric,), _numeric_sum_type, _sum_numeric),
        _row("sum", (t.Real,), t.Real(), _sum_float),
        _row("sum", (t.Double,), double, _sum_float),
        _row("sum", (t.Interval,), t.Interval(), _sum_interval),
        _row("avg", (t.Real,), double, _avg_float),
        _row("avg", (t.Double,), double, _avg_float),
        _row("avg", (t.Interval,), t.Interval(), _avg_interval),
        _row("min", anything, _extreme_type, Extreme(min)),
        _row("max", anything, _extreme_type, Extreme(max)),
        _row("bool_and", (t.Boolean,), t.Boolean(), _bool_and),
        _row("every", (t.Boolean,), t.Boolean(), _bool_and),
        _row("bool_or", (t.Boolean,), t.Boolean(), _bool_or),
        _row("string_agg", (t.Bytea, t.Bytea), t.Bytea(), _bytes_agg, strict=False, ordered=True),
        _row("string_agg", (t.Text, t.Text), t.Text(), _string_agg, strict=False, ordered=True),
        _row(
            "array_agg",
            anything,
            lambda types: t.Array(types[0]),
            _array_agg,
            strict=False,
            ordered=True,
        ),
        _row("jsonb_agg", (Any_.ANY,), t.Jsonb(), _jsonb_agg, strict=False, ordered=True),
        _row("json_agg", (Any_.ANY,), t.Json(), _json_agg, strict=False, ordered=True),
        _row("any_value", anything, _same_type, _any_value, ordered=True),
        _row("single value", anything, _same_type, _single, strict=False),
    ]
    for kind in (t.SmallInt, t.Integer, t.BigInt, t.Numeric):
        rows.append(_row("avg", (kind,), plain, _avg))
    pairs = (Any_.ANY, Any_.ANY)
    rows += [
        _row("jsonb_object_agg", pairs, t.Jsonb(), _object_agg, strict=False, ordered=True),
        _row("json_object_agg", pairs, t.Json(), _json_object_agg, strict=False, ordered=True),
    ]
    for kind in (t.SmallInt, t.Integer, t.BigInt):
        for name, act in (("bit_and", and_), ("bit_or", or_), ("bit_xor", xor)):
            rows.append(_row(name, (kind,), kind(), Bits(act)))
    for name, moment in MOMENTS.items():
        for kind in (t.SmallInt, t.Integer, t.BigInt, t.Numeric):
            rows.append(_row(name, (kind,), plain, moment.exact))
        for other in (t.Real, t.Double):
            rows.append(_row(name, (other,), double, moment.of_floats))
    return rows


TABLE = tuple(_table())
