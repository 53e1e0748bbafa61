"""Scalars asked of their meaning, row by row: the same value as by any kernel, slower.

Law: for every row the value, or the error, is that of `noonmark.sql.evaluate`.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.rows.identity import hashable
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.scalar import ColumnRef, Scalar, columns_of, map_columns


def narrowed(scalar: Scalar, used: Sequence[int]) -> tuple[Scalar, tuple[t.SqlType, ...]]:
    """The scalar over the columns `used` alone, in that order, and the types of those."""
    place = {index: at for at, index in enumerate(used)}
    types: dict[int, t.SqlType] = {}

    def move(ref: ColumnRef) -> ColumnRef:
        types[place[ref.index]] = ref.type
        return ColumnRef(ref.type, ref.nullable, place[ref.index], ref.name)

    moved = map_columns(scalar, move)
    return moved, tuple(types[at] for at in range(len(used)))


def row_by_row(
    scalar: Scalar, columns: Sequence[pa.Array | None], count: int
) -> tuple[pa.Array, list[str | None] | None]:
    """The values of a scalar, and its errors if there are any."""
    used = sorted(columns_of(scalar))
    moved, types = narrowed(scalar, used)
    given = [from_array(columns[at], kind) for at, kind in zip(used, types, strict=True)]
    values: list[Any] = []
    errors: list[str | None] = []
    for row in zip(*given, strict=True) if given else iter([()] * count):
        try:
            values.append(evaluate(moved, tuple(map(hashable, row))))
            errors.append(None)
        except EvaluationError as error:
            values.append(None)
            errors.append(error_text(error))
    found = errors if any(text is not None for text in errors) else None
    return to_array(values, scalar.type), found


def error_text(error: EvaluationError) -> str:
    """An error as the layout of frames has it."""
    return f"{error.sqlstate} {error.message}"
