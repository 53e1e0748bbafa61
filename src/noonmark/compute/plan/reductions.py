"""Aggregations in parts, each of which is maintained without the rows of its groups.

    SELECT k, count(*), max(v), count(DISTINCT w) FROM t GROUP BY k

is the join by k of three aggregations. Its counts have accumulators. Its maxima are the first rows
of their groups (`noonmark.compute.incremental.first`), if t is stored. Of what is not stored, say a
join, and of DISTINCT values, the values of a group are counted first:

    SELECT k, max(v) FROM (SELECT k, v, count(*) FROM t GROUP BY k, v) GROUP BY k

The inner aggregation has accumulators, so it is stored, each value once; the outer one sees a
change only when a value comes or goes. SELECT DISTINCT is an aggregation without aggregates: its
rows are counted. Of what only grows none of this is needed: its maxima and counts are one part,
which keeps itself (`noonmark.compute.plan.growing`).

Law: ``apart(p)`` means what p means, and has its schema. It is a function of the plan alone.

Where it runs: driver; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from noonmark.compute.kernel.accumulator import argument, is_linear, summands
from noonmark.compute.kernel.keyed import can_aggregate
from noonmark.compute.plan.first import reads_first
from noonmark.compute.plan.growing import can_merge, keeps_itself
from noonmark.rows.exact import is_exact
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import Scalar, column

#: An aggregation of some of the aggregates, and which they are.
Part = tuple[r.Aggregate, list[int]]
_COUNT = "count"


def apart(node: r.Relation) -> r.Relation:
    """The plan with every such aggregation in parts."""
    if isinstance(node, r.Recursive):
        return node  # recomputed as a whole, whatever it is made of

    def act(child: Node) -> Node:
        return apart(child) if isinstance(child, r.Relation) else child

    return _rewritten(rebuild(node, act))


def _rewritten(made: r.Relation) -> r.Relation:
    match made:
        case r.Aggregate():
            return _apart(made)
        case r.Distinct() if all(is_exact(each.type) for each in made.schema):
            return _counted(made.input, _columns(made.input, len(made.schema)), made.schema.names)
    return made


def _apart(node: r.Aggregate) -> r.Relation:
    """The aggregation in parts; itself where one of its aggregates needs the rows of its groups."""
    kept = _kept(node)
    node = replace(node, growing=False)
    parts = _parts(node, kept)
    if parts is None:
        return node
    if len(parts) == 1:
        return parts[0][0]
    width = len(node.keys)
    (made, which), *others = parts
    joined: r.Relation = made
    places = {at: width + number for number, at in enumerate(which)}
    for part, those in others:
        start = len(joined.schema)
        pairs = zip(joined.schema.columns[:width], part.schema.columns[:width], strict=True)
        keys = [r.JoinKey(column(at, a), column(at, b), True) for at, (a, b) in enumerate(pairs)]
        joined = r.Join(r.JoinKind.INNER, joined, part, tuple(keys))
        places |= {at: start + width + number for number, at in enumerate(those)}
    # The keys, and the aggregates in the order of the aggregation.
    wanted = [*range(width), *(places[at] for at in range(len(node.aggregates)))]
    scalars = tuple(column(at, joined.schema.columns[at]) for at in wanted)
    return r.Project(joined, scalars, node.names)


def _kept(node: r.Aggregate) -> list[Part]:
    """What of an aggregation keeps itself, in one part; nothing where rows may leave its input."""
    if not node.growing:
        return []
    calls = enumerate(node.aggregates)
    those = [at for at, call in calls if can_merge(call) and can_aggregate(_some(node, [at]))]
    part = _some(node, those)
    return [(part, those)] if keeps_itself(part) else []


def _parts(node: r.Aggregate, kept: list[Part]) -> list[Part] | None:
    """The parts of an aggregation, each aggregate in one; None if one needs its groups' rows."""
    known = {at for _, which in kept for at in which}
    calls = [at for at in range(len(node.aggregates)) if at not in known]
    summed = [at for at in calls if summands(node.aggregates[at])]
    ends = [at for at in calls if node.aggregates[at].entry.name in ("min", "max")]
    parts = list(kept)
    if summed:
        parts.append((_some(node, summed), summed))
    if ends and reads_first(_some(node, ends)):
        parts.append((_some(node, ends), ends))
    by_value: dict[Scalar, list[int]] = {}
    taken = {at for _, which in parts for at in which}
    for at in calls:
        call = node.aggregates[at]
        if at not in taken and (at in ends or (call.distinct and not call.order)):
            if len(call.arguments) != 1:
                return None
            by_value.setdefault(argument(call), []).append(at)
    parts += [(_by_value(node, value, which), which) for value, which in by_value.items()]
    if not parts or sum(len(which) for _, which in parts) < len(node.aggregates):
        return None
    return parts if all(_is_bounded(part) for part, _ in parts) else None


def _is_bounded(node: r.Aggregate) -> bool:
    """Whether a change of the aggregation does without the rows of its groups."""
    if keeps_itself(node):
        return True
    below = node.input
    while isinstance(below, r.Project):
        below = below.input
    inner = not isinstance(below, r.Aggregate) or is_linear(below)
    return inner and (is_linear(node) or reads_first(node))


def _by_value(node: r.Aggregate, value: Scalar, which: Sequence[int]) -> r.Aggregate:
    """Aggregates of one argument over its values, of each group each once."""
    width = len(node.keys)
    names = tuple(f"k{at}" for at in range(width + 1))
    below = _counted(node.input, (*node.keys, value), names)
    own = column(width, below.schema.columns[width])
    calls = [AggregateCall(node.aggregates[at].function, (own,)) for at in which]
    shown = (*node.names[:width], *(node.names[width + at] for at in which))
    return r.Aggregate(below, _columns(below, width), tuple(calls), shown)


def _counted(input: r.Relation, keys: tuple[Scalar, ...], names: tuple[str, ...]) -> r.Project:
    """The values of scalars, each once, of which is kept how often they are there."""
    count = AggregateCall("count()")
    unused = next(f"{_COUNT}{at}" for at in range(len(names) + 1) if f"{_COUNT}{at}" not in names)
    below = r.Aggregate(input, keys, (count,), (*names, unused))
    return r.Project(below, _columns(below, len(keys)), names)


def _columns(relation: r.Relation, count: int) -> tuple[Scalar, ...]:
    """The first columns of a relation."""
    return tuple(column(at, each) for at, each in enumerate(relation.schema.columns[:count]))


def _some(node: r.Aggregate, which: list[int]) -> r.Aggregate:
    """The aggregation with some of its aggregates."""
    width = len(node.keys)
    names = [*node.names[:width], *(node.names[width + at] for at in which)]
    calls = tuple(node.aggregates[at] for at in which)
    return replace(node, aggregates=calls, names=tuple(names))
