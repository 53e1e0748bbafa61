"""What Spark computes exactly as PostgreSQL does: functions, casts, comparisons and literals.

Law: for every entry and all arguments that are not NULL, the value is that of the function's
meaning in `sql.functions`; where the meaning raises, the value is NULL or the entry's `error` says
why. Where Spark differs, the entry says how it is put right; what cannot be put right is not here.

Where it runs: driver; the columns run on executors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.rows import types as t
from noonmark.rows.arrow import to_array
from noonmark.rows.exact import is_ordered
from noonmark.rows.spark import spark_name
from noonmark.rows.value import DATE_INFINITY, DATE_NEG_INFINITY
from noonmark.sql.ir import scalar as ir

if TYPE_CHECKING:
    from pyspark.sql import Column

DIVISION_BY_ZERO = "22012 division by zero"
_OVERFLOW = "22003 value out of range: overflow"
_UNDERFLOW = "22003 value out of range: underflow"
_NUMERIC = "22003 numeric field overflow"


@dataclass(frozen=True)
class Made:
    """What a native function gives.

    Attributes:
        value: NULL where the function fails.
        reason: the error of a row that has its arguments and no value ...
        error: ... or a column that says which, where a NULL does not.
    """

    value: Column
    reason: str | Column = ""
    error: Column | None = None


Builder = Callable[..., Made]


def _out_of_range(kind: t.SqlType) -> str:
    return f"22003 {kind} out of range"


def _integers() -> dict[str, Builder]:
    table: dict[str, Builder] = {}
    for kind in (t.SmallInt(), t.Integer(), t.BigInt()):
        two, one = f"({kind}, {kind})", f"({kind})"
        over = _out_of_range(kind)
        table["+" + two] = lambda a, b, r=over: Made(f.try_add(a, b), r)
        table["-" + two] = lambda a, b, r=over: Made(f.try_subtract(a, b), r)
        table["*" + two] = lambda a, b, r=over: Made(f.try_multiply(a, b), r)
        table["/" + two] = lambda a, b, r=over, k=kind: _int_div(a, b, r, k)
        table["%" + two] = lambda a, b: Made(f.try_mod(a, b), DIVISION_BY_ZERO)
        table["mod" + two] = table["%" + two]
        table["-" + one] = lambda a, r=over, k=kind: Made(
            f.try_subtract(f.lit(0).cast(spark_name(k)), a), r
        )
        table["&" + two] = lambda a, b: Made(a.bitwiseAND(b))
        table["|" + two] = lambda a, b: Made(a.bitwiseOR(b))
        table["#" + two] = lambda a, b: Made(a.bitwiseXOR(b))
    return table


def _int_div(a: Column, b: Column, over: str, kind: t.SqlType) -> Made:
    """DIV raises: by zero, and for the one quotient that is too large."""
    wide = a.cast("bigint")
    quotient = f.call_function("div", wide, f.when(b != 0, b.cast("bigint")))
    safe = f.when(b == -1, f.try_subtract(f.lit(0).cast("bigint"), wide)).otherwise(quotient)
    return Made(
        safe.try_cast(spark_name(kind)),
        f.when(b == 0, f.lit(DIVISION_BY_ZERO)).otherwise(f.lit(over)),
    )


def _floats() -> dict[str, Builder]:
    table: dict[str, Builder] = {}
    for kind in (t.Real(), t.Double()):
        two = f"({kind}, {kind})"
        table["+" + two] = lambda a, b: _checked(a + b, a, b)
        table["-" + two] = lambda a, b: _checked(a - b, a, b)
        table["*" + two] = lambda a, b: _checked(a * b, a, b, underflow=True)
        table["/" + two] = _float_div
        table[f"-({kind})"] = lambda a: Made(-a)
        table[f"abs({kind})"] = lambda a: Made(f.abs(a))
    return table


def _infinite(value: Column) -> Column:
    return f.abs(value) == f.lit(float("inf"))


def _checked(value: Column, a: Column, b: Column, *, underflow: bool = False) -> Made:
    """Finite operands with an infinite result, or a zero that is none, are errors."""
    finite = ~_infinite(a) & ~_infinite(b)
    error = f.when(finite & _infinite(value), f.lit(_OVERFLOW))
    if underflow:
        error = error.when(finite & (value == 0) & (a != 0) & (b != 0), f.lit(_UNDERFLOW))
    return Made(value, error=error)


def _float_div(a: Column, b: Column) -> Made:
    quotient = f.when(f.isnan(a) & b.isNotNull(), a).otherwise(f.try_divide(a, b))
    checked = _checked(quotient, a, b, underflow=True)
    by_zero = f.when((b == 0) & a.isNotNull() & ~f.isnan(a), f.lit(DIVISION_BY_ZERO))
    assert checked.error is not None
    return Made(quotient, error=f.coalesce(by_zero, checked.error))


def _others() -> dict[str, Builder]:
    return {
        "+(numeric, numeric)": lambda a, b: Made(f.try_add(a, b), _NUMERIC),
        "-(numeric, numeric)": lambda a, b: Made(f.try_subtract(a, b), _NUMERIC),
        "*(numeric, numeric)": lambda a, b: Made(f.try_multiply(a, b), _NUMERIC),
        "-(numeric)": lambda a: Made(-a),
        "abs(numeric)": lambda a: Made(f.abs(a)),
        "||(text, text)": lambda a, b: Made(f.concat(a, b)),
        "length(text)": lambda a: Made(f.length(a)),
        "char_length(text)": lambda a: Made(f.length(a)),
        "character_length(text)": lambda a: Made(f.length(a)),
        "like(text, text)": lambda a, b: Made(f.like(a, b)),
        "substring(text, integer, integer)": lambda a, b, c: Made(f.substring(a, b, c)),
        "extract year(date)": _year,
    }


def _year(date: Column) -> Made:
    """Before year 1 comes year -1; that of an infinity is refused, as everywhere."""
    days = f.unix_date(date)
    infinite = days.isin(DATE_INFINITY.days, DATE_NEG_INFINITY.days)
    year = f.year(date)
    value = f.when(~infinite, f.when(year > 0, year).otherwise(year - 1))
    return Made(value, "0A000 the year of an infinite date is not supported")


FUNCTIONS: dict[str, Builder] = {**_integers(), **_floats(), **_others()}


def knows(call: ir.Call) -> bool:
    """Whether the call is native, with arguments of these types."""
    if call.function not in FUNCTIONS or any(t.is_plain(x.type) for x in (call, *call.arguments)):
        return False
    match call.function:
        case "*(numeric, numeric)":
            # At the scale of the factors a product is exact, or has no room and no value.
            scales = [_digits(argument.type)[1] for argument in call.arguments]
            return _digits(call.type)[1] == sum(scales)
        case "like(text, text)":
            pattern = call.arguments[1]
            return isinstance(pattern, ir.Literal) and _is_quick(pattern.value or "")
        case "substring(text, integer, integer)":
            start, length = call.arguments[1:]
            return _is_at_least(start, 1) and _is_at_least(length, 0)
    return True


def _is_quick(like: str) -> bool:
    """Whether Spark looks for the beginning, the end or a part of a text.

    It makes a regular expression of any other pattern, and Java's may take for ever.
    """
    return (
        "\\" not in like and "_" not in like and "%" not in like.removeprefix("%").removesuffix("%")
    )


def _is_at_least(node: ir.Scalar, least: int) -> bool:
    return isinstance(node, ir.Literal) and node.value is not None and node.value >= least


def _digits(kind: t.SqlType) -> tuple[int, int]:
    assert isinstance(kind, t.Numeric)
    return kind.stored_precision, kind.stored_scale


# -- comparisons ------------------------------------------------------------------------------


def comparable(*kinds: t.SqlType) -> bool:
    """Whether Spark compares values of these types as PostgreSQL does."""
    if all(isinstance(kind, t.Numeric) for kind in kinds):
        if any(map(t.is_plain, kinds)):
            return False
        scale = max(_digits(kind)[1] for kind in kinds)
        return scale + max(p - s for p, s in map(_digits, kinds)) <= 38
    return all(is_ordered(kind) for kind in kinds)


# -- casts ------------------------------------------------------------------------------------

_WHOLE = (t.SmallInt, t.Integer, t.BigInt)


def casts(source: t.SqlType, target: t.SqlType) -> bool:
    """Whether Spark casts as PostgreSQL does."""
    if source == target:
        return True
    if t.is_plain(source) or t.is_plain(target):
        return False
    match source, target:
        case ((t.SmallInt() | t.Integer() | t.BigInt()), _):
            return isinstance(target, (*_WHOLE, t.Double, t.Numeric, t.Text))
        case t.Numeric(), t.Numeric():
            return True
        case t.Real(), t.Double():
            return True
        case ((t.Text() | t.Varchar()), (t.Text() | t.Varchar(None))):
            return True
        case t.Date(), t.Timestamp():
            return False  # the infinities are not where Spark looks for them
    return False


def cast(value: Column, source: t.SqlType, target: t.SqlType) -> tuple[Column, str]:
    """The value as the other type, NULL where it does not fit; and what to say then."""
    if source == target:
        return value, ""
    reason = _NUMERIC if isinstance(target, t.Numeric) else _out_of_range(target)
    return value.try_cast(spark_name(target)), reason


# -- literals ---------------------------------------------------------------------------------


def has_literal(kind: t.SqlType) -> bool:
    """Whether values of the type can stand in a Spark expression."""
    return is_ordered(kind) or isinstance(kind, t.Char | t.Jsonb) or t.is_plain(kind)


def literal(value: Any, kind: t.SqlType) -> Column:
    """A constant of the type: its stored form, whatever Python's form is."""
    target = spark_name(kind)
    if value is None:
        return f.lit(None).cast(target)
    stored = to_array([value], kind)
    match kind:
        case t.Date():
            return f.date_from_unix_date(f.lit(stored.view(pa.int32())[0].as_py()))
        case t.TimestampTz():
            return f.timestamp_micros(f.lit(stored.view(pa.int64())[0].as_py()))
        case t.Timestamp():
            instant = f.timestamp_micros(f.lit(stored.view(pa.int64())[0].as_py()))
            return instant.cast(target)
        case t.Numeric() if not kind.is_plain:
            number: Decimal = stored[0].as_py()
            return f.lit(str(number)).cast(target)
    return f.lit(stored[0].as_py()).cast(target)
