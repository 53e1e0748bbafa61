"""Arithmetic by kernels and on Spark: integers, exact numerics, floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.compute.scalar import floats, number
from noonmark.compute.scalar.forms import Forms, Kernel, Made, SparkForm
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type
from noonmark.sql.ir.scalar import Call

DIVISION_BY_ZERO = "22012 division by zero"
_OVERFLOW = "22003 value out of range: overflow"
_UNDERFLOW = "22003 value out of range: underflow"
NUMERIC_OVERFLOW = "22003 numeric field overflow"


# -- kernels --------------------------------------------------------------------------------------


def _exact(act: Callable[[number.Scaled, number.Scaled], number.Scaled]) -> Kernel:
    def kernel(call: Call, *values: Any) -> Any:
        if all(isinstance(value, pa.Scalar) for value in values):
            raise NoKernel
        made = act(*map(number.scaled_or_constant, values))
        if made.valid is not None and len(made.valid) != len(made):
            made = number.Scaled(made.values, made.scale, np.resize(made.valid, len(made)))
        return number.to_array(made, call.type)

    return kernel


def _float(op: str) -> Kernel:
    def kernel(call: Call, *values: Any) -> Any:
        count = max((len(each) for each in values if not isinstance(each, pa.Scalar)), default=0)
        if not count:
            raise NoKernel
        a, b = (pa.repeat(v, count) if isinstance(v, pa.Scalar) else v for v in values)
        return floats.arithmetic(op, a, b, arrow_type(call.type))

    return kernel


# -- on Spark -------------------------------------------------------------------------------------


def out_of_range(kind: t.SqlType) -> str:
    """The error of an integer that does not fit."""
    return f"22003 {kind} out of range"


def _try(name: str, reason: str) -> SparkForm:
    """A function of Spark that gives NULL where the meaning raises."""
    return lambda f, *columns: Made(getattr(f, name)(*columns), reason)


def _negated(kind: str, reason: str) -> SparkForm:
    return lambda f, a: Made(f.try_subtract(f.lit(0).cast(kind), a), reason)


def _quotient(kind: str, over: str) -> SparkForm:
    """DIV raises: by zero, and for the one quotient that is too large."""

    def form(f: Any, a: Any, b: Any) -> Made:
        wide = a.cast("bigint")
        quotient = f.call_function("div", wide, f.when(b != 0, b.cast("bigint")))
        safe = f.when(b == -1, f.try_subtract(f.lit(0).cast("bigint"), wide)).otherwise(quotient)
        reason = f.when(b == 0, f.lit(DIVISION_BY_ZERO)).otherwise(f.lit(over))
        return Made(safe.try_cast(kind), reason)

    return form


def _checked(op: str) -> SparkForm:
    """Finite operands with an infinite result, or a zero that is none, are errors."""

    def form(f: Any, a: Any, b: Any) -> Made:
        value = _FLOAT[op](f, a, b)
        infinite = f.lit(float("inf"))
        finite = (f.abs(a) != infinite) & (f.abs(b) != infinite)
        error = f.when(finite & (f.abs(value) == infinite), f.lit(_OVERFLOW))
        if op in "*/":
            error = error.when(finite & (value == 0) & (a != 0) & (b != 0), f.lit(_UNDERFLOW))
        if op == "/":
            by_zero = (b == 0) & a.isNotNull() & ~f.isnan(a)
            error = f.coalesce(f.when(by_zero, f.lit(DIVISION_BY_ZERO)), error)
        return Made(value, error=error)

    return form


_FLOAT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda _, a, b: a + b,
    "-": lambda _, a, b: a - b,
    "*": lambda _, a, b: a * b,
    "/": lambda f, a, b: f.when(f.isnan(a) & b.isNotNull(), a).otherwise(f.try_divide(a, b)),
}


def _is_exact_product(call: Call) -> bool:
    """At the scale of the factors a product is exact, or has no room and no value."""
    kinds = [x.type for x in (call, *call.arguments)]
    scales = [kind.stored_scale for kind in kinds if isinstance(kind, t.Numeric)]
    return scales[0] == sum(scales[1:])


# -- the table ------------------------------------------------------------------------------------


def _integers(name: str, stored: str) -> dict[str, Forms]:
    """Those of one width: its name in SQL, and in Spark."""
    two, over = f"({name}, {name})", f"22003 {name} out of range"
    remainder = Forms(spark=_try("try_mod", DIVISION_BY_ZERO))
    return {
        "+" + two: Forms(_exact(number.add), _try("try_add", over)),
        "-" + two: Forms(_exact(number.subtract), _try("try_subtract", over)),
        "*" + two: Forms(_exact(number.multiply), _try("try_multiply", over)),
        "/" + two: Forms(spark=_quotient(stored, over)),
        "%" + two: remainder,
        "mod" + two: remainder,
        f"-({name})": Forms(spark=_negated(stored, over)),
        "&" + two: Forms(spark=lambda _, a, b: Made(a.bitwiseAND(b))),
        "|" + two: Forms(spark=lambda _, a, b: Made(a.bitwiseOR(b))),
        "#" + two: Forms(spark=lambda _, a, b: Made(a.bitwiseXOR(b))),
    }


_SIGN = Forms(spark=lambda _, a: Made(-a))
_SIZE = Forms(spark=lambda f, a: Made(f.abs(a)))
_TWO = "(numeric, numeric)"

TABLE: dict[str, Forms] = {
    **_integers("smallint", "smallint"),
    **_integers("integer", "int"),
    **_integers("bigint", "bigint"),
    "+" + _TWO: Forms(_exact(number.add), _try("try_add", NUMERIC_OVERFLOW)),
    "-" + _TWO: Forms(_exact(number.subtract), _try("try_subtract", NUMERIC_OVERFLOW)),
    "*" + _TWO: Forms(
        _exact(number.multiply), _try("try_multiply", NUMERIC_OVERFLOW), _is_exact_product
    ),
    **{
        f"{op}({a}, {b})": Forms(_float(op), _checked(op) if a == b else None)
        for op in "+-*/"
        for a in ("real", "double precision")
        for b in ("real", "double precision")
    },
    **{f"-({kind})": _SIGN for kind in ("numeric", "real", "double precision")},
    **{f"abs({kind})": _SIZE for kind in ("numeric", "real", "double precision")},
}
