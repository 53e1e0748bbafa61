"""Filters and projections of frames: what each update alone decides.

Law (linear): for frames x and y of one relation, op(x + y) = op(x) + op(y). So the same code serves
contents and changes.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.expression import compile_scalar
from noonmark.compute.frame import ERROR, columns
from noonmark.persist.run import DIFF, TIME
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def _rest(frame: DataFrame) -> list[str]:
    return [name for name in (TIME, DIFF) if name in frame.columns]


def _asked(error: Column) -> Column:
    """An error of this operator, unless the update is an error already."""
    return f.coalesce(f.col(ERROR), error)


def filtered(node: r.Filter, frame: DataFrame) -> DataFrame:
    """[Filter(R, p)](r) = [R](r) if p(r) is TRUE, else 0."""
    return kept(frame, len(node.input.schema), node.predicate)


def kept(frame: DataFrame, width: int, predicate: Scalar) -> DataFrame:
    """The updates of rows for which the predicate is TRUE, and of the errors."""
    compiled = compile_scalar(predicate, columns(width))
    passes = f.col(ERROR).isNotNull() | compiled.value  # NULL does not pass either
    if compiled.error is None:
        return frame.where(passes)
    return (
        frame.withColumn("_failed", compiled.error)
        .where(passes | f.col("_failed").isNotNull())
        .withColumn(ERROR, _asked(f.col("_failed")))
        .drop("_failed")
    )


def projected(node: r.Project, frame: DataFrame) -> DataFrame:
    """[Project(R, f)](s) = the sum of [R](r) over all r with f(r) = s."""
    row = columns(len(node.input.schema))
    made = [compile_scalar(scalar, row) for scalar in node.scalars]
    errors = [each.error for each in made if each.error is not None]
    error = _asked(f.coalesce(*errors)) if errors else f.col(ERROR)
    values = [each.value.alias(f"c{at}") for at, each in enumerate(made)]
    return frame.select(*values, error.alias(ERROR), *_rest(frame))


def extended(frame: DataFrame, width: int, scalars: Sequence[Scalar], letter: str) -> DataFrame:
    """The frame with a further column for each scalar, named by the letter and a number."""
    row = columns(width)
    made = [compile_scalar(scalar, row) for scalar in scalars]
    errors = [each.error for each in made if each.error is not None]
    error = _asked(f.coalesce(*errors)) if errors else f.col(ERROR)
    values = [each.value.alias(f"{letter}{at}") for at, each in enumerate(made)]
    return frame.select(*row, *values, error.alias(ERROR), *_rest(frame))
