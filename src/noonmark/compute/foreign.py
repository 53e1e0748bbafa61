"""Scalars that Spark does not compute as PostgreSQL does, asked in Python workers.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`: by the kernels that
walks have, for a whole batch at once, or else row by row.

Where it runs: driver; the functions run on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from noonmark.compute.row_by_row import narrowed
from noonmark.compute.walk.scalar import one
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.spark import spark_type
from noonmark.rows.types import SqlType
from noonmark.sql.ir.scalar import Scalar, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column


def foreign(scalar: Scalar, row: Sequence[Column]) -> Column:
    """A column of structs: the value and the error."""
    used = sorted(columns_of(scalar))
    moved, types = narrowed(scalar, used)
    result = StructType(
        [StructField("value", spark_type(scalar.type)), StructField("error", StringType())]
    )

    def run(*arrays: pa.Array) -> pa.Array:
        """Runs on executors."""
        given = [stored(each, kind) for each, kind in zip(arrays, types, strict=False)]
        value, errors = one(moved, given, len(arrays[0]))
        failed = pa.nulls(len(value), pa.string()) if errors is None else pa.array(errors)
        return pa.StructArray.from_arrays([value, failed], names=["value", "error"])

    # A function of no columns still needs one, to know how many rows there are.
    given = [row[index] for index in used] or [f.lit(True)]
    return vectorized(run, result)(*given)


def stored(array: pa.Array, kind: SqlType) -> pa.Array:
    """A column of Spark's as it is stored."""
    storage = arrow_type(kind)
    return array if array.type == storage else to_array(from_array(array, kind), kind)


def vectorized(function: Callable[..., pa.Array], result: DataType) -> Callable[..., Column]:
    """A function of Arrow arrays as one of Spark columns."""
    # Spark reads the kind of a function from its annotations, which must be classes by then.
    names = [name for name in function.__annotations__ if name != "return"]
    function.__annotations__ = {**dict.fromkeys(names, pa.Array), "return": pa.Array}
    made = arrow_udf(function, result)  # type: ignore[call-overload]
    # So that Spark asks once: it would ask a deterministic function again wherever its value is
    # used, in a filter behind it, too.
    once: Callable[..., Column] = made.asNondeterministic()
    return once
