"""Join: pairs of rows with equal keys, for which a condition holds; and rows without a partner.

Law: inner joins, as far as they stand on each other, are one join of many inputs, which is linear
in each of them (`noonmark.compute.plan.multiway`). All others have the key of the join: rows with
different keys have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.contents import join as pairs
from noonmark.compute.incremental.binding import Binding, Found
from noonmark.compute.incremental.lookups import combinations
from noonmark.compute.kernel import keyed
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.updates import BEFORE, Changes, Errors, Rows, concat
from noonmark.compute.operator.base import Key, Keyed, Step, Wanted, inside
from noonmark.compute.plan.multiway import MultiwayJoin, flat_join, multiway_of
from noonmark.compute.plan.operators import Way
from noonmark.compute.plan.pushdown import asked_by, can_push_down, key_leaf
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation

#: Kinds that are linear in their left side, and in their right side.
_LINEAR_LEFT = (r.JoinKind.INNER, r.JoinKind.LEFT, r.JoinKind.SEMI, r.JoinKind.ANTI)
_LINEAR_RIGHT = (r.JoinKind.INNER, r.JoinKind.RIGHT)
_FROM_LEFT = (r.JoinKind.SEMI, r.JoinKind.ANTI, r.JoinKind.LEFT)


class Join(Keyed[r.Join]):
    """See the module."""

    def title(self, node: r.Join) -> str:
        """With its kind."""
        return f"Join {node.kind.value}"

    def way(self, node: r.Join) -> Way:
        """By paths, or by key."""
        return Way.PATHS if node.kind is r.JoinKind.INNER else super().way(node)

    def multiway(self, node: r.Join) -> MultiwayJoin | None:
        """An inner join, as far down as joins reach."""
        return multiway_of(node) if node.kind is r.JoinKind.INNER else None

    def inputs(self, node: r.Join) -> tuple[r.Relation, ...]:
        """Those of the join of many inputs, or its own two."""
        group = self.multiway(node)
        return (node.left, node.right) if group is None else group.leaves

    def flat(self, node: r.Join) -> MultiwayJoin | None:
        """Itself, if it is an inner join that cannot fail."""
        return flat_join(node) if node.kind is r.JoinKind.INNER else None

    def sides(self, node: r.Join) -> Sequence[tuple[r.Relation, Key]]:
        """The keys of both sides."""
        return [
            (node.left, tuple(key.left for key in node.keys)),
            (node.right, tuple(key.right for key in node.keys)),
        ]

    def over_scans(self, node: r.Join) -> r.Relation:
        """Over two collections."""
        left, right = r.Scan("0", node.left.schema), r.Scan("1", node.right.schema)
        return replace(node, left=left, right=right)

    def is_monotone(self, node: r.Join) -> bool:
        """If no row is there for want of a partner."""
        return node.kind in (r.JoinKind.INNER, r.JoinKind.SEMI)

    def can_push_down(self, node: r.Join, key: Scalar) -> bool:
        """An inner join by what one of its inputs is; others by the side that they keep."""
        if node.kind is r.JoinKind.INNER:
            return key_leaf(multiway_of(node), key) is not None
        if node.kind not in _FROM_LEFT:
            return False
        left = inside(key, node.left) and can_push_down(node.left, key)
        return left and any(can_push_down(node.right, each.right) for each in node.keys)

    def delta(self, node: r.Join, tick: Evaluation) -> Changes:
        """One path for each input that changed; or by key."""
        group = self.multiway(node)
        return super().delta(node, tick) if group is None else tick.joined(node, group)

    def ask(
        self, node: r.Join, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """An inner join is walked from the values of its key."""
        if node.kind is not r.JoinKind.INNER:
            return super().ask(node, old, key, probes, wanted)
        group = asked_by(multiway_of(node), key)
        count = len(probes[0])
        once = np.ones(count, np.int64)
        begun = Rows(tuple(probes), once * BEFORE, once)
        binding = Binding.begin(group, len(group.leaves) - 1, begun, np.arange(count))
        made = list(combinations(old, binding, Errors()))
        places = [origin for _, origin in made]
        rows = concat([rows for rows, _ in made], node.schema)
        return np.concatenate(places) if places else np.zeros(0, np.int64), rows

    def asked_sides(
        self, node: r.Join, old: Old, key: Key, probes: Sequence[pa.Array]
    ) -> list[Rows]:
        """The left rows with the key, and the right rows that these may meet."""
        left = old.contents(node.left, key, probes)
        used = [k for k in node.keys if can_push_down(node.right, k.right)]
        asked, _ = values_of([k.left for k in used], left)
        return [left, old.contents(node.right, tuple(k.right for k in used), asked)]

    def has_kernel(self, node: r.Join) -> bool:
        """Semi, anti and left joins by exact keys, if nothing fails."""
        return keyed.can_join(node)

    def kernel(self, node: r.Join, *sides: Rows) -> Rows:
        """Its pairs, and rows without a partner."""
        return keyed.join(node, *sides)

    def can(self, node: r.Join) -> bool:
        """If equal keys are the same, or can be made so."""
        return pairs.can_join(node)

    def linear_in(self, node: r.Join) -> tuple[r.Relation, ...]:
        """The sides whose rows without a partner are not its own, or are so one by one."""
        sides = ((node.left, _LINEAR_LEFT), (node.right, _LINEAR_RIGHT))
        return tuple(side for side, kinds in sides if node.kind in kinds)

    def of_pieces(
        self, node: r.Join, below: r.Relation, asked: ContentsEvaluation, wanted: Wanted
    ) -> Step:
        """The pairs of a piece; where the keys of the other side are is found out once."""
        is_left = below is node.left
        side = asked.rows(node.right if is_left else node.left)
        known = pairs.places_by_key(node, side, is_right=is_left)

        def step(rows: Rows, errors: Errors) -> Rows:
            left, right = (rows, side) if is_left else (side, rows)
            return pairs.join(node, left, right, errors, known=known, wanted=wanted)

        return step

    def contents(self, node: r.Join, asked: ContentsEvaluation) -> Rows:
        """Its pairs, and rows without a partner."""
        return pairs.join(node, asked.rows(node.left), asked.rows(node.right), asked.errors)
