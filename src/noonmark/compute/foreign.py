"""Scalars that Spark does not compute as PostgreSQL does, asked of the reference in Python workers.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`.

Where it runs: driver; the functions run on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from noonmark.compute.row_by_row import Evaluate
from noonmark.rows.spark import spark_type
from noonmark.sql.ir.scalar import Scalar, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column


def foreign(scalar: Scalar, row: Sequence[Column]) -> Column:
    """A column of structs: the value and the error."""
    used = sorted(columns_of(scalar))
    work = Evaluate.of(scalar, used)
    result = StructType(
        [StructField("value", spark_type(scalar.type)), StructField("error", StringType())]
    )
    # A function of no columns still needs one, to know how many rows there are.
    given = [row[index] for index in used] or [f.lit(True)]
    return vectorized(work.function(), result)(*given)


def vectorized(function: Callable[..., pa.Array], result: DataType) -> Callable[..., Column]:
    """A function of Arrow arrays as one of Spark columns."""
    # Spark reads the kind of a function from its annotations, which must be classes by then.
    names = [name for name in function.__annotations__ if name != "return"]
    function.__annotations__ = {**dict.fromkeys(names, pa.Array), "return": pa.Array}
    made: Callable[..., Column] = arrow_udf(function, result)  # type: ignore[call-overload]
    return made
