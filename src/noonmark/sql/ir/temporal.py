"""Temporal filters: a comparison of mz_now() with a scalar of the row.

Each row is there from one time on, or until one:

    mz_now() >= e      from ceil(e) on           mz_now() <  e      until ceil(e)
    mz_now() >  e      from floor(e) + 1 on      mz_now() <= e      until floor(e) + 1

That time is the row's `turn`; *until* means before it. A row for which e is NULL is never there.

Law: for every integer t, the comparison holds at t iff ``t >= turn`` (from) or ``t < turn``
(until). Turns beyond all times are `FOREVER` or `NEVER`, and so the law holds for every e.

`separated` gives every temporal filter of a plan this form: a `Filter` of one comparison, mz_now()
on its left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from noonmark.rows import types as t
from noonmark.sql.ir.asked import Now
from noonmark.sql.ir.relation import Filter, Relation
from noonmark.sql.ir.scalar import Cast, Compare, Scalar

#: Turns that never come, and that always were.
FOREVER, NEVER = (1 << 63) - 1, -(1 << 63)
#: Where a turn is rounded up; elsewhere it is one past what it is rounded down to.
ROUNDED_UP = frozenset((">=", "<"))
FROM = frozenset((">=", ">"))

_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)


@dataclass(frozen=True)
class Temporal:
    """What a temporal filter says.

    Attributes:
        op: how mz_now() is compared: one of >=, >, <, <=.
        scalar: with what, over the rows of the filter's input: a number of milliseconds.
    """

    op: str
    scalar: Scalar

    @property
    def begins(self) -> bool:
        """Whether rows come at their turn; else they go."""
        return self.op in FROM

    def turn(self, value: int | Decimal | float | None) -> int | None:
        """When the comparison changes for a row with this value; None if it never holds."""
        if value is None:
            return None
        if isinstance(value, float | Decimal):
            if math.isnan(value):  # greater than every number
                return FOREVER
            if math.isinf(value):
                return FOREVER if value > 0 else NEVER
        whole = math.ceil(value) if self.op in ROUNDED_UP else math.floor(value) + 1
        return min(max(whole, NEVER), FOREVER)


def is_now(scalar: Scalar) -> bool:
    """Whether the scalar is mz_now() itself, as whatever kind of number."""
    if isinstance(scalar, Cast) and isinstance(scalar.type, _NUMBERS):
        return is_now(scalar.operand)
    return isinstance(scalar, Now)


def temporal(relation: Relation) -> Temporal | None:
    """What a relation says as a temporal filter; None if it is none."""
    if not isinstance(relation, Filter) or not isinstance(relation.predicate, Compare):
        return None
    predicate = relation.predicate
    return Temporal(predicate.op, predicate.right) if is_now(predicate.left) else None
