"""The inner join of large changes.

Law: d(L join R) = dL join R_old + L_old join dR + dL join dR, where a pair is there from the later
of its two times on, as often as the product of its two diffs says. Only a side that changed gives
terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import NOTHING, Delta, errors_of, rows_of, union
from noonmark.compute.match import pairs, with_left_keys, with_right_keys
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
        keyed = with_left_keys(node, left.frame)
        old = rows_of(with_right_keys(node, scope.old(node.right)))
        made.append(pairs(node, rows_of(keyed, left_fails), old, timed=True))
        if left_fails:
            made.append(errors_of(keyed, node.schema))
    if not right.empty:
        keyed = with_right_keys(node, right.frame)
        old = rows_of(with_left_keys(node, scope.old(node.left)))
        made.append(pairs(node, old, rows_of(keyed, right_fails), timed=True))
        if right_fails:
            made.append(errors_of(keyed, node.schema))
    if not left.empty and not right.empty:
        both = (
            rows_of(with_left_keys(node, left.frame), left_fails),
            rows_of(with_right_keys(node, right.frame), right_fails),
        )
        made.append(pairs(node, *both, timed=True))
    frame = union(made)
    return Delta(lambda: frame, left_fails or right_fails or may_fail(node.on))
