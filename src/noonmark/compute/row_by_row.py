"""Scalars asked of their meaning, row by row: the same value as by any kernel, slower.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`.

Where it runs: executors; pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.scalar import ColumnRef, Scalar, map_columns


@dataclass(frozen=True)
class Evaluate:
    """Runs on executors: the scalar on every row."""

    scalar: Scalar
    types: tuple[t.SqlType, ...]

    @classmethod
    def of(cls, scalar: Scalar, used: Sequence[int]) -> Evaluate:
        """The scalar over the columns `used` alone, in that order."""
        place = {index: at for at, index in enumerate(used)}
        types: dict[int, t.SqlType] = {}

        def move(ref: ColumnRef) -> ColumnRef:
            types[place[ref.index]] = ref.type
            return ColumnRef(ref.type, ref.nullable, place[ref.index], ref.name)

        moved = map_columns(scalar, move)
        return cls(moved, tuple(types[at] for at in range(len(used))))

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


def error_text(error: EvaluationError) -> str:
    """An error as the layout of frames has it."""
    return f"{error.sqlstate} {error.message}"
