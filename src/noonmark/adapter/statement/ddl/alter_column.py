"""The actions of ALTER TABLE that rewrite it: columns that come, go or change, and primary keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.statement.ddl.constraints import constrained
from noonmark.adapter.statement.ddl.rewrite import Row, refuse_readers, rewritten
from noonmark.adapter.statement.ddl.sequence import serials
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.target import default_of, is_assignable, loose
from noonmark.adapter.table.checks import checks_of, named
from noonmark.adapter.table.constraints import (
    foreigns_of,
    key_name,
    names_of,
    referencing,
    uniques_of,
)
from noonmark.adapter.table.enforce import Columns
from noonmark.adapter.worker.values import values_of
from noonmark.errors import (
    DatatypeMismatch,
    DependentObjects,
    NotNullViolation,
    UndefinedColumn,
    UniqueViolation,
    Unsupported,
    UsageError,
)
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import quote_name
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.scalar import Scalar, columns_of
from noonmark.sql.plan.form import cast_to
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Scope, scope_of
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Rows = dict[Row, int]


class DuplicateColumn(UsageError, id="duplicate_column_name", sqlstate="42701"):
    """A column of that name is there."""


def check_column(item: Item, name: str) -> None:
    """Refuse a column that the table does not have."""
    if name not in item.schema:
        raise UndefinedColumn(f'column "{name}" of relation "{item.name}" does not exist')


async def add_column(session: AdapterSession, item: Item, spec: st.ColumnSpec, rows: Rows) -> Item:
    """ADD COLUMN: the rows that are there have its default."""
    catalog = session.store.catalog
    if spec.generated is not None:
        raise Unsupported("a generated column of a table is not supported")
    refuse_readers(session, item, f'add column "{spec.name}"')
    added = Column(spec.name, spec.type, spec.nullable)
    wide = replace(item, schema=Schema((*item.schema.columns, added)))
    wide, more = serials(session, catalog, wide, (spec,), catalog.next_number)
    if spec.checks:
        before = wide.definition.get("checks", [])
        texts = named(item.name, wide.schema, spec.checks, names_of(item))
        wide = replace(wide, definition={**wide.definition, "checks": [*before, *texts]})
    if more:
        await session.store.change(more)
    scalar = _planned(session, default_of(wide, added), added)

    if rows and not spec.nullable and spec.default is None and not (spec.serial or spec.identity):
        raise NotNullViolation(
            f'column "{spec.name}" of relation "{item.name}" contains null values',
            column=spec.name,
        )
    return await _recomputed(session, item, wide, rows, scalar=scalar, at=None)


async def _recomputed(
    session: AdapterSession, item: Item, new: Item, rows: Rows, *, scalar: Scalar, at: int | None
) -> Item:
    """Rewrite a table: each row with the value of a scalar in a place, or behind its own."""
    pool = session.database.workers
    each = [row for row, count in rows.items() for _ in range(count)]
    values = await values_of(pool, [(scalar,)] * len(each), each)
    if at is None:
        wholes = [(*row, value) for row, (value,) in zip(each, values, strict=True)]
    else:
        wholes = [
            (*row[:at], value, *row[at + 1 :]) for row, (value,) in zip(each, values, strict=True)
        ]
    made = iter(await fitted_rows(pool, new, wholes))
    return await rewritten(session, item, new, rows, lambda _: next(made))


def _planned(session: AdapterSession, tree: Any, column: Column) -> Any:
    row = Frame(Statement({}, session=session.functions)).row("DEFAULT", Scope())
    return bind(coerce(plan(tree, row), loose(column.type)), ())


async def drop_column(
    session: AdapterSession, item: Item, action: st.DropColumn, rows: Rows
) -> Item:
    """DROP COLUMN: with it go its constraints and its sequence."""
    name, store = action.name, session.store
    refuse_readers(session, item, f"drop column {name}")
    at = item.schema.index(name)
    for child, foreign in referencing(store.catalog, item):
        if name in foreign.others and child.number != item.number:
            raise DependentObjects(
                f"cannot drop column {name} of table {item.name} because other objects "
                "depend on it",
                detail=f"constraint {foreign.name} on table {child.name} depends on column {name} "
                f"of table {item.name}",
                hint="Drop that constraint first.",
            )
    gone = {check.name for check in checks_of(item) if at in columns_of(check.condition)}
    definition = dict(item.definition)
    definition["checks"] = [each for each in definition.get("checks", ()) if each[0] not in gone]
    definition["uniques"] = [u.stored() for u in uniques_of(item) if name not in u.columns]
    definition["foreigns"] = [f.stored() for f in foreigns_of(item) if name not in f.columns]
    for part in ("defaults", "identity"):
        definition[part] = {c: v for c, v in definition.get(part, {}).items() if c != name}
    definition["not_null"] = [c for c in definition.get("not_null", ()) if c != name]
    if not definition["checks"]:
        del definition["checks"]
    key = () if name in item.key else item.key
    schema = Schema(tuple(column for column in item.schema if column.name != name))
    owned = [
        each.number
        for each in store.catalog.parts_of(item.number)
        if each.definition.get("column") == name
    ]
    if owned:
        await store.change(removed=owned)
    comments = {where: text for where, text in item.comments.items() if where != name}
    new = replace(item, schema=schema, key=key, definition=definition, comments=comments)
    return await rewritten(session, item, new, rows, lambda row: (*row[:at], *row[at + 1 :]))


async def rename_column(
    session: AdapterSession, item: Item, action: st.RenameColumn, rows: Rows
) -> Item:
    """RENAME COLUMN."""
    old, new = action.name, action.new
    check_column(item, old)
    if new in item.schema:
        raise DuplicateColumn(f'column "{new}" of relation "{item.name}" already exists')
    refuse_readers(session, item, f"rename column {old}")
    if any(item.schema.index(old) in columns_of(each.condition) for each in checks_of(item)):
        raise Unsupported(
            f'RENAME COLUMN "{old}" that a CHECK names is not supported',
            hint="Drop the constraint, rename the column, and add the constraint again.",
        )

    def moved(name: str) -> str:
        return new if name == old else name

    definition = dict(item.definition)
    for part in ("defaults", "identity"):
        definition[part] = {moved(c): v for c, v in definition.get(part, {}).items()}
    definition["not_null"] = [moved(c) for c in definition.get("not_null", ())]
    definition["uniques"] = [
        replace(u, columns=tuple(map(moved, u.columns))).stored() for u in uniques_of(item)
    ]
    definition["foreigns"] = [
        replace(
            f,
            columns=tuple(map(moved, f.columns)),
            others=tuple(map(moved, f.others)) if f.parent == item.number else f.others,
        ).stored()
        for f in foreigns_of(item)
    ]
    schema = Schema(tuple(replace(c, name=moved(c.name)) for c in item.schema))
    await _rename_elsewhere(session, item, moved)
    changed = replace(
        item,
        schema=schema,
        key=tuple(map(moved, item.key)),
        definition=definition,
        comments={moved(where): text for where, text in item.comments.items()},
    )
    return await rewritten(session, item, changed, rows, lambda row: row)


async def _rename_elsewhere(session: AdapterSession, item: Item, moved: Any) -> None:
    """The sequences of the column, and the foreign keys of others that name it."""
    store = session.store
    changed = [
        replace(each, definition={**each.definition, "column": moved(each.definition["column"])})
        for each in store.catalog.parts_of(item.number)
        if "column" in each.definition
    ]
    for child in {c.number: c for c, _ in referencing(store.catalog, item)}.values():
        if child.number != item.number:
            stored = [
                replace(f, others=tuple(map(moved, f.others))).stored()
                if f.parent == item.number
                else f.stored()
                for f in foreigns_of(child)
            ]
            changed.append(replace(child, definition={**child.definition, "foreigns": stored}))
    if changed:
        await store.change(changed)


async def alter_type(session: AdapterSession, item: Item, action: st.AlterType, rows: Rows) -> Item:
    """ALTER COLUMN TYPE: each value is cast, or computed by USING."""
    check_column(item, action.column)
    refuse_readers(session, item, f"alter type of column {action.column}")
    at, own = item.schema.index(action.column), item.schema[action.column]
    target = Column(own.name, action.type, own.nullable)
    row_ = Frame(Statement({}, session=session.functions)).row(
        "transform expressions", scope_of(item.name, item.schema)
    )
    row_.columns = item.schema.columns
    if action.using is None:
        if not is_assignable(own.type, target.type):
            raise DatatypeMismatch(
                f'column "{own.name}" cannot be cast automatically to type {target.type}',
                hint=f'You might need to specify "USING {quote_name(own.name)}::{target.type}".',
            )
        tree = parse_scalar(quote_name(own.name))
    else:
        tree = action.using.tree
    scalar = cast_to(plan(tree, row_), loose(target.type), None)
    columns = tuple(target if each.name == own.name else each for each in item.schema)
    new = replace(item, schema=Schema(columns))

    return await _recomputed(session, item, new, rows, scalar=scalar, at=at)


async def add_key(session: AdapterSession, item: Item, written: st.UniqueText, rows: Rows) -> Item:
    """ADD PRIMARY KEY."""
    refuse_readers(session, item, "add a primary key")
    named_ = constrained(session, session.store.catalog, item, (written,), ())
    for name in written.columns:
        place = item.schema.index(name)
        if any(row[place] is None for row in rows):
            raise NotNullViolation(
                f'column "{name}" of relation "{item.name}" contains null values', column=name
            )
    _check_distinct(item, written, rows, key_name(named_))
    columns = tuple(
        replace(c, nullable=False) if c.name in written.columns else c for c in item.schema
    )
    new = replace(named_, schema=Schema(columns), key=written.columns)
    return await rewritten(session, item, new, rows, lambda row: row)


def _check_distinct(item: Item, written: st.UniqueText, rows: Rows, name: str) -> None:
    columns, seen = Columns(item.schema, written.columns), set()
    for row, count in rows.items():
        key = columns.key(row)
        if count > 1 or columns.form(key) in seen:
            raise UniqueViolation(
                f'could not create unique index "{name}"',
                detail=f"Key {columns.shown(key)} is duplicated.",
                schema=item.schema_name,
                table=item.name,
                constraint=name,
            )
        seen.add(columns.form(key))


async def drop_key(session: AdapterSession, item: Item, rows: Rows) -> Item:
    """DROP CONSTRAINT of a primary key: its columns keep NOT NULL, as in PostgreSQL 15."""
    name = key_name(item)
    for child, foreign in referencing(session.store.catalog, item):
        if set(foreign.others) == set(item.key):
            raise DependentObjects(
                f"cannot drop constraint {name} on table {item.name} because other objects "
                "depend on it",
                detail=f"constraint {foreign.name} on table {child.name} depends on index {name}",
                hint="Drop that constraint first.",
            )
    refuse_readers(session, item, "drop the primary key")
    definition = {k: v for k, v in item.definition.items() if k != "key_name"}
    return await rewritten(
        session, item, replace(item, key=(), definition=definition), rows, lambda row: row
    )


async def drop_not_null(session: AdapterSession, item: Item, column: str, rows: Rows) -> Item:
    """DROP NOT NULL of a column that was made with it."""
    refuse_readers(session, item, f"drop NOT NULL of column {column}")
    columns = tuple(replace(c, nullable=True) if c.name == column else c for c in item.schema)
    return await rewritten(
        session, item, replace(item, schema=Schema(columns)), rows, lambda row: row
    )
