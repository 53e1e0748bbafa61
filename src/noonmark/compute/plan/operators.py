"""The door to the operators: what is asked of a relation is asked of its operator.

An operator stands on everything below it (kernels, look-ups, plans), and plans ask operators: which
arrangements, which keys, which orders. So the table is opened here, when it is first asked.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

import enum
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noonmark.compute.operator.base import Operator
    from noonmark.sql.ir import relation as r


class Way(enum.Enum):
    """How an operator is maintained."""

    CHANGES = "its changes"
    CONSTANT = "never changes"
    TURNS = "every row at its turn"
    PATHS = "one path for each input that changed"
    LINEAR = "linear"
    SUMS = "accumulators by group"
    KEPT = "its own rows, of what only grows"
    FIRST_ROWS = "its first rows"
    BY_KEY = "recomputed for the keys that changed"
    WHOLE = "recomputed as a whole"
    UNKNOWN = "not supported"

    @property
    def by_key(self) -> bool:
        """Whether it asks its inputs by key for what was there."""
        return self in (Way.FIRST_ROWS, Way.BY_KEY, Way.WHOLE)


@cache
def _table() -> dict[type[r.Relation], Operator[Any]]:
    # door: operators ask this module's callers about their inputs, and so stand above it
    from noonmark.compute.operator.table import OPERATORS

    return OPERATORS


def operator_of(node: r.Relation) -> Operator[Any]:
    """The operator of a relation."""
    return _table()[type(node)]
