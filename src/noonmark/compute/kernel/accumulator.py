"""What is kept of the rows of a group: for each aggregate, sums from which it follows.

The *accumulators* of a group are its number of rows and, per aggregate, how many values it has and
some sums over them (`Summand`). An insertion adds to them and a retraction subtracts:

    Aggregate(R) = final(sums(R)),  sums(R + S) = sums(R) + sums(S)

Law: sums are exact, whatever the order, so what was added can be taken away again and nothing is
left of it. Floats are no exception: each is a whole number of very small units
(`noonmark.compute.kernel.large_number`), and the sum is rounded when it is shown.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

import enum
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from noonmark.compute.kernel.large_number import FLOAT_UNITS, decode
from noonmark.rows import types as t
from noonmark.rows.exact import FLOATS, is_exact
from noonmark.rows.schema import Column, Schema
from noonmark.sql.functions.aggregate import MOMENTS, rounded
from noonmark.sql.functions.number import numeric
from noonmark.sql.functions.number.fit import WIDE, fit, numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import TRUE, Case, Literal, Scalar, When

_WHOLE = (t.SmallInt, t.Integer, t.BigInt)


class Summand(enum.Enum):
    """What is added up of every value of an aggregate."""

    NOTHING = "nothing"
    #: The number, in 38 digits.
    NUMBER = "sum"
    #: 1 for TRUE.
    TRUE = "true"
    #: The number, or its square, in units that make it whole: of any size.
    WHOLE = "whole"
    SQUARE = "square"
    #: 1 for what is no number that can be added: all such values, or each by itself.
    ODD = "odd"
    NAN = "nan"
    UP = "up"
    DOWN = "down"

    @property
    def is_large(self) -> bool:
        """Whether the sum may be of any size."""
        return self in (Summand.WHOLE, Summand.SQUARE)

    @property
    def is_native(self) -> bool:
        """Whether Spark itself adds it up."""
        return self in (Summand.NOTHING, Summand.NUMBER, Summand.TRUE)


def summands(call: AggregateCall) -> tuple[Summand, ...]:
    """What is added up for an aggregate; nothing at all if sums are not enough for it."""
    name = call.entry.name
    if call.distinct or call.order:
        return ()
    if name == "count":
        return (Summand.NOTHING,)
    kind = call.arguments[0].type if call.arguments else t.Boolean()
    # The digits of what is divided depend on those of all values, which plain numerics each have.
    fixed = isinstance(kind, _WHOLE) or (isinstance(kind, t.Numeric) and not _has_own_scale(kind))
    if name in ("bool_and", "bool_or", "every"):
        return (Summand.TRUE,)
    if name in ("sum", "avg") and isinstance(kind, FLOATS):
        return Summand.WHOLE, Summand.NAN, Summand.UP, Summand.DOWN
    if name in MOMENTS and isinstance(kind, FLOATS):
        return Summand.WHOLE, Summand.SQUARE, Summand.ODD
    if name in ("sum", "avg") and fixed:
        return (Summand.NUMBER,)
    return (Summand.WHOLE, Summand.SQUARE) if name in MOMENTS and fixed else ()


def _has_own_scale(kind: t.Numeric) -> bool:
    return kind.is_plain or kind.trimmed


def is_linear(node: r.Aggregate) -> bool:
    """Whether accumulators are enough for all aggregates of the node."""
    keys = all(is_exact(key.type) for key in node.keys)
    return keys and all(map(summands, node.aggregates))


def is_native(call: AggregateCall) -> bool:
    """Whether Spark itself has the accumulators of an aggregate."""
    needed = summands(call)
    return bool(needed) and all(each.is_native for each in needed)


def type_of(call: AggregateCall, summand: Summand) -> t.SqlType:
    """What the values of an aggregate are summed as."""
    if summand is Summand.NOTHING:
        return t.Numeric(1, 0)
    if summand is Summand.NUMBER:
        return t.Numeric(t.NUMERIC_PRECISION_MAX, _scale(call))
    return t.Bytea() if summand.is_large else t.BigInt()


def _scale(call: AggregateCall) -> int:
    return numeric_for(call.arguments[0].type).stored_scale


def accumulator_schema(node: r.Aggregate) -> Schema:
    """The keys, the number of rows, and of each aggregate how many values, and their sums."""
    made = [Column(f"key_{at}", key.type) for at, key in enumerate(node.keys)]
    made.append(Column("rows", t.BigInt(), nullable=False))
    for at, call in enumerate(node.aggregates):
        made.append(Column(f"count_{at}", t.BigInt(), nullable=False))
        for each in summands(call):
            # A count has always kept a sum, of nothing: what is stored has that column.
            name = "sum" if each is Summand.NOTHING else each.value
            made.append(Column(f"{name}_{at}", type_of(call, each), nullable=False))
    return Schema(tuple(made))


def places(node: r.Aggregate) -> list[slice]:
    """Where the accumulators of each aggregate are among the columns."""
    found, start = [], len(node.keys) + 1
    for call in node.aggregates:
        end = start + 1 + len(summands(call))
        found.append(slice(start, end))
        start = end
    return found


def argument(call: AggregateCall) -> Scalar:
    """What an aggregate takes of a row: NULL where its filter does not pass."""
    value = call.arguments[0] if call.arguments else TRUE
    if call.filter is None:
        return value
    return Case((When(call.filter, value),), Literal(value.type, None))


def final(call: AggregateCall, count: int, *sums: Any) -> Any:
    """The aggregate of its accumulators; `OutOfRange` when it does not fit."""
    name = call.entry.name
    if name == "count":
        return count
    if not count:
        return None
    if name in MOMENTS:
        return fit(_moment(call, count, *sums), call.type)
    if name in ("bool_and", "every"):
        return sums[0] == count
    if name == "bool_or":
        return sums[0] > 0
    if isinstance(call.arguments[0].type, FLOATS):
        total = _total_of_floats(*sums)
        return fit(rounded(total if name == "sum" else total / count), call.type)
    (total,) = sums
    if name == "avg":
        return fit(numeric.divide(total, Decimal(count)), call.type)
    return fit(int(total) if isinstance(call.type, t.BigInt) else total, call.type)


def _total_of_floats(whole: bytes, nan: int, up: int, down: int) -> Fraction | float:
    """Their sum: exact, unless one of them is no number that can be added."""
    if nan or (up and down):
        return math.nan
    if up or down:
        return math.inf if up else -math.inf
    return _fraction(whole)


def _moment(call: AggregateCall, count: int, whole: bytes, square: bytes, odd: int = 0) -> Any:
    moment = MOMENTS[call.entry.name]
    if isinstance(call.arguments[0].type, FLOATS):
        if odd:
            return math.nan if count > int(moment.sample) else None
        return moment.of_fractions(count, _fraction(whole), _fraction(square, 2))
    scale = _scale(call)
    total, squares = Decimal(decode(whole)), Decimal(decode(square))
    return moment.of_numbers(count, total.scaleb(-scale, WIDE), squares.scaleb(-2 * scale, WIDE))


def _fraction(whole: bytes, power: int = 1) -> Fraction:
    return Fraction(decode(whole), 1 << (power * FLOAT_UNITS))
