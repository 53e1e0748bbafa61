"""A plan in levels: what tasks do side by side, and where rows have to meet between them.

The changes of a plan may be cut over tasks. Let d(R) be the changes of a relation, and d_k(R) the
share of them that task k has. The law of every level is

    d(R) = the sum of d_k(R) over all k

Linear operators and inner joins keep it, however their inputs were cut: filters and projections
are linear, and each term of a delta join is linear in the one input whose changes it begins with.
The changes of the other inputs, which it also meets, are looked up where the collection stores
them already (`is_stored`); only those that a lower level computed are sent to every task, and of
these the last one of a join need not be (`order_of`).

A *stateful* operator asks what was there before, by key: all changes of one key have to be in one
task. So it begins a level, and its inputs are sent there by the hash of the key.

Law (levels): an operator's level is that of its highest input; one more, if it is stateful, or if
it is a join that needs all changes of an input of that level.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from noonmark.compute.plan.keys import is_keyed
from noonmark.compute.plan.multiway import MultiwayJoin, multiway_at
from noonmark.compute.plan.pushdown import inputs_of, is_whole, operators
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.temporal import temporal


def is_stateful(node: r.Relation) -> bool:
    """Whether all changes of one key have to be in one task."""
    return multiway_at(node) is None and is_keyed(node)


def is_stored(node: r.Relation) -> bool:
    """Whether the changes of a relation follow, row by row, from those that collections store."""
    inside = [each for each in walk_once(node) if isinstance(each, r.Relation)]
    return is_whole(node) and not any(is_keyed(each) or temporal(each) for each in inside)


def order_of(group: MultiwayJoin) -> list[int]:
    """The inputs of a join in the order of its terms: those that are stored first."""
    return sorted(range(len(group.leaves)), key=lambda at: not is_stored(group.leaves[at]))


def met_everywhere(node: r.Relation) -> tuple[r.Relation, ...]:
    """The inputs of which every task needs all changes: computed ones, except for the last."""
    group = multiway_at(node)
    if group is None:
        return ()
    return tuple(group.leaves[at] for at in order_of(group)[:-1] if not is_stored(group.leaves[at]))


class Levels:
    """The operators of a plan by level."""

    def __init__(self, plan: r.Relation) -> None:
        self.plan = plan
        self.nodes: Sequence[r.Relation] = tuple(operators(plan))
        self.number = {node: at for at, node in enumerate(self.nodes)}
        self.level: dict[r.Relation, int] = {}
        for node in self.nodes:
            below = max((self.level[each] for each in inputs_of(node)), default=0)
            everywhere = [self.level[each] + 1 for each in met_everywhere(node)]
            self.level[node] = max([below + is_stateful(node), *everywhere])

    @property
    def last(self) -> int:
        """The highest level."""
        return max(self.level.values())

    def at(self, level: int) -> list[r.Relation]:
        """The operators of a level, from the bottom."""
        return [node for node in self.nodes if self.level[node] == level]

    @cached_property
    def users(self) -> dict[r.Relation, list[r.Relation]]:
        """For each operator those that it is an input of."""
        made: dict[r.Relation, list[r.Relation]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for below in dict.fromkeys(inputs_of(node)):
                made[below].append(node)
        return made

    def carried(self, level: int) -> list[r.Relation]:
        """The operators up to a level whose changes a later one still needs as they are cut."""
        return [
            node
            for node in self.nodes
            if self.level[node] <= level < self._needed(node) and not is_stored(node)
        ]

    def _needed(self, node: r.Relation) -> int:
        """The last level at which the changes of an operator are looked at."""
        ends = [self.level[user] - is_stateful(user) for user in self.users[node]]
        return max([self.level[node], *ends])
