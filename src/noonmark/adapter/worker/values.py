"""The values of scalars that a statement needs: VALUES, RETURNING, ON CONFLICT, settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from noonmark.adapter.aside import aside
from noonmark.adapter.peek.rows import Row
from noonmark.adapter.worker.effort import longest_value
from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.adapter.worker.job import Valued
from noonmark.adapter.worker.pool import Pool
from noonmark.rows.identity import hashable, is_own_identity
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.effort import LITTLE, scalar_effort
from noonmark.sql.ir.scalar import Scalar

#: Many rows of a little each, as a long VALUES list is, take at most so much in a thread: a second.
_THREAD_MAX = 1_000_000
_EACH_MAX = 300
#: What it takes to look at a row, as characters of a text are counted (`aside`).
_ROW_WEIGHT = 20


async def values_of(
    pool: Pool, scalars: Sequence[Sequence[Scalar]], over: Sequence[Row]
) -> list[Row]:
    """The values of each list of scalars over the row at its place."""
    if not scalars:
        return []
    job = Valued(tuple(map(tuple, scalars)), tuple(over))
    # The same list for every row is looked at once.
    known: dict[int, float] = {}
    longest = await aside(len(over) * _ROW_WEIGHT, longest_value, over)
    total = largest = 0.0
    for each in job.scalars:
        if id(each) not in known:
            effort = scalar_effort(*each, longest=longest)
            known[id(each)] = effort * (1 + longest / 1_000)
        total += known[id(each)]
        largest = max(largest, known[id(each)])
    if total <= LITTLE:
        return job.rows({})
    if largest <= _EACH_MAX and total <= _THREAD_MAX:
        return await asyncio.to_thread(job.rows, {})
    # What is pickled is another NaN, and these values may become rows of a table.
    same = all(is_own_identity(scalar.type) for each in job.scalars for scalar in each)
    rows: list[Row] = []
    async for piece in (await pool.run(job)).pieces():
        rows += piece if same else map(hashable, piece)
        pool.limits.check_rows(len(rows))
    return rows


def little_value(scalar: Scalar, row: Row = ()) -> Any:
    """The value of a scalar that stands where there is no room for work: a setting, a time.

    Raises:
        ProgramLimitExceeded: it is more than a little work.
    """
    longest = longest_value([row])
    if scalar_effort(scalar, longest=longest) * (1 + longest / 1_000) > LITTLE:
        raise ProgramLimitExceeded(
            "an expression here cannot be much work",
            hint="Compute it with a SELECT first, and write its value.",
        )
    return evaluate(scalar, row)
