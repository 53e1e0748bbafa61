"""A job over tables in files: a plan that is computed by kernels, all rows at once.

Law: its rows are those of `worker.job.Answered` over the same inputs, or `NoKernel`: then nobody
was answered, and another way is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.rows import Row, finisher
from noonmark.compute.contents.evaluation import contents
from noonmark.compute.contents.order import repeated, sorted_places
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.updates import Errors, Ints, Rows, one_array
from noonmark.compute.scalar.number import NO_KERNEL, NoKernel
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import from_array
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.node import Node
from noonmark.sql.ir.scalar import Scalar

#: What a file says beside its columns: how many rows it has. Without a column of multiplicities,
#: each is there once.
ROWS = b"noonmark.rows"
#: Rows that are made for the client at once.
_PIECE = 10_000


@dataclass(frozen=True)
class Input:
    """The rows of a leaf: the columns of its table, and what they must pass."""

    schema: Schema
    test: Scalar | None


@dataclass(frozen=True)
class Columnar:
    """The rows of a plan as a client gets them: in order, with the columns that it asked for."""

    rest: r.Relation
    inputs: tuple[tuple[str, Input], ...]
    order: tuple[SortKey, ...]
    width: int

    def rows(self, files: Mapping[str, str]) -> Iterator[Row]:
        """The rows; `files` has the table of each input."""
        errors = Errors()
        given = {name: _read(each, files[name], errors) for name, each in self.inputs}
        found = contents(self.rest, given, errors)
        if errors.found:
            text = errors.found[0][0]
            raise error_of(text[:5], text[6:])
        return self._listed(*self._placed(found))

    def parts(self) -> Iterator[Node]:
        """See `worker.job.Job.parts`."""
        yield self.rest
        yield from self.order
        yield from (each.test for _, each in self.inputs if each.test is not None)

    def _placed(self, found: Rows) -> tuple[Rows, Ints | None]:
        found = repeated(found)
        if not self.order:
            return found, None
        try:
            return found, sorted_places(self.order, found, self.rest.schema)
        except NO_KERNEL as error:
            raise NoKernel from error

    def _listed(self, found: Rows, places: Ints | None) -> Iterator[Row]:
        columns = self.rest.schema.columns[: self.width]
        finish = finisher([column.type for column in columns])
        for start in range(0, len(found), _PIECE):
            some = slice(start, start + _PIECE)
            at = pa.array(np.arange(len(found))[some] if places is None else places[some])
            arrays = [c.take(at) for c in found.columns[: self.width] if c is not None]
            values = [from_array(a, c.type) for a, c in zip(arrays, columns, strict=True)]
            yield from finish(zip(*values, strict=True) if values else [()] * len(at))


def _read(each: Input, path: str, errors: Errors) -> Rows:
    """The rows of one input, mapped and not copied."""
    with pa.memory_map(path) as file:
        table = pa.ipc.open_file(file).read_all()
    count = int(table.schema.metadata[ROWS])
    diff = np.broadcast_to(np.int64(1), count)
    if DIFF in table.schema.names:
        diff = one_array(table.column(DIFF)).to_numpy()
        if (diff < 0).any():
            raise NoKernel  # who reads it another way says which rows they are
    columns = tuple(one_array(table.column(name)) for name in each.schema.names)
    rows = Rows(columns, np.broadcast_to(np.int64(0), count), diff)
    return rows if each.test is None else rows.take(kept(each.test, rows, errors))
