"""How each operator of a view is maintained, and whether a change may cost all of its state.

A `Decision` is made of the plan alone: which rule serves an operator, and which relations a change
of it reads as a whole. EXPLAIN prints decisions, MAINTENANCE = STRICT refuses some of them, and
what no rule maintains is refused when it is created. Nothing is decided by what EXPLAIN says.

Law: ``decision(node).costs_all`` iff some change of the operator, however small, reads all rows of
a relation; but not of one that is a single row, and not if only the rows that switch are read
(`noonmark.compute.plan.range_delta`).

Where it runs: driver; pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.multiway import Keys, MultiwayJoin, Step, is_one_row, multiway_at, path
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.plan.pushdown import asked_whole, can_push_down, operators
from noonmark.compute.plan.range_delta import RangeDelta, range_delta_of
from noonmark.sql.ir import relation as r


@dataclass(frozen=True)
class Lookup:
    """One step of a path: the leaf that it reaches, and how.

    Attributes:
        switch: how the rows that switch are found, where there is no key and one row changed.
    """

    leaf: r.Relation
    step: Step
    switch: RangeDelta | None

    @property
    def reads_all(self) -> bool:
        """Whether it reads all of the leaf, and that may be any number of rows."""
        return not self.step.key and self.switch is None and not is_one_row(self.leaf)


@dataclass(frozen=True)
class Path:
    """How a change of one input finds the others."""

    first: r.Relation
    lookups: tuple[Lookup, ...]

    @property
    def reads_all(self) -> bool:
        """Whether one of the others is read as a whole."""
        return any(each.reads_all for each in self.lookups)


@dataclass(frozen=True)
class Decision:
    """How one operator is maintained.

    Attributes:
        paths: of an inner join, for each of its inputs.
        whole: the relations that a change reads all of.
    """

    node: r.Relation
    way: Way
    paths: tuple[Path, ...] = ()
    whole: tuple[r.Relation, ...] = ()

    @property
    def costs_all(self) -> bool:
        """Whether a change may cost all of the operator's state."""
        return bool(self.whole) or self.way is Way.WHOLE

    @property
    def reads_groups(self) -> bool:
        """Whether a change reads all rows of its key, however many these are."""
        return self.way is Way.BY_KEY


def decisions(plan: r.Relation, keys: Keys) -> Iterator[Decision]:
    """Of every operator of a plan, each once, from the bottom."""
    return (decision(node, keys) for node in operators(plan))


def decision(node: r.Relation, keys: Keys) -> Decision:
    """How an operator is maintained; `keys` are those of the collections."""
    group = multiway_at(node)
    if group is not None:
        paths = tuple(_paths(group, keys))
        found = [each.leaf for path in paths for each in path.lookups if each.reads_all]
        return Decision(node, Way.PATHS, paths, tuple(dict.fromkeys(found)))
    way = operator_of(node).way(node)
    if way not in (Way.BY_KEY, Way.WHOLE):
        return Decision(node, way)
    return Decision(node, way, whole=tuple(asked_whole(node, keys)))


def _paths(group: MultiwayJoin, keys: Keys) -> Iterator[Path]:
    for first, leaf in enumerate(group.leaves):
        lookups = [
            Lookup(
                group.leaves[step.leaf], step, None if at else range_delta_of(group, first, step)
            )
            for at, step in enumerate(path(group, first, keys, can_push_down))
        ]
        yield Path(leaf, tuple(lookups))


def changes_cost_all(definition: Definition, keys: Keys) -> bool:
    """Whether some change of the view reads all of a relation: what STRICT refuses."""
    return any(each.costs_all for each in decisions(definition.plan, keys))
