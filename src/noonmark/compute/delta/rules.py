"""From a plan to its changes: which rule serves which operator.

    Scan                       the changes of the collection
    Constant                   nothing: it is the same at every time
    Filter, Project, FlatMap,
    Union                      linear: the operator applied to the changes
    inner Join                 delta.join
    Aggregate, linear          delta.aggregate
    all others with a key      delta.keyed

Law: ``Rules(scope).delta(r)`` is differentiate(r(integrate(inputs))) over the scope's range; equal
subplans are computed once.

Where it runs: driver.
"""

from __future__ import annotations

import pyarrow as pa

from noonmark.compute import aggregates, keyed
from noonmark.compute.arrangement import Need, own_needs, picks
from noonmark.compute.delta.aggregate import aggregate
from noonmark.compute.delta.join import join
from noonmark.compute.delta.keyed import recompute
from noonmark.compute.delta.scope import Scope
from noonmark.compute.flatmap import flat_mapped
from noonmark.compute.frame import ERROR, NOTHING, Delta, names, union
from noonmark.compute.linear import filtered, projected
from noonmark.errors import Unsupported
from noonmark.persist.run import DIFF, TIME
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import ColumnRef, may_fail


class Rules:
    """The delta rules over one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._made: dict[r.Relation, Delta] = {}

    def delta(self, node: r.Relation) -> Delta:
        """The changes of a relation."""
        if node not in self._made:
            self._made[node] = self._act(node)
        return self._made[node]

    def _act(self, node: r.Relation) -> Delta:
        match node:
            case r.Scan():
                return self.scope.changes(node.collection, node.columns)
            case r.Constant():
                return NOTHING
            case r.Filter():
                below = self.delta(node.input)
                fails = may_fail(node.predicate)
                return (
                    below if below.empty else below.then(filtered(node, below.frame), fails=fails)
                )
            case r.Project():
                return self._project(node)
            case r.FlatMap():
                below = self.delta(node.input)
                if below.empty:
                    return below
                return below.then(flat_mapped(node, below.frame), fails=True)
            case r.Union():
                return self._union(node)
            case r.Join(kind=r.JoinKind.INNER):
                return join(node, self.scope, *self._settled(node))
            case r.Aggregate() if aggregates.is_linear(node):
                return aggregate(node, self.scope, self.delta(node.input))
        if not keyed.is_known(node):
            raise Unsupported(f"a view with {type(node).__name__} is not supported yet")
        return recompute(node, self.scope, self._settled(node))

    def _project(self, node: r.Project) -> Delta:
        """A projection; one that only picks columns of changes at hand costs no job."""
        below = self.delta(node.input)
        if below.empty:
            return below
        picked = [scalar.index for scalar in node.scalars if isinstance(scalar, ColumnRef)]
        if below.table is None or len(picked) < len(node.scalars):
            fails = any(map(may_fail, node.scalars))
            return below.then(projected(node, below.frame), fails=fails)
        given = [*(below.table.column(f"c{at}") for at in picked)]
        rest = [below.table.column(name) for name in (ERROR, TIME, DIFF)]
        layout = [*names(len(picked)), ERROR, TIME, DIFF]
        return self.scope.local(pa.table([*given, *rest], names=layout), node.schema)

    def _union(self, node: r.Union) -> Delta:
        deltas = [self.delta(each) for each in node.inputs]
        frames = [delta.frame for delta in deltas if not delta.empty]
        if not frames:
            return NOTHING
        small = all(delta.small for delta in deltas)
        made = union(frames).coalesce(1) if small else union(frames)
        size, fails = sum(delta.bytes for delta in deltas), any(d.fails for d in deltas)
        return Delta(lambda: made, size, fails)

    def _settled(self, node: r.Relation) -> list[Delta]:
        """The changes of what an operator asks for; its arrangements are told of theirs."""
        return [self._arranged(need) for need in own_needs(node)]

    def _arranged(self, need: Need) -> Delta:
        delta, keeper = self.delta(need.relation), self.scope.keepers[need]
        if not keeper.own:
            return delta
        base = keeper.need.relation
        if isinstance(base, r.Scan) or picks(base):
            self.scope.note(need, self.delta(base))
            return delta
        settled = self.scope.settle(delta, need.relation.schema)
        self.scope.note(need, settled)
        return settled
