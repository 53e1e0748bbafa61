"""Comparisons with one row: which plans ask only for the rows whose answer switches.

    SELECT l.* FROM l WHERE l.x > (SELECT avg(x) FROM l)

is a join of l with one row t, by a comparison, of which t itself is not shown. When t changes from
a to b, a row of l comes or goes only if ``x > a`` and ``x > b`` are not the same. In the order of x
these rows are neighbours, so they are found without a look at the others
(`noonmark.compute.incremental.range_delta`).

Law: for a group in which `range_delta_of` finds a comparison, changes of its one row that sum to
nothing at every time (the old row goes, the new one comes) change nothing for rows whose comparison
gives the same for all rows among these changes.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.compute.kernel.keyed import has_order
from noonmark.compute.plan.multiway import MultiwayJoin, Step, is_one_row
from noonmark.rows.exact import has_extremes
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import Compare, Scalar, columns_of, may_fail, shift

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class RangeDelta:
    """A comparison with one row, in the order in which it holds for neighbours.

    Predicates are over the columns of all leaves, and each holds for the first rows of the order.

    Attributes:
        order: of the rows of the leaf that is compared with the one row.
        before: holds for the rows before those for which the comparison holds; None without any.
        until: holds for those, too.
    """

    order: tuple[SortKey, ...]
    before: Scalar | None
    until: Scalar


def range_delta_of(group: MultiwayJoin, first: int, step: Step) -> RangeDelta | None:
    """How a step from one row to a leaf, without a key, finds the rows that switch."""
    shown = {group.place(at)[0] for each in group.outputs for at in columns_of(each)}
    about = [
        each for each, leaves in zip(group.predicates, group.needs, strict=True) if first in leaves
    ]
    if step.key or first in shown or not is_one_row(group.leaves[first]):
        return None
    if len(about) != 1 or any(map(may_fail, group.loud)):
        return None
    (predicate,) = about
    if not isinstance(predicate, Compare) or predicate.op not in _TURNED:
        return None
    op, own, other = predicate.op, predicate.left, predicate.right
    if group.leaf_of(own) == first:
        op, own, other = _TURNED[op], other, own
    if group.leaf_of(own) != step.leaf or group.leaf_of(other) != first:
        return None
    order = (SortKey(shift(own, -group.starts[step.leaf]), descending=op in (">", ">=")),)
    schema = group.leaves[step.leaf].schema
    if not all(has_extremes(each.type) for each in schema) or not has_order(order):
        return None
    if op == "=":
        return RangeDelta(order, Compare("<", own, other), Compare("<=", own, other))
    return RangeDelta(order, None, predicate)
