"""The inner join.

Law: d(L join R) = dL join R_old + L_old join dR + dL join dR, where a pair is there from the later
of its two times on, as often as the product of its two diffs says.

Only a side that changed gives terms. The keys of its changes are pushed into the other side before
anything else: of R_old only the rows with a key of dL are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.arrangement import Need, own_needs
from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import NOTHING, Delta, errors_of, rows_of, union
from noonmark.compute.linear import extended
from noonmark.compute.match import pairs, with_left_keys, with_right_keys
from noonmark.compute.native import EXACT
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join(node: r.Join, scope: Scope, left: Delta, right: Delta) -> Delta:
    """The changes of an inner join, from the settled changes of its sides."""
    if left.empty and right.empty:
        return NOTHING
    need_left, need_right = own_needs(node)
    small = left.small and right.small
    left_fails = left.fails or any(may_fail(key.left) for key in node.keys)
    right_fails = right.fails or any(may_fail(key.right) for key in node.keys)
    made: list[DataFrame] = []
    if not left.empty:
        keyed = with_left_keys(node, left.frame)
        old = _old(scope, node, need_right, left.frame, from_left=True, small=small)
        old = rows_of(with_right_keys(node, old), right_fails)
        made.append(pairs(node, rows_of(keyed, left_fails), old, timed=True))
        if left_fails:
            made.append(errors_of(keyed, node.schema))
    if not right.empty:
        keyed = with_right_keys(node, right.frame)
        old = _old(scope, node, need_left, right.frame, from_left=False, small=small)
        old = rows_of(with_left_keys(node, old), left_fails)
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
    fails = left_fails or right_fails or may_fail(node.on)
    return Delta(lambda: frame.coalesce(1) if small else frame, left.bytes + right.bytes, fails)


def _old(
    scope: Scope, node: r.Join, need: Need, changes: DataFrame, *, from_left: bool, small: bool
) -> DataFrame:
    """The old rows of one side that can match changes of the other."""
    changed = node.left if from_left else node.right
    used = [key for key in node.keys if isinstance(key.left.type, EXACT)]
    scalars = [key.left if from_left else key.right for key in used]
    fails = any(may_fail(scalar) for scalar in scalars) or may_fail(changed)
    keys = rows_of(extended(changes, len(changed.schema), scalars, "k"), fails)
    for at, key in enumerate(used):
        if not key.null_equal:
            keys = keys.where(f.col(f"k{at}").isNotNull())
    return scope.old_rows(need, keys, small=small)
