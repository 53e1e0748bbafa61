"""SELECT: planned, its time chosen, answered.

`fast_path_select` is the same without waiting: a strict read whose answer is in memory. It gives
None where it cannot, and then `run_select` gives the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.catalog import Item
from noonmark.adapter.contract import Answer, Outcome, Rows
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.planning import PlannedQuery, time_of
from noonmark.adapter.peek.reads import CHOICES_MAX, Wish
from noonmark.adapter.peek.remote import plan
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.memory import text_bytes
from noonmark.adapter.session.transaction import (
    OpenTransaction,
    current,
    domain,
    end_group,
    isolation_of,
    reading,
)
from noonmark.adapter.statement.dml.read import Reading, checked
from noonmark.adapter.statement.handler import Described, Describers, FastPaths, Handlers
from noonmark.adapter.timestamp.choice import STRICT, Choice
from noonmark.adapter.timestamp.recency import is_on, recency_of
from noonmark.adapter.weight import weight_of
from noonmark.errors import BeforeSince, Unsupported
from noonmark.rows.types import BigInt, SqlType
from noonmark.sql.ir.asked import Now
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


@dataclass(frozen=True)
class TypedSelect(st.Select):
    """A SELECT that was prepared: the types of its parameters are known."""

    types: tuple[SqlType, ...] = ()


def typed(statement: st.Select, types: tuple[SqlType, ...]) -> TypedSelect:
    """The statement with the types of its parameters."""
    return TypedSelect(statement.query, statement.as_of, statement.as_of_at_least, types)


async def planned(
    session: AdapterSession,
    statement: st.Select | st.Subscribe,
    types: Sequence[SqlType | None],
    values: Sequence[Any] | None = None,
) -> PlannedQuery:
    """The plan of a statement's query: the one from before, while the catalog is the same."""
    key = (statement.query, tuple(types))
    found: PlannedQuery | None = session.plans.get(key)
    if (
        found is not None
        and found.catalog is session.catalog
        and found.settled
        and (not found.late or values is None)
    ):
        return found  # rights are in the catalog: they were checked against this one
    late = values if found is not None and found.late else None
    use = "SUBSCRIBE" if isinstance(statement, st.Subscribe) else "SELECT"
    made = await plan(session, statement.query, types, late, use)
    if made.late and values is not None and late is None:
        made = await plan(session, statement.query, types, values, use)
    session.plans.keep(key, made, plan_bytes(statement.query.text, made))
    return made


def plan_bytes(text: str, plan: PlannedQuery) -> int:
    """About what a plan takes: its text as it was read, the views in it, and its columns."""
    views = sum(text_bytes(item.definition.get("query", "")) for item in plan.items)
    return 2 * (text_bytes(text) + views) + 1_000 * len(plan.fields)


def with_times(
    statement: st.Select | st.Subscribe, types: Sequence[SqlType | None]
) -> tuple[SqlType | None, ...]:
    """The types of parameters, those among them that stand for times being numbers."""
    found = list(types)
    times = [statement.as_of, statement.as_of_at_least]
    if isinstance(statement, st.Subscribe):
        times.append(statement.up_to)
    for text in times:
        for node in () if text is None else text.tree.find_all(exp.Parameter):
            number = int(node.this.name)
            found += [None] * (number - len(found))
            found[number - 1] = found[number - 1] or BigInt()
    return tuple(found)


async def describe_select(
    session: AdapterSession, statement: st.Select, types: Sequence[SqlType | None]
) -> Described:
    """Plan it: its parameters and columns."""
    plan = await planned(session, statement, with_times(statement, types))
    key = (statement.query, plan.parameters)
    session.plans.keep(key, plan, plan_bytes(statement.query.text, plan))
    return Described(plan.parameters, plan.fields, typed(statement, plan.parameters))


def fast_path_select(
    session: AdapterSession, statement: st.Select, values: Sequence[Any]
) -> Answer | None:
    """The answer, if it is had at once."""
    if (
        session.transaction is not None
        or session.grouped
        or statement.as_of is not None
        or statement.as_of_at_least is not None
        or is_on(session)
        or isolation_of(session) != STRICT
    ):
        return None
    ready = session.ready.answer(statement, session.catalog, values)
    if ready is not None:
        return ready
    types = statement.types if isinstance(statement, TypedSelect) else ()
    plan = session.plans.get((statement.query, types))
    if plan is None or plan.catalog is not session.catalog or plan.late or _is_of_now(plan):
        return None
    if plan.peek.is_volatile:
        return None
    reads = session.database.reads
    rows = reads.fast_path(plan.peek, values)
    if rows is None:
        return None
    session.ready.keep(statement, statement.query.text, plan, reads)
    return Answer(plan.fields, rows)


async def run_select(
    session: AdapterSession, statement: st.Select, values: Sequence[Any]
) -> Outcome:
    """The rows of a query at one time."""
    types = statement.types if isinstance(statement, TypedSelect) else ()
    plan = await planned(session, statement, types, values)
    transaction = current(session)
    if transaction is not None:
        tables, unchecked = checked(plan.catalog, plan.leaves)
        if transaction.implicit and _cannot_include(transaction, plan) is not None:
            await end_group(session)
            plan = await planned(session, statement, types, values)
        transaction = await reading(session, tables - transaction.fresh, unchecked)
    # Between its choice and the read, history may go that nobody held: then there is a later time.
    chooses = transaction is None and statement.as_of is None
    for left in reversed(range(CHOICES_MAX if chooses else 1)):
        try:
            return await _read(session, statement, plan, values)
        except BeforeSince:
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


async def _read(
    session: AdapterSession, statement: st.Select, plan: PlannedQuery, values: Sequence[Any]
) -> Outcome:
    transaction = current(session)
    time = await read_time(session, statement, plan, values)
    weight = weight_of(plan.catalog, statement.query.text)
    peek = await PLANNER.run(weight, plan.peek.bound, values, time)
    if transaction is not None and _is_own(transaction, plan):
        if plan.direct is not None:
            peek = await PLANNER.run(weight, plan.direct.bound, values, time)
        return await _with_own(session, transaction, plan, peek, time)
    if plan.peek.is_volatile:
        rows = await session.database.reads.multiset(peek, time, session.system_rows)
        return Rows(plan.fields, await session.database.reads.answers.finished(peek, rows))
    chunks = await session.database.reads.ask(peek, time, session.system_rows)
    return Rows(plan.fields, chunks)


def _is_own(transaction: OpenTransaction, plan: PlannedQuery) -> bool:
    """Whether a query reads what the transaction itself wrote or made."""
    own = transaction.pending.keys() | transaction.fresh
    return bool(own) and bool(checked(plan.catalog, plan.leaves)[0] & own)


def _cannot_include(transaction: OpenTransaction, plan: PlannedQuery) -> Item | None:
    """A view among what is read that is kept, and so cannot include the transaction's writes."""
    fresh, written = transaction.fresh, transaction.pending.keys()
    for item in plan.leaves:
        if not (item.kind == "table" or item.is_virtual) and (
            item.collection in fresh or checked(plan.catalog, [item])[0] & (written | fresh)
        ):
            return item
    return None


async def _with_own(
    session: AdapterSession, transaction: OpenTransaction, plan: PlannedQuery, peek: Peek, time: int
) -> Outcome:
    """The rows of a query over tables that the transaction itself has written."""
    item = _cannot_include(transaction, plan)
    if item is not None:
        raise Unsupported(
            f'"{item.name}" cannot be read: this transaction wrote to tables below it, or made it',
            detail="What is kept of it has no time that includes those writes yet.",
            hint="Read it after COMMIT.",
        )
    rows = await Reading(session, time, transaction.pending, transaction.fresh).multiset(peek)
    return Rows(plan.fields, await session.database.reads.answers.finished(peek, rows))


def _is_of_now(plan: PlannedQuery) -> bool:
    return plan.follows_time or Now in plan.peek.asks


async def wish_of(
    session: AdapterSession,
    statement: st.Select | st.Subscribe,
    plan: PlannedQuery,
    values: Sequence[Any] = (),
) -> Wish:
    """What a statement and its session say about the time of its read."""
    transaction = current(session)
    wish = Wish(isolation_of(session) if transaction is None else transaction.isolation)
    if statement.as_of is not None:
        return replace(wish, as_of=time_of(session, statement.as_of, values))
    if statement.as_of_at_least is not None:
        least = time_of(session, statement.as_of_at_least, values)
        wish = replace(wish, as_of=least, at_least=True)
    if plan.follows_time:
        # Nothing has to be written for its rows to come and go: now is a bound, too.
        wish = replace(wish, now=session.database.clock.now_ms())
    return replace(wish, recency=await recency_of(session, plan))


async def read_time(
    session: AdapterSession,
    statement: st.Select,
    plan: PlannedQuery,
    values: Sequence[Any] = (),
) -> int:
    """The time of a statement's read: the transaction's, or a new one."""
    transaction = current(session)
    reads = session.database.reads
    names: Sequence[str] = plan.peek.collections
    if transaction is not None:
        fresh = transaction.fresh
        names = [name for name in names if name not in fresh]
        if transaction.time is not None:
            return _inside(session, transaction, statement, plan, values)
    wish = await wish_of(session, statement, plan, values)
    if transaction is None or not names:
        choice: Choice = await reads.choose(names, wish)
        return choice.time
    choice, held = await reads.choose_held(names, wish, partial(domain, session, names))
    transaction.hold(held)
    return choice.time


def _inside(
    session: AdapterSession,
    transaction: OpenTransaction,
    statement: st.Select,
    plan: PlannedQuery,
    values: Sequence[Any],
) -> int:
    """The time of a later read of a transaction."""
    time = transaction.time
    assert time is not None
    for text in (statement.as_of, statement.as_of_at_least):
        if text is not None:
            asked = time_of(session, text, values)
            if asked > time or (asked != time and text is statement.as_of):
                raise Unsupported(
                    f"this transaction reads at {time}, and cannot read at {asked}",
                    hint="All reads of a transaction are at one time: read before or after it.",
                    position=text.position,
                )
    state = session.database.client.state
    fresh = transaction.fresh
    for name in plan.peek.collections:
        if name not in fresh and not transaction.readable(state.collection(name).id):
            raise BeforeSince(
                f'"{name}" cannot be read at the time of this transaction',
                detail=f"The transaction reads at {time}; the relation begins later.",
                hint="Read it after COMMIT.",
            )
    return time


HANDLERS: Handlers = {st.Select: run_select, TypedSelect: run_select}
DESCRIBERS: Describers = {st.Select: describe_select, TypedSelect: describe_select}
FAST_PATHS: FastPaths = {st.Select: fast_path_select, TypedSelect: fast_path_select}
