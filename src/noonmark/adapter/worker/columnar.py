"""A job over tables in files: a plan that is computed by kernels, all rows at once or in pieces.

The rows of an input that the plan takes in pieces (`noonmark.compute.contents.pieces`) are mapped
as they are stored, batch by batch; all others are one array for each column that is looked at.

Law: its rows are those of `worker.job.Answered` over the same inputs, or `NoKernel`: then nobody
was answered, and another way is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.rows import Row, finisher
from noonmark.compute.contents.evaluation import contents
from noonmark.compute.contents.order import repeated, sorted_places
from noonmark.compute.contents.pieces import Pieces, columns_used, split_of
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.updates import Errors, Ints, Rows, concat
from noonmark.compute.scalar.number import NO_KERNEL, NoKernel
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import arrow_type, from_array
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.node import Node
from noonmark.sql.ir.scalar import Scalar, columns_of

#: Rows that are made for the client at once.
_PIECE = 10_000


@dataclass(frozen=True)
class Input:
    """The rows of a leaf: the columns of its table, and what they must pass."""

    schema: Schema
    test: Scalar | None


@dataclass(frozen=True)
class InPieces:
    """How the rows of one input are taken: at most so many at once, in so many threads."""

    name: str
    rows: int
    threads: int


@dataclass(frozen=True)
class Columnar:
    """The rows of a plan as a client gets them: in order, with the columns that it asked for."""

    rest: r.Relation
    inputs: tuple[tuple[str, Input], ...]
    order: tuple[SortKey, ...]
    width: int
    pieces: InPieces | None = None

    def rows(self, files: Mapping[str, str]) -> Iterator[Row]:
        """The rows; `files` has the table of each input."""
        errors = Errors()
        large = self.pieces
        names = [name for name, _ in self.inputs if large is None or name != large.name]
        given = {name: self._whole(name, files, errors) for name in names}
        if large is None:
            return self._answer(contents(self.rest, given, errors), errors)
        split = split_of(self.rest, large.name)
        assert split is not None, "who asks for pieces has looked"
        made = Pieces(self.rest, split, given, large.threads)
        table = self._table(large.name, files)
        pieces = table.cut(large.rows)
        if split.reduction is None and not self.order:
            return self._streamed(made.streamed(pieces, table.read, errors), errors)
        return self._answer(made.rows(pieces, table.read, errors), errors)

    def _table(self, name: str, files: Mapping[str, str]) -> _Table:
        return _Table(dict(self.inputs)[name], columns_used(self.rest, name), files[name])

    def _whole(self, name: str, files: Mapping[str, str], errors: Errors) -> Rows:
        table = self._table(name, files)
        parts = [table.read(piece, errors) for piece in table.cut()]
        return concat(parts, dict(self.inputs)[name].schema)

    def _streamed(self, parts: Iterator[Rows], errors: Errors) -> Iterator[Row]:
        for rows in parts:
            yield from self._answer(rows, errors)
        _refuse(errors)

    def _answer(self, found: Rows, errors: Errors) -> Iterator[Row]:
        _refuse(errors)
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

    def _listed(self, found: Rows, places: Ints | None) -> Iterator[Any]:
        columns = self.rest.schema.columns[: self.width]
        finish = finisher([column.type for column in columns])
        for arrays, count in self._cut(found, places):
            values = [from_array(a, c.type) for a, c in zip(arrays, columns, strict=True)]
            yield from finish(zip(*values, strict=True) if values else [()] * count)

    def _cut(self, found: Rows, places: Ints | None) -> Iterator[tuple[list[pa.Array], int]]:
        """The columns of some rows after the other, and how many rows they are of."""
        for start in range(0, len(found), _PIECE):
            some = slice(start, start + _PIECE)
            at = pa.array(np.arange(len(found))[some] if places is None else places[some])
            yield [c.take(at) for c in found.columns[: self.width] if c is not None], len(at)


@dataclass(frozen=True)
class Tabled(Columnar):
    """The same rows as batches of columns, in the types in which they are stored."""

    def _listed(self, found: Rows, places: Ints | None) -> Iterator[Any]:
        columns = self.rest.schema.columns[: self.width]
        schema = pa.schema([(f"c{at}", arrow_type(c.type)) for at, c in enumerate(columns)])
        for arrays, count in self._cut(found, places):
            if len(arrays) != len(columns) or not columns:
                raise NoKernel  # a column that nobody asked for: rows have none either
            cast = [a.cast(f.type) for a, f in zip(arrays, schema, strict=True)]
            assert all(len(each) == count for each in cast)
            yield pa.RecordBatch.from_arrays(cast, schema=schema)


def _refuse(errors: Errors) -> None:
    """Raise the first of the errors, if there is one."""
    if errors.found:
        text = errors.found[0][0]
        raise error_of(text[:5], text[6:])


class _Table:
    """The rows of one input, mapped and not copied."""

    def __init__(self, given: Input, used: frozenset[int], path: str) -> None:
        self._test = given.test
        asked = used if given.test is None else used | columns_of(given.test)
        self._names = [n if at in asked else None for at, n in enumerate(given.schema.names)]
        self._used = used
        with pa.memory_map(path) as file:
            reader = pa.ipc.open_file(file)
            self._batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]

    def cut(self, rows: int | None = None) -> list[pa.RecordBatch]:
        """Pieces of at most so many rows, or as they are stored; at least one."""
        if rows is None:
            return self._batches
        return [
            batch.slice(start, rows)
            for batch in self._batches
            for start in range(0, max(1, batch.num_rows), rows)
        ]

    def read(self, piece: pa.RecordBatch, errors: Errors) -> Rows:
        """The rows of a piece that pass the test."""
        count = piece.num_rows
        diff = np.broadcast_to(np.int64(1), count)
        if DIFF in piece.schema.names:
            diff = piece.column(DIFF).to_numpy()
            if (diff < 0).any():
                raise NoKernel  # who reads it another way says which rows they are
        columns = [None if name is None else piece.column(name) for name in self._names]
        rows = Rows(tuple(columns), np.broadcast_to(np.int64(0), count), diff)
        if self._test is None:
            return rows
        places = kept(self._test, rows, errors)
        if len(places) == count:
            return rows
        # What only the test looks at is not taken.
        wanted = (c if at in self._used else None for at, c in enumerate(rows.columns))
        return rows.with_columns(tuple(wanted)).take(places)
