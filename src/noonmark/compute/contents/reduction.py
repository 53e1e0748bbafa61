"""Operators that are computed of parts of their input: what is known of each part is merged.

Law: for a reduction N, and however R is cut into parts,

    N(R1 + ... + Rn) = shown(merged(partial(R1), ..., partial(Rn)))

and what was merged may be merged again with more.

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from noonmark.compute.contents import group
from noonmark.compute.kernel.updates import Errors, Rows, concat
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r

T = TypeVar("T")


class Reduction(Protocol[T]):
    """See the module."""

    def partial(self, rows: Rows, errors: Errors) -> T:
        """What is known of a part."""
        ...

    def merged(self, parts: Sequence[T]) -> T:
        """What is known of several parts, of one at least."""
        ...

    def size(self, part: T) -> int:
        """How many rows or groups are kept of a part."""
        ...

    def shown(self, part: T, errors: Errors) -> Rows:
        """The operator's rows, of what is known of the whole input."""
        ...


@dataclass(frozen=True)
class Grouped:
    """Groups, with what their aggregates follow from."""

    node: r.Aggregate

    def partial(self, rows: Rows, errors: Errors) -> group.Groups:
        """See `Reduction`."""
        return group.partial(self.node, rows, errors)

    def merged(self, parts: Sequence[group.Groups]) -> group.Groups:
        """See `Reduction`."""
        return group.merged(self.node, parts)

    def size(self, part: group.Groups) -> int:
        """See `Reduction`."""
        return part.size

    def shown(self, part: group.Groups, errors: Errors) -> Rows:
        """See `Reduction`."""
        return group.shown(self.node, part, errors)


@dataclass(frozen=True)
class Kept:
    """Rows, of which some are left out: of a part those that are none of the whole.

    Attributes:
        schema: of the rows.
        of_part: leaves out what no other part can bring back.
        of_all: leaves out all that is left out.
    """

    schema: Schema
    of_part: Callable[[Rows], Rows]
    of_all: Callable[[Rows], Rows]

    def partial(self, rows: Rows, errors: Errors) -> Rows:
        """See `Reduction`."""
        del errors
        return self.of_part(rows)

    def merged(self, parts: Sequence[Rows]) -> Rows:
        """See `Reduction`."""
        return self.of_part(concat(parts, self.schema))

    def size(self, part: Rows) -> int:
        """See `Reduction`."""
        return len(part)

    def shown(self, part: Rows, errors: Errors) -> Rows:
        """See `Reduction`."""
        del errors
        return self.of_all(part)
