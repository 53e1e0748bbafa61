"""From a query's tree to a peek: planned against one catalog, once for many executions.

A planned query is good for as long as the catalog is the one that it was planned against; then it
is planned again. Its parameters keep the types that they got first.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.contract import Field
from noonmark.adapter.names import Names, Planned, over_collections
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.indexes import Filled, Indexes
from noonmark.adapter.peek.object_names import with_names
from noonmark.adapter.worker.effort import is_little
from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.errors import InvalidValue, TooManyRows
from noonmark.rows import types as t
from noonmark.rows.value import micros_of_timestamp, micros_of_timestamptz
from noonmark.sql import parse
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import Now, asked, bind
from noonmark.sql.ir.node import walk_once
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.plan.row import Statement
from noonmark.sql.rules import simplify
from noonmark.sql.rules.fold import refuse_constants
from noonmark.sql.statement.base import ScalarText

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


@dataclass(frozen=True)
class PlannedQuery:
    """A query that can be asked any number of times.

    Attributes:
        catalog: what it was planned against.
        peek: its plan.
        fields: its columns.
        parameters: the types of $1, $2, ...
        items: the relations that it names.
        leaves: the relations whose rows it reads.
        late: whether the plan depends on the values of its parameters.
        settled: whether a plan that is made later, of the same catalog, would be the same.
        follows_time: whether its rows come and go though nothing is written.
        direct: the plan without indexes, which know nothing of what a transaction has written.
    """

    catalog: Catalog
    peek: Peek
    fields: tuple[Field, ...]
    parameters: tuple[t.SqlType, ...]
    items: tuple[Item, ...]
    leaves: tuple[Item, ...]
    late: bool
    settled: bool = True
    follows_time: bool = False
    direct: Peek | None = None


def plan_query(
    session: AdapterSession,
    tree: exp.Expr,
    types: Sequence[t.SqlType | None] = (),
    values: Sequence[Any] | None = None,
    use: str = "SELECT",
) -> PlannedQuery:
    """Plan a query of a session, over relations that it may read.

    Args:
        session: whose catalog, search path and functions it sees.
        tree: the query.
        types: those of parameters that the client stated.
        values: those of the parameters, where the plan depends on them.
        use: the statement that it is of, as `catalog.rights` calls it.
    """
    catalog, state = session.catalog, session.database.client.state
    indexes = Indexes(catalog, Filled.of(catalog, state))
    access = session.access(use, catalog)
    made = planned_over(
        access, tree, functions=session.functions, indexes=indexes, types=types, values=values
    )
    return replace(made, peek=indexes.used(made.peek, state), direct=made.peek)


def planned_over(
    access: Access,
    tree: exp.Expr,
    *,
    functions: Table[Function],
    indexes: Indexes,
    types: Sequence[t.SqlType | None],
    values: Sequence[Any] | None,
) -> PlannedQuery:
    """The same for who has a catalog and its rights, and no session: nothing stored is looked at.

    Its leaves are read as they are; the caller has better ones used (`Indexes.used`).
    """
    catalog = access.catalog
    names = Names(catalog, access)
    stated = {at: kind for at, kind in enumerate(types, 1) if kind is not None}
    statement = Statement(
        names,
        parameters=stated,
        values=values,
        session=functions,
        types=names.types,
        key_of=names.key_of,
    )
    query = parse.plan_query(tree, statement)
    planned = over_collections(catalog, query, names, indexes.keeping)
    return _planned_query(catalog, planned, statement, indexes.settled)


def _planned_query(
    catalog: Catalog,
    planned: Planned,
    statement: Statement,
    settled: bool,
) -> PlannedQuery:
    query = with_names(planned.query, statement)
    relation = simplify(query.ordered if query.order else query.relation)
    refuse_constants(relation)
    system = frozenset(item.scan_name for item in planned.leaves if item.is_virtual)
    width = len(query.names)
    columns = query.relation.schema.columns[:width]
    fields = tuple(
        Field(name, column.type) for name, column in zip(query.names, columns, strict=True)
    )
    return PlannedQuery(
        catalog,
        Peek.of(relation, query.order, width, system),
        fields,
        statement.parameter_types(),
        planned.items,
        planned.leaves,
        statement.late,
        settled,
        _follows_time(catalog, relation, planned.leaves),
    )


def _follows_time(catalog: Catalog, relation: r.Relation, leaves: Iterable[Item]) -> bool:
    """Whether a filter of the plan, or of what is kept below it, is of mz_now()."""
    filters = (n for n in walk_once(relation) if isinstance(n, r.Filter | r.Join))
    own = (n.predicate if isinstance(n, r.Filter) else n.on for n in filters)
    below = catalog.needs(leaf.number for leaf in leaves)
    return any(Now in asked(each) for each in own) or any(
        item.definition.get("follows_time") for item in below
    )


def time_of(session: AdapterSession, text: ScalarText, values: Sequence[Any] = ()) -> int:
    """The time that AS OF or UP TO names: milliseconds since the epoch, or a timestamp.

    Raises:
        InvalidValue: it is neither.
    """
    value = value_of(session, text.tree, values)
    if isinstance(value, str) and not value.strip().isdigit():
        cast = exp.Cast(this=text.tree.copy(), to=exp.DataType.build("timestamptz"))
        value = value_of(session, cast, values)
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if isinstance(value, dt.datetime):
        micros = micros_of_timestamptz if value.tzinfo else micros_of_timestamp
        return micros(value) // 1000
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return int(value)
    raise InvalidValue(
        f"{text.text} is not a time",
        hint="Give milliseconds since the epoch, or a timestamp.",
        position=text.position,
    )


def value_of(session: AdapterSession, tree: exp.Expr, values: Sequence[Any] = ()) -> Any:
    """The value of an expression that reads nothing."""
    select = exp.Select(expressions=[tree.copy()])
    planned = plan_query(session, select, values=values)
    relation = bind(planned.peek.relation, values, session.database.clock.now_ms())
    if not is_little(relation, {}):
        raise ProgramLimitExceeded(
            "an expression here cannot be much work",
            hint="Compute it with a SELECT first, and write its value.",
        )
    found = evaluate(relation, {})
    if sum(found.values()) != 1:
        raise TooManyRows("an expression here has one value, not the rows of a function")
    ((value,),) = found
    return value
