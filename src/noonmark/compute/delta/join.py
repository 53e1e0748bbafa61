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
from noonmark.compute.match import pairs, with_keys
from noonmark.compute.native import EXACT
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join(node: r.Join, scope: Scope, left: Delta, right: Delta) -> Delta:
    """The changes of an inner join, from the settled changes of its sides."""
    d_left, d_right = left.frame, right.frame
    if d_left is None and d_right is None:
        return NOTHING
    need_left, need_right = own_needs(node)
    small = left.small and right.small
    terms: list[DataFrame] = []
    errors: list[DataFrame] = []
    if d_left is not None:
        old = _old(scope, node, need_right, d_left, from_left=True, small=small)
        terms.append(_term(node, d_left, old))
        errors.append(errors_of(with_keys(node, d_left, old)[0], node.schema))
    if d_right is not None:
        old = _old(scope, node, need_left, d_right, from_left=False, small=small)
        terms.append(_term(node, old, d_right))
        errors.append(errors_of(with_keys(node, old, d_right)[1], node.schema))
    if d_left is not None and d_right is not None:
        terms.append(_term(node, d_left, d_right))
    made = union([*terms, *errors])
    return Delta(made.coalesce(1) if small else made, left.bytes + right.bytes)


def _term(node: r.Join, left: DataFrame, right: DataFrame) -> DataFrame:
    sides = with_keys(node, left, right)
    return pairs(node, rows_of(sides[0]), rows_of(sides[1]), timed=True)


def _old(
    scope: Scope, node: r.Join, need: Need, changes: DataFrame, *, from_left: bool, small: bool
) -> DataFrame:
    """The old rows of one side that can match changes of the other."""
    changed = node.left if from_left else node.right
    used = [key for key in node.keys if isinstance(key.left.type, EXACT)]
    scalars = [key.left if from_left else key.right for key in used]
    keys = rows_of(extended(changes, len(changed.schema), scalars, "k"))
    for at, key in enumerate(used):
        if not key.null_equal:
            keys = keys.where(f.col(f"k{at}").isNotNull())
    return scope.old_rows(need, keys, small=small)
