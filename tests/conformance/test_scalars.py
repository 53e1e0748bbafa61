"""Scalars by kernels are what they mean, for every function that has one.

The law of `noonmark.compute.scalar.table`; Spark forms: `test_scalars_on_spark`.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from noonmark.compute.scalar.columns import filled, value_of
from noonmark.compute.scalar.number import NO_KERNEL
from noonmark.compute.scalar.row_by_row import row_by_row
from noonmark.compute.scalar.table import FORMS
from noonmark.rows import types as t
from noonmark.rows.arrow import to_array
from noonmark.rows.value import DATE_INFINITY
from noonmark.sql.functions import FUNCTIONS as TABLE
from noonmark.sql.ir.scalar import Call, Cast, ColumnRef, Compare, Literal, Scalar

_MOMENTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2000, 2, 29, 12, 30, 15, 1),
    dt.datetime(2024, 12, 30, 0, 0, 0),
    dt.datetime(1, 1, 1, 1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59),
    dt.datetime(1583, 6, 7, 8, 9, 10, 500_000),
]
_INTS = [0, 1, -1, 7, -7, 100, 2**31 - 1, -(2**31)]
_FLOATS = [0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 0.1]
POOLS: dict[type[t.SqlType], list[Any]] = {
    t.SmallInt: [0, 1, -1, 7, 32767, -32768],
    t.Integer: _INTS,
    t.BigInt: [*_INTS, 2**62, 2**63 - 1, -(2**63)],
    t.Numeric: [Decimal(x) for x in ("0.00", "1.25", "-3.99", "99999999.99", "0.01")],
    t.Real: [0.0, 1.5, -2.25, 2.0**127, -0.0, math.nan],
    t.Double: _FLOATS,
    t.Text: ["", "abc", "ABC", "a%b", "ünï", "x" * 50, "ß"],
    t.Date: [each.date() for each in _MOMENTS],
    t.Timestamp: _MOMENTS,
    t.TimestampTz: [each.replace(tzinfo=dt.UTC) for each in _MOMENTS],
}
_LITERALS = {
    "date_trunc": ["day", "Week", "month", "quarter", "year", "hour", "milliseconds", "decade"],
    "like": ["a%", "%b", "%", "abc", "a_c", "%a%b%"],
    "substring": [1, 2, 3],
}


def typed(kind: type[t.SqlType]) -> t.SqlType:
    return t.Numeric(12, 2) if kind is t.Numeric else kind()


def calls(name: str) -> Iterator[Scalar]:
    """Calls of a function over columns, with constants where its kernel asks for them."""
    entry = TABLE.by_id[name]
    kinds = [typed(kind) for kind in entry.parameters]
    columns = [ColumnRef(kind, True, at, "") for at, kind in enumerate(kinds)]
    yield Call(name, tuple(columns))
    for word in _LITERALS.get(entry.name, []):
        if entry.name == "date_trunc":
            yield Call(name, (Literal(kinds[0], word), columns[1]))
        elif entry.name == "like":
            yield Call(name, (columns[0], Literal(kinds[1], word)))
        else:
            one, two = Literal(kinds[1], word), Literal(kinds[2], 2)
            yield Call(name, (columns[0], one, two))
    for at, column in enumerate(columns):
        values = POOLS[type(column.type)]
        constant = Literal(column.type, values[len(values) // 2])
        yield Call(name, tuple(constant if i == at else c for i, c in enumerate(columns)))


def columns_for(scalar: Scalar, chance: random.Random, count: int) -> list[Any]:
    """Columns of mild values, or of any; now and then without a NULL."""
    assert isinstance(scalar, Call | Cast | Compare)
    parts = (
        scalar.arguments if isinstance(scalar, Call)
        else (scalar.operand,) if isinstance(scalar, Cast)
        else (scalar.left, scalar.right)
    )  # fmt: skip
    made = []
    for part in parts:
        pool = POOLS[type(part.type)]
        some = chance.sample(pool, chance.randrange(1, len(pool) + 1))
        given = [*some, None] if chance.random() < 0.5 else some
        made.append(to_array([chance.choice(given) for _ in range(count)], part.type))
    return made


def compare(scalar: Scalar, seed: str) -> int:
    """How often there was a kernel; where there is, its values are those of the meaning."""
    chance, found = random.Random(seed), 0
    for _ in range(30):
        columns = columns_for(scalar, chance, 20)
        values, errors = row_by_row(scalar, columns, 20)
        try:
            made = filled(value_of(scalar, columns), scalar.type, 20)
        except NO_KERNEL:
            continue
        found += 1
        assert errors is None, scalar
        # As text: NaN is itself, and a negative zero is not zero.
        assert [repr(x) for x in made.to_pylist()] == [repr(x) for x in values.to_pylist()], scalar
    return found


@pytest.mark.parametrize("name", [name for name, forms in FORMS.items() if forms.kernel])
def test_functions(name: str) -> None:
    assert sum(compare(each, name) for each in calls(name)) > 0, "no kernel was ever asked"


@pytest.mark.parametrize("kind", list(POOLS))
@pytest.mark.parametrize("op", ["=", "<>", "<", ">="])
def test_comparisons(kind: type[t.SqlType], op: str) -> None:
    column, other = (ColumnRef(typed(kind), True, at, "") for at in (0, 1))
    assert compare(Compare(op, column, other), op) > 0
    for value in POOLS[kind]:
        compare(Compare(op, column, Literal(column.type, value)), op)


CASTS = [
    (t.Date, t.Timestamp), (t.Timestamp, t.Date), (t.TimestampTz, t.Date), (t.Date, t.TimestampTz),
    (t.Timestamp, t.TimestampTz), (t.TimestampTz, t.Timestamp), (t.Integer, t.Double),
    (t.BigInt, t.Double), (t.Numeric, t.Double), (t.Real, t.Double), (t.Integer, t.BigInt),
    (t.BigInt, t.Integer), (t.Integer, t.Numeric), (t.Numeric, t.BigInt),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(source: type[t.SqlType], target: type[t.SqlType]) -> None:
    scalar = Cast(typed(target), ColumnRef(typed(source), True, 0, ""))
    compare(scalar, f"{source}{target}")


def test_infinities_are_asked_one_by_one() -> None:
    far = to_array([DATE_INFINITY, None], t.Date())
    scalar = Cast(t.Timestamp(), ColumnRef(t.Date(), True, 0, ""))
    with pytest.raises(NO_KERNEL):
        value_of(scalar, [far])
