"""The actions of ALTER TABLE that rewrite it: columns that come, go or change, and primary keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.type_names import TypeNames, remembering
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.statement.ddl.columns import DuplicateColumn
from noonmark.adapter.statement.ddl.constraints import constrained
from noonmark.adapter.statement.ddl.rewrite import Row, refuse_readers, rewritten
from noonmark.adapter.statement.ddl.sequence import serials
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.target import default_of
from noonmark.adapter.table.checks import checks_of, named
from noonmark.adapter.table.constraints import (
    foreigns_of,
    key_name,
    names_of,
    referencing,
    uniques_of,
)
from noonmark.adapter.table.enforce import Columns
from noonmark.adapter.table.expressions import renamed
from noonmark.adapter.table.generated import texts_of, users_of, with_generated
from noonmark.adapter.table.keyed import keyed
from noonmark.adapter.table.needed import refuse_defaults
from noonmark.adapter.weight import statement_weight
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
from noonmark.sql.assign import is_assignable, loose
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


class InvalidUsing(UsageError, id="invalid_using", sqlstate="42611"):
    """USING for a column that has its values from an expression."""


def check_column(item: Item, name: str) -> None:
    """Refuse a column that the table does not have."""
    if name not in item.schema:
        raise UndefinedColumn(f'column "{name}" of relation "{item.name}" does not exist')


async def add_column(session: AdapterSession, item: Item, spec: st.ColumnSpec, rows: Rows) -> Item:
    """ADD COLUMN: the rows that are there have its default."""
    catalog = session.store.catalog
    refuse_readers(session, item, f'add column "{spec.name}"')
    added = Column(spec.name, spec.type, spec.nullable, spec.domain)
    wide = replace(item, schema=Schema((*item.schema.columns, added)))
    wide, more = serials(session, catalog, wide, (spec,), catalog.next_number)
    if spec.checks:
        before = wide.definition.get("checks", [])
        types = TypeNames(session.access("SHOW", catalog))
        texts = named(item.name, wide.schema, spec.checks, names_of(item), types)
        wide = replace(wide, definition={**wide.definition, "checks": [*before, *texts]})
    if more:
        await session.store.change(more)
    wide = with_generated(session.access("SHOW", catalog), wide, (spec,), session.functions)
    wide = remembering(session.access("SHOW", catalog), wide)
    scalar = _planned(session, default_of(wide, added), added)
    by_domain = spec.domain is not None and spec.domain.default is not None
    has_values = spec.default or spec.serial or spec.identity or spec.generated or by_domain
    if rows and not spec.nullable and not has_values:
        raise contains_null(item, spec.name)
    try:
        return await _recomputed(session, item, wide, rows, scalar=scalar, at=None)
    except NotNullViolation:
        raise contains_null(item, spec.name) from None


def contains_null(item: Item, name: str) -> NotNullViolation:
    """What is said of a column that may have no NULL, and has."""
    return NotNullViolation(
        f'column "{name}" of relation "{item.name}" contains null values',
        schema=item.schema_name,
        table=item.name,
        column=name,
    )


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


def _statement(session: AdapterSession) -> Statement:
    types = TypeNames(session.access("SHOW", session.store.catalog))
    return Statement({}, session=session.functions, types=types)


def _planned(session: AdapterSession, tree: Any, column: Column) -> Any:
    row = Frame(_statement(session)).row("DEFAULT expressions", Scope())
    return bind(coerce(plan(tree, row), loose(column.type)), ())


async def drop_column(
    session: AdapterSession, item: Item, action: st.DropColumn, rows: Rows
) -> tuple[Item, str | None]:
    """DROP COLUMN: with it go its constraints, its sequence and, by CASCADE, what it generates."""
    name, store = action.name, session.store
    refuse_readers(session, item, f"drop column {name}")
    above = users_of(item, name)
    if above and not action.cascade:
        raise DependentObjects(
            f"cannot drop column {name} of table {item.name} because other objects depend on it",
            detail="\n".join(
                f"column {each} of table {item.name} depends on column {name} of table {item.name}"
                for each in above
            ),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    gone = {name, *above}
    for child, foreign in referencing(store.catalog, item):
        lost = next((each for each in foreign.others if each in gone), None)
        if lost is not None and child.number != item.number:
            raise DependentObjects(
                f"cannot drop column {lost} of table {item.name} because other objects "
                "depend on it",
                detail=f"constraint {foreign.name} on table {child.name} depends on column {lost} "
                f"of table {item.name}",
                hint="Drop that constraint first.",
            )
    owned = [
        each
        for each in store.catalog.parts_of(item.number)
        if each.definition.get("column") in gone
    ]
    what = f"column {name} of table {item.name}"
    refuse_defaults(store.catalog, owned, what, action.cascade, own=item.number)
    if owned:
        await store.change(removed=[each.number for each in owned])
    new = _without(item, gone)
    left = [at for at, each in enumerate(item.schema.names) if each not in gone]
    made = await rewritten(session, item, new, rows, lambda row: tuple([row[at] for at in left]))
    told = [f"drop cascades to column {each} of table {item.name}" for each in above]
    if len(told) > 1:
        told = [f"drop cascades to {len(told)} other objects"]
    return made, told[0] if told else None


def _without(item: Item, gone: set[str]) -> Item:
    """The table without some columns, and without the constraints that name them."""
    places = {item.schema.index(name) for name in gone}
    lost = {check.name for check in checks_of(item) if places & columns_of(check.condition)}
    definition = dict(item.definition)
    definition["checks"] = [each for each in definition.get("checks", ()) if each[0] not in lost]
    definition["uniques"] = [u.stored() for u in uniques_of(item) if not gone & u.needed]
    definition["foreigns"] = [f.stored() for f in foreigns_of(item) if not gone & {*f.columns}]
    for part in ("defaults", "identity", "generated"):
        definition[part] = {c: v for c, v in definition.get(part, {}).items() if c not in gone}
    definition["not_null"] = [c for c in definition.get("not_null", ()) if c not in gone]
    for part in ("checks", "generated"):
        if not definition[part]:
            del definition[part]
    key = () if gone & {*item.key} else item.key
    schema = Schema(tuple(column for column in item.schema if column.name not in gone))
    comments = {where: text for where, text in item.comments.items() if where not in gone}
    return replace(item, schema=schema, key=key, definition=definition, comments=comments)


async def rename_column(
    session: AdapterSession, item: Item, action: st.RenameColumn, rows: Rows
) -> Item:
    """RENAME COLUMN."""
    old, new = action.name, action.new
    check_column(item, old)
    if new in item.schema:
        raise DuplicateColumn(f'column "{new}" of relation "{item.name}" already exists')
    refuse_readers(session, item, f"rename column {old}")

    def moved(name: str) -> str:
        return new if name == old else name

    definition = dict(item.definition)
    for part in ("defaults", "identity"):
        definition[part] = {moved(c): v for c, v in definition.get(part, {}).items()}
    if "checks" in definition:
        definition["checks"] = [
            [name, renamed(text, old, new), table] for name, text, table in definition["checks"]
        ]
    if "generated" in definition:
        definition["generated"] = {
            moved(c): [renamed(text, old, new), table]
            for c, (text, table) in definition["generated"].items()
        }
    definition["not_null"] = [moved(c) for c in definition.get("not_null", ())]
    definition["uniques"] = [u.after(old, new).stored() for u in uniques_of(item)]
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
    if above := users_of(item, own.name):
        raise Unsupported(
            "cannot alter type of a column used by a generated column",
            detail=f'Column "{own.name}" is used by generated column "{above[0]}".',
        )
    if action.using is not None and own.name in texts_of(item):
        raise InvalidUsing(
            "cannot specify USING when altering type of generated column",
            detail=f'Column "{own.name}" is a generated column.',
        )
    target = Column(own.name, action.type, own.nullable, action.domain)
    row_ = Frame(_statement(session)).row("transform expressions", scope_of(item.name, item.schema))
    row_.columns = item.schema.columns
    if action.using is None:
        if not is_assignable(own.type, target.type):
            raise DatatypeMismatch(
                f'column "{own.name}" cannot be cast automatically to type {target.declared}',
                hint="You might need to specify "
                f'"USING {quote_name(own.name)}::{target.declared}".',
            )
        tree = parse_scalar(quote_name(own.name))
    else:
        tree = action.using.tree
    scalar = await PLANNER.run(
        statement_weight(session), lambda: cast_to(plan(tree, row_), loose(target.type), None)
    )
    columns = tuple(target if each.name == own.name else each for each in item.schema)
    new = replace(item, schema=Schema(columns))
    for unique in uniques_of(new):
        if not unique.is_plain:
            keyed(new, unique)  # refused where it means nothing over the new type
    return await _recomputed(session, item, new, rows, scalar=scalar, at=at)


async def add_key(session: AdapterSession, item: Item, written: st.UniqueText, rows: Rows) -> Item:
    """ADD PRIMARY KEY."""
    refuse_readers(session, item, "add a primary key")
    named_ = constrained(session, session.store.catalog, item, (written,), ())
    for name in written.columns:
        place = item.schema.index(name)
        if any(row[place] is None for row in rows):
            raise contains_null(item, name)
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
