"""Scalars that Spark does not compute as PostgreSQL does, asked in Python workers.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`: by the kernels that
walks have, for a whole batch at once, or else row by row.

Where it runs: driver; the functions run on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from noonmark.compute.scalar.columns import one
from noonmark.compute.scalar.row_by_row import narrowed
from noonmark.rows.arrow import stored
from noonmark.rows.spark import spark_type
from noonmark.rows.types import SqlType
from noonmark.sql.ir.scalar import Scalar, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column


def foreign(scalar: Scalar, row: Sequence[Column]) -> Column:
    """A column of structs: the value and the error."""
    used = sorted(columns_of(scalar))
    moved, types = narrowed(scalar, used)
    # A function of no columns still needs one, to know how many rows there are.
    given = [row[index] for index in used] or [f.lit(True)]
    return answered(partial(one, moved), types, scalar.type)(*given)


Answers = tuple[pa.Array, "Sequence[str | None] | None"]


def answered(
    ask: Callable[[Sequence[pa.Array], int], Answers], kinds: Sequence[SqlType], kind: SqlType
) -> Callable[..., Column]:
    """A function of columns of these types, of Spark columns: structs of value and error."""
    result = StructType(
        [StructField("value", spark_type(kind)), StructField("error", StringType())]
    )

    def run(*arrays: pa.Array) -> pa.Array:
        """Runs on executors."""
        given = [stored(each, own) for each, own in zip(arrays, kinds, strict=False)]
        value, errors = ask(given, len(arrays[0]))
        failed = pa.array(errors, pa.string()) if errors else pa.nulls(len(value), pa.string())
        return pa.StructArray.from_arrays([value, failed], names=["value", "error"])

    return vectorized(run, result)


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
