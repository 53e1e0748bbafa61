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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recompute(node: r.Relation, scope: Scope, deltas: Sequence[Delta]) -> Delta:
    """The changes of a keyed operator, from the settled changes of its inputs."""
    parts = keyed.parts_of(node)
    changed = [delta.frame for delta in deltas]
    given = [(p, c) for p, c in zip(parts, changed, strict=True) if c is not None]
    if not given:
        return NOTHING
    small = all(delta.small for delta in deltas)
    keyed_changes = keyed.keyed_frames([p for p, _ in given], [c for _, c in given])
    key_names = names(len(parts[0].key), "k")
    keys = union([rows_of(frame).select(*key_names) for frame in keyed_changes])
    keys = keys.coalesce(1) if small else keys
    frames: list[DataFrame] = []
    for part, need, change in zip(parts, own_needs(node), changed, strict=True):
        columns = [*names(len(part.relation.schema)), ERROR, TIME, DIFF]
        old = scope.old_rows(need, keys, small=small).select(*columns)
        frames.append(old if change is None else union([old, change]))
    made = keyed.recomputed(node, parts, frames, timed=True, tasks=1 if small else None)
    return Delta(made, sum(delta.bytes for delta in deltas))
