"""The two faster forms of a function, beside its meaning.

Law: where a form gives a value, it is the value of the meaning (`noonmark.sql.functions`).

- *kernel*: ``kernel(call, *values)`` over Arrow columns, or constants (`pa.Scalar`). NULL in is
  NULL out. Where some row would be an error, or where the kernel does not know, it raises
  `NoKernel`: the rows are asked of the meaning one by one, and say which of them it is.
- *spark*: ``spark(f, *columns)`` where ``f`` is `pyspark.sql.functions`, so that the table can be
  read without Spark. The value is NULL where the function fails; `Made` says with which error.
  Where Spark differs from PostgreSQL, the form puts it right; ``spark_if`` says for which calls
  it can.

Where it runs: a kernel on executors and in workers, pure; a Spark form on the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from noonmark.sql.ir.scalar import Call

Kernel: TypeAlias = Callable[..., Any]
SparkForm: TypeAlias = "Callable[..., Made]"


@dataclass(frozen=True)
class Made:
    """What a Spark form gives.

    Attributes:
        value: NULL where the function fails.
        reason: the error of a row that has its arguments and no value ...
        error: ... or a column that says which, where a NULL does not.
    """

    value: Any
    reason: Any = ""
    error: Any = None


def _always(_: Call) -> bool:
    return True


@dataclass(frozen=True)
class Forms:
    """The forms of one function; without one, the meaning is asked row by row."""

    kernel: Kernel | None = None
    spark: SparkForm | None = None
    spark_if: Callable[[Call], bool] = _always


def spread(value: pa.Array | pa.Scalar, act: Callable[[pa.Array], pa.Array]) -> Any:
    """What a kernel of arrays gives, also of a constant."""
    if isinstance(value, pa.Scalar):
        return act(pa.repeat(value, 1))[0]
    return act(value)
