"""Rows on their way through a group of joins.

Law: after all leaves are reached the rows are the combinations of the group that begin with the
given rows, each from the latest of its times on, as often as the product of its diffs says.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.updates import Errors, Ints, Rows
from noonmark.compute.plan.multiway import MultiwayJoin, Step
from noonmark.sql.ir.scalar import may_fail

Found = tuple[Ints, Rows]


class Binding:
    """Rows on their way through a group: the columns of all leaves, of those reached so far.

    `origin` says for each row where it began.
    """

    def __init__(
        self, group: MultiwayJoin, rows: Rows, origin: Ints, reached: tuple[int, ...]
    ) -> None:
        self.group = group
        self.rows = rows
        self.origin = origin
        self.reached = reached

    @classmethod
    def begin(cls, group: MultiwayJoin, leaf: int, rows: Rows, origin: Ints) -> Binding:
        """The rows of one leaf."""
        columns: list[pa.Array | None] = [None] * group.starts[-1]
        start = group.starts[leaf]
        columns[start : start + len(rows.columns)] = rows.columns
        return cls(group, rows.with_columns(columns), origin, (leaf,))._checked(leaf)

    def probes(self, step: Step) -> tuple[list[pa.Array], Ints]:
        """The values by which the next leaf is asked, row by row, and whose they are."""
        arrays, _ = values_of(step.probes, self.rows)
        fine = np.ones(len(self.rows), np.bool_)
        for array, null_equal in zip(arrays, step.null_equal, strict=True):
            if not null_equal and array.null_count:
                fine &= array.is_valid().to_numpy(zero_copy_only=False)
        asked = np.flatnonzero(fine)
        if len(asked) == len(self.rows):
            return arrays, asked
        return [array.take(pa.array(asked)) for array in arrays], asked

    def meet(self, step: Step, found: Found) -> Binding:
        """The rows with their partners: there from the later of the two times on."""
        places, other = found
        own = self.rows.take(places)
        columns = list(own.columns)
        start = self.group.starts[step.leaf]
        columns[start : start + len(other.columns)] = other.columns
        time = np.maximum(own.time, other.time)
        rows = Rows(tuple(columns), time, own.diff * other.diff)
        walked = Binding(self.group, rows, self.origin[places], (*self.reached, step.leaf))
        return walked._checked(step.leaf)

    @classmethod
    def together(cls, parts: Sequence[Binding]) -> Binding:
        """Rows that have reached the same leaves, one or more, as one."""
        if len(parts) == 1:
            return parts[0]
        columns = [
            None if arrays[0] is None else pa.concat_arrays(arrays)
            for arrays in zip(*(part.rows.columns for part in parts), strict=True)
        ]
        time = np.concatenate([part.rows.time for part in parts])
        diff = np.concatenate([part.rows.diff for part in parts])
        origin = np.concatenate([part.origin for part in parts])
        return cls(parts[0].group, Rows(tuple(columns), time, diff), origin, parts[0].reached)

    def _checked(self, leaf: int) -> Binding:
        """Only the rows for which everything holds that can be known by now."""
        rows, origin = self.rows, self.origin
        for predicate, used in zip(self.group.predicates, self.group.needs, strict=True):
            now = leaf in used or (not used and len(self.reached) == 1)
            if now and used <= set(self.reached):
                passed = kept(predicate, rows, Errors())
                if len(passed) < len(rows):
                    rows, origin = rows.take(passed), origin[passed]
        return Binding(self.group, rows, origin, self.reached)

    def end(self, errors: Errors) -> tuple[Rows, Ints]:
        """The outputs of the rows that pass the last predicates; what fails is an error."""
        group = self.group
        rows, origin = self.rows, self.origin
        for predicate in group.loud:
            if may_fail(predicate):
                passed = kept(predicate, rows, errors)
                rows, origin = rows.take(passed), origin[passed]
        arrays, _ = values_of(group.outputs, rows)
        return rows.with_columns(arrays), origin
