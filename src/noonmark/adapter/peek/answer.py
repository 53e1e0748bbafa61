"""The answer of a planned query at one time, and which way it is had.

    constant     no collection is read
    statistics   it asks only how many rows there are, which the batches know
    at once      every leaf is in memory and small: no waiting
    columns      more than `COLUMNS_ROWS_MIN` rows, and kernels for all of it: by a worker, at
                 once or in pieces
    in process   the leaves together touch at most `IN_PROCESS_ROWS_MAX` rows
    stream       one collection, filtered and projected: piece by piece, in bounded memory
    spark        everything else: piece by piece, too

What is evaluated outside of Spark is done here, on the adapter's loop, when `worker.effort` says
that it is little; else by a statement worker, which can be killed.

Law: every way gives the same multiset, and the same order where one is asked for. A view among the
inputs that has no answer at that time makes the query fail with the view's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from noonmark.adapter.contract import Chunks, Row
from noonmark.adapter.peek.chunks import CHUNK_ROWS, Listed, Streamed
from noonmark.adapter.peek.columns import Columns
from noonmark.adapter.peek.counts import counted, only_counts
from noonmark.adapter.peek.gather import Gatherer, Given, Multiset, own_rows, touched
from noonmark.adapter.peek.rows import identified
from noonmark.adapter.peek.shape import Leaf, Shape, shape_of
from noonmark.adapter.peek.tables import TableFiles
from noonmark.adapter.sequence.options import SCHEMA as SEQUENCE
from noonmark.adapter.system.relations import relations
from noonmark.adapter.worker.columnar import Columnar, Input, Tabled
from noonmark.adapter.worker.effort import is_little, longest_value
from noonmark.adapter.worker.errors import OutOfMemory
from noonmark.adapter.worker.job import Answered, Computed, client_rows
from noonmark.adapter.worker.pool import Pool, Result
from noonmark.compute.contents.evaluation import has_rules
from noonmark.compute.contents.order import can_sort
from noonmark.compute.scalar.number import NoKernel
from noonmark.errors import EvaluationError
from noonmark.persist.log.state import Collection, State
from noonmark.sql.evaluate import PARAMETERS
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import Ask, asked, bind, is_volatile
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.effort import LITTLE
from noonmark.sql.ir.scalar import Compare, Or, Scalar, column, conjunction
from noonmark.sql.meaning.relation import in_order

IN_PROCESS_ROWS_MAX = 100_000
#: Fewer rows are asked one by one before a worker has been given a table of them.
COLUMNS_ROWS_MIN = 2_000
#: Rows of relations that are not collections: made at the moment of the query.
SystemRows = Callable[[str], Sequence[Row]]
#: Asks Spark: the plan, the time; rows in no order.
AskSpark = Callable[[r.Relation, int], Awaitable[Multiset]]
#: Asks Spark for the rows as a client gets them.
StreamSpark = Callable[["Peek", int], Awaitable[Chunks]]


@dataclass(frozen=True)
class Peek:
    """A query that is ready to be asked.

    Attributes:
        relation: the simplified plan, every scan of a collection or of a system relation.
        order: the order that the client asked for, over the columns of the relation.
        width: how many columns of the relation the client gets.
        shape: its leaves and the rest.
        system: the names among its scans that are system relations.
        asks: the kinds of what the plan still needs to be told when it is made.
        values: those of the parameters, once it is bound.
        now: the time, once it is bound.
    """

    relation: r.Relation
    order: tuple[SortKey, ...]
    width: int
    shape: Shape
    system: frozenset[str] = frozenset()
    asks: frozenset[type[Scalar]] = frozenset()
    values: tuple[Any, ...] = ()
    now: int | None = None

    @classmethod
    def of(
        cls,
        relation: r.Relation,
        order: tuple[SortKey, ...] = (),
        width: int | None = None,
        system: frozenset[str] = frozenset(),
    ) -> Peek:
        """The peek of a simplified plan."""
        columns = len(relation.schema) if width is None else width
        asks = asked(relation).union(*map(asked, order))
        return cls(relation, order, columns, shape_of(relation), system, asks)

    def bound(self, values: Sequence[Any], now: int | None = None) -> Peek:
        """The peek for one execution: parameters and the time in their places."""
        if not self.asks:
            return self
        order = tuple([bind(key, values, now) for key in self.order])
        shape = self.shape.bound(values, now)
        # Not `replace`: what was found out about the columns and collections stays known.
        made = object.__new__(Peek)
        vars(made).update(vars(self), order=order, shape=shape, values=tuple(values), now=now)
        return made

    @property
    def whole(self) -> r.Relation:
        """The whole plan of a bound peek, for who does not go by its shape."""
        return bind(self.relation, self.values, self.now)

    @cached_property
    def only_keys_ask(self) -> bool:
        """Whether parameters are nowhere but in the keys that decide about its leaves.

        Then the peek need not be bound to be answered by look-ups.
        """
        predicates = [leaf.predicate for leaf in self.shape.leaves if not leaf.decided]
        asking = [*self.order, *(each for each in predicates if each is not None)]
        return not self.shape.asks and not any(map(asked, asking))

    @cached_property
    def has_kernels(self) -> bool:
        """Whether kernels can compute it; the session's own functions are asked row by row."""
        sorts = not self.order or can_sort(self.relation, self.order)
        return not self.system and Ask not in self.asks and sorts and has_rules(self.shape.rest)

    @cached_property
    def only_counts(self) -> bool:
        """Whether it asks nothing but how many rows its collections have."""
        return Ask not in self.asks and not self.order and only_counts(self)

    @cached_property
    def is_volatile(self) -> bool:
        """Whether asking it does something, as nextval does."""
        return Ask in self.asks and is_volatile(self.relation)

    @cached_property
    def collections(self) -> tuple[str, ...]:
        """The collections of persist that it reads."""
        found = dict.fromkeys(leaf.collection for leaf in self.shape.leaves)
        return tuple(name for name in found if name not in self.system)

    @cached_property
    def finish(self) -> Callable[[Iterable[Row]], list[Row]]:
        """Makes rows fit for the client."""
        return client_rows(self.relation, self.width)


@dataclass(frozen=True)
class Path:
    """How a peek is answered, and why."""

    kind: str
    why: str


def path_of(
    peek: Peek,
    state: State,
    in_process_rows_max: int = IN_PROCESS_ROWS_MAX,
    columns: Columns | None = None,
    *,
    by_counts: bool = True,
) -> Path:
    """Which way a peek goes at this state of the location; by columns if they are given."""
    leaves = [leaf for leaf in peek.shape.leaves if leaf.collection not in peek.system]
    if not leaves:
        return Path("constant", "no collection is read")
    if by_counts and peek.only_counts:
        return Path("statistics", "the batches know how many rows there are")
    sizes = sizes_of(peek, state)
    total = sum(size for _, size in sizes)
    if columns is not None and columns.fits(peek, sizes):
        how = "" if columns.pieces(peek, sizes) is None else ", in pieces"
        return Path("columns", f"{total} rows are computed by kernels, in a worker{how}")
    if total <= in_process_rows_max:
        what = ", ".join(_how(leaf, state.collection(leaf.collection)) for leaf in leaves)
        return Path("in process", f"{what}: at most {total} rows are looked at")
    large = max(sizes, key=lambda each: each[1])
    if peek.shape.linear and not peek.order:
        return Path("stream", f"{large[0].collection} is filtered piece by piece")
    return Path(
        "spark",
        f"{large[0].collection} has about {large[1]} rows, and more than {in_process_rows_max} "
        "are not evaluated in process",
    )


def sizes_of(peek: Peek, state: State) -> list[tuple[Leaf, int]]:
    """The leaves that are collections, each with the rows that it makes us look at."""
    leaves = [leaf for leaf in peek.shape.leaves if leaf.collection not in peek.system]
    return [(leaf, touched(leaf, state.collection(leaf.collection))) for leaf in leaves]


def _how(leaf: Leaf, collection: Collection) -> str:
    if leaf.keys:
        names = ", ".join(leaf.scan.columns.names[at] for at in leaf.columns)
        return f"{collection.name} by ({names})"
    return collection.name


class Answers:
    """Answers peeks at times at which every input is complete. Runs on the adapter's loop."""

    def __init__(self, gatherer: Gatherer, state: Callable[[], State], pool: Pool) -> None:
        self._gatherer = gatherer
        self._state = state
        self._pool = pool
        self.files = TableFiles(gatherer)
        self.columns_rows_min = COLUMNS_ROWS_MIN
        self.in_process_rows_max = IN_PROCESS_ROWS_MAX

    def fast_path(self, peek: Peek, values: Sequence[Any], time: int) -> list[Row] | None:
        """The rows, when that needs no waiting and little work; else None."""
        if peek.asks and not peek.only_keys_ask:
            peek = peek.bound(values)
        if peek.only_counts:
            return self._counted(peek, time)
        parameters = {PARAMETERS: tuple(values)}
        given: dict[str, Given] = {}
        for leaf in peek.shape.leaves:
            if leaf.collection in peek.system:
                return None
            found = self._gatherer.now(leaf, time, parameters)
            if found is None or len(found) > CHUNK_ROWS:
                return None
            given[leaf.name] = found
        plan = plan_of(peek)
        if not is_little_over(plan, given, peek.order):
            return None
        return finished(peek, plan.multiset(given))

    async def ask(
        self,
        peek: Peek,
        time: int,
        system: SystemRows,
        spark: StreamSpark,
        path: Path | None = None,
    ) -> Chunks:
        """The rows of a peek."""
        path = path or self.path(peek)
        if path.kind == "statistics":
            rows = self._counted(peek, time)
            if rows is not None:
                return Listed(rows)
            path = self.path(peek, by_counts=False)
        if path.kind == "columns":
            try:
                return await self._by_columns(peek, time)
            except (NoKernel, OutOfMemory, OSError):  # also a disk that is full
                path = self.path(peek, by_columns=False)
        if path.kind == "spark":
            return await spark(peek, time)
        if path.kind == "stream":
            return Streamed(self._stream(peek, time))
        try:
            given = await self._given(peek, time, system)
        except OutOfMemory:  # few rows, but long ones
            if peek.shape.linear and not peek.order:
                return Streamed(self._stream(peek, time))
            return await spark(peek, time)
        plan = plan_of(peek)
        if is_little_over(plan, given, peek.order):
            return Listed(finished(peek, plan.multiset(given)))
        return (await self._pool.run(Answered(plan, peek.order, peek.width), given)).chunks()

    def path(self, peek: Peek, *, by_columns: bool = True, by_counts: bool = True) -> Path:
        """Which way a peek would go now."""
        given = self._columns if by_columns else None
        return path_of(peek, self._state(), self.in_process_rows_max, given, by_counts=by_counts)

    @property
    def _columns(self) -> Columns:
        memory_bytes = self._pool.limits.memory_mb << 20
        return Columns(self.columns_rows_min, memory_bytes, self.files.bytes_max)

    def _counted(self, peek: Peek, time: int) -> list[Row] | None:
        plan = counted(peek, self._state(), time)
        if plan is None or not is_little(plan, {}):
            return None
        return finished(peek, Computed(plan).multiset({}))

    async def table(self, peek: Peek, time: int) -> pa.Table | None:
        """The rows of a peek as columns; None where they are not computed by columns.

        Raises:
            ProgramLimitExceeded: there are more than one statement may have at once.
        """
        columns = replace(self._columns, streams=False)
        if path_of(peek, self._state(), self.in_process_rows_max, columns).kind != "columns":
            return None
        found: list[pa.RecordBatch] = []
        total = 0
        try:
            async for piece in (await self._columnar(peek, time, Tabled)).pieces():
                found += piece
                total += sum(each.num_rows for each in piece)
                self._pool.limits.check_rows(total)
        except (NoKernel, OutOfMemory, OSError, EvaluationError):
            return None  # an error of a row has a detail, which kernels do not say
        return pa.Table.from_batches(found) if found else None

    async def _by_columns(self, peek: Peek, time: int) -> Chunks:
        return (await self._columnar(peek, time, Columnar)).chunks()

    async def _columnar(self, peek: Peek, time: int, kind: type[Columnar]) -> Result:
        shape = peek.shape
        inputs = tuple((leaf.name, Input(leaf.scan.columns, _test(leaf))) for leaf in shape.leaves)
        pieces = self._columns.pieces(peek, sizes_of(peek, self._state()))
        job = kind(shape.rest, inputs, peek.order, peek.width, pieces)
        async with AsyncExitStack() as stack:
            tables = {
                leaf.name: await stack.enter_async_context(self.files.held(leaf, time))
                for leaf in shape.leaves
            }
            return await self._pool.run(job, tables=tables)

    async def multiset(
        self, peek: Peek, time: int, system: SystemRows, spark: AskSpark
    ) -> Multiset:
        """The rows of a peek as a multiset of the relation's rows."""
        if self.path(peek, by_columns=False).kind == "spark":
            return await spark(peek.whole, time)
        return await self.computed(peek, await self._given(peek, time, system))

    async def computed(self, peek: Peek, given: Mapping[str, Given]) -> Multiset:
        """The rows of a peek from those of its leaves.

        Raises:
            ProgramLimitExceeded: there are more than one statement may have at once.
        """
        plan = plan_of(peek)
        if is_little_over(plan, given, ()):
            return plan.multiset(given)
        found: Multiset = {}
        total = 0
        result = await self._pool.run(plan, given)
        identify = identified(peek.relation.schema)
        async for piece in result.pieces():
            found.update(identify(piece))
            total += sum(count for _, count in piece)
            self._pool.limits.check_rows(total)
        return found

    async def finished(self, peek: Peek, rows: Multiset) -> Chunks:
        """Rows of the relation, which are there already, as a client gets them."""
        scan = r.Scan("", peek.relation.schema)
        job = Answered(Computed(scan), peek.order, peek.width)
        given = {"": list(rows.items())}
        if is_little_over(job.plan, given, peek.order):
            return Listed(job.rows(given))
        return (await self._pool.run(job, given)).chunks()

    async def _given(self, peek: Peek, time: int, system: SystemRows) -> dict[str, Given]:
        return {leaf.name: await self.leaf(leaf, peek, time, system) for leaf in peek.shape.leaves}

    async def leaf(self, leaf: Leaf, peek: Peek, time: int, system: SystemRows) -> Given:
        """The rows of one leaf of a peek, before what is left of its predicate is asked."""
        if leaf.collection not in peek.system:
            return await self._gatherer.rows(leaf, time)
        return system_leaf(leaf, system(leaf.collection))

    async def _stream(self, peek: Peek, time: int) -> AsyncGenerator[Sequence[Row], None]:
        (leaf,) = peek.shape.leaves
        plan = plan_of(peek)
        job = Answered(plan, (), peek.width)
        async for piece in self._gatherer.stream(leaf, time):
            given = {leaf.name: piece}
            if plan.picks is not None and not plan.tests:
                rows = await asyncio.to_thread(job.rows, given)  # columns are taken: no work
                for start in range(0, len(rows), CHUNK_ROWS):
                    yield rows[start : start + CHUNK_ROWS]
                continue
            async for chunk in (await self._pool.run(job, given)).pieces():
                yield chunk


def _test(leaf: Leaf) -> Scalar | None:
    """What the rows of a leaf must pass; where its keys decide, those are."""
    if not leaf.decided:
        return leaf.predicate
    columns = [column(at, leaf.scan.columns.columns[at]) for at in leaf.columns]
    keys = [
        conjunction([Compare("=", a, b) for a, b in zip(columns, key, strict=True)])
        for key in leaf.keys
    ]
    return keys[0] if len(keys) == 1 else Or(tuple(keys))


def plan_of(peek: Peek) -> Computed:
    """What is left to compute once the rows of the leaves are there."""
    shape = peek.shape
    tests = tuple([(leaf.name, leaf.test) for leaf in shape.leaves if leaf.test is not None])
    return Computed(shape.rest, tests, shape.picks)


def is_little_over(plan: Computed, given: Mapping[str, Given], order: tuple[SortKey, ...]) -> bool:
    """Whether a plan over these rows is little enough to be computed on the adapter's loop."""
    sizes = {name: len(rows) for name, rows in given.items()}
    total = sum(sizes.values())
    if total > LITTLE:
        return False
    if plan.picks is not None and not plan.tests:
        return total * (1 + len(order)) * 10 <= LITTLE
    longest = longest_value(row for rows in given.values() for row, _ in rows)
    return is_little(plan.rest, sizes, plan.tests, order, longest)


def system_leaf(leaf: Leaf, rows: Sequence[Row]) -> Given:
    """The rows of a system relation, reduced to the columns of the scan."""
    known = relations().get(leaf.collection)
    names = (SEQUENCE if known is None else known.schema).names
    places = [names.index(name) for name in leaf.scan.columns.names]
    return own_rows(leaf, [(tuple([whole[place] for place in places]), 1) for whole in rows])


def finished(peek: Peek, rows: Multiset) -> list[Row]:
    """A multiset of the relation's rows as the client gets it."""
    listed: list[Row]
    if peek.order:
        listed = in_order(rows, peek.relation, peek.order)
    else:
        listed = [row for row, count in rows.items() for _ in range(count)]
    return peek.finish(listed)
