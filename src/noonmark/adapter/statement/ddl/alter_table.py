"""ALTER TABLE: constraints, defaults and NOT NULL of tables, in a transaction or by itself.

Law: a constraint that is added holds of every row, at the time of the commit and from then on. The
rows are read by the statement; where others write to the table before the commit, it is refused
with `SerializationFailure`, or by itself run again. Rows that others computed under the table's
older rules are refused where they are committed (`table.committer`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import cancellable
from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.type_names import TypeNames, remembering
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.alter_column import (
    add_column,
    add_key,
    alter_type,
    check_column,
    contains_null,
    drop_column,
    drop_key,
    drop_not_null,
    rename_column,
)
from noonmark.adapter.statement.ddl.columns import DuplicateColumn
from noonmark.adapter.statement.ddl.constraints import (
    constrained,
    with_unique,
    without_constraint,
)
from noonmark.adapter.statement.ddl.sequence import kept_default
from noonmark.adapter.statement.dml.fitting import broken_check
from noonmark.adapter.statement.dml.read import Needs, Reading, Writes, read_then_write
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.checks import CheckViolation, named
from noonmark.adapter.table.constraints import (
    foreigns_of,
    key_name,
    names_of,
    referencing,
    uniques_of,
)
from noonmark.adapter.table.enforce import Columns, absent
from noonmark.adapter.table.generated import texts_of
from noonmark.adapter.table.keyed import Keyed, keyed
from noonmark.adapter.weight import statement_weight
from noonmark.errors import (
    DependentObjects,
    DuplicateObject,
    InvalidSyntax,
    SerializationFailure,
    UndefinedColumn,
    UndefinedObject,
    UniqueViolation,
    UsageError,
    WrongObjectType,
)
from noonmark.sql.ir.relation import Scan
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.tables import DropExpression, InvalidTable

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Rows = dict[tuple[Any, ...], int]
_TRIES_MAX = 20


class NotGenerated(UsageError, id="not_generated", sqlstate="55000"):
    """A column that has no expression to drop."""


async def retried(
    session: AdapterSession, make: Callable[[], Coroutine[Any, Any, Outcome]]
) -> Outcome:
    """Change the catalog by what is read; by itself, again where others wrote in between.

    Nothing is stored before the end: a cancel comes in time until then.
    """
    if current(session) is not None:
        return await cancellable(make())
    for attempt in range(_TRIES_MAX):
        session.begin_implicit()
        try:
            done = await cancellable(make())
        except BaseException:
            await session.end_implicit(commit=False)
            raise
        try:
            await session.end_implicit(commit=True)
        except SerializationFailure:
            if attempt == _TRIES_MAX - 1:
                raise
        else:
            return done
    raise AssertionError("the last attempt returns or raises")


async def run_alter_table(
    session: AdapterSession, statement: st.AlterTable, _: Sequence[Any]
) -> Outcome:
    """ALTER TABLE name action, ..."""
    return await retried(session, lambda: _altered(session, statement))


async def _altered(session: AdapterSession, statement: st.AlterTable) -> Outcome:
    store, told = session.store, []
    async with store.turn:
        access = session.access("ALTER TABLE", store.catalog)
        item = access.find(statement.name.parts)
        if item is None and statement.if_exists:
            told.append(Notice(f'relation "{statement.name}" does not exist, skipping'))
            return Done("ALTER TABLE", tuple(told))
        item = access.named(statement.name.parts, statement.name.position)
        if item.kind != "table":
            raise WrongObjectType(f'"{item.name}" is not a table')
        access.check("object", item)
        for action in statement.actions:
            changed, notice = await _ACTIONS[type(action)](session, item, action)
            if notice is not None:
                told.append(Notice(notice))
            if changed is not item and changed is not store.catalog.by_number.get(changed.number):
                await store.change([changed])
            item = store.catalog.by_number[changed.number]
    return Done("ALTER TABLE", tuple(told))


async def rows_of(session: AdapterSession, item: Item) -> Rows:
    """The rows of a table as the transaction sees them; if others change it, COMMIT is refused."""

    async def compute(reading: Reading) -> tuple[Writes, Any]:
        return {}, await reading.multiset(Peek.of(Scan(item.collection, item.schema)))

    found: Rows = await read_then_write(session, Needs(frozenset({item.collection})), compute)
    return found


Changed = tuple[Item, str | None]


async def _add(session: AdapterSession, item: Item, action: st.AddConstraint) -> Changed:
    written, catalog = action.constraint, session.store.catalog
    if isinstance(written, st.CheckText):
        if written.name in names_of(item):
            raise DuplicateObject(
                f'constraint "{written.name}" for relation "{item.name}" already exists'
            )
        return await _add_check(session, item, written), None
    if isinstance(written, st.ForeignText):
        made = constrained(session, catalog, item, (), (written,))
        await _check_references(session, made)
        return made, None
    if written.primary:
        if item.key:
            raise InvalidTable(
                f'multiple primary keys for table "{item.name}" are not allowed',
                position=written.position,
            )
        return await add_key(session, item, written, await rows_of(session, item)), None
    made = with_unique(catalog, item, written)
    await check_unique(session, made)
    return made, None


async def check_unique(session: AdapterSession, item: Item) -> None:
    """The last unique constraint of a table holds of its rows."""
    unique = uniques_of(item)[-1]
    columns: Columns | Keyed
    rows = await rows_of(session, item)
    if unique.is_plain:
        columns = Columns(item.schema, unique.columns)
        keys: list[Any] = [columns.key(row) for row in rows]
    else:
        columns = keyed(item, unique)
        keys = await columns.keys(session.database.workers, list(rows))
    counts: Counter[Any] = Counter()
    for key, count in zip(keys, rows.values(), strict=True):
        if key is None or (unique.nulls_distinct and None in key):
            continue
        form = columns.form(key)
        counts[form] += count
        if counts[form] > 1:
            raise UniqueViolation(
                f'could not create unique index "{unique.name}"',
                detail=f"Key {columns.shown(key)} is duplicated.",
                schema=item.schema_name,
                table=item.name,
                constraint=unique.name,
            )


async def _check_references(session: AdapterSession, item: Item) -> None:
    """The last foreign key of a table holds of its rows."""
    foreign = foreigns_of(item)[-1]
    parent = session.store.catalog.by_number.get(foreign.parent, item)
    own, other = Columns(item.schema, foreign.columns), Columns(parent.schema, foreign.others)
    there = {other.form(other.key(row)) for row in await rows_of(session, parent)}
    for row in await rows_of(session, item):
        key = own.key(row)
        if None not in key and own.form(key) not in there:
            raise absent(item, foreign, parent, own.shown(key))


async def _add_check(session: AdapterSession, item: Item, written: st.CheckText) -> Item:
    access = session.access("SHOW", session.store.catalog)

    def build() -> tuple[Any, Item]:
        (made,) = named(item.name, item.schema, (written,), names_of(item), TypeNames(access))
        checks = [*item.definition.get("checks", []), made]
        return made, remembering(
            access, replace(item, definition={**item.definition, "checks": checks})
        )

    made, changed = await PLANNER.run(statement_weight(session), build)
    alone = replace(item, definition={"checks": [made]}, types=changed.types)
    rows = list(await rows_of(session, item))
    name, _ = await broken_check(session.database.workers, alone, rows)
    if name is not None:
        raise CheckViolation(
            f'check constraint "{name}" of relation "{item.name}" is violated by some row',
            schema=item.schema_name,
            table=item.name,
            constraint=name,
        )
    return changed


async def _drop(session: AdapterSession, item: Item, action: st.DropConstraint) -> Changed:
    if item.key and action.name == key_name(item):
        return await drop_key(session, item, await rows_of(session, item)), None
    going = next((each for each in uniques_of(item) if each.name == action.name), None)
    made = without_constraint(item, action.name)
    if made is None or (going is not None and not going.is_constraint):
        message = f'constraint "{action.name}" of relation "{item.name}" does not exist'
        if action.if_exists:
            return item, f"{message}, skipping"
        raise UndefinedObject(message)
    if going is not None:
        _refuse_referenced(session, item, going.columns, action.name)
    return made, None


def _refuse_referenced(
    session: AdapterSession, item: Item, columns: tuple[str, ...], name: str
) -> None:
    """A key that foreign keys refer to stays."""
    catalog = session.store.catalog
    for child, foreign in referencing(catalog, item):
        if set(foreign.others) == set(columns) and set(item.key) != set(columns):
            raise DependentObjects(
                f"cannot drop constraint {name} on table {item.name} because other objects "
                "depend on it",
                detail=f"constraint {foreign.name} on table {child.name} depends on index {name}",
                hint="Drop that constraint first.",
            )


async def _default(session: AdapterSession, item: Item, action: st.SetDefault) -> Changed:
    check_column(item, action.column)
    if action.column in item.definition.get("identity", {}):
        raise InvalidSyntax(
            f'column "{action.column}" of relation "{item.name}" is an identity column'
        )
    if action.column in texts_of(item):
        dropped = "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."
        raise InvalidSyntax(
            f'column "{action.column}" of relation "{item.name}" is a generated column',
            hint=dropped if action.default is None else None,
        )
    defaults = dict(item.definition.get("defaults", {}))
    defaults.pop(action.column, None)
    if action.default is not None:
        text = kept_default(session, session.store.catalog, action.default)
        defaults[action.column] = text
    changed = replace(item, definition={**item.definition, "defaults": defaults})
    return remembering(session.access("SHOW", session.store.catalog), changed), None


async def _drop_expression(_: AdapterSession, item: Item, action: DropExpression) -> Changed:
    """The column keeps its values, and takes others from now on."""
    check_column(item, action.column)
    if action.column not in texts_of(item):
        message = f'column "{action.column}" of relation "{item.name}" is not a generated column'
        if action.if_exists:
            return item, f"{message}, skipping"
        raise NotGenerated(message)
    definition = dict(item.definition)
    definition["generated"] = {
        name: each for name, each in definition["generated"].items() if name != action.column
    }
    if not definition["generated"]:
        del definition["generated"]
    return replace(item, definition=definition), None


async def _not_null(session: AdapterSession, item: Item, action: st.SetNotNull) -> Changed:
    check_column(item, action.column)
    stored, more = item.schema[action.column], list(item.definition.get("not_null", ()))
    if not action.not_null:
        if action.column in item.key:
            raise InvalidTable(f'column "{action.column}" is in a primary key')
        if not stored.nullable:
            rows = await rows_of(session, item)
            return await drop_not_null(session, item, action.column, rows), None
        left = [name for name in more if name != action.column]
        return replace(item, definition={**item.definition, "not_null": left}), None
    if not stored.nullable or action.column in more:
        return item, None
    place = item.schema.index(action.column)
    if any(row[place] is None for row in await rows_of(session, item)):
        raise contains_null(item, action.column)
    definition = {**item.definition, "not_null": [*more, action.column]}
    return replace(item, definition=definition), None


async def _add_column(session: AdapterSession, item: Item, action: st.AddColumnAction) -> Changed:
    name = action.column.name
    if name in item.schema:
        message = f'column "{name}" of relation "{item.name}" already exists'
        if action.if_not_exists:
            return item, f"{message}, skipping"
        raise DuplicateColumn(message)
    made = await add_column(session, item, action.column, await rows_of(session, item))
    for constraint in action.constraints:
        made, _ = await _add(session, made, st.AddConstraint(constraint))
        if made is not session.store.catalog.by_number.get(made.number):
            await session.store.change([made])
            made = session.store.catalog.by_number[made.number]
    return made, None


async def _drop_column(session: AdapterSession, item: Item, action: st.DropColumn) -> Changed:
    if action.name not in item.schema:
        message = f'column "{action.name}" of relation "{item.name}" does not exist'
        if action.if_exists:
            return item, f"{message}, skipping"
        raise UndefinedColumn(message)
    return await drop_column(session, item, action, await rows_of(session, item))


async def _rename_column(session: AdapterSession, item: Item, action: st.RenameColumn) -> Changed:
    return await rename_column(session, item, action, await rows_of(session, item)), None


async def _type(session: AdapterSession, item: Item, action: st.AlterType) -> Changed:
    return await alter_type(session, item, action, await rows_of(session, item)), None


_ACTIONS: dict[type[st.TableAction], Callable[[Any, Item, Any], Awaitable[Changed]]] = {
    st.AddConstraint: _add,
    st.DropConstraint: _drop,
    st.SetDefault: _default,
    DropExpression: _drop_expression,
    st.SetNotNull: _not_null,
    st.AddColumnAction: _add_column,
    st.DropColumn: _drop_column,
    st.RenameColumn: _rename_column,
    st.AlterType: _type,
}
HANDLERS: Handlers = {st.AlterTable: run_alter_table}
