"""WITH that writes: its statements and the one behind it, on one snapshot and in one commit.

Law (snapshot): every part reads the tables as they were before the statement. What one part tells
another is what its RETURNING gives, and nothing else.

Law (once): a part that writes does so once, and to its end, whether its rows are asked for or not.

Law (order): the statement behind WITH comes before the parts whose rows it does not ask for, and
behind the others; those follow in their order. Of several changes of one row the first is made, and
the others do nothing, as in PostgreSQL.

What a part returns is read as a relation that only this statement has: the rows stand in its
`Reading`, beside what a transaction has written. Actions of foreign keys come last, and see all
that was written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.item import NO_COLUMNS
from noonmark.adapter.contract import Done, Field, Outcome, Rows
from noonmark.adapter.names import over_collections
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.peek.rows import finisher
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.statement.dml.actions import Move, acted_on, with_actions
from noonmark.adapter.statement.dml.change import Changed, ChangePlan, changes
from noonmark.adapter.statement.dml.insert import InsertPlan, read_rows, settle_conflicts
from noonmark.adapter.statement.dml.merge import MergePlan, merged
from noonmark.adapter.statement.dml.plan import Planning, Shared, Source, bound_values
from noonmark.adapter.statement.dml.read import (
    Needs,
    Reading,
    Write,
    Writes,
    check_columns,
    read_then_write,
    tables_read,
)
from noonmark.adapter.statement.dml.target import Row
from noonmark.adapter.statement.dml.write import Plan, check_rights, planned_write
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.table.keys import ROW_WEIGHT
from noonmark.adapter.weight import weight_of
from noonmark.errors import TooManyRows, UndefinedTable, Unsupported
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import SqlType, Text
from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.relation import Scan, distinct_names
from noonmark.sql.parse import Query
from noonmark.sql.plan import query as planner
from noonmark.sql.plan.row import Named
from noonmark.sql.rules import simplify
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.within import Part, WithWrites

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What the relation of a part's rows is called: no collection is.
GIVEN = "\0with "


@dataclass(frozen=True)
class Step:
    """A part, or the statement behind WITH, planned.

    Attributes:
        source: of a query, what it reads.
        write: of a statement that writes, its plan.
        verb: what its tag begins with.
        fields: the columns of its rows, if it gives any.
        name: the relation that its rows are for others; "" where nobody reads them so.
        schema: its columns.
        asks: the relations of parts whose rows it reads.
    """

    source: Source | None = None
    write: Plan | None = None
    verb: str = "SELECT"
    fields: tuple[Field, ...] | None = None
    name: str = ""
    schema: Schema = NO_COLUMNS
    asks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WithPlan:
    """A statement with everything that it does; the last step is the statement behind WITH."""

    catalog: Any
    steps: tuple[Step, ...]
    parameters: tuple[SqlType, ...]

    def ordered(self) -> Iterator[Step]:
        """The steps as they are done."""
        done: set[str] = set()
        by_name = {each.name: each for each in self.steps[:-1] if each.name}

        def visit(step: Step) -> Iterator[Step]:
            for name in sorted(step.asks):
                if name not in done:
                    done.add(name)
                    yield from visit(by_name[name])
            yield step

        yield from visit(self.steps[-1])
        for each in self.steps[:-1]:
            if each.name not in done:
                done.add(each.name)
                yield from visit(each)


@dataclass(frozen=True)
class Typed(st.Statement):
    """One that was prepared: the types of its parameters are known."""

    statement: WithWrites
    types: tuple[SqlType, ...]


# --- planning


def _planned(
    session: AdapterSession, statement: WithWrites, types: Sequence[SqlType | None]
) -> WithPlan:
    shared = Shared({at: kind for at, kind in enumerate(types, 1) if kind is not None})
    steps: list[Step] = []
    for at, part in enumerate(statement.parts):
        try:
            steps += _part_steps(session, shared, part, at)
        except UndefinedTable as error:
            _say_where(error, [each.name for each in statement.parts[at:]])
            raise
    steps.append(_step(session, shared, statement.main))
    known = shared.parameters
    numbers = range(1, max(known, default=0) + 1)
    parameters = tuple(known.get(at, Text()) for at in numbers)
    return WithPlan(session.catalog, tuple(steps), parameters)


def _say_where(error: UndefinedTable, later: Sequence[str]) -> None:
    """Tell of a name that is there, and stands too late."""
    for name in later:
        if error.message == f'relation "{name}" does not exist':
            error.detail = (
                f'There is a WITH item named "{name}", but it cannot be referenced from this part '
                "of the query."
            )
            error.hint = (
                "Use WITH RECURSIVE, or re-order the WITH items to remove forward references."
            )


def _part_steps(session: AdapterSession, shared: Shared, part: Part, at: int) -> Iterator[Step]:
    """What a part does; a query that is the same whenever it is asked is a part of who asks."""
    name = f"{GIVEN}{at} {part.name}"
    if part.query is not None:
        planning = Planning(session, "SELECT", (), shared)
        planned = planning.query(part.query)
        relation = planned.output()
        if not is_volatile(relation):
            shared.names[part.name] = Named(relation, planned.names)
            return
        source = planning.read(relation)
        shared.names[part.name] = Named(Scan(name, relation.schema), planned.names)
        yield Step(source, name=name, schema=relation.schema, asks=_asked(source))
        return
    assert part.statement is not None
    step = _step(session, shared, part.statement)
    if step.fields is None:
        shared.silent.add(part.name)
        yield replace(step, name=name)
        return
    shown = [*part.columns, *(each.name for each in step.fields[len(part.columns) :])]
    pairs = zip(distinct_names(shown), step.fields, strict=True)
    schema = Schema(tuple(Column(each, own.type) for each, own in pairs))
    shared.names[part.name] = Named(Scan(name, schema), tuple(shown))
    yield replace(step, name=name, schema=schema)


def _step(session: AdapterSession, shared: Shared, statement: Any) -> Step:
    if isinstance(statement, st.Select):
        return _query_step(session, shared, statement)
    verb = type(statement).__name__.upper()
    plan = planned_write(session, statement, (), shared)
    check_rights(session, statement, plan)
    fields = None if plan.returning is None else plan.returning.fields
    asks = frozenset[str]() if plan.source is None else _asked(plan.source)
    return Step(None, plan, verb, fields, asks=asks)


def _query_step(session: AdapterSession, shared: Shared, statement: st.Select) -> Step:
    if statement.as_of is not None or statement.as_of_at_least is not None:
        raise Unsupported("AS OF in a statement that writes is not supported")
    planning = Planning(session, "SELECT", (), shared)
    planned = planner.plan_query(statement.query.tree, planning.frame)
    if planning.statement.late:
        raise Unsupported("LIMIT or OFFSET with a parameter in a statement that writes")
    query = Query(planned.output(), planned.names, planned.relation, planned.order)
    found = over_collections(planning.catalog, query, planning.names)
    relation = simplify(found.query.ordered if found.query.order else found.query.relation)
    system = frozenset(item.scan_name for item in found.leaves if item.is_virtual)
    width = len(query.names)
    peek = Peek.of(relation, found.query.order, width, system)
    only = all(item.kind == "table" or item.is_virtual for item in found.leaves)
    tables = frozenset(tables_read(planning.catalog, found.leaves, statement.query.position))
    columns = relation.schema.columns[:width]
    fields = tuple(Field(name, each.type) for name, each in zip(query.names, columns, strict=True))
    source = Source(peek, Needs(tables, only))
    return Step(source, fields=fields, asks=_asked(source))


def _asked(source: Source) -> frozenset[str]:
    scans = (node for node in walk_once(source.peek.relation) if isinstance(node, Scan))
    return frozenset(each.collection for each in scans if each.collection.startswith(GIVEN))


async def _plan(
    session: AdapterSession, statement: WithWrites, types: Sequence[SqlType | None]
) -> WithPlan:
    weight = weight_of(session.catalog, statement.text)
    return await PLANNER.run(weight, _planned, session, statement, types)


async def describe(
    session: AdapterSession, statement: WithWrites | Typed, types: Sequence[SqlType | None]
) -> Described:
    """Its parameters, and the columns of what stands behind WITH."""
    inner = statement.statement if isinstance(statement, Typed) else statement
    plan = await _plan(session, inner, types)
    return Described(plan.parameters, plan.steps[-1].fields, Typed(inner, plan.parameters))


# --- running


@dataclass
class _Run:
    """One execution on one read.

    Attributes:
        reading: what is there before the statement.
        values: of the parameters.
        given: the rows of parts, by the relation that they are.
        writes: what was written so far, by collection.
        gone: the rows that were changed or taken out so far, and how often.
        moves: what became of rows of each table, for who refers to them.
    """

    reading: Reading
    values: Sequence[Any]
    given: dict[str, list[Write]] = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)
    writes: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    gone: dict[str, Counter[Row]] = field(default_factory=lambda: defaultdict(Counter))
    moves: list[tuple[Item, Sequence[Move]]] = field(default_factory=list)

    def seen(self) -> Reading:
        """What a part reads: the tables, and what other parts have returned."""
        return replace(
            self.reading,
            pending={**self.reading.pending, **self.given},
            fresh=self.reading.fresh | self.given.keys(),
            given=self.schemas,
        )

    async def step(self, step: Step) -> Any:
        """Do one; the rows that it gives, or how many it wrote."""
        reading = self.seen()
        if step.write is None:
            assert step.source is not None
            peek = step.source.peek.bound(self.values, reading.now)
            found = await reading.multiset(peek)
            if step.name:
                await self._give(step, list(found.items()))
            return peek, found
        rows = await self._write(step.write, reading)
        returning = step.write.returning
        if returning is None:
            return len(rows), None
        pool = reading.session.database.workers
        made = await returning.rows(pool, rows, self.values)
        if step.name:
            await self._give(step, [(tuple(row), 1) for row in made])
        return len(rows), made

    async def _give(self, step: Step, rows: list[Write]) -> None:
        self.given[step.name] = rows
        self.schemas[step.name] = step.schema

    async def _write(self, plan: Plan, reading: Reading) -> list[Row]:
        item = plan.item
        if isinstance(plan, InsertPlan):
            found = await read_rows(plan, reading, self.values)
            changed = Changed([(row, 1) for row in found], found, [])
            if plan.conflict is not None:
                changed = Changed(*await settle_conflicts(plan, reading, found, self.values))
        elif isinstance(plan, MergePlan):
            changed = await merged(plan, reading, self.values)
        else:
            changed = await changes(plan, reading, self.values)
            weight = len(changed.moves) * ROW_WEIGHT
            changed = await aside(weight, self._first, plan, changed)
        await aside(len(changed.moves) * ROW_WEIGHT, self._go, plan, changed)
        check_columns(reading.session, item)
        self.writes[item.collection] += changed.writes
        self.moves.append((item, changed.moves))
        return changed.rows

    def _go(self, plan: Plan, changed: Changed) -> None:
        """What is changed is not there to be changed again."""
        gone = self.gone[plan.item.collection]
        if any(gone[old] for old, _, _ in changed.moves) and not isinstance(plan, ChangePlan):
            verb = "MERGE" if isinstance(plan, MergePlan) else "ON CONFLICT DO UPDATE"
            raise TooManyRows(f"{verb} command cannot affect row a second time")
        for old, _, count in changed.moves:
            gone[old] += count

    def _first(self, plan: ChangePlan, changed: Changed) -> Changed:
        """Without the rows that another part has changed."""
        gone = self.gone[plan.item.collection]
        if not any(gone[old] for old, _, _ in changed.moves):
            return changed
        made = Changed([], [], [])
        at = 0
        for old, new, count in changed.moves:
            rows, at = changed.rows[at : at + count], at + count
            left = max(0, count - gone[old])
            if not left:
                continue
            made.moves.append((old, new, left))
            made.rows.extend(rows[:left])
            made.writes.append((old, -left))
            if new is not None:
                made.writes.append((new, left))
        return made

    async def act(self, catalog: Any) -> Writes:
        """All that is written, with what foreign keys say of it."""
        for item, moves in self.moves:
            if not moves or not acted_on(catalog, item):
                continue
            pending = {
                name: [*self.reading.pending.get(name, ()), *self.writes.get(name, ())]
                for name in {*self.reading.pending, *self.writes}
            }
            seen = replace(self.reading, pending=pending)
            more = await with_actions(seen, catalog, item, (), moves)
            for name, rows in more.items():
                self.writes[name] += rows
        return self.writes


async def run(
    session: AdapterSession, statement: WithWrites | Typed, values: Sequence[Any]
) -> Outcome:
    """Do all of it; what stands behind WITH says what is answered."""
    types = statement.types if isinstance(statement, Typed) else ()
    inner = statement.statement if isinstance(statement, Typed) else statement
    plan = await _plan(session, inner, types)
    given = bound_values(values)

    async def compute(reading: Reading) -> tuple[Writes, Any]:
        work = _Run(reading, given)
        result: Any = None
        for step in plan.ordered():
            found = await work.step(step)
            result = found if step is plan.steps[-1] else result
        return await work.act(plan.catalog), result

    last = plan.steps[-1]
    result = await read_then_write(session, _needs(plan), compute)
    if last.write is None:
        peek, found = result
        assert last.fields is not None
        return Rows(last.fields, await session.database.reads.answers.finished(peek, found))
    count, rows = result
    verb = "INSERT 0" if last.verb == "INSERT" else last.verb
    if rows is None:
        return Done(f"{verb} {count}")
    assert last.fields is not None
    finish = finisher([each.type for each in last.fields])
    return Rows(last.fields, Listed(finish(rows)), verb)


def _needs(plan: WithPlan) -> Needs:
    tables: set[str] = set()
    only = True
    for step in plan.steps:
        source = step.source if step.write is None else step.write.source
        if source is not None:
            tables |= source.needs.tables
            only = only and source.needs.only_tables
        if step.write is not None:
            item = step.write.item
            tables |= {item.collection} | acted_on(plan.catalog, item)
    return Needs(frozenset(tables), only)


HANDLERS: Handlers = dict.fromkeys((WithWrites, Typed), run)
DESCRIBERS: Describers = dict.fromkeys((WithWrites, Typed), describe)
