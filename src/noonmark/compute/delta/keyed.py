"""Every other operator with a key.

These are min and max, distinct, outer, semi and anti joins, top-k, windows, INTERSECT and EXCEPT,
and aggregates that need their rows.

Law: d(op)(R) = the sum over the keys k that occur in dR of
differentiate(op(integrate(R where key = k))): the operator is asked before and after, at every
time at which that key changed, of the rows of that key alone (`noonmark.compute.keyed`).

An operator without a key (a LIMIT over everything) has one key that always changes: it is
recomputed as a whole, and `explain_view` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noonmark.compute import keyed
from noonmark.compute.arrangement import own_needs
from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import ERROR, NOTHING, Delta, names, rows_of, union
from noonmark.persist.run import DIFF, TIME
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recompute(node: r.Relation, scope: Scope, deltas: Sequence[Delta]) -> Delta:
    """The changes of a keyed operator, from the settled changes of its inputs."""
    parts = keyed.parts_of(node)
    given = [(p, d.frame) for p, d in zip(parts, deltas, strict=True) if not d.empty]
    if not given:
        return NOTHING
    fails = any(d.fails for d in deltas) or any(may_fail(k) for p in parts for k in p.key)
    small = all(delta.small for delta in deltas)
    keyed_changes = keyed.keyed_frames([p for p, _ in given], [c for _, c in given])
    key_names = names(len(parts[0].key), "k")
    keys = union([rows_of(frame, fails).select(*key_names) for frame in keyed_changes])
    keys = keys.coalesce(1) if small else keys
    frames: list[DataFrame] = []
    for part, need, delta in zip(parts, own_needs(node), deltas, strict=True):
        columns = [*names(len(part.relation.schema)), ERROR, TIME, DIFF]
        old = scope.old_rows(need, keys, small=small).select(*columns)
        frames.append(old if delta.empty else union([old, delta.frame]))
    tasks = 1 if small else None
    made = keyed.recomputed(node, parts, frames, timed=True, fails=fails, tasks=tasks)
    return Delta(lambda: made, sum(delta.bytes for delta in deltas), fails=True)
