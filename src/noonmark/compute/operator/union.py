"""Union: [Union(R, S, ...)](r) = [R](r) + [S](r) + ... Law (linear): d(Union(R, S)) = dR + dS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.kernel.updates import Changes, Rows, concat
from noonmark.compute.operator.base import Key, Operator, merged
from noonmark.compute.plan.operators import Way
from noonmark.compute.plan.pushdown import can_push_down, is_whole
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation


class Union(Operator[r.Union]):
    """See the module."""

    def way(self, node: r.Union) -> Way:
        """The changes of all inputs."""
        del node
        return Way.LINEAR

    def can_push_down(self, node: r.Union, key: Scalar) -> bool:
        """By what all inputs are asked by."""
        return all(can_push_down(each, key) for each in node.inputs)

    def is_whole(self, node: r.Union) -> bool:
        """If all inputs are."""
        return all(map(is_whole, node.inputs))

    def is_monotone(self, node: r.Union) -> bool:
        """Always."""
        del node
        return True

    def delta(self, node: r.Union, tick: Evaluation) -> Changes:
        """The changes of all inputs."""
        parts = [tick.delta(each) for each in node.inputs]
        return Changes(concat([part.rows for part in parts], node.schema), tuple(merged(parts)))

    def whole(self, node: r.Union, old: Old) -> Rows:
        """All rows of all inputs."""
        return concat([old.whole(each) for each in node.inputs], node.schema)

    def ask(
        self, node: r.Union, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """The rows of all inputs with the key."""
        found = [old.find(each, key, probes, wanted) for each in node.inputs]
        rows = concat([rows for _, rows in found], node.schema)
        return np.concatenate([places for places, _ in found]), rows

    def can(self, node: r.Union) -> bool:
        """Always."""
        del node
        return True

    def contents(self, node: r.Union, asked: ContentsEvaluation) -> Rows:
        """All rows of all inputs."""
        return concat([asked.rows(each) for each in node.inputs], node.schema)
