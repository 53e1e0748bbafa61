"""Rows as a table keeps them, and its CHECKs asked of them: few at once, many beside the loop.

A CHECK is somebody's expression, over somebody's values: it is asked as any other is, by a worker
where it is more than a little work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Item
from noonmark.adapter.peek.rows import Row
from noonmark.adapter.statement.dml.target import fitted, shown
from noonmark.adapter.table.checks import CheckViolation, checks_of
from noonmark.adapter.worker.pool import Pool
from noonmark.adapter.worker.values import values_of

#: What it takes to fit a row, as characters of a text are counted.
_ROW_WEIGHT = 20
#: Rows that are asked at once.
_PIECE_ROWS = 20_000


async def fitted_rows(pool: Pool, item: Item, rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows as the table keeps them.

    Raises:
        NotNullViolation: NULL where there may be none.
        CheckViolation: a CHECK is false of one.
        StringTooLong: text that is longer than its column takes.
    """
    weight = len(rows) * (1 + len(item.schema)) * _ROW_WEIGHT
    made = await aside(weight, lambda: [fitted(item, row) for row in rows])
    name, row = await broken_check(pool, item, made)
    if name is not None:
        raise CheckViolation(
            f'new row for relation "{item.name}" violates check constraint "{name}"',
            detail=f"Failing row contains ({shown(item, row)}).",
            constraint=name,
        )
    return made


async def broken_check(pool: Pool, item: Item, rows: Sequence[Row]) -> tuple[str | None, Row]:
    """The name of a CHECK that is false of a row, and the first such row.

    Raises:
        EvaluationError: one has no answer for it.
    """
    checks = checks_of(item)
    conditions = tuple(check.condition for check in checks)
    for start in range(0, len(rows) if checks else 0, _PIECE_ROWS):
        piece = rows[start : start + _PIECE_ROWS]
        found = await values_of(pool, [conditions] * len(piece), piece)
        for row, answers in zip(piece, found, strict=True):
            for check, answer in zip(checks, answers, strict=True):
                if answer is False:
                    return check.name, row
    return None, ()
