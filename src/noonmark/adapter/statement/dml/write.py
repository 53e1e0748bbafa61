"""INSERT, UPDATE, DELETE and MERGE: planned, computed, committed; acknowledged when durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.contract import Done, Outcome, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.peek.rows import finisher
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.memory import text_bytes
from noonmark.adapter.statement.dml.actions import acted_on, with_actions
from noonmark.adapter.statement.dml.change import ChangePlan, changes, plan_delete, plan_update
from noonmark.adapter.statement.dml.columns import inserted
from noonmark.adapter.statement.dml.insert import (
    InsertPlan,
    new_rows,
    plan_insert,
    read_rows,
    settle_conflicts,
)
from noonmark.adapter.statement.dml.merge import MergePlan, merged, plan_merge
from noonmark.adapter.statement.dml.plan import Planning, Shared, bound_values
from noonmark.adapter.statement.dml.read import (
    Needs,
    Reading,
    Writes,
    check_columns,
    read_then_write,
    write,
)
from noonmark.adapter.statement.dml.returning import Returning
from noonmark.adapter.statement.dml.target import Row, target
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.weight import weight_of
from noonmark.rows.types import SqlType
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.merge import Merge

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What a plan takes, as many times what its text takes once it is read.
PLAN_WEIGHS = 2
Plan = InsertPlan | ChangePlan | MergePlan
Change = st.Insert | st.Update | st.Delete | Merge


@dataclass(frozen=True)
class Typed(st.Statement):
    """A write that was prepared: the types of its parameters are known."""

    statement: Change
    types: tuple[SqlType, ...]


async def _plan(
    session: AdapterSession, statement: Change, types: Sequence[SqlType | None]
) -> Plan:
    """The plan of a statement: the one from before, while the catalog is the same."""
    key = (statement.text, type(statement), tuple(types))
    found: Plan | None = session.plans.get(key)
    if found is None or found.catalog is not session.catalog:
        weight = weight_of(session.catalog, statement.text)
        found = await PLANNER.run(weight, planned_write, session, statement, types)
        session.plans.keep(key, found, PLAN_WEIGHS * text_bytes(statement.text))
    return found


def planned_write(
    session: AdapterSession,
    statement: Change,
    types: Sequence[SqlType | None],
    shared: Shared | None = None,
) -> Plan:
    """The plan of a statement; `shared` where it is one of WITH."""
    planning = Planning(session, type(statement).__name__.upper(), types, shared)
    verb = {
        st.Insert: "insert into",
        st.Update: "update",
        st.Delete: "delete from",
        Merge: "merge into",
    }
    item = target(session, planning.catalog, statement.table, verb[type(statement)])
    if not isinstance(statement, st.Insert):
        planning.names.granted = item  # what it needs on its target is checked when it is run
    match statement:
        case st.Insert():
            return plan_insert(planning, item, statement)
        case st.Update():
            return plan_update(planning, item, statement)
        case Merge():
            return plan_merge(planning, item, statement)
    return plan_delete(planning, item, statement)


def check_rights(session: AdapterSession, statement: Change, plan: Plan) -> None:
    """Refuse what the role may not do to the target."""
    access = session.access(type(statement).__name__.upper(), plan.catalog)
    if isinstance(statement, Merge):
        for verb in dict.fromkeys(when.verb for when in statement.whens if when.verb != "nothing"):
            session.access(verb.upper(), plan.catalog).check("target", plan.item)
        access.check("read target", plan.item)
        return
    access.check("target", plan.item)
    if isinstance(statement, st.Insert) and statement.conflict == "update":
        access.check("conflicting target", plan.item)
    if _reads_target(statement):
        access.check("read target", plan.item)


def _reads_target(statement: st.Insert | st.Update | st.Delete) -> bool:
    """Whether a statement looks at columns of what it writes, as PostgreSQL sees it."""
    trees: list[Any] = list(statement.returning)
    if isinstance(statement, st.Insert):
        if statement.conflict == "update" or statement.conflict_keys:
            return True
    else:
        trees += [statement.where] if statement.where is not None else []
    if isinstance(statement, st.Update):
        trees += [tree for _, tree in statement.assignments]
    looks = (exp.Column, exp.Star, exp.Query)
    return any(tree.find(*looks) is not None for tree in trees)


async def describe(
    session: AdapterSession, statement: Change | Typed, types: Sequence[SqlType | None]
) -> Described:
    """Plan it: its parameters, and the columns of RETURNING."""
    inner = statement.statement if isinstance(statement, Typed) else statement
    plan = await _plan(session, inner, types)
    check_rights(session, inner, plan)
    fields = None if plan.returning is None else plan.returning.fields
    return Described(plan.parameters, fields, Typed(inner, plan.parameters))


async def run(session: AdapterSession, statement: Change | Typed, values: Sequence[Any]) -> Outcome:
    """Write; RETURNING gives the rows that were written."""
    types = statement.types if isinstance(statement, Typed) else ()
    statement = statement.statement if isinstance(statement, Typed) else statement
    plan = await _plan(session, statement, types)
    check_rights(session, statement, plan)
    given = bound_values(values)
    match plan:
        case InsertPlan():
            count = await inserted(session, plan, given)
            if count is not None:
                return Done(f"INSERT 0 {count}")
            rows = await insert(session, plan, given)
            return await _outcome(session, "INSERT 0", plan.returning, rows, given)
        case ChangePlan() | MergePlan():
            rows = await _change(session, plan, given)
            verb = type(statement).__name__.upper()
            return await _outcome(session, verb, plan.returning, rows, given)


async def _outcome(
    session: AdapterSession,
    verb: str,
    returning: Returning | None,
    rows: Sequence[Row],
    values: Sequence[Any],
) -> Outcome:
    if returning is None:
        return Done(f"{verb} {len(rows)}")
    finish: Callable[[Any], list[Row]] = finisher([field.type for field in returning.fields])
    found = await returning.rows(session.database.workers, rows, values)
    return Rows(returning.fields, Listed(finish(found)), verb)


async def insert(session: AdapterSession, plan: InsertPlan, values: Sequence[Any]) -> list[Row]:
    """Write the rows of an INSERT, and return them."""
    name = plan.item.collection
    if plan.source is None and plan.conflict is None:
        rows = await new_rows(plan, session.database.workers, values)
        await write(session, {name: [(row, 1) for row in rows]}, plan.item)
        return rows

    async def compute(reading: Reading) -> tuple[Writes, Any]:
        found = await read_rows(plan, reading, values)
        if plan.conflict is None:
            return {name: [(row, 1) for row in found]}, found
        writes, touched, moves = await settle_conflicts(plan, reading, found, values)
        check_columns(session, plan.item)
        return await with_actions(reading, plan.catalog, plan.item, writes, moves), touched

    written = {name} | (acted_on(plan.catalog, plan.item) if plan.conflict is not None else set())
    needs = Needs(frozenset(written)) if plan.source is None else plan.source.writing(*written)
    result: list[Row] = await read_then_write(session, needs, compute)
    return result


async def _change(
    session: AdapterSession, plan: ChangePlan | MergePlan, values: Sequence[Any]
) -> list[Row]:
    catalog, item = plan.catalog, plan.item

    async def compute(reading: Reading) -> tuple[Writes, Any]:
        if isinstance(plan, MergePlan):
            changed = await merged(plan, reading, values)
        else:
            changed = await changes(plan, reading, values)
        check_columns(session, item)
        writes = await with_actions(reading, catalog, item, changed.writes, changed.moves)
        return writes, changed.rows

    needs = plan.source.writing(item.collection, *acted_on(catalog, item))
    result: list[Row] = await read_then_write(session, needs, compute)
    return result


_CHANGES = (st.Insert, st.Update, st.Delete, Merge, Typed)
HANDLERS: Handlers = dict.fromkeys(_CHANGES, run)
DESCRIBERS: Describers = dict.fromkeys(_CHANGES, describe)
