"""CREATE DOMAIN and ALTER DOMAIN.

Law: every value of a column that is declared as a domain fulfils what the domain asks for, and
whatever is added to it is asked of those values first: of each table, as `ddl.alter_table` does.
Rows that others computed under the older domain are refused where they are committed
(`table.committer`). A CHECK that is NOT VALID is asked only of what is written from then on.

A maintained view that casts to a domain would have other rows, or other errors, without a change of
its inputs: there is none while what the domain asks for, or its name, changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import EVERYBODY
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.type_names import TypeNames, spelled
from noonmark.adapter.catalog.user_types import bound, made_types, type_of
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.statement.ddl.alter_table import retried, rows_of
from noonmark.adapter.statement.ddl.column_types import resolved
from noonmark.adapter.statement.ddl.common import Created, create, place
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.ddl.sequence import kept_default
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.checks import CheckViolation
from noonmark.adapter.weight import statement_weight
from noonmark.adapter.worker.values import values_of
from noonmark.errors import (
    DatatypeMismatch,
    DuplicateObject,
    NotNullViolation,
    UndefinedObject,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.rows.domain import Domain
from noonmark.rows.schema import Column
from noonmark.sql.assign import is_assignable, loose
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.functions.domain import DomainNull, DomainViolation
from noonmark.sql.ir.scalar import column
from noonmark.sql.plan.domain import checked, condition
from noonmark.sql.plan.form import written_type
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Scope
from noonmark.sql.statement import domains as sd
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What a domain remembers the type that it is made of as: no text names a type so.
_BASE = " base"
_PIECE_ROWS = 20_000


async def run_create_domain(
    session: AdapterSession, statement: sd.CreateDomain, _: Sequence[Any]
) -> Outcome:
    """CREATE DOMAIN."""
    uid = session.database.clock.fresh_id()

    def build(catalog: Catalog, number: int) -> Created:
        schema, name = place(catalog, statement.name)
        taken = catalog.by_name.get((schema, name))
        if taken is not None and taken.is_relation:
            raise DuplicateObject(f'type "{name}" already exists')
        access = session.access("CREATE DOMAIN", catalog)
        base = resolved(access, statement.type, check=True)
        if isinstance(base, t.Record):
            raise DatatypeMismatch(f'"{name}" is not a valid base type for a domain')
        definition: dict[str, Any] = {"uid": uid, "text": session.text}
        grants = {EVERYBODY: frozenset({"USAGE"})}
        item = Item(number, "type", schema, name, definition=definition, owner=session.user,
                    grants=grants)  # fmt: skip
        item = _over(catalog, item, base)
        if statement.default is not None:
            item = _with_default(session, catalog, item, statement.default)
        if statement.not_null:
            item = _with(item, not_null=True)
        for each in statement.checks:
            item, _ = _with_check(session, catalog, item, each, valid=True)
        return Created((item,), lambda _: ())

    async def make(catalog: Catalog, number: int) -> Created:
        return await PLANNER.run(statement_weight(session), build, catalog, number)

    done, _created = await create(session, "CREATE DOMAIN", statement.name, False, make)
    return done


def _with(item: Item, **parts: Any) -> Item:
    return replace(item, definition={**item.definition, **parts})


def _over(catalog: Catalog, item: Item, base: t.SqlType) -> Item:
    """The domain over a type; it has the default of the domain that it is made of, as it is now."""
    if not isinstance(base, Domain):
        pins = [(_BASE, each.uid) for each in made_types(base)]
        return _naming(catalog, _with(item, base=t.stored_spelling(base)), dict(pins))
    over = _with(item, base=t.stored_spelling(base.base), over=_BASE)
    if base.default is not None:
        over = _with(over, default=base.default)
    parent = catalog.by_number[base.number]
    return _naming(catalog, over, {**parent.definition.get("types", {}), _BASE: base.uid})


def _naming(catalog: Catalog, item: Item, pins: dict[str, str]) -> Item:
    """The domain with more names of types in its texts, and what it needs for them."""
    whole = {**item.definition.get("types", {}), **pins}
    if not whole:
        return item
    found = bound(_with(item, types=whole), catalog.types)
    numbers = {each.number for kind in found.types.values() for each in made_types(kind)}
    return replace(found, needs=tuple(sorted(numbers)))


def _remembering(session: AdapterSession, catalog: Catalog, item: Item, text: str) -> Item:
    """The domain that also knows which types a text of it names."""
    names = TypeNames(session.access("SHOW", catalog), item.types)
    for node in parse_scalar(text).walk():
        parts = written_type(node)
        if parts is not None and spelled(parts) not in item.types:
            names(parts)
    return _naming(catalog, item, names.pins())


def _domain(item: Item) -> Domain:
    made = type_of(item)
    assert isinstance(made, Domain)
    return made


def _with_default(
    session: AdapterSession, catalog: Catalog, item: Item, default: st.ScalarText | None
) -> Item:
    definition = {name: has for name, has in item.definition.items() if name != "default"}
    item = replace(item, definition=definition)
    if default is None:
        return item
    base = _domain(item).base
    types = TypeNames(session.access("SHOW", catalog))
    statement = Statement({}, session=session.functions, types=types)
    scalar = plan(default.tree, Frame(statement).row("DEFAULT expressions", Scope()))
    if scalar.type != UNKNOWN and not is_assignable(scalar.type, base):
        raise DatatypeMismatch(
            f'column "{item.name}" is of type {base} but default expression is of type '
            f"{scalar.type}",
            hint="You will need to rewrite or cast the expression.",
        )
    coerce(scalar, loose(base))
    made = _with(item, default=kept_default(session, catalog, default))
    return _remembering(session, catalog, made, default.text)


def _with_check(
    session: AdapterSession, catalog: Catalog, item: Item, written: st.CheckText, *, valid: bool
) -> tuple[Item, str]:
    """The domain with a CHECK, and its name."""
    before = item.definition.get("checks", [])
    taken = {name for name, *_ in before}
    if written.name in taken:
        raise DuplicateObject(
            f'constraint "{written.name}" for domain "{item.name}" already exists'
        )
    types = TypeNames(session.access("SHOW", catalog))
    condition(written.condition.tree, _domain(item).base, Statement({}, types=types))
    name, number = written.name, 0
    while name is None or (written.name is None and name in taken):
        name, number = f"{item.name}_check{number or ''}", number + 1
    made = _with(item, checks=[*before, [name, written.condition.text, valid]])
    return _remembering(session, catalog, made, written.condition.text), name


# --- ALTER DOMAIN


async def run_alter_domain(
    session: AdapterSession, statement: sd.AlterDomain, _: Sequence[Any]
) -> Outcome:
    """ALTER DOMAIN name action."""
    return await retried(session, lambda: _altered(session, statement))


async def _altered(session: AdapterSession, statement: sd.AlterDomain) -> Outcome:
    store = session.store
    async with store.turn:
        access: Access = session.access("ALTER DOMAIN", store.catalog)
        item = find(access, "domain", statement.name)
        if item is None:
            raise missing("domain", statement.name)
        access.check("object", item)
        action = statement.action
        changed, told = await _ACTIONS[type(action)](session, item, action)
        if changed is not item:
            if _domain(changed).state != _domain(item).state:
                refuse_casts(store.catalog, item)
            await store.change([changed])
    return Done("ALTER DOMAIN", (Notice(told),) if told is not None else ())


def refuse_casts(catalog: Catalog, item: Item) -> None:
    """No maintained view casts to a domain that changes."""
    uid = item.definition["uid"]
    for view in catalog.items("materialized-view", "index"):
        for each in catalog.needs([view.number]):
            named = {made.uid for kind in each.types.values() for made in made_types(kind)}
            if each.kind in ("view", "materialized-view") and uid in named:
                raise Unsupported(
                    f"domain {type_of(item)} cannot be altered: {view} casts to it",
                    detail="Its rows would be others, though nothing that it reads has changed.",
                    hint=f"Drop {view}, and make it again afterwards.",
                )


Changed = tuple[Item, str | None]


async def _default(session: AdapterSession, item: Item, action: sd.DomainDefault) -> Changed:
    return _with_default(session, session.store.catalog, item, action.default), None


async def _not_null(session: AdapterSession, item: Item, action: sd.DomainNotNull) -> Changed:
    if bool(item.definition.get("not_null")) == action.not_null:
        return item, None
    changed = _with(item, not_null=action.not_null)
    if action.not_null:
        asked = replace(_domain(item), over=None, checks=(), is_not_null=True)
        await _check_values(session, asked)
    return changed, None


async def _add(session: AdapterSession, item: Item, action: sd.DomainAdd) -> Changed:
    catalog = session.store.catalog
    changed, name = _with_check(session, catalog, item, action.check, valid=action.is_valid)
    if action.is_valid:
        await _check_values(session, _only(changed, name))
    return changed, None


def _only(item: Item, name: str) -> Domain:
    """A domain that asks for one of its CHECKs alone."""
    made = _domain(item)
    own = tuple(each for each in made.checks if each[0] == name)
    return replace(made, over=None, is_not_null=False, checks=own)


def _checks(item: Item) -> list[list[Any]]:
    return [list(each) for each in item.definition.get("checks", ())]


async def _drop(_: AdapterSession, item: Item, action: sd.DomainDrop) -> Changed:
    left = [each for each in _checks(item) if each[0] != action.name]
    if len(left) == len(_checks(item)):
        message = f'constraint "{action.name}" of domain "{item.name}" does not exist'
        if action.if_exists:
            return item, f"{message}, skipping"
        raise UndefinedObject(message)
    return _with(item, checks=left), None


async def _rename(_: AdapterSession, item: Item, action: sd.DomainRename) -> Changed:
    rows = _checks(item)
    names = [each[0] for each in rows]
    if action.name not in names:
        raise UndefinedObject(
            f'constraint "{action.name}" for domain {type_of(item)} does not exist'
        )
    if action.new in names:
        raise DuplicateObject(
            f'constraint "{action.new}" for domain {type_of(item)} already exists'
        )
    rows[names.index(action.name)][0] = action.new
    return _with(item, checks=rows), None


async def _validate(session: AdapterSession, item: Item, action: sd.DomainValidate) -> Changed:
    rows = _checks(item)
    at = next((at for at, each in enumerate(rows) if each[0] == action.name), None)
    if at is None:
        raise UndefinedObject(f'constraint "{action.name}" of domain "{item.name}" does not exist')
    if rows[at][2]:
        return item, None
    await _check_values(session, _only(item, action.name))
    rows[at][2] = True
    return _with(item, checks=rows), None


def _tables(catalog: Catalog, domain: Domain) -> Iterator[tuple[Item, list[int]]]:
    """The tables that have columns of a domain, and where: of those that are made of it first."""
    for item in catalog.items("type"):
        made = type_of(item)
        if isinstance(made, Domain) and made.over == domain:
            yield from _tables(catalog, made)
    for item in catalog.items("table"):
        places = [at for at, each in enumerate(item.schema) if each.domain == domain]
        if places:
            yield item, places


async def _check_values(session: AdapterSession, asked: Domain) -> None:
    """The values that columns have fulfil what a domain is to ask for.

    Raises:
        NotNullViolation, CheckViolation: one does not.
    """
    for table, places in _tables(session.store.catalog, asked):
        rows = list(await rows_of(session, table))
        for place_ in places:
            own = table.schema.columns[place_]
            scalar = checked(column(0, Column("value", own.type)), asked)
            for start in range(0, len(rows), _PIECE_ROWS):
                piece = [(row[place_],) for row in rows[start : start + _PIECE_ROWS]]
                where: dict[str, Any] = {"table": table.name, "column": own.name}
                where["schema"] = table.schema_name
                try:
                    await values_of(session.database.workers, [(scalar,)] * len(piece), piece)
                except DomainNull:
                    raise NotNullViolation(
                        f'column "{own.name}" of table "{table.name}" contains null values', **where
                    ) from None
                except DomainViolation:
                    raise CheckViolation(
                        f'column "{own.name}" of table "{table.name}" contains values that '
                        "violate the new constraint",
                        **where,
                    ) from None


_ACTIONS: dict[type[sd.DomainAction], Callable[[Any, Item, Any], Awaitable[Changed]]] = {
    sd.DomainDefault: _default,
    sd.DomainNotNull: _not_null,
    sd.DomainAdd: _add,
    sd.DomainDrop: _drop,
    sd.DomainRename: _rename,
    sd.DomainValidate: _validate,
}
HANDLERS: Handlers = {sd.CreateDomain: run_create_domain, sd.AlterDomain: run_alter_domain}
