"""From a plan to its changes, for large changes: which rule serves which operator.

    Scan                       the changes of the collection
    Constant                   nothing: it is the same at every time
    Filter, Project, FlatMap,
    Union                      linear: the operator applied to the changes
    Filter that follows time   delta.temporal
    inner Join                 delta.join
    Aggregate, linear          delta.aggregate
    all others with a key      delta.keyed

Law: ``Rules(scope).delta(r)`` is differentiate(r(integrate(inputs))) over the scope's range; equal
subplans are computed once.

Where it runs: driver.
"""

from __future__ import annotations

from noonmark.compute.kernel.accumulator import is_linear
from noonmark.compute.plan.keys import is_keyed, keyed_inputs
from noonmark.compute.spark.delta.aggregate import aggregate
from noonmark.compute.spark.delta.join import join
from noonmark.compute.spark.delta.keyed import recompute
from noonmark.compute.spark.delta.scope import Scope
from noonmark.compute.spark.delta.temporal import follow
from noonmark.compute.spark.flatmap import flat_mapped
from noonmark.compute.spark.frame import NOTHING, Delta, union
from noonmark.compute.spark.linear import filtered, projected
from noonmark.errors import Unsupported
from noonmark.persist.spark import typed_errors
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail
from noonmark.sql.ir.temporal import temporal


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
            case r.Filter() if temporal(node) is not None:
                return follow(node, self.scope, self.settled(node.input))
            case r.Filter() | r.Project() | r.FlatMap():
                below = self.delta(node.input)
                return below if below.empty else _linear(node, below)
            case r.Union():
                return self._union(node)
            case r.Join(kind=r.JoinKind.INNER):
                return join(node, self.scope, self.settled(node.left), self.settled(node.right))
            case r.Aggregate() if is_linear(node):
                return aggregate(node, self.scope, self.delta(node.input))
        if not is_keyed(node):
            raise Unsupported(f"a view with {type(node).__name__} is not supported yet")
        parts = keyed_inputs(node)
        return recompute(node, self.scope, [self.settled(part.relation) for part in parts])

    def _union(self, node: r.Union) -> Delta:
        deltas = [self.delta(each) for each in node.inputs]
        frames = [delta.frame for delta in deltas if not delta.empty]
        if not frames:
            return NOTHING
        return Delta(lambda: union(frames), any(d.fails for d in deltas))

    def settled(self, node: r.Relation) -> Delta:
        """The changes of a relation, computed once for all who use them: one Spark job."""
        delta = self.delta(node)
        if delta.empty or isinstance(node, r.Scan):
            return delta
        if not delta.settled:
            with typed_errors():
                frame = delta.frame.localCheckpoint()
            delta = self._made[node] = Delta(lambda: frame, delta.fails, settled=True)
        return delta


def _linear(node: r.Filter | r.Project | r.FlatMap, below: Delta) -> Delta:
    match node:
        case r.Filter():
            return below.then(filtered(node, below.frame), fails=may_fail(node.predicate))
        case r.Project():
            fails = any(map(may_fail, node.scalars))
            return below.then(projected(node, below.frame, timed=True), fails=fails)
    return below.then(flat_mapped(node, below.frame), fails=True)
