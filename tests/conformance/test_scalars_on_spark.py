"""Scalars on Spark against their meaning: the same value, or an error where there is an error.

One job asks every native function, cast and comparison, and some composed scalars, of rows made of
the awkward values of each type.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from noonmark.compute.jvm.session import for_ticks
from noonmark.compute.scalar.row_by_row import hashable
from noonmark.compute.scalar.table import FORMS
from noonmark.compute.spark import native
from noonmark.compute.spark.expression import compile_scalar, is_native
from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.rows.numeral import Numeral
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_schema, spark_type
from noonmark.rows.value import DATE_INFINITY, DATE_NEG_INFINITY, FarDate
from noonmark.sql.evaluate import evaluate
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.ir import scalar as ir

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AWKWARD: dict[str, list[Any]] = {
    "smallint": [None, 0, 1, -1, 32767, -32768],
    "integer": [None, 0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "bigint": [None, 0, 1, -1, 2**63 - 1, -(2**63)],
    "real": [None, 0.0, -0.0, 1.5, math.nan, math.inf, 2.0**127],
    "double precision": [None, 0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e308, 1e-308],
    "numeric(10,2)": [None, Decimal("0.00"), Decimal("-1.25"), Decimal("99999999.99")],
    "numeric": [None, *map(Numeral, ("0.5", "-12345678901234567890.5", "-1.250", "NaN", "0.00"))],
    "numeric(31,4)": [None, Decimal("1.0001"), Decimal("-99999999999999999999.9999")],
    "text": [None, "", "a", "ä", "\U0001f600", "Z", "a\nZ", "100%", "a_b\\"],
    "boolean": [None, True, False],
    "date": [
        None,
        dt.date(1970, 1, 1),
        dt.date(1, 1, 1),
        dt.date(9999, 12, 31),
        FarDate(-800_000),
        FarDate(3_000_000),
        DATE_INFINITY,
        DATE_NEG_INFINITY,
    ],
}
SCHEMA = Schema.of(
    **{f"{side}{at}": kind for at, kind in enumerate(AWKWARD) for side in ("x", "y")}
)


def _texts(*values: str | None) -> list[tuple[ir.Scalar, ...]]:
    return [(ir.Literal(t.Text(), value),) for value in values]


def _numbers(*pairs: tuple[int, int]) -> list[tuple[ir.Scalar, ...]]:
    return [tuple(ir.Literal(t.Integer(), value) for value in pair) for pair in pairs]


#: What follows the column, for functions that are native only with literals of some kind.
LITERALS = {
    "like(text, text)": _texts(None, "", "%", "a%", "%Z", "%b%", "100%", "a.*"),
    "substring(text, integer, integer)": _numbers((1, 1), (2, 1), (1, 0), (2, 100), (9, 1)),
}


def rows() -> list[tuple[Any, ...]]:
    """Every pair of values of each type meets in some row."""
    pairs = [list(itertools.product(values, values)) for values in AWKWARD.values()]
    count = max(map(len, pairs))
    return [tuple(v for each in pairs for v in each[at % len(each)]) for at in range(count)]


def column(name: str, kind: type[t.SqlType], nth: int = 0) -> ir.Scalar:
    wanted = [i for i, c in enumerate(SCHEMA) if type(c.type) is kind and c.name.startswith(name)]
    return ir.column(wanted[nth], SCHEMA.columns[wanted[nth]])


def calls() -> list[ir.Scalar]:
    """Every native function, on columns of its types."""
    made: list[ir.Scalar] = []
    for name in (name for name, forms in FORMS.items() if forms.spark):
        kinds = FUNCTIONS.by_id[name].parameters
        if name in LITERALS:
            made += [ir.Call(name, (column("x", kinds[0]), *given)) for given in LITERALS[name]]  # type: ignore[arg-type]
            continue
        both = zip("xy", kinds, strict=False)
        made.append(ir.Call(name, tuple(column(side, kind) for side, kind in both)))  # type: ignore[arg-type]
    long = column("x", t.Numeric, 2), column("y", t.Numeric)
    return [*made, ir.Call("*(numeric, numeric)", long)]


def comparisons() -> list[ir.Scalar]:
    made: list[ir.Scalar] = []
    for left, right in itertools.pairwise(range(len(SCHEMA))):
        if left % 2 == 0 and not t.is_plain(SCHEMA.columns[left].type):
            a, b = (ir.column(i, SCHEMA.columns[i]) for i in (left, right))
            made += [ir.Compare(op, a, b) for op in ir.COMPARISONS]
            made += [ir.IsDistinct(a, b), ir.InList(a, (b, a))]
            kind = SCHEMA.columns[left].type
            values = [each for each in AWKWARD[str(kind)] if each is not None][:2]
            if native.has_literal(kind):
                made.append(ir.InList(a, tuple(ir.Literal(kind, each) for each in values)))
    return made


def casts() -> list[ir.Scalar]:
    targets = [t.SmallInt(), t.Integer(), t.BigInt(), t.Double(), t.Numeric(5, 1), t.Text()]
    made: list[ir.Scalar] = []
    for at, each in enumerate(SCHEMA):
        made += [
            ir.Cast(target, ir.column(at, each))
            for target in targets
            if each.name.startswith("x") and native.casts(each.type, target)
        ]
    return made


def composed() -> list[ir.Scalar]:
    a, b = column("x", t.Integer), column("y", t.Integer)
    p, q = column("x", t.Boolean), column("y", t.Boolean)
    ratio = ir.Call("/(integer, integer)", (a, b))
    small = ir.Compare("<", ratio, ir.Literal(t.Integer(), 3))
    zero = ir.Compare("=", b, ir.Literal(t.Integer(), 0))
    return [
        ir.And((p, q)),
        ir.Or((p, q)),
        ir.Not(p),
        *(ir.Is(p, value) for value in (True, False, None)),
        ir.And((ir.Not(zero), small)),
        ir.And((small, ir.Not(zero))),
        ir.Or((zero, small)),
        ir.Or((small, p)),
        ir.Case((ir.When(zero, a), ir.When(small, b)), ratio),
        ir.Case((ir.When(p, ratio),), ir.Literal(t.Integer(), None)),
        ir.Coalesce((a, ratio)),
        ir.Coalesce((ratio, a)),
        ir.Compare("<", ir.Literal(t.Date(), dt.date(1, 1, 1)), column("x", t.Date)),
        ir.Call("+(integer, integer)", (ratio, ir.Literal(t.Integer(), 2**31 - 1))),
    ]


def foreign() -> list[ir.Scalar]:
    """What only Python workers compute as PostgreSQL does."""
    n = column("x", t.Numeric), column("y", t.Numeric)
    text = column("x", t.Text)
    plain = column("x", t.Numeric, 1), column("y", t.Numeric, 1)
    return [
        *(ir.Compare(op, *plain) for op in ir.COMPARISONS),
        *(ir.Compare(op, n[0], plain[1]) for op in ir.COMPARISONS),
        ir.IsDistinct(*plain),
        ir.InList(plain[0], (plain[1], n[1])),
        ir.Call("/(numeric, numeric)", n),
        ir.Cast(t.Integer(), n[0]),
        ir.Call("*(numeric, numeric)", (column("x", t.Numeric, 1), column("y", t.Numeric, 1))),
        *(ir.Call("like(text, text)", (text, *x)) for x in _texts("_", "a_Z", "%_%", "a\\_b%")),
        ir.Call("like(text, text)", (text, column("y", t.Text))),
        *(ir.Call("substring(text, integer, integer)", (text, *x)) for x in _numbers((0, 2))),
        ir.Call("upper(text)", (text,)),
    ]


def meaning(scalar: ir.Scalar, row: tuple[Any, ...]) -> Any:
    try:
        return evaluate(scalar, tuple(map(hashable, row)))
    except EvaluationError as error:
        return f"error {error.sqlstate}"


def same(got: Any, want: Any) -> bool:
    if isinstance(got, float) and isinstance(want, float):
        return got == want or (math.isnan(got) and math.isnan(want))
    return type(got) is type(want) and got == want


def test_scalars_mean_the_same_on_spark(spark: SparkSession) -> None:
    session = for_ticks(spark)
    given = rows()
    scalars = [*calls(), *comparisons(), *casts(), *composed()]
    assert all(map(is_native, scalars))
    assert not any(map(is_native, foreign()))
    scalars += foreign()
    columns = {c.name: to_array([row[i] for row in given], c.type) for i, c in enumerate(SCHEMA)}
    table = arrow_table(columns)
    frame = session.createDataFrame(table, spark_schema(SCHEMA)).coalesce(1)
    inputs = [f.col(name) for name in SCHEMA.names]
    outputs = []
    for at, scalar in enumerate(scalars):
        made = compile_scalar(scalar, inputs)
        outputs.append(made.value.cast(spark_type(scalar.type)).alias(f"v{at}"))
        none = f.lit(None).cast("string")
        outputs.append((none if made.error is None else made.error).alias(f"e{at}"))
    answers = frame.select(*outputs).toArrow()
    wrong = []
    for at, scalar in enumerate(scalars):
        values = from_array(answers.column(f"v{at}").combine_chunks(), scalar.type)
        errors = answers.column(f"e{at}").to_pylist()
        for row, value, error in zip(given, values, errors, strict=True):
            got = value if error is None else f"error {error[:5]}"
            want = meaning(scalar, row)
            if not same(got, want):
                used = [row[i] for i in sorted(ir.columns_of(scalar))]
                wrong.append((at, getattr(scalar, "function", scalar), used, got, want))
    assert wrong == [], "\n".join(map(str, wrong))


def arrow_table(columns: dict[str, pa.Array]) -> pa.Table:
    import pyarrow

    return pyarrow.table(columns)
