"""Aggregates for which sums are enough, apart from minima and maxima of the same groups.

    SELECT k, count(*), max(v) FROM t GROUP BY k

is the join by k of its counts, which have accumulators, and its maxima, which are the first rows of
their groups (`noonmark.compute.walk.first`). Together they would need all rows of a group.

Law: ``sums_apart(p)`` means what p means, and has its schema. It is a function of the plan alone.

Where it runs: driver; pure.
"""

from __future__ import annotations

from dataclasses import replace

from noonmark.compute.accumulator import is_linear, summands
from noonmark.compute.walk.first import reads_first
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import column


def sums_apart(node: r.Relation) -> r.Relation:
    """The plan with every such aggregation in two."""
    if isinstance(node, r.Recursive):
        return node  # recomputed as a whole, whatever it is made of

    def act(child: Node) -> Node:
        return sums_apart(child) if isinstance(child, r.Relation) else child

    made = rebuild(node, act)
    return _apart(made) if isinstance(made, r.Aggregate) else made


def _apart(node: r.Aggregate) -> r.Relation:
    """The aggregation in two, where each is then maintained without the rows of its groups."""
    calls = range(len(node.aggregates))
    summed = [at for at in calls if summands(node.aggregates[at])]
    others = [at for at in calls if at not in summed]
    sums, ends = _some(node, summed), _some(node, others)
    if not summed or not others or not is_linear(sums) or not reads_first(ends):
        return node
    width = len(node.keys)
    pairs = zip(sums.schema.columns[:width], ends.schema.columns[:width], strict=True)
    keys = [r.JoinKey(column(at, a), column(at, b), True) for at, (a, b) in enumerate(pairs)]
    both = r.Join(r.JoinKind.INNER, sums, ends, tuple(keys))
    # The keys, the sums, the keys again, the others: put back in the order of the aggregation.
    places = {at: width + number for number, at in enumerate(summed)}
    places |= {at: 2 * width + len(summed) + number for number, at in enumerate(others)}
    wanted = [*range(width), *(places[at] for at in calls)]
    scalars = tuple(column(at, both.schema.columns[at]) for at in wanted)
    return r.Project(both, scalars, node.names)


def _some(node: r.Aggregate, which: list[int]) -> r.Aggregate:
    """The aggregation with some of its aggregates."""
    width = len(node.keys)
    names = [*node.names[:width], *(node.names[width + at] for at in which)]
    calls = tuple(node.aggregates[at] for at in which)
    return replace(node, aggregates=calls, names=tuple(names))
