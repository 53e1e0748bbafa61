"""The inner join of large changes.

Law: d(L join R) = dL join R_old + L_old join dR + dL join dR, where a pair is there from the later
of its two times on, as often as the product of its two diffs says. Only a side that changed gives
terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.compute.spark.delta.scope import Scope
from noonmark.compute.spark.frame import NOTHING, Delta, errors_of, union
from noonmark.compute.spark.match import left_side, pairs, right_side
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join(node: r.Join, scope: Scope, left: Delta, right: Delta) -> Delta:
    """The changes of an inner join, from the changes of its sides."""
    if left.empty and right.empty:
        return NOTHING
    left_fails = left.fails or any(may_fail(key.left) for key in node.keys)
    right_fails = right.fails or any(may_fail(key.right) for key in node.keys)
    made: list[DataFrame] = []
    if not left.empty:
        new = left_side(node, left.frame, fails=left_fails, timed=True)
        old = right_side(node, scope.old(node.right), fails=True, timed=True)
        made.append(pairs(node, new.rows, old.rows, timed=True))
        if left_fails:
            made.append(errors_of(new.all, node.schema, timed=True))
    if not right.empty:
        old = left_side(node, scope.old(node.left), fails=True, timed=True)
        new = right_side(node, right.frame, fails=right_fails, timed=True)
        made.append(pairs(node, old.rows, new.rows, timed=True))
        if right_fails:
            made.append(errors_of(new.all, node.schema, timed=True))
    if not left.empty and not right.empty:
        both = (
            left_side(node, left.frame, fails=left_fails, timed=True),
            right_side(node, right.frame, fails=right_fails, timed=True),
        )
        made.append(pairs(node, both[0].rows, both[1].rows, timed=True))
    frame = union(made)
    return Delta(lambda: frame, left_fails or right_fails or may_fail(node.on))
