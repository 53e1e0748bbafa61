"""Casts, comparisons and literals that Spark computes exactly as PostgreSQL does.

Functions are in `noonmark.compute.scalar.table`.

Where it runs: driver; the columns run on executors.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.scalar.arithmetic import NUMERIC_OVERFLOW, out_of_range
from noonmark.rows import types as t
from noonmark.rows.arrow import to_array
from noonmark.rows.exact import is_ordered
from noonmark.rows.spark import spark_name

if TYPE_CHECKING:
    from pyspark.sql import Column


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
    reason = NUMERIC_OVERFLOW if isinstance(target, t.Numeric) else out_of_range(target)
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
