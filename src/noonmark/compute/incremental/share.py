"""A task's share of a tick that is cut over many (`noonmark.compute.plan.levels`).

Law: of every operator up to the level of the task, ``delta`` is this task's share of the changes;
the shares of all tasks sum to the changes that one `Evaluation` of everything would find.

The changes of other inputs that a join meets are all of them, and not the share: those that are
stored are looked up by key in the collections, like what was there before; the others came with
the share.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.lookups import AtHand, Met
from noonmark.compute.incremental.old import Old
from noonmark.compute.incremental.rules import Evaluation
from noonmark.compute.kernel.updates import Changes, Rows
from noonmark.compute.plan.levels import is_stored
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar


class Share(Evaluation):
    """One level of one tick, in one of its tasks.

    Attributes:
        changed: the stored changes of all tasks.
        everywhere: the computed changes of all tasks, where a join needs them.
    """

    def __init__(
        self,
        inputs: Mapping[str, Changes],
        old: Old,
        upper: int,
        due: Mapping[r.Relation, Rows],
        *,
        changed: Old,
        everywhere: Mapping[r.Relation, Rows],
    ) -> None:
        super().__init__(inputs, old, upper, due)
        self.changed = changed
        self.everywhere = everywhere

    def put(self, node: r.Relation, changes: Changes) -> None:
        """What is known of an operator: an earlier level found it, or it was sent here."""
        self._made[node] = changes

    def met(self, leaf: r.Relation, rows: Rows) -> Met | None:
        """All changes of an input, those of other tasks too."""
        del rows
        if is_stored(leaf):
            some = any(name in self.inputs for name in r.scans(leaf))
            return StoredChanges(self.changed, leaf) if some else None
        found = self.everywhere.get(leaf)
        return None if found is None else AtHand(found)


@dataclass(frozen=True, eq=False)
class StoredChanges:
    """The changes of a relation that follows from collections row by row."""

    changed: Old
    leaf: r.Relation

    def everything(self) -> Rows:
        """All of them."""
        return self.changed.whole(self.leaf)

    def ask(self, key: tuple[Scalar, ...], probes: Sequence[pa.Array]) -> Found:
        """Pairs of a probe and a change with its key."""
        return self.changed.ask(self.leaf, key, probes)
