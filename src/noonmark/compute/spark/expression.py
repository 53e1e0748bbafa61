"""Scalars to Spark columns.

Law (same value): for every row, the value column is what the scalar means (`ir.scalar`), and the
error column is NULL; or the scalar has no value on this row, and the error column says why. No
expression fails a job: what may fail in Spark is asked through its ``try_`` form.

Law (allow-list): only what `native` and the table of scalars know becomes a Spark expression. A
scalar with any other part is asked as a whole of its definition (`noonmark.sql.evaluate`), in a
Python worker: the same value, slower. No text of a user is ever parsed by Spark.

The order of evaluation is that of the scalar: an error counts only where its part is asked.

Where it runs: driver; the columns run on executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.scalar.table import forms, has_spark_form
from noonmark.compute.spark import native
from noonmark.compute.spark.foreign import foreign
from noonmark.rows import types as t
from noonmark.rows.exact import is_exact
from noonmark.rows.spark import spark_name
from noonmark.sql.ir import scalar as ir
from noonmark.sql.ir.node import walk

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Compiled:
    """A value and, where it may have none, the error."""

    value: Column
    error: Column | None = None


def compile_scalar(scalar: ir.Scalar, row: Sequence[Column]) -> Compiled:
    """The scalar over a row whose columns are these."""
    if is_native(scalar):
        return _Compiler(row).act(scalar)
    result = foreign(scalar, row)
    return Compiled(result["value"], result["error"] if ir.may_fail(scalar) else None)


def is_native(scalar: ir.Scalar) -> bool:
    """Whether Spark itself can compute the scalar as it is meant."""
    return all(_known(node) for node in walk(scalar) if isinstance(node, ir.Scalar))


def _known(node: ir.Scalar) -> bool:
    match node:
        case ir.Call():
            return has_spark_form(node)
        case ir.Cast():
            return native.casts(node.operand.type, node.type)
        case ir.Compare() | ir.IsDistinct():
            return native.comparable(node.left.type, node.right.type)
        case ir.InList():
            return all(native.comparable(node.operand.type, x.type) for x in node.items)
        case ir.Literal():
            return native.has_literal(node.type)
    plain = ir.ColumnRef, ir.And, ir.Or, ir.Not, ir.Is, ir.Case, ir.Coalesce, ir.FieldRef
    return isinstance(node, plain)


class _Compiler:
    def __init__(self, row: Sequence[Column]) -> None:
        self.row = row

    def act(self, node: ir.Scalar) -> Compiled:
        match node:
            case ir.ColumnRef():
                return Compiled(self.row[node.index])
            case ir.Literal():
                return Compiled(native.literal(node.value, node.type))
            case ir.Call():
                return self._call(node)
            case ir.Cast():
                return self._cast(node)
            case ir.And() | ir.Or():
                return self._chain(node)
            case ir.Case():
                return self._case(node)
            case ir.Coalesce():
                return self._coalesce(node)
            case ir.InList():
                return self._in_list(node)
        return self._plain(node)

    def _plain(self, node: ir.Scalar) -> Compiled:
        """Nodes that ask all their parts and cannot fail themselves."""
        match node:
            case ir.Compare():
                parts = [self.act(node.left), self.act(node.right)]
                value = _COMPARE[node.op](parts[0].value, parts[1].value)
            case ir.IsDistinct():
                parts = [self.act(node.left), self.act(node.right)]
                value = ~parts[0].value.eqNullSafe(parts[1].value)
            case ir.Not():
                parts = [self.act(node.operand)]
                value = ~parts[0].value
            case ir.Is():
                parts = [self.act(node.operand)]
                operand = parts[0].value
                is_null = node.value is None
                value = operand.isNull() if is_null else operand.eqNullSafe(f.lit(node.value))
            case ir.FieldRef(record=record):
                parts = [self.act(record)]
                assert isinstance(record.type, t.Record)
                value = parts[0].value[record.type.fields[node.index].name]
            case _:
                raise AssertionError(f"{type(node).__name__} is not native")
        return Compiled(value, _first([part.error for part in parts]))

    def _call(self, node: ir.Call) -> Compiled:
        parts = [self.act(argument) for argument in node.arguments]
        values = [part.value for part in parts]
        form = forms(node.function).spark
        assert form is not None, f"{node.function} has no Spark form"
        made = form(f, *values)
        value, own = made.value, made.error
        if isinstance(node.type, t.Numeric):
            value = value.try_cast(spark_name(node.type))  # Spark's own digits are other ones
        if node.fails and own is None:
            own = _missing(value, values, made.reason)
        return Compiled(value, _first([*(part.error for part in parts), own]))

    def _cast(self, node: ir.Cast) -> Compiled:
        operand = self.act(node.operand)
        value, reason = native.cast(operand.value, node.operand.type, node.type)
        own = _missing(value, [operand.value], reason) if node.fails else None
        return Compiled(value, _first([operand.error, own]))

    def _chain(self, node: ir.And | ir.Or) -> Compiled:
        """AND and OR: from the left, until one decides."""
        decided = isinstance(node, ir.Or)
        value = f.lit(not decided)
        parts = [self.act(part) for part in node.parts]
        for part in parts:
            value = value | part.value if decided else value & part.value
        error: Column | None = None
        for part in reversed(parts):
            rest = error if error is not None else _NO_ERROR()
            if error is not None:
                rest = f.when(part.value.eqNullSafe(f.lit(decided)), _NO_ERROR()).otherwise(rest)
            if part.error is not None:
                error = f.coalesce(part.error, rest)
            elif error is not None:
                error = rest
        return Compiled(value, error)

    def _case(self, node: ir.Case) -> Compiled:
        default = self.act(node.default)
        value, error = default.value, default.error
        for branch in reversed(node.branches):
            condition, then = self.act(branch.condition), self.act(branch.value)
            taken = condition.value  # NULL is not taken either
            value = f.when(taken, then.value).otherwise(value)
            if error is not None or then.error is not None:
                no = _NO_ERROR()
                error = f.when(taken, _or(then.error, no)).otherwise(_or(error, no))
            error = _first([condition.error, error])
        return Compiled(value, error)

    def _coalesce(self, node: ir.Coalesce) -> Compiled:
        parts = [self.act(argument) for argument in node.arguments]
        error: Column | None = None
        for part in reversed(parts):
            if error is not None:
                error = f.when(part.value.isNull(), error)
            error = _first([part.error, error])
        return Compiled(f.coalesce(*(part.value for part in parts)), error)

    def _in_list(self, node: ir.InList) -> Compiled:
        kind = node.operand.type
        if is_exact(kind) and all(_is_value(item, kind) for item in node.items):
            operand = self.act(node.operand)
            listed = [self.act(item).value for item in node.items]
            return Compiled(operand.value.isin(*listed), operand.error)
        same = [ir.Compare("=", node.operand, item) for item in node.items]
        return self._chain(ir.Or(tuple(same)))


_COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _NO_ERROR() -> Column:  # noqa: N802 - a constant that needs a live Spark
    return f.lit(None).cast("string")


def _or(error: Column | None, other: Column) -> Column:
    return other if error is None else error


def _first(errors: Sequence[Column | None]) -> Column | None:
    """The first error there is."""
    given = [error for error in errors if error is not None]
    return f.coalesce(*given) if given else None


def _is_value(node: ir.Scalar, kind: t.SqlType) -> bool:
    return isinstance(node, ir.Literal) and node.value is not None and node.type == kind


def _missing(value: Column, arguments: Sequence[Column], reason: str | Column) -> Column:
    """The error of a strict function that has no value although it has all arguments."""
    asked = value.isNull()
    for argument in arguments:
        asked = asked & argument.isNotNull()
    return f.when(asked, f.lit(reason) if isinstance(reason, str) else reason)
