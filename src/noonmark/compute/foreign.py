"""Scalars that Spark does not compute as PostgreSQL does, asked of the reference in Python workers.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`.

Where it runs: `foreign` on the driver, `Evaluate` on executors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from noonmark.compute.frame import error_text
from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.rows.spark import spark_type
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.scalar import ColumnRef, Scalar, columns_of, map_columns

if TYPE_CHECKING:
    from pyspark.sql import Column


def foreign(scalar: Scalar, row: Sequence[Column]) -> Column:
    """A column of structs: the value and the error."""
    used = sorted(columns_of(scalar))
    place = {index: at for at, index in enumerate(used)}
    types: dict[int, t.SqlType] = {}

    def move(ref: ColumnRef) -> ColumnRef:
        types[place[ref.index]] = ref.type
        return ColumnRef(ref.type, ref.nullable, place[ref.index], ref.name)

    moved = map_columns(scalar, move)
    work = Evaluate(moved, tuple(types[at] for at in range(len(used))))
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


@dataclass(frozen=True)
class Evaluate:
    """Runs on executors: the scalar on every row."""

    scalar: Scalar
    types: tuple[t.SqlType, ...]

    def function(self) -> Callable[..., pa.Array]:
        """A plain function, which is what Spark looks at."""

        def run(*arrays: pa.Array) -> pa.Array:
            return self(arrays)

        return run

    def __call__(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Structs of value and error, one per row."""
        count = len(arrays[0])
        given = [from_array(a, kind) for a, kind in zip(arrays, self.types, strict=False)]
        rows = zip(*given, strict=True) if given else iter([()] * count)
        values: list[Any] = []
        errors: list[str | None] = []
        for row in rows:
            try:
                values.append(evaluate(self.scalar, tuple(map(hashable, row))))
                errors.append(None)
            except EvaluationError as error:
                values.append(None)
                errors.append(error_text(error))
        return pa.StructArray.from_arrays(
            [to_array(values, self.scalar.type), pa.array(errors, pa.string())],
            names=["value", "error"],
        )


def hashable(value: Any) -> Any:
    """A value as the functions take it: an array is a tuple, and there is one NaN."""
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return math.nan if isinstance(value, float) and math.isnan(value) else value
