"""Every other operator with a key, of large changes.

These are min and max, distinct, outer, semi and anti joins, top-k, windows, INTERSECT and EXCEPT,
and aggregates that need their rows.

Law: d(op)(R) = the sum over the keys k that occur in dR of
differentiate(op(integrate(R where key = k))): the operator is asked before and after, at every
time at which that key changed, of the rows of that key alone (`noonmark.compute.spark.keyed`).

An operator without a key (a LIMIT over everything) has one key that always changes: it is
recomputed as a whole, and `explain_view` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.spark import keyed
from noonmark.compute.spark.delta.scope import Scope
from noonmark.compute.spark.frame import NOTHING, Delta, names, rows_of, union
from noonmark.persist.part.run import DIFF, TIME
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recompute(node: r.Relation, scope: Scope, deltas: Sequence[Delta]) -> Delta:
    """The changes of a keyed operator, from the changes of its inputs."""
    parts = keyed_inputs(node)
    given = [(p, d.frame) for p, d in zip(parts, deltas, strict=True) if not d.empty]
    if not given:
        return NOTHING
    fails = any(d.fails for d in deltas) or any(may_fail(k) for p in parts for k in p.key)
    keyed_changes = keyed.keyed_frames([p for p, _ in given], [c for _, c in given], timed=True)
    key_names = names(len(parts[0].key), "k")
    keys = union([rows_of(frame, fails).select(*key_names) for frame in keyed_changes])
    frames: list[DataFrame] = []
    for part, delta in zip(parts, deltas, strict=True):
        (with_keys,) = keyed.keyed_frames([part], [scope.old(part.relation)], timed=True)
        old = scope.old_rows(part.relation, rows_of(with_keys), keys)
        columns = [*names(len(part.relation.schema)), ERROR, TIME, DIFF]
        old = old.select(*columns)
        frames.append(old if delta.empty else union([old, delta.frame]))
    made = keyed.recomputed(node, parts, frames, timed=True, fails=fails)
    return Delta(lambda: made, fails=True)
