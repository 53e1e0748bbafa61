"""Filters and projections of frames: what each update alone decides.

Law (linear): for frames x and y of one relation, op(x + y) = op(x) + op(y). So the same code serves
contents and changes.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark.column import col
from noonmark.compute.spark.expression import compile_scalar
from noonmark.compute.spark.frame import columns
from noonmark.persist.part.run import DIFF
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def _asked(error: Column) -> Column:
    """An error of this operator, unless the update is an error already."""
    return f.coalesce(col(ERROR), error)


def filtered(node: r.Filter, frame: DataFrame) -> DataFrame:
    """[Filter(R, p)](r) = [R](r) if p(r) is TRUE, else 0."""
    return kept(frame, len(node.input.schema), node.predicate)


def kept(frame: DataFrame, width: int, predicate: Scalar) -> DataFrame:
    """The updates of rows for which the predicate is TRUE, and of the errors."""
    compiled = compile_scalar(predicate, columns(width))
    passes = col(ERROR).isNotNull() | compiled.value  # NULL does not pass either
    if compiled.error is None:
        return frame.where(passes)
    return (
        frame.withColumn("_failed", compiled.error)
        .where(passes | col("_failed").isNotNull())
        .withColumn(ERROR, _asked(col("_failed")))
        .drop("_failed")
    )


def projected(node: r.Project, frame: DataFrame) -> DataFrame:
    """[Project(R, f)](s) = the sum of [R](r) over all r with f(r) = s."""
    names = [f"c{at}" for at in range(len(node.scalars))]
    values, error = computed(node.scalars, columns(len(node.input.schema)), names)
    return frame.select(*values, error, DIFF)


def extended(frame: DataFrame, width: int, scalars: Sequence[Scalar], letter: str) -> DataFrame:
    """The frame with a further column for each scalar, named by the letter and a number."""
    row, names = columns(width), [f"{letter}{at}" for at in range(len(scalars))]
    values, error = computed(scalars, row, names)
    return frame.select(*row, *values, error, DIFF)


def computed(
    scalars: Sequence[Scalar], row: Sequence[Column], names: Sequence[str]
) -> tuple[list[Column], Column]:
    """Scalars over a row by these names, and the error of the update: its own, or one of theirs."""
    made = [compile_scalar(scalar, row) for scalar in scalars]
    errors = [each.error for each in made if each.error is not None]
    error = _asked(f.coalesce(*errors)).alias(ERROR) if errors else col(ERROR)
    return [each.value.alias(name) for each, name in zip(made, names, strict=True)], error
