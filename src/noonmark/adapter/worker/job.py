"""What is evaluated for a statement: a value that can be sent to a worker.

Law: ``job.rows(inputs)`` is the same wherever it runs. A job has no state, and reads nothing but
its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from noonmark.adapter.peek.rows import Row, finisher, identified
from noonmark.sql.evaluate import evaluate as value_of
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.node import Node, walk
from noonmark.sql.ir.scalar import Literal, Scalar
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.meaning.relation import Multiset, in_order

#: Nodes and values of a job that is sent from the loop itself.
_SMALL = 100

#: The rows of an input, with their multiplicities; a row may be there several times.
Given = Sequence[tuple[Row, int]]
Inputs = Mapping[str, Given]


@dataclass(frozen=True)
class Computed:
    """The rows of a plan as pairs of a row and how often it is there.

    Attributes:
        rest: the plan, over inputs.
        tests: what the rows of an input must pass before they are one, by the input's name.
        picks: the columns that are all that the plan gives of its one input.
    """

    rest: r.Relation
    tests: tuple[tuple[str, Scalar], ...] = ()
    picks: tuple[int, ...] | None = None

    def multiset(self, inputs: Inputs) -> Multiset:
        """The rows."""
        tests = dict(self.tests)
        given = {name: _summed(rows, tests.get(name)) for name, rows in inputs.items()}
        if self.picks is None:
            return contents(self.rest, given)
        (rows,) = given.values()
        found: Multiset = {}
        for row, count in rows.items():
            picked = tuple([row[at] for at in self.picks])
            found[picked] = found.get(picked, 0) + count
        return found

    def rows(self, inputs: Inputs) -> Iterable[Any]:
        """The rows, as pairs."""
        return self.multiset(inputs).items()

    def parts(self) -> Iterator[Node]:
        """See `Job.parts`."""
        yield self.rest
        yield from (test for _, test in self.tests)


def _summed(rows: Given, test: Scalar | None) -> Multiset:
    found: Multiset = {}
    for row, count in rows:
        if test is None or value_of(test, row) is True:
            found[row] = found.get(row, 0) + count
    return {row: count for row, count in found.items() if count}


@dataclass(frozen=True)
class Answered:
    """The rows of a plan as a client gets them: in order, with the columns that it asked for."""

    plan: Computed
    order: tuple[SortKey, ...]
    width: int

    def rows(self, inputs: Inputs) -> list[Row]:
        """The rows."""
        return self.finished(self.plan.multiset(inputs))

    def parts(self) -> Iterator[Node]:
        """See `Job.parts`."""
        yield from self.plan.parts()
        yield from self.order

    def finished(self, rows: Multiset) -> list[Row]:
        """The rows of the plan as the client gets them."""
        listed: list[Row]
        if self.order:
            listed = in_order(rows, self.plan.rest, self.order)
        else:
            listed = [row for row, count in rows.items() for _ in range(count)]
        return client_rows(self.plan.rest, self.width)(listed)


def client_rows(relation: r.Relation, width: int) -> Callable[[Iterable[Row]], list[Row]]:
    """Makes rows of a relation fit for a client."""
    columns = relation.schema.columns
    finish = finisher([column.type for column in columns[:width]])
    if width == len(columns):
        return finish
    return lambda rows: finish(row[:width] for row in rows)


@dataclass(frozen=True)
class Valued:
    """The values of lists of scalars, each list over one row."""

    scalars: tuple[tuple[Scalar, ...], ...]
    over: tuple[Row, ...]

    def rows(self, _: Inputs) -> list[Row]:
        """One row of values for each list."""
        pairs = zip(self.scalars, self.over, strict=True)
        return [tuple([value_of(each, row) for each in scalars]) for scalars, row in pairs]

    def parts(self) -> Iterator[Node]:
        """See `Job.parts`."""
        yield from chain.from_iterable(self.scalars)


class Job(Protocol):
    """See the module."""

    def rows(self, inputs: Any, /) -> Iterable[Any]:
        """What it comes to."""
        ...

    def parts(self) -> Iterator[Node]:
        """The plans and scalars that it consists of."""
        ...


def received(job: Job, inputs: Mapping[str, Given]) -> dict[str, Given]:
    """The inputs of a job as another process sent them, fit for a dict.

    What is pickled is another NaN: a row that a transaction took back would be another one than the
    row that was there.
    """
    nodes = (node for part in job.parts() for node in walk(part))
    schemas = {node.collection: node.schema for node in nodes if isinstance(node, r.Scan)}
    return {
        name: identified(schemas[name])(rows) if name in schemas else rows
        for name, rows in inputs.items()
    }


def is_small(job: Job) -> bool:
    """Whether to send it is a matter of microseconds: it has few nodes, with few values in them."""
    left = _SMALL
    for part in job.parts():
        for node in walk(part):
            values = node.rows if isinstance(node, r.Constant) else ()
            if isinstance(node, Literal) and isinstance(node.value, tuple):
                values = node.value
            left -= 1 + len(values)
            if left < 0:
                return False
    return True
