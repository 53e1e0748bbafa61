"""Spark columns, each made once.

A column is an object of the JVM, and to make one takes three calls into it: more than everything
else about it. A plan has hundreds of them, mostly names, and the same ones again and again.

Law: ``col(name)`` is ``f.col(name)``, and so on; they belong to the live Spark context.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import functions as f

from noonmark.rows.spark import spark_type
from noonmark.rows.types import SqlType

if TYPE_CHECKING:
    from pyspark.sql import Column

#: So many columns are remembered at most: names come from plans, which come and go.
COLUMNS_MAX = 16_384

_made: tuple[SparkContext | None, dict[tuple[str, ...], Column]] = (None, {})


def col(name: str) -> Column:
    """The column of that name."""
    return _once((name,), lambda: f.col(name))


def named(name: str, alias: str) -> Column:
    """The column of that name, by another one."""
    return _once((name, alias), lambda: f.col(name).alias(alias))


def quoted(name: str, alias: str = "") -> Column:
    """The column of a name that a user has chosen, perhaps by another one."""
    escaped = f"`{name.replace('`', '``')}`"
    return named(escaped, alias) if alias else col(escaped)


def constant(value: int, alias: str = "") -> Column:
    """A constant of 64 bits."""
    return _once(("constant", str(value), alias), lambda: _as(f.lit(value).cast("bigint"), alias))


def null(kind: SqlType, alias: str = "") -> Column:
    """NULL of a type."""
    target = spark_type(kind)
    key = ("null", target.simpleString(), alias)
    return _once(key, lambda: _as(f.lit(None).cast(target), alias))


def _as(column: Column, alias: str) -> Column:
    return column.alias(alias) if alias else column


def _once(key: tuple[str, ...], make: Callable[[], Column]) -> Column:
    global _made  # noqa: PLW0603 - what is remembered goes with its context
    context = SparkContext._active_spark_context
    if _made[0] is not context or len(_made[1]) >= COLUMNS_MAX:
        _made = context, {}
    columns = _made[1]
    found = columns.get(key)
    if found is None:
        found = columns[key] = make()
    return found
